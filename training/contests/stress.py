"""Measure what may hurt a bot in the real game: play matches with each cause, and compare win rates.

cause without packets -> training's matches in RocketSim, many at once    "simulator"
cause of packets      -> match server, a process for each bot            "server"
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import tomli_w

from rlgym_bridge.game import BLUE, HITBOX_NAMES, HITBOX_OF_BODY, ORANGE
from rlgym_bridge.live.play import DIALECT_VARIABLE
from rlgym_bridge.policy.files import read_files
from rlgym_bridge.policy.load_player import BUILT_IN, load_player
from rlgym_bridge.policy.manifest import SELECTIONS, Manifest
from rlgym_bridge.protocol_variant import POINTS
from rlgym_bridge.server import Impairments
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, SIMULATORS, is_installed
from rlgym_bridge.training.contests.kept_matches import (
    MatchKey,
    ServedResult,
    SimulatedJob,
    cut_keys,
    evaluation_of,
    is_swapped,
    seen_by_first,
)
from rlgym_bridge.training.contests.served_match import LOGS, Entrant, ServedBot, ServedMatch
from rlgym_bridge.training.elo import CONFIDENCE_Z
from rlgym_bridge.training.evaluate import Evaluation
from rlgym_bridge.user_input.arguments import count_of

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
    """Something that differs from training for the tested bot."""

    name: str  # in tables
    group: str = ""  # one of `GROUPS`; empty for the control, in which nothing differs
    impairments: Impairments = field(default_factory=Impairments)  # between the game and the tested bot
    selection: str | None = None  # how it chooses actions; None for its own way
    hitbox: str | None = None  # of its car; None for its own
    dialect: Mapping[str, str] = field(default_factory=dict, hash=False)  # the server's points
    simulator: str = DEFAULT_SIMULATOR  # one of `simulator.SIMULATORS`, in which both play
    is_shared: bool = False  # it meets the opponent, too, so that matches without it are played, too

    @property
    def needs_server(self) -> bool:
        """Return whether only the match server can play it: it acts on packets."""
        return bool(self.dialect or self.impairments.latency_spread or not self.impairments.sends_all)


CONTROL: Final = "nothing"  # name of the cause in which nothing differs


def list_causes(manifest: Manifest, selection: str, groups: Sequence[str]) -> list[Cause]:
    """Return the causes of some of `GROUPS` for a policy, whose usual selection is `selection`."""
    causes = [
        Cause(f"latency of {count_of(latency, 'tick')}" if latency else "no latency", "latency",
              Impairments(latency=latency))
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


SIMULATOR: Final = "simulator"
SERVER: Final = "server"
DIALECTS: Final = "dialects"  # folder of what the bots are told of the server, in that of the results


@dataclass(frozen=True)
class Trial:
    """The matches of one cause."""

    cause: Cause  # what differs for the tested bot
    place: str  # `SIMULATOR` or `SERVER`
    opponent: Entrant  # it plays unimpaired
    matches: int  # their number

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
    """A stress test."""

    tested: Entrant  # the bot that is tested
    manifest: Manifest  # of its policy
    trials: tuple[Trial, ...]  # controls, and a trial for each cause
    team_size: int  # cars a team
    seconds: float  # game time of a match
    seed: int  # of the first matches; those of all causes have the same ones
    allow_modules: tuple[str, ...]  # modules that policy folders may import
    out: Path  # folder for results


def plan_trials(
    causes: Sequence[Cause], tested: Entrant, against: Entrant, chaser: Entrant, matches: tuple[int, int]
) -> tuple[Trial, ...]:
    """Return the trials of all causes, with the controls that they are compared with.

    `matches` are the numbers of each cause in the simulator, and over the server. Where `against` is the
    tested bot itself, Chaser plays in its place against what meets both.
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
    """Return the ticks that a decision lasts, and those after which it acts; 0 for a third-party bot."""
    if entrant.path in BUILT_IN:
        spec = load_player(entrant.path)
        return spec.tick_skip or 0, spec.timing.action_delay
    if entrant.is_policy:
        manifest, _ = read_files(Path(entrant.path))
        return manifest.tick_skip, manifest.action_delay
    return 0, 0


