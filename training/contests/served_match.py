"""Read who plays, play matches over the match server in lockstep, several at once, and say who forfeited.

    entries of a command line -> Entrant: policies, runs, bot.toml files, what is built in
    ServedMatch -> MatchServer, a process for each bot, over RLBot's protocol -> ServedResult

A worker ends its match and its bots when it is told to stop, and when the process that started it has gone.
"""

import hashlib
import logging
import multiprocessing
import queue
import shutil
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final, cast

from rlbot import flat

from rlgym_bridge.components.user_errors import explain_error
from rlgym_bridge.game import BLUE, ORANGE
from rlgym_bridge.live.play import SEED_VARIABLE, SELECTION_VARIABLE
from rlgym_bridge.live.session import REPORT_VARIABLE
from rlgym_bridge.policy.files import MANIFEST_FILE, policy_path, read_files
from rlgym_bridge.policy.load_player import BUILT_IN
from rlgym_bridge.policy.manifest import SELECTIONS
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server import ConfigError, Impairments, MatchCalledOff, MatchResult, MatchServer
from rlgym_bridge.server.lineup import (
    BotReport,
    empty_match,
    find_troubles,
    first_of_process,
    read_bot_report,
    with_environment,
    with_line_up,
)
from rlgym_bridge.training.contests.kept_matches import KeptMatches, MatchKey, Progress, ServedResult
from rlgym_bridge.training.processes import ENDING, KILLED
from rlgym_bridge.user_input.failures import Failure
from rlgym_bridge.user_input.stop_signals import stopped_by_signals
from rlgym_bridge.user_input.text_files import read_text

LOGS: Final = "logs"
"""Folder, in that of a contest's results, for the logs of matches in which something went wrong."""

_LOG_LINES = 6  # of a bot's log, the last ones, that a forfeit quotes


@dataclass(frozen=True)
class ServedBot:
    """A bot that drives all cars of a team."""

    bot: str  # a policy folder, a `bot.toml`, `chaser`, `charger` or `random`
    selection: str | None = None  # `sample` or `argmax` in place of the policy's own; None to keep that
    environment: Mapping[str, str] = field(default_factory=dict)  # more variables of its processes
    car_id: int | None = None  # body of its cars in place of the bot's own; None to keep that


@dataclass(frozen=True)
class Entrant:
    """One that plays."""

    name: str  # in tables; of equal names each has its number behind it
    path: str  # policy folder, `bot.toml`, `chaser`, `charger` or `random`
    selection: str | None  # `sample` or `argmax` where the user chose it, else None
    content: str  # checksum of the policy's weights or of the `bot.toml`; empty for what is built in
    allow_modules: tuple[str, ...] = ()  # modules of its training run

    @property
    def bot(self) -> ServedBot:
        """Return it as a match takes it."""
        return ServedBot(self.path, self.selection)

    @property
    def identity(self) -> dict[str, str | None]:
        """Return what results are kept under: all but the modules."""
        return {"name": self.name, "path": self.path, "selection": self.selection, "content": self.content}

    @property
    def is_policy(self) -> bool:
        """Return whether it is a policy folder."""
        return (Path(self.path) / MANIFEST_FILE).is_file()


def read_entrants(given: Sequence[str], team_size: int) -> list[Entrant]:
    """Return the entries of a command line, checked, for teams of so many cars.

    Each is a policy folder, training run, checkpoint, `bot.toml`, `chaser`, `charger` or `random`; `:sample`
    or `:argmax` behind a policy chooses how it plays. Raises ConfigError where one is nothing that can be
    played, or is a policy for other team sizes; ValueError where the modules of a run cannot be read.
    """
    entrants = [_read_entrant(one, team_size) for one in given]
    count, seen = Counter(one.name for one in entrants), Counter[str]()
    named = []
    for one in entrants:
        seen[one.name] += 1
        number = f" #{seen[one.name]}" if count[one.name] > 1 else ""
        named.append(replace(one, name=one.name + number))
    return named


def split_selection(given: str) -> tuple[str, str | None]:
    """Return the path of an entry, and the selection behind it if there is one."""
    path, colon, selection = given.rpartition(":")
    if colon and selection in SELECTIONS and not Path(given).exists():
        return path, selection
    return given, None


