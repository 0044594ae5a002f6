"""`python -m tests.parity [--ticks N] [--write lab/parity.md]`: compare all fields; minutes."""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from rlgym_bridge.protocol_variant import POINTS, ProtocolVariant
from rlgym_bridge.sim.simulator import ROCKETSIM2, SIMULATORS, is_installed
from tests.parity.report import NEEDED, heading, missing, section, summary
from tests.parity.run import Loss, Run, run

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
    lines = heading(f"python -m tests.parity --ticks {options.ticks} --seed {options.seed}")
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
