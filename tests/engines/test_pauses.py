"""A learner may pause: lockstep waits for it, and in real time what was missed is reported."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from rlbot import flat
from rlgym.api import RLGym, StateMutator
from rlgym.rocket_league.done_conditions import NoTouchTimeoutCondition as RLGymsTimeout
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.conditions import (
    AnyCondition,
    GapCondition,
    GoalCondition,
    NoTouchTimeoutCondition,
)
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import KickoffMutator
from rlgym_bridge.components.rewards import GoalReward, TouchReward, WeightedSum
from rlgym_bridge.controls import NEUTRAL
from rlgym_bridge.engines.live import LiveEngine, LiveEngineError
from rlgym_bridge.game import Phase
from rlgym_bridge.live import agent_connections
from rlgym_bridge.live.agent_connections import match_of
from tests.support.rlgym_worlds import STANDARD, BallIntoGoal, Env, serving
from tests.support.short_waits import shorten_answer_wait

BOOST = 18  # of the lookup table: straight on
IDLE = 8
TICKS = 8


@contextmanager
def playing(
    pace: str = "lockstep",
    match: Any = (1, 1),
    mutator: StateMutator[Any] | None = None,
    truncation: Any = None,
    server: dict[str, Any] | None = None,
    **settings: Any,
) -> Iterator[tuple[Env, LiveEngine]]:
    """Begin an episode of 1v1 over a match server."""
    with serving(pace=pace, **(server or {})) as address:
        engine = LiveEngine(match, address, dialect=STANDARD, patience=20.0, **settings)
        env: Env = RLGym(
            MutatorSequence(FixedTeamSizeMutator(1, 1), mutator or KickoffMutator(seed=0)),
            DefaultObs(zero_padding=None),
            RepeatAction(LookupTableAction(), TICKS),
            WeightedSum([(GoalReward(), 10.0), (TouchReward(), 1.0)]),
            engine,
            GoalCondition(),
            truncation,
        )
        try:
            env.reset()
            yield env, engine
        finally:
            engine.close()


def step(env: Env, action: int = BOOST) -> tuple[int, Any]:
    """Step all agents alike; return the ticks that it spanned, and what RLGym returned."""
    before = env.state.tick_count
    said = env.step({agent: np.array([action]) for agent in env.agents})
    return env.state.tick_count - before, said


def frame_of(data: bytes) -> int:
    """Return the frame number of a packet's bytes."""
    packet = flat.CorePacket.unpack(data).message
    assert isinstance(packet, flat.GamePacket)
    return packet.match_info.frame_num


def test_lockstep_waits_longer_for_a_learner_than_for_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_answer_wait(monkeypatch)
    with playing() as (env, engine):
        for pause in (0.0, 1.5, 0.0):  # three answers missed, 0.3 s each, is what a bot is given up for
            time.sleep(pause)
            assert [step(env)[0] for _ in range(3)] == [TICKS] * 3
        assert engine.lost_ticks == 0


def test_a_lockstep_match_stands_still_in_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_answer_wait(monkeypatch)
    match = match_of(1, 1)
    frames: list[int] = []
    with playing(match=match, server={"on_packet": lambda data: frames.append(frame_of(data))}) as (env, _):
        step(env)
        time.sleep(0.2)  # until the packet after the step is out
        sent = len(frames)
        time.sleep(1.2)
        assert len(frames) == sent


def test_in_real_time_a_step_after_a_pause_says_what_it_missed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with playing("realtime") as (env, engine):
        step(env, IDLE)
        for _ in range(6):  # on a busy machine an answer may come late, which loses its tick, too
            lost = engine.lost_ticks
            time.sleep(0.5)
            spanned, _ = step(env, BOOST)
            assert 50 <= spanned <= 50 + 120
            if engine.lost_ticks - lost == spanned - TICKS:
                break
        # Its own row drove the car, for all of its ticks but one, which the row before drives.
        assert engine.lost_ticks - lost == spanned - TICKS
        assert [car.is_boosting for car in env.state.cars.values()] == [True, True]
        after, _ = step(env, BOOST)
        assert after <= 2 * TICKS
    gaps = [one.getMessage() for one in caplog.records if "in place of 8" in one.getMessage()]
    assert any(gap.startswith(f"a step spanned {spanned} ticks in place of 8") for gap in gaps)


