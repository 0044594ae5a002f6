"""TeamObs: RelativeObs's numbers in one size for all team sizes, nearest cars first."""

from typing import Any

import numpy as np
import pytest

from rlgym_bridge import RelativeObs, TeamObs
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.state import MatchState
from tests.support.states import TEAM_SIZES, random_state


def by_name(builder: RelativeObs | TeamObs, state: MatchState, car: int) -> dict[str, np.ndarray]:
    """Return each number that a car is shown, `(matches,)`, by its name."""
    blue, orange = state.layout.blue, state.layout.orange
    numbers = builder.build_batch(state, (car,))[:, 0].T
    return dict(zip(builder.names(blue, orange, car), numbers, strict=True))


def others_of(state: MatchState, car: int) -> dict[str, list[int]]:
    """Return team mates and opponents of a car, in the order of the state."""
    blue = state.layout.blue
    cars = [other for other in range(state.layout.cars) if other != car]
    mates = [other for other in cars if (other < blue) == (car < blue)]
    return {"ally": mates, "enemy": [other for other in cars if other not in mates]}


@pytest.mark.parametrize(("blue", "orange"), TEAM_SIZES)
def test_it_has_relative_obs_numbers_nearest_first(blue: int, orange: int) -> None:
    state = random_state(blue, orange, seed=1, matches=4)
    for car in range(blue + orange):
        seen, plain = by_name(TeamObs(3), state, car), by_name(RelativeObs(3), state, car)
        for name, numbers in seen.items():
            if not name.startswith(("ally-", "enemy-")):
                np.testing.assert_array_equal(numbers, plain[name], name)
        for match in range(4):
            for group, cars in others_of(state, car).items():
                away = [
                    np.linalg.norm(state.car_position[match, i] - state.car_position[match, car])
                    for i in cars
                ]
                for place in range(3 - (group == "ally")):
                    who = f"{group}-{place}"
                    block = {
                        name.removeprefix(f"{who}/"): numbers[match]
                        for name, numbers in seen.items()
                        if name.startswith(f"{who}/")
                    }
                    if place >= len(cars):
                        assert not any(block.values())
                        continue
                    assert block.pop("there") == 1
                    source = f"{group}-{int(np.argsort(away)[place])}"
                    for name, number in block.items():
                        relative = name.startswith("relative/")
                        was = name.replace("/", f"/{source}/", 1) if relative else f"{source}/{name}"
                        assert number == plain[was][match], name


@pytest.mark.parametrize(("blue", "orange"), TEAM_SIZES)
def test_it_has_222_numbers_for_all_team_sizes(blue: int, orange: int) -> None:
    obs = TeamObs()
    state = random_state(blue, orange, seed=2, matches=2)
    assert obs.build_batch(state).shape == (2, blue + orange, 222)
    assert obs.get_obs_space("somebody") == ("real", 222)
    assert obs.names(blue, orange) == obs.names(1, 1) and len(set(obs.names(1, 1))) == 222


def test_exchanged_cars_look_the_same() -> None:
    state = random_state(3, 3, seed=3, matches=16)
    exchanged = MatchState(3, 3, 16, state.buffer.copy())
    start, stride = state.layout.car_start, state.layout.car_stride
    cars = exchanged.buffer[:, start:].reshape(16, 6, stride)
    cars[:] = cars[:, [0, 2, 1, 5, 3, 4]]
    assert TeamObs().build_batch(state, (0,)).tobytes() == TeamObs().build_batch(exchanged, (0,)).tobytes()
    assert RelativeObs().build_batch(state, (0,)).tobytes() != (
        RelativeObs().build_batch(exchanged, (0,)).tobytes()
    )


def test_an_absent_mate_differs_from_one_in_the_same_place() -> None:
    state = random_state(2, 1, seed=4)
    state.buffer[0, state.layout.car_start :] = 0  # all cars at the origin, not turned, not moving
    names = TeamObs().names(2, 1)
    numbers = TeamObs().build_batch(state, (0,))[0, 0]
    first, second = (
        numbers[[i for i, name in enumerate(names) if name.startswith(f"ally-{place}/")]]
        for place in range(2)
    )
    assert first.tolist() == [1.0] + [0.0] * 26 and second.tolist() == [0.0] * 27


def test_equally_far_cars_keep_the_order_of_the_state() -> None:
    state = random_state(1, 3, seed=5)
    state.car_position[0] = [[0, 0, 17], [0, 900, 17], [900, 0, 17], [-900, 0, 17]]
    seen = by_name(TeamObs(), state, 0)
    places = [[float(seen[f"enemy-{i}/position/{axis}"][0]) * 2300 for axis in "xy"] for i in range(3)]
    np.testing.assert_allclose(places, [[0, 900], [900, 0], [-900, 0]], atol=1e-3)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_one_match_and_some_cars_give_the_same_bits(size: int) -> None:
    state = random_state(size, size, seed=6, matches=64)
    every = TeamObs().build_batch(state)
    for match in (0, 17, 63):
        alone = MatchState(size, size, 1, state.buffer[match : match + 1].copy())
        for car in range(2 * size):
            assert TeamObs().build_batch(alone, (car,)).tobytes() == every[match, car].tobytes()


def test_its_dict_form_is_that_of_the_batch() -> None:
    state = random_state(2, 3, seed=7)
    game_state, obs = to_rlgym(state), TeamObs()
    obs.reset(list(game_state.cars), game_state, {})
    built = obs.build_obs(list(game_state.cars), game_state, {})
    np.testing.assert_allclose(np.stack(list(built.values())), obs.build_batch(state)[0], atol=1e-6)


@pytest.mark.parametrize(("padding", "message"), [(None, "expected the cars of the largest"), (0, "is 0")])
def test_padding_that_cannot_be_is_refused(padding: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TeamObs(padding)


def test_a_team_with_too_many_cars_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has room for 2 \(zero_padding\)"):
        TeamObs(2).build_batch(random_state(3, 3, seed=8))
