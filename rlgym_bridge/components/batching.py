"""Call any builder or parser in one way: ours over batches, all others over RLGym objects."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from rlgym.api import ActionParser, ObsBuilder

from rlgym_bridge.components.batch_form import works_in_batches
from rlgym_bridge.components.given_arrays import check_observations, describe_array
from rlgym_bridge.components.user_errors import locate_method
from rlgym_bridge.rlgym_state import to_rlgym
from rlgym_bridge.rlgym_types import GameState
from rlgym_bridge.state import MatchState


def observe(
    builder: ObsBuilder[Any, Any, Any, Any],
    cars: Sequence[int],
    state: MatchState,
    game: GameState[Any] | None = None,
    shared_info: dict[str, Any] | None = None,
) -> np.ndarray:
    """Return the observations of some cars by any observation builder.

    Args:
        builder: Ours, which works on `state`; or another, which gets `game`, one match at a time.
        cars: Observing cars, by their place in the state.
        state: The state; N matches for a builder with a batch form, else one.
        game: The same match for a foreign builder; made from `state` when None.
        shared_info: The match's dict for a foreign builder; an empty one when None.

    Returns:
        `(matches, cars, size)` float32.

    Raises:
        ValueError: The builder refuses the match, or gives something else than such numbers; a foreign one
            is given several matches, or gives something other than vectors of one length.
    """
    if works_in_batches(builder):
        return check_observations(builder, builder.build_batch(state, cars), state, cars)
    agents, game = _one_match(type(builder).__name__, cars, state, game)
    built = builder.build_obs(agents, game, {} if shared_info is None else shared_info)
    _check_agents(type(builder).__name__, agents, built)
    vectors = [_vector(builder, agent, built[agent]) for agent in agents]
    if len(shapes := {vector.shape for vector in vectors}) > 1:
        raise ValueError(
            f"{type(builder).__name__} gave observations of shape {sorted(shapes)}, "
            "expected vectors of one length for all agents"
        )
    stacked: np.ndarray = np.stack(vectors)
    return stacked[None]


def _vector(builder: Any, agent: str, given: Any) -> np.ndarray:
    """Return an agent's observation as float32.

    Raises:
        ValueError: It is no vector of numbers.
    """
    with suppress(ValueError, TypeError):  # no numbers, or lists of different lengths
        vector: np.ndarray = np.asarray(given, np.float32)
        if vector.ndim == 1:
            return vector
    parts = ""
    if isinstance(given, Mapping):
        parts = (
            f" with {', '.join(map(str, given))}: join its parts with np.concatenate, in one order for all"
        )
    raise ValueError(
        f"{type(builder).__name__} gave {describe_array(given)}{parts} for agent {agent!r}, expected one "
        f"vector of numbers, which the network takes{locate_method(builder, 'build_obs')}"
    )


def control_rows(
    parser: ActionParser[Any, Any, Any, Any, Any],
    actions: np.ndarray,
    cars: Sequence[int],
    state: MatchState,
    game: GameState[Any] | None = None,
    shared_info: dict[str, Any] | None = None,
) -> list[np.ndarray]:
    """Return the control rows that any action parser makes of the actions of one match.

    Args:
        parser: Ours or another; another gets each agent's action as an array of shape (1,) or (k,), real
            numbers clipped to -1..1, which is what RLGym's continuous actions are.
        actions: `(1, cars)` or `(1, cars, k)`, as `Policy.act` gives them.
        cars: Acting cars, by their place in the state.
        state: One match.
        game: The same match for a foreign parser; made from `state` when None.
        shared_info: The match's dict for a foreign parser; an empty one when None.

    Returns:
        For each car the parser's rows: `(ticks, 8)` from ours, `(8,)` or `(ticks, 8)` from another.
        Only that each car has rows is checked.

    Raises:
        ValueError: An action is not in the action space; there are several matches; an agent has no rows.
    """
    if works_in_batches(parser):
        return list(parser.parse_batch(actions)[0])
    agents, game = _one_match(type(parser).__name__, cars, state, game)
    if actions.dtype.kind == "f":
        actions = actions.clip(-1, 1)
    given = {agent: actions[0, i].reshape(-1) for i, agent in enumerate(agents)}
    rows = parser.parse_actions(given, game, {} if shared_info is None else shared_info)
    _check_agents(type(parser).__name__, agents, rows)
    return [np.asarray(rows[agent]) for agent in agents]


def _one_match(
    who: str, cars: Sequence[int], state: MatchState, game: GameState[Any] | None
) -> tuple[list[str], GameState[Any]]:
    if state.matches != 1:
        raise ValueError(f"{who} has no batch form and takes one match at a time, not {state.matches}")
    return [state.agents[car] for car in cars], to_rlgym(state) if game is None else game


def _check_agents(who: str, agents: Sequence[str], given: Any) -> None:
    if not isinstance(given, Mapping):
        raise ValueError(f"{who} gave {describe_array(given)}, expected a dict by agent: {agents}")
    for agent in agents:
        if agent not in given:
            raise ValueError(f"{who} gave nothing for agent {agent!r}, only for {list(given)}")
