"""Print the result of a match, and return it as JSON."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape

from rlgym_bridge.cli.options import make_table
from rlgym_bridge.game import Phase
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server import BotResult, Impairments, MatchResult, MatchStatus
from rlgym_bridge.server.bot_account import REAL_TIME
from rlgym_bridge.server.lineup import BotReport, ForecastCounts, ForecastErrors, find_troubles
from rlgym_bridge.sim.simulator import simulator_for
from rlgym_bridge.user_input.extras import versions_of

_PHASES: Final = {
    Phase.COUNTDOWN: "countdown", Phase.KICKOFF: "kickoff", Phase.ACTIVE: "play",
    Phase.GOAL_SCORED: "goal", Phase.REPLAY: "replay", Phase.ENDED: "over",
}  # fmt: skip


def describe_match(mode: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server's recording says of its match, given arguments of `MatchServer`."""
    dialect: ProtocolVariant = settings.get("dialect", ProtocolVariant())
    return {
        "by": "server", "world": asdict(settings.get("impairments", Impairments())),
        "dialect": [f"{name}={value}" for name, value in dialect.complete().items()],
        "physics": {name: one.value for name, one in settings.get("constants", {}).items()},
        "simulator": settings["simulator"] or simulator_for(mode)[0],
        "versions": versions_of("rlbot", "rocketsim", "rlgym-rocket-league", "numpy"),
        "pace": settings["pace"], "seed": settings["seed"],
    }  # fmt: skip


def summarise(result: MatchResult, told: list[BotReport], recording: Path | None) -> dict[str, Any]:
    """Return the result as other programs read it: the keys of `--json`."""
    names = ("winner", "overtime", "ended_by", "ticks", "playing_ticks", "seed", "server_late")
    return {
        "score": list(result.score),
        **{name: getattr(result, name) for name in names},
        "recording": None if recording is None else str(recording),
        "seconds": round(result.seconds, 3),
        "unrepeatable": list(result.unrepeatable),
        "bots": [_summarise_bot(bot, told[bot.index]) for bot in result.bots],
    }


def _summarise_bot(bot: BotResult, told: BotReport) -> dict[str, Any]:
    names = (
        "name", "team", "agent_id", "touches", "goals", "demolitions", "bumps", "replies", "late",
        "unanswered", "exceptions", "crashed", "exit_code",
    )  # fmt: skip
    times = {"p50": bot.reply_p50_ms, "p99": bot.reply_p99_ms}
    return {name: getattr(bot, name) for name in names} | {
        "boost_used": round(bot.boost_used, 1),
        "missed": told.missed,
        "faults": dict(told.faults),
        "dialect_file": told.dialect_file,
        "checkpoints": list(told.checkpoints),
        "forecast": None if told.forecast is None else asdict(told.forecast),
        "no_forecast": told.no_forecast,
        "no_search": told.no_search,
        "reply_ms": {name: None if math.isnan(ms) else round(ms, 4) for name, ms in times.items()},
        "foreign_ids": list(bot.foreign_ids),
    }


def progress_line(status: MatchStatus) -> str:
    """Return the line that shows a match while it is played; of each team the slowest bot's reply time."""
    clock = math.ceil(status.clock)
    sign = "+" if status.overtime else ""
    replies = []
    for team, color in enumerate(("blue", "orange")):
        times = [ms for one, ms in zip(status.teams, status.reply_p50_ms, strict=True) if one == team]
        known = [ms for ms in times if not math.isnan(ms)]
        replies += [f"{color} {max(known):.2f}"] if known else []
    told = f"   reply ms: {', '.join(replies)}" if replies else ""
    return (
        f"{status.score[0]} : {status.score[1]}   {sign}{clock // 60}:{clock % 60:02d}   "
        f"{_PHASES.get(status.phase, ''):9}   {status.ticks_per_second:,.0f} ticks/s{told}"
    )


