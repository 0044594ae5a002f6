"""`policy.json`: what a policy needs to be played as it was trained, checked key by key when read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from reprlib import repr as shorten
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from rlgym_bridge.components.player_spec import MOST_FORECAST
from rlgym_bridge.components.spec import ComponentSpec
from rlgym_bridge.game import HITBOX_NAMES
from rlgym_bridge.policy.numpy_layers import ACTIVATIONS
from rlgym_bridge.policy.shape import PERCEPTRON
from rlgym_bridge.user_input.checking import check_values, expecting, one_of
from rlgym_bridge.user_input.text_files import parse_json

FORMAT: Final = 1  # version of the manifest and of the probe states; another one is refused
MOST_TICKS: Final = 1200  # longest decisions and delays, 10 s: more is a slip
MOST_OBS_SIZE: Final = 100_000  # largest observation; ours for 4v4 has less than 500 numbers
_MOST_SEARCHED: Final = 200  # decisions of a search times choices: four times the shipped bot's
_MOST_SIZES: Final = 24  # all from 0v1 to 4v4
_MOST_OBSERVED: Final = 1_000_000  # numbers that all cars of all team sizes see: these are built on loading

DISTRIBUTIONS: Final = (
    "categorical", "multi_categorical", "gaussian", "bounded_gaussian", "tanh_gaussian",
)  # fmt: skip
SELECTIONS: Final = ("sample", "argmax")

_MOST_FLOAT = 1.7e308  # keeps out infinite numbers and not-a-number
_Finite = Annotated[float, Meta(ge=-_MOST_FLOAT, le=_MOST_FLOAT)]
_AboveZero = Annotated[float, Meta(gt=0, le=_MOST_FLOAT)]
_Cars = Annotated[int, Meta(ge=0, le=4)]
_DelayTicks = Annotated[
    int, Meta(ge=0, le=MOST_TICKS), expecting(f"a whole number of ticks from 0 to {MOST_TICKS}")
]


class PolicyMismatch(ValueError):
    """A policy folder does not fit this checkout: its components, sizes or weights differ."""


class Normalisation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Observations are shown to the network as `clip((x - mean) / std, -clip, clip)`, number by number."""

    mean: tuple[_Finite, ...]
    std: tuple[_AboveZero, ...]
    clip: _AboveZero


class SearchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of a policy that looks ahead before it acts; see `rollout_search`."""

    decisions: Annotated[int, Meta(ge=1, le=60)]  # those that rollouts last
    choices: Annotated[int, Meta(ge=2, le=20)]  # likeliest actions that are tried, at most
    least_probability: Annotated[float, Meta(gt=0, lt=1)]  # of an action that is tried
    goal: _AboveZero  # reward for a goal in training, minus for one conceded
    gamma: Annotated[float, Meta(gt=0, le=1)]  # discount of a decision in training
    # weight of the logarithm of an action's probability beside its value
    prior: Annotated[float, Meta(ge=0, le=_MOST_FLOAT)] = 0.0


_SEEN_AND_DONE: Final = (
    "obs", "parser", "env", "tick_skip", "action_delay", "distribution", "activation", "obs_size",
    "team_sizes", "hitbox", "mirror", "network",
)  # fmt: skip

_LEFT_OUT: Final = {
    "activation": "relu", "mirror": False, "forecast": 0, "network": PERCEPTRON, "search": None,
}  # fmt: skip
"""Keys that are not written with these values."""

_LINE: Final = 100  # letters of a list's line


@dataclass(frozen=True)
class Manifest:
    """Content of `policy.json`; its keys are the names of the attributes."""

    format: int  # `FORMAT`
    # observation builder; None where `env` gives it
    obs: Annotated[ComponentSpec | None, expecting('{"class": "module:Class", "args": {...}} or null')]
    # action parser; None where `env` gives it
    parser: Annotated[
        ComponentSpec | None,
        expecting('{"class": "module:Class", "args": {...}, "nested": another or null} or null'),
    ]
    # `"module:function"`, a function that returns the `RLGym` it was trained in, or None
    env: Annotated[
        Annotated[str, Meta(pattern="^[^:]+:[^:]+$")] | None, expecting('"module:function" or null')
    ]
    tick_skip: Annotated[
        int, Meta(ge=1, le=MOST_TICKS), expecting(f"a whole number of ticks from 1 to {MOST_TICKS}")
    ]
    action_delay: _DelayTicks  # from the state decided on to the first tick driven (1: RLGym's `rlbot_delay`)
    input_latency: _DelayTicks  # ticks of input latency that the policy was trained for
    distribution: Annotated[str, one_of(*DISTRIBUTIONS)]  # meaning of the network's output
    selection: Annotated[str, one_of(*SELECTIONS)]  # way to choose an action from it; one of `SELECTIONS`
    seed: Annotated[int, Meta(ge=0)]  # start of the random stream of `sample`
    obs_size: Annotated[int, Meta(ge=1, le=MOST_OBS_SIZE)]  # numbers in an observation
    # their names for car 0 of the first team sizes, where the builder has names
    obs_names: Annotated[tuple[str, ...] | None, expecting("a list of names or null")]
    obs_normalisation: Annotated[
        Normalisation | None, expecting('{"mean": [...], "std": [above 0, ...], "clip": above 0} or null')
    ]
    # (blue, orange) of the matches it was trained for
    team_sizes: Annotated[
        tuple[tuple[_Cars, _Cars], ...],
        Meta(min_length=1, max_length=_MOST_SIZES),
        expecting("a list of up to 24 pairs [blue, orange], 0 to 4 cars each and one at least"),
    ]
    hitbox: Annotated[str, one_of(*HITBOX_NAMES)]  # name of the car's hitbox, of `game.HITBOX_NAMES`
    versions: Annotated[Mapping[str, str], expecting("an object of package versions")]
    training: Annotated[Mapping[str, Any], expecting("an object")]  # notes of the trainer, any JSON values
    weights_sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z"), expecting("64 hexadecimal digits")]
    # function between the network's layers; one of `ACTIVATIONS`. The key is left out for relu.
    activation: Annotated[str, one_of(*ACTIVATIONS)] = "relu"
    mirror: Annotated[bool, expecting("true or false")] = False  # see `symmetry.py`; left out if not
    # ticks of input latency that the bot looks ahead over in a match, or `"auto"`. Left out if 0.
    forecast: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_FORECAST)] | Literal["auto"],
        expecting(f'"auto" or whole ticks from 0 (off) to {MOST_FORECAST}'),
    ] = 0
    # one of `shape.NETWORKS`, or `"module:Class"` of the user. Left out for a perceptron.
    network: Annotated[
        Annotated[str, Meta(pattern="^([a-z]+|[^:]+:[^:]+)$")], expecting("a network's name or module:Class")
    ] = PERCEPTRON
    # how it looks ahead in RocketSim 3, with the critic of the weights; left out without
    search: Annotated[
        SearchSettings | None,
        expecting(
            '{"decisions": 1 to 60, "choices": 2 to 20, "least_probability": above 0 and below 1, "goal": '
            'above 0, "gamma": above 0 up to 1, "prior": 0 or more}'
        ),
    ] = None
    # what the components made of the states and actions of `fingerprint.py`: `observations` and `controls`,
    # each a list of rows; and `masks` where it was trained with action masks. It lies in `fingerprint.json`;
    # older folders have it among these keys. Empty where nobody has read it.
    probe: Annotated[
        Mapping[Literal["observations", "controls", "masks"], Sequence[Sequence[_Finite]]],
        Meta(min_length=2),
        expecting('{"observations": rows of numbers, "controls": rows of numbers}, or with "masks", too'),
    ] = field(default_factory=dict)

    @property
    def modules(self) -> tuple[str, ...]:
        """Names of the modules of its environment, or of its builder and parser, and of its network."""
        specs = [spec.modules for spec in (self.obs, self.parser) if spec is not None]
        own = [path.partition(":")[0] for path in (self.env or "", self.network) if ":" in path]
        return (*own, *chain(*specs))

    @property
    def action_kind(self) -> str:
        """Kind of actions that the distribution is over, as `fingerprint.action_space` names it."""
        return "gaussian" if self.distribution.endswith("gaussian") else self.distribution

    def to_json(self) -> str:
        """Return the text of `policy.json`, without the fingerprint; raises ValueError for a wrong value."""
        names = [item.name for item in fields(self) if item.name != "probe"]
        data: dict[str, Any] = {name: getattr(self, name) for name in names}
        for key in ("obs", "parser"):
            data[key] = None if data[key] is None else data[key].to_json()
        for key, usual in _LEFT_OUT.items():
            if data[key] == usual:
                del data[key]
        if self.obs_normalisation is not None:
            data["obs_normalisation"] = msgspec.structs.asdict(self.obs_normalisation)
        if self.search is not None:
            data["search"] = msgspec.structs.asdict(self.search)
        try:
            text = _layout(json.loads(json.dumps(data, allow_nan=False))) + "\n"
        except (TypeError, ValueError) as error:
            raise ValueError(f"the manifest holds something JSON cannot: {error}") from error
        Manifest.from_json(text, "the manifest to be saved")
        return text

    def fingerprint_json(self) -> str:
        """Return the text of `fingerprint.json`, a line for each row of numbers."""
        kinds = []
        for kind, rows in self.probe.items():
            lines = ",\n".join(json.dumps(row, allow_nan=False, separators=(",", ":")) for row in rows)
            kinds.append(f'"{kind}": [\n{lines}\n]')
        text = "{" + ",\n".join(kinds) + "}\n"
        self.with_fingerprint(text, "the fingerprint to be saved")
        return text

    def with_fingerprint(self, text: str, source: str) -> "Manifest":
        """Return a copy with the fingerprint of a `fingerprint.json`'s text; ValueErrors name `source`."""
        found = check_values(
            {"probe": _parse(text, source)}, Manifest, lambda _, problem: ValueError(f"{source} {problem}")
        )
        return replace(self, **found)

    def differing(self, other: "Manifest") -> str | None:
        """Return the first key in which another policy sees or does something else; None where none does."""
        return next((name for name in _SEEN_AND_DONE if getattr(self, name) != getattr(other, name)), None)

    @classmethod
    def from_json(cls, text: str, source: str) -> "Manifest":
        """Return the manifest of a `policy.json`'s text, every key checked; ValueErrors name `source`."""
        data = _parse(text, source)
        _check_keys(data, source)
        checked = check_values(data, cls, lambda key, problem: ValueError(f"{source}: {key} {problem}"))
        manifest = cls(**checked)
        _check_together(manifest, source)
        return manifest


