r"""One tick of N matches as named float32 arrays, which training and play share.

    RLBot packet -> packets/decoder.py \
                                     MatchState -> observation -> policy
    RocketSim    -> sim/simulator.py      /

Units are the game's own: uu (1 cm), uu/s, rad/s, seconds, boost 0..100. Blue defends -y. Nothing
here is scaled, mirrored or sorted. Cars stand blue first, then orange, in the order of the source
within a team; RLGym calls them `blue-0` ... `orange-3`.
"""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rlgym_bridge import game
from rlgym_bridge.user_input.arguments import check_whole, show_value


class Field(NamedTuple):
    """A named part of the buffer: its shape for one match (or one car), and its number format."""

    name: str
    shape: tuple[int, ...] = ()
    format: str = "f"  # "f" float32, "i" the bits of an int32


MATCH_FIELDS: Final = (
    Field("frame", (), "i"),  # physics tick of the game, counted on over goals
    Field("phase"),  # game.Phase
    Field("clock"),  # s left, or s played in overtime
    Field("overtime"),  # 0 or 1
    Field("score", (2,)),  # goals of blue, orange
    Field("goal_scored"),  # 0 or 1: |ball y| > 5215.5 uu, RLGym's test
    Field("gravity"),  # times 650 uu/s^2 downwards
    Field("boost_consumption"),  # times 33.3 a second, RLGym's unit
    Field("dodge_deadzone"),  # stick sum from which a second jump is a dodge
    Field("ball_known"),  # 0 while the source shows no ball; its fields then keep the last value
    Field("ball_position", (3,)),  # uu
    Field("ball_rotation", (3, 3)),  # columns forward, right, up
    Field("ball_linear_velocity", (3,)),  # uu/s
    Field("ball_angular_velocity", (3,)),  # rad/s, world axes
    Field("pad_timer", (game.PAD_COUNT,)),  # s until the pad is back, 0 while it can be taken; RLGym's order
)

KNOWN_FIELDS: Final = (
    "wheels_with_contact", "supersonic_time", "boost_active_time", "handbrake", "jump_time",
    "air_time_since_jump", "is_autoflipping", "bump_victim", "ball_touches",
)  # fmt: skip
"""Car fields that a packet does not carry, in the order of the last axis of `MatchState.car_known`.

`is_autoflipping` stands for the three auto-flip fields.
"""

CAR_FIELDS: Final = (
    Field("player_id", (), "i"),  # RLBot's identifier; in the simulator the car's place
    Field("team"),  # 0 blue, 1 orange
    Field("hitbox"),  # game.HITBOXES
    Field("position", (3,)),  # uu
    Field("rotation", (3, 3)),  # columns forward, right, up in world axes; RLGym's rotation_mtx
    Field("linear_velocity", (3,)),  # uu/s
    Field("angular_velocity", (3,)),  # rad/s, world axes
    Field("boost_amount"),  # 0..100
    Field("demo_respawn_timer"),  # s until respawn, 0 while alive
    Field("wheels_with_contact", (4,)),  # 0 or 1: front left, front right, back left, back right
    Field("supersonic_time"),  # s since the car became supersonic, 0 while it is not
    Field("boost_active_time"),  # s since boosting began, 0 while not boosting
    Field("handbrake"),  # 0..1, ramps up and down with the button
    Field("has_jumped"),  # 0 or 1, since last on the ground
    Field("is_holding_jump"),  # 0 or 1, the jump button on the last tick
    Field("is_jumping"),  # 0 or 1, while the jump still pushes
    Field("jump_time"),  # s since the jump, at most 0.2, as RocketSim keeps it
    Field("has_flipped"),  # 0 or 1, since last on the ground
    Field("has_double_jumped"),  # 0 or 1, since last on the ground
    Field("air_time_since_jump"),  # s since the jump ended, 0 on the ground or without a jump
    Field("flip_time"),  # s since the dodge began, 0 on the ground
    Field("flip_torque", (3,)),  # -1..1, car axes
    Field("is_autoflipping"),  # 0 or 1
    Field("autoflip_timer"),  # s of auto-flip left
    Field("autoflip_direction"),  # 1 or -1, 0 before the first
    Field("bump_victim"),  # the car last bumped while that bump cools down, else -1
    Field("ball_touches"),  # ticks with ball contact since the last decision
    Field("controls", (8,)),  # game.CONTROL_NAMES of the last tick; that packets show these is assumed
    Field("on_ground"),  # 0 or 1: three wheels or more touch
    Field("is_demoed"),  # 0 or 1
    Field("is_boosting"),  # 0 or 1
    Field("is_supersonic"),  # 0 or 1
    Field("is_flipping"),  # 0 or 1
    Field("has_flip"),  # 0 or 1: a dodge or double jump is left
    Field("can_flip"),  # 0 or 1: has one, is in the air and has let go of jump
    Field("known", (len(KNOWN_FIELDS),)),  # 0 or 1 for each of KNOWN_FIELDS
)


