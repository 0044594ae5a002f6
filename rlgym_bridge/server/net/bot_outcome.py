"""Put together what a bot did in a match that has ended."""

from rlgym_bridge.server.bot_account import BotAccount
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.net.launch import BotProcess
from rlgym_bridge.server.result import BotResult


def bot_result(account: BotAccount, match: Match, process: BotProcess | None, crashed: bool) -> BotResult:
    """Return the result of a car.

    Args:
        account: Of its bot's answers.
        match: The match.
        process: The bot's process, whose end was noted; None where it was started by hand.
        crashed: Whether it left before the match ended.
    """
    seat, scores = account.seat, match.scores
    p50, p99 = account.reply_ms(50.0, 99.0)
    return BotResult(
        name=seat.name,
        team=seat.team,
        index=seat.index,
        agent_id=seat.agent_id,
        connected=not crashed,
        crashed=crashed,
        exit_code=process.early_exit_code if process else None,
        log_path=str(process.log_path) if process else None,
        log_tail=process.log_tail if process and crashed else "",
        exceptions=process.exceptions if process else 0,
        touches=scores.touches[seat.index],
        goals=scores.goals[seat.index],
        demolitions=scores.demolitions[seat.index],
        bumps=scores.bumps[seat.index],
        boost_used=match.simulation.boost_used[seat.index],
        replies=account.replies,
        late=account.late,
        unanswered=max(0, account.late_in_play - account.extra),
        reply_p50_ms=p50,
        reply_p99_ms=p99,
        invalid_inputs=account.invalid,
        dropped_messages=account.dropped,
        was_told_to_end=process.was_told_to_end if process else False,
        foreign_ids=tuple(process.foreign_ids) if process else (),
    )
