import asyncio
import io
import itertools
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue
from unittest.mock import Mock

import numpy as np
import pytest

pytest.importorskip("aiohttp")


from rlgym_bridge.cli.browser_page import _tell_address
from rlgym_bridge.game import Phase
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.view.web import car_drivers, shown_run
from rlgym_bridge.view.web.car_drivers import estimate_value
from rlgym_bridge.view.web.shown_run import RunShow, main, read_curves
from tests.support.processes import child
from tests.support.recorded_matches import POLICY
from tests.support.web_pages import linked

OBS = load_policy(POLICY).manifest.obs_size
HEAD = "steps,seconds,elo,goals_per_minute,entropy\n"


def checkpoint(run: Path, name: str) -> None:
    shutil.copytree(POLICY, run / "checkpoints" / name)
    (run / "checkpoints" / "latest").write_text(name)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "progress.csv").write_text(HEAD + "100,1.5,25,0.5,4.4\n200,3,nan,,4.2\n")
    checkpoint(tmp_path, "100")
    return tmp_path


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
def test_the_newest_checkpoint_plays_and_a_newer_one_after_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_run, "_LEAST_SECONDS", 0.0)
    save_critic(run / "checkpoints" / "100")
    opened: Queue[str] = Queue()
    show = RunShow(run, 0)
    thread = threading.Thread(target=show.show, args=(opened.put,), daemon=True)
    thread.start()
    address = opened.get(timeout=30)

    async def look() -> None:
        async with linked(address) as (link,):
            setup = await link.text("setup")
            assert setup["mode"] == "train" and [car["team"] for car in setup["cars"]] == [0, 1]
            await link.command("ready")
            assert (await link.text("curves"))["rows"][-1][0] == 200
            await link.command("follow", 0)
            await link.frame(lambda frame: frame.phase == Phase.KICKOFF)
            mind = await link.text("mind")
            while mind["value"] is None:  # torch is being loaded
                mind = await link.text("mind")
            assert len(mind["best"]) == 5
            checkpoint(run, "300")
            assert (await link.text("say"))["text"] == "checkpoint 300"
            await link.frame(lambda frame: frame.phase == Phase.COUNTDOWN)
            await link.command("reset")
            assert "only watched" in (await link.text("say"))["text"]

    try:
        asyncio.run(look())
    finally:
        show.stop()
        thread.join(20)
    assert not thread.is_alive()


def test_checkpoints_that_come_fast_leave_time_to_play(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(3, 2)  # between two checkpoints, and before the first one
    now = 0.0

    def wait(_: float) -> bool:
        nonlocal now
        now = float(next(seconds))
        checkpoint(run, str(1000 + int(now)))
        return now > 40

    monkeypatch.setattr(shown_run, "time", Mock(monotonic=lambda: now))
    show, shown = RunShow(run, 0), Mock(**{"pages.viewers": []})
    monkeypatch.setattr(show._stopped, "wait", wait)
    show._look(shown)
    assert [call.args for call in shown.pages.say.mock_calls] == [
        ("checkpoint 1015",), ("checkpoint 1031",)
    ], "15 s of play at least, countdown included"  # fmt: skip
    assert shown.kick_off_soon.call_count == 2


@pytest.mark.parametrize("deviation", [1.0, 4.0])
def test_the_value_is_what_the_checkpoints_critic_says(deviation: float, run: Path) -> None:
    obs = np.random.default_rng(1).normal(size=(1, 1, OBS)).astype(np.float32)
    assert value_when_loaded(run / "checkpoints" / "100", obs) is None, "it has no critic"
    folder = shutil.copytree(run / "checkpoints" / "100", run / "checkpoints" / "200")
    critic = save_critic(folder, deviation)
    rows, _ = load_policy(folder).policy.show_network(obs[0])
    hidden = np.maximum(rows @ critic["layers.0.weight"].T + critic["layers.0.bias"], 0)
    expected = hidden @ critic["layers.1.weight"].T + critic["layers.1.bias"]
    assert value_when_loaded(folder, obs) == pytest.approx(deviation * expected[0, 0], rel=1e-3)


def test_the_value_is_that_of_a_critic_that_attends() -> None:
    torch = pytest.importorskip("torch")
    from rlgym_bridge.policy.torch_network import make_networks

    (folder,) = (Path(__file__).parents[3] / "lab" / "bot").iterdir()
    loaded = load_policy(folder)
    names, size = loaded.manifest.obs_names, loaded.manifest.obs_size
    state = torch.load(folder / "training.pt", weights_only=True)
    obs = np.random.default_rng(1).normal(size=(1, 1, size)).astype(np.float32)
    _, _, critic = make_networks(
        PolicyShape(size, "categorical", (90,), (384, 384), None, network="attention", names=tuple(names)),
        (384, 384),
    )
    critic.load_state_dict(state["critic"])
    with torch.inference_mode():
        rows, _ = loaded.policy.show_network(obs[0])
        expected = float(critic(torch.from_numpy(rows))[0, 0])
    assert value_when_loaded(folder, obs) == pytest.approx(expected, abs=1e-3)


def save_critic(folder: Path, deviation: float = 1.0) -> dict[str, np.ndarray]:
    """Write what training writes into a checkpoint, as far as it is read here; return the critic."""
    torch, random = pytest.importorskip("torch"), np.random.default_rng(0)
    critic = {
        "layers.0.weight": random.normal(size=(6, OBS)), "layers.0.bias": random.normal(size=6),
        "layers.1.weight": random.normal(size=(1, 6)), "layers.1.bias": random.normal(size=1),
    }  # fmt: skip
    state = {
        "critic": {name: torch.tensor(numbers, dtype=torch.float32) for name, numbers in critic.items()},
        "settings": {"standardize_returns": deviation != 1.0},
        "return_scale": (100, torch.zeros(1), torch.full((1,), 100 * deviation**2)),
    }
    torch.save(state, folder / "training.pt")
    return critic


def test_critics_of_a_long_run_do_not_fill_the_memory(tmp_path: Path) -> None:
    car_drivers._critic_of.cache_clear()
    for number in range(30):
        car_drivers._critic_of(tmp_path / str(number))
    assert car_drivers._critic_of.cache_info().currsize <= 8


def value_when_loaded(folder: Path, obs: np.ndarray) -> float | None:
    policy = load_policy(folder).policy
    estimate_value(policy, obs)
    car_drivers._critic_of(folder).result(60)
    return estimate_value(policy, obs)


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
