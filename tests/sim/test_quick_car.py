"""The quick tick of a car gives the states of the plain one to the last bit."""

import random

import pytest
import RocketSim as rsim

import rlgym_bridge.sim.ruled_arena as ruled_arena
from rlgym_bridge.sim.arena import make_arena
from rlgym_bridge.sim.arena_reader import control_of
from rlgym_bridge.sim.game_car import GameCar
from rlgym_bridge.sim.game_rules import parse_rules
from rlgym_bridge.sim.quick_car import QuickCar, make_car
from rlgym_bridge.sim.ruled_arena import RuledArena

_FIELDS = (
    "pos", "vel", "ang_vel", "rot_mat", "flip_rel_torque", "wheels_with_contact", "is_on_ground", "boost",
    "is_jumping", "has_jumped", "jump_time", "has_flipped", "is_flipping", "has_double_jumped", "flip_time",
    "air_time", "air_time_since_jump", "handbrake_val", "boosting_time",
)  # fmt: skip


def numbers_of(state: rsim.CarState) -> list[object]:
    values = [getattr(state, name) for name in _FIELDS]
    return [value.as_tuple() if hasattr(value, "as_tuple") else value for value in values]


def play(rules: str, team_size: int, ticks: int) -> tuple[list[object], set[str]]:
    """Return all states of a match with all that cars can do, and what of it was seen."""
    teams = [0] * team_size + [1] * team_size
    arena, cars = make_arena(teams)
    world, dice, seen = RuledArena(arena, cars, parse_rules(rules)), random.Random(team_size), set[str]()
    states: list[object] = []
    for tick in range(ticks):
        if tick % 240 == 0:
            spread(arena, cars, dice)
        if tick % 10 == 0:
            for car in cars:
                row = [dice.choice([0, 1, 1, -0.5]), dice.choice([0, 1, -1, 0.3])]
                row += [dice.choice([0, dice.uniform(-1, 1)]) for _ in range(3)]
                row += [dice.random() < 0.3, dice.random() < 0.5, dice.random() < 0.3]
                car.set_controls(control_of(row))
        world.step()
        every = [car.get_state() for car in cars]
        states.append([numbers_of(state) for state in every])
        names = ("is_flipping", "is_jumping", "boosting_time", "handbrake_val", "car_contact_cooldown_timer")
        seen |= {name for name in names for state in every if getattr(state, name)}
        seen |= {"hit" for state in every if state.ball_hit_info.is_valid}
    return states, seen


def spread(arena: rsim.Arena, cars: list[rsim.Car], dice: random.Random) -> None:
    """Put cars on the floor and into the air, the last one and the ball in the first one's way."""
    for number, car in enumerate(cars):
        state = car.get_state()
        heading, high = dice.uniform(-3, 3), 17.0 if number in (0, len(cars) - 1) else dice.uniform(60, 900)
        state.rot_mat = rsim.Angle(heading, 0, 0).as_rot_mat()
        forward = state.rot_mat.forward
        state.pos, state.boost = rsim.Vec(dice.uniform(-900, 900), dice.uniform(-900, 900), high), 100.0
        state.vel = rsim.Vec(1200 * forward.x, 1200 * forward.y, 0)
        car.set_state(state)
    first, last, ball = cars[0].get_state(), cars[-1].get_state(), arena.ball.get_state()
    ahead = first.rot_mat.forward
    last.pos = rsim.Vec(first.pos.x + 700 * ahead.x, first.pos.y + 700 * ahead.y, 17)
    last.vel = rsim.Vec(0, 0, 0)
    cars[-1].set_state(last)
    ball.pos = rsim.Vec(first.pos.x + 350 * ahead.x, first.pos.y + 350 * ahead.y + 60, 93.15)
    arena.ball.set_state(ball)


@pytest.mark.parametrize(("rules", "team_size"), [("game", 1), ("game", 2), ("wheels,jump,dodge", 1)])
def test_the_quick_tick_is_the_plain_one_to_the_bit(
    monkeypatch: pytest.MonkeyPatch, rules: str, team_size: int
) -> None:
    quick, seen = play(rules, team_size, 720)
    monkeypatch.setattr(ruled_arena, "make_car", GameCar)
    plain, _ = play(rules, team_size, 720)
    assert [tick for tick, pair in enumerate(zip(quick, plain, strict=True)) if pair[0] != pair[1]] == []
    assert {"is_flipping", "is_jumping", "boosting_time", "handbrake_val", "hit"} <= seen


def test_cars_with_all_rules_for_wheels_and_jumps_are_quick() -> None:
    _, (car,) = make_arena([0])
    config = car.get_config()
    assert isinstance(make_car(config, parse_rules("game")), QuickCar)
    assert not isinstance(make_car(config, parse_rules("wheels,jump")), QuickCar)
