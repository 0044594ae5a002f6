from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

KINDS: list[tuple[str, int]]
SOURCE_HASH: str
VERSION: str

class MatchError(RuntimeError):
    """A match failed inside RocketSim and is dead until `put` makes it anew.

    `args` has the message, which tells about five matches at most, the numbers of all, and the group of each
    in a call for several.
    """

class Layout:
    """Where each field of a match lies in a row of float32.

    Without columns, all fields lie one after another. A layout may lack fields and have columns of its own.

    Args:
        blue: Cars of the blue team, 0 to 4; they come first.
        orange: Cars of the orange team, 0 to 4.
        size: Numbers of a match.
        match_columns: First column of each of the match's fields, by name.
        car_columns: First column of each field within a car's part, by name.
        car_start: Column at which the first car's part begins.
        car_stride: Numbers of a car's part.
        pads: RocketSim's number of each boost pad, in the order of `pad_timer`; see `pad_positions`.

    Raises:
        ValueError: A number is out of its range, a name is unknown, a field has no room, or two overlap.
    """

    def __new__(
        cls,
        blue: int,
        orange: int,
        *,
        size: int | None = None,
        match_columns: Mapping[str, int] | None = None,
        car_columns: Mapping[str, int] | None = None,
        car_start: int | None = None,
        car_stride: int | None = None,
        pads: Sequence[int] | None = None,
    ) -> Layout: ...
    @property
    def size(self) -> int: ...
    @property
    def blue(self) -> int: ...
    @property
    def orange(self) -> int: ...
    @property
    def car_start(self) -> int: ...
    @property
    def car_stride(self) -> int: ...
    @property
    def pads(self) -> list[int]: ...
    @property
    def fields(self) -> dict[str, tuple[int, list[int]]]:
        """Column and shape by name; fields of cars begin with `car_` and count from the car's part."""

