"""Collectors: processes that play many matches and write what happened into shared memory.

    learner -> (restart | collect) -> collector: VectorEnv, policy in numpy -> shared memory -> learner

Observations, actions, their log-probabilities, rewards and ends are written; values are the learner's to
compute.
"""

import math
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any, Final, Self, cast

import numpy as np

from rlgym_bridge.components.user_errors import explain_error
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.sim.simulator import PartTimes
from rlgym_bridge.sim.vector_env import without_warnings
from rlgym_bridge.training.processes import ENDING, count_usable_cores
from rlgym_bridge.training.selfplay.matches import MixedMatches
from rlgym_bridge.training.selfplay.opponents import learned_cars, snapshot_cars
from rlgym_bridge.training.selfplay.snapshots import unpack
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from rlgym_bridge.user_input.failures import Failure

_STOP_SECONDS: Final = 5.0  # for a collector to finish its step and leave
_TIMED_FIRST, _TIMED_EVERY = 4, 8  # steps of a rollout whose parts are timed: not the first, with cold caches
_LINE: Final = 64  # bytes of a cache line, which no two arrays share
Layout = Mapping[str, tuple[tuple[int, ...], str]]  # shape and dtype of each array, by name


class SharedArrays:
    """Named arrays in shared memory, of one layout on both sides.

    `name` is that of a block that is there already; None makes one, of zeros, whose name others are handed.
    """

    def __init__(self, layout: Layout, name: str | None = None) -> None:
        sizes = [np.dtype(dtype).itemsize * math.prod(shape) for shape, dtype in layout.values()]
        starts = np.cumsum([0, *(-(-size // _LINE) * _LINE for size in sizes)])
        self._owner = name is None
        try:
            self._memory = SharedMemory(name, create=self._owner, size=int(starts[-1]))
        except OSError as error:
            raise _no_memory(int(starts[-1]), error) from error
        if self._owner and hasattr(os, "posix_fallocate"):
            # Without it a full /dev/shm is noticed by a signal that ends the process.
            try:
                with Path("/dev/shm", self._memory.name.lstrip("/")).open("r+b") as file:
                    os.posix_fallocate(file.fileno(), 0, int(starts[-1]))
            except FileNotFoundError:
                pass  # shared memory is kept elsewhere on this system
            except OSError as error:
                self._memory.close()
                self._memory.unlink()
                raise _no_memory(int(starts[-1]), error) from error
        self.name = self._memory.name
        self._arrays: dict[str, np.ndarray] = {
            key: np.ndarray(shape, dtype, self._memory.buf, int(start))
            for (key, (shape, dtype)), start in zip(layout.items(), starts, strict=False)
        }

    def __getitem__(self, key: str) -> np.ndarray:
        return self._arrays[key]

    def close(self) -> None:
        """Let go of the memory; views of it must not be used any more. Its maker removes it."""
        self._arrays.clear()
        with suppress(BufferError):  # a view held somewhere else goes with the process
            self._memory.close()
        if self._owner:
            self._memory.unlink()


def _no_memory(size: int, error: OSError) -> SettingsError:
    """Return the error where so many bytes of shared memory cannot be had."""
    return SettingsError(
        f"{size / 1e6:,.1f} MB of shared memory cannot be had ({error.strerror}): make /dev/shm larger, or "
        "set fewer matches, rollout_steps or collectors"
    )


def rollout_layout(settings: TrainingSettings, collectors: int, policy: PolicyShape) -> Layout:
    """Return what is shared: policies one way, one iteration's rollouts the other, a row a collector."""
    steps, every = settings.rollout_steps, settings.cars_of_collector  # cars of all matches, in order
    cars, (action, dtype) = (collectors, steps, every), policy.action
    remembered = {
        "starts": (cars, "bool"),  # whether an episode begins with the step
        # The memory before each piece of `sequence_length` steps.
        "states": ((collectors, steps // settings.sequence_length, every, policy.state_size), "float32"),
    }
    return {
        # Row 0 is the policy that learns, the others are snapshots.
        "policies": ((1 + settings.snapshots, policy.numbers), "float32"),
        # One step more than the rest: what the next rollout begins with.
        "obs": ((collectors, steps + 1, every, policy.obs_size), "float32"),
        "actions": ((*cars, *action), dtype),
        "log_probs": (cars, "float32"),  # of the actions of policy and snapshots
        "rewards": (cars, "float32"),
        "terminated": (cars, "bool"),
        "truncated": (cars, "bool"),
        **({"masks": ((*cars, policy.outputs), "bool")} if policy.masked else {}),
        **(remembered if policy.state_size else {}),
        # Written only while the teacher's weight is above 0.
        **({"teacher": ((*cars, policy.outputs), "float32")} if settings.teacher else {}),
        # Written only where an episode was truncated.
        "final_obs": ((*cars, policy.obs_size), "float32"),
    }


class CollectorDied(Failure):
    """A collector stopped; the message says why, with the line of a user's code that did it."""


class Collectors:
    """The collecting processes, `count` of them, used as a context manager.

    `arrays` are what they share, see `rollout_layout`; `seconds` of each collector what its parts took in the
    latest rollout, see `Collector.seconds`. All raise CollectorDied where a collector has stopped.
    """

    def __init__(self, settings: TrainingSettings, policy: PolicyShape) -> None:
        self.count = settings.collectors or count_usable_cores()
        layout = rollout_layout(settings, self.count, policy)
        self.arrays = SharedArrays(layout)
        self.seconds: list[dict[str, float]] = []
        self._workers: list[tuple[Any, Connection]] = []
        context = multiprocessing.get_context("spawn")
        with _quiet_children():
            for i in range(self.count):
                ours, theirs = context.Pipe()
                arguments = (theirs, settings, policy, i, layout, self.arrays.name)
                worker = context.Process(target=_work, args=arguments, name=f"collector {i}", daemon=True)
                worker.start()
                theirs.close()  # so that the end of the process ends the pipe
                self._workers.append((worker, ours))

    def restart(self, seed: tuple[int, ...]) -> None:
        """Begin new episodes in all matches; the seed alone decides how they begin and go on."""
        seeds = [np.random.SeedSequence((*seed, i)).generate_state(1)[0] for i in range(self.count)]
        self._send("restart", seeds)
        self._receive()

    def renew(self, settings: TrainingSettings) -> None:
        """Make all matches anew by other settings; `restart` begins them."""
        self._send("renew", [settings] * self.count)
        self._receive()

    def begin(self, seed: tuple[int, ...], snapshot: int, teach: bool = False) -> None:
        """Let all collectors play the next steps; until `finish` the shared arrays are theirs.

        `seed` is that of the sampled actions, `snapshot` the row of `policies` that the snapshots' seats
        play. `teach` has the teacher's probabilities written, too.
        """
        self._send("collect", [(seed, snapshot, teach)] * self.count)

    def finish(self) -> Counter[str]:
        """Wait until the shared arrays hold the steps that `begin` was for; return sums of what was counted.

        These are `episode_reward` over `finished_cars`, and those of `SelfPlayMatches.take_counts`.
        """
        total: Counter[str] = Counter()
        self.seconds.clear()
        for counts, seconds in self._receive():
            total.update(counts)
            self.seconds.append(seconds)
        return total

    def _send(self, what: str, arguments: list[Any]) -> None:
        for (worker, pipe), argument in zip(self._workers, arguments, strict=True):
            try:
                pipe.send((what, argument))
            except OSError:  # it has gone
                self._answer(worker, pipe)  # raises by what it said last

    def _receive(self) -> list[Any]:
        """Return the answer of each collector."""
        answers: dict[int, Any] = {}
        while len(answers) < self.count:
            open_pipes = {self._workers[i][1]: i for i in range(self.count) if i not in answers}
            for ready in wait(list(open_pipes)):
                i = open_pipes[cast(Connection, ready)]
                answers[i] = self._answer(*self._workers[i])
        return [answers[i] for i in range(self.count)]

    def _answer(self, worker: Any, pipe: Connection) -> Any:
        try:
            kind, answer = pipe.recv()
        except (EOFError, OSError):
            worker.join(_STOP_SECONDS)
            raise CollectorDied(
                f"{worker.name} ended without a word, exit code {worker.exitcode} (negative: the signal that "
                "killed it; -9 is often too little memory)"
            ) from None
        if kind == "error":
            raise CollectorDied(answer)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        for _, pipe in self._workers:
            pipe.close()  # they end when they next listen
        for worker, _ in self._workers:
            worker.join(_STOP_SECONDS)
            if worker.is_alive():
                worker.kill()
                worker.join()
        self.arrays.close()


@contextmanager
def _quiet_children() -> Iterator[None]:
    """Start processes that leave signals to the learner, and compute with one thread each."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    # An ignored signal stays ignored in a new process, so that not even its start can be interrupted.
    here = threading.current_thread() is threading.main_thread()
    handlers = [signal.signal(one, signal.SIG_IGN) for one in ENDING] if here else []
    try:
        yield
    finally:
        for one, handler in zip(ENDING, handlers, strict=False):
            signal.signal(one, handler)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# --- in the process ----------------------------------------------------------------------------------


def _work(
    pipe: Connection, settings: TrainingSettings, policy: PolicyShape, index: int, layout: Layout, name: str
) -> None:
    """Do what the learner asks until it hangs up."""
    for one in ENDING:
        signal.signal(one, signal.SIG_IGN)
    arrays = SharedArrays(layout, name)
    try:
        # All collectors make the same matches: a warning about them is told by the first one.
        with without_warnings() if index else nullcontext():
            collector = Collector(settings, policy, index, arrays)
        while True:
            try:
                what, argument = pipe.recv()
            except (EOFError, OSError):
                return
            pipe.send(("answer", getattr(collector, what)(argument)))
    except (Exception, SystemExit) as error:
        with suppress(OSError):  # the learner may have hung up over another collector's end
            pipe.send(("error", explain_error(error)))
    finally:
        arrays.close()


class Collector:
    """One collector's matches, and its row of the arrays' leading axis: `row`, or `index`.

    Its actions are drawn by seed and `index`. `seconds` are those of the latest rollout: `total` and `cpu`,
    wall-clock and processor time of all; `inference`; the parts of `SelfPlayMatches.times`, as the timed
    steps share the time of all; and `rest`.
    """

    def __init__(
        self, settings: TrainingSettings, policy: PolicyShape, index: int, arrays: Any, row: int | None = None
    ) -> None:
        self._shape, self._index = policy, index
        self._policies = arrays["policies"]
        names = (name for name in rollout_layout(settings, 1, policy) if name != "policies")
        self._rows = {name: arrays[name][index if row is None else row] for name in names}
        self._env = MixedMatches(settings, policy.obs_size, policy.masked)
        self._learned = learned_cars(settings)
        self._obs = np.empty(0, np.float32)  # (cars, size) of all matches, after a restart
        self._returns = np.zeros(self._learned.shape)  # of the episodes under way
        self._memory = _Deciding(settings, policy)
        self.seconds: dict[str, float] = {}

    def renew(self, settings: TrainingSettings) -> None:
        """Make all matches anew by other settings, whose matches and cars are the same."""
        with without_warnings():  # the learner has given them
            self._env = MixedMatches(settings, self._shape.obs_size, self._shape.masked)

    def restart(self, seed: int) -> None:
        """Begin new episodes in all matches."""
        self._obs = self._env.reset(int(seed))
        self._returns[:] = 0
        self._memory.restart()

    def collect(
        self, argument: tuple[tuple[int, ...], int, bool]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Play the steps of one rollout; return what was counted, and `seconds`."""
        (seed, row, teach), rows, obs = argument, self._rows, self._obs
        policy = unpack(self._shape, self._policies[0], (*seed, self._index))
        snapshot = unpack(self._shape, self._policies[row], (*seed, self._index, 1))
        counts = {"episode_reward": 0.0, "finished_cars": 0.0}
        began, cpu, steps, clock = time.perf_counter(), time.process_time(), len(rows["rewards"]), PartTimes()
        timed, parts = range(min(_TIMED_FIRST, steps - 1), steps, _TIMED_EVERY), PartTimes()
        for step in range(steps):
            rows["obs"][step] = obs
            clock.begin()
            masks = self._env.masks()
            self._memory.record(rows, step)
            actions, rows["log_probs"][step] = self._memory.decide(policy, snapshot, obs, masks)
            if masks is not None:
                rows["masks"][step] = masks
            if teach:
                rows["teacher"][step] = self._env.teach()
            clock.end("inference")
            self._env.time_parts(parts if step in timed else None)
            obs, rewards, terminated, truncated, final_obs = self._env.step(actions)
            clock.end("step")
            rows["actions"][step], rows["rewards"][step] = actions, rewards
            rows["terminated"][step], rows["truncated"][step] = terminated, truncated
            self._returns += rewards
            ended = terminated | truncated
            self._memory.end(ended)
            if ended.any():
                rows["final_obs"][step, ended] = final_obs
                learning = ended & self._learned
                counts["episode_reward"] += float(self._returns[learning].sum())
                counts["finished_cars"] += int(learning.sum())
                self._returns[ended] = 0
        rows["obs"][-1] = self._obs = obs
        total = time.perf_counter() - began
        whole, some = clock.seconds, parts.seconds  # of all steps, and of some of them
        share = whole["step"] / max(sum(some.values()), 1e-12)
        seconds = {name: part * share for name, part in some.items()}
        seconds["inference"] = seconds.get("inference", 0.0) + whole["inference"]
        rest = max(0.0, total - sum(seconds.values()))
        self.seconds = seconds | {"rest": rest, "total": total, "cpu": time.process_time() - cpu}
        return counts | self._env.take_counts(), self.seconds


class _Deciding:
    """Decides for the cars of all matches, and keeps what policies with memory know of each."""

    def __init__(self, settings: TrainingSettings, shape: PolicyShape) -> None:
        learned = learned_cars(settings)
        self._learned, self._older = np.flatnonzero(learned), np.flatnonzero(snapshot_cars(settings))
        self._action = shape.action
        self._remembers, self._length = shape.state_size > 0, settings.sequence_length
        self._memory = np.zeros((len(learned), shape.state_size), np.float32)
        self._fresh = np.ones(len(learned), bool)  # whether an episode begins

    def restart(self) -> None:
        """Begin episodes everywhere."""
        self._memory[:], self._fresh[:] = 0, True

    def end(self, ended: np.ndarray) -> None:
        """Begin episodes of some cars, `(cars,)` bool."""
        self._fresh = ended

    def record(self, rows: Mapping[str, np.ndarray], step: int) -> None:
        """Write what a step begins with, see `rollout_layout`."""
        if self._remembers:
            rows["starts"][step] = self._fresh
            if step % self._length == 0:
                rows["states"][step // self._length] = self._memory

    def decide(
        self, policy: NetworkPolicy, snapshot: NetworkPolicy, obs: np.ndarray, masks: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return actions `(cars[, k])` and their log-probabilities `(cars,)`, zeros for opponents' cars.

        `obs` are `(cars, size)` float32, `masks` `(cars, actions)` bool or None.
        """
        (size, dtype), before = self._action, self._memory
        actions, log_probs = np.zeros((len(obs), *size), dtype), np.zeros(len(obs), np.float32)
        self._memory = np.zeros_like(before)
        for one, cars in ((policy, self._learned), (snapshot, self._older)):
            if not len(cars):
                continue
            if self._remembers:
                one.memory, one.fresh = before[cars, None], self._fresh[cars, None]
            chosen, found = one.act_with_log_probs(
                obs[cars, None], None if masks is None else masks[cars, None]
            )
            actions[cars], log_probs[cars] = chosen[:, 0], found[:, 0]
            if one.memory is not None:
                self._memory[cars] = one.memory[:, 0]
        return actions, log_probs
