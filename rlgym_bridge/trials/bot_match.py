"""Play matches of one bot against cars that stand idle, and follow them packet by packet."""

import math
import re
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rlbot import flat
from rlbot.interface import RLBOT_SERVER_PORT

from rlgym_bridge.game import BLUE, ORANGE
from rlgym_bridge.server import BotResult, ConfigError, MatchCalledOff, MatchResult, MatchServer
from rlgym_bridge.server.bot_files import idle_player
from rlgym_bridge.server.lineup import empty_match
from rlgym_bridge.server.net.hosted_match import HostedMatch
from rlgym_bridge.server.net.launch import read_tail
from rlgym_bridge.server.result import AbsentBot
from rlgym_bridge.trials.bot_folder import BotFile
from rlgym_bridge.trials.scene_player import Frame, Play, ScenePlayer, SceneScript

_REGULATION_SECONDS: Final = 8.0
"""Regulation time of a match."""

_MOVED: Final = 100.0
"""A car that gets this far from its place moves, uu: less than its own length."""

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")  # rlbot's own logger writes them
_MOST_HANG: Final = 3.0  # s that the ball may stay off the floor at the end of regulation


class MatchWatch(SceneScript):
    """Follows a match in the game's thread, while a script sets its scenes; the match is stopped after it.

    Args:
        cars: Indices in packets of the cars that are checked.
        plan: Has the script, and the wall time from the first packet after which the match is stopped.
        at_first: Called at the first packet.

    Attributes:
        server: The server of the match; set before it is played.
        first_at: When the first packet came, on `time.perf_counter`'s clock; None before it.
        has_timed_out: Whether the match was stopped because its time was over.
    """

    def __init__(
        self, cars: Sequence[int], plan: "MatchPlan", at_first: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__((0, 0), math.inf)
        self.cars = tuple(cars)
        self.server: MatchServer
        self.first_at: float | None = None
        self.has_timed_out = False
        self._plan, self._at_first = plan, at_first
        self._until = math.inf
        self._places: dict[int, tuple[float, float, float]] = {}
        self._ways: dict[int, float] = {}

    def play(self, scene: ScenePlayer) -> Play[None]:
        """Play the plan's script."""
        return self._plan.script(self, scene)

    def take(self, payload: bytes) -> None:
        """Take in a packet, as `MatchServer` passes it on."""
        message = flat.CorePacket.unpack(payload).message
        if not isinstance(message, flat.GamePacket):
            return
        now = time.perf_counter()
        if self.first_at is None:
            self.first_at, self._until = now, now + self._plan.seconds
            self._ids = message.players[self.cars[0]].player_id, message.players[-1].player_id
            self._at_first()
        if now > self._until:
            self.has_timed_out = True
            self.server.stop()
            return
        reply, frame = self.answer(message)
        if frame is not None and (desired := reply.desired(frame.indices)) is not None:
            self.match.set_state(desired)
        if self.done:
            self.server.stop()

    def see(self, frame: Frame) -> None:
        """Follow the cars, and forget older packets."""
        if self.scene is not None:
            self.scene.frames.clear()
        if not frame.playing:
            return
        for car in self.cars:
            player = frame.packet.players[car]
            if player.demolished_timeout < 0:
                where = player.physics.location
                place = (where.x, where.y, where.z)
                start = self._places.setdefault(car, place)
                self._ways[car] = max(self._ways.get(car, 0.0), math.dist(start, place))

    def allow(self, seconds: float) -> None:
        """Stop the match this much wall time from now on, and not before."""
        self._until = time.perf_counter() + seconds

    @property
    def match(self) -> HostedMatch:
        """Return the running match."""
        assert self.server.hosted is not None  # packets come while it is played
        return self.server.hosted

    def begin_way(self) -> None:
        """Measure how far the cars get from where they are at the next packet in play."""
        self._places.clear()
        self._ways.clear()

    def stands_still(self, car: int) -> bool:
        """Tell whether a car has not moved since its way began."""
        return self._ways.get(car, 0.0) < _MOVED

    @property
    def have_moved(self) -> bool:
        """Tell whether all cars have moved since their ways began."""
        return not any(map(self.stands_still, self.cars))

    @property
    def are_driven(self) -> bool:
        """Tell whether a bot is there for each car."""
        return all(self.match.accounts[car].ready for car in self.cars)

    @property
    def replies(self) -> int:
        """Return how many packets were answered, by the car that answered least."""
        return min(self.match.accounts[car].replies for car in self.cars)

    @property
    def reply_ms(self) -> float:
        """Return the median reply time so far of the slowest car, ms; NaN without any."""
        return max(self.match.accounts[car].reply_ms(50.0)[0] for car in self.cars)


@dataclass(frozen=True, kw_only=True)
class MatchPlan:
    """A match to try a bot in."""

    name: str
    script: Callable[[MatchWatch, ScenePlayer], Play[None]]  # plays scenes; the match ends after them
    team: int = BLUE  # of the bot
    size: int = 1  # cars in a team
    mode: flat.GameMode = flat.GameMode.Soccar
    pace: Literal["realtime", "lockstep"] = "lockstep"
    seconds: float = 60.0  # wall time from the first packet after which the match is stopped


@dataclass(frozen=True)
class TriedMatch:
    """A match that was played, or was called off."""

    watch: MatchWatch
    result: MatchResult | None  # None where it was called off
    absent: tuple[AbsentBot, ...] = ()
    start_seconds: float = float("nan")  # from the bot's start until it was ready; NaN where it never was
    problem: str = ""  # why the server would not play it; empty where it did
    default_port: int | None = None  # RLBot's default port, where somebody connected to that; None otherwise

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


class _DefaultPort:
    """Notices a bot that connects to RLBot's default port, whatever port it was told, while that is free."""

    def __init__(self) -> None:
        self._listener: socket.socket | None = None
        with suppress(OSError):
            self._listener = socket.create_server(("127.0.0.1", RLBOT_SERVER_PORT))
            self._listener.setblocking(False)

    def found(self) -> int | None:
        """Return the port if somebody has connected."""
        with suppress(OSError):
            if self._listener is not None:
                self._listener.accept()[0].close()
                return RLBOT_SERVER_PORT
        return None

    def close(self) -> None:
        """Listen no more."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None


class MatchTrier:
    """Plays matches of one bot, one after the other.

    Its process must connect within `timeout` seconds, and again be ready within them. `say` is called with
    the name of each match before it begins.
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
        default_port = _DefaultPort()
        watch = MatchWatch(range(first, first + plan.size), plan, default_port.close)
        began = time.perf_counter()
        try:
            with MatchServer(
                pace=plan.pace, seed=1, seconds=_REGULATION_SECONDS, max_hang=_MOST_HANG, allow_idle=True,
                connect_timeout=self._timeout, on_packet=watch.take, log_dir=self._log_dir / plan.name,
            ) as server:  # fmt: skip
                self._server = watch.server = server
                result = None if self._is_stopped else server.play(self._match(plan))
        except MatchCalledOff as error:
            return TriedMatch(watch, None, error.absent, default_port=default_port.found())
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
        match = empty_match()
        match.game_mode, match.skip_replays = plan.mode, False
        match.enable_state_setting = True  # as RLBot has it where the match file does not say
        match.player_configurations = [
            self._bot.player(team) if team == plan.team else idle_player("psyonix", team, "Idle")
            for team in (BLUE, ORANGE)
            for _ in range(plan.size)
        ]
        return match
