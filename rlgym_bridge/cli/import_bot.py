"""Make a policy folder of a bot that was trained elsewhere: `rlgym-bridge import`."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.components.actions import action_space
from rlgym_bridge.components.spec import TRUSTED, Components, ComponentSpec, component_factory
from rlgym_bridge.game import MOST_TEAM_SIZE, TICK_SKIP
from rlgym_bridge.policy.environment_facts import EnvironmentFacts, read_environment
from rlgym_bridge.policy.folder import save_policy
from rlgym_bridge.policy.importers import MAPPED, ImportedNetwork, find_checkpoint, read_checkpoint
from rlgym_bridge.policy.manifest import SELECTIONS, Normalisation
from rlgym_bridge.policy.numpy_layers import ACTIVATIONS
from rlgym_bridge.server import ConfigError
from rlgym_bridge.server.lineup import show_match_command
from rlgym_bridge.user_input.arguments import shorten_text
from rlgym_bridge.user_input.text_files import parse_json
from rlgym_bridge.user_input.user_modules import add_module_folders

_ENDS: Final = {
    "categorical": ("linear", "softmax", "log_softmax"),
    "multi_categorical": ("linear",),
    "gaussian": ("tanh", "softplus"),
}
"""Ends that fit each kind of actions: logits, tanh of means and deviations, or softplus of deviations."""

_PARSER: Final = "rlgym_bridge:LookupTableAction"


@dataclass(frozen=True)
class NamedComponents:
    """The components of a bot by name, or its environment."""

    obs: ComponentSpec | None  # the observation builder; None where `env` is given, as `parser` is
    parser: ComponentSpec | None  # the action parser, repeated for a decision's ticks
    env: str | None  # `"module:function"` of an environment
    team_sizes: tuple[tuple[int, int], ...]  # (blue, orange) of the matches; empty with `env`

    @property
    def allow_option(self) -> str:
        """Return the option that lets `match` import the user's modules, after a space, or nothing."""
        specs = [spec for spec in (self.obs, self.parser) if spec is not None]
        names = [self.env.partition(":")[0]] if self.env else [one for spec in specs for one in spec.modules]
        own = [name for name in dict.fromkeys(names) if name.partition(".")[0] not in TRUSTED]
        return f" --allow-modules {' '.join(own)}" if own else ""


