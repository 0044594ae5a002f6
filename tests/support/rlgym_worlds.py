"""RLGym environments over each world, whose components note how they are called."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rlgym.api import (
    ActionParser,
    DoneCondition,
    ObsBuilder,
    Renderer,
    RewardFunction,
    RLGym,
    SharedInfoProvider,
    StateMutator,
    TransitionEngine,
)  # fmt: skip
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.conditions import NoTouchTimeoutCondition
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import KickoffMutator
from rlgym_bridge.components.rewards import TouchReward
from rlgym_bridge.engines.live import LiveEngine
from rlgym_bridge.engines.sim import SimEngine
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server import MatchServer

Env = RLGym[Any, Any, Any, Any, Any, Any, Any, Any]
WORLDS = ("simulator", "match server", "foreign")
STANDARD = ProtocolVariant().complete()


@contextmanager
def serving(pace: Any = "lockstep", **settings: Any) -> Iterator[tuple[str, int]]:
    """Serve matches, in a thread."""
    with MatchServer(pace=pace, **settings) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.host, server.port
        finally:
            server.stop()
            thread.join(10.0)


@dataclass
class Log:
    """Calls of components in order: class, method and arguments."""

    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def note(self, name: str, given: tuple[Any, ...], result: Any) -> None:
        self.calls.append((name, given))

    def names(self) -> list[str]:
        """Return the calls alone."""
        return [name for name, _ in self.calls]

    def last(self, name: str) -> tuple[Any, ...]:
        """Return what the latest call of a method was given."""
        return next(given for one, given in reversed(self.calls) if one == name)


def noted(component: Any, kind: Any, log: Any) -> Any:
    """Return a component that passes every call on to another one, and notes it."""

    class Noted(kind):  # type: ignore[misc]
        def __getattr__(self, name: str) -> Any:
            return getattr(component, name)

    def passing(name: str) -> Any:
        def method(self: Any, *given: Any) -> Any:
            result = getattr(component, name)(*given)
            log.note(f"{kind.__name__}.{name}", given, result)
            return result

        return method

    for name in vars(kind):
        if not name.startswith("_"):
            setattr(Noted, name, passing(name))
    Noted.__abstractmethods__ = frozenset()
    return Noted()


class Counter(SharedInfoProvider[Any, Any]):
    """Counts steps in the shared info."""

    def create(self, shared_info: dict[str, Any]) -> dict[str, Any]:
        return {"made": shared_info.get("made", 0) + 1}

    def set_state(self, agents: Any, initial_state: Any, shared_info: dict[str, Any]) -> dict[str, Any]:
        return shared_info | {"steps": 0}

    def step(self, agents: Any, state: Any, shared_info: dict[str, Any]) -> dict[str, Any]:
        return shared_info | {"steps": shared_info["steps"] + 1}


class BallIntoGoal(StateMutator[Any]):
    """The ball flies into orange's goal; the cars stand out of its way."""

    def apply(self, state: Any, shared_info: dict[str, Any]) -> None:
        KickoffMutator(seed=0).apply(state, shared_info)
        state.ball.position = np.array([0, 4800, 300], np.float32)
        state.ball.linear_velocity = np.array([0, 2000, 0], np.float32)


class Screen(Renderer[Any]):
    """Remembers what it drew."""

    def __init__(self) -> None:
        self.drawn: list[Any] = []

    def render(self, state: Any, shared_info: dict[str, Any]) -> None:
        self.drawn.append((state, dict(shared_info)))

    def close(self) -> None:
        self.drawn.append("closed")


@dataclass
class World:
    """An environment in one of the worlds, and what its components were asked."""

    name: str
    env: Env
    log: Log


@contextmanager
def world_of(name: str) -> Iterator[World]:
    """Make an environment of 1v1 in a world; its conditions end an episode after two seconds."""
    log = Log()
    with engine_of(name) as engine:
        env: Env = RLGym(
            noted(MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator(seed=0)), StateMutator, log),
            noted(DefaultObs(zero_padding=None), ObsBuilder, log),
            noted(RepeatAction(LookupTableAction(), 8), ActionParser, log),
            noted(TouchReward(), RewardFunction, log),
            engine,
            None,
            noted(NoTouchTimeoutCondition(2.0), DoneCondition, log),
            noted(Counter(), SharedInfoProvider, log),
            noted(Screen(), Renderer, log),
        )
        yield World(name, env, log)


@contextmanager
def engine_of(name: str) -> Iterator[TransitionEngine[Any, Any, Any]]:
    """Make a world's engine; the foreign one is RLGym's own."""
    if name == "simulator":
        yield SimEngine(as_in_a_match=True)
    elif name == "foreign":
        yield RocketSimEngine()
    else:
        with serving() as server:
            engine = LiveEngine((1, 1), server, dialect=STANDARD, patience=20.0)
            try:
                yield engine
            finally:
                engine.close()


def full_throttle(env: Env) -> dict[Any, np.ndarray]:
    """Return an action that drives straight on, boosting."""
    return {agent: np.array([18]) for agent in env.agents}
