"""Set the scenes that break bots: a goal, a demolition, overtime, and a start in the middle of a match."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from rlbot import flat

from rlgym_bridge.game import BLUE, PLAYING_PHASES, TICKS_PER_SECOND, Phase
from rlgym_bridge.trials.match_watch import MatchWatch

REGULATION_SECONDS: Final = 8.0
"""Regulation time of a match with scenes."""

_SECOND: Final = TICKS_PER_SECOND
_AGAIN: Final = _SECOND // 2  # ticks between two attempts to set a scene
_ATTEMPTS: Final = 8
_ANSWERS: Final = 10  # after a scene, at least
_SLOW_ANSWERS: Final = 60  # after which a bot is known to be slow
_SLOW_MS: Final = 12.0  # median reply time of a bot that scenes take minutes with
_FOLLOWS: Final = 4 * _SECOND  # ticks of play in which a car moves again after a scene
_KICKOFF: Final = 40 * _SECOND  # ticks until the next kickoff, replay and countdown included
_RAM_SPEED: Final = 2300.0  # uu/s, of a car that demolishes
_RAM_WAY: Final = 260.0  # uu that it has to go
_HIGH: Final = 1800.0  # uu, where no car reaches the ball by chance

Scene = Callable[[], Iterator[None]]


class MatchScenes:
    """Plays the scenes one after the other, and keeps what came of each.

    Args:
        watch: Of the match; the first of its cars is demolished, the last car of all demolishes it.
        join_seconds: Wall time in which the bot must come back where it is started anew.

    Attributes:
        outcomes: What went wrong in a scene that came about, by its name; empty where nothing did.
        current: The scene that is played, or was last.
        is_over: Whether all scenes were gone through.
        moved: Whether the cars moved at the first kickoff; None where it was not reached.
        rejoin_seconds: How long the bot took to join the running match.
    """

    def __init__(self, watch: MatchWatch, join_seconds: float) -> None:
        self._watch, self._join_seconds = watch, join_seconds
        self.outcomes: dict[str, str] = {}
        self.current: str | None = None
        self.is_over = False
        self.moved: bool | None = None
        self.rejoin_seconds = 0.0

    def play(self) -> Iterator[None]:
        """Play the scenes up to the first whose bot has gone; none with a bot that takes minutes for them."""
        watch = self._watch
        yield from watch.wait(_KICKOFF, lambda: watch.phase in PLAYING_PHASES or self._is_slow())
        if self._is_slow():
            return
        watch.begin_way()
        yield from watch.wait(_FOLLOWS, lambda: watch.have_moved)
        self.moved = watch.have_moved
        if watch.replies < _ANSWERS:
            return
        yield from watch.wait(_SECOND, lambda: False)  # some answers more
        scenes: tuple[tuple[str, Scene], ...] = (
            ("goal", self._goal), ("demolition", self._demolition), ("overtime", self._overtime),
            ("joins midway", self._join),
        )  # fmt: skip
        for name, scene in scenes:
            self.current = name
            yield from scene()
            if not watch.are_driven:
                return
        self.is_over = True

    def _is_slow(self) -> bool:
        return self._watch.replies >= _SLOW_ANSWERS and self._watch.reply_ms > _SLOW_MS

    def _goal(self) -> Iterator[None]:
        """Score for blue; when the bot plays on, level the score, for overtime."""
        yield from self._score(BLUE)
        if not sum(self._scores()):
            return
        yield from self._plays_on("goal", "the kickoff after a goal")
        if not self.outcomes.get("goal"):
            yield from self._level()

    def _score(self, team: int) -> Iterator[None]:
        watch, before = self._watch, sum(self._scores())
        sign = 1.0 if team == BLUE else -1.0
        for _ in range(_ATTEMPTS):
            self._put_ball((0.0, sign * 4900.0, 150.0), (0.0, sign * 3000.0, 0.0))
            yield from watch.wait(_AGAIN, lambda: sum(self._scores()) > before)
            if sum(self._scores()) > before:
                break
        yield from watch.wait(_SECOND, lambda: watch.phase not in PLAYING_PHASES)
        yield from watch.wait(_KICKOFF, lambda: watch.phase in PLAYING_PHASES)

    def _level(self) -> Iterator[None]:
        blue, orange = self._scores()
        if blue != orange:
            yield from self._score(BLUE if blue < orange else 1 - BLUE)

    def _demolition(self) -> Iterator[None]:
        """Have the last car run into the first one at full speed."""
        watch = self._watch
        car = watch.cars[0]

        def is_gone() -> bool:
            return watch.packet.players[car].demolished_timeout >= 0

        for _ in range(_ATTEMPTS):
            yield from watch.wait(_KICKOFF, lambda: watch.phase in PLAYING_PHASES)
            self._ram(car)
            yield from watch.wait(_AGAIN, is_gone)
            if is_gone():
                break
        else:
            return
        yield from watch.wait(6 * _SECOND, lambda: not is_gone())
        yield from self._plays_on("demolition", "its car came back from a demolition")

    def _ram(self, car: int) -> None:
        physics = self._watch.packet.players[car].physics
        stands = _placed((physics.location.x * 0.5, physics.location.y * 0.5, 17.0), 0.0)
        assert stands.location is not None and stands.location.x is not None
        cars = [flat.DesiredCarState() for _ in self._watch.packet.players]
        cars[car] = flat.DesiredCarState(stands)
        place = (stands.location.x - _RAM_WAY, stands.location.y or 0.0, 17.0)
        cars[-1] = flat.DesiredCarState(_placed(place, _RAM_SPEED), 100.0)
        self._watch.match.set_state(flat.DesiredGameState(car_states=cars))

    def _overtime(self) -> Iterator[None]:
        """Let the clock run out at a level score."""
        watch = self._watch

        def is_over() -> bool:
            return watch.packet.match_info.is_overtime

        for _ in range(_ATTEMPTS * 4):
            if is_over():
                break
            yield from watch.wait(_KICKOFF, lambda: watch.phase in PLAYING_PHASES or is_over())
            yield from self._level()
            if watch.phase == Phase.KICKOFF:  # the clock stands still until somebody touches the ball
                place = watch.packet.players[watch.cars[0]].physics.location
                self._put_ball((place.x, place.y, place.z + 140.0), (0.0, 0.0, -500.0))
            else:
                self._put_ball((0.0, 0.0, 93.0), (0.0, 0.0, -1.0))
            yield from watch.wait(_AGAIN, is_over)
        else:
            return
        yield from watch.wait(_KICKOFF, lambda: watch.phase in PLAYING_PHASES)
        yield from self._plays_on("overtime", "the kickoff of overtime")

    def _join(self) -> Iterator[None]:
        """End the bot's process and start it anew while the match runs on; the ball stays out of reach."""
        watch = self._watch
        watch.allow(self._join_seconds)
        began = time.perf_counter()
        for car in watch.cars:
            if watch.match.accounts[car].ready:  # a hivemind's cars have one process
                watch.match.restart_bot(car)
                yield from watch.wait(_SECOND, partial(self._is_left, car))
        while not watch.are_driven:  # the watch ends it
            self._put_ball((0.0, 0.0, _HIGH), (0.0, 0.0, 0.0))
            yield from watch.wait(_AGAIN, lambda: watch.are_driven)
        self.rejoin_seconds = time.perf_counter() - began
        self._put_ball((0.0, 0.0, 93.0), (0.0, 0.0, -1.0))
        yield from self._plays_on("joins midway", "it had joined the running match")

    def _is_left(self, car: int) -> bool:
        return not self._watch.match.accounts[car].ready

    def _plays_on(self, name: str, after: str) -> Iterator[None]:
        """Note whether the bot answers and, where it moved before, moves again after a scene."""
        watch = self._watch
        watch.begin_way()
        answered = watch.replies

        def goes_on() -> bool:
            return (watch.have_moved or not self.moved) and watch.replies >= answered + _ANSWERS

        yield from watch.wait(_FOLLOWS, lambda: goes_on() or not watch.are_driven)
        if not watch.are_driven:
            self.outcomes[name] = f"it left after {after}"
        elif watch.replies < answered + _ANSWERS:
            self.outcomes[name] = f"it answered no more after {after}"
        elif not goes_on():
            self.outcomes[name] = f"it stood still after {after}"
        else:
            self.outcomes[name] = ""

    def _scores(self) -> tuple[int, int]:
        blue, orange = (team.score for team in self._watch.packet.teams)
        return blue, orange

    def _put_ball(self, place: tuple[float, float, float], velocity: tuple[float, float, float]) -> None:
        ball = flat.DesiredPhysics(
            location=flat.Vector3Partial(*place),
            velocity=flat.Vector3Partial(*velocity),
            angular_velocity=flat.Vector3Partial(0.0, 0.0, 0.0),
        )
        self._watch.match.set_state(flat.DesiredGameState(ball_states=[flat.DesiredBallState(ball)]))


def _placed(place: tuple[float, float, float], speed: float) -> flat.DesiredPhysics:
    """Return a car on its wheels that looks and drives along x, at a speed in uu/s."""
    return flat.DesiredPhysics(
        location=flat.Vector3Partial(*place),
        rotation=flat.RotatorPartial(0.0, 0.0, 0.0),
        velocity=flat.Vector3Partial(speed, 0.0, 0.0),
        angular_velocity=flat.Vector3Partial(0.0, 0.0, 0.0),
    )