def _named_components(options: argparse.Namespace) -> NamedComponents:
    """Return the components that the options name; `ConfigError` where they are not one way to name them."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in ("obs", "obs_args", "parser", "team_size")
        if getattr(options, name) is not None
    ]
    if options.env is not None:
        if given:
            raise ConfigError(
                f"--env and {', '.join(given)} are given, expected --env alone: the environment has all "
                "components"
            )
        return NamedComponents(None, None, options.env, ())
    if options.obs is None:
        raise ConfigError(
            "neither --env nor --obs is given, expected the environment that the bot was trained in (--env "
            "my_env:build) or its observation (--obs rlgym_bridge:AdvancedObs)"
        )
    sizes = options.team_size or [1]
    if not all(1 <= size <= MOST_TEAM_SIZE for size in sizes):
        raise ConfigError(f"--team-size is {sizes}, expected cars in a team, 1 to {MOST_TEAM_SIZE}")
    action = _component("--parser", options.parser or _PARSER, {})
    repeats = TICK_SKIP if options.tick_skip is None else options.tick_skip
    return NamedComponents(
        _component("--obs", options.obs, _arguments(options.obs_args)),
        ComponentSpec("rlgym_bridge:RepeatAction", {"repeats": repeats}, action),
        None,
        tuple((size, size) for size in sizes),
    )


def _component(option: str, path: str, arguments: Mapping[str, Any]) -> ComponentSpec:
    if path.count(":") != 1 or path.startswith(":") or path.endswith(":"):
        raise ConfigError(f"{option} is {path!r}, expected module:Class, such as {_PARSER}")
    return ComponentSpec(path, arguments)


def _arguments(text: str | None) -> Mapping[str, Any]:
    try:
        found = parse_json(text or "{}")
    except ValueError as error:
        raise ConfigError(f"--obs-args is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"--obs-args is {text}, expected a JSON object of arguments by name")
    return found


def _add_component_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("without an environment", "in place of --env")
    shared.add_option(
        group, "--obs MODULE:CLASS", "observation builder: rlgym_bridge:AdvancedObs (RLGym v1's), "
        "rlgym_bridge:DefaultObs, one of rlgym.rocket_league.obs_builders, or your own",
    )  # fmt: skip
    shared.add_option(
        group, "--obs-args JSON", "its arguments by name: '{\"zero_padding\": 3}' (default: none)"
    )
    shared.add_option(
        group, "--parser MODULE:CLASS", f"action parser, without its repetition (default: {_PARSER})"
    )
    shared.add_option(
        group, "--team-size N", "cars in a team, of each match that it plays (default: 1)", int, nargs="+"
    )
    shared.add_option(
        parser, "--action-delay TICKS", "ticks that an action waits, from the state it was decided on to the "
        "first tick it drives; 7 for bots of rlgym-sim and RLGymPPO_CPP with a tick skip of 8 (default: the "
        "environment's, else 1)", int,
    )  # fmt: skip


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Make a policy folder of a checkpoint of rlgym-ppo, rlgym-learn or a C++ trainer, a TorchScript file "
        "or a state_dict, and of the environment it was trained in, or else of its observation and actions. "
        "Layer sizes, team sizes, tick skip, delay and hitbox are read off checkpoint and environment."
    )
    shared.add_option(
        parser, "checkpoint CHECKPOINT", "its folder, one that holds checkpoints (the newest number is "
        "taken), or a file", Path,
    )  # fmt: skip
    shared.add_option(
        parser, "--env MODULE:FUNCTION", "returns the RLGym it was trained in, or rlgym-ppo's wrapper; the "
        "bot needs the module, too",
    )  # fmt: skip
    _add_component_options(parser)
    shared.add_option(parser, "--out DIR", "policy folder to write", output_files.folder_name, required=True)
    shared.add_option(
        parser, "--selection", "sample draws actions as training did, argmax plays the likeliest",
        default="sample", choices=SELECTIONS,
    )  # fmt: skip
    shared.add_option(
        parser, "--tick-skip TICKS", "ticks of a decision (default: what the parser says, else 8)", int
    )
    shared.add_option(
        parser, "--activation NAME", f"what stands between the layers: {', '.join(ACTIVATIONS)}; for a file "
        "that does not tell (a state_dict, libtorch's), and for bots of rlgym-ppo and rlgym-learn whose "
        "networks were changed",
    )  # fmt: skip
    shared.add_option(
        parser, "--no-standardise", "a PPO_POLICY.pt without BOOK_KEEPING_VARS.json was trained with "
        "standardize_obs=False", action="store_false", dest="standardise",
    )  # fmt: skip
    shared.add_option(
        parser, "--map PART=NAME", f"what the names of tensors begin with, of {', '.join(MAPPED)}, for own "
        "classes in rlgym-learn or torch: --map actor=policy.net; layers in several places with commas: "
        "actor=shared,head", nargs="+", default=[],
    )  # fmt: skip
    shared.add_option(
        parser, "--action-ranges JSON", "output_ranges of rlgym-learn's ContinuousActor, which it does not "
        "save: [-1, 1] for all numbers, or a list of such pairs",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Read, save, and say what came of it."""
    add_module_folders(Path.cwd())  # --env names a module
    output_files.check_outputs(options.json, inputs=[options.checkpoint])
    output_files.check_output_folder(options.out, options.json, [options.checkpoint])
    checkpoint = find_checkpoint(options.checkpoint)  # before options that are missing
    named = _named_components(options)
    network = read_checkpoint(checkpoint, options.activation, options.standardise, _names(options.map))
    components = component_factory(named.obs, named.parser, named.env, allow=None)()
    teams, hitbox, engine = list(named.team_sizes), "octane", None
    if named.env is not None:
        facts = read_environment(named.env)
        teams, hitbox, engine = list(facts.team_sizes), _hitbox_of(facts), facts.explain_engine()
    distribution = _distribution(network, components, sorted(teams)[0], named)
    ranges, scaling = _ranges(options.action_ranges, distribution, network), None
    if network.scale is not None:
        mean, std, clip = network.scale
        scaling = Normalisation((mean,) * network.inputs, (std,) * network.inputs, clip)
    trained = {"trainer": network.trainer, "checkpoint": network.source.parent.name, "steps": network.steps}
    manifest = save_policy(
        options.out,
        {**network.weights, **ranges},
        distribution=distribution,
        team_sizes=sorted(teams),
        obs=named.obs,
        parser=named.parser,
        env=named.env,
        action_delay=options.action_delay,
        tick_skip=options.tick_skip,
        selection=options.selection,
        obs_normalisation=scaling,
        hitbox=hitbox,
        activation=network.activation,
        training=trained,
    )
    of_manifest = ("distribution", "obs_size", "tick_skip", "action_delay", "hitbox")
    found = {
        "source": str(network.source),
        "trainer": network.trainer,
        "layers": network.widths,
        "activation": network.activation,
        "layer_norm": any(name.startswith("norms.") for name in network.weights),
        **{name: getattr(manifest, name) for name in of_manifest},
        "standardised": network.scale is not None,
        "team_sizes": [list(pair) for pair in manifest.team_sizes],
        "steps": network.steps,
    }
    say = shared.printer(options)
    for name, value in found.items():
        say(f"{name.replace('_', ' '):14}{_in_words(value)}")
    if engine is not None:
        say(engine)
    play = show_match_command(str(options.out), manifest.team_sizes, named.allow_option)
    say(f"written to {options.out}" + (f"; to play it:\n{play}" if play else ""))
    output_files.write_json(options.json, found)
    return 0