def simulated_jobs(plan: StressPlan) -> Iterator[SimulatedJob]:
    """Yield the jobs of all trials in the simulator."""
    for trial in plan.trials:
        if trial.place != SIMULATOR:
            continue
        cause, opponent, manifest = trial.cause, trial.opponent, plan.manifest
        # In a match controls are sent as much earlier as the policy was trained for, and act as much later.
        sooner = min(manifest.input_latency, manifest.action_delay)
        latency = cause.impairments.latency if cause.group == "latency" else manifest.input_latency
        of_both = {  # of the tested bot, and of its opponent
            "players": (plan.tested.path, opponent.path),
            "selection": (cause.selection or plan.tested.selection, opponent.selection),
            "action_delay": (manifest.action_delay - sooner + latency, _pace_of(opponent)[1]),
            "hitboxes": (cause.hitbox, None),
        }
        for keys, swapped, seed in cut_keys(trial.keys, plan.seed):
            given: dict[str, Any] = {
                name: pair[::-1] if swapped else pair for name, pair in of_both.items()
            } | {
                "seconds": plan.seconds, "seed": seed, "team_size": plan.team_size,
                "simulator": cause.simulator, "allow_modules": plan.allow_modules,
            }  # fmt: skip
            yield SimulatedJob(keys, given.pop("players"), given)


def served_matches(plan: StressPlan) -> list[tuple[MatchKey, ServedMatch]]:
    """Return the matches of all trials over the match server."""
    matches = []
    for trial in plan.trials:
        if trial.place != SERVER:
            continue
        cause, opponent = trial.cause, trial.opponent
        told, untold = _dialect_files(plan.out, cause)
        body = next((car for car, box in HITBOX_OF_BODY.items() if HITBOX_NAMES[box] == cause.hitbox), None)
        selection = cause.selection or plan.tested.selection
        ours = ServedBot(plan.tested.path, selection, {DIALECT_VARIABLE: str(untold)}, body)
        theirs = ServedBot(opponent.path, opponent.selection, {DIALECT_VARIABLE: str(told)})
        for key in trial.keys:
            number, swapped = key[2], is_swapped(key[2])
            place = f"{_name_as_file(cause.name)}-{opponent.name}-{number}"
            match = ServedMatch(
                bots=(theirs, ours) if swapped else (ours, theirs), team_size=plan.team_size,
                seconds=plan.seconds, seed=plan.seed + number, simulator=cause.simulator,
                allow_modules=plan.allow_modules, log_dir=(plan.out / LOGS / place).resolve(),
                impairments=replace(cause.impairments, team=ORANGE if swapped else BLUE),
                dialect=cause.dialect,
            )  # fmt: skip
            matches.append((key, match))
    return sorted(matches, key=lambda match: match[0][2])  # all causes are as far when only some are played


def _dialect_files(out: Path, cause: Cause) -> tuple[Path, Path]:
    """Write the variant that the opponent and the tested bot are told, which learns nothing of its cause."""
    at_once = {"timing": {"input_latency": 0}}
    told = {"dialect": dict(cause.dialect), **at_once}
    untold: dict[str, Any] = {"dialect": {}} | ({} if cause.group == "latency" else at_once)
    folder = (out / DIALECTS).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for whose, content in (("opponent", told), ("tested", untold)):
        files.append(folder / f"{_name_as_file(cause.name)}-{whose}.toml")
        files[-1].write_text(tomli_w.dumps(content), encoding="utf-8")
    return files[0], files[1]


def _name_as_file(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)


_MOSTLY_DRAWN: Final = 0.9  # share of matches above which bots are called too weak
_WIDE: Final = 15.0  # points to either side from which on an interval is named wide


