"""The game's rules do what recordings show, and without them an arena is RocketSim's to the bit."""

import hashlib
import math
import random
from itertools import pairwise

import pytest
import RocketSim as rsim

from rlgym_bridge.sim.arena import make_arena
from rlgym_bridge.sim.arena_reader import ArenaReader, control_of, read_arena, write_arena
from rlgym_bridge.sim.boost_thrust import use_game_thrust
from rlgym_bridge.sim.game_car import CarConstants, GameCar
from rlgym_bridge.sim.game_rules import GAME, RULES, describe_rules, parse_rules
from rlgym_bridge.sim.ruled_arena import RuledArena, cut
from rlgym_bridge.sim.wheel_forces import value_of
from tests.support.states import kickoff


def ruled(rules: str, **fields: object) -> tuple[RuledArena, rsim.Car]:
    arena, (car,) = make_arena([0])
    state = rsim.CarState()
    state.pos, state.boost, state.is_on_ground = rsim.Vec(0, -2000, 17), 100.0, True
    state.wheels_with_contact = (True,) * 4
    for name, value in fields.items():
        setattr(state, name, value)
    mutators = arena.get_mutator_config()
    use_game_thrust(mutators, parse_rules(rules))
    arena.set_mutator_config(mutators)
    car.set_state(state)
    return RuledArena(arena, [car], parse_rules(rules)), car


def hold(world: RuledArena, car: rsim.Car, ticks: int, **controls: float) -> rsim.CarState:
    names = ("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")
    car.set_controls(control_of([controls.get(name, 0.0) for name in names]))
    world.step(ticks)
    return car.get_state()


