"""The seam to the physics: what steps matches, whichever RocketSim is behind it.

    rows (matches, cars, ticks, 8) -> Simulator.step -> state (a MatchState), events

Two classes: `rocketsim3.RocketSim3`, on `rocketsim_batch` (folder `native/`), and `rocketsim2.RocketSim2`.
"""

import importlib.util
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, Protocol

import numpy as np

from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.arguments import show_value
from rlgym_bridge.user_input.extras import explain_native
from rlgym_bridge.user_input.failures import Failure

ROCKETSIM2: Final = "rocketsim2"
ROCKETSIM3: Final = "rocketsim3"
SIMULATORS: Final = (ROCKETSIM2, ROCKETSIM3)
"""Names of the simulators; what does not say which it had is of the first."""

NEVER: Final = 1e6  # seconds until a pad is back in a match without boost

EVENT: Final = np.dtype(
    [("match", "<u4"), ("tick", "<u4"), ("kind", "<i2"), ("car", "<i2"), ("other", "<i2"),
     ("numbers", "<f4", (6,))]
)  # fmt: skip
"""An event of a step: `tick` counts from 0 in the step, `car` and `other` are -1 for none."""


class EventKind(IntEnum):
    """Kinds of events; what `other` and `numbers` of `EVENT` hold for each."""

    TOUCH = 0
    """A car touched the ball: place in the world, then relative to the ball's centre before the tick, uu."""
    BUMP = 1  # `car` bumped `other`: place, uu
    DEMOLITION = 2  # `car` demolished `other`: place, uu
    PAD = 3  # `car` took pad `other`, numbered as in `MatchState.pad_timer`
    LANDING = 4  # `car` landed on its wheels: how many touch. RocketSim 3 only
    BOUNCE = 5  # the ball met the field at 10 uu/s or more: place, uu, and normal. RocketSim 3 only
    GOAL = 6
    """The ball is in a goal: team that scored, speed in uu/s. RocketSim 3 says who scored and, as `other`,
    who passed; RocketSim 2.2.1 says so by `CREDIT`."""
    SHOT = 7  # `car` shot at the goal, `other` passed
    SAVE = 8  # `car` saved a shot
    CREDIT = 9  # `car` has scored, `other` passed: with the goal, or a tick later. RocketSim 2.2.1 only


VALUES: Final = (
    "ball_max_speed", "respawn_delay", "car_spawn_boost_amount", "demo_mode", "enable_team_demos",
    "unlimited_flips", "unlimited_double_jumps", "boost_pads_enabled",
)  # fmt: skip
"""Mutators that both simulators take as values: uu/s, s, 0..100, 0 (normal), 1 (on contact) or 2 (disabled),
and flags 0 or 1."""


PLAYED_MODES: Final[Mapping[str, int]] = {"Soccar": 0, "Heatseeker": 2, "Snowday": 3}
"""RocketSim's own numbers of the modes (`RocketSim.GameMode`), by the names of `flat.GameMode`."""

_WHY_NOT: Final = {
    "Hoops": "rlgym-rocket-league brings no collision meshes of its arena",
    "Dropshot": "RocketSim 2.2.1 makes no arena of it",
    "Rumble": "RocketSim has none of its items",
}

WHY_SOCCAR: Final = "RocketSim 3 plays Heatseeker and Snowday differently from the game"


class SimulatorError(ValueError):
    """A simulator is not installed, is not known, or cannot do what was asked of it."""


class DeadMatches(Failure):
    """Matches failed inside the simulator: each is dead until `put` makes it anew, the others went on."""

    def __init__(self, text: str, numbers: Sequence[int]) -> None:
        super().__init__(text)
        self.numbers = list(numbers)


