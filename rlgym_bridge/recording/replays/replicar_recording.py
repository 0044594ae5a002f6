"""Read Parquet files of replicar: replays played again in RocketSim, a row for each tick.

The game tells throttle and steer; replicar inferred pitch, yaw, roll and jumps from the states.
"""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.game import CONTROL_NAMES, HITBOX_NAMES, PAD_POSITIONS, TICKS_PER_SECOND, Phase
from rlgym_bridge.recording.recording import Recording, set_bodies
from rlgym_bridge.rotations import from_quaternions
from rlgym_bridge.state import KNOWN_FIELDS, MatchState, derive
from rlgym_bridge.user_input.extras import explain_install

_FORMAT: Final = 1  # newest that is read
_MOST_PLAYERS: Final = 64  # of a team over a whole match
_PAD_SLACK: Final = 10.0  # uu; some tables of pads differ by 2
_PHASES: Final = {"kickoff": Phase.KICKOFF, "running": Phase.ACTIVE, "expired": Phase.ACTIVE}
_SAME: Final = {
    "boost_amount": "boost", "handbrake": "handbrake_value", "has_jumped": "has_jumped",
    "is_holding_jump": "previous_controls_jump", "is_jumping": "is_jumping", "has_flipped": "has_flipped",
    "has_double_jumped": "has_double_jumped", "air_time_since_jump": "air_time_since_jump",
    "flip_time": "flip_time", "is_autoflipping": "is_auto_flipping", "autoflip_timer": "auto_flip_timer",
    "demo_respawn_timer": "demo_respawn_timer",
}  # fmt: skip
"""Fields of a car that replicar has, too, and what it calls them."""
_CONVERT: Final = "import sys, replicar; replicar.convert(sys.argv[1], sys.argv[2], meshes=sys.argv[3])"


