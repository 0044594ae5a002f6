"""Whole runs on a game with known returns: they learn, resume, and stop when something is wrong."""

import multiprocessing
import re
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlgym_bridge.policy.files import newest_checkpoint
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.training import environment
from rlgym_bridge.training.collector import CollectorDied
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.learner import Diverged, PPOLearner
from rlgym_bridge.training.ppo import main
from rlgym_bridge.training.processes import Locked
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.policy_folders import make_module
from tests.support.training_runs import BATCH, SEVERAL, column, forget_checksum, stand_in
from tests.support.training_runs import small_settings as settings


@pytest.mark.parametrize(
    ("parser", "guessing", "known", "overlap"),
    [
        ("LookupTableAction", 0.25, 0.9, False), ("LookupTableAction", 0.25, 0.9, True),
        ("MultiDiscreteAction", 0.45, 0.8, False), ("ContinuousAction", 0.5, 0.8, False),
    ],
)  # fmt: skip
def test_every_kind_of_action_learns_a_game_with_known_returns(
    parser: str, guessing: float, known: float, overlap: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, components = tmp_path / "run", stand_in(tmp_path, monkeypatch, SEVERAL.format(parser))
    changes = {"matches": 32, "rollout_steps": 32, "learning_rate": 3e-3, "minibatch": 512, "gamma": 0.0}
    given = changes | {"components": components, "steps": 50_000, "snapshot_share": 0.0, "overlap": overlap}
    summary = main(settings(out, **given), quiet=True)
    shares = np.array(column(out, "touches_per_car_minute")) / 900  # 900 decisions a minute
    assert shares[0] == pytest.approx(guessing, abs=0.1)
    assert shares[-1] > known
    manifest = load_policy(summary.checkpoint, allow_modules=["tests"]).manifest
    assert manifest.training["steps"] == summary.steps >= 50_000


def test_going_back_to_a_checkpoint_keeps_what_comes_of_it(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=1)
    for steps in (100, 50):  # after 100 it went back to 40
        left = checkpoints.folder / f".{steps}.7.tmp"
        left.mkdir(parents=True)  # of a run that was killed
        checkpoints.save(steps, lambda folder: None)
    assert sorted(path.name for path in checkpoints.folder.iterdir()) == ["50", "latest"]


def test_a_failed_checkpoint_leaves_the_last_one(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=1)
    first = checkpoints.save(1, lambda folder: (folder / "kept").touch())

    def broken(folder: Path) -> None:
        raise OSError("no space left")

    for steps in (2, 1):
        with pytest.raises(OSError, match="no space"):
            checkpoints.save(steps, broken)
    with pytest.raises(FileNotFoundError):  # when the last one has made way for it
        checkpoints.save(1, lambda folder: folder.rmdir())
    assert {path.name for path in checkpoints.folder.iterdir()} == {"1", "latest"}
    assert newest_checkpoint(tmp_path) == first and (first / "kept").exists()


def test_two_runs_do_not_train_in_one_folder(tmp_path: Path) -> None:
    with Locked(tmp_path / "run"), pytest.raises(SettingsError, match="another training writes to"):
        main(settings(tmp_path / "run"), quiet=True)
    main(settings(tmp_path / "run", steps=BATCH), quiet=True)


def test_weights_that_grow_without_end_stop_the_run(tmp_path: Path) -> None:
    with pytest.raises(Diverged, match=r"a weight of the policy is .* after \d+ steps"):
        main(settings(tmp_path / "run", learning_rate=1e30, epochs=1, minibatch=10**6), quiet=True)


def test_a_state_of_another_version_is_named(trained: Path) -> None:
    (file,) = trained.glob("checkpoints/*/training.pt")
    state = torch.load(file, weights_only=True)
    del state["ratings"]
    torch.save(state, file)
    forget_checksum(file.parent)
    with pytest.raises(SettingsError, match=r"lacks ratings in training.pt: another version wrote it"):
        main(settings(trained), resume=True, quiet=True)


@pytest.mark.parametrize(
    ("function", "returned", "message"),
    [
        ("reward", "None", "reward of empty_handed returned None, expected a RewardFunction of rlgym.api"),
        ("reward", "{}", r"reward of empty_handed returned \{\}, expected a RewardFunction of rlgym.api"),
        ("mutator", "None", "mutator of empty_handed returned None, expected a StateMutator of rlgym.api"),
        ("conditions", "None", "conditions of empty_handed returned None, expected two conditions"),
        ("conditions", "(None, 3)", "conditions of empty_handed returned 3, expected a DoneCondition"),
        ("reward", "1 / 0", "ZeroDivisionError: division by zero"),
        ("obs", "stand_in.MarkObs()", r"expected its name, .*ComponentSpec.of\(MarkObs"),
    ],
)
def test_a_function_without_a_component_is_named_at_the_start(
    function: str, returned: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from rlgym_bridge.training.components import *\nfrom tests.support import mark_game as stand_in\n"
    text += f"def {function}(settings): return {returned}\n"
    make_module(tmp_path, monkeypatch, "empty_handed", text)
    with pytest.raises(SettingsError, match=message) as caught:
        main(settings(tmp_path, components="empty_handed"), quiet=True)
    assert function == "obs" or re.search(r" \(.*empty_handed.py, line 3\)", str(caught.value))
    assert not (tmp_path / "checkpoints").exists() and not multiprocessing.active_children()


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A run with a checkpoint of 0 steps, without playing."""
    run = settings(tmp_path / "run")
    PPOLearner(run).save(Checkpoints(tmp_path / "run", 1))
    return tmp_path / "run"


SEEN = """
class MarkObs(stand_in.MarkObs):
    def build_obs(self, agents, state, shared_info):
        return {{agent: {} for agent in agents}}
def obs(settings): return ComponentSpec.of(MarkObs)
"""


@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        (SEEN.format("np.zeros(5, np.float32)"), {}, r"observation was 4 numbers \(obs_size\) and is 5 here"),
        (SEEN.format("np.ones(4, np.float32)"), {}, r"observation changed: number 1 was 0 and is 1"),
        (
            SEEN.format("np.zeros(5, np.float32)"), {"ball_ahead": [0.5]},
            r"and is 5 here; ball_ahead was \[\] and is \[0.5\] now",
        ),
        (SEVERAL.format("MultiDiscreteAction"), {}, r"distribution is categorical"),
        ("", {"policy_layers": [32]}, r"policy_layers was \[16\] and is \[32\] now"),
        ("", {"normalise_obs": True}, r"normalise_obs was False and is True now"),
        ("", {"activation": "tanh"}, r"activation was relu and is tanh now"),
        ("", {"layer_norm": True}, r"layer_norm was False and is True now"),
        ("", {"standardize_returns": True}, "standardize_returns was False and is True now"),
    ],
)  # fmt: skip
def test_a_foreign_checkpoint_is_refused_with_the_difference(
    text: str, changes: dict, message: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    components = stand_in(tmp_path, monkeypatch, text)
    with pytest.raises(SettingsError, match=message):
        main(settings(trained, components=components, **changes), resume=True, quiet=True)


def test_a_folder_with_an_earlier_run_is_not_trained_over(trained: Path) -> None:
    with pytest.raises(SettingsError, match=r"goes on with it; --out names another folder"):
        main(settings(trained), quiet=True)


def test_there_must_be_something_to_resume(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"there is no checkpoint in .*checkpoints to resume from"):
        main(settings(tmp_path), resume=True, quiet=True)


def test_a_run_goes_on_only_from_what_latest_names(trained: Path) -> None:
    (trained / "checkpoints" / "latest").write_text("49282\n")
    with pytest.raises(ValueError, match=r"latest names '49282', expected one of 0: write one"):
        main(settings(trained), resume=True, quiet=True)


def test_a_run_without_steps_left_keeps_its_table(tmp_path: Path) -> None:
    main(settings(tmp_path, steps=4 * BATCH, checkpoint_every=2 * BATCH), quiet=True)
    (tmp_path / "checkpoints" / "latest").write_text(str(2 * BATCH))
    before = (tmp_path / "progress.csv").read_bytes()
    summary = main(settings(tmp_path, steps=2 * BATCH), resume=True, quiet=True)
    assert summary.steps == 2 * BATCH and not summary.stopped
    assert (tmp_path / "progress.csv").read_bytes() == before


def test_components_that_do_not_exist_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r'components is "nowhere", which cannot be imported'):
        Task(check_settings({"components": "nowhere"}))
    with pytest.raises(SettingsError, match=r'components is "my_parts.py", .* leave out .py'):
        Task(check_settings({"components": "my_parts.py"}))
    with pytest.raises(SettingsError, match=r'components is "json", which has no function obs'):
        Task(check_settings({"components": "json"}))
    make_module(tmp_path, monkeypatch, "mistaken_parts", "def x(:")
    with pytest.raises(SettingsError, match=r"SyntaxError: .*mistaken_parts.py, line 1\)$"):  # it is there
        Task(check_settings({"components": "mistaken_parts"}))


def test_standard_parts_beside_those_of_ones_own_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mistyped_parts.py").write_text(
        "from rlgym_bridge.training.components import obs as o\n"
        "def obs(settings): return o(settings)\ndef rewrad(settings): pass\n"
    )
    told = Task(check_settings({"components": "mistyped_parts"})).name_standard()
    assert told == "mistyped_parts has obs; standard: parser, reward, conditions, mutator"
    assert Task(check_settings({})).name_standard() == ""


@pytest.mark.parametrize(
    ("given", "unread"),
    [
        ({"goal": 3.0, "touch": 1.0}, ""),
        ({"save": 3.0}, "without effect: save = 3.0: the reward of few_weights does not read it"),
        (
            {"save": 3.0, "goal": 3.0, "team_spirit": 0.5, "episode_seconds": 60.0},
            "without effect: save = 3.0, team_spirit = 0.5: the reward of few_weights does not read them",
        ),
        ({"save": 0.0}, ""),  # the default says nothing
        (
            {"ball_ahead": [1.0]},
            "without effect: ball_ahead = [1.0]: the obs of few_weights does not read it",
        ),
    ],
)
def test_settings_that_own_components_do_not_read_are_named(
    given: dict[str, Any], unread: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "few_weights.py").write_text(
        "from rlgym_bridge import ComponentSpec, DefaultObs\n"
        "from rlgym_bridge.components.rewards import GoalReward, TouchReward, WeightedSum\n"
        "def obs(settings): return ComponentSpec.of(DefaultObs, zero_padding=None)\n"
        "def reward(settings):\n"
        "    return WeightedSum([(GoalReward(), settings.goal), (TouchReward(), settings.touch)])\n"
    )
    assert Task(check_settings({"components": "few_weights"} | given)).name_unread() == unread


def test_the_standard_components_read_all_settings_of_theirs() -> None:
    changed: dict[str, Any] = dict.fromkeys(chain(*environment._READ_BY.values()), 0.5)
    del changed["initial_states"]
    assert Task(check_settings(changed | {"zero_sum": True, "ball_ahead": [0.5]})).name_unread() == ""
    both = check_settings({"kickoff_share": 0.3, "initial_states": {"kickoff": 1.0}})
    assert "kickoff_share = 0.3: the mutator of" in Task(both).name_unread()


STEPPING = """
class MarkEnv(MarkEnv):
 def step(self, actions): {}
def make_env(settings, matches): return MarkEnv(matches, settings.cars)
"""


def test_an_error_in_a_collector_shows_the_users_calls_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = STEPPING.format("self.weigh()\n def weigh(self): raise ValueError('reward Odd gave nan')")
    components = stand_in(tmp_path, monkeypatch, text)
    with pytest.raises(CollectorDied) as caught:
        main(settings(tmp_path / "run", components=components), quiet=True)
    lines = str(caught.value).splitlines()
    assert re.fullmatch(r"ValueError: reward Odd gave nan \(.*\.py, line \d+\)", lines[0])
    assert [line.partition(", in ")[2].partition(":")[0] for line in lines[1:]] == ["step", "weigh"]


def test_a_collector_that_vanishes_is_named_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    components = stand_in(tmp_path, monkeypatch, STEPPING.format("__import__('os')._exit(7)"))
    with pytest.raises(CollectorDied, match="collector 0 ended without a word, exit code 7"):
        main(settings(tmp_path / "run", components=components), quiet=True)


def test_goals_against_snapshots_make_the_rating(tmp_path: Path) -> None:
    # In the stand-in blue scores every goal, and the opponents are orange and blue in turn.
    out = tmp_path / "run"
    main(settings(out, steps=20 * BATCH, matches=8, snapshot_share=0.25), quiet=True)
    assert len(set(column(out, "elo"))) > 5
