"""Check a bot: its folder, then matches in which each check has its place.

folder -> lockstep match with scenes -> real-time match as orange -> a match for each further tag
"""

from collections.abc import Iterator
from typing import Final

from rlgym_bridge.game import ORANGE, PLAYING_PHASES, TICKS_PER_SECOND
from rlgym_bridge.trials.answer_verdicts import (
    MOST_UNANSWERED,
    judge_answers,
    judge_moves,
    unanswered_share,
)
from rlgym_bridge.trials.bot_folder import MODES, BotFile
from rlgym_bridge.trials.bot_verdict import BotVerdict
from rlgym_bridge.trials.folder_checks import check_folder, runs_here
from rlgym_bridge.trials.match_scenes import MatchScenes
from rlgym_bridge.trials.match_watch import MatchWatch
from rlgym_bridge.trials.scene_verdicts import (
    further_teams,
    judge_hivemind,
    judge_restart,
    judge_scenes,
    judge_tags,
)
from rlgym_bridge.trials.start_verdicts import judge_start
from rlgym_bridge.trials.tried_match import MatchPlan, MatchTrier, TriedMatch

PLAYED: Final = (
    "connects", "agent id", "initialises", "answers", "in time", "numbers", "moves", "goal", "demolition",
    "overtime", "joins midway", "restart", "tags",
)  # fmt: skip
"""Names of the checks that play, in their order; hiveminds have one more."""

_SCENES_SECONDS: Final = 90.0  # of wall time; on a quiet machine a quick bot needs six
_PLAY_SECONDS: Final = 4  # in play, of matches without scenes
_COUNTDOWN_TICKS: Final = 20 * TICKS_PER_SECOND  # until play at most


def check_bot(bot: BotFile, trier: MatchTrier, timeout: float) -> Iterator[BotVerdict]:
    """Check a bot; each verdict comes as soon as it is known.

    Args:
        bot: The bot.
        trier: Plays its matches.
        timeout: The trier's, s.

    Raises:
        KeyboardInterrupt: The trier was stopped.
    """
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

    def play_scenes(watch: MatchWatch) -> Iterator[None]:
        scenes.append(MatchScenes(watch, timeout))
        return scenes[0].play()

    first = trier.play(
        MatchPlan(
            name="lockstep match with scenes", script=play_scenes, size=home, mode=bot.home_mode,
            seconds=_SCENES_SECONDS,
        )
    )  # fmt: skip
    yield from judge_start(bot, first, timeout)
    if first.result is None or not scenes:
        return
    second: TriedMatch | None = None
    if unanswered_share(first.bots) <= MOST_UNANSWERED and any(one.replies for one in first.bots):
        second = trier.play(
            MatchPlan(
                name="real-time match", script=_play_on, team=ORANGE, size=home, mode=bot.home_mode,
                pace="realtime",
            )
        )  # fmt: skip
    yield from judge_answers(bot, first, second)
    if not any(one.replies for one in first.bots):
        return
    as_orange = None
    if second is not None and second.result is not None and not second.watch.has_timed_out:
        as_orange = second.watch.have_moved
    yield judge_moves(bot, scenes[0].moved, as_orange)
    yield from judge_scenes(scenes[0], first)
    if second is not None:
        yield judge_restart(first, second)
        if scenes[0].moved or as_orange:
            yield from _check_teams(bot, trier, home)


def _check_teams(bot: BotFile, trier: MatchTrier, home: int) -> Iterator[BotVerdict]:
    """Play the teams and modes that the tags promise, and a team of two with a hivemind."""
    tried: list[tuple[str, TriedMatch]] = []
    pair: TriedMatch | None = None
    for label, size, tag in further_teams(bot, home):
        mode = MODES[tag] if tag else bot.home_mode
        match = trier.play(MatchPlan(name=f"{label} match", script=_until_moved, size=size, mode=mode))
        tried.append((label, match))
        pair = match if size > 1 else pair
    yield judge_tags(bot, f"{home}v{home}", tried)
    if bot.is_hivemind:
        if pair is None:
            pair = trier.play(
                MatchPlan(name="2v2 match", script=_until_moved, size=2, mode=bot.home_mode)
            )  # fmt: skip
        yield judge_hivemind(pair)


def _play_on(watch: MatchWatch) -> Iterator[None]:
    """Play a kickoff for some seconds."""
    yield from watch.wait(_COUNTDOWN_TICKS, lambda: watch.phase in PLAYING_PHASES)
    watch.begin_way()
    yield from watch.wait(_PLAY_SECONDS * TICKS_PER_SECOND, lambda: False)


def _until_moved(watch: MatchWatch) -> Iterator[None]:
    """Play a kickoff until all cars have moved, or for some seconds."""
    yield from watch.wait(_COUNTDOWN_TICKS, lambda: watch.phase in PLAYING_PHASES)
    watch.begin_way()
    yield from watch.wait(2 * _PLAY_SECONDS * TICKS_PER_SECOND, lambda: watch.have_moved)
