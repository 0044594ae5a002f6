"""A RocketSim arena that follows a match and knows what its packets do not say.

    state of tick N (counted)  -> refine -> the same, with wheels, auto-flips and bumps of tick N

The arena holds the match as it was a tick ago. It is stepped with the inputs that the game applied, its
hidden state is read, and then it is put where the packet says the match is. So it never drifts: an error
lasts a tick. Over 20,000 ticks of 1v1 and 6,000 of 3v3 every hidden field was RocketSim's own (measured,
2.2.1); on the real client this has not been measured.
"""

import struct
from collections.abc import Callable
from operator import attrgetter, itemgetter

import RocketSim as rsim

from rlgym_bridge.game import GRAVITY, TICKS_PER_SECOND
from rlgym_bridge.sim.arena import make_arena, place_cars
from rlgym_bridge.state import CAR_FORMAT, KNOWN_FIELDS, MatchState, layout_of

_MODES = {
    "Soccar": rsim.GameMode.SOCCAR,
    "Heatseeker": rsim.GameMode.HEATSEEKER,
    "Snowday": rsim.GameMode.SNOWDAY,
}
_MOST_TICKS = 24  # a longer gap is not bridged: inputs change every few ticks
_LEAP = 40.0  # uu off the prediction: the car was put there (at 2,300 uu/s it drives 19 a tick)
_BALL_LEAP = 100.0  # uu; at 6,000 uu/s it flies 50 a tick
_BUMP_TICKS = round(0.25 * TICKS_PER_SECOND)  # a bump's victim is remembered for 0.25 s [RocketSim, RLConst]

_CAR = struct.Struct(CAR_FORMAT)


def _index(name: str) -> int:
    """Return where a field stands among the numbers of a car."""
    return layout_of(1, 0).column(name, car=0) - layout_of(1, 0).car_start


_BOOST, _FLIPPING = _index("boost_amount"), _index("is_flipping")
_POSITION, _ROTATION = _index("position"), _index("rotation")
_VELOCITY, _SPIN, _TORQUE = _index("linear_velocity"), _index("angular_velocity"), _index("flip_torque")
_CONTROLS, _WHEELS, _AUTOFLIP = _index("controls"), _index("wheels_with_contact"), _index("is_autoflipping")
_ON_GROUND, _HAS_FLIP, _HOLDING = _index("on_ground"), _index("has_flip"), _index("is_holding_jump")
_CAN_FLIP, _DEMOED = _index("can_flip"), _index("is_demoed")
_KNOWN_WHEELS, _KNOWN_AUTOFLIP, _KNOWN_VICTIM = (
    _index("known") + KNOWN_FIELDS.index(name)
    for name in ("wheels_with_contact", "is_autoflipping", "bump_victim")
)
_FLAG_NAMES = ("is_demoed", "has_jumped", "is_jumping", "has_flipped", "has_double_jumped", "is_supersonic")
_FLAGS, _OUR_FLAGS = attrgetter(*_FLAG_NAMES), itemgetter(*map(_index, _FLAG_NAMES))
_TIMERS = {
    "jump_time": _index("jump_time"),
    "air_time_since_jump": _index("air_time_since_jump"),
    "flip_time": _index("flip_time"),
    "supersonic_time": _index("supersonic_time"),
    "time_spent_boosting": _index("boost_active_time"),
    "handbrake_val": _index("handbrake"),
    "demo_respawn_timer": _index("demo_respawn_timer"),
}
_HIDDEN = attrgetter(
    "wheels_with_contact", "is_auto_flipping", "auto_flip_timer", "auto_flip_torque_scale",
    "car_contact_cooldown_timer", "car_contact_id",
)  # fmt: skip
_MOST = 1e6  # sum of a body's numbers; in the game it stays below 40,000
_BODY = struct.Struct("<18f")  # position, rotation, linear and angular velocity lie side by side
_FOUR, _TWO, _ONE = (struct.Struct(one).pack_into for one in ("<4f", "<2f", "<f"))
_NOTHING = (0.0, 0.0, 0.0, -1.0)  # auto-flip, its timer and direction, bump victim


