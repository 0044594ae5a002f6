"""The settings of a training run: every key with its type, its limits and its meaning; and their files.

A file is flat TOML, which needs only the keys that differ from the defaults, those of `config.toml`.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, cast

from msgspec import Meta

from rlgym_bridge.components import rewards
from rlgym_bridge.components.player_spec import MOST_FORECAST
from rlgym_bridge.components.reward_base import BatchReward
from rlgym_bridge.game import HITBOX_NAMES
from rlgym_bridge.policy.manifest import MOST_TICKS
from rlgym_bridge.policy.numpy_layers import ACTIVATIONS
from rlgym_bridge.policy.shape import NETWORKS, PERCEPTRON
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, ROCKETSIM2, SIMULATORS
from rlgym_bridge.training.setting_values import (
    DEFAULTS,
    PARSERS,
    Layers,
    as_lists,
    check_layers,
    check_own,
    count_matches,
)
from rlgym_bridge.user_input.arguments import nearest_key, shorten_text, show_value
from rlgym_bridge.user_input.checking import VAST, check_values, expecting, one_of
from rlgym_bridge.user_input.text_files import explain_unreadable, read_toml, toml_line, toml_value

MOST_NUMBER = 1e30
# Of more matches together a bot learns less a step, and of few in one process each costs more.
_MATCHES, _MATCHES_ALONE, _FEWEST_MATCHES = 256, 128, 16
_MINIBATCH, _MINIBATCH_OF_GPU = 2048, 4096
_ALIKE = 0.6  # similarity of spelling from which on a key is suggested for an unknown one

Count = Annotated[int, Meta(ge=0, le=VAST)]
Positive = Annotated[int, Meta(ge=1, le=VAST)]
Ticks = Annotated[int, Meta(ge=0, le=MOST_TICKS)]
Number = Annotated[float, Meta(ge=-MOST_NUMBER, le=MOST_NUMBER)]
NotNegative = Annotated[float, Meta(ge=0, le=MOST_NUMBER)]
Share = Annotated[float, Meta(ge=0, le=1)]

Own = bool | int | float | str


Value = TypeVar("Value")


def setting(default: Value, text: str, reward: Callable[[], BatchReward] | None = None) -> Value:
    """Return a field with its default, its help text, and the reward that it is the weight of, if any."""
    metadata = {"help": text, "reward": reward}
    if isinstance(default, dict):  # a table: each settings get one of their own
        return cast(Value, dataclasses.field(default_factory=default.copy, metadata=metadata))
    return dataclasses.field(default=default, metadata=metadata)


class SettingsError(ValueError):
    """A setting is not what it should be, or does not fit another."""


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that a run depends on; the description of each is its help text."""

    out: str = setting(
        "runs/1v1",
        "folder of the run: checkpoints, progress.csv, tensorboard; without this key it is runs/ and the "
        "name of your env or components, if you name any",
    )
    steps: Positive = setting(100_000_000, "agent steps to train: decisions of learning cars")
    seed: Annotated[int, Meta(ge=0, le=2**31)] = setting(0, "of networks, arenas, actions and minibatches")
    components: str = setting(
        "rlgym_bridge.training.components", "module with your obs, parser, reward, conditions and mutator"
    )
    env: str = setting("", "module:function that returns your RLGym environment; it replaces components")

    wandb: str = setting(
        "", 'project of Weights & Biases that gets the curves, too; "": none. Needs the extra wandb'
    )

    start_from: str = setting("", "policy folder, or folder of a run, whose policy a new run goes on from")
    critic_alone: Count = setting(
        300_000, "agent steps at the beginning of a run with start_from in which only the critic learns"
    )

    teacher: str = setting("", "policy folder, or folder of a run, whose policy this one imitates at first")
    teacher_coefficient: NotNegative = setting(1.0, "weight of KL(teacher || policy) in the loss at step 0")
    teacher_steps: Count = setting(20_000_000, "agent steps by which that weight has faded to 0, evenly")

    pilot: NotNegative = setting(
        0.0,
        "weight of a hand-written pilot, in that of the teacher, whose place it takes where a car can fly to "
        "a high ball; 0: none",
    )

    team_sizes: tuple[Any, ...] = setting(
        (1, 1),
        "cars of blue and of orange; or several sizes with their shares of the matches: [[1, 1, 0.7], [2, 2, "
        "0.3]]",
    )
    tick_skip: Annotated[int, Meta(ge=1, le=MOST_TICKS)] = setting(
        8, "game ticks that an action lasts (120 a second)"
    )
    action_delay: tuple[Ticks, Ticks] = setting(
        (1, 1),
        "ticks that an action waits, from the state it was decided on to the first tick it drives: lowest, "
        "highest; drawn for each episode; opponents have their own",
    )
    action_delay_noise: Annotated[float, Meta(ge=0, le=MOST_TICKS)] = setting(
        0.0, "ticks by which single actions vary around that delay (standard deviation)"
    )
    input_latency: Ticks = setting(
        0,
        "ticks by which matches apply the bot's inputs late, as `timing` measures it; goes into policy.json, "
        "so that the bot sends them that much earlier",
    )
    forecast: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_FORECAST)] | Literal["auto"],
        expecting(f'"auto" or whole ticks from 0 (off) to {MOST_FORECAST}'),
    ] = setting(
        0,
        "ticks of input latency that the bot looks ahead over in matches, or auto: as it is measured; 0: "
        "none; goes into policy.json",
    )
    hitbox: Annotated[str, one_of(*HITBOX_NAMES)] = setting(
        "octane", "of all cars, and of the bot in matches"
    )
    hitboxes: Annotated[
        tuple[Annotated[str, one_of(*HITBOX_NAMES)], ...],
        expecting(f'"all", or a list of {", ".join(HITBOX_NAMES)}'),
    ] = setting((), 'to draw from for each car and episode, or "all"; []: hitbox alone')
    simulator: Annotated[str, one_of(*SIMULATORS)] = setting(
        DEFAULT_SIMULATOR,
        "steps the matches: rocketsim3; or rocketsim2, which is the default without rocketsim_batch",
    )

    collectors: Annotated[int, Meta(ge=0, le=1024)] = setting(0, "processes that play; 0: one for each core")
    matches: Count = setting(
        0,
        f"matches that each of them plays at once; 0: {_MATCHES_ALONE}, or less where that makes all "
        f"together {_MATCHES}; a resumed run keeps its own",
    )
    rollout_steps: Positive = setting(32, "steps of every match between two updates")
    overlap: Annotated[bool | Literal["auto"], expecting('true, false or "auto"')] = setting(
        "auto", "play on while learning, with a policy one update older; auto: true where a GPU learns"
    )
    ray_max_age: Count = setting(
        2, "with --ray: updates by which a batch may be older than the policy that learns from it"
    )
    snapshot_share: Share = setting(0.2, "share of matches against an older version of the policy")
    snapshot_choice: Annotated[str, one_of("even", "rating")] = setting(
        "even", "older versions met: all as often, or near ratings more often"
    )
    snapshots: Positive = setting(8, "older versions to draw from: an even sample of all checkpoints")

    ruler_every: Count = setting(0, "agent steps between ratings against chaser, charger and random; 0: none")
    ruler: tuple[str, ...] = setting((), "policy folders to be rated against, too, which stay as they are")
    ruler_matches: Annotated[int, Meta(ge=2, le=10_000, multiple_of=2)] = setting(
        40, "matches with each of them, half from each side"
    )

    network: str = setting(
        PERCEPTRON, "of policy and critic: perceptron, attention, gru (with memory), or module:Class of yours"
    )
    policy_layers: Layers = setting((256, 256), "widths of the policy's hidden layers")
    critic_layers: Layers = setting((256, 256), "widths of the critic's hidden layers")
    sequence_length: Positive = setting(
        16, "steps that a network with memory is trained through; a part of rollout_steps"
    )
    activation: Annotated[str, one_of(*ACTIVATIONS)] = setting("relu", "between the layers of both networks")
    layer_norm: bool = setting(False, "layer normalisation before each activation of both networks")
    mirror: bool = setting(False, "learn one half of the field alone, and play the other mirrored")
    ball_ahead: tuple[float, ...] = setting(
        (), "seconds ahead at which the policy sees the ball, such as [0.25, 0.5, 1, 2]; []: none"
    )
    normalise_obs: bool = setting(False, "scale observations by their running mean and deviation")
    obs_clip: Annotated[float, Meta(ge=0.1, le=MOST_NUMBER)] = setting(
        10.0, "scaled observations are clipped to plus and minus this"
    )

    gamma: Share = setting(0.993, "discount factor per step")
    gae_lambda: Share = setting(0.95, "lambda of GAE")
    learning_rate: NotNegative = setting(5e-4, "learning rate of Adam, for policy and critic")
    learning_rate_schedule: Annotated[str, one_of("constant", "linear")] = setting(
        "constant", "constant, or linear: from step 0 on down to 0 at the last"
    )
    critic_learning_rate: NotNegative = setting(0.0, "of the critic; 0: learning_rate")
    critic_learning_rate_schedule: Annotated[str, one_of("same", "constant", "linear")] = setting(
        "same", "of the critic; same: learning_rate_schedule"
    )
    standardize_returns: bool = setting(
        False, "divide rewards by the running deviation of returns; then they are clipped to -10 to 10"
    )
    epochs: Positive = setting(2, "passes over each batch")
    minibatch: Count = setting(
        0,
        f"agent steps of one gradient step; 0: {_MINIBATCH:,}, on a GPU {_MINIBATCH_OF_GPU:,}; a resumed "
        "run keeps its own",
    )
    clip: NotNegative = setting(0.2, "PPO clip range of the probability ratio: 1 - clip to 1 + clip")
    value_clip: NotNegative = setting(
        0.0, "clip range of the critic's change of a value in an iteration; 0: none"
    )
    target_kl: NotNegative = setting(
        0.0, "an iteration takes no more gradient steps once a minibatch's kl is above; 0: none"
    )
    entropy_coefficient: NotNegative = setting(0.005, "weight of the entropy in the loss")
    uniform_coefficient: NotNegative = setting(0.0, "weight of KL(uniform || policy) in the loss")
    max_grad_norm: Annotated[float, Meta(ge=1e-9, le=MOST_NUMBER)] = setting(
        0.5, "maximum gradient norm of each network"
    )
    device: Annotated[str, one_of("auto", "cpu", "cuda")] = setting(
        "auto", "of the learner; auto: cuda if there is one"
    )
    threads: Count = setting(0, "of the learner; 0: one for each core")
    bfloat16: bool = setting(
        False, "lower precision in the learner: faster on CPUs with AVX512-BF16, much slower on others"
    )

    checkpoint_every: Positive = setting(
        1_000_000, "agent steps between checkpoints; at each of them all matches begin anew"
    )
    keep_checkpoints: Positive = setting(10, "newest checkpoints to keep")

    goal: Number = setting(10.0, "reward for a goal, minus for one conceded", rewards.GoalReward)
    touch: Number = setting(2.0, "for a step with a touch", rewards.TouchReward)
    touch_strength: Number = setting(
        2.0,
        "for the ball's change of velocity at a touch / 6000 uu/s",
        partial(rewards.TouchReward, strength=True),
    )
    air_touch: Number = setting(0.0, "for a touch high up", rewards.AirTouchReward)
    fly_to_ball: Number = setting(
        0.0, "each step, for flying towards a high ball / 2300 uu/s", rewards.FlyToBallReward
    )
    save: Number = setting(0.0, "for a save", rewards.SaveReward)
    demolition: Number = setting(
        0.0, "for a demolition, minus for being demolished", rewards.DemolitionReward
    )
    velocity_to_ball: Number = setting(
        0.1, "each step, for speed towards the ball / 2300 uu/s", rewards.VelocityPlayerToBallReward
    )
    velocity_ball_to_goal: Number = setting(
        0.1, "each step, for the ball's speed towards the goal / 6000 uu/s", rewards.VelocityBallToGoalReward
    )
    speed: Number = setting(
        0.0, "each step, for a car's speed in any direction / 2300 uu/s", rewards.SpeedReward
    )
    kickoff_speed: Number = setting(
        0.0, "at kickoffs, for squared speed to the ball / 2300 uu/s", rewards.KickoffSpeedReward
    )
    face_ball: Number = setting(
        0.0, "each step, for the cosine of the angle between nose and ball", rewards.FaceBallReward
    )
    in_air: Number = setting(
        0.0, "each step off the ground; a little keeps a young policy jumping", rewards.InAirReward
    )
    boost_kept: Number = setting(
        0.0, "each step, for the square root of boost / 100", rewards.BoostKeptReward
    )
    boost_picked_up: Number = setting(
        0.0, "for the gain of the square root of boost / 100", rewards.BoostPickedUpReward
    )
    mate_distance: Number = setting(
        0.0, "each step, for distance to the nearest mate / 2000 uu", rewards.MateDistanceReward
    )
    team_spirit: Share = setting(0.0, "0: rewards are a car's own; 1: the mean of its team")
    zero_sum: bool = setting(False, "take off the mean of the opponents' rewards")

    no_touch_seconds: Annotated[float, Meta(ge=0.1, le=MOST_NUMBER)] = setting(
        15.0, "game time without a touch that ends an episode"
    )
    episode_seconds: Annotated[float, Meta(ge=0.1, le=MOST_NUMBER)] = setting(
        300.0, "game time that ends an episode"
    )
    task_seconds: NotNegative = setting(
        0.0, "the same for episodes that begin elsewhere than at a kickoff; 0: episode_seconds"
    )
    kickoff_share: Share = setting(0.5, "share of episodes from a kickoff; others start anywhere")

    physics: dict[str, Any] = setting(
        {}, "constants drawn for each episode from low to high, multiples of the simulator's own"
    )
    obs_noise: dict[str, float] = setting(
        {}, "standard deviations of noise that is added to what is observed, in training alone"
    )
    initial_states: dict[str, float] = setting(
        {}, "shares of episodes by how they begin, which make 1, in place of kickoff_share"
    )
    opponents: dict[str, float] = setting(
        {}, "shares of matches against others: chaser, charger, policy folders, training runs"
    )
    my: Annotated[dict[str, Own | list[Own]], expecting("a table [my]")] = setting(
        {}, "for your own components, which read settings.my: numbers, texts, true, false, or lists"
    )

    def __post_init__(self) -> None:
        if self.env and self.components != TrainingSettings.components:
            raise SettingsError(
                f'env is "{self.env}" and components "{self.components}", expected one of them'
            )
        if self.network not in NETWORKS and not re.fullmatch(r"[\w.]+:\w+", self.network):
            raise SettingsError(
                f"network is {show_value(self.network)}, expected {', '.join(NETWORKS)}, or module:Class"
            )
        opponents = f"snapshot_share is {self.snapshot_share}, opponents {toml_value(self.opponents)}"
        share = round(self.snapshot_share + sum(self.opponents.values()), 9)  # 0.7, 0.1 and 0.2 make 1
        if share > 1:
            raise SettingsError(f"{opponents}, expected 1 together at most")
        if self.pilot and not self.teacher:
            raise SettingsError(
                f"pilot is {self.pilot:g} and teacher is empty: name the one it stands in for"
            )
        if not self.out or "\0" in self.out:
            raise SettingsError(f"out is {show_value(self.out)}, expected the name of a folder")
        low, high = self.action_delay
        if low > high:
            raise SettingsError(f"action_delay is [{low}, {high}], expected the lowest first")
        if len(self.sizes) > 1 and 0 in self._matches_by_size():
            raise SettingsError(
                f"matches is {self.matches or _MATCHES_ALONE}, of which a share in team_sizes gives none; "
                "expected more matches, or a larger share"
            )
        if self.hitboxes and self.hitbox not in self.hitboxes:
            raise SettingsError(
                f'hitbox is "{self.hitbox}", which the bot has in matches, and hitboxes '
                f"{toml_value(self.hitboxes)}: expected it among them"
            )
        if share and not all(map(all, self.sizes)):
            raise SettingsError(
                f"{opponents} and team_sizes {toml_value(self.team_sizes)}: without opponents they have "
                "nobody to play; set these to 0"
            )

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Cars of blue and of orange in matches of each team size."""
        mixed = isinstance(self.team_sizes[0], tuple)
        return tuple(size[:2] for size in self.team_sizes) if mixed else (self.team_sizes[:2],)

    @property
    def cars(self) -> int:
        """Cars of a match; of several team sizes those of the largest."""
        return max(map(sum, self.sizes))

    @property
    def cars_of_collector(self) -> int:
        """Cars of all matches of a collector."""
        return sum(one.matches * one.cars for one in self.by_size())

    def for_machine(self, cores: int, gpu: bool) -> "TrainingSettings":
        """Return settings with numbers in place of the 0 of `matches` and `minibatch`."""
        shares = [self.snapshot_share, *self.opponents.values()]
        shares += [size[2] for size in self.team_sizes if isinstance(size, tuple)]
        one_of_each = max((1 / share for share in shares if share), default=1.0)
        wanted = max(_MATCHES // (self.collectors or cores), _FEWEST_MATCHES, one_of_each)
        matches = self.matches or math.ceil(min(wanted, _MATCHES_ALONE))
        minibatch = self.minibatch or (_MINIBATCH_OF_GPU if gpu else _MINIBATCH)
        return dataclasses.replace(self, matches=matches, minibatch=minibatch)

    def by_size(self) -> "list[TrainingSettings]":
        """Return settings for the matches of each team size alone: `team_sizes` and `matches` are theirs."""
        if len(self.sizes) == 1:
            return [self]
        return [
            dataclasses.replace(self, team_sizes=size, matches=count)
            for size, count in zip(self.sizes, self._matches_by_size(), strict=True)
        ]

    def _matches_by_size(self) -> list[int]:
        """Return how many matches of a collector have each of several team sizes."""
        return count_matches([size[2] for size in self.team_sizes], self.matches or _MATCHES_ALONE)


REWARDS: Final[Mapping[str, Callable[[], BatchReward]]] = {
    field.name: field.metadata["reward"]
    for field in dataclasses.fields(TrainingSettings)
    if field.metadata["reward"] is not None
}
"""The standard rewards, each to be called without arguments, by the names of their weights."""


_TABLES: Final = ("physics", "obs_noise", "initial_states", "opponents", "my")


_FORMER_NAMES: Final = {"beginnings": "initial_states", "rivals": "opponents"}


def _with_present_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of an older version under the present names, also that of the standard components."""
    for former in _FORMER_NAMES.keys() & values:
        if (name := _FORMER_NAMES[former]) in values:
            raise SettingsError(f"{former} is called {name} now: expected one of them, both are there")
    present = {_FORMER_NAMES.get(name, name): value for name, value in values.items()}
    if present.get("components") == "training.components":
        present["components"] = TrainingSettings.components
    return present


