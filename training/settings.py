"""The settings of a training run: every key with its type, its limits and its meaning; and their files.

A file is flat TOML, which needs only the keys that differ from the defaults, those of `config.toml`.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_type_hints

from msgspec import Meta

from rlgym_bridge.components.player_spec import MOST_FORECAST
from rlgym_bridge.components.reward_base import BatchReward
from rlgym_bridge.components.rewards import (
    AirTouchReward,
    BoostKeptReward,
    BoostPickedUpReward,
    DemolitionReward,
    FaceBallReward,
    FlyToBallReward,
    GoalReward,
    InAirReward,
    KickoffSpeedReward,
    MateDistanceReward,
    SaveReward,
    SpeedReward,
    TouchReward,
    VelocityBallToGoalReward,
    VelocityPlayerToBallReward,
)
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


def about(text: str) -> Meta:
    """Return a note for `Annotated`: the help text of a setting."""
    return Meta(description=text)


def pays(reward: Callable[[], BatchReward], text: str) -> Meta:
    """Return a note for `Annotated`: the reward that a setting is the weight of, and its help text."""
    return Meta(description=text, extra={"reward": reward})


class SettingsError(ValueError):
    """A setting is not what it should be, or does not fit another."""


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that a run depends on; the description of each is its help text."""

    out: Annotated[
        str,
        about(
            "folder of the run: checkpoints, progress.csv, tensorboard; without this key it is runs/ and the "
            "name of your env or components, if you name any"
        ),
    ] = "runs/1v1"
    steps: Annotated[Positive, about("agent steps to train: decisions of learning cars")] = 100_000_000
    seed: Annotated[int, Meta(ge=0, le=2**31), about("of networks, arenas, actions and minibatches")] = 0
    components: Annotated[str, about("module with your obs, parser, reward, conditions and mutator")] = (
        "rlgym_bridge.training.components"
    )
    env: Annotated[
        str, about("module:function that returns your RLGym environment; it replaces components")
    ] = ""

    wandb: Annotated[
        str, about('project of Weights & Biases that gets the curves, too; "": none. Needs the extra wandb')
    ] = ""

    start_from: Annotated[
        str, about("policy folder, or folder of a run, whose policy a new run goes on from")
    ] = ""
    critic_alone: Annotated[
        Count, about("agent steps at the beginning of a run with start_from in which only the critic learns")
    ] = 300_000

    teacher: Annotated[
        str, about("policy folder, or folder of a run, whose policy this one imitates at first")
    ] = ""
    teacher_coefficient: Annotated[
        NotNegative, about("weight of KL(teacher || policy) in the loss at step 0")
    ] = 1.0
    teacher_steps: Annotated[Count, about("agent steps by which that weight has faded to 0, evenly")] = (
        20_000_000
    )

    team_sizes: Annotated[
        tuple[Any, ...],
        about(
            "cars of blue and of orange; or several sizes with their shares of the matches: "
            "[[1, 1, 0.7], [2, 2, 0.3]]"
        ),
    ] = (1, 1)
    tick_skip: Annotated[
        int, Meta(ge=1, le=MOST_TICKS), about("game ticks that an action lasts (120 a second)")
    ] = 8
    action_delay: Annotated[
        tuple[Ticks, Ticks],
        about(
            "ticks that an action waits, from the state it was decided on to the first tick it drives: "
            "lowest, highest; drawn for each episode; opponents have their own"
        ),
    ] = (1, 1)
    action_delay_noise: Annotated[
        float,
        Meta(ge=0, le=MOST_TICKS),
        about("ticks by which single actions vary around that delay (standard deviation)"),
    ] = 0.0
    input_latency: Annotated[
        Ticks,
        about(
            "ticks by which matches apply the bot's inputs late, as `timing` measures it; goes into "
            "policy.json, so that the bot sends them that much earlier"
        ),
    ] = 0
    forecast: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_FORECAST)] | Literal["auto"],
        about(
            "ticks of input latency that the bot looks ahead over in matches, or auto: as it is measured; "
            "0: none; goes into policy.json"
        ),
        expecting(f'"auto" or whole ticks from 0 (off) to {MOST_FORECAST}'),
    ] = 0
    hitbox: Annotated[str, one_of(*HITBOX_NAMES), about("of all cars, and of the bot in matches")] = "octane"
    hitboxes: Annotated[
        tuple[Annotated[str, one_of(*HITBOX_NAMES)], ...],
        about('to draw from for each car and episode, or "all"; []: hitbox alone'),
        expecting(f'"all", or a list of {", ".join(HITBOX_NAMES)}'),
    ] = ()
    simulator: Annotated[
        str,
        one_of(*SIMULATORS),
        about("steps the matches: rocketsim3; or rocketsim2, which is the default without rocketsim_batch"),
    ] = DEFAULT_SIMULATOR

    collectors: Annotated[int, Meta(ge=0, le=1024), about("processes that play; 0: one for each core")] = 0
    matches: Annotated[
        Count,
        about(
            f"matches that each of them plays at once; 0: {_MATCHES_ALONE}, or less where that makes all "
            f"together {_MATCHES}; a resumed run keeps its own"
        ),
    ] = 0
    rollout_steps: Annotated[Positive, about("steps of every match between two updates")] = 32
    overlap: Annotated[
        bool | Literal["auto"],
        about("play on while learning, with a policy one update older; auto: true where a GPU learns"),
        expecting('true, false or "auto"'),
    ] = "auto"
    ray_max_age: Annotated[
        Count, about("with --ray: updates by which a batch may be older than the policy that learns from it")
    ] = 2
    snapshot_share: Annotated[Share, about("share of matches against an older version of the policy")] = 0.2
    snapshot_choice: Annotated[
        str, one_of("even", "rating"), about("older versions met: all as often, or near ratings more often")
    ] = "even"
    snapshots: Annotated[
        Positive, about("older versions to draw from: an even sample of all checkpoints")
    ] = 8

    ruler_every: Annotated[
        Count, about("agent steps between ratings against chaser, charger and random; 0: none")
    ] = 0
    ruler: Annotated[
        tuple[str, ...], about("policy folders to be rated against, too, which stay as they are")
    ] = ()
    ruler_matches: Annotated[
        int, Meta(ge=2, le=10_000, multiple_of=2), about("matches with each of them, half from each side")
    ] = 40

    network: Annotated[
        str, about("of policy and critic: perceptron, attention, gru (with memory), or module:Class of yours")
    ] = PERCEPTRON
    policy_layers: Annotated[Layers, about("widths of the policy's hidden layers")] = (256, 256)
    critic_layers: Annotated[Layers, about("widths of the critic's hidden layers")] = (256, 256)
    sequence_length: Annotated[
        Positive, about("steps that a network with memory is trained through; a part of rollout_steps")
    ] = 16
    activation: Annotated[str, one_of(*ACTIVATIONS), about("between the layers of both networks")] = "relu"
    layer_norm: Annotated[bool, about("layer normalisation before each activation of both networks")] = False
    mirror: Annotated[bool, about("learn one half of the field alone, and play the other mirrored")] = False
    ball_ahead: Annotated[
        tuple[float, ...],
        about("seconds ahead at which the policy sees the ball, such as [0.25, 0.5, 1, 2]; []: none"),
    ] = ()
    normalise_obs: Annotated[bool, about("scale observations by their running mean and deviation")] = False
    obs_clip: Annotated[
        float, Meta(ge=0.1, le=MOST_NUMBER), about("scaled observations are clipped to plus and minus this")
    ] = 10.0

    gamma: Annotated[Share, about("discount factor per step")] = 0.993
    gae_lambda: Annotated[Share, about("lambda of GAE")] = 0.95
    learning_rate: Annotated[NotNegative, about("learning rate of Adam, for policy and critic")] = 5e-4
    learning_rate_schedule: Annotated[
        str, one_of("constant", "linear"), about("constant, or linear: from step 0 on down to 0 at the last")
    ] = "constant"
    critic_learning_rate: Annotated[NotNegative, about("of the critic; 0: learning_rate")] = 0.0
    critic_learning_rate_schedule: Annotated[
        str, one_of("same", "constant", "linear"), about("of the critic; same: learning_rate_schedule")
    ] = "same"
    standardize_returns: Annotated[
        bool, about("divide rewards by the running deviation of returns; then they are clipped to -10 to 10")
    ] = False
    epochs: Annotated[Positive, about("passes over each batch")] = 2
    minibatch: Annotated[
        Count,
        about(
            f"agent steps of one gradient step; 0: {_MINIBATCH:,}, on a GPU {_MINIBATCH_OF_GPU:,}; a resumed "
            "run keeps its own"
        ),
    ] = 0
    clip: Annotated[NotNegative, about("PPO clip range of the probability ratio: 1 - clip to 1 + clip")] = 0.2
    value_clip: Annotated[
        NotNegative, about("clip range of the critic's change of a value in an iteration; 0: none")
    ] = 0.0
    target_kl: Annotated[
        NotNegative,
        about("an iteration takes no more gradient steps once a minibatch's kl is above; 0: none"),
    ] = 0.0
    entropy_coefficient: Annotated[NotNegative, about("weight of the entropy in the loss")] = 0.005
    uniform_coefficient: Annotated[NotNegative, about("weight of KL(uniform || policy) in the loss")] = 0.0
    max_grad_norm: Annotated[
        float, Meta(ge=1e-9, le=MOST_NUMBER), about("maximum gradient norm of each network")
    ] = 0.5
    device: Annotated[
        str, one_of("auto", "cpu", "cuda"), about("of the learner; auto: cuda if there is one")
    ] = "auto"
    threads: Annotated[Count, about("of the learner; 0: one for each core")] = 0
    bfloat16: Annotated[
        bool, about("lower precision in the learner: faster on CPUs with AVX512-BF16, much slower on others")
    ] = False

    checkpoint_every: Annotated[
        Positive, about("agent steps between checkpoints; at each of them all matches begin anew")
    ] = 1_000_000
    keep_checkpoints: Annotated[Positive, about("newest checkpoints to keep")] = 10

    goal: Annotated[Number, pays(GoalReward, "reward for a goal, minus for one conceded")] = 10.0
    touch: Annotated[Number, pays(TouchReward, "for a step with a touch")] = 2.0
    touch_strength: Annotated[
        Number,
        pays(partial(TouchReward, strength=True), "for the ball's change of velocity at a touch / 6000 uu/s"),
    ] = 2.0
    air_touch: Annotated[Number, pays(AirTouchReward, "for a touch high up")] = 0.0
    fly_to_ball: Annotated[
        Number, pays(FlyToBallReward, "each step, for flying towards a high ball / 2300 uu/s")
    ] = 0.0
    save: Annotated[Number, pays(SaveReward, "for a save")] = 0.0
    demolition: Annotated[Number, pays(DemolitionReward, "for a demolition, minus for being demolished")] = (
        0.0
    )
    velocity_to_ball: Annotated[
        Number, pays(VelocityPlayerToBallReward, "each step, for speed towards the ball / 2300 uu/s")
    ] = 0.1
    velocity_ball_to_goal: Annotated[
        Number, pays(VelocityBallToGoalReward, "each step, for the ball's speed towards the goal / 6000 uu/s")
    ] = 0.1
    speed: Annotated[
        Number, pays(SpeedReward, "each step, for a car's speed in any direction / 2300 uu/s")
    ] = 0.0
    kickoff_speed: Annotated[
        Number, pays(KickoffSpeedReward, "at kickoffs, for squared speed to the ball / 2300 uu/s")
    ] = 0.0
    face_ball: Annotated[
        Number, pays(FaceBallReward, "each step, for the cosine of the angle between nose and ball")
    ] = 0.0
    in_air: Annotated[
        Number, pays(InAirReward, "each step off the ground; a little keeps a young policy jumping")
    ] = 0.0
    boost_kept: Annotated[Number, pays(BoostKeptReward, "each step, for the square root of boost / 100")] = (
        0.0
    )
    boost_picked_up: Annotated[
        Number, pays(BoostPickedUpReward, "for the gain of the square root of boost / 100")
    ] = 0.0
    mate_distance: Annotated[
        Number, pays(MateDistanceReward, "each step, for distance to the nearest mate / 2000 uu")
    ] = 0.0
    team_spirit: Annotated[Share, about("0: rewards are a car's own; 1: the mean of its team")] = 0.0
    zero_sum: Annotated[bool, about("take off the mean of the opponents' rewards")] = False

    no_touch_seconds: Annotated[
        float, Meta(ge=0.1, le=MOST_NUMBER), about("game time without a touch that ends an episode")
    ] = 15.0
    episode_seconds: Annotated[
        float, Meta(ge=0.1, le=MOST_NUMBER), about("game time that ends an episode")
    ] = 300.0
    kickoff_share: Annotated[Share, about("share of episodes from a kickoff; others start anywhere")] = 0.5

    physics: Annotated[
        dict[str, Any],
        about("constants drawn for each episode from low to high, multiples of the simulator's own"),
    ] = dataclasses.field(default_factory=dict)
    obs_noise: Annotated[
        dict[str, float],
        about("standard deviations of noise that is added to what is observed, in training alone"),
    ] = dataclasses.field(default_factory=dict)
    initial_states: Annotated[
        dict[str, float],
        about("shares of episodes by how they begin, which make 1, in place of kickoff_share"),
    ] = dataclasses.field(default_factory=dict)
    opponents: Annotated[
        dict[str, float],
        about("shares of matches against others: chaser, charger, policy folders, training runs"),
    ] = dataclasses.field(default_factory=dict)
    my: Annotated[
        dict[str, Own | list[Own]],
        about("for your own components, which read settings.my: numbers, texts, true, false, or lists"),
        expecting("a table [my]"),
    ] = dataclasses.field(default_factory=dict)

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
        """Return settings with numbers in place of the 0 of `matches` and `minibatch`.

        So many cores play, unless `collectors` says otherwise; `gpu` says whether a GPU learns.
        """
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


