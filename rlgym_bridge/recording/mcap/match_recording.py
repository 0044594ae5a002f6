"""A recorded match: the states of its packets, and what each agent saw, decided and sent."""

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rlbot import flat

from rlgym_bridge.clock import GAP_TICKS
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.recording.mcap import channels
from rlgym_bridge.recording.mcap.agent_track import SECOND, AgentTrack, InputTrack, read_agent, read_inputs
from rlgym_bridge.recording.mcap.mcap_reader import Message, read_contents
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError
from rlgym_bridge.recording.mcap.merge import left_over
from rlgym_bridge.recording.recording import Recording, in_play, jumps, motions_of
from rlgym_bridge.state import Layout, MatchState
from rlgym_bridge.user_input.message_limits import FROM_SERVER, SHORT_BYTES, check_from_server, kind_of

_MOST = 1e5  # uu and uu/s: the game stays below 15,000, with its mutators too


@dataclass
class MatchRecording(Recording):
    """A `Recording` of RLBot packets.

    `state` holds every frame of which a packet was recorded, all fields filled in as live play has them; the
    controls in a row are those that the game says it applied. `seconds` is game time, frame / 120.
    """

    about: dict[str, Any] = field(default_factory=dict)  # what the recorder said of the match
    # `(rows,)` float64, when the packet came or was made, in seconds since 1970
    arrived: np.ndarray = field(default_factory=lambda: np.empty(0))
    inputs_taken: InputTrack | None = None  # what the server took; empty where it did not record
    agents: dict[str, AgentTrack] = field(default_factory=dict)  # what each agent recorded, by agent id
    drawn: list[Message] = field(default_factory=list)  # what clients drew, as `channels.DRAWN` describes it
    # rows in the state of the cars, by their index in packets
    rows_of: dict[int, int] = field(default_factory=dict)
    # of the cars, in the order of the state, as the last packet has them
    names: list[str] = field(default_factory=list)

    @property
    def played_ticks(self) -> int:
        """Ticks of play, those that no packet shows included, unless the frame leaps."""
        playing, steps = in_play(self.state), np.diff(self.tick)
        together = playing[1:] & playing[:-1] & (steps > 0) & (steps <= GAP_TICKS)
        return int(steps[together].sum() + playing.sum() - together.sum())

    @property
    def lost_ticks(self) -> int:
        """Ticks between packets of one segment of play that no packet shows."""
        steps = np.diff(self.tick)
        together = np.diff(self.segment) == 0
        return int((steps[together] - 1).sum())

    def missed(self, track: AgentTrack) -> int:
        """Return how many of the recorded packets, from an agent's first to its last, did not reach it."""
        if not len(track.frame):
            return 0
        since = (self.tick >= track.frame.min()) & (self.tick <= track.frame.max())
        return int((~np.isin(self.tick[since], track.frame)).sum())


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let the garbage collector rest: it would look through all messages again and again for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_uncollected()
def read_match(path: str | Path, shadow: bool | None = None) -> MatchRecording:
    """Read a recording of ours, whole or cut off; see `Decoder` for `shadow`.

    Raises OSError, or RecordingError if it is no recording, or holds no packet.
    """
    path = Path(path)
    contents = read_contents(path)
    # Those of the server, else of the agent that got most.
    every = [one for name, one in contents.topics.items() if name.endswith(channels.PACKETS)]
    packets = contents.topics.get(channels.PACKETS) or max(every, key=len, default=[])
    heads = [_message(contents.topics[name][0]) if contents.topics.get(name) else None
             for name in (channels.FIELD_INFO, channels.MATCH_CONFIGURATION)]  # fmt: skip
    rows, seatings, kept, notes = _decode(packets, heads, shadow, contents.about)
    if not rows:
        raise RecordingError(f"{path} holds no packet of a match that can be read")
    notes += _why_unrepeatable(contents.about)
    if beside := left_over(path):
        notes.append(
            f"more of this match lies in {', '.join(one.name for one in beside)}, each a recording by "
            "itself: in .N.part decisions and inputs of a bot (the match was killed, or goes on), in .partN "
            "what came later"
        )
    state, chosen = _playable(rows, path, notes)
    kept, seats = [kept[one] for one in chosen], [seatings[one] for one in chosen]
    tick = np.array([one.frame for one in kept], np.int64)
    rows_of = {index: row for row, index in enumerate(seats[-1])}
    last = _message(kept[-1])
    playing = in_play(state)
    known = state.ball_known > 0
    shown = state.car_is_demoed == 0
    seated = np.array([False, *(a != b for a, b in pairwise(seats))])
    begins = seated | np.diff(playing, prepend=playing[:1]) | _broken(state, tick, known, shown)
    segment = np.cumsum(begins).astype(np.int32)
    recording = MatchRecording(
        path.name, state, tick, tick / TICKS_PER_SECOND, segment, known, shown,
        notes=contents.notes + notes, about=contents.about,
        arrived=np.array([one.time for one in kept]) * SECOND,
        inputs_taken=read_inputs(contents.topics.get(channels.INPUTS, []), rows_of),
        drawn=contents.topics.get(channels.DRAWINGS, []), rows_of=rows_of,
        names=[last.players[index].name for index in seats[-1]] if isinstance(last, flat.GamePacket) else [],
        mode=str(getattr(heads[1], "game_mode", "Soccar")).removeprefix("GameMode."),
        simulator=str(contents.about.get("simulator", "")),
    )  # fmt: skip
    topics = [name for name in contents.topics if name.startswith(channels.AGENTS)]
    for agent in sorted({name.removeprefix(channels.AGENTS).rpartition("/")[0] for name in topics}):
        recording.agents[agent] = read_agent(contents, agent, rows_of, recording.notes)
    return recording


