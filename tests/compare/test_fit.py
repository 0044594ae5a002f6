"""The file that `--fit` writes has what was planted, and matches and training take it."""

import tomllib
from contextlib import chdir
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.output.fitted_settings import fit_as_toml, fitted_constants
from rlgym_bridge.physics import parse_physics, read_physics
from rlgym_bridge.sim.arena import scale_constants
from rlgym_bridge.training.settings_file import load_settings
from tests.support.planted_gaps import as_table, play, sent, without
from tests.support.recorded_matches import record

PLANTED = {"gravity": 1.01, "ball_drag": 1.02, "boost_accel_ground": 0.95, "ball_world_restitution": 0.97}
JUMPS = {"jump_immediate_force": 1.03, "jump_accel": 0.96, "boost_accel_air": 0.95}


@pytest.mark.slow
def test_every_constant_is_recovered_though_all_of_them_are_off() -> None:
    planted = PLANTED | JUMPS
    match = play(seconds=32, mutate=lambda config: scale_constants(config, planted))
    found = fitted_constants(compare_recordings(as_table(match), windows=120))
    assert {name: one.value for name, one in found.items()} == pytest.approx(planted, abs=0.002)
    for one in found.values():
        assert one.high - one.low < 0.02


@pytest.mark.slow
def test_nothing_is_corrected_where_nothing_was_planted() -> None:
    found = compare_recordings(sent(as_table(play(seconds=16)), 3), windows=48)
    assert {one.value for one in fitted_constants(found).values()} == {1.0}
    settings = tomllib.loads(fit_as_toml(found))
    assert (settings["action_delay"], settings["input_latency"]) == ([3, 3], 3)


@pytest.mark.slow
def test_cars_with_missing_inputs_tell_of_no_constant() -> None:
    match = play(seconds=24, mutate=lambda config: scale_constants(config, PLANTED))
    found = fitted_constants(compare_recordings(without(as_table(match), "handbrake"), windows=48))
    assert not {"boost_accel_ground", "boost_accel_air", "jump_accel"} & set(found)
    assert found["ball_drag"].value == pytest.approx(1.02, abs=0.002)


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
    assert {name: found[name].value for name in PLANTED} == pytest.approx(PLANTED, abs=0.003)
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
    assert "expected neither with --server rlbot" in capsys.readouterr().err
