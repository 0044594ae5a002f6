"""Read off an RLGym environment which matches its bot plays."""

from dataclasses import dataclass
from typing import Final

from rlgym_bridge.components.mutator_base import apply_mutator
from rlgym_bridge.components.rlgym_state import base_state
from rlgym_bridge.components.spec import environment, locate_environment
from rlgym_bridge.components.user_errors import is_ours
from rlgym_bridge.game import HITBOXES

_DRAWS: Final = 16  # of states: mutators may draw team sizes and hitboxes


@dataclass(frozen=True)
class EnvironmentFacts:
    """The matches that an environment plays."""

    name: str  # `"module:function"` that makes it
    team_sizes: tuple[tuple[int, int], ...]  # (blue, orange) of the matches that it began, the smallest first
    hitboxes: tuple[str, ...]  # names of its cars' hitboxes, in the order of `game.HITBOXES`
    own_engine: str | None  # class of a transition engine of the user's own, or None

    def explain_engine(self) -> str | None:
        """Say that another engine takes the place of the user's own; None where he has none."""
        if self.own_engine is None:
            return None
        return (
            f"{self.name} has an engine of its own, {self.own_engine}, which is left out: matches here run "
            "in this project's engine, without what that one adds"
        )


def read_environment(name: str) -> EnvironmentFacts:
    """Make an environment, `"module:function"`, and begin episodes; raises ValueError where it cannot."""
    env = environment(name)
    teams: set[tuple[int, int]] = set()
    boxes: set[int] = set()
    provider = env.shared_info_provider
    for _ in range(_DRAWS):  # without the engine, which refuses odd states without naming the mutator
        state = base_state()
        try:
            apply_mutator(env.state_mutator, state, {} if provider is None else provider.create({}))
        except ValueError as error:
            if not is_ours(error):
                raise
            raise ValueError(f"{name}{locate_environment(name)}: {error}") from error
        cars = state.cars.values()
        blue = sum(car.is_blue for car in cars)
        teams.add((blue, len(cars) - blue))
        boxes |= {int(car.hitbox_type) for car in cars}
    kind = type(env.transition_engine)
    known = kind.__module__.partition(".")[0] in ("rlgym", "rlgym_bridge")
    engine = None if known else f"{kind.__module__}.{kind.__qualname__}"
    env.close()
    if not boxes:
        raise ValueError(f"{name} has no cars after reset, expected some: does a mutator make them?")
    return EnvironmentFacts(
        name, tuple(sorted(teams)), tuple(HITBOXES[box].name for box in sorted(boxes)), engine
    )