class Matches:
    """N matches of equal team sizes, stepped together; its docstrings have the details.

    Args:
        matches: 1 to 100,000.
        layout: Of each match's row.
        seed: 0 to 2^64 - 1; each match draws its own random stream from it.
        threads: 1 to 1,024, which share the work of a call.

    Raises:
        FileNotFoundError: The collision meshes are not loaded.
        ValueError: A number is out of its range. So do all methods, which then change nothing.
        TypeError: What came as a number is none, or is a bool: masks of matches are refused.
        RuntimeError: By all methods: the matches are in another call, such as a step in another thread.
        MatchError: By methods: a match panicked, or is dead.

    Numbers of matches are a sequence or a numpy array, each number once. Arrays are taken as they are:
    C-contiguous, of the dtype that is written here, each with memory of its own. The README has all fields.

    Where RocketSim panics inside a match, `rocketsim_batch.crash_folder` gets a file that
    `python -m rocketsim_batch.replay FILE` plays again.
    """

    def __new__(cls, matches: int, layout: Layout, *, seed: int = 0, threads: int = 1) -> Matches: ...
    def __len__(self) -> int: ...
    @property
    def layout(self) -> Layout: ...
    def seed(self, seed: int, matches: Sequence[int] | None = None) -> None:
        """Begin the random streams of all matches, or of some, anew: kickoff spots and respawns."""
    def mutators(self, number: int) -> dict[str, float]:
        """Return the mutators of a match by name; flags are 0 or 1, `demo_mode` is 0 to 2."""
    def set_mutators(self, number: int, mutators: Mapping[str, float]) -> None:
        """Change mutators of a match; they act from its next `put` on."""
    def put(
        self,
        matches: Sequence[int],
        states: npt.NDArray[np.float32],
        buffer: npt.NDArray[np.float32],
    ) -> None:
        """Make some matches anew from states `(n, size)`, and show them in their rows of `buffer`."""
    def nudge(
        self,
        matches: Sequence[int],
        states: npt.NDArray[np.float32],
        buffer: npt.NDArray[np.float32],
        *,
        ball: bool = True,
        cars: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Move bodies of some matches and keep all that they remember; `cars` is `(n, cars)`."""
    def kickoff(self, matches: Sequence[int], buffer: npt.NDArray[np.float32]) -> None:
        """Put the cars of some matches on random kickoff spots, the ball asleep, all pads there."""
    def clone_into(
        self, sources: Sequence[int], targets: Sequence[int], buffer: npt.NDArray[np.float32]
    ) -> None:
        """Make matches equal to others: state, waiting controls, counts, mutators and random stream.

        `targets[i]` becomes `sources[i]`; a source may come several times, a target once.
        """
    def step(
        self,
        buffer: npt.NDArray[np.float32],
        controls: npt.NDArray[np.float32],
        ticks: int,
        delay: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Step all matches: `controls` `(matches, cars, 1 or ticks, 8)`, `delay` `(matches, cars)` ticks."""
    def play(
        self,
        buffer: npt.NDArray[np.float32],
        controls: npt.NDArray[np.float32],
        *,
        every: int = 1,
        lengths: Sequence[int] | None = None,
    ) -> npt.NDArray[np.float32]:
        """Play `controls` `(matches, cars, ticks, 8)`; return frames `(matches, ticks // every, size)`."""
    def forecast_ball(
        self, matches: Sequence[int], ticks: int = 720, every: int = 1
    ) -> npt.NDArray[np.float32]:
        """Return position, velocity and spin of untouched balls, `(n, ticks // every, 9)`."""
    def forecast(
        self,
        matches: Sequence[int],
        controls: npt.NDArray[np.float32],
        states: npt.NDArray[np.float32],
    ) -> None:
        """Play copies on by `controls` `(n, cars, ticks, 8)`, and show them in `states` `(n, size)`.

        The matches stay as they are. Fields never written stay in `states`; `frame` counts on.
        """
    def events(self) -> np.ndarray:
        """Return the events of the latest step or `play`, of dtype `EVENT`, by match and tick; read-only."""
    def statistics(self) -> npt.NDArray[np.int32]:
        """Return goals, assists, saves, shots, demolitions and touches, `(matches, cars, 6)` int32."""
    def dead(self) -> dict[int, str]:
        """Return the numbers of the dead matches and why they died."""
    def respawn(self, number: int, car: int, buffer: npt.NDArray[np.float32]) -> None:
        """Put a car on a respawn spot of its team now."""
    def demolish(self, number: int, car: int, buffer: npt.NDArray[np.float32]) -> None:
        """Demolish a car now."""
    def panic_next(self, number: int, call: str = "step", ticks: int = 0) -> None:
        """Let the next call of a name panic in a match, a step after some ticks, to test a caller."""
    def set_seeds(self, number: int, seeds: tuple[int, int]) -> None:
        """Set the seeds of a match's random streams, of kickoffs and of respawns, to replay a panic."""

class Observer:
    """How some cars see a match: columns of its row times factors, and vectors in each car's own frame.

    An observation begins with columns times factors. The arguments from `rotations` to `goals` are given
    together or not at all: `count` vectors, 5 at least. The first three are made of length 1; the second and
    the third end at `goals`. All are multiplied by their factors, and turned by the car's rotation. After the
    fifth come position and velocity of each other car.

    Args:
        width: Numbers of a match's row.
        size: Numbers of an observation. What neither columns nor vectors write stays as it is.
        columns: int64 `(cars, numbers)`, the columns that each observing car is shown first; -1 for none.
        factors: float32 `(cars, numbers)`; without a column, the number that is shown.
        minus: int64 `(cars, numbers)`, columns that are taken off before the factor; -1 for none.
        absent: bool `(cars, numbers)`, what shows 1 where its column is 0, and else 0.
        rotations: First columns of the cars' rotation matrices.
        places: `count` places in the observation at which the vectors' three numbers begin.
        ends: int64 `(cars, count)`, first columns of three at which the vectors end.
        origins: int64 `(cars, count)`, first columns of three at which they begin.
        sight_factors: float32 `(cars, count)`.
        goals: float32 `(cars, 2, 3)`.
        start: Where the other cars' blocks of one size begin, which are sorted by distance; None: no sort.
        ranks: float64 `(cars, blocks)`, added to the squared distances.

    Raises:
        ValueError: An array has another shape or dtype, or a column or place lies outside.
    """

    def __new__(
        cls,
        width: int,
        size: int,
        columns: npt.NDArray[np.int64],
        factors: npt.NDArray[np.float32],
        *,
        minus: npt.NDArray[np.int64] | None = None,
        absent: npt.NDArray[np.bool_] | None = None,
        rotations: Sequence[int] | None = None,
        places: Sequence[int] | None = None,
        ends: npt.NDArray[np.int64] | None = None,
        origins: npt.NDArray[np.int64] | None = None,
        sight_factors: npt.NDArray[np.float32] | None = None,
        goals: npt.NDArray[np.float32] | None = None,
        start: int | None = None,
        ranks: npt.NDArray[np.float64] | None = None,
    ) -> Observer: ...
    def observe(self, buffer: npt.NDArray[np.float32], observations: npt.NDArray[np.float32]) -> None:
        """Write observations `(matches, cars, size)` of a buffer `(matches, width)`."""

class Rewards:
    """Terms of rewards for one step, each with the row of an array that it fills.

    Terms are goal, touch, touch_strength, velocity_to_ball, speed, velocity_ball_to_goal, face_ball,
    boost_kept, boost_picked_up, save (number: seconds), demolition, mate_distance (number: uu that are
    enough), air_touch, fly_to_ball (number: least height of the ball in uu), in_air and kickoff_speed.

    Args:
        layout: Of the matches.
        terms: Row, name and number of each; the number is 0 where a term has none.

    Raises:
        ValueError: A term is unknown, or the layout lacks a field.
    """

    def __new__(cls, layout: Layout, terms: Sequence[tuple[int, str, float]]) -> Rewards: ...
    def fill(
        self,
        before: npt.NDArray[np.float32],
        after: npt.NDArray[np.float32],
        columns: npt.NDArray[np.float32],
    ) -> None:
        """Write terms into their rows of `columns` `(rows, matches, cars)`, of states `(matches, size)`."""

def add_rewards(
    columns: npt.NDArray[np.float32],
    weights: Sequence[float],
    blue: int,
    team_spirit: float,
    zero_sum: bool,
    total: npt.NDArray[np.float32],
) -> None:
    """Write the weighted sum of `columns` `(rows, matches, cars)` into `total` `(matches, cars)`.

    Args:
        columns: Terms.
        weights: Of the rows.
        blue: Cars of the blue team.
        team_spirit: Share, 0 to 1, of the mean of the own team.
        zero_sum: Whether the mean of the other team is taken off.
        total: The sum.
    """

class BallFlights:
    """Forecasts of untouched balls from the numbers that a match shows of them: equal numbers, equal bits.

    Args:
        ticks: Ticks ahead, each 1 to 1,200.

    Raises:
        FileNotFoundError: The collision meshes are not loaded.
        ValueError: A number is out of its range.
    """

    def __new__(cls, ticks: Sequence[int]) -> BallFlights: ...
    def forecast(self, balls: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return position, velocity and spin, `(n, len(ticks), 9)`, of balls `(n, 10)`.

        A ball is times the game's gravity, position (uu), velocity (uu/s), spin (rad/s).
        """

def step_groups(
    groups: Sequence[
        tuple[Matches, npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.int64] | None]
    ],
    ticks: int,
) -> None:
    """Step several groups of matches in one call, on one pool of threads.

    Args:
        groups: Matches, buffer, controls and delay (or None) of each, as `Matches.step` takes them.
        ticks: Ticks of the step.

    Raises:
        ValueError: An argument is wrong; the message names the group, and nothing was stepped.
        MatchError: Matches panicked: `args[1]` has their numbers, `args[2]` their groups.
    """

def load_meshes(folder: str | Path) -> None:
    """Load the collision meshes of `folder/soccar`; callers use `rocketsim_batch.load_meshes`."""

def meshes_loaded() -> bool:
    """Return whether the collision meshes are loaded."""

def pad_positions() -> list[tuple[float, float, float, bool]]:
    """Return x, y, z (uu) of each boost pad, and whether it is a big one, in RocketSim's order.

    Raises:
        FileNotFoundError: The collision meshes are not loaded.
    """
