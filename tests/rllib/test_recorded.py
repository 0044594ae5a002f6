"""Matches of ours, played and recorded, as RLlib's episodes."""

import copy
from pathlib import Path

import numpy as np
import pytest
from rlgym.rocket_league.reward_functions import TouchReward as RLGymTouchReward

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.rewards import GoalReward, TouchReward, VelocityBallToGoalReward, WeightedSum
from rlgym_bridge.recording.mcap.match_recording import MatchRecording, read_match
from rlgym_bridge.rllib import applied_of, correct_applied_actions, episodes_from_recording
from tests.support.recorded_matches import POLICY, once_a_run, record, retimed, two_policies
from tests.support.simulators import needs_native

TABLE = LookupTableAction().parse_batch(np.arange(90)[None])[0, :, 0]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> MatchRecording:
    """The former bot against itself in a perfect world, long enough for a goal."""
    return read_match(two_policies(tmp_path_factory))


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> MatchRecording:
    """A policy that decides every two ticks against the shipped one; late inputs and lost packets."""

    def make(folder: Path) -> Path:
        quick = retimed(folder / "quick", 2)
        words = ("--latency", "2", "--drop", "5")
        return record(folder / "match.mcap", *words, blue=str(quick), orange=POLICY, seconds=6)

    return read_match(once_a_run(tmp_path_factory, "spoiled", make))


def test_both_cars_are_agents_with_what_their_bots_saw(clean: MatchRecording) -> None:
    episodes = episodes_from_recording(clean)
    assert episodes
    for seat, agent in enumerate(("blue-0", "orange-0")):
        [track] = [one for one in clean.agents.values() if one.decisions[0].seats.tolist() == [seat]]
        by_frame = {one.frame: one for one in track.decisions}
        for episode in episodes:
            one = episode.agent_episodes[agent]
            infos = one.get_infos()
            assert len(infos) == len(one) + 1 > 10
            for number, (obs, info) in enumerate(zip(one.get_observations(), infos, strict=True)):
                decision = by_frame[info["frame"]]
                assert np.array_equal(obs, decision.obs[0]) and obs.dtype == np.float32
                if number < len(one):
                    assert one.get_actions(number) == int(decision.actions[0, 0])
            assert episode.observation_space[agent].shape == obs.shape
            assert episode.action_space[agent].n == 90


@needs_native  # the recorded match has its goal in RocketSim 3
def test_a_goal_terminates_and_the_matchs_end_truncates(clean: MatchRecording) -> None:
    episodes = episodes_from_recording(clean, GoalReward)
    ends = [(one.is_terminated, one.is_truncated) for one in episodes]
    assert (True, False) in ends and ends[-1] == (False, True)
    for episode in episodes:
        gains = {agent: one.get_rewards() for agent, one in episode.agent_episodes.items()}
        for agent, one in episode.agent_episodes.items():
            assert one.is_terminated == episode.is_terminated and one.is_truncated == episode.is_truncated
            assert not np.any(gains[agent][:-1])
        last = sorted(float(one[-1]) for one in gains.values())
        assert last == ([-1.0, 1.0] if episode.is_terminated else [0.0, 0.0])


def test_in_a_perfect_world_the_game_applied_what_was_chosen(clean: MatchRecording) -> None:
    for episode in episodes_from_recording(clean):
        for agent, one in episode.agent_episodes.items():
            assert applied_of(episode)[agent] == one.get_actions()
            assert all(info["told"] for info in one.get_infos(slice(1, -1)))
        assert set(correct_applied_actions(episode, applied_of(episode)).values()) == {0}


def test_rewards_are_those_of_any_reward_function(clean: MatchRecording) -> None:
    ours, theirs = (episodes_from_recording(clean, one) for one in (TouchReward, RLGymTouchReward))
    touches = [[e.agent_episodes[a].get_return() for a in e.agent_episodes] for e in ours]
    assert touches == [[e.agent_episodes[a].get_return() for a in e.agent_episodes] for e in theirs]
    assert np.sum(touches) >= 2
    mixed = episodes_from_recording(
        clean, lambda: WeightedSum([(TouchReward(), 2.0), (VelocityBallToGoalReward(), 1.0)], zero_sum=True)
    )
    for number, episode in enumerate(mixed):
        blue, orange = (episode.agent_episodes[agent].get_rewards() for agent in ("blue-0", "orange-0"))
        assert np.allclose(np.add(blue, orange), 0, atol=1e-5)
        assert number or np.any(blue)


def test_without_a_reward_function_recorded_rewards_count(clean: MatchRecording) -> None:
    episodes = episodes_from_recording(clean)  # a policy folder without rewards
    assert not any(one.get_return() for episode in episodes for one in episode.agent_episodes.values())


@pytest.mark.slow
def test_applied_actions_drove_most_of_their_ticks(spoiled: MatchRecording) -> None:
    rows = {int(tick): row for row, tick in enumerate(spoiled.tick)}
    compared = changed = 0
    for episode in episodes_from_recording(spoiled):
        one = episode.agent_episodes["blue-0"]
        infos = one.get_infos()
        for number, applied in enumerate(applied_of(episode)["blue-0"]):
            first = infos[number]["frame"] + 2
            last = min(infos[number + 1]["frame"] + 1, infos[-1]["frame"])
            ticks = [rows[tick] for tick in range(first, last + 1) if tick in rows]
            controls = spoiled.state.car_controls[ticks, 0]
            does = np.abs(controls - TABLE[applied]).max(1) < 0.01
            assert does.sum() >= len(ticks) / 2 or not infos[number + 1]["told"]
            compared += 1
            changed += applied != one.get_actions(number)
    assert compared > 500 and 0.05 * compared < changed < 0.5 * compared


@pytest.mark.slow
def test_bots_that_decide_on_other_ticks_skip_steps(spoiled: MatchRecording) -> None:
    episodes = episodes_from_recording(spoiled)
    for episode in episodes:
        frames = {
            agent: [info["frame"] for info in one.get_infos()]
            for agent, one in episode.agent_episodes.items()
        }
        every = sorted({frame for some in frames.values() for frame in some})
        assert len(episode) == len(every) - 1
        for agent, mine in frames.items():
            assert mine == sorted(set(mine))
            steps = [episode.env_t_to_agent_t[agent].get(number) for number in range(len(every))]
            assert [frame for frame, step in zip(every, steps, strict=True) if step != "S"] == mine
    assert sum(len(one.agent_episodes["blue-0"]) for one in episodes) > 3 * sum(
        len(one.agent_episodes["orange-0"]) for one in episodes
    )


@needs_native  # the recorded match has its goal in RocketSim 3
def test_a_goal_ends_episodes_of_many_choices_too(clean: MatchRecording) -> None:
    changed = copy.deepcopy(clean)
    for track in changed.agents.values():
        assert track.policy is not None
        track.policy["distribution"] = "multi_categorical"
        track.policy["parser"]["nested"] = {
            "class": "rlgym_bridge:MultiDiscreteAction", "args": {}, "nested": None,
        }  # fmt: skip
        track.decisions = [
            one._replace(actions=np.ones((1, 8), np.float32)) if one.actions.shape[1] else one
            for one in track.decisions
        ]
    episodes = episodes_from_recording(changed)
    assert any(one.is_terminated for one in episodes)
    assert episodes[0].agent_episodes["blue-0"].get_actions(0).shape == (8,)
