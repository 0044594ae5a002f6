"""A recording is simulated with the rules of the game that it shows, and says why."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import RocketSim as rsim

from rlgym_bridge.cli import main
from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.findings.rule_tests import RulesFit, Shown
from rlgym_bridge.compare.findings.shown_rules import fit_rules
from rlgym_bridge.compare.findings.significance import binomial_tail, sign_test
from rlgym_bridge.compare.findings.velocity_digits import read_digits
from rlgym_bridge.compare.fit.clock_fit import fit_timeline
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.output.simulated_ghosts import ghosts
from rlgym_bridge.derived_fields import derive
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.sim.arena import make_arena, place_cars, scale_constants
from rlgym_bridge.sim.arena_reader import ArenaReader, control_of
from rlgym_bridge.sim.boost_thrust import use_game_thrust
from rlgym_bridge.sim.game_rules import DEFAULT, GAME, ROCKETSIM, parse_rules
from rlgym_bridge.sim.ruled_arena import RuledArena
from rlgym_bridge.state import MatchState
from tests.support.false_alarms import alarms
from tests.support.real_data import COLUMNS, real

Adjust = Callable[[rsim.MutatorConfig], None]


def played(rules: str, flights: int, cars: int = 0, adjust: Adjust | None = None) -> Recording:
    """Return flights of the ball of 0.6 s, and beside them a car that drives in bends."""
    arena, players = make_arena([0] * cars)
    config = arena.get_mutator_config()
    if adjust is not None:
        adjust(config)
    arena.set_mutator_config(config)
    ruled = RuledArena(arena, players, parse_rules(rules))
    random, every = np.random.default_rng(0), 72
    rows = flights * every
    state, reader = MatchState(1, cars, rows), ArenaReader(arena, players)
    for car in players:
        start = rsim.CarState()
        start.pos, start.vel = rsim.Vec(-2000, -3000, 17.01), rsim.Vec(0, 600, 0)
        start.rot_mat = rsim.Angle(np.pi / 2, 0, 0).as_rot_mat()
        car.set_state(start)
    for row in range(rows):
        if row % every == 0:
            ball = rsim.BallState()
            ball.pos, ball.vel = rsim.Vec(1500, 0, 1000), rsim.Vec(*random.uniform(-900, 900, 3))
            arena.ball.set_state(ball)
        for car in players:
            car.set_controls(control_of([(1, 0, -0.5)[row // 40 % 3], (0.5, -0.4)[row // 50 % 2], *[0] * 6]))
        ruled.step()
        reader.read_into(state, row)
    derive(state)
    state.gravity[:] = 1
    tick, segment = np.arange(rows), np.arange(rows, dtype=np.int32) // every
    shown = np.full((rows, state.layout.cars), cars > 0)
    return Recording(
        "played", state, tick, tick / 120, segment * (cars == 0), np.ones(rows, bool), shown,
        inputs=Inputs.APPLIED if cars else Inputs.NONE,
    )  # fmt: skip


def printed(recording: Recording) -> Recording:
    """Return a recording whose numbers keep two digits after the point, as a replay's do."""
    for values in (recording.state.ball_position, recording.state.ball_linear_velocity):
        values[:] = np.round(values, 2)
    recording.state.ball_angular_velocity[:] = 0
    return recording


def fitted(recording: Recording) -> RulesFit:
    return fit_rules(TimedRecording(recording, fit_timeline(recording)), 20)[1]


def test_digits_tell_the_game_from_rocketsim() -> None:
    game, other = read_digits(played("game", 2, 1)), read_digits(played("rocketsim", 2, 1))
    assert game.cut > 0.98 * game.velocities > 300 and game.rounded == game.positions
    assert other.cut < 0.15 * other.velocities and not other.coarse and other.rounded < 0.2 * other.positions


def test_flights_tell_the_game_where_digits_are_gone() -> None:
    found = fitted(printed(played("velocity_cut", 20)))
    assert found.rules == {"velocity_cut"} and found.of("velocity_cut") is Shown.SHOWN


def test_flights_of_rocketsim_show_no_cut() -> None:
    found = fitted(printed(played("rocketsim", 20)))
    assert not found.rules and found.of("velocity_cut") is Shown.ABSENT


@pytest.mark.parametrize("changed", [{"ball_drag": 1.03}, {"gravity": 1.001}])
def test_a_constant_that_differs_is_not_taken_for_the_cut(changed: dict[str, float]) -> None:
    found = fitted(printed(played("rocketsim", 20, adjust=lambda config: scale_constants(config, changed))))
    assert not found.rules and found.of("velocity_cut") is not Shown.SHOWN


@pytest.mark.slow
def test_a_car_that_the_game_drives_shows_its_wheels() -> None:
    recording = played("game", 20, 1)
    found = fitted(recording)
    assert found.of("wheels") is Shown.SHOWN and found.rules == GAME
    assert (
        "wheels shown (nearer to the recording in" in found.told() and "all rules of the game" in found.told()
    )


def test_a_car_that_rocketsim_drives_shows_none() -> None:
    found = fitted(played("rocketsim", 20, 1))
    assert found.of("wheels") is Shown.ABSENT and found.rules == ROCKETSIM