class Layout:
    """The columns of all fields in a match's `size` numbers of a `struct` format, for two team sizes."""

    def __init__(self, blue: int, orange: int) -> None:
        self.blue, self.orange, self.cars = blue, orange, blue + orange
        self.agents = tuple(f"blue-{i}" for i in range(blue)) + tuple(f"orange-{i}" for i in range(orange))
        self.car_start, self.car_stride = _offsets(MATCH_FIELDS)[1], _offsets(CAR_FIELDS)[1]
        self.size = self.car_start + self.cars * self.car_stride
        self.format = MATCH_FORMAT + self.cars * CAR_FORMAT[1:]

    def column(self, name: str, element: int = 0, car: int | None = None) -> int:
        """Return the column of one number of a field: of a car's if `car` is given, else of a match's.

        `element` is counted in C order within the field. Raises KeyError where there is no such field.
        """
        if car is None:
            return MATCH_COLUMNS[name] + element
        return self.car_start + car * self.car_stride + CAR_COLUMNS[name] + element


def _offsets(fields: Sequence[Field]) -> tuple[dict[str, tuple[int, Field]], int]:
    offsets, position = {}, 0
    for field in fields:
        offsets[field.name] = (position, field)
        position += prod(field.shape)
    return offsets, position


def _format(fields: Sequence[Field]) -> str:
    return "".join(field.format * prod(field.shape) for field in fields)


MATCH_FORMAT: Final = "<" + _format(MATCH_FIELDS)
CAR_FORMAT: Final = "<" + _format(CAR_FIELDS)
"""The `struct` formats of a match's own part, and of each car's part behind it."""

_MATCH_VIEWS: Final = _offsets(MATCH_FIELDS)[0]
_CAR_VIEWS: Final = {f"car_{name}": place for name, place in _offsets(CAR_FIELDS)[0].items()}

MATCH_COLUMNS: Final = {name: column for name, (column, _) in _MATCH_VIEWS.items()}
CAR_COLUMNS: Final = {name: column for name, (column, _) in _offsets(CAR_FIELDS)[0].items()}
"""Column of each field in a match's own part of the buffer, and in a car's part."""


@cache
def layout_of(blue: int, orange: int, most: int = game.MOST_TEAM_SIZE) -> Layout:
    """Return the shared layout for two team sizes; raises ValueError for one beyond 0 to `most` cars."""
    if not all(isinstance(size, int | np.integer) and 0 <= size <= most for size in (blue, orange)):
        raise ValueError(f"team sizes are {blue!r} and {orange!r}, expected 0 to {most} each")
    return _layout(blue, orange)


@cache
def _layout(blue: int, orange: int) -> Layout:
    return Layout(blue, orange)


