"""Replace the actions that a policy commanded by those that the game applied, in RLlib's episodes.

An input that was late, lost or held makes them differ. A learner that reads what was commanded learns from
actions that never happened, so they are overwritten before it does, and their probabilities with them.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.catalog import Catalog
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.numpy import convert_to_numpy
from ray.rllib.utils.torch_utils import convert_to_torch_tensor
from ray.rllib.utils.typing import AgentID


def correct_applied_actions(
    episode: MultiAgentEpisode,
    applied: Mapping[AgentID, Any],
    *,
    at_indices: int | Sequence[int] | np.ndarray | slice | None = None,
    neg_index_as_lookback: bool = False,
) -> dict[AgentID, int]:
    """Overwrite actions of an episode, and `action_logp` with them, or change nothing at all.

    Means what the documentation of `MultiAgentEpisode.set_actions` says, in an episode of lists and after
    `to_numpy()` alike. All agents are checked before anything is written. `action_logp` is computed anew for
    the chosen steps from `action_dist_inputs`, with RLlib's distribution for the action space. Actions that
    are there already stay as they are, also outside the action space, as a gaussian's samples may be.

    Args:
        episode: Changed in place.
        applied: By agent, its actions at `at_indices`, in order: a list or an array `(steps, ...)`; a single
            action where `at_indices` is an int. For `Box` they are in the policy's units, before RLlib
            unsquashes or clips them. They take the dtype of the actions that are there.
        at_indices: Which steps of each agent, the same for all, counted in agent steps: an int; whole
            numbers, each once, in any order; a slice forward, cut off at both ends as in Python; or None for
            all steps without the lookback buffer.
        neg_index_as_lookback: Negative indices count back from the first step into the lookback buffer.
            Otherwise they count from the end and never reach the lookback buffer.

    Returns:
        By agent, how many of the actions are others than before.

    Raises:
        KeyError: The episode has no such agent.
        IndexError: A step is out of range, or there are more or fewer actions than steps.
        TypeError: An argument is of another type, or an index is no whole number (a bool is none).
        ValueError: An action is not in the action space, not finite, of another shape, a float among
            integers, or a dict or tuple; an index is there twice; a slice goes backward; an agent has acted
            but has not seen the outcome; or `action_logp` cannot be computed.
    """
    if not isinstance(episode, MultiAgentEpisode):
        raise TypeError(f"episode is a {type(episode).__name__}, expected RLlib's MultiAgentEpisode")
    if not isinstance(applied, Mapping):
        raise TypeError(f"applied is a {type(applied).__name__}, expected a mapping: agents to their actions")
    planned = {
        agent: _planned(episode, agent, given, at_indices, neg_index_as_lookback)
        for agent, given in applied.items()
    }
    for agent, (writes, _) in planned.items():
        for key, at, values in writes:
            how: Any = {"new_data": {agent: values}, "at_indices": at, "neg_index_as_lookback": True}
            if key == Columns.ACTIONS:
                episode.set_actions(**how)
            else:
                episode.set_extra_model_outputs(key=key, **how)
    return {agent: changed for agent, (_, changed) in planned.items()}


def _planned(
    episode: MultiAgentEpisode, agent: AgentID, given: Any, at_indices: Any, neg_index_as_lookback: bool
) -> tuple[list[tuple[str, slice, Any]], int]:
    """Check everything of one agent; return columns, steps and values to write, and how many actions change.

    Steps have no gap, negative ones are in the lookback buffer; values are a list or an array `(steps, ...)`.
    """
    if agent not in episode.agent_episodes:
        raise KeyError(f"applied has agent {agent!r}, expected some of {list(episode.agent_episodes)}")
    if agent in episode._hanging_actions_end:  # there is no public way to ask
        raise ValueError(
            f"agent {agent!r} has acted and its next observation has not come, so that action is not one of "
            "its steps yet: add the observation first, or leave the agent out until it has come"
        )
    one = episode.agent_episodes[agent]
    single, steps = _steps(agent, at_indices, len(one), one.actions.lookback, neg_index_as_lookback)
    given = [given] if single else given
    if isinstance(given, (Mapping, str, bytes, set, frozenset)):
        raise TypeError(
            f"agent {agent!r} was given {given!r}, expected a list or array of {len(steps)} actions"
        )
    count = len(given) if isinstance(given, Sequence) or np.ndim(given) else -1
    if count != len(steps):
        came = repr(given) if count < 0 else f"{count} actions"
        raise IndexError(f"agent {agent!r} was given {came}, expected {len(steps)}: one for each step")
    if not len(steps):
        return [], 0
    at = slice(int(steps.min()), int(steps.max()) + 1)
    places = steps - at.start
    before = one.get_actions(at, neg_index_as_lookback=True)
    if isinstance(before if one.is_numpy else before[0], (dict, tuple)):
        raise ValueError(f"actions of agent {agent!r} are dicts or tuples, expected numbers or arrays")
    rows, differ = _checked_rows(agent, one, given, steps, np.asarray(before)[places], single)
    writes = []
    if differ.any():
        # From the first that changes: of a slice ray holds the first action against the space.
        begin, end = int(places[differ].min()), int(places[differ].max()) + 1
        after = _replaced(before, places, rows)[begin:end]
        writes.append((Columns.ACTIONS, slice(at.start + begin, at.start + end), after))
    if Columns.ACTION_LOGP in one.extra_model_outputs:
        before = one.get_extra_model_outputs(Columns.ACTION_LOGP, at, neg_index_as_lookback=True)
        after = _replaced(before, places, _logp_of(agent, one, at, places, rows))
        writes.append((Columns.ACTION_LOGP, at, after))
    return writes, int(differ.sum())


def _steps(
    agent: AgentID, at_indices: Any, length: int, lookback: int, neg_index_as_lookback: bool
) -> tuple[bool, np.ndarray]:
    """Return whether one step is meant, and the steps, `(steps,)` int64: negative in the lookback buffer."""
    first = -lookback if neg_index_as_lookback else 0

    def placed(index: Any) -> int:
        step = _whole(index)
        return step if step >= 0 or neg_index_as_lookback else step + length

    if at_indices is None:
        return False, np.arange(length)
    if isinstance(at_indices, slice):
        stride = 1 if at_indices.step is None else _whole(at_indices.step)
        if stride < 1:
            raise ValueError(f"at_indices is {at_indices}, expected a slice forward; or give a list of steps")
        start, stop = (
            default if end is None else min(max(placed(end), first), length)
            for end, default in ((at_indices.start, 0), (at_indices.stop, length))
        )
        return False, np.arange(start, stop, stride)
    single = np.ndim(at_indices) == 0
    indices = [at_indices] if single else list(at_indices)
    steps = [placed(index) for index in indices]
    for index, step in zip(indices, steps, strict=True):
        if not first <= step < length:
            raise IndexError(
                f"at_indices has {index}, agent {agent!r} has {length} steps and {lookback} in its lookback "
                f"buffer (neg_index_as_lookback={neg_index_as_lookback})"
            )
    if len(set(steps)) < len(steps):
        raise ValueError(f"at_indices is {at_indices}, where a step of agent {agent!r} stands twice")
    return single, np.array(steps, np.int64)


def _whole(index: Any) -> int:
    try:
        if isinstance(index, (bool, np.bool_)):
            raise TypeError
        return operator.index(index)
    except TypeError:
        raise TypeError(
            f"at_indices has {index!r}, expected whole numbers (np.flatnonzero makes them of a mask)"
        ) from None


def _checked_rows(
    agent: AgentID, one: SingleAgentEpisode, given: Any, steps: np.ndarray, held: np.ndarray, single: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return actions `(steps, ...)` in the dtype of `held`, those there are, and `(steps,)` whether new."""
    space = one.action_space

    def refuse(bad: Any, why: str) -> NoReturn:
        row, of = int(np.argmax(bad)), "" if space is None else f", its action space is {space}"
        raise ValueError(f"action {came[row]} for agent {agent!r} at step {steps[row]} {why}{of}")

    try:
        came = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"actions for agent {agent!r} are not of shape {held.shape[1:]} each") from error
    if came.shape != held.shape:
        kind = IndexError if single and came.ndim > held.ndim else ValueError
        raise kind(f"actions for agent {agent!r} are of shape {came.shape[1:]}, expected {held.shape[1:]}")
    integers = held.dtype.kind in "iu" or (space is not None and np.issubdtype(space.dtype, np.integer))
    if came.dtype.kind not in ("iu" if integers else "iuf"):
        refuse([True], f"is {came.dtype}, expected {'integers' if integers else 'numbers'}")
    with np.errstate(over="ignore"):
        rows = came.astype(held.dtype)
    if integers and (rows != came).any():
        refuse(_by_row(rows != came), f"does not fit into {held.dtype}, which the actions there have")
    differ = _by_row(rows != held)
    endless = differ & _by_row(~np.isfinite(rows))
    if endless.any():
        refuse(endless, f"is not finite in {held.dtype}, which the actions there have")
    if space is not None and differ.any():
        # Arrays must be in the space with the dtype they have: ray asserts it when it writes.
        checked = rows if one.is_numpy else np.asarray(rows, space.dtype)
        if not batch_space(space, int(differ.sum())).contains(checked[differ]):
            outside = [not space.contains(row) for row in checked]
            refuse(differ & outside, f"({checked.dtype}) cannot be")
    return rows, differ


