"""Simulated bodies beside recorded ones lie on them where the simulator recorded them."""

from functools import cache

import numpy as np
import pytest

from rlgym_bridge.recording.recording import Inputs
from rlgym_bridge.sim.simulator import ROCKETSIM2
from rlgym_bridge.view.simulated_ghosts import Ghosts, ghosts
from tests.support.planted_gaps import as_replay, heavier, play, rows_of
from tests.support.simulators import needs_native

SECONDS = 5.0


@cache
def own() -> Ghosts:
    return ghosts(play(1, SECONDS), simulator=ROCKETSIM2)


def test_ghosts_of_the_simulator_itself_lie_on_the_bodies() -> None:
    recording, found = play(1, SECONDS), own()
    assert found.there.mean() > 0.95
    assert found.lag == 0
    for body in range(3):
        assert np.median(found.distance[found.there[:, body], body]) < 0.1
    real = recording.state.ball_position[found.there[:, -1]]
    np.testing.assert_allclose(
        np.linalg.norm(found.position[found.there[:, -1], -1] - real, axis=1),
        found.distance[found.there[:, -1], -1], atol=1e-3,
    )  # fmt: skip


@needs_native
def test_ghosts_of_another_simulator_part_from_the_bodies() -> None:
    assert ghosts(play(1, SECONDS)).distance[:, 0].max() > 2 * own().distance[:, 0].max()


@pytest.mark.slow
def test_ghosts_part_for_a_second_where_physics_differ() -> None:
    recording = play(1, SECONDS, heavier)
    distance = ghosts(recording, simulator=ROCKETSIM2).distance[:, -1]
    ends = np.arange(121, len(distance) - 1, 120)
    assert np.median(distance[ends]) > 1  # 1 % of gravity is 3 uu in a second
    assert np.median(distance[ends + 1]) < 0.1


def test_rows_without_a_body_have_no_ghost_of_it() -> None:
    recording = rows_of(play(1, SECONDS), np.arange(600))
    recording.ball_shown[200:400] = False
    found = ghosts(recording)
    assert not found.there[200:400, -1].any()
    assert not found.position[~found.there].any()


def test_without_inputs_only_the_ball_has_a_ghost() -> None:
    recording = rows_of(play(1, SECONDS), np.arange(600))
    recording.inputs = Inputs.NONE
    recording.inputs_recorded[:] = False
    there = ghosts(recording).there
    assert there[:, -1].any()
    assert not there[:, :-1].any()


def test_a_replays_ball_has_ghosts_where_it_is_shown() -> None:
    recording = as_replay(play(1, SECONDS))
    found = ghosts(recording, simulator=ROCKETSIM2)
    assert found.there[:, -1].sum() > 0.9 * recording.ball_shown.sum()
    assert np.median(found.distance[found.there[:, -1], -1]) < 1


@pytest.mark.parametrize("rows", [0, 1])
def test_too_short_a_recording_has_no_ghosts(rows: int) -> None:
    assert not ghosts(rows_of(play(1, SECONDS), np.arange(rows))).there.any()


def test_an_unknown_simulator_is_refused() -> None:
    with pytest.raises(ValueError, match="rocketsim9"):
        ghosts(play(1, SECONDS), simulator="rocketsim9")
