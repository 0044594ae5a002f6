"""Captures of 2026 as tables of errors."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from tests.support.captures import Capture
from tests.support.free_runs import WORLDS, FreeRun, lacks_presses, run_free

_HORIZONS: Final = (30, 60, 120, 240)  # ticks
_MARK: Final = "¹"


def describe_captures(captures: Sequence[Capture]) -> list[str]:
    """Return the lines of the page's part on captures."""
    runs = {capture.name: [run_free(capture, world) for world in WORLDS] for capture in captures}
    head = [
        "",
        "| capture | simulator | 0.25 s | 0.5 s | 1 s | 2 s | end (s) |",
        "|---|---|---|---|---|---|---|",
    ]
    cars, balls, still = [], [], []
    for name, played in runs.items():
        shown = name + _MARK * lacks_presses(name)
        both = played[0].real.layout.cars > 1
        for car in range(played[0].real.layout.cars):
            title = f"{shown}, car {car + 1}" if both else shown
            cars += [_line(title, world, run, car) for world, run in zip(WORLDS, played, strict=True)]
        if played[0].ball_moves():
            balls += [_line(shown, world, run, None) for world, run in zip(WORLDS, played, strict=True)]
        else:
            still += [run.ball_error(row)[0] for run in played for row in range(len(run.ticks))]
    lines = ["", "### Cars", *head, *cars, "", "### Balls", *head, *balls, ""]
    if still:
        lines += [f"Where it lies still the ball is at most {max(still):.3f} uu off in every simulator.", ""]
    return [*lines, *_hits(captures)]


def _line(title: str, world: str, run: FreeRun, car: int | None) -> str:
    """Return a row of a table: a car's errors, or the ball's where `car` is None."""

    def cell(row: int | None) -> str:
        if row is None:
            return ""
        place, speed = run.ball_error(row) if car is None else run.car_error(row, car)
        return f"{place:.3f} / {speed:.2f}"

    cells = [cell(run.row_after(horizon)) for horizon in _HORIZONS]
    last = len(run.ticks) - 1
    return f"| {title} | {world} | {' | '.join(cells)} | {cell(last)} ({run.ticks[last] / 120:.2f}) |"


def _hits(captures: Sequence[Capture]) -> list[str]:
    """Return a table of the hits, each simulated from the tick before it."""
    lines = [
        "### Hits",
        "",
        "Each hit is simulated from the row before it. Cells hold how far the velocities of ball and car are",
        "off in the tick of the hit, uu/s.",
        "",
        "| capture | ball after the hit, uu/s | "
        + " | ".join(f"{world}: ball, car" for world in WORLDS)
        + " |",
        "|---|---|" + "---|" * len(WORLDS),
    ]
    for capture in captures:
        for tick in capture.hits.tolist():
            row = int(np.searchsorted(capture.recording.tick, tick))
            cells = []
            for world in WORLDS:
                run = run_free(capture, world, row - 1)
                cells.append(f"{run.ball_error(row)[1]:.2f}, {run.car_error(row, 0)[1]:.2f}")
            speed = float(np.linalg.norm(capture.recording.state.ball_linear_velocity[row]))
            lines.append(f"| {capture.name} | {speed:,.0f} | {' | '.join(cells)} |")
    return lines
