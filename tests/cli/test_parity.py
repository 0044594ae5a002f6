"""`parity` finds what differs between the two worlds, and names it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import RocketSim as rsim
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.spec import ComponentSpec
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.sim import simulator, state_estimator
from rlgym_bridge.sim.simulator import ROCKETSIM2
from rlgym_bridge.state import MatchState
from rlgym_bridge.trials import parity
from tests.support.foreign_env import ENV
from tests.support.policy_folders import make_module, random_weights, save

RLGYM_OBS = "rlgym.rocket_league.obs_builders:DefaultObs"
RLGYM_PARSER = "rlgym.rocket_league.action_parsers:LookupTableAction"
HERE = "tests.cli.test_parity:"
FEW = ("--ticks", "600", "-q")


def names_of(tmp_path: Path, *words: str) -> list[str]:
    """Run the command; return the names that differ, the most frequent first."""
    file = tmp_path / "found.json"
    code = main(["parity", *FEW, *words, "--json", str(file)])
    found = json.loads(file.read_text())
    assert found["samples"] > 200
    assert code == (1 if found["mismatches"] else 0)
    return [one["name"] for one in found["mismatches"]]


@pytest.mark.parametrize("words", [
    (), ("--team-size", "3"), ("--obs", "rlgym_bridge:RelativeObs"),
    ("--obs", RLGYM_OBS, "--parser", RLGYM_PARSER), ("--parser", "rlgym_bridge:ContinuousAction"),
    ("--parser", "rlgym_bridge:MultiDiscreteAction"),
], ids=lambda words: " ".join(one.rpartition(":")[2] for one in words) or "default")  # fmt: skip
def test_a_clean_run_finds_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    assert names_of(tmp_path, *words) == []


class UnmirroredInTeams(DefaultObs):
    """Shows the last car of 2v2 what blue sees: wrong in one team size alone."""

    def build_batch(self, state: MatchState, seats: Any = None) -> np.ndarray:
        seen = super().build_batch(state, seats)
        if state.layout.cars > 3:
            seen[:, -1, :3] = state.ball_position * self.pos_coef
        return seen


def test_what_differs_in_one_team_size_alone_is_found_and_named(tmp_path: Path) -> None:
    obs, weights = ComponentSpec.of(UnmirroredInTeams, zero_padding=2), random_weights(132, 32, 90)
    save(tmp_path / "policy", team_sizes=[(1, 1), (2, 1), (2, 2)], obs=obs, weights=weights)
    policy = str(tmp_path / "policy")
    file = tmp_path / "found.json"
    words = ["parity", *FEW, "--policy", policy, "--allow-modules", "tests", "--json", str(file)]
    assert main([*words, "--team-size", "1"]) == 0
    assert main(words) == 1
    found = json.loads(file.read_text())
    assert found["matches"] == ["1v1", "2v1", "2v2"]
    assert {one["match"] for one in found["mismatches"]} == {"2v2"}


def test_an_environment_is_compared_in_its_own_matches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    threes = "\ndef threes(): return make(LookupTableAction(), 3)\n"
    make_module(tmp_path, monkeypatch, "my_env", ENV + threes)
    assert main(["parity", "--env", "my_env:threes", "--ticks", "200"]) == 0
    assert "controls: all equal in 3v3\n" in capsys.readouterr().out


def spoil(monkeypatch: pytest.MonkeyPatch, change: Callable[[MatchState], None]) -> None:
    """Have the decoder's states changed on their way to the builder."""
    update = Decoder.update

    def spoiled(self: Decoder, packet: flat.GamePacket) -> MatchState:
        state = update(self, packet).copy()
        change(state)
        return state

    monkeypatch.setattr(Decoder, "update", spoiled)


def test_boost_as_a_share_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def share(state: MatchState) -> None:
        state.car_boost_amount[:] /= 100

    spoil(monkeypatch, share)
    names = names_of(tmp_path, "--obs", HERE + "Unpadded")
    assert sorted(names) == ["enemy-0/boost_amount", "self/boost_amount"]
    (name,) = set(names_of(tmp_path, "--obs", HERE + "Foreign"))
    assert name == "number 0 (car_boost_amount)"


