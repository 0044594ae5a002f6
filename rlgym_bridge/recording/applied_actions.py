"""Find the action that the game applied, from the controls that its packets show.

An action chosen on tick k drives the ticks from k + action delay on, unless inputs come late or are lost.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.actions import action_space
from rlgym_bridge.components.batch_form import control_rows, works_in_batches
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.policy.fingerprint import probe_states

_ENUMERATED: Final = 4096  # of a space with more actions, those that were chosen are looked through
_SAME: Final = 0.02  # two rows of controls; a gamepad has steps of 1/127
_AT_ONCE: Final = 2**24  # differences
_BACK: Final = 16  # decisions that an action may be late and is still told from others with the same controls


class ActionFinder:
    """The controls that each action of a car makes, to look actions up by them.

    `chosen` `(n,)` or `(n, k)` are the actions that the policy chose; of a small discrete space all are
    known. `actions`, `(candidates,)` or `(candidates, k)`, can be found. `steady` tells whether an action
    makes the same controls whatever the state and the actions before it; if not, nothing is found.
    """

    def __init__(
        self, parser: Any, chosen: np.ndarray, team_sizes: tuple[int, int] = (1, 1), seat: int = 0
    ) -> None:
        kind, sizes = action_space(parser.get_action_space("blue-0"))
        if kind != "gaussian" and np.prod(sizes, dtype=float) <= _ENUMERATED:
            every = np.array(list(product(*map(range, sizes))), np.int64)
            self.actions = every[:, 0] if kind == "categorical" else every
        else:
            self.actions = np.unique(chosen + 0, axis=0)  # 0 and -0 are one
        asked = _asked(parser, self.actions, team_sizes, seat)
        made = next(asked)
        self.steady = True
        if not works_in_batches(parser):  # ours know neither states nor what was before
            self.steady = all(
                np.array_equal(one, other) for again in asked for one, other in zip(made, again, strict=True)
            )
        self._made = [np.unique(rows, axis=0).astype(np.float32) for rows in made]
        self._rows = np.concatenate(self._made)
        self._whose = np.repeat(np.arange(len(made)), [len(rows) for rows in self._made])
        self._numbers = {(action + 0).tobytes(): number for number, action in enumerate(self.actions)}

    def number(self, action: np.ndarray) -> int:
        """Return which of `actions` one is."""
        return self._numbers[(action + 0).tobytes()]

    def find(self, controls: np.ndarray) -> np.ndarray:
        """Return the first action that makes each of `(ticks, 8)` float32: `(ticks,)` int64, -1 for none."""
        if not self.steady:
            return np.full(len(controls), -1)
        rows, back = np.unique(controls, axis=0, return_inverse=True)
        found = np.full(len(rows), -1)
        step = max(1, _AT_ONCE // max(1, self._rows.size))
        for start in range(0, len(rows), step):
            away = np.abs(rows[start : start + step, None] - self._rows).max(2)
            nearest = away.argmin(1)
            close = away[np.arange(len(nearest)), nearest] < _SAME
            found[start : start + step] = np.where(close, self._whose[nearest], -1)
        return np.asarray(found[back.reshape(-1)])

    def mean_controls(self) -> np.ndarray:
        """Return the controls that each action makes, `(candidates, 8)`: means over its ticks."""
        return np.stack([rows.mean(0) for rows in self._made])

    def makes(self, number: int, controls: np.ndarray) -> np.ndarray:
        """Return on which of some ticks, controls `(ticks, 8)`, an action may have been applied: bool."""
        if not self.steady:
            return np.zeros(len(controls), bool)
        return np.asarray(np.abs(controls[:, None] - self._made[number]).max(2).min(1) < _SAME)


def _asked(
    parser: Any, actions: np.ndarray, team_sizes: tuple[int, int], seat: int
) -> Iterator[list[np.ndarray]]:
    """Yield the controls `(ticks, 8)` of each action, state after state, in turns forward and backward."""
    states = probe_states(*team_sizes, 0)
    empty = states[0].copy()
    empty.car_boost_amount[:] = 0
    states.append(empty)
    parser.reset(list(states[0].agents), to_rlgym(states[0]), {})
    for number, state in enumerate(states):
        game, turn = to_rlgym(state), -1 if number % 2 else 1
        rows = [
            # One match, one car.
            np.reshape(control_rows(parser, np.asarray(action)[None, None], [seat], state, game)[0], (-1, 8))
            for action in actions[::turn]
        ]
        yield rows[::turn]


def applied_actions(
    finder: ActionFinder,
    controls: np.ndarray,
    tick: np.ndarray,
    frames: Sequence[int] | np.ndarray,
    delay: int,
    chosen: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the action that the game applied for each decision: on most of the ticks that it should drive.

    `controls` `(rows, 8)` float32 are those of one car in rows of some `tick`, `(rows,)` int64, that rise:
    row i holds what drove the tick that ended in it, NaN where that is not known. `frames` are `(n + 1,)`
    ticks of n decisions and of what came after the last, `delay` the ticks from a decision's state to the
    first tick that it drives. `chosen`, `(n,)` or `(n, k)`, is what the policy chose.

    Return actions like `chosen`, and `(n,)` bool whether the game told: where it did not, or most of what it
    applied is no action of the policy, the chosen one stands. A tick that several may have driven counts for
    the latest that was chosen, and of those that drove equally many it is the latest.
    """
    frames = np.asarray(frames)
    found, told = chosen.copy(), np.zeros(len(chosen), bool)
    mine = [finder.number(action) for action in chosen]
    known = ~np.isnan(controls).any(1)
    # What is applied after the last state, a goal or the end, is nobody's action.
    bounds = np.searchsorted(tick, np.minimum(frames + delay, frames[-1]), side="right")
    for decision, (begin, end) in enumerate(pairwise(bounds.tolist())):
        here = controls[begin:end][known[begin:end]]
        if not len(here):
            continue
        best, most = mine[decision], 0
        left = np.ones(len(here), bool)  # ticks that no action so far has driven
        for number in reversed(mine[max(0, decision - _BACK) : decision + 1]):
            driven = finder.makes(number, here) & left
            left &= ~driven
            if driven.sum() > most:
                best, most = number, int(driven.sum())
            if left.sum() <= most:
                break
        nobody = 0
        if left.sum() > most:
            numbers = finder.find(here[left])
            counts = np.bincount(numbers[numbers >= 0], minlength=1)
            nobody = int((numbers < 0).sum())
            if counts.max() > most:
                best, most = int(counts.argmax()), int(counts.max())
        told[decision] = most > 0 and most >= nobody
        if told[decision]:
            found[decision] = finder.actions[best]
    return found, told
