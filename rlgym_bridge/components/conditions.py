"""Conditions that end an episode, for one match or for many at once.

    MatchState (N matches) -> done_batch -> (N,) bool

Every class is an RLGym `DoneCondition`, and answers as RLGym's class of the same name does.
"""

from collections.abc import Hashable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
from rlgym.api import DoneCondition

from rlgym_bridge.components.batch_form import refuse_third_party, third_party_part
from rlgym_bridge.components.rlgym_state import from_rlgym
from rlgym_bridge.components.rlgym_types import Agents, Game, SharedInfo
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.state import Layout, MatchState
from rlgym_bridge.user_input.arguments import check_number

_AT_CENTRE: Final = 1.0  # uu along x and y: the ball of a kickoff lies at 0


class BatchCondition(DoneCondition[Any, Game]):
    """A condition with one formula, `done_batch`, and a memory of its own for each match.

    An instance follows either one batch of matches or one RLGym environment.
    """

    def reset_batch(self, state: MatchState, begun: np.ndarray) -> None:
        """Begin an episode in some of the matches as they were reset, `begun` `(N,)` bool."""

    def done_batch(self, state: MatchState) -> np.ndarray:
        """Tell which matches are over, `(N,)` bool, a new array; call it once a step."""
        raise NotImplementedError

    def reset(self, agents: Agents, initial_state: Game, shared_info: SharedInfo) -> None:
        """Begin an episode."""
        self.reset_batch(from_rlgym(initial_state), np.ones(1, np.bool_))

    def is_done(self, agents: Agents, state: Game, shared_info: SharedInfo) -> dict[Hashable, bool]:
        """Return for each agent whether the episode is over, the same for all."""
        return dict.fromkeys(agents, bool(self.done_batch(from_rlgym(state))[0]))


class GoalCondition(BatchCondition):
    """Over when the ball is in a goal."""

    def done_batch(self, state: MatchState) -> np.ndarray:
        """Tell in which matches the ball is in a goal, `(N,)` bool."""
        return np.asarray(state.goal_scored > 0)


class GapCondition(BatchCondition):
    """Over when a live match went on without the learner; a truncation.

    `LiveEngine` records gaps in the shared info. In a simulator time waits, so that it is never over there.
    """

    _KEY: Final = "match_went_on"  # in the shared info

    @classmethod
    def note(cls, shared_info: SharedInfo, gap: bool) -> None:
        """Record in the shared info whether the match went on without the learner; the engine calls it."""
        shared_info[cls._KEY] = gap

    def done_batch(self, state: MatchState) -> np.ndarray:
        """Return False for all matches, `(N,)` bool."""
        return np.zeros(state.matches, np.bool_)

    def is_done(self, agents: Agents, state: Game, shared_info: SharedInfo) -> dict[Hashable, bool]:
        """Return for each agent whether the step was a gap."""
        return dict.fromkeys(agents, bool(shared_info.get(self._KEY, False)))


class TimedCondition(BatchCondition):
    """Over when a time has passed since some tick of each match.

    Args:
        timeout_seconds: Game time, 0 or more; infinity for never.

    Raises:
        ValueError: It is negative or not a number.
    """

    def __init__(self, timeout_seconds: float) -> None:
        super().__init__()
        check_number("timeout_seconds", timeout_seconds, unit="seconds")
        self.timeout_seconds = timeout_seconds
        self._since: np.ndarray | None = None  # (N,) int32 ticks

    def reset_batch(self, state: MatchState, begun: np.ndarray) -> None:
        """Count anew in matches that begin, `(N,)` bool; raises ValueError if N changes and not all do."""
        if self._since is None or len(self._since) != state.matches:
            if not np.all(begun):
                known = "none" if self._since is None else len(self._since)
                raise ValueError(
                    f"{type(self).__name__} is given {state.matches} matches and knew {known} before, "
                    f"expected all of them to begin; only {np.count_nonzero(begun)} do"
                )
            self._since = state.frame.copy()
        else:
            self._since[begun] = state.frame[begun]

    def ticks_since(self, state: MatchState) -> np.ndarray:
        """Return the `(N,)` int32 ticks themselves, to be read and written."""
        if self._since is None or len(self._since) != state.matches:
            raise RuntimeError(
                f"{type(self).__name__} has {state.matches} matches that never began, expected reset before "
                "the first step"
            )
        return self._since

    def _is_over(self, state: MatchState, seconds: float | np.ndarray) -> np.ndarray:
        return np.asarray((state.frame - self.ticks_since(state)) / TICKS_PER_SECOND >= seconds)


