"""Measure by how many ticks inputs act late, and how packets arrive.

With latency L packet N + L + 1 is the first to show the input that answers packet N.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from msgspec import Meta, Struct
from rlbot import flat

from rlgym_bridge.game import PLAYING_PHASES, TICKS_PER_SECOND
from rlgym_bridge.live.agent_connections import AgentConnections, NoServer, agents_of
from rlgym_bridge.trials.findings import Amount, Count, Finding, Name
from rlgym_bridge.trials.scene_player import NEUTRAL, Play, ScenePlayer, press

_PAUSE: Final = 11  # ticks between two changes; odd, so that odd and even frames are answered
_MOST_PACKETS: Final = 40  # packets within which a change must be seen, which allows a latency of 39
_CHANGES: Final = 4  # rounds of all inputs below

_INPUTS: Final[Sequence[tuple[flat.ControllerState, Callable[[flat.ControllerState], bool]]]] = (
    (press(steer=1.0), lambda shown: shown.steer > 0.5),
    (press(steer=-1.0), lambda shown: shown.steer < -0.5),
    (press(handbrake=True), lambda shown: shown.handbrake),
    (press(throttle=1.0), lambda shown: shown.throttle > 0.5),
    (press(throttle=-1.0), lambda shown: shown.throttle < -0.5),
)


@dataclass(frozen=True)
class InputChange:
    """One change of an input."""

    answered: int  # frame number of the packet that was answered with it
    before: int  # frame number of the last packet without it
    shown: int  # frame number of the first packet whose `last_input` has it
    # frame number at which the car began to move, extrapolated from its first speeds; None where the
    # input does not move a car at rest. The game and RocketSim 3 move it in the tick on which the input
    # acts (captures of 2026), RocketSim 2.2.1 one later
    moved: float | None = None

    @property
    def range(self) -> tuple[int, int]:
        """Return the lowest and highest latency that fit, ticks."""
        return self.before - self.answered, self.shown - self.answered - 1


def change_inputs(scene: ScenePlayer) -> Play[list[InputChange]]:
    """Change one input after another on a standing car, then start it from rest.

    The scene ends at the first change that is not seen in time: it could be mistaken for a later one.
    """
    changes: list[InputChange] = []
    yield from scene.stand()
    for _ in range(_CHANGES):
        for controls, shows in _INPUTS:
            change = yield from _change(scene, controls, shows)
            if change is None:
                return changes
            changes.append(change)
            yield from scene.hold(_PAUSE)
    for _ in range(3):
        yield from scene.stand(settle=60)
        change = yield from _start(scene)
        if change is None:
            return changes
        changes.append(change)
    yield from scene.stand()
    change = yield from _change(scene, press(jump=True), lambda shown: shown.jump)
    if change is not None:
        changes.append(change)
    yield from scene.hold(30)
    yield from scene.land()
    return changes


def _change(
    scene: ScenePlayer, controls: flat.ControllerState, shows: Callable[[flat.ControllerState], bool]
) -> Play[InputChange | None]:
    answered = before = scene.frame.number
    for _ in range(_MOST_PACKETS):
        yield from scene.step(controls)
        if shows(scene.frame.car.last_input):
            return InputChange(answered, before, scene.frame.number)
        before = scene.frame.number
    return None


def _start(scene: ScenePlayer) -> Play[InputChange | None]:
    """Start a car from rest; its speed grows linearly in the first ticks."""
    scene.frames = [scene.frame]
    change = yield from _change(scene, *_INPUTS[3])
    yield from scene.hold(8, _INPUTS[3][0])
    if change is None:
        return None
    driven = [frame for frame in scene.frames if abs(frame.car.physics.velocity.x) > 5.0][:4]
    if len(driven) < 2 or driven[-1].number == driven[0].number:
        return change
    first, last = driven[0], driven[-1]
    speed = abs(first.car.physics.velocity.x)
    gain = (abs(last.car.physics.velocity.x) - speed) / (last.number - first.number)
    if gain < 1.0:
        return change
    return InputChange(change.answered, change.before, change.shown, first.number - speed / gain)


def judge_changes(changes: Sequence[InputChange]) -> Finding:
    """Find the latency: the one that fits most changes, and more than half of them."""
    if len(changes) < 5:
        seen = f"{len(changes)} inputs were" if changes else "no input was"
        return Finding(
            None,
            f"{seen} seen in last_input within {_MOST_PACKETS} packets: "
            f"at most {_MOST_PACKETS - 1} ticks can be measured",
        )  # fmt: skip
    best, count = _fit(change.range for change in changes if change.range[0] >= -1)
    moved = sorted(change.moved - change.answered for change in changes if change.moved is not None)
    middle = moved[len(moved) // 2] if moved else None
    if len(best) > 1 and middle is not None:  # packets skip frames: use the car's motion
        best = [ticks for ticks in best if abs(ticks - middle) < 0.4] or best
    if len(best) != 1 or count <= 0.5 * len(changes):
        evidence = " or ".join(map(str, best)) or "none"
        return Finding(None, f"{evidence} ticks fit {count} of {len(changes)} changes")
    evidence = f"{best[0]} ticks fit {count} of {len(changes)} changes of last_input"
    if middle is not None:
        evidence += f", and a car at rest starts to move {_early_or_late(round(middle, 1))}"
    return Finding(str(best[0]), evidence)


def _fit(ranges: Iterable[tuple[int, int]]) -> tuple[list[int], int]:
    """Return the latencies, ascending, that fit most of the ranges from least to most, and how many."""
    fits = Counter(ticks for low, high in ranges for ticks in range(low, high + 1))
    count = max(fits.values(), default=0)
    return sorted(ticks for ticks, often in fits.items() if often == count), count


def _early_or_late(ticks: float) -> str:
    """Return ticks of lateness in words, with their sign."""
    return f"{ticks:+.1f} ticks, {'late' if ticks > 0 else 'early'}" if ticks else "on time"


_LEVELS: Final = 64  # of each of two axes; a level is a 32nd, which every float holds
_NEUTRAL_NUMBER: Final = _LEVELS // 2 * (_LEVELS + 1)  # of an input that presses nothing: never sent
_NUMBERS: Final = _LEVELS * _LEVELS - 1  # after so many, 34 s, they come again
_SILENCE: Final = 30.0  # s without a packet after which the server is given up
_MOST_LATENCY: Final = 60  # ticks; what acts later is not told from what never acts
_REGULAR: Final = 1.3  # intervals whose 90th percentile is so many times the 10th come from a frame rate
_MISSED: Final = 0.1  # share of frames without a packet from which on a frame rate is suspected


@dataclass(frozen=True)
class Exchange:
    """A packet of play and what it was answered with."""

    frame: int  # its number
    received: float  # when it was taken in, s on any clock
    shown: int | None  # number of the input that it shows as applied; None where that is none of ours
    sent: int | None = None  # number of the input that answered it; None where a newer packet was there
    answered: float = np.nan  # when, s on the same clock


class TimingReport(Struct, frozen=True):
    """The measured timing of a session; also read from packs of others."""

    packets: Count
    input_latency_ticks: Count | None  # by which most inputs act late; None where it cannot be told
    also_fits: Annotated[list[Count], Meta(max_length=100)]  # which packets do not tell apart
    latencies: Annotated[dict[Name, Count], Meta(max_length=200)]  # of inputs, by ticks
    lost_ticks: Count  # frames that no packet showed, beyond those that a frame rate leaves out
    tick_step: Count  # ticks from most packets to the next
    reply_ms: Annotated[dict[Name, Amount | None], Meta(max_length=10)]  # p50 and p99 from packet to answer
    interval_ms: Annotated[dict[Name, Amount | None], Meta(max_length=10)]  # p10, p50, p90 and p99
    frame_rate: Amount | None  # frames a second that the game seems to render, where that is not 120 or more

    @property
    def action_delay(self) -> tuple[int, int] | None:
        """Range of action delays to train with: no decision acts sooner than inputs do, or than a tick."""
        if self.input_latency_ticks is None:
            return None
        told = [int(ticks) for ticks, count in self.latencies.items() for _ in range(count)]
        told = sorted(told) or [self.input_latency_ticks]
        latest = told[int(0.99 * (len(told) - 1))]
        return max(1, self.input_latency_ticks), max(1, self.input_latency_ticks, latest)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs, with the settings that follow from it."""
        delay = self.action_delay
        found: dict[str, Any] = msgspec.to_builtins(self)
        found["settings"] = {
            "input_latency": self.input_latency_ticks,
            "action_delay": None if delay is None else list(delay),
        }
        return found


