"""A pack of a field test says what was measured, and nothing about whoever made it."""

import io
import json
import platform
import re
import sys
import zipfile
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.sim.simulator import SIMULATORS
from rlgym_bridge.trials import diagnostic_report
from tests.support.field_tests import all_contents, make_pack, read_report
from tests.support.simulators import needs_native

USER = "Wilhelmina-Quux"


KINDS = ("hit", "boost in the air")


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a pack that somebody with a name and a home made on our own server."""
    folder = tmp_path_factory.mktemp(USER)
    words = ["--parts", "probe", "timing", "scenes", "--scenes", *KINDS, "--latency", "2"]
    words += ["--simulator", "rocketsim2", "--dialect", "pad_timer=remaining"]
    words += ["--dialect", "demolished_place=origin"]
    home = {"HOME": str(folder), "USERPROFILE": str(folder), "USER": USER, "USERNAME": USER, "LOGNAME": USER}
    return make_pack(folder, *words, SECRET_TOKEN="Xyzzy-4711", **home)


@pytest.fixture(scope="module")
def report(pack: Path) -> tuple[dict, str]:
    """Return the pack's report as JSON and as it is printed, of few windows."""
    said = io.StringIO()
    with redirect_stdout(said), pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagnostic_report, "_WINDOWS", 14)
        found = read_report(pack)
    return found, said.getvalue()


def test_the_report_names_the_dialect_and_the_latency(report: tuple[dict, str]) -> None:
    found, said = report
    asked = ProtocolVariant({"pad_timer": "remaining", "demolished_place": "origin"}).complete()
    assert (found["dialect"], found["open"]) == (asked, {})
    assert found["parts"]["probe"]["timing"] == {"input_latency": 2, "packets_per_second": 120.0}
    assert found["parts"]["timing"]["input_latency_ticks"] == 2
    assert "it says nothing about the real game" in said
    assert "input latency, by the probe: 2 ticks" in said


@needs_native
def test_the_report_begins_with_a_conclusion(report: tuple[dict, str]) -> None:
    found, said = report
    conclusion = " ".join(found["conclusion"])
    assert conclusion in said.replace("\n", " ")
    assert "left out by --parts: match." in conclusion and "Inputs act 2 ticks late." in conclusion
    assert "in pad_timer=remaining, demolished_place=origin." in conclusion
    assert "RocketSim 3 differ by the physics, which are those of RocketSim 2.2.1." in conclusion
    assert "RocketSim 2.2.1 is off by <0.01 uu (median of" in conclusion
    ((beyond, scenes),) = re.findall(r"(\d+) of (\d+) scenes go beyond what the recording", conclusion)
    assert int(scenes) >= 10 and int(beyond) >= 0.9 * int(scenes)
    assert "Next: play it in the real game" in conclusion and "\nleft out by --parts: match" in said


@needs_native
def test_the_report_says_how_far_the_simulators_are_off(report: tuple[dict, str]) -> None:
    found, said = report
    kinds = {name: [row for row in found["kinds"] if row["simulator"] == name] for name in SIMULATORS}
    for rows in kinds.values():
        assert {row["kind"] for row in rows} == set(KINDS)
        assert {row["body"] for row in rows if row["kind"] == "hit"} == {"car", "ball"}
    assert max(row["worst"] for row in kinds["rocketsim2"]) < 0.05  # it was played in this one
    assert max(row["worst"] for row in kinds["rocketsim3"]) > 1.0
    assert not any(row["beyond"] for row in kinds["rocketsim2"]) and found["notes"] == []
    assert re.search(r"hit, ball \(6\) .* <0.01", said)


@needs_native
def test_the_report_names_what_explains_the_difference(report: tuple[dict, str]) -> None:
    found, said = report
    (cause,) = found["difference"]["mechanisms"]
    assert cause["name"] == "RocketSim 2.2.1" and cause["certain"] and cause["share"] > 0.9
    assert "what differs in the scenes, and what explains it\n" in said
    assert "\nRocketSim 2.2.1 in scenes.mcap: with it " in said


def test_a_pack_from_before_is_read(pack: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.zip"
    with zipfile.ZipFile(pack) as archive, zipfile.ZipFile(old, "w") as new:
        about = json.loads(archive.read("about.json"))
        about["settings"]["rules"] = "game"
        about["parts"] = [part for part in about["parts"] if part["name"] != "scenes"]
        new.writestr("about.json", json.dumps(about))
        for name in ("probe.json", "timing.json"):
            new.writestr(name, archive.read(name))
    assert set(read_report(old)["parts"]) == {"probe", "timing"}


def test_a_pack_has_no_name_host_home_or_environment(pack: Path, tmp_path: Path) -> None:
    content, texts = all_contents(pack, tmp_path)
    for personal in (USER, str(pack.parent), str(Path.cwd()), sys.prefix, "Xyzzy-4711"):
        assert personal.lower().encode() not in content.lower(), personal
    host = re.escape(platform.node())  # a short one is in numbers by chance
    assert not re.search(rf"(?<![a-z0-9]){host}(?![a-z0-9])", texts, re.IGNORECASE)
    assert "player 1" in texts and "robe blue" not in texts


def test_a_pack_names_its_members_and_is_small(pack: Path) -> None:
    with zipfile.ZipFile(pack) as archive:
        text = archive.read("README.txt").decode()
        about = json.loads(archive.read("about.json"))
        names = set(archive.namelist())
    assert names == {"README.txt", "about.json", *(
        f"{name}.{ending}" for name, ending in (
            ("probe", "json"), ("timing", "json"), ("scenes", "json"), ("probe", "mcap"), ("scenes", "mcap")
        )
    )}  # fmt: skip
    assert all(name in text for name in names if name.endswith(".json")) and "*.mcap" in text
    assert [part["state"] for part in about["parts"]] == ["done"] * 3
    assert pack.stat().st_size < 3e6


def test_a_broken_part_is_named_and_the_others_are_read(pack: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.zip"
    with zipfile.ZipFile(pack) as old, zipfile.ZipFile(broken, "w") as new:
        for name in ("about.json", "probe.json", "timing.json"):
            new.writestr(name, b"{" if name == "timing.json" else old.read(name))
    found = read_report(broken, status=1)
    assert set(found["parts"]) == {"probe"} and found["dialect"]["pad_timer"] == "remaining"
    assert found["notes"][0].startswith("timing.json is left out: ")
    assert found["notes"][1] == "scenes.json is missing, though that part is done"
    assert found["conclusion"][0] == "The test is not whole: 2 notes below."


def test_a_part_that_fails_is_named_and_the_next_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise EOFError(f"{Path.home() / 'x'} on {platform.node()} went away")

    monkeypatch.setattr("rlgym_bridge.trials.diagnostic_test.Probe", fail)
    out = tmp_path / "pack.zip"
    words = ["--parts", "probe", "timing", "-q", "--out", str(out)]
    assert main(["field-test", *words]) == 1
    probe, timing = read_report(out, status=1)["about"]["parts"]
    assert (probe["state"], timing["state"]) == ("failed", "done")
    assert probe["note"].startswith("EOFError: <path> on <name> went away")
    assert "probe failed: " in capsys.readouterr().out


def test_a_pack_that_is_there_is_not_replaced(tmp_path: Path, refused) -> None:
    (tmp_path / "a.zip").write_bytes(b"mine")
    assert "which is there already; expected a new file" in refused("field-test", "--out", tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == b"mine"
