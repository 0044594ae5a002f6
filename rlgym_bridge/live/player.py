"""Turn packets into control vectors, with the decoder, clock and components of one connection."""

import inspect
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rlbot import flat

from rlgym_bridge.clock import Clock, Event
from rlgym_bridge.components.episode import Episode
from rlgym_bridge.components.player_spec import MOST_FORECAST, PlayerSpec
from rlgym_bridge.controls import NEUTRAL, ControlsError, checked_rows
from rlgym_bridge.game import TICK_SKIP, Phase
from rlgym_bridge.live.forecaster import Forecaster
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.policy.files import warn_once
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.state import MatchState


class Faults:
    """Counts what went wrong, by kind, and logs each kind at most once a second."""

    def __init__(self, log: logging.Logger) -> None:
        self.counts: dict[str, int] = {}
        self.latest = ""
        self._log = log
        self._logged: dict[str, float] = {}

    def add(self, kind: str, detail: str, error: BaseException | None = None) -> None:
        """Count a fault and log it, with the traceback of `error`, unless its kind was just logged."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.latest = f"{kind}: {detail}"
        now = time.monotonic()
        if now - self._logged.get(kind, -1.0) >= 1.0:
            self._logged[kind] = now
            self._log.warning("%s (%d so far): %s", kind, self.counts[kind], detail, exc_info=error)


_NO_ROWS = NEUTRAL[None][:0]

Override = Callable[[MatchState], Any] | Callable[[MatchState, int], Any]
"""Function that plays instead of the policy, given the state of a packet in play.

It returns control rows `(8,)` or `(ticks, 8)` to send from this packet on, or None to let the policy play. It
is called again when its rows are used up. With two parameters it is called for each car of the agent, with
the car's place in the state; otherwise its rows drive all of them."""


class Overrides:
    """The control vectors of one override for the cars of one agent; its failures count as faults."""

    def __init__(self, override: Override, faults: Faults) -> None:
        self._override: Callable[..., Any] = override
        self._takes_car = _takes_car(override)
        self._faults = faults
        self._rows: dict[int, tuple[int, np.ndarray]] = {}  # by car: tick of the first, rows

    def forget(self) -> None:
        """Drop the rows that are left, so that the next packet asks anew."""
        self._rows.clear()

    def rows(self, state: MatchState, cars: Sequence[int]) -> list[np.ndarray | None]:
        """Return the control vector `(8,)` of each of our cars; None where the policy plays. Never raises."""
        if self._takes_car:
            return [self._row(state, car) for car in cars]
        return [self._row(state, cars[0])] * len(cars)

    def _row(self, state: MatchState, car: int) -> np.ndarray | None:
        frame = int(state.frame[0])
        first, rows = self._rows.get(car, (frame, _NO_ROWS))
        if not 0 <= frame - first < len(rows):
            self._rows.pop(car, None)
            try:
                returned = self._override(state, car) if self._takes_car else self._override(state)
                if returned is None:
                    return None
                first, rows = frame, checked_rows(returned, 1, "override")
            except (Exception, SystemExit) as error:
                self._faults.add("override failed", f"the policy plays on: {error}", error)
                return None
            self._rows[car] = first, rows
        row: np.ndarray = rows[frame - first]  # for ticks, not packets: those of lost packets are over
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


