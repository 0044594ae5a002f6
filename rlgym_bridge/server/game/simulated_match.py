"""Play one match in RocketSim tick by tick, without a network."""

import logging
import math
from collections import deque

import RocketSim as rsim
from rlbot import flat

from rlgym_bridge.dialect import Dialect
from rlgym_bridge.game import TICKS_PER_SECOND, Phase
from rlgym_bridge.server.game.ball_prediction import BallPrediction
from rlgym_bridge.server.game.match_physics import Physics
from rlgym_bridge.server.game.packer import Packer
from rlgym_bridge.server.game.referee import Course, Referee
from rlgym_bridge.server.game.roster import AgentSeat
from rlgym_bridge.server.game.scoreboard import Scoreboard
from rlgym_bridge.server.game.simulation import OnKickoff, Simulation
from rlgym_bridge.server.game.state_setting import edit_ball, edit_car, is_placed, is_usable

_log = logging.getLogger(__name__)

_NEUTRAL_INPUT = flat.ControllerState(0.0, 0.0, 0.0, 0.0, 0.0, False, False, False, False)

_IDLE_PHASES = frozenset({Phase.REPLAY, Phase.PAUSED, Phase.ENDED})  # no physics, the picture stands still
_MOST_STATES = 8  # set in a tick: one takes 0.3 ms in 4v4
_KICKOFF_TICKS = 2 * TICKS_PER_SECOND  # [flatbuffers, `MatchPhase.Kickoff`]


