"""Training goes on when a process of the cluster is killed in the middle of its work; two raylets here."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from ray.cluster_utils import Cluster

from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.rllib.ray_ppo import OnCluster
from rlgym_bridge.training.runs.run import Iteration, run
from rlgym_bridge.training.settings import check_settings
from tests.support.recorded_matches import record
from tests.support.training_runs import column

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RUN = {"collectors": 2, "matches": 64, "rollout_steps": 96, "snapshot_share": 0.0, "threads": 1}
BATCH = 2 * 64 * 96 * 2
ITERATIONS = 8
KILLED_IN = 3


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Begin a cluster of two raylets with a processor each."""
    folder = Path("/tmp", f"ray-{os.getpid()}")  # paths of sockets have to be short
    (folder / "ray").mkdir(parents=True)
    monkeypatch.setenv("RAY_TMPDIR", str(folder))
    small: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 256 << 20}
    two = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    two.add_node(**small)
    two.wait_for_nodes()
    yield two
    two.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


class Attacked(OnCluster):
    """Kills an env runner while it plays."""

    kills: list[int]
    done: list[Iteration]
    runners: list[int]

    def __enter__(self) -> "Attacked":
        type(self).kills, type(self).done, type(self).runners = [], [], []
        super().__enter__()
        return self

    def iterate(self, older: int) -> Iteration:
        pids = self.ask_runners(lambda runner: os.getpid())
        self.runners.append(len(pids))
        if len(self.done) == KILLED_IN - 1:
            process = psutil.Process(pids[0])
            threading.Thread(target=self._kill, args=(process, process.cpu_times().user), daemon=True).start()
        self.done.append(super().iterate(older))
        return self.done[-1]

    def _kill(self, process: psutil.Process, used: float) -> None:
        """Wait until it is at work, then kill it; a sample takes it several times as long."""
        while process.cpu_times().user < used + 0.2:
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
        self.kills.append(process.pid)


def test_a_killed_env_runner_costs_the_running_batch_alone(two: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "run"
    settings = check_settings(RUN | {"out": str(out), "steps": ITERATIONS * BATCH, "checkpoint_every": BATCH})
    summary = run(settings, partial(Attacked, address=two.address), quiet=True)
    assert len(Attacked.kills) == 1
    assert Attacked.runners[:KILLED_IN] == [2] * KILLED_IN
    assert Attacked.runners[KILLED_IN] == 1  # it was gone
    assert Attacked.runners[-1] == 2  # and another came in its place
    # The batch that it did not finish was played by the other one: every iteration learned from a whole one.
    assert [one.steps for one in Attacked.done] == [BATCH] * ITERATIONS
    assert column(out, "steps") == [BATCH * (1 + number) for number in range(ITERATIONS)]
    assert summary.steps == ITERATIONS * BATCH and not summary.stopped
    assert load_policy(summary.checkpoint).manifest.training["steps"] == summary.steps

    match = read_match(record(tmp_path / "match.mcap", blue=str(summary.checkpoint), seconds=5))
    assert match.played_ticks >= 600
    decided = [one for track in match.agents.values() for one in track.decisions if one.obs.shape[1]]
    assert len(decided) >= 600 // 8


def test_a_machine_that_is_gone_is_played_for_by_the_others(two: Cluster, tmp_path: Path) -> None:
    settings = check_settings(RUN | {"out": str(tmp_path / "run")})
    with OnCluster(PPOLearner(settings), two.address) as engine:
        assert engine.iterate(0).steps == BATCH
        [other] = [one for one in two.list_all_nodes() if one is not two.head_node]
        two.remove_node(other, allow_graceful=False)
        for _ in range(3):
            assert engine.iterate(0).steps == BATCH
        assert len(engine.ask_runners(lambda runner: os.getpid())) == 1
