"""Actors of a cluster play whatever dies, and nobody learns from what is too old; no cluster here."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rlgym_bridge.training.ray_cluster import cluster
from rlgym_bridge.training.rllib import ray_ppo
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.training_runs import SMALL

pytest.importorskip("ray")

from rlgym_bridge.training import ray_collectors
from rlgym_bridge.training.collector import Collector, CollectorDied, rollout_layout
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ray_collectors import (
    CollectorLost,
    OnRay,
    RayCollectors,
    RemoteCollector,
    Work,
)
from rlgym_bridge.training.selfplay.opponents import learned_cars
from rlgym_bridge.training.settings import TrainingSettings


@pytest.fixture(autouse=True)
def same_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go back to the current folder after a test: a collector on another machine goes to its own."""
    monkeypatch.chdir(Path.cwd())


class Made:
    """Nodes without Ray: orders are done in the order in which they were given, but for those of the slow."""

    def __init__(self, settings: TrainingSettings, shape: Any, processors: Mapping[str, int]) -> None:
        self.processors, self.slow, self.lost, self.wrong = dict(processors), set[int](), set[int](), ""
        self.orders: dict[int, tuple[int, Any, int]] = {}
        self.started: list[int] = []
        self.stopped: list[int] = []
        cars = int(learned_cars(settings).sum())
        layout = rollout_layout(settings, 1, shape)
        self._arrays = {
            name: np.zeros((of[1], cars, *of[3:]), kind)
            for name, (of, kind) in layout.items()
            if name != "policies"
        } | {"final_obs": np.zeros((0, shape.obs_size), np.float32)}

    def alive(self) -> dict[str, tuple[str, int]]:
        return {name: (name, count) for name, count in self.processors.items()}

    def start(self, index: int) -> tuple[int, int]:
        self.started.append(index)
        return index, self._order(index, None, 0)

    def share(self, work: Work) -> Work:
        return work

    def play(self, actor: int, work: Work, number: int) -> int:
        return self._order(actor, work, number)

    def wait(self, orders: Sequence[int], seconds: float) -> Sequence[int]:
        done = [one for one in orders if self.orders[one][0] not in self.slow]
        return sorted(done)

    def take(self, order: int) -> Any:
        actor, work, _ = self.orders.pop(order)
        if actor in self.lost:
            self.lost.discard(actor)
            raise CollectorLost("killed")
        if self.wrong:
            raise CollectorDied(self.wrong)
        if work is None:
            return "here"
        rewards = np.full_like(self._arrays["rewards"], actor)
        times = {"total": 1.0, "cpu": 1.0, "rest": 1.0}
        return self._arrays | {"rewards": rewards}, {"episodes": 1.0}, times

    def stop(self, actor: int) -> None:
        self.stopped.append(actor)
        self.orders = {order: of for order, of in self.orders.items() if of[0] != actor}

    def _order(self, *of: Any) -> int:
        order = self._next = getattr(self, "_next", 0) + 1
        self.orders[order] = of
        return order


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_collectors, "_LOOK_SECONDS", 0.0)


def make(tmp_path: Path, continuous: bool = True, **more: Any) -> tuple[RayCollectors, Made]:
    settings = check_settings(SMALL | {"collectors": 2, "out": str(tmp_path)} | more)
    shape = PPOLearner(settings).shape
    nodes = Made(settings, shape, {"first": 1, "second": 1})
    collectors: Any = RayCollectors(settings, shape, nodes, continuous)  # type: ignore[arg-type]
    return collectors, nodes


def play(collectors: RayCollectors) -> dict[str, float]:
    """Play a batch; return its statistics."""
    collectors.begin((0,), 1)
    assert collectors.finish()["episodes"] == collectors.count
    return collectors.stats


def actors_of(collectors: RayCollectors) -> list[int]:
    return [actor for actor, _ in collectors.rows]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("most", [1, 2, 3])
def test_rollouts_older_than_the_limit_are_dropped_and_counted(most: int, tmp_path: Path) -> None:
    collectors, nodes = make(tmp_path, ray_max_age=most)
    play(collectors)
    nodes.slow = {1}  # it plays on with the version that it was given at the end of the first batch
    for _ in range(most):
        stats = play(collectors)
        assert actors_of(collectors) == [0, 0] and stats["dropped_rollouts"] == 0
    nodes.slow = set()
    stats = play(collectors)
    assert stats["dropped_rollouts"] == 1
    assert stats["batch_age"] <= most


