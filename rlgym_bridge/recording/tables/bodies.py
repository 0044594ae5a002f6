"""Read which columns of a table hold a ball or a car: parts of the map that `column_map.py` reads."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rlgym_bridge.game import CONTROL_NAMES, HITBOX_NAMES
from rlgym_bridge.state import CAR_FIELDS
from rlgym_bridge.user_input.arguments import nearest_key

_ROTATIONS: Final = {"euler": 3, "quaternion": 4, "matrix": 9}
BALL_KEYS: Final = ("position", "velocity", "angular_velocity", "forward_speed", *_ROTATIONS, "half_turn")
CAR_KEYS: Final = (*BALL_KEYS, "team", "hitbox", "state", "controls")
_SCALARS: Final = tuple(
    one.name for one in CAR_FIELDS if not one.shape and one.name not in ("player_id", "team", "hitbox")
)
_TEAMS: Final = ("blue", "orange")


@dataclass(frozen=True)
class Number:
    """A column times `scale` plus `add`; `add` alone where `column` is None."""

    column: int | str | None
    scale: float = 1.0
    add: float = 0.0


@dataclass(frozen=True)
class Body:
    """The columns of a table that hold a ball or a car.

    Attributes:
        name: `ball`, or `car` and its number in the map, for errors.
        vectors: By name: `position`, `velocity`, `angular_velocity` of three numbers; `forward_speed` of one;
            `euler` of three, `quaternion` of four or `matrix` of nine.
        half_turn: What stands for 180 degrees in `euler`.
        team, hitbox: Numbers as a state has them; of cars.
        state: By name of `CAR_FIELDS`.
        controls: By name of `CONTROL_NAMES`.
    """

    name: str
    vectors: Mapping[str, tuple[Number, ...]]
    half_turn: float = math.pi
    team: int = 0
    hitbox: int = 0
    state: Mapping[str, Number] = field(default_factory=dict)
    controls: Mapping[str, Number] = field(default_factory=dict)

    def numbers(self) -> Iterator[Number]:
        """Yield all numbers that it takes from a table."""
        for vector in self.vectors.values():
            yield from vector
        yield from self.state.values()
        yield from self.controls.values()


def body(values: Any, name: str, keys: tuple[str, ...]) -> Body:
    """Return a ball or a car from its table."""
    known(values, f"[{name}]", keys)
    vectors = {}
    for key, value in values.items():
        if key in ("position", "velocity", "angular_velocity") or key in _ROTATIONS:
            vectors[key] = _numbers(value, _ROTATIONS.get(key, 3), f"{key} in [{name}]")
    if "forward_speed" in values:
        vectors["forward_speed"] = (number(values["forward_speed"], f"forward_speed in [{name}]"),)
    if "position" not in vectors:
        raise ValueError(f"[{name}] has no position, expected three columns")
    if len(_ROTATIONS.keys() & vectors) > 1:
        raise ValueError(f"[{name}] has {' and '.join(_ROTATIONS.keys() & vectors)}, expected one of them")
    if "forward_speed" in vectors and ("velocity" in vectors or not _ROTATIONS.keys() & vectors):
        raise ValueError(f"[{name}] has a forward_speed, which needs a rotation and no velocity beside it")
    half_turn = values.get("half_turn", math.pi)
    if "half_turn" in values and "euler" not in vectors:
        raise ValueError(
            f"half_turn stands in [{name}] without euler, expected both: it is the unit of euler"
        )
    if not is_number(half_turn) or half_turn <= 0:
        raise ValueError(f"half_turn in [{name}] is {half_turn!r}, expected a number above 0")
    return Body(
        name, vectors, half_turn,
        _TEAMS.index(choice(values, "team", _TEAMS, "blue")),
        HITBOX_NAMES.index(choice(values, "hitbox", HITBOX_NAMES, "octane")),
        _named(values.get("state", {}), f"state in [{name}]", _SCALARS),
        _named(values.get("controls", {}), f"controls in [{name}]", CONTROL_NAMES),
    )  # fmt: skip


def number(value: Any, where: str) -> Number:
    """Return a number of a table: a column, or a table that says more."""
    if _is_column(value):
        return Number(value)
    if isinstance(value, dict) and value:
        known(value, where, ("value",) if "value" in value else ("column", "scale", "add"))
        others = [one for key, one in value.items() if key != "column"]
        if all(is_number(one) for one in others) and ("value" in value or _is_column(value.get("column"))):
            if "value" in value:
                return Number(None, add=value["value"])
            return Number(value["column"], value.get("scale", 1.0), value.get("add", 0.0))
    raise ValueError(
        f"{where} is {value!r}, expected a column (an index from 0, or a name), "
        "{ column = ..., scale = ..., add = ... } or { value = ... }"
    )


def _numbers(value: Any, count: int, where: str) -> tuple[Number, ...]:
    scale = 1.0
    if isinstance(value, dict):
        known(value, where, ("columns", "scale"))
        value, scale = value.get("columns"), value.get("scale", 1.0)
    if not isinstance(value, list) or len(value) != count or not is_number(scale):
        raise ValueError(
            f"{where} is {value!r}, expected {count} columns, or {{ columns = [...], scale = ... }}"
        )
    found = [number(one, where) for one in value]
    return tuple(Number(one.column, one.scale * scale, one.add * scale) for one in found)


def _named(values: Any, where: str, names: tuple[str, ...]) -> dict[str, Number]:
    known(values, where, names)
    return {name: number(value, f"{name} of {where}") for name, value in values.items()}


def known(values: Any, where: str, names: tuple[str, ...]) -> None:
    """Make sure that a value is a table of these keys.

    Raises:
        ValueError: It is no table, or has another key.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{where} is {values!r}, expected a table of {', '.join(names)}")
    for name in values:
        if name not in names:
            near = nearest_key(name, names)
            raise ValueError(f"{where} has a key {name}, which means nothing; the nearest is {near}")


def choice(values: Mapping[str, Any], name: str, one_of: tuple[str, ...], default: str | None) -> str:
    """Return the word of a key, or its default where the key is absent.

    Raises:
        ValueError: It is none of `one_of`; or absent, and the default None.
    """
    value = values.get(name, default)
    if value not in one_of and (value is None or value != default):
        came = "missing" if value is None else repr(value)
        raise ValueError(f"{name} is {came}, expected one of {', '.join(one_of)}")
    return str(value)


def _is_column(value: Any) -> bool:
    return (type(value) is int and value >= 0) or (isinstance(value, str) and bool(value))


def is_number(value: Any) -> bool:
    """Return whether a value of TOML is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)
