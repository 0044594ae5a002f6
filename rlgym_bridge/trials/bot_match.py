"""Play matches of one bot against cars that stand idle, with the scenes that break bots."""

import math
import re
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final, Literal

from rlbot import flat
from rlbot.interface import RLBOT_SERVER_PORT

from rlgym_bridge.game import BALL_REST_Z, BLUE, ORANGE, TICKS_PER_SECOND, Phase
from rlgym_bridge.server import BotResult, ConfigError, MatchCalledOff, MatchResult, MatchServer
from rlgym_bridge.server.bot_files import idle_player
from rlgym_bridge.server.lineup import empty_match
from rlgym_bridge.server.net.hosted_match import HostedMatch
from rlgym_bridge.server.net.launch import read_tail
from rlgym_bridge.server.result import AbsentBot
from rlgym_bridge.trials.bot_folder import BotFile
from rlgym_bridge.trials.scene_player import STANDING_Z, Frame, Play, ScenePlayer, SceneScript, put, xyz

_REGULATION_SECONDS: Final = 8.0  # regulation time of a match
_MOVED: Final = 100.0  # a car that gets this far from its place moves, uu: less than its own length
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")  # rlbot's own logger writes them
_MOST_HANG: Final = 3.0  # s that the ball may stay off the floor at the end of regulation


class MatchWatch(SceneScript):
    """Follows a match in the game's thread, while a script sets its scenes; the match is stopped after it.

    `cars` are checked, given by their indices in packets. `at_first` is called at the first packet.
    """

    def __init__(self, cars: Sequence[int], plan: "MatchPlan", at_first: Callable[[], None]) -> None:
        super().__init__((0, 0), math.inf)
        self.cars = tuple(cars)
        self.server: MatchServer  # set before it plays
        self.first_at: float | None = None  # when the first packet came, on `time.perf_counter`'s clock
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
                place = xyz(player.physics.location)
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
        with suppress(OSError):
            if self._listener is not None:
                self._listener.accept()[0].close()
                return RLBOT_SERVER_PORT
        return None

    def close(self) -> None:
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
        """Play a match; a KeyboardInterrupt says that it was stopped."""
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
        match = empty_match()
        match.game_mode, match.skip_replays = plan.mode, False
        match.enable_state_setting = True  # as RLBot has it where the match file does not say
        match.player_configurations = [
            self._bot.player(team) if team == plan.team else idle_player("psyonix", team, "Idle")
            for team in (BLUE, ORANGE)
            for _ in range(plan.size)
        ]
        return match


_SECOND: Final = TICKS_PER_SECOND
_AGAIN: Final = _SECOND // 2  # ticks between two attempts to set a scene
_ATTEMPTS: Final = 8
_ANSWERS: Final = 10  # after a scene, at least
_SLOW_ANSWERS: Final = 60  # after which a bot is known to be slow
_SLOW_MS: Final = 12.0  # median reply time of a bot that scenes take minutes with
_FOLLOWS: Final = 4 * _SECOND  # ticks of play in which a car moves again after a scene
_COASTS: Final = 3 * _SECOND  # ticks in which a car that nobody drives comes to rest
_KICKOFF: Final = 40 * _SECOND  # ticks until the next kickoff, replay and countdown included
_RAM_SPEED: Final = 2300.0  # uu/s, of a car that demolishes
_RAM_WAY: Final = 260.0  # uu that it has to go
_HIGH: Final = 1800.0  # uu, where no car reaches the ball by chance

_Place = tuple[float, float, float]


