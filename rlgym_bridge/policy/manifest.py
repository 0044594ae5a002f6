"""`policy.json`: what a policy needs to be played as it was trained, checked key by key when read."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from reprlib import repr as short
from typing import Any, Final, NamedTuple

from rlgym_bridge.components.spec import ComponentSpec
from rlgym_bridge.game import HITBOXES
from rlgym_bridge.user_files import parse_json

FORMAT: Final = 1
"""Version of the manifest and of the probe states; another one is refused."""

DISTRIBUTIONS: Final = ("categorical", "multi_categorical", "gaussian", "bounded_gaussian")
SELECTIONS: Final = ("sample", "argmax")


class PolicyMismatch(ValueError):
    """A policy folder does not fit this checkout: its components, sizes or weights differ."""


class Normalisation(NamedTuple):
    """Observations are shown to the network as `clip((x - mean) / std, -clip, clip)`.

    Attributes:
        mean: One number for each of the observation's.
        std: The same, above 0.
        clip: Above 0.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    clip: float


_SEEN_AND_DONE: Final = (
    "obs",
    "parser",
    "env",
    "tick_skip",
    "action_delay",
    "distribution",
    "obs_size",
    "team_sizes",
    "hitbox",
)


@dataclass(frozen=True)
class Manifest:
    """What `policy.json` holds; the keys are the names of the attributes.

    Attributes:
        format: `FORMAT`.
        obs: Observation builder; None where `env` gives it.
        parser: Action parser; None where `env` gives it.
        env: `"module:function"`, a function that returns the `RLGym` it was trained in, or None.
        tick_skip: Ticks that a decision stands for.
        action_delay: Ticks from the state decided on to the first tick driven (1: RLGym's `rlbot_delay`).
        input_latency: Ticks of input latency that the training reckoned with.
        distribution: What the network's output means; one of `DISTRIBUTIONS`.
        selection: How an action is picked from it; one of `SELECTIONS`.
        seed: Start of the random stream of `sample`.
        obs_size: Numbers in an observation.
        obs_names: Their names for seat 0 of the first team sizes, where the builder has names.
        obs_normalisation: Mean, standard deviation and clip, or None.
        team_sizes: (blue, orange) of the matches it was trained for.
        hitbox: Name of the car's hitbox, of `game.HITBOXES`.
        probe: What the components made of the states and actions of `fingerprint.py`: `observations` and
            `controls`, each a list of rows.
        versions: Version of each package it was saved with.
        training: Whatever the trainer wants to note.
        weights_sha256: Of `weights.safetensors`, hexadecimal.
    """

    format: int
    obs: ComponentSpec | None
    parser: ComponentSpec | None
    env: str | None
    tick_skip: int
    action_delay: int
    input_latency: int
    distribution: str
    selection: str
    seed: int
    obs_size: int
    obs_names: tuple[str, ...] | None
    obs_normalisation: Normalisation | None
    team_sizes: tuple[tuple[int, int], ...]
    hitbox: str
    probe: Mapping[str, Sequence[Sequence[float]]]
    versions: Mapping[str, str]
    training: Mapping[str, Any]
    weights_sha256: str

    def to_json(self) -> str:
        """Return the text of `policy.json`.

        Raises:
            ValueError: A value is not what its key holds; `training` is no JSON value.
        """
        data: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        for key in ("obs", "parser"):
            data[key] = None if data[key] is None else data[key].to_json()
        if self.obs_normalisation is not None:
            data["obs_normalisation"] = self.obs_normalisation._asdict()
        try:
            text = json.dumps(data, indent=1, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the manifest holds something JSON cannot: {error}") from error
        Manifest.from_json(text, "the manifest to be saved")
        return text

    def differing(self, other: "Manifest") -> str | None:
        """Return the first key in which another policy sees or does something else; None where none does."""
        return next((name for name in _SEEN_AND_DONE if getattr(self, name) != getattr(other, name)), None)

    @classmethod
    def from_json(cls, text: str, source: str) -> "Manifest":
        """Return the manifest of a text, every key checked.

        Args:
            text: The text of `policy.json`.
            source: Where it comes from, for messages.

        Raises:
            ValueError: It is no JSON, of another format version, or a key is missing, unknown or of the
                wrong type.
        """
        data = _checked(text, source)
        for key in ("obs", "parser"):
            data[key] = None if data[key] is None else ComponentSpec.from_json(data[key])
        if data["obs_names"] is not None:
            data["obs_names"] = tuple(data["obs_names"])
        data["team_sizes"] = tuple((blue, orange) for blue, orange in data["team_sizes"])
        scaling = data["obs_normalisation"]
        if scaling is not None:
            data["obs_normalisation"] = Normalisation(
                tuple(scaling["mean"]), tuple(scaling["std"]), scaling["clip"]
            )
        return cls(**data)


def _checked(text: str, source: str) -> dict[str, Any]:
    try:
        data = parse_json(text, _refuse_constant)
    except ValueError as error:
        raise ValueError(f"{source} is not readable as JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(
            f"{source} holds {short(data)}, expected an object with the keys of a policy manifest"
        )
    if data.get("format") != FORMAT or isinstance(data["format"], bool):
        raise ValueError(
            f"{source}: format is {short(data.get('format'))}, this checkout reads format {FORMAT}; "
            "use the version of rlgym_bridge that wrote it, or save the policy anew"
        )
    names = [item.name for item in fields(Manifest)]
    for words, keys in (
        ("lacks", [name for name in names if name not in data]),
        ("has unknown", [key for key in data if key not in names]),
    ):
        if keys:
            raise ValueError(f"{source} {words} {', '.join(keys)}; its keys are {', '.join(names)}")
    for key, (fits, expected) in _KEYS.items():
        if not fits(data[key]):
            raise ValueError(f"{source}: {key} is {short(data[key])}, expected {expected}")
    _check_together(data, source)
    return data


def _check_together(data: Mapping[str, Any], source: str) -> None:
    """Raise where keys contradict each other."""
    for key in ("obs", "parser"):
        if (data[key] is None) == (data["env"] is None):
            raise ValueError(
                f"{source}: {key} is {short(data[key])} and env {short(data['env'])}, expected one"
            )
    lengths = {"obs_names": data["obs_names"]}
    if data["obs_normalisation"] is not None:
        lengths |= {f"obs_normalisation.{key}": data["obs_normalisation"][key] for key in ("mean", "std")}
    for key, values in lengths.items():
        if values is not None and len(values) != data["obs_size"]:
            raise ValueError(
                f"{source}: {key} has {len(values)} entries, expected obs_size, {data['obs_size']}"
            )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


# --- what each key may hold --------------------------------------------------------------------------


MOST_TICKS: Final = 1200
"""Longest decisions and delays, 10 s: more is a slip."""


def _whole(low: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= low


def _ticks(low: int) -> Callable[[Any], bool]:
    return lambda value: _whole(low)(value) and value <= MOST_TICKS


def _number(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(fits(item) for item in value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _path(value: Any) -> bool:
    """Say whether it is `module:name`; both parts are looked at again when imported."""
    return _text(value) and len(value.split(":")) == 2 and all(value.split(":"))


def _spec(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and {"class", "args"} <= set(value) <= {"class", "args", "nested"}
        and _path(value["class"])
        and isinstance(value["args"], dict)
        and _spec(value.get("nested"))
    )


def _pair(value: Any) -> bool:
    return _list_of(_whole(0))(value) and len(value) == 2 and max(value) <= 4 and sum(value) > 0


def _scaling(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and set(value) == {"mean", "std", "clip"}
        and _list_of(_number)(value["mean"])
        and _list_of(lambda item: _number(item) and item > 0)(value["std"])
        and _number(value["clip"])
        and value["clip"] > 0
    )


def _probe(value: Any) -> bool:
    rows = _list_of(_list_of(_number))
    return (
        isinstance(value, dict)
        and set(value) == {"observations", "controls"}
        and all(map(rows, value.values()))
    )


_HITBOX_NAMES: Final = tuple(hitbox.name for hitbox in HITBOXES)
_KEYS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "obs": (_spec, '{"class": "module:Class", "args": {...}} or null'),
    "parser": (_spec, '{"class": "module:Class", "args": {...}, "nested": another or null} or null'),
    "env": (lambda value: value is None or _path(value), '"module:function" or null'),
    "tick_skip": (_ticks(1), f"a whole number of ticks from 1 to {MOST_TICKS}"),
    "action_delay": (_ticks(0), f"a whole number of ticks from 0 to {MOST_TICKS}"),
    "input_latency": (_ticks(0), f"a whole number of ticks from 0 to {MOST_TICKS}"),
    "distribution": (lambda value: value in DISTRIBUTIONS, "one of " + ", ".join(DISTRIBUTIONS)),
    "selection": (lambda value: value in SELECTIONS, "one of " + ", ".join(SELECTIONS)),
    "seed": (_whole(0), "a whole number, 0 or more"),
    "obs_size": (_whole(1), "a whole number, 1 or more"),
    "obs_names": (lambda value: value is None or _list_of(_text)(value), "a list of names or null"),
    "obs_normalisation": (_scaling, '{"mean": [...], "std": [above 0, ...], "clip": above 0} or null'),
    "team_sizes": (
        lambda value: _list_of(_pair)(value) and len(value) > 0,
        "a list of [blue, orange], 0 to 4 cars each and one at least",
    ),
    "hitbox": (lambda value: value in _HITBOX_NAMES, "one of " + ", ".join(_HITBOX_NAMES)),
    "probe": (_probe, '{"observations": rows of numbers, "controls": rows of numbers}'),
    "versions": (
        lambda value: isinstance(value, dict) and all(map(_text, value.values())),
        "an object of package versions",
    ),
    "training": (lambda value: isinstance(value, dict), "an object"),
    "weights_sha256": (
        lambda value: _text(value) and len(value) == 64 and set(value) <= set("0123456789abcdef"),
        "64 hexadecimal digits",
    ),
}
