"""The scripted bots that judge a policy play, and players may be given in place of names."""

import json
from pathlib import Path

import numpy as np

from rlgym_bridge.game import HITBOX_NAMES
from rlgym_bridge.state import MatchState
from rlgym_bridge.training.evaluate import evaluate
from rlgym_bridge.training.scenes import StandingDriver, scripted_player
from tests.support.judging_bots import keeper, striker
from tests.support.simulators import needs_native
from tools import judge_bot


class MercsAlone(StandingDriver):
    """Stands, and fails where its cars are no Mercs or the others are."""

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        merc = HITBOX_NAMES.index("merc")
        own = np.isin(np.arange(state.layout.cars), self._cars)
        assert ((state.car_hitbox == merc) == own).all()
        return super().act(obs, state)


def test_each_player_has_its_hitbox_from_either_side() -> None:
    standing, mercs = (scripted_player(kind, 8) for kind in (StandingDriver, MercsAlone))
    found = evaluate(mercs, standing, 2, seconds=2, team_size=2, hitboxes=["merc", None], processes=1)
    assert found.results == (0, 2, 0)


def test_the_scripted_bots_play_the_ball() -> None:
    standing = scripted_player(StandingDriver, 8)
    found = evaluate(striker(), standing, 10, team_size=1, processes=1)
    assert found.goals[:, 0].sum() >= 8 and found.goals[:, 1].sum() == 0  # 16
    guarding = evaluate(keeper(), striker(), 10, team_size=1, processes=1)
    assert guarding.touches_per_minute[0] > 1


@needs_native
def test_a_judged_bot_has_tables_and_their_numbers(tmp_path: Path) -> None:
    words = ["chaser", "--matches", "2", "--processes", "1", "--only", "delays", "--out", str(tmp_path)]
    judge_bot.main(words)
    rows = json.loads((tmp_path / "judged.json").read_text())["delays"]
    assert [row["ticks of delay"] for row in rows] == [*judge_bot.DELAYS]
    assert all(row["won"] + row["drawn"] + row["lost"] == 2 for row in rows)
    lines = (tmp_path / "judged.md").read_text().splitlines()
    assert len([line for line in lines if line.startswith("|")]) == 2 + len(rows)
