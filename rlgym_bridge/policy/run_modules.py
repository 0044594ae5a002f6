"""Tell which modules may be imported for the policies of a training run that a user names.

Training writes into a run which modules its settings name, and anybody may have written that file. So those
are allowed that the settings in the current folder name. They are never looked for in a run or a policy.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from rlgym_bridge.policy.carried_modules import CARRIED
from rlgym_bridge.policy.files import MANIFEST_FILE, run_of
from rlgym_bridge.user_input.durable_files import write_durably
from rlgym_bridge.user_input.own_modules import trace_own_files
from rlgym_bridge.user_input.text_files import read_toml, toml_line
from rlgym_bridge.user_input.user_modules import add_module_folders, names_no_modules, places_of

RUN_FILE: Final = "run.toml"
_ABOUT: Final = (
    "# Written by training: modules of this run's settings. Commands import them for its policies where the\n"
    "# settings (*.toml) in the current folder name them, or --allow-modules does.\n"
)


def write_run_modules(run: Path, modules: Sequence[str]) -> None:
    """Write into the folder of a run which modules its policies name."""
    write_durably(run, {RUN_FILE: f"{_ABOUT}{toml_line('modules', list(modules))}\n".encode()})


def run_modules(named: str | Path, allow_modules: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the modules that may be imported for a policy or a run that a user names.

    These are `allow_modules` and those of the run that the settings in the current folder name, or that
    modules named there import; an environment's as `"module:function"`, too. None for a policy folder outside
    of a run.

    Raises:
        ValueError: The run's file is unreadable; or a module that it names lies in the run's own folder, in a
            package that holds the run, or in a folder above it that is not searched, and the user does not
            allow it.
    """
    run = run_of(named)
    if run is None or os.path.lexists(run / MANIFEST_FILE) or not (run / RUN_FILE).is_file():
        return ()
    file = run / RUN_FILE
    modules = read_toml(file).get("modules")
    if not isinstance(modules, list) or not all(isinstance(one, str) for one in modules):
        raise ValueError(f"{file}: modules is {modules!r}, expected a list of names of modules")
    here = _modules_of_project(Path.cwd()) if modules else []
    allowed = [name for name in here if name.partition(":")[0] in modules]
    given = {entry.removeprefix(CARRIED).partition(":")[0].partition(".")[0] for entry in allow_modules}
    for module in modules:
        if module.partition(".")[0] in given:
            continue
        if module not in allowed and (project := _project_of(run, module)) is not None:
            raise ValueError(
                f"{file} names {module}, which lies in {project}: run this there (cd {project.resolve()}), "
                f"or play the copy that the run carries, if you trust it: --allow-modules {CARRIED}{module}"
            )
    whole = run.resolve()
    for name in allowed:
        places = [place.resolve() for place in places_of(name.partition(":")[0])]
        for place in (one for one in places if one.is_relative_to(whole) or whole.is_relative_to(one)):
            raise ValueError(
                f"{file}: {name} would be imported from {place}, which came with the run, expected "
                "modules of your own elsewhere; if you trust it, name it with --allow-modules"
            )
    return tuple(allowed)


def _modules_of_project(folder: Path) -> list[str]:
    """Return the modules that the settings in a folder name, and the user's own that these import."""
    named = [] if names_no_modules(folder) else [*_named_in_settings(folder)]
    if not named:
        return []
    add_module_folders(folder)
    own: list[str] = []
    with suppress(ValueError):  # a file that is no Python fails when it is imported
        own = [
            path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            for path in trace_own_files(name.partition(":")[0] for name in named)
        ]
    return list(dict.fromkeys([*named, *(name.partition(":")[0] for name in named), *own]))


def _named_in_settings(folder: Path) -> Iterator[str]:
    """Yield `components`, `env` and an own `network` of the files of settings in a folder."""
    for file in sorted(folder.glob("*.toml")):
        try:
            settings = read_toml(file)
        except (OSError, ValueError):
            continue  # another program's, or broken: training with it fails
        for key in ("components", "env", "network"):
            value = settings.get(key)
            if isinstance(value, str) and value and (key != "network" or ":" in value):
                yield value


def _project_of(run: Path, module: str) -> Path | None:
    """Return the folder above a run that has one of its modules, where Python does not find it; or None."""
    first = module.partition(".")[0]
    if places_of(first):
        return None
    folders = (
        one for one in list(run.parents)[:2] if (one / f"{first}.py").is_file() or (one / first).is_dir()
    )
    return next(folders, None)