def numbered(number: int) -> flat.ControllerState:
    """Return an input that carries a number, 0 or more, in yaw and roll; they come again after 4,095."""
    code = number % _NUMBERS
    code += code >= _NEUTRAL_NUMBER
    yaw, roll = divmod(code, _LEVELS)
    return press(yaw=yaw / (_LEVELS / 2) - 1, roll=roll / (_LEVELS / 2) - 1)


def number_of(controls: flat.ControllerState) -> int | None:
    """Return the number, below 4,095, that an input carries; None where it is none of `numbered`'s."""
    levels = [(value + 1) * (_LEVELS / 2) for value in (controls.yaw, controls.roll)]
    whole = [round(level) for level in levels]
    if any(abs(a - b) > 1e-3 for a, b in zip(levels, whole, strict=True)) or not all(
        0 <= one < _LEVELS for one in whole
    ):
        return None
    code = whole[0] * _LEVELS + whole[1]
    return None if code == _NEUTRAL_NUMBER else code - (code > _NEUTRAL_NUMBER)


def judge_session(session: Sequence[Sequence[Exchange]]) -> TimingReport:
    """Judge the exchanges of a session: stretches of play of two packets or more, each without a break."""
    packets = sum(map(len, session))
    steps = Counter(b.frame - a.frame for part in session for a, b in pairwise(part))
    if not steps:
        raise ValueError(f"{packets} packets in play, expected two and more in a row")
    tick_step = max(1, steps.most_common(1)[0][0])
    ranges = [one for part in session for one in _ranges(part)]
    exact = Counter(low for low, high in ranges if low == high)
    likely, _ = _fit(ranges)
    intervals = [
        1e3 * (b.received - a.received) for part in session for a, b in pairwise(part) if b.frame > a.frame
    ]
    replies = [
        1e3 * (one.answered - one.received) for part in session for one in part if one.sent is not None
    ]
    missed = sum((step - tick_step) * count for step, count in steps.items() if step > tick_step)
    span = sum(step * count for step, count in steps.items() if step > 0)
    rate = None
    if tick_step > 1:
        rate = TICKS_PER_SECOND / tick_step
    elif missed > _MISSED * span and np.percentile(intervals, 90) < _REGULAR * np.percentile(intervals, 10):
        rate, missed = 1e3 / float(np.median(intervals)), 0
    return TimingReport(
        packets=packets,
        input_latency_ticks=likely[0] if likely else None,
        also_fits=likely[1:],
        latencies={str(ticks): count for ticks, count in sorted(exact.items())},
        lost_ticks=missed,
        tick_step=tick_step,
        reply_ms=_percentiles(replies, 50, 99),
        interval_ms=_percentiles(intervals, 10, 50, 90, 99),
        frame_rate=rate,
    )


