"""Play one match in real time in a process of its own, and write what the server did in each tick.

`python -m tools.watched_server FILE SETTINGS` writes JSON to FILE. SETTINGS are JSON: the arguments
of `watched_play` but for the folder, which is the file's. There the bots write what they did, too.
"""

import json
import shlex
import sys
from array import array
from pathlib import Path
from typing import Any

from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.live.agent_recorder import RECORD_VARIABLE
from rlgym_bridge.recording.mcap.drawable import state_message
from rlgym_bridge.recording.mcap.mcap_writer import Recorder
from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.bot_account import BotAccount
from rlgym_bridge.server.lineup import empty_match, with_environment, with_line_up
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.pace import RealTime
from tools.loaded_server import Meanwhile
from tools.thread_watch import ThreadWatch


def watched_play(seconds: float, team_size: int, bot: str, folder: Path, record: bool) -> dict[str, Any]:
    """Play a bot against itself for some seconds of wall time.

    Returns:
        `ticks`: numbers of one `ThreadSample` when a packet had been sent, and of another when the wait after
        it was over, tick by tick; `replies`: pairs of when an answer came and how long after its packet [s];
        `imported`: all modules imported.
    """
    watch = ThreadWatch()
    replies, count = array("d"), round(seconds * TICKS_PER_SECOND)
    wait, reply = RealTime.wait, BotAccount.reply
    recorder = Recorder(folder / "server.mcap", prepare=state_message) if record else None
    server = MatchServer(seconds=3600.0, max_overtime=0.0, recorder=recorder, on_progress=lambda status: None)

    def note_tick(pace: RealTime, lobby: Lobby, sent_at: float, meanwhile: Meanwhile = None) -> None:
        nonlocal count
        watch.note(watch.read()._replace(at=sent_at))
        wait(pace, lobby, sent_at, meanwhile)
        watch.note(watch.read())
        count -= 1
        if count == 0:
            server.stop()

    def note_reply(account: BotAccount, now: float) -> None:
        replies.extend((now, now - account.sent_at))
        reply(account, now)

    RealTime.wait = note_tick  # type: ignore[method-assign]
    BotAccount.reply = note_reply  # type: ignore[method-assign]
    try:
        with server:
            server.play(_watched_match(team_size, bot, folder, record))
    finally:
        RealTime.wait, BotAccount.reply = wait, reply  # type: ignore[method-assign]
        if recorder is not None:
            recorder.close()
    return {"ticks": list(watch.samples), "replies": list(replies), "imported": watch.imported}


def _watched_match(team_size: int, bot: str, folder: Path, record: bool) -> flat.MatchConfiguration:
    """Return a match of a bot against itself whose processes write what they did to the folder."""
    match = with_line_up(empty_match(), [bot] * team_size, [bot] * team_size)
    variables = []
    for number, player in enumerate(match.player_configurations):
        assert isinstance(player.variety, flat.CustomBot)
        command = [sys.executable, "-m", "tools.watched_bot", str(folder / f"bot-{number}.json"), bot]
        player.variety.run_command = shlex.join(command)
        variables.append({RECORD_VARIABLE: str(folder / f"bot-{number}.mcap")} if record else {})
    with_environment(match, variables)
    return match


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(json.dumps(watched_play(folder=target.parent, **json.loads(sys.argv[2]))))
