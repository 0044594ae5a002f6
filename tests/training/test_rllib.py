"""The same runs on a Ray cluster: they learn, keep the same checkpoints, and say what went wrong."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from rlgym_bridge.policy.files import newest_checkpoint
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.training.collector import CollectorDied
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import main as train_here
from rlgym_bridge.training.ray_cluster import cluster
from rlgym_bridge.training.rllib.ray_ppo import OnCluster, main
from rlgym_bridge.training.rllib.self_play import MAIN, SNAPSHOT
from rlgym_bridge.training.runs.checkpoints import STATE_FILE, Checkpoints
from rlgym_bridge.training.runs.progress import COLUMNS
from rlgym_bridge.training.settings import check_settings
from tests.support.policy_folders import edit
from tests.support.training_runs import SEVERAL, column, stand_in
from tests.support.training_runs import small_settings as settings

STEPS = 8 * 14  # of a batch


@pytest.fixture(scope="module", autouse=True)
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Begin one cluster for all tests, which takes seconds; its processes find modules in this folder."""
    folder = tmp_path_factory.mktemp("modules")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        with cluster(processors=2):
            yield folder


def weights_of(checkpoint: Path | None) -> dict[str, torch.Tensor]:
    assert checkpoint is not None
    state = torch.load(checkpoint / STATE_FILE, weights_only=True)
    return {f"{part}.{name}": tensor for part in ("policy", "critic") for name, tensor in state[part].items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parser", "guessing", "known"),
    [("LookupTableAction", 0.25, 0.9), ("MultiDiscreteAction", 0.45, 0.8), ("ContinuousAction", 0.5, 0.8)],
)
def test_every_kind_of_action_learns_a_game_with_known_returns(
    parser: str, guessing: float, known: float, tmp_path: Path, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"matches": 32, "rollout_steps": 32, "learning_rate": 3e-3, "minibatch": 512, "gamma": 0.0}
    components = stand_in(modules, monkeypatch, SEVERAL.format(parser))
    out = tmp_path / "run"
    summary = main(
        settings(out, components=components, steps=60_000, snapshot_share=0.0, **changes), quiet=True
    )
    touches = column(out, "touches_per_car_minute")  # a touch is a hit, 900 steps a minute
    assert abs(touches[0] / 900 - guessing) < 0.1
    assert touches[-1] / 900 > known
    policy = load_policy(summary.checkpoint, allow_modules=["tests", components])
    assert policy.manifest.training["steps"] == summary.steps


@pytest.mark.slow
def test_a_run_writes_what_the_single_machine_writes(tmp_path: Path) -> None:
    run = settings(tmp_path / "run", steps=4 * STEPS, checkpoint_every=2 * STEPS, snapshots=2)
    summary = main(run, quiet=True)
    other = train_here(settings(tmp_path / "other", steps=4 * STEPS, checkpoint_every=2 * STEPS), quiet=True)
    assert summary.steps == other.steps == 4 * STEPS
    for folder in ("run", "other"):
        names = {path.name for path in (tmp_path / folder / "checkpoints" / str(4 * STEPS)).iterdir()}
        assert names == {"policy.json", "fingerprint.json", "weights.safetensors", STATE_FILE, "own_modules"}
        for name in COLUMNS:
            values = column(tmp_path / folder, name)
            assert len(values) == 4
            assert name == "episode_reward" or np.isfinite(values).all(), name
    with_ray, without = (
        torch.load(one.checkpoint / STATE_FILE, weights_only=True) for one in (summary, other)
    )
    assert with_ray.keys() == without.keys()
    for part in ("policy", "critic"):
        assert with_ray[part].keys() == without[part].keys()
    mine, theirs = (one["optimizer"]["state"] for one in (with_ray, without))
    assert mine.keys() == theirs.keys()
    for number in mine:
        assert mine[number]["exp_avg"].shape == theirs[number]["exp_avg"].shape
        assert float(mine[number]["step"]) > 0  # RLlib goes on where a minibatch is not full


@pytest.mark.slow
def test_either_engine_goes_on_with_a_run_of_the_other(tmp_path: Path) -> None:
    out = tmp_path / "run"
    trains = (train_here, main, train_here)
    for number, train in enumerate(trains, 1):
        before = newest_checkpoint(out)
        train(settings(out, steps=2 * number * STEPS), number > 1, quiet=True)
        assert column(out, "steps")[-1] == 2 * number * STEPS
        if before is not None:
            old, new = weights_of(before), weights_of(newest_checkpoint(out))
            change = max(float((old[name] - new[name]).abs().max()) for name in old)
            assert 0 < change < 0.1  # it went on from there


@pytest.mark.slow
def test_matches_are_played_by_who_sits_there(tmp_path: Path) -> None:
    learner = PPOLearner(settings(tmp_path, snapshots=2))
    learner.policy.layers[0].bias.data += 1
    learner.snapshots.offer(learner.packed(), learner.random(0))
    with OnCluster(learner) as engine:
        done = engine.iterate(1)
        assert done.steps == STEPS
        weights = engine.ask_runners(
            lambda runner: [runner.module[name].get_state() for name in (MAIN, SNAPSHOT)]
        )
        [(played, older)] = weights
        seats = engine.ask_runners(lambda runner: [list(one.modules) for one in runner._episodes])[0]
    biases = [one["policy.layers.0.bias"] for one in (played, older)]
    assert np.allclose(biases[1], learner.policy.layers[0].bias.detach())
    assert not np.allclose(biases[0], biases[1])  # it has learned since
    assert sorted(map(tuple, seats)) == sorted([(SNAPSHOT, MAIN), (MAIN, SNAPSHOT)] + 6 * [(MAIN, MAIN)])


