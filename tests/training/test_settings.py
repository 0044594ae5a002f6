"""Settings: what is wrong is named, and the file of defaults does not part from the code."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlgym_bridge import training
from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3
from rlgym_bridge.training.components import mutator
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.settings import (
    SettingsError,
    TrainingSettings,
    check_settings,
    describe_changes,
    load_settings,
    recorded_settings,
    settings_as_toml,
)
from tools.side_by_side import EXAMPLES, carry_over, draw, our_curve, peer_curve, peer_settings

DEFAULTS = Path(training.__file__).with_name("config.toml")


def test_the_defaults_file_holds_every_key_with_its_meaning() -> None:
    settings = replace(TrainingSettings(), simulator=ROCKETSIM3)  # where its module is installed
    assert DEFAULTS.read_text().endswith(settings_as_toml(settings))
    assert load_settings(DEFAULTS) == settings


def test_what_is_printed_reads_back_as_the_same_settings() -> None:
    settings = check_settings(
        {
            "team_sizes": [3, 3], "zero_sum": True, "gamma": 1, "out": 'a "b" \\ c',
            "physics": {"gravity": {"value": 1.0, "low": 0.9, "high": 1.1}},
            "my": {"bump": 0.5, "names": ["a", "b"]},
        }
    )  # fmt: skip
    assert settings.physics == {"gravity": {"value": 1.0, "low": 0.9, "high": 1.1}}
    assert settings.gamma == 1.0 and isinstance(settings.gamma, float)
    assert settings.my == {"bump": 0.5, "names": ["a", "b"]}
    assert check_settings(tomllib.loads(settings_as_toml(settings))) == settings


@pytest.mark.parametrize(
    ("cores", "given", "matches"),
    [
        (1, {}, 128), (2, {}, 128), (8, {}, 32), (16, {}, 16), (64, {}, 16),
        (2, {"collectors": 16}, 16), (16, {"collectors": 2}, 128), (16, {"matches": 100}, 100),
        (16, {"opponents": {"chaser": 0.05}}, 20), (16, {"team_sizes": [[1, 1, 0.99], [2, 2, 0.01]]}, 100),
        (16, {"opponents": {"chaser": 1e-310}}, 128),
    ],
)  # fmt: skip
def test_many_collectors_play_as_many_matches_as_two(cores: int, given: Any, matches: int) -> None:
    settings = check_settings(given)
    assert settings.for_machine(cores, gpu=False).matches == matches
    assert settings.for_machine(cores, gpu=True).matches == matches


@pytest.mark.parametrize(
    ("gpu", "given", "minibatch"), [(False, {}, 2048), (True, {}, 4096), (True, {"minibatch": 64}, 64)]
)
def test_a_gpu_learns_from_larger_minibatches(gpu: bool, given: Any, minibatch: int) -> None:
    assert check_settings(given).for_machine(16, gpu).minibatch == minibatch


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("gama", 0.9, r"gama = 0.9 is no setting; the nearest is gamma"),
        ("lr", 0.001, r"lr = 0.001 is no setting \(all keys: .*config.toml"),
        ("ppo", {"gamma": 0.9}, r"\[ppo\] is a table; settings stand outside"),
        ("gamma", "0.9", r'gamma is "0.9", expected a number from 0 to 1'),
        ("gamma", 1.5, r"gamma is 1.5, expected a number from 0 to 1"),
        ("goal", float("nan"), r"goal is nan, expected a number"),
        ("epochs", 2.0, r"epochs is 2.0, expected a whole number, 1 or more"),
        ("ruler_matches", 3, r"ruler_matches is 3, expected a whole number from 2 to 10000, a multiple of 2"),
        ("zero_sum", 1, r"zero_sum is 1, expected true or false"),
        ("overlap", 1, 'overlap is 1, expected true, false or "auto"'),
        ("policy_layers", [256, 0], r"policy_layers is \[256, 0\], expected a list of whole numbers"),
        ("obs_noise", {"ball_position": -1}, r"ball_position in \[obs_noise\] is -1, expected a stan"),
        ("obs_noise", {"ball_positon": 1}, r"ball_positon in \[obs_noise\] is unknown; the nearest is"),
        ("obs_noise", {"car_rotation": 5}, r"expected a standard deviation, 0 to 1 rad"),
        ("obs_noise", 3, r"obs_noise is 3, expected a table \[obs_noise\]"),
        ("hitboxes", ["octan"], r'hitboxes is \["octan"\], expected "all", or a list of octane, dominus'),
        ("hitboxes", ["dominus"], r'hitbox is "octane", .* and hitboxes \["dominus"\]: expected it among'),
        ("hitbox", "octan", r'hitbox is "octan", expected one of octane'),
        ("ball_ahead", [1.0, 0.5], r"ball_ahead is \[1.0, 0.5\], expected rising seconds"),
        ("ball_ahead", "1", r"ball_ahead is '1', expected"),
        ("team_sizes", [1], r"team_sizes is \[1\], expected two"),
        ("team_sizes", [0, 0], r"expected one car"),
        ("team_sizes", [[1, 1, 0.5], [2, 2, 0.6]], r"whose shares are 1.1 together, expected 1"),
        ("team_sizes", [[1, 1, 0.5], [2, 2]], r"expected two whole numbers from 0 to 4, .* or several sizes"),
        ("team_sizes", [[1, 1], [1, 1]], r"expected \[1, 1\] in it once"),
        ("team_sizes", [[1, 1], [0, 0]], r"expected one car at least in each size"),
        ("team_sizes", [[1, 1], [5, 5]], r"\[5, 5\]\], expected two whole numbers"),
        ("team_sizes", [[1, 1, 1.0], [2, 2, 0]], r"expected shares above 0"),
        ("team_sizes", [[1, 1, 0.999], [2, 2, 0.001]], r"matches is 128, of which a share in team_si"),
        ("team_sizes", [[1, 1], [2, 0]], r"without opponents they have nobody to play"),
        ("team_sizes", [2, 0], r"set these to 0"),
        ("action_delay", [2, 1], r"expected the lowest first"),
        ("out", "", r"out is '', expected the name of a folder"),
        ("simulator", "rocketsim", r'simulator is "rocketsim", expected .*rocketsim2.*rocketsim3'),
        ("seed", 2**40, r"expected a whole number from 0 to 2,147,483,648"),
        ("fysics", {}, r"\[fysics\] is a table; the nearest is physics; settings stand outside"),
        ("a" * 999, 1, r"^a{200}\.\.\. = 1 is no setting"),
        ("gamma", "a" * 999, r'^gamma is "a{199}\.\.\., expected'),
        ("my", {"when": {"deep": 1}}, r"when in \[my\] is .*expected a finite number, a text"),
        ("my", {"x": [1, float("nan")]}, r"x in \[my\] is \[1, nan\], expected a finite number"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(key: str, value: object, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_settings({key: value})


def test_tables_of_several_files_are_put_together(tmp_path: Path) -> None:
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    one.write_text("steps = 1\n[my]\na = 1\nb = 1\n[physics]\ngravity = 1.01\n")
    other.write_text("[my]\nb = 2\n[physics]\nball_drag = 1.02\n")
    found = load_settings(one, other)
    assert (found.steps, found.my) == (1, {"a": 1, "b": 2})
    assert set(found.physics) == {"gravity", "ball_drag"}


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("gamma: 0.9")
    with pytest.raises(SettingsError, match=r"mine\.toml cannot be read"):
        load_settings(file)


def test_no_file_is_blamed_for_a_value_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("steps = 10\n")
    with pytest.raises(
        SettingsError, match=r"^steps is -1, expected .* \(given in place of what .*mine.toml"
    ):
        load_settings(file, steps=-1)
    file.write_text("steps = -1\n")
    assert load_settings(file, steps=5).steps == 5


@pytest.mark.parametrize("name", ["", "../x", "a b", "my_bot.py:f"])
def test_a_name_that_no_module_has_is_told_as_such(name: str) -> None:
    with pytest.raises(SettingsError, match="expected the name of a module"):
        Task(check_settings({"components": name}))


def test_a_setting_newer_than_a_checkpoint_did_not_change() -> None:
    before = recorded_settings(TrainingSettings())
    del before["initial_states"]
    assert describe_changes(before | {"goal": 3.0}, TrainingSettings()) == {"goal": "3.0 -> 10.0"}


def test_of_a_table_only_the_keys_that_differ_are_named() -> None:
    before = recorded_settings(replace(TrainingSettings(), my={"aim": 10.0, "old": 1, "kept": 2}))
    now = replace(TrainingSettings(), my={"aim": 5.0, "kept": 2, "new": 0.1})
    assert describe_changes(before, now) == {"my": "aim 10.0 -> 5.0, old 1 -> none, new none -> 0.1"}


def test_settings_of_former_versions_are_understood() -> None:
    assert check_settings({"components": "training.components"}) == TrainingSettings()
    then, now = (replace(TrainingSettings(), simulator=one) for one in (ROCKETSIM2, ROCKETSIM3))
    before = {"components": "training.components"}  # all runs had RocketSim 2
    assert not describe_changes(before, then)
    assert describe_changes(before, now) == {"simulator": "rocketsim2 -> rocketsim3"}
    tables = {"rivals": {"chaser": 0.5}, "beginnings": {"kickoff": 1.0}}
    settings = check_settings(tables)
    assert (settings.opponents, settings.initial_states) == tuple(tables.values())
    assert not describe_changes(tables | {"simulator": settings.simulator}, settings)
    with pytest.raises(SettingsError, match=r"^rivals is called opponents now: expected one of them"):
        check_settings({"rivals": {}, "opponents": {}})


def test_a_table_goes_on_in_a_file_with_its_former_name(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[opponents]\nchaser = 0.2\n")
    (tmp_path / "b.toml").write_text("[rivals]\ncharger = 0.1\n")
    assert load_settings(tmp_path / "a.toml", tmp_path / "b.toml").opponents == {
        "chaser": 0.2,
        "charger": 0.1,
    }


def test_kickoff_share_is_the_share_of_episodes_from_a_kickoff() -> None:
    state = blank_state(1, 1, 400)
    mutator(check_settings({"kickoff_share": 0.8})).apply_batch(state, np.random.default_rng(0))
    assert (state.ball_position[:, :2] == 0).all(1).mean() == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize(
    ("given", "out"),
    [
        ({"team_sizes": [2, 2]}, "runs/1v1"),
        ({"components": "training.components"}, "runs/1v1"),
        ({"env": "my_env:build"}, "runs/my_env-build"),
        ({"env": "bots.duel:build_2v2"}, "runs/bots.duel-build_2v2"),
        ({"env": "../a b:c"}, "runs/_a_b-c"),
        ({"components": "my_parts"}, "runs/my_parts"),
        ({"env": "my_env:build", "out": "runs/1v1"}, "runs/1v1"),
    ],
)
def test_a_run_without_out_is_named_after_what_is_trained(given: dict[str, object], out: str) -> None:
    assert check_settings(given).out == out


def test_a_change_beside_the_files_names_the_run_anew(tmp_path: Path) -> None:
    file = tmp_path / "env.toml"
    file.write_text('env = "my_env:build"\n')
    assert load_settings(file, env="my_env:other").out == "runs/my_env-other"


SAME = {
    "gamma": 0.99, "gae_lambda": 0.95, "clip": 0.2, "minibatch": 50_000, "standardize_returns": True,
    "policy_layers": (256, 256, 256), "critic_layers": (256, 256, 256), "steps": 1_000_000_000, "seed": 123,
    "keep_checkpoints": 5, "epochs": 3,
    "checkpoint_every": 1_000_000,  # rlgym-ppo's has 100,000: matches would end after 4 seconds
    "max_grad_norm": 0.5, "goal": 10.0, "touch": 0.1, "value_clip": 0.0,
}  # fmt: skip
OTHERS = {
    "rlgym-ppo": {
        "learning_rate": 3e-4, "critic_learning_rate": 3e-4, "entropy_coefficient": 0.001,
        "no_touch_seconds": 10.0, "team_sizes": (1, 1),
    },
    "rlgym-learn": {
        "learning_rate": 5e-5, "critic_learning_rate": 5e-5, "entropy_coefficient": 0.01,
        "no_touch_seconds": 30.0, "team_sizes": (2, 2),
    },
}  # fmt: skip


@pytest.mark.parametrize("library", EXAMPLES)
@pytest.mark.parametrize("collectors", [1, 2, 16])
def test_an_example_is_carried_over_by_the_table(library: str, collectors: int, tmp_path: Path) -> None:
    carried, left = carry_over(library, collectors)
    settings = check_settings(carried)
    for name, value in (SAME | OTHERS[library]).items():
        assert getattr(settings, name) == value, name
    batch = collectors * settings.matches * settings.rollout_steps * settings.cars
    assert batch == pytest.approx(50_000, rel=0.02)
    # Minibatches of theirs are parts of a gradient step, and advantages are always normalised here.
    assert set(left) <= {"ppo_minibatch_size", "n_minibatches", "advantage_normalization"}
    theirs = peer_settings(settings, library, tmp_path, 8)  # the example as it is
    assert (theirs["epochs"], theirs["batch"], theirs["buffer"]) == (1, 50_000, 150_000)


def test_touches_of_all_processes_are_added(tmp_path: Path) -> None:
    for number in (1, 2):  # a touch each second of 60 agent steps, and the second process begins later
        rows = [[float(now), 60 * (now - number), now - number] for now in range(number, 102)]
        (tmp_path / f"touches-{number}").write_text("".join(f"{row}\n" for row in rows))
    theirs = peer_curve(sorted(tmp_path.glob("touches-*")), 8 / 120 / 60)
    assert theirs[-1] == pytest.approx([100, 60 * 199, 15])  # 60 steps of 8 ticks are 4 seconds
    np.testing.assert_allclose(theirs[2:, 2], 15, rtol=1e-6)
    (tmp_path / "progress.csv").write_text("steps,seconds,touches_per_car_minute\n100,2,3\n200,4,5\n")
    ours = our_curve(tmp_path / "progress.csv")
    assert ours.tolist() == [[2, 100, 3], [4, 200, 5]]
    draw({"here": ours, "there": theirs}, "an example", tmp_path / "touches.png")
    assert (tmp_path / "touches.png").stat().st_size > 5000
