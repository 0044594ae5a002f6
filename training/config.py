"""The settings of a training run: one flat TOML file, every key with its meaning.

`config.toml` beside this file holds all keys with their defaults; a file of one's own needs only those
that differ.
"""

import dataclasses
import difflib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgym_bridge.game import HITBOXES
from rlgym_bridge.physics import parse_physics
from rlgym_bridge.policy.manifest import MOST_TICKS
from rlgym_bridge.user_files import read_toml

_MOST = 10**15  # of a whole number: far more than any run has steps
_MOST_FLOAT = 1e30


class ConfigError(ValueError):
    """A setting is not what it should be, or does not fit another."""


def _setting(
    default: Any, text: str, low: float | None = None, high: float = math.inf, one_of: tuple[str, ...] = ()
) -> Any:
    """Return a field: its default, what it means, and what it may be (numbers in `low..high`)."""
    return dataclasses.field(default=default, metadata={"help": text, "range": (low, high), "one_of": one_of})


_GROUPS = {
    "out": "the run",
    "team_sizes": "the match",
    "collectors": "playing; a batch is collectors * matches * rollout_steps * cars, less the opponents' cars",
    "policy_layers": "networks",
    "gamma": "learning",
    "checkpoint_every": "checkpoints",
    "goal": "rewards, each times its weight; see rlgym_bridge/components/rewards.py",
    "no_touch_seconds": "how episodes end and begin, besides goals",
}
"""Headings in a settings file, by the key that they stand before."""


