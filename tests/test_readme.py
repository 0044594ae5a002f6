"""The README's examples do what it says."""

import logging
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlgym_bridge.game import Phase
from rlgym_bridge.live.faults import Faults
from rlgym_bridge.live.player import LivePlayer
from rlgym_bridge.policy.files import policy_path
from rlgym_bridge.server.packer import field_info
from tests.live.test_agent import CONFIG, Always, at, brain, sent
from tests.live.test_decoder import player
from tests.support.processes import run_to_end
from tests.support.recorded_matches import record
from tests.support.rlgym_worlds import serving
from tests.support.stepped_match import go_on, kicked_off, place_of

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
        one = LivePlayer(
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
    done = run_to_end(command, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of README's bot of one's own, after `python -m training my.toml --out runs/mine`."""
    folder = tmp_path_factory.mktemp("own")
    (config,) = re.findall(r"```toml\n# my.toml\n(.*?)```", README, re.DOTALL)
    few = "collectors = 1\nmatches = 8\nrollout_steps = 8\nsteps = 300\ncheckpoint_every = 100\n"
    (folder / "my.toml").write_text(few + config)
    for name in ("my_bot", "my_parts"):
        (module,) = re.findall(rf"```python\n# {name}.py\n(.*?)```", README, re.DOTALL)
        (folder / f"{name}.py").write_text(module)
    said = of_module(folder, "training my.toml --out runs/mine")
    assert "1v1 of my_bot: 114 numbers, categorical actions (90,)" in said
    of_module(folder, f"{MATCH} --blue runs/mine --seconds 20 --record match.mcap")
    return folder


MATCH = "rlgym_bridge.cli match --orange chaser --pace lockstep --max-overtime 0"
SHORT = "--seconds 5 --matches 2 --processes 1"


def of_module(folder: Path, words: str, code: int = 0) -> str:
    """Run `python -m` of some words in a folder; return what it said."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = run_to_end([sys.executable, "-m", *words.split()], cwd=folder, env=environment)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        f"training.evaluate runs/mine chaser {SHORT}",
        f"training.evaluate chaser runs/mine/checkpoints/latest {SHORT}",
        f"training.sim_vs_server runs/mine chaser {SHORT}",
        f"training.ratings runs/mine --most 2 {SHORT}",
        "training.average runs/mine --out average",
        "training.imitate match.mcap --run runs/mine --epochs 1 --layers 8 --out runs/clone",
        "rlgym_bridge.cli parity --policy runs/mine --ticks 2000",
    ],
    ids=lambda words: " ".join(words.split()[:2]),
)
def test_the_next_commands_take_the_run_of_a_bot_of_ones_own_as_it_is(words: str, own: Path) -> None:
    of_module(own, words)


def test_episodes_are_made_of_what_the_run_of_a_bot_of_ones_own_has_played(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlgym_bridge.policy.run_modules import run_modules
    from rlgym_bridge.rllib import episodes_from_recording

    monkeypatch.syspath_prepend(own)
    assert episodes_from_recording(own / "match.mcap", allow_modules=run_modules(own / "runs" / "mine"))
    with pytest.raises(ValueError, match="importing it would run code of my_parts"):
        episodes_from_recording(own / "match.mcap")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (f"training.evaluate bare chaser {SHORT}", 2),
        (f"{MATCH} --blue bare --seconds 2", 1),
        ("rlgym_bridge.cli parity --policy bare", 2),
        ("training.imitate match.mcap --out clone", 2),
    ],
    ids=lambda words: str(words).partition(" ")[0],
)
def test_a_policy_folder_by_itself_is_still_asked_about(words: str, code: int, own: Path) -> None:
    run = own / "runs" / "mine"
    shutil.copytree(policy_path(str(run)), own / "bare", dirs_exist_ok=True)
    shutil.copy(run / "run.toml", own / "bare")  # a policy folder is no run, whatever lies in it
    said = of_module(own, words, code)
    assert "--allow-modules my_parts" in said
