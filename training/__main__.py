"""`rlgym-bridge train`, or `python -m training`: train a bot by self-play."""

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.training.settings import TrainingSettings
from rlgym_bridge.training.settings_file import load_settings, settings_as_toml
from rlgym_bridge.training.settings_tables import DEFAULTS

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files, run_command
from rlgym_bridge.policy.files import all_checkpoints
from rlgym_bridge.project.this_project import settings_file
from rlgym_bridge.user_input.user_modules import add_module_folders

STATUS: Final = "0 trained, or stopped by Ctrl-C, 1 something broke, 2 bad usage or input"
PROFILED: Final = 5
"""Iterations that --profile times unless another number is given."""

_MOST_PROFILED: Final = 10_000


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = "Train a bot by self-play in RocketSim (PPO). Ctrl-C saves a checkpoint and ends."
    parser.add_argument(
        "config", nargs="*", type=Path, metavar="CONFIG",
        help="settings in TOML; keys that are absent have their defaults (default: train.toml here, else "
        "training/config.toml). Where files disagree, the later one wins, such as one that `rlgym-bridge "
        "compare --fit` wrote",
    )  # fmt: skip
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="agent steps to train, in whole iterations (default: what the settings say)",
    )
    parser.add_argument("--out", metavar="DIR", help="folder of the run (default: what the settings say)")
    parser.add_argument(
        "--start-from", metavar="DIR", help="begin with the policy of this policy folder or training run"
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue from the newest checkpoint in the folder of the run"
    )
    parser.add_argument(
        "--profile", nargs="?", type=_iterations, const=PROFILED, metavar="N",
        help="only train N iterations, print how long their parts take, and end; nothing is written into the "
        f"run. With --resume its newest policy plays (default: {PROFILED})",
    )  # fmt: skip
    parser.add_argument(
        "--engine", choices=("local", "rllib"), default="local",
        help="local: processes on this machine; rllib: Ray RLlib, also on a cluster (default: local)",
    )  # fmt: skip
    parser.add_argument(
        "--address", metavar="ADDRESS",
        help="Ray cluster to train on, host:port or auto (default: a new one on this machine)",
    )  # fmt: skip
    parser.add_argument(
        "--settings", action="store_true",
        help="only print all settings and end: modules and folders that they name are not looked for",
    )  # fmt: skip
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Train, and write how it ended where that is wanted."""
    files = options.config or [settings_file() or DEFAULTS]
    output_files.check_outputs(options.json, inputs=files)
    changes = {
        name: getattr(options, name)
        for name in ("steps", "out", "start_from")
        if getattr(options, name) is not None
    }
    if options.address is not None and options.engine != "rllib":
        raise ValueError(f"--address is {options.address}, expected --engine rllib with it")
    if options.profile is not None:
        for name, given in (("--engine rllib", options.engine == "rllib"), ("--settings", options.settings)):
            if given:
                raise ValueError(f"--profile and {name} are given, expected one of them")
    if options.settings and options.json is not None:
        raise ValueError(f"--json is {options.json}, expected none with --settings, which trains nothing")
    settings = load_settings(*files, **changes)
    if options.settings:
        print(settings_as_toml(settings), end="")
        return 0
    say = shared.printer(options)
    if files != [DEFAULTS]:  # the user's settings may name modules
        add_module_folders(Path.cwd(), *(file.parent for file in files))
        say(f"settings: {', '.join(map(str, files))}")
    elif not options.config:
        into = "" if options.profile else f", into {settings.out}"
        say(f"no train.toml here: the default settings{into}")
    if options.profile is not None:
        return _profile(options, settings)
    train = _engine(options)  # imported late, so that --help and a mistyped key take no time
    try:
        summary = train(settings, options.resume, options.quiet)
    except KeyboardInterrupt as error:
        error.add_note("what was learned after the last checkpoint is lost")
        raise
    except (OSError, RuntimeError) as error:  # a full disk, a dead collector, a policy that diverged
        raise RuntimeError(f"{_in_words(error)}\n{_what_is_left(settings)}") from error
    say(f"next: rlgym-bridge evaluate {shlex.quote(settings.out)}")
    result: dict[str, Any] = dataclasses.asdict(summary) | {"checkpoint": str(summary.checkpoint)}
    result["last"] = {name: value if value == value else None for name, value in summary.last.items()}
    return 0 if output_files.write_json(options.json, result) else 2


def _profile(options: argparse.Namespace, settings: TrainingSettings) -> int:
    """Train a few iterations and print a table of their times."""
    from rlgym_bridge.training.profile_training import profile_training

    say = shared.printer(options)
    found = profile_training(settings, options.profile, options.resume)
    for line in found.lines():
        say(line)
    return 0 if output_files.write_json(options.json, found.to_json()) else 2


def _iterations(text: str) -> int:
    """Return a number of iterations from its text."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MOST_PROFILED:
        raise argparse.ArgumentTypeError(
            f"{text!r}, expected a number of iterations, 1 to {_MOST_PROFILED}; files of settings go before "
            "--profile"
        )
    return int(text)


def _in_words(error: OSError | RuntimeError) -> str:
    """Return the text of an error, without the number of the operating system."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename} cannot be written: {error.strerror}"
    return str(error)


def _what_is_left(settings: TrainingSettings) -> str:
    """Say which checkpoint there is of a run that broke."""
    from rlgym_bridge.training.runs.restore import whole_checkpoint

    run = Path(settings.out)
    with suppress(ValueError):  # `latest` may be mistyped meanwhile
        if whole := whole_checkpoint(run):
            return f"the last good checkpoint is {whole}"
    return f"no checkpoint in {run} is whole" if all_checkpoints(run) else "there is no checkpoint yet"


def _engine(options: argparse.Namespace) -> Callable[..., Any]:
    """Return what trains."""
    if options.engine == "local":
        from rlgym_bridge.training.ppo import main as train_here

        return train_here
    from rlgym_bridge.training.rllib.ray_ppo import main as train_with_ray

    return partial(train_with_ray, address=options.address)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `rlgym-bridge train`; see `rlgym_bridge.cli.run_command`."""
    return run_command("train", arguments, "python -m training")


if __name__ == "__main__":
    sys.exit(main())