def _read_entrant(given: str, team_size: int) -> Entrant:
    named, selection = split_selection(given)
    if named == "human" or named.startswith("psyonix:"):
        raise ConfigError(
            f"{given!r} plays in the real game alone, expected a bot: matches here have no game"
        )
    path = policy_path(named)
    if path not in BUILT_IN:
        path = str(Path(path).resolve()) if Path(path).exists() else path
    modules = run_modules(named)
    match = with_line_up(empty_match(), [path] * team_size, [path] * team_size, allow_modules=modules)
    bot = match.player_configurations[0].variety
    assert isinstance(bot, flat.CustomBot)  # others are refused without `humans`
    entrant = Entrant(bot.name or Path(path).parent.name, path, selection, _content_of(path), modules)
    if selection is None:
        return entrant
    if not entrant.is_policy:
        raise ConfigError(
            f"entry {given!r} is no policy, expected {named!r}: only policies choose how they act"
        )
    return replace(entrant, name=f"{entrant.name} ({selection})")


def _content_of(path: str) -> str:
    if path in BUILT_IN:
        return ""
    if (Path(path) / MANIFEST_FILE).is_file():
        return read_files(Path(path))[0].weights_sha256
    return hashlib.sha256(read_text(Path(path)).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class ServedMatch:
    """A match to play. What is level when the time is up is drawn.

    It also ends when nobody touches the ball of a kickoff for as long: the game's clock waits for that.
    """

    bots: tuple[ServedBot, ServedBot]  # those of blue and of orange
    team_size: int  # cars a team
    seconds: float  # game time
    seed: int  # of kickoffs, respawns, sampled actions and impairments
    simulator: str  # one of `simulator.SIMULATORS`
    allow_modules: tuple[str, ...]  # modules that policy folders may import
    log_dir: Path  # folder for logs, kept where something went wrong
    impairments: Impairments = field(default_factory=Impairments)  # simulated between game and bots
    dialect: Mapping[str, str] = field(default_factory=dict)  # the protocol variant


def line_up(match: ServedMatch) -> flat.MatchConfiguration:
    """Return the configuration of a match; raises ConfigError where a bot cannot play it."""
    blue, orange = ([one.bot] * match.team_size for one in match.bots)
    configuration = with_line_up(empty_match(), blue, orange, allow_modules=match.allow_modules)
    for player in configuration.player_configurations:
        its = match.bots[player.team]
        if its.car_id is not None and isinstance(player.variety, flat.CustomBot):
            player.variety.loadout = flat.PlayerLoadout(car_id=its.car_id)
    return configuration


def play_served(match: ServedMatch, begin: Callable[[MatchServer], None] = lambda _: None) -> ServedResult:
    """Play a match to its end; `begin` is called with the server before it, whose `stop` ends it."""
    configuration = line_up(match)
    with (
        _logged(match.log_dir),
        tempfile.TemporaryDirectory(prefix="rlgym-bridge-", ignore_cleanup_errors=True) as folder,
    ):
        reports = [Path(folder, f"{i}.json") for i, _ in enumerate(configuration.player_configurations)]
        environments = []
        for player, report in zip(configuration.player_configurations, reports, strict=True):
            its = match.bots[player.team]
            variables = {REPORT_VARIABLE: str(report), SEED_VARIABLE: str(match.seed), **its.environment}
            chosen = {} if its.selection is None else {SELECTION_VARIABLE: its.selection}
            environments.append(variables | chosen)
        with_environment(configuration, environments)
        with MatchServer(
            pace="lockstep", seed=match.seed, seconds=match.seconds, max_overtime=0.0,
            max_kickoff=match.seconds, log_dir=match.log_dir, impairments=match.impairments,
            dialect=ProtocolVariant(match.dialect), simulator=match.simulator,
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
            tail = "".join(f"\n    {line}" for line in bot.log_tail.splitlines()[-_LOG_LINES:])
            left = f"{bot.name} left before the end{bot.last_code}"
            reasons[bot.team] = reasons[bot.team] or f"{left}; its log ends with:{tail or ' (nothing)'}"
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


@contextmanager
def _logged(folder: Path) -> Iterator[None]:
    """Write the server's log of a match to `server.log` in the folder of its logs."""
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


_END_SECONDS: Final = 15.0  # for a worker to end its bots and leave
_LOOK_SECONDS: Final = 0.2  # between two looks whether to stop
_STOP_AGAIN: Final = 0.1  # s; a server forgets that it was stopped when it begins its match

_Named = tuple[MatchKey, ServedMatch]


def _play_in_workers(
    matches: Sequence[_Named], count: int, stopping: threading.Event
) -> Generator[tuple[MatchKey, ServedResult], None, None]:
    """Yield the results of matches in processes as they end; once stopping, of none that has not ended."""
    context = multiprocessing.get_context("spawn")
    workers: list[tuple[Connection, Any]] = []
    left, busy = iter(matches), dict[Connection, MatchKey]()

    def send_next(connection: Connection) -> None:
        following = None if stopping.is_set() else next(left, None)
        if following is not None:
            busy[connection] = following[0]
            connection.send(following[1])

    try:
        for number in range(count):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(theirs,), name=f"match {number}", daemon=True)
            worker.start()
            theirs.close()
            workers.append((ours, worker))
            send_next(ours)
        while busy:
            if stopping.is_set():
                for connection, _ in workers:
                    with suppress(OSError):
                        connection.send(None)
            for ready in cast("list[Connection]", wait(list(busy), _LOOK_SECONDS)):
                key = busy.pop(ready)
                try:
                    answer = ready.recv()
                except (EOFError, OSError) as error:
                    if stopping.is_set():  # Ctrl-C ended it before it could listen
                        continue
                    raise Failure(KILLED) from error
                if isinstance(answer, Exception):
                    raise answer
                send_next(ready)
                if not answer.stopped:
                    yield key, answer
    finally:  # the workers end their matches and bots
        for connection, _ in workers:
            connection.close()
        for _, worker in workers:
            worker.join(_END_SECONDS)
            if worker.is_alive():
                worker.terminate()


def _work(connection: Connection) -> None:
    """Play the matches that come, in a process of its own, until it is told to stop or its parent is gone."""
    for number in ENDING:  # of a whole terminal: the process that started this one says when to stop
        signal.signal(number, lambda *_: None)
    logging.getLogger("rlgym_bridge").setLevel(logging.INFO)
    matches: queue.SimpleQueue[ServedMatch | None] = queue.SimpleQueue()
    stopping = threading.Event()

    def listen() -> None:
        with suppress(EOFError, OSError):
            while (match := connection.recv()) is not None:
                matches.put(match)
        stopping.set()
        matches.put(None)

    def stop_when_told(server: MatchServer, over: threading.Event) -> None:
        while not over.wait(_STOP_AGAIN):
            if stopping.is_set():
                server.stop()

    threading.Thread(target=listen, daemon=True).start()
    while (match := matches.get()) is not None:
        over = threading.Event()

        def begin(server: MatchServer, over: threading.Event = over) -> None:
            threading.Thread(target=stop_when_told, args=(server, over), daemon=True).start()

        answer: ServedResult | Exception
        try:
            answer = play_served(match, begin)
        except ValueError as error:
            answer = ValueError(str(error))
        except (Exception, SystemExit) as error:
            answer = Failure(explain_error(error))
        finally:
            over.set()
        with suppress(OSError):
            connection.send(answer)


def play_missing(kept: KeptMatches, wanted: Sequence[_Named], jobs: int, report: Progress) -> bool:
    """Play the matches that are not kept yet, `jobs` at once, and keep each as soon as it has ended.

    Return whether all were played; False where Ctrl-C or another program ended it. Raises ValueError where a
    match cannot be played; Failure where a worker was killed, or something broke in it.
    """
    left = [pair for pair in wanted if pair[0] not in kept.results]
    done, stopping = len(wanted) - len(left), threading.Event()
    with (
        stopped_by_signals(stopping.set),
        closing(_play_in_workers(left, min(jobs, len(left)), stopping)) as results,
    ):
        for key, result in results:
            kept.add({key: result})
            done += 1
            report(done, len(wanted), {key: result})
    return done == len(wanted)
