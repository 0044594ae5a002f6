"""Matches played in a simulator, and their states as a decoder makes them of packets."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.policy.chaser import Chaser
from rlgym_bridge.sim.simulator import Simulator, make_simulator
from rlgym_bridge.state import KNOWN_FIELDS, MatchState, derive
from tests.support.states import kickoff, ram

ESTIMATED: Final = ("wheels_with_contact", "is_autoflipping", "bump_victim")
"""Those of `KNOWN_FIELDS` that say whether the hidden fields are known."""

_SCENE: Final = 450  # ticks from one set scene to the next
_LONGEST: Final = 1500  # ticks after which there is a new kickoff


def play(simulator: Simulator, ticks: int, seed: int) -> Iterator[tuple[MatchState, bool]]:
    """Play a match between Chasers that do something random now and then."""
    rng, cars = np.random.default_rng(seed), simulator.state.layout.cars
    chaser, parser, state = Chaser(seed), LookupTableAction(), simulator.state
    begin = kickoff(cars // 2)
    since = _LONGEST
    drawn, until = np.zeros(cars, int), np.zeros(cars, int)
    rows = np.zeros((1, cars, 1, 8), np.float32)
    for tick in range(ticks):
        if since >= _LONGEST or state.goal_scored[0]:
            simulator.put([0], begin)
            chaser.reset(range(cars), tick)
            since = 0
            yield state, True
            continue
        if since % _SCENE == _SCENE - 1:
            _set_scene(simulator, (_turn_over, ram, _bump)[since // _SCENE % 3])
            until[:] = tick + 240
        if since % 8 == 1:
            actions = chaser.act(None, state)[0]
            until = np.where((until <= tick) & (rng.random(cars) < 0.02), tick + 120, until)
            drawn = np.where(rng.random(cars) < 0.3, rng.integers(90, size=cars), drawn)
            chosen = np.where(until > tick, drawn, actions)
            rows[:] = parser.parse_batch(chosen[None])
            rows[..., 0][rows[..., 6] > 0] = 1.0  # so that boost is full throttle in both simulators
        since += 1
        simulator.step(rows, np.zeros((1, cars), np.int64))
        yield state, False


def _set_scene(simulator: Simulator, change: Callable[[MatchState, int], None]) -> None:
    desired = simulator.state.copy()
    change(desired, 0)
    derive(desired)
    simulator.put([0], desired)


def _turn_over(state: MatchState, match: int) -> None:
    """Lay the first car on its roof."""
    state.car_position[match, 0] = (-2000.0, -3000.0, 45.0)
    state.car_rotation[match, 0] = np.diag([1.0, -1.0, -1.0])
    state.car_linear_velocity[match, 0] = state.car_angular_velocity[match, 0] = 0.0
    state.car_wheels_with_contact[match, 0] = 0


def _bump(state: MatchState, match: int) -> None:
    """Let the first blue car drive into the first orange one, too slowly to demolish it."""
    ram(state, match)
    state.car_position[match, 0] = (0, -2650, 17)
    state.car_linear_velocity[match, 0] = (0, 1400, 0)
    state.car_supersonic_time[match, 0] = state.car_boost_amount[match] = 0


def as_decoded(state: MatchState, shown: MatchState) -> None:
    """Write what a decoder makes of packets of a state: angles are rounded, what is hidden is a guess."""
    np.copyto(shown.buffer, state.buffer)
    for rotation in (shown.ball_rotation, shown.car_rotation):
        _round_angles(rotation)
    shown.car_wheels_with_contact[:] = state.car_on_ground[..., None]
    shown.car_is_autoflipping[:] = shown.car_autoflip_timer[:] = shown.car_autoflip_direction[:] = 0
    shown.car_bump_victim[:] = -1
    derive(shown)
    shown.car_known[:] = 1
    shown.car_known[..., [KNOWN_FIELDS.index(name) for name in ESTIMATED]] = 0


def _round_angles(turn: np.ndarray) -> None:
    """Send rotation matrices through float32 angles, in place."""
    exact = turn.astype(float)
    angles = (
        np.arctan2(exact[..., 2, 0], np.hypot(exact[..., 0, 0], exact[..., 1, 0])),
        np.arctan2(exact[..., 1, 0], exact[..., 0, 0]),
        np.arctan2(-exact[..., 2, 1], exact[..., 2, 2]),
    )
    (cp, cy, cr), (sp, sy, sr) = (
        [of(angle.astype(np.float32).astype(float)) for angle in angles] for of in (np.cos, np.sin)
    )
    rows = (
        (cp * cy, cy * sp * sr - cr * sy, -cr * cy * sp - sr * sy),
        (cp * sy, sy * sp * sr + cr * cy, -cr * sy * sp + sr * cy),
        (sp, -cp * sr, cp * cr),
    )
    for row, numbers in enumerate(rows):
        for column, number in enumerate(numbers):
            turn[..., row, column] = number


def make_player(name: str, cars: int) -> Simulator:
    """Return a simulator that plays by the rules by which an estimator follows with it."""
    return make_simulator(name, 1, cars, cars)


def record(name: str, cars: int, ticks: int, seed: int = 0) -> list[tuple[MatchState, bool]]:
    """Return the states of a match as decoded, with whether all cars stand on their spots."""
    simulator, found = make_player(name, cars), []
    for state, at_rest in play(simulator, ticks, seed):
        shown = MatchState(cars, cars)
        as_decoded(state, shown)
        found.append((shown, at_rest))
    return found