class MatchState:
    """One tick of N matches: a contiguous float32 buffer `(matches, size)` with named views.

    Every field of `MATCH_FIELDS` is an attribute of shape `(matches, *shape)`, and every field of
    `CAR_FIELDS` an attribute `car_<name>` of shape `(matches, cars, *shape)`. All are float32 views into
    `buffer` but `frame` and `car_player_id`, which are int32 views of the same bytes. Writing to a view
    writes the state. The two tables and the page "Units" list all fields with shapes and units.

    Args:
        blue: Cars in the blue team, 0..4.
        orange: Cars in the orange team, 0..4.
        matches: Number of matches N.
        buffer: Use this `(matches, size)` float32 array instead of a new one.
        most: Most cars in a team; recordings, whose players come and go, have more than a match.

    Raises:
        ValueError: A team has fewer than 0 cars or more than `most`, `matches` is no whole number of 0 or
            more, or `buffer` is no array of that shape and dtype, or not contiguous.
    """

    frame: np.ndarray
    phase: np.ndarray
    clock: np.ndarray
    overtime: np.ndarray
    score: np.ndarray
    goal_scored: np.ndarray
    gravity: np.ndarray
    boost_consumption: np.ndarray
    dodge_deadzone: np.ndarray
    ball_known: np.ndarray
    ball_position: np.ndarray
    ball_rotation: np.ndarray
    ball_linear_velocity: np.ndarray
    ball_angular_velocity: np.ndarray
    pad_timer: np.ndarray
    car_player_id: np.ndarray
    car_team: np.ndarray
    car_hitbox: np.ndarray
    car_position: np.ndarray
    car_rotation: np.ndarray
    car_linear_velocity: np.ndarray
    car_angular_velocity: np.ndarray
    car_boost_amount: np.ndarray
    car_demo_respawn_timer: np.ndarray
    car_wheels_with_contact: np.ndarray
    car_supersonic_time: np.ndarray
    car_boost_active_time: np.ndarray
    car_handbrake: np.ndarray
    car_has_jumped: np.ndarray
    car_is_holding_jump: np.ndarray
    car_is_jumping: np.ndarray
    car_jump_time: np.ndarray
    car_has_flipped: np.ndarray
    car_has_double_jumped: np.ndarray
    car_air_time_since_jump: np.ndarray
    car_flip_time: np.ndarray
    car_flip_torque: np.ndarray
    car_is_autoflipping: np.ndarray
    car_autoflip_timer: np.ndarray
    car_autoflip_direction: np.ndarray
    car_bump_victim: np.ndarray
    car_ball_touches: np.ndarray
    car_controls: np.ndarray
    car_on_ground: np.ndarray
    car_is_demoed: np.ndarray
    car_is_boosting: np.ndarray
    car_is_supersonic: np.ndarray
    car_is_flipping: np.ndarray
    car_has_flip: np.ndarray
    car_can_flip: np.ndarray
    car_known: np.ndarray

    def __init__(
        self,
        blue: int,
        orange: int,
        matches: int = 1,
        buffer: np.ndarray | None = None,
        most: int = game.MOST_TEAM_SIZE,
    ) -> None:
        self.layout = layout_of(blue, orange, most)
        check_whole("matches", matches)
        self.matches, shape = matches, (matches, self.layout.size)
        if buffer is None:
            buffer = np.zeros(shape, np.float32)
        is_array = isinstance(buffer, np.ndarray)
        fits = is_array and (buffer.shape, buffer.dtype) == (shape, np.float32)
        if not fits or not buffer.flags.c_contiguous:
            given = f"{buffer.dtype}{buffer.shape}" if is_array else show_value(buffer)
            sizes = f"{matches} matches of {blue} against {orange}"
            raise ValueError(f"buffer is {given}, expected contiguous float32{shape} for {sizes}")
        self.buffer = buffer

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> np.ndarray:
            """Return the view of a field, made when it is first read: all 51 take 100 µs."""
            if name in _CAR_VIEWS:
                (position, field), layout = _CAR_VIEWS[name], self.layout
                cars = (self.matches, layout.cars, layout.car_stride)
                block = self.buffer[:, layout.car_start :].reshape(cars)
            elif name in _MATCH_VIEWS:
                (position, field), block = _MATCH_VIEWS[name], self.buffer
            else:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            view = block[..., position : position + prod(field.shape)].reshape(block.shape[:-1] + field.shape)
            view = view.view(np.int32) if field.format == "i" else view
            setattr(self, name, view)
            return view

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the cars, in their order: `blue-0` ... `orange-3`."""
        return self.layout.agents

    def select(self, matches: slice | np.ndarray) -> "MatchState":
        """Return some matches: for a slice as a view, for `(n,)` numbers or `(N,)` bool as a copy."""
        make, (blue, orange, _, buffer, most) = self.__reduce__()
        return make(blue, orange, len(chosen := buffer[matches]), chosen, most)

    def copy(self) -> "MatchState":
        """Return an independent copy."""
        make, (blue, orange, matches, buffer, most) = self.__reduce__()
        return make(blue, orange, matches, buffer.copy(), most)

    def __reduce__(self) -> tuple[type["MatchState"], tuple[int, int, int, np.ndarray, int]]:
        """Return how pickle and `copy` make it anew: views of a copy show the copy's buffer."""
        blue, orange = self.layout.blue, self.layout.orange
        return MatchState, (blue, orange, self.matches, self.buffer, max(blue, orange, game.MOST_TEAM_SIZE))


