"""Check a bot: its folder, then matches in which each check has its place.

folder -> lockstep match with scenes -> real-time match as orange -> a match for each further tag
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from rlgym_bridge.game import ORANGE, TICK_SECONDS, TICKS_PER_SECOND
from rlgym_bridge.server import BotResult
from rlgym_bridge.trials.bot_folder import MODES, BotCheck, BotFile, BotVerdict, check_folder, runs_here
from rlgym_bridge.trials.bot_match import (
    MatchPlan,
    MatchScenes,
    MatchTrier,
    MatchWatch,
    TriedMatch,
    last_words,
    words_of,
)
from rlgym_bridge.trials.scene_player import Play, ScenePlayer
from rlgym_bridge.user_input.arguments import count_of

PLAYED: Final = (
    "connects", "agent id", "initialises", "answers", "in time", "numbers", "moves", "goal", "demolition",
    "overtime", "joins midway", "restart", "tags",
)  # fmt: skip
"""Names of the checks that play, in their order; hiveminds have one more."""

_KNOWN_TAGS: Final = (
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

_SCENES_SECONDS: Final = 90.0  # of wall time; on a quiet machine a quick bot needs six
_PLAY_TICKS: Final = 4 * TICKS_PER_SECOND  # in play, of matches without scenes
_COUNTDOWN_TICKS: Final = 20 * TICKS_PER_SECOND  # until play at most
_SLOW_SECONDS: Final = 10.0  # from the start of a bot's process until it is ready
_MOST_UNANSWERED: Final = 0.1  # share of packets above which a bot does not play, as for `BotResult.troubles`
_SOME_UNANSWERED: Final = 0.01
_MOST_LATE: Final = 0.25  # share of late packets above which most of a bot's plans come to nothing
_SOME_LATE: Final = 0.02
_BUSY: Final = 0.05  # share of packets that this machine sent late, above which lateness tells nothing
_BUSY_TICKS: Final = 4.0  # that a busy machine may hold up a reply
_TICK_MS: Final = 1000.0 * TICK_SECONDS


def check_bot(bot: BotFile, trier: MatchTrier, timeout: float) -> Iterator[BotVerdict]:
    """Check a bot; each verdict comes as soon as it is known. `timeout` is the trier's, s."""
    yield from check_folder(bot)
    given = []
    if runs_here(bot):
        for verdict in _check_played(bot, trier, timeout):
            given.append(verdict.name)
            yield verdict
    for name in PLAYED:
        if name not in given:
            yield BotVerdict(name, "not tried", "because of what is above", "")


def _check_played(bot: BotFile, trier: MatchTrier, timeout: float) -> Iterator[BotVerdict]:
    home = bot.team_sizes[0] if bot.team_sizes else 1
    scenes: list[MatchScenes] = []

    def play_scenes(watch: MatchWatch, scene: ScenePlayer) -> Play[None]:
        scenes.append(MatchScenes(watch, scene, timeout))
        return scenes[0].play()

    first = trier.play(
        MatchPlan(
            name="lockstep match with scenes", script=play_scenes, size=home, mode=bot.home_mode,
            seconds=_SCENES_SECONDS,
        )
    )  # fmt: skip
    yield from _judge_start(bot, first, timeout)
    if first.result is None or not scenes:
        return
    second: TriedMatch | None = None
    answers = any(one.replies for one in first.bots)
    if answers and _unanswered_share(first.bots) <= _MOST_UNANSWERED:
        second = trier.play(
            MatchPlan(
                name="real-time match", script=_play_on, team=ORANGE, size=home, mode=bot.home_mode,
                pace="realtime",
            )
        )  # fmt: skip
    yield _judge_answers(first)
    yield _judge_times(first, second)
    yield _judge_numbers([*first.bots, *(second.bots if second else [])])
    if not answers:
        return
    as_orange = None
    if second is not None and second.result is not None and not second.watch.has_timed_out:
        as_orange = second.watch.have_moved
    yield _judge_moves(bot, scenes[0].moved, as_orange)
    yield from _judge_scenes(scenes[0], first)
    if second is not None:
        yield _judge_restart(first, second)
        if scenes[0].moved or as_orange:
            yield from _check_teams(bot, trier, home)


