"""Write what RocketSim holds of many arenas into the columns of one `MatchState`.

One call an arena and one more a car fetch most of what there is; numpy puts it into the state for all
matches at once. What costs extra (`EXTRA_FIELDS`) is read where it is asked for.
"""

import struct
from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
import RocketSim as rsim

from rlgym_bridge.derived_fields import derive
from rlgym_bridge.game import PAD_COUNT, TICK_SECONDS
from rlgym_bridge.state import KNOWN_FIELDS, MatchState

EXTRA_FIELDS: Final = (
    "car_wheels_with_contact", "car_flip_torque", "car_is_autoflipping", "car_autoflip_timer",
    "car_autoflip_direction", "car_bump_victim",
)  # fmt: skip
"""Attributes of `MatchState` that are filled only where they are asked for."""

# Columns of `Arena.get_gym_state()`: 34 pads, 25 numbers of the ball, 36 of each car (RocketSim 2.2.1,
# found by experiment; a test holds them against `ArenaReader`).
_PADS, _BALL, _CAR = PAD_COUNT, 25, 36
_BODY = {"position": 0, "rotation": 13, "linear_velocity": 7, "angular_velocity": 10}  # as the state has them
_CAR_BODY, _CAR_DEMOED, _CAR_GROUND, _CAR_BOOST = 11, 7, 8, 10

_SCALARS: Final = {
    "demo_respawn_timer": "demo_respawn_timer",
    "supersonic_time": "supersonic_time",
    "boost_active_time": "time_spent_boosting",
    "handbrake": "handbrake_val",
    "has_jumped": "has_jumped",
    "is_jumping": "is_jumping",
    "jump_time": "jump_time",
    "has_flipped": "has_flipped",
    "has_double_jumped": "has_double_jumped",
    "air_time_since_jump": "air_time_since_jump",
    "flip_time": "flip_time",
}
_EXTRAS: Final = {
    "is_autoflipping": "is_auto_flipping",
    "autoflip_timer": "auto_flip_timer",
    "autoflip_direction": "auto_flip_torque_scale",
}
_CONTACT: Final = ("car_contact_cooldown_timer", "car_contact_id")
_TICK: Final = np.float32(TICK_SECONDS)
_JUMP: Final = 5  # of a control row
_TRANSPOSED = attrgetter("T")
_ROW = attrgetter("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")


