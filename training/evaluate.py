"""Say which of two policies is better, with a confidence interval: `python -m training.evaluate A B`.

Half of the matches are played from each side. A win is more goals, a draw half a win.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rlgym_bridge.training.intervals import share_interval
from rlgym_bridge.training.play_options import SECONDS, add_options, how
from rlgym_bridge.training.play_pool import open_pool
from rlgym_bridge.training.policy_matches import MatchTotals, check_players, play_matches, team_size_of
from rlgym_bridge.training.scene_report import TRIALS, run_scenes
from rlgym_bridge.training.scenes import SCENES

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files, run_command
from rlgym_bridge.policy.files import policy_path, shorten_policy
from rlgym_bridge.policy.load_player import CHASER
from rlgym_bridge.project.this_project import run_named
from rlgym_bridge.server.game.rules import LONGEST_SECONDS

_MATCHES = 200  # when nothing is said
_LEAST_SECONDS = 1.0  # shorter ones end before a step
_MOST_MATCHES = 1_000_000
_AT_ONCE = 25  # matches of a job


@dataclass(frozen=True)
class Evaluation:
    """Some matches of A against B.

    Attributes:
        goals: `(matches, 2)` int64, of A and B.
        touches: `(matches, 2)` int64, of A's cars and B's.
        minutes: `(matches,)` of play.
        team_size: Cars a team.
        delays: Ticks after which the actions of A and of B acted.
    """

    goals: np.ndarray
    touches: np.ndarray
    minutes: np.ndarray
    team_size: int = 1
    delays: tuple[int, int] = (1, 1)

    @property
    def matches(self) -> int:
        """Number of matches."""
        return len(self.goals)

    @property
    def leads(self) -> np.ndarray:
        """`(matches,)` goals of A less those of B."""
        leads: np.ndarray = self.goals[:, 0] - self.goals[:, 1]
        return leads

    @property
    def results(self) -> tuple[int, int, int]:
        """Matches that A won, drew and lost."""
        return int((self.leads > 0).sum()), int((self.leads == 0).sum()), int((self.leads < 0).sum())

    @property
    def touches_per_minute(self) -> tuple[float, float]:
        """Of a car of A and of B."""
        a, b = (self.touches.sum(0) / (self.minutes.sum() * self.team_size)).tolist()
        return a, b

    @property
    def win_rate(self) -> float:
        """Wins and half of the draws, of all matches."""
        won, drawn, _ = self.results
        return (won + drawn / 2) / self.matches

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the win rate, 95 % confidence (Wilson's interval; too wide where matches are drawn)."""
        return share_interval(self.win_rate, self.matches)


def evaluate(
    a: str,
    b: str,
    matches: int = _MATCHES,
    *,
    seconds: float = 60.0,
    seed: int = 0,
    team_size: int | None = None,
    selection: str | None = None,
    action_delay: Sequence[int] | None = None,
    allow_modules: Sequence[str] = (),
    processes: int = 2,
    rules: str = "default",
) -> Evaluation:
    """Let A and B play, half of the matches from each side.

    Args:
        a: A policy folder (a checkpoint is one), `"chaser"`, `"charger"` or `"random"`.
        b: The other policy, in the same form.
        matches: How many, an even number.
        seconds: Game time of each.
        seed: Of everything.
        team_size: Cars a team; None for what A was trained for.
        selection: `"sample"` or `"argmax"` in place of the folders' own.
        action_delay: Ticks after which the actions of A and of B act, in place of the folders' own.
        allow_modules: Modules that the folders may name.
        processes: At once.
        rules: The game's rules to play by, see `game_rules.parse_rules`.

    Raises:
        ValueError: The number of matches is odd, below 2 or above 1,000,000; else as `play_matches`.
    """
    check_numbers(matches, seconds, seed=(seed, 0), processes=(processes, 1))
    team_size = team_size_of(a, b) if team_size is None else team_size
    check_numbers(matches, seconds, team_size=(team_size, 1))
    check_players((a, b), team_size, action_delay)
    jobs = _jobs(matches, seed)
    goals, touches, minutes = [], [], []
    with open_pool(processes) as pool:
        futures = [
            pool.submit(
                play_matches, *((b, a) if swapped else (a, b)), size, seconds=seconds, seed=one,
                team_size=team_size, selection=selection,
                action_delay=action_delay[::-1] if swapped and action_delay else action_delay,
                allow_modules=allow_modules, rules=rules,
            )
            for swapped, size, one in jobs
        ]  # fmt: skip
        for (swapped, size, _), future in zip(jobs, futures, strict=True):
            scores: MatchTotals = future.result()
            order = [1, 0] if swapped else [0, 1]
            delays = scores.delays[order[0]], scores.delays[order[1]]
            goals.append(scores.goals[:, order])
            touches.append(scores.touches.reshape(size, 2, team_size).sum(2)[:, order])
            minutes.append(np.full(size, scores.minutes))
    every = [np.concatenate(found) for found in (goals, touches, minutes)]
    return Evaluation(every[0], every[1], every[2], team_size, delays)


