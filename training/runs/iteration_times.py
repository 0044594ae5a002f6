"""The time that the parts of an iteration took, and what holds it back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

COLLECTOR_PARTS: Final = {
    "physics": "RocketSim's physics",
    "reading": "reading its state",
    "environment": "your own environment",
    "observing": "observations, rewards and ends",
    "episodes": "new episodes",
    "inference": "inference",
    "rest": "the rest",
}
"""Parts of a collector's work, and what messages call them."""

LEARNER_PARTS: Final = {
    "taking": "taking over what was played",
    "judging": "values, advantages and probabilities",
    "improving": "gradient steps",
}
"""Parts of the learner's work, and what messages call them."""

_STARVED: Final = 0.9  # share of a core below which collectors are said to get too little
_UNEVEN: Final = 1.2  # times the mean, from which on the slowest collector is named


@dataclass(frozen=True)
class IterationTimes:
    """Wall-clock seconds of an iteration: of its collectors, which are alike, and of its learner.

    Collectors wait while the learner works, and the learner while they do; where both overlap, only for the
    rest of the other's work.

    Attributes:
        collecting: The learner waits: from its question to the last collector's answer.
        learning: From there to the improved policy.
        parts: Of a collector's work, by the names of `COLLECTOR_PARTS`: means over the collectors.
        slowest: Work of the collector that took longest.
        cpu: Processor time of a collector's work: the mean over the collectors.
        overlap: Whether collectors play on while the learner works.
        learner_parts: Of the learner's work, by the names of `LEARNER_PARTS`; empty where they are not known.
        each: Of each collector, its parts and its `total`; empty where they are not known.
    """

    collecting: float
    learning: float
    parts: Mapping[str, float]
    slowest: float
    cpu: float
    overlap: bool = False
    learner_parts: Mapping[str, float] = field(default_factory=dict)
    each: Sequence[Mapping[str, float]] = ()

    @classmethod
    def of(
        cls, collecting: float, learning: float, seconds: Sequence[Mapping[str, float]],
        overlap: bool = False, learner_parts: Mapping[str, float] | None = None,
    ) -> "IterationTimes":  # fmt: skip
        """Return the times of an iteration from the seconds of each collector, see `Collectors.seconds`."""
        count = len(seconds)
        parts = {
            name: sum(each.get(name, 0.0) for each in seconds) / count
            for name in COLLECTOR_PARTS
            if any(name in each for each in seconds)
        }
        slowest = max(each["total"] for each in seconds)
        cpu = sum(each["cpu"] for each in seconds) / count
        return cls(collecting, learning, parts, slowest, cpu, overlap, learner_parts or {}, tuple(seconds))

    @property
    def total(self) -> float:
        """The whole iteration."""
        return self.collecting + self.learning

    @property
    def working(self) -> float:
        """The work of a collector, in the mean."""
        return sum(self.parts.values())

    @property
    def collector_waiting(self) -> float:
        """The time in which a collector does not work: for the learner, and for slower collectors."""
        return max(0.0, self.total - self.working)

    @property
    def waiting_for_learner(self) -> float:
        """The time in which all collectors wait for the learner."""
        return max(0.0, self.total - self.slowest) if self.overlap else self.learning

    def by_name(self) -> dict[str, float]:
        """Return all parts by name, those of the collectors first."""
        return {
            **self.parts,
            "collector_waiting": self.collector_waiting,
            "learning": self.learning,
            "learner_waiting": self.collecting,
        }

    def describe(self) -> list[tuple[str, str]]:
        """Return titles and texts of a display: shares of the time of collectors and of the learner."""
        shares = {name: seconds / self.total for name, seconds in self.parts.items()}
        shares["waiting"] = self.collector_waiting / self.total
        collectors = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        waiting = self.collecting / self.total
        return [
            ("time of collectors", collectors),
            ("time of the learner", f"learning {1 - waiting:.0%}, waiting {waiting:.0%}"),
            ("held back", self.name_bottleneck()),
        ]

    def by_process(self) -> list[tuple[str, float, str]]:
        """Return of each process its name, the share of the time in which it works, and its longest part.

        The list is empty where the times of single collectors are not known.
        """
        rows = []
        for number, seconds in enumerate(self.each):
            parts = {name: seconds[name] for name in COLLECTOR_PARTS if name in seconds}
            share, part = _largest(parts)
            works = seconds["total"] / self.total
            rows.append((f"collector {number}", works, f"{share:.0%} {COLLECTOR_PARTS[part]}"))
        if self.learner_parts:
            share, part = _largest(self.learner_parts)
            works = self.learning / self.total
            rows.append(("learner", works, f"{share:.0%} {LEARNER_PARTS[part]}"))
        return rows

    def name_bottleneck(self) -> str:
        """Say in one line what holds the run back."""
        waiting = self.waiting_for_learner
        if waiting > self.collecting:
            line = f"collectors wait {waiting / self.total:.0%} of the time for the learner"
            if self.learner_parts:
                share, part = _largest(self.learner_parts)
                line += f", which spends {share:.0%} of its work on {LEARNER_PARTS[part]}"
        else:
            share, part = _largest(self.parts)
            line = (
                f"the learner waits {self.collecting / self.total:.0%} of the time for collectors, which "
                f"spend {share:.0%} of theirs on {COLLECTOR_PARTS[part]}"
            )
        if self.cpu < _STARVED * self.working:
            line += f"; a collector gets {self.cpu / self.working:.0%} of a core"
        if self.slowest > _UNEVEN * self.working:
            line += f"; the slowest collector takes {self.slowest / self.working:.1f} times the mean"
        return line


def _largest(parts: Mapping[str, float]) -> tuple[float, str]:
    """Return the share of the largest part in the sum of all, and its name."""
    name = max(parts, key=lambda one: parts[one])
    return parts[name] / sum(parts.values()), name


def mean_times(every: Sequence[IterationTimes]) -> IterationTimes:
    """Return the means over some iterations, one or more."""
    parts, learner_parts = (
        _means([getattr(times, name) for times in every]) for name in ("parts", "learner_parts")
    )
    each = [_means(seconds) for seconds in zip(*(times.each for times in every), strict=True)]
    collecting, learning, slowest, cpu = (
        sum(getattr(times, name) for times in every) / len(every)
        for name in ("collecting", "learning", "slowest", "cpu")
    )
    overlap = every[0].overlap
    return IterationTimes(collecting, learning, parts, slowest, cpu, overlap, learner_parts, each)


def _means(every: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each number over some mappings with equal keys."""
    return {name: sum(one[name] for one in every) / len(every) for name in every[0]}
