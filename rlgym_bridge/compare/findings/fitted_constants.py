"""Fit physics constants (gravity, drag, boost, jumps) to the simulation's errors.

The simulation runs once more with each constant changed a little. That shows what such a change does to every
window; least squares then says how much of each change the recording has. What the clock would do is fitted
beside them, so that a second that is too long is not taken for drag. What is found to differ counts in the
fits that come after: gravity that is off is not taken for bounces or jumps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import RocketSim as rsim

from rlgym_bridge.compare.findings.drift import measure_again
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.window_errors import Errors
from rlgym_bridge.compare.simulate.windows import (
    BALL_AIR,
    BALL_BOUNCED,
    CAR_AIR,
    CAR_GROUND,
    CAR_JUMPED,
    CAR_LEAVES,
    HORIZONS,
)
from rlgym_bridge.recording.recording import TimeBase
from rlgym_bridge.sim.arena import scale_constants

_LEAST: Final = 8  # windows in which a constant matters
_LEAST_JUMPS: Final = 16  # the same of jumps, whose windows are short and seldom alike
_LEAST_APART: Final = 4  # segments of time beside each other; fewer tell no standard error
_SIGMAS: Final = 4.0  # standard errors from 1 that make a gap, and half of them the interval
_MOST: Final = 0.5  # off 1: no game is; then something else is wrong, as a column
_ROUNDS: Final = 12  # of reweighting
_AROUND: Final = 2  # fits: what a change does bends, so that it is asked again around what was found
_OUTLIER: Final = 2.0  # typical errors from which on a window counts less
_MATTERS: Final = 0.02  # uu in a window: what a changed constant does there counts
_WINDOWS: Final = 200  # of a group of constants, at most


@dataclass(frozen=True)
class Constant:
    """A constant of the physics that can be fitted.

    Attributes:
        name: For people.
        body: "ball" or "car".
        situations: In which windows it shows.
        longest: Ticks of the longest windows used: the path is still near to a line there.
        step: By how much of itself it is changed to see what that does.
        relevant: Share from which on a difference is called a gap. Drag and boost fitted to recordings of
            the real game at 60 or 120 rows a second lie below. The ball's drag in replays lies above, at
            1.5 %, where velocities are not cut as the game cuts them.
        mutator: Its name in `physics.CONSTANTS`.
        least: Windows in which it has to matter.
    """

    name: str
    body: str
    situations: tuple[str, ...]
    longest: int
    step: float
    relevant: float
    mutator: str
    least: int = _LEAST


@dataclass(frozen=True)
class Size:
    """The value of a constant in the recording, as a multiple of RocketSim's.

    Attributes:
        name: Of the constant.
        body: "ball" or "car".
        value: 1 where both agree.
        low, high: The interval that the windows allow, two standard errors to each side.
        windows: Windows in which it matters.
        gap: Whether it differs, and by enough to matter.
        mutator: Its name in `physics.CONSTANTS`.
    """

    name: str
    body: str
    value: float
    low: float
    high: float
    windows: int
    gap: bool
    mutator: str


CONSTANTS: Final = (
    Constant("gravity", "ball", (BALL_AIR,), 120, 0.01, 0.002, "gravity"),
    Constant("ball drag", "ball", (BALL_AIR,), 240, 0.05, 0.01, "ball_drag"),
    Constant("gravity", "car", (CAR_AIR, CAR_JUMPED), 60, 0.01, 0.004, "gravity"),
    Constant("boost in the air", "car", (CAR_AIR, CAR_JUMPED), 60, 0.02, 0.015, "boost_accel_air"),
    Constant("boost on the ground", "car", (CAR_GROUND,), 60, 0.02, 0.015, "boost_accel_ground"),
    Constant("bounce of the ball", "ball", (BALL_BOUNCED,), 120, 0.02, 0.01, "ball_world_restitution"),
    Constant("push of a jump", "car", (CAR_LEAVES,), 60, 0.02, 0.015, "jump_immediate_force", _LEAST_JUMPS),
    Constant("held jump", "car", (CAR_LEAVES,), 60, 0.02, 0.015, "jump_accel", _LEAST_JUMPS),
)


def fit_sizes(scenes: Sequence[TimedRecording], measured: Errors, sparse: bool = False) -> list[Size]:
    """Fit every constant that the recordings tell of, those of the same windows together.

    Args:
        scenes: The recordings, each under its number.
        measured: Their errors with RocketSim as it is.
        sparse: Whether inputs are known of some ticks alone: then nobody knows for how long jump was held.
    """
    sizes: list[Size] = []
    for group in _groups():
        if sparse and CAR_LEAVES in group[0].situations:
            continue
        longest = max(constant.longest for constant in group)
        telling = (np.isin(measured.names, group[0].situations) & (np.array(HORIZONS) <= longest)).any(1)
        rows = np.flatnonzero(telling)
        rows = rows[:: max(1, -(-len(rows) // _WINDOWS))]
        if len(rows) < _LEAST:
            continue
        known = {size.mutator: size.value for size in sizes if size.gap and size.body == group[0].body}
        clocked = any(scene.recording.clock is not TimeBase.TICKS for scene in scenes)
        fitted: list[Size] = []
        for _ in range(_AROUND):
            base = _run(scenes, measured, rows, longest, known) if known else measured.taken(rows)
            changed = [_run(scenes, measured, rows, longest, known | _stepped(one, known)) for one in group]
            fitted = _fit(group, base, changed, clocked, known)
            different = {size.mutator: size.value for size in fitted if size.gap}
            if not different:
                break
            known |= different
        sizes += fitted
    return sizes


def _stepped(constant: Constant, around: Mapping[str, float]) -> dict[str, float]:
    """Return a constant changed a little."""
    return {constant.mutator: around.get(constant.mutator, 1.0) * (1 + constant.step)}


def _groups() -> list[list[Constant]]:
    """Return the constants that share windows, to be fitted together."""
    groups: dict[tuple[str, ...], list[Constant]] = {}
    for constant in CONSTANTS:
        groups.setdefault(constant.situations, []).append(constant)
    return list(groups.values())


def _run(
    scenes: Sequence[TimedRecording],
    measured: Errors,
    rows: np.ndarray,
    longest: int,
    factors: Mapping[str, float],
) -> Errors:
    """Simulate windows again with constants changed; return them in the same order."""

    def adjust(mutators: rsim.MutatorConfig) -> None:
        scale_constants(mutators, factors)

    wanted: dict[tuple[int, int], list[int]] = {}
    for row in rows.tolist():
        scene, body, start = measured.origins[row]
        wanted.setdefault((scene, body), []).append(start)
    found = Errors.join([
        measure_again(scenes[scene], body, starts, longest, adjust)
        for (scene, body), starts in wanted.items()
    ])  # fmt: skip
    place = {origin: number for number, origin in enumerate(found.origins)}
    return found.taken(np.array([place[measured.origins[row]] for row in rows.tolist()], int))


def _fit(
    group: Sequence[Constant],
    base: Errors,
    changed: Sequence[Errors],
    clocked: bool,
    around: Mapping[str, float],
) -> list[Size]:
    """Return the constants of one group, from runs with those of `around` and with each a step from there."""
    longest = max(constant.longest for constant in group)
    fits = np.isin(base.names, group[0].situations) & (np.array(HORIZONS) <= longest)
    fits &= np.logical_and.reduce([run.names == base.names for run in changed])
    rows = np.flatnonzero(fits.any(1))
    columns = fits.shape[1] - 1 - fits[rows, ::-1].argmax(1)  # the longest horizon that fits
    if len(rows) < _LEAST:
        return []
    found = base.vectors[rows, columns, :3]  # uu
    # (windows, 3, constants): what the whole of a constant would move the body by
    effects = np.stack([
        (base.vectors[rows, columns, :3] - run.vectors[rows, columns, :3]) / constant.step
        for constant, run in zip(group, changed, strict=True)
    ], axis=-1)  # fmt: skip
    matters = np.linalg.norm(effects, axis=1) * 0.05 > _MATTERS
    told = [number for number, constant in enumerate(group) if matters[:, number].sum() >= constant.least]
    if not told:
        return []
    # What matters in few windows is not told, but has to take what is its own.
    used = [number for number in range(len(group)) if matters[:, number].any()]
    design = effects[..., used]
    kinds = (np.linalg.norm(effects, axis=1) * [constant.relevant for constant in group])[:, used].argmax(1)
    if clocked:
        velocity = base.ends[rows, columns, 3:6]
        design = np.concatenate(
            [design, (velocity * base.moments[rows, columns, None] / 120.0)[..., None]], axis=-1
        )
    # Windows that overlap are off together: they count as one.
    of = [(*base.origins[row][:2], base.began[row, column] // longest)
          for row, column in zip(rows.tolist(), columns.tolist(), strict=True)]  # fmt: skip
    together = np.unique(np.array(of), axis=0, return_inverse=True)[1].ravel()
    if together.max() < _LEAST_APART:
        return []
    values, errors = _solve(design, found, kinds, together)
    sizes = []
    for place, number in enumerate(used):
        constant = group[number]
        if number not in told:
            continue
        start = around.get(constant.mutator, 1.0)
        value, error = start * (1 + float(values[place])), abs(start) * float(errors[place])
        gap = max(constant.relevant, _SIGMAS * error) < abs(value - 1) < _MOST
        half = _SIGMAS / 2 * error
        windows = int(matters[:, number].sum())
        interval = (value - half, value + half)
        sizes.append(Size(constant.name, constant.body, value, *interval, windows, gap, constant.mutator))
    return sizes


def _solve(
    design: np.ndarray, found: np.ndarray, kinds: np.ndarray, together: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Solve `found = design @ x` over windows; windows far off count less (Huber's weights, squared).

    Args:
        design: `(windows, 3, unknowns)`.
        found: `(windows, 3)`.
        kinds: `(windows,)` which unknown matters most: what is far off differs between them, as boosting is
            known to a tick and gravity is always there.
        together: `(windows,)` number of the segment of time that a window belongs to.

    Returns:
        The unknowns and their standard errors: from how windows scatter or from how segments of time do,
        whichever is more, as Student's distribution has it for so few.
    """
    unknowns = np.zeros(design.shape[-1])
    for _ in range(_ROUNDS):  # medians, one unknown after the other: a start that outliers do not pull
        for column in np.unique(kinds):
            rest = found - design @ unknowns
            mine, effect = kinds == column, design[..., column]
            along = (rest[mine] * effect[mine]).sum(1) / np.maximum((effect[mine] ** 2).sum(1), 1e-12)
            unknowns[column] += np.median(along)
    for _ in range(_ROUNDS):
        off = np.linalg.norm(found - design @ unknowns, axis=1)
        typical = np.zeros(len(off))
        for kind in np.unique(kinds):
            typical[kinds == kind] = np.median(off[kinds == kind])
        limit = _OUTLIER * typical + 1e-4
        weights = np.minimum(1.0, limit / np.maximum(off, 1e-12)) ** 2
        scaled = design * weights[:, None, None]
        normal = np.einsum("wik,wil->kl", scaled, design)
        normal += np.diag(np.diag(normal)) * 1e-9 + np.eye(len(normal)) * 1e-9
        unknowns = np.linalg.solve(normal, np.einsum("wik,wi->k", scaled, found))
    scores = np.einsum("wik,wi->wk", scaled, found - design @ unknowns)
    summed = np.zeros((together.max() + 1, len(unknowns)))
    np.add.at(summed, together, scores)
    inverse = np.linalg.inv(normal)
    free = len(summed) - 1
    spreads = [np.diag(inverse @ (one.T @ one) @ inverse) for one in (scores, summed)]
    return unknowns, np.sqrt(np.maximum(*spreads) * (len(summed) / free) * (free / (free - 2)))
