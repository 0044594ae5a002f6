"""BOT arguments put into a match."""

import os
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.game import HITBOX_OF_BODY, HITBOXES
from rlgym_bridge.server import ConfigError
from rlgym_bridge.server.lineup import empty_match, with_line_up
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.state import MatchState
from rlgym_bridge.training.evaluate import play_matches
from tests.support.policy_folders import save


@pytest.mark.parametrize("hitbox", [box.name for box in HITBOXES])
def test_a_policy_drives_the_hitbox_it_was_trained_with(hitbox: str, tmp_path: Path) -> None:
    save(tmp_path, hitbox=hitbox)
    match = with_line_up(empty_match(), [str(tmp_path)], ["chaser"])
    loadout = match.player_configurations[0].variety.loadout
    body = 0 if loadout is None else loadout.car_id
    assert HITBOXES[HITBOX_OF_BODY.get(body, 0)].name == hitbox


def test_evaluation_gives_it_that_hitbox_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, hitbox="merc")
    seen, put = [], RocketSim2.put

    def spied(self: RocketSim2, matches: Any, wanted: MatchState) -> None:
        seen.append(wanted.car_hitbox.copy())
        put(self, matches, wanted)

    monkeypatch.setattr(RocketSim2, "put", spied)
    play_matches("chaser", tmp_path, 1, seconds=1, simulator="rocketsim2")
    names = [[HITBOXES[int(number)].name for number in row] for row in seen[0]]
    assert names == [["octane", "merc"]]


def name_of(policy: Path) -> str:
    """Return the name of a policy in a match against Chaser."""
    match = with_line_up(empty_match(), [str(policy)], ["chaser"])
    return match.player_configurations[0].variety.name


def test_the_folder_of_a_run_stands_for_its_newest_checkpoint(tmp_path: Path) -> None:
    for steps in (90, 100):
        save(tmp_path / "checkpoints" / str(steps))
    assert name_of(tmp_path) == f"{tmp_path.name} 100"
    (tmp_path / "checkpoints" / "latest").write_text("90\n")
    assert name_of(tmp_path / "checkpoints" / "latest") == f"{tmp_path.name} 90"
    with pytest.raises(ConfigError, match="expected a policy folder, a run"):
        with_line_up(empty_match(), [str(tmp_path / "checkpoints" / "none")], ["chaser"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_policys_manifest_is_named(tmp_path: Path) -> None:
    save(tmp_path)
    (tmp_path / "policy.json").unlink()
    os.mkfifo(tmp_path / "policy.json")
    with pytest.raises(ConfigError, match=r"policy\.json cannot be read: it is a named pipe"):
        with_line_up(empty_match(), [str(tmp_path)], ["chaser"])


def test_a_bots_own_policy_has_the_name_of_the_bot(tmp_path: Path) -> None:
    save(tmp_path / "policy")
    for text, name in (('[settings]\nname = "Bridge"\n', "Bridge"), ("[settings", "policy"), ("", "policy")):
        (tmp_path / "bot.toml").write_text(text)
        assert name_of(tmp_path / "policy") == name
