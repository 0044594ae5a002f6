"""Readers to fuzz: each takes bytes, and may raise errors of files and values alone."""

import json
import struct
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from rlbot import flat

from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.physics import read_physics
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.importers import read_checkpoint
from rlgym_bridge.protocol_variant import VariantFile
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.replays.replay_recording import checksum, read_replay
from rlgym_bridge.recording.tables.column_map import read_columns
from rlgym_bridge.recording.tables.table_recording import read_table
from rlgym_bridge.server.bot_files import Source, read_bot, read_script
from rlgym_bridge.server.convert_v4 import convert
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.lineup import read_bot_report
from rlgym_bridge.server.match_file import read_match_file
from rlgym_bridge.training.settings import load_settings
from rlgym_bridge.trials.diagnostic_pack import open_field_pack
from rlgym_bridge.trials.diagnostic_report import read_field_test
from tests.support.made_packets import at, player
from tests.support.made_recordings import of_every_topic, recording_bytes
from tests.support.policy_folders import save
from tests.support.real_data import REAL_DATA
from tools.fuzz.heard_messages import draw, drawn_seeds, hear, heard_seeds
from tools.fuzz.own_folders import ROOT, begin_project, folder, of_file, read_run, resume

ALLOWED: Final = (OSError, ValueError, ImportError)
"""Errors that a reader may raise; any other one is a finding."""

_MAP: Final = 'header = true\n[time]\nseconds = "t"\n[ball]\nposition = ["x", "y", "z"]\n'
_PART: Final = struct.Struct("<II")


@dataclass(frozen=True)
class FuzzTarget:
    """A reader and what it usually reads.

    Attributes:
        name: Of the reader.
        read: Takes the bytes.
        seeds: Makes bytes that it reads without an error, or nearly.
    """

    name: str
    read: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]


@cache
def _packets() -> tuple[bytes, ...]:
    cars = [player(player_id=7 + car, boost=10.0 * car) for car in range(2)]
    return tuple(flat.CorePacket(at(frame, 3, *cars)).pack() for frame in range(1, 6))


def _decode(data: bytes) -> None:
    """Have a client of the game decode messages, each with its length in front, as they arrive."""
    decoder = Decoder(field_info(), None, shadow=False)
    while len(data) >= 2:
        size = int.from_bytes(data[:2], "big")
        payload, data = data[2 : 2 + size], data[2 + size :]
        try:
            message = flat.CorePacket.unpack(payload).message
        except flat.InvalidFlatbuffer:
            continue
        if isinstance(message, flat.GamePacket):
            decoder.update(message)


def _framed(payloads: Sequence[bytes]) -> bytes:
    return b"".join(len(one).to_bytes(2, "big") + one for one in payloads)


def _with_checksums(data: bytes) -> bytes:
    """Return a replay whose checksums are right, so that its content is read."""
    fixed, place = bytearray(data), 0
    for _ in range(2):
        if place + _PART.size > len(fixed):
            break
        size, _ = _PART.unpack_from(fixed, place)
        start = place + _PART.size
        _PART.pack_into(fixed, place, size, checksum(bytes(fixed[start : start + size])))
        place = start + size
    return bytes(fixed)


def _replays() -> list[bytes]:
    files = sorted(REAL_DATA.glob("replays/*.replay"), key=lambda file: file.stat().st_size)
    return [file.read_bytes() for file in files[:1]]


@cache
def _policy() -> Path:
    made = folder() / "policy"
    save(made)
    return made


def _read_policy(name: str) -> Callable[[bytes], object]:
    def run(data: bytes) -> object:
        kept = (_policy() / name).read_bytes()
        (_policy() / name).write_bytes(data)
        try:
            return load_policy(_policy())
        finally:
            (_policy() / name).write_bytes(kept)

    return run


def _read_weights(data: bytes) -> object:
    """Have weights loaded that have the checksum of the manifest."""
    import hashlib

    manifest = _policy() / "policy.json"
    told = json.loads(manifest.read_text())
    told["weights_sha256"] = hashlib.sha256(data).hexdigest()
    manifest.write_text(json.dumps(told))
    return _read_policy("weights.safetensors")(data)


def _scripts() -> list[bytes]:
    import torch

    made = folder() / "seed.pt"
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    torch.jit.script(network.eval()).save(str(made))
    script = made.read_bytes()
    torch.save(network.state_dict(), made)
    return [script, made.read_bytes()]


def _files(*names: str) -> Callable[[], list[bytes]]:
    return lambda: [(ROOT / name).read_bytes() for name in names]


def _one(text: str) -> Callable[[], list[bytes]]:
    return lambda: [text.encode()]


def _table(path: Path) -> object:
    (path.parent / "map.toml").write_text(_MAP)
    return read_table(path, path.parent / "map.toml")


def _read_pack(path: Path) -> None:
    with open_field_pack(path) as pack:
        read_field_test(pack)


def _pack(scenes: bytes) -> bytes:
    """Return a field test with some definitions of scenes."""
    path = folder() / "seed.zip"
    about = {
        "format": 1, "made": "2026", "server": "sim", "versions": {}, "settings": {},
        "parts": [{"name": "scenes", "state": "done"}],
    }  # fmt: skip
    with zipfile.ZipFile(path, "w") as pack:
        pack.writestr("about.json", json.dumps(about))
        pack.writestr("scenes.json", scenes)
        pack.writestr("scenes.mcap", recording_bytes(_packets(), checksums=False))
    return path.read_bytes()


