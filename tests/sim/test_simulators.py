"""Both simulators keep one contract: `Simulator`."""

import numpy as np
import pytest

from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.game import BLUE, CONTROL_NAMES
from rlgym_bridge.sim import simulator as simulator_module
from rlgym_bridge.sim.simulator import (
    EVENT,
    NEVER,
    ROCKETSIM2,
    ROCKETSIM3,
    EventKind,
    Simulator,
    SimulatorError,
    make_simulator,
    simulator_for,
)
from rlgym_bridge.state import MatchState, derive
from rlgym_bridge.user_input.extras import explain_native
from tests.support.simulators import both, needs_native


def scene(matches: int = 2) -> MatchState:
    """Return matches in which a car drives beside a ball that falls."""
    state = blank_state(1, 1, matches)
    state.ball_position[:] = (800.0, 0.0, 400.0)
    state.ball_linear_velocity[:] = (100.0, 50.0, 0.0)
    state.car_position[:, 0], state.car_position[:, 1] = (0.0, -1500.0, 17.0), (500.0, 1500.0, 17.0)
    state.car_rotation[:, 0] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    state.car_linear_velocity[:, 0] = (0.0, 900.0, 0.0)
    state.car_boost_amount[:] = 50.0
    state.car_wheels_with_contact[:] = 1
    derive(state)
    return state


def rows(simulator: Simulator, ticks: int, **controls: float) -> np.ndarray:
    """Return one control vector for every car and tick."""
    found = np.zeros((*simulator.state.car_team.shape, ticks, 8), np.float32)
    for name, value in controls.items():
        found[..., CONTROL_NAMES.index(name)] = value
    return found


def started(name: str) -> Simulator:
    """Return two matches in the scene."""
    simulator = make_simulator(name, 2, 1, 1)
    simulator.put([0, 1], scene())
    return simulator


@both
def test_derived_fields_are_those_of_derive(name: str) -> None:
    simulator = started(name)
    for _ in range(10):
        simulator.step(rows(simulator, 8, throttle=1.0, jump=1.0))
        again = simulator.state.copy()
        derive(again)
        assert np.array_equal(again.buffer, simulator.state.buffer)


@both
def test_frames_count_the_ticks_and_actions_act_one_tick_late(name: str) -> None:
    simulator = started(name)
    simulator.step(rows(simulator, 1, throttle=1.0))
    assert simulator.state.frame.tolist() == [1, 1]
    assert (simulator.state.car_controls == 0).all()
    simulator.step(rows(simulator, 1, throttle=1.0))
    assert (simulator.state.car_controls[..., 0] == 1).all()


@both
def test_the_ball_s_forecast_is_where_it_goes(name: str) -> None:
    simulator = started(name)
    forecast = simulator.forecast_ball(0, 40, every=8)
    for frame in forecast:
        simulator.step(rows(simulator, 8))
        assert np.array_equal(frame[:3], simulator.state.ball_position[0])