def test_swapped_pitch_and_yaw_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(row: Any) -> rsim.CarControls:
        throttle, steer, pitch, yaw, roll, jump, boost, handbrake = row
        return rsim.CarControls(
            throttle, steer, yaw, pitch, roll, jump=jump > 0, boost=boost > 0, handbrake=handbrake > 0
        )

    monkeypatch.setattr(parity, "control_of", swapped)
    assert set(names_of(tmp_path)) == {"control pitch", "control yaw"}


class Unpadded(DefaultObs):
    def __init__(self) -> None:
        super().__init__(zero_padding=None)


class Foreign(DefaultObs):
    """Written for RLGym: no batches, no names."""

    def build_obs(self, agents: Any, state: Any, shared_info: Any) -> dict[Any, np.ndarray]:
        return {agent: np.array([state.cars[agent].boost_amount / 100], np.float32) for agent in agents}


class Inverse(DefaultObs):
    """Shows times near 0 enlarged. RocketSim counts them in float32, tick by tick."""

    def build_obs(self, agents: Any, state: Any, shared_info: Any) -> dict[Any, np.ndarray]:
        jumps = {agent: state.cars[agent].jump_time for agent in agents}
        pads = np.sort(state.boost_pad_timers)  # the same for both teams
        return {agent: 1 / (1 + np.append(pads, jumps[agent])) for agent in agents}


def test_what_float32_rounds_in_counting_is_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--obs", HERE + "Inverse", "--ticks", "1000")
    monkeypatch.setattr(simulator, "DEFAULT_SIMULATOR", ROCKETSIM2)  # RocketSim 3 sums up no rounding
    monkeypatch.setattr(state_estimator, "DEFAULT_SIMULATOR", ROCKETSIM2)
    assert names_of(tmp_path, *words) == []
    monkeypatch.setattr(parity, "COUNTED_TOLERANCE", 0.0)
    assert "pad_timer" in str(names_of(tmp_path, *words))


class Unmirrored(Unpadded):
    """Shows orange what blue sees, without turning the field."""

    def build_batch(self, state: MatchState, seats: Any = None) -> np.ndarray:
        seen = super().build_batch(state, seats)
        seen[:, -1, :3] = state.ball_position * self.pos_coef
        return seen


def test_an_observation_of_orange_that_is_not_mirrored_is_named(tmp_path: Path) -> None:
    assert names_of(tmp_path, "--obs", HERE + "Unmirrored")[0].startswith("mirrored: ball/position")


class NotANumber(Unpadded):
    def build_batch(self, state: MatchState, seats: Any = None) -> np.ndarray:
        seen = super().build_batch(state, seats)
        seen[..., 3] = np.nan
        return seen


class Growing(Unpadded):
    asked = 0

    def build_batch(self, state: MatchState, seats: Any = None) -> np.ndarray:
        self.asked += 1
        seen = super().build_batch(state, seats)
        return seen if self.asked < 4 else np.concatenate([seen, seen[..., :1]], -1)


def test_a_tick_skip_that_is_off_by_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from rlgym_bridge.components.actions import LookupTableAction, RepeatAction\n"
    text += "class Nine(RepeatAction):\n def __init__(self): super().__init__(LookupTableAction(), 9)\n"
    make_module(tmp_path, monkeypatch, "nines", text)
    names = names_of(tmp_path, "--obs", HERE + "Unpadded", "--parser", "nines:Nine", "--tick-skip", "8")
    assert names == ["tick skip: the parser gives 9 rows, expected 8"]


@pytest.mark.parametrize(
    ("obs", "message"),
    [
        ("NotANumber", "gave nan as number 3 (ball/linear_velocity/x) for blue-0"),
        ("Growing", "Growing gave 92 numbers and then 93"),
    ],
)
def test_what_cannot_be_compared_is_refused(obs: str, message: str, refused) -> None:
    assert message in refused("parity", "--obs", HERE + obs)
