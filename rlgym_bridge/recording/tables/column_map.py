"""Read a map of a table: a TOML file that names the columns; `docs/columns/` has examples of all keys."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.game import CONTROL_NAMES, HITBOX_NAMES, MOST_TEAM_SIZE
from rlgym_bridge.recording.recording import Inputs
from rlgym_bridge.state import CAR_FIELDS
from rlgym_bridge.user_input.arguments import nearest_key
from rlgym_bridge.user_input.text_files import read_toml

_ROTATIONS: Final = {"euler": 3, "quaternion": 4, "matrix": 9}
_BALL_KEYS: Final = ("position", "velocity", "angular_velocity", "forward_speed", *_ROTATIONS, "half_turn")
_CAR_KEYS: Final = (*_BALL_KEYS, "team", "hitbox", "state", "controls")
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
    """The columns of a table that hold a ball or a car."""

    name: str  # `ball`, or `car` and its number in the map, for errors
    # by name: `position`, `velocity`, `angular_velocity` of three numbers; `forward_speed` of one; `euler` of
    # three, `quaternion` of four or `matrix` of nine
    vectors: Mapping[str, tuple[Number, ...]]
    half_turn: float = math.pi  # what stands for 180 degrees in `euler`
    team: int = 0  # of a car, as a state has it, as is the hitbox
    hitbox: int = 0
    state: Mapping[str, Number] = field(default_factory=dict)
    controls: Mapping[str, Number] = field(default_factory=dict)

    def numbers(self) -> Iterator[Number]:
        """Yield all numbers that it takes from a table."""
        for vector in self.vectors.values():
            yield from vector
        yield from self.state.values()
        yield from self.controls.values()


@dataclass(frozen=True)
class TrialColumns:
    """One trial a row: how it begins, what is held, and how it ends."""

    ticks: Number
    held: Number
    always: Mapping[str, float]
    while_held: Mapping[str, float]
    start: Body
    end: Body


@dataclass(frozen=True)
class ColumnMap:
    """A map of a table."""

    source: Path
    header: bool
    inputs: Inputs
    time: tuple[str, Number] | None  # `seconds`, `tick` or `dt`, and its number; None for trials
    ball: Body | None
    cars: tuple[Body, ...]  # blue first
    trial: TrialColumns | None = None  # None where rows are moments


def read_columns(path: Path) -> ColumnMap:
    """Read a map; raises OSError, or ValueError for a key or a value that it cannot have."""
    values = read_toml(path)
    try:
        return _columns(path, values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _columns(path: Path, values: Mapping[str, Any]) -> ColumnMap:
    _check_keys(values, "the map", ("inputs", "header", "time", "ball", "car", "trial"))
    if ("trial" in values) == ("time" in values):
        raise ValueError(
            "it has "
            + ("both [time] and [trial]" if "time" in values else "no [time]")
            + ", expected one of [time] and [trial]"
        )
    cars = values.get("car", [])
    if not isinstance(cars, list):
        raise ValueError("car is a table, expected [[car]], one for each car")
    if "trial" in values and (cars or "ball" in values):
        raise ValueError("[trial] stands alone: its car is in [trial.start] and [trial.end]")
    ball = _body(values["ball"], "ball", _BALL_KEYS) if "ball" in values else None
    found = sorted(
        (_body(car, f"car {number}", _CAR_KEYS) for number, car in enumerate(cars)), key=lambda one: one.team
    )
    for side, team in enumerate(("blue", "orange")):
        count = sum(car.team == side for car in found)
        if count > MOST_TEAM_SIZE:
            raise ValueError(f"it has {count} [[car]] of team {team}, expected {MOST_TEAM_SIZE} at most")
    trial = _trial(values["trial"]) if "trial" in values else None
    if trial is None and ball is None and not found:
        raise ValueError("it has neither [ball] nor [[car]], expected one at least")
    has_controls = trial is not None or any(car.controls for car in found)
    inputs = _choice(values, "inputs", ("sent", "applied"), "none" if not has_controls else None)
    time = _time(values["time"]) if "time" in values else None
    bodies = [ball] if ball else []
    bodies += [trial.start, trial.end] if trial else found
    numbers = [one for each in bodies for one in each.numbers()]
    numbers += [trial.ticks, trial.held] if trial else []
    numbers += [time[1]] if time else []
    return ColumnMap(
        path,
        _flag(values, "header", any(isinstance(one.column, str) for one in numbers)),
        Inputs(inputs) if has_controls else Inputs.NONE,
        time,
        ball,
        tuple(found),
        trial,
    )


def _time(values: Any) -> tuple[str, Number]:
    _check_keys(values, "[time]", ("seconds", "tick", "dt"))
    if len(values) != 1:
        raise ValueError(f"[time] has {', '.join(values) or 'nothing'}, expected one of seconds, tick and dt")
    (name, value), *_ = values.items()
    if name != "dt":
        return name, _number(value, f"{name} in [time]")
    if not _is_number(value) or value <= 0:
        raise ValueError(f"dt in [time] is {value!r}, expected seconds above 0")
    return name, Number(None, add=value)


def _trial(values: Any) -> TrialColumns:
    _check_keys(values, "[trial]", ("ticks", "held", "always", "while_held", "start", "end"))
    for name in ("ticks", "held", "start", "end"):
        if name not in values:
            raise ValueError(f"[trial] has no {name}")
    always, held = (
        _constants(values.get(name, {}), f"{name} in [trial]") for name in ("always", "while_held")
    )
    start, end = (_body(values[name], f"trial.{name}", _CAR_KEYS) for name in ("start", "end"))
    if start.controls or end.controls:
        raise ValueError("[trial] has controls in start or end, expected them in always and while_held")
    return TrialColumns(
        _number(values["ticks"], "ticks in [trial]"), _number(values["held"], "held in [trial]"),
        always, held, start, end,
    )  # fmt: skip


def _constants(values: Any, where: str) -> dict[str, float]:
    _check_keys(values, where, CONTROL_NAMES)
    for name, value in values.items():
        if not _is_number(value) or abs(value) > 1:
            raise ValueError(f"{name} of {where} is {value!r}, expected a number from -1 to 1")
    return dict(values)


def _flag(values: Mapping[str, Any], name: str, default: bool) -> bool:
    value = values.get(name, default)
    if type(value) is not bool:
        raise ValueError(f"{name} is {value!r}, expected true or false")
    return value


def _body(values: Any, name: str, keys: tuple[str, ...]) -> Body:
    _check_keys(values, f"[{name}]", keys)
    vectors = {}
    for key, value in values.items():
        if key in ("position", "velocity", "angular_velocity") or key in _ROTATIONS:
            vectors[key] = _numbers(value, _ROTATIONS.get(key, 3), f"{key} in [{name}]")
    if "forward_speed" in values:
        vectors["forward_speed"] = (_number(values["forward_speed"], f"forward_speed in [{name}]"),)
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
    if not _is_number(half_turn) or half_turn <= 0:
        raise ValueError(f"half_turn in [{name}] is {half_turn!r}, expected a number above 0")
    return Body(
        name, vectors, half_turn,
        _TEAMS.index(_choice(values, "team", _TEAMS, "blue")),
        HITBOX_NAMES.index(_choice(values, "hitbox", HITBOX_NAMES, "octane")),
        _named(values.get("state", {}), f"state in [{name}]", _SCALARS),
        _named(values.get("controls", {}), f"controls in [{name}]", CONTROL_NAMES),
    )  # fmt: skip


def _number(value: Any, where: str) -> Number:
    """Return a number of a table: a column, or a table that says more."""
    if _is_column(value):
        return Number(value)
    if isinstance(value, dict) and value:
        _check_keys(value, where, ("value",) if "value" in value else ("column", "scale", "add"))
        others = [one for key, one in value.items() if key != "column"]
        if all(_is_number(one) for one in others) and ("value" in value or _is_column(value.get("column"))):
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
        _check_keys(value, where, ("columns", "scale"))
        value, scale = value.get("columns"), value.get("scale", 1.0)
    if not isinstance(value, list) or len(value) != count or not _is_number(scale):
        raise ValueError(
            f"{where} is {value!r}, expected {count} columns, or {{ columns = [...], scale = ... }}"
        )
    found = [_number(one, where) for one in value]
    return tuple(Number(one.column, one.scale * scale, one.add * scale) for one in found)


def _named(values: Any, where: str, names: tuple[str, ...]) -> dict[str, Number]:
    _check_keys(values, where, names)
    return {name: _number(value, f"{name} of {where}") for name, value in values.items()}


def _check_keys(values: Any, where: str, names: tuple[str, ...]) -> None:
    if not isinstance(values, dict):
        raise ValueError(f"{where} is {values!r}, expected a table of {', '.join(names)}")
    for name in values:
        if name not in names:
            near = nearest_key(name, names)
            raise ValueError(f"{where} has a key {name}, which means nothing; the nearest is {near}")


def _choice(values: Mapping[str, Any], name: str, one_of: tuple[str, ...], default: str | None) -> str:
    """Return the word of a key, or its default where the key is absent."""
    value = values.get(name, default)
    if value not in one_of and (value is None or value != default):
        came = "missing" if value is None else repr(value)
        raise ValueError(f"{name} is {came}, expected one of {', '.join(one_of)}")
    return str(value)


def _is_column(value: Any) -> bool:
    return (type(value) is int and value >= 0) or (isinstance(value, str) and bool(value))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
