"""Train on several machines: collectors are actors of Ray Core on all nodes, the learner is in this process.

    learner -> ray.put, once an update -> actors: Collector -> arrays -> learner, unless they are too old

An actor has one order at a time, and the newest policy when it gets the next one. A batch is made of the
first rollouts that come, so that an actor that is slow or gone holds nobody up.
"""

import itertools
import logging
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import ray
import torch
from threadpoolctl import threadpool_limits

from rlgym_bridge.components.user_errors import explain_error
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.sim.vector_env import without_warnings
from rlgym_bridge.training.collector import Collector, CollectorDied, rollout_layout
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import Local
from rlgym_bridge.training.ray_cluster import cluster
from rlgym_bridge.training.runs.run import Iteration, ReadAgain, Summary, run
from rlgym_bridge.training.selfplay.opponents import learned_cars
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from rlgym_bridge.user_input.arguments import count_of

_LOG: Final = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 1.0  # between looks at the nodes
_PATIENCE: Final = 180.0  # s in which no collector is there that plays
_BARREN: Final = 3  # collectors lost for each row of a batch, from its latest rollout on, that end the run


def main(
    settings: TrainingSettings, resume: bool = False, quiet: bool = False, change_simulator: bool = False,
    rewards: bool = False, read_again: ReadAgain | None = None, address: str = "auto",
) -> Summary:  # fmt: skip
    """Train on the Ray cluster at an address, with as many actors as `collectors` says; 0: one a processor.

    `"auto"` is the cluster that this machine is part of. All else is that of `run`.
    """
    engine = partial(OnRay, address=address, quiet=quiet)
    return run(settings, engine, resume, quiet, change_simulator, rewards, read_again)


class OnRay(Local):
    """Plays on the nodes of a Ray cluster and learns in this process; a context manager.

    An address of None begins a cluster on this machine that ends with the engine. `quiet` leaves out what
    Ray's processes say. Raises SettingsError where there is no cluster, it has no processor, or `overlap` and
    `ray_max_age` disagree.
    """

    def __init__(self, learner: PPOLearner, address: str | None = "auto", quiet: bool = True) -> None:
        settings = learner.settings
        if settings.overlap is True and not settings.ray_max_age:
            raise SettingsError(
                "overlap is true and ray_max_age 0: what is played during an update is one update old; "
                "expected ray_max_age 1 or more, or overlap false"
            )
        learner.overlaps = settings.overlap is not False and settings.ray_max_age > 0
        with ExitStack() as opening:
            opening.enter_context(cluster(address, settings.collectors, quiet))
            nodes = RayNodes(settings, learner.shape)
            super().__init__(learner, RayCollectors(settings, learner.shape, nodes, learner.overlaps))
            self._open = opening.pop_all()
        self._remembered: dict[int, tuple[int, torch.Tensor]] = {}  # of a critic with memory, by actor

    def __exit__(self, *how: object) -> None:
        with self._open:
            super().__exit__(*how)

    def iterate(self, older: int) -> Iteration:
        """Learn from the next batch; the statistics also hold its age, and what was dropped and lost."""
        done = super().iterate(older)
        self._keep_memory()
        return replace(done, stats={**done.stats, **self._collectors.stats})

    def _keep_memory(self) -> None:
        """Keep what a critic with memory knew of each actor's cars at the end of its rollout."""
        if self._learner.critic_memory is not None:
            parts = self._learner.critic_memory.chunk(self.count)
            for (actor, number), memory in zip(self._collectors.rows, parts, strict=True):
                self._remembered[actor] = number, memory

    def _begin_next(self, steps: int) -> None:
        """Do nothing: actors play on by themselves."""

    def _finish(self) -> Counter[str]:
        """Wait for a batch; a critic's memory goes with the actor whose cars it remembers."""
        counts = super()._finish()
        if self._learner.critic_memory is not None:
            blank = torch.zeros_like(self._learner.critic_memory[: int(self._learner.learned.sum())])
            before = [self._remembered.get(actor, (-1, blank)) for actor, _ in self._collectors.rows]
            rows = zip(before, self._collectors.rows, strict=True)
            parts = [memory if at == number - 1 else blank for (at, memory), (_, number) in rows]
            self._learner.critic_memory = torch.cat(parts)
        return counts


