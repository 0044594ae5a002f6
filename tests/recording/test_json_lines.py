"""Captures with an object on each line are tables whose columns are paths."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.recording.tables import cells
from rlgym_bridge.recording.tables.table_recording import read_table
from tests.support.real_data import COLUMNS

MAP = COLUMNS / "json-lines.toml"


def line(tick: int, **controls: float) -> dict[str, Any]:
    """Return a moment of a ball at rest and a car that drives along x at 1200 uu/s."""
    vector = dict.fromkeys("xyz", 0.0)
    upright = vector | {"w": 1.0}
    body = {"rotation": upright, "velocity": vector, "angular_velocity": vector}
    return {
        "timestamp_secs": tick / 120,
        "ball": body | {"position": vector | {"z": 93.15}},
        "cars": [
            body
            | {
                "position": {"x": 10.0 * tick, "y": 0.0, "z": 17.0},
                "velocity": vector | {"x": 1200.0},
                "boost_amount": 33.0,
                "input": dict.fromkeys(CONTROL_NAMES, 0.0) | {"jump": False} | controls,
            }
        ],
    }


def read(folder: Path, text: str) -> Recording:
    (folder / "flight.jsonl").write_text(text)
    return read_table(folder / "flight.jsonl", MAP)


def text_of(*lines: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in lines)


def test_fields_in_fields_are_columns(tmp_path: Path) -> None:
    found = read(tmp_path, text_of(line(0), line(1, jump=True, steer=-0.5), line(2)))
    assert found.tick.tolist() == [0, 1, 2] and found.inputs is Inputs.SENT and found.inputs_recorded.all()
    np.testing.assert_allclose(found.state.car_position[:, 0], [[0, 0, 17], [10, 0, 17], [20, 0, 17]])
    np.testing.assert_allclose(found.state.ball_position[:, 2], 93.15)
    np.testing.assert_allclose(found.state.car_rotation[:, 0], [np.eye(3)] * 3)
    assert found.state.car_boost_amount[:, 0].tolist() == [33, 33, 33]
    named = dict(zip(CONTROL_NAMES, found.state.car_controls[1, 0].tolist(), strict=True))
    assert (named["jump"], named["steer"], named["boost"]) == (1, -0.5, 0)


@pytest.mark.parametrize("index", ["cars[0]", "cars.0"])
def test_an_index_has_brackets_or_a_dot(index: str, tmp_path: Path) -> None:
    columns = tmp_path / "map.toml"
    columns.write_text(MAP.read_text().replace("cars[0]", index))
    (tmp_path / "flight.jsonl").write_text(text_of(line(0), line(1)))
    assert read_table(tmp_path / "flight.jsonl", columns).state.car_position[1, 0, 0] == 10


def test_a_last_line_that_is_cut_off_is_dropped_and_told(tmp_path: Path) -> None:
    found = read(tmp_path, text_of(line(0), line(1), line(2))[:-40])
    assert found.tick.tolist() == [0, 1]
    assert "flight.jsonl breaks off in line 3: that line is dropped" in found.notes


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"timestamp_secs": 1,', r"flight.jsonl line 2 is {\"timestamp_secs\": 1,, expected one whole JSON"),
        ("[1, 2]", r"flight.jsonl line 2 is \[1, 2\], expected a JSON object as in the first line"),
        ("[" * 200 + "]" * 200, r"line 2 is \[+\.\.\. \(400 characters\), .*more than 100 levels deep"),
        (
            json.dumps(line(1) | {"ball": None}),
            r"line 2, column ball.position.x \(position of ball\): there is no 'position' in ball, which is "
            r"null, expected an object",
        ),
        (
            json.dumps(line(1) | {"cars": []}),
            r"line 2, column cars\[0\].position.x .*: there is no '0' in cars, a list of 0 entries, expected",
        ),
        (json.dumps(line(1, steer=7)), r"flight.jsonl line 2, steer of car 0: 7 of a control, expected -1 t"),
        (
            json.dumps(line(1, jump="pressed")),  # type: ignore[arg-type]
            r"line 2, column cars\[0\].input.jump \(jump of car 0\): 'pressed', expected a number",
        ),
        (json.dumps(line(1)).replace("33.0", "NaN"), r"line 2, .*boost_amount.*: nan, expected a finite num"),
        (json.dumps(line(1)).replace("33.0", "9" * 40), r"line 2 is .*a whole number of 133 bits, expected"),
        (
            json.dumps(line(1)).replace('"steer"', '"steering"'),
            r"there is no 'steer' in cars.0.input, which has throttle, steering, pitch",
        ),
    ],
)
def test_a_bad_line_is_named_with_what_came(tmp_path: Path, second: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, text_of(line(0)) + second + "\n" + text_of(line(2)))
    assert "\n" not in str(caught.value)


def test_a_table_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match=r"flight.jsonl has 590 bytes, expected a table of 100 at most"):
        read(tmp_path, text_of(line(0)))


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    text = text_of(line(0)).replace('"timestamp_secs": 0.0', '"timestamp_secs": 5.0, "timestamp_secs": 0.0')
    with pytest.raises(ValueError, match=r"line 1 is .*an object has the key 'timestamp_secs' twice"):
        read(tmp_path, text + text_of(line(1)))
