"""Play one match in a simulator tick by tick, with predictions of its ball, without a network."""

import math
import random
from collections import deque
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from rlbot import flat

from rlgym_bridge.game import BLUE, ORANGE, TICKS_PER_SECOND, Phase
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.game.packer import NEUTRAL, Packer, framed
from rlgym_bridge.server.game.referee import Course, Referee, Scoreboard
from rlgym_bridge.server.game.roster import AgentSeat
from rlgym_bridge.server.game.rules import Physics, name_of
from rlgym_bridge.server.game.simulation import OnKickoff, Simulation
from rlgym_bridge.server.game.state_setting import is_usable, set_bodies
from rlgym_bridge.state import MatchState

SLICES: Final = 720
"""Slices of a prediction, a tick apart, the first one a tick ahead of the packet [RLBot core]."""

_WIDTH: Final = 13  # float32: time, place, rotation, velocity, spin [flatbuffers, `PredictionSlice`]
_BALL: Final = (1, 2, 3, 7, 8, 9, 10, 11, 12)  # columns of what a ball's motion depends on
_ROUNDING: Final = 0.005  # uu, uu/s, rad/s: ten times the last bit of 6,000 in float32
_SPARE: Final = 120  # ticks of a forecast beyond the slices
_TIMES: Final = np.arange(1, SLICES + 1)


