"""The ball to come is where it goes while nobody touches it, the same bits wherever its numbers come from."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rlgym_bridge import LookupTableAction, RelativeObs, TeamObs, VectorEnv, forecast_ball
from rlgym_bridge.components import ball_ahead, ball_flights
from rlgym_bridge.components.ball_ahead import SECONDS
from rlgym_bridge.components.ball_flights import BallFlights
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.symmetry import Mirror
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.sim.simulator import ROCKETSIM3, make_simulator
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.extras import load_native
from tests.parity.scenes import Director
from tests.parity.world import drive, make_match, through_bytes
from tests.support.policy_folders import random_weights, save, spec
from tests.support.simulators import both, needs_native
from tests.support.states import random_state
from tests.support.vector_parts import BallAhead, components

pytestmark = needs_native
TICKS = (30, 60, 120, 240)


def alone(matches: int, seed: int) -> MatchState:
    """Return states with balls all over the field and no cars."""
    state, random = MatchState(0, 0, matches), np.random.default_rng(seed)
    state.gravity[:] = state.ball_known[:] = 1
    state.ball_position[:] = random.uniform((-3900, -4900, 93), (3900, 4900, 1900), (matches, 3))
    state.ball_linear_velocity[:] = random.uniform(-2000, 2000, (matches, 3))
    state.ball_angular_velocity[:] = random.uniform(-3, 3, (matches, 3))
    state.ball_rotation[:] = np.eye(3)
    low = random.random(matches) < 0.4
    state.ball_position[low, 2], state.ball_linear_velocity[low, 2] = 93.15, 0
    return state


def distances() -> np.ndarray:
    """Return how far 400 balls are from their forecasts after each of `TICKS`, `(times, 400)` uu."""
    simulator = make_simulator(ROCKETSIM3, 400, 0, 0)
    simulator.put(range(400), alone(400, 1))
    forecast = forecast_ball(simulator.state)
    off = []
    for before, ticks in zip((0, *TICKS), TICKS, strict=False):
        simulator.step(np.zeros((400, 0, ticks - before, 8), np.float32))
        off.append(np.linalg.norm(forecast[:, len(off), :3] - simulator.state.ball_position, axis=1))
    return np.array(off)


def test_it_is_where_the_ball_goes_in_rocketsim() -> None:
    off = distances()
    assert np.median(off, axis=1).max() == 0
    for each, most in zip(off, (0.1, 1, 3, 10), strict=True):
        assert np.quantile(each, 0.9) < most
    assert (off > 100).mean() < 0.02, "chance at corners and posts"


@both
@pytest.mark.parametrize(
    "ticks", [800, pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
def test_training_and_matches_see_the_same_bits(name: str, ticks: int) -> None:
    match = make_match(2, 5, simulator=name, dialect=ProtocolVariant({"pad_timer": "remaining"}))
    decoder, compared, moving = Decoder(field_info(), simulator=name), 0, 0
    for number, sent in enumerate(drive(match, 5, Director(match, 5))):
        state = decoder.update(through_bytes(sent))
        if number < 480:
            continue
        training = forecast_ball(match.simulation.state.copy()) if number % 8 == 0 else None
        if training is not None or number % 8 == 3:  # other ticks than those of the decisions are between
            shown = forecast_ball(state)
            if training is not None:
                assert shown.tobytes() == training.tobytes()
                compared, moving = compared + 1, moving + bool(shown[..., 3:].any())
        if number >= 480 + ticks:
            break
    assert compared > ticks / 8 - 2 and moving > compared / 2


def test_equal_balls_give_equal_bits_whatever_came_before() -> None:
    state = alone(64, 2)
    first = forecast_ball(state)
    for seed in range(3):
        forecast_ball(alone(64, seed + 10))
    again = forecast_ball(state)
    order = np.random.default_rng(0).permutation(64)
    mixed = MatchState(0, 0, 64, state.buffer[order])
    one = MatchState(0, 0, 1, state.buffer[:1].copy())
    assert first.tobytes() == again.tobytes()
    assert forecast_ball(mixed).tobytes() == first[order].tobytes()
    assert forecast_ball(one).tobytes() == first[:1].tobytes()


def test_a_flight_that_goes_on_is_the_one_that_begins_there() -> None:
    now = alone(64, 3)
    every = forecast_ball(now, [tick / 120 for tick in range(1, 61)])
    for tick in (1, 8, 9, 40, 60):  # a later ball that has been seen coming
        forecast_ball(now)
        later = now.copy()
        for name, part in (("position", slice(0, 3)), ("linear_velocity", slice(3, 6))):
            getattr(later, f"ball_{name}")[:] = every[:, tick - 1, part]
        later.ball_angular_velocity[:] = spins(now, tick)
        going_on = forecast_ball(later)
        forecast_ball(alone(64, 30 + tick))
        assert going_on.tobytes() == forecast_ball(later).tobytes()


def spins(state: MatchState, ticks: int) -> np.ndarray:
    import rocketsim_batch

    balls = np.concatenate(
        [np.ones((state.matches, 1)), state.ball_position, state.ball_linear_velocity,
         state.ball_angular_velocity], 1,
    ).astype(np.float32)  # fmt: skip
    found: np.ndarray = rocketsim_batch.BallFlights([ticks]).forecast(balls)[:, 0, 6:]
    return found


def test_gravity_is_the_states_and_a_ball_without_speed_stays() -> None:
    state = alone(3, 4)
    state.ball_position[:], state.ball_linear_velocity[:] = (0, 0, 1500), (0, 0, 0.02)
    state.ball_angular_velocity[:] = 0
    state.gravity[:] = (1, 0, 0.5)
    heights = forecast_ball(state, (0.5,))[:, 0, 2]
    assert heights[1] == pytest.approx(1500, abs=1)
    assert (1500 - heights[0]) == pytest.approx(2 * (1500 - heights[2]), rel=0.01)
    state.ball_linear_velocity[:] = 0
    assert (forecast_ball(state)[..., :3] == (0, 0, 1500)).all()


def test_an_observation_shows_it_from_the_car_at_the_end() -> None:
    state = random_state(2, 1, seed=3, matches=5)
    plain, ours = RelativeObs(3), RelativeObs(3, ball_ahead=[0.25, 1])
    obs, size = ours.build_batch(state), plain.size(2, 1)
    assert obs.shape == (5, 3, size + 12) and ours.size(2, 1) == size + 12
    np.testing.assert_array_equal(obs[..., :size], plain.build_batch(state))
    forecast = forecast_ball(state, (0.25, 1))
    for match in range(5):
        for car in range(3):
            axes = state.car_rotation[match, car]
            for time in range(2):
                away = forecast[match, time, :3] - state.car_position[match, car]
                speed = forecast[match, time, 3:] - state.car_linear_velocity[match, car]
                expected = np.concatenate([away @ axes, speed @ axes]) / 2300
                np.testing.assert_allclose(obs[match, car, size + 6 * time :][:6], expected, atol=2e-5)
    names = ours.names(2, 1)
    assert names[:size] == plain.names(2, 1) and len(set(names)) == size + 12
    assert names[size] == "relative/ball_in_0.25_s/position/forward"
    assert names[-1] == "relative/ball_in_1_s/linear_velocity/up"
    np.testing.assert_array_equal(ours.build_batch(state, [2]), obs[:, [2]])
    ours.reset(["blue-0"], to_rlgym(random_state(1, 1, seed=1)), {})
    assert ours.get_obs_space("blue-0")[1] == obs.shape[2]


def test_team_obs_ends_with_what_relative_obs_ends_with() -> None:
    state = random_state(2, 1, seed=3, matches=5)
    ours, theirs = TeamObs(3, ball_ahead=SECONDS), RelativeObs(3, ball_ahead=SECONDS)
    obs, size = ours.build_batch(state, [2, 0]), TeamObs(3).size(2, 1)
    np.testing.assert_array_equal(obs[..., :size], TeamObs(3).build_batch(state, [2, 0]))
    np.testing.assert_array_equal(obs[..., size:], theirs.build_batch(state, [2, 0])[..., -24:])
    names = ours.names(2, 1)
    assert names[size:] == theirs.names(2, 1)[-24:] and len(names) == obs.shape[2]
    assert ours.get_obs_space("blue-0") == ("real", obs.shape[2])
    assert Mirror(names, LookupTableAction.make_lookup_table()).applies(obs).shape == (5, 2)


def test_a_policy_with_it_is_saved_and_loaded(tmp_path: Any) -> None:
    obs = spec(RelativeObs, zero_padding=None, ball_ahead=[0.5, 2])
    save(tmp_path, obs=obs, weights=random_weights(RelativeObs(None).size(1, 1) + 12, 32, 90))
    assert load_policy(tmp_path).manifest.obs == obs
    assert "ball_ahead" not in spec(RelativeObs, zero_padding=None).args


def test_matches_that_begin_anew_see_their_own_balls() -> None:
    env = VectorEnv(
        6,
        lambda: components(obs_builder=RelativeObs(None, ball_ahead=SECONDS), state_mutator=BallAhead()),
        seed=1,
    )
    seen = env.reset()
    for _ in range(40):
        expected = RelativeObs(None, ball_ahead=(0.25, 0.5, 1.0, 2.0)).build_batch(env.state.copy())
        np.testing.assert_array_equal(seen, expected)
        seen = env.step(np.zeros((6, 2), np.int64)).obs


@pytest.mark.parametrize(
    "value", [(), 0.5, (0,), (-1,), (11,), (1, 0.5), (1, 1), "abc", (True,), (float("nan"),)]
)
def test_times_that_are_none_are_refused(value: Any) -> None:
    words = r"expected rising seconds from 0\.0083 \(a tick\) to 10, such as"
    with pytest.raises(ValueError, match=f"ball_ahead is .*{words}"):
        RelativeObs(3, ball_ahead=value)
    with pytest.raises(ValueError, match=f"seconds is .*{words}"):
        forecast_ball(random_state(1, 1, seed=1), value)


@pytest.fixture
def without_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let forecasts be made as where `rocketsim_batch` is not installed."""
    monkeypatch.setattr(ball_ahead, "find_spec", lambda name: None)
    monkeypatch.setattr(ball_ahead, "_own", threading.local())
    yield