def _by_row(flags: np.ndarray) -> np.ndarray:
    """Return for each row whether any of its flags is set, `(rows,)` bool."""
    some: np.ndarray = flags.reshape(len(flags), -1).any(1)
    return some


def _replaced(before: Any, places: np.ndarray, rows: np.ndarray) -> Any:
    """Return a copy of a list or array with `rows` at `places`; Python numbers where the list has them."""
    after = before.copy()
    if isinstance(after, np.ndarray):
        after[places] = rows
        return after
    plain = not isinstance(after[0], (np.ndarray, np.generic))
    for place, row in zip(places, rows.tolist() if plain else rows, strict=True):
        after[place] = row
    return after


def _logp_of(
    agent: AgentID, episode: SingleAgentEpisode, at: slice, places: np.ndarray, actions: np.ndarray
) -> np.ndarray:
    """Return `(steps,)` log probabilities of actions at places of a slice, by `action_dist_inputs`."""
    outputs, space = episode.extra_model_outputs, episode.action_space
    if Columns.ACTION_DIST_INPUTS not in outputs or space is None:
        lacks = "action space" if space is None else Columns.ACTION_DIST_INPUTS
        raise ValueError(
            f"the episode of agent {agent!r} has {Columns.ACTION_LOGP} but no {lacks}, so it cannot be "
            f"computed for other actions: keep {lacks} in the episode, or leave {Columns.ACTION_LOGP} out"
        )
    if not _counted_from_zero(space):
        raise ValueError(
            f"RLlib has no distribution of its own for {space} of agent {agent!r} as it is, so "
            f"{Columns.ACTION_LOGP} cannot be computed: leave {Columns.ACTION_LOGP} out"
        )
    every = episode.get_extra_model_outputs(Columns.ACTION_DIST_INPUTS, at, neg_index_as_lookback=True)
    inputs = np.asarray(every)[places]
    # A catalog wants observations too, which the distribution does not depend on.
    distribution = Catalog(spaces.Box(-1.0, 1.0, (1,)), space, {}).get_action_dist_cls("torch")
    expected = (len(places), distribution.required_input_dim(space))
    if inputs.shape != expected:
        raise ValueError(
            f"{Columns.ACTION_DIST_INPUTS} of agent {agent!r} are {inputs.shape[1:]} a step, RLlib's own "
            f"distribution for {space} takes {expected[1:]}"
        )
    given, logits = convert_to_torch_tensor(actions), convert_to_torch_tensor(inputs)
    logp: np.ndarray = convert_to_numpy(distribution.from_logits(logits).logp(given))
    return logp


def _counted_from_zero(space: Any) -> bool:
    """Tell whether RLlib's distribution for a space takes its actions as they are."""
    if isinstance(space, spaces.Discrete):
        return bool(space.start == 0)
    if isinstance(space, spaces.MultiDiscrete):
        return space.nvec.ndim == 1 and not space.start.any()
    return isinstance(space, spaces.Box) and len(space.shape) == 1
