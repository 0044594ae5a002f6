"""Judge median errors: agreement, a physics or timing gap, hidden state or missing inputs."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rlgym_bridge.compare.findings.block_bootstrap import LEAST_BLOCKS, blocks_of, median_interval
from rlgym_bridge.compare.findings.fitted_constants import Size
from rlgym_bridge.compare.findings.missing_inputs import Missing, Worth
from rlgym_bridge.compare.findings.noise_limits import limit_median
from rlgym_bridge.compare.findings.tolerances import FLOORS, LEAST_WINDOWS, SHOWS, TAIL
from rlgym_bridge.compare.simulate.window_errors import Errors
from rlgym_bridge.compare.simulate.windows import (
    BALL_BOUNCED,
    BALL_GROUND,
    BALL_TOUCHED,
    CAR_CONTACT,
    CAR_JUMPED,
    CAR_LEAVES,
    HORIZONS,
    SITUATIONS,
)


class GapVerdict(enum.Enum):
    """The explanation of an error."""

    AGREES = "agrees"
    PHYSICS = "physics gap"
    TIMING = "timing gap"
    HIDDEN = "hidden state"
    MISSING = "missing input"
    WRONG = "wrong input"
    OFFSET = "offset in height"
    FEW = "too few windows"


class Doubts(NamedTuple):
    """Unknowns of the recordings that can explain an error.

    Attributes:
        lag: How late inputs act, to the tick.
        lag_untold: Whether too few windows tell how late they act: then no error of a car is put down to it.
        lag_unknown: Whether that is beyond all lags that were tried.
        clock: The time to the row: it wavers.
        spin: How the ball spins.
        inputs: Those of ticks that were left out.
        wrong: Whether a mechanism was found by which controls are other than recorded.
    """

    lag: bool = False
    lag_untold: bool = False
    lag_unknown: bool = False
    clock: bool = False
    spin: bool = False
    inputs: bool = False
    wrong: bool = False


_SLOWEST = 0.75  # power of time by which an error of physics grows at least
_GROWS = 3.0  # times as much as time: what is late by a constant drifts no faster
_LATE = (
    5.0  # uu a tick: inputs 16 ticks late make 3.9 with a brake's 3,500 uu/s^2, 4.2 with a dodge's 500 uu/s
)
_SPIN_MATTERS = (BALL_BOUNCED, BALL_GROUND, BALL_TOUCHED)


@dataclass(frozen=True)
class Situation:
    """Errors of one situation at one horizon.

    Attributes:
        name: The situation.
        horizon_ticks: Ticks after the window's start.
        windows: How many.
        apart: How many of them do not overlap: those that do are off together.
        blocks: How many blocks of them were drawn from for the interval: each as long as the horizon.
        low, high: Interval of the median that holds it with 99 %, uu, from a block bootstrap.
        p50, p90, p99: Position error, uu.
        floor: Median position error of RocketSim against itself, uu.
        floor_p90: Its 90th percentile.
        tolerance: Largest median that is no gap, uu.
        velocity: Median error, uu/s.
        angle: Median error, rad.
        spin: Median error of the angular velocity, rad/s.
        verdict: What the error is put down to.
    """

    name: str
    horizon_ticks: int
    windows: int
    apart: int
    blocks: int
    low: float
    high: float
    p50: float
    p90: float
    p99: float
    floor: float
    floor_p90: float
    tolerance: float
    velocity: float
    angle: float
    spin: float
    verdict: GapVerdict


def judge(
    found: Errors,
    floor: Errors,
    sizes: Sequence[Size],
    missing: Sequence[Missing],
    worth: Sequence[Worth],
    doubts: Doubts,
    noise: float | None = None,
) -> list[Situation]:
    """Judge every situation at every horizon that has a window.

    Args:
        found: Errors against the recording.
        floor: Errors of RocketSim against itself.
        sizes: Constants that were fitted.
        missing: Controls that may be missing.
        worth: What the others explain.
        doubts: What nobody knows of the recordings.
        noise: Of their states from tick to tick, uu; None where they are not exact, see `noise_limits`.
    """
    rows = []
    for name in SITUATIONS:
        body = name.split()[0]
        driven = body == "car" or name == BALL_TOUCHED
        lacking = driven and (any(one.shown for one in missing) or any(one.wrong for one in worth))
        lacking |= driven and doubts.wrong
        untold = driven and any(one.said for one in missing)  # the recording itself says that it lacks some
        different = name not in (BALL_TOUCHED, CAR_CONTACT) and any(
            size.gap and size.body == body for size in sizes
        )
        late = GapVerdict.FEW if body == "car" and doubts.lag_untold else GapVerdict.TIMING
        short: tuple[float, int] | None = None  # median and ticks of the shortest horizon out of tolerance
        for column, horizon in enumerate(HORIZONS):
            allowed = limit_median(name, column, floor, noise)
            row = _row(found, floor, name, column, allowed, found.names[:, column] == name)
            if row is None:
                continue
            limit = max(row.tolerance, FLOORS * row.floor)
            out = row.p50 > limit
            lagging = body == "car" and doubts.lag and not (doubts.lag_untold and row.p50 > _LATE * horizon)
            if row.windows < LEAST_WINDOWS:
                verdict = GapVerdict.FEW
            elif (untold and out) or (lacking and (out or row.p90 > TAIL * max(limit, row.floor_p90))):
                verdict = GapVerdict.WRONG if doubts.wrong else GapVerdict.MISSING
            elif different and row.p50 > max(SHOWS, FLOORS * row.floor):
                verdict = GapVerdict.PHYSICS
            elif not out:
                verdict = GapVerdict.AGREES
            elif row.low <= limit or (row.apart < LEAST_WINDOWS and row.blocks < LEAST_BLOCKS):
                verdict = GapVerdict.FEW
            elif short is not None and row.p50 < short[0] * min(2.0, (horizon / short[1]) ** _SLOWEST):
                verdict = late  # physics grows with time, what is late stays as late
            elif (body == "car" and doubts.lag_unknown) or (
                (lagging or doubts.clock)
                and (short is None or row.p50 < _GROWS * short[0] * horizon / short[1])
            ):
                verdict = late
            elif (
                name in (CAR_JUMPED, CAR_LEAVES)
                or (doubts.spin and name in _SPIN_MATTERS)
                or (doubts.inputs and driven)
            ):
                verdict = GapVerdict.HIDDEN
            else:
                verdict = GapVerdict.PHYSICS
            if verdict is not GapVerdict.FEW and out and short is None:
                short = row.p50, horizon
            rows.append(replace(row, verdict=verdict))
    return [*_overall(found, floor, rows), *rows]


def _row(
    found: Errors, floor: Errors, name: str, column: int, allowed: float, here: np.ndarray
) -> Situation | None:
    """Return the errors of some windows at a horizon, not judged yet; None where there are none."""
    if not here.any():
        return None
    p50, p90, p99 = np.percentile(found.position[here, column], [50, 90, 99]).tolist()
    low, high = _floor(floor, name, column)
    others = (found.velocity, found.angle, found.spin)
    velocity, angle, spin = (float(np.median(part[here, column])) for part in others)
    blocks = blocks_of(found, column, here)
    least, most = median_interval(found.position[here, column], blocks)
    return Situation(
        name, HORIZONS[column], int(here.sum()), _apart(found, column, here), int(blocks.max()) + 1, least,
        most, p50, p90, p99, low, high, allowed, velocity, angle, spin, GapVerdict.FEW,
    )  # fmt: skip


def _apart(found: Errors, column: int, here: np.ndarray) -> int:
    """Count windows that do not overlap another one counted."""
    count = 0
    last: dict[tuple[int, int], tuple[float, float]] = {}  # first and last tick, of a body of a recording
    for window in sorted(np.flatnonzero(here).tolist(), key=lambda one: found.origins[one]):
        began, of = float(found.began[window, column]), found.origins[window][:2]
        first, end = last.get(of, (-np.inf, -np.inf))
        if began >= end or began < first:  # its clock began anew
            count += 1
            last[of] = began, began + float(found.moments[window, column])
    return count


def _overall(found: Errors, floor: Errors, judged: Sequence[Situation]) -> list[Situation]:
    """Return all that ball and car do without touching each other, with the verdict of most of it."""
    rows = []
    for body, contact in (("ball", BALL_TOUCHED), ("car", CAR_CONTACT)):
        for column, horizon in enumerate(HORIZONS):
            names = found.names[:, column]
            parts = [
                row for row in judged
                if row.horizon_ticks == horizon and row.name.startswith(body) and row.name != contact
            ]  # fmt: skip
            if not parts:
                continue
            share = sum(row.windows for row in parts)
            allowed = sum(row.windows * row.tolerance for row in parts) / share
            here = np.char.startswith(names, body) & (names != contact)
            row = _row(found, floor, body, column, allowed, here)
            gaps = [part for part in parts if part.verdict not in (GapVerdict.AGREES, GapVerdict.FEW)]
            if row is None:
                continue
            within = row.p50 <= max(allowed, FLOORS * row.floor)
            agree = within or all(part.verdict is GapVerdict.AGREES for part in parts)
            verdict = GapVerdict.AGREES if agree and share >= LEAST_WINDOWS else GapVerdict.FEW
            if gaps:
                verdict = max(gaps, key=lambda part: part.windows).verdict
            rows.append(replace(row, verdict=verdict))
    return rows


def _floor(floor: Errors, name: str, column: int) -> tuple[float, float]:
    """Return median and 90th percentile of a floor; of the whole body's where the situation has none."""
    here = floor.names[:, column] == name
    if not here.any():
        body = name.split()[0]
        here = np.char.startswith(floor.names[:, column], body)  # of "ball" and "car" alone too
    if not here.any():
        return 0.0, 0.0
    low, high = np.percentile(floor.position[here, column], [50, 90]).tolist()
    return low, high
