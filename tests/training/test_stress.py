"""Stress tests: which matches are played for which cause, and what is made of their results."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.policy.files import read_files
from rlgym_bridge.protocol_variant import POINTS
from rlgym_bridge.server import Impairments
from rlgym_bridge.training.contests.kept_matches import FILE, MatchKey, ServedResult
from rlgym_bridge.training.contests.served_match import read_entrants
from rlgym_bridge.training.contests.stress import (
    GROUPS,
    SIMULATOR,
    StressPlan,
    describe_losses,
    estimate_win_rate,
    list_causes,
    losses_of,
    plan_trials,
    served_matches,
    simulated_jobs,
)
from tests.support.policy_folders import network_folder, save
from tests.support.simulators import needs_native


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def result(blue: int, orange: int, ticks: int = 3600) -> ServedResult:
    return ServedResult((blue, orange), (9, 9), ticks)


def plan_of(
    folder: Path, groups: list[str], against: str = "", matches: int = 4, **policy: Any
) -> StressPlan:
    save(folder / "mine", **policy)
    (tested,) = read_entrants([str(folder / "mine")], 1)
    (chaser,) = read_entrants(["chaser"], 1)
    manifest, _ = read_files(folder / "mine")
    causes = list_causes(manifest, manifest.selection, groups)
    trials = plan_trials(causes, tested, chaser if against else tested, chaser, (matches, matches))
    return StressPlan(
        tested=tested, manifest=manifest, trials=trials, team_size=1, seconds=60.0, seed=0, allow_modules=(),
        out=folder / "stress",
    )  # fmt: skip


def results_of(
    plan: StressPlan, result_of: Callable[[str, int], ServedResult]
) -> dict[MatchKey, ServedResult]:
    """Return a result for each match, from its cause and number."""
    return {key: result_of(trial.cause.name, key[2]) for trial in plan.trials for key in trial.keys}


@needs_native  # the cause "physics" takes the other simulator
def test_every_dialect_point_and_impairment_has_a_cause(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, list(GROUPS))
    points = {name for trial in plan.trials for name in trial.cause.dialect}
    assert points == set(POINTS)
    changed = {
        name for trial in plan.trials for name in vars(Impairments())
        if getattr(trial.cause.impairments, name) != getattr(Impairments(), name)
    }  # fmt: skip
    assert changed == {"latency", "drop", "burst", "fps", "latency_spread"}
    places = {trial.cause.group: trial.place for trial in plan.trials if trial.cause.group}
    assert [name for name, place in places.items() if place == SIMULATOR] == [
        "latency", "selection", "hitbox", "physics"
    ]  # fmt: skip
    assert {trial.cause.group for trial in plan.trials if trial.opponent.name == "Chaser"} == {"", "physics"}
    keys = [key for trial in plan.trials for key in trial.keys]
    assert len(keys) == len(set(keys))


def test_only_the_tested_bot_suffers_from_either_side(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["loss", "dialect", "latency", "hitbox"])
    for (cause, _, number), match in served_matches(plan):
        assert match.impairments.team == number % 2
        ours, theirs = match.bots[number % 2], match.bots[1 - number % 2]
        told, untold = (Path(one.environment["RLGYM_BRIDGE_DIALECT"]).read_text() for one in (theirs, ours))
        assert ("=" in cause) == ("pad_timer" in told or any(point in told for point in POINTS))
        assert not any(point in untold for point in POINTS)
    for job in simulated_jobs(plan):
        (cause, _, number), place = job.keys[0], job.keys[0][2] % 2
        delays = job.arguments["action_delay"]
        assert delays[1 - place] == 1 and delays[place] == 1 + (int(cause[11]) if "latency" in cause else 0)
        assert job.arguments["hitboxes"][place] == (cause[7:] if "hitbox" in cause else None)


def test_a_bot_trained_for_a_latency_sends_that_much_earlier(tmp_path: Path) -> None:
    jobs = simulated_jobs(plan_of(tmp_path, ["latency"], action_delay=3, input_latency=2))
    delays = {job.keys[0][0]: job.arguments["action_delay"][0] for job in jobs if job.keys[0][2] % 2 == 0}
    later = {"latency of 1 tick": 2, "latency of 3 ticks": 4, "latency of 4 ticks": 5}
    assert delays == {"nothing": 3, "no latency": 1} | later


def test_a_cause_costs_what_is_missing_from_one_half(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["hitbox"], matches=40)

    def result_of(cause: str, number: int) -> ServedResult:
        wins = number % 20 < (2 if cause == "hitbox plank" else 10)
        by_blue = wins == (number % 2 == 0)
        return result(by_blue, not by_blue, ticks=7200 + number + 100 * len(cause))

    losses = losses_of(plan, results_of(plan, result_of))
    assert losses[0].trial.cause.name == "hitbox plank" and losses[0].lost.is_distinct
    assert losses[0].lost.value == pytest.approx(0.4) and losses[0].goals_lost.value == pytest.approx(0.8)
    assert not any(loss.lost.is_distinct for loss in losses[1:])
    lines = describe_losses(plan, losses)
    assert sum(line.endswith("within noise") for line in lines) == 4
    assert any("within noise: 4 of 5 causes" in line for line in lines)
    assert lines[2].startswith("nothing ") and lines[3].startswith("hitbox plank")


def test_a_bot_that_never_scores_is_called_too_weak(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["hitbox"])
    results = results_of(plan, lambda cause, number: result(0, 0, 7200 + 9 * number + len(cause)))
    said = "\n".join(describe_losses(plan, losses_of(plan, results)))
    assert "were drawn: the bots score too seldom" in said
    results |= {key: result(1, 0, 7200 + key[2]) for key in plan.trials[0].keys}
    said = "\n".join(describe_losses(plan, losses_of(plan, results)))
    assert re.search("reach up to .* points to either side", said)


def test_against_another_one_the_control_is_what_it_wins(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["latency"], against="chaser", matches=20)

    def result_of(cause: str, number: int) -> ServedResult:
        wins_as_blue = (number % 2 == 0) != (cause == "latency of 4 ticks")
        return result(wins_as_blue, not wins_as_blue, 7200 + number)

    results = results_of(plan, result_of)
    lost = {loss.trial.cause.name: loss.lost.value for loss in losses_of(plan, results)}
    assert lost["nothing"] == 0 and lost["latency of 1 tick"] == 0 and lost["latency of 4 ticks"] == 1


def test_what_changes_no_match_has_no_effect(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, ["dialect"], matches=8)
    results = results_of(
        plan, lambda cause, number: result(number % 3, 1, 3600 + number + (cause == "clock=whole"))
    )
    losses = {loss.trial.cause.name: loss for loss in losses_of(plan, results)}
    assert losses["clock=whole"].verdict == "within noise" and losses["clock=whole"].unchanged == 0
    assert losses["pad_timer=remaining"].verdict == "no effect"
    assert losses["pad_timer=remaining"].lost.interval == (0, 0)


def test_repeated_matches_do_not_narrow_an_interval() -> None:
    leads = np.array([1, -1] * 20)
    assert estimate_win_rate(leads, 40).reach == pytest.approx(0.155, abs=2e-3)
    assert estimate_win_rate(leads, 10).reach == pytest.approx(2 * estimate_win_rate(leads, 40).reach)
    assert 0 < estimate_win_rate(np.ones(40), 40).reach < 0.1


@pytest.mark.slow
def test_a_stress_test_plays_every_cause_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    network_folder(Path("net"), 1)
    words = ["stress", "net", "--seconds", "2", "--matches", "2", "--server-matches", "2", "--json", "a.json"]
    causes = ["latency", "loss", "selection", "physics"]
    assert main([*words, "--causes", *causes]) == 0
    said = capsys.readouterr().out
    assert "within noise" in said and "no effect" in said
    result = json.loads(Path("a.json").read_text())
    groups = {one["group"] for one in result["causes"]}
    assert groups == {"", *causes}
    lost = [one["win_rate_lost"] for one in result["causes"]]
    assert lost == sorted(lost, reverse=True)
    assert Path("stress/stress.png").read_bytes().startswith(b"\x89PNG")
    kept = Path("stress", FILE).read_text()
    assert main([*words, "--causes", *causes]) == 0
    assert Path("stress", FILE).read_text() == kept
    assert json.loads(Path("a.json").read_text()) == result