class Match:
    """A match, from control inputs to packets.

    The order of a tick: `packet` shows frame N, `hold` takes inputs, `advance` simulates frame N + 1 with
    them and then sets the states given to `set_state`.

    Attributes:
        tick: Ticks since the first packet, of any phase.
        playing_ticks: Ticks from GO to a goal or the end.
        frame: Number of the frame that `packet` shows. It equals `tick`, unless frame numbers stand still in
            the dialect where no physics runs.
        referee: Phase, clock, score, end.
        scores: The scoreboard.
        simulation: Arena, cars, ball.
    """

    def __init__(
        self,
        seats: list[AgentSeat],
        course: Course | None = None,
        physics: Physics | None = None,
        seed: int = 0,
        on_kickoff: OnKickoff | None = None,
        dialect: Dialect | None = None,
    ) -> None:
        """Place the cars for the first countdown.

        Args:
            seats: The cars.
            course: Limits of time and score; five minutes when None.
            physics: Game mode and mutators; standard soccar when None.
            seed: Decides kickoff and respawn spots.
            on_kickoff: Called with the RocketSim arena and its cars in packet order at every GO,
                before the first Kickoff packet is built.
            dialect: Values where documents of the protocol disagree; the default where it has none.
        """
        dialect = (dialect or Dialect()).complete()
        teams = [seat.team for seat in seats]
        self.tick = 0
        self.playing_ticks = 0
        self.frame = 0
        self._repeats = dialect["idle_frames"] == "repeated"
        self.referee = Referee(course or Course())
        if dialect["kickoff_ends"] == "after_two_seconds":
            self.referee.kickoff_ticks = _KICKOFF_TICKS
        self.scores = Scoreboard(teams)
        self.simulation = Simulation(teams, [seat.hitbox for seat in seats], physics or Physics(), seed)
        self.simulation.on_kickoff = on_kickoff
        self._packer = Packer(self.simulation, self.referee, self.scores, seats, dialect)
        self._inputs = [_NEUTRAL_INPUT] * len(seats)
        self._given = list(self._inputs)  # as they came, to see when the same one comes again
        self._desired: deque[flat.DesiredGameState] = deque()  # to be set after the next tick
        self._default_gravity = self.simulation.physics.gravity_z
        self._warned_of_speed = self._warned_of_many = False
        self._prediction: BallPrediction | None = None  # where nobody wants it, it costs nothing
        self.simulation.line_up()

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
            self._prediction = BallPrediction(self.simulation.physics, self.simulation.arena)
        simulation = self.simulation
        return self._prediction.message(simulation.ball, self.frame, bool(simulation.events.touches))

    def hold(self, car: int, controls: flat.ControllerState) -> bool:
        """Hold an input from the next tick on, until another one comes.

        Args:
            car: Index of the car in packets.
            controls: The input, clamped to -1..1; `use_item` is ignored.

        Returns:
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
        # By name: the wheel takes boost before jump, whatever its stub file says (measured, 2.2.1).
        jump, boost, handbrake = buttons
        held = rsim.CarControls(*axes, jump=jump, boost=boost, handbrake=handbrake)
        self.simulation.hold(car, held)
        return True

    def set_hitbox(self, car: int, hitbox: int) -> None:
        """Give a car another hitbox (`game.HITBOXES`) from the next packet on."""
        self.simulation.set_hitbox(car, hitbox)
        self._packer.set_hitbox(car, hitbox)

    def release(self, car: int) -> None:
        """Hold neutral controls for a car whose client has left."""
        self.hold(car, _NEUTRAL_INPUT)

    def set_state(self, desired: flat.DesiredGameState) -> bool:
        """Set a state that a client desires after the next tick.

        The next packet shows exactly this state, in any phase, and the kickoff's GO keeps it. The first
        ball, the cars (see `edit_car`) and gravity can be set; gravity 0 means the match's own. A
        demolished car stays as it is: in the real game setting its state fails [RLBot pull request 394].
        Any game speed but 1 is ignored. Of more than 8 states in a tick, the latest 8 are set.

        Args:
            desired: The state, cars in packet order. Null parts and components keep their values.

        Returns:
            False where a value is not finite or beyond 1e6; nothing is set then.
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

    def _set_desired(self, desired: flat.DesiredGameState) -> None:
        simulation = self.simulation
        ball = None
        for new in desired.ball_states[:1]:
            ball = simulation.arena.ball.get_state()
            edit_ball(ball, new)
            if is_placed(new.physics):
                self.referee.ball_set()
        cars = {}
        for slot, (car, wanted) in enumerate(zip(simulation.cars, desired.car_states, strict=False)):
            if (wanted.physics is None and wanted.boost_amount is None) or simulation.states[slot].is_demoed:
                continue
            cars[slot] = car.get_state()
            edit_car(cars[slot], wanted)
        places = [one.physics for one in desired.ball_states[:1]] + [
            one.physics for one in desired.car_states
        ]
        placed = sum(map(is_placed, places))
        if ball is not None and len(cars) == len(simulation.cars) and placed > len(cars):
            simulation.set_all(ball, [cars[slot] for slot in sorted(cars)])
        else:
            if ball is not None:
                simulation.set_ball(ball)
            for slot, state in cars.items():
                simulation.set_car(slot, state)
        info = desired.match_info
        if info is None:
            return
        if info.world_gravity_z is not None:
            simulation.set_gravity(info.world_gravity_z or self._default_gravity)
            if self._prediction is not None:
                self._prediction.take_mutators(simulation.arena)
        if info.game_speed not in (None, 1.0) and not self._warned_of_speed:
            self._warned_of_speed = True
            _log.warning("game_speed is %g, expected 1, the only one here: ignored", info.game_speed)

    def advance(self) -> None:
        """Advance by one tick."""
        before = self.referee.phase
        self.tick += 1
        stands_still = self._repeats and before in _IDLE_PHASES
        if not stands_still:
            self.frame += 1
        if before in (Phase.ACTIVE, Phase.KICKOFF):
            self._play()
        else:
            if before == Phase.GOAL_SCORED:
                self.simulation.step()
                self._note_events(counted=False)
            elif before == Phase.COUNTDOWN:
                self.simulation.settle()
            self.referee.advance(touched=False, goal_for=None, on_floor=False)
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
            self.scores.goal(events.goal_for, self.frame)
        floor = self.referee.waits_for_floor and simulation.ball_on_floor()
        self.referee.advance(bool(events.touches), events.goal_for, floor)

    def _note_events(self, counted: bool) -> None:
        """Count what happened in a tick.

        Args:
            counted: False after a goal, when touches do not count any more.
        """
        events = self.simulation.events
        if counted:
            for car in events.touches:
                self.scores.touch(car, self.frame)
                self._packer.touched(car, self.frame)
            for car in events.shots:
                self.scores.shot(car)
            for car in events.saves:
                self.scores.save(car)
        for car in events.assists:  # comes a tick after the goal
            self.scores.assist(car)
        for car in events.demolitions:
            self.scores.demolition(car)
        for car in events.bumps:
            self.scores.bumps[car] += 1
        if events.pads:
            self._packer.pads_taken(events.pads)

    def _phase_changed(self, phase: int) -> None:
        if phase == Phase.COUNTDOWN:
            self.simulation.line_up()
            self.scores.kickoff()
            self._packer.kickoff()
        elif phase == Phase.KICKOFF:
            self.simulation.go([controls.jump for controls in self._inputs])