@pytest.mark.usefixtures("at_once")
def test_rollouts_as_old_as_the_limit_are_learned_from(tmp_path: Path) -> None:
    collectors, nodes = make(tmp_path, ray_max_age=2)
    play(collectors)
    nodes.slow = {1}
    play(collectors)
    nodes.slow = set()
    stats = play(collectors)
    assert 1 in actors_of(collectors) and stats["dropped_rollouts"] == 0


@pytest.mark.usefixtures("at_once")
def test_in_turns_nothing_is_played_beyond_a_batch(tmp_path: Path) -> None:
    collectors, nodes = make(tmp_path, continuous=False, ray_max_age=0)
    for _ in range(3):
        assert play(collectors)["batch_age"] == 0
        assert not nodes.orders


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("continuous", [True, False])
def test_a_lost_collector_is_replaced_and_the_batch_is_whole(
    continuous: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    collectors, nodes = make(tmp_path, continuous)
    play(collectors)
    nodes.lost = {1}
    assert play(collectors)["lost_collectors"] == 1
    assert "collector 1 on here is lost: killed; others play its part" in caplog.text
    assert nodes.started == [0, 1, 2] and nodes.stopped == [1]
    stats = play(collectors)
    assert stats["lost_collectors"] == 0 and stats["playing_collectors"] == 2


@pytest.mark.usefixtures("at_once")
def test_collectors_follow_nodes_that_join_and_leave(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rlgym_bridge")
    collectors, nodes = make(tmp_path, collectors=0)
    play(collectors)
    nodes.processors["third"] = 2
    play(collectors)
    assert nodes.started == [0, 1, 2, 3]
    assert "node third joined, with 2 processors" in caplog.text
    while play(collectors)["playing_collectors"] < 4:
        pass
    del nodes.processors["second"]
    nodes.lost = {1}
    play(collectors)
    play(collectors)
    assert "node second has gone" in caplog.text
    assert nodes.started == [0, 1, 2, 3]  # nobody in its place
    assert collectors.count == 2  # batches stay as large as they were


@pytest.mark.usefixtures("at_once")
def test_collectors_that_always_die_end_the_run(tmp_path: Path) -> None:
    collectors, nodes = make(tmp_path)
    nodes.lost = set(range(100))
    collectors.begin((0,), 1)
    with pytest.raises(CollectorDied, match="6 collectors in a row were lost before they had played: killed"):
        collectors.finish()


@pytest.mark.usefixtures("at_once")
def test_an_error_of_a_component_ends_the_run(tmp_path: Path) -> None:
    collectors, nodes = make(tmp_path)
    nodes.wrong = "ZeroDivisionError in my_reward.py"
    collectors.begin((0,), 1)
    with pytest.raises(CollectorDied, match=r"my_reward\.py"):
        collectors.finish()


@pytest.mark.usefixtures("at_once")
def test_a_cluster_without_anybody_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_collectors, "_PATIENCE", -1.0)
    collectors, nodes = make(tmp_path)
    nodes.slow = {0, 1}
    collectors.begin((0,), 1)
    with pytest.raises(CollectorDied, match=r"no collector has been there .*`ray status`"):
        collectors.finish()


def test_a_cluster_without_processors_is_refused(tmp_path: Path) -> None:
    settings = check_settings(SMALL | {"collectors": 0, "out": str(tmp_path)})
    shape = PPOLearner(settings).shape
    nodes: Any = Made(settings, shape, {"first": 0})
    with pytest.raises(SettingsError, match="the cluster has no processor for collectors"):
        RayCollectors(settings, shape, nodes, True)


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_a_rollout_from_afar_is_what_one_here_would_be(share: float, tmp_path: Path) -> None:
    settings = check_settings(SMALL | {"out": str(tmp_path), "snapshot_share": share})
    learner = PPOLearner(settings)
    layout = rollout_layout(settings, 1, learner.shape)
    here: dict[str, np.ndarray] = {name: np.zeros(*of) for name, of in layout.items()}
    here["policies"][:] = learner.packed()
    collector = Collector(settings, learner.shape, 0, here)
    collector.restart(int(np.random.SeedSequence((5, 0)).generate_state(1)[0]))
    collector.collect(((7, 1), 1, False))

    remote = RemoteCollector(0, (settings, learner.shape, str(tmp_path)))
    assert remote.ready()[0] == "answer"
    work = Work(settings, (5,), here["policies"][:2], (7,), False)
    kind, (arrays, _, _) = remote.play(work, 1)
    assert kind == "answer"
    nodes: Any = Made(settings, learner.shape, {"first": 1})
    collectors = RayCollectors(settings, learner.shape, nodes, True)
    collectors._write(0, arrays)
    cars = learner.learned
    assert cars.sum() == 16 - 16 * share / 2 or not share
    for name in layout.keys() - {"policies", "final_obs"}:
        assert np.array_equal(collectors.arrays[name][0][:, cars], here[name][0][:, cars]), name
    cut = here["truncated"] & cars
    assert np.array_equal(collectors.arrays["final_obs"][cut], here["final_obs"][cut])
    assert len(arrays["final_obs"]) == cut.sum()  # no more is sent


def test_a_critics_memory_goes_with_the_actor() -> None:
    batches = iter([[(0, 1), (1, 1)], [(1, 2), (0, 2)], [(0, 4), (1, 3)], [(2, 1), (1, 4)]])
    engine = OnRay.__new__(OnRay)
    made: Any = SimpleNamespace(rows=[])

    def finish() -> Counter[str]:
        made.rows = next(batches)
        return Counter()

    made.finish = finish
    learner: Any = SimpleNamespace(critic_memory=None, learned=np.array([True, False, True]))
    engine._learner, engine._collectors, engine._remembered, engine.count = learner, made, {}, 2
    before = []
    for number in range(4):
        engine._finish()
        before.append(None if learner.critic_memory is None else learner.critic_memory[:, 0].tolist())
        learner.critic_memory = 10 * number + torch.arange(1.0, 5)[:, None]  # two cars of each row
        engine._keep_memory()
    assert before == [
        None,
        [3, 4, 1, 2],  # the rows are those of the actors in another order
        [0, 0, 11, 12],  # a rollout of actor 0 was dropped between
        [0, 0, 23, 24],  # actor 2 is new
    ]


def test_playing_on_without_any_age_is_refused(tmp_path: Path) -> None:
    learner = PPOLearner(check_settings(SMALL | {"out": str(tmp_path), "overlap": True, "ray_max_age": 0}))
    with pytest.raises(SettingsError, match="overlap is true and ray_max_age 0"):
        OnRay(learner)


def test_three_runners_for_two_processors_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_ppo, "cluster", lambda address, collectors: nullcontext(2))
    with pytest.raises(
        SettingsError, match="collectors is 3, and the cluster has 2 processors, one for each"
    ):
        ray_ppo.main(check_settings(SMALL | {"out": str(tmp_path), "collectors": 3}), quiet=True)


