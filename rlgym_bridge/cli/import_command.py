"""Make a policy folder of a bot that was trained elsewhere: `rlgym-bridge import`."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.cli.named_components import add_component_options, named_components
from rlgym_bridge.components.spec import Components, component_factory
from rlgym_bridge.matches.lineup import show_match_command
from rlgym_bridge.policy.activations import ACTIVATIONS
from rlgym_bridge.policy.environment_facts import EnvironmentFacts, read_environment
from rlgym_bridge.policy.fingerprint import action_space
from rlgym_bridge.policy.folder import save_policy
from rlgym_bridge.policy.importers import ForeignNetwork, find_checkpoint, read_checkpoint
from rlgym_bridge.policy.manifest import SELECTIONS, Normalisation
from rlgym_bridge.user_input.user_modules import add_module_folders

_ENDS: Final = {
    "categorical": ("linear", "softmax", "log_softmax"),
    "multi_categorical": ("linear",),
    "gaussian": ("tanh",),
}
"""Ends of scripts that fit each kind of actions: logits, or tanh of means and deviations."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Make a policy folder of a checkpoint of rlgym-ppo, rlgym-learn or a C++ trainer, a TorchScript file "
        "or a state_dict, and of the environment it was trained in, or else of its observation and actions. "
        "Layer sizes, team sizes, tick skip, delay and hitbox are read off checkpoint and environment."
    )
    parser.add_argument(
        "checkpoint", type=Path, metavar="CHECKPOINT",
        help="its folder, one that holds checkpoints (the newest number is taken), or a file",
    )  # fmt: skip
    parser.add_argument(
        "--env", metavar="MODULE:FUNCTION",
        help="returns the RLGym it was trained in, or rlgym-ppo's wrapper; the bot needs the module, too",
    )  # fmt: skip
    add_component_options(parser)
    parser.add_argument(
        "--out", type=output_files.folder_name, required=True, metavar="DIR", help="policy folder to write"
    )
    parser.add_argument(
        "--selection", choices=SELECTIONS, default="sample",
        help="sample draws actions as training did, argmax plays the likeliest (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--tick-skip",
        type=int,
        metavar="TICKS",
        help="ticks of a decision (default: what the parser says, else 8)",
    )
    parser.add_argument(
        "--activation", metavar="NAME",
        help=f"what stands between the layers: {', '.join(ACTIVATIONS)}; for a file that does not tell (a "
        "state_dict, libtorch's), and for bots of rlgym-ppo and rlgym-learn whose networks were changed",
    )  # fmt: skip
    parser.add_argument(
        "--no-standardise", dest="standardise", action="store_false",
        help="a PPO_POLICY.pt without BOOK_KEEPING_VARS.json was trained with standardize_obs=False",
    )  # fmt: skip
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read, save, and say what came of it."""
    add_module_folders(Path.cwd())  # --env names a module
    output_files.check_outputs(options.json, inputs=[options.checkpoint])
    output_files.check_output_folder(options.out, options.json, [options.checkpoint])
    find_checkpoint(options.checkpoint)  # before options that are missing
    named = named_components(options)
    network = read_checkpoint(options.checkpoint, options.activation, options.standardise)
    components = component_factory(named.obs, named.parser, named.env, allow=None)()
    teams, hitbox, engine = list(named.team_sizes), "octane", None
    if named.env is not None:
        facts = read_environment(named.env)
        teams, hitbox, engine = list(facts.team_sizes), _hitbox_of(facts), facts.explain_engine()
    scale = None if network.scale is None else _normalisation(network)
    manifest = save_policy(
        options.out,
        network.weights,
        distribution=_distribution(network, components, sorted(teams)[0]),
        team_sizes=sorted(teams),
        obs=named.obs,
        parser=named.parser,
        env=named.env,
        action_delay=options.action_delay,
        tick_skip=options.tick_skip,
        selection=options.selection,
        obs_normalisation=scale,
        hitbox=hitbox,
        activation=network.activation,
        training={
            "trainer": network.trainer,
            "checkpoint": network.source.parent.name,
            "steps": network.steps,
        },
    )
    found = {
        "source": str(network.source),
        "trainer": network.trainer,
        "layers": network.widths,
        "activation": network.activation,
        "layer_norm": any(name.startswith("norms.") for name in network.weights),
        "distribution": manifest.distribution,
        "obs_size": manifest.obs_size,
        "standardised": scale is not None,
        "tick_skip": manifest.tick_skip,
        "action_delay": manifest.action_delay,
        "team_sizes": [list(pair) for pair in manifest.team_sizes],
        "hitbox": manifest.hitbox,
        "steps": network.steps,
    }
    if not options.quiet:
        for name, value in found.items():
            print(f"{name.replace('_', ' '):14}{_in_words(value)}")
        if engine is not None:
            print(engine)
        play = show_match_command(str(options.out), manifest.team_sizes, named.allow_option)
        print(f"written to {options.out}" + (f"; to play it:\n{play}" if play else ""))
    return 0 if output_files.write_json(options.json, found) else 2


def _in_words(value: object) -> object:
    if value is None:
        return "unknown"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _hitbox_of(facts: EnvironmentFacts) -> str:
    """Return the hitbox of an environment's cars."""
    if len(facts.hitboxes) != 1:
        raise ValueError(
            f"{facts.name} plays cars with hitboxes {', '.join(facts.hitboxes)}, expected one for all"
        )
    return facts.hitboxes[0]


def _distribution(network: ForeignNetwork, components: Components, teams: tuple[int, int]) -> str:
    """Return what the outputs of a network mean, given what actions are."""
    agent = "blue-0" if teams[0] else "orange-0"
    kind, sizes = action_space(components.parser.get_action_space(agent))
    expected = 2 * sizes[0] if kind == "gaussian" else sum(sizes)
    if network.outputs != expected:
        raise ValueError(
            f"{network.source} gives {network.outputs} numbers, and {type(components.parser).__name__}'s "
            f"actions ({kind} over {_list(sizes)}) need {expected}: was it trained with this --env?"
        )
    if network.end is not None and network.end not in _ENDS[kind]:
        raise ValueError(
            f"{network.source} ends with {network.end}, and {type(components.parser).__name__}'s actions "
            f"({kind}) are played from {' or '.join(_ENDS[kind])}: was it trained with this --env?"
        )
    return "bounded_gaussian" if kind == "gaussian" else kind


def _list(sizes: Iterable[int]) -> str:
    return ", ".join(map(str, sizes))


def _normalisation(network: ForeignNetwork) -> Normalisation:
    assert network.scale is not None  # checked by the caller
    mean, std, clip = network.scale
    return Normalisation((mean,) * network.inputs, (std,) * network.inputs, clip)