def _check_teams(bot: BotFile, trier: MatchTrier, home: int) -> Iterator[BotVerdict]:
    """Play the teams and modes that the tags promise, and a team of two with a hivemind."""

    def play(label: str, size: int, tag: str | None = None) -> TriedMatch:
        mode = MODES[tag] if tag else bot.home_mode
        return trier.play(MatchPlan(name=f"{label} match", script=_play_until_moved, size=size, mode=mode))

    teams: list[tuple[str, int, str | None]] = [
        (f"{size}v{size}", size, None) for size in bot.team_sizes if size != home
    ]
    teams += [(tag, home, tag) for tag in bot.tags if tag in MODES and MODES[tag] != bot.home_mode]
    tried = [(label, play(label, size, tag)) for label, size, tag in teams]
    yield _judge_tags(bot, f"{home}v{home}", tried)
    if bot.is_hivemind:
        pairs = [match for _, match in tried if len(match.watch.cars) > 1]
        yield _judge_hivemind(pairs[-1] if pairs else play("2v2", 2))


def _play_on(watch: MatchWatch, scene: ScenePlayer) -> Play[None]:
    yield from scene.wait(_COUNTDOWN_TICKS, lambda frame: frame.playing)
    watch.begin_way()
    yield from scene.wait(_PLAY_TICKS, lambda frame: False)


def _play_until_moved(watch: MatchWatch, scene: ScenePlayer) -> Play[None]:
    yield from scene.wait(_COUNTDOWN_TICKS, lambda frame: frame.playing)
    watch.begin_way()
    yield from scene.wait(2 * _PLAY_TICKS, lambda frame: watch.have_moved)


def _judge_start(bot: BotFile, match: TriedMatch, timeout: float) -> Iterator[BotVerdict]:
    """Judge whether a bot connects in its first match, under its agent id, and gets ready."""
    absent = match.absent[0] if match.absent else None
    agent_id = str(bot.settings["agent_id"]).strip()
    check = BotCheck("agent id", repr(agent_id))
    yield _judge_connection(match, timeout)
    if absent is not None and not absent.connected:
        if absent.strangers:
            seen = f"the process connects as {', '.join(map(repr, absent.strangers))}"
            yield check("failure", seen, "take the agent id from RLBOT_AGENT_ID, or make the two equal")
        return
    if not match.problem:
        others = dict.fromkeys(one for result in match.bots for one in result.foreign_ids)
        seen = f"the process connects as {', '.join(map(repr, (agent_id, *others)))}"
        remedy = "connect with the agent id from RLBOT_AGENT_ID alone: others belong to other bots"
        yield check("failure", seen, remedy) if others else check("pass", repr(agent_id))
        yield _judge_readiness(match, timeout)


def _judge_connection(match: TriedMatch, timeout: float) -> BotVerdict:
    check = BotCheck("connects", f"its process connects to RLBOT_SERVER_PORT within {timeout:g} s")
    absent = match.absent[0] if match.absent else None
    if match.problem:
        return check("failure", match.problem, "mend it in bot.toml")
    if absent is None or absent.connected or absent.strangers:
        return check("pass", "it does")
    said = last_words(absent.log_tail)
    if match.default_port is not None:
        seen = (
            f"something connected to port {match.default_port}, RLBot's default, and not to that of the match"
        )
        remedy = "read the port from RLBOT_SERVER_PORT: RLBot may listen on another one"
    elif absent.exit_code is None:
        seen = f"its process runs and does not connect{said}"
        remedy = (
            "connect to RLBOT_SERVER_IP and RLBOT_SERVER_PORT, which RLBot sets: is another port hard-coded? "
            "A slow start may need a longer --timeout"
        )
    else:
        seen = match.why_absent()
        remedy = f"mend what its log says, then check again; to see it all, run {absent.started_with}"
        remedy = remedy if said else f"run it by hand to see why: {absent.started_with}"
    return check("failure", seen, remedy)


