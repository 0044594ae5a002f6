"""Read the reports that bots of this project write about themselves in a match."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta, ValidationError, convert
from rlbot import flat

from rlgym_bridge.server import BotResult, MatchResult
from rlgym_bridge.server.repeatability import REAL_TIME
from rlgym_bridge.user_input.arguments import count_of
from rlgym_bridge.user_input.text_files import escape_controls, parse_json, read_text


@dataclass(frozen=True)
class ForecastErrors:
    """Distances between forecast and shown places of the ball, or of a bot's own cars.

    Attributes:
        checked: Places that were compared.
        share_off: Share of them that were `off_uu` or more away; None without any.
        mean_error_uu: Their mean distance, None without any.
    """

    checked: int
    share_off: float | None
    mean_error_uu: float | None


@dataclass(frozen=True)
class ForecastCounts:
    """A bot's count of its forecasts.

    Attributes:
        latency: Ticks by which its inputs act late, as set or as measured last.
        measured: Whether it was measured.
        ticks: Of the latest forecast.
        forecasts: Decisions on a forecast state.
        missing: Decisions that should have been.
        off_uu: Distance from which on a place counts as wrong.
        ball: Errors of the ball's place.
        car: Errors of its own cars' places.
    """

    latency: int
    measured: bool
    ticks: int
    forecasts: int
    missing: int
    off_uu: float
    ball: ForecastErrors
    car: ForecastErrors


@dataclass(frozen=True)
class BotReport:
    """The report that a bot of this project writes about itself.

    Attributes:
        missed: Packets it never answered; None for a bot without a report.
        faults: Number of faults of each kind.
        dialect_file: The `dialect.toml` that it read, if any.
        refused: Why it will not play this match; None if it plays.
        checkpoints: Names of the checkpoints that have played, where it follows a run.
        forecast: Counts of its forecasts; None where it does not look ahead.
        no_forecast: Why it does not look ahead though it should.
    """

    missed: Annotated[int, Meta(ge=0)] | None = None
    faults: Mapping[str, int] = field(default_factory=dict)
    dialect_file: str | None = None
    refused: str | None = None
    checkpoints: Sequence[str] = ()
    forecast: ForecastCounts | None = None
    no_forecast: str | None = None


def read_bot_report(report: Path) -> BotReport:
    """Read a bot's report, whose texts change no terminal; an empty one if there is none, or it is none."""
    try:
        found = convert(parse_json(read_text(report)), BotReport)
    except (OSError, ValueError, ValidationError):
        return BotReport()
    faults = {escape_controls(kind): n for kind, n in found.faults.items()}
    dialect_file, refused, no_forecast = (
        text and escape_controls(text) for text in (found.dialect_file, found.refused, found.no_forecast)
    )
    checkpoints = tuple(map(escape_controls, found.checkpoints))
    return BotReport(found.missed, faults, dialect_file, refused, checkpoints, found.forecast, no_forecast)


def find_troubles(bot: BotResult, told: BotReport) -> Sequence[str]:
    """Return what the server saw go wrong in a bot beside the faults that it reports itself.

    A bot of this project reports what it missed: it leaves packets out in bursts, which is no trouble. Its
    tracebacks are none where it counts faults.
    """
    if told.missed is None:
        return bot.troubles
    wrote = [f"wrote {count_of(bot.exceptions, 'traceback')}"] if bot.exceptions and not told.faults else []
    return [*bot.intrusions, *wrote]


def find_refusal(match: flat.MatchConfiguration, reports: Sequence[Path]) -> str | None:
    """Return which bot will not play a match, and why, by the reports of its players; None where all play."""
    for player, report in zip(match.player_configurations, reports, strict=True):
        refused = read_bot_report(report).refused
        if refused is not None:
            return f"{getattr(player.variety, 'name', '')!r} {refused}"
    return None


def with_followed(result: MatchResult, told: list[BotReport]) -> MatchResult:
    """Return the result of a match, which cannot be repeated where a bot took a newer checkpoint in it."""
    took = [bot.name for bot, its in zip(result.bots, told, strict=True) if len(its.checkpoints) > 1]
    if not took or result.unrepeatable == REAL_TIME:
        return result
    sentence = f"{', '.join(dict.fromkeys(took))} took newer checkpoints"
    return replace(result, unrepeatable=(*result.unrepeatable, sentence))
