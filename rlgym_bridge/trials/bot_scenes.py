"""Set the scenes that break bots: a goal, a demolition, overtime, and a start in the middle of a match."""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

from rlbot import flat

from rlgym_bridge.game import BALL_REST_Z, BLUE, TICKS_PER_SECOND, Phase
from rlgym_bridge.trials.bot_match import MatchWatch
from rlgym_bridge.trials.scene_player import STANDING_Z, Frame, Play, ScenePlayer, put

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

    Args:
        watch: Of the match; the first of its cars is demolished, the last car of all demolishes it.
        scene: Plays them.
        join_seconds: Wall time in which the bot must come back where it is started anew.

    Attributes:
        outcomes: What went wrong in a scene that came about, by its name; empty where nothing did.
        current: The scene that is played, or was last.
        is_over: Whether all scenes were gone through.
        moved: Whether the cars moved at the first kickoff; None where it was not reached.
        rejoin_seconds: How long the bot took to join the running match.
    """

    def __init__(self, watch: MatchWatch, scene: ScenePlayer, join_seconds: float) -> None:
        self._watch, self._scene, self._join_seconds = watch, scene, join_seconds
        self.outcomes: dict[str, str] = {}
        self.current: str | None = None
        self.is_over = False
        self.moved: bool | None = None
        self.rejoin_seconds = 0.0

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


def _scores(frame: Frame) -> tuple[int, int]:
    blue, orange = (team.score for team in frame.packet.teams)
    return blue, orange


def _plays(frame: Frame) -> bool:
    return frame.playing


def _is_gone(frame: Frame) -> bool:
    return frame.car.demolished_timeout >= 0


def _is_overtime(frame: Frame) -> bool:
    return frame.packet.match_info.is_overtime
