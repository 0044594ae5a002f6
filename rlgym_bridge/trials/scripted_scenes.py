"""Describe scripted scenes, play them on a server's packets, and keep at which frames each was played.

The descriptions are read from packs of others, so every field has its limits.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct
from rlbot import flat

from rlgym_bridge.game import CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.packets.decoder import player_input
from rlgym_bridge.trials.scene_player import Frame, Play, ScenePlayer, SceneScript, put

Number = Annotated[float, Meta(ge=-1e5, le=1e5)]
Vector = tuple[Number, Number, Number]
Control = Annotated[float, Meta(ge=-1.0, le=1.0)]
Row = tuple[Control, Control, Control, Control, Control, Control, Control, Control]
FrameNumber = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Text = Annotated[str, Meta(max_length=200)]
Body = Literal["car", "other", "ball"]

MOST_SCENES: Final = 400
"""Scenes that a pack may have; ours has about a hundred."""


class BodyState(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A state to set, without spin: uu, uu/s, and pitch, yaw and roll in rad."""

    position: Vector
    velocity: Vector = (0.0, 0.0, 0.0)
    rotation: Vector = (0.0, 0.0, 0.0)


class ScriptStep(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A control vector of the first car to hold for some ticks, in the order of `game.CONTROL_NAMES`."""

    ticks: Annotated[int, Meta(ge=1, le=1200)]
    car: Row = (0.0,) * 8


class ScriptedScene(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One scene."""

    name: Text
    kind: Text  # scenes of a kind are reported together, such as "dodge"
    measured: Annotated[tuple[Body, ...], Meta(min_length=1, max_length=3)]  # by RocketSim, together
    car: BodyState
    other: BodyState
    ball: BodyState
    settle: Annotated[int, Meta(ge=0, le=1200)]  # ticks without controls before the steps
    steps: Annotated[tuple[ScriptStep, ...], Meta(min_length=1, max_length=100)]


class PlayedScene(Struct, frozen=True, forbid_unknown_fields=True):
    """The frames of a scene that was played."""

    scene: Annotated[int, Meta(ge=0, lt=MOST_SCENES)]  # index of its definition
    asked: FrameNumber  # of the packet that was answered with the state to set
    shown: FrameNumber  # first frame that shows this state
    began: FrameNumber  # frame that was answered with the first step
    ended: FrameNumber  # last frame of the scene


def hold(ticks: int, **controls: float) -> ScriptStep:
    """Return a step in which the first car holds controls, by their names; the others are neutral."""
    return ScriptStep(ticks, row_of(**controls))


def row_of(**controls: float) -> Row:
    """Return a row of controls, `(8,)`: -1..1, buttons 0 or 1; those that are not named are 0."""
    unknown = set(controls) - set(CONTROL_NAMES)
    if unknown:
        raise ValueError(f"{sorted(unknown)} are no controls, expected some of {', '.join(CONTROL_NAMES)}")
    throttle, steer, pitch, yaw, roll, jump, boost, handbrake = (
        float(controls.get(name, 0.0)) for name in CONTROL_NAMES
    )
    return throttle, steer, pitch, yaw, roll, jump, boost, handbrake


_BALL_TICKS: Final = 30  # in which a ball that was set has to be seen
_NEAR: Final = 150.0  # uu between a ball set and one seen, apart from the way that it flies
_MOST_TIMES: Final = 3  # the packets that scenes may take, in those that they need

_CLEAR_TICKS: Final = 20
"""Ticks without controls before a state is set: a tapped boost burns for 12, and inputs may act some late."""


class SceneBattery(SceneScript):
    """Plays scenes one after another; a scene whose state is not shown is left out.

    `progress` is called with the number of a scene when it begins.
    """

    def __init__(
        self,
        ids: tuple[int, int],
        scenes: Sequence[ScriptedScene],
        progress: Callable[[int], None] = lambda number: None,
    ) -> None:
        super().__init__(ids, _MOST_TIMES * (sum(map(ticks_of, scenes)) + 60 * TICKS_PER_SECOND))
        self.played: list[PlayedScene] = []
        self._scenes, self._progress = scenes, progress

    def play(self, scene: ScenePlayer) -> Play[None]:
        """Play all scenes."""
        for number, scripted in enumerate(self._scenes):
            self._progress(number)
            yield from scene.begin()
            yield from scene.hold(_CLEAR_TICKS)
            asked = scene.frame.number
            states = _desired(scripted.car), _desired(scripted.other), _desired(scripted.ball)
            done = yield from scene.put(*states)
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
                yield from scene.hold(step.ticks, player_input(0, step.car).controller_state)
            self.played.append(PlayedScene(number, asked, shown, began, scene.frame.number))


def ticks_of(scene: ScriptedScene) -> int:
    """Return the ticks that a scene takes where its state is shown in the next packet."""
    return _CLEAR_TICKS + 1 + scene.settle + sum(step.ticks for step in scene.steps)


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
