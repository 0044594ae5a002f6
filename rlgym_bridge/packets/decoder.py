"""Decode RLBot packets into a `MatchState`, and encode control vectors as player inputs.

What the packet lacks is counted (`packets/cars.py`) or, where RocketSim is installed, read from a simulation
that follows the match (`sim/state_estimator.py`). `car_known` flags which of these values are exact. Every
packet must be decoded, in order; repeated, lost and restarted frame numbers are expected.
"""

import logging
import struct
from collections.abc import Sequence
from contextlib import suppress
from math import hypot
from operator import attrgetter

import numpy as np
from rlbot import flat

from rlgym_bridge import game
from rlgym_bridge.clock import GAP_TICKS
from rlgym_bridge.game import (
    BOOST_CONSUMPTION,
    DODGE_DEADZONE,
    GOAL_THRESHOLD_Y,
    GRAVITY,
    PLAYING_PHASES,
    TICK_SECONDS,
    Phase,
)
from rlgym_bridge.packets.cars import CarCounters, matrix
from rlgym_bridge.protocol_variant import ProtocolVariant, VariantDetector
from rlgym_bridge.sim.state_estimator import StateEstimator
from rlgym_bridge.state import MATCH_FORMAT, MatchState, layout_of

_IS_ACTIVE = attrgetter("is_active")
_NOT_YET = 1e-4  # s; the timer of an inactive pad never reaches 0, however late it comes back
_MATCH_DISTANCE = 100.0  # uu; pads lie at least 700 uu apart, maps differ by a few


class PadTimers:
    """Seconds until each of the 34 pads is active again, RLGym's order, 0 for active pads.

    The schema says that a pad's timer counts the seconds since pickup; some servers send the seconds left.
    The first pickup shows which, or two packets of an inactive pad; until then the schema is believed.
    """

    def __init__(self, field: flat.FieldInfo, detector: VariantDetector) -> None:
        self._detector = detector
        self._away: tuple[int, float] | None = None  # an inactive pad of the last packet, and its timer
        self._order, self._seconds = _match_pads(field), game.PAD_SECONDS
        self._active = [True] * game.PAD_COUNT
        self._fresh = True
        self.timers = [0.0] * game.PAD_COUNT

    def forget(self) -> None:
        """Treat the next packet as the first."""
        self._fresh = True

    def update(self, states: Sequence[flat.BoostPadState], ticks: int) -> list[float]:
        """Update the timers from one packet's pads, some ticks after the last one, 0 for a repeated frame."""
        active = list(map(_IS_ACTIVE, states))
        if self._detector.elapsed is None:
            self._detect(states, active, ticks)
        if active == self._active and not self._fresh:
            if ticks and not all(active):
                step = ticks * TICK_SECONDS
                self.timers = [t and max(t - step, _NOT_YET) for t in self.timers]
                if _NOT_YET in self.timers:
                    self._find_taken_again(states)
            return self.timers
        self._change(states, active, ticks)
        return self.timers

    def _detect(self, states: Sequence[flat.BoostPadState], active: list[bool], ticks: int) -> None:
        """Detect which way the timers run, from a pad that is inactive in two packets."""
        away, self._away = self._away, None
        if all(active):
            return
        index = active.index(False)
        self._away = index, states[index].timer
        if away is not None and away[0] == index and 0 < ticks <= 12:
            change = states[index].timer - away[1]
            if abs(abs(change) - ticks * TICK_SECONDS) < 0.5 * TICK_SECONDS:
                self._detector.observe("elapsed", change > 0)
                self._fresh = True  # read all timers again, now that their meaning is known

    def _left(self, timer: float, full: float) -> float:
        """Return the seconds until a pad is active again; the full time where its timer is NaN."""
        left = timer if self._detector.elapsed is False else full - timer
        return max(_NOT_YET, min(full, left))

    def _find_taken_again(self, states: Sequence[flat.BoostPadState]) -> None:
        """Restart pads that came back and were taken in the same tick, so that no packet showed them."""
        for index, state in enumerate(states[: len(self._order)]):
            pad = self._order[index]
            if pad >= 0 and self.timers[pad] == _NOT_YET:
                full = self._seconds[pad]
                left = self._left(state.timer, full)
                if left > 0.5 * full:
                    self.timers[pad] = left

    def _change(self, states: Sequence[flat.BoostPadState], active: list[bool], ticks: int) -> None:
        timers = [0.0] * game.PAD_COUNT
        fresh = self._fresh or len(active) != len(self._active)  # pads were added or removed
        for index, state in enumerate(states[: len(self._order)]):
            pad = self._order[index]
            if state.is_active or pad < 0:
                continue
            full = self._seconds[pad]
            if fresh:
                timers[pad] = self._left(state.timer, full)
            elif self._active[index]:
                self._detector.observe("elapsed", state.timer < 0.5 * full)
                timers[pad] = self._left(state.timer, full)
            else:
                timers[pad] = max(self.timers[pad] - ticks * TICK_SECONDS, _NOT_YET)
        self.timers, self._active, self._fresh = timers, active, False


