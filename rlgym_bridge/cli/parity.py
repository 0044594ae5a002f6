"""Check that a bot sees and does the same in the simulator and in a match: `rlgym-bridge parity`."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.markup import escape

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.components.spec import Components, ComponentSpec, component_factory
from rlgym_bridge.game import HITBOX_NAMES, TICKS_PER_SECOND
from rlgym_bridge.policy.environment_facts import read_environment
from rlgym_bridge.policy.files import policy_path
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.project.this_project import run_folder
from rlgym_bridge.server import ConfigError
from rlgym_bridge.trials.parity import Parity, compare_worlds
from rlgym_bridge.user_input.arguments import count_of
from rlgym_bridge.user_input.user_modules import add_module_folders

_OBS, _PARSER = "rlgym_bridge:DefaultObs", "rlgym_bridge:LookupTableAction"
_MOST_TICKS: Final = 24 * 3600 * TICKS_PER_SECOND

STATUS: Final = "0 everything is equal, 1 something differs, 2 bad usage"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Check that a bot sees and does the same in training and in a match. The same match goes through "
        "the same components twice, as the simulator's state and as RLBot packets. Every number of the "
        "observations and every control is compared, and orange's view of the field with blue's."
    )
    what = parser.add_mutually_exclusive_group()
    shared.add_option(
        what, "--policy FOLDER", "check the components of a policy folder or training run (default, without "
        "--env, --obs and --parser: the run of train.toml in this folder, if there is one)",
    )  # fmt: skip
    shared.add_option(
        what, "--env MODULE:FUNCTION", "check those of the RLGym environment that this function returns"
    )
    shared.add_option(what, "--obs MODULE:CLASS", f"check an observation builder (else {_OBS})")
    shared.add_option(parser, "--parser MODULE:CLASS", f"with this action parser (default: {_PARSER})")
    shared.add_modules_option(parser)
    shared.add_option(
        parser, "--team-size", "cars in a team (default: all team sizes of the policy or the environment, "
        "else 1)", int, choices=(1, 2, 3, 4),
    )  # fmt: skip
    shared.add_option(parser, "--ticks N", "ticks of play to compare, in each team size", default=6000)
    shared.add_seed_option(parser, "the match")
    shared.add_option(
        parser, "--tick-skip TICKS", "ticks that an action lasts (default: what the policy or the parser "
        "says)", int,
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Compare, and print what differs."""
    if any((options.env, options.obs, options.parser, options.allow_modules)):  # they name modules
        add_module_folders(Path.cwd())
    console = shared.console_of(options)
    output_files.check_outputs(options.json)
    if not 1 <= options.ticks <= _MOST_TICKS:
        raise ConfigError(f"--ticks is {options.ticks}, expected 1 to {_MOST_TICKS} (a day)")
    if options.tick_skip is not None and not 1 <= options.tick_skip <= options.ticks:
        raise ConfigError(f"--tick-skip is {options.tick_skip}, expected 1 to {options.ticks} (--ticks)")
    bot = _bot_of(options)
    if bot.engine is not None:
        console.print(bot.engine, markup=False)
    found: dict[tuple[int, int], Parity] = {}
    for size in bot.team_sizes:
        found[size] = compare_worlds(
            bot.components, size, options.ticks, options.seed, tick_skip=bot.tick_skip, hitbox=bot.hitbox
        )
        _print(console, found[size], size)
    if not all(one.compared for one in found.values()):
        raise ConfigError(
            "nothing was compared: the packets of so few ticks do not tell all; expected more --ticks"
        )
    output_files.write_json(options.json, _as_json(found))
    return int(any(one.mismatches for one in found.values()))


class _Checked(NamedTuple):
    """The components to check, in matches of some team sizes; a line on the engine, if one is left out."""

    components: Callable[[], Components]
    team_sizes: Sequence[tuple[int, int]]
    tick_skip: int | None
    hitbox: int = 0
    engine: str | None = None


def _bot_of(options: argparse.Namespace) -> _Checked:
    """Return what the options name; `ValueError` where they contradict each other or cannot be made."""
    if options.parser is not None and (options.env or options.policy):
        raise ConfigError("--parser goes with --obs; an environment or a policy has a parser of its own")
    if not any((options.policy, options.env, options.obs, options.parser)):
        options.policy = run_folder()
    chosen = None if options.team_size is None else [(options.team_size, options.team_size)]
    if options.policy is not None:
        allowed = (*options.allow_modules, *run_modules(options.policy, options.allow_modules))
        loaded = load_policy(policy_path(options.policy), allow_modules=allowed)
        manifest = loaded.manifest
        box = HITBOX_NAMES.index(manifest.hitbox)
        tick_skip = options.tick_skip or manifest.tick_skip
        return _Checked(loaded.components, chosen or manifest.team_sizes, tick_skip, box)
    if options.env is not None:
        make, facts = component_factory(None, None, options.env, allow=None), read_environment(options.env)
        sizes, box = chosen or facts.team_sizes, HITBOX_NAMES.index(facts.hitboxes[0])
        return _Checked(make, sizes, options.tick_skip, box, facts.explain_engine())
    obs, parser = (ComponentSpec(path) for path in (options.obs or _OBS, options.parser or _PARSER))
    return _Checked(component_factory(obs, parser, None, allow=None), chosen or [(1, 1)], options.tick_skip)


def _as_json(found: Mapping[tuple[int, int], Parity]) -> dict[str, Any]:
    """Return the results of all team sizes for programs: sums, and each mismatch with its match."""
    every = [(f"{blue}v{orange}", one.as_json()) for (blue, orange), one in found.items()]
    sums = {name: sum(one[name] for _, one in every) for name in ("samples", "numbers", "unknown")}
    mismatches = [{"match": match, **item} for match, one in every for item in one["mismatches"]]
    return {"matches": [match for match, _ in every], **sums, "mismatches": mismatches}


def _print(console: Console, found: Parity, size: tuple[int, int]) -> None:
    if found.mismatches:
        table = shared.make_table("number that differs", numbers=("times", "largest difference"))
        for one in found.mismatches:
            table.add_row(escape(one.name), f"{one.count:,}", f"{one.worst:.4g}")
        console.print(table)
    if any(one.name.startswith("mirrored") for one in found.mismatches):
        console.print(
            "mirrored: orange is not shown what blue is shown when the field is turned around, neither in "
            "training nor in a match: the builder's own doing"
        )
    kinds = count_of(len(found.mismatches), "kind")
    differ = f"{kinds} of numbers differ" if found.mismatches else "all equal"
    console.print(
        f"{count_of(found.compared, 'decision')} compared, {found.numbers:,} numbers of observations and "
        f"controls: {differ} in {size[0]}v{size[1]}"
    )
    if found.unknown:
        left_out = count_of(found.unknown, "decision")
        console.print(f"left out: {left_out} whose packet does not tell all, such as the first")
