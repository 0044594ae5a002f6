"""Bots of others, from a folder that an environment variable names: they answer the server's packets.

    RLGYM_BRIDGE_FOREIGN_BOTS=~/bots python -m pytest tests/server/test_third_party_bots.py -m slow -s

The folder holds bots' folders. Every `bot.toml` and `NAME.bot.toml` in it is a bot, started with its own
command.
"""

import os
import re
from pathlib import Path
from typing import Final

import pytest
from rlbot import flat

from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.bot_files import read_bot
from tests.support.stepped_match import match_of, player

FOLDER: Final = os.environ.get("RLGYM_BRIDGE_FOREIGN_BOTS", "")
SECONDS: Final = 60.0
UNANSWERED: Final = 0.01  # share of the packets in which inputs move cars: some bots rest in countdowns


def bot_files() -> list[Path]:
    """List the bots' files; a match file beside them describes no bot."""
    return sorted(path for path in Path(FOLDER).rglob("*bot.toml") if has_agent(path)) if FOLDER else []


def has_agent(path: Path) -> bool:
    return re.search(r"^agent_id", path.read_text(encoding="utf-8"), re.MULTILINE) is not None


@pytest.mark.slow
@pytest.mark.odd_packets("some of these bots set the state")
@pytest.mark.skipif(not FOLDER, reason="RLGYM_BRIDGE_FOREIGN_BOTS names no folder of bots")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("pace", ["lockstep", "realtime"])
@pytest.mark.parametrize("file", bot_files(), ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_a_foreign_bot_answers_99_of_100_packets(file: Path, pace: str, tmp_path: Path) -> None:
    bot = read_bot(file, 0, "", None)
    assert isinstance(bot.variety, flat.CustomBot)
    blue = [read_bot(file, 0, "", None) for _ in range(1 + bot.variety.hivemind)]
    opponents = [player(1) for _ in blue]
    settings = {"seconds": SECONDS, "max_overtime": 0.1, "log_dir": tmp_path, "connect_timeout": 120.0}
    with MatchServer(pace=pace, seed=1, **settings) as server:
        result = server.play(match_of(*blue, *opponents, enable_state_setting=True))
    for one in result.bots[: len(blue)]:
        share = one.unanswered / result.playing_ticks
        print(f"\n{one.name}, {pace}: {100.0 * share:.2f} % of {result.playing_ticks} unanswered in play, "
              f"{one.late} of {one.late + one.replies} in all, {one.touches} touches, "
              f"p99 {one.reply_p99_ms:.1f} ms", end="")  # fmt: skip
        assert one.connected, one.log_tail
        assert share < UNANSWERED, Path(str(one.log_path)).read_text(encoding="utf-8")[-2000:]
