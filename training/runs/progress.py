"""Show and log the progress of a run, and what holds it back: terminal, `progress.csv` and TensorBoard."""

import csv
import math
import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from rich.live import Live
from rich.table import Table

from rlgym_bridge.sim.play_statistics import means_of
from rlgym_bridge.training.runs import curve_files
from rlgym_bridge.training.selfplay.matches import goals_label
from rlgym_bridge.training.settings import TrainingSettings
from rlgym_bridge.user_input.plain_console import PlainConsole

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
    """

    collecting: float  # the learner waits: from its question to the last collector's answer
    learning: float  # from there to the improved policy
    parts: Mapping[str, float]  # means over the collectors, by the names of `COLLECTOR_PARTS`
    slowest: float  # work of the collector that took longest
    cpu: float  # processor time of a collector's work: the mean over the collectors
    overlap: bool = False  # whether collectors play on while the learner works
    learner_parts: Mapping[str, float] = field(default_factory=dict)  # by name, or empty
    each: Sequence[Mapping[str, float]] = ()  # of each collector its parts and `total`, or empty

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
        """Return of each process, if known, its name, its share of time at work, and its longest part."""
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


_LINE_SECONDS: Final = 10.0  # between lines where there is no terminal
_SHARES: Final = "reward_share/"  # columns of the parts of the reward
_LIVE_ITERATIONS: Final = 10  # that a terminal's table shows the means of

COLUMNS: Final = (
    "steps", "seconds", "steps_per_second", "touches_per_car_minute", "goals_per_minute", "episode_reward",
    "episodes", "elo", "entropy", "uniform_divergence", "policy_loss", "value_loss", "kl",
    "clip_fraction", "explained_variance", "policy_gradient", "critic_gradient", "learning_rate",
    "collect_seconds", "learn_seconds",
)  # fmt: skip
"""Of progress.csv, one line an iteration. Times are wall-clock seconds, minutes are game time; `seconds`
counts from the start or the resume. `episode_reward` is the mean over the cars that finished an episode,
nan where none did. Touches are those of all cars, snapshots included. `elo` is that of
`selfplay/snapshots.py`. `uniform_divergence` is KL(uniform || policy) in nats: it grows as unlikely
actions are lost, which the entropy does not show. Behind these each opponent has a column
`opponent_goal_share/NAME`: the policy's share of the goals in matches against it, nan where none fell.
Then come those of `play_statistics.means_of`, and what else the learner found; a column begins with the
first line that has it. In NAME an underscore stands for what a tag of TensorBoard cannot have."""

_SHOWN: Final = {
    "steps": "agent steps", "steps_per_second": "agent steps/s",
    "touches_per_car_minute": "touches/car-minute", "goals_per_minute": "goals/minute",
    "episode_reward": "episode reward", "elo": "Elo (untrained: 0)", "entropy": "entropy, nats",
}  # fmt: skip


class Progress:
    """Takes what each iteration did, and shows and keeps it; a context manager.

    `steps` are agent steps trained already. `quiet` shows nothing; files are written all the same. `rewards`
    shows what each part of the reward gives, too.
    """

    def __init__(self, settings: TrainingSettings, steps: int, quiet: bool, rewards: bool = False) -> None:
        self._settings, self._first, self._shows_rewards = settings, steps, rewards
        tags = map(_tag, settings.opponents)
        self._opponents = {
            f"opponent_goal_share/{tag}": one for tag, one in zip(tags, settings.opponents, strict=True)
        }
        self._shown = _SHOWN | {name: f"goal share against {one}" for name, one in self._opponents.items()}
        self._met: dict[str, str] = {}  # of opponents that are runs, the checkpoints that play
        out = Path(settings.out)
        out.mkdir(parents=True, exist_ok=True)
        self._path, self._failed = out / "progress.csv", False  # to write its latest line
        self._open_table(steps, tuple(self._opponents))
        curve_files.forget_changes(out, steps)
        self._board = curve_files.Board(out / "tensorboard", steps, self._tell)
        self._console = PlainConsole(file=sys.stderr, quiet=quiet, markup=False)
        self._wandb = (
            curve_files.WandbRun(settings, steps, quiet, self._console.print) if settings.wandb else None
        )
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None
        self._began = time.perf_counter()
        self._last = self._next_line = self._began
        self._recent: list[dict[str, float]] = []  # rows since the last line shown
        self._told_bottleneck = False
        self._times: list[IterationTimes] = []  # of the same iterations, where they are known

    def begin(self, about: str, rounding: str, changed: Mapping[str, str]) -> None:
        """Say what is trained, how its steps are rounded ("" if not), and how settings changed."""
        for line in filter(None, (about, rounding)):
            self.say(line)
        total, out = self._settings.steps, self._settings.out
        if self._first:
            self.say(f"{out}: going on from {self._first:,} of {total:,} steps")
        self.change(self._first, changed)

    def change(self, steps: int, changed: Mapping[str, str]) -> None:
        """Say and keep which settings are others from some agent steps on, and how."""
        for name, change in changed.items():
            self.say(f"changed: {name} {change}")
        if not changed:
            return
        text = ", ".join(f"{name} {change}" for name, change in changed.items())
        self._board.note("changed", text, steps)
        try:
            curve_files.add_changes(self._path.parent, steps, changed)
        except OSError as error:
            self._tell(self._path.with_name(curve_files.CHANGES_FILE), error)

    def say(self, line: str) -> None:
        """Print a line."""
        self._console.print(line, soft_wrap=True)

    def end(self, steps: int, stopped: bool) -> None:
        """Say how it ended."""
        total = f"{self._settings.steps:,}"
        if stopped:
            self._console.print(f"stopped after {steps:,} of {total} steps; --resume goes on")
        else:
            self._console.print(f"trained {steps:,} steps")

    def report(
        self, steps: int, new: int, counts: Mapping[str, float], stats: Mapping[str, float],
        times: IterationTimes | None = None,
    ) -> dict[str, float]:  # fmt: skip
        """Take in an iteration of `new` steps, and return its line of the table, see `COLUMNS`.

        `steps` are agent steps so far, `counts` of the collectors, `stats` what the learner found.
        """
        now = time.perf_counter()
        minutes = counts.get("car_minutes", 0.0)
        known: dict[str, float] = {
            "steps": steps,
            "seconds": now - self._began,
            "steps_per_second": new / (now - self._last),
            "touches_per_car_minute": _share(counts.get("touches", 0.0), minutes),
            "goals_per_minute": _share(
                counts.get("goals", 0.0), counts.get("game_minutes", minutes / self._settings.cars)
            ),
            "episode_reward": _share(counts["episode_reward"], counts["finished_cars"]),
            "episodes": counts.get("episodes", 0.0),
            **{name: _goal_share(counts, goals_label(one)) for name, one in self._opponents.items()},
            **stats,
        }
        self._last = now
        row = {name: known.pop(name) for name in (*COLUMNS, *self._opponents)}
        row |= {_tag(name): value for name, value in {**means_of(counts), **known}.items()}
        self._widen_table(row, steps - new)
        values = (row.get(name, math.nan) for name in self._columns)
        self._add_line([f"{value:.7g}" if isinstance(value, float) else value for value in values])
        scalars = {name: value for name, value in row.items() if name != "steps"}
        if times is not None:
            for name, seconds in times.by_name().items():
                scalars[f"time_share/{name}"] = seconds / times.total
                scalars[f"time_seconds/{name}"] = seconds
            self._times.append(times)
        self._add_curves(scalars, steps)
        self._recent.append(row)
        self._show(now)
        return row

    def show_rating(self, found: tuple[int, Mapping[str, float]] | str) -> None:
        """Show and log a checkpoint's rating against the ruler: agent steps and numbers, or why not."""
        if isinstance(found, str):
            self.say(found)
            return
        steps, row = found
        bounds = f"{row['low']:.0f} to {row['high']:.0f}"
        self._console.print(f"rating of {steps:,}: {row['rating']:.0f} ({bounds}; Chaser has 1000)")
        self._add_curves({f"ruler/{name}": value for name, value in row.items()}, steps)

    def _add_curves(self, scalars: Mapping[str, float], steps: int) -> None:
        """Add numbers by name to the curves of TensorBoard, and to those of wandb if there are any."""
        self._board.add(scalars, steps)
        if self._wandb is not None:
            self._wandb.add(scalars, steps)

    def not_saved(self, error: OSError) -> None:
        """Say that a checkpoint cannot be written, and that training goes on."""
        self.say(
            f"{error.filename or 'a checkpoint'} cannot be written: {error.strerror or error}; training goes "
            "on, and tries again at the next checkpoint"
        )

    def show_opponents(self, newest: Mapping[str, str]) -> None:
        """Say which checkpoints of opponents play from now on, where they are others than before."""
        for name, checkpoint in newest.items():
            if self._met.get(name) != checkpoint:
                self.say(f"opponent {name}: its checkpoint {checkpoint}")
        self._met = dict(newest)

    def _show(self, now: float) -> None:
        """Show means over the latest iterations: one alone has few touches and goals."""
        if self._live is not None:
            self._live.update(self._table(self._means()), refresh=True)
            self._recent, self._times = self._recent[-_LIVE_ITERATIONS:], self._times[-_LIVE_ITERATIONS:]
        elif now >= self._next_line:
            self._next_line = now + _LINE_SECONDS
            self.say(self._line(self._means()))
            rewards = ", ".join(f"{name} {text}" for name, text in self._rewards(self._means()))
            if rewards:
                self.say(f"rewards a step: {rewards}")
            if self._times and not self._told_bottleneck:
                self.say(f"held back: {mean_times(self._times).name_bottleneck()}")
                self._told_bottleneck = True
            self._recent.clear()
            self._times.clear()

    def _means(self) -> dict[str, float]:
        """Return the latest row with the means of the recent ones in place of its numbers."""
        latest = dict(self._recent[-1])
        for name in latest.keys() - {"steps", "seconds", "elo"}:
            known = [row[name] for row in self._recent if not math.isnan(row.get(name, math.nan))]
            latest[name] = sum(known) / len(known) if known else math.nan
        return latest

    def _line(self, row: Mapping[str, float]) -> str:
        """Return what people need of a row, on a line that fits; the rest is in `progress.csv`."""
        rated = f"Elo {_short(row['elo'])}, "
        if not self._settings.snapshot_share:  # then the rating stands still
            most = max(
                self._opponents,
                key=lambda name: self._settings.opponents[self._opponents[name]],
                default=None,
            )
            rated = "" if most is None else f"{self._shown[most]} {_short(row[most])}, "
        total = max(row["steps"], self._settings.steps)  # the last iteration is whole
        return (
            f"{row['steps']:,} of {total:,} steps, {row['steps_per_second']:,.0f}/s, "
            f"touches/car-min {_short(row['touches_per_car_minute'])}, "
            f"goals/min {_short(row['goals_per_minute'])}, {rated}{self._time_left(row)} left"
        )

    def _time_left(self, row: Mapping[str, float]) -> str:
        """Return how long the rest of the run takes, as hours, minutes and seconds."""
        left = (self._settings.steps - row["steps"]) / max(row["steps"] - self._first, 1) * row["seconds"]
        minutes, seconds = divmod(int(max(left, 0)), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"

    def _table(self, row: Mapping[str, float]) -> Table:
        table = Table(show_header=False, box=None)
        for name, title in self._shown.items():
            table.add_row(title, _short(row[name]))
        if self._times:
            for title, text in mean_times(self._times).describe():
                table.add_row(title, text)
        else:
            share = row["learn_seconds"] / (row["learn_seconds"] + row["collect_seconds"])
            table.add_row("time for learning", f"{share:.0%}")
        for name, text in self._rewards(row):
            table.add_row(f"reward {name}, a step", text)
        table.add_row("left", self._time_left(row))
        return table

    def _rewards(self, row: Mapping[str, float]) -> list[tuple[str, str]]:
        """Return name and text of each part of the reward, the largest first; [] where nobody asked."""
        shares = {name: row[name] for name in row if name.startswith(_SHARES)} if self._shows_rewards else {}
        found = []
        for column in sorted(shares, key=lambda one: -shares[one]):
            name = column.removeprefix(_SHARES)
            mean, raw = row[f"reward/{name}"], row[f"reward_raw/{name}"]
            share = "-" if math.isnan(shares[column]) else f"{shares[column]:.0%}"  # all parts give 0
            found.append((name, f"{mean:.4g} ({share}; unweighted {raw:.4g})"))
        return found

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        self._board.close()
        if self._wandb is not None:
            self._wandb.close()
        with suppress(OSError):  # `_add_line` has told it
            self._file.close()

    def _open_table(self, steps: int, more: Sequence[str]) -> None:
        """Open progress.csv with more columns; lines after so many steps are taken out, see `mend_table`."""
        self._columns = curve_files.mend_table(self._path, COLUMNS, steps, more)
        self._file = self._path.open("a", newline="", encoding="utf-8", buffering=1)
        self._csv = csv.writer(self._file)
        if not self._path.stat().st_size:
            self._csv.writerow(self._columns)

    def _widen_table(self, row: Mapping[str, float], steps: int) -> None:
        """Add the columns of a row that the table lacks; its last line has so many steps."""
        if all(name in self._columns for name in row):
            return
        try:
            self._file.close()
            self._open_table(steps, [name for name in row if name not in COLUMNS])
        except (OSError, ValueError) as error:
            self._miss_line(error)

    def _add_line(self, cells: Sequence[Any]) -> None:
        """Add a line to progress.csv; of a disk that is full, only the first failure is told."""
        try:
            self._csv.writerow(cells)
            self._failed = False
        except (OSError, ValueError) as error:  # ValueError: it is closed, since it could not be widened
            self._miss_line(error)

    def _miss_line(self, error: OSError | ValueError) -> None:
        """Say that progress.csv lacks a line, unless it lacked the one before, too."""
        if not self._failed:
            self._tell(self._path, error)
        self._failed = True

    def _tell(self, path: Path, error: OSError | ValueError) -> None:
        """Say that a file for people cannot be written, which ends no training."""
        why = getattr(error, "strerror", None) or error
        self.say(f"{path} cannot be written: {why}; training goes on, and the file lacks these steps")


def say_nothing_left(settings: TrainingSettings, steps: int, quiet: bool) -> None:
    """Say that a run that was to go on has had all its steps."""
    PlainConsole(file=sys.stderr, quiet=quiet, markup=False).print(
        f"{settings.out} has {steps:,} of {settings.steps:,} steps: nothing is left; --steps N asks for more",
        soft_wrap=True,
    )  # fmt: skip


def _tag(name: str) -> str:
    """Return a name as TensorBoard takes it for a tag."""
    return re.sub(r"[^-/\w.]", "_", name)


def _share(amount: float, of: float) -> float:
    return amount / of if of else float("nan")


def _goal_share(counts: Mapping[str, float], opponent: str) -> float:
    """Return the policy's share of the goals in matches against an opponent; nan where none fell."""
    ours, theirs = (counts.get(name, 0.0) for name in (f"goals_against_{opponent}", f"{opponent}_goals"))
    return _share(ours, ours + theirs)


def _short(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if math.isnan(value) else f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"
