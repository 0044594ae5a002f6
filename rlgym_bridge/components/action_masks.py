"""Ask a parser, or RLGym's shared info, which actions each car may choose.

    parser.masks(state) ----------------> (matches, cars, actions) bool -> every policy that takes masks
    shared_info["action_mask"][agent] --^

Columns are the choices of the action space; those of several decisions stand one after another.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.actions import action_space
from rlgym_bridge.components.batch_form import describe_array
from rlgym_bridge.components.user_errors import locate_method
from rlgym_bridge.state import MatchState

SHARED: Final = "action_mask"
"""Key of the shared info under which a provider, a parser or an observation builder may put masks."""


def find_masks(
    parser: Any, state: MatchState, shared_info: Mapping[str, Any] | None = None, match: int = 0
) -> np.ndarray | None:
    """Return which actions each car may choose on a state.

    Args:
        parser: A parser that may have `masks(state)`, or a wrapper of one, such as `RepeatAction`. The method
            returns `(matches, cars, actions)` bool, or None where all actions are allowed.
        state: What the actions are chosen on.
        shared_info: Of the match, where `state` is one match: `action_mask` holds for each agent as many
            numbers as there are actions, 0 for those that it may not choose.
        match: Number of the first match, for errors.

    Returns:
        `(matches, cars, actions)` bool of all cars; None where nothing restricts them.

    Raises:
        ValueError: A mask has another shape, leaves a car no action, or is for actions that are no choices.
    """
    holder = parser
    while not hasattr(holder, "masks") and hasattr(holder, "parser"):
        holder = holder.parser
    given = holder.masks(state) if hasattr(holder, "masks") else None
    who = f"the masks of {type(holder).__name__}"
    shared = None if shared_info is None else shared_info.get(SHARED)
    if given is None and shared is None:
        return None
    kind, sizes = action_space(parser.get_action_space(state.agents[0]))
    if kind == "gaussian":
        raise ValueError(
            f"{type(parser).__name__} has continuous actions, and there is an action mask for them: expected "
            "none, or a parser of discrete actions"
        )
    if given is not None:
        given = _checked(given, who, (state.matches, state.layout.cars, sum(sizes)), holder)
    if shared is not None:
        of_agents = _masks_of_agents(shared, state, sum(sizes))
        given, who = (of_agents, f'shared_info["{SHARED}"]') if given is None else (given & of_agents, who)
    assert given is not None  # one of the two is there
    _check_choices(given, sizes, state, who, match)
    return given


def act_within(policy: Any, obs: np.ndarray | None, state: MatchState, masks: np.ndarray | None) -> Any:
    """Return a policy's actions, within masks where it takes any.

    Args:
        policy: A `Policy`. One with the attribute `takes_masks` is called `act(obs, state, masks)`.
        obs: As `Policy.act` takes it.
        state: As `Policy.act` takes it.
        masks: `(matches, cars, actions)` bool of the cars that it plays, or None.
    """
    if getattr(policy, "takes_masks", False):
        return policy.act(obs, state, masks)
    return policy.act(obs, state)


def _checked(given: Any, who: str, shape: tuple[int, int, int], holder: Any) -> np.ndarray:
    """Return what `masks` of a parser gave; raises ValueError unless it is bool of a shape."""
    if not isinstance(given, np.ndarray) or given.dtype != bool or given.shape != shape:
        raise ValueError(
            f"{who} are {describe_array(given)}, expected an array {shape} of bool: matches, cars and actions"
            f"{locate_method(holder, 'masks')}"
        )
    return given


def _masks_of_agents(shared: Any, state: MatchState, actions: int) -> np.ndarray:
    """Return `(1, cars, actions)` bool of what the shared info holds for each agent."""
    rows = []
    for agent in state.agents:
        given = shared.get(agent) if isinstance(shared, Mapping) else None
        row = np.asarray(given)
        if row.dtype.kind not in "biuf" or row.shape != (actions,):
            raise ValueError(
                f'shared_info["{SHARED}"] has {describe_array(None if given is None else row)} for agent '
                f"{agent!r}, expected a dict with {actions} numbers for each agent: 0 for an action that it "
                "may not choose"
            )
        rows.append(row != 0)
    return np.array(rows)[None]


def _check_choices(
    masks: np.ndarray, sizes: tuple[int, ...], state: MatchState, who: str, first: int
) -> None:
    """Raise ValueError where a decision of a car has no choice left; `first` is the first match's number."""
    starts = np.cumsum((0, *sizes[:-1]))
    left = np.logical_or.reduceat(masks, starts, 2)  # (matches, cars, decisions)
    if left.all():
        return
    match, car, decision = (int(i) for i in np.argwhere(~left)[0])
    of = f" for decision {decision}" if len(sizes) > 1 else ""
    raise ValueError(
        f"{who} leave {state.agents[car]} (car {car}) in match {first + match} no action{of}, expected one "
        "at least"
    )
