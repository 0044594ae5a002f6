"""Let environments of rlgym-ppo be built where rlgym-ppo is not installed.

Its users return `RLGymV2GymWrapper(rlgym_env)`, and import the wrapper from rlgym-ppo, which needs torch and
wandb. A bot that plays needs only the RLGym in it.
"""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class RLGymV2GymWrapper:
    """A wrapper that keeps the RLGym it is given, as rlgym-ppo's does.

    Args:
        rlgym_env: The environment.
    """

    def __init__(self, rlgym_env: Any) -> None:
        self.rlgym_env = rlgym_env


class MetricsLogger:
    """An empty base class of loggers, which modules of environments often define."""


class Learner:
    """A trainer for modules that import rlgym-ppo's, which cannot train."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ImportError(
            "rlgym_ppo is not installed here, so its Learner cannot train; expected training under "
            'if __name__ == "__main__": in a module that gives an environment'
        )


@contextmanager
def rlgym_ppo_importable() -> Iterator[None]:
    """Make `rlgym_ppo` importable while an environment is built; one that is installed stays as it is."""
    if "rlgym_ppo" in sys.modules or importlib.util.find_spec("rlgym_ppo") is not None:
        yield
        return
    modules = _modules()
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in modules:
            sys.modules.pop(name, None)


def _modules() -> dict[str, ModuleType]:
    """Return modules by name that hold what stands for rlgym-ppo's own."""
    contents: dict[str, dict[str, Any]] = {
        "rlgym_ppo": {"Learner": Learner, "__path__": []},
        "rlgym_ppo.learner": {"Learner": Learner},
        "rlgym_ppo.util": {
            "MetricsLogger": MetricsLogger, "RLGymV2GymWrapper": RLGymV2GymWrapper, "__path__": [],
        },
        "rlgym_ppo.util.metrics_logger": {"MetricsLogger": MetricsLogger},
        "rlgym_ppo.util.rlgym_v2_gym_wrapper": {"RLGymV2GymWrapper": RLGymV2GymWrapper},
    }  # fmt: skip
    modules = {name: ModuleType(name) for name in contents}
    for name, module in modules.items():
        vars(module).update(contents[name])
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(modules[parent], own, module)
    return modules
