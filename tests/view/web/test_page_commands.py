"""Commands that open the page, as processes, and a page that looks at them over loopback."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")


from rlgym_bridge.cli import main, play
from rlgym_bridge.cli.browser_page import NamedPolicies
from rlgym_bridge.cli.commands import make_parser
from rlgym_bridge.cli.view import _find_policy
from rlgym_bridge.game import Phase
from rlgym_bridge.policy.load_player import BUILT_IN
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.view.display import open_browser
from tests.support.policy_folders import network_folder
from tests.support.processes import child, run_to_end
from tests.support.recorded_matches import POLICY, chaser_and_policy
from tests.support.web_pages import Link, linked

SIGNALS = """import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from rlgym_bridge.cli import main, play
from rlgym_bridge.server.game import referee
referee.COUNTDOWN_TICKS = 60
sys.exit(main(sys.argv[1:]))"""

WAITING, CHANGED = 8, 16


def look_at(*words: str | Path, work: Callable[[Link], Awaitable[object]], cwd: Path) -> tuple[int, str]:
    """Run a command, let a page work with it, and end it with Ctrl-C; return exit code and errors."""
    with child(
        [sys.executable, "-c", SIGNALS, *words, "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        while "look at " not in (said := process.stdout.readline()):
            assert said, process.communicate(timeout=20)

        async def look() -> None:
            async with linked(said.split()[-1]) as (link,):
                await work(link)
                process.send_signal(signal.SIGINT)
                assert (await link.end())[0] == 1001

        asyncio.run(look())
        _, errors = process.communicate(timeout=20)
        return process.returncode, errors


def test_play_drives_a_car_against_a_policy_until_ctrl_c(tmp_path: Path) -> None:
    async def work(link: Link) -> None:
        setup = await link.text("setup")
        assert setup["mode"] == "play" and setup["seat"] == 0 and setup["drivers"] == ["human", "chaser"]
        first = await link.frame()
        assert first.flags & WAITING and first.tick <= 1
        await link.command("ready")
        start = await link.frame(lambda frame: frame.phase == Phase.KICKOFF)
        await link.send('{"type":"input","seq":5,"controls":[1,0,0,0,0,0,1,0]}')
        frame = await link.frame(lambda frame: frame.input == 5 and frame.cars[0][10] < 20)
        assert frame.tick > start.tick and frame.cars[0][:2] != start.cars[0][:2]

    code, errors = look_at("play", "chaser", "--json", "x.json", work=work, cwd=tmp_path)
    assert code == 0 and "Traceback" not in errors
    assert json.loads((tmp_path / "x.json").read_text())["ended_by"] == "stopped"
    assert not list(tmp_path.rglob("*.mcap"))


def test_a_bot_with_a_process_of_its_own_plays_too(tmp_path: Path) -> None:
    bot = Path(__file__).parents[3] / "bot" / "bot.toml"

    async def work(link: Link) -> None:
        setup = await link.text("setup")
        assert [car["human"] for car in setup["cars"]] == [True, False]
        await link.command("ready")
        await link.frame(lambda frame: frame.cars[1][12] != 0.0)  # it drives

    code, errors = look_at("play", bot, work=work, cwd=tmp_path)
    assert code == 0 and "Traceback" not in errors


@pytest.mark.parametrize("named", [False, True], ids=["policy found", "policy named"])
def test_a_recording_is_shown_and_played_on_from(
    named: bool, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    match = chaser_and_policy(tmp_path_factory)

    async def work(link: Link) -> None:
        setup = await link.text("setup")
        assert setup["mode"] == "view" and setup["length_s"] > 6
        assert [car["name"] for car in setup["cars"]] == ["Chaser", "Bridge"]
        await link.command("ready")
        await link.command("follow", 1)
        mind = await link.text("mind")
        assert len(mind["best"]) == 5 and len(mind["action"]) == 8 and len(mind["observed"]) > 50
        await link.command("pause")
        await link.command("seek", 6.0)
        frame = await link.frame(lambda frame: frame.flags & 1 and frame.time == pytest.approx(6.0, abs=0.02))
        await link.command("take", {"car": 0, "driver": "human"})
        assert (await link.text("setup"))["drivers"] == ["recorded", "recorded"]
        assert (await link.text("setup"))["seat"] == 0
        begun = await link.frame(lambda frame: frame.flags & CHANGED)
        assert begun.ball[:3] == pytest.approx(frame.ball[:3], abs=1.0)
        assert begun.cars[1][:3] == pytest.approx(frame.cars[1][:3], abs=1.0)
        await link.command("resume")
        await link.send('{"type":"input","seq":7,"controls":[1,0,0,0,0,0,0,0]}')
        await link.frame(lambda frame: frame.input == 7 and frame.cars[0][12] == 1.0)
        await link.command("give", -1)
        assert (await link.text("setup"))["length_s"] > 6
        await link.frame(lambda frame: not frame.flags & CHANGED)

    words = ("--policy", POLICY) if named else ()
    code, errors = look_at("view", "--web", match, *words, work=work, cwd=tmp_path)
    assert code == 0 and "Traceback" not in errors


def test_of_a_recording_the_run_here_is_searched_for_its_policy(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = open_recording(chaser_and_policy(tmp_path_factory))
    monkeypatch.chdir(tmp_path)
    assert _find_policy(recording) == str(Path(POLICY))
    (tmp_path / "train.toml").write_text('out = "runs/mine"\n')
    checkpoints = tmp_path / "runs" / "mine" / "checkpoints"
    network_folder(checkpoints / "200", team_size=1)
    shutil.copytree(POLICY, checkpoints / "100")
    assert _find_policy(recording) == str(Path("runs/mine/checkpoints/100"))


def test_a_match_is_watched_and_ends_by_itself(tmp_path: Path) -> None:
    async def work(link: Link) -> None:
        assert (await link.text("setup"))["mode"] == "watch"
        await link.command("pause")
        assert "only watched" in (await link.text("say"))["text"]
        await link.frame(lambda frame: frame.tick > 100)

    words = ("match", "--blue", "chaser", "--orange", "random", "--web")
    code, errors = look_at(*words, work=work, cwd=tmp_path)
    assert code == 1 and "stopped" in errors and "Traceback" not in errors


@pytest.mark.slow
def test_a_run_is_watched_while_it_trains(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "x.toml").write_text(
        "collectors = 1\nmatches = 4\nrollout_steps = 16\nthreads = 1\ncheckpoint_every = 256\n"
    )

    async def work(link: Link) -> None:
        setup = await link.text("setup")
        assert setup["mode"] == "train" and len(setup["cars"]) == 2 and setup["seat"] is None
        await link.command("ready")
        curves = await link.text("curves")
        assert curves["columns"][0] == "steps" and len(curves["rows"][-1]) == len(curves["columns"])
        await link.text("say")  # of a newer checkpoint
        await link.frame(lambda frame: frame.phase == Phase.COUNTDOWN and frame.time > 1.0)

    code, errors = look_at("train", "x.toml", "--out", "run", "--web", work=work, cwd=tmp_path)
    assert code == 0 and "Traceback" not in errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody"], "BOT 'nobody' is no file or folder"),
        (["chaser", "--blue", "chaser"], "expected neither BOT nor --with nor --team"),
        (["--blue", "human", "--orange", "human"], "are humans, expected one at most"),
        (["chaser", "chaser", "chaser", "chaser", "chaser"], "expected at most 4"),
    ],
)
def test_a_match_that_cannot_be_played_is_told_in_a_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["play", "--no-browser", *words]) == 2
    errors = capsys.readouterr().err
    assert said in errors and errors.startswith("error: ") and "Traceback" not in errors


@pytest.mark.parametrize("words", [["match", "--blue", "chaser"], ["train"], ["match", "--watch", "--web"]])
def test_a_port_without_a_page_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--port", "8000"]) == 2
    assert "--port 8000 is of the page, expected --web, too" in capsys.readouterr().err


def chosen(*words: str) -> tuple[list[str], list[str]]:
    return play.choose_cars(make_parser("play").parse_args(["--quiet", *words]))


def test_the_words_of_play_choose_the_cars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen("chaser") == (["human"], ["chaser"])
    assert chosen("chaser", "random", "--with", "charger") == (["human", "charger"], ["chaser", "random"])
    assert chosen("chaser", "--team", "orange") == (["chaser"], ["human"])
    assert chosen("--blue", "chaser", "--orange", "random") == (["chaser"], ["random"])
    assert chosen("--orange", "chaser", "chaser") == (["human"], ["chaser", "chaser"])
    monkeypatch.chdir(tmp_path)
    mine, others = chosen()
    assert mine == ["human"] and others[0].endswith("bot/policy")
    network_folder(tmp_path / "R", team_size=2)
    assert chosen("R") == (["human", "R"], ["R", "R"]), "teams that the policy was trained for"


def test_no_policy_has_the_name_of_another_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    given = [str(tmp_path / folder) for folder in ("here/human", "here/chaser", "a/x/policy", "b/x/policy")]
    for folder in given:
        shutil.copytree(POLICY, folder)
    policies = NamedPolicies(given)
    assert [policies.name_of(folder) for folder in given] == [*given[:2], "x/policy", given[3]]
    assert policies.names == [*given[:2], "x/policy", given[3], *BUILT_IN]


def test_in_a_bots_folder_its_run_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.toml").write_text('out = "runs/mine"\n')
    assert chosen()[1][0].endswith("bot/policy"), "it has no checkpoint yet"
    shutil.copytree(POLICY, tmp_path / "runs" / "mine" / "checkpoints" / "100")
    assert chosen() == (["human"], ["runs/mine"])


@pytest.mark.parametrize(
    ("display", "chosen_one", "kind", "opens"),
    [
        ("", "", webbrowser.GenericBrowser, False), (":0", "", webbrowser.GenericBrowser, False),
        (":0", "", webbrowser.BackgroundBrowser, True), ("", "w3m %s", webbrowser.GenericBrowser, True),
    ],
)  # fmt: skip
def test_no_browser_takes_the_terminal_unless_it_is_chosen(
    display: str, chosen_one: str, kind: Any, opens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("DISPLAY", display), ("WAYLAND_DISPLAY", ""), ("BROWSER", chosen_one)):
        monkeypatch.setenv(name, value)
    opened: list[str] = []
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(webbrowser, "get", lambda: kind("x"))
    monkeypatch.setattr(webbrowser, "open", opened.append)
    open_browser("http://here")
    for thread in threading.enumerate():
        if thread.name == "browser":
            thread.join(10)
    assert opened == ["http://here"] * opens


def test_without_aiohttp_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgym_bridge.cli.browser_page.find_spec", lambda _: None)
    assert main(["play"]) == 2
    assert "needs aiohttp: pip install" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["match", "view", "train", "play"])
def test_no_command_loads_the_page_before_it_is_used(command: str) -> None:
    code = (
        "import sys; sys.modules['aiohttp'] = None\n"
        "from rlgym_bridge.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    code = end.code\n"
        "sys.exit(code or any(name.startswith('rlgym_bridge.view.web') for name in sys.modules))"
    )
    done = run_to_end([sys.executable, "-c", code, command, "--help"])
    assert done.returncode == 0, done.stderr