def _in_words(value: object) -> object:
    if value is None:
        return "unknown"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _hitbox_of(facts: EnvironmentFacts) -> str:
    if len(facts.hitboxes) != 1:
        raise ValueError(
            f"{facts.name} plays cars with hitboxes {', '.join(facts.hitboxes)}, expected one for all"
        )
    return facts.hitboxes[0]


def _distribution(
    network: ImportedNetwork, components: Components, teams: tuple[int, int], named: NamedComponents
) -> str:
    """Return what the outputs of a network mean, given what actions are."""
    question = "was it trained with " + ("this --env?" if named.env else "this --parser?")
    agent = "blue-0" if teams[0] else "orange-0"
    kind, sizes = action_space(components.parser.get_action_space(agent))
    expected = 2 * sizes[0] if kind == "gaussian" else sum(sizes)
    if network.outputs != expected:
        raise ValueError(
            f"{network.source} gives {network.outputs} numbers, and {type(components.parser).__name__}'s "
            f"actions ({kind} over {', '.join(map(str, sizes))}) need {expected}: {question}"
        )
    if network.end is not None and network.end not in _ENDS[kind]:
        raise ValueError(
            f"{network.source} ends with {network.end}, and {type(components.parser).__name__}'s actions "
            f"({kind}) are played from {' or '.join(_ENDS[kind])}: {question}"
        )
    if kind != "gaussian":
        return kind
    return "tanh_gaussian" if network.end == "softplus" else "bounded_gaussian"


def _names(given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for part, _, name in pairs:
        if part not in MAPPED or not all(one.strip() for one in name.split(",")):
            raise ConfigError(
                f"--map is {' '.join(given)}, expected a part ({', '.join(MAPPED)}), = and the beginning of "
                "its tensors' names, such as actor=policy.net"
            )
    return {part: name for part, _, name in pairs}


def _ranges(text: str | None, distribution: str, network: ImportedNetwork) -> dict[str, np.ndarray]:
    """Return the tensor of the least and greatest number of each action, where the distribution has one."""
    if (distribution == "tanh_gaussian") != (text is not None):
        raise ConfigError(
            f"{network.source} gives means and standard deviations, and rlgym-learn does not save the ranges "
            "of its actions: give --action-ranges, the actor's output_ranges, such as [-1, 1] for all numbers"
            if text is None
            else f"--action-ranges is given for actions that are {distribution}, expected it only for those "
            "of rlgym-learn's ContinuousActor"
        )
    if text is None:
        return {}
    count = network.outputs // 2
    expected = f"expected a pair such as [-1, 1], or a list of {count} pairs, within -1 to 1, low first"
    try:
        given = np.array(parse_json(text), np.float64)
        ranges = np.broadcast_to(given, (count, 2))
    except (ValueError, TypeError) as error:
        raise ConfigError(f"--action-ranges is {shorten_text(text)}, {expected}") from error
    for action, (low, high) in enumerate(ranges.tolist()):
        if not -1 <= low < high <= 1:  # nor NaN
            found = shorten_text(text) if given.ndim == 1 else f"[{low}, {high}] for action {action}"
            raise ConfigError(f"--action-ranges is {found}, {expected}")
    return {"action_ranges": ranges.astype(np.float32)}
