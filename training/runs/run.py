"""A training run from its beginning to its end, whatever plays and learns in it."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

from rlgym_bridge.policy.files import (
    CHECKPOINTS,
    LATEST,
    MANIFEST_FILE,
    checkpoints_to_try,
    newest_checkpoint,
    warn_once,
)
from rlgym_bridge.policy.run_modules import RUN_FILE, write_run_modules
from rlgym_bridge.sim.simulator import DeadMatches
from rlgym_bridge.sim.vector_env import MOST_DEAD
from rlgym_bridge.training.environment import LIVE
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.processes import Locked, StopAsked
from rlgym_bridge.training.runs.checkpoints import (
    Checkpoints,
    DamagedCheckpoint,
    has_checkpoint,
    settings_of_run,
)
from rlgym_bridge.training.runs.curve_files import import_wandb
from rlgym_bridge.training.runs.progress import IterationTimes, Progress, say_nothing_left
from rlgym_bridge.training.selfplay.opponents import newest_opponents
from rlgym_bridge.training.settings import (
    SettingsError,
    TrainingSettings,
    describe_changes,
    recorded_settings,
)

ReadAgain = Callable[[], TrainingSettings]
"""Reads the files of settings of a run as they are now; raises SettingsError."""


@dataclass(frozen=True)
class Iteration:
    """The result of one iteration of an engine."""

    steps: int  # agent steps learned from
    counts: Mapping[str, float]  # see `training.collector.Collectors.finish`
    stats: Mapping[str, float]  # by the names of `training.runs.progress.COLUMNS`
    times: IterationTimes | None = None  # how long its parts took, where that is known


class Engine(Protocol):
    """An engine that plays and learns, made of a learner; `count` is that of collectors or env runners."""

    count: int

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> Any:
        """End all that was begun."""

    def restart(self) -> None:
        """Begin new matches, where that makes a resumed run equal one that was never interrupted.

        Opponents that are training runs play their newest checkpoints from now on.
        """

    def renew(self, settings: TrainingSettings) -> None:
        """Go on with settings of which those in `environment.LIVE` alone are others; `restart` follows.

        Raises SettingsError where they do not fit; all stays as it was.
        """

    def iterate(self, older: int) -> Iteration:
        """Play one batch, in some matches against the snapshot number `older`, and learn from it."""
        ...

    def bring(self) -> None:
        """Write what was learned into the learner."""


@dataclass(frozen=True)
class Summary:
    """The outcome of a run."""

    steps: int  # agent steps trained, those before a resume included
    seconds: float  # wall-clock time of this call
    checkpoint: Path  # the newest one
    stopped: bool  # whether it was asked to stop before the last step
    last: Mapping[str, float]  # the last line of progress.csv; empty where nothing was left to train


def run(
    settings: TrainingSettings, engine_of: Callable[[PPOLearner], Engine], resume: bool = False,
    quiet: bool = False, change_simulator: bool = False, rewards: bool = False,
    read_again: ReadAgain | None = None,
) -> Summary:  # fmt: skip
    """Train until the last step, or until asked to stop.

    `engine_of` makes the engine. `resume` goes on from the newest checkpoint in its folder. Another simulator
    is refused then without `change_simulator`. `rewards` shows what each part of the reward gives.
    `read_again` reads the files of settings: what changes in them acts from the next checkpoint on.

    Raises:
        SettingsError: A setting, the folder or the checkpoint does not fit, or `resume` contradicts them.
        CollectorDied: Nobody plays any more.
        DeadMatches: Three matches have died inside the simulator.
        Diverged: A reward, a loss or a gradient is not finite. The last checkpoint stays.
        OSError: The last checkpoint cannot be written. Where an earlier one cannot, training goes on.
    """
    began = time.perf_counter()
    import_wandb(settings)
    checkpoints = Checkpoints(Path(settings.out), settings.keep_checkpoints)
    learner, newest, changed = _make_learner(settings, checkpoints, resume, change_simulator)
    if newest is not None and learner.steps >= settings.steps:  # progress.csv stays as it is
        say_nothing_left(settings, learner.steps, quiet)
        return Summary(learner.steps, time.perf_counter() - began, newest, False, {})
    row: Mapping[str, float] = {}
    with (
        Locked(Path(settings.out)),
        StopAsked() as stop,
        engine_of(learner) as engine,
        Progress(learner.settings, learner.steps, quiet, rewards) as progress,
        closing(ruler) if (ruler := _make_ruler(settings, learner)) else nullcontext(),
    ):
        write_run_modules(Path(settings.out), learner.modules)
        progress.begin(learner.about(engine.count), learner.explain_rounding(engine.count), changed)
        restart, dead, changes = True, 0.0, Changes(read_again, learner, engine, progress)
        while learner.steps < settings.steps and not stop:
            before = learner.steps
            # A resumed run has no matches under way, so all begin new ones at checkpoints, to be equal.
            if restart:
                engine.restart()
                progress.show_opponents(newest_opponents(settings))
            done, row = _iterate(learner, engine, progress)
            _show_rating(ruler, progress)
            dead = _count_dead(dead, done)
            restart = has_checkpoint(settings, before, learner.steps)
            if restart:
                engine.bring()
                try:
                    newest = _save(learner, checkpoints, progress, ruler)
                except OSError as error:  # what was learned is still in memory
                    progress.not_saved(error)
                changes.take()
        if newest is None or newest.name != str(learner.steps):
            engine.bring()
            newest = _save(learner, checkpoints, progress, ruler)
        stopped = learner.steps < settings.steps
        _show_rating(ruler, progress, wait=not stopped)
        progress.end(learner.steps, stopped)
    return Summary(learner.steps, time.perf_counter() - began, newest, stopped, row)


class Changes:
    """The settings that a person changes in their files, which `read` reads, while a run goes on."""

    def __init__(
        self, read: ReadAgain | None, learner: PPOLearner, engine: Engine, progress: Progress
    ) -> None:
        self._read, self._learner, self._engine, self._progress = read, learner, engine, progress
        self._seen, self._told = None if read is None else read(), ""

    def take(self) -> None:
        """Look at the files, and let what is new in them act from now on, where it may."""
        if self._read is None or self._seen is None:
            return
        learner, say, before = self._learner, self._progress.say, self._seen
        try:
            now = self._seen = self._read()
        except SettingsError as error:
            if str(error) != self._told:
                say(f"{error}; training goes on with the settings before")
            self._told = str(error)
            return
        if now == before:
            return
        changed = describe_changes(recorded_settings(before), now)
        for name in (one for one in changed if one not in LIVE):
            say(
                f"not changed: {name} {changed[name]}; it acts once the run is stopped and goes on (--resume)"
            )
        settings = replace(learner.settings, **{name: getattr(now, name) for name in LIVE})
        how = describe_changes(recorded_settings(learner.settings), settings)
        if not how:
            return
        try:
            self._engine.renew(settings)
        except SettingsError as error:
            say(f"not changed: {', '.join(how)}: {error}; training goes on with the settings before")
            return
        self._progress.change(learner.steps, how)
        if unread := learner.name_unread():
            say(unread)


def _check_places(out: Path) -> None:
    """Check before the first step that a run can write each of its files and folders."""
    above = next(path for path in (out, *out.absolute().parents) if os.path.lexists(path))
    folders = {above: "the run", out / CHECKPOINTS: "checkpoints", out / "tensorboard": "TensorBoard's files"}
    files = (RUN_FILE, "progress.csv", "changes.csv", "training.lock", f"{CHECKPOINTS}/{LATEST}")
    expected = {path: (True, f"a folder for {content}") for path, content in folders.items()}
    expected |= {out / name: (False, "a file, which training writes") for name in files}
    for path, (is_folder, words) in expected.items():
        if os.path.lexists(path) and not (path.is_dir() if is_folder else path.is_file()):
            kind = "folder" if path.is_dir() else "file" if path.is_file() else "link to nothing, or a device"
            raise SettingsError(
                f"{path} is a {kind}, expected {words}: move it away, or name another folder with --out"
            )


def _iterate(
    learner: PPOLearner, engine: Engine, progress: Progress
) -> tuple[Iteration, Mapping[str, float]]:
    """Play and learn one batch, count its steps and goals, report it; return it and its line of the table."""
    older = learner.draw_older()
    done = engine.iterate(older)
    goals = int(done.counts["goals_against_snapshot"]), int(done.counts["snapshot_goals"])
    learner.snapshots.count(older, *goals, seed=learner.steps)
    learner.steps += done.steps
    stats = {**done.stats, "elo": learner.snapshots.rating}
    return done, progress.report(learner.steps, done.steps, done.counts, stats, done.times)


def _count_dead(before: float, done: Iteration) -> float:
    """Return how many matches have died in all collectors together, of which few may."""
    matches = before + done.counts.get("dead_matches", 0.0)
    if matches >= MOST_DEAD:
        raise DeadMatches(
            f"{matches:.0f} matches have died inside the simulator, expected fewer than {MOST_DEAD}: the "
            "warnings above name them; report these with the settings of the run",
            [],
        )
    return matches


def _make_ruler(settings: TrainingSettings, learner: PPOLearner) -> Any:
    """Return the `Ruler` of a run; None where its settings want none."""
    if not settings.ruler_every:
        return None
    from rlgym_bridge.training.runs.ruler import Ruler  # it plays matches, and takes long to import

    return Ruler(settings, learner.modules)


def _show_rating(ruler: Any, progress: Progress, wait: bool = False) -> None:
    """Show a rating that has come, if there is a ruler, or wait for one that is under way."""
    found = None if ruler is None else ruler.take(wait)
    if found is not None:
        progress.show_rating(found)


def _save(learner: PPOLearner, checkpoints: Checkpoints, progress: Progress, ruler: Any) -> Path:
    """Write a checkpoint, say so, and let the ruler rate it, if there is one."""
    folder = learner.save(checkpoints)
    progress.say(f"checkpoint: {folder}")
    if ruler is not None:
        ruler.offer(folder)
    return folder


def _make_learner(
    settings: TrainingSettings, checkpoints: Checkpoints, resume: bool, change_simulator: bool
) -> tuple[PPOLearner, Path | None, Mapping[str, str]]:
    """Return the learner, the checkpoint that it continues from, and the settings that differ from then."""
    out = Path(settings.out)
    _check_places(out)
    if resume:
        learner = PPOLearner(with_batch_of_run(settings))
        if (found := load_newest(learner, out)) is not None:
            if "simulator" in found[1] and not change_simulator:
                raise SettingsError(
                    f"simulator was another when {found[0]} was trained: {found[1]['simulator']}. Leave "
                    f"simulator out of the settings to keep the run's; --simulator {settings.simulator} "
                    "changes it"
                )
            return learner, *found
        raise SettingsError(
            f"there is no checkpoint in {checkpoints.folder} to resume from: leave out --resume, or name the "
            "run with --out"
        )
    if (newest := newest_checkpoint(out)) is not None:
        raise SettingsError(
            f"{newest} is of an earlier run: --resume, with the same files of settings, goes on with it; "
            "--out names another folder"
        )
    if (out / MANIFEST_FILE).exists():
        raise SettingsError(
            f"out is {settings.out}, a policy folder, expected a folder for the run alone: commands that are "
            "given it would go on playing that policy; --start-from begins with one"
        )
    learner = PPOLearner(settings)
    learner.start()
    return learner, None, {}


def with_batch_of_run(settings: TrainingSettings) -> TrainingSettings:
    """Return settings with `matches` and `minibatch` of the run to resume, where they are 0."""
    found = settings_of_run(Path(settings.out))
    unset = [name for name in ("matches", "minibatch") if name in found and not getattr(settings, name)]
    return replace(settings, **{name: found[name] for name in unset})


def load_newest(learner: PPOLearner, run: Path) -> tuple[Path, dict[str, str]] | None:
    """Let a learner go on from the newest whole checkpoint of a run.

    Return it, and what differs from then; None where the run has none. Errors are those of `PPOLearner.load`.
    A warning in the log names a damaged one that is newer. Raises DamagedCheckpoint, which names the newest,
    where none is whole; ValueError where `latest` names no checkpoint.
    """
    checkpoints = Checkpoints(run, 1)
    if checkpoints.is_interrupted():
        with Locked(run):
            checkpoints.recover()
    damage: DamagedCheckpoint | None = None
    for folder in checkpoints_to_try(run):
        try:
            changed = learner.load(folder)
        except DamagedCheckpoint as error:
            damage = damage or error
            continue
        if damage is not None:
            warn_once(f"{damage}; training goes on from {folder}")
        return folder, changed
    if damage is not None:
        raise damage
    return None