def check_numbers(matches: int, seconds: float, **least: tuple[int, int]) -> None:
    """Check the numbers by which matches are played; `least` has value and lower bound by name.

    Raises:
        ValueError: One is out of range.
    """
    if matches < 2 or matches % 2:
        raise ValueError(
            f"matches is {matches}, expected an even number, 2 or more: half are played from each side"
        )
    if matches > _MOST_MATCHES:
        raise ValueError(f"matches is {matches}, expected {_MOST_MATCHES:,} at most")
    if not _LEAST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise ValueError(
            f"seconds is {seconds:g}, expected {_LEAST_SECONDS:g} to {LONGEST_SECONDS:g} (a day)"
        )
    for name, (value, bound) in least.items():
        if value < bound:
            raise ValueError(f"{name} is {value}, expected {bound} or more")


def _jobs(matches: int, seed: int) -> list[tuple[bool, int, int]]:
    """Return jobs of some matches each: whether A is orange, number of matches, seed."""
    half = matches // 2
    jobs: list[tuple[bool, int, int]] = []
    for swapped in (False, True):
        left, number = half, 0
        while left:
            size = min(left, _AT_ONCE)  # not by the processes: seeds follow from it
            jobs.append((swapped, size, 1_000_003 * seed + 10 * number + 5 * swapped))
            left, number = left - size, number + 1
    return jobs


def _delays(text: str) -> list[int]:
    """Return the delays of A and B from one number, or from two with a comma between."""
    try:
        delays = [int(one) for one in text.split(",")]
    except ValueError:
        delays = []
    if not 1 <= len(delays) <= 2:
        raise argparse.ArgumentTypeError(f"{text!r}, expected ticks, or A's and B's: 16,1")
    return delays * 2 if len(delays) == 1 else delays


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Let two policies play against each other and say which is better, with a 95 % interval. A win is "
        "more goals; a draw counts half. Or, with --scenes, measure the skills of one."
    )
    parser.add_argument(
        "a", nargs="?", metavar="A",
        help="policy folder, training run (its newest checkpoint), chaser, charger, or random, which presses "
        "buttons at random (default: the run of train.toml in this folder)",
    )  # fmt: skip
    parser.add_argument(
        "b", nargs="?", metavar="B", help="its opponent, given the same way (default: chaser)"
    )
    add_options(parser, _MATCHES, "half of them from each side")
    parser.set_defaults(matches=None, seconds=None)  # so that `run` knows what was given
    parser.add_argument(
        "--scenes", nargs="?", const=",".join(SCENES), metavar="NAMES",
        help="play scenes with A in place of matches: saves, shots and other skills; A may be standing, a "
        f"car that does nothing (NAMES: with commas between them: {', '.join(SCENES)}; default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--trials", type=int, metavar="N",
        help=f"with --scenes: trials of each, half of them on each side (default: {TRIALS})",
    )  # fmt: skip
    parser.add_argument(
        "--team-size", type=int, metavar="N", help="cars in a team (default: what A was trained for)"
    )
    parser.add_argument(
        "--action-delay", type=_delays, metavar="TICKS[,TICKS]",
        help="ticks that an action waits, from the state it was decided on to the first tick it drives: of "
        "both, or of A and of B (default: what the policy folders say)",
    )  # fmt: skip
    choice = parser.add_mutually_exclusive_group()
    for name, value, text in (
        (
            "--deterministic",
            "argmax",
            "always play the most likely action (default: what the policy folders say)",
        ),
        ("--sample", "sample", "sample actions (default: what the policy folders say)"),
    ):
        choice.add_argument(name, dest="selection", action="store_const", const=value, help=text)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    say = shared.printer(options)
    output_files.check_outputs(options.json)
    first = run_named(options.a, "A", "a policy folder, a training run, chaser, charger or random")
    if options.scenes is not None:
        return run_scenes(options, first)
    if options.trials is not None:
        raise ValueError("--trials is given without --scenes, expected --matches, or --scenes beside it")
    if options.seconds is None:
        options.seconds = SECONDS
    second = options.b or CHASER
    a, b = policy_path(first), policy_path(second)
    found = evaluate(
        a,
        b,
        _MATCHES if options.matches is None else options.matches,
        team_size=options.team_size,
        selection=options.selection,
        action_delay=options.action_delay,
        **how(options, first, second),
    )
    (low, high), (won, drawn, lost) = found.interval, found.results
    goals, touches = found.goals.sum(0).tolist(), found.touches_per_minute
    chosen = {"sample": ", sampled actions", "argmax": ", argmax actions"}.get(options.selection, "")
    size = found.team_size
    names = f"{shorten_policy(a)} against {shorten_policy(b)}"
    say(f"{names}, {found.matches} matches {size}v{size} of {options.seconds:g} s{chosen}")
    say(f"  won {won}, drawn {drawn}, lost {lost}, goals {goals[0]} : {goals[1]}")
    say(f"  win rate {found.win_rate:.1%} (a draw counts half; 95 %: {low:.1%} to {high:.1%})")
    say(f"  touches per car per minute {touches[0]:.1f} and {touches[1]:.1f}")
    delays = " and ".join(map(str, found.delays))
    say(f"  action delay {delays} ticks, from the state decided on to the first tick driven")
    result = {
        "matches": found.matches, "win_rate": found.win_rate, "interval": [low, high], "goals": goals,
        "won": won, "drawn": drawn, "lost": lost, "action_delay": found.delays,
        "touches_per_minute": list(touches), "minutes": float(found.minutes.sum()),
        "team_size": size,
    }  # fmt: skip
    return 0 if output_files.write_json(options.json, result) else 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `rlgym-bridge evaluate`; see `rlgym_bridge.cli.run_command`."""
    return run_command("evaluate", arguments, "python -m training.evaluate")


if __name__ == "__main__":
    sys.exit(main())