@pytest.mark.slow
def test_a_run_outlives_its_only_env_runner(tmp_path: Path) -> None:
    with OnCluster(PPOLearner(settings(tmp_path))) as engine:
        [before] = engine.ask_runners(lambda runner: os.getpid())
        os.kill(before, signal.SIGKILL)
        assert engine.iterate(0).steps == STEPS
        [after] = engine.ask_runners(lambda runner: os.getpid())
        assert after != before and engine.iterate(0).steps == STEPS


@pytest.mark.slow
def test_observations_are_normalised_as_on_a_single_machine(tmp_path: Path) -> None:
    run = settings(tmp_path / "run", steps=3 * STEPS, normalise_obs=True)
    main(run, quiet=True)
    manifest = load_policy(newest_checkpoint(tmp_path / "run") or "", ["tests"]).manifest
    scaling = manifest.obs_normalisation
    assert scaling is not None
    # Marks are one of four.
    assert np.allclose(scaling.mean, 0.25, atol=0.08) and np.allclose(scaling.std, 0.43, atol=0.05)
    state = torch.load(newest_checkpoint(tmp_path / "run") / STATE_FILE, weights_only=True)  # type: ignore[operator]
    assert state["scale"][0] == 3 * STEPS


@pytest.mark.slow
def test_only_the_critic_learns_at_first_from_a_policy(tmp_path: Path) -> None:
    main(settings(tmp_path / "first", steps=STEPS), quiet=True)
    start = newest_checkpoint(tmp_path / "first")
    run = settings(
        tmp_path / "second", steps=3 * STEPS, start_from=str(start), critic_alone=2 * STEPS,
        checkpoint_every=2 * STEPS,
    )  # fmt: skip
    main(run, quiet=True)
    before, after, at_last = (
        weights_of(one)
        for one in (start, *(tmp_path / "second" / "checkpoints" / str(n * STEPS) for n in (2, 3)))
    )
    for name in before:
        assert torch.equal(before[name], after[name]) == name.startswith("policy"), name
    assert not torch.equal(after["policy.layers.0.weight"], at_last["policy.layers.0.weight"])


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 20])
def test_components_that_raise_end_the_run_with_their_words(
    after: int, tmp_path: Path, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""
class Broken(MarkEnv):
    steps = 0
    def step(self, actions):
        self.steps += 1
        if self.steps > {after}:
            raise ArithmeticError("a mistake of one's own")
        return super().step(actions)
def make_env(settings, matches): return Broken(matches, settings.cars)
"""
    run = settings(tmp_path / "run", components=stand_in(modules, monkeypatch, text), steps=4 * STEPS)
    with pytest.raises(CollectorDied, match=r"ArithmeticError: a mistake of one's own \(.*\.py, line \d+\)"):
        main(run, quiet=True)


@pytest.mark.slow
def test_components_missing_on_a_machine_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here_alone = stand_in(tmp_path, monkeypatch, "")  # the cluster began without this folder
    with pytest.raises(CollectorDied, match="env runners could not make their matches"):
        main(settings(tmp_path / "run", components=here_alone, steps=STEPS), quiet=True)
    assert f'components is "{here_alone}", which cannot be imported' in caplog.text


@pytest.mark.slow
def test_real_2v2_matches_are_played_against_opponents_too(tmp_path: Path) -> None:
    run = {"team_sizes": [2, 2], "matches": 4, "rollout_steps": 16, "collectors": 1, "threads": 1}
    PPOLearner(check_settings({**run, "out": str(tmp_path / "other")})).save(
        Checkpoints(tmp_path / "other", 1)
    )
    others = {"opponents": {"chaser": 0.25, str(tmp_path / "other"): 0.25}, "snapshot_share": 0.25}
    with OnCluster(PPOLearner(check_settings({**run, **others, "out": str(tmp_path)}))) as engine:
        done = engine.iterate(0)
        [seats] = engine.ask_runners(lambda runner: runner._seats)
        newer = shutil.copytree(tmp_path / "other/checkpoints/0", tmp_path / "other/checkpoints/100")
        (tmp_path / "other/checkpoints/latest").write_text("100\n")
        edit(newer, tick_skip=4)
        engine.restart()
        with pytest.raises(CollectorDied, match=r"opponents.*other\", which cannot be played"):
            engine.iterate(0)
    assert done.steps == 16 * (4 * 4 - 2 * 2 - 2)  # of 16 cars 4 are opponents' and 2 a snapshot's
    assert sum(name == MAIN for match in seats for name in match) == 10
    assert {"opponent/chaser_goals", "goals_against_opponent/chaser", "snapshot_goals"} <= set(done.counts)
    assert done.counts["car_minutes"] == pytest.approx(16 * 8 / 120 / 60 * 16)
