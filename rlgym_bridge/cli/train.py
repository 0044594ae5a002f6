"""Train a bot by self-play: `rlgym-bridge train`, or `python -m training`."""

import argparse
import dataclasses
import itertools
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.cli.browser_page import add_page_options, check_port, shown_run
from rlgym_bridge.game import TICK_SKIP
from rlgym_bridge.policy.carried_modules import CARRIED, CARRIED_FOLDER, carried_names, use_carried
from rlgym_bridge.policy.files import all_checkpoints, chosen_checkpoint
from rlgym_bridge.project.this_project import SETTINGS_FILE, settings_file
from rlgym_bridge.server.lineup import show_match_command
from rlgym_bridge.sim.simulator import SIMULATORS
from rlgym_bridge.training.environment import fit_to_environment
from rlgym_bridge.training.setting_values import DEFAULTS
from rlgym_bridge.training.settings import (
    SettingsError,
    TrainingSettings,
    make_settings,
    read_settings,
    settings_as_toml,
)
from rlgym_bridge.user_input.failures import Failure
from rlgym_bridge.user_input.text_files import read_toml
from rlgym_bridge.user_input.user_modules import add_module_folders

STATUS: Final = "0 trained, or stopped by Ctrl-C, 1 something broke, 2 bad usage or input"
_PROFILED, _MOST_PROFILED = 5, 10_000  # iterations that --profile times: by default, at most
_ITERATIONS: Final = shared.whole(
    f"a number of iterations, 1 to {_MOST_PROFILED}; files of settings go before --profile",
    range(1, _MOST_PROFILED + 1),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = "Train a bot by self-play in RocketSim (PPO). Ctrl-C saves a checkpoint and ends."
    shared.add_option(
        parser, "config CONFIG", "settings in TOML; keys that are absent have their defaults (default: "
        "train.toml here, else training/config.toml). Where files disagree, the later one wins, such as one "
        "that `rlgym-bridge compare --fit` wrote", Path, nargs="*",
    )  # fmt: skip
    shared.add_option(
        parser, "--steps N", "agent steps to train, rounded up to whole iterations (default: what the "
        "settings say)", int,
    )  # fmt: skip
    shared.add_option(
        parser, "--out DIR", "folder of the run (default: out of the settings; without that runs/ and the "
        "name of your env or components, runs/1v1 if you name neither)",
    )  # fmt: skip
    shared.add_option(
        parser, "--start-from DIR", "begin with the policy of this policy folder or training run"
    )
    shared.add_option(
        parser, "--simulator", "what steps the matches: rocketsim2 is RocketSim 2.2.1, rocketsim3 is faster "
        "and as the real game; with --resume it may differ from before (default: what the settings say, else "
        "the run's)", choices=SIMULATORS,
    )  # fmt: skip
    shared.add_option(parser, "--resume", "continue from the newest checkpoint in the folder of the run")
    shared.add_option(
        parser, "--allow-modules carried:MODULE", "with --resume: take the copies of these modules that the "
        "run carries, in place of your own", nargs="+", default=[],
    )  # fmt: skip
    shared.add_option(
        parser, "--rewards", "also show what each part of the reward gives a step, with and without its "
        "weight, its share",
    )  # fmt: skip
    shared.add_option(
        parser, "--profile N", "only train N iterations, print how long their parts take, and end; nothing "
        f"is written into the run. With --resume its newest policy plays (default: {_PROFILED})", _ITERATIONS,
        nargs="?", const=_PROFILED,
    )  # fmt: skip
    _add_cluster_options(parser)
    shared.add_option(
        parser, "--settings", "only print all settings and end: modules and folders that they name are not "
        "looked for",
    )  # fmt: skip
    add_page_options(parser, "show the newest checkpoint against itself, and the curves, in the browser")


def _add_cluster_options(parser: argparse.ArgumentParser) -> None:
    shared.add_option(
        parser, "--engine", "local: processes on this machine; rllib: Ray RLlib, also on a cluster (default: "
        "local)", default="local", choices=("local", "rllib"),
    )  # fmt: skip
    shared.add_option(
        parser, "--address ADDRESS", "Ray cluster to train on, host:port or auto (default: a new one on this "
        "machine)",
    )  # fmt: skip
    shared.add_option(
        parser, "--ray ADDRESS", "play on all machines of this Ray cluster, host:port, or auto for the one "
        "that this machine is part of; learn here",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Train, and write how it ended where that is wanted."""
    files = options.config or [settings_file() or DEFAULTS]
    output_files.check_outputs(options.json, inputs=files)
    given = {name: getattr(options, name) for name in ("steps", "out", "start_from", "simulator")}
    changes = {name: value for name, value in given.items() if value is not None}
    _check_together(options)
    values = read_settings(*files)
    settings = make_settings(values, files, changes)
    if options.settings:
        print(settings_as_toml(settings), end="")
        return 0
    named = {*changes} if files == [DEFAULTS] else {*changes, *values}
    if options.resume and "simulator" not in named:
        from rlgym_bridge.training.runs.checkpoints import settings_of_run

        found = settings_of_run(Path(settings.out))
        settings = dataclasses.replace(settings, simulator=found.get("simulator", settings.simulator))
    say = shared.printer(options)
    _introduce(options, files, settings, "out" in {*values, *changes}, say)
    if options.allow_modules:
        say(_take_carried(options, settings))
    if settings.env:
        settings, lines = fit_to_environment(settings, {*values, *changes})
        for line in lines:
            say(line)
    if options.profile is not None:
        return _profile(options, settings)
    train = _engine(options)  # imported late, so that --help and a mistyped key take no time
    again = None if files == [DEFAULTS] else lambda: make_settings(read_settings(*files), files, changes)
    flags = options.resume, options.quiet, options.simulator is not None, options.rewards
    try:
        with shown_run(options, Path(settings.out)):
            summary = train(settings, *flags, again)
    except KeyboardInterrupt as error:
        error.add_note("what was learned after the last checkpoint is lost")
        raise
    except (OSError, RuntimeError) as error:  # a full disk, a dead collector, a policy that diverged
        said = str(error)
        if isinstance(error, OSError) and error.filename is not None and error.strerror:
            said = f"{error.filename} cannot be written: {error.strerror}"
        raise Failure(f"{said}\n{_what_is_left(settings)}") from error
    following = _next_command(settings)
    if following is not None:
        say(f"next: {following}")
    result: dict[str, Any] = dataclasses.asdict(summary) | {"checkpoint": str(summary.checkpoint)}
    result["last"] = {name: value if value == value else None for name, value in summary.last.items()}
    output_files.write_json(options.json, result)
    return 0


def _check_together(options: argparse.Namespace) -> None:
    """Raise ValueError for options that contradict each other."""
    if options.address is not None and options.engine != "rllib":
        raise ValueError(f"--address is {options.address}, expected --engine rllib with it")
    if options.ray is not None and options.engine != "local":
        raise ValueError(f"--ray is {options.ray} and --engine {options.engine}, expected one of them")
    check_port(options, options.web)
    if options.profile is not None:
        others = {
            "--engine rllib": options.engine == "rllib", "--ray": options.ray is not None,
            "--settings": options.settings, "--web": options.web,
        }  # fmt: skip
        for name in (one for one, is_given in others.items() if is_given):
            raise ValueError(f"--profile and {name} are given, expected one of them")
    if options.settings and options.json is not None:
        raise ValueError(f"--json is {options.json}, expected none with --settings, which trains nothing")


def _introduce(
    options: argparse.Namespace, files: Sequence[Path], settings: TrainingSettings, has_out: bool,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Say which settings are trained, and into which folder, which somebody has named if `has_out`."""
    if files != [DEFAULTS]:  # the user's settings may name modules
        add_module_folders(Path.cwd(), *(file.parent for file in files))
        say(f"settings: {', '.join(map(str, files))}")
        if not has_out and options.profile is None:
            say(f"no out in them: the run is {settings.out}")
        if other := _components_left_out(files, settings):
            say(other)
    elif not options.config:
        into = "" if options.profile else f", into {settings.out}"
        say(f"no train.toml here: the default settings{into}")
        if options.steps is None and not options.profile and not options.resume:
            _confirm_defaults(settings)


def _components_left_out(files: Sequence[Path], settings: TrainingSettings) -> str:
    """Say that the own components of this folder's train.toml are not trained; "" where they are."""
    here = settings_file()
    standard = settings.components == TrainingSettings.components and not settings.env
    if here is None or not standard or any(file.resolve() == here.resolve() for file in files):
        return ""
    try:
        values = read_toml(here)
    except (OSError, ValueError):
        return ""  # nobody asked for that file
    named = values.get("env") or values.get("components")
    if not named or named == TrainingSettings.components:
        return ""
    both = [here, *files]
    words = ["rlgym-bridge", "train", *map(str, both)]
    with suppress(SettingsError):  # what does not fit is told where both files are given
        out = make_settings(read_settings(*both), both, {}).out
        if free := _free_run(out, settings.out):
            words += ["--out", free]
    return f"standard components, not {named} of {here}: {shlex.join(words)} trains those"


def _free_run(out: str, begins: str) -> str | None:
    """Return another folder for a run if `out` is another run's, or that of the run that begins now."""
    folders = itertools.chain([out], (f"{out}-{number}" for number in itertools.count(2)))
    taken = {Path(begins).resolve()}
    free = next(one for one in folders if Path(one).resolve() not in taken and not Path(one).exists())
    return None if free == out else free


def _confirm_defaults(settings: TrainingSettings) -> None:
    """Ask a person at a terminal before hours of the default training; not in the project's own clone."""
    if not sys.stdin.isatty() or DEFAULTS.resolve().parents[1] == Path.cwd().resolve():
        return
    near = sorted(Path().glob(f"*/{SETTINGS_FILE}"))
    hint = f" (cd {near[0].parent}, where a train.toml is?)" if near else ""
    try:
        answer = input(f"train {settings.steps:,} steps of them, which takes hours{hint}? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise ValueError(
            "nothing is trained: go to the folder of your train.toml, name its file, or give --steps"
        )


def _take_carried(options: argparse.Namespace, settings: TrainingSettings) -> str:
    """Have Python import copies of modules that the run carries; return a line that says so."""
    given = f"--allow-modules is {' '.join(options.allow_modules)}"
    if not options.resume:
        raise ValueError(f"{given}, expected --resume with it: a new run takes your own modules")
    checkpoint = chosen_checkpoint(Path(settings.out))
    used = () if checkpoint is None else use_carried(checkpoint, options.allow_modules)
    if [f"{CARRIED}{name}" for name in used] != options.allow_modules:
        names = [] if checkpoint is None else carried_names(checkpoint)
        carried = ", ".join(f"{CARRIED}{name}" for name in names) or "none"
        raise ValueError(
            f"{given}, expected copies of modules that {checkpoint or settings.out} carries: {carried}"
        )
    return (
        f"{', '.join(used)}: the code is that of the run ({checkpoint}/{CARRIED_FOLDER}), not of your own "
        "modules of these names"
    )


def _next_command(settings: TrainingSettings) -> str | None:
    """Return a command that plays what was trained; None where it was trained without opponents."""
    # `evaluate` plays Chaser, who decides every 8 ticks, in equal teams; `match` plays anybody.
    if settings.tick_skip == TICK_SKIP and any(blue == orange for blue, orange in settings.sizes):
        return f"rlgym-bridge evaluate {shlex.quote(settings.out)}"
    return show_match_command(settings.out, settings.sizes)


def _profile(options: argparse.Namespace, settings: TrainingSettings) -> int:
    from rlgym_bridge.training.profile_training import profile_training

    say = shared.printer(options)
    found = profile_training(settings, options.profile, options.resume)
    for line in found.lines():
        say(line)
    output_files.write_json(options.json, found.to_json())
    return 0


def _what_is_left(settings: TrainingSettings) -> str:
    """Say which checkpoint there is of a run that broke."""
    from rlgym_bridge.training.runs.checkpoints import whole_checkpoint

    run = Path(settings.out)
    with suppress(ValueError):  # `latest` may be mistyped meanwhile
        if whole := whole_checkpoint(run):
            return f"the last good checkpoint is {whole}"
    return f"no checkpoint in {run} is whole" if all_checkpoints(run) else "there is no checkpoint yet"


def _engine(options: argparse.Namespace) -> Callable[..., Any]:
    if options.ray is not None:
        from rlgym_bridge.training.ray_collectors import main as train_on_ray

        return partial(train_on_ray, address=options.ray)
    if options.engine == "local":
        from rlgym_bridge.training.ppo import main as train_here

        return train_here
    from rlgym_bridge.training.rllib.ray_ppo import main as train_with_ray

    return partial(train_with_ray, address=options.address)
