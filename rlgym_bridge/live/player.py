"""Turn packets into control rows, with the decoder, clock and components of one connection."""

import inspect
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
from rlgym_bridge.live.faults import Faults
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.state import MatchState

_NO_ROWS = NEUTRAL[None][:0]

Override = Callable[[MatchState], Any] | Callable[[MatchState, int], Any]
"""Function that plays instead of the policy, given the state of a packet in play.

It returns control rows `(8,)` or `(ticks, 8)` to send from this packet on, or None to let the policy play. It
is called again when its rows are used up. With two parameters it is called for each car of the agent, with
the car's place in the state; otherwise its rows drive all of them."""


class LivePlayer:
    """Plays one or more cars of one match.

    Args:
        spec: The player.
        field: The match's field info.
        config: The match's configuration.
        player_ids: RLBot's identifiers of the cars to play.
        faults: Where faults are counted.
        override: Rows to play instead of the policy's; see `Override`.
        seed: Seed of the first episode, increased by 1 at every reset; None leaves it to the policy.
        dialect: What is known of the server's dialect.
        on_decision: Called with frame, cars and episode of every decision, and whether actions were chosen:
            they are not where a goal has ended the episode.

    Attributes:
        decoder: Decodes the packets into states.
        episode: The components and what they said last.
        clock: Decides when the policy acts.
        decisions: Decisions taken.
        resets: Episodes begun.
    """

    def __init__(
        self,
        spec: PlayerSpec,
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
        self.episode = Episode(spec)
        self.clock = Clock(spec.timing, len(player_ids))
        self.decoder = Decoder(field, config, spec.shadow, dialect)
        self._tick_skip = spec.tick_skip
        self._ids = list(player_ids)
        self._cars: list[int] = []  # places of our cars in the state
        self._indices: list[int] = []  # of our cars in the newest packet
        self._players: list[tuple[int, int]] | None = None  # of the decoder, for which `_cars` holds
        self.faults = faults
        self._override: Callable[..., Any] | None = override
        self._override_takes_car = override is not None and _takes_car(override)
        self._override_rows: dict[int, tuple[int, np.ndarray]] = {}  # by car: tick of the first, rows
        self._frame = -1
        self._overridden = False
        self._open = False  # whether an episode runs, whose last step has not been seen
        self._neutral: Sequence[np.ndarray] = (NEUTRAL,) * len(player_ids)
        self._rows: Sequence[np.ndarray] = self._neutral
        self._seed = seed

    def foresee(self, packet: flat.GamePacket) -> bool:
        """Predict the answer to the next packet where its state does not matter. Never raises.

        Returns:
            Whether `inputs` now returns the answer. Either way, call `see` with the packet.
        """
        if self._override is not None or self._players is None or len(self._cars) < len(self._ids):
            return False
        try:
            if not self.decoder.has_same_players(packet):
                return self._foresee_new_cars(packet)
            info = packet.match_info
            rows = self.clock.foresee(info.frame_num, int(info.match_phase))
        except Exception:
            return False  # `see` fails on it too, and counts it
        if rows is None:
            return False
        self._rows = rows
        return True

    def _foresee_new_cars(self, packet: flat.GamePacket) -> bool:
        """Predict neutral controls after players changed, where the new episode's first rows act later."""
        timing = self.clock.timing
        indices = {player.player_id: index for index, player in enumerate(packet.players)}
        if timing.action_delay <= timing.input_latency or not all(
            identifier in indices for identifier in self._ids
        ):
            return False
        self._indices = [indices[identifier] for identifier in self._ids]
        self._rows = self._neutral
        return True

    def see(self, packet: flat.GamePacket) -> None:
        """Play on one packet; every packet is needed, in order. Never raises."""
        try:
            self._see(packet)
        except Exception as error:
            self.faults.add("packet failed", f"neutral controls: {error}", error)
            self._answer_neutrally(packet)

    def inputs(self) -> list[tuple[int, np.ndarray]]:
        """Return the answer to the newest packet.

        Returns:
            Of each car of ours its index in the packet and its control row, `(8,)` float32.
        """
        return list(zip(self._indices, self._rows, strict=False))

    def close(self) -> None:
        """Close what the components have opened. Never raises."""
        try:
            self.episode.close()
        except Exception as error:
            self.faults.add("renderer not closed", str(error), error)

    def _see(self, packet: flat.GamePacket) -> None:
        state = self.decoder.update(packet)
        info = packet.match_info
        frame, phase = info.frame_num, int(info.match_phase)
        repeated = frame == self._frame
        self._frame = frame
        event = self.clock.see(frame, phase)
        if self.decoder.players is not self._players:
            self._find_cars(packet)
            if event is not Event.IDLE:
                event = self.clock.restart()
        if len(self._cars) < len(self._ids):
            self._answer_neutrally(packet)  # a car of ours is missing: all get neutral controls
        elif event is Event.IDLE:
            self._rows = self._neutral
            self._override_rows.clear()
            self._end_episode(state, phase)
        elif not (repeated and event is Event.PLAY):
            self._play(state, event)

    def _play(self, state: MatchState, event: Event) -> None:
        if event is Event.RESET:
            self._override_rows.clear()
        overrides = self._call_override(state)
        overriding = [row for row in overrides if row is not None]
        if len(overriding) == len(self._ids):
            self._rows, self._overridden = overriding, True
            return
        if self._overridden:
            self._overridden = False
            event = self.clock.restart()
        if event is not Event.PLAY:
            self._decide(state, event)
        self._rows = self.clock.row()
        if (
            overriding
        ):  # for some of our cars: the policy plays on for all, so that it can take over at any time
            pairs = zip(overrides, self._rows, strict=True)
            self._rows = [row if override is None else override for override, row in pairs]

    def _find_cars(self, packet: flat.GamePacket) -> None:
        """Find our cars by `player_id` after players came, left or changed order."""
        self._players = self.decoder.players
        indices = self.decoder.packet_indices
        car_of = {packet.players[index].player_id: car for car, index in enumerate(indices)}
        missing = [identifier for identifier in self._ids if identifier not in car_of]
        if missing:
            self.faults.add("car missing", f"no player with player_id {missing} in the packet")
        self._cars = [car_of[identifier] for identifier in self._ids if identifier in car_of]
        self._indices = [indices[car] for car in self._cars]
        self._override_rows.clear()
        self._open = False

    def _answer_neutrally(self, packet: flat.GamePacket) -> None:
        """Answer a packet that cannot be played on with neutral controls for our cars."""
        self._rows = self._neutral
        self._indices = [
            index for index, player in enumerate(packet.players) if player.player_id in self._ids
        ]
        self._players = None  # find our cars again in the next packet

    def _decide(self, state: MatchState, event: Event) -> None:
        rows = self._idle_rows()
        try:
            if event is Event.RESET or not self._open:
                seed = None if self._seed is None else self._seed + self.resets
                self.resets += 1
                self._open = False  # a failed reset is repeated at the next decision
                self.episode.reset(state, self._cars, seed)
                self._open = True
            else:
                self.episode.step(state)
                self._judge()
            if state.goal_scored[0]:
                self._open = False  # across RLGym's goal line already: the game's own is half a uu further
                self._report_decision(acted=False)
            else:
                rows = self.episode.decide(state)
                self.decisions += 1
                self._report_decision(acted=True)
        except ControlsError as error:
            self.faults.add("bad controls", f"neutral controls for this decision: {error}")
        except Exception as error:
            self.faults.add("decision failed", f"neutral controls: {error}", error)
        self.decoder.clear_touches()
        self.clock.submit(rows)

    def _report_decision(self, acted: bool) -> None:
        if self._on_decision is not None:
            self._on_decision(self._frame, self._cars, self.episode, acted)

    def _judge(self) -> None:
        """Compute conditions and rewards; play does not depend on them, even if they fail."""
        try:
            self.episode.judge()
        except Exception as error:
            self.faults.add("judgement failed", f"conditions and rewards are left out: {error}", error)

    def _idle_rows(self) -> list[np.ndarray]:
        return [NEUTRAL[None].repeat(self._tick_skip, axis=0) for _ in self._ids]

    def _end_episode(self, state: MatchState, phase: int) -> None:
        """Step the components once more where a goal has ended the episode, as RLGym does."""
        if not self._open or phase == Phase.PAUSED:
            return
        self._open = False
        if phase != Phase.GOAL_SCORED:
            return
        state.goal_scored[0] = 1
        try:
            self.episode.step(state)
            self._judge()
            self._report_decision(acted=False)
        except Exception as error:
            self.faults.add("last step failed", str(error), error)
        self.decoder.clear_touches()

    def _call_override(self, state: MatchState) -> list[np.ndarray | None]:
        """Return the override's row for each car of ours, None where the policy plays."""
        if self._override is None:
            return []
        if self._override_takes_car:
            return [self._override_row(state, car) for car in self._cars]
        return [self._override_row(state, self._cars[0])] * len(self._ids)

    def _override_row(self, state: MatchState, car: int) -> np.ndarray | None:
        assert self._override is not None
        frame = int(state.frame[0])
        first, rows = self._override_rows.get(car, (frame, _NO_ROWS))
        if not 0 <= frame - first < len(rows):
            self._override_rows.pop(car, None)
            try:
                returned = self._override(state, car) if self._override_takes_car else self._override(state)
                if returned is None:
                    return None
                first, rows = frame, checked_rows(returned, 1, "override")
            except Exception as error:
                self.faults.add("override failed", f"the policy plays on: {error}", error)
                return None
            self._override_rows[car] = first, rows
        row: np.ndarray = rows[
            frame - first
        ]  # rows are for ticks, not packets: those of lost packets are over
        return row


def _takes_car(override: Callable[..., Any]) -> bool:
    """Tell whether an override takes the car as a second argument: it cannot be called with one."""
    try:
        inspect.signature(override).bind(None)
    except TypeError:
        return True
    except ValueError:  # not written in Python: its parameters are unknown
        pass
    return False
