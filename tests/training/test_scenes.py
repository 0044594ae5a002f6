"""Scenes: a player that has the skill solves them, a car that stands solves none."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.cli import run_command
from rlgym_bridge.components.initial_states import INITIAL_STATES
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.policy.pilot import Pilot
from rlgym_bridge.state import MatchState
from rlgym_bridge.training import scenes
from rlgym_bridge.training.evaluate import median_interval, share_interval
from rlgym_bridge.training.scenes import (
    SCENES,
    SceneResult,
    SkillScene,
    StandingDriver,
    parse_scenes,
    play_scenes,
    scripted_player,
)

KICKOFFS = [name for name in SCENES if name.startswith("kickoff")]
CHASER = load_player("chaser")


class Skilled(StandingDriver):
    """Gives some controls of each car, by their names."""

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        rows = super().act(obs, state)
        for column, car in enumerate(self._cars):
            for name, values in self.drive(state, car).items():
                rows[:, column, CONTROL_NAMES.index(name)] = values
        return rows

    def drive(self, state: MatchState, car: int) -> dict[str, np.ndarray]:
        raise NotImplementedError


def may_jump(state: MatchState, car: int) -> np.ndarray:
    return (state.car_on_ground[:, car] > 0) | (state.car_is_jumping[:, car] > 0)


def seen_from(state: MatchState, car: int, vector: np.ndarray) -> np.ndarray:
    """Return vectors `(N, 3)` as `(3, N)` along the car's nose, right side and roof."""
    return np.einsum("nij,ni->jn", state.car_rotation[:, car], vector)


class Carrying(Skilled):
    """Keeps under the ball on its roof."""

    def drive(self, state: MatchState, car: int) -> dict[str, np.ndarray]:
        gap = seen_from(state, car, state.ball_position - state.car_position[:, car])
        drift = seen_from(state, car, state.ball_linear_velocity - state.car_linear_velocity[:, car])
        throttle = 0.02 * (gap[0] - 10) + 0.01 * drift[0]
        return {"throttle": throttle, "steer": 0.01 * gap[1] + 0.005 * drift[1]}


class Jumping(Skilled):
    """Jumps when another car is near, and again."""

    def drive(self, state: MatchState, car: int) -> dict[str, np.ndarray]:
        gaps = np.linalg.norm(state.car_position - state.car_position[:, [car]], axis=-1)
        gaps[:, car] = np.inf
        return {"jump": (gaps.min(1) < 1000) & may_jump(state, car)}


class Boosting(Skilled):
    """Holds boost, and nothing else."""

    def drive(self, state: MatchState, car: int) -> dict[str, np.ndarray]:
        return {"boost": np.ones(state.matches)}


def shares(player: PlayerSpec, names: list[str], trials: int = 10) -> list[float]:
    return [found.solved / found.trials for found in play_scenes(player, names, trials)]


def test_a_standing_car_solves_no_scene() -> None:
    assert shares(scripted_player(StandingDriver, 8), list(SCENES), 6) == [0.0] * len(SCENES)


@pytest.mark.parametrize(
    ("player", "least"),
    [
        (scripted_player(Pilot, 8), {"aerial_500": 0.7, "aerial_1000": 0.3}),
        (scripted_player(Carrying, 8), {"dribble": 0.6}),
        (scripted_player(Jumping, 8), {"collision": 0.8}),
        (CHASER, {"shot": 0.7, "save": 0.1, "recovery": 0.9} | dict.fromkeys(KICKOFFS, 0.2)),
    ],
    ids=["flying", "carrying", "jumping", "chaser"],
)
def test_a_player_with_the_skill_solves(player: PlayerSpec, least: dict[str, float]) -> None:
    found = dict(zip(least, shares(player, list(least)), strict=True))
    assert all(found[name] >= share for name, share in least.items()), found


def test_a_flight_leads_to_the_ball_for_who_flies_on(monkeypatch: pytest.MonkeyPatch) -> None:
    met = SkillScene(
        INITIAL_STATES["flight"], 2.0, "touched", lambda view: (view.car("ball_touches") > 0).astype(int)
    )
    monkeypatch.setattr(scenes, "SCENES", {"flight": met})
    pilot, boosting, falling = (
        shares(scripted_player(driver, 8), ["flight"], 100)[0] for driver in (Pilot, Boosting, StandingDriver)
    )
    assert pilot >= 0.9 and pilot > boosting + 0.2 > falling + 0.3


def test_cars_without_a_task_stand_aside_in_2v2() -> None:
    (found,) = play_scenes(CHASER, ["shot"], 4, team_size=2)
    assert found.solved >= 3


def test_equal_seeds_alone_give_equal_trials() -> None:
    once, again, other = (play_scenes(CHASER, ["save"], 6, seed=seed)[0].seconds for seed in (1, 1, 2))
    assert once.tolist() == again.tolist() != other.tolist()
    _, among_others = play_scenes(CHASER, ["shot", "save"], 6, seed=1)
    assert among_others.seconds.tolist() == once.tolist()


def test_a_result_names_share_interval_and_median() -> None:
    found = SceneResult("recovery", np.array([1.0, 2.0, 3.0, np.inf])).to_json()
    assert (found["solved"], found["share"], found["median_seconds"]) == (3, 0.75, 2.5)
    assert found["interval"] == pytest.approx(share_interval(0.75, 4))
    assert found["median_interval"] == [1, None]
    assert SceneResult("recovery", np.array([1.0, np.inf, np.inf])).to_json()["median_seconds"] is None
    assert SceneResult("shot", np.ones(3)).to_json()["median_seconds"] is None


def test_the_interval_of_a_median_holds_it_in_19_of_20_samples() -> None:
    samples = np.random.default_rng(0).exponential(1, (2000, 100))
    bounds = np.array([median_interval(sample)[1:] for sample in samples])
    assert np.mean((bounds[:, 0] <= np.log(2)) & (np.log(2) <= bounds[:, 1])) > 0.94
    assert median_interval(np.arange(1.0, 102.0))[0] == 51 and median_interval(np.array([3.0])) == (3, 3, 3)


def test_the_command_prints_a_table_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgym_bridge.training.scenes.open_pool", ThreadPoolExecutor)  # at once
    result = tmp_path / "scenes.json"
    arguments = ["standing", "--scenes", "shot,recovery", "--trials", "2", "--json", str(result)]
    assert run_command("evaluate", arguments) == 0
    out = capsys.readouterr().out
    assert "standing, 2 trials of each scene" in out and "over 6 s " in out
    data = json.loads(result.read_text())
    assert [(one["name"], one["trials"], one["solved"]) for one in data["scenes"]] == [
        ("shot", 2, 0), ("recovery", 2, 0),
    ]  # fmt: skip


def test_unknown_scenes_and_other_paces_are_refused() -> None:
    with pytest.raises(ValueError, match=r"--scenes has 'fly', expected some of"):
        parse_scenes("shot,fly")
    with pytest.raises(ValueError, match="decides every 4 ticks, and Chaser, its opponent in kickoff"):
        play_scenes(scripted_player(StandingDriver, 4), ["shot", "kickoff_straight"], 1)
