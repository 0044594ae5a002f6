"""Step matches in RocketSim 3, through the module `rocketsim_batch` of the folder `native/`.

The module writes every field, the derived ones too, straight into the state's buffer.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final

import numpy as np
import rocketsim_batch

from rlgym_bridge.game import PAD_POSITIONS
from rlgym_bridge.sim.simulator import DeadMatches, PartTimes, spread_delays
from rlgym_bridge.state import CAR_COLUMNS, MATCH_COLUMNS, MatchState, layout_of
from rlgym_bridge.user_input.arguments import check_whole
from rlgym_bridge.user_input.extras import load_native, meshes_folder

_NAMES: Final = {"ball_world_restitution": "ball_bounciness"}
"""Constants of `physics.CONSTANTS` that have another name there."""


class RocketSim3:
    """N matches of equal team sizes in RocketSim 3; arguments and errors as of `make_simulator`.

    Equal seeds, states and control vectors give equal matches, to the bit, whatever was played in them before
    and in however many threads. Raises ImportError for a `rocketsim_batch` of another interface.
    """

    def __init__(self, matches: int, blue: int, orange: int, *, seed: int = 0, threads: int = 1) -> None:
        check_whole("matches", matches, 1)
        _load_meshes()
        self.state = MatchState(blue, orange, matches)
        self._matches = rocketsim_batch.Matches(matches, _layout(blue, orange), seed=seed, threads=threads)
        self._own = self._matches.mutators(0)
        self._cars = (matches, blue + orange)
        self._one_tick = np.ones(self._cars, np.int64)

    def seed(self, seed: int) -> None:
        """Begin the random stream of the respawns anew."""
        self._matches.seed(seed)

    def set_mutators(
        self, match: int, factors: Mapping[str, float], values: Mapping[str, float] | None = None
    ) -> None:
        """Set the physics of a match from its next `put` on; see `Simulator.set_mutators`."""
        names = {_NAMES.get(name, name): factor for name, factor in factors.items()}
        scaled = {name: self._own[name] * factor for name, factor in names.items()}
        self._matches.set_mutators(match, self._own | scaled | dict(values or {}))

    def put(self, matches: Sequence[int], desired: MatchState) -> None:
        """Put some matches into new states; raises ValueError for a number of states, or absurd values."""
        if desired.matches != len(matches):
            raise ValueError(f"{desired.matches} states for {len(matches)} matches, expected one each")
        with _naming_the_dead():
            self._matches.put(list(matches), desired.buffer, self.state.buffer)

    def nudge(self, matches: Sequence[int], desired: MatchState, ball: bool, cars: np.ndarray) -> None:
        """Move the ball and the cars that `cars`, `(n, cars)` bool, names; see `Simulator.nudge`."""
        with _naming_the_dead():
            self._matches.nudge(list(matches), desired.buffer, self.state.buffer, ball=ball, cars=cars)

    def step(
        self, rows: np.ndarray, delay: Sequence[int] | np.ndarray | None = None,
        times: PartTimes | None = None,
    ) -> None:  # fmt: skip
        """Step all matches by control vectors `(matches, cars, ticks, 8)`; see `Simulator.step`."""
        late = self._one_tick if delay is None else self._delays(delay)
        ticks = rows.shape[2]
        given = rows[:, :, :1] if ticks > 1 and rows.strides[2] == 0 else rows
        try:
            self._matches.step(self.state.buffer, np.ascontiguousarray(given, np.float32), ticks, late)
        except rocketsim_batch.MatchError as error:
            raise _dead(error) from error
        finally:
            if times is not None:
                times.end("physics")

    def play(self, rows: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
        """Play `(matches, cars, ticks, 8)`; return `(matches, ticks, size)`; see `Simulator.play`."""
        given = np.ascontiguousarray(rows, np.float32)
        with _naming_the_dead():
            return np.asarray(self._matches.play(self.state.buffer, given, lengths=list(lengths)))

    def _delays(self, delay: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return delays of `step` as the module takes them; it checks whole ones that are as long already."""
        late = np.asarray(delay)
        if late.dtype == np.int64 and late.shape == self._cars and late.flags.c_contiguous:
            return late
        return np.ascontiguousarray(spread_delays(delay, self._cars), np.int64)

    def forecast_ball(self, match: int, ticks: int, every: int = 1) -> np.ndarray:
        """Return where the untouched ball goes, shape `(ticks // every, 9)`; see `Simulator`."""
        frames: np.ndarray = self._matches.forecast_ball([match], ticks, every)
        return np.asarray(frames[0])

    def forecast(self, matches: Sequence[int], rows: np.ndarray, ahead: MatchState) -> None:
        """Play copies on by control vectors `(n, cars, ticks, 8)`; see `Simulator.forecast`."""
        with _naming_the_dead():
            self._matches.forecast(list(matches), np.ascontiguousarray(rows, np.float32), ahead.buffer)

    def events(self) -> np.ndarray:
        """Return the events of the latest step, shape `(events,)`; see `Simulator.events`."""
        return np.asarray(self._matches.events())

    def target_speed(self, match: int) -> float:
        """Return 0: the ball of Soccar has no aim."""
        return 0.0


@contextmanager
def _naming_the_dead() -> Iterator[None]:
    """Raise `DeadMatches` where matches panic inside RocketSim."""
    try:
        yield
    except rocketsim_batch.MatchError as error:
        raise _dead(error) from error


def _dead(error: rocketsim_batch.MatchError) -> DeadMatches:
    text, numbers, _ = error.args
    folder = rocketsim_batch.crash_folder  # of files that replay it; None writes none
    return DeadMatches(text if folder is None else f"{text} (files in {folder})", numbers)


@cache
def _load_meshes() -> None:
    load_native().load_meshes(meshes_folder())


@cache
def _layout(blue: int, orange: int) -> rocketsim_batch.Layout:
    """Return where the fields of `MatchState` lie, with the pads in its order."""
    there = [(x, y) for x, y, _, _ in rocketsim_batch.pad_positions()]
    pads = [
        min(range(len(there)), key=lambda number: abs(there[number][0] - x) + abs(there[number][1] - y))
        for x, y in PAD_POSITIONS
    ]
    return make_layout(blue, orange, pads)


def make_layout(blue: int, orange: int, pads: Sequence[int] | None = None) -> rocketsim_batch.Layout:
    """Return where the fields of `MatchState` lie; `pads` are RocketSim's numbers, None for unread ones."""
    ours = layout_of(blue, orange)
    return rocketsim_batch.Layout(
        blue, orange, size=ours.size, car_start=ours.car_start, car_stride=ours.car_stride, pads=pads,
        match_columns=MATCH_COLUMNS, car_columns=CAR_COLUMNS,
    )  # fmt: skip