@pytest.mark.parametrize(
    ("control", "factor"),
    [
        ("steer", 1.2),
        pytest.param("throttle", 0.9, marks=pytest.mark.slow),
        pytest.param("steer", 0.0, marks=pytest.mark.slow),
    ],
)
def test_wrong_inputs_are_not_taken_for_rules(control: str, factor: float) -> None:
    recording = played("rocketsim", 20, 1)
    recording.state.car_controls[..., CONTROL_NAMES.index(control)] *= factor
    assert fitted(recording).rules == ROCKETSIM


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["rocketsim", "game"])
def test_late_inputs_are_not_taken_for_rules(rules: str) -> None:
    recording = played(rules, 30, 1)
    recording.inputs = Inputs.SENT
    recording.state.car_controls[:-4] = recording.state.car_controls[4:].copy()  # 3 ticks late
    scene = TimedRecording(recording, fit_timeline(recording))
    lag, found = fit_rules(scene, 40)
    assert lag.ticks == 3 and found.rules == parse_rules(rules)


def flown(rules: str, flights: int) -> Recording:
    """Return flights of a car that boosts in the air with full throttle, each of a second."""
    arena, (car,) = make_arena([0])
    config = arena.get_mutator_config()
    use_game_thrust(config, parse_rules(rules))
    arena.set_mutator_config(config)
    random, every = np.random.default_rng(0), 120
    state = MatchState(1, 0, flights * every)
    for row in range(len(state.buffer)):
        if row % every == 0:
            (car,) = place_cars(arena, [0])
            reader, start = ArenaReader(arena, [car]), rsim.CarState()
            start.pos, start.boost = rsim.Vec(*random.uniform(-1500, 1500, 2), 900), 100
            start.rot_mat = rsim.Angle(*random.uniform(0, 0.5, 3)).as_rot_mat()
            start.vel, start.is_on_ground = rsim.Vec(*random.uniform(-500, 500, 3)), False
            start.wheels_with_contact = (False,) * 4
            car.set_state(start)
        car.set_controls(control_of([1, *[0] * 5, 1, 0]))
        arena.step(1)
        reader.read_into(state, row)
    derive(state)
    state.gravity[:] = 1
    tick = np.arange(len(state.buffer))
    there = np.ones(len(tick), bool)
    return Recording(
        "flown", state, tick, tick / 120, (tick // every).astype(np.int32), there, there[:, None]
    )


def test_thrust_is_shown_by_cars_that_boost_in_the_air() -> None:
    assert fitted(flown("default", 16)).rules == DEFAULT
    assert fitted(flown("rocketsim", 16)).rules == ROCKETSIM


def test_rules_that_a_recording_has_written_down_are_used() -> None:
    recording = replace(flown("default", 4), rules="default")
    found = fitted(recording)
    assert found.rules == DEFAULT and found.recorded and not found.tests
    used = "simulated by RocketSim with the default rules of matches (thrust)"
    assert found.told() == f"{used}, as the recording says"
    assert not fitted(replace(recording, rules="of a later version")).recorded


@pytest.mark.slow
def test_a_match_of_the_default_rules_agrees() -> None:
    (_, _, claims), *_ = alarms(2, 2, rules="default")
    assert not claims


def test_rules_that_are_asked_for_are_used_untested() -> None:
    recording = played("rocketsim", 4)
    found = compare_recordings(recording, windows=10, rules="velocity_cut,thrust").as_json()
    assert found["fits"][0]["rules"] == {
        "used": "velocity_cut,thrust", "asked_for": True, "recorded": False, "tests": [],
    }  # fmt: skip
    off = next(row for row in found["situations"] if row["name"] == "ball" and row["horizon_ticks"] == 60)
    assert off["p50"] > 0.05
    with pytest.raises(ValueError, match="rule 'fast' is unknown"):
        compare_recordings(recording, rules="fast")


def test_ghosts_follow_the_rules_that_a_recording_shows() -> None:
    recording = played("velocity_cut,position_rounding", 4)
    assert ghosts(recording, 60).distance.max() < 0.01 < ghosts(recording, 60, "rocketsim").distance.max()


def test_chances_of_hits_are_those_of_a_binomial() -> None:
    assert binomial_tail(7, 9, 0.5) == pytest.approx(sign_test(7, 2))
    assert binomial_tail(0, 5, 0.1) == pytest.approx(1)
    assert 0 < binomial_tail(400, 500, 0.1) < 1e-9 < 1 == binomial_tail(10, 500, 0.1)


@pytest.mark.parametrize("name", ["ball/episode_000000.csv", "replays/3_DRIBBLE_2_FLICKS.replay"])
def test_real_balls_show_the_cut_from_autumn_2018_on(tmp_path: Path, name: str) -> None:
    columns = COLUMNS / "lobot-ball.toml" if name.endswith("csv") else None
    found = fitted(open_recording(real(name), columns))
    assert found.of("velocity_cut") is (Shown.ABSENT if columns else Shown.SHOWN)


@pytest.mark.slow
def test_balls_of_replays_are_followed_for_a_second(tmp_path: Path) -> None:
    main(
        [
            "compare",
            str(real("replays/KICKOFF_TEST_1.replay")),
            "--windows",
            "60",
            "-q",
            "--json",
            str(tmp_path / "found.json"),
        ]
    )
    found = json.loads((tmp_path / "found.json").read_text())
    (row,) = (one for one in found["situations"]
              if one["name"] == "ball in the air" and one["horizon_ticks"] == 120)  # fmt: skip
    assert row["p50"] <= 0.05
