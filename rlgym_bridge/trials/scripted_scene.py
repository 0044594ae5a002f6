"""Describe a scripted scene: the states to set, the controls to hold, and what was played of it.

The classes are read from packs of others, so every field has its limits.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from rlgym_bridge.game import CONTROL_NAMES

Number = Annotated[float, Meta(ge=-1e5, le=1e5)]
Vector = tuple[Number, Number, Number]
Control = Annotated[float, Meta(ge=-1.0, le=1.0)]
Row = tuple[Control, Control, Control, Control, Control, Control, Control, Control]
Frame = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Text = Annotated[str, Meta(max_length=200)]
Body = Literal["car", "other", "ball"]

NEUTRAL_ROW: Final[Row] = (0.0,) * 8
MOST_SCENES: Final = 400
"""Scenes that a pack may have; ours has about a hundred."""


class BodyState(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A state to set, without spin.

    Attributes:
        position: uu.
        velocity: uu/s.
        rotation: Pitch, yaw and roll, rad.
    """

    position: Vector
    velocity: Vector = (0.0, 0.0, 0.0)
    rotation: Vector = (0.0, 0.0, 0.0)


class ScriptStep(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Controls to hold for some ticks, in the order of `game.CONTROL_NAMES`.

    Attributes:
        ticks: How long.
        car: Row of the first car.
        other: Row of the second car.
    """

    ticks: Annotated[int, Meta(ge=1, le=1200)]
    car: Row = NEUTRAL_ROW
    other: Row = NEUTRAL_ROW


class ScriptedScene(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One scene.

    Attributes:
        name: Its own name.
        kind: Scenes of a kind are reported together, such as "dodge".
        measured: Bodies that RocketSim is to follow together.
        car: State of the first car.
        other: State of the second car.
        ball: State of the ball.
        settle: Ticks without controls before the steps.
        steps: Controls, one after another.
        boost: Of both cars at the beginning, 0 to 100.
    """

    name: Text
    kind: Text
    measured: Annotated[tuple[Body, ...], Meta(min_length=1, max_length=3)]
    car: BodyState
    other: BodyState
    ball: BodyState
    settle: Annotated[int, Meta(ge=0, le=1200)]
    steps: Annotated[tuple[ScriptStep, ...], Meta(min_length=1, max_length=100)]
    boost: Annotated[float, Meta(ge=0.0, le=100.0)] = 100.0


class PlayedScene(Struct, frozen=True, forbid_unknown_fields=True):
    """The frames of a scene that was played.

    Attributes:
        scene: Index of its definition.
        asked: Frame of the packet that was answered with the state to set.
        shown: First frame that shows this state.
        began: Frame that was answered with the first step.
        ended: Last frame of the scene.
    """

    scene: Annotated[int, Meta(ge=0, lt=MOST_SCENES)]
    asked: Frame
    shown: Frame
    began: Frame
    ended: Frame


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
