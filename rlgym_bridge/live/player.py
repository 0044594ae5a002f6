"""Packets in, control rows out: decoder, clock and components of one session, without a socket."""

import inspect
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rlbot import flat

from rlgym_bridge.clock import Clock, Event
from rlgym_bridge.components.episode import Episode
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.controls import NEUTRAL, ControlsError, checked_rows
from rlgym_bridge.dialect import Dialect
from rlgym_bridge.game import Phase
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.state import MatchState

_NO_ROWS = NEUTRAL[None][:0]

Override = Callable[[MatchState], Any] | Callable[[MatchState, int], Any]
"""Given the state of a packet in play: rows `(8,)` or `(ticks, 8)` to send from this packet on, or None to
let the policy play. It is asked again when its rows are used up. One that takes two arguments is asked for
each car of the agent and given the car's row in the state; the rows of the other kind drive all of them."""


class Faults:
    """Counts what went wrong, by kind, and logs each kind at most once a second."""

    def __init__(self, log: logging.Logger) -> None:
        self.counts: dict[str, int] = {}
        self._log = log
        self._logged: dict[str, float] = {}

    def add(self, kind: str, detail: str, error: BaseException | None = None) -> None:
        """Count a fault of one kind and perhaps log it, with the traceback of `error`."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        now = time.monotonic()
        if now - self._logged.get(kind, -1.0) >= 1.0:
            self._logged[kind] = now
            self._log.warning("%s (%d so far): %s", kind, self.counts[kind], detail, exc_info=error)


class LivePlayer:
    """Plays one or more cars of one match.

    Args:
        brain: What to play with.
        field: The match's field info.
        config: The match's configuration.
        player_ids: RLBot's identifiers of the cars to play.
        faults: Where faults are counted.
        override: See `Override`.
        dialect: What is known of the server's dialect.
        seed: Seed of the first episode, counted up at every reset; None leaves it to the policy.
        on_decision: Called with frame, seats and episode of every decision, and whether it acts: it does not
            where a goal has ended the episode.

    Attributes:
        decoder: What turns the packets into states.
        decisions: Decisions taken.
        resets: Episodes begun.
    """

    def __init__(
        self,
        brain: PlayerSpec,
        field: flat.FieldInfo,
        config: flat.MatchConfiguration | None,
        player_ids: Sequence[int],
        faults: Faults,
        override: Override | None = None,
        seed: int | None = None,
        dialect: Dialect | None = None,
        on_decision: Callable[[int, Sequence[int], Episode, bool], None] | None = None,
    ) -> None:
        self.decisions = 0
        self._on_decision = on_decision
        self.resets = 0
        self.episode = Episode(brain)
        self.clock = Clock(brain.timing, len(player_ids))
        self.decoder = Decoder(field, config, brain.shadow, dialect)
        self._tick_skip = brain.tick_skip
        self._ids = list(player_ids)
        self._seats: list[int] = []
        self._indices: list[int] = []  # of our cars in the newest packet
        self._seating: list[tuple[int, int]] | None = None
        self._faults = faults
        self._override: Callable[..., Any] | None = override
        self._override_takes_seat = override is not None and _takes_seat(override)
        self._override_rows: dict[int, tuple[int, np.ndarray]] = {}  # by seat: tick of the first, rows
        self._frame = -1
        self._overridden = False
        self._open = False  # an episode is under way: its last step has not been seen
        self._neutral: Sequence[np.ndarray] = (NEUTRAL,) * len(player_ids)
        self._rows: Sequence[np.ndarray] = self._neutral
        self._seed = seed

    def foresee(self, packet: flat.GamePacket) -> bool:
        """Find the answer to a packet that has yet to be seen, if its state has no say in it. Never raises.

        Returns:
            Whether `inputs` now holds the answer; if not, `see` will know it. `see` is due either way.
        """
        if self._override is not None or self._seating is None or len(self._seats) < len(self._ids):
            return False
        try:
            if not self.decoder.is_seated(packet):
                return self._foresee_seats(packet)
            info = packet.match_info
            rows = self.clock.foresee(info.frame_num, int(info.match_phase))
        except Exception:
            return False  # `see` will meet it too, and says so
        if rows is None:
            return False
        self._rows = rows
        return True

    def _foresee_seats(self, packet: flat.GamePacket) -> bool:
        """Players came, went or changed places: an episode begins, and its first rows act later than now."""
        timing = self.clock.timing
        places = {player.player_id: index for index, player in enumerate(packet.players)}
        if timing.action_delay <= timing.input_latency or not all(one in places for one in self._ids):
            return False
        self._indices = [places[one] for one in self._ids]
        self._rows = self._neutral
        return True

    def see(self, packet: flat.GamePacket) -> None:
        """Take in one packet; every packet, in order. Never raises."""
        try:
            self._see(packet)
        except Exception as error:
            self._faults.add("packet failed", f"neutral controls: {error}", error)
            self._answer_neutrally(packet)

    def inputs(self) -> list[tuple[int, np.ndarray]]:
        """Return the answer to the newest packet: (packet index, row (8,)) of each car of ours."""
        return list(zip(self._indices, self._rows, strict=False))

    def close(self) -> None:
        """Close what the components have opened; never raises."""
        try:
            self.episode.close()
        except Exception as error:
            self._faults.add("renderer not closed", str(error), error)

    def _see(self, packet: flat.GamePacket) -> None:
        state = self.decoder.update(packet)
        info = packet.match_info
        frame, phase = info.frame_num, int(info.match_phase)
        repeated = frame == self._frame
        self._frame = frame
        event = self.clock.see(frame, phase)
        if self.decoder.seating is not self._seating:
            self._take_seats(packet)
            if event is not Event.IDLE:
                event = self.clock.restart()
        if len(self._seats) < len(self._ids):
            self._answer_neutrally(packet)  # a car of ours is missing: the others stand still
        elif event is Event.IDLE:
            self._rows = self._neutral
            self._override_rows.clear()
            self._end_episode(state, phase)
        elif not (repeated and event is Event.PLAY):
            self._play(state, event)

    def _play(self, state: MatchState, event: Event) -> None:
        if event is Event.RESET:
            self._override_rows.clear()
        own = self._ask_override(state)
        driven = [row for row in own if row is not None]
        if len(driven) == len(self._ids):
            self._rows, self._overridden = driven, True
            return
        if self._overridden:
            self._overridden = False
            event = self.clock.restart()
        if event is not Event.PLAY:
            self._decide(state, event)
        self._rows = self.clock.row()
        if driven:  # some of our cars: the policy plays on for all, so that it can take over any time
            self._rows = [row if mine is None else mine for mine, row in zip(own, self._rows, strict=True)]

    def _take_seats(self, packet: flat.GamePacket) -> None:
        """Find our cars by identifier after players came, went or changed places."""
        self._seating = self.decoder.seating
        order = self.decoder.rows
        row_of = {packet.players[index].player_id: row for row, index in enumerate(order)}
        missing = [one for one in self._ids if one not in row_of]
        if missing:
            self._faults.add("car missing", f"no player with identifier {missing} in the packet")
        self._seats = [row_of[one] for one in self._ids if one in row_of]
        self._indices = [order[seat] for seat in self._seats]
        self._override_rows.clear()
        self._open = False

    def _answer_neutrally(self, packet: flat.GamePacket) -> None:
        """Find our cars in a packet that cannot be played, and let go of all controls."""
        self._rows = self._neutral
        self._indices = [
            index for index, player in enumerate(packet.players) if player.player_id in self._ids
        ]
        self._seating = None  # look for our seats anew in the next packet

    def _decide(self, state: MatchState, event: Event) -> None:
        rows = self._idle_rows()
        try:
            if event is Event.RESET or not self._open:
                seed = None if self._seed is None else self._seed + self.resets
                self.resets += 1
                self._open = False  # a reset that fails is tried again at the next decision
                self.episode.reset(state, self._seats, seed)
                self._open = True
            else:
                self.episode.step(state)
                self._judge()
            if state.goal_scored[0]:
                self._open = False  # over the line already: the game's own test is half a uu further
                self._tell(acted=False)
            else:
                rows = self.episode.decide(state)
                self.decisions += 1
                self._tell(acted=True)
        except ControlsError as error:
            self._faults.add("bad controls", f"neutral controls for this decision: {error}")
        except Exception as error:
            self._faults.add("decision failed", f"neutral controls: {error}", error)
        self.decoder.clear_touches()
        self.clock.submit(rows)

    def _tell(self, acted: bool) -> None:
        if self._on_decision is not None:
            self._on_decision(self._frame, self._seats, self.episode, acted)

    def _judge(self) -> None:
        """Ask conditions and rewards; play does not depend on what they say, or whether they can."""
        try:
            self.episode.judge()
        except Exception as error:
            self._faults.add("judgement failed", f"conditions and rewards are left out: {error}", error)

    def _idle_rows(self) -> list[np.ndarray]:
        return [NEUTRAL[None].repeat(self._tick_skip, axis=0) for _ in self._ids]

    def _end_episode(self, state: MatchState, phase: int) -> None:
        """Show the components the goal an episode ended with, once: RLGym's last step."""
        if not self._open or phase == Phase.PAUSED:
            return
        self._open = False
        if phase != Phase.GOAL_SCORED:
            return
        state.goal_scored[0] = 1
        try:
            self.episode.step(state)
            self._judge()
            self._tell(acted=False)
        except Exception as error:
            self._faults.add("last step failed", str(error), error)
        self.decoder.clear_touches()

    def _ask_override(self, state: MatchState) -> list[np.ndarray | None]:
        """Return the user's own row for each car of ours, None where the policy is to play."""
        if self._override is None:
            return []
        if self._override_takes_seat:
            return [self._override_row(state, seat) for seat in self._seats]
        return [self._override_row(state, self._seats[0])] * len(self._ids)

    def _override_row(self, state: MatchState, seat: int) -> np.ndarray | None:
        assert self._override is not None
        frame = int(state.frame[0])
        first, rows = self._override_rows.get(seat, (frame, _NO_ROWS))
        if not 0 <= frame - first < len(rows):
            self._override_rows.pop(seat, None)
            try:
                given = self._override(state, seat) if self._override_takes_seat else self._override(state)
                if given is None:
                    return None
                first, rows = frame, checked_rows(given, 1, "override")
            except Exception as error:
                self._faults.add("override failed", f"the policy plays on: {error}", error)
                return None
            self._override_rows[seat] = first, rows
        row: np.ndarray = rows[frame - first]  # rows are ticks, not packets: those of lost packets are past
        return row


def _takes_seat(override: Callable[..., Any]) -> bool:
    """Tell whether an override wants the row of the car that it is asked for: the state is not enough."""
    try:
        inspect.signature(override).bind(None)
    except TypeError:
        return True
    except ValueError:  # it is not written in Python and does not say
        pass
    return False