def _judge_readiness(match: TriedMatch, timeout: float) -> BotVerdict:
    check = BotCheck("initialises", f"it sends InitComplete within {timeout:g} s")
    if match.result is None:
        remedy = "look into the bot's initialisation: nothing is played before it is over"
        return check("failure", match.why_absent(), remedy)
    seen = f"ready {match.start_seconds:.1f} s after its start"
    if match.start_seconds > _SLOW_SECONDS:
        remedy = f"load less at the start: others wait for more than {_SLOW_SECONDS:g} s"
        return check("warning", seen, remedy)
    return check("pass", seen)


def _unanswered_share(bots: Sequence[BotResult]) -> float:
    """Return the share of packets that cars in play never answered, of all that were sent."""
    unanswered = sum(bot.unanswered for bot in bots)
    return unanswered / max(1, unanswered + sum(bot.replies for bot in bots))


def _judge_answers(match: TriedMatch) -> BotVerdict:
    check = BotCheck("answers", f"less than {_SOME_UNANSWERED:.0%} of the packets in play without an answer")
    share = _unanswered_share(match.bots)
    raised = sum(one.exceptions for one in match.bots)
    remedy = "the log says what it raised" if raised else "send a PlayerInput for each GamePacket"
    wrote = f", {count_of(raised, 'traceback')} in its log{words_of(match.bots[0])}" if raised else ""
    replies = sum(one.replies for one in match.bots)
    if share > _MOST_UNANSWERED or not replies:
        return check("failure", (f"{share:.0%} unanswered" if replies else "not one answer") + wrote, remedy)
    seen = f"{replies:,} packets answered, {share:.1%} unanswered"
    if share > _SOME_UNANSWERED or raised:
        return check("warning", seen + wrote, remedy)
    return check("pass", seen)


def _judge_times(lockstep: TriedMatch, real_time: TriedMatch | None) -> BotVerdict:
    """Judge how fast a bot answered: in lockstep, where packets wait for answers, and in real time."""
    check = BotCheck("in time", f"p99 below {_TICK_MS:.1f} ms, less than {_SOME_LATE:.0%} late in real time")
    p50 = max(bot.reply_p50_ms for bot in lockstep.bots)
    p99 = max(bot.reply_p99_ms for bot in lockstep.bots)
    if math.isnan(p50):
        return check("not tried", "no answers")
    doubtful = False
    seen, late = f"reply p50 {p50:.2f} ms, p99 {p99:.2f} ms", 0.0
    if real_time is not None and real_time.result is not None:
        played, result = real_time.bots, real_time.result
        late = sum(bot.late for bot in played) / max(1, sum(bot.late + bot.replies for bot in played))
        busy = result.server_late / max(1, result.ticks)
        seen += f"; {late:.1%} late in real time"
        if busy > _BUSY and (late > _SOME_LATE or p99 > _TICK_MS):
            seen += f", but this machine was busy: it sent {busy:.0%} of the packets late"
            late, doubtful = 0.0, True
    remedy = "decide less often or quicker: the car holds its last controls until an answer comes"
    if p50 > (_BUSY_TICKS if doubtful else 1.0) * _TICK_MS or late > _MOST_LATE:
        return check("failure", seen, remedy)
    if doubtful:
        return check("warning", seen, "check again while nothing else runs")
    return check("warning", seen, remedy) if p99 > _TICK_MS or late > _SOME_LATE else check("pass", seen)


def _judge_numbers(bots: Sequence[BotResult]) -> BotVerdict:
    check = BotCheck("numbers", "controls are finite numbers")
    invalid = sum(bot.invalid_inputs for bot in bots)
    if not any(bot.replies for bot in bots):
        return check("not tried", "no answers")
    if invalid:
        remedy = "look for a division by zero or weights that are no numbers; the car holds its last controls"
        return check("failure", f"{count_of(invalid, 'input')} with NaN or infinity", remedy)
    return check("pass", "all finite")


def _judge_moves(bot: BotFile, as_blue: bool | None, as_orange: bool | None) -> BotVerdict:
    """Judge whether a bot's car moves at the kickoff as blue and as orange; None for what was not tried."""
    check = BotCheck("moves", "its car leaves its place within 4 s of a kickoff")
    moved = {"blue": as_blue, "orange": as_orange}
    still, moving = (
        " and ".join(f"as {team}" for team in moved if moved[team] is it) for it in (False, True)
    )
    if not still:
        return check("pass", moving) if moving else check("not tried", "no kickoff was played")
    if standing := {"goalie", "memebot"} & set(bot.tags):
        remedy = f"fine if a {' or '.join(sorted(standing))} is meant to"
        return check("warning", f"it stands still {still}", remedy)
    remedy = "are its controls neutral, or those of another car? Send them with the car's own index"
    return check("failure", f"it stands still {still}", remedy)


