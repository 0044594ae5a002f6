"""The settings of the shipped bot: every phase is accepted, goes on from the one before, and begins."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge import training
from rlgym_bridge.components.initial_states import parse_initial_states
from rlgym_bridge.policy.files import all_checkpoints
from rlgym_bridge.training.components import reward
from rlgym_bridge.training.selfplay.matches import MixedMatches
from rlgym_bridge.training.settings import TrainingSettings, load_settings
from tests.support.simulators import needs_native
from tools import train_further

FIRST = Path(training.__file__).with_name("shipped.toml")
LATER = sorted(FIRST.with_suffix("").glob("[0-9]*.toml"), key=lambda path: int(path.name.partition("-")[0]))
FIXED = ("policy_layers", "critic_layers", "activation", "layer_norm", "normalise_obs",
         "snapshots", "tick_skip", "components", "out")  # fmt: skip
"""Settings that a resumed run cannot change, or should not."""
ASIDE = ("19-smallest-steps", "21-last-steps", "22-charger", "25-kickoffs-to-ship")
"""Phases that made a bot to ship: training went on from before them."""


def phases() -> list[TrainingSettings]:
    return [load_settings(FIRST), *(load_settings(FIRST, later) for later in LATER)]


def test_each_phase_can_go_on_from_the_one_before() -> None:
    every = phases()
    ends = [phase.steps for phase in every]
    path = [end for end, file in zip(ends, [FIRST, *LATER], strict=True) if file.stem not in ASIDE]
    assert path == sorted(set(path))
    assert all(end > ends[number - 1] for number, end in enumerate(ends) if end not in path)
    for phase in every[1:]:
        assert [tuple(size)[:2] for size in phase.team_sizes] == [(1, 1), (2, 2), (3, 3)]
        assert [getattr(phase, name) for name in FIXED] == [getattr(every[0], name) for name in FIXED]


@pytest.mark.parametrize("number", range(1 + len(LATER)))
def test_matches_of_a_phase_begin_and_step(number: int) -> None:
    phase = phases()[number].for_machine(2, gpu=False)
    counts = [one.matches for one in phase.by_size()]
    assert min(counts) > 0 and sum(counts) == phase.matches
    sizes = tuple((blue, orange, 1 / 3) for blue, orange, _ in phase.team_sizes)
    few = replace(phase, matches=6, team_sizes=sizes, opponents={"chaser": 0.15})  # there is no run to meet
    reward(few)
    matches = MixedMatches(few, 222)
    obs = matches.reset(number)
    cars = 2 * (2 + 4 + 6)  # two matches of each size
    assert obs.shape == (cars, 222)
    step = matches.step(np.zeros(cars, int))
    assert np.isfinite(step.obs).all() and np.isfinite(step.rewards).all()


def test_the_exploiter_meets_the_shipped_bot() -> None:
    begun = train_further.phases()[:2]
    exploiter, last = load_settings(*begun, LATER[-1].with_name("exploiter.toml")), load_settings(*begun)
    assert list(exploiter.opponents) == ["bot/policy"] and exploiter.opponents["bot/policy"] > 0.5
    assert not exploiter.teacher
    assert exploiter.out != last.out and exploiter.start_from == "bot/policy"
    same = [name for name in FIXED if name not in ("out", "snapshots")]
    assert [getattr(exploiter, name) for name in same] == [getattr(last, name) for name in same]


@needs_native
@pytest.mark.parametrize("last", range(2, 1 + len(train_further.phases())))
def test_each_phase_of_the_next_bot_begins_in_each_size(last: int) -> None:
    settings = load_settings(*train_further.phases()[:last])
    sizes = tuple((blue, orange, 1 / 3) for blue, orange, _ in settings.team_sizes)
    few = replace(settings, matches=6, team_sizes=sizes, opponents={"chaser": 0.2, "charger": 0.2})
    matches = MixedMatches(few, 246)
    cars = sum((blue + orange) * one.matches for one in few.by_size() for blue, orange in one.sizes)
    assert matches.reset(0).shape == (cars, 222 + 4 * 6)
    assert matches.teach().shape == (cars, 90)
    assert np.isfinite(matches.step(np.zeros(cars, int)).rewards).all()


def test_episodes_begin_oftener_with_what_fails_oftener() -> None:
    failed = {name: 0.1 for names in train_further.SKILLS.values() for name in names}
    even = train_further.shares_by_failures(failed)
    more = train_further.shares_by_failures({**failed, "save": 0.6})
    assert [sum(even.values()), sum(more.values())] == pytest.approx([1, 1])
    assert more["save"] > 2 * even["save"] and more["aerial"] < even["aerial"]
    assert more["kickoff"] > 0.35, "matches begin with them, whatever fails"
    none = train_further.shares_by_failures(dict.fromkeys(failed, 0.0))
    assert none == pytest.approx(even)
    assert parse_initial_states(more)


def test_training_goes_on_in_stretches_of_a_falling_rate(tmp_path: Path) -> None:
    run = tmp_path / "run"
    file = train_further.prepare(run, 1_000_000)
    (begun,) = all_checkpoints(run)
    settings, kept = load_settings(file), Path("lab/bot", begun.name)
    assert all((begun / one.name).read_bytes() == one.read_bytes() for one in kept.iterdir())
    assert settings.steps == int(begun.name) + 1_000_000 and settings.out == str(run)
    assert settings.learning_rate * (1 - int(begun.name) / settings.steps) == pytest.approx(2.5e-4)
    assert train_further.prepare(run, 2_000_000, by_failures=True) == file
    assert load_settings(file) == settings, "the stretch is not finished"
    begun.rename(begun.with_name(str(settings.steps)))
    assert train_further.prepare(run, 2_000_000) == file
    assert load_settings(file).steps == settings.steps + 2_000_000
    (begun.with_name(str(settings.steps)) / "training.pt").write_bytes(b"cut")
    with pytest.raises(ValueError, match="has no whole checkpoint"):
        train_further.prepare(run)


def test_training_further_leaves_other_folders_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="--steps is 0, expected a whole number, 100000 to"):
        train_further.prepare(tmp_path / "new", 0)
    others = tmp_path / "others"
    others.mkdir()
    (others / "mine").write_text("mine")
    with pytest.raises(ValueError, match=r"has no stretch\.toml, expected a new folder.*--out"):
        train_further.prepare(others)
    assert [one.name for one in others.iterdir()] == ["mine"]
    (others / "stretch.toml").write_text('steps = "many"')
    with pytest.raises(ValueError, match=r"steps of .*stretch\.toml is .many., expected a whole number"):
        train_further.prepare(others)
    monkeypatch.setattr(train_further, "_BOT", others)
    with pytest.raises(ValueError, match="others has no checkpoint, expected that of the shipped bot"):
        train_further.prepare(tmp_path / "new")
    assert not (tmp_path / "new").exists()