def _parse(text: str, source: str) -> dict[str, Any]:
    try:
        data = parse_json(text, _refuse_constant, unique_keys=True)
    except ValueError as error:
        raise ValueError(f"{source} is not readable as JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(
            f"{source} holds {shorten(data)}, expected an object with the keys of a policy manifest"
        )
    return data


def _check_keys(data: Mapping[str, Any], source: str) -> None:
    if data.get("format") != FORMAT or isinstance(data["format"], bool):
        raise ValueError(
            f"{source}: format is {shorten(data.get('format'))}, this checkout reads format {FORMAT}; "
            "use the version of rlgym_bridge that wrote it, or save the policy anew"
        )
    names = [item.name for item in fields(Manifest)]
    for words, keys in (
        ("lacks", [name for name in names if name not in (*data, *_LEFT_OUT, "probe")]),
        ("has unknown", [key for key in data if key not in names]),
    ):
        if keys:
            raise ValueError(f"{source} {words} {', '.join(keys)}; its keys are {', '.join(names)}")


def _layout(value: Any, indent: str = "") -> str:
    """Return JSON with a line for each key, and for as many items of a list as it holds."""
    deeper = indent + " "
    if isinstance(value, dict) and value:
        lines = [f"{deeper}{json.dumps(key)}: {_layout(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    whole = json.dumps(value)
    if not isinstance(value, list) or len(whole) <= _LINE:
        return whole
    lines = [""]
    for item in map(json.dumps, value):
        if lines[-1] and len(lines[-1]) + len(item) > _LINE:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else deeper}{item},"
    return "[\n" + "\n".join(lines).removesuffix(",") + f"\n{indent}]"


def _check_together(manifest: Manifest, source: str) -> None:
    """Raise where a match has no cars, or where keys contradict each other."""
    if not all(map(sum, manifest.team_sizes)):
        raise ValueError(
            f"{source}: team_sizes is {[*map(list, manifest.team_sizes)]}, expected one car at least in each"
        )
    cars = sum(map(sum, manifest.team_sizes))
    if cars * manifest.obs_size > _MOST_OBSERVED:
        raise ValueError(
            f"{source}: obs_size is {manifest.obs_size:,} and team_sizes have {cars} cars in all, expected "
            f"{_MOST_OBSERVED:,} numbers at most for all of them"
        )
    for key in ("obs", "parser"):
        if (getattr(manifest, key) is None) == (manifest.env is None):
            raise ValueError(
                f"{source}: {key} is {shorten(getattr(manifest, key))} and env {shorten(manifest.env)}, "
                "expected one"
            )
    if manifest.search is not None:
        _check_search(manifest, manifest.search, source)
    lengths: dict[str, Sequence[Any] | None] = {"obs_names": manifest.obs_names}
    if manifest.obs_normalisation is not None:
        lengths["obs_normalisation.mean"] = manifest.obs_normalisation.mean
        lengths["obs_normalisation.std"] = manifest.obs_normalisation.std
    for key, values in lengths.items():
        if values is not None and len(values) != manifest.obs_size:
            raise ValueError(
                f"{source}: {key} has {len(values)} entries, expected obs_size, {manifest.obs_size}"
            )


def _check_search(manifest: Manifest, search: SearchSettings, source: str) -> None:
    """Raise where a match would wait for a search, or where rollouts are too short to tell actions apart."""
    if search.decisions * search.choices > _MOST_SEARCHED:
        raise ValueError(
            f"{source}: search has {search.decisions} decisions and {search.choices} choices, expected a "
            f"product of {_MOST_SEARCHED} at most: a match would wait for it"
        )
    ticks = search.decisions * manifest.tick_skip
    if not manifest.action_delay < ticks <= MOST_TICKS:
        raise ValueError(
            f"{source}: search has {search.decisions} decisions of {manifest.tick_skip} ticks, expected more "
            f"ticks than action_delay, {manifest.action_delay}, and {MOST_TICKS} at most"
        )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