def convert_replay(replay: Path, out: Path, python: str, meshes: Path) -> None:
    """Convert a replay by a Python of 3.12 or later with replicar; raises ValueError if that fails."""
    command = [python, "-c", _CONVERT, str(replay), str(out), str(meshes)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise ValueError(f"{python} cannot be started: {error.strerror}; expected a Python") from error
    if done.returncode:
        told = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        hint = ': expected a Python 3.12 or later with `pip install "replicar[convert]"`'
        lacks = "No module named" in told or "native extra" in told
        raise ValueError(f"{python} cannot convert {replay}: {told}{hint if lacks else ''}")


def read_replicar(path: Path) -> Recording:
    """Read a Parquet file of replicar, with a row for each tick and the group `state`.

    States are RocketSim's, corrected wherever the replay tells the game's own. Names are dropped. A goal, a
    demolition, and where a car comes or goes begin a new segment. Raises ImportError without pyarrow,
    OSError, or ValueError if it is no such file, or of a newer format.
    """
    header, columns = _read(path)
    players = sorted(header["players"], key=lambda one: one["team"])
    blue = sum(one["team"] == 0 for one in players)
    teams = blue, len(players) - blue
    if max(teams) > _MOST_PLAYERS:
        raise ValueError(
            f"{path} has {teams[0]} and {teams[1]} players, expected {_MOST_PLAYERS} a team at most"
        )
    rows = len(columns["frame"])
    state, shown = MatchState(*teams, rows, most=_MOST_PLAYERS), np.zeros((rows, len(players)), bool)
    tick = columns["replay_tick"].astype(np.int64)
    state.frame[:] = tick
    state.phase[:] = [_PHASES.get(one, Phase.GOAL_SCORED) for one in columns["clock_phase"]]
    state.clock[:] = np.nan_to_num(columns["seconds_remaining"].astype(float))
    state.overtime[:] = columns["period"] == "overtime"
    state.score[:] = np.stack([columns["blue_score"], columns["orange_score"]], 1)
    state.gravity[:], state.boost_consumption[:], state.dodge_deadzone[:], state.ball_known[:] = 1, 1, 0.5, 1
    _fill(state, "ball", slice(None), columns, "ball_")
    for number, place in _pads(path, header).items():
        state.pad_timer[:, place] = columns[f"pad_{number}_cooldown"]
    segment = np.diff(columns["segment"], prepend=columns["segment"][:1]) != 0
    segment |= np.diff(tick, prepend=tick[:1] - 1) != 1
    for car, player in enumerate(players):
        of = f"car_{player['index']}_"
        shown[:, car] = columns[of + "status"] == "active"
        state.car_player_id[:, car], state.car_team[:, car] = car, player["team"]
        name = player["hitbox"] if player["hitbox"] in HITBOX_NAMES else "octane"
        state.car_hitbox[:, car] = HITBOX_NAMES.index(name)
        _fill_car(state, car, columns, of)
        segment |= np.diff(shown[:, car], prepend=shown[:1, car])
    derive(state)
    return Recording(
        source=path.name, state=state, tick=tick, seconds=tick / TICKS_PER_SECOND,
        segment=np.cumsum(segment).astype(np.int32), ball_shown=np.ones(rows, bool), car_shown=shown,
        notes=["pitch, yaw, roll and jumps are inferred from states, not recorded"],
    )  # fmt: skip


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and columns of a file; what is not known of a car is 0."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ImportError(f"reading files of replicar needs pyarrow: {explain_install('view')}") from error
    try:
        found = parquet.ParquetFile(path)
        header = json.loads((found.metadata.metadata or {}).get(b"replicar", b"null"))
    except (pyarrow.ArrowInvalid, ValueError) as error:
        raise ValueError(
            f"{path} is no Parquet file that can be read: {str(error).splitlines()[0]}"
        ) from error
    if not isinstance(header, dict):
        raise ValueError(f"{path} has no header of replicar, expected a file that replicar wrote")
    expected = {"rows": "ticks", "tick_step": 1}
    for name, value in expected.items():
        if header.get(name) != value:
            raise ValueError(f"{name} of {path} is {header.get(name)!r}, expected {value!r}: convert it anew")
    if header.get("format_version", 0) > _FORMAT or "state" not in header.get("groups", ()):
        raise ValueError(
            f"{path} has format {header.get('format_version')} with {', '.join(header.get('groups', ()))}; "
            f"expected format {_FORMAT} with state"
        )
    lists = pyarrow.types.is_list, pyarrow.types.is_large_list, pyarrow.types.is_struct
    names = [one.name for one in found.schema_arrow if not any(kind(one.type) for kind in lists)]
    table = found.read(columns=names)
    return header, {name: _values(table, name) for name in names}


def _values(table: Any, name: str) -> np.ndarray:
    """Return a column `(rows,)`: numbers with 0 for what is not there, or texts."""
    import pyarrow

    column, field = table.column(name), table.schema.field(name)
    if pyarrow.types.is_dictionary(field.type) or pyarrow.types.is_string(field.type):
        return np.asarray(np.array(column.cast(pyarrow.string()).to_pylist(), object))
    numbers = np.nan_to_num(np.asarray(column.to_numpy(), np.float64))
    return numbers * float((field.metadata or {}).get(b"scale", 1))


def _pads(path: Path, header: dict[str, Any]) -> dict[int, int]:
    """Return the place in our states of each pad of a file."""
    ours = np.array(PAD_POSITIONS)[:, :2]
    places = {}
    for number, pad in enumerate(header["pads"]):
        away = np.linalg.norm(ours - pad["position"][:2], axis=1)
        if away.min() > _PAD_SLACK:
            raise ValueError(f"{path} has a pad at {pad['position']}, expected those of a soccar field")
        places[number] = int(away.argmin())
    return places


def _fill(state: MatchState, body: str, where: Any, columns: dict[str, np.ndarray], of: str) -> None:
    def vector(name: str, axes: str = "xyz") -> np.ndarray:
        return np.stack([columns[f"{of}{name}_{axis}"] for axis in axes], 1)

    vectors = {name: vector(name) for name in ("position", "velocity", "angular_velocity")}
    set_bodies(state, body, where, vectors | {"rotation": from_quaternions(vector("rotation", "wxyz"))})


def _fill_car(state: MatchState, car: int, columns: dict[str, np.ndarray], of: str) -> None:
    _fill(state, "car", (slice(None), car), columns, of)
    for ours, theirs in _SAME.items():
        getattr(state, f"car_{ours}")[:, car] = columns[of + theirs]
    for number, axis in enumerate("xyz"):
        state.car_flip_torque[:, car, number] = columns[f"{of}flip_relative_torque_{axis}"]
    for wheel in range(4):
        state.car_wheels_with_contact[:, car, wheel] = columns[f"{of}wheel_{wheel}_contact"]
    jumped = columns[of + "jump_ticks"] * (columns[of + "is_jumping"] > 0)
    state.car_jump_time[:, car] = (jumped / TICKS_PER_SECOND).clip(0, 0.2)
    state.car_boost_active_time[:, car] = columns[of + "boosting_time"] * columns[of + "is_boosting"]
    state.car_supersonic_time[:, car] = _seconds_since(columns[of + "is_supersonic"] > 0)
    state.car_autoflip_direction[:, car] = np.sign(columns[of + "auto_flip_torque_scale"])
    state.car_bump_victim[:, car] = -1
    state.car_known[:, car] = [name not in ("bump_victim", "ball_touches") for name in KNOWN_FIELDS]
    for number, name in enumerate(CONTROL_NAMES):
        state.car_controls[:, car, number] = columns[f"{of}previous_controls_{name}"]


def _seconds_since(flags: np.ndarray) -> np.ndarray:
    """Return for how many seconds flags `(rows,)` have been set, the present tick included; 0 where not."""
    rows = np.arange(1, len(flags) + 1)
    before = np.maximum.accumulate(np.where(flags, 0, rows))
    return np.where(flags, rows - before, 0) / TICKS_PER_SECOND
