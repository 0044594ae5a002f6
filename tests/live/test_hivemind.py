"""One process plays several cars, each as a process of its own would."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.spec import ComponentSpec
from rlgym_bridge.game import Phase
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.recording.mcap.channels import Decision
from rlgym_bridge.recording.mcap.mcap_reader import read_contents
from tests.support.made_packets import at, player
from tests.support.players_by_hand import Always, live_player, neutral, player_of, sent
from tests.support.policy_folders import KINDS, random_weights, save
from tests.support.stepped_match import kicked_off

IDS = [7, 8, 9]
NORMS = {
    f"norms.0.{part}": np.full(64, value, np.float32) for part, value in (("weight", 1.5), ("bias", 0.1))
}


def team_of_three(folder: Path, kind: str) -> PlayerSpec:
    if kind == "chaser":
        return load_player("chaser")
    distribution = kind.split()[0]
    size = DefaultObs(zero_padding=None).size(3, 3)
    weights = random_weights(size, 64, KINDS[distribution][2])
    more: dict[str, Any] = {"activation": "silu"} if kind.endswith("normalised") else {}
    save(
        folder, distribution, team_sizes=[(3, 3)], weights=weights | (NORMS if more else {}),
        obs=ComponentSpec.of(DefaultObs, zero_padding=None), **more,
    )  # fmt: skip
    return load_player(folder)


@pytest.mark.parametrize("kind", ["categorical", "multi_categorical", "gaussian normalised", "chaser"])
def test_a_hivemind_plays_each_car_as_alone(kind: str, tmp_path: Path) -> None:
    match = kicked_off(3)
    ids = [seat.player_id for seat in match.packet().players[:3]]
    hive, *alone = (
        player_of(team_of_three(tmp_path, kind), own, seed=5) for own in (ids, *([one] for one in ids))
    )
    moved = set()
    for _ in range(120):
        packet = flat.GamePacket.unpack(match.packet().pack())
        for one in (hive, *alone):
            one.see(packet)
        answers = [(index, row.tobytes()) for index, row in hive.inputs()]
        assert answers == [(index, row.tobytes()) for one in alone for index, row in one.inputs()]
        moved |= set(answers)
        for index, row in hive.inputs():
            controls = flat.ControllerState(*map(float, row[:5]), *(bool(one > 0) for one in row[5:]))
            match.hold(index, controls)
        match.advance()
    assert not any(one.faults.counts for one in (hive, *alone))
    assert len(moved) > 9  # of three cars


def test_the_other_cars_play_while_one_is_missing() -> None:
    one = live_player(Always(), ids=IDS)
    there = [player(player_id=number) for number in IDS]
    for frame in range(1, 12):
        answer = sent(one, at(frame, Phase.ACTIVE, *there))
    assert [index for index, _ in answer] == [0, 1, 2] and not neutral(answer)
    for frame in range(12, 30):
        answer = sent(one, at(frame, Phase.ACTIVE, there[2], there[0]))
        assert sorted(index for index, _ in answer) == [0, 1]
    assert not any(row == [0.0] * 8 for _, row in answer)
    for frame in range(30, 40):
        answer = sent(one, at(frame, Phase.ACTIVE, *there))
    assert [index for index, _ in answer] == [0, 1, 2]
    assert not any(row == [0.0] * 8 for _, row in answer)
    assert one.faults.counts == {"car missing": 1}


def test_only_a_car_with_bad_controls_stands_still() -> None:
    class Parser(LookupTableAction):
        def parse_actions(self, actions: Any, state: Any, shared_info: Any) -> Any:
            first = min(actions)
            return {agent: np.full(8, np.nan if agent == first else 1.0) for agent in actions}

    one = live_player(Always(0), ids=IDS, parser=Parser())
    there = [player(player_id=number) for number in IDS]
    for frame in range(1, 20):
        answer = sent(one, at(frame, Phase.ACTIVE, *there))
    assert [row == [0.0] * 8 for _, row in answer] == [True, False, False]
    assert one.faults.counts["bad controls"] >= 2


def test_a_policy_that_fails_leaves_all_cars_neutral() -> None:
    one = live_player(Always(RuntimeError("no idea")), ids=IDS)
    there = [player(player_id=number) for number in IDS]
    for frame in range(1, 20):
        assert neutral(sent(one, at(frame, Phase.ACTIVE, *there)))


def bot_toml(folder: Path, policy: str | Path, hivemind: bool) -> Path:
    file = folder / f"{'hive' if hivemind else 'single'}.bot.toml"
    command = f"'{sys.executable}' -P -m rlgym_bridge.live {policy}"
    file.write_text(
        f'[settings]\nagent_id = "tests/team"\nname = "Team"\nhivemind = {json.dumps(hivemind)}\n'
        f"run_command = {json.dumps(command)}\nrun_command_linux = {json.dumps(command)}\n"
    )
    return file


def played(folder: Path, policy: str | Path, hivemind: bool, monkeypatch: Any, *more: str) -> Any:
    """Play three cars of one team, recorded; return the recording and the JSON."""
    monkeypatch.chdir(folder)
    bot, name = str(bot_toml(folder, policy, hivemind)), f"match-{hivemind}"
    words = ["match", "--blue", bot, bot, bot, "--pace", "lockstep", "--seed", "4", "-q"]
    words += ["--max-overtime", "0", *more]
    assert main([*words, "--record", f"{name}.mcap", "--json", f"{name}.json"]) == 0
    return read_contents(folder / f"{name}.mcap"), json.loads((folder / f"{name}.json").read_text())


@pytest.mark.usefixtures("short_countdowns")
def test_a_match_file_bot_with_hivemind_true_is_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents, result = played(tmp_path, "chaser", True, monkeypatch, "--seconds", "1")
    ours = result["bots"][:3]
    assert [(bot["replies"], bot["missed"]) for bot in ours] == 3 * [(result["ticks"], 0)]
    assert len([topic for topic in contents.topics if topic.endswith("/decisions")]) == 1
    team = contents.topics["/agents/tests/team/decisions"]
    assert all(Decision.from_bytes(one.frame, one.content).seats.tolist() == [0, 1, 2] for one in team)
    inputs = contents.topics["/agents/tests/team/inputs"]
    assert {int.from_bytes(one.content[:4], "little") for one in inputs} == {0, 1, 2}