class ArenaColumns:
    """A collector of what the arenas of a step hold, which writes it into a state.

    Args:
        state: The state that is written.
        reads: Attributes of `MatchState` that are read; of `EXTRA_FIELDS` only these are filled.
    """

    def __init__(self, state: MatchState, reads: Collection[str]) -> None:
        self._state = state
        layout = state.layout
        self._shape = (state.matches, layout.cars)
        self._ball_sources, self._car_sources = _sources(layout.cars)
        self._match_numbers = 2 * (_PADS + _BALL + _CAR * layout.cars)
        # What lies side by side in the state is written by one assignment.
        first, last = layout.column("ball_position"), layout.column("ball_angular_velocity", 2)
        self._ball = state.buffer[:, first : last + 1]
        self._cars = state.buffer[:, layout.car_start :].reshape(*self._shape, layout.car_stride)
        first, last = (_car_column(state, name) for name in ("position", "boost_amount"))
        self._car_bodies = self._cars[..., first : last + 1]
        extras = [name for name in _EXTRAS if "car_" + name in reads]
        self._contact = "car_bump_victim" in reads
        self._wheels, self._torque = "car_wheels_with_contact" in reads, "car_flip_torque" in reads
        self._unknown = [
            KNOWN_FIELDS.index(name)
            for name in ("wheels_with_contact", "is_autoflipping", "bump_victim")
            if "car_" + name not in reads
        ]
        paths = [
            *_SCALARS.values(),
            *(_EXTRAS[name] for name in extras),
            *(_CONTACT if self._contact else ()),
        ]
        self._getter, self._width = attrgetter(*paths), len(paths)
        self._runs = _runs([_car_column(state, name) for name in (*_SCALARS, *extras)])
        self._bodies: list[bytes] = []
        self._hidden: list[bytes] = []
        self._wheel_flags: list[bool] = []
        self._torques: list[float] = []

    def take(self, matches: Sequence[tuple[rsim.Arena, Sequence[rsim.Car]]]) -> None:
        """Collect the next matches, in order.

        A few at a time: what was read of them is still in the caches when it is copied, and its memory is
        used again for the next ones.
        """
        bodies: list[Any] = []  # arrays, (2, k) in Fortran's order: as it is, and turned by 180 degrees
        hidden: list[float] = []
        getter, wheels, torque = self._getter, self._wheels, self._torque
        for arena, cars in matches:
            bodies += arena.get_gym_state()[1:]  # [0] holds no physics
            for car in cars:
                state = car.get_state()
                hidden += getter(state)
                if wheels:
                    self._wheel_flags += state.wheels_with_contact
                if torque:
                    self._torques += state.flip_rel_torque.as_tuple()
        self._bodies.append(b"".join(map(_TRANSPOSED, bodies)))
        self._hidden.append(struct.pack(f"{len(hidden)}f", *hidden))  # a third of np.fromiter's time

    def show(
        self,
        players: Sequence[Sequence[rsim.Car]],
        ids: np.ndarray,
        pads: Sequence[Sequence[rsim.BoostPad]],
        held: np.ndarray,
        ticks: int,
    ) -> None:
        """Write what was collected of all matches, derived fields included; touches are left alone.

        Args:
            players: Cars of every match, row by row.
            ids: `(matches, cars)` RocketSim's identifiers of them.
            pads: Boost pads of every match, in RocketSim's order.
            held: `(matches, cars, 8)` what drove the latest tick.
            ticks: Since the last time.
        """
        state = self._state
        both = np.frombuffer(b"".join(self._bodies), np.float32).reshape(state.matches, self._match_numbers)
        self._ball[:] = both.take(self._ball_sources, axis=1)
        self._car_bodies[:] = both.take(self._car_sources, axis=1)
        self._show_hidden(ids)
        numbers = both[:, ::2]
        if self._wheels:
            wheels = np.array(self._wheel_flags, np.float32)
            state.car_wheels_with_contact[:] = wheels.reshape(*self._shape, 4)
        else:  # all or none: what follows from them is right
            grounded = numbers[:, _PADS + _BALL + _CAR_GROUND :: _CAR]
            state.car_wheels_with_contact[:] = grounded[..., None]
        if self._torque:
            state.car_flip_torque[:] = np.array(self._torques, np.float32).reshape(*self._shape, 3)
        self._count_pads(numbers[:, :_PADS] > 0, pads, ticks)
        state.frame += ticks
        state.car_controls[:] = held
        state.car_is_holding_jump[:] = held[..., _JUMP]
        demoed = numbers[:, _PADS + _BALL + _CAR_DEMOED :: _CAR]
        if demoed.any():
            for match, row in np.argwhere(demoed > 0).tolist():
                self._show_wreck(match, row, players[match][row].get_state())
        derive(state)
        for taken in (self._bodies, self._hidden, self._wheel_flags, self._torques):
            taken.clear()

    def mark_unknown(self) -> None:
        """Flag in `car_known` what is not read."""
        self._state.car_known[..., self._unknown] = 0

    def _show_hidden(self, ids: np.ndarray) -> None:
        state = self._state
        values = np.frombuffer(b"".join(self._hidden), np.float32).reshape(*self._shape, self._width)
        for first, last, target in self._runs:
            self._cars[..., target : target + last - first] = values[..., first:last]
        if self._contact:
            cooling, other = values[..., -2] > 0, values[..., -1, None] == ids[:, None, :]
            state.car_bump_victim[:] = np.where(cooling & other.any(-1), other.argmax(-1), -1)

    def _show_wreck(self, match: int, row: int, car: rsim.CarState) -> None:
        """Show a demolished car: `get_gym_state` has it turned on, and inputs do not reach it."""
        state, turn, last = self._state, car.rot_mat, car.last_controls
        state.car_position[match, row] = car.pos.as_tuple()
        state.car_linear_velocity[match, row] = car.vel.as_tuple()
        state.car_angular_velocity[match, row] = car.ang_vel.as_tuple()
        axes = (turn.forward.as_tuple(), turn.right.as_tuple(), turn.up.as_tuple())
        state.car_rotation[match, row] = np.array(axes, np.float32).T
        state.car_is_holding_jump[match, row] = last.jump
        state.car_controls[match, row] = _ROW(last)

    def _count_pads(self, there: np.ndarray, pads: Sequence[Sequence[rsim.BoostPad]], ticks: int) -> None:
        """Count the pads down as RocketSim does, in float32; a pad that has just gone is asked."""
        away = ~there
        timers = self._state.pad_timer.copy()
        for _ in range(ticks):
            timers -= _TICK
        np.maximum(timers, 0, out=timers)
        # Gone just now, or back and taken again within the step.
        gone = away & (timers <= 0)
        if gone.any():
            for match, pad in np.argwhere(gone).tolist():
                timers[match, pad] = pads[match][pad].get_state().cooldown
        np.multiply(timers, away, out=self._state.pad_timer)


def _sources(cars: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where `get_gym_state`'s numbers are, both ways round, in the order of the state.

    Returns:
        `(18,)` int of the ball; `(cars, 19)` of each car's body and boost.
    """
    body: list[int] = []
    for name, start in _BODY.items():
        if name == "rotation":  # there forward, right and up lie one after another; here they are columns
            body += [start + column * 3 + row for row in range(3) for column in range(3)]
        else:
            body += range(start, start + 3)
    ball = _PADS + np.array(body, np.intp)
    starts = _PADS + _BALL + _CAR * np.arange(cars, dtype=np.intp)
    car = np.array([*(_CAR_BODY + at for at in body), _CAR_BOOST], np.intp)
    return 2 * ball, 2 * (starts[:, None] + car)


def _car_column(state: MatchState, name: str) -> int:
    """Return the column of a field in a car's part of the buffer."""
    return state.layout.column(name, car=0) - state.layout.car_start


def _runs(columns: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return runs of neighbours among columns: first and last + 1 in `columns`, and the first column."""
    runs: list[tuple[int, int, int]] = []
    for number, column in enumerate(columns):
        if runs and column == columns[number - 1] + 1:
            runs[-1] = (runs[-1][0], number + 1, runs[-1][2])
        else:
            runs.append((number, number + 1, column))
    return runs