_FLIP_TORQUE, _DODGE_DEADLINE = np.float32(game.FLIP_TORQUE_SECONDS), np.float32(game.DODGE_DEADLINE_SECONDS)
_FIRST, _LAST = CAR_COLUMNS["demo_respawn_timer"], CAR_COLUMNS["flip_time"]  # all that `derive` reads
_RESULTS: Final = slice(CAR_COLUMNS["on_ground"], CAR_COLUMNS["can_flip"] + 1)
_ROW: Final = {name: column - _FIRST for name, column in CAR_COLUMNS.items()}
_WHEELS: Final = _ROW["wheels_with_contact"]


def derive(state: MatchState) -> None:
    """Fill the fields that follow from others, in place, for all matches at once.

    The formulas are RLGym's properties of `Car` and `GameState`; `packets/cars.py` has them a second time for
    single numbers, and a test holds the two equal.
    """
    np.greater(np.abs(state.ball_position[:, 1]), game.GOAL_THRESHOLD_Y, out=state.goal_scored)
    layout = state.layout
    cars = state.buffer[:, layout.car_start :].reshape(state.matches, layout.cars, layout.car_stride)
    # A row for each column: arithmetic on neighbours in memory takes half the time, this copy included.
    values = cars[..., _FIRST : _LAST + 1].reshape(-1, _LAST + 1 - _FIRST).T.copy()
    results = np.empty((_RESULTS.stop - _RESULTS.start, values.shape[1]), bool)
    on_ground, is_demoed, is_boosting, is_supersonic, is_flipping, has_flip, can_flip = results
    wheels = values[_WHEELS] + values[_WHEELS + 1]
    wheels += values[_WHEELS + 2]
    wheels += values[_WHEELS + 3]
    np.greater_equal(wheels, 3, out=on_ground)
    np.greater(values[_ROW["demo_respawn_timer"]], 0, out=is_demoed)
    np.greater(values[_ROW["boost_active_time"]], 0, out=is_boosting)
    np.greater(values[_ROW["supersonic_time"]], 0, out=is_supersonic)
    used = values[_ROW["has_flipped"]] > 0
    # float32(0.65) is below 0.65, so <= is RLGym's < in double precision.
    np.logical_and(used, values[_ROW["flip_time"]] <= _FLIP_TORQUE, out=is_flipping)
    used |= values[_ROW["has_double_jumped"]] > 0
    np.greater(values[_ROW["air_time_since_jump"]] < _DODGE_DEADLINE, used, out=has_flip)
    held_down = values[_ROW["is_holding_jump"]] > 0
    held_down |= on_ground
    np.greater(has_flip, held_down, out=can_flip)
    cars[..., _RESULTS] = results.T.reshape(*cars.shape[:2], len(results))