class _Car:
    """One car of the arena, and what was last shown of its hidden state."""

    __slots__ = (
        "autoflip", "autoflip_known", "car", "contact", "demolished", "foreseen", "held", "victim_doubt",
        "wheels", "wheels_known",
    )  # fmt: skip

    def __init__(self, car: rsim.Car) -> None:
        self.car = car
        self.held: tuple[float, ...] = ()
        self.demolished = False
        self.foreseen = False  # it was where the simulation had it
        self.contact = False  # with the world, a tick ago
        self.wheels: tuple[float, ...] = (0.0,) * 4
        self.wheels_known = False
        self.autoflip: tuple[float, ...] = _NOTHING
        self.autoflip_known = False
        # Ticks until no bump can be remembered that was not seen.
        self.victim_doubt = _BUMP_TICKS

    def hold(self, values: tuple[float, ...]) -> None:
        """Apply the inputs that the game applied in the latest tick."""
        controls = values[_CONTROLS : _CONTROLS + 8]
        if controls != self.held:
            self.held = controls
            self.car.set_controls(_controls(controls))

    def read(self, values: tuple[float, ...], ticks: int, rows: dict[int, int]) -> rsim.CarState | None:
        """Take over the hidden state after a step; None where the car is not where it should be."""
        state = self.car.get_state()
        position = state.pos
        off = max(
            abs(position.x - values[_POSITION]), abs(position.y - values[_POSITION + 1]),
            abs(position.z - values[_POSITION + 2]),
        )  # fmt: skip
        if off > _LEAP * ticks and not values[_DEMOED]:
            return None
        wheels, flipping, timer, direction, cooldown, victim = _HIDDEN(state)
        contact = state.has_world_contact
        if ticks > 1:
            # What happened in between may have begun an auto-flip: only a car that touches something can.
            self.autoflip_known = self.autoflip_known and not (contact or self.contact)
        elif flipping and not self.autoflip[0]:
            self.autoflip_known = True
        self.contact = contact
        if ticks > 1:
            self.victim_doubt = _BUMP_TICKS
        elif self.victim_doubt and not values[_DEMOED]:  # a demolished car's memory stands still
            self.victim_doubt -= 1
        self.wheels, self.wheels_known = tuple(map(float, wheels)), ticks == 1
        self.autoflip = (
            float(flipping), timer, direction, float(rows.get(victim, -1) if cooldown > 0 else -1)
        )  # fmt: skip
        return state

    def renew(self, values: tuple[float, ...], known: bool) -> rsim.CarState:
        """Begin anew with what was counted.

        Args:
            values: The car's numbers.
            known: Whether the car is new too: at a kickoff, after a demolition.
        """
        self.contact = False
        self.wheels, self.wheels_known = values[_WHEELS : _WHEELS + 4], known
        self.autoflip, self.autoflip_known = _NOTHING, known
        self.victim_doubt = 0 if known else _BUMP_TICKS
        state = rsim.CarState()
        state.wheels_with_contact = tuple(wheel > 0 for wheel in self.wheels)
        state.is_on_ground = values[_ON_GROUND] > 0
        state.last_controls = _controls(values[_CONTROLS : _CONTROLS + 8])
        _set_counted(state, values)
        return state

    def show(self, data: memoryview, offset: int, values: tuple[float, ...]) -> None:
        """Write the hidden state into the car's numbers, and what follows from it."""
        if self.wheels != values[_WHEELS : _WHEELS + 4]:
            grounded = sum(self.wheels) >= 3
            can_flip = values[_HAS_FLIP] > 0 and not grounded and not values[_HOLDING]
            _FOUR(data, offset + 4 * _WHEELS, *self.wheels)
            _ONE(data, offset + 4 * _ON_GROUND, grounded)
            _ONE(data, offset + 4 * _CAN_FLIP, can_flip)
        if self.autoflip != _NOTHING:
            _FOUR(data, offset + 4 * _AUTOFLIP, *self.autoflip)
        _ONE(data, offset + 4 * _KNOWN_WHEELS, self.wheels_known)
        _TWO(data, offset + 4 * _KNOWN_AUTOFLIP, self.autoflip_known, self.victim_doubt == 0)

    def show_wreck(self, data: memoryview, offset: int) -> None:
        """Write where a demolished car lies."""
        state = self.car.get_state()
        rotation = state.rot_mat
        columns = (rotation.forward.as_tuple(), rotation.right.as_tuple(), rotation.up.as_tuple())
        rows = [column[axis] for axis in range(3) for column in columns]
        _BODY.pack_into(
            data, offset + 4 * _POSITION, *state.pos.as_tuple(), *rows, *state.vel.as_tuple(),
            *state.ang_vel.as_tuple(),
        )  # fmt: skip

    def place(self, state: rsim.CarState, values: tuple[float, ...]) -> None:
        """Put the car where the packet says it is, if it is not; what is hidden stays as predicted."""
        if values[_DEMOED] and state.is_demoed:
            return  # RocketSim keeps the body in the way of other cars' wheels; so it lies here too
        same_flags = _FLAGS(state) == _OUR_FLAGS(values)
        if same_flags and _is_there(state, values, _POSITION) and state.boost == values[_BOOST]:
            return
        state.pos, state.rot_mat, state.vel, state.ang_vel = (
            rsim.Vec(*values[_POSITION : _POSITION + 3]), _matrix(values[_ROTATION : _ROTATION + 9]),
            rsim.Vec(*values[_VELOCITY : _VELOCITY + 3]), rsim.Vec(*values[_SPIN : _SPIN + 3]),
        )  # fmt: skip
        state.boost = values[_BOOST]
        if not same_flags:
            _set_counted(state, values)
        self.car.set_state(state)