@dataclass(frozen=True)
class Settings:
    """Everything that a run depends on; the words beside each are its help text."""

    out: str = _setting("runs/1v1", "folder of the run: checkpoints, progress.csv, tensorboard")
    steps: int = _setting(100_000_000, "agent steps to train: decisions of cars that are learned from", 1)
    seed: int = _setting(0, "of networks, arenas, actions and minibatches", 0, 2**31)
    components: str = _setting("training.components", "module with observation, parser, rewards and resets")
    env: str = _setting("", "in its place module:function of your RLGym; its components are trained with")

    start_from: str = _setting("", "policy folder, or folder of a run, whose policy a new run goes on from")
    critic_alone: int = _setting(
        300_000, "agent steps, the first of a run with start_from, from which only the critic learns", 0
    )

    team_sizes: tuple[int, int] = _setting((1, 1), "cars of blue and of orange", 0, 4)
    tick_skip: int = _setting(8, "game ticks that an action lasts (120 a second)", 1, MOST_TICKS)
    action_delay: tuple[int, int] = _setting(
        (1, 1),
        "ticks from the state decided on to the first one driven: lowest, highest; drawn per episode; a "
        "rival has its own",
        0,
        MOST_TICKS,
    )
    action_delay_noise: float = _setting(
        0.0, "ticks, standard deviation of single decisions around that delay", 0, MOST_TICKS
    )
    input_latency: int = _setting(
        0,
        "ticks from a packet to the first tick its answer drives, in matches to come; for the bot alone",
        0,
        MOST_TICKS,
    )
    hitbox: str = _setting("octane", "of all cars", one_of=tuple(box.name for box in HITBOXES))

    collectors: int = _setting(0, "processes that play; 0: one for each core", 0)
    matches: int = _setting(128, "matches that each of them plays at once", 1)
    rollout_steps: int = _setting(32, "steps of every match between two updates", 1)
    snapshot_share: float = _setting(0.2, "share of matches against an older version of the policy", 0, 1)
    rival: str = _setting("", "another opponent: chaser, or a policy folder with equal actions")
    rival_share: float = _setting(0.0, "share of matches against it", 0, 1)
    snapshots: int = _setting(8, "older versions to draw from; each checkpoint adds or replaces one", 1)

    policy_layers: tuple[int, ...] = _setting((256, 256), "widths of the policy's hidden layers", 1)
    critic_layers: tuple[int, ...] = _setting((256, 256), "widths of the critic's hidden layers", 1)
    normalise_obs: bool = _setting(False, "scale observations by their running mean and deviation")
    obs_clip: float = _setting(10.0, "scaled observations are clipped to plus and minus this", 0.1)

    gamma: float = _setting(0.993, "discount a step", 0, 1)
    gae_lambda: float = _setting(0.95, "weight of longer returns in the advantage", 0, 1)
    learning_rate: float = _setting(5e-4, "of Adam, for policy and critic", 0)
    learning_rate_schedule: str = _setting(
        "constant", "constant, or linear: down to 0 at the last step", one_of=("constant", "linear")
    )
    epochs: int = _setting(2, "times that a batch is gone through", 1)
    minibatch: int = _setting(2048, "agent steps of one gradient step", 1)
    clip: float = _setting(0.2, "how far the probability ratio counts: 1 - clip to 1 + clip", 0)
    entropy_coefficient: float = _setting(0.005, "weight of the entropy in the loss", 0)
    max_grad_norm: float = _setting(0.5, "longest gradient of each network", 1e-9)
    device: str = _setting(
        "auto", "of the learner; auto: cuda if there is one", one_of=("auto", "cpu", "cuda")
    )
    threads: int = _setting(0, "of the learner; 0: one for each core", 0)
    bfloat16: bool = _setting(
        False, "lower precision in the learner; much slower on CPUs without AVX512-BF16"
    )

    checkpoint_every: int = _setting(
        1_000_000, "agent steps between checkpoints; at each of them all matches begin anew", 1
    )
    keep_checkpoints: int = _setting(10, "newest checkpoints to keep", 1)

    goal: float = _setting(10.0, "reward for a goal, minus for one conceded")
    touch: float = _setting(2.0, "for a step with a touch")
    touch_strength: float = _setting(2.0, "for the ball's change of speed at a touch, in 6000 uu/s")
    air_touch: float = _setting(0.0, "for a touch high up")
    save: float = _setting(0.0, "for a save")
    demolition: float = _setting(0.0, "for a demolition, minus for being demolished")
    velocity_to_ball: float = _setting(0.1, "each step, for speed towards the ball, in 2300 uu/s")
    velocity_ball_to_goal: float = _setting(
        0.1, "each step, for the ball's speed towards the goal, in 6000 uu/s"
    )
    face_ball: float = _setting(0.0, "each step, for the cosine of the angle between nose and ball")
    in_air: float = _setting(0.0, "each step off the ground; a little keeps a young policy jumping")
    boost_kept: float = _setting(0.0, "each step, for the square root of boost / 100")
    boost_picked_up: float = _setting(0.0, "for the gain of the square root of boost / 100")
    team_spirit: float = _setting(0.0, "0: rewards are a car's own; 1: the mean of its team", 0, 1)
    zero_sum: bool = _setting(False, "take off the mean of the opponents' rewards")

    no_touch_seconds: float = _setting(15.0, "game time without a touch that ends an episode", 0.1)
    episode_seconds: float = _setting(300.0, "game time that ends an episode", 0.1)
    kickoff_share: float = _setting(0.5, "share of episodes from a kickoff; the others start anywhere", 0, 1)

    physics: dict[str, Any] = dataclasses.field(
        default_factory=dict,
        metadata={"help": "constants drawn for each episode from low to high, multiples of RocketSim's own"},
    )
    my: dict[str, Any] = dataclasses.field(
        default_factory=dict,
        metadata={"help": "for your own components, which read settings.my: numbers, texts, lists of them"},
    )

    def __post_init__(self) -> None:
        default = type(self).__dataclass_fields__["components"].default
        if self.env and self.components != default:
            raise ConfigError(f'env is "{self.env}" and components "{self.components}", expected one of them')
        if bool(self.rival) != bool(self.rival_share):
            raise ConfigError(
                f'rival is "{self.rival}" and rival_share {self.rival_share}, expected both or neither'
            )
        if self.snapshot_share + self.rival_share > 1:
            raise ConfigError(
                f"snapshot_share is {self.snapshot_share} and rival_share {self.rival_share}, expected 1 "
                "together at most"
            )
        for name in ("team_sizes", "action_delay"):
            if len(getattr(self, name)) != 2:
                raise ConfigError(f"{name} is {list(getattr(self, name))}, expected two whole numbers")
        if "\0" in self.out:
            raise ConfigError(f"out is {self.out!r}, expected the name of a folder")
        if not sum(self.team_sizes):
            raise ConfigError("team_sizes is [0, 0], expected one car at least")
        low, high = self.action_delay
        if low > high:
            raise ConfigError(f"action_delay is [{low}, {high}], expected the lowest first")
        if (self.snapshot_share or self.rival_share) and not all(self.team_sizes):
            raise ConfigError(
                f"snapshot_share is {self.snapshot_share}, rival_share {self.rival_share} and team_sizes "
                f"{list(self.team_sizes)}: without opponents they have nobody to play; set both to 0"
            )

    @property
    def cars(self) -> int:
        """Cars of a match."""
        return sum(self.team_sizes)