def test_without_the_module_the_ball_comes_the_same_way(without_module: None) -> None:
    off = distances()
    assert (np.median(off, axis=1) < (0.1, 0.3, 1, 3)).all()
    assert (np.quantile(off, 0.9, axis=1) < (1, 5, 20, 60)).all()
    assert (np.mean(off > 100, axis=1) < (0.02, 0.03, 0.04, 0.08)).all(), "posts and corners"


def test_without_the_module_many_ticks_at_once_are_as_single(monkeypatch: pytest.MonkeyPatch) -> None:
    state = alone(200, 5)
    balls = np.concatenate(
        [np.ones((200, 1)), state.ball_position, state.ball_linear_velocity, state.ball_angular_velocity], 1
    ).astype(np.float32)
    balls[::7, 0], balls[::11, 0] = 0.5, -0.3
    quick = BallFlights(range(1, 241)).forecast(balls)
    assert BallFlights([240, 7]).forecast(balls).tobytes() == quick[:, [239, 6]].tobytes()
    monkeypatch.setattr(ball_flights, "_free_ticks", lambda *of: 1)
    monkeypatch.setattr(ball_flights, "_rolling_ticks", lambda *of: 0)
    np.testing.assert_allclose(quick, BallFlights(range(1, 241)).forecast(balls), atol=2e-3)


