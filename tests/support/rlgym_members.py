"""A check for every public member of `rlgym.api`, to be run in every world."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rlgym.api
from rlgym.rocket_league.api import GameState, PhysicsObject

from rlgym_bridge.sim.simulator import ROCKETSIM2, simulator_for
from tests.support.rlgym_worlds import World, full_throttle
from tests.support.simulators import ROUNDING

CHECKS: dict[str, Callable[[World], None]] = {}


def members() -> list[str]:
    """Return `Class.member` for all that `rlgym.api` offers: `RLGym` and the kinds of components."""
    found = []
    for name, kind in sorted(vars(rlgym.api).items()):
        if isinstance(kind, type) and kind.__module__.startswith("rlgym."):
            found += [f"{name}.{one}" for one in vars(kind) if not one.startswith("_")]
    return found


def check(*names: str) -> Callable[[Callable[[World], None]], Callable[[World], None]]:
    """Have a function check some members."""

    def register(function: Callable[[World], None]) -> Callable[[World], None]:
        CHECKS.update(dict.fromkeys(names, function))
        return function

    return register


def assert_shown(world: World, shown: PhysicsObject, given: PhysicsObject) -> None:
    """Check that a body is as it was set, but for its simulator's rounding."""
    simulator = ROCKETSIM2 if world.name == "foreign" else simulator_for("Soccar")[0]
    for name, most in ROUNDING[simulator].items():
        attribute = "rotation_mtx" if name == "rotation" else name
        np.testing.assert_allclose(
            getattr(shown, attribute), getattr(given, attribute), rtol=1e-7, atol=most, err_msg=name
        )


@check("RLGym.reset", "StateMutator.apply", "ObsBuilder.reset", "ActionParser.reset", "DoneCondition.reset",
       "RewardFunction.reset", "SharedInfoProvider.create", "SharedInfoProvider.set_state",
       "TransitionEngine.create_base_state", "TransitionEngine.set_state")  # fmt: skip
def begins(world: World) -> None:
    """A reset asks every component once, in RLGym's order, and shows the state that was set."""
    env, log = world.env, world.log
    log.calls.clear()
    obs = env.reset()
    assert log.names() == [
        "SharedInfoProvider.create", "StateMutator.apply", "SharedInfoProvider.set_state", "ObsBuilder.reset",
        "ActionParser.reset", "DoneCondition.reset", "RewardFunction.reset", "ObsBuilder.build_obs",
    ]  # fmt: skip
    (blank, _) = log.last("StateMutator.apply")
    assert isinstance(blank, GameState) and set(blank.cars) == {"blue-0", "orange-0"}
    agents, shown, info = log.last("ObsBuilder.reset")
    assert agents == env.agents and shown is env.state and info["steps"] == 0
    for name, car in blank.cars.items():
        assert_shown(world, env.state.cars[name].physics, car.physics)
    assert_shown(world, env.state.ball, blank.ball)
    assert {agent: one.shape for agent, one in obs.items()} == {"blue-0": (92,), "orange-0": (92,)}


@check("RLGym.step", "ActionParser.parse_actions", "ObsBuilder.build_obs", "DoneCondition.is_done",
       "RewardFunction.get_rewards", "SharedInfoProvider.step", "TransitionEngine.step")  # fmt: skip
def goes_on(world: World) -> None:
    """A step asks every component once, in RLGym's order, and moves the cars by eight ticks."""
    env, log = world.env, world.log
    env.reset()
    before = env.state
    log.calls.clear()
    obs, rewards, terminated, truncated = env.step(full_throttle(env))
    assert log.names() == [
        "ActionParser.parse_actions", "SharedInfoProvider.step", "ObsBuilder.build_obs",
        "DoneCondition.is_done", "RewardFunction.get_rewards",
    ]  # fmt: skip
    assert log.last("ActionParser.parse_actions")[1] is before
    agents, state, ended, cut, info = log.last("RewardFunction.get_rewards")
    assert agents == env.agents and state is env.state and info["steps"] == 1
    assert ended == terminated and cut == truncated
    assert state.tick_count - before.tick_count == 8
    for given in (obs, rewards, terminated, truncated):
        assert list(given) == env.agents
    for car in state.cars.values():
        assert np.linalg.norm(car.physics.linear_velocity) > 50
    while not all(truncated.values()):
        *_, truncated = env.step(full_throttle(env))
        assert info["steps"] < 40, "the condition does not end the episode"
        info = log.last("RewardFunction.get_rewards")[-1]
    assert not any(terminated.values())


@check("RLGym.set_state")
def is_put(world: World) -> None:
    """A state of one's own is set, and shown, without a reset of the components."""
    env, log = world.env, world.log
    env.reset()
    wanted = env.transition_engine.create_base_state()
    env.state_mutator.apply(wanted, {})
    wanted.ball.position = np.array([500, 600, 700], np.float32)
    wanted.ball.linear_velocity = np.array([0, 0, 300], np.float32)
    log.calls.clear()
    obs = env.set_state(wanted)
    assert "ObsBuilder.reset" not in log.names() and "ObsBuilder.build_obs" in log.names()
    assert_shown(world, env.state.ball, wanted.ball)
    np.testing.assert_allclose(obs["blue-0"][:3], env.state.ball.position / 2300, rtol=1e-6)


@check("RLGym.agents", "RLGym.state", "TransitionEngine.agents", "TransitionEngine.state",
       "TransitionEngine.max_num_agents", "TransitionEngine.config")  # fmt: skip
def tells(world: World) -> None:
    """Engine and environment tell agents, state and configuration."""
    env, engine = world.env, world.env.transition_engine
    env.reset()
    assert env.agents == engine.agents == ["blue-0", "orange-0"]
    assert env.state is engine.state and list(env.state.cars) == env.agents
    assert engine.max_num_agents >= 2
    assert engine.config["rlbot_delay"] is True
    engine.config = {"rlbot_delay": True}
    with pytest.raises(KeyError):
        engine.step({"blue-0": np.zeros((8, 8))}, {})


@check("RLGym.action_space", "RLGym.action_spaces", "RLGym.observation_space", "RLGym.observation_spaces",
       "ActionParser.get_action_space", "ObsBuilder.get_obs_space")  # fmt: skip
def has_spaces(world: World) -> None:
    """Spaces are those of parser and builder, for every agent."""
    env = world.env
    env.reset()
    assert env.action_spaces == dict.fromkeys(env.agents, ("discrete", 90))
    assert env.observation_spaces == dict.fromkeys(env.agents, ("real", 92))
    assert env.action_space("blue-0")[1] == 90 and env.observation_space("blue-0")[1] == 92
    assert world.log.last("ActionParser.get_action_space") == ("blue-0",)


@check("RLGym.render", "Renderer.render")
def draws(world: World) -> None:
    """The renderer is given state and shared info."""
    env = world.env
    env.reset()
    env.step(full_throttle(env))
    env.render()
    state, info = world.log.last("Renderer.render")
    assert state is env.state and info["steps"] == 1


@check("RLGym.close", "Renderer.close", "TransitionEngine.close")
def closes(world: World) -> None:
    """Closing closes engine and renderer; a closed environment steps no more."""
    env: Any = world.env
    env.reset()
    env.close()
    assert world.log.names()[-1] == "Renderer.close"
    if world.name != "foreign":  # RLGym's engine has nothing to close
        with pytest.raises((ValueError, OSError, EOFError)):
            env.step({agent: np.array([0]) for agent in ("blue-0", "orange-0")})