class MatchScenes:
    """Plays the scenes one after the other, and keeps what came of each.

    The first of the watched cars is demolished, by the last car of all. A bot that is started anew must come
    back within `join_seconds` of wall time.
    """

    def __init__(self, watch: MatchWatch, scene: ScenePlayer, join_seconds: float) -> None:
        self._watch, self._scene, self._join_seconds = watch, scene, join_seconds
        self.outcomes: dict[str, str] = {}  # of scenes that came about: what went wrong, "" for nothing
        self.current: str | None = None  # the scene that is played, or was last
        self.is_over = False  # all scenes were gone through
        self.moved: bool | None = None  # at the first kickoff; None where it was not reached
        self.rejoin_seconds = 0.0  # that the bot took to join the running match

    def play(self) -> Play[None]:
        """Play the scenes up to the first whose bot has gone; none with a bot that takes minutes for them."""
        watch, scene = self._watch, self._scene
        yield from scene.wait(_KICKOFF, lambda frame: frame.playing or self._is_slow())
        if self._is_slow():
            return
        watch.begin_way()
        yield from scene.wait(_FOLLOWS, lambda frame: watch.have_moved)
        self.moved = watch.have_moved
        if watch.replies < _ANSWERS:
            return
        yield from scene.wait(_SECOND, lambda frame: False)  # some answers more
        scenes: tuple[tuple[str, Callable[[], Play[None]]], ...] = (
            ("goal", self._goal), ("demolition", self._demolition), ("overtime", self._overtime),
            ("joins midway", self._join),
        )  # fmt: skip
        for name, play in scenes:
            self.current = name
            yield from play()
            if not watch.are_driven:
                return
        self.is_over = True

    def _is_slow(self) -> bool:
        return self._watch.replies >= _SLOW_ANSWERS and self._watch.reply_ms > _SLOW_MS

    def _goal(self) -> Play[None]:
        """Score for blue; when the bot plays on, level the score, for overtime."""
        yield from self._score(BLUE)
        if not sum(_scores(self._scene.frame)):
            return
        yield from self._plays_on("goal", "the kickoff after a goal")
        if not self.outcomes.get("goal"):
            yield from self._level()

    def _score(self, team: int) -> Play[None]:
        scene, before = self._scene, sum(_scores(self._scene.frame))
        sign = 1.0 if team == BLUE else -1.0
        for _ in range(_ATTEMPTS):
            yield from self._put_ball((0.0, sign * 4900.0, 150.0), (0.0, sign * 3000.0, 0.0))
            if (yield from scene.wait(_AGAIN, lambda frame: sum(_scores(frame)) > before)):
                break
        yield from scene.wait(_SECOND, lambda frame: not frame.playing)
        yield from scene.wait(_KICKOFF, _plays)

    def _level(self) -> Play[None]:
        blue, orange = _scores(self._scene.frame)
        if blue != orange:
            yield from self._score(BLUE if blue < orange else 1 - BLUE)

    def _demolition(self) -> Play[None]:
        """Have the last car run into the first one at full speed."""
        scene = self._scene
        for _ in range(_ATTEMPTS):
            yield from scene.wait(_KICKOFF, _plays)
            place = scene.frame.car.physics.location
            x, y = 0.5 * place.x, 0.5 * place.y
            stands, rams = put((x, y, STANDING_Z)), put((x - _RAM_WAY, y, STANDING_Z), (_RAM_SPEED, 0.0, 0.0))
            cars = {0: flat.DesiredCarState(stands), 1: flat.DesiredCarState(rams, 100.0)}
            yield from scene.step(cars=cars)
            if (yield from scene.wait(_AGAIN, _is_gone)):
                break
        else:
            return
        yield from scene.wait(6 * _SECOND, lambda frame: not _is_gone(frame))
        yield from self._plays_on("demolition", "its car came back from a demolition")

    def _overtime(self) -> Play[None]:
        """Let the clock run out at a level score."""
        scene = self._scene
        for _ in range(_ATTEMPTS * 4):
            if _is_overtime(scene.frame):
                break
            yield from scene.wait(_KICKOFF, lambda frame: frame.playing or _is_overtime(frame))
            yield from self._level()
            if scene.frame.phase == Phase.KICKOFF:  # the clock stands still until somebody touches the ball
                place = scene.frame.car.physics.location
                yield from self._put_ball((place.x, place.y, place.z + 140.0), (0.0, 0.0, -500.0))
            else:
                yield from self._put_ball((0.0, 0.0, BALL_REST_Z), (0.0, 0.0, -1.0))
            yield from scene.wait(_AGAIN, _is_overtime)
        else:
            return
        yield from scene.wait(_KICKOFF, _plays)
        yield from self._plays_on("overtime", "the kickoff of overtime")

    def _join(self) -> Play[None]:
        """End the bot's process and start it anew while the match runs on; the ball stays out of reach."""
        watch, scene = self._watch, self._scene
        watch.allow(self._join_seconds)
        began = time.perf_counter()
        for car in watch.cars:
            if watch.match.accounts[car].ready:  # a hivemind's cars have one process
                watch.match.restart_bot(car)
                yield from scene.wait(_SECOND, partial(self._is_left, car))
        while not watch.are_driven:  # the watch ends it
            yield from self._hold_ball(lambda frame: watch.are_driven)
        self.rejoin_seconds = time.perf_counter() - began
        for _ in range(_COASTS // _AGAIN):
            yield from self._hold_ball(lambda frame: False)
        yield from self._put_ball((0.0, 0.0, BALL_REST_Z), (0.0, 0.0, -1.0))
        yield from self._plays_on("joins midway", "it had joined the running match")

    def _is_left(self, car: int, frame: Frame) -> bool:
        return not self._watch.match.accounts[car].ready

    def _plays_on(self, name: str, after: str) -> Play[None]:
        """Note whether the bot answers and, where it moved before, moves again after a scene."""
        watch = self._watch
        watch.begin_way()
        answered = watch.replies

        def goes_on() -> bool:
            return (watch.have_moved or not self.moved) and watch.replies >= answered + _ANSWERS

        yield from self._scene.wait(_FOLLOWS, lambda frame: goes_on() or not watch.are_driven)
        if not watch.are_driven:
            self.outcomes[name] = f"it left after {after}"
        elif watch.replies < answered + _ANSWERS:
            self.outcomes[name] = f"it answered no more after {after}"
        else:
            self.outcomes[name] = "" if goes_on() else f"it stood still after {after}"

    def _hold_ball(self, seen: Callable[[Frame], bool]) -> Play[None]:
        """Keep the ball out of reach for half a second, or until something is so."""
        yield from self._put_ball((0.0, 0.0, _HIGH), (0.0, 0.0, 0.0))
        yield from self._scene.wait(_AGAIN, seen)

    def _put_ball(self, place: _Place, velocity: _Place) -> Play[None]:
        yield from self._scene.step(ball=flat.DesiredBallState(put(place, velocity)))


_plays: Final = attrgetter("playing")


def _scores(frame: Frame) -> list[int]:
    return [team.score for team in frame.packet.teams]


def _is_gone(frame: Frame) -> bool:
    return frame.car.demolished_timeout >= 0


def _is_overtime(frame: Frame) -> bool:
    return frame.packet.match_info.is_overtime
