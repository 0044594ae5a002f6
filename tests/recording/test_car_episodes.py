"""Read observations and choices of each car of a recorded match, in episodes."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlgym_bridge.components.rewards import GoalReward
from rlgym_bridge.recording.car_episodes import Played, played
from rlgym_bridge.recording.mcap.match_recording import MatchRecording, read_match
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError
from tests.support.recorded_matches import record, two_policies


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> MatchRecording:
    """The shipped policy against itself in a perfect world, long enough for a goal."""
    return read_match(two_policies(tmp_path_factory))


@pytest.fixture
def changed(clean: MatchRecording) -> MatchRecording:
    return copy.deepcopy(clean)


def steps_of(episodes: list[list[Played]], agent: str) -> int:
    return sum(len(car.chosen) for together in episodes for car in together if car.agent == agent)


def test_bots_can_be_chosen_by_their_ids(clean: MatchRecording) -> None:
    [orange] = [name for name, one in clean.agents.items() if one.decisions[0].seats.tolist() == [1]]
    episodes = played(clean, bots=[orange, orange])
    assert {car.agent for together in episodes for car in together} == {"orange-0"}
    assert steps_of(episodes, "orange-0") == steps_of(played(clean), "orange-0"), "it is taken once"
    with pytest.raises(RecordingError, match="no decisions with observations of somebody; it holds those of"):
        played(clean, bots=["somebody"])


def test_a_match_of_bots_that_see_nothing_is_refused(tmp_path: Path) -> None:
    file = record(tmp_path / "match.mcap", blue="chaser", seconds=1)
    with pytest.raises(RecordingError, match=r"with observations of anybody; it holds those of nobody"):
        played(read_match(file))


def test_decisions_that_were_not_taken_begin_another_episode(changed: MatchRecording) -> None:
    whole = played(changed)
    for track in changed.agents.values():
        del track.decisions[20:60]  # as an override leaves them out
    parts = played(changed)
    assert len(parts) == len(whole) + 1 and not any(car.scored for car in parts[0])
    assert max(np.diff(car.frames).max() for together in parts for car in together) <= 12


def test_a_restarted_bot_plays_on_in_a_new_episode(clean: MatchRecording, changed: MatchRecording) -> None:
    name = next(name for name, one in changed.agents.items() if one.decisions[0].seats.tolist() == [0])
    again = copy.deepcopy(changed.agents[name])
    changed.agents[name].decisions, again.decisions = again.decisions[:30], again.decisions[30:]
    again.agent_id = f"{name}-again"
    changed.agents[again.agent_id] = again
    lost = steps_of(played(clean), "blue-0") - steps_of(played(changed), "blue-0")
    assert lost == 1, "the step between the two"


def test_cars_are_in_one_episode_where_their_times_overlap(clean: MatchRecording) -> None:
    whole = played(clean)[0]
    names = [car.agent for car in whole]
    at, count = whole[0].frames, len(whole[0].chosen)

    def spans_of(*parts: Any) -> list[dict[str, tuple[int, int]]]:
        other = copy.deepcopy(clean)
        for track, part in zip(other.agents.values(), parts, strict=True):
            track.decisions = [one for number, one in enumerate(track.decisions[:count]) if part(number)]
        return [{car.agent: (car.frames[0], car.frames[-1]) for car in cars} for cars in played(other)]

    # One leaves before the other joins.
    assert spans_of(lambda n: n < 10, lambda n: n >= 12)[0] == {names[0]: (at[0], at[9])}
    # One misses much, and the other something later.
    first, second = spans_of(lambda n: not 10 <= n < 16, lambda n: not 30 <= n < 36)
    assert first == {names[0]: (at[0], at[9]), names[1]: (at[0], at[29])}
    assert second == {names[0]: (at[16], at[count - 1]), names[1]: (at[36], at[count - 1])}
    # All leave, and come back at other times.
    first, second = spans_of(lambda n: not 10 <= n < 30, lambda n: not 12 <= n < 25)
    assert first == {names[0]: (at[0], at[9]), names[1]: (at[0], at[11])} and set(second) == set(names)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one._replace(obs=np.full_like(one.obs, np.nan)), "number that is not finite"),
        (lambda one: one._replace(actions=np.full_like(one.actions, 500)), "expected actions of categorical"),
        (lambda one: one._replace(seats=np.array([7], np.int32)), r"cars \[7\], which the match"),
    ],
)
def test_impossible_decisions_are_refused_with_bot_and_frame(
    change: Any, message: str, changed: MatchRecording
) -> None:
    name, track = next(iter(changed.agents.items()))
    track.decisions = [change(one) for one in track.decisions]
    with pytest.raises(ValueError, match=message) as raised:
        played(changed)
    assert name in str(raised.value) and "frame" in str(raised.value)


def test_a_reward_in_place_of_its_factory_is_refused(clean: MatchRecording) -> None:
    with pytest.raises(TypeError, match=r"reward is a GoalReward, expected what makes one"):
        played(clean, GoalReward())  # type: ignore[arg-type]
