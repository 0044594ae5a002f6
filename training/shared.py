"""One block of shared memory between learner and collectors, with a few named arrays in it."""

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Final

import numpy as np

from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.training.settings import SettingsError, TrainingSettings

Layout = Mapping[str, tuple[tuple[int, ...], str]]
"""Shape and dtype of each array, by name."""

_LINE: Final = 64  # bytes of a cache line, which no two arrays share


class SharedArrays:
    """Named arrays in shared memory.

    Args:
        layout: Their shapes and dtypes; the same on both sides.
        name: Of a block that is there already; None makes one, of zeros.

    Attributes:
        name: To be handed to other processes.
    """

    def __init__(self, layout: Layout, name: str | None = None) -> None:
        sizes = [np.dtype(dtype).itemsize * math.prod(shape) for shape, dtype in layout.values()]
        starts = np.cumsum([0, *(-(-size // _LINE) * _LINE for size in sizes)])
        self._owner = name is None
        self._memory = SharedMemory(name, create=self._owner, size=int(starts[-1]))
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
                raise SettingsError(
                    f"{starts[-1] / 1e6:,.0f} MB of shared memory cannot be had ({error.strerror}): make "
                    "/dev/shm larger, or set fewer matches, rollout_steps or collectors"
                ) from error
        self.name = self._memory.name
        self._arrays: dict[str, np.ndarray] = {
            key: np.ndarray(shape, dtype, self._memory.buf, int(start))
            for (key, (shape, dtype)), start in zip(layout.items(), starts, strict=False)
        }

    def __getitem__(self, key: str) -> np.ndarray:
        """Return one of the arrays, a view of the shared memory."""
        return self._arrays[key]

    def close(self) -> None:
        """Let go of the memory; views of it must not be used any more. Its maker removes it."""
        self._arrays.clear()
        with suppress(BufferError):  # a view held somewhere else goes with the process
            self._memory.close()
        if self._owner:
            self._memory.unlink()


def rollout_layout(settings: TrainingSettings, collectors: int, policy: PolicyShape) -> Layout:
    """Return what is shared: policies one way, one iteration's rollouts the other.

    Args:
        settings: Of the run.
        collectors: Processes; each writes its own row of the leading axis.
        policy: Shape of the policies.
    """
    steps, every = (collectors, settings.rollout_steps), settings.cars_of_collector
    cars = (*steps, every)  # of all matches, one after another
    action, dtype = policy.action
    return {
        # Row 0 is the policy that learns, the others are snapshots.
        "policies": ((1 + settings.snapshots, policy.numbers), "float32"),
        # One step more than the rest: what the next rollout begins with.
        "obs": (
            (collectors, settings.rollout_steps + 1, every, policy.obs_size),
            "float32",
        ),
        "actions": ((*cars, *action), dtype),
        "log_probs": (cars, "float32"),  # of the actions of cars that the policy plays
        "rewards": (cars, "float32"),
        "terminated": (cars, "bool"),
        "truncated": (cars, "bool"),
        **({"masks": ((*cars, policy.outputs), "bool")} if policy.masked else {}),
        **(_memory_layout(settings, collectors, policy) if policy.state_size else {}),
        # Written only while the teacher's weight is above 0.
        **({"teacher": ((*cars, policy.outputs), "float32")} if settings.teacher else {}),
        # Written only where an episode was truncated.
        "final_obs": ((*cars, policy.obs_size), "float32"),
    }


def _memory_layout(settings: TrainingSettings, collectors: int, policy: PolicyShape) -> Layout:
    """Return what a policy with memory shares beside the rest."""
    steps, cars = settings.rollout_steps, settings.cars_of_collector
    return {
        "starts": ((collectors, steps, cars), "bool"),  # whether an episode begins with the step
        # The memory before each piece of `sequence_length` steps.
        "states": ((collectors, steps // settings.sequence_length, cars, policy.state_size), "float32"),
    }
