"""One file that cannot be compared does not keep the others from it."""

import json
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import RocketSim as rsim

from rlgym_bridge.cli import main
from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.sim.arena import make_arena

MAP = """
[time]
seconds = 0
[ball]
position = [1, 2, 3]
velocity = [4, 5, 6]
angular_velocity = [7, 8, 9]
"""


@cache
def flight(seed: int = 0) -> str:
    """Return a table of a ball that falls and bounces for four seconds."""
    arena, _ = make_arena([])
    ball = rsim.BallState()
    ball.pos, ball.vel = rsim.Vec(0, 0, 900), rsim.Vec(300 + 50 * seed, 400, 500)
    arena.ball.set_state(ball)
    lines = []
    for tick in range(480):
        arena.step(1)
        now = arena.ball.get_state()
        numbers = (*now.pos.as_tuple(), *now.vel.as_tuple(), *now.ang_vel.as_tuple())
        lines.append(",".join(map(repr, (tick / 120, *numbers))))
    return "\n".join(lines) + "\n"


def compared(folder: Path, files: dict[str, str], *words: str) -> tuple[int, dict[str, Any]]:
    (folder / "map.toml").write_text(MAP)
    for name, text in files.items():
        (folder / name).write_text(text)
    names = [str(folder / name) for name in files]
    status = main([
        "compare", *names, "--columns", str(folder / "map.toml"), "--windows", "12",
        "--simulator", "rocketsim2", "--json", str(folder / "found.json"), *words,
    ])  # fmt: skip
    path = folder / "found.json"
    return status, json.loads(path.read_text()) if path.exists() else {}


def test_the_others_are_compared_and_the_refused_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirrored = "\n".join(
        ",".join([*cells[:1], f"{-float(cells[1])}", *cells[2:]])
        for cells in (line.split(",") for line in flight(1).splitlines())
    )
    files = {
        "a.csv": flight(), "odd.csv": "0,1,2\n", "mirrored.csv": mirrored, "again.csv": flight(),
        "text.csv": flight().replace("0.0,", "zero,", 1),
    }  # fmt: skip
    status, found = compared(tmp_path, files, "--html", str(tmp_path / "found.html"))
    refused = {Path(one["source"]).name: one["reason"] for one in found["refused"]}
    assert status == 2 and refused.keys() == files.keys() - {"a.csv"}
    assert "has 3 columns (0 to 2), expected a column 3" in refused["odd.csv"]
    assert "given twice" in refused["again.csv"]
    assert [fit["source"] for fit in found["fits"]] == ["a.csv"] and found["agrees"]
    shown, page = capsys.readouterr().out, (tmp_path / "found.html").read_text()
    (line,) = (line for line in shown.splitlines() if line.startswith("not compared") and "text.csv" in line)
    assert line.count("text.csv") == 1 and "'zero', expected a number" in line
    assert shown.count("not compared: ") == 4 and "<h2>Not compared</h2>" in page and "odd.csv" in page


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any], str]:
    """Compare two flights; return the exit status, the result and what was shown."""
    with redirect_stdout(StringIO()) as shown:
        status, found = compared(tmp_path_factory.mktemp("pair"), {"a.csv": flight(), "b.csv": flight(1)})
    return status, found, shown.getvalue()


def test_nothing_is_refused_where_all_is_well(pair: tuple[int, dict[str, Any], str]) -> None:
    status, found, _ = pair
    assert (status, found["refused"]) == (0, []) and len(found["fits"]) == 2


def test_where_none_is_left_the_command_fails_with_each_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"odd.csv": "0,1,2\n", "short.csv": flight().splitlines()[0] + "\n"}
    status, found = compared(tmp_path, files)
    message = capsys.readouterr().err
    assert status == 2 and not found
    assert "short.csv: of 1 row 0 s can be compared, expected 1 s or more" in message
    assert "has 3 columns (0 to 2), expected a column 3" in message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("match.mcap",), "got 'match.mcap', expected a recording: open_recording"),
        ((None,), "got None, expected"),
    ],
)
def test_what_is_no_recording_is_not_compared(given, message):
    with pytest.raises(TypeError, match=message):
        compare_recordings(*given)


def test_what_is_being_done_is_said(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MAP)
    (tmp_path / "one.csv").write_text(flight())
    begun: list[str] = []
    compare_recordings(
        open_recording(tmp_path / "one.csv", tmp_path / "map.toml"),
        windows=8,
        simulator="rocketsim2",
        progress=begun.append,
    )
    assert begun[0] == "one.csv: fitting the time and the input latency"
    assert all(doing.startswith("one.csv: ") for doing in begun) and len(begun) >= 3


def test_the_other_simulator_is_named_once(pair: tuple[int, dict[str, Any], str]) -> None:
    status, found, shown = pair
    assert (status, found["simulator"]) == (0, "rocketsim2")
    assert "Median errors of RocketSim 2.2.1" in shown and " 2.2.1  windows" not in shown
    assert all(one["rocketsim2"] is None for one in found["situations"])


def test_of_many_files_those_that_agree_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {f"{seed}.csv": flight(seed) for seed in range(5)}
    status, _ = compared(tmp_path, files)
    shown = capsys.readouterr().out
    assert status == 0 and "5 recordings agree" in shown and "ball in the air" not in shown


def test_each_of_a_few_files_has_its_own_rows(pair: tuple[int, dict[str, Any], str]) -> None:
    lines = pair[2].splitlines()
    assert sum(line.startswith("ball in the air") for line in lines) == 2
    assert {"a.csv", "b.csv"} <= {line.strip() for line in lines}


def test_what_differs_comes_before_the_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heavy = flight().splitlines()
    for place, line in enumerate(heavy):
        cells = line.split(",")
        seconds = float(cells[0])
        cells[1] = str(float(cells[1]) + 20 * seconds**2)  # a wind that nobody tries
        cells[4] = str(float(cells[4]) + 40 * seconds)
        heavy[place] = ",".join(cells)
    status, found = compared(tmp_path, {"a.csv": "\n".join(heavy) + "\n"})
    shown = capsys.readouterr().out
    assert status == 1 and not found["agrees"] and found["untried"]
    places = [shown.index(text) for text in ("differ by something that is not tried here", "Measured: ",
                                             "stay beyond their bounds", "uu off after ticks",
                                             "a.csv: its clock")]  # fmt: skip
    assert places == sorted(places)


def standing(text: str) -> str:
    """Return a table whose clock stands."""
    return "".join("1.0," + line.partition(",")[2] + "\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "few", [lambda text: text[: text.index("\n") + 1], lambda text: "\n".join(text.split("\n")[:5]), standing]
)
def test_what_is_too_short_to_judge_is_no_agreement(
    few: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compared(tmp_path, {"few.csv": few(flight())})[0] == 2
    assert "can be compared, expected 1 s or more" in capsys.readouterr().err


def test_an_endless_name_in_a_message_is_shortened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "map.toml").write_text(MAP.replace("seconds = 0", f'seconds = "{"q" * 100_000}"'))
    (tmp_path / "one.csv").write_text(flight())
    assert main(["compare", str(tmp_path / "one.csv"), "--columns", str(tmp_path / "map.toml")]) == 2
    message = capsys.readouterr().err
    assert len(message) < 5000 and "qqq ... " in message
