"""Read replays of the game, frame by frame; a body is shown where a frame has it."""

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from rlgym_bridge.game import BLUE, CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.recording.recording import Recording, TimeBase, holes, jumps, motions_of, set_bodies
from rlgym_bridge.recording.replays.replay_actors import Actors
from rlgym_bridge.rotations import from_quaternions
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.extras import explain_install
from rlgym_bridge.user_input.text_files import read_bytes

_RECORDED: Final = ("throttle", "steer", "jump", "boost", "handbrake")
_LEAST_VERSION: Final = 7  # of the network format: before it positions were whole uu
_SLACK_SECONDS: Final = 5 / TICKS_PER_SECOND  # a body's state is up to 4 ticks older than its frame
_MOST_PLAYERS: Final = 64  # of a team over a whole match
_MOST_BYTES: Final = 1 << 24  # a replay of 13,382 frames has 1.0 MB, and takes 0.3 GB of memory
_BODY_NUMBERS: Final = 13
_NO_VECTOR: Final = {"x": 0.0, "y": 0.0, "z": 0.0}
_PART: Final = struct.Struct("<II")  # size and checksum, before each of a replay's two parts
_CHECKSUM_START: Final = 0x10340DFE  # boxcars, src/crc.rs; the polynomial is the usual one
_ALL: Final = 0xFFFFFFFF


def read_replay(path: Path) -> Recording:
    """Read a replay of 2018 or later with network frames, each a row, about 30 a second.

    Of the players' inputs a replay has throttle, steer, boost and handbrake, and what follows a press of
    jump; nothing between frames. Names are dropped. Each kickoff, goal, goal replay, demolition, hole and
    jump begins a new segment. There is a car for each player and team; one who is not there is not shown.
    Raises ImportError without subtr-actor-py, OSError, or ValueError if it is no replay, cut off, damaged,
    too old, or without frames.
    """
    replay = _parse(path)
    frames = (replay.get("network_frames") or {}).get("frames") or []
    if not frames:
        raise ValueError(f"{path} has no network frames, expected those of a match")
    version = replay.get("net_version") or 0
    if version < _LEAST_VERSION:
        raise ValueError(
            f"{path} has network format {version}, expected {_LEAST_VERSION} or later: the game wrote "
            "whole-number positions then"
        )
    arena = dict(replay.get("properties") or ()).get("MapName")  # of a mapping, or of pairs
    actors = Actors(replay["objects"], replay["names"], arena if isinstance(arena, str) else "")
    rows = []
    for number, frame in enumerate(frames):
        # The parser gives None for what is infinite or not a number.
        finite = None not in (frame["time"], frame["delta"])
        if finite:
            actors.advance(frame)
            row = _row(frame["time"], actors)
            finite = None not in row.ball and not any(None in car for car in row.cars)
        if not finite:
            raise ValueError(f"{path} has a number that is not finite in frame {number}: is the file whole?")
        rows.append(row)
    blue = sum(car.team == BLUE for car in actors.cars)
    teams = blue, len(actors.cars) - blue
    if max(teams) > _MOST_PLAYERS:
        raise ValueError(
            f"{path} has {teams[0]} and {teams[1]} players, expected {_MOST_PLAYERS} a team at most"
        )
    return _recording(path.name, rows, actors, teams)


def _parse(path: Path) -> dict[str, Any]:
    try:
        import subtr_actor
    except ImportError as error:
        raise ImportError(f"reading replays needs subtr-actor-py: {explain_install('replay')}") from error
    content = read_bytes(path, _MOST_BYTES, "a replay")
    try:
        replay: dict[str, Any] = subtr_actor.parse_replay(content)
    except Exception as error:  # the parser knows no errors of its own
        raise ValueError(
            f"{path} cannot be read as a replay: {' '.join(str(error).split())}; is the file whole?"
        ) from error
    _check(path, content)
    return replay


def _check(path: Path, content: bytes) -> None:
    """Make sure that a replay is as the game wrote it: of wrong bits the parser makes other states."""
    at = 0
    for name in ("header", "body"):
        size, expected = _PART.unpack_from(content, at)
        at += _PART.size
        found = checksum(content[at : at + size])
        at += size
        if found != expected:
            raise ValueError(
                f"{path} is damaged: its {name} has the checksum {found:08x}, expected {expected:08x} as it "
                "says itself; copy or download it anew"
            )


def checksum(content: bytes) -> int:
    """Return the game's checksum: zlib's, with all bytes and the result read from their last bit on."""
    started = zlib.crc32(content.translate(_MIRRORED), _mirrored(_CHECKSUM_START, 32) ^ _ALL)
    return _mirrored(started, 32)


def _mirrored(number: int, bits: int) -> int:
    return int(f"{number:0{bits}b}"[::-1], 2)