def _why_unrepeatable(about: dict[str, Any]) -> list[str]:
    """Return sentences on what a lockstep match depended on beside seed, bots and versions."""
    reasons = about.get("unrepeatable")
    if about.get("pace") != "lockstep" or not isinstance(reasons, list):
        return []
    return [f"the match cannot be repeated: {reason}" for reason in reasons if isinstance(reason, str)]


def _playable(
    rows: dict[Layout, tuple[list[int], bytearray]], path: Path, notes: list[str]
) -> tuple[MatchState, list[int]]:
    """Return the states that have the cars of most and possible numbers, and which packets they are."""
    layout, (chosen, data) = max(rows.items(), key=lambda one: len(one[1][0]))
    if others := sum(len(numbers) for numbers, _ in rows.values()) - len(chosen):
        notes.append(f"{others:,} packets with other cars than the most are left out")
    joined = MatchState(
        layout.blue, layout.orange, len(chosen), np.frombuffer(data, np.float32).reshape(-1, layout.size)
    )
    possible = _possible(joined)
    if not possible.any():
        raise RecordingError(f"{path} holds no packet whose ball and cars are where a game can have them")
    if wrong := int((~possible).sum()):
        notes.append(f"{wrong:,} packets with numbers that no game has are left out")
        chosen = [chosen[row] for row in np.flatnonzero(possible)]
        joined = joined.select(possible)
    return joined, chosen


def _decode(
    packets: Sequence[Message], heads: Sequence[Any], shadow: bool | None, about: dict[str, Any]
) -> tuple[dict[Layout, tuple[list[int], bytearray]], list[list[int]], list[Message], list[str]]:
    """Return numbers and states of the new packets by layout, their cars' packet indices, packets, notes."""
    field_info, configuration = heads
    notes: list[str] = []
    dialect = _dialect(about, notes)
    decoder = Decoder(field_info or flat.FieldInfo(), configuration, shadow, dialect)
    rows: dict[Layout, tuple[list[int], bytearray]] = {}
    seatings: list[list[int]] = []
    kept: list[Message] = []
    bad, crowded, last = 0, 0, None
    for message in packets:
        packet = _message(message)
        if not isinstance(packet, flat.GamePacket):
            bad += 1
            continue
        try:
            state = decoder.update(packet)
        except ValueError:  # more cars than a state holds
            crowded += 1
            continue
        if message.frame == last:  # shown again
            continue
        last = message.frame
        numbers, data = rows.setdefault(state.layout, ([], bytearray()))
        numbers.append(len(kept))
        data += state.buffer.data
        seatings.append(decoder.packet_indices)
        kept.append(message)
        decoder.clear_touches()
    if bad:
        notes.append(f"{bad:,} packets cannot be read")
    if crowded:
        notes.append(f"{crowded:,} packets with more than four cars in a team are left out")
    return rows, seatings, kept, notes


def _dialect(about: dict[str, Any], notes: list[str]) -> ProtocolVariant:
    words = about.get("dialect", [])
    try:
        if not isinstance(words, list) or not all(isinstance(one, str) for one in words):
            raise ValueError(f"dialect is {json.dumps(words)[:80]}, expected a list of NAME=VALUE")
        return ProtocolVariant.parse(words)
    except ValueError as error:
        notes.append(f"what the recorder said of the match cannot be read: {error}")
        return ProtocolVariant()


def _possible(state: MatchState) -> np.ndarray:
    """Return in which rows ball and cars have numbers that a game can have, `(rows,)` bool."""
    found = np.ones(state.matches, bool)
    body = ("position", "rotation", "linear_velocity", "angular_velocity")
    names = [f"{one}_{name}" for one in ("ball", "car") for name in body]
    for name in (*names, "car_boost_amount", "car_controls"):
        below = np.abs(getattr(state, name)) < _MOST  # NaN is not
        found &= below.reshape(state.matches, -1).all(1)
    return found


def _message(message: Message) -> object:
    content = message.content
    try:
        if len(content) > SHORT_BYTES and kind_of(content) not in FROM_SERVER:
            return None
        check_from_server(content)
        return flat.CorePacket.unpack(content).message
    except ValueError:  # InvalidFlatbuffer is one
        return None


def _broken(state: MatchState, tick: np.ndarray, ball: np.ndarray, cars: np.ndarray) -> np.ndarray:
    """Return which rows do not follow from the row before: frames leap, a body is put elsewhere or gone."""
    found = np.zeros(len(tick), bool)
    steps = np.diff(tick)
    found[1:] = (steps <= 0) | (steps > GAP_TICKS) | (cars[1:] != cars[:-1]).any(1)
    found |= jumps(tick / TICKS_PER_SECOND, motions_of(state, ball, cars))
    return found
