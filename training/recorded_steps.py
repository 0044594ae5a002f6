"""Record the gradient steps of a GPU as CUDA graphs: Python launches one graph, not some hundred kernels.

batch -> copied to where the graphs read it -> rows of a minibatch -> replayed step -> its statistics
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import torch
from torch import Tensor

WARM_UP: Final = 3
"""Steps of each kind that are not recorded: libraries set themselves up in them [PyTorch on CUDA graphs]."""

Step = Callable[[Tensor], Tensor]
"""Takes a gradient step with the rows `(n,)` int64 of a minibatch, and returns its statistics `(m,)`."""

Recorder = Callable[[Callable[[], Tensor]], tuple[Callable[[], None], Tensor]]
"""Records a function without running it; returns what runs it, and where its result is from then on."""


def record_graph(step: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
    """Record a function as a CUDA graph.

    Args:
        step: Computes on the GPU alone, and waits for nothing.

    Returns:
        What runs it once, and its result `(m,)`, which each run writes anew.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()
    return graph.replay, result


class RecordedSteps:
    """Takes gradient steps: the first ones of each kind operation by operation, all others as one graph.

    Graphs read and write fixed places. So every batch has to lie where the first one lay, see `keep`, and
    networks and optimiser must not be given other tensors after the first step.

    Args:
        record: Records a step.
    """

    def __init__(self, record: Recorder = record_graph) -> None:
        self._record = record
        self._kept: list[Tensor] = []
        self._plain: Counter[Hashable] = Counter()  # steps that were not recorded
        self._graphs: dict[Hashable, tuple[Tensor, Callable[[], None], Tensor]] = {}

    def keep(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the places of a batch's tensors, with these numbers in them.

        Args:
            tensors: Of any shapes. With shapes unlike the last ones, all steps are recorded anew.
        """
        if [one.shape for one in tensors] == [one.shape for one in self._kept]:
            for place, tensor in zip(self._kept, tensors, strict=True):
                place.copy_(tensor)
        else:
            self._kept = list(tensors)
            self._graphs.clear()
            self._plain.clear()
        return self._kept

    def take(self, step: Step, rows: Tensor, kind: Hashable) -> Tensor:
        """Take a gradient step.

        Args:
            step: Takes it; reads the batch where `keep` put it.
            rows: `(n,)` int64, of the minibatch.
            kind: What else decides which operations the step has.

        Returns:
            `(m,)` float32, what `step` returns.
        """
        key = (len(rows), kind)
        if key not in self._graphs:
            if self._plain[key] < WARM_UP:
                self._plain[key] += 1
                return _take_aside(step, rows)
            own = rows.clone()
            self._graphs[key] = (own, *self._record(lambda: step(own)))
        own, replay, found = self._graphs[key]
        own.copy_(rows)
        replay()
        return found.clone()  # the next run writes over it


def _take_aside(step: Step, rows: Tensor) -> Tensor:
    """Take a step on a stream of its own, as steps are recorded on one."""
    if not rows.is_cuda:
        return step(rows)
    here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
    aside.wait_stream(here)
    with torch.cuda.stream(aside):
        found = step(rows)
    here.wait_stream(aside)
    return found