class BallPrediction:
    """The prediction of a match's ball, which is forecast anew where it is touched or the forecast ends.

    Slices are ticks of the ball alone, with the mutators and the mode of the match: they equal the ball of
    the match until a car touches it, but for the last bit of states that are read and set again. They go on
    through goals, where a ball bounces in the net, and have rotation 0 [RLBot core, BallPredictor.cs].
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._slices = np.zeros((SLICES + _SPARE, _WIDTH), np.float32)
        self._first = self._frame = 0
        self._head = _find_head()
        self.forget()
        self._compute()  # the first steps of an arena take 30 ms in RocketSim 2.2.1

    def forget(self) -> None:
        """Forecast the ball anew for the next message: call it where gravity was changed."""
        self._shown: tuple[float, ...] = ()

    def message(self, frame: int) -> bytes:
        """Return the framed `flat.BallPrediction` that goes before the packet of a frame.

        The first of its `SLICES` slices is a tick later than the packet.
        """
        ball = self._simulation.ball
        shown = ball[:3] + ball[12:]  # without its rotation
        if shown != self._shown:  # else it stands still, as in a replay
            self._first += frame - self._frame
            if not self._is_foreseen(shown, frame - self._frame):
                self._compute()
        self._shown, self._frame = shown, frame
        window = self._slices[self._first : self._first + SLICES]
        window[:, 0] = (_TIMES + frame) / TICKS_PER_SECOND
        return self._head + window.tobytes()

    def _is_foreseen(self, shown: tuple[float, ...], elapsed: int) -> bool:
        """Tell whether the ball is where the forecast has it, whose first slice shown is now `_first`."""
        if not self._shown or elapsed <= 0 or self._first > _SPARE or self._simulation.events.touches:
            return False
        return bool(np.abs(self._slices[self._first - 1, _BALL] - shown).max() < _ROUNDING)

    def _compute(self) -> None:
        self._first = 0
        self._slices[:, _BALL] = self._simulation.simulator.forecast_ball(0, SLICES + _SPARE)


def _find_head() -> bytes:
    """Return the bytes before the slices of a framed message; the slices lie at its end, 13 numbers each."""
    zero = flat.Vector3(0.0, 0.0, 0.0)
    empty = flat.PredictionSlice(0.0, flat.Physics(zero, flat.Rotator(0.0, 0.0, 0.0), zero, zero))
    return framed(flat.BallPrediction([empty] * SLICES))[: -SLICES * _WIDTH * 4]


_log = client_log(__name__)

_IDLE_PHASES = frozenset({Phase.REPLAY, Phase.PAUSED, Phase.ENDED})  # no physics, the picture stands still
_MOST_STATES = 8  # set in a tick: one takes 0.3 ms in 4v4, in RocketSim 2.2.1 0.8 ms
_KICKOFF_TICKS = 2 * TICKS_PER_SECOND  # [flatbuffers, `MatchPhase.Kickoff`]
_SETTLE_TICKS = TICKS_PER_SECOND  # in which cars come to rest where there is no countdown
_SLOWEST, _FASTEST = 0.01, 100.0  # of game speeds that are set


@dataclass(frozen=True)
class Moment:
    """A tick of a match, to which it can be put back; see `Match.restore`."""

    state: np.ndarray  # `(size,)` float32, the simulator's `MatchState.buffer`
    referee: dict[str, Any]  # values of the referee's attributes
    scores: dict[str, Any] | None = None  # of `Scoreboard.moment`; None leaves the counts
    frame: int = 0  # number of its frame


class Match:
    """A match, from control inputs to packets.

    The order of a tick: `packet` shows frame N, `hold` takes inputs, `advance` simulates frame N + 1 with
    them and then sets the states given to `set_state`.
    """

    def __init__(
        self,
        seats: list[AgentSeat],
        course: Course | None = None,
        physics: Physics | None = None,
        seed: int = 0,
        on_kickoff: OnKickoff | None = None,
        dialect: ProtocolVariant | None = None,
    ) -> None:
        """Place the cars for the first countdown: of five minutes of soccar where nothing else is given."""
        dialect = (dialect or ProtocolVariant()).complete()
        self.teams = teams = [seat.team for seat in seats]
        self.tick = 0  # since the first packet, in any phase
        self.playing_ticks = 0  # from GO to a goal or the end
        self.frame = 0  # that `packet` shows: `tick`, unless the dialect lets it stand still
        self._repeats = dialect["idle_frames"] == "repeated"
        self.referee = Referee(course or Course())
        if dialect["kickoff_ends"] == "after_two_seconds":
            self.referee.kickoff_ticks = _KICKOFF_TICKS
        self.scores = Scoreboard(teams)
        self.simulation = Simulation(teams, [seat.hitbox for seat in seats], physics or Physics(), seed)
        self.simulation.on_kickoff = on_kickoff
        self._packer = Packer(self.simulation, self.referee, self.scores, seats, dialect)
        self._inputs = [NEUTRAL] * len(seats)
        self._given = list(self._inputs)  # as they came, to see when the same one comes again
        self._desired: deque[flat.DesiredGameState] = deque()  # to be set after the next tick
        self._own = self.simulation.physics  # what a set gravity or speed of 0 brings back
        self._warned_of_speed = self._warned_of_many = False
        self.referee.lot = random.Random(f"lot {seed}").choice((BLUE, ORANGE))
        self._prediction: BallPrediction | None = None  # where nobody wants it, it costs nothing
        self.simulation.line_up()
        if self.referee.phase == Phase.KICKOFF:
            self._go_at_once()

    @property
    def game_speed(self) -> float:
        """Return the seconds of the game in a second of real time."""
        return self.simulation.physics.game_speed

    @property
    def clock(self) -> float:
        """Return the seconds on the in-game clock."""
        return self.referee.clock / TICKS_PER_SECOND

    def packet(self) -> flat.GamePacket:
        """Build the packet of the current frame; call it once a frame."""
        return self._packer.packet(self.frame, self._inputs)

    def prediction(self) -> bytes:
        """Return the ball's prediction for the current frame, framed: see `BallPrediction`."""
        if self._prediction is None:
            self._prediction = BallPrediction(self.simulation)
        return self._prediction.message(self.frame)

    def hold(self, car: int, controls: flat.ControllerState) -> bool:
        """Hold an input, clamped to -1..1, from the next tick on; `use_item` is ignored.

        False where a value is not finite; the last input is kept then.
        """
        if controls is self._given[car]:
            return True
        axes = (controls.throttle, controls.steer, controls.pitch, controls.yaw, controls.roll)
        if not math.isfinite(sum(axes)):
            return False
        if min(axes) < -1.0 or max(axes) > 1.0:
            throttle, steer, pitch, yaw, roll = (min(1.0, max(-1.0, value)) for value in axes)
            axes = (throttle, steer, pitch, yaw, roll)
        self._given[car] = controls
        buttons = (controls.jump, controls.boost, controls.handbrake)
        self._inputs[car] = flat.ControllerState(*axes, *buttons, False)
        self.simulation.hold(car, (*axes, *buttons))
        return True

    def set_hitbox(self, car: int, hitbox: int) -> None:
        """Give a car another hitbox (`game.HITBOXES`) from the next packet on."""
        self.simulation.set_hitbox(car, hitbox)
        self._packer.players[car].set_hitbox(hitbox)

    def release(self, car: int) -> None:
        """Hold neutral controls for a car whose client has left."""
        self.hold(car, NEUTRAL)

    def set_state(self, desired: flat.DesiredGameState) -> bool:
        """Set a state that a client desires after the next tick; False where a value is beyond 1e6 or NaN.

        The next packet shows exactly this state, in any phase, and the kickoff's GO keeps it. The first
        ball, the cars (see `edit_car`), gravity and game speed (0.01 to 100) can be set; 0 of these two means
        the match's own, and larger numbers than any match has are cut. A demolished car stays as it is: in
        the real game setting its state fails [RLBot pull request 394]. Of more than 8 states in a tick, the
        latest 8 are set.
        """
        if not is_usable(desired):
            return False
        if len(self._desired) >= _MOST_STATES:
            self._desired.popleft()
            if not self._warned_of_many:
                self._warned_of_many = True
                _log.warning("more than %d states are set in a tick: the latest ones count", _MOST_STATES)
        self._desired.append(desired)
        return True

    def moment(self) -> Moment:
        """Return the present tick, as `restore` takes it."""
        referee = vars(self.referee) | {"score": list(self.referee.score)}
        return Moment(self.simulation.state.buffer[0].copy(), referee, self.scores.moment(), self.frame)

    def restore(self, moment: Moment) -> None:
        """Go on where this match, or one of the same cars and course, was; frame numbers go on.

        The simulator forgets what no state holds.
        """
        layout = self.simulation.state.layout
        state = MatchState(layout.blue, layout.orange, buffer=moment.state[None].copy())
        self.simulation.put(state)
        vars(self.referee).update(moment.referee | {"score": list(moment.referee["score"])})
        if moment.scores is not None:
            self.scores.restore(moment.scores, self.frame - moment.frame)
        self._packer.restore()
        self._forget_prediction()

    def set_now(self, desired: flat.DesiredGameState) -> bool:
        """Set a state at once, while the match stands still; see `set_state`."""
        if not is_usable(desired):
            return False
        self._set_desired(desired)
        self._forget_prediction()
        return True

    def kick_off(self, anew: bool = False) -> None:
        """Go to the countdown of the next kickoff at once; `anew` begins the whole match again."""
        if anew:
            lot, ticks = self.referee.lot, self.referee.kickoff_ticks
            vars(self.referee).update(
                deepcopy(vars(Referee(self.referee.course, kickoff_ticks=ticks, lot=lot)))
            )
        else:
            self.referee.kick_off_again()
        self._phase_changed(self.referee.phase)
        self._forget_prediction()

    def _forget_prediction(self) -> None:
        if self._prediction is not None:
            self._prediction.forget()

    def take_over(self, earlier: "Match", kept: Mapping[int, int]) -> None:
        """Go on where another match of equal rules is; `kept` has cars here, with the same cars there."""
        self.tick, self.playing_ticks, self.frame = earlier.tick, earlier.playing_ticks, earlier.frame
        vars(self.referee).update(vars(earlier.referee))
        self._own = earlier._own
        self.scores.take_over(earlier.scores, kept)
        self.simulation.take_over(earlier.simulation, kept)
        self._packer.take_over(earlier._packer, kept)

    def _set_desired(self, desired: flat.DesiredGameState) -> None:
        if set_bodies(self.simulation, desired):
            self.referee.ball_set()
        if desired.match_info is not None:
            self._set_world(desired.match_info)

    def _set_world(self, info: flat.DesiredMatchInfo) -> None:
        simulation = self.simulation
        if info.world_gravity_z is not None:
            simulation.set_gravity(info.world_gravity_z or self._own.gravity_z)
            self._forget_prediction()
        if info.game_speed is None:
            return
        speed = info.game_speed or self._own.game_speed
        if _SLOWEST <= speed <= _FASTEST:
            simulation.physics = replace(simulation.physics, game_speed=speed)
        elif not self._warned_of_speed:
            self._warned_of_speed = True
            _log.warning("game_speed is %g, expected %g to %g: ignored", speed, _SLOWEST, _FASTEST)

    def advance(self) -> None:
        """Advance by one tick."""
        before = self.referee.phase
        self.tick += 1
        stands_still = self._repeats and before in _IDLE_PHASES
        if not stands_still:  # else the packet is the same one again
            self.frame += 1
            self.scores.begin_tick()
        if before in (Phase.ACTIVE, Phase.KICKOFF):
            self._play()
        else:
            if before == Phase.GOAL_SCORED:
                self.simulation.step()
                self._note_events(counted=False)
                self._note_assists()
            elif before == Phase.COUNTDOWN:
                self.simulation.settle()
            self.referee.advance(touched=False, goal_for=None, on_floor=False)
        if self.referee.course.max_time is not None:
            self._look_at_the_time(self.referee.course.max_time)
        if self.referee.phase != before:
            if stands_still and self.referee.phase not in _IDLE_PHASES:
                self.frame += 1  # the packet differs from the last one, so it has a new number
            self._phase_changed(self.referee.phase)
        while self._desired:
            self._set_desired(self._desired.popleft())

    def _play(self) -> None:
        self.playing_ticks += 1
        simulation = self.simulation
        simulation.step()
        events = simulation.events
        self._note_events(counted=True)
        if events.goal_for is not None:
            self.scores.goal(events.goal_for, self.frame, self.referee.overtime)
        self._note_assists()
        floor = self.referee.waits_for_floor and simulation.ball_on_floor()
        self.referee.advance(bool(events.touches), events.goal_for, floor)

    def _look_at_the_time(self, most: float) -> None:
        """End a match of which the time is over [s]: the score decides, then the shots."""
        if self.referee.phase == Phase.ENDED or self.tick < most * TICKS_PER_SECOND:
            return
        blue, orange = self.scores.shots_of(BLUE), self.scores.shots_of(ORANGE)
        if blue != orange:
            self.referee.tie_winner = BLUE if blue > orange else ORANGE
        self.referee.end("max time")

    def _note_events(self, counted: bool) -> None:
        """Count what happened in a tick; after a goal touches are not `counted` any more."""
        events = self.simulation.events
        if counted:
            for car, contact in zip(events.touches, events.contacts, strict=True):
                self.scores.touch(car, self.frame)
                self._packer.players[car].touched(contact, self.frame)
            for car in events.shots:
                self.scores.credit(car, "Shot")
            for car in events.saves:
                self.scores.credit(car, "Save")
        for car in events.demolitions:
            self.scores.credit(car, "Demolish")
        for car in events.bumps:
            self.scores.bumps[car] += 1
        if events.pads:
            self._packer.pads_taken(events.pads)

    def _note_assists(self) -> None:
        for car in self.simulation.events.assists:  # they come with the goal, or a tick later
            self.scores.credit(car, "Assist")

    def _phase_changed(self, phase: int) -> None:
        instant = self.referee.course.instant and phase == Phase.KICKOFF
        if phase == Phase.ENDED:
            self.scores.end({"blue": BLUE, "orange": ORANGE}.get(self.referee.winner))
        if phase == Phase.COUNTDOWN or instant:
            self.simulation.line_up()
            self.scores.kickoff()
            self._packer.kickoff()
        if instant:
            self._go_at_once()
        elif phase == Phase.KICKOFF:
            self.simulation.go([controls.jump for controls in self._inputs])

    def _go_at_once(self) -> None:
        for _ in range(_SETTLE_TICKS):
            self.simulation.settle()
        self.simulation.go([controls.jump for controls in self._inputs])