class PartTimes:
    """Seconds that the parts of some steps took: sums by the name of the part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._since = time.perf_counter()

    def begin(self) -> None:
        """Begin a part now; what was before belongs to none."""
        self._since = time.perf_counter()

    def end(self, part: str) -> None:
        """Count the time since the last call for a part, and begin the next one."""
        now = time.perf_counter()
        self.seconds[part] += now - self._since
        self._since = now


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

    def set_mutators(
        self, match: int, factors: Mapping[str, float], values: Mapping[str, float] | None = None
    ) -> None:
        """Set the physics of a match from its next `put` on; what is not named is the simulator's own.

        `factors` multiply constants, named as in `physics.CONSTANTS`, or `ball_radius` and `ball_mass`;
        `values` are mutators by the names of `VALUES`. Gravity and the use of boost are fields of the state.
        """

    def put(self, matches: Sequence[int], desired: MatchState) -> None:
        """Put matches into new states, one of `desired` each; what is queued or remembered is forgotten."""

    def nudge(self, matches: Sequence[int], desired: MatchState, ball: bool, cars: np.ndarray) -> None:
        """Set the bodies of the ball and of the cars that `cars`, `(n, cars)` bool, names.

        All that is remembered of them is kept. `desired` has a state for each of the matches.
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

        Raises ValueError if a delay is below 0 or no whole number; DeadMatches if matches failed inside the
        simulator. All others were stepped; the state of the dead ones is as before.
        """

    def play(self, rows: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
        """Play control vectors `(matches, cars, ticks, 8)`, of each match as many ticks as `lengths` says.

        Return the states, `(matches, ticks, size)` float32 as `state.buffer` has them, nan beyond the
        lengths. Raises DeadMatches if some failed inside the simulator.
        """

    def events(self) -> np.ndarray:
        """Return what happened in the latest step, by match and tick: `(events,)` of the dtype `EVENT`."""

    def forecast_ball(self, match: int, ticks: int, every: int = 1) -> np.ndarray:
        """Return the untouched ball every so many ticks, `(frames, 9)` float32: place, velocity, spin."""

    def forecast(self, matches: Sequence[int], rows: np.ndarray, ahead: MatchState) -> None:
        """Play copies of some matches on, by `rows` `(n, cars, ticks, 8)` float32 that act at once.

        `ahead`, as many states, come out as the copies are, but for what a simulator never writes. Raises
        SimulatorError in RocketSim 2.2.1, whose matches cannot be copied to the bit, DeadMatches if a copy
        failed.
        """

    def target_speed(self, match: int) -> float:
        """Return the speed that a homing ball aims at (Heatseeker), uu/s; 0 for any other."""


def spread_delays(delay: Sequence[int] | np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the delay of every car, `(matches, cars)` whole ticks, of what `Simulator.step` takes."""
    late = np.asarray(delay)
    if late.dtype.kind not in "iu" or late.min() < 0:
        raise ValueError(f"delay is {delay}, expected whole ticks, 0 or more")
    if late.shape == shape:
        return late
    return np.broadcast_to(late[:, None] if late.ndim == 1 else late, shape)


def is_installed(name: str) -> bool:
    """Tell whether the package of a simulator is installed."""
    return importlib.util.find_spec("rocketsim_batch" if name == ROCKETSIM3 else "RocketSim") is not None


DEFAULT_SIMULATOR: Final = ROCKETSIM3 if is_installed(ROCKETSIM3) else ROCKETSIM2
"""The simulator of those who name none: RocketSim 3 if its module is installed."""


def check_simulator(name: object) -> str:
    """Return the name of a known, installed simulator; raises SimulatorError, which says what to do."""
    if name not in SIMULATORS:
        raise SimulatorError(f"simulator is {show_value(name)}, expected {' or '.join(SIMULATORS)}")
    if name == ROCKETSIM3 and not is_installed(ROCKETSIM3):
        raise SimulatorError(
            f"simulator is {ROCKETSIM3}, and its module rocketsim_batch is not installed; "
            f"install it: {explain_native()}"
        )
    return str(name)


def mode_number(mode: str) -> int:
    """Return RocketSim's number of a mode; raises ValueError, which says why, if it does not play it."""
    if mode not in PLAYED_MODES:
        why = _WHY_NOT.get(mode, "RocketSim does not know it")
        raise ValueError(f"mode is {mode}, expected one of {', '.join(PLAYED_MODES)}: {why}")
    return PLAYED_MODES[mode]


def simulator_for(mode: str) -> tuple[str, str]:
    """Choose the simulator of a match that names none: RocketSim 3 where it plays the mode.

    Besides the name there is a sentence that says why it is not RocketSim 3, empty where it is.
    """
    if mode != "Soccar":
        return ROCKETSIM2, f"{mode} is played in RocketSim 2.2.1: {WHY_SOCCAR}"
    if not is_installed(ROCKETSIM3):
        return ROCKETSIM2, (
            "matches are played in RocketSim 2.2.1: the module rocketsim_batch of RocketSim 3 is not "
            f"installed; install it: {explain_native()}"
        )
    return DEFAULT_SIMULATOR, ""


def make_simulator(
    name: str, matches: int, blue: int, orange: int, *, mode: str = "Soccar", seed: int = 0,
    thrust: bool = True, threads: int = 1,
) -> Simulator:  # fmt: skip
    """Make matches in one of `SIMULATORS`.

    `mode` is Soccar, Heatseeker or Snowday, `seed` that of the respawns. With `thrust` boost in the air
    pushes in rocketsim2 as in the game. `threads` share the matches of a step in rocketsim3. Raises
    SimulatorError if the simulator is unknown, not installed, or cannot play this mode; ValueError if a
    number is out of range; FileNotFoundError without collision meshes.
    """
    if check_simulator(name) == ROCKETSIM3:
        if mode != "Soccar":
            raise SimulatorError(f"mode is {mode}, expected Soccar with {ROCKETSIM3}: {WHY_SOCCAR}")
        from rlgym_bridge.sim.rocketsim3 import RocketSim3

        return RocketSim3(matches, blue, orange, seed=seed, threads=threads)
    from rlgym_bridge.sim.rocketsim2 import RocketSim2

    return RocketSim2(matches, blue, orange, mode=mode, seed=seed, thrust=thrust)