def test_in_real_time_a_step_after_a_pause_shows_the_present(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_connections, "_CHUNK", 1 << 15)
    frames: list[int] = []
    with playing("realtime", server={"on_packet": lambda data: frames.append(frame_of(data))}) as (env, _):
        step(env)
        time.sleep(1.5)  # 180 packets: more than are read at once
        step(env)
        assert frames[-1] - env.state.tick_count <= 60


def test_a_gap_ends_the_episode_where_that_is_asked_for() -> None:
    conditions = AnyCondition(NoTouchTimeoutCondition(60.0), GapCondition())
    with playing("realtime", truncation=conditions, truncate_on_gap=True) as (env, _):
        *_, truncated = step(env)[1]
        if not any(truncated.values()):  # the machine may be slow today
            time.sleep(0.5)
            _, (_, _, terminated, truncated) = step(env)
            assert not any(terminated.values())
        assert all(truncated.values())
        with pytest.raises(
            ValueError, match=r"spanned \d+ ticks in place of 8, expected `RLGym.reset` first"
        ):
            step(env)
        env.reset()
        assert env.truncation_cond is conditions
        assert not conditions.is_done(env.agents, env.state, env.shared_info)["blue-0"]


def test_a_gap_is_told_beside_conditions_of_others() -> None:
    conditions = AnyCondition(RLGymsTimeout(60.0), GapCondition())
    with playing("realtime", truncation=conditions, truncate_on_gap=True) as (env, _):
        time.sleep(0.5)
        assert all(step(env)[1][3].values())


def test_in_lockstep_no_episode_ends_with_a_pause() -> None:
    with playing(truncation=GapCondition(), truncate_on_gap=True) as (env, _):
        time.sleep(0.5)
        for _ in range(3):
            *_, truncated = step(env)[1]
            assert not any(truncated.values())


def test_a_goal_during_a_pause_ends_the_episode() -> None:
    with playing("realtime", mutator=BallIntoGoal()) as (env, _):
        time.sleep(1.0)
        _, (_, rewards, terminated, _) = step(env, IDLE)
        assert all(terminated.values())
        assert rewards["blue-0"] == 10.0 and rewards["orange-0"] == -10.0
        with pytest.raises(ValueError, match=r"ended with a goal, expected `RLGym.reset` first"):
            step(env)


def test_a_goal_of_lost_packets_ends_the_episode_by_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    with playing(mutator=BallIntoGoal()) as (env, engine):
        receive = engine._stream._packets

        def without_goal(seconds: float) -> list[flat.GamePacket]:
            for _ in range(2000):
                packets = [
                    one for one in receive(seconds)
                    if int(one.match_info.match_phase) == Phase.KICKOFF
                    or (one.teams[0].score == 0 and abs(one.balls[0].physics.location.y) < 5200)
                ]  # fmt: skip
                if packets:
                    return packets
                engine._stream.answer([NEUTRAL, NEUTRAL])  # lockstep waits for it
            return []

        monkeypatch.setattr(engine._stream, "_packets", without_goal)
        ended = False
        while not ended:
            _, (_, rewards, terminated, _) = step(env, IDLE)
            ended = all(terminated.values())
        assert rewards["blue-0"] == 10.0 and rewards["orange-0"] == -10.0


def test_an_unlimited_match_goes_on_without_touches() -> None:
    with playing(server={"max_kickoff": 2.0}) as (env, _):
        for _ in range(60):  # 4 s
            assert step(env, IDLE)[0] == TICKS


def test_a_ball_that_is_set_begins_a_kickoff() -> None:
    match = match_of(1, 1)
    match.mutators = flat.MutatorSettings(match_length=flat.MatchLengthMutator.FiveMinutes)
    with playing(match=match, server={"max_kickoff": 2.0}) as (env, _):
        for _ in range(3):  # 1.6 s each
            env.reset()
            for _ in range(24):
                step(env, IDLE)
        with pytest.raises(LiveEngineError, match=r"has ended with its time: start one without a limit"):
            for _ in range(24):
                step(env, IDLE)
