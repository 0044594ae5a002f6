"""Opponents in training: their shares, delays and newer checkpoints; older versions, rated."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlgym_bridge import ComponentSpec
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.training.collector import Collectors
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.evaluate import evaluate
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.runs.progress import COLUMNS, Progress
from rlgym_bridge.training.selfplay.matches import MixedMatches, SelfPlayMatches
from rlgym_bridge.training.selfplay.opponents import (
    Opponent,
    learned_cars,
    name_car,
    newest_opponents,
    opponent_sides,
    snapshot_cars,
)
from rlgym_bridge.training.selfplay.snapshots import Snapshots
from rlgym_bridge.training.settings import SettingsError, TrainingSettings, check_settings, settings_as_toml
from tests.support.policy_folders import OBS_1V1, make_module, random_weights, save
from tests.support.searching_folders import AHEAD, BACK, SPEED_AHEAD, searching
from tests.support.simulators import needs_native
from tests.support.states import random_state
from tests.support.training_runs import SMALL, column, small_settings

REAL = {"components": "rlgym_bridge.training.components", "snapshot_share": 0.0}


def settings(out: Path, **changes: Any) -> TrainingSettings:
    return small_settings(out, **REAL | changes)


def save_checkpoint(run: Path, steps: int, action: int) -> None:
    """Give a run a checkpoint that always chooses one action."""
    weights = random_weights(OBS_1V1, 8, 90)
    weights["layers.1.bias"][action] = 1e6
    save(run / "checkpoints" / str(steps), weights=weights)


def test_each_opponent_plays_its_share_and_is_not_learned_from(tmp_path: Path) -> None:
    small = settings(
        tmp_path, matches=10, snapshot_share=0.2, opponents={"chaser": 0.3, "runs/b": 0.2, "c": 0}
    )
    sides = {name: one.tolist() for name, one in opponent_sides(small).items()}
    assert sides == {"chaser": [0, 0, 1, -1, 1, 0, 0, 0, 0, 0], "runs/b": [0, 0, 0, 0, 0, 1, -1, 0, 0, 0]}
    assert learned_cars(small).sum() == 20 - 2 - 3 - 2


def test_goals_count_for_the_side_that_scored(tmp_path: Path) -> None:
    matches = SelfPlayMatches(small_settings(tmp_path, matches=2, snapshot_share=0.5))
    matches.reset(0)
    for _ in range(60):
        matches.step(np.zeros((2, 2), int))
    counts = matches.take_counts()  # blue scores all goals of the stand-in, and the snapshot is blue
    assert counts["snapshot_goals"] > 0 == counts["goals_against_snapshot"]


def test_an_opponent_has_the_delay_of_its_own_folder(tmp_path: Path) -> None:
    late = settings(tmp_path, matches=4, opponents={"chaser": 0.5}, action_delay=[16, 16])
    opponent = Opponent("chaser", late, Task(late), opponent_sides(late)["chaser"])
    assert opponent.delays.tolist() == [[1, -1], [-1, 1], [-1, -1], [-1, -1]]


def test_a_newer_checkpoint_of_another_run_plays_from_a_restart(tmp_path: Path) -> None:
    other = tmp_path / "other"
    save_checkpoint(other, 100, action=5)
    run = settings(tmp_path / "run", matches=4, opponents={str(other): 0.5, "chaser": 0.25})
    learner = PPOLearner(run)

    def chosen() -> set[int]:
        collectors.begin((0,), 1)
        collectors.finish()
        actions = collectors.arrays["actions"].reshape(run.rollout_steps, run.matches, run.cars)
        return set(actions[:, [0, 1], [0, 1]].ravel().tolist())  # blue in one match, orange in the next

    with Collectors(run, learner.shape) as collectors:
        collectors.arrays["policies"][:] = learner.packed()
        collectors.restart((0,))
        assert chosen() == {5} and newest_opponents(run) == {str(other): "100"}
        save_checkpoint(other, 200, action=7)
        assert chosen() == {5}
        collectors.restart((0,))  # as a run does at each of its checkpoints
        assert chosen() == {7} and newest_opponents(run) == {str(other): "200"}


def opponent_of(folder: Path) -> Opponent:
    save_checkpoint(folder, 100, action=5)
    run = settings(folder / "run", opponents={str(folder): 0.5})
    return Opponent(str(folder), run, Task(run), opponent_sides(run)[str(folder)])


def test_an_opponent_plays_on_where_latest_names_none_by_now(tmp_path: Path) -> None:
    opponent = opponent_of(tmp_path)
    save_checkpoint(tmp_path, 200, action=7)
    (tmp_path / "checkpoints" / "latest").write_text("20")
    opponent.renew()
    assert Path(opponent.path).name == "100"


@needs_native
def test_an_opponent_in_training_does_not_search(tmp_path: Path) -> None:
    folder = searching(tmp_path / "p", {BACK: 1.0, AHEAD: 0.0}, {SPEED_AHEAD: 1.0})
    run = settings(tmp_path / "run", opponents={str(folder): 0.5})
    opponent = Opponent(str(folder), run, Task(run), opponent_sides(run)[str(folder)])
    opponent.reset(0)
    every = [chosen for _, chosen in opponent.actions(random_state(1, 1, seed=1, matches=run.matches))]
    assert all((chosen == BACK).all() for chosen in every)


def test_a_newer_checkpoint_with_another_delay_is_refused(tmp_path: Path) -> None:
    opponent = opponent_of(tmp_path)
    save(tmp_path / "checkpoints" / "200", action_delay=3)
    with pytest.raises(SettingsError, match=r"whose newest checkpoint .*200 has another delay"):
        opponent.renew()


def test_a_run_trains_against_several_opponents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_checkpoint(tmp_path / "other", 100, action=5)
    opponents = {"chaser": 0.25, str(tmp_path / "other"): 0.25}
    assert main(settings(tmp_path / "run", opponents=opponents, steps=200)).steps >= 200
    assert f"opponent {tmp_path / 'other'}: its checkpoint 100" in capsys.readouterr().err
    assert len(column(tmp_path / "run", "opponent_goal_share/chaser")) == 3


def test_each_opponent_has_its_goal_share_in_the_table(tmp_path: Path) -> None:
    stats = dict.fromkeys(COLUMNS, 0.0)
    counts = {"episode_reward": 0.0, "finished_cars": 0.0}
    counts |= {"goals_against_opponent/chaser": 3, "opponent/chaser_goals": 1}
    with Progress(settings(tmp_path, opponents={"chaser": 0.2}), 0, quiet=True) as progress:
        progress.report(100, 100, counts, stats)
    changed = settings(tmp_path, opponents={"runs/my bot": 0.2})  # resumed with another opponent
    with Progress(changed, 100, quiet=True) as progress:
        progress.report(200, 100, counts | {"opponent/runs/my bot_goals": 2}, stats)
    np.testing.assert_array_equal(column(tmp_path, "opponent_goal_share/chaser"), [0.75, np.nan])
    np.testing.assert_array_equal(column(tmp_path, "opponent_goal_share/runs/my_bot"), [np.nan, 0.0])


def test_an_opponent_with_memory_forgets_where_its_match_ended(tmp_path: Path) -> None:
    remembering = check_settings(
        SMALL | REAL | {"network": "gru", "sequence_length": 4, "out": str(tmp_path)}
    )
    name = str(PPOLearner(remembering).save(Checkpoints(tmp_path, 1)))
    run = settings(tmp_path / "run", opponents={name: 0.75})
    opponent = Opponent(name, run, Task(run), opponent_sides(run)[name])
    opponent.reset(0)
    (blue, _, _), (orange, _, _) = opponent._places  # in matches 0, 2, 4 and 1, 3, 5
    state = random_state(1, 1, seed=1, matches=8)
    list(opponent.actions(state))
    first = blue.memory.copy(), orange.memory.copy()
    opponent.forget(np.arange(8) == 3)
    list(opponent.actions(state))
    np.testing.assert_allclose(orange.memory[1], first[1][1], atol=1e-6)
    moved = np.abs(blue.memory - first[0]).max((1, 2)), np.abs(orange.memory - first[1]).max((1, 2))
    assert (moved[0] > 1e-4).all() and (moved[1][[0, 2]] > 1e-4).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"opponents": {"nowhere": 0.5}}, r'\[opponents\] has "nowhere", which cannot be played: nowhere is'),
        ({"opponents": {"chaser": 0.5}, "tick_skip": 4}, "decides every 8 ticks, and tick_skip is 4"),
        ({"opponents": {"chaser": 0.9}, "snapshot_share": 0.2}, r"opponents \{chaser = 0.9\}, expected 1 to"),
        ({"opponents": {"chaser": 1.5}}, r"chaser in \[opponents\] is 1.5, expected a share of the matches,"),
        ({"opponents": {"chaser": 0.01}}, r'gives "chaser" 0.01 of 8 matches, which is none'),
        ({"opponents": "chaser"}, r"opponents is 'chaser', expected a table of shares"),
        ({"opponents": {"": 0.5}}, r"'' in \[opponents\] is no name"),
    ],
)
def test_an_opponent_that_cannot_play_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=message):
        PPOLearner(settings(tmp_path / "run", **changes))


def test_an_opponent_with_modules_of_its_own_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "own")
    file = tmp_path / "own" / "policy.json"
    file.write_text(file.read_text().replace("rlgym_bridge:DefaultObs", "not_theirs:Obs"))
    with pytest.raises(SettingsError, match=r"that this run does not import: .* a training run") as e:
        PPOLearner(settings(tmp_path / "run", opponents={str(tmp_path / "own"): 0.5}))
    assert "--allow-modules" not in str(e.value)  # which `train` does not have


def test_rlgyms_own_parser_is_told_from_ours_of_the_same_name(tmp_path: Path) -> None:
    rlgyms = "rlgym.rocket_league.action_parsers"
    table = ComponentSpec(f"{rlgyms}:LookupTableAction")
    save(tmp_path / "own", parser=ComponentSpec(f"{rlgyms}:RepeatAction", {"repeats": 8}, table))
    with pytest.raises(SettingsError, match=r"its parser is rlgym\.rocket_.*of this run rlgym_bridge\."):
        PPOLearner(settings(tmp_path / "run", opponents={str(tmp_path / "own"): 0.5}))


def test_a_run_without_a_checkpoint_yet_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("modules = []\n")
    with pytest.raises(SettingsError, match="a training run that has no checkpoint yet"):
        PPOLearner(settings(tmp_path / "run", opponents={str(tmp_path): 0.5}))


# --- older versions --------------------------------------------------------------------------


def versions(most: int = 8) -> Snapshots:
    return Snapshots(most, np.zeros(2, np.float32))


def offer(snapshots: Snapshots, version: int = 1) -> None:
    snapshots.offer(np.full(2, version, np.float32), np.random.default_rng(version))


def test_ten_goals_for_each_conceded_are_400_points() -> None:
    one = versions()
    one.count(0, 0, 0, seed=1)
    assert one.rating == 0
    for seed in range(50):
        one.count(0, 10, 1, seed=seed)
    assert one.rating == pytest.approx(400, abs=40)
    one.count(0, 200, 200, seed=3)
    assert one.rating == pytest.approx(0, abs=40)


def test_a_snapshot_keeps_the_rating_that_the_policy_had() -> None:
    one = versions(2)
    one.count(0, 20, 0, seed=1)
    offer(one)
    then = one.rating
    one.count(1, 20, 0, seed=2)
    assert one.ratings == [0, then] and then < one.rating
    for version in range(2, 20):
        offer(one, version)
    assert len(one.rows) == len(one.ratings) == 2 and one.rating in one.ratings


def test_snapshots_are_spread_over_the_whole_run() -> None:
    one = versions(4)
    for version in range(1, 41):
        offer(one, version)
    ages = [row[0] for row in one.rows]
    assert len(set(ages)) == 4 and min(ages) < 30


def test_ratings_go_on_from_a_checkpoint() -> None:
    one, other = versions(), versions()
    one.count(0, 5, 2, seed=1)
    offer(one)
    state = one.state() | {"snapshots": type("Tensor", (), {"numpy": lambda _: np.stack(one.rows)})()}
    other.restore(state)
    assert other.ratings == one.ratings
    for each in (one, other):
        each.count(1, 3, 1, seed=4)
    assert other.rating == one.rating and len(other.rows) == 2


def test_versions_of_near_ratings_are_met_more_often() -> None:
    one = versions()
    one.rating, one.ratings = 1000.0, [200.0, 990.0, 1600.0, 1050.0]
    shares = one.weigh_by_rating()
    assert shares.sum() == pytest.approx(1) and shares.min() >= 0.05
    assert shares[[1, 3]].min() > 2 * shares[[0, 2]].max()
    one.rating, one.ratings = 1e5, [0.0, 300.0]
    assert one.weigh_by_rating() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("by_rating", [False, True])
def test_an_iteration_meets_one_version_however_often_it_asks(by_rating: bool) -> None:
    snapshots, random = versions(4), np.random.default_rng(0)
    for version in range(1, 4):
        snapshots.count(0, 20, 0, seed=version)
        offer(snapshots, version)
    drawn = [snapshots.draw(steps, random, by_rating) for steps in range(200) for _ in range(2)]
    assert drawn[::2] == drawn[1::2]
    met = np.bincount(drawn[::2], minlength=4)
    assert (met > 0).all()
    assert not by_rating or met[3] > 1.5 * met[0], "the newest one is nearer than the first"


def test_matches_that_show_no_state_take_no_opponents(tmp_path: Path) -> None:
    message = "make_env of tests.support.mark_game returns have no attribute state"
    with pytest.raises(SettingsError, match=message):
        SelfPlayMatches(small_settings(tmp_path, opponents={"chaser": 0.5}, snapshot_share=0.0))


# --- several team sizes ---

MIXED = [[1, 1, 0.5], [2, 2, 0.25], [3, 3, 0.25]]
PLAYED = {"components": "rlgym_bridge.training.components", "matches": 4, "rollout_steps": 16}


def sized(**changes: Any) -> TrainingSettings:
    return check_settings(SMALL | {"team_sizes": MIXED} | changes)


def test_matches_are_divided_by_shares() -> None:
    sizes = sized(matches=9).by_size()
    assert [(one.team_sizes, one.matches) for one in sizes] == [((1, 1), 5), ((2, 2), 2), ((3, 3), 2)]
    equal = sized(team_sizes=[[1, 1], [2, 2], [3, 3]], matches=8)
    assert [one.matches for one in equal.by_size()] == [3, 3, 2]
    assert equal.cars == 6 and equal.cars_of_collector == 6 + 12 + 12
    assert "team_sizes = [[1, 1, 0.5], [2, 2, 0.25], [3, 3, 0.25]]" in settings_as_toml(sized())
    assert sized(team_sizes=[[2, 2]]).team_sizes == (2, 2)


def test_snapshots_and_opponent_play_their_share_of_each_size() -> None:
    mixed = sized(matches=16, snapshot_share=0.25, opponents={"chaser": 0.25})
    cars = np.split(snapshot_cars(mixed), [8 * 2, 8 * 2 + 4 * 4])
    assert [int(some.sum()) for some in cars] == [2, 2, 3]
    assert learned_cars(mixed).sum() == 16 + 16 + 24 - 2 * (2 + 2 + 3)
    assert name_car(mixed, 8 * 2 + 4 * 4 + 7) == "car 1 in match 1 of 3v3"
    assert name_car(sized(team_sizes=[2, 2]), 7) == "car 3 in match 1"
    uneven = snapshot_cars(sized(team_sizes=[2, 1], matches=10, snapshot_share=0.4)).reshape(10, 3)
    assert uneven[:4].tolist() == [[True, True, False], [False, False, True]] * 2 and not uneven[4:].any()


def test_cars_of_all_sizes_stand_one_after_another() -> None:
    mixed = sized(**PLAYED, snapshot_share=0.0, no_touch_seconds=0.2)
    size = PPOLearner(mixed).shape.obs_size
    matches = MixedMatches(mixed, size)
    obs, cars = matches.reset(0), 2 * 2 + 4 + 6
    assert obs.shape == (cars, size)
    ends = 0
    for _ in range(4):
        step = matches.step(np.zeros(cars, int))
        assert step.obs.shape == (cars, size) and step.rewards.shape == (cars,)
        assert len(step.final_obs) == (step.terminated | step.truncated).sum()
        for match in np.split(step.truncated, np.cumsum([2, 2, 4])):
            assert len(set(match.tolist())) == 1  # a match ends for all of its cars
        ends += len(step.final_obs)
    assert ends >= cars
    with pytest.raises(ValueError, match=r"observations have shape \(2, 2, .*expected \(2, 2, 5\)"):
        MixedMatches(mixed, 5).reset(0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zero_padding=None", r"DefaultObs gives 92 in 1v1, .*172 in 3v3; set zero_padding = 3"),
        ("zero_padding=2", r"has 3 cars and DefaultObs has room for 2 \(zero_padding\)"),
    ],
)
def test_an_observation_without_room_is_named(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = (
        "from rlgym_bridge.training.components import *\nfrom rlgym_bridge import ComponentSpec, DefaultObs\n"
        f"def obs(settings): return ComponentSpec.of(DefaultObs, {text})\n"
    )
    make_module(tmp_path, monkeypatch, "narrow", module)
    with pytest.raises(SettingsError, match=message):
        PPOLearner(sized(components="narrow"))


def test_components_are_made_for_each_size_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = (
        "from rlgym_bridge.training.components import *\nMADE = []\ndef mutator(settings):\n"
        "    MADE.append((settings.team_sizes, settings.matches))\n    return KickoffMutator()\n"
        "from rlgym.rocket_league.state_mutators import KickoffMutator\n"
    )
    make_module(tmp_path, monkeypatch, "sized", module)
    PPOLearner(sized(components="sized"))
    assert sys.modules["sized"].MADE == [((1, 1), 4), ((2, 2), 2), ((3, 3), 2)]
    with pytest.raises(SettingsError, match=r"obs_noise is \{ball.*no batch form: KickoffMutator"):
        PPOLearner(sized(components="sized", obs_noise={"ball_position": 1.0}))


def test_a_mutator_without_states_of_a_size_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = (
        "from rlgym_bridge.training.components import *\n"
        "from rlgym_bridge.components.mutators import KickoffMutator\n"
        "class Duel(KickoffMutator):\n    def apply_batch(self, state, rng):\n"
        "        if state.layout.cars != 2: raise ValueError('states of 1v1 alone')\n"
        "def mutator(settings): return Duel()\n"
    )
    make_module(tmp_path, monkeypatch, "duel", module)
    PPOLearner(sized(components="duel", team_sizes=[1, 1]))
    with pytest.raises(SettingsError, match=r"components of duel do not fit: .*states of 1v1 alone"):
        PPOLearner(sized(components="duel"))


def test_an_opponent_of_another_size_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "duel")
    changes = PLAYED | {"opponents": {str(tmp_path / "duel"): 0.5}, "matches": 8}
    PPOLearner(sized(**changes, team_sizes=[1, 1]))
    for sizes in ([2, 2], [[1, 1], [2, 2]]):
        with pytest.raises(SettingsError, match=r"duel\", which was trained for 1v1, this match is 2v2"):
            PPOLearner(sized(**changes, team_sizes=sizes))


def test_a_resumed_run_may_have_other_shares_of_its_sizes(tmp_path: Path) -> None:
    mixed = sized(**PLAYED)
    folder = PPOLearner(mixed).save(Checkpoints(tmp_path, 1))
    assert load_player(folder).team_sizes == ((1, 1), (2, 2), (3, 3))
    assert PPOLearner(mixed).load(folder) == {}
    with pytest.raises(ValueError, match="was trained for 1v1, 2v2, 3v3, expected 4v4"):
        evaluate(str(folder), "chaser", 2, seconds=2.0, team_size=4)
    shares = [[1, 1, 0.25], [2, 2, 0.25], [3, 3, 0.5]]
    assert list(PPOLearner(sized(**PLAYED, team_sizes=shares)).load(folder)) == ["team_sizes"]
    for sizes, now in (([1, 1], r"\[1, 1\]"), ([[1, 1], [2, 2]], r"\[\[1, 1, 0.5\], \[2, 2, 0.5\]\]")):
        with pytest.raises(SettingsError, match=rf"team_sizes was \[\[1, 1, 0.5\].* and is {now} now"):
            PPOLearner(sized(**PLAYED, team_sizes=sizes)).load(folder)