def _judge_scenes(scenes: MatchScenes, match: TriedMatch) -> Iterator[BotVerdict]:
    """Judge the scenes of a match, those that were not reached included."""
    left = next((bot for bot in match.bots if bot.crashed), None)
    for name, expected in _SCENES.items():
        check, problem = BotCheck(name, expected), scenes.outcomes.get(name)
        if name == scenes.current and not problem and left is not None:
            problem = "it did not come back" if name == "joins midway" else "it left"
        if problem is None and match.watch.has_timed_out:
            again = "check again while nothing else runs, or make the bot quicker"
            yield check("warning", "not reached in time", again)
        elif problem is None and scenes.is_over:
            again = "check again; a bot that sets the state by itself may prevent it"
            yield check("warning", "the scene did not come about", again)
        elif problem is None:
            yield check("not tried", "not reached")
        elif problem:
            if left is not None:
                problem += left.last_code + words_of(left)
            yield check("failure", problem, "look into its log, or play it with match")
        else:
            late = f"{scenes.rejoin_seconds:.1f} s after its start"
            yield check("pass", late if name == "joins midway" else "it does")


def _judge_restart(first: TriedMatch, second: TriedMatch) -> BotVerdict:
    check = BotCheck("restart", "it ends by itself after a match, and plays the next one")
    if second.result is None:
        seen = f"in a second match {second.why_absent()}"
        return check("failure", seen, "does it leave a lock, a port or a process behind?")
    if any(bot.crashed for bot in second.bots):
        return check("failure", f"in a second match it left{words_of(second.bots[0])}", "look into its log")
    if any(bot.was_told_to_end for bot in first.bots + second.bots):
        remedy = "end the process at DisconnectSignal, or when the connection closes"
        return check("warning", "it had to be ended 3 s after its match", remedy)
    return check("pass", "it does")


def _judge_tags(bot: BotFile, home: str, tried: Sequence[tuple[str, TriedMatch]]) -> BotVerdict:
    check = BotCheck("tags", f"it plays what its tags say: {', '.join(bot.tags) or 'nothing'}")
    broken = [f"in {label} {problem}" for label, match in tried if (problem := _why_not(match))]
    if broken:
        result = _blame(match for _, match in tried)
        return check(result, "; ".join(broken), "take the tag out of bot.toml, or have the bot play it")
    seen = f"moves in {', '.join([home, *(label for label, _ in tried)])}"
    strange = [tag for tag in bot.tags if tag not in _KNOWN_TAGS and not re.fullmatch(r"\dv.", tag)]
    if strange:
        remedy = f"RLBot's window knows {', '.join(_KNOWN_TAGS)}"
        return check("warning", f"{seen}; unknown: {', '.join(strange)}", remedy)
    untried = {"hoops", "dropshot", "rumble", "spike-rush"} & set(bot.tags)
    return check("pass", seen + (f"; {', '.join(sorted(untried))} need the real game" if untried else ""))


def _judge_hivemind(match: TriedMatch) -> BotVerdict:
    check = BotCheck("hivemind", "one process drives all cars of its team")
    if problem := _why_not(match):
        remedy = "answer for each car of ControllableTeamInfo, or set hivemind = false"
        return check(_blame([match]), f"as a team {problem}", remedy)
    return check("pass", f"it drives {len(match.watch.cars)} cars")


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
    still = sum(map(match.watch.stands_still, cars))
    if still:
        return "it stands still" if still == len(cars) else f"{still} of its {len(cars)} cars stood still"
    return ""


def _blame(matches: Iterable[TriedMatch]) -> Literal["warning", "failure"]:
    """Return how bad it is that a bot does not play matches: those that took too long tell little."""
    told = any(_why_not(match) and not match.watch.has_timed_out for match in matches)
    return "failure" if told else "warning"
