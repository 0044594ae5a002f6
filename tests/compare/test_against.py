"""Two sets of matches are told apart where they differ, and not where they do not."""

import json
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.compare.two_sets import against
from rlgym_bridge.game import CONTROL_NAMES, Phase
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Recording
from tests.support.fault_matches import clean
from tests.support.fault_scenes import Form
from tests.support.recorded_matches import record
from tests.support.simulators import needs_native


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("against")
    record(made / "one.mcap", seconds=60, seed=1)
    record(made / "another.mcap", seconds=60, seed=2)
    record(made / "late.mcap", "--latency", "3", seconds=60, seed=3)
    return made


def differing(folder: Path, *names: str) -> tuple[int, list[str]]:
    here, there = (str(folder / f"{name}.mcap") for name in names)
    status = main(["compare", here, "--against", there, "-q", "--json", str(folder / "found.json")])
    found = json.loads((folder / "found.json").read_text())["against"]
    assert found["alike"] == (status == 0)
    return status, [one["name"] for one in found["features"] if one["differs"]]


@pytest.mark.slow
def test_matches_of_one_policy_in_one_world_are_alike(folder: Path) -> None:
    assert differing(folder, "one", "another") == (0, [])


@pytest.mark.slow
def test_an_input_latency_is_named_with_its_size(folder: Path) -> None:
    words = [str(folder / "one.mcap"), "--against", str(folder / "late.mcap"), "-q"]
    outputs = ["--html", str(folder / "a.html"), "--json", str(folder / "found.json")]
    assert main(["compare", *words, *outputs]) == 1
    found = json.loads((folder / "found.json").read_text())["against"]
    named = {one["name"]: one for one in found["features"] if one["differs"]}
    for agent in ("blue-0", "orange-0"):
        latency = named[f"{agent} input latency, ticks"]
        assert (latency["here"], latency["there"], latency["low"], latency["high"]) == (0, 3, 3, 3)
    page = (folder / "a.html").read_text()
    inside = page.partition('id="against">')[2].partition("</script>")[0]
    assert json.loads(inside) == found
    assert "blue-0 input latency, ticks" in page and "http" not in page


@pytest.mark.slow
def test_matches_that_are_too_short_to_tell_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (str(record(tmp_path / f"{seed}.mcap", seconds=2, seed=seed)) for seed in (0, 1))
    assert main(["compare", one, "--against", other]) == 2
    assert "pieces of play of up to ten seconds, too few to tell" in capsys.readouterr().err


@cache
def made(seed: int) -> MatchRecording:
    """Return a minute of play by cars that all press at random."""
    recording = clean(seed, Form()).recording
    recording.state.phase[:] = Phase.ACTIVE
    return MatchRecording(**{one.name: getattr(recording, one.name) for one in fields(Recording)})


@needs_native
def test_what_differs_in_one_set_is_named_and_chance_is_not() -> None:
    sets = [made(seed) for seed in range(1, 7)]
    for number in range(4):
        order = [sets[place] for place in np.random.default_rng(number).permutation(6)]
        assert against(order[:3], order[3:], number).alike
    held = [replace(one, state=one.state.copy()) for one in sets[3:]]
    for one in held:
        one.state.car_controls[:, 0, CONTROL_NAMES.index("handbrake")] = 1
    (named,) = (one for one in against(sets[:3], held).differences if one.differs)
    assert named.name == "blue-0 handbrake held, share" and named.there == 1
    assert 0.5 < named.low <= named.there - named.here <= named.high < 1
