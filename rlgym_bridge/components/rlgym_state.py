"""Convert `MatchState` to and from RLGym's own objects, for components that were written for RLGym."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.rlgym_types import Agents, Car, Game, GameConfig, GameState, PhysicsObject
from rlgym_bridge.game import BLUE, HITBOXES, MOST_TEAM_SIZE, PAD_COUNT
from rlgym_bridge.state import CAR_COLUMNS, KNOWN_FIELDS, MATCH_COLUMNS, MatchState, derive
from rlgym_bridge.user_input.arguments import show_value

_FLOATS = (
    "demo_respawn_timer", "supersonic_time", "boost_amount", "boost_active_time", "handbrake",
    "jump_time", "air_time_since_jump", "flip_time", "autoflip_timer", "autoflip_direction",
)  # fmt: skip
_FLAGS = (
    "has_jumped", "is_holding_jump", "is_jumping", "has_flipped", "has_double_jumped",
    "is_autoflipping",
)  # fmt: skip

_FLOAT_COLUMNS: Final = tuple((name, CAR_COLUMNS[name]) for name in _FLOATS)
_FLAG_COLUMNS: Final = tuple((name, CAR_COLUMNS[name]) for name in _FLAGS)

_BALL: Final = MATCH_COLUMNS["ball_position"]
_CHASSIS: Final = CAR_COLUMNS["position"]
"""Beginnings of the 18 numbers of a body: position, rotation, linear and angular velocity."""

_MOST: Final = {"position": 1e4, "linear_velocity": 1e4, "angular_velocity": 100.0}
"""Of each number: the field is 12,000 uu long, nothing moves faster than 6,000 uu/s, turns than 6 rad/s."""

_RANGES: Final = {
    "team_num": (0, 1), "hitbox_type": (0, len(HITBOXES) - 1), "boost_amount": (0, 100),
    "demo_respawn_timer": (0, 10),
}  # fmt: skip
_MOST_GRAVITY: Final = 10.0  # times the game's


def base_state() -> Game:
    """Return a state for mutators to fill, as RLGym's engine does: no cars, and a ball without a place."""
    state: Game = GameState()
    state.tick_count, state.goal_scored = 0, False
    state.config = GameConfig()
    state.config.gravity, state.config.boost_consumption, state.config.dodge_deadzone = 1.0, 1.0, 0.5
    state.ball = PhysicsObject()
    state.cars = {}
    state.boost_pad_timers = np.zeros(PAD_COUNT, np.float32)
    return state


def to_rlgym(state: MatchState, match: int = 0, agents: Agents | None = None) -> Game:
    """Return one match as a real `rlgym.rocket_league.api.GameState`, which shares no memory with the state.

    `agents` are ids for the cars, `state.agents` if None; raises ValueError unless they name every car.
    Dtypes are those of RLGym's engine: float32 vectors and matrices, Python floats and bools,
    `boost_pad_timers` (34,) float32 in seconds until the pad is back.
    """
    names = state.agents if agents is None else agents
    if len(names) != state.layout.cars:
        raise ValueError(f"{len(names)} agent ids for {state.layout.cars} cars, expected one each")
    numbers = state.buffer[match].copy()  # the state's own vectors are views of this
    values: list[float] = numbers.tolist()  # one call: reading numbers one by one takes ten times as long
    game: Game = GameState()
    game.tick_count = int(state.frame[match])
    game.goal_scored = bool(values[MATCH_COLUMNS["goal_scored"]])
    game.config = GameConfig()
    game.config.gravity = values[MATCH_COLUMNS["gravity"]]
    game.config.boost_consumption = values[MATCH_COLUMNS["boost_consumption"]]
    game.config.dodge_deadzone = values[MATCH_COLUMNS["dodge_deadzone"]]
    game.ball = _physics(numbers[_BALL:])
    timers = MATCH_COLUMNS["pad_timer"]
    game.boost_pad_timers = numbers[timers : timers + PAD_COUNT]
    first, stride = state.layout.car_start, state.layout.car_stride
    game.cars = {
        name: _car(numbers[start : start + stride], values[start : start + stride], names)
        for name, start in zip(names, range(first, len(values), stride), strict=True)
    }
    return game


def from_rlgym(games: Game | Sequence[Game]) -> MatchState:
    """Return RLGym game states of equal team sizes as a `MatchState`.

    Cars are ordered blue first, each team in the order of `GameState.cars`. What RLGym does not hold is left
    0 (phase, clock, score, applied controls but for the jump button); `known` is 1. Raises ValueError if
    there is no game state, or the team sizes differ.
    """
    games = [games] if isinstance(games, GameState) else list(games)
    sizes = {_team_sizes(game) for game in games}
    if len(sizes) != 1:
        raise ValueError(f"game states have team sizes {sorted(sizes)}, expected one pair for all")
    state = MatchState(*sizes.pop(), len(games))
    for match, game in enumerate(games):
        _fill_match(state, match, game)
        places = cars_by_agent(game)
        for agent, place in places.items():
            _fill_car(state, match, place, game.cars[agent], places)
    derive(state)
    for match, game in enumerate(games):
        state.goal_scored[match] = bool(game.goal_scored)
    return state