def _notes() -> Iterator[tuple[str, Meta]]:
    """Yield name and notes of every setting."""
    for name, kind in get_type_hints(TrainingSettings, include_extras=True).items():
        yield from ((name, note) for note in kind.__metadata__ if isinstance(note, Meta))


REWARDS: Final[Mapping[str, Callable[[], BatchReward]]] = {
    name: extra["reward"] for name, note in _notes() if "reward" in (extra := note.extra or {})
}
"""The standard rewards, each to be called without arguments, by the names of their weights."""


_TABLES: Final = ("physics", "obs_noise", "initial_states", "opponents", "my")


_FORMER_NAMES: Final = {"beginnings": "initial_states", "rivals": "opponents"}


def _with_present_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of an older version under the present names, also that of the standard components.

    Raises SettingsError where a setting is there under both names.
    """
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
    """Return settings from values as TOML gives them.

    Raises SettingsError where a key is unknown; a value is of the wrong type or out of range.
    """
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
    return settings if "out" in given else dataclasses.replace(settings, out=_default_out(settings))


def _default_out(settings: TrainingSettings) -> str:
    """Return the folder of a run whose settings have no `out`: it tells environments and modules apart."""
    if not settings.env and settings.components == TrainingSettings.components:
        return TrainingSettings.out
    name = settings.env.replace(":", "-") or settings.components
    return f"runs/{re.sub(r'[^-.0-9A-Z_a-z]', '_', name).strip('.') or 'own'}"


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
    """Read TOML files of settings; `changes` take the place of theirs.

    Of several files the later one counts, in tables key by key. Keys that they lack have their defaults.
    Raises SettingsError where a file is unreadable; a key is unknown; a value is of the wrong type or out of
    range.
    """
    return make_settings(read_settings(*paths), paths, changes)


def read_settings(*paths: Path) -> dict[str, Any]:
    """Return the values of TOML files by name, unchecked; what stands in a later file counts.

    Raises SettingsError where a file is unreadable.
    """
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
    helps = {name: note.description for name, note in _notes() if note.description}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if field.name in _TABLES:
            lines.append(f"\n# [{field.name}]: {helps[field.name]}")
            if value:
                lines += [f"[{field.name}]", *(toml_line(name, item) for name, item in value.items())]
            continue
        if field.name in _GROUPS:
            lines.append(f"\n# {_GROUPS[field.name]}")
        lines.append(toml_line(field.name, value, helps[field.name], 37))
    return "\n".join(lines).strip() + "\n"
