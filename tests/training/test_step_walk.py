"""A training step's way, from the policy's choice to the line of progress, leads through few files."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final

import rlgym_bridge
import rlgym_bridge.training
from rlgym_bridge.training.collector import Collector
from rlgym_bridge.training.ppo import batch_of, improve
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.runs.progress import Progress
from rlgym_bridge.training.runs.run import Iteration, _iterate
from rlgym_bridge.training.settings import TrainingSettings
from tests.support.small_learners import empty_rollouts, learner_of

MOST_FILES: Final = 30
OURS: Final = tuple(str(Path(str(one.__file__)).parent) for one in (rlgym_bridge, rlgym_bridge.training))


class OneProcess:
    """An engine whose only collector plays in the learner's process, where a profiler sees it."""

    def __init__(self, learner: Any) -> None:
        self.learner, self.arrays = learner, empty_rollouts(learner)
        self.collector = Collector(learner.settings, learner.shape, 0, self.arrays)
        self.collector.restart(0)

    def iterate(self, older: int) -> Iteration:
        self.arrays["policies"][:] = self.learner.packed()
        counts, _ = self.collector.collect(((0, older), 1, False))
        batch = batch_of(self.learner, CollectedSteps.of(self.learner, self.arrays))
        seconds = {"collect_seconds": 1.0, "learn_seconds": 1.0}
        return Iteration(len(batch.rows), counts, improve(self.learner, batch) | seconds)


def test_a_training_step_passes_few_files(tmp_path: Path) -> None:
    learner, files = learner_of(tmp_path, False, components=TrainingSettings.components), set()
    learner.start()
    engine: Any = OneProcess(learner)

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            files.add(frame.f_code.co_filename)

    with Progress(learner.settings, 0, quiet=True) as progress:
        for profile in (None, note):  # the first iteration sets up what stays
            sys.setprofile(profile)
            try:
                _iterate(learner, engine, progress)
            finally:
                sys.setprofile(None)
    assert learner.steps > 0 and len(files) <= MOST_FILES, sorted(files)