def hitbox_number(settings: Settings) -> int:
    """Return the number of the cars' hitbox in `game.HITBOXES`."""
    return [box.name for box in HITBOXES].index(settings.hitbox)


def load(*paths: Path, **changes: Any) -> Settings:
    """Read TOML files of settings.

    Args:
        paths: One or more; what stands in a later one counts, in tables key by key. Keys that they lack
            have their defaults.
        changes: Settings in place of the files'.

    Raises:
        ConfigError: A file is unreadable; a key is unknown; a value is of the wrong type or out of range.
    """
    values: dict[str, Any] = {}
    for path in paths:
        try:
            read = read_toml(path)
        except (OSError, ValueError) as error:
            raise ConfigError(str(error)) from error
        for name, value in read.items():
            tables = isinstance(value, dict) and isinstance(values.get(name), dict)
            values[name] = values[name] | value if tables else value
    try:
        return checked(values | changes)
    except ConfigError as error:
        raise ConfigError(f"{', '.join(map(str, paths))}: {error}") from error


def checked(values: Mapping[str, Any]) -> Settings:
    """Return settings from values as TOML gives them.

    Raises:
        ConfigError: A key is unknown; a value is of the wrong type or out of range.
    """
    known = {field.name: field for field in dataclasses.fields(Settings)}
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0)
            if isinstance(value, dict):
                raise ConfigError(
                    f"[{name}] is a table; settings stand outside of tables, your own in [my], constants of "
                    "the physics in [physics]"
                )
            raise ConfigError(
                f"{name} = {_as_toml(value)} is no setting; the nearest is {near[0]} (all keys: "
                "training/config.toml; those of your own components go into a table [my])"
            )
        if name == "my":
            given[name] = _own(value)
            continue
        if name == "physics":
            given[name] = _physics(value)
            continue
        given[name] = _fitting(known[name], value)
    return Settings(**given)


def _fitting(field: "dataclasses.Field[Any]", value: Any) -> Any:
    """Return the value as its field wants it."""
    kind: Any = type(field.default)
    (low, high), one_of = field.metadata["range"], field.metadata["one_of"]
    numbers = value if isinstance(value, list) else [value]
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    expected = words.get(kind, "a list of whole numbers")
    if kind is tuple:
        fits = isinstance(value, list) and all(type(item) is int for item in value)
    elif kind is float:
        fits = type(value) in (int, float) and abs(value) <= _MOST_FLOAT
    else:
        fits = type(value) is kind
    if kind in (int, tuple) and fits and any(number > _MOST for number in numbers):
        fits, expected = False, f"{expected} of {_MOST:,} at most"
    elif one_of:
        fits, expected = fits and value in one_of, "one of " + ", ".join(one_of)
    elif low is not None:
        fits = fits and all(low <= number <= high for number in numbers)
        expected += f", {low:g} or more" if high == math.inf else f" from {low:g} to {high:g}"
    if not fits:
        raise ConfigError(f"{field.name} is {_as_toml(value)}, expected {expected}")
    return tuple(value) if kind is tuple else kind(value)


def _own(table: Any) -> dict[str, Any]:
    """Return the table [my], if a policy folder can record it."""
    if not isinstance(table, dict):
        raise ConfigError(f"my is {_as_toml(table)}, expected a table [my]")
    for name, value in table.items():
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, bool | int | float | str) for item in items):
            raise ConfigError(f"{name} in [my] is {value!r}, expected a number, a text, or a list of them")
    return dict(table)


def _physics(table: Any) -> dict[str, Any]:
    """Return the table [physics], complete."""
    try:
        return {name: one._asdict() for name, one in parse_physics(table).items()}
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _as_toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_as_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_as_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:_}" if isinstance(value, int) else str(value)


def as_toml(settings: Settings) -> str:
    """Return the text of a file with these settings, each with its help."""
    lines = []
    for field in dataclasses.fields(settings):
        if field.name in ("physics", "my"):
            table = getattr(settings, field.name)
            lines.append(f"\n# [{field.name}]: {field.metadata['help']}")
            if table:
                lines += [f"[{field.name}]", *(f"{name} = {_as_toml(one)}" for name, one in table.items())]
            continue
        if field.name in _GROUPS:
            lines.append(f"\n# {_GROUPS[field.name]}")
        value = f"{field.name} = {_as_toml(getattr(settings, field.name))}"
        lines.append(f"{value:37} # {field.metadata['help']}")
    return "\n".join(lines).strip() + "\n"
