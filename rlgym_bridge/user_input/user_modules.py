"""Modules of users: imported from folders that are named, behind all that is installed."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

INSTALLED: Final = ("site-packages", "dist-packages")
"""Names of the folders that hold installed packages."""

_FOREIGN: Final = ("policy.json", "run.toml")
"""Files of folders that may come from anybody; no module is searched beside them."""


def import_user_module(name: str, folders: Iterable[str | Path] = ()) -> ModuleType:
    """Import a module that a user named; one that is installed comes before a file of the user."""
    add_module_folders(*folders)
    return importlib.import_module(name)


def add_module_folders(*folders: str | Path) -> None:
    """Search modules in further folders, from now on, here and in processes that this one starts.

    They come last on the search path, so that no file in them takes the place of the standard library or of
    an installed package. Modules in them can import each other. A policy folder or the folder of a training
    run is left out: what lies in it may come from anybody.
    """
    for folder in folders:
        place = Path(folder).absolute()
        if str(place) not in sys.path and not names_no_modules(place):
            sys.path.append(str(place))
            importlib.invalidate_caches()


def explain_not_found(name: str) -> str:
    """Explain where a missing module was looked for, and why one in the current folder was not found."""
    here = Path.cwd()
    first, _, rest = name.partition(".")
    parent = sys.modules.get(first)
    if rest and parent is not None:
        place = next(iter(getattr(parent, "__path__", ())), None) or getattr(parent, "__file__", "")
        return f"{first} is {place}, expected {rest} in it; rename another {first} that you mean"
    if first == "training" and parent is None:
        return f"{_where_expected(here, first)}; this project's own is rlgym_bridge.training"
    return _where_expected(here, first)


def _where_expected(here: Path, first: str) -> str:
    """Say where a package or module was expected, given the current folder."""
    own = here / first if (here / first).is_dir() else here / f"{first}.py"
    if names_no_modules(here):
        unused = f"{own} is not used: " if own.exists() else ""
        where = "on PYTHONPATH, or in another current folder: this one is of a policy or a run"
        return f"{unused}expected it {where}"
    if own.exists():
        return f"{own} is there, but this program does not search that folder: set PYTHONPATH to it"
    return f"expected it in the current folder or on PYTHONPATH; the current folder is {here}"


def is_installed(module: str) -> bool:
    """Tell whether a module belongs to Python or to an installed package; nothing is imported.

    A package that is installed to be edited is the user's.
    """
    if module.partition(".")[0] in sys.stdlib_module_names:
        return True
    return any(part in INSTALLED for place in places_of(module) for part in place.parts)


def places_of(module: str) -> list[Path]:
    """Return the folders and the file of a top-level module that Python finds; nothing is imported."""
    try:
        spec = importlib.util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError):  # somebody has put None in its place
        spec = None
    if spec is None:
        return []
    return [*map(Path, (*(spec.submodule_search_locations or ()), *filter(None, [spec.origin])))]


def names_no_modules(folder: Path) -> bool:
    """Tell whether a folder is one of a policy or a training run, in which no module is searched."""
    return any((folder / name).exists() for name in _FOREIGN)


class RLGymV2GymWrapper:
    """A wrapper that keeps the RLGym it is given, as rlgym-ppo's does."""

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
    """Make `rlgym_ppo` importable while an environment is built; one that is installed stays as it is.

    Its users return `RLGymV2GymWrapper(rlgym_env)`; it needs torch and wandb, a bot only the RLGym in it.
    """
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
    logger = {"MetricsLogger": MetricsLogger}
    wrapper = {"RLGymV2GymWrapper": RLGymV2GymWrapper}
    contents: dict[str, dict[str, Any]] = {
        "rlgym_ppo": {"Learner": Learner, "__path__": []},
        "rlgym_ppo.learner": {"Learner": Learner},
        "rlgym_ppo.util": {**logger, **wrapper, "__path__": []},
        "rlgym_ppo.util.metrics_logger": logger,
        "rlgym_ppo.util.rlgym_v2_gym_wrapper": wrapper,
    }
    modules = {name: ModuleType(name) for name in contents}
    for name, module in modules.items():
        vars(module).update(contents[name])
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(modules[parent], own, module)
    return modules
