"""Wheels that touch, worked out from a packet, are those that the simulator names."""

from collections import Counter

from rlbot import flat

from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.trials.jump_scenes import count_touching_wheels
from rlgym_bridge.trials.scene_player import Frame
from tests.support.probe_questions import ask
from tests.support.stepped_match import car_of

AIR = flat.AirState


def test_wheels_by_geometry_are_those_of_the_simulation() -> None:
    counts: Counter[tuple[int, int]] = Counter()

    def compare(match: Match, frame: Frame) -> None:
        car = frame.car
        place = car.physics.location
        flat_floor = max(abs(place.x), abs(place.y)) < 3500.0 and place.z < 100.0
        if not frame.playing or not flat_floor or car.air_state not in (AIR.OnGround, AIR.InAir):
            return
        geometry = count_touching_wheels(car)
        if geometry is not None:
            counts[geometry, int(car_of(match, 0).wheels_with_contact.sum())] += 1

    ask(watch=compare)
    wrong = sum(count for (ours, theirs), count in counts.items() if ours != theirs)
    assert sum(counts.values()) > 500 and counts[3, 3] > 10 and counts[2, 2] > 10
    assert wrong <= 0.01 * sum(counts.values())
    assert sum(count for (ours, theirs), count in counts.items() if ours == 3 != theirs) <= 1
