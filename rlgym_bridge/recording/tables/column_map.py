"""A map of a table: which columns hold what, in a small TOML file.

    inputs = "sent"                     # or "applied"; needed where there are controls
    header = true                       # the first row names the columns; true where a name is used

    [time]                              # one of the three
    seconds = "t"
    tick = 0
    dt = 0.01639                        # s from row to row

    [ball]                              # and any number of [[car]]
    position = [1, 2, 3]                # columns by index from 0, or by name
    velocity = { columns = [4, 5, 6], scale = 100 }
    angular_velocity = [10, 11, 12]     # world axes
    euler = [7, 8, 9]                   # pitch, yaw, roll; or quaternion = [w, x, y, z], or matrix = nine
    half_turn = 32768                   # what stands for 180 degrees in `euler`; else radians

    [[car]]
    team = "blue"
    hitbox = "octane"
    forward_speed = 4                   # in place of velocity: along the nose
    state = { on_ground = 16, boost_amount = 17 }       # names of `state.CAR_FIELDS`
    controls = { throttle = 18, steer = { column = 19, scale = -1 } }

A number is a column, `{ column = 6, scale = 2, add = 1 }`, or `{ value = 3 }`, which needs none. In JSON
lines a column is a dotted path, such as `"cars[0].input.jump"`; see `docs/columns/json-lines.toml`. A table
of trials has a table `[trial]` in place of `[time]`; see `trials.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgym_bridge.game import CONTROL_NAMES, MOST_TEAM_SIZE
from rlgym_bridge.recording.recording import Inputs
from rlgym_bridge.recording.tables.bodies import (
    BALL_KEYS,
    CAR_KEYS,
    Body,
    Number,
    body,
    choice,
    is_number,
    known,
    number,
)
from rlgym_bridge.user_input.text_files import read_toml


@dataclass(frozen=True)
class TrialColumns:
    """One trial a row: how it begins, what is held, and how it ends; see `trials.py`."""

    ticks: Number
    held: Number
    always: Mapping[str, float]
    while_held: Mapping[str, float]
    start: Body
    end: Body


@dataclass(frozen=True)
class ColumnMap:
    """A map of a table; the module says what its parts mean.

    Attributes:
        source: Its file, for errors.
        header: Whether the first row names the columns.
        inputs: What the controls are.
        time: `seconds`, `tick` or `dt`, and its number; None for trials.
        ball: None where the table has none.
        cars: Blue first.
        trial: None where rows are moments.
    """

    source: Path
    header: bool
    inputs: Inputs
    time: tuple[str, Number] | None
    ball: Body | None
    cars: tuple[Body, ...]
    trial: TrialColumns | None = None


def read_columns(path: Path) -> ColumnMap:
    """Read a map.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no TOML; a key is unknown or missing; a value is of the wrong kind.
    """
    values = read_toml(path)
    try:
        return _columns(path, values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _columns(path: Path, values: Mapping[str, Any]) -> ColumnMap:
    known(values, "the map", ("inputs", "header", "time", "ball", "car", "trial"))
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
    ball = body(values["ball"], "ball", BALL_KEYS) if "ball" in values else None
    found = sorted(
        (body(car, f"car {number}", CAR_KEYS) for number, car in enumerate(cars)), key=lambda one: one.team
    )
    for side, team in enumerate(("blue", "orange")):
        count = sum(car.team == side for car in found)
        if count > MOST_TEAM_SIZE:
            raise ValueError(f"it has {count} [[car]] of team {team}, expected {MOST_TEAM_SIZE} at most")
    trial = _trial(values["trial"]) if "trial" in values else None
    if trial is None and ball is None and not found:
        raise ValueError("it has neither [ball] nor [[car]], expected one at least")
    has_controls = trial is not None or any(car.controls for car in found)
    inputs = choice(values, "inputs", ("sent", "applied"), "none" if not has_controls else None)
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
    known(values, "[time]", ("seconds", "tick", "dt"))
    if len(values) != 1:
        raise ValueError(f"[time] has {', '.join(values) or 'nothing'}, expected one of seconds, tick and dt")
    (name, value), *_ = values.items()
    if name != "dt":
        return name, number(value, f"{name} in [time]")
    if not is_number(value) or value <= 0:
        raise ValueError(f"dt in [time] is {value!r}, expected seconds above 0")
    return name, Number(None, add=value)


def _trial(values: Any) -> TrialColumns:
    known(values, "[trial]", ("ticks", "held", "always", "while_held", "start", "end"))
    for name in ("ticks", "held", "start", "end"):
        if name not in values:
            raise ValueError(f"[trial] has no {name}")
    always, held = (
        _constants(values.get(name, {}), f"{name} in [trial]") for name in ("always", "while_held")
    )
    start, end = (body(values[name], f"trial.{name}", CAR_KEYS) for name in ("start", "end"))
    if start.controls or end.controls:
        raise ValueError("[trial] has controls in start or end, expected them in always and while_held")
    return TrialColumns(
        number(values["ticks"], "ticks in [trial]"), number(values["held"], "held in [trial]"),
        always, held, start, end,
    )  # fmt: skip


def _constants(values: Any, where: str) -> dict[str, float]:
    known(values, where, CONTROL_NAMES)
    for name, value in values.items():
        if not is_number(value) or abs(value) > 1:
            raise ValueError(f"{name} of {where} is {value!r}, expected a number from -1 to 1")
    return dict(values)


def _flag(values: Mapping[str, Any], name: str, default: bool) -> bool:
    value = values.get(name, default)
    if type(value) is not bool:
        raise ValueError(f"{name} is {value!r}, expected true or false")
    return value
