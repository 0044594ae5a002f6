"""One car of a shadow simulation: read its hidden state, put it in place, and show it in a state."""

import struct
from math import dist
from operator import attrgetter, itemgetter

import RocketSim as rsim

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.state import CAR_FORMAT, KNOWN_FIELDS, layout_of

_LEAP = 40.0  # uu off the prediction: the car was put there (at 2,300 uu/s it drives 19 a tick)
BUMP_TICKS = round(0.25 * TICKS_PER_SECOND)  # a bump's victim is remembered for 0.25 s [RocketSim, RLConst]
_ANGLE_ROUNDING = 1e-3  # of an element of a rotation matrix; see packets/rotation.py

CAR_NUMBERS = struct.Struct(CAR_FORMAT)


def _index(name: str) -> int:
    """Return where a field stands among the numbers of a car."""
    return layout_of(1, 0).column(name, car=0) - layout_of(1, 0).car_start


BOOST, _FLIPPING = _index("boost_amount"), _index("is_flipping")
POSITION, _ROTATION = _index("position"), _index("rotation")
_VELOCITY, _SPIN, _TORQUE = _index("linear_velocity"), _index("angular_velocity"), _index("flip_torque")
_CONTROLS, _WHEELS, _AUTOFLIP = _index("controls"), _index("wheels_with_contact"), _index("is_autoflipping")
_ON_GROUND, _HAS_FLIP, _HOLDING = _index("on_ground"), _index("has_flip"), _index("is_holding_jump")
_CAN_FLIP, DEMOED = _index("can_flip"), _index("is_demoed")
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
BODY_NUMBERS = struct.Struct("<18f")  # position, rotation, linear and angular velocity lie side by side
_FOUR, _TWO, _ONE = (struct.Struct(one).pack_into for one in ("<4f", "<2f", "<f"))
_NOTHING = (0.0, 0.0, 0.0, -1.0)  # auto-flip, its timer and direction, bump victim


class ShadowCar:
    """One car of the arena, and what was last shown of its hidden state."""

    __slots__ = (
        "_controls",
        "_held",
        "autoflip",
        "autoflip_known",
        "car",
        "contact",
        "demolished",
        "foreseen",
        "victim_doubt",
        "wheels",
        "wheels_known",
    )  # fmt: skip

    def __init__(self, car: rsim.Car) -> None:
        self.car = car
        self._held: tuple[float, ...] = ()
        self._controls = rsim.CarControls()
        self.demolished = False
        self.foreseen = False  # it was where the simulation had it
        self.contact = False  # with the world, a tick ago
        self.wheels: tuple[float, ...] = (0.0,) * 4
        self.wheels_known = False
        self.autoflip: tuple[float, ...] = _NOTHING
        self.autoflip_known = False
        # Ticks until no bump can be remembered that was not seen.
        self.victim_doubt = BUMP_TICKS

    def hold(self, values: tuple[float, ...]) -> rsim.CarControls:
        """Apply the inputs that the game applied in the latest tick, and return them."""
        controls = values[_CONTROLS : _CONTROLS + 8]
        if controls != self._held:
            self._held, self._controls = controls, _controls(controls)
            self.car.set_controls(self._controls)
        return self._controls

    def read(self, values: tuple[float, ...], ticks: int, rows: dict[int, int]) -> rsim.CarState | None:
        """Take over the hidden state after a step; None where the car is not where it should be."""
        state = self.car.get_state()
        off = dist(state.pos.as_tuple(), values[POSITION : POSITION + 3])
        if off > _LEAP * ticks and not values[DEMOED]:
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
            self.victim_doubt = BUMP_TICKS
        elif self.victim_doubt and not values[DEMOED]:  # a demolished car's memory stands still
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
        self.victim_doubt = 0 if known else BUMP_TICKS
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
        BODY_NUMBERS.pack_into(
            data, offset + 4 * POSITION, *state.pos.as_tuple(), *rows, *state.vel.as_tuple(),
            *state.ang_vel.as_tuple(),
        )  # fmt: skip

    def place(self, state: rsim.CarState, values: tuple[float, ...]) -> None:
        """Put the car where the packet says it is, if it is not; what is hidden stays as predicted."""
        if values[DEMOED] and state.is_demoed:
            return  # RocketSim keeps the body in the way of other cars' wheels; so it lies here too
        same_flags = _FLAGS(state) == _OUR_FLAGS(values)
        if same_flags and is_there(state, values, POSITION) and state.boost == values[BOOST]:
            return
        state.pos, state.rot_mat, state.vel, state.ang_vel = (
            rsim.Vec(*values[POSITION : POSITION + 3]), rotation_of(values[_ROTATION : _ROTATION + 9]),
            rsim.Vec(*values[_VELOCITY : _VELOCITY + 3]), rsim.Vec(*values[_SPIN : _SPIN + 3]),
        )  # fmt: skip
        state.boost = values[BOOST]
        if not same_flags:
            _set_counted(state, values)
        self.car.set_state(state)


def is_there(state: rsim.CarState | rsim.BallState, values: tuple[float, ...], at: int) -> bool:
    """Tell whether a body is exactly where the packet says, but for the rounding of its angles."""
    if (
        state.pos.as_tuple() != values[at : at + 3]
        or state.vel.as_tuple() != values[at + 12 : at + 15]
        or state.ang_vel.as_tuple() != values[at + 15 : at + 18]
    ):
        return False
    rotation = state.rot_mat
    forward, up = rotation.forward, rotation.up
    return bool(
        abs(forward.x - values[at + 3]) < _ANGLE_ROUNDING
        and abs(forward.y - values[at + 6]) < _ANGLE_ROUNDING
        and abs(up.x - values[at + 5]) < _ANGLE_ROUNDING
        and abs(up.z - values[at + 11]) < _ANGLE_ROUNDING
    )


def _controls(row: tuple[float, ...]) -> rsim.CarControls:
    throttle, steer, pitch, yaw, roll, jump, boost, handbrake = row
    return rsim.CarControls(
        throttle, steer, pitch, yaw, roll, jump=jump > 0, boost=boost > 0, handbrake=handbrake > 0
    )


def rotation_of(rows: tuple[float, ...]) -> rsim.RotMat:
    """Return RocketSim's matrix of nine numbers, row by row."""
    return rsim.RotMat(rsim.Vec(*rows[0::3]), rsim.Vec(*rows[1::3]), rsim.Vec(*rows[2::3]))


def _set_counted(state: rsim.CarState, values: tuple[float, ...]) -> None:
    """Set the flags and timers of a car to what was counted."""
    for name, flag in zip(_FLAG_NAMES, _OUR_FLAGS(values), strict=True):
        setattr(state, name, flag > 0)
    for theirs, ours in _TIMERS.items():
        setattr(state, theirs, values[ours])
    state.is_flipping = values[_FLIPPING] > 0
    state.flip_rel_torque = rsim.Vec(*values[_TORQUE : _TORQUE + 3])