def _scenes() -> bytes:
    body = {"position": [0, 0, 17], "velocity": [1, 0, 0]}
    scene = {
        "name": "a", "kind": "b", "measured": ["car", "ball"], "car": body, "other": body, "ball": body,
        "settle": 1, "steps": [{"ticks": 2, "car": [1, 0, 0, 0, 0, 0, 1, 0]}],
    }  # fmt: skip
    played = {"scene": 0, "asked": 1, "shown": 2, "began": 3, "ended": 5}
    return json.dumps({"scenes": [scene], "played": [played], "notes": ["a"]}).encode()


TARGETS: Final = [
    FuzzTarget("packets", _decode, lambda: [_framed(_packets())]),
    FuzzTarget(
        "messages", lambda data: flat.InterfacePacket.unpack(data), lambda: [flat.InterfacePacket(
            flat.DesiredGameState([flat.DesiredBallState(flat.DesiredPhysics())], [])
        ).pack()],
    ),
    FuzzTarget(
        "recording", of_file("a.mcap", lambda path: read_match(path, shadow=False)),
        lambda: [recording_bytes(_packets(), checksums=False), of_every_topic(_packets(), drawn_seeds()[0])],
    ),
    FuzzTarget("replay", lambda data: of_file("a.replay", read_replay)(_with_checksums(data)), _replays),
    FuzzTarget("match", of_file("m.toml", read_match_file), _one(
        '[rlbot]\nlauncher = "steam"\n[match]\ngame_mode = "Soccar"\nskip_replays = true\n[mutators]\n'
        'gravity = "Low"\n[[cars]]\nteam = "blue"\nconfig_file = "bot/bot.toml"\n'
    )),
    FuzzTarget("match-v4", of_file("m.cfg", read_match_file), _files("rlbot.cfg")),
    FuzzTarget(
        "bot", of_file("bot/fuzzed.toml", lambda path: read_bot(path, 0, "", None)), _files("bot/bot.toml")
    ),
    FuzzTarget("script", of_file("s.toml", read_script), _one(
        '[settings]\nagent_id = "a/b"\nname = "S"\nrun_command = "x"\n'
    )),
    FuzzTarget(
        "fingerprint", _read_policy("fingerprint.json"),
        lambda: [(_policy() / "fingerprint.json").read_bytes()],
    ),
    FuzzTarget("policy", _read_policy("policy.json"), lambda: [(_policy() / "policy.json").read_bytes()]),
    FuzzTarget("weights", _read_weights, lambda: [(_policy() / "weights.safetensors").read_bytes()]),
    FuzzTarget("checkpoint", of_file("a.pt", lambda path: read_checkpoint(path, "relu")), _scripts),
    FuzzTarget("columns", of_file("c.toml", read_columns), _files(
        "docs/columns/example.toml", "docs/columns/json-lines.toml"
    )),
    FuzzTarget("table", of_file("t.csv", _table), _one("t,x,y,z\n0,1,2,3\n0.1,2,3,4\n")),
    FuzzTarget("json-lines", of_file("t.jsonl", _table), _one('{"t": 0, "x": 1, "y": 2, "z": 3}\n')),
    FuzzTarget(
        "dialect", of_file("d.toml", VariantFile.read), _one('[dialect]\npad_timer = "elapsed"\n')
    ),
    FuzzTarget("physics", of_file("p.toml", read_physics), _one(
        '[physics]\nball_drag = {value = 1.0, low = 0.9, high = 1.1}\n'
    )),
    FuzzTarget("convert", of_file("old.cfg", lambda path: convert(Source(path))), lambda: [
        *_files("rlbot.cfg")(), b"[Locations]\nname = A\npython_file = a.py\n[Details]\ntags = a, b\n",
        b"[Bot Loadout]\ncar_id = 23\n[Bot Paint Blue]\ncar_paint_id = 1\n",
    ]),
    FuzzTarget("project", begin_project, lambda: [b"mybot\nme", b'it\'s "a" \\ bot']),
    FuzzTarget("run", read_run, _one('modules = ["my_parts", "a.b"]\n')),
    FuzzTarget("progress", of_file("progress.csv", resume), _one("steps,rating\n1,25.0\n2,nan\n")),
    FuzzTarget("report", of_file("report.json", read_bot_report), _one(
        '{"missed": 3, "faults": {"late": 2}, "dialect_file": "a", "refused": null, "checkpoints": ["1"], '
        '"no_forecast": "a", "forecast": {"latency": 4, "measured": true, "ticks": 2, "forecasts": 9, '
        '"missing": 0, "off_uu": 10, "ball": {"checked": 2, "share_off": 0.5, "mean_error_uu": 1}, '
        '"car": {"checked": 0, "share_off": null, "mean_error_uu": null}}}'
    )),
    FuzzTarget("client", hear, heard_seeds),
    FuzzTarget("drawings", draw, drawn_seeds),
    FuzzTarget("field-test", of_file("a.zip", _read_pack), lambda: [_pack(_scenes())]),
    FuzzTarget("scenes", lambda data: of_file("a.zip", _read_pack)(_pack(data)), lambda: [_scenes()]),
    FuzzTarget("settings", of_file("s.toml", load_settings), _files("training/config.toml")),
]  # fmt: skip
"""All readers of files and messages that others may have written."""


def target(name: str) -> FuzzTarget:
    """Return a target by its name."""
    return next(one for one in TARGETS if one.name == name)


def run_one(one: FuzzTarget, data: bytes) -> Any:
    """Have a target read bytes; errors that it may raise are none."""
    try:
        return one.read(data)
    except ALLOWED:
        return None