def _match_pads(field: flat.FieldInfo) -> list[int]:
    """Return each pad's index in `game.PAD_POSITIONS`, -1 where it matches none."""
    order: list[int] = []
    for index, pad in enumerate(field.boost_pads):
        x, y = pad.location.x, pad.location.y
        distances = [hypot(x - px, y - py) for px, py in game.PAD_POSITIONS]
        nearest = min(range(game.PAD_COUNT), key=distances.__getitem__)
        free = nearest not in order and distances[nearest] < _MATCH_DISTANCE
        order.append(nearest if free and pad.is_full_boost == (nearest in game.BIG_PADS) else -1)
        if order[-1] < 0:
            _LOG.warning(
                "boost pad %d at (%.0f, %.0f), %s, is not one of standard soccar's 34: ignored",
                index, x, y, "big" if pad.is_full_boost else "small",
            )  # fmt: skip
    missing = game.PAD_COUNT - sum(pad >= 0 for pad in order)
    if missing:
        _LOG.warning(
            "%d of standard soccar's 34 boost pads are not on this map: always shown as active", missing
        )
    return order


ESTIMATES = ("wheels_with_contact", "is_autoflipping", "bump_victim")
"""Those of `state.KNOWN_FIELDS` that counting can only estimate, or cannot tell at all."""

_LOG = logging.getLogger(__name__)
_UNTOUCHED = 1.0  # uu from the centre spot
_HALF = 1 << 31  # packets count frames in 32 bits, the state in 31 and a sign
_MOST_HITBOXES = 64  # lengths remembered; NaN never equals itself and would add up
_HITBOX_TOLERANCE = 0.5  # uu in any dimension; the two nearest boxes differ by 0.91 in length
_PACK = struct.Struct(MATCH_FORMAT).pack_into
_XYZ = attrgetter("x", "y", "z")
_PACKET = attrgetter("players", "boost_pads", "balls", "match_info", "teams")
_INFO = attrgetter("frame_num", "match_phase", "game_time_remaining", "is_overtime", "world_gravity_z")
_SCORE = attrgetter("score")
_PLAYER = attrgetter("team", "player_id")
_BALL_AT_REST = (0.0, 0.0, game.BALL_REST_Z, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0) + (0.0,) * 6


