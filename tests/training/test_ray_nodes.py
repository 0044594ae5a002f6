"""A training goes on while collectors die and nodes join; two raylets here."""

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

pytest.importorskip("ray")

from ray.cluster_utils import Cluster

from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.training.ray_collectors import OnRay, RemoteCollector
from rlgym_bridge.training.runs.run import Iteration, run
from rlgym_bridge.training.settings import check_settings
from tests.support.processes import child, run_to_end
from tests.support.training_runs import SMALL, column

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