@both
def test_a_nudge_moves_what_it_names_and_nothing_else(name: str) -> None:
    simulator = started(name)
    simulator.step(rows(simulator, 8, throttle=1.0))
    desired = simulator.state.copy()
    desired.car_position[:] += (0.0, 10.0, 0.0)
    desired.ball_position[:] += (10.0, 0.0, 0.0)
    before = simulator.state.copy()
    simulator.nudge([0, 1], desired, False, np.array([[True, False], [False, False]]))
    moved = simulator.state.car_position - before.car_position
    assert np.allclose(moved, [[[0, 10, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]], atol=5e-4)  # float32
    assert np.array_equal(simulator.state.ball_position, before.ball_position)


@both
def test_both_worlds_agree_on_a_second_of_driving(name: str) -> None:
    simulator, peer = started(name), started(ROCKETSIM2)
    for _ in range(15):
        simulator.step(rows(simulator, 8, throttle=1.0))
        peer.step(rows(peer, 8, throttle=1.0))
    # RocketSim 3's engine pushes in the tick of the press: 4 uu ahead after a second from rest.
    assert np.abs(simulator.state.car_position - peer.state.car_position).max() < 5.0
    assert np.abs(simulator.state.ball_position - peer.state.ball_position).max() < 2.0


@both
def test_constants_scale_from_the_next_put_on(name: str) -> None:
    simulator = started(name)
    simulator.set_mutators(1, {"gravity": 2.0, "ball_world_restitution": 0.5})
    simulator.put([0, 1], scene())
    simulator.step(rows(simulator, 24))
    fallen = 400.0 - simulator.state.ball_position[:, 2]
    assert fallen[1] == pytest.approx(2 * fallen[0], rel=0.02)


def test_a_simulator_that_is_not_known_is_refused() -> None:
    with pytest.raises(SimulatorError, match="simulator is 'rocketsim4', expected rocketsim2 or rocketsim3"):
        make_simulator("rocketsim4", 1, 1, 1)


def shot_at_the_goal() -> MatchState:
    """Return a match in which blue's ball is about to enter the goal, and a car about to take a pad."""
    state = blank_state(1, 1, 1)
    state.ball_position[:], state.ball_linear_velocity[:] = (0.0, 4900.0, 300.0), (0.0, 2500.0, 0.0)
    state.car_position[0] = (0.0, -4240.0 + 200.0, 17.0), (3000.0, 3000.0, 17.0)
    state.car_rotation[0] = np.eye(3)
    state.car_linear_velocity[0, 0] = (0.0, -1000.0, 0.0)
    state.car_wheels_with_contact[:] = 1
    derive(state)
    return state


@both
def test_events_name_the_goal_and_the_pad_of_the_state(name: str) -> None:
    simulator = make_simulator(name, 1, 1, 1)
    assert simulator.events().dtype == EVENT
    simulator.put([0], shot_at_the_goal())
    goals, pads = 0, []
    for _ in range(20):
        simulator.step(rows(simulator, 4))
        for event in simulator.events():
            assert event["match"] == 0 and event["tick"] < 4
            if event["kind"] == EventKind.GOAL:
                goals += 1
                assert event["numbers"][0] == BLUE and event["numbers"][1] > 2000
                assert simulator.state.goal_scored[0]
            if event["kind"] == EventKind.PAD:
                assert event["car"] == 0
                pads.append(int(event["other"]))
    assert goals == 1
    assert len(pads) == 1 and simulator.state.pad_timer[0, pads[0]] > 0


@both
def test_a_touch_tells_where_the_car_met_the_ball(name: str) -> None:
    simulator = make_simulator(name, 1, 1, 1)
    state = scene(1)
    state.ball_position[0] = (0.0, -1300.0, 93.15)
    state.ball_linear_velocity[:] = 0
    simulator.put([0], state)
    for _ in range(60):
        simulator.step(rows(simulator, 1, throttle=1.0))
        touches = [one for one in simulator.events() if one["kind"] == EventKind.TOUCH]
        if touches:
            break
    (touch,) = touches
    assert touch["car"] == 0
    assert simulator.state.car_ball_touches.tolist() == [[1, 0]]
    np.testing.assert_allclose(touch["numbers"][:3] - touch["numbers"][3:], (0, -1300, 93.15), atol=0.1)
    assert 70 < np.linalg.norm(touch["numbers"][3:]) < 100


@both
def test_mutators_act_from_the_next_put_on(name: str) -> None:
    simulator = make_simulator(name, 1, 1, 1)
    state = shot_at_the_goal()
    simulator.set_mutators(0, {}, {"ball_max_speed": 1500.0, "boost_pads_enabled": 0.0})
    simulator.put([0], state)
    assert (simulator.state.pad_timer == NEVER).all()
    simulator.step(rows(simulator, 8))
    assert not any(event["kind"] == EventKind.PAD for event in simulator.events())
    assert np.linalg.norm(simulator.state.ball_linear_velocity) <= 1500.1
    simulator.set_mutators(0, {})
    simulator.put([0], state)
    simulator.step(rows(simulator, 8))
    assert np.linalg.norm(simulator.state.ball_linear_velocity) > 2400


@needs_native
def test_heatseeker_is_refused_by_name_where_it_differs() -> None:
    with pytest.raises(SimulatorError, match="mode is Heatseeker, expected Soccar with rocketsim3"):
        make_simulator(ROCKETSIM3, 1, 1, 1, mode="Heatseeker")


def test_a_homing_ball_keeps_its_aim_over_a_put_that_moves_cars() -> None:
    simulator = make_simulator(ROCKETSIM2, 1, 1, 1, mode="Heatseeker")
    state = scene(1)
    state.ball_position[0], state.ball_linear_velocity[0] = (0.0, -1300.0, 100.0), (0.0, 100.0, 0.0)
    simulator.put([0], state)
    for _ in range(240):
        simulator.step(rows(simulator, 1, throttle=1.0))
    speed = simulator.target_speed(0)
    assert speed > 0
    moved = simulator.state.copy()
    moved.car_position[0, 1] += (50, 0, 0)
    simulator.put([0], moved)
    assert simulator.target_speed(0) == speed


@needs_native
def test_a_match_that_names_none_plays_in_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator_module, "is_installed", lambda name: True)
    assert simulator_for("Soccar") == (ROCKETSIM3, "")
    name, why = simulator_for("Snowday")
    assert name == ROCKETSIM2 and why.startswith("Snowday is played in RocketSim 2.2.1: RocketSim 3 plays")
    monkeypatch.setattr(simulator_module, "is_installed", lambda name: name == ROCKETSIM2)
    name, why = simulator_for("Soccar")
    assert name == ROCKETSIM2 and "rocketsim_batch of RocketSim 3 is not installed" in why
    assert why.endswith(explain_native())  # the command that mends it
