"""`python -m tools.parity [--ticks N] [--write lab/parity.md]`: compare all fields of packets; minutes."""

import argparse
import datetime
import importlib.metadata
import platform
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from rlgym_bridge.protocol_variant import POINTS, ProtocolVariant
from rlgym_bridge.sim.simulator import ROCKETSIM2, SIMULATORS, is_installed
from tests.parity.fields import TOLERANCES, Tally
from tests.parity.run import Loss, Run, run

NEEDED = {
    "ticks": 100_000, "touches": 500, "bumps": 50, "demolitions": 50, "goals": 50,
    "flip resets and wall jumps": 100, "pad pickups": 100, "auto-flips": 10,
    "car ticks on the ceiling": 500, "car ticks on the roof": 500, "car ticks with an empty tank": 1000,
    "car ticks with a full tank": 500,
}  # fmt: skip
"""Counts that a run must hold, at least."""


def counts_of(run: Run) -> dict[str, int]:
    """Return a run's counts, the sum of flip resets and wall jumps among them."""
    counts = dict(run.counts)
    counts["flip resets and wall jumps"] = counts.get("flip resets", 0) + counts.get("wall jumps", 0)
    return counts


def missing(run: Run) -> dict[str, int]:
    """Return what a run holds too little of."""
    counts = counts_of(run)
    return {name: counts.get(name, 0) for name, least in NEEDED.items() if counts.get(name, 0) < least}


def heading(command: str) -> list[str]:
    """Return the report's beginning."""
    packages = ("rlbot", "rlbot_flatbuffers", "rocketsim", "rlgym-rocket-league", "rlgym-compat", "numpy")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return [
        "# Does a bot see in a match what it saw in training?",
        "",
        f"Made by `{command}` on {datetime.date.today().isoformat()} with {versions}, Python "
        f"{platform.python_version()}.",
        "",
        "Matches run in RocketSim, played by Chaser with random actions mixed in. Situations are set",
        "between: bumps, demolitions, goals, wall jumps, flip resets, cars on the roof and on the",
        "ceiling, pads with empty and full tanks. Every car has every hitbox once. After every tick of",
        "play RLGym's `RocketSimEngine` reads the physical state of RocketSim 2.2.1; that of RocketSim 3 is",
        "taken as its module writes it. The same state becomes the match",
        "server's packet, packed to bytes and unpacked. The live decoder reads that packet, with its",
        "state estimator and by counting alone. So does rlgym-compat, with and without `SimExtraInfo`.",
        "This says nothing about the real client, whose packets may differ from the documented schema.",
        "",
        "*Unknown* samples are those that the decoder itself flags (`car_known`): it has joined, lost a",
        "packet, or a car was put somewhere else. They are not counted as differences (but for the wheels",
        "that counting estimates); *of them off* says how many would be. *Counting* is the decoder without",
        "its estimator. *Over a wreck*: RocketSim leaves the body of a demolished car in the arena, and a",
        "wheel that drives through it touches it for a tick or not. Such ticks are counted apart. So are",
        "those *at the ball's edge*: a wheel that just touches the ball, or just does not, by less than",
        "0.2 uu. *Longest* is in ticks.",
        "",
        "Tolerances: " + "; ".join(f"{k} {v} ({why})" for k, (v, why) in TOLERANCES.items()) + ".",
    ]


def section(title: str, run: Run, needed: Mapping[str, int]) -> list[str]:
    """Return one run: its counts, and a row for each field."""
    counts = counts_of(run)
    lines = ["", f"## {title}", "", "| held | count | needed |", "|---|---|---|"]
    lines += [
        f"| {name} | {count:,} | {needed[name]:,} |" for name, count in counts.items() if name in needed
    ]
    lines += [f"| {name} | {count:,} | |" for name, count in counts.items() if name not in needed]
    readers = list(run.readers)
    lines += ["", "| field | samples | " + " | ".join(f"{name}" for name in readers) + " |"]
    lines += ["|---|---|" + "---|" * len(readers)]
    tables = [run.readers[name].finish() for name in readers]
    ours = tables[0]
    for name in sorted(ours, key=lambda one: (-ours[one].mismatches, -tables[-1][one].mismatches, one)):
        cells = " | ".join(_cell(table[name]) for table in tables)
        lines.append(f"| {name} | {ours[name].samples:,} | {cells} |")
    return lines


