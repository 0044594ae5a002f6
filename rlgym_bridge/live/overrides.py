"""Call a user's override, such as a hard-coded kickoff, and keep the control rows it returned."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rlgym_bridge.controls import NEUTRAL, checked_rows
from rlgym_bridge.live.faults import Faults
from rlgym_bridge.state import MatchState

_NO_ROWS = NEUTRAL[None][:0]

Override = Callable[[MatchState], Any] | Callable[[MatchState, int], Any]
"""Function that plays instead of the policy, given the state of a packet in play.

It returns control rows `(8,)` or `(ticks, 8)` to send from this packet on, or None to let the policy play. It
is called again when its rows are used up. With two parameters it is called for each car of the agent, with
the car's place in the state; otherwise its rows drive all of them."""


class Overrides:
    """The control vectors of one override for the cars of one agent; its failures count as faults."""

    def __init__(self, override: Override, faults: Faults) -> None:
        self._override: Callable[..., Any] = override
        self._takes_car = _takes_car(override)
        self._faults = faults
        self._rows: dict[int, tuple[int, np.ndarray]] = {}  # by car: tick of the first, rows

    def forget(self) -> None:
        """Drop the rows that are left, so that the next packet asks anew."""
        self._rows.clear()

    def rows(self, state: MatchState, cars: Sequence[int]) -> list[np.ndarray | None]:
        """Return the control vector `(8,)` of each of our cars; None where the policy plays. Never raises."""
        if self._takes_car:
            return [self._row(state, car) for car in cars]
        return [self._row(state, cars[0])] * len(cars)

    def _row(self, state: MatchState, car: int) -> np.ndarray | None:
        frame = int(state.frame[0])
        first, rows = self._rows.get(car, (frame, _NO_ROWS))
        if not 0 <= frame - first < len(rows):
            self._rows.pop(car, None)
            try:
                returned = self._override(state, car) if self._takes_car else self._override(state)
                if returned is None:
                    return None
                first, rows = frame, checked_rows(returned, 1, "override")
            except (Exception, SystemExit) as error:
                self._faults.add("override failed", f"the policy plays on: {error}", error)
                return None
            self._rows[car] = first, rows
        row: np.ndarray = rows[frame - first]  # for ticks, not packets: those of lost packets are over
        return row


def _takes_car(override: Callable[..., Any]) -> bool:
    """Tell whether an override takes the car as a second argument: it cannot be called with one."""
    try:
        inspect.signature(override).bind(None)
    except TypeError:
        return True
    except ValueError:  # not written in Python: its parameters are unknown
        pass
    return False
