"""Measure how far the ball's prediction is off, and what it costs: `python -m tests.benchmarks.prediction`.

Balls fly from many places, and no car touches them. The ball after 1, 3 and 6 seconds is compared with the
slices of a prediction from before. Costs are processor times of the server for a packet, and of a client that
unpacks it.
"""

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from rlbot import flat

from rlgym_bridge.server.game.rules import MODES, Physics
from rlgym_bridge.server.game.simulated_match import SLICES, Match
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3
from tests.support.stepped_match import ball_of, kicked_off, put_ball, put_car_high

AFTER: Final = (120, 360, 720)
"""Ticks after which a prediction is compared: 1, 3 and 6 s."""
_STEPS: Final = 600  # packets in a row whose costs are taken


def _physics(mode: str, simulator: str = ROCKETSIM2, **changes: float) -> Physics:
    return replace(Physics.of(MODES[mode], simulator), **changes)


CASES: Final = {
    "Soccar": _physics("Soccar"),
    "Soccar, RocketSim 3": _physics("Soccar", ROCKETSIM3),
    "Soccar, half of the gravity": _physics("Soccar", gravity_z=-325.0),
    "Soccar, set gravity": _physics("Soccar"),
    "Heatseeker": _physics("Heatseeker"),
    "Snowday": _physics("Snowday"),
}


@dataclass
class PredictionRow:
    """Figures of a kind of match.

    Attributes:
        name: Of the case.
        errors: Distances between slice and ball after 1, 3 and 6 s, of each flight [uu].
        shifted_us: Processor time for a packet where the last prediction goes on [us], medians.
        whole_us: The same where all slices are computed, as after a touch.
        client_us: Processor time for unpacking a message.
    """

    name: str
    errors: list[list[float]] = field(default_factory=list)
    shifted_us: list[float] = field(default_factory=list)
    whole_us: list[float] = field(default_factory=list)
    client_us: list[float] = field(default_factory=list)


def _fly(match: Match, generator: random.Random) -> None:
    """Send the ball somewhere, the cars out of its way."""
    for slot in range(2):
        put_car_high(match, slot)
    place = (generator.uniform(-3000, 3000), generator.uniform(-3500, 3500), generator.uniform(150, 1700))
    speed = [generator.uniform(-1800.0, 1800.0) for _ in range(3)]
    put_ball(match, place, speed)
    match.advance()
    match.packet()


def measure_flight(match: Match, generator: random.Random) -> list[float] | None:
    """Return how far a prediction is off after 1, 3 and 6 s [uu]; None where a car or a goal came between."""
    _fly(match, generator)
    slices = flat.CorePacket.unpack(match.prediction()[2:]).message.slices
    errors = []
    for tick in range(1, AFTER[-1] + 1):
        match.advance()
        events = match.simulation.events
        if events.touches or events.goal_for is not None:
            return None
        if tick in AFTER:
            ball, slice_ = ball_of(match).position, slices[tick - 1].physics.location
            errors.append(math.dist(ball.tolist(), (slice_.x, slice_.y, slice_.z)))
    return errors


def measure_costs(match: Match, generator: random.Random, row: PredictionRow) -> None:
    """Add medians of the costs of packets in a row."""
    _fly(match, generator)
    match.prediction()
    shifted, whole, client = [], [], []
    for step in range(_STEPS):
        match.advance()
        began = time.thread_time_ns()
        message = match.prediction()
        shifted.append((time.thread_time_ns() - began) / 1e3)
        if step % 20 == 0:
            began = time.thread_time_ns()
            flat.CorePacket.unpack(message[2:])
            client.append((time.thread_time_ns() - began) / 1e3)
    for _ in range(_STEPS // 20):
        _fly(match, generator)
        began = time.thread_time_ns()
        match.prediction()
        whole.append((time.thread_time_ns() - began) / 1e3)
    for values, to in ((shifted, row.shifted_us), (whole, row.whole_us), (client, row.client_us)):
        to.append(float(np.median(values)))


def measure_case(name: str, flights: int) -> PredictionRow:
    """Measure one kind of match."""
    row, generator = PredictionRow(name), random.Random(f"prediction {name}")
    for _ in range(10 * flights):
        match = kicked_off(seed=generator.randrange(1 << 30), physics=CASES[name])
        if name.endswith("set gravity"):
            match.set_state(flat.DesiredGameState([], [], flat.DesiredMatchInfo(-200.0)))
            match.advance()
        errors = measure_flight(match, generator)
        if errors is not None:
            row.errors.append(errors)
        if len(row.errors) == flights:
            break
    for _ in range(3):
        measure_costs(kicked_off(physics=CASES[name]), generator, row)
    return row


def table_lines(rows: Sequence[PredictionRow]) -> list[str]:
    """Return the rows as a table of Markdown."""
    lines = [
        f"{SLICES} slices a packet",
        "| match | flights | off after 1 s, p50 / max, uu | 3 s | 6 s "
        "| server, us a packet: going on | whole | client unpacks, us |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        errors = np.array(row.errors).reshape(-1, len(AFTER))
        spreads = " | ".join(f"{np.median(one):.3f} / {one.max():.3f}" for one in errors.T)
        costs = " | ".join(f"{min(one):.0f}" for one in (row.shifted_us, row.whole_us, row.client_us))
        lines.append(f"| {row.name} | {len(errors)} | {spreads} | {costs} |")
    return lines


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {'; '.join(CASES)} (default: all)")
    parser.add_argument("--flights", type=int, default=100, help="of balls, a case (default: 100)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows to FILE")
    options = parser.parse_args(words)
    for name in options.cases:
        if name not in CASES:
            parser.error(f"no case {name!r}, expected one of {'; '.join(CASES)}")
    rows = [measure_case(name, options.flights) for name in options.cases or CASES]
    print("\n".join(table_lines(rows)))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
