import asyncio
import io
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from unittest.mock import Mock

import pytest

pytest.importorskip("aiohttp")


from rlgym_bridge.cli.browser_page import _tell_address
from rlgym_bridge.game import Phase
from rlgym_bridge.view.web.shown_run import RunShow, main, read_curves
from tests.support.processes import child
from tests.support.recorded_matches import POLICY
from tests.support.web_pages import linked

HEAD = "steps,seconds,elo,goals_per_minute,entropy\n"


def checkpoint(run: Path, name: str) -> None:
    shutil.copytree(POLICY, run / "checkpoints" / name)
    (run / "checkpoints" / "latest").write_text(name)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "progress.csv").write_text(HEAD + "100,1.5,25,0.5,4.4\n200,3,nan,,4.2\n")
    checkpoint(tmp_path, "100")
    return tmp_path


@pytest.fixture
def address(run: Path) -> Iterator[str]:
    opened: Queue[str] = Queue()
    show = RunShow(run, 0)
    thread = threading.Thread(target=show.show, args=(opened.put,), daemon=True)
    thread.start()
    yield opened.get(timeout=30)
    show.stop()
    thread.join(20)
    assert not thread.is_alive()


def test_curves_are_those_of_the_table(run: Path) -> None:
    assert read_curves(run) == {
        "type": "curves", "columns": ["steps", "elo", "goals_per_minute", "entropy"],
        "rows": [[100, 25, 0.5, 4.4], [200, None, None, 4.2]],
    }  # fmt: skip


def test_of_a_long_table_pages_get_an_even_part_with_the_end(run: Path) -> None:
    lines = [f"{step},1,25,0,4\n" for step in range(5003)]
    (run / "progress.csv").write_text(HEAD + "".join(lines))
    curves = read_curves(run)
    assert curves is not None and len(curves["rows"]) < 405
    assert curves["rows"][0][0] == 0 and curves["rows"][-1][0] == 5002


def test_before_the_first_line_there_are_no_curves(run: Path) -> None:
    (run / "progress.csv").write_text(HEAD)
    assert read_curves(run) is None and read_curves(run / "nowhere") is None


@pytest.mark.odd_packets("a kickoff is begun anew")
def test_the_newest_checkpoint_plays_and_a_newer_one_after_it(run: Path, address: str) -> None:
    async def look() -> None:
        async with linked(address) as (link,):
            setup = await link.text("setup")
            assert setup["mode"] == "train" and [car["team"] for car in setup["cars"]] == [0, 1]
            await link.command("ready")
            assert (await link.text("curves"))["rows"][-1][0] == 200
            await link.command("follow", 0)
            await link.frame(lambda frame: frame.phase == Phase.KICKOFF)
            assert (await link.text("mind"))["best"]
            checkpoint(run, "300")
            assert (await link.text("say"))["text"] == "checkpoint 300"
            await link.frame(lambda frame: frame.phase == Phase.COUNTDOWN)
            await link.command("reset")
            assert "only watched" in (await link.text("say"))["text"]

    asyncio.run(look())


def test_a_run_that_cannot_be_shown_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.nice", lambda _: None)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    (tmp_path / "checkpoints" / "100").mkdir(parents=True)
    (tmp_path / "checkpoints" / "100" / "policy.json").write_text("{}")
    (tmp_path / "checkpoints" / "latest").write_text("100")
    assert main([str(tmp_path), "0"]) == 2
    assert "policy.json" in capsys.readouterr().out
    monkeypatch.setattr(RunShow, "show", Mock(side_effect=ZeroDivisionError("of a component")))
    assert main([str(tmp_path), "0"]) == 2
    assert capsys.readouterr().out.endswith("ZeroDivisionError: of a component\n")


@pytest.mark.parametrize(
    ("ends", "told", "warned"),
    [
        ("print('ready http://x', flush=True)", ["look at http://x"], ""),
        ("sys.exit(print('no checkpoint fits') or 2)", [], "--web shows nothing: no checkpoint fits"),
    ],
    ids=["shown", "not shown"],
)
def test_what_a_component_prints_is_neither_address_nor_error(
    ends: str, told: list[str], warned: str, capsys: pytest.CaptureFixture[str]
) -> None:
    prints = "print('of a reward ' * 20_000, flush=True)"  # more than a pipe holds
    said: list[str] = []
    words = [sys.executable, "-c", f"import sys; {prints}; {ends}; {prints}"]
    with child(words, stdout=subprocess.PIPE, text=True) as process:
        _tell_address(process, said.append)
    assert said == told and process.returncode == (2 if warned else 0)
    assert warned in capsys.readouterr().err