def summary(title: str, what: str, runs: Mapping[str, Run]) -> list[str]:
    """Return a row for each run: fields that are off, by reader."""
    readers = list(next(iter(runs.values())).readers)
    lines = ["", f"## {title}", "", f"| {what} | car ticks read | " + " | ".join(readers) + " |"]
    lines += ["|---|---|" + "---|" * len(readers)]
    for name, one in runs.items():
        samples = one.readers[readers[0]].finish()["car.position"].samples
        cells = " | ".join(_off(one.readers[reader].wrong()) for reader in readers)
        lines.append(f"| {name} | {samples:,} | {cells} |")
    return lines


def _off(wrong: Mapping[str, Tally]) -> str:
    """Name the fields that are off, the worst first, with the longest time without a break."""
    worst = sorted(wrong, key=lambda name: -wrong[name].mismatches)
    shown = [
        f"{name.removeprefix('car.')} {wrong[name].mismatches:,} ({wrong[name].longest})"
        for name in worst[:4]
    ]
    return (", ".join(shown) + (f" and {len(worst) - 4} more fields" if len(worst) > 4 else "")) or "0"


def _cell(tally: Tally) -> str:
    text = f"{tally.mismatches:,}"
    if tally.mismatches:
        text += f" (worst {tally.worst:.3g}, longest {tally.longest})"
    if tally.wrecks:
        text += f"; {tally.wrecks} over a wreck"
    if tally.edges:
        text += f"; {tally.edges} at the ball's edge"
    if tally.unknown:
        text += f"; {tally.unknown:,} unknown" + (f", {tally.guessed:,} of them off" if tally.guessed else "")
    return text


_READERS = ("shadow", "counting", "compat", "compat with SimExtraInfo")
_HITBOXES = 6


def play(team_size: int, simulator: str, ticks: int, seed: int) -> Run:
    """Run six matches, in which every car has every hitbox once; rlgym-compat reads RocketSim 2.2.1's."""
    readers = _READERS if simulator == ROCKETSIM2 else _READERS[:2]
    result = Run()
    for first in range(_HITBOXES):
        boxes = [(first + slot) % _HITBOXES for slot in range(2 * team_size)]
        run(
            -(-ticks // _HITBOXES), team_size, seed + first, hitboxes=boxes, readers=readers,
            simulator=simulator, into=result,
        )  # fmt: skip
    return result


def in_dialects(ticks: int, seed: int) -> dict[str, Run]:
    """Run a match in each dialect that differs from the standard in one point."""
    runs = {}
    for name, point in POINTS.items():
        for value in point.values[1:]:
            words = f"{name}={value}"
            runs[words] = run(ticks, 1, seed, dialect=ProtocolVariant.parse([words]), readers=_READERS)
    return runs


def with_loss(ticks: int, seed: int) -> dict[str, Run]:
    """Run a match with each kind of lost packets."""
    losses = {"2 %": Loss(0.02), "10 %": Loss(0.10), "10 % in bursts of 3": Loss(0.10, burst=3)}
    return {name: run(ticks, 1, seed, loss=loss, readers=_READERS) for name, loss in losses.items()}


def main() -> int:
    """Return 1 where a run holds too little, or a known field is off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--ticks", type=int, default=NEEDED["ticks"], help="of each run (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="write the report to this file")
    options = parser.parse_args()
    played = [(size, name) for name in SIMULATORS if is_installed(name) for size in (1, 3)]
    with ProcessPoolExecutor(2) as pool:
        jobs = [pool.submit(play, *one, options.ticks, options.seed) for one in played]
        spoiled = pool.submit(with_loss, options.ticks // 10, options.seed)
        spoken = pool.submit(in_dialects, options.ticks // 20, options.seed)
        runs = [job.result() for job in jobs]
    lines = heading(f"python -m tools.parity --ticks {options.ticks} --seed {options.seed}")
    failed = False
    for (size, name), one in zip(played, runs, strict=True):
        title = f"{size}v{size} in {name}"
        lines += section(title, one, NEEDED)
        short, wrong = missing(one), one.readers["shadow"].wrong()
        failed |= bool(short or wrong)
        for what, count in short.items():
            print(f"{title}: {count:,} {what}, at least {NEEDED[what]:,} needed", file=sys.stderr)
        for what, tally in wrong.items():
            print(f"{title}: {what} is off {tally.mismatches:,} times", file=sys.stderr)
    lines += summary("Lost packets, 1v1 in rocketsim2", "lost", spoiled.result())
    lines += summary("Dialects, 1v1 in rocketsim2", "dialect", spoken.result())
    failed |= any(one.readers["shadow"].wrong() for one in {**spoiled.result(), **spoken.result()}.values())
    text = "\n".join(lines) + "\n"
    if options.write:
        options.write.write_text(text)
    else:
        print(text)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