class Decoder:
    """Decodes the packets of one connection into one `MatchState`, updated in place.

    Where `shadow` is None a simulation follows the match if RocketSim is installed; where it is True, an
    ImportError says that it is not. `dialect` is what is known of the server's beforehand; the rest is
    detected from packets. `simulator` names the one that follows; see `StateEstimator`.

    Attributes:
        state: The newest state, one match; a new object whenever the team sizes change.
        packet_indices: Index in the packet of each car of the state.
        players: Team and `player_id` of each player, in packet order; a new list when they change.
        detector: The server's dialect, as far as it is known by now.
        estimates: Names of the fields that are estimates throughout.
        mode: Name of the match's game mode, such as `"Soccar"`.
    """

    def __init__(
        self,
        field: flat.FieldInfo,
        config: flat.MatchConfiguration | None = None,
        shadow: bool | None = None,
        dialect: ProtocolVariant | None = None,
        simulator: str | None = None,
    ) -> None:
        self.detector = VariantDetector(dialect)
        if shadow and not StateEstimator.is_installed():
            raise ImportError("a state estimator needs RocketSim: pip install rocketsim")
        self._has_estimator = StateEstimator.is_installed() if shadow is None else shadow
        self._estimator: StateEstimator | None = None
        self._simulator = simulator
        self.mode = "Soccar" if config is None else str(config.game_mode).removeprefix("GameMode.")
        self._of_rocketsim3 = StateEstimator.choose_simulator(self.mode, simulator) == "rocketsim3"
        self._is_current = False  # the estimator has the cars of `players`
        self._simulates = False  # it can follow `players`
        self._warned_of_refusal = False
        self.estimates = () if self._has_estimator else ESTIMATES
        self.state: MatchState | None = None
        self._ahead: MatchState | None = None  # of `forecast`
        self.packet_indices: list[int] = []
        self.players: list[tuple[int, int]] = []
        self._pads = PadTimers(field, self.detector)
        self._cars: dict[int, CarCounters] = {}
        self._hitboxes: dict[float, int] = {}
        self._frame: int | None = None
        self._phase = -1
        self._clock = self._shown_clock = -1.0  # of `_count_clock`
        self._ball: tuple[float, ...] = _BALL_AT_REST
        mutators, unlimited = getattr(config, "mutators", None), flat.BoostAmountMutator.UnlimitedBoost
        is_free = mutators is not None and mutators.boost_amount == unlimited
        self._consumption = 0.0 if is_free else BOOST_CONSUMPTION  # a multiple of RLGym's
        self._target = memoryview(b"")
        self._car_start = self._car_bytes = 0

    def prepare(self, blue: int, orange: int) -> None:
        """Make the simulation for a line-up before the first packet: an arena takes 40 ms and more."""
        if self._has_estimator and self._estimator is None:
            with suppress(ImportError, FileNotFoundError, RuntimeError, ValueError):  # the first packet tells
                self._estimator = StateEstimator(blue, orange, self.mode, self._simulator)

    def update(self, packet: flat.GamePacket) -> MatchState:
        """Take in one packet, and return `state`, updated; a ValueError says that it has too many cars.

        For a repeated frame number the counts stay, and what the packet carries is copied again.
        """
        try:
            return self._update(packet)
        except Exception:
            self._forget()  # counters may be halfway through a tick
            raise

    def _update(self, packet: flat.GamePacket) -> MatchState:
        players, pads, balls, info, teams = _PACKET(packet)
        frame, match_phase, clock, overtime, gravity = _INFO(info)
        phase = int(match_phase)
        ticks = self._elapsed(frame)
        identities = list(map(_PLAYER, players))
        if identities != self.players or self.state is None:
            self._assign_cars(identities)
        state = self.state
        assert state is not None  # made by _assign_cars
        if balls:
            self._ball = _ball_values(balls[0].physics)
        # Some servers show no ball from a goal on, not even in the goal.
        scored = abs(self._ball[1]) > GOAL_THRESHOLD_Y or (not balls and phase == Phase.GOAL_SCORED)
        if self.detector.waits_for_touch and phase == self._phase + 1 == Phase.ACTIVE:
            phase -= max(map(abs, self._ball[:2])) < _UNTOUCHED
        if self.detector.whole_seconds:
            clock = self._count_clock(clock, ticks, phase == Phase.ACTIVE and not overtime)
        scores = list(map(_SCORE, teams)) or [0, 0]
        target = self._target
        _PACK(
            target, 0, frame if frame < _HALF else frame - 2 * _HALF, phase, clock, overtime,
            scores[0], scores[-1], scored,
            -gravity / GRAVITY, self._consumption, DODGE_DEADZONE, len(balls) > 0,
            *self._ball, *self._pads.update(pads, ticks),
        )  # fmt: skip
        countdown, self._phase = self._phase == Phase.COUNTDOWN, phase
        at_rest = phase == Phase.COUNTDOWN or (countdown and ticks <= 1)
        touched = self._touches() if ticks > 1 else []
        offset = self._car_start
        for index in self.packet_indices:
            player = players[index]
            player_id = identities[index][1]
            counters = self._cars.get(player_id)
            if counters is None:
                counters = self._cars[player_id] = CarCounters(self.detector, self._of_rocketsim3)
            length = player.hitbox.length
            hitbox = self._hitboxes.get(length)
            if hitbox is None:
                hitbox = _hitbox_of(player)
                if len(self._hitboxes) < _MOST_HITBOXES:
                    self._hitboxes[length] = hitbox
            counters.write(target, offset, player, ticks, hitbox, at_rest)
            offset += self._car_bytes
        if self._simulates:
            self._refine(state, phase, ticks, at_rest, touched)
        return state

    def _count_clock(self, shown: float, ticks: int, runs: bool) -> float:
        """Return the seconds that are left, from whole ones rounded up: exact once they have changed."""
        if shown != self._shown_clock:
            self._clock, self._shown_clock = shown, shown
        elif runs:
            self._clock = max(self._clock - ticks * TICK_SECONDS, shown - 1.0)
        return self._clock

    def _refine(self, state: MatchState, phase: int, ticks: int, at_rest: bool, touched: list[int]) -> None:
        if not self._is_current and not self._follow_cars(state):
            return
        assert self._estimator is not None  # made by _follow_cars
        if phase not in PLAYING_PHASES and phase != Phase.GOAL_SCORED:
            self._estimator.forget()
            return
        contacts = self._estimator.refine(state, ticks, at_rest, self.detector.at_origin is True)
        if touched and contacts:
            self._count_lost_touches(state, touched, contacts)

    def _follow_cars(self, state: MatchState) -> bool:
        try:
            if self._estimator is None:
                layout = state.layout
                self._estimator = StateEstimator(layout.blue, layout.orange, self.mode, self._simulator)
        except (ImportError, FileNotFoundError, RuntimeError, ValueError) as error:
            self._simulates = self._has_estimator = False
            self.estimates = ESTIMATES
            _LOG.warning("no simulation follows the match, so %s are estimates: %s", ESTIMATES, error)
            return False
        try:
            self._estimator.follow(state)
        except (RuntimeError, ValueError) as error:  # these cars cannot be followed; others may be
            self._simulates = False
            if not self._warned_of_refusal:
                self._warned_of_refusal = True
                _LOG.warning("no simulation follows these cars, so %s are estimates: %s", ESTIMATES, error)
            return False
        self._is_current = True
        return True

    def _touches(self) -> list[int]:
        cars = (self._cars.get(self.players[index][1]) for index in self.packet_indices)
        return [0 if car is None else car.touches for car in cars]

    def _count_lost_touches(self, state: MatchState, before: list[int], contacts: list[int]) -> None:
        """Add the contacts in lost packets, for cars whose packet shows a touch since then."""
        for car, (index, count) in enumerate(zip(self.packet_indices, contacts, strict=True)):
            counters = self._cars[self.players[index][1]]
            if counters.touches > before[car] and count > 1:
                counters.touches += count - 1
                state.car_ball_touches[0, car] = counters.touches

    def explain_no_forecast(self) -> str | None:
        """Return a sentence that says why `forecast` cannot work in this match; None where it can."""
        if not self._has_estimator:
            return "no state estimator follows the match, expected a player whose shadow is not False"
        return StateEstimator.explain_no_forecast(self.mode, self._simulator)

    def forecast(self, rows: np.ndarray) -> MatchState | None:
        """Return the match some ticks after the newest packet, by `rows` `(1, cars, ticks, 8)` to come.

        It is the same object every time while the team sizes stay. Phase, clock, score, goal and touches are
        those of the packet. None where the simulation does not follow the match.
        """
        state = self.state
        if state is None or self._estimator is None or not self._is_current:
            return None
        ahead = self._ahead
        if ahead is None or ahead.layout is not state.layout:
            ahead = self._ahead = MatchState(state.layout.blue, state.layout.orange)
        np.copyto(ahead.buffer, state.buffer)
        if not self._estimator.forecast(rows, ahead):
            return None
        ahead.goal_scored[0] = state.goal_scored[0]
        ahead.car_ball_touches[0] = state.car_ball_touches[0]
        return ahead

    def has_same_players(self, packet: flat.GamePacket) -> bool:
        """Tell whether a packet has the players of `players`, in that order."""
        return list(map(_PLAYER, packet.players)) == self.players

    def clear_touches(self) -> None:
        """Set the touches of all cars to zero, after a decision has seen them."""
        for counters in self._cars.values():
            counters.clear_touches()

    def _elapsed(self, frame: int) -> int:
        """Return the ticks since the last packet; after a long gap the counts are forgotten."""
        ticks = 1 if self._frame is None else frame - self._frame
        self._frame = frame
        if not 0 <= ticks <= GAP_TICKS:
            self._forget()
            return 1
        return ticks

    def _forget(self) -> None:
        self._pads.forget()
        if self._estimator is not None:
            self._estimator.forget()
        for counters in self._cars.values():
            counters.forget()

    def _assign_cars(self, players: list[tuple[int, int]]) -> None:
        """Give every player its car in the state: blue first, each team in packet order."""
        blue = sum(team == game.BLUE for team, _ in players)
        layout = layout_of(blue, len(players) - blue)
        self.packet_indices = sorted(range(len(players)), key=lambda index: players[index][0] != game.BLUE)
        if self.state is None or self.state.layout is not layout:
            self.state = MatchState(layout.blue, layout.orange)
            self._target = self.state.buffer.data.cast("B")
            self._car_start, self._car_bytes = 4 * layout.car_start, 4 * layout.car_stride
        self._is_current, self._simulates = False, self._has_estimator
        self.players = players
        present = {player_id for _, player_id in players}
        self._cars = {player_id: car for player_id, car in self._cars.items() if player_id in present}


