"""A bot process over TCP plays tick for tick what the same policy plays in RLGym's own loop."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.game import Phase
from rlgym_bridge.policy.chaser import Chaser
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.state import MatchState
from tests.support.call_log import CallLog, logged_components
from tests.support.policy_folders import network_folder
from tests.support.reference_loop import Watcher, play, rlgym_env, rlgym_loop

ROOT = Path(__file__).parents[2]


def bot(policy: str, log: Path, *more: str) -> str:
    words = ["python", "-m", "tests.support.recording_bot", policy, str(log), *more]
    return f'cd "{ROOT}" && ' + " ".join(f'"{word}"' for word in words)


def rotation_elements(team_size: int) -> np.ndarray:
    names = DefaultObs(zero_padding=None).names(team_size, team_size, 0)
    return np.array(["/forward/" in name or "/up/" in name for name in names])


class Standing:
    """Takes the one of the 90 actions that presses nothing."""

    def __init__(self) -> None:
        (self.neutral,) = np.flatnonzero((LookupTableAction.make_lookup_table() == 0).all(1))

    def reset(self, seats: Sequence[int], seed: int | None = None) -> None:
        self.seats = len(seats)

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        return np.full((state.matches, self.seats), self.neutral)


def compare(
    watcher: Watcher, logs: list[Path], make_policies: Callable[[], list], team_size: int
) -> tuple[int, int]:
    """Hold every kickoff of the match against RLGym's loop; return the ticks compared, and the bumps."""
    seen = [np.load(log.with_suffix(".npz")) for log in logs]
    turned = rotation_elements(team_size)
    compared = bumped = 0
    policies, env = make_policies(), rlgym_env()
    for number, kickoff in enumerate(watcher.kickoffs):
        ticks = len(kickoff.rows)
        if ticks == 0:
            continue
        rows, observations, bumps = rlgym_loop(env, kickoff.start, policies, ticks, seed=number)
        ticks = min(ticks, len(rows))
        for tick in range(ticks):
            np.testing.assert_array_equal(
                kickoff.rows[tick], rows[tick], err_msg=f"kickoff {number}, tick {tick}"
            )
        for row, log in enumerate(seen):
            agent = f"{('blue', 'orange')[row // team_size]}-{row % team_size}"
            for step, theirs in enumerate(observations):
                at = np.flatnonzero(log["frames"] == kickoff.frame + 8 * step)
                if 8 * step >= ticks or not len(at):
                    continue
                difference = np.abs(log["obs"][at[0], 0] - theirs[agent])
                assert difference[~turned].max() < 1e-5, (number, step, agent)
                assert difference[turned].max() < 3e-4, (number, step, agent)
        compared += ticks
        bumped += bumps
    return compared, bumped


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "team_size", "ticks", "touches", "kickoffs"),
    [
        ("chaser", 1, 3600, 20, 3), ("chaser", 2, 3600, 20, 3),
        ("network", 1, 3600, 0, 1), ("network", 2, 3600, 0, 1),
    ],
)  # fmt: skip
def test_a_policy_plays_the_same_control_row_on_every_tick(
    kind: str, team_size: int, ticks: int, touches: int, kickoffs: int, tmp_path: Path
) -> None:
    policy = "chaser" if kind == "chaser" else str(network_folder(tmp_path / "policy", team_size))
    logs = [tmp_path / f"bot{i}" for i in range(2 * team_size)]
    players = [(i // team_size, bot(policy, log)) for i, log in enumerate(logs)]

    def make_policies() -> list[Any]:
        return [Chaser() if kind == "chaser" else load_policy(policy).policy for _ in logs]

    def enough(watcher: Watcher) -> bool:
        begun = sum(len(kickoff.rows) > 0 for kickoff in watcher.kickoffs)
        return watcher.ticks >= ticks and watcher.touches >= touches and begun >= kickoffs

    watcher = play(players, seed=1, enough=enough)
    compared, bumps = compare(watcher, logs, make_policies, team_size)
    assert compared >= ticks and watcher.touches >= touches
    assert bumps or (kind, team_size) != ("chaser", 2), "in 2v2 a bump is part of the comparison"
    assert sum(len(kickoff.rows) > 0 for kickoff in watcher.kickoffs) >= kickoffs


@pytest.mark.parametrize("goals", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_components_get_the_calls_that_rlgym_makes_over_goals(goals: int, tmp_path: Path) -> None:
    standing = f'cd "{ROOT}" && python -m tests.support.simple_bots stand'
    players = [(0, bot("chaser", tmp_path / "blue", "calls")), (1, standing)]

    def clean(watcher: Watcher) -> list[int]:
        """Episodes that end with a goal and have no demolition: RLGym's respawns are random."""
        return [
            number
            for number, kickoff in enumerate(watcher.kickoffs)
            if kickoff.phases and kickoff.phases[-1] == Phase.GOAL_SCORED and not kickoff.demolished
        ]

    def enough(watcher: Watcher) -> bool:  # the bots must have seen the last goal too
        return watcher.phase == Phase.COUNTDOWN and len(clean(watcher)) >= goals

    watcher = play(players, seed=4, enough=enough)
    log = json.loads((tmp_path / "blue.json").read_text())
    reference = CallLog()
    env = rlgym_env(logged_components(reference))
    policies = [Chaser(), Standing()]
    for number, kickoff in enumerate(watcher.kickoffs):
        if kickoff.rows:
            rlgym_loop(env, kickoff.start, policies, len(kickoff.rows) + 8, seed=number)
    ours, theirs = episodes(log), episodes(json.loads(json.dumps(reference.entries)))
    assert ours[0] == theirs[0] == [["SharedInfoProvider.create", None, None]], "RLGym's own constructor"
    for number in clean(watcher):
        assert_same_calls(ours[1 + number], theirs[1 + number])


def episodes(log: list[list[Any]]) -> list[list[list[Any]]]:
    """Split a log where each reset begins."""
    starts = [index for index, entry in enumerate(log) if entry[0] == "SharedInfoProvider.create"]
    return [log[start:end] for start, end in zip(starts, [*starts[1:], len(log)], strict=True)]


def assert_same_calls(ours: list[list[Any]], theirs: list[list[Any]]) -> None:
    assert [entry[0] for entry in ours] == [entry[0] for entry in theirs]
    for our, their in zip(ours, theirs, strict=True):
        if our[1] == their[1]:
            assert our[2] == pytest.approx(their[2], abs=2e-3), (our, their)
        else:  # the step with the goal: RLGym plays it to its end, the match stops on the goal's tick
            assert 0 < their[1] - our[1] < 8, (our, their)
            if our[0].endswith("is_done"):
                assert our[2] == their[2], (our, their)
    done = [entry for entry in ours if entry[0] == "DoneCondition.is_done" and entry[2] == [1.0]]
    goals = [entry for entry in ours if entry[0] == "RewardFunction.get_rewards" and abs(entry[2][0]) >= 9]
    assert len(done) == len(goals) == 1, "the goal ends the episode once and is rewarded once"
