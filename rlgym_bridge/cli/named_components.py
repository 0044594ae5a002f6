"""Options that name the observation and the actions of a bot that has no RLGym environment."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rlgym_bridge.components.spec import TRUSTED, ComponentSpec
from rlgym_bridge.game import MOST_TEAM_SIZE, TICK_SKIP
from rlgym_bridge.server import ConfigError
from rlgym_bridge.user_input.text_files import parse_json

_PARSER: Final = "rlgym_bridge:LookupTableAction"
_OPTIONS: Final = ("obs_args", "parser", "team_size")


@dataclass(frozen=True)
class NamedComponents:
    """The components of a bot by name, or its environment.

    Attributes:
        obs: The observation builder; None where `env` is given, as `parser` is.
        parser: The action parser, repeated for a decision's ticks.
        env: `"module:function"` of an environment.
        team_sizes: (blue, orange) of the matches; empty with `env`.
    """

    obs: ComponentSpec | None
    parser: ComponentSpec | None
    env: str | None
    team_sizes: tuple[tuple[int, int], ...]

    @property
    def allow_option(self) -> str:
        """Return the option that lets `match` import the user's modules, after a space, or nothing."""
        specs = [spec for spec in (self.obs, self.parser) if spec is not None]
        names = [self.env.partition(":")[0]] if self.env else [one for spec in specs for one in spec.modules]
        own = [name for name in dict.fromkeys(names) if name.partition(".")[0] not in TRUSTED]
        return f" --allow-modules {' '.join(own)}" if own else ""


def add_component_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that take the place of `--env`."""
    group = parser.add_argument_group("without an environment", "in place of --env")
    group.add_argument(
        "--obs", metavar="MODULE:CLASS",
        help="observation builder: rlgym_bridge:AdvancedObs (RLGym v1's), rlgym_bridge:DefaultObs, one of "
        "rlgym.rocket_league.obs_builders, or your own",
    )  # fmt: skip
    group.add_argument(
        "--obs-args", metavar="JSON", help="its arguments by name: '{\"zero_padding\": 3}' (default: none)"
    )
    group.add_argument(
        "--parser", metavar="MODULE:CLASS", help=f"action parser, without its repetition (default: {_PARSER})"
    )
    group.add_argument(
        "--team-size", type=int, nargs="+", metavar="N",
        help="cars in a team, of each match that it plays (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--action-delay", type=int, metavar="TICKS",
        help="ticks that an action waits, from the state it was decided on to the first tick it drives; 7 "
        "for bots of rlgym-sim and RLGymPPO_CPP with a tick skip of 8 (default: the environment's, else 1)",
    )  # fmt: skip


def named_components(options: argparse.Namespace) -> NamedComponents:
    """Return the components that the options name.

    Raises:
        ConfigError: Neither an environment nor an observation is named, or both; or a value is no such thing.
    """
    given = [f"--{name.replace('_', '-')}" for name in _OPTIONS if getattr(options, name) is not None]
    if options.env is not None:
        if options.obs is not None or given:
            raise ConfigError(
                f"--env and {', '.join(['--obs'] * (options.obs is not None) + given)} are given, expected "
                "--env alone: the environment has all components"
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
    if text is None:
        return {}
    try:
        found = parse_json(text)
    except ValueError as error:
        raise ConfigError(f"--obs-args is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"--obs-args is {text}, expected a JSON object of arguments by name")
    return found
