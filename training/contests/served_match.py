"""Play one match over the match server in lockstep, and say who forfeited it.

ServedMatch -> MatchServer, a process for each bot, over RLBot's protocol -> ServedResult
"""

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rlbot import flat

from rlgym_bridge.dialect import Dialect
from rlgym_bridge.game import BLUE, ORANGE
from rlgym_bridge.live.agent import SEED_VARIABLE
from rlgym_bridge.live.play import SELECTION_VARIABLE
from rlgym_bridge.live.session import REPORT_VARIABLE
from rlgym_bridge.matches.bot_report import BotReport, find_troubles, read_bot_report
from rlgym_bridge.matches.lineup import empty_match, first_of_process, with_environment, with_line_up
from rlgym_bridge.server import BotResult, Impairments, MatchCalledOff, MatchResult, MatchServer

LOGS: Final = "logs"
"""Folder, in that of a contest's results, for the logs of matches in which something went wrong."""

_LOG_LINES = 6  # of a bot's log, the last ones, that a forfeit quotes


@dataclass(frozen=True)
class ServedBot:
    """A bot that drives all cars of a team.

    Attributes:
        bot: A policy folder, a `bot.toml`, `chaser`, `charger` or `random`.
        selection: `sample` or `argmax` in place of the policy's own; None to keep that.
        environment: Further environment variables of its processes.
        car_id: Body of its cars in place of the bot's own; None to keep that.
    """

    bot: str
    selection: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    car_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class ServedMatch:
    """A match to play. What is level when the time is up is drawn.

    It also ends when nobody touches the ball of a kickoff for as long: the game's clock waits for that.

    Attributes:
        bots: Those of blue and of orange.
        team_size: Cars a team.
        seconds: Game time.
        seed: Of kickoffs, respawns, sampled actions and impairments.
        simulator: What plays, one of `simulator.SIMULATORS`.
        allow_modules: Modules that policy folders may import.
        log_dir: Folder for logs, kept where something went wrong.
        impairments: What is simulated between game and bots.
        dialect: How packets speak.
    """

    bots: tuple[ServedBot, ServedBot]
    team_size: int
    seconds: float
    seed: int
    simulator: str
    allow_modules: tuple[str, ...]
    log_dir: Path
    impairments: Impairments = field(default_factory=Impairments)
    dialect: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ServedResult:
    """The result of a match.

    Attributes:
        goals: Of blue and of orange.
        touches: Of all cars of blue and of orange.
        ticks: Of the match; 0 where it did not begin.
        course: Some number that is equal where matches went alike.
        forfeits: Why blue and why orange forfeit; empty for a team that does not.
        remarks: What went wrong with bots that do not forfeit.
        stopped: It was ended before its time, and counts for nothing.
    """

    goals: tuple[int, int] = (0, 0)
    touches: tuple[int, int] = (0, 0)
    ticks: int = 0
    course: float = 0.0
    forfeits: tuple[str, str] = ("", "")
    remarks: tuple[str, ...] = ()
    stopped: bool = False


def line_up(match: ServedMatch) -> flat.MatchConfiguration:
    """Return the configuration of a match.

    Raises:
        ConfigError: A bot is nothing that can be played, or does not play this team size.
    """
    blue, orange = ([one.bot] * match.team_size for one in match.bots)
    configuration = with_line_up(empty_match(), blue, orange, allow_modules=match.allow_modules)
    for player in configuration.player_configurations:
        its = match.bots[player.team]
        if its.car_id is not None and isinstance(player.variety, flat.CustomBot):
            player.variety.loadout = flat.PlayerLoadout(car_id=its.car_id)
    return configuration


