"""Judge what a bot answered: all packets, in time, with numbers, and so that its car moves."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.server import BotResult
from rlgym_bridge.trials.bot_folder import BotFile
from rlgym_bridge.trials.bot_verdict import BotVerdict
from rlgym_bridge.trials.tried_match import TriedMatch, words_of
from rlgym_bridge.user_input.arguments import count_of

MOST_UNANSWERED: Final = 0.1
"""Share of unanswered packets above which a bot does not play; `BotResult.troubles` has the same."""

_SOME_UNANSWERED: Final = 0.01
_MOST_LATE: Final = 0.25  # share of late packets above which most of a bot's plans come to nothing
_SOME_LATE: Final = 0.02
_BUSY: Final = 0.05  # share of packets that this machine sent late, above which lateness tells nothing
_BUSY_TICKS: Final = 4.0  # that a busy machine may hold up a reply
_TICK_MS: Final = 1000.0 * TICK_SECONDS


def unanswered_share(bots: Sequence[BotResult]) -> float:
    """Return the share of packets that cars in play never answered, of all that were sent."""
    unanswered = sum(bot.unanswered for bot in bots)
    return unanswered / max(1, unanswered + sum(bot.replies for bot in bots))


def judge_answers(bot: BotFile, lockstep: TriedMatch, real_time: TriedMatch | None) -> Iterator[BotVerdict]:
    """Judge a bot's answers.

    Args:
        bot: The bot.
        lockstep: A match in lockstep, in which each packet waits for its answer.
        real_time: A match in real time; None where none was played.
    """
    yield _judge_completeness(lockstep)
    yield _judge_times(lockstep, real_time)
    yield _judge_numbers([*lockstep.bots, *(real_time.bots if real_time else [])])


def _judge_completeness(match: TriedMatch) -> BotVerdict:
    name, expected = "answers", f"less than {_SOME_UNANSWERED:.0%} of the packets in play without an answer"
    share = unanswered_share(match.bots)
    raised = sum(one.exceptions for one in match.bots)
    remedy = "the log says what it raised" if raised else "send a PlayerInput for each GamePacket"
    wrote = f", {count_of(raised, 'traceback')} in its log{words_of(match.bots[0])}" if raised else ""
    replies = sum(one.replies for one in match.bots)
    if share > MOST_UNANSWERED or not replies:
        seen = f"{share:.0%} unanswered" if replies else "not one answer"
        return BotVerdict(name, "failure", seen + wrote, expected, remedy)
    seen = f"{replies:,} packets answered, {share:.1%} unanswered"
    if share > _SOME_UNANSWERED or raised:
        return BotVerdict(name, "warning", seen + wrote, expected, remedy)
    return BotVerdict(name, "pass", seen, expected)


def _judge_times(lockstep: TriedMatch, real_time: TriedMatch | None) -> BotVerdict:
    name, expected = "in time", f"p99 below {_TICK_MS:.1f} ms, less than {_SOME_LATE:.0%} late in real time"
    p50 = max(bot.reply_p50_ms for bot in lockstep.bots)
    p99 = max(bot.reply_p99_ms for bot in lockstep.bots)
    if math.isnan(p50):
        return BotVerdict(name, "not tried", "no answers", expected)
    doubtful = False
    seen, late = f"reply p50 {p50:.2f} ms, p99 {p99:.2f} ms", 0.0
    if real_time is not None and real_time.result is not None:
        played, result = real_time.bots, real_time.result
        late = sum(bot.late for bot in played) / max(1, sum(bot.late + bot.replies for bot in played))
        busy = result.server_late / max(1, result.ticks)
        seen += f"; {late:.1%} late in real time"
        if busy > _BUSY and (late > _SOME_LATE or p99 > _TICK_MS):
            seen += f", but this machine was busy: it sent {busy:.0%} of the packets late"
            late = 0.0
            doubtful = True
    remedy = "decide less often or quicker: the car holds its last controls until an answer comes"
    if p50 > (_BUSY_TICKS if doubtful else 1.0) * _TICK_MS or late > _MOST_LATE:
        return BotVerdict(name, "failure", seen, expected, remedy)
    if doubtful:
        return BotVerdict(name, "warning", seen, expected, "check again while nothing else runs")
    if p99 > _TICK_MS or late > _SOME_LATE:
        return BotVerdict(name, "warning", seen, expected, remedy)
    return BotVerdict(name, "pass", seen, expected)


def _judge_numbers(bots: Sequence[BotResult]) -> BotVerdict:
    name, expected = "numbers", "controls are finite numbers"
    invalid = sum(bot.invalid_inputs for bot in bots)
    if not any(bot.replies for bot in bots):
        return BotVerdict(name, "not tried", "no answers", expected)
    if invalid:
        remedy = "look for a division by zero or weights that are no numbers; the car holds its last controls"
        seen = f"{count_of(invalid, 'input')} with NaN or infinity"
        return BotVerdict(name, "failure", seen, expected, remedy)
    return BotVerdict(name, "pass", "all finite", expected)


def judge_moves(bot: BotFile, as_blue: bool | None, as_orange: bool | None) -> BotVerdict:
    """Judge whether a bot's car moves.

    Args:
        bot: The bot.
        as_blue: Whether it moved at the kickoff; None where that was not tried.
        as_orange: The same as orange.
    """
    name, expected = "moves", "its car leaves its place within 4 s of a kickoff"
    moved = {"blue": as_blue, "orange": as_orange}
    still = " and ".join(f"as {team}" for team, it in moved.items() if it is False)
    if not still:
        moving = " and ".join(f"as {team}" for team, it in moved.items() if it)
        return BotVerdict(
            name, "pass" if moving else "not tried", moving or "no kickoff was played", expected
        )
    seen = f"it stands still {still}"
    standing = {"goalie", "memebot"} & set(bot.tags)
    if standing:
        remedy = f"fine if a {' or '.join(sorted(standing))} is meant to"
        return BotVerdict(name, "warning", seen, expected, remedy)
    remedy = "are its controls neutral, or those of another car? Send them with the car's own index"
    return BotVerdict(name, "failure", seen, expected, remedy)
