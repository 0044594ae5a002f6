"""The README's examples do what it says."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlgym_bridge.game import Phase
from rlgym_bridge.live.pilot import Faults, Pilot
from rlgym_bridge.server.packer import field_info
from tests.engines.worlds import serving
from tests.live.test_agent import CONFIG, Always, at, brain, sent
from tests.live.test_decoder import player
from tests.recorded_matches import record
from tests.server.helpers import go_on, kicked_off, place_of

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def run(word: str, **names: Any) -> dict[str, Any]:
    """Run the one Python example that has a word in it; return its names."""
    (example,) = (one for one in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if word in one)
    exec(example, names)
    return names


def test_the_example_of_state_setting_sets_ball_and_car() -> None:
    messages: list[Any] = []
    run(
        "DesiredGameState", manager=SimpleNamespace(rlbot_interface=SimpleNamespace(send_msg=messages.append))
    )
    match = kicked_off()
    assert match.set_state(messages.pop()) and not messages
    packet = go_on(match)
    assert place_of(packet.balls[0].physics.location) == (0, 0, 1000)
    assert place_of(packet.players[0].physics.location) == pytest.approx((0, -2000, 17), abs=0.01)
    assert packet.players[0].boost == 100
    assert go_on(match, 30).balls[0].physics.location.z < 990


def test_the_example_of_an_override_drives_the_kickoffs_it_names_and_no_others() -> None:
    played: dict[str, Any] = {}
    run("def kickoff", policy="chaser", play=lambda policy, **more: played.update(more))
    for x, forward in ((0.0, [1.0, 0, 0, 0, 0, 0, 1, 0]), (256.0, [0.0] * 8)):
        car = player()
        car.physics.location.x = x
        one = Pilot(
            brain(Always()), field_info(), CONFIG, [7], Faults(logging.getLogger("tests")), played["override"]
        )
        assert sent(one, at(1, Phase.KICKOFF, car))[0][1] == forward
        assert not one._faults.counts


def test_the_example_of_rlgym_over_a_match_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (host, port):
        monkeypatch.setenv("RLBOT_SERVER_IP", host)
        monkeypatch.setenv("RLBOT_SERVER_PORT", str(port))
        names = run("env = RLGym(")
        against = run("with_line_up")["engine"]
        against.close()
    assert set(names["obs"]) == {"blue-0", "orange-0"}
    assert against.agents == ["blue-0"]


def test_the_example_of_training_from_recorded_states_trains(tmp_path: Path) -> None:
    record(tmp_path / "match.mcap", seconds=5, seed=1)
    (module,) = re.findall(r"```python\n# recorded_bot.py\n(.*?)```", README, re.DOTALL)
    (tmp_path / "recorded_bot.py").write_text(module)
    (tmp_path / "my.toml").write_text(
        "collectors = 1\nmatches = 8\nrollout_steps = 8\nsteps = 200\n"
        'components = "recorded_bot"\n[my]\nmatches = ["match.mcap"]\n'
    )
    command = [sys.executable, "-m", "training", "my.toml", "--out", "run", "-q"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr


def test_the_example_of_a_bot_of_ones_own_trains(tmp_path: Path) -> None:
    (config,) = re.findall(r"```toml\n# my.toml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "my.toml").write_text(
        "collectors = 1\nmatches = 8\nrollout_steps = 8\nsteps = 200\n" + config
    )
    for name in ("my_bot", "my_parts"):
        (module,) = re.findall(rf"```python\n# {name}.py\n(.*?)```", README, re.DOTALL)
        (tmp_path / f"{name}.py").write_text(module)
    command = [sys.executable, "-m", "training", str(tmp_path / "my.toml"), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "checkpoints" / "latest").exists()
    assert "1v1 of my_bot: 114 numbers, categorical actions (90,)" in done.stderr
    words = ["training.evaluate", "run", "chaser", "--matches", "2", "--seconds", "5", "--processes", "1"]
    played = [sys.executable, "-m", *words, "--allow-modules", "my_parts"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(played, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