def _ball_values(ball: flat.Physics) -> tuple[float, ...]:
    return (
        *_XYZ(ball.location), *matrix(ball.rotation),
        *_XYZ(ball.velocity), *_XYZ(ball.angular_velocity),
    )  # fmt: skip


def _hitbox_of(player: flat.PlayerInfo) -> int:
    box = player.hitbox
    gaps = [
        max(abs(box.length - h.length), abs(box.width - h.width), abs(box.height - h.height))
        for h in game.HITBOXES
    ]
    best = min(range(len(gaps)), key=gaps.__getitem__)
    if gaps[best] > _HITBOX_TOLERANCE:
        _LOG.warning(
            "%s's hitbox %.2f x %.2f x %.2f uu is not one of the game's six; using %s, %.2f uu off",
            player.name, box.length, box.width, box.height, game.HITBOXES[best].name, gaps[best],
        )  # fmt: skip
    return best


def player_input(index: int, row: Sequence[float]) -> flat.PlayerInput:
    """Return a control vector, eight numbers in -1..1, as the input of a packet's car."""
    throttle, steer, pitch, yaw, roll, jump, boost, handbrake = row
    controls = flat.ControllerState(
        throttle, steer, pitch, yaw, roll, jump > 0, boost > 0, handbrake > 0, False
    )
    return flat.PlayerInput(index, controls)
