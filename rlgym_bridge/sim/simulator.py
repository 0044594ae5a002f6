"""The seam to the physics: what steps matches, whichever RocketSim is behind it.

    rows (matches, cars, ticks, 8) -> Simulator.step -> state (a MatchState), events

Two classes: `rocketsim3.RocketSim3`, on the module `rocketsim_batch` (folder `native/`), and
`arenas.Arenas`, on the package RocketSim 2.2.1. A test holds the list of the modules beside them that still
import either package.
"""

import importlib.util
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from rlgym_bridge.sim.game_rules import DEFAULT, ROCKETSIM, describe_rules
from rlgym_bridge.sim.part_times import PartTimes
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.arguments import show_value
from rlgym_bridge.user_input.extras import explain_native

ROCKETSIM2: Final = "rocketsim2"
ROCKETSIM3: Final = "rocketsim3"
SIMULATORS: Final = (ROCKETSIM2, ROCKETSIM3)
"""Names of the simulators; what does not say which it had is of the first."""

DEFAULT_SIMULATOR: Final = ROCKETSIM2


class SimulatorError(ValueError):
    """A simulator is not installed, is not known, or cannot do what was asked of it."""


class DeadMatches(RuntimeError):
    """Matches failed inside the simulator: each is dead until `put` makes it anew, the others went on.

    Args:
        text: The message; it names the matches.
        numbers: Of the matches.

    Attributes:
        numbers: As given.
    """

    def __init__(self, text: str, numbers: Sequence[int]) -> None:
        super().__init__(text)
        self.numbers = list(numbers)


class Simulator(Protocol):
    """N matches of equal team sizes, stepped together.

    Attributes:
        state: All matches after the latest `put`, `nudge` or `step`, derived fields included. `frame` counts
            each match's ticks, `car_ball_touches` the ticks of ball contact in the latest step; phase, clock
            and score stay as they were put.
    """

    state: MatchState

    def seed(self, seed: int) -> None:
        """Begin the random stream of the respawns anew."""

    def scale(self, match: int, factors: Mapping[str, float]) -> None:
        """Set the constants of a match's physics from its next `put` on.

        Args:
            match: Its number.
            factors: Multiples of the simulator's own, by the names of `physics.CONSTANTS`.
        """

    def put(self, matches: Sequence[int], desired: MatchState) -> None:
        """Put matches into new states, one of `desired` each; what is queued or remembered is forgotten."""

    def nudge(self, matches: Sequence[int], desired: MatchState, ball: bool, cars: np.ndarray) -> None:
        """Set place, rotation and velocities of some bodies, and keep all that is remembered.

        Args:
            matches: Their numbers.
            desired: A state of as many matches.
            ball: Whether the ball moves.
            cars: `(n, cars)` bool, those that move.
        """

    def step(
        self, rows: np.ndarray, delay: Sequence[int] | np.ndarray | None = None,
        times: PartTimes | None = None,
    ) -> None:  # fmt: skip
        """Step all matches, every car driven by its control vectors.

        Args:
            rows: `(matches, cars, ticks, 8)` float32, one a tick, or with a stride of 0 over the ticks.
            delay: Ticks, 0 or more, after which they begin to act: of each match, or `(matches, cars)`; 1
                when None. What has not acted yet acts in later steps, unless vectors with a shorter delay
                come before it.
            times: Counts the time of `physics` and of `reading`; None counts nothing.

        Raises:
            ValueError: A delay is below 0 or no whole number.
            DeadMatches: Matches failed inside the simulator. All others were stepped; the state of the dead
                ones is as before.
        """

    def forecast_ball(self, match: int, ticks: int, every: int = 1) -> np.ndarray:
        """Return where the ball goes while nobody touches it.

        Returns:
            `(ticks // every, 9)` float32: position (uu), velocity (uu/s) and spin (rad/s).
        """


def check_simulator(name: object) -> str:
    """Return the name of a simulator that is known and installed.

    Raises:
        SimulatorError: It is not; the message says what to do.
    """
    if name not in SIMULATORS:
        raise SimulatorError(f"simulator is {show_value(name)}, expected {' or '.join(SIMULATORS)}")
    if name == ROCKETSIM3 and importlib.util.find_spec("rocketsim_batch") is None:
        raise SimulatorError(
            f"simulator is {ROCKETSIM3}, and its module rocketsim_batch is not installed; "
            f"install it: {explain_native()}"
        )
    return str(name)


def check_rules(simulator: str, rules: frozenset[str]) -> None:
    """Make sure that a simulator can play by some rules of the game.

    Args:
        simulator: One of `SIMULATORS`.
        rules: See `game_rules.parse_rules`.

    Raises:
        SimulatorError: RocketSim 3 was asked for corrections of RocketSim 2.2.1.
    """
    if simulator == ROCKETSIM3 and rules not in (DEFAULT, ROCKETSIM):
        raise SimulatorError(
            f"rules are {describe_rules(rules)}, expected none with {ROCKETSIM3}: "
            "they correct RocketSim 2.2.1, and RocketSim 3 has the game's own"
        )


def make_simulator(
    name: str, matches: int, blue: int, orange: int, *, reads: Collection[str] | None = None, seed: int = 0,
    rules: frozenset[str] | None = None,
) -> Simulator:  # fmt: skip
    """Make matches in a simulator.

    Args:
        name: One of `SIMULATORS`.
        matches: N, 1 or more.
        blue: Cars in the blue team, 0..4.
        orange: Cars in the orange team, 0..4.
        reads: What is read of a state, see `Arenas`; rocketsim3 fills all fields at no cost.
        seed: Of the respawns.
        rules: Corrections of RocketSim 2.2.1, see `game_rules.parse_rules`; none when None. RocketSim 3
            has the game's own rules and takes no others than the default.

    Raises:
        SimulatorError: The simulator is not known or not installed, or cannot play by these rules.
        ValueError: The number of matches or cars is out of range.
        FileNotFoundError: The collision meshes are not installed.
    """
    if check_simulator(name) == ROCKETSIM3:
        check_rules(name, rules or ROCKETSIM)
        from rlgym_bridge.sim.rocketsim3 import RocketSim3

        return RocketSim3(matches, blue, orange, seed=seed)
    from rlgym_bridge.sim.arenas import Arenas

    return Arenas(matches, blue, orange, reads=reads, seed=seed, rules=ROCKETSIM if rules is None else rules)
