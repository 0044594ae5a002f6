"""Judge what a bot does in scenes, in further matches, and in the teams and modes of its tags."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from rlgym_bridge.trials.bot_folder import MODES, BotFile
from rlgym_bridge.trials.bot_verdict import BotVerdict
from rlgym_bridge.trials.match_scenes import MatchScenes
from rlgym_bridge.trials.match_watch import MOVED
from rlgym_bridge.trials.tried_match import TriedMatch, words_of

KNOWN_TAGS: Final = (
    "1v1", "teamplay", "goalie", "hoops", "dropshot", "snow-day", "rumble", "spike-rush", "heatseeker",
    "memebot",
)  # fmt: skip
"""Tags that RLBot's window knows [RLBot wiki, python-example]."""

_SCENES: Final = {
    "goal": "it plays on after a goal, its replay and the next kickoff",
    "demolition": "it plays on after a demolition",
    "overtime": "it plays the kickoff of overtime",
    "joins midway": "started anew, it joins a match that runs",
}


def judge_scenes(scenes: MatchScenes, match: TriedMatch) -> Iterator[BotVerdict]:
    """Judge the scenes of a match, those that were not reached included."""
    left = next((bot for bot in match.bots if bot.crashed), None)
    for name, expected in _SCENES.items():
        problem = scenes.outcomes.get(name)
        if name == scenes.current and not problem and left is not None:
            problem = "it did not come back" if name == "joins midway" else "it left"
        if problem is None and match.watch.has_timed_out:
            remedy = "check again while nothing else runs, or make the bot quicker"
            yield BotVerdict(name, "warning", "not reached in time", expected, remedy)
        elif problem is None and scenes.is_over:
            remedy = "check again; a bot that sets the state by itself may prevent it"
            yield BotVerdict(name, "warning", "the scene did not come about", expected, remedy)
        elif problem is None:
            yield BotVerdict(name, "not tried", "not reached", expected)
        elif problem:
            if left is not None:
                code = "" if left.exit_code is None else f", exit code {left.exit_code}"
                problem += code + words_of(left)
            yield BotVerdict(name, "failure", problem, expected, "look into its log, or play it with match")
        else:
            seen = f"{scenes.rejoin_seconds:.1f} s after its start" if name == "joins midway" else "it does"
            yield BotVerdict(name, "pass", seen, expected)


def judge_restart(first: TriedMatch, second: TriedMatch) -> BotVerdict:
    """Judge whether a bot ends with its match, and plays the next one in a new process."""
    name, expected = "restart", "it ends by itself after a match, and plays the next one"
    if second.result is None:
        remedy = "does it leave a lock, a port or a process behind?"
        return BotVerdict(name, "failure", f"in a second match {second.why_absent()}", expected, remedy)
    if any(bot.crashed for bot in second.bots):
        seen = f"in a second match it left{words_of(second.bots[0])}"
        return BotVerdict(name, "failure", seen, expected, "look into its log")
    if any(bot.was_told_to_end for bot in first.bots + second.bots):
        remedy = "end the process at DisconnectSignal, or when the connection closes"
        return BotVerdict(name, "warning", "it had to be ended 3 s after its match", expected, remedy)
    return BotVerdict(name, "pass", "it does", expected)


def judge_tags(bot: BotFile, home: str, tried: Sequence[tuple[str, TriedMatch]]) -> BotVerdict:
    """Judge whether a bot plays the teams and modes that its tags promise.

    Args:
        bot: The bot.
        home: What its first match was, such as "1v1".
        tried: Further teams and modes, such as "2v2", each with its match.
    """
    expected = f"it plays what its tags say: {', '.join(bot.tags) or 'nothing'}"
    broken = [f"in {label} {problem}" for label, match in tried if (problem := _why_not(match))]
    if broken:
        remedy = "take the tag out of bot.toml, or have the bot play it"
        result = _blame(match for _, match in tried)
        return BotVerdict("tags", result, "; ".join(broken), expected, remedy)
    seen = f"moves in {', '.join([home, *(label for label, _ in tried)])}"
    strange = [tag for tag in bot.tags if tag not in KNOWN_TAGS and not _is_team(tag)]
    if strange:
        remedy = f"RLBot's window knows {', '.join(KNOWN_TAGS)}"
        return BotVerdict("tags", "warning", f"{seen}; unknown: {', '.join(strange)}", expected, remedy)
    untried = {"hoops", "dropshot", "rumble", "spike-rush"} & set(bot.tags)
    if untried:
        seen += f"; {', '.join(sorted(untried))} need the real game"
    return BotVerdict("tags", "pass", seen, expected)


def _is_team(tag: str) -> bool:
    return len(tag) == 3 and tag[1] == "v" and tag[0].isdigit()


def judge_hivemind(match: TriedMatch) -> BotVerdict:
    """Judge whether one process drives all cars of a team, as `hivemind = true` says."""
    name, expected = "hivemind", "one process drives all cars of its team"
    problem = _why_not(match)
    if problem:
        remedy = "answer for each car of ControllableTeamInfo, or set hivemind = false"
        return BotVerdict(name, _blame([match]), f"as a team {problem}", expected, remedy)
    return BotVerdict(name, "pass", f"it drives {len(match.watch.cars)} cars", expected)


def _why_not(match: TriedMatch) -> str:
    """Return why a bot does not play a match; empty where all its cars move."""
    if match.result is None:
        return match.why_absent()
    left = [bot for bot in match.bots if bot.crashed]
    if left:
        return f"it left{words_of(left[0])}"
    if match.watch.has_timed_out:
        return "the match took too long: check again while nothing else runs"
    cars = match.watch.cars
    still = sum(match.watch.way(car) < MOVED for car in cars)
    if still:
        return "it stands still" if still == len(cars) else f"{still} of its {len(cars)} cars stood still"
    return ""


def _blame(matches: Iterable[TriedMatch]) -> Literal["warning", "failure"]:
    """Return how bad it is that a bot does not play matches: those that took too long tell little."""
    told = any(_why_not(match) and not match.watch.has_timed_out for match in matches)
    return "failure" if told else "warning"


def further_teams(bot: BotFile, home: int) -> Iterator[tuple[str, int, str | None]]:
    """List what a bot's tags promise beside its home team: a label, cars in a team, and a mode's tag.

    Args:
        bot: The bot.
        home: Cars in a team of its first match.
    """
    for size in bot.team_sizes:
        if size != home:
            yield f"{size}v{size}", size, None
    for tag in bot.tags:
        if tag in MODES and MODES[tag] != bot.home_mode:
            yield tag, home, tag
