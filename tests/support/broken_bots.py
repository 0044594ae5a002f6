"""Folders of bots that are broken on purpose, each in one way, on rlbot's own classes."""

import shlex
import sys
from pathlib import Path
from typing import Final

_HEAD: Final = """
import math, os, sys, time
from rlbot import flat
from rlbot.managers import Bot

class Broken(Bot):
    seen_goal = False

    def get_output(self, packet):
        me, ball = packet.players[self.index].physics, packet.balls[0].physics.location
        angle = math.atan2(ball.y - me.location.y, ball.x - me.location.x) - me.rotation.yaw
        angle = (angle + math.pi) % (2.0 * math.pi) - math.pi
        return flat.ControllerState(throttle=1.0, steer=max(-1.0, min(1.0, 3.0 * angle)))
"""

_DRIVE: Final = "drive = Broken.get_output\n"

_BODIES: Final = {
    "fine": "",
    "wrong agent id": 'os.environ["RLBOT_AGENT_ID"] = "somebody/else"',
    "connects twice": "import socket\n"
    "def initialize(self):\n"
    "    self.other = socket.create_connection(('127.0.0.1', int(os.environ['RLBOT_SERVER_PORT'])))\n"
    "    settings = flat.ConnectionSettings('somebody/else', False, False, True)\n"
    "    message = flat.InterfacePacket(settings).pack()\n"
    "    self.other.sendall(len(message).to_bytes(2, 'big') + message)\n"
    "    self.other.recv(2)\n"
    "Broken.initialize = initialize",
    "never connects": "time.sleep(600.0)",
    "wrong port": 'os.environ["RLBOT_SERVER_PORT"] = "23234"',
    "crashes in initialize": "def initialize(self): raise ValueError('no weights here')\n"
    "Broken.initialize = initialize",
    "hangs in initialize": "Broken.initialize = lambda self: time.sleep(600.0)",
    "raises": "def get_output(self, packet): raise IndexError('no such car')\nBroken.get_output = get_output",
    "slow": _DRIVE + "def get_output(self, packet):\n    time.sleep(0.05)\n    return drive(self, packet)\n"
    "Broken.get_output = get_output",
    "stands still": "Broken.get_output = lambda self, packet: flat.ControllerState()",
    "not a number": _DRIVE + "def get_output(self, packet):\n    out = drive(self, packet)\n"
    "    out.steer = math.nan if packet.match_info.frame_num % 2 else out.steer\n    return out\n"
    "Broken.get_output = get_output",
    "dies after a goal": _DRIVE + "def get_output(self, packet):\n"
    "    if sum(team.score for team in packet.teams):\n"
    "        print('score does not fit', file=sys.stderr, flush=True)\n        os._exit(3)\n"
    "    return drive(self, packet)\nBroken.get_output = get_output",
    "stops when demolished": _DRIVE + "def get_output(self, packet):\n"
    "    self.seen_goal |= packet.players[self.index].demolished_timeout >= 0\n"
    "    return flat.ControllerState() if self.seen_goal else drive(self, packet)\n"
    "Broken.get_output = get_output",
    "gives up in overtime": _DRIVE + "def get_output(self, packet):\n"
    "    if packet.match_info.is_overtime: raise RuntimeError('no plan for overtime')\n"
    "    return drive(self, packet)\nBroken.get_output = get_output",
    "comes only at the beginning": _DRIVE + "def get_output(self, packet):\n"
    "    if not hasattr(self, 'was_there'): self.was_there = int(packet.match_info.match_phase) < 2\n"
    "    return drive(self, packet) if self.was_there else flat.ControllerState()\n"
    "Broken.get_output = get_output",
    "drives only in a duel": _DRIVE + "def get_output(self, packet):\n"
    "    return drive(self, packet) if len(packet.players) == 2 else flat.ControllerState()\n"
    "Broken.get_output = get_output",
    "stays": "Broken.retire = lambda self: time.sleep(600.0)",
}  # fmt: skip


def make_bot(folder: Path, kind: str = "fine", **changes: str) -> Path:
    """Write a bot's folder of a kind in `_BODIES`; `changes` are lines of `bot.toml`, empty ones left out."""
    folder.mkdir(parents=True, exist_ok=True)
    run = "Broken().run(wants_match_communications=False, wants_ball_predictions=False)\n"
    (folder / "bot.py").write_text(f"{_HEAD}\n{_BODIES[kind]}\n{run}", encoding="utf-8")
    (folder / "loadout.toml").write_text("[blue_loadout]\ncar_id = 23\n[orange_loadout]\ncar_id = 23\n")
    command = shlex.join([sys.executable, "bot.py"])
    settings = {
        "agent_id": '"tests/broken"', "name": '"Broken"', "loadout_file": '"loadout.toml"',
        "run_command": "'python bot.py'", "run_command_linux": f"'{command}'",
    }  # fmt: skip
    details = {
        "description": '"Broken on purpose"', "developer": '"tests"', "language": '"Python"',
        "tags": '["1v1"]',
    }  # fmt: skip
    for key, value in changes.items():
        (details if key in details else settings)[key] = value
    lines = []
    for title, table in (("settings", settings), ("details", details)):
        lines += [f"[{title}]", *(f"{key} = {value}" for key, value in table.items() if value)]
    (folder / "bot.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