def checked_state(game: Game) -> MatchState:
    """Convert a state that mutators have made to one match; raises ValueError where `odd_values` has one."""
    for odd in odd_values(game):
        raise ValueError(odd)
    return from_rlgym(game)


def odd_values(game: Game) -> Iterator[str]:
    """Yield the values that no match has, as `boost_amount of blue-0 is -20, expected ...`.

    A rotation may be missing, as mutators leave it.
    """
    yield from (" ".join(text.split()) for text in _odd_parts(game))  # arrays are written in lines


def odd_structure(game: Game) -> Iterator[str]:
    """Yield what other mutators cannot work with: parts of a state that are missing or of another kind."""
    if not isinstance(game.config, GameConfig):
        yield f"config of the state is {show_value(game.config)}, expected a GameConfig"
    if not isinstance(game.ball, PhysicsObject):
        yield f"physics of the ball is {show_value(game.ball)}, expected a PhysicsObject"
    if not isinstance(game.cars, Mapping):
        yield f"cars of the state is {show_value(game.cars)}, expected a dict with a Car for each agent"
        return
    for agent, car in game.cars.items():
        if not isinstance(car, Car):
            yield f"car of {agent} is {show_value(car)}, expected a Car"
        elif not isinstance(car.physics, PhysicsObject):
            yield f"physics of {agent} is {show_value(car.physics)}, expected a PhysicsObject"
    for number, team in enumerate(("blue", "orange")):
        count = sum(getattr(car, "team_num", None) == number for car in game.cars.values())
        if count > MOST_TEAM_SIZE:
            yield f"number of {team} cars is {count}, expected up to {MOST_TEAM_SIZE}"


def _odd_parts(game: Game) -> Iterator[str]:
    broken = list(odd_structure(game))
    yield from broken
    if broken:
        return
    config = game.config
    yield from _odd_body("the ball", game.ball)
    for agent, car in game.cars.items():
        yield from _odd_body(str(agent), car.physics)
        for name, (low, high) in _RANGES.items():
            value = getattr(car, name)
            if not _is_number(value) or not low <= value <= high:
                yield f"{name} of {agent} is {value}, expected {low:g} to {high:g}"
        for name in (*_FLOATS, *_FLAGS):
            if not _is_number(value := getattr(car, name)):
                expected = "a finite number" if name in _FLOATS else "True or False"
                yield f"{name} of {agent} is {value}, expected {expected}"
        if not _are_numbers(car.wheels_with_contact, (4,)):
            yield f"wheels_with_contact of {agent} is {car.wheels_with_contact}, expected four flags"
        if not _are_numbers(car.flip_torque, (3,)):
            yield f"flip_torque of {agent} is {car.flip_torque}, expected three finite numbers"
    if not _is_number(config.gravity) or not abs(config.gravity) <= _MOST_GRAVITY:
        yield f"gravity is {config.gravity}, expected up to {_MOST_GRAVITY:g} (1: the game's)"
    numbers = {name: getattr(config, name) for name in ("boost_consumption", "dodge_deadzone")}
    for name, value in (numbers | {"tick_count": game.tick_count}).items():
        if not _is_number(value):
            yield f"{name} is {value}, expected a finite number"
    if not _are_numbers(game.boost_pad_timers, (PAD_COUNT,)):
        yield f"boost_pad_timers is {game.boost_pad_timers}, expected {PAD_COUNT} finite numbers"


def _odd_body(who: str, body: PhysicsObject) -> Iterator[str]:
    for name, most in _MOST.items():
        value = getattr(body, name)
        if not _are_numbers(value, (3,)) or not (np.abs(np.asarray(value)) <= most).all():
            yield f"{name} of {who} is {value}, expected three numbers up to {most:g}"
    forms = (body._rotation_mtx, body._quaternion, body._euler_angles)
    if any(form is not None for form in forms):
        turn = next(form for form in forms if form is not None)
        if not any(_are_numbers(turn, shape) for shape in ((3, 3), (4,), (3,))):
            yield f"rotation of {who} is {turn}, expected a finite matrix (3, 3), quaternion or Euler angles"


def _is_number(value: Any) -> bool:
    return _are_numbers(value, ())


def _are_numbers(value: Any, shape: tuple[int, ...]) -> bool:
    """Tell whether a value is an array of finite numbers, a list of them, or a number for the shape ()."""
    try:
        numbers = np.asarray(value)
    except ValueError:  # lists of different lengths
        return False
    return numbers.shape == shape and numbers.dtype.kind in "fiub" and bool(np.isfinite(numbers).all())