@dataclass(frozen=True)
class Estimate:
    """A number with half of its 95 % interval, `reach`."""

    value: float
    reach: float

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds, 95 % confidence."""
        return self.value - self.reach, self.value + self.reach

    @property
    def is_distinct(self) -> bool:
        """Return whether 0 lies outside of the interval."""
        return abs(self.value) > self.reach

    def below(self, other: "Estimate") -> "Estimate":
        """Return how far this lies below another one, which was measured independently."""
        return Estimate(other.value - self.value, math.hypot(self.reach, other.reach))


@dataclass(frozen=True)
class Loss:
    """The cost of a cause."""

    trial: Trial  # the cause, and how it was played
    results: tuple[int, int, int]  # matches won, drawn and lost by the tested bot
    different: int  # matches that are no repetition of another one
    unchanged: int  # matches that went exactly as the control's with the same seed
    win_rate: Estimate  # of the tested bot; a draw counts half
    lost: Estimate  # part of the win rate that the cause costs, 0.1 for ten points
    goals_lost: Estimate  # goals a minute by which its lead shrinks
    forfeits: int  # matches that a bot forfeited

    @property
    def verdict(self) -> str:
        """Return why the loss may be none, in words; empty where it is distinct, and for controls."""
        if self.trial.cause.name == CONTROL:
            return ""
        if self.unchanged == len(self.trial.keys):
            return "no effect"
        return "" if self.lost.is_distinct else "within noise"


def estimate_win_rate(leads: np.ndarray, different: int) -> Estimate:
    """Estimate a win rate from leads in goals, `(matches,)`, of which `different` are no repetition.

    For the interval one match won and one lost are added, else a bot that wins all would have none.
    """
    scores = (np.sign(leads) + 1) / 2
    spread = float(np.std(np.append(scores, (0.0, 1.0))))
    return Estimate(float(scores.mean()), CONFIDENCE_Z * spread / math.sqrt(max(1, different)))


def losses_of(plan: StressPlan, results: Mapping[MatchKey, ServedResult]) -> list[Loss]:
    """Return the cost of each cause, the dearest first, controls among them, from the results of all trials.

    Against itself an unimpaired bot wins one half, which needs no measuring; against another one, or where
    the cause meets both, the control's matches say what it wins without the cause.
    """
    losses, played, nothing = [], dict[Trial, Evaluation](), Estimate(0.0, 0.0)
    for trial in plan.trials:
        found = evaluation_of([seen_by_first(key, results[key]) for key in trial.keys], trial.cause.name)
        assert found is not None  # a trial has two matches at least
        played[trial] = found
    for trial, its in played.items():
        is_control, against_itself = trial.cause.name == CONTROL, trial.opponent.path == plan.tested.path
        win_rate, lead = estimate_win_rate(its.leads, its.different), _estimate_lead(its, plan.seconds)
        usual, usual_lead = Estimate(0.5, 0.0), nothing
        if not against_itself:
            control = played[trial.baseline]
            usual = estimate_win_rate(control.leads, control.different)
            usual_lead = _estimate_lead(control, plan.seconds)
        pairs = zip(trial.keys, trial.baseline.keys, strict=True)  # of matches of one number
        unchanged = sum(
            replace(results[key], remarks=()) == replace(results[other], remarks=()) for key, other in pairs
        )
        lost, goals = win_rate.below(usual), lead.below(usual_lead)
        if (is_control and not against_itself) or (not is_control and unchanged == len(trial.keys)):
            lost = goals = nothing
        forfeits = sum(any(results[key].forfeits) for key in trial.keys)
        losses.append(Loss(trial, its.results, its.different, unchanged, win_rate, lost, goals, forfeits))
    return sorted(losses, key=lambda loss: -loss.lost.value)


def _estimate_lead(played: Evaluation, seconds: float) -> Estimate:
    """Return the goals a minute by which a bot leads in matches of so many seconds."""
    per_minute = played.leads / (seconds / 60)
    reach = CONFIDENCE_Z * float(per_minute.std()) / math.sqrt(max(1, played.different))
    return Estimate(float(per_minute.mean()), reach)


def describe_losses(plan: StressPlan, losses: Sequence[Loss]) -> list[str]:
    """Return the lines of the table, the controls first."""
    wide = max(len(loss.trial.cause.name) for loss in losses)
    lines = [
        f"what costs {plan.tested.name} matches ({plan.team_size}v{plan.team_size}, {plan.seconds:g} s each)",
        f"{'cause':{wide}}  win rate lost, points  goals/min lost        matches  unchanged  where, against",
    ]
    for loss in sorted(losses, key=lambda loss: loss.trial.cause.name != CONTROL):
        (low, high), (fewer, more) = loss.lost.interval, loss.goals_lost.interval
        trial, count = loss.trial, len(loss.trial.keys)
        lines.append(
            f"{trial.cause.name:{wide}}  {100 * loss.lost.value:5.1f} ({100 * low:5.1f} to {100 * high:5.1f})"
            f"  {loss.goals_lost.value:5.2f} ({fewer:5.2f} to {more:5.2f})"
            f"  {count:7} {'-' if trial.cause.name == CONTROL else loss.unchanged:>10}"
            f"  {f'{trial.place}, {trial.opponent.name}  {loss.verdict}'.rstrip()}"
        )
    tested = [loss for loss in losses if loss.trial.cause.name != CONTROL]
    noise, none = (sum(loss.verdict == what for loss in tested) for what in ("within noise", "no effect"))
    lines += [
        f"within noise: {noise} of {len(tested)} causes, with so many matches not distinguishable from "
        "nothing",
        f"no effect: {none} of {len(tested)} causes, with them every match went exactly as without",
        f"intervals are 95 %: of {len(tested)} causes without any effect, {len(tested) / 20:.1f} would be "
        "told apart by chance",
    ]
    lines += _caveats(losses, tested)
    lines += [
        f"{loss.trial.cause.name}: {loss.forfeits} matches forfeited by a bot that was not there or left"
        for loss in losses if loss.forfeits
    ]  # fmt: skip
    return lines


def _caveats(losses: Sequence[Loss], tested: Sequence[Loss]) -> list[str]:
    """Return why the table may say little: matches without goals, wide intervals."""
    lines = []
    played, drawn = sum(sum(loss.results) for loss in losses), sum(loss.results[1] for loss in losses)
    if drawn > _MOSTLY_DRAWN * played:
        lines.append(
            f"{drawn:,} of {played:,} matches were drawn: the bots score too seldom for a loss to be "
            "measured. Train further, or raise --seconds and --matches"
        )
    reach = max((100 * loss.lost.reach for loss in tested), default=0.0)
    if reach > _WIDE:
        lines.append(
            f"intervals reach up to {reach:.0f} points to either side, and smaller losses cannot be seen: "
            "four times as many --matches and --server-matches make them half as wide"
        )
    return lines


def summarise_losses(losses: Sequence[Loss]) -> list[dict[str, Any]]:
    """Return the table as other programs read it."""
    return [
        {
            "cause": loss.trial.cause.name, "group": loss.trial.cause.group,
            "place": loss.trial.place, "against": loss.trial.opponent.name,
            "matches": len(loss.trial.keys), "different": loss.different, "unchanged": loss.unchanged,
            "won": loss.results[0], "drawn": loss.results[1], "lost": loss.results[2],
            "win_rate": loss.win_rate.value, "win_rate_interval": list(loss.win_rate.interval),
            "win_rate_lost": loss.lost.value, "win_rate_lost_interval": list(loss.lost.interval),
            "goals_per_minute_lost": loss.goals_lost.value,
            "goals_per_minute_lost_interval": list(loss.goals_lost.interval),
            "distinguishable": loss.lost.is_distinct, "verdict": loss.verdict, "forfeits": loss.forfeits,
        }
        for loss in losses
    ]  # fmt: skip
