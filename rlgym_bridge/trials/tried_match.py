"""Play one match of a bot against cars that stand idle, and keep all that is known of it."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rlbot import flat

from rlgym_bridge.game import BLUE, ORANGE
from rlgym_bridge.server import BotResult, ConfigError, MatchCalledOff, MatchResult, MatchServer
from rlgym_bridge.server.config.bot_files import idle_player
from rlgym_bridge.server.net.launch import read_tail
from rlgym_bridge.server.server_errors import AbsentBot
from rlgym_bridge.trials.bot_folder import BotFile
from rlgym_bridge.trials.default_port import DefaultPortWatch
from rlgym_bridge.trials.match_scenes import REGULATION_SECONDS
from rlgym_bridge.trials.match_watch import MatchWatch

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")  # rlbot's own logger writes them
_MOST_HANG: Final = 3.0  # s that the ball may stay off the floor at the end of regulation


@dataclass(frozen=True, kw_only=True)
class MatchPlan:
    """A match to try a bot in.

    Attributes:
        name: For its progress and its logs.
        script: Returns the steps that are gone through, one a packet; the match ends after them.
        team: Of the bot.
        size: Cars in a team.
        mode: Of the game.
        pace: As `MatchServer` takes it.
        seconds: Wall time from the first packet after which the match is stopped.
    """

    name: str
    script: Callable[[MatchWatch], Iterator[None]]
    team: int = BLUE
    size: int = 1
    mode: flat.GameMode = flat.GameMode.Soccar
    pace: Literal["realtime", "lockstep"] = "lockstep"
    seconds: float = 60.0


@dataclass(frozen=True)
class TriedMatch:
    """A match that was played, or was called off.

    Attributes:
        watch: What its packets told.
        result: Of the match; None where it was called off.
        absent: The bots that it was called off for.
        start_seconds: From the bot's start until it was ready; NaN where it never was.
        problem: Why the server would not play it; empty where it did.
        default_port: RLBot's default port, where somebody connected to that; None otherwise.
    """

    watch: MatchWatch
    result: MatchResult | None
    absent: tuple[AbsentBot, ...] = ()
    start_seconds: float = float("nan")
    problem: str = ""
    default_port: int | None = None

    @property
    def bots(self) -> list[BotResult]:
        """List the results of the cars that were checked; none where the match was called off."""
        return [] if self.result is None else [self.result.bots[car] for car in self.watch.cars]

    def why_absent(self) -> str:
        """Return why the match was called off, in one sentence."""
        if self.problem or not self.absent:
            return self.problem
        bot = self.absent[0]
        words = last_words(bot.log_tail)
        if bot.exit_code is not None:
            return f"its process ended with exit code {bot.exit_code} before the match{words}"
        what = "did not get ready" if bot.connected else "did not connect"
        return f"it {what} in time{words}"


def last_words(log_tail: str) -> str:
    """Return the last line of a log as a clause to follow a sentence; empty where there is none."""
    lines = [line.strip() for line in _COLOURS.sub("", log_tail).splitlines() if line.strip()]
    return f"; its log ends with: {lines[-1]}" if lines else ""


def words_of(bot: BotResult) -> str:
    """Return the last line of a bot's log as a clause to follow a sentence."""
    return last_words(read_tail(Path(bot.log_path))) if bot.log_path else ""


class MatchTrier:
    """Plays matches of one bot, one after the other.

    Args:
        bot: The bot.
        timeout: Seconds in which its process must connect, and again in which it must be ready.
        log_dir: Folder for its logs.
        say: Called with the name of each match before it begins.
    """

    def __init__(self, bot: BotFile, timeout: float, log_dir: Path, say: Callable[[str], None]) -> None:
        self._bot, self._timeout, self._log_dir, self._say = bot, timeout, log_dir, say
        self._server: MatchServer | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """End the match that is played, and have the next one not begin; for a signal handler."""
        self._is_stopped = True
        if self._server is not None:
            self._server.stop()

    def play(self, plan: MatchPlan) -> TriedMatch:
        """Play a match.

        Raises:
            KeyboardInterrupt: It was stopped.
        """
        self._say(plan.name)
        first = 0 if plan.team == BLUE else plan.size
        watch = MatchWatch(range(first, first + plan.size))
        watch.follow(lambda: plan.script(watch), plan.seconds)
        default_port = DefaultPortWatch()
        watch.at_first = default_port.close
        began = time.perf_counter()
        try:
            with MatchServer(
                pace=plan.pace, seed=1, seconds=REGULATION_SECONDS, max_hang=_MOST_HANG, allow_idle=True,
                connect_timeout=self._timeout, on_packet=watch.take, log_dir=self._log_dir / plan.name,
            ) as server:  # fmt: skip
                self._server = watch.server = server
                result = None if self._is_stopped else server.play(self._match(plan))
        except MatchCalledOff as error:
            found = default_port.port if default_port.was_found() else None
            return TriedMatch(watch, None, error.absent, default_port=found)
        except ConfigError as error:
            return TriedMatch(watch, None, problem=str(error))
        finally:
            self._server = None
            default_port.close()
        if self._is_stopped:
            raise KeyboardInterrupt
        ready = float("nan") if watch.first_at is None else watch.first_at - began
        return TriedMatch(watch, result, start_seconds=ready)

    def _match(self, plan: MatchPlan) -> flat.MatchConfiguration:
        """Return the match: the bot's cars on its team, idle cars on the other."""
        players = []
        for team in (BLUE, ORANGE):
            for _ in range(plan.size):
                ours = team == plan.team
                players.append(self._bot.player(team) if ours else idle_player("psyonix", team, "Idle"))
        return flat.MatchConfiguration(
            player_configurations=players,
            auto_start_agents=True,
            wait_for_agents=True,
            game_map_upk="Stadium_P",
            game_mode=plan.mode,
            enable_state_setting=True,  # as RLBot has it where the match file does not say
            mutators=flat.MutatorSettings(),
        )
