"""Rate the checkpoints of a run on one scale: `python -m training.ratings RUN`.

Each plays its neighbours and Chaser; `openskill` (Plackett-Luce) makes ratings of the results. A rating is
a mean and a deviation; what is sure is the mean less three deviations, as is usual.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random

from openskill.models import PlackettLuce

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files, run_command
from rlgym_bridge.policy.files import CHECKPOINTS, all_checkpoints
from rlgym_bridge.policy.load_player import CHASER
from rlgym_bridge.project.this_project import run_named
from training.evaluate import evaluate
from training.play_options import add_options, how

_ORDERS = 10  # of the results, over which a rating is the mean


@dataclass(frozen=True)
class Rating:
    """The rating of one player.

    Attributes:
        name: The last part of its path, or `chaser`.
        mean, deviation: openskill's mu and sigma.
    """

    name: str
    mean: float
    deviation: float

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds between which the rating lies with 95 % confidence."""
        return self.mean - 1.96 * self.deviation, self.mean + 1.96 * self.deviation

    @property
    def sure(self) -> float:
        """A lower bound of the rating: mean less three deviations, 99.9 % confidence."""
        return self.mean - 3 * self.deviation


def rate(
    players: Sequence[str],
    matches: int = 20,
    *,
    seconds: float = 60.0,
    seed: int = 0,
    team_size: int | None = None,
    allow_modules: Sequence[str] = (),
    processes: int = 2,
    rules: str = "default",
) -> list[Rating]:
    """Let policies play their neighbours in the list and the last one, and rate them all.

    Args:
        players: Policy folders or `"chaser"`, two at least.
        matches: Of each pair, half from each side.
        seconds: Game time of each.
        seed: Of everything; also of the order in which results are counted.
        team_size: Cars a team; None for what they were trained for.
        allow_modules: Modules that the folders may name.
        processes: At once.
        rules: The game's rules to play by, see `game_rules.parse_rules`.

    Returns:
        In the order of `players`.

    Raises:
        ValueError: There are fewer than two players; else as `evaluate`.
    """
    if len(players) < 2:
        raise ValueError(f"there are {len(players)} players, expected two or more")
    *others, yardstick = players
    pairs = [*pairwise(others), *((one, yardstick) for one in others)]
    outcomes: list[tuple[str, str, int]] = []
    for number, (a, b) in enumerate(pairs):
        found = evaluate(
            a, b, matches, seconds=seconds, seed=1000 * seed + number, team_size=team_size,
            allow_modules=allow_modules, processes=processes, rules=rules,
        )  # fmt: skip
        outcomes += [(a, b, lead) for lead in found.leads.tolist()]
    rated = rate_outcomes(players, outcomes, seed)
    return [replace(one, name=Path(one.name).name) for one in rated]


def rate_outcomes(
    players: Sequence[str], outcomes: Iterable[tuple[str, str, int]], seed: int = 0
) -> list[Rating]:
    """Rate players by the results of their matches.

    A rating trusts what comes last most, so it is the mean over some orders of the results.

    Args:
        players: Their names, all different.
        outcomes: Two players, and the lead of the first: above 0 where it won, 0 for a draw.
        seed: Of the orders.

    Returns:
        In the order of `players`; everybody starts at 25.
    """
    model, random, shuffled = PlackettLuce(), Random(seed), list(outcomes)
    totals = dict.fromkeys(players, (0.0, 0.0))
    for _ in range(_ORDERS):
        random.shuffle(shuffled)
        ratings = {player: model.rating() for player in players}
        for a, b, lead in shuffled:
            [[ratings[a]], [ratings[b]]] = model.rate(
                [[ratings[a]], [ratings[b]]], ranks=[int(lead < 0), int(lead > 0)]
            )
        for player, (mean, deviation) in totals.items():
            totals[player] = mean + ratings[player].mu, deviation + ratings[player].sigma
    return [Rating(name, mean / _ORDERS, deviation / _ORDERS) for name, (mean, deviation) in totals.items()]


def checkpoints(run: Path, most: int) -> list[str]:
    """Return checkpoints of a run from the first to the newest, evenly spread where there are too many.

    Raises:
        ValueError: The run has none.
    """
    found = all_checkpoints(run)
    if not found:
        raise ValueError(f"{run / CHECKPOINTS} has no checkpoints, expected the folder of a training run")
    if len(found) > most:
        found = [found[round(i * (len(found) - 1) / (most - 1))] for i in range(most)]
    return [str(one) for one in found]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = "Rate the checkpoints of a training run, and Chaser, on one scale (openskill)."
    parser.add_argument(
        "run", nargs="?", metavar="RUN", type=Path,
        help="folder of a training run (default: the run of train.toml in this folder)",
    )  # fmt: skip
    add_options(parser, 20, "for each pair of players")
    parser.add_argument(
        "--most",
        type=int,
        default=10,
        metavar="N",
        help="rate at most N checkpoints, evenly spread (default: %(default)s)",
    )
    parser.add_argument(
        "--team-size", type=int, metavar="N", help="cars in a team (default: what the run trained)"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    say = shared.printer(options)
    output_files.check_outputs(options.json)
    if options.most < 2:
        raise ValueError(f"--most is {options.most}, expected 2 or more")
    if options.seed < 0:
        raise ValueError(f"--seed is {options.seed}, expected 0 or more")
    options.run = Path(run_named(options.run and str(options.run), "RUN", "the folder of a training run"))
    players = [*checkpoints(options.run, options.most), CHASER]
    ratings = rate(players, options.matches, team_size=options.team_size, **how(options, options.run))
    say(f"{'checkpoint':>14}  rating  deviation  at least")
    for one in ratings:
        say(f"{one.name:>14}  {one.mean:6.1f}  {one.deviation:9.1f}  {one.sure:8.1f}")
    say("everybody starts at 25; at least: rating less three deviations")
    rows = [{"name": one.name, "mean": one.mean, "deviation": one.deviation} for one in ratings]
    return 0 if output_files.write_json(options.json, rows) else 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `rlgym-bridge ratings`; see `rlgym_bridge.cli.run_command`."""
    return run_command("ratings", arguments, "python -m training.ratings")


if __name__ == "__main__":
    sys.exit(main())
