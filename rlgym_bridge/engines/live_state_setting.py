"""Set the state of a match: make the message, tell when it may be sent, and check what came of it."""

import logging
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from rlbot import flat

from rlgym_bridge.engines.desired_state import DesiredBody, DesiredMatch
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.state import CAR_FIELDS, MATCH_FIELDS, MatchState

_LOG = logging.getLogger(__name__)

_SET_SLACK: Final = 5.0  # uu, and two ticks of motion, off the place that was asked for

_NOT_ASKED: Final = (
    "frame", "phase", "clock", "overtime", "score", "goal_scored", "ball_known", "car_player_id", "car_known",
    "car_controls", "car_ball_touches", "car_bump_victim", "car_autoflip_direction", "car_flip_torque",
)  # fmt: skip
_COMPARED: Final = tuple(
    name
    for name in (*(field.name for field in MATCH_FIELDS), *("car_" + field.name for field in CAR_FIELDS))
    if name not in _NOT_ASKED
)
_TOLERANCES: Final = {"boost_consumption": 2e-3, "ball_position": 1.0, "car_position": 1.0}


def state_message(asked: DesiredMatch, packet_order: Sequence[int]) -> flat.DesiredGameState:
    """Return RLBot's message that sets a state.

    Args:
        asked: The state to set; cars in the order of the state.
        packet_order: Packet index of each car of the state.
    """
    cars = {index: asked.cars[car] for car, index in enumerate(packet_order)}
    return flat.DesiredGameState(
        ball_states=[flat.DesiredBallState(_physics(asked.ball))],
        car_states=[
            flat.DesiredCarState(_physics(cars[index]), float(cars[index].boost)) for index in sorted(cars)
        ],
        match_info=flat.DesiredMatchInfo(world_gravity_z=asked.gravity_z),
    )


def _physics(body: DesiredBody) -> flat.DesiredPhysics:
    return flat.DesiredPhysics(
        flat.Vector3Partial(*body.position), flat.RotatorPartial(*body.angles),
        flat.Vector3Partial(*body.velocity), flat.Vector3Partial(*body.spin),
    )  # fmt: skip


def can_be_set(state: MatchState) -> bool:
    """Tell whether a state can be set: no car is demolished, dodges, boosts, slides or bumps another."""
    busy = (
        state.car_is_demoed, state.car_is_flipping, state.car_is_autoflipping, state.car_handbrake,
        state.car_is_boosting, state.car_bump_victim + 1,
    )  # fmt: skip
    return not any(flags.any() for flags in busy)


def shows(state: MatchState, asked: DesiredMatch) -> bool:
    """Tell whether ball and cars are where they were asked to be, up to two ticks of motion."""
    places = [(state.ball_position[0], asked.ball)]
    places += [(state.car_position[0, number], car) for number, car in enumerate(asked.cars)]
    return all(
        math.dist(place.tolist(), body.position)
        <= _SET_SLACK + 2 * math.hypot(*body.velocity) / TICKS_PER_SECOND
        for place, body in places
    )


class LeftOut:
    """A log of what a match does not set, each field once.

    The part of a percent of boost that RLBot cuts off is not logged: no state that is set has it.
    """

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def log(self, asked: MatchState, shown: MatchState) -> None:
        """Log the fields whose values differ from those asked for."""
        for name in _COMPARED:
            if name in self._logged:
                continue
            ours, theirs = getattr(asked, name), getattr(shown, name)
            if name == "car_boost_amount":
                ours = np.floor(ours)
            different = ~np.isclose(ours, theirs, atol=_TOLERANCES.get(name, 1e-2))
            if different.any():
                self._logged.add(name)
                at = tuple(np.argwhere(different)[0])
                _LOG.warning(
                    "a match does not set %s: asked for %g, it is %g",
                    name,
                    float(ours[at]),
                    float(theirs[at]),
                )