class Shadow:
    """Follows one match.

    Args:
        state: Any state of the match; team sizes and hitboxes stay as they are there until `seat`.
        mode: Name of the game mode: Soccar, Heatseeker or Snowday.

    Attributes:
        modes: Names of the game modes that can be followed.

    Raises:
        FileNotFoundError: The collision meshes are not installed.
        ValueError: There are more than four cars in a team, or the mode is another one.
        RuntimeError: The pinned order of cars did not come up; see `make_arena`.
    """

    modes = frozenset(_MODES)

    def __init__(self, state: MatchState, mode: str = "Soccar") -> None:
        if mode not in _MODES:
            raise ValueError(f"game mode is {mode!r}, expected one of {', '.join(_MODES)}")
        self._mode = _MODES[mode]
        self._take(state, *make_arena(*_line_up(state), self._mode))

    def seat(self, state: MatchState) -> None:
        """Go on with the cars of another state, in the same arena: to make one takes 40 ms and more.

        Args:
            state: Any state with the new line-up.

        Raises:
            ValueError, RuntimeError: As for the constructor; nothing is followed until `seat` succeeds.
        """
        line_up = _line_up(state)
        try:
            arena, cars = self._arena, place_cars(self._arena, *line_up)
        except RuntimeError:  # the pinned order did not come up in this one
            arena, cars = make_arena(*line_up, self._mode)
        self._take(state, arena, cars)

    def _take(self, state: MatchState, arena: rsim.Arena, cars: list[rsim.Car]) -> None:
        layout = state.layout
        self._arena = arena
        self._cars = [_Car(car) for car in cars]
        self._offsets = [4 * (layout.car_start + row * layout.car_stride) for row in range(layout.cars)]
        self._rows = {car.id: row for row, car in enumerate(cars)}
        self._touches = [0] * layout.cars
        self._gravity = -arena.get_mutator_config().gravity.z / GRAVITY
        self._follows = False
        arena.set_ball_touch_callback(_touch_counter(self._touches, self._rows))

    def forget(self) -> None:
        """Take the next state as the first: what was before it says nothing of it."""
        self._follows = False

    def refine(self, state: MatchState, ticks: int, at_rest: bool, wrecks_moved: bool = False) -> list[int]:
        """Fill in what is hidden, in place: wheels, auto-flips, bump victims, and what follows from them.

        Args:
            state: One match: what a packet carries, and what was counted.
            ticks: Ticks since the last state; 0 for the same tick once more.
            at_rest: Whether all cars have just been placed and none has moved.
            wrecks_moved: Whether packets do not tell where demolished cars lie: filled in too.

        Returns:
            Ticks of ball contact of each car since the last state, as simulated; empty where nothing was.
        """
        data = state.buffer.data.cast("B")
        values = [_CAR.unpack_from(data, offset) for offset in self._offsets]
        ball = _BODY.unpack_from(data, _BALL_START)
        if not all(map(_is_possible, [ball, *(one[_POSITION:_BOOST] for one in values)])):
            self.forget()  # RocketSim is not made for that; the next possible state begins anew
            return []
        stepped = self._follows and not at_rest and 0 < ticks <= _MOST_TICKS
        if stepped:
            self._step(values, ticks)
        foreseen = True
        for car, numbers in zip(self._cars, values, strict=True):
            if ticks == 0 and self._follows:
                car.place(car.car.get_state(), numbers)
            else:
                foreseen &= self._follow(car, numbers, ticks if stepped else 0, at_rest)
        if stepped and not foreseen:  # a car that was put elsewhere may have bumped another at once
            for car in self._cars:
                car.victim_doubt = _BUMP_TICKS
        foreseen &= self._place_ball(ball, float(state.gravity[0]))
        if stepped and not foreseen:  # what was put elsewhere may have carried the wheels of another car
            for car in self._cars:
                car.wheels_known = False
        for car, offset, numbers in zip(self._cars, self._offsets, values, strict=True):
            car.show(data, offset, numbers)
            if wrecks_moved and car.demolished and car.foreseen:
                car.show_wreck(data, offset)
        self._follows = True
        return list(self._touches) if stepped else []

    def _step(self, values: list[tuple[float, ...]], ticks: int) -> None:
        self._touches[:] = [0] * len(self._touches)
        for car, numbers in zip(self._cars, values, strict=True):
            car.hold(numbers)
        self._arena.step(ticks)

    def _follow(self, car: _Car, numbers: tuple[float, ...], stepped: int, at_rest: bool) -> bool:
        """Take over one car; tell whether it is where it was expected, or new."""
        demolished = numbers[_DEMOED] > 0
        new = at_rest or (car.demolished and not demolished)
        car.demolished = demolished
        state = car.read(numbers, stepped, self._rows) if stepped and not new else None
        car.place(state if state is not None else car.renew(numbers, new), numbers)
        car.foreseen = state is not None
        return new or car.foreseen

    def _place_ball(self, values: tuple[float, ...], gravity: float) -> bool:
        """Put the ball where the packet says it is; tell whether it was expected thereabouts."""
        if gravity != self._gravity:
            self._gravity = gravity
            mutators = self._arena.get_mutator_config()
            mutators.gravity = rsim.Vec(0, 0, -GRAVITY * gravity)
            self._arena.set_mutator_config(mutators)
        ball = self._arena.ball.get_state()
        if _is_there(ball, values, 0):
            return True
        off = max(abs(a - b) for a, b in zip(ball.pos.as_tuple(), values[:3], strict=True))
        ball.pos, ball.vel, ball.ang_vel = (
            rsim.Vec(*values[:3]),
            rsim.Vec(*values[12:15]),
            rsim.Vec(*values[15:]),
        )
        ball.rot_mat = _matrix(values[3:12])
        self._arena.ball.set_state(ball)
        return bool(off < _BALL_LEAP)


