"""Arguments and settings of a wrong kind are named, with what was expected, before any work is done."""

import importlib.metadata
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge import (
    Clock,
    DefaultObs,
    LookupTableAction,
    MatchServer,
    MatchState,
    RepeatAction,
    TeamObs,
)
from rlgym_bridge.clock import Timing
from rlgym_bridge.components.conditions import NoTouchTimeoutCondition, TimeoutCondition
from rlgym_bridge.components.mutators import KickoffMutator, RandomStateMutator, WeightedMutator
from rlgym_bridge.components.reward_base import WeightedSum
from rlgym_bridge.components.rewards import SaveReward
from rlgym_bridge.components.spec import ComponentSpec
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.recording.mutator import RecordedStateMutator
from rlgym_bridge.server.match_file import read_match_file
from rlgym_bridge.training.settings import SettingsError, check_settings
from rlgym_bridge.user_input import extras
from tests.support.policy_folders import edit, save, spec


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RecordedStateMutator(5), r"files is 5, expected a list of recordings"),
        (lambda: RecordedStateMutator([5]), r"files is \[5\], expected names of recordings"),
        (lambda: RecordedStateMutator(["a"], every=0.5), r"every is 0.5, expected a whole number of ticks"),
        (lambda: RandomStateMutator("a"), r"ground_share is 'a', expected 0 to 1"),
        (lambda: RandomStateMutator(car_speed=[1]), r"car_speed is \[1\], expected 0 to 2300 uu/s"),
        (lambda: KickoffMutator("a"), r"seed is 'a', expected a whole number, 0 or more"),
        (lambda: WeightedMutator(5), r"mutators is 5, expected a list of pairs of an RLGym mutator"),
        (lambda: WeightedSum(5), r"rewards is 5, expected a list of pairs of an RLGym reward"),
        (lambda: WeightedSum([(SaveReward(), 1)], "a"), r"team_spirit is 'a', expected 0 to 1 .0: each"),
        (lambda: SaveReward(None), r"seconds is None, expected seconds, 1e-09 or more"),
        (lambda: TimeoutCondition("9"), r"timeout_seconds is '9', expected seconds, 0 or more"),
        (lambda: NoTouchTimeoutCondition([]), r"timeout_seconds is \[\], expected seconds, 0 or more"),
        (lambda: DefaultObs("a"), r"zero_padding is 'a', expected a whole number of cars, or None, 1 to 64"),
        (lambda: TeamObs(10**6), r"zero_padding is 1000000, expected a whole number of cars.* 1 to 64"),
        (lambda: DefaultObs(pos_coef="a"), r"pos_coef is 'a', expected -1e.30 to 1e.30"),
        (lambda: RepeatAction(LookupTableAction(), 10**9), r"repeats is 1000000000, expected .*1 to 7200"),
        (lambda: MatchServer(seconds="a"), r"seconds is 'a', expected seconds, 0 or more"),
        (lambda: MatchServer(seconds=1e308), r"expected 86400 \(a day\) at most"),
        (lambda: MatchServer(seconds=-1.0), r"expected seconds, 0 or more"),
        (lambda: MatchServer(seed="a" * 9999), r"seed is 'a{199}\.\.\., expected a whole number, 0 or more"),
        (lambda: MatchServer(host=3), r"host is 3, expected an address or a name, such as '127.0.0.1'"),
        (lambda: MatchServer(port=65536), r"port is 65536, expected a whole number, 0 to 65535"),
        (lambda: Clock(cars="2"), r"cars is '2', expected a whole number, 1 or more"),
        (lambda: Clock(Timing(0.5)), r"action_delay is 0.5, expected a whole number of ticks, 0 or more"),
        (lambda: MatchState("1", 1), r"team sizes are '1' and 1, expected 0 to 4 each"),
        (lambda: MatchState(1, 1, 0.5), r"matches is 0.5, expected a whole number, 0 or more"),
        (lambda: MatchState(1, 1, 1, [0.0]), r"buffer is \[0.0\], expected contiguous float32\(1, \d+\)"),
    ],
)  # fmt: skip
def test_an_argument_of_a_wrong_kind_is_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"obs_noise": {"a\nb\x1b[2J": 1}}, r"a\\nb\\x1b\[2J in \[obs_noise\] is unknown"),
        ({"obs_noise": {"ball_position": "x" * 9999}}, r"ball_position in \[obs_noise\] is 'x{199}\.\.\."),
        ({"physics": {"y" * 9999: 1}}, r"^y{200}\.\.\. in \[physics\] is no constant"),
        ({"team_sizes": list(range(9999))}, r"^team_sizes is \[0, 1, .{190,195}\.\.\., expected two whole"),
        ({"policy_layers": [10**12]}, r"policy_layers is \[1_000_000_000_000\], expected .* 1 to 65536"),
        ({"critic_layers": [8] * 33}, r"critic_layers is .*, 32 of them at most"),
        ({"policy_layers": [65_536] * 2}, r"policy_layers is \[65536, 65536\], with 4,294,967,296 weights"),
    ],
)  # fmt: skip
def test_a_setting_is_refused_on_one_short_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        check_settings(settings)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


