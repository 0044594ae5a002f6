"""Compare a policy on the match server and in training: `python -m tools.two_worlds A B MATCHES`.

    A against B, half from each side -+-> batch arenas, as in training
                                      +-> match server in lockstep: TCP, a process for each bot

Compared are goals and touches in a minute of play: from GO to a goal or the end, without countdowns.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR
from rlgym_bridge.training.evaluate import Evaluation, evaluate

_RESAMPLES = 10_000


def over_the_server(
    a: str,
    b: str,
    matches: int = 200,
    *,
    seconds: float = 60.0,
    seed: int = 0,
    allow_modules: Sequence[str] = (),
    processes: int = 2,
    simulator: str = DEFAULT_SIMULATOR,
) -> Evaluation:
    """Let A and B play 1v1 over the match server, in turn from each side.

    Args:
        a: A policy folder, `"chaser"`, `"charger"` or `"random"`.
        b: The other policy, in the same form.
        matches: How many.
        seconds: Game time of each; a match that is level then is drawn.
        seed: Of the first match; the others' follow.
        allow_modules: Modules that the folders may name.
        processes: Matches at once.
        simulator: What plays, one of `simulator.SIMULATORS`.

    Raises:
        RuntimeError: A match failed; the message is the command's.
    """

    def play(number: int) -> tuple[list[int], list[int], float]:
        swapped = number % 2 == 1
        players = (b, a) if swapped else (a, b)
        found = _server_match(*players, seconds, seed + number, allow_modules, simulator)
        goals, touches = list(found["score"]), [bot["touches"] for bot in found["bots"]]
        if swapped:
            goals.reverse()
            touches.reverse()
        return goals, touches, found["playing_ticks"] / TICKS_PER_SECOND / 60

    with ThreadPoolExecutor(processes) as pool:
        goals, touches, minutes = zip(*pool.map(play, range(matches)), strict=True)
    return Evaluation(np.array(goals), np.array(touches), np.array(minutes))


def rates(found: Evaluation) -> np.ndarray:
    """Return `(4,)` a minute: goals of A and B, touches of A and B."""
    a_minute: np.ndarray = _counts(found).sum(0) / found.minutes.sum()
    return a_minute


def ratios(server: Evaluation, training: Evaluation, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the server's rates as shares of training's.

    Returns:
        `(4,)` ratios, and `(2, 4)` the bounds between which they lie with 95 % (bootstrap over matches).
    """
    random = np.random.default_rng(seed)

    def drawn(found: Evaluation) -> np.ndarray:
        picked = random.multinomial(found.matches, np.full(found.matches, 1 / found.matches), _RESAMPLES)
        a_minute: np.ndarray = picked @ _counts(found) / (picked @ found.minutes)[:, None]
        return a_minute

    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = np.percentile(drawn(server) / drawn(training), (2.5, 97.5), axis=0)
        return rates(server) / rates(training), bounds


def _counts(found: Evaluation) -> np.ndarray:
    return np.concatenate([found.goals, found.touches], 1)


def _server_match(
    blue: str, orange: str, seconds: float, seed: int, allow_modules: Sequence[str], simulator: str
) -> dict[str, Any]:
    allowed = ["--allow-modules", *allow_modules] if allow_modules else []
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        done = subprocess.run(
            [
                sys.executable, "-m", "rlgym_bridge.cli", "match", "--blue", blue, "--orange", orange,
                "--pace", "lockstep", "--seconds", str(seconds), "--max-overtime", "0",
                "--seed", str(seed), "--simulator", simulator, "--quiet", "--json", str(result),
                *allowed,
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"the match with seed {seed} ended with {done.returncode}: {done.stderr}")
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return found


def main(a: str, b: str, matches: int) -> None:
    """Play two policies in both worlds, and print goals and touches a minute with their ratios."""
    training, server = evaluate(a, b, matches, team_size=1), over_the_server(a, b, matches)
    found, (lows, highs) = ratios(server, training)
    print(f"{'for each minute of play':24}training   server   ratio   95 %")
    names = ("goals of A", "goals of B", "touches of A", "touches of B")
    for name, *numbers in zip(names, rates(training), rates(server), found, lows, highs, strict=True):
        here, there, ratio, low, high = numbers
        print(f"{name:24}{here:8.2f} {there:8.2f} {ratio:7.2f}   {low:.2f} to {high:.2f}")
    print(f"win rate of A {training.win_rate:.1%} in training, {server.win_rate:.1%} over the server")


if __name__ == "__main__":
    main(*sys.argv[1:3], int(sys.argv[3]))