def _line_up(state: MatchState) -> tuple[list[int], list[int]]:
    """Return team and hitbox of each car, as RocketSim wants them."""
    return state.car_team[0].astype(int).tolist(), state.car_hitbox[0].astype(int).tolist()


_BALL_START = 4 * layout_of(0, 0).column("ball_position")
_ANGLE_ROUNDING = 1e-3  # of an element of a rotation matrix; see live/rotation.py


def _is_possible(body: tuple[float, ...]) -> bool:
    """Tell whether the 18 numbers of a body are finite and of a size that the game has."""
    return sum(map(abs, body[:18])) < _MOST  # NaN is not


def _is_there(state: rsim.CarState | rsim.BallState, values: tuple[float, ...], at: int) -> bool:
    """Tell whether a body is exactly where the packet says, but for the rounding of its angles."""
    rotation = state.rot_mat
    forward, up = rotation.forward, rotation.up
    if state.pos.as_tuple() != values[at : at + 3] or state.vel.as_tuple() != values[at + 12 : at + 15]:
        return False
    turned = max(
        abs(forward.x - values[at + 3]), abs(forward.y - values[at + 6]),
        abs(up.x - values[at + 5]), abs(up.z - values[at + 11]),
    )  # fmt: skip
    return bool(turned < _ANGLE_ROUNDING and state.ang_vel.as_tuple() == values[at + 15 : at + 18])


def _touch_counter(touches: list[int], rows: dict[int, int]) -> Callable[..., None]:
    """Return a callback that holds no arena: one that did would keep it alive for ever."""

    def count(arena: rsim.Arena, car: rsim.Car, data: object) -> None:
        touches[rows[car.id]] += 1

    return count


def _controls(row: tuple[float, ...]) -> rsim.CarControls:
    throttle, steer, pitch, yaw, roll, jump, boost, handbrake = row
    return rsim.CarControls(
        throttle, steer, pitch, yaw, roll, jump=jump > 0, boost=boost > 0, handbrake=handbrake > 0
    )


def _matrix(rows: tuple[float, ...]) -> rsim.RotMat:
    return rsim.RotMat(rsim.Vec(*rows[0::3]), rsim.Vec(*rows[1::3]), rsim.Vec(*rows[2::3]))


def _set_counted(state: rsim.CarState, values: tuple[float, ...]) -> None:
    """Set the flags and timers of a car to what was counted."""
    for name, flag in zip(_FLAG_NAMES, _OUR_FLAGS(values), strict=True):
        setattr(state, name, flag > 0)
    for theirs, ours in _TIMERS.items():
        setattr(state, theirs, values[ours])
    state.is_flipping = values[_FLIPPING] > 0
    state.flip_rel_torque = rsim.Vec(*values[_TORQUE : _TORQUE + 3])