RLGYM = "rlgym.rocket_league.obs_builders"


def padded(module: str, cars: float) -> dict[str, Any]:
    return {"obs": {"class": f"{module}:DefaultObs", "args": {"zero_padding": cars}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (padded("rlgym_bridge", 10**6), r"DefaultObs has zero_padding = 1,000,000, expected 10,000 at most"),
        (padded(RLGYM, 9000), r"the observation was 92 numbers \(obs_size\) and is 360052 here"),
        (padded(RLGYM, 1e6), r"the observation was 92 numbers \(obs_size\) and is 40000052.0 here"),
        (
            {"obs_size": 90_000, "obs_names": None, "team_sizes": [[4, 4]] * 24},
            r"obs_size is 90,000 and team_sizes have 192 cars in all, expected 1,000,000 numbers at most",
        ),
        ({"team_sizes": [[1, 1]] * 200_000}, r"team_sizes is .*expected a list of up to 24 pairs"),
        ({"obs_size": 10**9}, r"obs_size is 1000000000, expected a whole number from 1 to 100000"),
    ],
)
def test_a_policy_folder_cannot_ask_for_vast_work(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    save(tmp_path)
    edit(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        load_policy(tmp_path)


def test_components_of_users_own_may_have_any_argument() -> None:
    made = spec(DefaultObs, zero_padding=2)
    assert ComponentSpec(made.path, {"zero_padding": 3}).args == {"zero_padding": 3}


def test_an_unknown_key_without_a_line_names_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "m.toml").write_text("[match]\n'game_mod\\u0065' = 1\n\"a\\nb\" = 2\n")
    with caplog.at_level(logging.WARNING):
        read_match_file(tmp_path / "m.toml", cars_follow=True)
    assert "None" not in caplog.text and "a\\nb is unknown" in caplog.text
    assert f"{tmp_path / 'm.toml'}: [match] a" in caplog.text


def test_a_missing_extra_names_packages_outside_of_a_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkout = 'pip install -c constraints.txt -e ".[replay]" (in the folder '
    assert extras.explain_install("replay").startswith(checkout)
    assert extras.explain_install().startswith("pip install -c constraints.txt -e . (in the folder ")
    monkeypatch.setattr(extras, "_ROOT", tmp_path)
    lines = ["numpy>=1", 'subtr-actor-py>=1.5.1; extra == "replay"', "torch; extra == 'train'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: lines)
    assert extras.explain_install("replay") == 'pip install "subtr-actor-py>=1.5.1"'
    assert extras.explain_install() == 'pip install "numpy>=1"'

    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", missing)
    assert extras.explain_install("replay") == "install the extra replay of its project"