def play_served(match: ServedMatch, begin: Callable[[MatchServer], None] = lambda _: None) -> ServedResult:
    """Play a match to its end.

    Args:
        match: What is to be played.
        begin: Called with the server before the match: `MatchServer.stop` ends it.

    Raises:
        ConfigError: The match cannot be played.
        ServerError: There is no free port.
    """
    configuration = line_up(match)
    with (
        _logged(match.log_dir),
        tempfile.TemporaryDirectory(prefix="rlgym-bridge-", ignore_cleanup_errors=True) as folder,
    ):
        reports = [Path(folder, f"{i}.json") for i, _ in enumerate(configuration.player_configurations)]
        with_environment(
            configuration,
            [
                _environment(match, player.team, report)
                for player, report in zip(configuration.player_configurations, reports, strict=True)
            ],
        )
        with MatchServer(
            pace="lockstep", seed=match.seed, seconds=match.seconds, max_overtime=0.0,
            max_kickoff=match.seconds, log_dir=match.log_dir, impairments=match.impairments,
            dialect=Dialect(match.dialect), simulator=match.simulator,
        ) as server:  # fmt: skip
            begin(server)
            try:
                played = server.play(configuration)
            except MatchCalledOff as error:
                result = _called_off(error, configuration, reports)
            else:
                told = [read_bot_report(path) for path in reports]
                result = _result_of(played, [told[first] for first in first_of_process(configuration)])
    if result.stopped or not (any(result.forfeits) or result.remarks):
        shutil.rmtree(match.log_dir, ignore_errors=True)
    return result


def _environment(match: ServedMatch, team: int, report: Path) -> dict[str, str]:
    its = match.bots[team]
    variables = {REPORT_VARIABLE: str(report), SEED_VARIABLE: str(match.seed), **its.environment}
    return variables if its.selection is None else variables | {SELECTION_VARIABLE: its.selection}


def _called_off(
    error: MatchCalledOff, configuration: flat.MatchConfiguration, reports: list[Path]
) -> ServedResult:
    """Return the result of a match that a bot kept from beginning: its team forfeits."""
    reasons = ["", ""]
    for car in error.cars:
        team = configuration.player_configurations[car].team
        refused = read_bot_report(reports[car]).refused
        reasons[team] = reasons[team] or (f"refused: it {refused}" if refused else str(error))
    if not any(reasons):
        raise error
    return ServedResult(forfeits=(reasons[BLUE], reasons[ORANGE]))


def _result_of(played: MatchResult, told: list[BotReport]) -> ServedResult:
    reasons, touches, remarks = ["", ""], [0, 0], []
    for bot in played.bots:
        touches[bot.team] += bot.touches
        faults = [f"{kind} {count} times" for kind, count in told[bot.index].faults.items()]
        troubles = [*faults, *find_troubles(bot, told[bot.index])]
        if bot.crashed:
            reasons[bot.team] = reasons[bot.team] or _describe_crash(bot)
        elif troubles:
            remarks.append(f"{bot.name} ({('blue', 'orange')[bot.team]}): {', '.join(troubles)}")
    return ServedResult(
        goals=played.score,
        touches=(touches[BLUE], touches[ORANGE]),
        ticks=played.ticks,
        course=round(sum((bot.index + 1) * bot.boost_used for bot in played.bots), 3),
        forfeits=(reasons[BLUE], reasons[ORANGE]),
        remarks=tuple(remarks),
        stopped=played.ended_by == "stopped",
    )


def _describe_crash(bot: BotResult) -> str:
    code = "" if bot.exit_code is None else f", exit code {bot.exit_code}"
    tail = "".join(f"\n    {line}" for line in bot.log_tail.splitlines()[-_LOG_LINES:])
    return f"{bot.name} left before the end{code}; its log ends with:{tail or ' (nothing)'}"


@contextmanager
def _logged(folder: Path) -> Iterator[None]:
    """Write what the server says of a match to `server.log` in the folder of its logs."""
    folder.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(folder / "server.log", "w", encoding="utf-8")
    logger = logging.getLogger("rlgym_bridge")
    before, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before
        handler.close()
