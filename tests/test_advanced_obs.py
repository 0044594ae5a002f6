"""AdvancedObs: the numbers of RLGym v1, in its order, as rlgym-compat's v1 objects have them."""

import numpy as np
import pytest
from rlgym.rocket_league.api import GameState
from rlgym_compat.v1.physics_object import PhysicsObject
from rlgym_compat.v1.player_data import PlayerData

from rlgym_bridge import AdvancedObs
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.state import MatchState
from tests.support.states import TEAM_SIZES, random_state

KINDS = {
    "AdvancedObs": ({}, 107),
    "AdvancedObsPadder": ({"zero_padding": 3, "has_jump": True}, 237),
    "DefaultObs": ({"relative": False}, 89),
}


def players_of(game: GameState) -> list[PlayerData]:
    players = []
    for number, car in enumerate(game.cars.values()):
        player = PlayerData()
        player.update_from_v2(car, number, 0, False)
        players.append(player)
    return players


def car_numbers(player: PlayerData, ball: PhysicsObject, orange: bool, kind: str) -> list[np.ndarray]:
    body = player.inverted_car_data if orange else player.car_data
    relative = [(ball.position - body.position) / 2300, (ball.linear_velocity - body.linear_velocity) / 2300]
    flags = [player.boost_amount, player.on_ground, player.has_flip, player.is_demoed]
    flags += [player.has_jump] * (kind == "AdvancedObsPadder")
    return [
        *(relative if kind != "DefaultObs" else []), body.position / 2300, body.forward(), body.up(),
        body.linear_velocity / 2300, body.angular_velocity / np.pi, np.array(flags, float),
    ]  # fmt: skip


def expected(state: MatchState, match: int, car: int, kind: str) -> np.ndarray:
    """What a bot of RLGym v1 is shown, from rlgym-compat's objects."""
    game, orange = to_rlgym(state, match), car >= state.layout.blue
    players = players_of(game)
    ball = PhysicsObject.create_from_v2(game.inverted_ball if orange else game.ball)
    pads = game.inverted_boost_pad_timers if orange else game.boost_pad_timers
    numbers = [
        ball.position / 2300, ball.linear_velocity / 2300, ball.angular_velocity / np.pi,
        state.car_controls[match, car], (pads == 0).astype(float),
        *car_numbers(players[car], ball, orange, kind),
    ]  # fmt: skip
    own = players[car].inverted_car_data if orange else players[car].car_data
    groups: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for number, player in enumerate(players):
        if number == car:
            continue
        body = player.inverted_car_data if orange else player.car_data
        block = car_numbers(player, ball, orange, kind)
        if kind != "DefaultObs":
            away = (body.position - own.position, body.linear_velocity - own.linear_velocity)
            block += [vector / 2300 for vector in away]
        groups[player.team_num != players[car].team_num].append(np.concatenate(block))
    if kind == "AdvancedObsPadder":
        for group, places in zip(groups, (2, 3), strict=True):
            group += [np.zeros(32)] * (places - len(group))
    return np.concatenate([*numbers, *groups[0], *groups[1]])


@pytest.mark.parametrize(("blue", "orange"), TEAM_SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_it_shows_the_numbers_of_rlgym_v1(kind: str, blue: int, orange: int) -> None:
    arguments, size = KINDS[kind]
    state, builder = random_state(blue, orange, seed=3, matches=3), AdvancedObs(**arguments)
    seen = builder.build_batch(state)
    assert seen.dtype == np.float32
    if (blue, orange) == (1, 1):
        assert seen.shape[2] == builder.size(1, 1) == size
    for match in range(3):
        for car in range(blue + orange):
            np.testing.assert_allclose(seen[match, car], expected(state, match, car, kind), atol=2e-6)
            assert len(set(builder.names(blue, orange, car))) == seen.shape[2]


def test_rlgyms_form_shows_the_same_but_the_previous_action() -> None:
    state = random_state(2, 2, seed=5)
    builder = AdvancedObs()
    game = to_rlgym(state)
    builder.reset(list(game.cars), game, {})
    shown = builder.build_obs(list(game.cars), game, {})
    known = [not name.startswith("previous/") for name in builder.names(2, 2)]
    ours = builder.build_batch(state)[0][:, known]
    np.testing.assert_allclose(np.stack(list(shown.values()))[:, known], ours, atol=1e-6)
    assert builder.get_obs_space("blue-0") == ("real", builder.size(2, 2))


def test_too_many_cars_and_cars_that_are_not_there_are_named() -> None:
    state = random_state(2, 2, seed=6)
    with pytest.raises(ValueError, match="blue team has 2 cars and AdvancedObs has room for 1"):
        AdvancedObs(zero_padding=1).build_batch(state)
    with pytest.raises(ValueError, match="there is no car 4"):
        AdvancedObs().build_batch(state, [4])