class TimeoutCondition(TimedCondition):
    """Over when the episode has lasted `timeout_seconds` of game time.

    Args:
        timeout_seconds: Game time, 0 or more; infinity for never.
        task_seconds: The same for episodes that begin elsewhere than at a kickoff; None: `timeout_seconds`.

    Raises:
        ValueError: A time is negative or not a number.
    """

    def __init__(self, timeout_seconds: float, task_seconds: float | None = None) -> None:
        super().__init__(timeout_seconds)
        if task_seconds is not None:
            check_number("task_seconds", task_seconds, unit="seconds")
        self.task_seconds = task_seconds
        self._limits = np.zeros(0)  # (N,) s, where there are two of them

    def reset_batch(self, state: MatchState, begun: np.ndarray) -> None:
        """Count anew in matches that begin, `(N,)` bool; errors are those of `TimedCondition`."""
        super().reset_batch(state, begun)
        if self.task_seconds is not None:
            elsewhere = np.abs(state.ball_position[:, :2]).max(1) > _AT_CENTRE
            limits = np.where(elsewhere, self.task_seconds, self.timeout_seconds)
            self._limits = (
                limits if len(self._limits) != len(limits) else np.where(begun, limits, self._limits)
            )

    def done_batch(self, state: MatchState) -> np.ndarray:
        """Tell in which matches the time has passed, `(N,)` bool."""
        return self._is_over(state, self.timeout_seconds if self.task_seconds is None else self._limits)


class NoTouchTimeoutCondition(TimedCondition):
    """Over when no car has touched the ball for `timeout_seconds` of game time."""

    def done_batch(self, state: MatchState) -> np.ndarray:
        """Tell in which matches no car touched the ball for so long, `(N,)` bool."""
        touched = np.logical_or.reduce(state.car_ball_touches, 1)  # faster than a comparison and any
        np.copyto(self.ticks_since(state), state.frame, where=touched)
        return np.asarray(self._is_over(state, self.timeout_seconds) & ~touched)


class _Joined(BatchCondition):
    """Several conditions as one, given one by one or as a list; in batches only if each has a batch form.

    `parts` are the conditions, `join` joins their answers. Raises TypeError if one is no RLGym condition,
    ValueError if there is none.
    """

    join: np.ufunc

    def __init__(self, *conditions: DoneCondition[Any, Any] | Sequence[DoneCondition[Any, Any]]) -> None:
        super().__init__()
        only = conditions[0] if len(conditions) == 1 else None
        parts = tuple(only) if isinstance(only, (list, tuple)) else conditions
        name = type(self).__name__
        if not parts:
            raise ValueError(f"{name} has no conditions, expected one or more")
        for part in parts:
            if not isinstance(part, DoneCondition):
                raise TypeError(
                    f"{name} holds {part!r}, expected RLGym conditions, one by one or as one list"
                )
        self.parts: tuple[Any, ...] = parts
        self._third_party = third_party_part(self)
        self._one_by_one = self._third_party is not None or any(
            type(part).is_done is not BatchCondition.is_done for part in self.parts
        )

    def reset_batch(self, state: MatchState, begun: np.ndarray) -> None:
        """Begin an episode in some matches, for all parts; `begun` is `(N,)` bool."""
        refuse_third_party(self, self._third_party, "reset_batch and done_batch", "reset and is_done")
        for part in self.parts:
            part.reset_batch(state, begun)

    def done_batch(self, state: MatchState) -> np.ndarray:
        """Tell which matches are over, `(N,)` bool; every part is called."""
        refuse_third_party(self, self._third_party, "reset_batch and done_batch", "reset and is_done")
        # No short cut: a part that is not called would miss a touch.
        return self.join_columns([part.done_batch(state) for part in self.parts], state.layout)

    def join_columns(self, columns: Sequence[np.ndarray], layout: Layout) -> np.ndarray:
        """Return which episodes are over by the answers that the parts have given, bool of one shape."""
        return np.asarray(reduce(self.join, columns))  # takes a tenth of `join.reduce`

    def reset(self, agents: Agents, initial_state: Game, shared_info: SharedInfo) -> None:
        """Begin an episode, for all parts."""
        if self._third_party is None:
            super().reset(agents, initial_state, shared_info)
            return
        for part in self.parts:
            part.reset(list(agents), initial_state, shared_info)

    def is_done(self, agents: Agents, state: Game, shared_info: SharedInfo) -> dict[Hashable, bool]:
        """Return for each agent whether its episode is over; a part may tell agents apart."""
        if not self._one_by_one:
            return super().is_done(agents, state, shared_info)
        answers = [part.is_done(list(agents), state, shared_info) for part in self.parts]
        return {
            agent: bool(self.join.reduce([bool(answer.get(agent, False)) for answer in answers]))
            for agent in agents
        }


class AnyCondition(_Joined):
    """Over when one condition or more is; takes them one by one or as one list."""

    join = np.logical_or


class AllCondition(_Joined):
    """Over when all conditions are; takes them one by one or as one list.

    RLGym 2.0.1's class of this name is never over: it starts from False.
    """

    join = np.logical_and