def test_without_the_module_balls_stay_in_the_field(without_module: None) -> None:
    state = alone(300, 6)
    state.ball_linear_velocity[:] *= 3
    away = np.abs(forecast_ball(state, [0.1, 1, 5, 10])[..., :3])
    assert np.isfinite(away).all() and away[..., 2].max() < 2048 and away[..., 1].max() < 6000
    assert away[..., 0].max() < 4100 and (away[..., 0] + away[..., 1]).max() < 8064


def test_without_collision_meshes_it_is_the_same_model(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    state = alone(20, 7)
    monkeypatch.setattr(ball_ahead, "_own", threading.local())
    monkeypatch.setenv("RLGYM_BRIDGE_MESHES", "/there/are/none")
    without_meshes = forecast_ball(state)
    (said,) = (one.getMessage() for one in caplog.records)
    assert "less exact than in training" in said and "/there/are/none" in said
    monkeypatch.setattr(ball_ahead, "_own", threading.local())
    monkeypatch.setattr(ball_ahead, "find_spec", lambda name: None)
    assert without_meshes.tobytes() == forecast_ball(state).tobytes()


@pytest.mark.parametrize("ticks", [[], [0], [1201], [float("nan")], [1.5]], ids=str)
def test_forecasts_of_other_ticks_are_refused(ticks: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"ticks are .*, expected whole numbers from 1 to 1200"):
        BallFlights(ticks)


def test_a_policy_plays_with_and_without_the_module(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    obs = spec(RelativeObs, zero_padding=None, ball_ahead=SECONDS)
    save(tmp_path, obs=obs, weights=random_weights(RelativeObs(None).size(1, 1) + 24, 32, 90))
    monkeypatch.setattr(ball_ahead, "find_spec", lambda name: None)
    monkeypatch.setattr(ball_ahead, "_own", threading.local())
    assert load_policy(tmp_path).manifest.obs == obs


def test_a_ball_that_no_match_has_is_refused() -> None:
    state = alone(2, 1)
    state.ball_linear_velocity[1, 2] = np.nan
    balls = np.zeros((2, 10), np.float32)
    balls[1, 6] = np.nan
    for forecast in (lambda: forecast_ball(state), lambda: BallFlights([30]).forecast(balls)):
        with pytest.raises(
            ValueError, match="velocity of ball 1 has NaN, expected numbers from -100000 to 100000"
        ):
            forecast()


def test_a_stale_build_of_the_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import rocketsim_batch

    load_native.cache_clear()
    monkeypatch.setattr(rocketsim_batch, "INTERFACE", 1)
    with pytest.raises(ImportError, match=r"has interface 1, expected \d; build it anew: "):
        forecast_ball(MatchState(1, 1), (0.125,))
    monkeypatch.undo()
    assert forecast_ball(MatchState(1, 1), (0.125,)).shape == (1, 1, 6)
