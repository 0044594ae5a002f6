"""A training goes on while collectors die and nodes join, with RLlib, too; two raylets here."""

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
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

pytest.importorskip("ray")


from rlgym_bridge.training.ray_collectors import OnRay, RemoteCollector
from tests.support.processes import child, run_to_end
from tests.support.training_runs import SMALL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

JOIN = """
import sys
from rlgym_bridge.training.ray_cluster import cluster
with cluster(sys.argv[1]):
    pass
"""

NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 256 << 20}


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Begin a cluster of two raylets with a processor each."""
    folder = Path("/tmp", f"ray-{os.getpid()}")  # paths of sockets have to be short
    (folder / "ray").mkdir(parents=True)
    monkeypatch.setenv("RAY_TMPDIR", str(folder))
    two = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    two.add_node(**NODE)
    two.wait_for_nodes()
    yield two
    two.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def collector_pids() -> list[int]:
    name = f"ray::{RemoteCollector.__name__}"
    return [
        one.pid for one in psutil.process_iter(["cmdline"]) if name in " ".join(one.info["cmdline"] or ())
    ]


class Attacked(OnRay):
    """Kills a collector while it plays, adds a node, and asks to stop."""

    cluster: Cluster
    killed: list[int]

    def iterate(self, older: int) -> Iteration:
        done = super().iterate(older)
        self.number = getattr(self, "number", 0) + 1
        if self.number == 3:
            type(self).killed = collector_pids()[:1]
            threading.Timer(0.05, os.kill, (self.killed[0], signal.SIGKILL)).start()
        if self.number == 8:
            self.cluster.add_node(**NODE)
        if done.stats["playing_collectors"] == 3:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        return done


def test_killed_collectors_cost_a_rollout_and_new_nodes_play(
    two: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rlgym_bridge")
    out = tmp_path / "run"
    Attacked.cluster = two
    settings = check_settings(SMALL | {"collectors": 0, "out": str(out), "steps": 10_000_000})
    summary = run(settings, partial(Attacked, address=two.address), quiet=True)
    assert summary.stopped  # as by Ctrl-C, once three played
    policy = load_policy(summary.checkpoint, allow_modules=("tests.support.mark_game",))
    assert policy.manifest.training["steps"] == summary.steps
    assert sum(column(out, "lost_collectors")) == 1
    assert column(out, "playing_collectors")[-1] == 3
    assert max(column(out, "batch_age")) <= settings.ray_max_age
    steps = column(out, "steps")
    assert {after - before for before, after in pairwise(steps)} == {steps[0]}
    assert "is lost: " in caplog.text and "joined, with 1 processor" in caplog.text
    assert not collector_pids()


def test_a_policy_with_memory_learns_from_afar(two: Cluster, tmp_path: Path) -> None:
    settings = check_settings(
        SMALL | {"collectors": 2, "out": str(tmp_path), "network": "gru", "sequence_length": 4, "steps": 2000}
    )
    summary = run(settings, partial(OnRay, address=two.address), quiet=True)
    assert summary.steps >= 2000


def test_a_cluster_that_wants_a_token_says_how_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("/tmp", f"ray-{os.getpid()}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    head = [
        Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--port", str(port),
        "--num-cpus", "1", "--include-dashboard", "false", "--node-ip-address", "127.0.0.1",
    ]  # fmt: skip
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789" * 4, "RAY_TMPDIR": str(folder)}
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    folder.mkdir()
    try:
        with child(head, env=os.environ | secret, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert any("Ray runtime started" in line for line in process.stdout)
            for mode in ("disabled", "token"):  # without a word of tokens, and without the right one
                done = run_to_end(
                    [sys.executable, "-c", JOIN, f"127.0.0.1:{port}"],
                    env=os.environ | {"RAY_AUTH_MODE": mode, "RAY_AUTH_TOKEN": "9" * 40},
                )
                assert "expects a token: set RAY_AUTH_MODE=token" in done.stderr, done.stderr
    finally:
        shutil.rmtree(folder, ignore_errors=True)


RUN = {"collectors": 2, "matches": 64, "rollout_steps": 96, "snapshot_share": 0.0, "threads": 1}
BATCH = 2 * 64 * 96 * 2
ITERATIONS = 8
KILLED_IN = 3


class RunnerKilled(OnCluster):
    """Kills an env runner while it plays."""

    kills: list[int]
    done: list[Iteration]
    runners: list[int]

    def __enter__(self) -> "RunnerKilled":
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
    summary = run(settings, partial(RunnerKilled, address=two.address), quiet=True)
    assert len(RunnerKilled.kills) == 1
    assert RunnerKilled.runners[:KILLED_IN] == [2] * KILLED_IN
    assert RunnerKilled.runners[KILLED_IN] == 1  # it was gone
    assert RunnerKilled.runners[-1] == 2  # and another came in its place
    # The batch that it did not finish was played by the other one: every iteration learned from a whole one.
    assert [one.steps for one in RunnerKilled.done] == [BATCH] * ITERATIONS
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
