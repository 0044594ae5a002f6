"""Two sets of matches are told apart where they differ, and not where they do not."""

import json
from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.compare.two_sets import against
from rlgym_bridge.recording.mcap.match_recording import MatchRecording, read_match
from tests.support.recorded_matches import POLICY, record


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


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_another_policy_is_flagged_and_the_same_one_is_not(tmp_path: Path) -> None:
    def matches(blue: str, seeds: range) -> list[MatchRecording]:
        files = [record(tmp_path / f"{seed}.mcap", blue=blue, seconds=60, seed=seed) for seed in seeds]
        return [read_match(file, shadow=False) for file in files]

    same, other = matches(POLICY, range(100, 110)), matches("chaser", range(200, 203))
    differing = {one.name for one in against(same[:3], other).differences if one.differs}
    assert "blue-0 boost held, share" in differing  # 71 % of the time, Chaser 10 %
    alarms = 0
    for number in range(20):
        order = [same[place] for place in np.random.default_rng(number).permutation(10)]
        alarms += not against(order[:5], order[5:], number).alike
    assert alarms == 0