def recorded_settings(settings: TrainingSettings) -> dict[str, Any]:
    """Return the settings as TOML has them: tuples as lists."""
    return {name: as_lists(value) for name, value in dataclasses.asdict(settings).items()}


def describe_changes(before: Mapping[str, Any], settings: TrainingSettings) -> dict[str, str]:
    """Return settings that were others before, by name: `0.5 -> 0.3`; of a table its keys that differ.

    `before` is as of `recorded_settings`; those that did not exist then had their defaults.
    """
    unsaid = {"simulator": ROCKETSIM2}  # runs of before this setting had no other
    then = recorded_settings(TrainingSettings()) | unsaid | _with_present_names(before)
    now = recorded_settings(settings)
    return {name: _change(then[name], now[name]) for name in now if then[name] != now[name]}


def _change(then: Any, now: Any) -> str:
    if not (isinstance(then, dict) and isinstance(now, dict)):
        return f"{then} -> {now}"
    keys = [key for key in {**then, **now} if then.get(key) != now.get(key)]
    return ", ".join(f"{key} {then.get(key, 'none')} -> {now.get(key, 'none')}" for key in keys)


def check_settings(values: Mapping[str, Any]) -> TrainingSettings:
    """Return settings from values as TOML gives them; raises SettingsError where one does not fit."""
    known = TrainingSettings.__annotations__
    given = _with_present_names(values)
    for name, value in given.items():
        if name in known:
            continue
        near = nearest_key(name, _TABLES if isinstance(value, dict) else known, _ALIKE)
        hint = "" if near is None else f"; the nearest is {near}"
        if isinstance(value, dict):
            raise SettingsError(
                f"[{shorten_text(name)}] is a table{hint}; settings stand outside of tables, your own in "
                "[my], constants of the physics in [physics], noise in [obs_noise], shares of episodes in "
                "[initial_states], of matches in [opponents]"
            )
        raise SettingsError(
            f"{shorten_text(name)} = {shorten_text(toml_value(value))} is no setting{hint} (all keys: "
            f"{DEFAULTS}; names in rlgym-ppo and rlgym-learn: docs/train/settings.md; those of your own "
            "components go into a table [my])"
        )
    try:
        for name, parse in PARSERS.items():
            if name in given:
                given[name] = parse(given[name])
        if isinstance(given.get("my"), dict):
            check_own(given["my"])
        if given.get("hitboxes") == "all":
            given["hitboxes"] = HITBOX_NAMES
        checked = check_values(
            given, TrainingSettings, lambda name, problem: SettingsError(f"{name} {problem}"),
            lambda value: shorten_text(toml_value(value)),
        )  # fmt: skip
        for name in ("policy_layers", "critic_layers"):
            check_layers(name, checked.get(name, ()))
    except ValueError as error:
        raise SettingsError(str(error)) from error
    settings = TrainingSettings(**checked)
    if "out" in given or (not settings.env and settings.components == TrainingSettings.components):
        return settings
    name = settings.env.replace(":", "-") or settings.components  # a folder for each environment and module
    out = f"runs/{re.sub(r'[^-.0-9A-Z_a-z]', '_', name).strip('.') or 'own'}"
    return dataclasses.replace(settings, out=out)


