"""Files of replicar: the states and inputs in them, and what a policy would have done in their place."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.replays.replay_episodes import played_like
from rlgym_bridge.recording.replays.replicar_recording import convert_replay
from rlgym_bridge.sim.simulator import ROCKETSIM3, make_simulator
from rlgym_bridge.state import MatchState
from tests.support.made_replicar import simulated, write_replicar
from tests.support.recorded_matches import POLICY
from tests.support.simulators import needs_native

TICKS = 240
TABLE = np.asarray(LookupTableAction.make_lookup_table())


def actions(seed: int = 0) -> np.ndarray:
    """Return an action of the shipped policy for each of two cars and every eight ticks."""
    return np.random.default_rng(seed).integers(0, 90, (2, TICKS // 8))


def controls_of(chosen: np.ndarray) -> np.ndarray:
    """Return the controls `(2, ticks, 8)` of actions."""
    return np.repeat(TABLE[chosen], 8, axis=1)


@pytest.fixture(scope="module")
def match() -> MatchState:
    return simulated(controls_of(actions()))


@needs_native
@pytest.mark.parametrize("swap", [False, True])
def test_states_are_read_as_they_were(swap: bool, match: MatchState, tmp_path: Path) -> None:
    found = open_recording(write_replicar(tmp_path / "match.parquet", match, swap))
    assert found.segment[-1] == 0 and found.tick[0] == 700 and found.car_shown.all()
    assert found.state.car_team[0].tolist() == [0, 1] and found.state.score[0].tolist() == [0, 1]
    for name in ("ball_position", "ball_linear_velocity", "car_position", "car_linear_velocity",
                 "car_angular_velocity", "car_boost_amount", "car_controls", "pad_timer", "car_on_ground",
                 "car_has_jumped", "car_has_flipped", "car_flip_time", "car_supersonic_time"):  # fmt: skip
        assert np.allclose(getattr(found.state, name), getattr(match, name), atol=1e-4), name
    assert np.allclose(found.state.car_rotation, match.car_rotation, atol=1e-3)


@needs_native
def test_its_inputs_drive_the_simulator_to_its_states(match: MatchState, tmp_path: Path) -> None:
    state = open_recording(write_replicar(tmp_path / "match.parquet", match)).state
    simulator = make_simulator(ROCKETSIM3, 1, 1, 1)
    for start in (0, 100):
        simulator.put([0], MatchState(1, 1, 1, state.buffer[start : start + 1]))
        rows = state.car_controls[start + 1 : start + 31].swapaxes(0, 1)[None]
        played = MatchState(1, 1, 30, simulator.play(np.ascontiguousarray(rows), [30])[0])
        assert np.abs(played.car_position[-1] - state.car_position[start + 30]).max() < 1.0


@needs_native
def test_actions_are_found_again_in_their_controls(match: MatchState, tmp_path: Path) -> None:
    policy = load_policy(POLICY)
    skip, delay = policy.manifest.tick_skip, policy.manifest.action_delay
    # A decision drives from `delay` ticks after its state on.
    late = MatchState(1, 1, match.matches - (8 - delay), match.buffer[8 - delay :])
    recording = open_recording(write_replicar(tmp_path / "match.parquet", late))
    [cars] = played_like(recording, policy)
    assert [car.agent for car in cars] == ["blue-0", "orange-0"]
    for seat, car in enumerate(cars):
        assert car.told.all() and not car.differs.any() and len(car.obs) == len(car.chosen) + 1
        assert (np.diff(car.frames) == skip).all()
        assert np.array_equal(TABLE[car.chosen], TABLE[actions()[seat, 1 : 1 + len(car.chosen)]])
        assert len(set(car.chosen.tolist())) > 10


@needs_native
def test_cars_can_be_chosen_and_other_sizes_are_refused(match: MatchState, tmp_path: Path) -> None:
    policy = load_policy(POLICY)
    recording = open_recording(write_replicar(tmp_path / "match.parquet", match))
    [[car]] = played_like(recording, policy, ["orange-0"])
    assert car.agent == "orange-0"
    with pytest.raises(ValueError, match="has no orange-1: blue-0, orange-0"):
        played_like(recording, policy, ["orange-1"])
    alone = MatchState(1, 0, match.matches)
    recording.state = alone
    with pytest.raises(ValueError, match="has 1 and 0 cars, and the policy of --like plays"):
        played_like(recording, policy)


@needs_native
@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"rows": "frames"}, "rows of .* is 'frames', expected 'ticks'"),
        ({"tick_step": 4}, "tick_step of .* is 4, expected 1"),
        ({"format_version": 2}, "format 2 .* expected format 1"),
        ({"groups": ["game"]}, "format 1 with game; expected format 1 with state"),
        ({"pads": [{"position": [1234.0, 0.0, 70.0]}]}, "has a pad at"),
    ],
)
def test_other_files_are_refused(
    header: dict[str, object], message: str, match: MatchState, tmp_path: Path
) -> None:
    file = write_replicar(tmp_path / "match.parquet", match, **header)
    with pytest.raises(ValueError, match=message):
        open_recording(file)


def test_compare_wants_states_of_the_game(tmp_path: Path, refused) -> None:
    file = tmp_path / "match.parquet"
    file.touch()
    assert "holds states that replicar made with RocketSim" in refused("compare", file)


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "match.parquet"
    file.write_bytes(b"x" * 100)
    with pytest.raises(ValueError, match=r"match\.parquet is no Parquet file that can be read"):
        open_recording(file)


def test_replays_are_converted_by_a_python_that_has_replicar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "import shutil\n\ndef convert(replay, out, meshes):\n    shutil.copyfile(replay, out)\n"
    (tmp_path / "replicar.py").write_text(module)
    replay, out = tmp_path / "a.replay", tmp_path / "a.parquet"
    replay.write_bytes(b"replay")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    convert_replay(replay, out, sys.executable, tmp_path)
    assert out.read_bytes() == b"replay"
    (tmp_path / "replicar.py").write_text("raise ModuleNotFoundError(\"No module named 'replicar'\")\n")
    with pytest.raises(ValueError, match=r"expected a Python 3\.12 or later with `pip install"):
        convert_replay(replay, out, sys.executable, tmp_path)
    with pytest.raises(ValueError, match="cannot be started"):
        convert_replay(replay, out, str(tmp_path / "none"), tmp_path)
