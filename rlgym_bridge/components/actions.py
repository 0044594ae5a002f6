"""Action parsers, which turn a policy's actions into control vectors, for one match or for many at once.

actions (matches, cars[, numbers]) -> parse_batch -> rows (matches, cars, ticks, 8) float32
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from typing import Any, NoReturn

import numpy as np
from rlgym.api import ActionParser

from rlgym_bridge.game import CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.arguments import check_whole

STICKS = 5  # the first five controls are sticks in [-1, 1]; the other three are buttons, 0 or 1

_WIDTH = len(CONTROL_NAMES)
_MOST_REPEATS = 60 * TICKS_PER_SECOND  # a minute for one action is a slip


def action_space(space: Any) -> tuple[str, tuple[int, ...]]:
    """Return the distribution that fits an RLGym action space, and its sizes; else raise ValueError.

    A space is a pair of name and size, as RLGym's parsers give it: `("discrete", 90)`, `("multi_discrete",
    (3, 2))`; or of size and name, as in RLGym's documentation: `(8.0, "continuous")`.
    """
    try:
        name, size = reversed(space) if isinstance(space[1], str) else space
        sizes = tuple(int(n) for n in size) if isinstance(size, list | tuple | np.ndarray) else (int(size),)
    except (TypeError, ValueError, IndexError, KeyError):
        name, sizes = "", ()
    if not isinstance(name, str) or not sizes or min(sizes) < 1:
        raise ValueError(f'the action space is {space!r}, expected a pair such as ("discrete", 90)')
    if len(sizes) > 1:
        return "multi_categorical", sizes
    return ("categorical" if "discrete" in name else "gaussian"), sizes


class _Parser(ActionParser[Any, np.ndarray, np.ndarray, Any, Any]):
    """A parser without memory, whose two forms share one calculation, `_rows`."""

    def reset(self, agents: Sequence[Hashable], initial_state: object, shared_info: dict[str, Any]) -> None:
        """Do nothing: rows depend on the actions alone."""

    def parse_actions(
        self, actions: Mapping[Hashable, np.ndarray], state: object, shared_info: dict[str, Any]
    ) -> dict[Hashable, np.ndarray]:
        """Return each agent's control vectors: `(8,)` float32, or `(ticks, 8)` where the action has ticks."""
        return {agent: self._one(np.asarray(action), agent) for agent, action in actions.items()}

    def parse_batch(self, actions: np.ndarray) -> np.ndarray:
        """Return control vectors `(matches, cars, 1, 8)` float32 of actions `(matches, cars[, k])`."""
        actions = np.asarray(actions)
        if actions.ndim != self._batch_axes or (self._batch_axes == 3 and actions.shape[2] != _WIDTH):
            expected = "(matches, cars)" if self._batch_axes == 2 else f"(matches, cars, {_WIDTH})"
            raise ValueError(
                f"{type(self).__name__}: actions have shape {actions.shape}, expected {expected}"
            )
        return self._rows(actions, None)[:, :, None, :]

    _batch_axes = 3

    def _one(self, action: np.ndarray, agent: Hashable) -> np.ndarray:
        if action.ndim not in (1, 2) or action.shape[-1] != _WIDTH:
            self._refuse_shape(action, f"({_WIDTH},) or (ticks, {_WIDTH})", agent)
        return self._rows(action, agent)

    def _rows(self, actions: np.ndarray, agent: Hashable) -> np.ndarray:
        """Return `(..., 8)` float32 rows; `agent` is None for `(matches, cars, ...)`."""
        raise NotImplementedError

    def _refuse_shape(self, action: np.ndarray, expected: str, agent: Hashable) -> NoReturn:
        raise ValueError(
            f"{type(self).__name__}: the action of agent {agent!r} has shape {action.shape}, "
            f"expected {expected}"
        )

    def _refuse(self, actions: np.ndarray, wrong: np.ndarray, expected: str, agent: Hashable) -> NoReturn:
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = f"agent {agent!r}" if agent is not None else f"match {index[0]}, car {index[1]}"
        raise ValueError(
            f"{type(self).__name__}: the action of {where} holds {actions[index]}, expected {expected}"
        )

    def _check_choices(self, actions: np.ndarray, sizes: np.ndarray | int, agent: Hashable) -> None:
        """Raise unless all are whole numbers from 0 to below their size."""
        if actions.dtype.kind not in "iu":
            where = "the batch" if agent is None else f"agent {agent!r}"
            raise ValueError(
                f"{type(self).__name__}: the action of {where} has dtype {actions.dtype}, "
                "expected whole numbers (an integer dtype)"
            )
        wrong = (actions < 0) | (actions >= sizes)
        if wrong.any():
            self._refuse(actions, wrong, f"0 to below {sizes}", agent)


class LookupTableAction(_Parser):
    """One of 90 rows: RLGym's table, row by row.

    24 rows for the ground, where yaw follows steer, then 66 for the air, where throttle follows boost.
    An action is a whole number of shape (), which gives a row (8,), or whole numbers of shape (ticks,) or
    (ticks, 1), which give rows (ticks, 8). So shape (1,) gives (1, 8): one tick.

    Args:
        masked: Whether `masks` forbids rows that boost without boost, and rows that dodge without a dodge.
    """

    _batch_axes = 2

    def __init__(self, masked: bool = False) -> None:
        super().__init__()
        self._table = self.make_lookup_table()
        pressed = self._table[:, [CONTROL_NAMES.index(name) for name in ("boost", "jump")]] > 0
        turned = self._table[:, [CONTROL_NAMES.index(name) for name in ("pitch", "yaw", "roll")]].any(1)
        self._masked, self._boosts, self._dodges = masked, pressed[:, 0], pressed[:, 1] & turned

    def masks(self, state: MatchState) -> np.ndarray | None:
        """Return which rows each car may choose, `(matches, cars, 90)` bool; None without `masked`.

        A car without boost may not choose a row that boosts. A car in the air without a dodge or double jump
        left may not choose a row that jumps with pitch, yaw or roll. Jumping without these stays allowed, for
        it turns over a car that lies on its roof.
        """
        if not self._masked:
            return None
        empty = state.car_boost_amount <= 0  # (matches, cars)
        used = (state.car_on_ground == 0) & (state.car_has_flip == 0)
        forbidden = (empty[..., None] & self._boosts) | (used[..., None] & self._dodges)
        return np.asarray(np.logical_not(forbidden))

    def get_action_space(self, agent: Hashable) -> tuple[str, int]:
        """Return `("discrete", 90)`."""
        return "discrete", len(self._table)

    @staticmethod
    def make_lookup_table() -> np.ndarray:
        """Return the table of control rows, `(90, 8)` float32; a subclass may make another one."""
        signs, button = (-1, 0, 1), (0, 1)
        ground = [
            (throttle, steer, 0, steer, 0, 0, boost, handbrake)
            for throttle, steer, boost, handbrake in product(signs, signs, button, button)
            if throttle == 1 or not boost
        ]
        air = [
            # The handbrake with a dodge allows a wavedash on landing.
            (boost, yaw, pitch, yaw, roll, jump, boost, int(jump and (pitch, roll) != (0, 0)))
            for pitch, yaw, roll, jump, boost in product(signs, signs, signs, button, button)
            if not (jump and yaw)  # a sideways dodge comes from roll
            and (pitch or roll or jump)  # else it is a ground row
        ]
        return np.array(ground + air, np.float32)

    def _one(self, action: np.ndarray, agent: Hashable) -> np.ndarray:
        if action.ndim == 2 and action.shape[1] == 1:
            action = action[:, 0]
        if action.ndim > 1:
            self._refuse_shape(action, "(), (ticks,) or (ticks, 1)", agent)
        return self._rows(action, agent)

    def _rows(self, actions: np.ndarray, agent: Hashable) -> np.ndarray:
        size = len(self._table)
        # A live bot decides for one car: one comparison instead of four array operations.
        if actions.size != 1 or actions.dtype.kind not in "iu" or not 0 <= actions.item() < size:
            self._check_choices(actions, size, agent)
        return self._table.take(actions, axis=0)


class ContinuousAction(_Parser):
    """Eight real numbers: five sticks, clipped to [-1, 1], and three buttons, pressed above 0.

    An action has shape (8,) or (ticks, 8).
    """

    def get_action_space(self, agent: Hashable) -> tuple[str, int]:
        """Return `("continuous", 8)`."""
        return "continuous", _WIDTH

    def _rows(self, actions: np.ndarray, agent: Hashable) -> np.ndarray:
        try:
            values = actions.astype(np.float32)
        except (TypeError, ValueError) as error:
            where = "the batch" if agent is None else f"agent {agent!r}"
            raise ValueError(
                f"{type(self).__name__}: the action of {where} has dtype {actions.dtype}, expected numbers"
            ) from error
        finite = np.isfinite(values)
        if not finite.all():
            self._refuse(values, ~finite, "a finite number", agent)
        rows = np.empty_like(values)
        np.clip(values[..., :STICKS], -1.0, 1.0, out=rows[..., :STICKS])
        np.greater(values[..., STICKS:], 0.0, out=rows[..., STICKS:], casting="unsafe")
        return rows


class MultiDiscreteAction(_Parser):
    """Eight choices of 3, 3, 3, 3, 3, 2, 2, 2: each stick -1, 0 or 1, each button 0 or 1.

    An action has shape (8,) or (ticks, 8); 0, 1, 2 stand for -1, 0, 1 of a stick.
    """

    _SIZES = np.array([3] * STICKS + [2] * (_WIDTH - STICKS))
    _LOWEST = np.array([1] * STICKS + [0] * (_WIDTH - STICKS), np.float32)

    def get_action_space(self, agent: Hashable) -> tuple[str, tuple[int, ...]]:
        """Return `("multi_discrete", (3, 3, 3, 3, 3, 2, 2, 2))`."""
        return "multi_discrete", tuple(int(size) for size in self._SIZES)

    def _rows(self, actions: np.ndarray, agent: Hashable) -> np.ndarray:
        self._check_choices(actions, self._SIZES, agent)
        return actions.astype(np.float32) - self._LOWEST


class RepeatAction(ActionParser[Any, Any, np.ndarray, Any, Any]):
    """Another parser's rows, each held for some ticks: RLGym's way to a tick skip.

    Args:
        parser: Any RLGym parser that gives one row an agent. Its batch form, where it has one, is used for
            `parse_batch`.
        repeats: Ticks that an action lasts, 1 to 7,200.

    Raises:
        ValueError: `repeats` is no whole number from 1 to 7,200.
    """

    def __init__(self, parser: ActionParser[Any, Any, np.ndarray, Any, Any], repeats: int = 8) -> None:
        super().__init__()
        check_whole("repeats", repeats, 1, _MOST_REPEATS, "ticks")
        self.parser = parser
        self.repeats = repeats

    def get_action_space(self, agent: Hashable) -> Any:
        """Return the wrapped parser's action space."""
        return self.parser.get_action_space(agent)

    def reset(self, agents: Sequence[Hashable], initial_state: object, shared_info: dict[str, Any]) -> None:
        """Reset the wrapped parser."""
        self.parser.reset(list(agents), initial_state, shared_info)

    def parse_actions(
        self, actions: Mapping[Hashable, Any], state: object, shared_info: dict[str, Any]
    ) -> dict[Hashable, np.ndarray]:
        """Return each agent's row repeated, `(repeats, 8)`; raises ValueError unless it is a single one."""
        rows = self.parser.parse_actions(dict(actions), state, shared_info)
        for agent, row in rows.items():
            if np.shape(row) not in ((_WIDTH,), (1, _WIDTH)):
                raise ValueError(
                    f"{type(self.parser).__name__} gave agent {agent!r} rows of shape {np.shape(row)}, "
                    f"expected ({_WIDTH},) or (1, {_WIDTH}): one row to repeat"
                )
        return {
            agent: np.repeat(np.reshape(row, (1, _WIDTH)), self.repeats, 0) for agent, row in rows.items()
        }

    def parse_batch(self, actions: np.ndarray) -> np.ndarray:
        """Return control vectors `(matches, cars, repeats, 8)` float32 of the wrapped parser's actions.

        Raises TypeError if that has no `parse_batch`, ValueError if it gives more than one row a car.
        """
        batch = getattr(self.parser, "parse_batch", None)
        if batch is None:
            raise TypeError(
                f"{type(self.parser).__name__} has no parse_batch; use parse_actions, one match at a time"
            )
        rows: np.ndarray = batch(actions)
        if rows.ndim != 4 or rows.shape[2:] != (1, _WIDTH):
            raise ValueError(
                f"{type(self.parser).__name__} gave rows of shape {rows.shape}, expected "
                f"(matches, cars, 1, {_WIDTH}): one row to repeat"
            )
        return rows.repeat(self.repeats, axis=2)
