"""Train a policy to imitate recorded matches: `rlgym-bridge imitate`."""

import argparse
import itertools
from collections.abc import Callable
from pathlib import Path

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.policy.numpy_layers import ACTIVATIONS
from rlgym_bridge.policy.run_modules import RUN_FILE, run_modules
from rlgym_bridge.training.imitate import Imitation, imitate


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Train a policy to imitate the bots of recorded matches (behaviour cloning): in each state it learns "
        "the action that the game applied for them."
    )
    shared.add_option(
        parser, "files RECORDING", "recorded by rlgym-bridge match --record (.mcap); or of people: replays "
        "(.replay), or files that replicar made of them (.parquet)", nargs="+",
    )  # fmt: skip
    shared.add_option(
        parser, "--out DIR", "policy folder to write", output_files.folder_name,
        default=Path("runs/imitation"),
    )  # fmt: skip
    shared.add_option(
        parser, "--bot ID", "agent id of a bot to imitate, as `rlgym-bridge inspect` shows it; may be "
        "repeated (default: all that play policy folders)", action="append",
    )  # fmt: skip
    shared.add_option(
        parser, "--commanded", "learn the actions that the policies chose, also where the game applied "
        "another",
    )  # fmt: skip
    shared.add_option(
        parser, "--held-out SHARE", "share of the decisions to hold out as a test set, in blocks of two "
        "seconds", default=0.2,
    )  # fmt: skip
    _add_replay_options(parser)
    _add_network_options(parser)
    shared.add_option(
        parser, "--epochs N", "passes over the decisions (default: 20, or as many as 1,000 gradient steps "
        "need, if more)", float,
    )  # fmt: skip
    shared.add_option(parser, "--learning-rate RATE", "learning rate of Adam", default=0.001)
    shared.add_seed_option(parser, "network and batches")
    shared.add_option(
        parser, "--run RUN", "training run of a recorded bot, whose modules it may import; may be repeated",
        default=[], action="append",
    )  # fmt: skip
    shared.add_modules_option(parser, "recorded policies may import from")


def _add_replay_options(parser: argparse.ArgumentParser) -> None:
    shared.add_option(
        parser, "--like POLICY", "for replays: policy folder or training run whose observations and actions "
        "the clone gets",
    )  # fmt: skip
    shared.add_option(
        parser, "--replicar PYTHON", "for replays: a Python 3.12 or later that has replicar, which infers "
        "the inputs (default: this)", default="",
    )  # fmt: skip


def _add_network_options(parser: argparse.ArgumentParser) -> None:
    shared.add_option(
        parser, "--layers N", "widths of the hidden layers (default: 256 256)", int, nargs="+",
        default=[256, 256],
    )  # fmt: skip
    shared.add_option(
        parser, "--activation", "between the layers (default: relu)", default="relu",
        choices=tuple(ACTIVATIONS),
    )  # fmt: skip
    shared.add_option(parser, "--layer-norm", "layer normalisation before each activation")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    say = shared.printer(options)
    output_files.check_outputs(options.json, inputs=map(Path, options.files))
    output_files.check_output_folder(options.out, options.json)
    names = (
        "commanded", "held_out", "layers", "activation", "layer_norm", "epochs", "learning_rate", "seed",
        "like", "replicar",
    )  # fmt: skip
    how = {name: getattr(options, name) for name in names}
    how["allow_modules"] = [
        *shared.allowed_modules(options),
        *itertools.chain(*map(_modules_of, options.run)),
    ]
    found = imitate(options.files, options.out, bots=options.bot, say=say, **how)
    _tell(options.out, found, say, options.like is not None)
    output_files.write_json(options.json, found.to_json())
    return 0


def _modules_of(run: str) -> tuple[str, ...]:
    modules = run_modules(run)
    if not modules:
        raise ValueError(
            f"--run {run} is no folder of a training run with a {RUN_FILE}, expected one; or name the "
            "modules of the recorded policies with --allow-modules"
        )
    return modules


def _tell(out: Path, found: Imitation, say: Callable[[str], None], people: bool) -> None:
    say(f"{out}: learned from {found.steps:,} decisions of {', '.join(found.bots)}")
    if people and found.held_out and found.error != found.error:
        say(
            f"it does what people did in {found.accuracy_learned:.1%} of them, and in {found.accuracy:.1%} "
            f"of {found.held_out:,} others (the commonest action alone would be right in "
            f"{found.commonest:.1%})"
        )
        return
    learned = "which it learned" if found.corrected else "and it learned what was commanded"
    if found.differing:
        say(f"for {found.differing:,} of them the game applied another action than commanded, {learned}")
    elif found.held_out:
        say("for all of them the game applied the action that was commanded")
    if found.untold:
        out_of = "left out" if found.corrected else "not tried"
        say(f"for {found.untold:,} the recording does not tell what was applied; they are {out_of}")
    if not found.held_out:
        say("not tried: of no decision that was held out the recording tells what the game applied")
        return
    if found.error == found.error:  # not nan
        say(f"on {found.held_out:,} others its actions are {found.error:.3f} off what the game applied")
        return
    say(
        f"it does what the game applied in {found.accuracy_learned:.1%} of them, and in {found.accuracy:.1%} "
        f"of {found.held_out:,} others"
    )
    say(
        f"(of the others what was commanded in {found.accuracy_commanded:.1%}; the commonest action alone "
        f"would be right in {found.commonest:.1%})"
    )
    if not found.accuracy > found.commonest:
        say("that is no better than doing the same all the time: record more matches")
