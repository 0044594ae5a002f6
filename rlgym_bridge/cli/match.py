"""Play a match and print who won and how fast the bots answered: `rlgym-bridge match`."""

import argparse
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rlbot import flat
from rlbot.config import load_match_config

from rlgym_bridge.cli import browser_page, output_files
from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli.match_summary import describe_match, print_result, progress_line, summarise
from rlgym_bridge.cli.view import add_watch_options, watched
from rlgym_bridge.live.agent_recorder import RECORD_VARIABLE
from rlgym_bridge.live.play import SEED_VARIABLE, SELECTION_VARIABLE
from rlgym_bridge.live.session import REPORT_VARIABLE
from rlgym_bridge.project.this_project import match_file
from rlgym_bridge.recording.mcap.drawable import state_message
from rlgym_bridge.recording.mcap.mcap_reader import MAGIC
from rlgym_bridge.recording.mcap.mcap_writer import Recorder, RecordingError, parts_of
from rlgym_bridge.recording.mcap.merge import bot_file, bot_files, left_over, merge
from rlgym_bridge.server import (
    ConfigError,
    MatchCalledOff,
    MatchResult,
    MatchServer,
    MatchStatus,
    ServerError,
    lineup,
    read_match_file,
)  # fmt: skip
from rlgym_bridge.server.bot_files import Source, catch_rlbot_errors, parsed
from rlgym_bridge.server.game.rules import name_of
from rlgym_bridge.trials.real_match import play_real_match
from rlgym_bridge.user_input.arguments import count_of
from rlgym_bridge.user_input.stop_signals import stopped_by_signals

if TYPE_CHECKING:
    from rlgym_bridge.view.web.played_match import PlayedMatch

_BOT: Final = Path("bot.toml")


_WAIT_SECONDS: Final = 10.0  # for bots to write what is left when their match is over
_POLL_SECONDS: Final = 0.1


class RecordedMatch:
    """The recording of a match: its file, and until it is over one for each bot beside it.

    Attributes:
        file: The recording, links followed; None where there is to be none.
        failed: Why it is not whole; None where it is, as far as is known.

    Raises:
        ConfigError: The file is no `.mcap`, is there already, or an earlier match left something beside it.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = None if file is None else file.resolve()  # a link to a file yet to be made stays
        self.failed: str | None = None
        self._recorder: Recorder | None = None
        if self.file is None:
            return
        if self.file.suffix != ".mcap":
            raise ConfigError(f"--record is {file}, expected a file whose name ends with .mcap")
        if self.file.exists():
            raise ConfigError(f"--record is {file}, which is there already; expected a new file")
        output_files.check_outputs(self.file)
        if parts := left_over(self.file):
            raise ConfigError(
                f"--record is {file}, but beside it lie {', '.join(one.name for one in parts)}, left by a "
                "match that was killed: move or remove them (each .mcap is a recording by itself), or record "
                "to another file"
            )

    def environment(self, player: int) -> dict[str, str]:
        """Return the environment variables that make a bot's process record."""
        return {} if self.file is None else {RECORD_VARIABLE: str(bot_file(self.file, player))}

    def recorder(self, mode: str, settings: dict[str, Any]) -> Recorder | None:
        """Begin the server's file; `settings` are the server's; raises ConfigError if it cannot be made."""
        if self.file is None:
            return None
        try:
            self._recorder = Recorder(self.file, describe_match(mode, settings), prepare=state_message)
        except RecordingError as error:
            raise ConfigError(str(error)) from error
        return self._recorder

    def finish(self) -> None:
        """Merge all files into one; of a match that never began nothing is left."""
        if self.file is None:
            return
        if self._recorder is not None:
            self._recorder.close()
            self.failed = self._recorder.failed
            if self.failed is None and self._recorder.dropped:
                missing = count_of(self._recorder.dropped, "message")
                self.failed = f"{missing} could not be written in time and are missing"
            if self._recorder.is_empty:
                for file in (self.file, *bot_files(self.file)):
                    file.unlink(missing_ok=True)
                self.file = None
                return
        else:  # bots that another server started
            _wait_until_written(self.file)
        try:
            notes = merge(self.file, bot_files(self.file))
        except OSError as error:
            self.failed = f"the bots' recordings stay beside it: {error}"
            notes = [f"{self.file}: {self.failed}"]
        for note in notes:
            print(f"warning: {note}", file=sys.stderr)