def hash_of_play(rules: str | None, seed: int) -> str:
    """Play 600 ticks of 1v1 with jumps, boosts and contacts; plain stepping for None."""
    arena, _ = make_arena([])
    cars = write_arena(arena, kickoff(1))
    world = None if rules is None else RuledArena(arena, cars, parse_rules(rules))
    reader, dice, digest = ArenaReader(arena, cars), random.Random(seed), hashlib.sha256()
    for tick in range(600):
        if tick % 8 == 0:
            for car in cars:
                jump, boost = dice.random() < 0.2, dice.random() < 0.6
                row = [1.0, dice.uniform(-0.3, 0.3), dice.uniform(-1, 1), 0.0, 0.0, jump, boost, 0.0]
                car.set_controls(control_of(row))
        if world is None:
            arena.step(1)
        else:
            world.step()
        digest.update(read_arena(reader).buffer.tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("speed", [900.0, 1800.0])
def test_a_bump_goes_by_the_bumpers_whole_speed(speed: float) -> None:
    ends = {}
    for rules in ("wheels", "wheels,bump"):
        arena, cars = make_arena([0, 1])
        for car, (y, fast) in zip(cars, ((-140.0, speed), (0.0, 0.0)), strict=True):
            state = rsim.CarState()
            state.pos, state.vel = rsim.Vec(0, y, 17), rsim.Vec(0, fast, 0)
            state.rot_mat = rsim.Angle(math.pi / 2, 0, 0).as_rot_mat()
            state.is_on_ground, state.wheels_with_contact = True, (True,) * 4
            car.set_state(state)
        world, speeds = RuledArena(arena, cars, parse_rules(rules)), [speed]
        while not cars[0].get_state().car_contact_cooldown_timer:
            world.step()
            speeds.append(cars[0].get_state().vel.y)
        ends[rules], at = cars[1].get_state().vel, speeds[-2]
    share = at / 1400 if at < 1400 else 1 + (at - 1400) / 800
    ahead = (5 / 6, 4000 / 3.6, 5500 / 3.6)
    low = int(share)
    game = ahead[low] + (ahead[low + 1] - ahead[low]) * (share - low)
    theirs = ((0, 5 / 6), (1400, 1100.0), (2200, 1530.0))
    rocketsim = value_of(theirs, at - 525 / 120)  # its wheels brake before bodies meet
    assert ends["wheels,bump"].y - ends["wheels"].y == pytest.approx(game - rocketsim, abs=1.2)


def test_touching_cars_keep_the_games_brake() -> None:
    arena, cars = make_arena([0, 0])
    for car, y in zip(cars, (-118.2, 0.0), strict=True):
        state = rsim.CarState()
        state.pos, state.vel = rsim.Vec(0, y, 17), rsim.Vec(0, 400 + y, 0)
        state.rot_mat = rsim.Angle(math.pi / 2, 0, 0).as_rot_mat()
        state.is_on_ground, state.wheels_with_contact = True, (True,) * 4
        car.set_state(state)
    world, speeds = RuledArena(arena, cars, parse_rules("wheels")), []
    for _ in range(12):
        world.step()
        speeds.append([car.get_state().vel.y for car in cars])
    coasting = [before - after for before, after in pairwise(sum(one) / 2 for one in speeds)]
    assert coasting == pytest.approx([525 / 120] * 11, abs=0.4)


def test_without_rules_an_arena_is_rocketsims_to_the_bit() -> None:
    assert hash_of_play("rocketsim", 3) == hash_of_play(None, 3)


def test_equal_seeds_give_equal_matches_with_rules() -> None:
    first = hash_of_play("game", 3)
    assert first == hash_of_play("game", 3)
    assert first != hash_of_play("rocketsim", 3)


def test_components_are_cut_towards_zero_and_zero_stays() -> None:
    assert cut(12.3456, 100) == pytest.approx(12.341, abs=1e-9)
    assert cut(-12.3456, 100) == pytest.approx(-12.341, abs=1e-9)
    assert cut(0.0, 100) == 0.0
    assert cut(0.00049, 10000) == pytest.approx(0.00041, abs=1e-12)


def test_velocities_and_places_have_the_games_digits() -> None:
    world, car = ruled("velocity_cut,position_rounding")
    world.arena.ball.set_state(_ball(300.0))
    for tick in range(240):
        state = hold(world, car, 1, throttle=1, steer=0.5, jump=tick % 60 < 20, pitch=0.3)
        for body in (state, world.arena.ball.get_state()):
            for quanta, vector in ((100, body.vel), (10000, body.ang_vel)):
                for part in vector.as_tuple():
                    assert part == 0 or (abs(part) * quanta) % 1 == pytest.approx(
                        0.1, abs=0.02 * quanta / 100
                    )
            for part in body.pos.as_tuple():
                assert part == pytest.approx(round(part, 2), abs=3e-4)


def _ball(speed: float) -> rsim.BallState:
    ball = rsim.BallState()
    ball.pos, ball.vel = rsim.Vec(500, 0, 900), rsim.Vec(speed, 20.0, 0)
    return ball


def test_a_ball_at_rest_is_left_at_rest() -> None:
    world, _ = ruled("game")
    world.step(60)
    ball = world.arena.ball.get_state()
    assert ball.vel.as_tuple() == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("throttle", [0.0, 1.0, -1.0])
@pytest.mark.parametrize("rules", ["thrust", "game"])
def test_boost_in_the_air_is_the_same_with_any_throttle(rules: str, throttle: float) -> None:
    world, car = ruled(rules, pos=rsim.Vec(0, 0, 1000), is_on_ground=False, wheels_with_contact=(False,) * 4)
    before = car.get_state().vel.x
    after = hold(world, car, 60, boost=1, throttle=throttle)
    assert (after.vel.x - before) * 2 == pytest.approx(1058.33, abs=1.3)
    assert car.get_controls().throttle == throttle


def test_throttle_acts_in_its_own_tick() -> None:
    assert hold(*ruled("wheels"), 1, throttle=1).vel.x == pytest.approx(1600 / 120, abs=0.1)
    assert hold(*ruled("rocketsim"), 1, throttle=1).vel.x == pytest.approx(0.0, abs=0.1)


def test_steering_acts_in_its_own_tick() -> None:
    fast = {"vel": rsim.Vec(1000, 0, 0)}
    assert hold(*ruled("wheels", **fast), 1, throttle=1, steer=1).ang_vel.z > 0.1
    assert abs(hold(*ruled("rocketsim", **fast), 1, throttle=1, steer=1).ang_vel.z) < 1e-3


def test_a_jump_pushes_with_full_force_from_its_first_tick() -> None:
    gains = []
    for rules in ("jump", "rocketsim"):
        air = {"is_on_ground": False, "wheels_with_contact": (False,) * 4, "pos": rsim.Vec(0, 0, 300)}
        held = control_of([0, 0, 0, 0, 0, 1, 0, 0])
        world, car = ruled(
            rules, is_jumping=True, has_jumped=True, jump_time=1 / 120, last_controls=held, **air
        )
        gains.append(hold(world, car, 1, jump=1).vel.z * 120 + 650)
    assert gains == pytest.approx([4375 / 3, 0.62 * 4375 / 3], abs=0.1)  # uu/s^2


def test_a_dodge_turns_in_the_tick_of_its_press() -> None:
    air = {"is_on_ground": False, "wheels_with_contact": (False,) * 4, "pos": rsim.Vec(0, 0, 600)}
    for rules, torque in (("dodge", 224.0), ("rocketsim", 0.0)):
        world, car = ruled(rules, has_jumped=True, jump_time=0.1, **air)
        assert hold(world, car, 1, jump=1, pitch=-1).ang_vel.y * 120 == pytest.approx(torque, abs=13)


def test_a_dodge_turns_for_79_ticks() -> None:
    air = {"is_on_ground": False, "wheels_with_contact": (False,) * 4, "pos": rsim.Vec(0, 0, 1500)}
    world, car = ruled("dodge", has_jumped=True, jump_time=0.1, **air)
    flips = [hold(world, car, 1, jump=1, pitch=-1).is_flipping for _ in range(90)]
    assert flips == [True] * 79 + [False] * 11


@pytest.mark.parametrize("seed", [1, 2])
def test_without_rules_the_cars_tick_is_rocketsims(seed: int) -> None:
    """Drive, slide, jump and fly by chance; each tick is computed from RocketSim's state before it."""
    world, car = ruled("rocketsim")
    world.arena.set_car_ball_collision(False)
    constants = CarConstants.of(world.arena.get_mutator_config())
    ours, dice, off, computed = GameCar(car.get_config(), frozenset()), random.Random(seed), [], 0
    for tick in range(240):
        if tick % 12 == 0:
            row = [
                dice.choice([0, 1, 1, -1]),
                dice.choice([0, 1, -1]),
                dice.uniform(-1, 1),
                dice.uniform(-1, 1),
            ]
            row += [dice.uniform(-1, 1), dice.random() < 0.3, dice.random() < 0.3, dice.random() < 0.2]
            car.set_controls(control_of(row))
        before = car.get_state()
        world.step()
        theirs, after = car.get_state(), car.get_state()
        computed += ours.play(before, after, car.get_controls(), constants)
        off.append(max(abs(a - b) for a, b in zip(after.vel.as_tuple(), theirs.vel.as_tuple(), strict=True)))
        assert after.is_flipping == theirs.is_flipping and after.is_jumping == theirs.is_jumping
    assert computed > 200
    assert sorted(off)[-5] < 0.05  # uu/s; float32, and rays that just reach


def test_rules_are_read_by_name_and_written_as_they_were_given() -> None:
    assert parse_rules("rocketsim") == frozenset() and parse_rules("game") == GAME
    assert parse_rules("thrust, wheels") == parse_rules(["wheels", "thrust"])
    for text in ("rocketsim", "default", "game", "velocity_cut,thrust"):
        assert describe_rules(parse_rules(text)) == text
    assert set(RULES) == GAME


@pytest.mark.parametrize("given", ["gravity", "wheels,fast", ""])
def test_unknown_and_excluding_rules_are_refused(given: str) -> None:
    with pytest.raises(ValueError, match=r"rocketsim, default, game|exclude each other"):
        parse_rules(given)


def test_rules_for_cars_alone_leave_the_ball() -> None:
    ends = []
    for with_ball in (True, False):
        arena, (car,) = make_arena([0])
        ball = rsim.BallState()
        ball.pos, ball.vel = rsim.Vec(2000, 2000, 1500), rsim.Vec(1.23456, 0, 0)
        arena.ball.set_state(ball)
        world = RuledArena(arena, [car], parse_rules("velocity_cut,position_rounding"), with_ball)
        ends.append((hold(world, car, 60, throttle=1.0, steer=0.3).pos, arena.ball.get_state().vel.x))
    (cut_car, cut_ball), (other_car, other_ball) = ends
    assert cut_car.as_tuple() == other_car.as_tuple()
    assert cut_ball != other_ball and cut_ball == pytest.approx(round(cut_ball - 0.001, 2) + 0.001, abs=1e-5)