def kept_cars(
    match: Match, configuration: flat.MatchConfiguration, following: flat.MatchConfiguration
) -> Mapping[int, int] | None:
    """Return cars of the following match, with the same cars of the present one; None where that ends."""
    behaviour = following.existing_match_behavior
    if behaviour == flat.ExistingMatchBehavior.Restart:
        return None
    if match.referee.phase == Phase.ENDED:
        _log.warning("no match is played that could go on (%s): another one begins", name_of(behaviour))
        return None
    before, after = (
        [_identity(player) for player in one.player_configurations] for one in (configuration, following)
    )
    if behaviour == flat.ExistingMatchBehavior.RestartIfDifferent:
        same = before == after and _rules(configuration) == _rules(following)
        return {index: index for index in range(len(after))} if same else None
    pairs = enumerate(zip(before, after, strict=False))
    return {index: index for index, (old, new) in pairs if old == new}


def _identity(player: flat.PlayerConfiguration) -> tuple[object, ...]:
    """Return what makes a car the same in two matches [RLBot core]."""
    variety = player.variety
    which = getattr(variety, "agent_id", "").strip() or name_of(getattr(variety, "bot_skill", ""))
    return type(variety).__name__, which, player.team


def _rules(configuration: flat.MatchConfiguration) -> tuple[object, ...]:
    """Return what, besides its cars, makes a match another one [RLBot core]."""
    mutators = configuration.mutators or flat.MutatorSettings()
    return (
        configuration.game_mode, configuration.game_map_upk, configuration.instant_start,
        configuration.freeplay, *(getattr(mutators, name) for name in mutators.__match_args__),
    )  # fmt: skip
