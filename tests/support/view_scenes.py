"""Small recordings made up for looking at, and files for Rerun, read back."""

from pathlib import Path
from typing import Any

import numpy as np

from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.rotations import from_euler
from rlgym_bridge.state import MatchState

BALL = (1500.0, -1200.0, 600.0)


def made_up(rows: int = 40, inputs: Inputs = Inputs.APPLIED) -> Recording:
    """One against one: the ball still, blue driving along y, orange turning where it stands."""
    state = MatchState(1, 1, rows)
    ticks = np.arange(rows)
    state.ball_position[:] = BALL
    state.ball_rotation[:] = np.eye(3)
    state.ball_known[:] = 1
    state.car_team[:] = (0, 1)
    state.car_hitbox[:] = (0, 1)
    state.car_position[:, 0] = np.column_stack([np.full(rows, -900.0), ticks * 10.0, np.full(rows, 17.0)])
    state.car_linear_velocity[:, 0] = (0, 1200, 0)
    state.car_position[:, 1] = (1000, 2000, 17)
    yaw = np.column_stack([np.zeros(rows), ticks * 0.02, np.zeros(rows)])
    state.car_rotation[:, 0] = from_euler(np.tile([0, np.pi / 2, 0], (rows, 1)))
    state.car_rotation[:, 1] = from_euler(yaw)
    state.car_boost_amount[:] = 33
    state.car_controls[rows // 2 :, 0, 0] = 1
    state.pad_timer[rows // 2 :, 3] = 10
    return Recording(
        "made up", state, ticks.astype(np.int64), ticks / 120, np.zeros(rows, np.int32),
        np.ones(rows, bool), np.ones((rows, 2), bool), inputs=inputs,
    )  # fmt: skip


class Logged:
    """A file for Rerun, read back."""

    def __init__(self, path: Path) -> None:
        import rerun  # an extra, which tests skip without

        self.loaded = rerun.dataframe.load_recording(path)

    def column(self, entity: str, component: str) -> tuple[list[int], list[Any]]:
        """Return the ticks at which a component was logged, and its values at each."""
        table = self.loaded.view(index="tick", contents=entity).select().read_all()
        values = table.column(f"{entity}:{component}").to_pylist()
        rows = [row for row, value in enumerate(values) if value is not None]
        ticks = table.column("tick").to_pylist()
        return [ticks[row] for row in rows], [values[row] for row in rows]

    def static(self, entity: str, component: str) -> Any:
        table = self.loaded.view(index="tick", contents=entity).select_static().read_all()
        return table.column(f"{entity}:{component}").to_pylist()[0]

    def entities(self) -> set[str]:
        return {column.entity_path for column in self.loaded.schema().component_columns()}
