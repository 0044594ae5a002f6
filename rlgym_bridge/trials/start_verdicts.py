"""Judge how a bot starts: whether it connects, under its agent id, and gets ready."""

from collections.abc import Iterator
from typing import Final

from rlgym_bridge.trials.bot_folder import BotFile
from rlgym_bridge.trials.bot_verdict import BotVerdict
from rlgym_bridge.trials.tried_match import TriedMatch, last_words

_SLOW_SECONDS: Final = 10.0  # from the start of a bot's process until it is ready


def judge_start(bot: BotFile, match: TriedMatch, timeout: float) -> Iterator[BotVerdict]:
    """Judge the start of the first match.

    Args:
        bot: The bot.
        match: Its first match, played or called off.
        timeout: How long the bot was waited for, s.
    """
    absent = match.absent[0] if match.absent else None
    agent_id = str(bot.settings["agent_id"]).strip()
    yield _judge_connection(match, timeout)
    if absent is not None and not absent.connected:
        if absent.strangers:
            seen = f"the process connects as {', '.join(map(repr, absent.strangers))}"
            remedy = "take the agent id from RLBOT_AGENT_ID, or make the two equal"
            yield BotVerdict("agent id", "failure", seen, repr(agent_id), remedy)
        return
    if not match.problem:
        foreign = {one: None for bot_result in match.bots for one in bot_result.foreign_ids}
        seen = f"the process connects as {', '.join(map(repr, (agent_id, *foreign)))}"
        if foreign:
            remedy = "connect with the agent id from RLBOT_AGENT_ID alone: others belong to other bots"
            yield BotVerdict("agent id", "failure", seen, repr(agent_id), remedy)
        else:
            yield BotVerdict("agent id", "pass", seen, repr(agent_id))
        yield _judge_readiness(match, timeout)


def _judge_connection(match: TriedMatch, timeout: float) -> BotVerdict:
    expected = f"its process connects to RLBOT_SERVER_PORT within {timeout:g} s"
    absent = match.absent[0] if match.absent else None
    if match.problem:
        return BotVerdict("connects", "failure", match.problem, expected, "mend it in bot.toml")
    if absent is None or absent.connected or absent.strangers:
        return BotVerdict("connects", "pass", "it does", expected)
    if match.default_port is not None:
        seen = (
            f"something connected to port {match.default_port}, RLBot's default, and not to that of the match"
        )
        remedy = "read the port from RLBOT_SERVER_PORT: RLBot may listen on another one"
    elif absent.exit_code is None:
        remedy = (
            "connect to RLBOT_SERVER_IP and RLBOT_SERVER_PORT, which RLBot sets: is another port hard-coded? "
            "A slow start may need a longer --timeout"
        )
        seen = f"its process runs and does not connect{last_words(absent.log_tail)}"
    else:
        said = last_words(absent.log_tail)
        remedy = f"mend what its log says, then check again; to see it all, run {absent.started_with}"
        remedy = remedy if said else f"run it by hand to see why: {absent.started_with}"
        seen = match.why_absent()
    return BotVerdict("connects", "failure", seen, expected, remedy)


def _judge_readiness(match: TriedMatch, timeout: float) -> BotVerdict:
    expected = f"it sends InitComplete within {timeout:g} s"
    if match.result is None:
        remedy = "look into the bot's initialisation: nothing is played before it is over"
        return BotVerdict("initialises", "failure", match.why_absent(), expected, remedy)
    seen = f"ready {match.start_seconds:.1f} s after its start"
    if match.start_seconds > _SLOW_SECONDS:
        remedy = f"load less at the start: others wait for more than {_SLOW_SECONDS:g} s"
        return BotVerdict("initialises", "warning", seen, expected, remedy)
    return BotVerdict("initialises", "pass", seen, expected)