def cars_by_agent(game: Game) -> dict[Hashable, int]:
    """Return each agent's car by its place in a `MatchState`: blue first, each team in the game's order."""
    agents = sorted(game.cars, key=lambda agent: game.cars[agent].team_num != BLUE)
    return {agent: car for car, agent in enumerate(agents)}


def _physics(numbers: np.ndarray) -> PhysicsObject:
    """Return the body that some numbers begin with; its vectors are views of them."""
    physics = PhysicsObject()
    physics.position, physics._rotation_mtx = numbers[:3], numbers[3:12].reshape(3, 3)
    physics.linear_velocity, physics.angular_velocity = numbers[12:15], numbers[15:18]
    return physics


def _car(numbers: np.ndarray, values: Sequence[float], names: Sequence[Hashable]) -> Car[Any]:
    """Return a car whose vectors are views of its part of a match's numbers; `values` are these as floats."""
    car: Car[Any] = Car()
    car.team_num = int(values[CAR_COLUMNS["team"]])
    car.hitbox_type = int(values[CAR_COLUMNS["hitbox"]])
    car.ball_touches = int(values[CAR_COLUMNS["ball_touches"]])
    victim = int(values[CAR_COLUMNS["bump_victim"]])
    car.bump_victim_id = names[victim] if victim >= 0 else None
    wheels = CAR_COLUMNS["wheels_with_contact"]
    front_left, front_right, back_left, back_right = values[wheels : wheels + 4]
    car.wheels_with_contact = (bool(front_left), bool(front_right), bool(back_left), bool(back_right))
    for name, column in _FLOAT_COLUMNS:
        setattr(car, name, values[column])
    for name, column in _FLAG_COLUMNS:
        setattr(car, name, values[column] != 0)
    torque = CAR_COLUMNS["flip_torque"]
    car.flip_torque = numbers[torque : torque + 3]
    car.physics = _physics(numbers[_CHASSIS:])
    return car


def _team_sizes(game: Game) -> tuple[int, int]:
    blue = sum(car.team_num == BLUE for car in game.cars.values())
    return blue, len(game.cars) - blue


def _fill_match(state: MatchState, match: int, game: Game) -> None:
    state.frame[match] = game.tick_count
    row = state.buffer[match]
    row[MATCH_COLUMNS["gravity"]] = game.config.gravity
    row[MATCH_COLUMNS["boost_consumption"]] = game.config.boost_consumption
    row[MATCH_COLUMNS["dodge_deadzone"]] = game.config.dodge_deadzone
    row[MATCH_COLUMNS["ball_known"]] = 1
    _fill_body(row[_BALL:], game.ball)
    timers = MATCH_COLUMNS["pad_timer"]
    row[timers : timers + PAD_COUNT] = game.boost_pad_timers


def _fill_body(row: np.ndarray, physics: PhysicsObject) -> None:
    """Write a body's vectors into a row of numbers, unturned where a mutator has set no rotation."""
    row[:3], row[12:15], row[15:18] = physics.position, physics.linear_velocity, physics.angular_velocity
    try:
        row[3:12] = np.ravel(physics.rotation_mtx)
    except ValueError:  # RLGym's, where there is none
        row[3:12] = np.eye(3).ravel()


def _fill_car(
    state: MatchState, match: int, place: int, car: Car[Any], places: Mapping[Hashable, int]
) -> None:  # fmt: skip
    values: list[Any] = [0.0] * state.layout.car_stride  # None becomes NaN below
    values[CAR_COLUMNS["team"]] = car.team_num
    values[CAR_COLUMNS["hitbox"]] = car.hitbox_type
    values[CAR_COLUMNS["ball_touches"]] = car.ball_touches or 0
    values[CAR_COLUMNS["bump_victim"]] = places.get(car.bump_victim_id, -1)
    for name, column in (*_FLOAT_COLUMNS, *_FLAG_COLUMNS):
        values[column] = getattr(car, name)
    values[CAR_COLUMNS["controls"] + 5] = car.is_holding_jump
    start = state.layout.car_start + place * state.layout.car_stride
    row = state.buffer[match, start : start + state.layout.car_stride]
    row[:] = values
    state.car_player_id[match, place] = place
    wheels, torque, known = (CAR_COLUMNS[name] for name in ("wheels_with_contact", "flip_torque", "known"))
    row[wheels : wheels + 4] = car.wheels_with_contact
    row[torque : torque + 3] = car.flip_torque
    _fill_body(row[_CHASSIS:], car.physics)
    row[known : known + len(KNOWN_FIELDS)] = 1


def car_of(cars: dict[Hashable, int], agent: Hashable) -> int:
    """Return an agent's car by its place in the state; raises ValueError where it has none."""
    if agent not in cars:
        raise ValueError(f"agent {agent!r} has no car in the state, which has {list(cars)}")
    return cars[agent]
