"""List what may hurt a bot in the real game, and plan the matches that are played with each cause.

cause without packets -> training's matches in RocketSim, many at once    "simulator"
cause of packets      -> match server, a process for each bot            "server"
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import tomli_w

from rlgym_bridge.game import BLUE, HITBOX_NAMES, HITBOX_OF_BODY, ORANGE
from rlgym_bridge.live.play import DIALECT_VARIABLE
from rlgym_bridge.policy.files import read_files
from rlgym_bridge.policy.load_player import BUILT_IN, load_player
from rlgym_bridge.policy.manifest import SELECTIONS, Manifest
from rlgym_bridge.protocol_variant import POINTS
from rlgym_bridge.server import Impairments
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, SIMULATORS, is_installed
from rlgym_bridge.training.contests.entrant import Entrant
from rlgym_bridge.training.contests.kept_matches import MatchKey, SimulatedJob, cut_keys, is_swapped
from rlgym_bridge.training.contests.served_match import LOGS, ServedBot, ServedMatch

GROUPS: Final[Mapping[str, str]] = {
    "latency": "the bot's inputs act 1 to 4 ticks later",
    "jitter": "each input acts up to 2 or 4 ticks later, drawn anew for each",
    "loss": "1, 5 or 10 % of the packets never reach the bot",
    "burst": "packets reach the bot 2 or 4 at a time",
    "fps": "the bot gets packets of 60 or 30 frames a second",
    "selection": "the bot samples its actions, or takes the most likely ones, other than its policy says",
    "hitbox": "the bot's car has another hitbox",
    "dialect": "packets differ on a point that the protocol's documents leave open; the opponent is told",
    "physics": "both play in the other simulator, against Chaser",
}
"""Groups of causes, with what each does."""

_LATENCIES: Final = (0, 1, 2, 3, 4)
_SPREADS: Final = (2, 4)
_LOSSES: Final = (1, 5, 10)
_BURSTS: Final = (2, 4)
_FRAME_RATES: Final = (60, 30)


@dataclass(frozen=True)
class Cause:
    """Something that differs from training for the tested bot.

    Attributes:
        name: In tables.
        group: One of `GROUPS`; empty for the control, in which nothing differs.
        impairments: Between the game and the tested bot.
        selection: How it chooses actions; None for its own way.
        hitbox: Of its car; None for its own.
        dialect: Points of the server's dialect.
        simulator: What both play in.
        is_shared: It meets the opponent, too, so that matches without it are played for comparison.
    """

    name: str
    group: str = ""
    impairments: Impairments = field(default_factory=Impairments)
    selection: str | None = None
    hitbox: str | None = None
    dialect: Mapping[str, str] = field(default_factory=dict, hash=False)
    simulator: str = DEFAULT_SIMULATOR
    is_shared: bool = False

    @property
    def needs_server(self) -> bool:
        """Tell whether only the match server can play it: it acts on packets."""
        return bool(self.dialect or self.impairments.latency_spread or not self.impairments.sends_all)


CONTROL: Final = "nothing"
"""Name of the cause in which nothing differs."""


def list_causes(manifest: Manifest, selection: str, groups: Sequence[str]) -> list[Cause]:
    """Return the causes of some groups for a policy.

    Args:
        manifest: The policy's.
        selection: How it chooses its actions where nothing else is said.
        groups: Names of `GROUPS`.
    """
    causes = [
        Cause(_ticks_of(latency), "latency", Impairments(latency=latency))
        for latency in _LATENCIES if latency != manifest.input_latency
    ]  # fmt: skip
    causes += [
        Cause(f"jitter of 0 to {spread} ticks", "jitter", Impairments(latency_spread=spread))
        for spread in _SPREADS
    ]
    causes += [Cause(f"{share} % of packets lost", "loss", Impairments(drop=share)) for share in _LOSSES]
    causes += [Cause(f"bursts of {size} packets", "burst", Impairments(burst=size)) for size in _BURSTS]
    causes += [Cause(f"{rate} frames a second", "fps", Impairments(fps=rate)) for rate in _FRAME_RATES]
    (other,) = (one for one in SELECTIONS if one != selection)
    named = {"sample": "sampled actions", "argmax": "most likely actions"}
    causes.append(Cause(named[other], "selection", selection=other))
    causes += [
        Cause(f"hitbox {name}", "hitbox", hitbox=name) for name in HITBOX_NAMES if name != manifest.hitbox
    ]
    causes += [
        Cause(f"{point}={value}", "dialect", dialect={point: value})
        for point, its in POINTS.items() for value in its.values[1:]
    ]  # fmt: skip
    others = [name for name in SIMULATORS if name != DEFAULT_SIMULATOR and is_installed(name)]
    causes += [Cause(name, "physics", simulator=name, is_shared=True) for name in others]
    return [cause for cause in causes if cause.group in groups]


def _ticks_of(latency: int) -> str:
    return "no latency" if not latency else f"latency of {latency} tick{'' if latency == 1 else 's'}"


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
    causes: Sequence[Cause], tested: Entrant, against: Entrant, chaser: Entrant, matches: tuple[int, int]
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


if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("stress")
