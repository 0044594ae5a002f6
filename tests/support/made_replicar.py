"""Files in the format of replicar, made of simulated matches."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.game import CONTROL_NAMES, HITBOX_NAMES, PAD_POSITIONS
from rlgym_bridge.sim.simulator import ROCKETSIM3, make_simulator
from rlgym_bridge.state import MatchState

_HEADER = {"format_version": 1, "groups": ["state", "game"], "rows": "ticks", "tick_step": 1}


def simulated(controls: np.ndarray) -> MatchState:
    """Return the `ticks + 1` states of a match of 1v1 in RocketSim 3 under controls `(2, ticks, 8)`."""
    simulator = make_simulator(ROCKETSIM3, 1, 1, 1)
    start = blank_state(1, 1, 1)
    start.ball_position[0], start.car_position[0] = (0, 2000, 93), ((-500, -3000, 17.01), (500, 3500, 17.01))
    start.car_boost_amount[:] = 60
    start.car_wheels_with_contact[:] = 1
    simulator.put([0], start)
    first = simulator.state.buffer[:1].copy()
    played = simulator.play(controls[None].astype(np.float32), [controls.shape[1]])[0]
    return MatchState(1, 1, len(played) + 1, np.concatenate([first, played]))


def write_replicar(path: Path, state: MatchState, swap: bool = False, **header: Any) -> Path:
    """Write states, a row a tick, as replicar does; `header` has values in place of the usual ones."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rows = state.matches
    columns: dict[str, Any] = {
        "frame": np.arange(rows) // 4, "segment": np.zeros(rows, np.uint16),
        "replay_tick": 700 + np.arange(rows), "seconds_remaining": np.full(rows, 300.0),
        "clock_phase": pa.array(["running"] * rows).dictionary_encode(),
        "period": pa.array(["regulation"] * rows).dictionary_encode(),
        "blue_score": np.zeros(rows, int), "orange_score": np.ones(rows, int),
        "events": pa.array([[]] * rows, pa.list_(pa.int32())),
    }  # fmt: skip
    columns |= _body("ball_", state.ball_position, state.ball_rotation, state.ball_linear_velocity,
                     state.ball_angular_velocity)  # fmt: skip
    order = range(len(PAD_POSITIONS))[::-1]  # not ours
    for number, place in enumerate(order):
        columns[f"pad_{number}_cooldown"] = state.pad_timer[:, place]
    cars = [1, 0] if swap else [0, 1]
    for index, car in enumerate(cars):
        columns |= _car(f"car_{index}_", state, car)
    players = [
        {"index": index, "team": int(state.car_team[0, car]), "name": "somebody",
         "hitbox": HITBOX_NAMES[int(state.car_hitbox[0, car])]}
        for index, car in enumerate(cars)
    ]  # fmt: skip
    pads = [{"position": [float(one) for one in PAD_POSITIONS[place]]} for place in order]
    text = json.dumps(_HEADER | {"players": players, "pads": pads} | header)
    table = pa.table(columns).replace_schema_metadata({"replicar": text})
    parquet.write_table(table, path)
    return path


def _body(of: str, position: np.ndarray, rotation: np.ndarray, *velocities: np.ndarray) -> dict[str, Any]:
    vectors = {"position": position, "velocity": velocities[0], "angular_velocity": velocities[1]}
    found = {
        f"{of}{name}_{axis}": of_all[:, i] for name, of_all in vectors.items() for i, axis in enumerate("xyz")
    }
    turned = _quaternions(rotation)
    return found | {f"{of}rotation_{axis}": turned[:, i] for i, axis in enumerate("wxyz")}


def _car(of: str, state: MatchState, car: int) -> dict[str, Any]:
    """Return the columns of a car."""
    get = {name: getattr(state, f"car_{name}")[:, car] for name in (
        "boost_amount", "handbrake", "has_jumped", "is_jumping", "has_flipped", "has_double_jumped",
        "air_time_since_jump", "flip_time", "is_autoflipping", "autoflip_timer", "demo_respawn_timer",
        "is_boosting", "is_supersonic", "boost_active_time", "jump_time",
    )}  # fmt: skip
    columns = _body(of, state.car_position[:, car], state.car_rotation[:, car],
                    state.car_linear_velocity[:, car], state.car_angular_velocity[:, car])  # fmt: skip
    columns |= {of + theirs: get[ours] for ours, theirs in {
        "boost_amount": "boost", "handbrake": "handbrake_value", "air_time_since_jump": "air_time_since_jump",
        "flip_time": "flip_time", "autoflip_timer": "auto_flip_timer",
        "demo_respawn_timer": "demo_respawn_timer", "boost_active_time": "boosting_time",
    }.items()}  # fmt: skip
    columns |= {of + theirs: get[ours] > 0 for ours, theirs in {
        "has_jumped": "has_jumped", "is_jumping": "is_jumping", "has_flipped": "has_flipped",
        "has_double_jumped": "has_double_jumped", "is_autoflipping": "is_auto_flipping",
        "is_boosting": "is_boosting", "is_supersonic": "is_supersonic",
    }.items()}  # fmt: skip
    columns[of + "jump_ticks"] = np.round(get["jump_time"] * 120).astype(int)
    columns[of + "auto_flip_torque_scale"] = state.car_autoflip_direction[:, car]
    columns[of + "status"] = np.where(state.car_is_demoed[:, car] > 0, "demolished", "active")
    for axis, torque in zip("xyz", state.car_flip_torque[:, car].T, strict=True):
        columns[f"{of}flip_relative_torque_{axis}"] = torque
    for wheel in range(4):
        columns[f"{of}wheel_{wheel}_contact"] = state.car_wheels_with_contact[:, car, wheel] > 0
    for number, name in enumerate(CONTROL_NAMES):
        columns[f"{of}previous_controls_{name}"] = state.car_controls[:, car, number]
    return columns


def _quaternions(matrices: np.ndarray) -> np.ndarray:
    """Return `(rows, 4)`, w first, of rotation matrices `(rows, 3, 3)`."""
    signs = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
    squares = 1 + np.diagonal(matrices, axis1=1, axis2=2) @ np.array(signs).T  # four times each one's square
    sizes = np.sqrt(squares.clip(0)) / 2
    m = matrices
    off = np.stack([m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]], 1)
    return np.concatenate([sizes[:, :1], np.copysign(sizes[:, 1:], off)], 1)  # right where w is above 0
