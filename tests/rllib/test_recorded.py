"""Matches of ours, played and recorded, as RLlib's episodes."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlgym.rocket_league.reward_functions import TouchReward as RLGymTouchReward

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.rewards import GoalReward, TouchReward, VelocityBallToGoalReward, WeightedSum
from rlgym_bridge.recording.mcap.match_recording import MatchRecording, read_match
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError
from rlgym_bridge.rllib import applied_of, correct_applied_actions, episodes_from_recording
from tests.support.recorded_matches import POLICY, once_a_run, record, retimed, two_policies
from tests.support.simulators import needs_native

TABLE = LookupTableAction().parse_batch(np.arange(90)[None])[0, :, 0]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> MatchRecording:
    """The shipped policy against itself in a perfect world, long enough for a goal."""
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
            assert episode.observation_space[agent].shape == (222,)  # TeamObs
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
def test_corrected_episodes_hold_what_was_applied(spoiled: MatchRecording) -> None:
    for numpy in (False, True):
        for episode in episodes_from_recording(spoiled):
            applied = applied_of(episode)
            if numpy:
                episode.to_numpy()
            before = {agent: len(one) for agent, one in episode.agent_episodes.items()}
            changed = correct_applied_actions(episode, applied)
            for agent, one in episode.agent_episodes.items():
                assert list(one.get_actions()) == applied[agent]
                assert len(one) == before[agent]
            assert correct_applied_actions(episode, applied) == dict.fromkeys(changed, 0)


def test_bots_can_be_chosen_by_their_ids(clean: MatchRecording) -> None:
    [orange] = [name for name, one in clean.agents.items() if one.decisions[0].seats.tolist() == [1]]
    episodes = episodes_from_recording(clean, bots=[orange])
    assert {agent for one in episodes for agent in one.agent_episodes} == {"orange-0"}
    with pytest.raises(
        RecordingError, match=r"holds no decisions with observations of somebody; it holds those of .*policy"
    ):
        episodes_from_recording(clean, bots=["somebody"])


@pytest.mark.slow
def test_a_match_of_bots_that_see_nothing_is_refused(tmp_path: Path) -> None:
    file = record(tmp_path / "match.mcap", blue="chaser", seconds=1)
    with pytest.raises(
        RecordingError,
        match=r"match.mcap holds no decisions with observations of anybody; it holds those of nobody",
    ):
        episodes_from_recording(file)


def test_decisions_that_were_not_taken_begin_another_episode(clean: MatchRecording) -> None:
    whole = episodes_from_recording(clean)
    changed = copy.deepcopy(clean)
    for track in changed.agents.values():
        del track.decisions[20:60]  # as an override leaves them out
    parts = episodes_from_recording(changed)
    assert len(parts) == len(whole) + 1
    for episode in parts:
        for one in episode.agent_episodes.values():
            assert max(np.diff([info["frame"] for info in one.get_infos()])) <= 12
    assert parts[0].is_truncated and not parts[0].is_terminated


def test_a_restarted_bot_plays_on_in_a_new_episode(clean: MatchRecording) -> None:
    changed = copy.deepcopy(clean)
    name = next(name for name, one in changed.agents.items() if one.decisions[0].seats.tolist() == [0])
    again = copy.deepcopy(changed.agents[name])
    changed.agents[name].decisions, again.decisions = again.decisions[:30], again.decisions[30:]
    again.agent_id = f"{name}-again"
    changed.agents[again.agent_id] = again
    steps = sum(len(one.agent_episodes.get("blue-0", [])) for one in episodes_from_recording(changed))
    before = sum(len(one.agent_episodes["blue-0"]) for one in episodes_from_recording(clean))
    assert steps == before - 1  # the step between the two


def test_cars_are_in_one_episode_where_their_times_overlap(clean: MatchRecording) -> None:
    def frames_of(*parts: Any) -> list[dict[str, tuple[int, int]]]:
        changed = copy.deepcopy(clean)
        for track, part in zip(changed.agents.values(), parts, strict=True):
            track.decisions = track.decisions[: len(whole[0])]
            track.decisions = [one for number, one in enumerate(track.decisions) if part(number)]
        return [
            {
                agent: tuple(one.get_infos(at)["frame"] for at in (0, -1))
                for agent, one in episode.agent_episodes.items()
            }
            for episode in episodes_from_recording(changed)
        ]

    whole = episodes_from_recording(clean)
    names = [clean.state.agents[one.decisions[0].seats[0]] for one in clean.agents.values()]
    at = [info["frame"] for info in whole[0].agent_episodes[names[0]].get_infos()]
    # One leaves before the other joins.
    assert frames_of(lambda n: n < 10, lambda n: n >= 12)[0] == {names[0]: (at[0], at[9])}
    # One misses much, and the other something later.
    last = at[len(whole[0]) - 1]
    first, second = frames_of(lambda n: not 10 <= n < 16, lambda n: not 30 <= n < 36)
    assert first == {names[0]: (at[0], at[9]), names[1]: (at[0], at[29])}
    assert second == {names[0]: (at[16], last), names[1]: (at[36], last)}
    # All leave, and come back at other times.
    first, second = frames_of(lambda n: not 10 <= n < 30, lambda n: not 12 <= n < 25)
    assert first == {names[0]: (at[0], at[9]), names[1]: (at[0], at[11])}
    assert set(second) == set(names)


def test_a_bot_named_twice_is_taken_once(clean: MatchRecording) -> None:
    [name, _] = clean.agents
    assert len(episodes_from_recording(clean, bots=[name, name])) == len(
        episodes_from_recording(clean, bots=name)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one._replace(obs=np.full_like(one.obs, np.nan)), "number that is not finite"),
        (
            lambda one: one._replace(actions=np.full_like(one.actions, 500)),
            r"expected actions of categorical",
        ),
        (lambda one: one._replace(seats=np.array([7], np.int32)), r"cars \[7\], which the match"),
    ],
)
def test_impossible_decisions_are_refused_with_bot_and_frame(
    change: Any, message: str, clean: MatchRecording
) -> None:
    changed = copy.deepcopy(clean)
    name, track = next(iter(changed.agents.items()))
    track.decisions = [change(one) if number == 5 else one for number, one in enumerate(track.decisions)]
    if "cars" in message:
        track.decisions = [change(one) for one in track.decisions]
    with pytest.raises(ValueError, match=message) as raised:
        episodes_from_recording(changed)
    assert name in str(raised.value) and "frame" in str(raised.value)


def test_a_reward_in_place_of_its_factory_is_refused(clean: MatchRecording) -> None:
    with pytest.raises(TypeError, match=r"reward is a GoalReward, expected what makes one"):
        episodes_from_recording(clean, GoalReward())


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
