"""Train a few iterations and tell how long each part takes; nothing is written into a run."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import Local
from rlgym_bridge.training.processes import count_usable_cores
from rlgym_bridge.training.runs.progress import COLLECTOR_PARTS, LEARNER_PARTS, IterationTimes, mean_times
from rlgym_bridge.training.runs.run import load_newest, with_batch_of_run
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from rlgym_bridge.user_input.arguments import count_of
from rlgym_bridge.user_input.checking import VAST


@dataclass(frozen=True)
class TrainingProfile:
    """The times of a few iterations."""

    about: str  # a line on what was trained
    iterations: int  # how many were timed
    collectors: int  # processes that played
    cores: int  # those that the process may use
    steps: float  # agent steps learned from, an iteration
    decisions: int  # of a collector, an iteration: of all its cars
    times: IterationTimes  # means over the iterations

    @property
    def steps_per_second(self) -> float:
        """Agent steps a second, of collecting and learning."""
        return self.steps / self.times.total

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` writes."""
        times = self.times
        return {
            "iterations": self.iterations, "collectors": self.collectors, "cores": self.cores,
            "agent_steps": self.steps, "decisions_of_a_collector": self.decisions,
            "agent_steps_per_second": self.steps_per_second, "seconds": times.total,
            "parts": {
                name: {"seconds": seconds, "share": seconds / times.total}
                for name, seconds in times.by_name().items()
            },
            "learner_parts": dict(times.learner_parts),
            "collectors_parts": [dict(seconds) for seconds in times.each],
            "slowest_collector_seconds": times.slowest, "collector_cpu_seconds": times.cpu,
            "held_back": times.name_bottleneck(),
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Return the lines of a table."""
        times = self.times
        mean = "mean of a collector" if self.collectors > 1 else "the collector"
        # In processor time: what others take of the cores meanwhile says nothing about the part.
        each = 1e6 * times.cpu / times.working / self.decisions
        learner = [(LEARNER_PARTS[name], seconds) for name, seconds in times.learner_parts.items()]
        learner += [("learning", times.learning), ("waiting for collectors", times.collecting)]
        processes = [
            f"  {name:<40}{times.total * works:>8.3f}{works:>8.1%}  {longest}"
            for name, works, longest in times.by_process()
        ]
        return [
            self.about,
            f"{self.iterations} iterations of {times.total:.2f} s after one to warm up: "
            f"{self.steps_per_second:,.0f} agent steps/s",
            "",
            f"{mean:<42}{'s':>8}{'share':>8}{'cpu us a decision':>20}",
            *(
                f"{self._line(COLLECTOR_PARTS[name], seconds)}{each * seconds:>20.2f}"
                for name, seconds in times.parts.items()
            ),
            self._line("waiting for the learner and each other", times.collector_waiting),
            "",
            f"{'the learner':<42}{'s':>8}{'share':>8}",
            *(self._line(name, seconds) for name, seconds in learner),
            "",
            *([f"{'each process':<42}{'s':>8}{'works':>8}  most of it", *processes, ""] if processes else []),
            f"held back: {times.name_bottleneck()}",
            f"cores: {self.cores} usable, {count_of(self.collectors, 'collector')}; a collector got "
            f"{times.cpu / times.working:.0%} of one",
        ]

    def _line(self, name: str, seconds: float) -> str:
        return f"  {name:<40}{seconds:>8.3f}{seconds / self.times.total:>8.1%}"


def profile_training(settings: TrainingSettings, iterations: int, resume: bool = False) -> TrainingProfile:
    """Train one iteration to warm up and some more that are timed; the run's folder is not written to.

    `resume` begins with the newest checkpoint in it: a policy that plays well meets other states than a new
    one. Errors are those of `rlgym_bridge.training.runs.run.run`.
    """
    settings = with_batch_of_run(settings) if resume else settings
    learner = PPOLearner(replace(settings, steps=VAST))  # no iteration is the last one
    if not resume:
        learner.start()
    elif load_newest(learner, Path(settings.out)) is None:
        raise SettingsError(f"there is no checkpoint in {settings.out} to profile: leave out --resume")
    every: list[IterationTimes] = []
    steps = 0
    with Local(learner) as engine:
        engine.restart()
        for number in range(iterations + 1):
            done = engine.iterate(learner.draw_older())
            learner.steps += done.steps
            if number and done.times is not None:
                every.append(done.times)
                steps += done.steps
        about = learner.about(engine.count)
        collectors = engine.count
    decisions = learner.settings.rollout_steps * learner.settings.cars_of_collector
    return TrainingProfile(
        about, iterations, collectors, count_usable_cores(), steps / iterations, decisions, mean_times(every)
    )