# --- which actors there are, and what they play ------------------------------------------------------


class CollectorLost(RuntimeError):
    """An actor or its node has gone."""


@dataclass(frozen=True)
class Work:
    """The orders of an update."""

    settings: TrainingSettings  # of the run
    start: tuple[int, ...]  # seed of the matches; another one begins new matches
    policies: np.ndarray  # (2, numbers) float32: the policy that learns, and the older version that is met
    seed: tuple[int, ...]  # of the sampled actions
    teach: bool  # whether the teacher's probabilities are needed


@dataclass
class _Member:
    """An actor: where it is, the rollouts it was ordered, and the version of the policy in the latest."""

    index: int
    actor: Any
    place: str = ""
    ordered: int = 0
    version: int = 0


class RayCollectors:
    """The actors of a cluster, with the face of `rlgym_bridge.training.collector.Collectors`.

    If `continuous` they play on while learning; otherwise no more than a batch needs.

    Attributes:
        count: Rollouts of a batch.
        arrays: See `rollout_layout`; cars that nobody learns from stay as they are.
        seconds: Of each rollout, see `Collector.seconds`.
        rows: The actor of each rollout of the batch, and which of its rollouts it is.
        stats: Of the batch: mean age of its rollouts in updates, rollouts that were too old, and actors lost
            since the batch before, and actors that play.
    """

    def __init__(
        self, settings: TrainingSettings, policy: PolicyShape, nodes: "RayNodes", continuous: bool
    ) -> None:
        self._settings, self._nodes, self._continuous = settings, nodes, continuous
        self._known = dict(nodes.alive())
        processors = sum(count for _, count in self._known.values())
        self.count = settings.collectors or processors
        if not self.count:
            raise SettingsError(
                "the cluster has no processor for collectors, expected one or more: `ray start --address "
                "HOST:PORT` on another machine, or a head with --num-cpus 1 or more"
            )
        _LOG.info("cluster: %s, %s", count_of(len(self._known), "node"), count_of(processors, "processor"))
        layout = rollout_layout(settings, self.count, policy)
        self.arrays = {name: np.zeros(*of) for name, of in layout.items()}
        self._learned = learned_cars(settings)
        self.seconds: list[dict[str, float]] = []
        self.rows: list[tuple[int, int]] = []
        self.stats: dict[str, float] = {}
        self._numbers = itertools.count()
        self._starting: dict[Any, _Member] = {}  # by the orders that they have not answered
        self._playing: dict[Any, _Member] = {}
        self._idle: list[_Member] = []
        self._start: tuple[int, ...] = ()
        self._work, self._version = None, 0
        self._lost = self._barren = 0
        self._next_look = self._seen = 0.0

    def restart(self, seed: tuple[int, ...]) -> None:
        """Begin new matches with the next orders; rollouts of those before still count."""
        self._start = seed

    def renew(self, settings: TrainingSettings) -> None:
        """Play by other settings with the next orders."""
        self._settings = settings

    def begin(self, seed: tuple[int, ...], snapshot: int, teach: bool = False) -> None:
        """Order rollouts of the present `policies`; arguments are those of `Collectors.begin`."""
        policies = self.arrays["policies"][[0, snapshot]]
        self._work = self._nodes.share(Work(self._settings, self._start, policies, seed, teach))
        self._version += 1
        self._order(self.count)

    def finish(self) -> Counter[str]:
        """Wait until `arrays` hold a batch; return and raise what `Collectors.finish` does."""
        total: Counter[str] = Counter()
        ages: list[int] = []
        dropped = 0
        self.seconds, self.rows, self._seen = [], [], time.monotonic()
        while len(ages) < self.count:
            self._look()
            self._order(self.count - len(ages))
            orders = [*self._playing, *self._starting]
            if not orders:
                time.sleep(_LOOK_SECONDS)
            for order in self._nodes.wait(orders, _LOOK_SECONDS) if orders else ():
                if (taken := self._take(order)) is None:
                    continue
                member, (arrays, counts, seconds) = taken
                age = self._version - member.version
                if age > self._settings.ray_max_age:
                    dropped += 1
                    continue
                self._write(len(ages), arrays)
                ages.append(age)
                self.rows.append((member.index, member.ordered))
                total.update(counts)
                self.seconds.append(seconds)
                if len(ages) == self.count:
                    break
        self._order(0)
        playing = len(self._playing) + len(self._idle)
        self.stats = {
            "batch_age": sum(ages) / len(ages), "dropped_rollouts": dropped, "lost_collectors": self._lost,
            "playing_collectors": playing,
        }  # fmt: skip
        self._lost = 0
        return total

    def _take(self, order: Any) -> tuple[_Member, Any] | None:
        """Return who answered an order for a rollout, and the answer; None for what is no rollout."""
        starting = order in self._starting
        member = self._starting.pop(order) if starting else self._playing.pop(order)
        try:
            answer = self._nodes.take(order)
        except CollectorLost as error:
            self._lose(member, str(error))
            return None
        self._idle.append(member)
        if starting:
            member.place = answer
            return None
        self._barren = 0
        return member, answer

    def _lose(self, member: _Member, why: str) -> None:
        """Say that an actor has gone; raises CollectorDied where none lasts long enough to play."""
        where = f" on {member.place}" if member.place else ""
        _LOG.warning("collector %d%s is lost: %s; others play its part", member.index, where, why)
        self._lost, self._barren, self._next_look = self._lost + 1, self._barren + 1, 0.0
        self._nodes.stop(member.actor)
        if self._barren >= _BARREN * self.count:
            raise CollectorDied(f"{self._barren} collectors in a row were lost before they had played: {why}")

    def _order(self, wanted: int) -> None:
        """Order rollouts of idle actors: of all, or no more than are wanted besides those under way."""
        most = len(self._idle) if self._continuous else wanted - len(self._playing)
        for _ in range(min(most, len(self._idle))):
            member = self._idle.pop(0)
            member.ordered, member.version = member.ordered + 1, self._version
            self._playing[self._nodes.play(member.actor, self._work, member.ordered)] = member

    def _look(self) -> None:
        """Look who is there, and start or stop actors to be as many as there are processors, or as are set.

        Raises CollectorDied where nobody has played for `_PATIENCE` seconds.
        """
        now = time.monotonic()
        if self._playing or self._idle:
            self._seen = now
        elif now - self._seen > _PATIENCE:
            raise CollectorDied(
                f"no collector has been there for {_PATIENCE:.0f} s, expected one: `ray status` says what is "
                "left of the cluster"
            )
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        nodes = dict(self._nodes.alive())
        for name in nodes.keys() - self._known.keys():
            _LOG.info("node %s joined, with %s", nodes[name][0], count_of(nodes[name][1], "processor"))
        for name in self._known.keys() - nodes.keys():
            _LOG.warning("node %s has gone", self._known[name][0])
        self._known = nodes
        wanted = self._settings.collectors or sum(count for _, count in nodes.values())
        for _ in range(wanted - len(self._starting) - len(self._playing) - len(self._idle)):
            member = _Member(next(self._numbers), None)
            member.actor, ready = self._nodes.start(member.index)
            self._starting[ready] = member
        spare = len(self._starting) + len(self._playing) + len(self._idle) - wanted
        for order in [*self._starting][::-1][: max(spare, 0)]:  # its node has gone before it was ready
            self._nodes.stop(self._starting.pop(order).actor)

    def _write(self, row: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Write the arrays of `RemoteCollector.play` into a row."""
        for name in arrays.keys() - {"final_obs"}:
            self.arrays[name][row][:, self._learned] = arrays[name]
        cut = self.arrays["truncated"][row] & self._learned  # (T, C) bool
        self.arrays["final_obs"][row][cut] = arrays["final_obs"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in (*self._starting.values(), *self._playing.values(), *self._idle):
            self._nodes.stop(member.actor)


# --- Ray ---------------------------------------------------------------------------------------------


class RayNodes:
    """The nodes of the cluster that this process is connected to, and the actors on them."""

    def __init__(self, settings: TrainingSettings, policy: PolicyShape) -> None:
        remote: Any = ray.remote(RemoteCollector)
        self._kind = remote.options(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")
        self._arguments = ray.put((settings, policy, str(Path.cwd())))

    def alive(self) -> dict[str, tuple[str, int]]:
        """Return address and processors of each node, by its id."""
        return {
            node["NodeID"]: (node["NodeManagerAddress"], int(node["Resources"].get("CPU", 0)))
            for node in ray.nodes()
            if node["Alive"]
        }

    def start(self, index: int) -> tuple[Any, Any]:
        """Start an actor, as Ray finds a processor; return it, and an order that it answers once ready."""
        actor = self._kind.remote(index, self._arguments)
        return actor, actor.ready.remote()

    def share(self, work: Work) -> Any:
        """Put what is to be played into the object store: each node fetches it once."""
        return ray.put(work)

    def play(self, actor: Any, work: Any, number: int) -> Any:
        """Order a rollout from an actor; `number` counts its rollouts."""
        return actor.play.remote(work, number)

    def wait(self, orders: Sequence[Any], seconds: float) -> Sequence[Any]:
        """Wait until an order is done, or has failed, and return these."""
        done: Sequence[Any] = ray.wait(list(orders), num_returns=1, timeout=seconds)[0]
        return done

    def take(self, order: Any) -> Any:
        """Return the answer to an order that is done; raises CollectorLost, or CollectorDied for an error."""
        try:
            kind, answer = ray.get(order)
        except ray.exceptions.RayError as error:
            raise CollectorLost(_reason(error)) from error
        if kind == "error":
            raise CollectorDied(answer)
        return answer

    def stop(self, actor: Any) -> None:
        """End an actor."""
        with suppress(ray.exceptions.RayError, ValueError):  # it has gone, or the connection has
            ray.kill(actor)


def _reason(error: BaseException) -> str:
    """Return the part of Ray's message that says why an actor has gone."""
    if isinstance(error, ray.exceptions.ActorUnavailableError):
        return "its node does not answer"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = next((line for line in lines if "exit detail:" in line or "node" in line.lower()), lines[0])
    return told.partition("exit detail:")[2].strip().partition(". ")[0] or told.partition(". ")[0]


class RemoteCollector:
    """A `Collector` with arrays of its own, in an actor's process; no other of the run has its index.

    It is given settings, the shape of policies, and the learner's folder, from which names of files begin.
    """

    def __init__(self, index: int, arguments: tuple[TrainingSettings, PolicyShape, str]) -> None:
        self._index, (self._settings, self._shape, self._folder) = index, arguments
        self._start: tuple[int, ...] = ()
        self._learned = learned_cars(self._settings)

    def ready(self) -> tuple[str, str]:
        """Make the matches; return `("answer", this node's address)`, or `("error", why not)`."""
        with suppress(OSError):  # not on a machine without that folder
            os.chdir(self._folder)
        threadpool_limits(1)
        layout = rollout_layout(self._settings, 1, self._shape)
        self._arrays = {name: np.zeros(*of) for name, of in layout.items()}
        try:
            with without_warnings() if self._index else nullcontext():
                self._collector = Collector(self._settings, self._shape, self._index, self._arrays, 0)
        except (Exception, SystemExit) as error:
            return "error", explain_error(error)
        return "answer", ray.util.get_node_ip_address()

    def play(self, work: Work, number: int) -> tuple[str, Any]:
        """Play this actor's rollout `number`.

        Returns:
            `("answer", (arrays by name, counts, seconds))`: arrays of cars that are learned from, see
            `rollout_layout`, without the axis of collectors; of `final_obs` only `(n, size)` of those
            that were truncated. Or `("error", what went wrong)`.
        """
        try:
            if work.settings != self._settings:
                self._settings = work.settings
                self._collector.renew(work.settings)
                self._start = ()
            if work.start != self._start:
                self._start = work.start
                seed = np.random.SeedSequence((*work.start, self._index)).generate_state(1)[0]
                self._collector.restart(int(seed))
            self._arrays["policies"][:2] = work.policies
            counts, seconds = self._collector.collect(((*work.seed, number), 1, work.teach))
        except (Exception, SystemExit) as error:
            return "error", explain_error(error)
        rows = {name: array[0] for name, array in self._arrays.items() if name != "policies"}
        arrays = {name: row[:, self._learned] for name, row in rows.items()}
        arrays["final_obs"] = rows["final_obs"][rows["truncated"] & self._learned]
        return "answer", (arrays, counts, seconds)