@pytest.mark.parametrize("address", ["", "head", "head:", ":6379", "head:-1", "head:6379/0", "head:65536"])
def test_addresses_without_host_or_port_are_refused_at_once(address: str) -> None:
    message = f'at "{address}": it has no .* Expected host:port, or auto'
    with pytest.raises(SettingsError, match=message), cluster(address):
        pass


def test_what_listens_and_is_no_head_of_ray_is_refused_at_once() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        other.timeout = 60
        thread = Thread(target=other.handle_request)
        thread.start()
        address = f"127.0.0.1:{other.server_port}"
        with pytest.raises(SettingsError, match="what listens there is no Ray head"), cluster(address):
            pass
        thread.join()


def test_a_dead_head_in_the_environment_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(SettingsError, match=r'at "auto": .*refused'), cluster("auto"):
        pass


@pytest.mark.parametrize(
    ("name", "value", "others"),
    [
        ("uniform_coefficient", 0.1, r"0\.0"), ("critic_learning_rate", 0.1, r"0\.0"),
        ("critic_learning_rate_schedule", "linear", '"same"'), ("standardize_returns", True, "false"),
        ("value_clip", 0.1, r"0\.0"), ("target_kl", 0.1, r"0\.0"), ("overlap", True, "false"),
        ("mirror", True, "false"), ("network", "gru", '"perceptron"'),
    ],
)  # fmt: skip
def test_settings_that_rllib_does_not_have_are_refused(
    name: str, value: Any, others: str, tmp_path: Path
) -> None:
    message = rf"{name} is .*, which --engine rllib does not have; expected {others}, or --engine local"
    with pytest.raises(SettingsError, match=message):
        ray_ppo.main(check_settings(SMALL | {"out": str(tmp_path), name: value}), quiet=True)
