"""A pack that somebody else made can do nothing but be read or refused."""

import json
import zipfile
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from tests.support.field_tests import read_report

ABOUT = {
    "format": 1, "made": "2026-11-24", "server": "rlbot", "versions": {}, "settings": {},
    "parts": [{"name": "scenes", "state": "done"}],
}  # fmt: skip
NEUTRAL = {"position": [0, 0, 17]}
SCENE = {
    "name": "a", "kind": "b", "measured": ["car"], "car": NEUTRAL, "other": NEUTRAL, "ball": NEUTRAL,
    "settle": 1, "steps": [{"ticks": 1}],
}  # fmt: skip


def packed(folder: Path, method: int = zipfile.ZIP_DEFLATED, **members: object) -> Path:
    """Return a pack of some members, those that are no bytes as JSON."""
    file = folder / "pack.zip"
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            name = name.replace("__", "/").replace("_json", ".json").replace("_mcap", ".mcap")
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return file


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({**ABOUT, "format": 2}, "it has the format 2, and this version reads 1"),
        ({**ABOUT, "server": "elsewhere"}, "about.json cannot be read"),
        ({**ABOUT, "parts": "all"}, "about.json cannot be read"),
        ({**ABOUT, "made": 7}, "about.json cannot be read"),
        (b"\x80\x04.", "about.json cannot be read"),
        (b"[" * 100_000, "nested more than 100 levels"),
        (b'{"format": NaN}', "it has the number NaN"),
        (b"1" * 30_000, "about.json cannot be read"),
    ],
)
def test_a_pack_that_says_nothing_sensible_is_refused(
    about: object, message: str, tmp_path: Path, refused
) -> None:
    assert message in refused("field-test", "--read", packed(tmp_path, about_json=about))


def test_a_file_of_another_kind_is_refused(tmp_path: Path, refused) -> None:
    file = tmp_path / "pack.zip"
    for content in (b"", b"no zip", b"PK\x05\x06" + bytes(18), b"PK\x03\x04" * 100):
        file.write_bytes(content)
        assert "made" in refused("field-test", "--read", file)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    file = packed(tmp_path, about_json=ABOUT, scenes_json=b"[" + b" " * (5 << 20) + b"]",
                  scenes_mcap=bytes(17 << 20))  # fmt: skip
    assert file.stat().st_size < 1e6
    found = read_report(file, status=1)
    assert found["notes"] == [
        "scenes.json is left out: it unpacks to more than 4,194,304 bytes",
        "scenes.mcap is left out: it unpacks to more than 16,777,216 bytes",
    ]


def test_a_directory_of_many_entries_is_refused(tmp_path: Path, refused) -> None:
    file = packed(tmp_path, about_json=ABOUT, **{f"n{number}": b"" for number in range(5000)})
    assert "has 5,001 entries, expected 64 at most" in refused("field-test", "--read", file)


def test_paths_that_lead_elsewhere_are_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "deep" / "deeper"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    monkeypatch.setattr("tempfile.tempdir", str(inside))
    file = packed(inside, about_json=ABOUT, **{"..__..__evil_mcap": b"x", "__evil_json": b"{}"})
    read_report(file, status=1)  # the part that is done is missing
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["deep", "deeper", "pack.json", "pack.zip"]


def test_packing_methods_that_unpack_without_limit_are_left_out(tmp_path: Path) -> None:
    file = packed(tmp_path, zipfile.ZIP_LZMA, about_json=ABOUT)
    assert main(["field-test", "--read", str(file)]) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"scene": 10**30}, {"scene": -1}, {"asked": "7"}, {"shown": 1e400}, {"began": None}, {"more": 1},
    ],
)  # fmt: skip
def test_frames_of_wrong_kinds_leave_the_scenes_out(change: dict, tmp_path: Path) -> None:
    played = {"scene": 0, "asked": 1, "shown": 2, "began": 3, "ended": 4} | change
    scenes = {"scenes": [SCENE], "played": [played], "notes": []}
    found = read_report(packed(tmp_path, about_json=ABOUT, scenes_json=scenes), status=1)
    assert found["notes"][0].startswith("scenes.json is left out: ")


def test_a_recording_that_is_none_is_named(tmp_path: Path) -> None:
    scenes = {"scenes": [SCENE], "played": [], "notes": []}
    file = packed(tmp_path, about_json=ABOUT, scenes_json=scenes, scenes_mcap=b"\x89MCAP0\r\n junk")
    (note,) = read_report(file, status=1)["notes"]
    assert note.startswith("the scenes cannot be compared: ")


def test_texts_of_a_pack_change_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = {"name": "scenes", "state": "failed", "note": "\x1b[2Jevil [bold]"}
    about = {**ABOUT, "parts": [part], "versions": {"\x1b[31m": "\u202e"}}
    assert main(["field-test", "--read", str(packed(tmp_path, about_json=about))]) == 1
    said = capsys.readouterr().out
    assert "\x1b[2J" not in said and r"\x1b[2Jevil [bold]" in said and "\u202e" not in said
