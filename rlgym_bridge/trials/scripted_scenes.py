"""Describe scripted scenes, play them on a server's packets, and keep at which frames each was played.

The descriptions are read from packs of others, so every field has its limits.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct
from rlbot import flat

from rlgym_bridge.game import BALL_REST_Z, CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.packets.decoder import player_input
from rlgym_bridge.trials.scene_player import (
    ASIDE,
    BALL_ASIDE,
    SPOT,
    STANDING_Z,
    Frame,
    Play,
    ScenePlayer,
    SceneScript,
    put,
    xyz,
)

Number = Annotated[float, Meta(ge=-1e5, le=1e5)]
Vector = tuple[Number, Number, Number]
Control = Annotated[float, Meta(ge=-1.0, le=1.0)]
Row = tuple[Control, Control, Control, Control, Control, Control, Control, Control]
FrameNumber = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Text = Annotated[str, Meta(max_length=200)]
Body = Literal["car", "other", "ball"]

MOST_SCENES: Final = 400  # scenes that a pack may have; ours has about a hundred


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
    row: Any = tuple(float(controls.get(name, 0.0)) for name in CONTROL_NAMES)
    return row  # type: ignore[no-any-return]


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
        ids: Sequence[int],
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
    way = _NEAR + 0.1 * math.hypot(*target.velocity)
    places = [xyz(ball.physics.location) for ball in frame.packet.balls[:1]]
    return all(math.dist(place, target.position) < way for place in places)


def _desired(body: BodyState) -> flat.DesiredPhysics:
    return put(body.position, body.velocity, body.rotation)


_OTHER: Final = BodyState((*ASIDE, STANDING_Z), rotation=(0.0, 0.5 * math.pi, 0.0))
_BALL: Final = BodyState(BALL_ASIDE)
_SECOND: Final = 120  # ticks
_REST: Final = 40  # ticks in which a car that was put on its wheels comes to rest
_SHORT: Final = 6  # ticks of a state before its controls, where it moves
_UP: Final = 1.2  # rad


def all_scenes() -> tuple[ScriptedScene, ...]:
    """Return the scenes in the order in which they are played."""
    return (*_hits(), *_driving(), *_flying(), *_jumping(), *_walls(), *_balls(), *_bumps(), *_demolition())


def _scene(
    name: str, kind: str, *steps: ScriptStep, car: BodyState | None = None, other: BodyState = _OTHER,
    ball: BodyState = _BALL, measured: tuple[Body, ...] = ("car",), settle: int = _REST,
) -> ScriptedScene:  # fmt: skip
    return ScriptedScene(name, kind, measured, car or _standing(), other, ball, settle, steps)


def _standing(speed: float = 0.0, yaw: float = 0.0, spot: tuple[float, float] = SPOT) -> BodyState:
    velocity = (speed * math.cos(yaw), speed * math.sin(yaw), 0.0)
    return BodyState((*spot, STANDING_Z), velocity, (0.0, yaw, 0.0))


def _hits() -> Iterator[ScriptedScene]:
    """Yield hits of the ball; the first touch ends the kickoff."""
    both: tuple[Body, ...] = ("car", "ball")
    for speed in (700.0, 1400.0, 2100.0):
        for side in (0.0, 40.0):
            car = _standing(speed, spot=(SPOT[0] - 0.45 * speed - 160.0, SPOT[1] + side))
            ball = BodyState((*SPOT, BALL_REST_Z))
            drive = hold(_SECOND, throttle=1.0)
            name = f"hit at {speed:g} uu/s, {side:g} uu beside the middle"
            yield _scene(name, "hit", drive, car=car, ball=ball, measured=both, settle=_SHORT)


def _driving() -> Iterator[ScriptedScene]:
    full, brake = hold(_SECOND, throttle=1.0), hold(90, throttle=-1.0)
    yield _scene("start with full throttle", "drive", full)
    yield _scene("start with half throttle", "drive", hold(_SECOND, throttle=0.5))
    yield _scene("start backwards", "drive", hold(_SECOND, throttle=-1.0))
    yield _scene("start with boost", "drive", hold(_SECOND, throttle=1.0, boost=1.0))
    yield _scene("boost without throttle", "drive", hold(_SECOND, boost=1.0))
    for speed in (500.0, 1000.0, 1300.0):
        yield _scene(f"full throttle from {speed:g} uu/s", "drive", full, car=_standing(speed), settle=_SHORT)
    yield _scene("coast", "brake", hold(_SECOND), car=_standing(1000.0), settle=_SHORT)
    yield _scene("brake from 1,300 uu/s", "brake", brake, car=_standing(1300.0), settle=_SHORT)
    yield _scene("brake from 600 uu/s", "brake", brake, car=_standing(600.0), settle=_SHORT)
    yield _scene("start, then brake", "brake", hold(60, throttle=1.0), brake)
    for speed, steer in ((500.0, 1.0), (1000.0, -1.0), (1400.0, 1.0), (1000.0, 0.5), (1000.0, -0.3)):
        name = f"turn from {speed:g} uu/s with steer {steer:g}"
        turn = hold(_SECOND, throttle=1.0, steer=steer)
        yield _scene(name, "turn", turn, car=_standing(speed), settle=_SHORT)
    slalom = [hold(30, throttle=1.0, steer=steer) for steer in (1.0, -1.0, 1.0, -1.0)]
    yield _scene("slalom", "turn", *slalom, car=_standing(900.0), settle=_SHORT)
    for throttle, steer in ((1.0, 1.0), (1.0, -1.0), (0.0, 1.0), (-1.0, 1.0)):
        slide = hold(70, throttle=throttle, steer=steer, handbrake=1.0)
        after = hold(50, throttle=1.0)
        name = f"powerslide with throttle {throttle:g}, steer {steer:g}"
        yield _scene(name, "powerslide", slide, after, car=_standing(1200.0), settle=_SHORT)


def _in_the_air(pitch: float = 0.0, roll: float = 0.0, speed: float = 300.0) -> BodyState:
    return BodyState((*SPOT, 900.0), (speed, 0.0, 300.0), (pitch, 0.0, roll))


def _flying() -> Iterator[ScriptedScene]:
    for pitch in (_UP, 0.6, 0.0, -0.4):
        for throttle in (1.0, -1.0, 0.5, 0.0):
            name = f"boost with throttle {throttle:g}, pitched {pitch:g} rad"
            thrust = hold(90, throttle=throttle, boost=1.0)
            yield _scene(name, "boost in the air", thrust, car=_in_the_air(pitch), settle=_SHORT)
    taps = [step for _ in range(6) for step in (hold(3, throttle=1.0, boost=1.0), hold(12, throttle=1.0))]
    yield _scene("boost in taps", "boost in the air", *taps, car=_in_the_air(_UP), settle=_SHORT)
    yield _scene("throttle", "flight", hold(90, throttle=1.0), car=_in_the_air(), settle=_SHORT)
    yield _scene("nothing", "flight", hold(_SECOND), car=_in_the_air(0.3, 0.5), settle=_SHORT)
    for control in ("pitch", "yaw", "roll"):
        for value in (1.0, -0.5):
            turn = hold(70, **{control: value})
            yield _scene(f"{control} {value:g}", "turn in the air", turn, car=_in_the_air(), settle=_SHORT)
    yield _scene(
        "pitch, yaw and roll with boost", "turn in the air",
        hold(70, throttle=1.0, pitch=0.6, yaw=-0.8, roll=1.0, boost=1.0), car=_in_the_air(), settle=_SHORT,
    )  # fmt: skip
    for pitch, roll in ((0.15, 0.25), (-0.15, -0.3), (0.0, 0.6)):
        drop = BodyState((*SPOT, 120.0), (600.0, 0.0, -300.0), (pitch, 0.0, roll))
        name = f"land pitched {pitch:g} and rolled {roll:g} rad"
        yield _scene(name, "landing", hold(100), car=drop, settle=_SHORT)


def _jumping() -> Iterator[ScriptedScene]:
    for ticks in (1, 3, 12, 24, 40):
        yield _scene(f"jump, held {ticks} ticks", "jump", hold(ticks, jump=1.0), hold(_SECOND))
    for speed in (600.0, 1300.0):
        steps = (hold(20, throttle=1.0, jump=1.0), hold(100, throttle=1.0))
        yield _scene(f"jump at {speed:g} uu/s", "jump", *steps, car=_standing(speed), settle=_SHORT)
    for wait in (4, 40):
        again = (hold(12, jump=1.0), hold(wait), hold(4, jump=1.0), hold(_SECOND))
        yield _scene(f"double jump after {wait} ticks", "double jump", *again)
    for speed in (0.0, 900.0):
        for pitch, yaw in ((-1, 0), (1, 0), (0, 1), (0, -1), (-1, 1), (-1, -1), (1, 1), (1, -1)):
            name = f"dodge with pitch {pitch} and yaw {yaw} at {speed:g} uu/s"
            yield _dodge(name, speed, float(pitch), float(yaw), hold(_SECOND))
    yield _dodge("dodge with pitch -0.7 and yaw 0.4 at 900 uu/s", 900.0, -0.7, 0.4, hold(_SECOND))
    for speed in (0.0, 900.0):
        cancel = (hold(40, pitch=-1.0), hold(80))
        yield _dodge(f"half flip at {speed:g} uu/s", speed, 1.0, 0.0, *cancel, kind="half flip")


def _dodge(
    name: str, speed: float, pitch: float, yaw: float, *after: ScriptStep, kind: str = "dodge"
) -> ScriptedScene:
    steps = (hold(8, jump=1.0), hold(5), hold(3, jump=1.0, pitch=pitch, yaw=yaw), *after)
    car = _standing(speed)
    return _scene(name, kind, *steps, car=car, settle=_SHORT if speed else _REST)


def _walls() -> Iterator[ScriptedScene]:
    for yaw, name in ((0.0, "straight"), (0.5, "aslant")):
        car = _standing(1400.0, yaw, (2900.0, 0.0))
        yield _scene(f"up a wall, {name}", "wall", hold(180, throttle=1.0), car=car, settle=_SHORT)
    car = _standing(1400.0, 0.0, (2900.0, 0.0))
    steps = (hold(110, throttle=1.0), hold(70, throttle=1.0, steer=1.0))
    yield _scene("up a wall, then a turn", "wall", *steps, car=car, settle=_SHORT)


def _balls() -> Iterator[ScriptedScene]:
    thrown: tuple[tuple[str, str, Vector, Vector], ...] = (
        ("drop from 300 uu", "ball bounces", (1500.0, 0.0, 300.0), (0.0, 0.0, -1.0)),
        ("drop from 1,200 uu", "ball bounces", (1500.0, 0.0, 1200.0), (0.0, 0.0, -1.0)),
        ("bounce ahead", "ball bounces", (500.0, 0.0, 300.0), (900.0, 400.0, -300.0)),
        ("thrown up", "ball in the air", (0.0, 0.0, 300.0), (300.0, 200.0, 1400.0)),
        ("thrown far", "ball in the air", (-1500.0, -2000.0, 400.0), (1500.0, 900.0, 1000.0)),
        ("thrown slowly", "ball in the air", (0.0, 0.0, 1300.0), (60.0, -40.0, 200.0)),
        ("rolls", "ball rolls", (0.0, 0.0, BALL_REST_Z), (800.0, 300.0, 0.0)),
        ("rolls slowly", "ball rolls", (0.0, 0.0, BALL_REST_Z), (200.0, 0.0, 0.0)),
        ("off a side wall", "ball off a wall", (2800.0, 0.0, 700.0), (1800.0, 500.0, 300.0)),
        ("off the back wall", "ball off a wall", (2000.0, 3800.0, 900.0), (200.0, 1800.0, 200.0)),
        ("into a corner", "ball off a wall", (2600.0, 3700.0, 600.0), (1200.0, 1300.0, 200.0)),
        ("up a side wall's curve", "ball off a wall", (3000.0, 0.0, BALL_REST_Z), (1600.0, 0.0, 0.0)),
    )
    waiting = BodyState((-3000.0, -1200.0, STANDING_Z))
    for name, kind, position, velocity in thrown:
        ball = BodyState(position, velocity)
        steps = (hold(250),)
        yield _scene(f"ball: {name}", kind, *steps, car=waiting, ball=ball, measured=("ball",), settle=_SHORT)


def _bumps() -> Iterator[ScriptedScene]:
    """Yield bumps from behind, from the side and head-on, too slow to demolish."""
    both: tuple[Body, ...] = ("car", "other")
    drive: Row = row_of(throttle=1.0)
    for yaw, name in ((0.0, "from behind"), (0.5 * math.pi, "from the side"), (math.pi, "head-on")):
        for speed in (600.0, 900.0, 1200.0, 1500.0):
            away = 0.2 * speed + 150.0
            car = _standing(speed, spot=(SPOT[0] - away, SPOT[1]))
            other = BodyState((*SPOT, STANDING_Z), rotation=(0.0, yaw, 0.0))
            step = ScriptStep(80, drive)
            title = f"bump {name} at {speed:g} uu/s"
            yield _scene(title, "bump", step, car=car, other=other, measured=both, settle=_SHORT)


def _demolition() -> Iterator[ScriptedScene]:
    car = _standing(2290.0, spot=(SPOT[0] - 700.0, SPOT[1]))
    other = BodyState((*SPOT, STANDING_Z))
    steps = (hold(60, throttle=1.0, boost=1.0), hold(400))
    yield _scene("demolition", "demolition", *steps, car=car, other=other, settle=2)
