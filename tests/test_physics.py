"""Constants from a file: what reads back is what was written, and what cannot be played is named."""

import tomllib
from pathlib import Path

import pytest

from rlgym_bridge.physics import (
    CONSTANTS,
    Spread,
    parse_physics,
    physics_as_toml,
    read_physics,
)


def test_a_number_alone_is_a_range_of_itself() -> None:
    assert parse_physics({"gravity": 1}) == {"gravity": Spread(1.0, 1.0, 1.0)}
    assert parse_physics({"ball_drag": {"value": 1.02, "low": 1}}) == {"ball_drag": Spread(1.02, 1.0, 1.02)}


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    constants = {name: Spread(1.01, 0.99, 1.5) for name in CONSTANTS}
    file = tmp_path / "fit.toml"
    file.write_text("action_delay = [2, 3]\n\n" + physics_as_toml(constants))
    assert read_physics(file) == constants
    assert parse_physics(tomllib.loads(physics_as_toml({}))["physics"]) == {}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (3, r"physics is 3, expected a table"),
        ({"grvity": 1.0}, r"grvity in \[physics\] is no constant; the nearest is gravity"),
        ({"gravity": "1"}, r"value of gravity in \[physics\] is '1', expected a multiple"),
        ({"gravity": True}, r"is True, expected a multiple"),
        ({"gravity": float("nan")}, r"is nan, expected a multiple"),
        ({"gravity": -650.0}, r"is -650.0, expected a multiple of RocketSim's own, 0.01 to 100"),
        ({"gravity": {"low": 1.0}}, r"gravity in \[physics\] has no value"),
        ({"gravity": {"value": 1.0, "hi": 2.0}}, r"has hi, expected value, low, high"),
        ({"gravity": {"value": 1.0, "low": 1.1}}, r"value 1, low 1.1, high 1, expected low, value and high"),
    ],
)
def test_a_wrong_constant_is_named_with_what_was_expected(table: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_physics(table)


@pytest.mark.parametrize("text", ["gravity = 1.0", "[physics", "[physics]\ngravity = 'high'"])
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match=r"mine\.toml"):
        read_physics(tmp_path / "mine.toml")
