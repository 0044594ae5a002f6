"""The file that `--fit` writes has what was planted, and matches and training take it."""

import tomllib
from contextlib import chdir
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.compare.comparison_result import fit_as_toml, fitted_constants
from rlgym_bridge.physics import CONSTANTS, Spread, parse_physics, read_physics
from rlgym_bridge.training.settings import load_settings
from tests.support.made_comparisons import comparison, size
from tests.support.recorded_matches import record

PLANTED = {"gravity": 1.01}


def test_a_constant_that_differs_is_written_with_its_interval() -> None:
    found = comparison()
    found.sizes = [size("gravity", 1.01, 1.009, 1.011, gap=True), size("ball_drag", 1.0, 0.99, 1.02)]
    assert fitted_constants(found) == {
        "gravity": Spread(1.01, 1.009, 1.011), "ball_drag": Spread(1.0, 0.99, 1.02),
    }  # fmt: skip


def test_a_constant_that_is_not_told_apart_from_others_stays_1() -> None:
    found = comparison()
    found.sizes = [size("gravity", 1.01, 1.009, 1.011, gap=False)]
    assert fitted_constants(found) == {"gravity": Spread(1.0, 1.0, 1.011)}


def test_what_recordings_allow_together_is_written() -> None:
    found = comparison()
    found.sizes = [size("gravity", 1.0, 0.99, 1.002), size("gravity", 1.0, 0.998, 1.03, source="b.csv")]
    assert fitted_constants(found) == {"gravity": Spread(1.0, 0.998, 1.002)}
    found.sizes = [size("gravity", 1.0, 0.98, 1.02), size("gravity", 1.01, 1.009, 1.011, True, "b.csv")]
    assert fitted_constants(found) == {"gravity": Spread(1.01, 1.009, 1.011)}


def test_contradicting_recordings_give_the_range_of_all() -> None:
    found = comparison()
    found.sizes = [size("gravity", 1.0, 0.999, 1.001), size("gravity", 1.01, 1.009, 1.011, True, "b.csv")]
    assert fitted_constants(found) == {"gravity": Spread(1.01, 0.999, 1.011)}


def test_what_is_not_known_to_10_percent_is_left_out() -> None:
    found = comparison()
    found.sizes = [size("gravity", 1.0, 0.85, 1.1), size("", 1.0, 0.99, 1.01)]
    assert fitted_constants(found) == {}
    assert parse_physics(tomllib.loads(fit_as_toml(found))["physics"]) == {}


def test_matches_and_training_read_every_constant() -> None:
    found = comparison()
    found.sizes = [size(name, 1.0, 0.99, 1.01) for name in CONSTANTS]
    assert parse_physics(tomllib.loads(fit_as_toml(found))["physics"]) == fitted_constants(found)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a match of ours with other constants and late inputs."""
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "planted.toml").write_text(
        "[physics]\n" + "".join(f"{name} = {value}\n" for name, value in PLANTED.items())
    )
    match = record(folder / "match.mcap", "--latency", "3", "--physics", "planted.toml", seconds=24, seed=1)
    with chdir(folder):
        assert main(["compare", str(match), "-q", "--fit", "--windows", "60"]) == 1
    return folder / "fit.toml"


@pytest.mark.slow
def test_a_match_shows_the_constants_it_was_played_with(fitted: Path) -> None:
    found = read_physics(fitted)
    assert found["gravity"].low <= 1.01 <= found["gravity"].high
    assert found["gravity"].value == pytest.approx(1.01, abs=0.001)
    settings = tomllib.loads(fitted.read_text())
    assert (settings["action_delay"], settings["input_latency"]) == ([3, 3], 3)


@pytest.mark.slow
def test_training_takes_the_file_beside_ones_own_settings(fitted: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("seed = 7\ninput_latency = 0\n")
    settings = load_settings(mine, fitted)
    assert (settings.seed, settings.action_delay, settings.input_latency) == (7, (3, 3), 3)
    assert parse_physics(settings.physics) == read_physics(fitted)
    assert load_settings(fitted, mine).input_latency == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fit", "a.mcap"], "--fit is a.mcap, expected a file to write, whose name ends with .toml"),
        (["--fit", "fit.toml", "--against", "a.mcap"], "expected none with --against"),
    ],
)
def test_an_unwritable_fit_is_refused_before_the_work(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(tmp_path / "match.mcap"), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_match_with_constants_that_are_none_is_not_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text("[physics]\ngravity = 0\n")
    file = str(tmp_path / "mine.toml")
    assert main(["match", "--blue", "chaser", "--physics", file]) == 2
    assert "value of gravity in [physics] is 0, expected a multiple" in capsys.readouterr().err
    assert main(["match", "--blue", "chaser", "--server", "rlbot", "--physics", file]) == 2
    assert "expected none of it with --server rlbot" in capsys.readouterr().err