def _wait_until_written(file: Path) -> None:
    """Wait until the bots' recordings beside a file have their end, or the time is up."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline:
        files = [part for one in bot_files(file) for part in (one, *parts_of(one))]
        if all(map(_has_end, files)):
            return
        time.sleep(_POLL_SECONDS)


def _has_end(file: Path) -> bool:
    """Tell whether a recording ends as MCAP files do."""
    with file.open("rb") as stream:
        stream.seek(max(file.stat().st_size - len(MAGIC), len(MAGIC)))  # it begins in the same way
        return stream.read() == MAGIC


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Play a match between RLBot v5 bots, on the embedded match server (RocketSim, no game needed) or in "
        "Rocket League itself."
    )
    shared.add_option(
        parser, "config", "match file, RLBot v5 .toml or v4 .cfg (default: match.toml or rlbot.cfg in the "
        "current folder, or else the shipped bot against Chaser; with --blue, --follow or --orange a "
        "standard match)", Path, nargs="?",
    )  # fmt: skip
    _add_line_up_options(parser)
    shared.add_server_option(parser)
    shared.add_modules_option(parser)
    shared.add_option(
        parser, "--allow-clients", "let every program that connects drive cars and stop the match (default: "
        "the bots that the match starts; for bots started by hand, programs of this user)",
    )  # fmt: skip
    shared.add_match_options(parser)
    shared.add_option(
        parser, "--record FILE", "record packets, inputs and decisions to FILE (.mcap), for the commands "
        "inspect, compare and view", Path,
    )  # fmt: skip
    add_watch_options(parser, "; without --watch: show it on the page of `play`, without Rerun")
    browser_page.add_page_options(parser)
    shared.add_selection_options(parser)


def _add_line_up_options(parser: argparse.ArgumentParser) -> None:
    bots = (
        "BOT is a policy folder, a training run, a bot.toml, chaser, charger or random; with --server rlbot "
        "or --allow-idle also human or psyonix:SKILL (beginner, rookie, pro, allstar)"
    )
    blue = parser.add_mutually_exclusive_group()
    shared.add_option(
        blue, "--blue BOT", f"bots of the blue team, in place of the match file's. {bots}", nargs="+"
    )
    shared.add_option(
        blue, "--follow RUN", "the same, as training runs that may still train: each car plays its run's "
        "newest checkpoint, and takes a newer one at the next kickoff", nargs="+",
    )  # fmt: skip
    shared.add_option(parser, "--orange BOT", "the same for the orange team", nargs="+")


def run(options: argparse.Namespace) -> int:
    """Play the match and print how it went."""
    _check_together(options)
    console = shared.console_of(options)
    read = [options.config or match_file(), options.physics, *_bot_files(options)]
    output_files.check_outputs(options.json, inputs=read)
    output_files.check_different(options.json, options.record)
    real_game = options.server == "rlbot"
    settings = shared.server_settings(options)
    configuration = lineup.with_line_up(
        _match_of(options), options.blue or options.follow, options.orange,
        real_game or options.allow_idle, options.allow_modules, follow=options.follow is not None,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="rlgym-bridge-", ignore_cleanup_errors=True) as folder:
        players = range(len(configuration.player_configurations))
        reports = [Path(folder) / f"{i}.json" for i in players]
        recorded = RecordedMatch(options.record)
        chosen = {SELECTION_VARIABLE: options.selection} if options.selection else {}
        variables = {SEED_VARIABLE: str(options.seed), **chosen}
        lineup.with_environment(
            configuration,
            [variables | {REPORT_VARIABLE: str(reports[i])} | recorded.environment(i) for i in players],
        )
        try:
            if real_game:
                result = play_real_match(
                    configuration,
                    console,
                    lambda: lineup.find_refusal(configuration, reports),
                    options.seconds,
                )
            else:
                recorder = recorded.recorder(name_of(configuration.game_mode), settings)
                result = _play(configuration, options, settings | {"recorder": recorder}, console)
        except (MatchCalledOff, ServerError) as error:
            if (refused := lineup.find_refusal(configuration, reports)) is not None:
                raise ConfigError(f"the match was called off: {refused}") from error
            raise
        finally:
            recorded.finish()
        by_process = [lineup.read_bot_report(path) for path in reports]
        told = [by_process[first] for first in lineup.first_of_process(configuration)]
    result = lineup.with_followed(result, told)
    print_result(console, result, told)
    if recorded.failed is not None:
        print(f"error: {options.record} is not a whole recording: {recorded.failed}", file=sys.stderr)
    elif recorded.file is not None:
        console.print(f"recorded to {options.record}", markup=False)
        view = shlex.join(["rlgym-bridge", "view", str(options.record), "--html"])
        console.print(f"next: {view}", markup=False, soft_wrap=True)
    if result.ended_by == "stopped":
        print("stopped", file=sys.stderr)
    output_files.write_json(options.json, summarise(result, told, recorded.file))
    troubled = recorded.failed is not None or any(
        bot.crashed or told[bot.index].faults or lineup.find_troubles(bot, told[bot.index])
        for bot in result.bots
    )
    return 1 if troubled or result.ended_by == "stopped" else 0


def _check_together(options: argparse.Namespace) -> None:
    """Raise `ConfigError` for options that have no effect together."""
    if options.allow_modules and not (options.blue or options.orange or options.follow):
        raise ConfigError(
            f"--allow-modules is {' '.join(options.allow_modules)}, expected policies or runs with it, such "
            "as --blue runs/mine; a bot.toml's program names its modules itself (allow_modules in bot.py)"
        )
    browser_page.check_port(options, options.web and not options.watch)
    network = dict.fromkeys(shared.IMPAIRMENTS, 0)
    shown = {"physics": None, "simulator": None, "watch": False, "web": False, "pace": "realtime"}
    shared.refuse_with_rlbot(options, **network, **shown, dialect=[], max_overtime=300.0, max_hang=60.0)


@contextmanager
def _page_of(
    options: argparse.Namespace, configuration: flat.MatchConfiguration
) -> "Iterator[PlayedMatch | None]":
    """Show a match on our own page until the block ends, where `--web` stands without `--watch`."""
    if options.watch or not options.web:
        yield None
        return
    browser_page.check_installed()
    from rlgym_bridge.view.web.played_match import PlayedMatch

    policies = browser_page.NamedPolicies(())
    nobody = [None] * len(configuration.player_configurations)  # all bots have processes of their own
    with PlayedMatch("watch", nobody, policies.load, (), browser_page.page_opener(options)) as page:
        yield page


def _bot_files(options: argparse.Namespace) -> list[Path]:
    """Return what `--blue`, `--follow` and `--orange` name, files or not."""
    return [Path(bot) for bots in (options.blue, options.follow, options.orange) for bot in bots or ()]


def _match_of(options: argparse.Namespace) -> flat.MatchConfiguration:
    path = options.config
    if path is None:
        if _bot_files(options):
            return lineup.empty_match()
        path = match_file()
        if path is None:
            bot = "; --blue bot.toml --orange chaser plays the bot of this folder" if _BOT.is_file() else ""
            shared.printer(options)(f"no match.toml here: the shipped bot against Chaser{bot}")
            return lineup.read_shipped_match()
        shared.printer(options)(f"match: {path} of this folder")
    if options.server == "rlbot" and path.suffix == ".toml":
        parsed(Source(path))
        with catch_rlbot_errors(path):
            return load_match_config(path)  # rlbot's own reader: humans and Psyonix bots may play
    return read_match_file(path, bool(_bot_files(options)), options.allow_idle)


def _play(
    configuration: flat.MatchConfiguration,
    options: argparse.Namespace,
    settings: dict[str, Any],
    console: Console,
) -> MatchResult:
    """Play on the embedded server, and show how the match stands."""
    shown = console.is_terminal and not options.quiet
    said: tuple[object, ...] = ()

    def show(status: MatchStatus) -> None:
        nonlocal said
        # A bare write: whatever takes milliseconds here makes the next tick late.
        if shown:
            sys.stdout.write("\r" + progress_line(status).ljust(79))
            sys.stdout.flush()
        elif not options.quiet and said != (news := (status.score, status.overtime)):
            said = news
            print(progress_line(status), flush=True)

    with (
        watched(options, has_page=True) as watch,
        _page_of(options, configuration) as page,
        MatchServer(
            **settings,
            on_progress=show,
            watch=watch,
            control=page,
            log_dir=Path("logs") / str(os.getpid()),
            allow_clients=options.allow_clients,
        ) as server,
        stopped_by_signals(server.stop),
    ):
        result = server.play(configuration)
    if shown:
        sys.stdout.write("\r" + " " * 79 + "\r")
    return result
