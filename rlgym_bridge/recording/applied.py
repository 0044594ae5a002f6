"""Which action the game applied: from the controls of its packets back to the policy's own choices.

A policy chooses on the state of tick k. In training its action then drives the ticks k+d -> k+d+1 and so on,
d being the action delay, until the next one takes over. In a match inputs come late or are lost, and the game
holds the last one: on those same ticks it may have applied an earlier action, which is what this finds.
"""

from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any, Final

import numpy as np

from rlgym_bridge.calls import control_rows
from rlgym_bridge.fingerprint import action_space
from rlgym_bridge.probe_states import probe_states
from rlgym_bridge.rlgym_view import to_rlgym

_ENUMERATED: Final = 4096  # of a space with more actions, those that were chosen are looked through
_SAME: Final = 0.02  # two rows of controls; a gamepad has steps of 1/127
_AT_ONCE: Final = 2**24  # differences


class ActionFinder:
    """Knows what controls each action makes.

    Args:
        parser: The action parser.
        chosen: `(n,)` or `(n, k)`, actions that the policy chose. Of a small discrete space all are known.

    Attributes:
        actions: `(candidates,)` or `(candidates, k)`, what can be found.
    """

    def __init__(self, parser: Any, chosen: np.ndarray) -> None:
        kind, sizes = action_space(parser.get_action_space("blue-0"))
        if kind != "gaussian" and np.prod(sizes, dtype=float) <= _ENUMERATED:
            every = np.array(list(product(*map(range, sizes))), np.int64)
            self.actions = every[:, 0] if kind == "categorical" else every
        else:
            self.actions = np.unique(chosen, axis=0)
        state = probe_states(1, 0, 0)[0]
        parser.reset(list(state.agents), to_rlgym(state), {})
        rows, whose = [], []
        for number, action in enumerate(self.actions):
            # One match, one car.
            [made] = control_rows(parser, np.asarray(action)[None, None], [0], state)
            made = np.unique(np.reshape(made, (-1, 8)), axis=0)
            rows.append(made)
            whose += [number] * len(made)
        self._rows, self._whose = np.concatenate(rows).astype(np.float32), np.array(whose)

    def find(self, controls: np.ndarray) -> np.ndarray:
        """Return which action makes each row of controls.

        Args:
            controls: `(ticks, 8)` float32, as the game applied them.

        Returns:
            `(ticks,)` int64, numbers in `actions`; -1 for what no action makes.
        """
        rows, back = np.unique(controls, axis=0, return_inverse=True)
        found = np.full(len(rows), -1)
        step = max(1, _AT_ONCE // max(1, self._rows.size))
        for start in range(0, len(rows), step):
            away = np.nan_to_num(np.abs(rows[start : start + step, None] - self._rows).max(2), nan=np.inf)
            nearest = away.argmin(1)
            close = away[np.arange(len(nearest)), nearest] < _SAME
            found[start : start + step] = np.where(close, self._whose[nearest], -1)
        numbers: np.ndarray = found[back.reshape(-1)]
        return numbers

    def makes(self, action: np.ndarray, controls: np.ndarray) -> int:
        """Return on how many of some ticks, controls `(ticks, 8)`, an action may have been applied."""
        number = int(np.flatnonzero((self.actions == action).reshape(len(self.actions), -1).all(1))[0])
        rows = self._rows[self._whose == number]
        return int((np.abs(controls[:, None] - rows).max(2).min(1) < _SAME).sum())


def applied_actions(
    finder: ActionFinder,
    controls: np.ndarray,
    tick: np.ndarray,
    frames: Sequence[int] | np.ndarray,
    delay: int,
    chosen: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the action that the game applied for each decision: on most of the ticks that it should drive.

    Args:
        finder: Of the policy's parser.
        controls: `(rows, 8)` float32, of one car; row i holds what drove the tick that ended in it, NaN where
            that is not known.
        tick: `(rows,)` int64, of those rows, rising.
        frames: `(n + 1,)` ticks of n decisions and of what came after the last.
        delay: Ticks from a decision's state to the first tick that it drives.
        chosen: `(n,)` or `(n, k)`, what the policy chose.

    Returns:
        Actions like `chosen`, and `(n,)` bool whether the game told: where it did not, or what it applied is
        no action of the policy, the chosen one stands. Of two that drove equally many ticks the chosen one
        counts, else the later.
    """
    frames = np.asarray(frames)
    found, told = chosen.copy(), np.zeros(len(chosen), bool)
    numbers = finder.find(controls)
    # What is applied after the last state, a goal or the end, is nobody's action.
    bounds = np.searchsorted(tick, np.minimum(frames + delay, frames[-1]), side="right")
    for decision, (begin, end) in enumerate(pairwise(bounds.tolist())):
        here = numbers[begin:end]
        here = here[here >= 0]
        if not len(here):
            continue
        told[decision] = True
        counts = np.bincount(here)
        most = np.flatnonzero(counts == counts.max())
        # Other actions may make the same controls: then it was the chosen one.
        if finder.makes(chosen[decision], controls[begin:end]) < counts.max():
            latest = max(most, key=lambda number: int(np.flatnonzero(here == number)[-1]))
            found[decision] = finder.actions[latest]
    return found, told
