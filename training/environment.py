"""The module that says what is trained, and the environment that is made of it.

It is named by the setting `components` and has the functions that `FUNCTIONS` lists, as
`training.components`: each may be one's own, the others taken by `from training.components import *`.
"""

import importlib
from collections.abc import Collection
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

from rlgym_bridge.components import Components, component_factory
from rlgym_bridge.sim.vector_env import VectorEnv
from training.config import ConfigError, Settings, hitbox_number

FUNCTIONS: Final = ("obs", "parser", "reward", "conditions", "mutator")
"""What a module has to have; a function `make_env(settings, matches)` takes the place of the last three."""


def import_components(settings: Settings) -> ModuleType:
    """Return the module that says what is trained.

    Raises:
        ConfigError: It cannot be imported, or lacks a function.
    """
    name = settings.components
    try:
        module = importlib.import_module(name)
    except Exception as error:  # a module of one's own may raise anything
        raise ConfigError(
            f'components is "{name}", which cannot be imported: {type(error).__name__}: {error}. It is '
            "looked for beside the file of settings, in the current folder and on PYTHONPATH"
        ) from error
    needed = FUNCTIONS[:2] if hasattr(module, "make_env") else FUNCTIONS
    missing = [function for function in needed if not callable(getattr(module, function, None))]
    if missing:
        raise ConfigError(
            f'components is "{name}", which has no function {", ".join(missing)}; expected a module with '
            f"{', '.join(FUNCTIONS)}; `from training.components import *` gives those that are not its own"
        )
    return module


def obs_and_parser(settings: Settings, module: ModuleType) -> Components:
    """Return builder and parser, as a policy folder names them.

    Raises:
        ValueError: They cannot be made.
    """
    return component_factory(module.obs(settings), module.parser(settings), None, allow=None)()


def make_env(settings: Settings, module: ModuleType, reads: Collection[str] = ()) -> Any:
    """Return the matches of one collector.

    Args:
        settings: Of the run.
        module: From `import_components`.
        reads: Attributes of `MatchState` that somebody reads besides the components.
    """
    if hasattr(module, "make_env"):
        return module.make_env(settings, settings.matches)

    def components() -> Components:
        termination, truncation = module.conditions(settings)
        return replace(
            obs_and_parser(settings, module),
            reward_fn=module.reward(settings),
            termination_cond=termination,
            truncation_cond=truncation,
            state_mutator=module.mutator(settings),
        )

    return VectorEnv(
        settings.matches,
        components,
        settings.team_sizes,
        tick_skip=settings.tick_skip,
        action_delay=settings.action_delay,
        hitbox=hitbox_number(settings),
        also_reads=reads,
    )
