"""Plan a stress test: which matches are played for which cause, where, and against whom.

cause without packets -> training's matches in RocketSim, many at once    "simulator"
cause of packets      -> match server, a process for each bot            "server"
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import tomli_w

from rlgym_bridge.game import BLUE, HITBOX_NAMES, HITBOX_OF_BODY, ORANGE
from rlgym_bridge.live.play import DIALECT_VARIABLE
from rlgym_bridge.policy.files import read_files
from rlgym_bridge.policy.load_player import BUILT_IN, load_player
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.training.contests.entrant import Entrant
from rlgym_bridge.training.contests.kept_matches import MatchKey
from rlgym_bridge.training.contests.served_match import LOGS, ServedBot, ServedMatch
from rlgym_bridge.training.contests.simulated_jobs import SimulatedJob, cut_keys
from rlgym_bridge.training.contests.standings import is_swapped
from rlgym_bridge.training.contests.stress_causes import CONTROL, Cause

SIMULATOR: Final = "simulator"
SERVER: Final = "server"
DIALECTS: Final = "dialects"
"""Folder of what the bots are told of the server, in that of the results."""


@dataclass(frozen=True)
class Trial:
    """The matches of one cause.

    Attributes:
        cause: What differs for the tested bot.
        place: `SIMULATOR` or `SERVER`.
        opponent: Who plays against it, unimpaired.
        matches: How many.
    """

    cause: Cause
    place: str
    opponent: Entrant
    matches: int

    @property
    def keys(self) -> list[MatchKey]:
        """Names of its matches in the file of results."""
        versus = f"{self.place}: {self.opponent.name}"
        return [(self.cause.name, versus, number) for number in range(self.matches)]

    @property
    def baseline(self) -> "Trial":
        """The same matches without the cause."""
        return replace(self, cause=Cause(CONTROL))


@dataclass(frozen=True, kw_only=True)
class StressPlan:
    """A stress test.

    Attributes:
        tested: The bot that is tested.
        manifest: Of its policy.
        trials: Controls, and a trial for each cause.
        team_size: Cars a team.
        seconds: Game time of a match.
        seed: Of the first matches; those of all causes have the same ones.
        allow_modules: Modules that policy folders may import.
        out: Folder for results.
    """

    tested: Entrant
    manifest: Manifest
    trials: tuple[Trial, ...]
    team_size: int
    seconds: float
    seed: int
    allow_modules: tuple[str, ...]
    out: Path


def plan_trials(
    causes: Sequence[Cause],
    tested: Entrant,
    against: Entrant,
    chaser: Entrant,
    matches: tuple[int, int],
) -> tuple[Trial, ...]:
    """Return the trials of all causes, with the controls that they are compared with.

    Args:
        causes: What may differ.
        tested: The bot that is tested.
        against: Its opponent.
        chaser: Chaser, the opponent for what meets both where `against` is the bot itself.
        matches: Of each cause in the simulator, and over the server.
    """
    skips = {one.path: _pace_of(one)[0] for one in (tested, against, chaser)}
    trials: dict[tuple[str, str, str], Trial] = {}
    for cause in causes:
        opponent = chaser if cause.is_shared and against.path == tested.path else against
        simulated = not cause.needs_server and skips[tested.path] == skips[opponent.path]
        trial = Trial(cause, SIMULATOR if simulated else SERVER, opponent, matches[not simulated])
        for one in (trial.baseline, trial):
            trials.setdefault((one.cause.name, one.place, one.opponent.name), one)
    return tuple(trials.values())


def _pace_of(entrant: Entrant) -> tuple[int, int]:
    """Return the ticks that a decision lasts, and those after which it acts; 0 for a bot of others."""
    if entrant.path in BUILT_IN:
        spec = load_player(entrant.path)
        return spec.tick_skip or 0, spec.timing.action_delay
    if entrant.is_policy:
        manifest, _ = read_files(Path(entrant.path))
        return manifest.tick_skip, manifest.action_delay
    return 0, 0


# --- in the simulator ------------------------------------------------------------------------


def simulated_jobs(plan: StressPlan) -> Iterator[SimulatedJob]:
    """Yield the jobs of all trials in the simulator."""
    for trial in plan.trials:
        if trial.place != SIMULATOR:
            continue
        for keys, swapped, seed in cut_keys(trial.keys, plan.seed):
            yield _simulated_job(plan, trial, keys, swapped, seed)


def _simulated_job(
    plan: StressPlan, trial: Trial, keys: list[MatchKey], swapped: bool, seed: int
) -> SimulatedJob:
    cause, manifest = trial.cause, plan.manifest

    def ordered(ours: Any, theirs: Any) -> tuple[Any, Any]:
        return (theirs, ours) if swapped else (ours, theirs)

    # In a match rows are sent as much earlier as the policy was trained for, and act as much later as is.
    sooner = min(manifest.input_latency, manifest.action_delay)
    latency = cause.impairments.latency if cause.group == "latency" else manifest.input_latency
    _, other = _pace_of(trial.opponent)
    arguments = {
        "seconds": plan.seconds, "seed": seed, "team_size": plan.team_size, "simulator": cause.simulator,
        "allow_modules": plan.allow_modules,
        "selection": ordered(cause.selection or plan.tested.selection, trial.opponent.selection),
        "action_delay": ordered(manifest.action_delay - sooner + latency, other),
        "hitboxes": ordered(cause.hitbox, None),
    }  # fmt: skip
    return SimulatedJob(keys, ordered(plan.tested.path, trial.opponent.path), arguments)


# --- over the server -------------------------------------------------------------------------


def served_matches(plan: StressPlan) -> list[tuple[MatchKey, ServedMatch]]:
    """Return the matches of all trials over the match server."""
    matches = []
    for trial in plan.trials:
        if trial.place == SERVER:
            told, untold = _dialect_files(plan.out, trial.cause)
            body = next(
                (car for car, box in HITBOX_OF_BODY.items() if HITBOX_NAMES[box] == trial.cause.hitbox), None
            )
            ours = ServedBot(
                plan.tested.path, trial.cause.selection or plan.tested.selection,
                {DIALECT_VARIABLE: str(untold)}, body,
            )  # fmt: skip
            theirs = ServedBot(trial.opponent.path, trial.opponent.selection, {DIALECT_VARIABLE: str(told)})
            matches += [(key, _served_match(plan, trial, key, ours, theirs)) for key in trial.keys]
    return sorted(matches, key=lambda match: match[0][2])  # all causes are as far when only some are played


def _served_match(
    plan: StressPlan, trial: Trial, key: MatchKey, ours: ServedBot, theirs: ServedBot
) -> ServedMatch:
    number, swapped = key[2], is_swapped(key[2])
    place = f"{name_as_file(trial.cause.name)}-{trial.opponent.name}-{number}"
    impairments = replace(trial.cause.impairments, team=ORANGE if swapped else BLUE)
    return ServedMatch(
        bots=(theirs, ours) if swapped else (ours, theirs), team_size=plan.team_size, seconds=plan.seconds,
        seed=plan.seed + number, simulator=trial.cause.simulator, allow_modules=plan.allow_modules,
        log_dir=(plan.out / LOGS / place).resolve(), impairments=impairments,
        dialect=trial.cause.dialect,
    )  # fmt: skip


def _dialect_files(out: Path, cause: Cause) -> tuple[Path, Path]:
    """Write what the two bots are told of the server, and return the opponent's file and the tested bot's.

    The tested bot is told that its inputs act at once, but nothing of the cause.
    """
    at_once = {"timing": {"input_latency": 0}}
    told = {"dialect": dict(cause.dialect), **at_once}
    untold: dict[str, Any] = {"dialect": {}} | ({} if cause.group == "latency" else at_once)
    folder = (out / DIALECTS).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for whose, content in (("opponent", told), ("tested", untold)):
        files.append(folder / f"{name_as_file(cause.name)}-{whose}.toml")
        files[-1].write_text(tomli_w.dumps(content), encoding="utf-8")
    return files[0], files[1]


def name_as_file(name: str) -> str:
    """Return the name of a cause as part of a file's name."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