def print_result(console: Console, result: MatchResult, told: list[BotReport]) -> None:
    """Print a table of the bots, what went wrong in them, and the score."""
    numbers = ("goals", "touches", "demos", "boost used", "reply p50", "p99 ms", "late", "missed")
    table = make_table("bot", numbers=numbers)
    for bot in result.bots:
        values = (bot.goals, bot.touches, bot.demolitions, round(bot.boost_used))
        replies = ("-" if math.isnan(ms) else f"{ms:.2f}" for ms in (bot.reply_p50_ms, bot.reply_p99_ms))
        missed = told[bot.index].missed
        table.add_row(
            f"[{('blue', 'dark_orange')[bot.team]}]{escape(bot.name)}[/]",
            *map(str, values), *replies, str(bot.late), "-" if missed is None else str(missed),
        )  # fmt: skip
    console.print(table)
    printed: set[int] = set()  # the cars of a hivemind have one report
    for bot in result.bots:
        report = told[bot.index]
        _print_remarks(console, bot, BotReport() if id(report) in printed else report)
        printed.add(id(report))
    if result.unrepeatable != REAL_TIME:
        for sentence in result.unrepeatable:
            console.print(f"[red]the match cannot be repeated: {escape(sentence)}[/]")
    played = result.ticks / 120
    outcome = "a draw" if result.winner == "draw" else f"{result.winner} wins"
    console.print(f"blue {result.score[0]} : {result.score[1]} orange   {outcome} ({result.ended_by})")
    console.print(
        f"{played:.0f} s of game in {result.seconds:.1f} s: {result.ticks:,} ticks, "
        f"{result.ticks / result.seconds:,.0f} a second, {result.server_late} sent late"
    )


def _describe_forecasts(counts: ForecastCounts) -> str:
    """Return what a bot forecast, and how right that was."""

    def describe(whose: str, errors: ForecastErrors) -> str:
        if errors.share_off is None or errors.mean_error_uu is None:
            return f"{whose} was never compared"
        far = f"{counts.off_uu:g} uu off or more in {errors.share_off:.1%}"
        return f"{whose} {far}, {errors.mean_error_uu:.1f} uu in the mean"

    how = "measured" if counts.measured else "not measured"
    missing = f", {counts.missing} more could not be made" if counts.missing else ""
    return (
        f"looks {counts.ticks} ticks ahead (input latency {counts.latency}, {how}): "
        f"{counts.forecasts:,} forecasts{missing}, {describe('the ball', counts.ball)}, "
        f"{describe('its own car', counts.car)}"
    )


def _print_remarks(console: Console, bot: BotResult, told: BotReport) -> None:
    name = escape(bot.name)
    if told.dialect_file:
        file = escape(told.dialect_file)
        console.print(f"{name} read the server's dialect from {file}")
    if told.checkpoints:
        console.print(f"{name} played checkpoint {escape(', '.join(told.checkpoints))}")
    if told.forecast is not None:
        console.print(f"{name} {_describe_forecasts(told.forecast)}")
    if told.no_forecast is not None:
        console.print(f"{name} does not look ahead: {escape(told.no_forecast)}")
    if told.no_search is not None:
        console.print(f"[yellow]{name} played without its search, and weaker: {escape(told.no_search)}[/]")
    if told.faults:
        counts = ", ".join(f"{kind} {count} times" for kind, count in told.faults.items())
        where = f"; its log says more: {bot.log_path}" if bot.log_path else ""
        console.print(f"[red]{name}: {escape(counts + where)}[/]")
    if (seen := find_troubles(bot, told)) and not bot.crashed:
        where = f"; its log: {escape(bot.log_path)}" if bot.log_path else ""
        console.print(f"[red]{name} {', '.join(seen)}{where}[/]")
    if bot.crashed:
        console.print(f"[red]{name} left before the end{bot.last_code}; its car stood still from then on[/]")
        for line in bot.log_tail.splitlines():
            console.print(f"    {line}", markup=False)
        if bot.log_path:
            console.print(f"    whole log: {bot.log_path}", markup=False)
    if bot.invalid_inputs:
        console.print(f"[red]{name} sent {bot.invalid_inputs} inputs that are no finite numbers; dropped[/]")