def _percentiles(numbers: Sequence[float], *percents: int) -> dict[str, float | None]:
    """Return percentiles of numbers by names such as p50; None where there are no numbers."""
    found = np.percentile(numbers, percents).tolist() if numbers else [None] * len(percents)
    return {f"p{percent}": value for percent, value in zip(percents, found, strict=True)}


def _ranges(part: Sequence[Exchange]) -> list[tuple[int, int]]:
    """Return the least and the most latency of every input whose first tick lies between two packets."""
    frames: dict[int, int] = {}  # of the packet that an input answered
    found = []
    before: Exchange | None = None
    for one in part:
        if before is not None and one.shown is not None and one.shown != before.shown and one.shown in frames:
            answered = frames[one.shown]
            low, high = max(0, before.frame - answered), one.frame - 1 - answered
            if 0 <= low <= high <= _MOST_LATENCY:
                found.append((low, high))
        if one.sent is not None:
            frames[one.sent % _NUMBERS] = one.frame
        before = one
    return found


def measure_timing(
    server: tuple[str, int], match: flat.MatchConfiguration, patience: float, seconds: float
) -> TimingReport:
    """Play with numbered inputs for seconds of game time on a server whose match has begun, then stop it.

    The match's cars are played by this process. `patience` is for each step of the handshake, s. NoServer
    says that the server did not accept the agents, or sends no packets.
    """
    seats = AgentConnections(server, agents_of(match), patience)
    try:
        return judge_session(_exchanges(seats, seconds))
    finally:
        seats.stop_match()
        seats.close()


def _exchanges(seats: AgentConnections, seconds: float) -> list[list[Exchange]]:
    """Answer packets until a car has been in play for so long; return segments of play."""
    session: list[list[Exchange]] = [[]]
    number, played, before = 0, 0, 0
    seen = time.perf_counter()  # our cars, last
    own: list[int] = []
    while played < seconds * TICKS_PER_SECOND:
        packets = seats.packets(_SILENCE)
        received = time.perf_counter()
        if not packets:
            raise NoServer(f"no packet for {_SILENCE:g} s")
        for packet in packets:
            slots = {player.player_id: slot for slot, player in enumerate(packet.players)}
            if not set(seats.ids) <= set(slots):  # the cars have yet to come, or one has left
                if time.perf_counter() - seen > _SILENCE:
                    raise NoServer(f"no packet has the cars {seats.ids} for {_SILENCE:g} s")
                if session[-1]:
                    session.append([])
                continue
            seen = received
            own = [slots[one] for one in seats.ids]
            frame = packet.match_info.frame_num
            if int(packet.match_info.match_phase) not in PLAYING_PHASES:
                if session[-1]:
                    session.append([])
                continue
            played += max(0, frame - before) if session[-1] else 0
            before = frame
            session[-1].append(Exchange(frame, received, number_of(packet.players[own[0]].last_input)))
        if not own:
            continue
        inputs = [numbered(number), *(NEUTRAL for _ in own[1:])]
        seats.answer([flat.PlayerInput(slot, one) for slot, one in zip(own, inputs, strict=True)])
        if session[-1] and session[-1][-1].frame == frame:
            newest = session[-1][-1]
            session[-1][-1] = Exchange(frame, received, newest.shown, number, time.perf_counter())
        number += 1
    return session