_MIRRORED: Final = bytes(_mirrored(byte, 8) for byte in range(256))


class _Row(NamedTuple):
    """The state after a frame; cars in the order of their first appearance: 24 numbers each."""

    seconds: float
    cut: bool
    phase: int
    clock: int
    ball_shown: bool
    ball: tuple[float, ...]
    cars: list[tuple[float, ...]]


def _row(seconds: float, actors: Actors) -> _Row:
    cars = [(one.shown, one.there, one.boost, *one.controls(), *_numbers(one.body)) for one in actors.cars]
    ball = _numbers(actors.ball)
    return _Row(seconds, actors.cut, actors.phase, actors.clock, actors.ball_shown, ball, cars)


def _numbers(body: Mapping[str, Any] | None) -> tuple[float, ...]:
    """Return a rigid body's 13 numbers; 0 where unknown. A sleeping body has no velocities."""
    if body is None:
        return (0.0,) * _BODY_NUMBERS
    at, turn = body["location"], body["rotation"]
    speed, spin = body["linear_velocity"] or _NO_VECTOR, body["angular_velocity"] or _NO_VECTOR
    return (
        *(at[axis] for axis in "xyz"), *(turn[axis] for axis in "wxyz"),
        *(speed[axis] for axis in "xyz"), *(turned and turned / 100 for turned in map(spin.get, "xyz")),
    )  # fmt: skip


def _recording(source: str, rows: Sequence[_Row], actors: Actors, teams: tuple[int, int]) -> Recording:
    order = sorted(range(len(actors.cars)), key=lambda met: actors.cars[met].team)
    state = MatchState(*teams, len(rows), most=_MOST_PLAYERS)
    seconds = np.array([row.seconds for row in rows])
    tick = np.round((seconds - seconds[0]) * TICKS_PER_SECOND).astype(np.int64)
    ball_shown = np.array([row.ball_shown for row in rows])
    cars = np.zeros((len(rows), len(order), 11 + _BODY_NUMBERS))
    for at, row in enumerate(rows):
        cars[at, : len(row.cars)] = np.reshape(row.cars, (-1, cars.shape[2]))
    cars = cars[:, order]
    car_shown, car_present = cars[..., 0] > 0, cars[..., 1] > 0

    state.frame[:] = tick
    state.phase[:] = [row.phase for row in rows]
    state.clock[:] = [row.clock for row in rows]
    state.ball_known[:] = np.cumsum(ball_shown) > 0
    _fill(state, "ball", np.array([row.ball for row in rows]))
    state.car_player_id[:] = np.arange(len(order))
    state.car_team[:] = [actors.cars[met].team for met in order]
    state.car_hitbox[:] = [actors.cars[met].hitbox for met in order]
    state.car_boost_amount[:], state.car_controls[:] = cars[..., 2], cars[..., 3:11]
    _fill(state, "car", cars[..., 11:])

    cut = np.array([row.cut for row in rows])
    hole = holes(seconds) | (np.diff(tick, prepend=tick[:1] - 1) <= 0)
    jump = jumps(seconds, motions_of(state, ball_shown, car_shown), _SLACK_SECONDS)
    counts = {
        "new segments at kickoffs, goals, demolitions, and where a car comes or goes": cut,
        "new segments after holes in the time": hole & ~cut,
        "new segments where a body is too far from where it was": jump & ~hole & ~cut,
    }
    return Recording(
        source=source,
        state=state,
        tick=tick,
        seconds=seconds,
        segment=np.cumsum(cut | hole | jump).astype(np.int32),
        ball_shown=ball_shown,
        car_shown=car_shown,
        clock=TimeBase.FRAMES,
        inputs_recorded=np.tile([name in _RECORDED for name in CONTROL_NAMES], (len(order), 1)),
        car_present=car_present,
        mode=actors.game.mode,
        mutators=actors.game.mutators,
        notes=[
            *actors.game.notes,
            "inputs are those of frames, about 30 a second; pitch, yaw and roll are not in replays",
            "jump is 1 while a jump pushes, and in the frame in which a double jump or dodge begins",
            "boost amounts are told now and then: in between they fall by what burning takes",
            *(f"{text}: {count.sum()}" for text, count in counts.items() if count.any()),
        ],
    )


def _fill(state: MatchState, body: str, numbers: np.ndarray) -> None:
    turns = from_quaternions(numbers[..., 3:7].reshape(-1, 4)).reshape(*numbers.shape[:-1], 3, 3)
    names = ("position", "rotation", "velocity", "angular_velocity")
    vectors = (numbers[..., :3], turns, numbers[..., 7:10], numbers[..., 10:])
    set_bodies(state, body, ..., dict(zip(names, vectors, strict=True)))
