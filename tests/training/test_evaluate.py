"""Matches between policies and their evaluation."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from rlgym.rocket_league.action_parsers import LookupTableAction as PeerLookup
from rlgym.rocket_league.action_parsers import RepeatAction as PeerRepeat
from rlgym.rocket_league.obs_builders import DefaultObs as PeerObs

from rlgym_bridge.cli import main, run_command
from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.training.average import average
from rlgym_bridge.training.evaluate import Evaluation, evaluate, play_matches
from tests.support.policy_folders import OBS_1V1, edit, make_module, random_weights, save, spec

OURS = (LookupTableAction, RepeatAction)


def of_leads(leads: list[int]) -> Evaluation:
    goals = np.array([(max(lead, 0), max(-lead, 0)) for lead in leads])
    return Evaluation(goals, np.ones_like(goals), np.ones(len(leads)))


def folder(path: Path, seed: int = 0, repeats: int = 8, obs: Any = DefaultObs, parser: Any = OURS) -> str:
    table, repeat = parser
    save(
        path, weights=random_weights(OBS_1V1, 16, 90, seed=seed), obs=spec(obs, zero_padding=None),
        parser=spec(repeat, spec(table), repeats=repeats), tick_skip=repeats,
    )  # fmt: skip
    return str(path)


def test_a_number_that_goes_wrong_later_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
from rlgym_bridge import DefaultObs
class Late(DefaultObs):
    def build_batch(self, state, cars=None):
        obs = super().build_batch(state, cars)
        obs[1:, :, 3] = float("nan")  # the first match, as all of one match, is in order
        return obs
"""
    make_module(tmp_path, monkeypatch, "late_nan", text)
    network = Path(folder(tmp_path / "network"))
    edit(network, obs={"class": "late_nan:Late", "args": {"zero_padding": None}})
    with pytest.raises(ValueError, match=r"Late gave nan as number 3 \(.*\) for blue-0 .*late_nan.py, line"):
        play_matches(str(network), "chaser", 2, seconds=5, seed=0, allow_modules=["late_nan"])


def test_chaser_beats_an_untrained_network_from_both_sides(tmp_path: Path) -> None:
    network = folder(tmp_path / "network")
    blue = play_matches("chaser", network, 2, seconds=40, seed=1)
    orange = play_matches(network, "chaser", 2, seconds=40, seed=1)
    assert (blue.goals[:, 0] > blue.goals[:, 1]).all() and (orange.goals[:, 1] > orange.goals[:, 0]).all()
    assert blue.touches[:, 0].sum() > 4 * blue.touches[:, 1].sum()