class LivePlayer:
    """Plays one or more cars of one match.

    Several cars are those of a hivemind: all are decided at once, and a car that is missing or gets no valid
    controls does not keep the others from playing. They are known by RLBot's identifiers. The `seed` is that
    of the first episode, and grows by 1 at every reset. A server's `input_latency` [ticks] stands above the
    spec's. `on_decision` is called with frame, cars and episode of every decision, and whether actions were
    chosen: they are not where a goal has ended the episode. The `forecaster` is None where the player or the
    match does not look ahead; where the player is to, `no_forecast` says why it does not.
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
        dialect: ProtocolVariant | None = None,
        input_latency: int | None = None,
        on_decision: Callable[[int, Sequence[int], Episode, bool], None] | None = None,
    ) -> None:
        self.decisions = self.resets = 0  # decisions taken, episodes begun
        self._on_decision = on_decision
        episode = Episode(spec)
        self._input_latency = input_latency
        self.no_forecast: str | None = None
        self.decoder = Decoder(field, config, spec.shadow, dialect)
        self.episode = self._without_wrong_rollouts(episode)
        self.forecaster, self.clock = self._make_clock(spec, len(player_ids))
        self._tick_skip = spec.tick_skip or TICK_SKIP
        self._ids = list(player_ids)
        self._cars: list[int] = []  # places in the state of those of our cars that are there
        self._driven: list[tuple[int, int]] = []  # index in the newest packet, and place in `_ids`, of each
        self._players: list[tuple[int, int]] | None = None  # of the decoder, for which `_cars` holds
        self.faults = faults
        self._overrides = None if override is None else Overrides(override, faults)
        self._frame = -1
        self._asked = -1  # frame of the packet that `inputs` answers
        self._overridden = False
        self._open = False  # whether an episode runs, whose last step has not been seen
        self._neutral: Sequence[np.ndarray] = (NEUTRAL,) * len(player_ids)
        self._rows: Sequence[np.ndarray] = self._neutral
        self._seed = seed

    def foresee(self, packet: flat.GamePacket) -> bool:
        """Predict the answer to the next packet, for `inputs`, where its state does not matter. Never raises.

        Either way, call `see` with the packet.
        """
        if self._overrides is not None or self._players is None or not self._cars:
            return False
        try:
            if not self.decoder.has_same_players(packet):
                return self._foresee_new_cars(packet)
            info = packet.match_info
            rows = self.clock.foresee(info.frame_num, int(info.match_phase))
        except (Exception, SystemExit):
            return False  # `see` fails on it too, and counts it
        if rows is None:
            return False
        self._rows, self._asked = rows, info.frame_num
        return True

    def _foresee_new_cars(self, packet: flat.GamePacket) -> bool:
        """Predict neutral controls after players changed, where the new episode's first rows act later."""
        timing = self.clock.timing
        if timing.action_delay <= timing.input_latency:
            return False
        self._rows, self._asked = self._neutral, packet.match_info.frame_num
        self._driven = self._find_driven(packet)
        return bool(self._driven)

    def see(self, packet: flat.GamePacket) -> None:
        """Play on one packet; every packet is needed, in order. Never raises."""
        try:
            self._see(packet)
        except (Exception, SystemExit) as error:
            self.faults.add("packet failed", f"neutral controls: {error}", error)
            self._answer_neutrally(packet)

    def inputs(self) -> list[tuple[int, np.ndarray]]:
        """Return the answer to the newest packet: indices of our cars in it, and rows, `(8,)` float32."""
        rows = self._rows
        if self.forecaster is not None:
            self.forecaster.note(self._asked, rows)
        return [(index, rows[place]) for index, place in self._driven]

    def take(self, spec: PlayerSpec) -> None:
        """Play another spec from the next episode on; where its factories raise, the spec before plays on."""
        episode = Episode(spec)
        self.close()
        self.episode = self._without_wrong_rollouts(episode)
        report = None if self.forecaster is None else self.forecaster.report
        self.forecaster, self.clock = self._make_clock(spec, len(self._ids))
        if self.forecaster is not None and report is not None:
            self.forecaster.report = report
        self._tick_skip = spec.tick_skip or TICK_SKIP
        self._open = False

    def _without_wrong_rollouts(self, episode: Episode) -> Episode:
        """Return the episode, without a search in a mode that RocketSim 3 does not play."""
        policy, mode = episode.policy, self.decoder.mode
        if mode != "Soccar" and isinstance(policy, NetworkPolicy) and policy.search is not None:
            policy.search, policy.no_search = None, f"it expects Soccar, and the match is {mode}"
            warn_once(f"the bot plays without its search: {policy.no_search}")
        return episode

    @property
    def no_search(self) -> str | None:
        """A sentence that says why a policy that should search does not; else None."""
        policy = self.episode.policy
        return policy.no_search if isinstance(policy, NetworkPolicy) else None

    def _make_clock(self, spec: PlayerSpec, cars: int) -> tuple[Forecaster | None, Clock]:
        latency = self._input_latency
        timing = spec.timing if latency is None else replace(spec.timing, input_latency=latency)
        self.no_forecast = None
        if spec.forecast == "auto" and timing.input_latency > MOST_FORECAST:
            self.no_forecast = (
                f"inputs act {timing.input_latency} ticks late, expected {MOST_FORECAST} at most"
            )
        elif spec.forecast:
            self.no_forecast = self.decoder.explain_no_forecast()
        if not spec.forecast or self.no_forecast is not None:
            return None, Clock(timing, cars)
        forecaster = Forecaster(spec.forecast, timing, cars)
        return forecaster, Clock(forecaster.timing, cars)

    def close(self) -> None:
        """Close what the components have opened. Never raises."""
        try:
            self.episode.close()
        except (Exception, SystemExit) as error:
            self.faults.add("renderer not closed", str(error), error)

    def _see(self, packet: flat.GamePacket) -> None:
        state = self.decoder.update(packet)
        info = packet.match_info
        frame, phase = info.frame_num, int(info.match_phase)
        repeated = frame == self._frame
        self._frame = self._asked = frame
        event = self.clock.see(frame, phase)
        if self.decoder.players is not self._players:
            self._find_cars(packet)
            if event is not Event.IDLE:
                event = self.clock.restart()
        if self.forecaster is not None and not repeated:
            self._look_back(self.forecaster, state, event)
        if not self._cars:
            self._answer_neutrally(packet)  # no car of ours is there
        elif event is Event.IDLE:
            self._rows = self._neutral
            self._forget_overrides()
            self._end_episode(state, phase)
        elif not (repeated and event is Event.PLAY):
            self._play(state, event)

    def _look_back(self, forecaster: Forecaster, state: MatchState, event: Event) -> None:
        """Judge earlier forecasts, and take over the latency as it is measured now."""
        if event in (Event.IDLE, Event.RESET):
            forecaster.forget()
        forecaster.see(self._frame, state, self._cars, [place for _, place in self._driven])
        if forecaster.latency != self.clock.timing.input_latency:
            self.clock.timing = forecaster.timing

    def _play(self, state: MatchState, event: Event) -> None:
        if event is Event.RESET:
            self._forget_overrides()
        overrides = [] if self._overrides is None else self._overrides.rows(state, self._cars)
        overriding = [row for row in overrides if row is not None]
        if len(overriding) == len(self._cars):
            self._rows, self._overridden = self._for_all(overriding, NEUTRAL), True
            return
        if self._overridden:
            self._overridden = False
            event = self.clock.restart()
        if event is not Event.PLAY:
            self._decide(state, event)
        self._rows = self.clock.row()
        if overriding:  # some of our cars: the policy plays on for all, so that it can take over at any time
            driven = [self._rows[place] for _, place in self._driven]
            pairs = zip(overrides, driven, strict=True)
            rows = [row if override is None else override for override, row in pairs]
            self._rows = self._for_all(rows, NEUTRAL)

    def _find_cars(self, packet: flat.GamePacket) -> None:
        self._players = self.decoder.players
        indices = self.decoder.packet_indices
        car_of = {packet.players[index].player_id: car for car, index in enumerate(indices)}
        missing = [identifier for identifier in self._ids if identifier not in car_of]
        if missing:
            self.faults.add("car missing", f"no player with player_id {missing} in the packet")
        self._cars = [car_of[identifier] for identifier in self._ids if identifier in car_of]
        self._driven = self._find_driven(packet)
        self._forget_overrides()
        self._open = False

    def _answer_neutrally(self, packet: flat.GamePacket) -> None:
        self._rows = self._neutral
        self._driven = self._find_driven(packet)
        self._players = None  # find our cars again in the next packet

    def _find_driven(self, packet: flat.GamePacket) -> list[tuple[int, int]]:
        """Return the index in the packet and the place in `_ids` of those of our cars that are there."""
        indices = {player.player_id: index for index, player in enumerate(packet.players)}
        return [(indices[one], place) for place, one in enumerate(self._ids) if one in indices]

    def _for_all(self, rows: Sequence[np.ndarray], missing: np.ndarray) -> list[np.ndarray]:
        """Return rows of our cars that are there as rows of all of them."""
        given: list[np.ndarray] = [missing] * len(self._ids)
        for (_, place), its in zip(self._driven, rows, strict=True):
            given[place] = its
        return given

    def _forget_overrides(self) -> None:
        if self._overrides is not None:
            self._overrides.forget()

    def _decide(self, state: MatchState, event: Event) -> None:
        rows = self._idle_rows(self._tick_skip)
        try:
            ahead, look = state, self.forecaster
            if look is not None:
                places = [place for _, place in self._driven]
                ahead = look.look_ahead(self._frame, state, self._cars, places, self.decoder.forecast)
            if event is Event.RESET or not self._open:
                seed = None if self._seed is None else self._seed + self.resets
                self.resets += 1
                self._open = False  # a failed reset is repeated at the next decision
                self.episode.reset(ahead, self._cars, seed)
                self._open = True
            else:
                self.episode.step(ahead)
                self._judge()
            if state.goal_scored[0]:
                self._open = False  # across RLGym's goal line already: the game's own is half a uu further
                self._report_decision(acted=False)
            else:
                refused: list[ControlsError] = []
                rows = self.episode.decide(ahead, refused)
                for why in refused:
                    self.faults.add("bad controls", f"neutral controls of one car for this decision: {why}")
                self.decisions += 1
                self._report_decision(acted=True)
        except ControlsError as error:
            self.faults.add("bad controls", f"neutral controls for this decision: {error}")
        except (Exception, SystemExit) as error:
            self.faults.add("decision failed", f"neutral controls: {error}", error)
        self.decoder.clear_touches()
        if len(rows) < len(self._ids):
            rows = self._for_all(rows, self._idle_rows(len(rows[0]))[0])
        self.clock.submit(rows)

    def _report_decision(self, acted: bool) -> None:
        if self._on_decision is not None:
            self._on_decision(self._frame, self._cars, self.episode, acted)

    def _judge(self) -> None:
        """Compute conditions and rewards; play does not depend on them, even if they fail."""
        try:
            self.episode.judge()
        except (Exception, SystemExit) as error:
            self.faults.add("judgement failed", f"conditions and rewards are left out: {error}", error)

    def _idle_rows(self, ticks: int) -> list[np.ndarray]:
        return [NEUTRAL[None].repeat(ticks, axis=0)] * len(self._ids)

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
        except (Exception, SystemExit) as error:
            self.faults.add("last step failed", str(error), error)
        self.decoder.clear_touches()
