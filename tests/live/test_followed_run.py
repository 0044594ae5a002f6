"""A bot that follows a training run takes newer checkpoints at kickoffs, never in play."""

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.game import Phase
from rlgym_bridge.live.followed_run import FollowedRun, misfit
from rlgym_bridge.live.play import Agent
from rlgym_bridge.live.player import Faults, LivePlayer
from rlgym_bridge.server.game.packer import field_info
from tests.support.made_packets import at
from tests.support.players_by_hand import CONFIG, Always, FakeServer, brain
from tests.support.policy_folders import save
from tests.support.stepped_match import match_of, player

FORWARD, BACKWARD = 16, 0  # of RLGym's lookup table


def spec_of(folder: Path) -> PlayerSpec:
    """A policy that always takes the action which is the folder's name."""
    return brain(Always(int(folder.name)))


class Followed:
    """A player of a run, packet by packet."""

    def __init__(self, folder: Path, load: Callable[[Path], PlayerSpec] = spec_of, config: Any = CONFIG):
        self.folder, self.config = folder, config
        self.checkpoint(BACKWARD)
        self.run = FollowedRun(folder, load)
        faults = Faults(logging.getLogger("tests"))
        self.player = LivePlayer(self.run.spec, field_info(), config, [7], faults)
        self.frame = 0

    def checkpoint(self, number: int) -> None:
        (self.folder / "checkpoints" / str(number)).mkdir(parents=True)

    def throttle(self, phase: int, packets: int = 20) -> float:
        """Return the throttle after some packets of a phase."""
        for _ in range(packets):
            self.frame += 1
            packet = at(self.frame, phase)
            self.player.see(packet)
            self.run.see(packet, self.player, self.config)
        ((_, row),) = self.player.inputs()
        return float(row[0])


def test_a_newer_checkpoint_is_taken_at_the_countdown(tmp_path: Path) -> None:
    one = Followed(tmp_path)
    assert one.throttle(Phase.COUNTDOWN) == 0.0
    one.checkpoint(FORWARD)
    assert one.throttle(Phase.COUNTDOWN) == 0.0  # this countdown began before
    assert one.throttle(Phase.KICKOFF) == one.throttle(Phase.ACTIVE) == -1.0
    for phase in (Phase.GOAL_SCORED, Phase.REPLAY, Phase.COUNTDOWN):
        assert one.throttle(phase) == 0.0
    assert one.throttle(Phase.KICKOFF) == one.throttle(Phase.ACTIVE) == 1.0
    assert one.run.taken == ["0", "16"] and not one.player.faults.counts


@pytest.mark.parametrize("kind", ["broken", "of other team sizes"])
def test_a_checkpoint_that_cannot_play_leaves_the_one_before(kind, tmp_path):
    tried = []

    def load(folder: Path) -> PlayerSpec:
        tried.append(folder.name)
        if folder.name != "0" and kind == "broken":
            raise ValueError("its weights are half a file")
        return replace(spec_of(folder), team_sizes=((1, 1),) if folder.name == "0" else ((3, 3),))

    one = Followed(tmp_path, load, match_of(player(0), player(1)))
    assert misfit(one.run.spec, one.config) is None
    one.checkpoint(FORWARD)
    for _ in range(2):
        one.throttle(Phase.COUNTDOWN)
        assert one.throttle(Phase.ACTIVE) == -1.0
    assert tried == ["0", "16"] and one.run.taken == ["0"]
    assert one.player.faults.counts == {"checkpoint not taken": 1}


@pytest.mark.parametrize("kind", ["gone", "file", "unreachable"])
def test_a_run_that_cannot_be_read_any_more_plays_on(kind: str, tmp_path: Path) -> None:
    one = Followed(tmp_path / "run")
    folder = tmp_path / "run" / "checkpoints"
    folder.rename(tmp_path / "moved")
    if kind == "file":
        folder.write_text("no folder")
    elif kind == "unreachable":
        folder.symlink_to("x" * 300)  # the system says that this name is too long
    one.throttle(Phase.COUNTDOWN)
    assert one.throttle(Phase.ACTIVE) == -1.0
    folder.unlink(missing_ok=True)
    (tmp_path / "moved").rename(folder)
    one.checkpoint(FORWARD)
    one.throttle(Phase.COUNTDOWN)
    assert one.throttle(Phase.ACTIVE) == 1.0


def test_a_new_connection_plays_what_was_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Followed(tmp_path)
    server = FakeServer()
    monkeypatch.setenv("RLBOT_SERVER_PORT", str(server.port))
    agent = Agent(one.run.spec, "tests/follower", followed=one.run)
    played = threading.Thread(target=agent.run, daemon=True)
    played.start()
    server.handshake()
    one.checkpoint(FORWARD)
    server.send(at(1, Phase.COUNTDOWN))
    server.read()
    server.peer.close()
    server.handshake()
    for frame in range(2, 12):
        server.send(at(frame, Phase.ACTIVE))
        last = server.read()
    assert last.controller_state.throttle == 1.0
    server.peer.close()
    assert list(agent.report.checkpoints) == ["0", "16"]


@pytest.mark.usefixtures("short_countdowns")
def test_a_match_follows_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "run" / "checkpoints" / "100")
    words = ["match", "--follow", "run", "--orange", "chaser", "--pace", "lockstep", "--seconds", "1"]
    assert main([*words, "--max-overtime", "0", "-q", "--json", "result.json"]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    followed, chaser = result["bots"]
    assert (followed["name"], followed["checkpoints"], chaser["checkpoints"]) == ("run", ["100"], [])
    assert followed["replies"] == result["ticks"] and not followed["faults"] and not result["unrepeatable"]


def test_what_is_no_run_cannot_be_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path)
    assert main(["match", "--follow", str(tmp_path)]) == 2
    assert "expected the folder of a training run" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["match", "--follow", str(tmp_path), "--blue", "chaser"])
