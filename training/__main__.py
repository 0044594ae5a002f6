"""`python -m training`: train a bot by self-play."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rlgym_bridge.policy_files import newest_checkpoint
from training.command import writable
from training.config import ConfigError, as_toml, load

_DEFAULTS = Path(__file__).with_name("config.toml")


def main() -> int:
    """Read the command line, train, and return the exit code."""
    try:
        return _run(_parser().parse_args())
    except KeyboardInterrupt:
        return _say("interrupted; what was learned after the last checkpoint is lost", 1)


def _run(options: argparse.Namespace) -> int:
    changes = {
        name: getattr(options, name)
        for name in ("steps", "out", "start_from")
        if getattr(options, name) is not None
    }
    if options.address is not None and options.engine != "rllib":
        return _say(f"--address is {options.address}, which takes --engine rllib", 2)
    try:
        settings = load(*options.config, **changes)
        if options.settings:
            print(as_toml(settings), end="")
            return 0
    except (ConfigError, OSError) as error:
        return _say(error, 2)
    # Components of one's own lie beside a file of settings, or in the current folder.
    sys.path += [str(file.absolute().parent) for file in options.config]
    # Imported late, so that --help and a mistyped key take no time.
    try:
        from training.collector import CollectorDied
        from training.learner import Diverged

        train = _engine(options)
    except ImportError as error:
        return _say(error, 2)
    try:
        summary = train(settings, options.resume, options.quiet)
    except ConfigError as error:
        return _say(error, 2)
    except (Diverged, OSError, CollectorDied) as error:
        newest = newest_checkpoint(Path(settings.out))
        kept = f"the last good checkpoint is {newest}" if newest else "there is no checkpoint yet"
        return _say(f"{error}\n{kept}", 1)
    if options.json is not None:
        result: dict[str, Any] = dataclasses.asdict(summary) | {"checkpoint": str(summary.checkpoint)}
        result["last"] = {name: value if value == value else None for name, value in summary.last.items()}
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


def _engine(options: argparse.Namespace) -> Callable[..., Any]:
    """Return what trains."""
    if options.engine == "local":
        from training.ppo import main as train_here

        return train_here
    from training.rllib.ppo import main as train_with_ray

    return partial(train_with_ray, address=options.address)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training",
        description="Train a bot by self-play in RocketSim. Ctrl-C saves a checkpoint and ends.",
        epilog="exit status: 0 trained or stopped by Ctrl-C, 1 something broke, 2 bad usage or input",
    )
    parser.add_argument(
        "config", nargs="*", type=Path, default=[_DEFAULTS], metavar="CONFIG",
        help="TOML file of settings, keys that it lacks have their defaults (default: training/config.toml); "
        "what stands in a later one counts, such as one of `rlgym-bridge compare --fit`",
    )  # fmt: skip
    parser.add_argument("--steps", type=int, metavar="N", help="agent steps in place of the file's")
    parser.add_argument("--out", metavar="DIR", help="folder of the run in place of the file's")
    parser.add_argument(
        "--start-from", metavar="DIR", help="policy folder, or folder of a run, whose policy is trained on"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on from the newest checkpoint in the folder of the run"
    )
    parser.add_argument(
        "--engine", choices=("local", "rllib"), default="local",
        help="what plays and learns: processes of this machine, or Ray RLlib (default: local)",
    )  # fmt: skip
    parser.add_argument(
        "--address", metavar="ADDRESS",
        help="of the Ray cluster to train on, host:port or auto (default: one of this machine alone)",
    )  # fmt: skip
    parser.add_argument("--settings", action="store_true", help="print all settings in force and end")
    parser.add_argument("-q", "--quiet", action="store_true", help="show nothing but errors")
    parser.add_argument("--json", type=writable, metavar="FILE", help="write how it ended to FILE")
    return parser


def _say(error: object, code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
