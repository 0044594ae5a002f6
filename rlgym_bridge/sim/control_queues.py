"""Keep control rows that have yet to act, and step matches by them."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

import numpy as np
import RocketSim as rsim

_WHEN = itemgetter(0, 1, 2)  # tick, new controls before cars that come back, car

_Queue = deque[tuple[int, bytes, rsim.CarControls]]
"""Rows of a car that have yet to act: the first tick, the row as bytes, and as RocketSim has it."""

Play = Callable[[int, Callable[[int], None], Sequence[rsim.Car]], None]
"""A function that plays a step of one match: its number, what steps its arena, its cars."""

_Due = tuple[int, int, int, bytes, rsim.CarControls | None]


class ControlQueues:
    """The control rows of all cars, each of which acts some ticks after it was given.

    Args:
        matches: Number of matches.
        cars: Cars in a match.
        respawn: Puts a demolished car back.

    Attributes:
        held: Rows that drove the latest tick, as bytes of 8 float32, match by match and car by car.
    """

    def __init__(self, matches: int, cars: int, respawn: Callable[[rsim.Car], None]) -> None:
        self.held = [bytes(32) for _ in range(matches * cars)]
        self._cars, self._respawn = cars, respawn
        self._queues: list[_Queue] = [deque() for _ in self.held]
        self._waiting = False  # whether a queue may hold rows
        self._tick = 0  # of all matches, from the beginning on

    def begin(self, match: int, rows: np.ndarray) -> None:
        """Forget what waits in a match; its cars hold `rows`, `(cars, 8)` float32."""
        for place, row in enumerate(rows, match * self._cars):
            self.held[place] = row.tobytes()
            self._queues[place].clear()

    def plan(
        self, keys: list[bytes], controls: list[rsim.CarControls], delay: np.ndarray, count: int, ticks: int,
        back: Mapping[int, Sequence[tuple[int, int]]],
    ) -> Play:  # fmt: skip
        """Take the rows of a step; return what plays it, once for each match.

        Args:
            keys: `count` rows of each car as bytes, match by match and car by car.
            controls: The same as RocketSim has them.
            delay: `(matches, cars)` int, ticks after which a car's rows begin to act.
            count: 1 where a row is held for the whole step, else `ticks`.
            ticks: Ticks of the step.
            back: Cars that come back in the step, by match: tick and car.
        """
        began, self._tick = self._tick, self._tick + ticks
        simple = count == 1 and not back and not self._waiting
        if simple and delay.max() < ticks and (delay == delay[:, :1]).all():
            self.held = keys
            return self._hold(controls, delay[:, 0].tolist(), ticks)
        lates = delay.ravel().tolist()
        for car, queue in enumerate(self._queues):
            _add(queue, began + lates[car], keys, controls, car * count, count)
        self._waiting = max(lates) + count > ticks

        def play(match: int, step: Callable[[int], None], cars: Sequence[rsim.Car]) -> None:
            self._take(match, step, cars, began, ticks, back.get(match, ()))

        return play

    def _hold(self, controls: list[rsim.CarControls], lates: list[int], ticks: int) -> Play:
        """Return what steps a match where each car takes one row, all at the same tick."""
        count = self._cars

        def play(match: int, step: Callable[[int], None], cars: Sequence[rsim.Car]) -> None:
            late = lates[match]
            if late:
                step(late)
            for place, car in enumerate(cars, match * count):
                car.set_controls(controls[place])
            step(ticks - late)

        return play

    def _take(
        self, match: int, step: Callable[[int], None], cars: Sequence[rsim.Car], began: int, ticks: int,
        back: Sequence[tuple[int, int]],
    ) -> None:  # fmt: skip
        """Step a match from one tick at which something happens to the next."""
        first = match * self._cars
        due: list[_Due] = [(tick, 1, car, b"", None) for tick, car in back]
        for car in range(self._cars):
            queue = self._queues[first + car]
            while queue and queue[0][0] < began + ticks:
                tick, key, controls = queue.popleft()
                due.append((tick - began, 0, car, key, controls))
        due.sort(key=_WHEN)
        now = 0
        for tick, _, car, key, row in due:
            if tick > now:
                step(tick - now)
                now = tick
            if row is None:
                self._respawn(cars[car])
            else:
                cars[car].set_controls(row)
                self.held[first + car] = key
        step(ticks - now)


def _add(
    queue: _Queue, begins: int, keys: list[bytes], controls: list[rsim.CarControls], first: int, count: int
) -> None:
    """Add a car's rows, from the tick on at which they act; only where they change."""
    while queue and queue[-1][0] >= begins:
        queue.pop()
    last = b""
    for tick in range(count):
        key = keys[first + tick]
        if key != last:
            queue.append((begins + tick, key, controls[first + tick]))
            last = key
