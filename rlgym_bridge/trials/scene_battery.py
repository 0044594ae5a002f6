"""Play scripted scenes on a server's packets, and keep at which frames each of them was played."""

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.trials.frames import Frame, Reply, put
from rlgym_bridge.trials.probe_scene import MatchOver, Play, ProbeScene
from rlgym_bridge.trials.scripted_scene import BodyState, PlayedScene, Row, ScriptedScene

_LOG = logging.getLogger("rlgym_bridge.trials")
_BALL_TICKS: Final = 30  # in which a ball that was set has to be seen
_NEAR: Final = 150.0  # uu between a ball set and one seen, apart from the way that it flies
_MOST_TIMES: Final = 3  # the packets that scenes may take, in those that they need

CLEAR_TICKS: Final = 20
"""Ticks without controls before a state is set: a tapped boost burns for 12, and inputs may act some late."""


class SceneBattery:
    """Plays scenes one after another; a scene whose state is not shown is left out.

    Args:
        ids: `player_id` of its two cars, blue and orange.
        scenes: What to play.
        progress: Called with the number of a scene when it begins.

    Attributes:
        done: Whether all scenes were played, or the packets have run out.
        played: The frames of those that were.
        notes: Problems on the way, as sentences.
    """

    def __init__(
        self,
        ids: tuple[int, int],
        scenes: Sequence[ScriptedScene],
        progress: Callable[[int], None] = lambda number: None,
    ) -> None:
        self.done = False
        self.played: list[PlayedScene] = []
        self.notes: list[str] = []
        self._ids, self._scenes, self._progress = ids, scenes, progress
        self._packets = 0
        self._most_packets = _MOST_TIMES * (sum(map(ticks_of, scenes)) + 60 * TICKS_PER_SECOND)
        self._script: Play[None] | None = None

    def answer(self, packet: flat.GamePacket) -> tuple[Reply, Frame | None]:
        """Answer a packet; see `Probe.answer`."""
        self._packets += 1
        frame = Frame.of(packet, self._ids)
        if self._packets >= self._most_packets and not self.done:
            self.notes.append(f"ended after {self._packets} packets, before all scenes were played")
            self.done = True
        if frame is None or self.done:
            return Reply(), frame
        try:
            if self._script is None:
                self._script = self._play_all(ProbeScene(frame))
                return next(self._script), frame
            return self._script.send(frame), frame
        except StopIteration:
            pass
        except MatchOver as error:
            self.notes.append(str(error))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            _LOG.exception("a scene failed")
            self.notes.append(f"a scene failed on inconsistent packets: {error!r}")
        self.done = True
        return Reply(), frame

    def _play_all(self, scene: ProbeScene) -> Play[None]:
        for number, scripted in enumerate(self._scenes):
            self._progress(number)
            yield from scene.begin()
            yield from scene.hold(CLEAR_TICKS)
            asked = scene.frame.number
            done = yield from scene.put(
                _desired(scripted.car), _desired(scripted.other), _desired(scripted.ball), scripted.boost
            )
            if scene.sets_state is False:
                self.notes.append("the server ignores state setting (enable_state_setting)")
                return
            if not done:
                self.notes.append(f"the state of {scripted.name!r} was not shown, so it was left out")
                continue
            # Cars may have stood there before, so the ball tells when the state was set.
            yield from scene.until(partial(_shows_ball, scripted.ball), _BALL_TICKS)
            shown = scene.frame.number
            yield from scene.hold(scripted.settle)
            began = scene.frame.number
            for step in scripted.steps:
                yield from scene.hold(step.ticks, _pressed(step.car), _pressed(step.other))
            self.played.append(PlayedScene(number, asked, shown, began, scene.frame.number))


def ticks_of(scene: ScriptedScene) -> int:
    """Return the ticks that a scene takes where its state is shown in the next packet."""
    return CLEAR_TICKS + 1 + scene.settle + sum(step.ticks for step in scene.steps)


def _shows_ball(target: BodyState, frame: Frame) -> bool:
    """Tell whether a packet has the ball about where it was set; also where it has none."""
    balls = frame.packet.balls
    if not balls:
        return True
    place = balls[0].physics.location
    way = _NEAR + 0.1 * math.hypot(*target.velocity)
    return math.dist((place.x, place.y, place.z), target.position) < way


def _desired(body: BodyState) -> flat.DesiredPhysics:
    return put(body.position, body.velocity, body.rotation)


def _pressed(row: Row) -> flat.ControllerState:
    throttle, steer, pitch, yaw, roll, jump, boost, handbrake = row
    return flat.ControllerState(
        throttle, steer, pitch, yaw, roll, jump > 0.0, boost > 0.0, handbrake > 0.0, False
    )