def test_equal_seeds_alone_give_equal_matches(tmp_path: Path) -> None:
    once, again, other = (play_matches("chaser", "chaser", 3, seconds=20, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once.touches, again.touches)
    assert once.touches.tolist() != other.touches.tolist()
    assert len({tuple(row) for row in once.touches.tolist()}) > 1


def test_third_party_components_play_the_same_matches(tmp_path: Path) -> None:
    ours = folder(tmp_path / "ours")
    theirs = folder(tmp_path / "theirs", obs=PeerObs, parser=(PeerLookup, PeerRepeat))
    one, other = (
        play_matches(path, "chaser", 2, seconds=15, seed=3, selection="argmax") for path in (ours, theirs)
    )
    np.testing.assert_array_equal(one.goals, other.goals)
    np.testing.assert_array_equal(one.touches, other.touches)


def test_the_win_rate_counts_draws_half() -> None:
    found = of_leads([1] * 7 + [0] * 2 + [-1])
    assert found.results == (7, 2, 1)
    assert found.win_rate == 0.8
    assert found.interval == pytest.approx((0.4902, 0.9433), abs=1e-3)
    assert of_leads([2] * 10).interval == pytest.approx((0.7225, 1.0), abs=1e-3)


def test_evaluate_plays_half_of_the_matches_from_each_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = folder(tmp_path / "network")
    found = evaluate(network, "chaser", 4, seconds=30)
    monkeypatch.setattr("rlgym_bridge.training.evaluate.open_pool", ThreadPoolExecutor)
    back = evaluate("chaser", network, 4, seconds=30)
    assert found.results == back.results[::-1] or found.results[2] == 4
    assert found.matches == 4
    assert found.touches_per_minute[0] < found.touches_per_minute[1]
    assert found.minutes.sum() == pytest.approx(2.0, rel=0.01)


@pytest.mark.slow
def test_each_side_may_have_a_delay_of_its_own() -> None:
    def leads(*delays: int) -> int:
        return int(evaluate("chaser", "chaser", 8, seconds=60, action_delay=delays).leads.sum())

    assert leads(40, 1) < 0 < leads(1, 40), "who acts a third of a second late loses"


def test_the_commands_write_json_and_name_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgym_bridge.training.evaluate.open_pool", ThreadPoolExecutor)  # begins at once
    network = folder(tmp_path / "run" / "checkpoints" / "100")
    folder(tmp_path / "run" / "checkpoints" / "200", seed=1)
    (tmp_path / "run" / "checkpoints" / "latest").write_text("200\n")
    result = tmp_path / "result.json"
    short = ["--matches", "2", "--seconds", "1", "--processes", "1"]
    assert run_command("evaluate", [network, "chaser", *short, "--json", str(result)]) == 0
    data = json.loads(result.read_text())
    assert {"matches", "win_rate", "interval", "goals"} <= set(data) and data["matches"] == 2
    assert data["action_delay"] == [1, 1]
    for newest in ("run", "run/checkpoints/latest"):
        capsys.readouterr()
        assert run_command("evaluate", [str(tmp_path / newest), "chaser", *short]) == 0
        assert str(Path("run", "checkpoints", "200")) in capsys.readouterr().out
    slow = folder(tmp_path / "slow", repeats=4)
    for arguments, message in (
        ([str(tmp_path / "none"), "chaser"], "none"),
        ([network, "chaser", "--matches", "1"], "matches is 1, expected an even number"),
        ([network, "chaser", "--matches", "9000000000"], "matches is 9000000000, expected 1,000,000 at most"),
        ([slow, "chaser", "--matches", "2"], "decides every 4 ticks"),
        ([network, "chaser", "--action-delay=-1"], "action_delay is [-1, -1], expected 0 to 1200 ticks"),
    ):
        assert message in refused("evaluate", *arguments)


def run_of(tmp_path: Path, *steps: int) -> Path:
    for number in steps:
        weights = random_weights(OBS_1V1, 32, 90, seed=number)
        save(tmp_path / "run" / "checkpoints" / str(number), weights=weights, training={"steps": number})
    return tmp_path / "run"


def weights_of(folder: Path) -> dict[str, np.ndarray]:
    return safetensors.numpy.load((folder / "weights.safetensors").read_bytes())


def test_the_newest_checkpoints_give_their_mean(tmp_path: Path) -> None:
    run, out = run_of(tmp_path, 5, 30, 200), tmp_path / "mean"
    words = [str(run), "--newest", "2", "--out", str(out), "--selection", "argmax"]
    assert run_command("average", words) == 0
    loaded = load_policy(out).manifest
    assert (loaded.selection, loaded.training) == ("argmax", {"steps": 200, "average_of": ["30", "200"]})
    for name, tensor in weights_of(out).items():
        pair = [weights_of(run / "checkpoints" / steps)[name] for steps in ("30", "200")]
        assert tensor.dtype == np.float32
        np.testing.assert_allclose(tensor, (pair[0] + pair[1]) / 2, atol=1e-7)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"distribution": "gaussian"}, r"a/policy.json has parser .*LookupTable.*expected policies of one"),
        ({"weights": random_weights(OBS_1V1, 16, 90)}, r"b has layers .*\(16, 92\).*expected equal ones"),
    ],
)
def test_policies_that_differ_are_refused_by_name(
    other: dict[str, Any], message: str, tmp_path: Path
) -> None:
    save(tmp_path / "a")
    save(tmp_path / "b", **other)
    with pytest.raises(ValueError, match=message):
        average([tmp_path / "a", tmp_path / "b"], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


@pytest.mark.parametrize(
    ("newest", "out", "message"),
    [
        ("1", "mean", "expected two or more"),
        ("-3", "mean", "expected two or more"),
        ("2", "run/checkpoints/30", "expected another folder"),
    ],
)
def test_what_cannot_be_averaged_is_refused(
    newest: str, out: str, message: str, tmp_path: Path, refused
) -> None:
    run = run_of(tmp_path, 5, 30)
    assert message in refused("average", run, "--newest", newest, "--out", tmp_path / out)


@pytest.mark.slow
def test_a_car_touches_the_ball_as_often_in_both_worlds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # bots log there
    training = evaluate("chaser", "chaser", 8, seconds=30.0, team_size=1)
    touches, minutes = 0, 0.0
    for seed in range(8):
        words = (
            f"match --blue chaser --orange chaser --pace lockstep --max-overtime 0 --seconds 30 --seed {seed}"
        )
        assert main([*words.split(), "-q", "--json", "found.json"]) == 0
        found = json.loads(Path("found.json").read_text())
        touches += sum(bot["touches"] for bot in found["bots"])
        minutes += found["playing_ticks"] / TICKS_PER_SECOND / 60
    assert training.touches.sum() > 40
    assert 0.6 < touches / minutes / (training.touches.sum() / training.minutes.sum()) < 1.7