_GROUPS = {
    "out": "the run",
    "team_sizes": "the match",
    "collectors": "playing; a batch is collectors * matches * rollout_steps * cars, less the opponents' cars",
    "network": "networks",
    "gamma": "learning",
    "checkpoint_every": "checkpoints",
    "goal": "rewards, each times its weight; see rlgym_bridge/components/rewards.py",
    "no_touch_seconds": "how episodes end and begin, besides goals",
}
"""Headings in a settings file, by the key that they stand before."""


def load_settings(*paths: Path, **changes: Any) -> TrainingSettings:
    """Read TOML files of settings, of which the later one counts; `changes` take the place of theirs."""
    return make_settings(read_settings(*paths), paths, changes)


def read_settings(*paths: Path) -> dict[str, Any]:
    """Return the values of TOML files by name, unchecked; what stands in a later file counts."""
    values: dict[str, Any] = {}
    for path in paths:
        try:
            read = read_toml(path)
        except (OSError, ValueError) as error:
            raise SettingsError(explain_unreadable(error)) from error
        for name, value in _with_present_names(read).items():
            tables = isinstance(value, dict) and isinstance(values.get(name), dict)
            values[name] = values[name] | value if tables else value
    return values


def make_settings(
    values: Mapping[str, Any], paths: Sequence[Path], changes: Mapping[str, Any]
) -> TrainingSettings:
    """Return settings from the values of `paths`, see `read_settings`; `changes` take the place of theirs."""
    files = ", ".join(map(str, paths))
    try:
        settings = check_settings({name: value for name, value in values.items() if name not in changes})
    except SettingsError as error:
        raise SettingsError(f"{files}: {error}") from error
    try:
        return check_settings({**values, **changes}) if changes else settings
    except SettingsError as error:
        raise SettingsError(f"{error} (given in place of what {files} says)") from error


def settings_as_toml(settings: TrainingSettings) -> str:
    """Return the text of a file with these settings, each with its help."""
    lines = []
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if field.name in _TABLES:
            lines.append(f"\n# [{field.name}]: {field.metadata['help']}")
            if value:
                lines += [f"[{field.name}]", *(toml_line(name, item) for name, item in value.items())]
            continue
        if field.name in _GROUPS:
            lines.append(f"\n# {_GROUPS[field.name]}")
        lines.append(toml_line(field.name, value, field.metadata["help"], 37))
    return "\n".join(lines).strip() + "\n"
