"""Say what each cause costs a bot: points of its win rate and goals a minute, with 95 % intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from rlgym_bridge.training.contests.kept_matches import (
    MatchKey,
    ServedResult,
    count_different,
    evaluation_of,
    seen_by_first,
)
from rlgym_bridge.training.elo import CONFIDENCE_Z
from rlgym_bridge.training.stress import CONTROL, StressPlan, Trial

_MOSTLY_DRAWN: Final = 0.9  # share of matches above which bots are called too weak
_WIDE: Final = 15.0  # points to either side from which on an interval is named wide


@dataclass(frozen=True)
class Estimate:
    """A number and how far it may be off.

    Attributes:
        value: The number.
        reach: Half of its 95 % interval.
    """

    value: float
    reach: float

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds, 95 % confidence."""
        return self.value - self.reach, self.value + self.reach

    @property
    def is_distinct(self) -> bool:
        """Tell whether 0 lies outside of the interval."""
        return abs(self.value) > self.reach

    def below(self, other: "Estimate") -> "Estimate":
        """Return how far this lies below another one, which was measured independently."""
        return Estimate(other.value - self.value, math.hypot(self.reach, other.reach))


@dataclass(frozen=True)
class Loss:
    """The cost of a cause.

    Attributes:
        trial: The cause, and how it was played.
        results: Matches won, drawn and lost by the tested bot.
        different: Matches that are no repetition of another one.
        unchanged: Matches that went exactly as the control's with the same seed: the cause did nothing there.
        win_rate: Of the tested bot; a draw counts half.
        lost: Part of the win rate that the cause costs, 0.1 for ten points.
        goals_lost: Goals a minute by which its lead shrinks.
        forfeits: Matches that a bot forfeited.
    """

    trial: Trial
    results: tuple[int, int, int]
    different: int
    unchanged: int
    win_rate: Estimate
    lost: Estimate
    goals_lost: Estimate
    forfeits: int

    @property
    def verdict(self) -> str:
        """Return in words whether the loss can be told from nothing; empty where it can, and for controls."""
        if self.trial.cause.name == CONTROL:
            return ""
        if self.unchanged == len(self.trial.keys):
            return "no effect"
        return "" if self.lost.is_distinct else "within noise"


@dataclass(frozen=True)
class _Played:
    results: tuple[int, int, int]
    different: int
    win_rate: Estimate
    lead: Estimate  # goals a minute
    forfeits: int


def estimate_win_rate(leads: np.ndarray, different: int) -> Estimate:
    """Estimate a win rate.

    Args:
        leads: `(matches,)` goals by which each was won.
        different: Matches that are no repetition of another one: the others tell nothing new.

    Returns:
        The share of wins and half of the draws. For the interval one match won and one lost are added, else
        a bot that wins all would have none.
    """
    scores = (np.sign(leads) + 1) / 2
    spread = float(np.std(np.append(scores, (0.0, 1.0))))
    return Estimate(float(scores.mean()), CONFIDENCE_Z * spread / math.sqrt(max(1, different)))


def losses_of(plan: StressPlan, results: Mapping[MatchKey, ServedResult]) -> list[Loss]:
    """Return what each cause costs, the dearest first, controls among them.

    Against itself an unimpaired bot wins one half, which needs no measuring; against another one, or where
    the cause meets both, the control's matches say what it wins without the cause.

    Args:
        plan: The test.
        results: Of all matches of its trials.
    """
    played = {trial: _played(trial, plan, results) for trial in plan.trials}
    losses = []
    for trial, its in played.items():
        if trial.opponent.path == plan.tested.path:
            usual, usual_lead = Estimate(0.5, 0.0), Estimate(0.0, 0.0)
        else:
            control = played[trial.baseline]
            usual, usual_lead = control.win_rate, control.lead
        if trial.cause.name == CONTROL and trial.opponent.path != plan.tested.path:
            lost = goals = Estimate(0.0, 0.0)
        else:
            lost, goals = its.win_rate.below(usual), its.lead.below(usual_lead)
        unchanged = _count_unchanged(trial, results)
        if unchanged == len(trial.keys) and trial.cause.name != CONTROL:
            lost = goals = Estimate(0.0, 0.0)
        losses.append(
            Loss(trial, its.results, its.different, unchanged, its.win_rate, lost, goals, its.forfeits)
        )
    return sorted(losses, key=lambda loss: -loss.lost.value)


def _played(trial: Trial, plan: StressPlan, results: Mapping[MatchKey, ServedResult]) -> _Played:
    matches = [seen_by_first(key, results[key]) for key in trial.keys]
    found = evaluation_of(matches, trial.cause.name)
    assert found is not None  # a trial has two matches at least
    different = count_different(matches)
    per_minute = found.leads / (plan.seconds / 60)
    reach = CONFIDENCE_Z * float(per_minute.std()) / math.sqrt(max(1, different))
    return _Played(
        found.results, different, estimate_win_rate(found.leads, different),
        Estimate(float(per_minute.mean()), reach), sum(any(one.forfeits) for one in matches),
    )  # fmt: skip


def _count_unchanged(trial: Trial, results: Mapping[MatchKey, ServedResult]) -> int:
    """Count the matches that went as the control's of the same number."""
    pairs = [
        (results[key], results[other]) for key, other in zip(trial.keys, trial.baseline.keys, strict=True)
    ]
    return sum(replace(one, remarks=()) == replace(other, remarks=()) for one, other in pairs)


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
    """Return what keeps the table from saying much: matches without goals, and wide intervals."""
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
            "cause": loss.trial.cause.name,
            "group": loss.trial.cause.group,
            "place": loss.trial.place,
            "against": loss.trial.opponent.name,
            "matches": len(loss.trial.keys),
            "different": loss.different,
            "unchanged": loss.unchanged,
            "won": loss.results[0], "drawn": loss.results[1], "lost": loss.results[2],
            "win_rate": loss.win_rate.value,
            "win_rate_interval": list(loss.win_rate.interval),
            "win_rate_lost": loss.lost.value,
            "win_rate_lost_interval": list(loss.lost.interval),
            "goals_per_minute_lost": loss.goals_lost.value,
            "goals_per_minute_lost_interval": list(loss.goals_lost.interval),
            "distinguishable": loss.lost.is_distinct,
            "verdict": loss.verdict,
            "forfeits": loss.forfeits,
        }
        for loss in losses
    ]  # fmt: skip
