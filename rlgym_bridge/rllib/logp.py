"""Compute the log-probabilities of replaced actions, as RLlib's learners read them."""

from typing import Any

import numpy as np
from gymnasium import spaces
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.catalog import Catalog
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.numpy import convert_to_numpy
from ray.rllib.utils.spaces.space_utils import batch
from ray.rllib.utils.torch_utils import convert_to_torch_tensor
from ray.rllib.utils.typing import AgentID


def logp_of(agent: AgentID, episode: SingleAgentEpisode, steps: np.ndarray, actions: Any) -> np.ndarray:
    """Return `(steps,)` log probabilities of actions, by the episode's `action_dist_inputs`.

    Args:
        agent: Whose episode it is, for messages.
        episode: Of one agent.
        steps: `(steps,)` int64, negative ones in the lookback buffer.
        actions: At these steps: an array `(steps, ...)`, or a list of dicts or tuples.

    Raises:
        ValueError: There is no action space or there are no `action_dist_inputs`; or RLlib's own distribution
            for the space does not take them or the actions.
    """
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
    first = int(steps.min())
    span = slice(first, int(steps.max()) + 1)
    every = episode.get_extra_model_outputs(Columns.ACTION_DIST_INPUTS, span, neg_index_as_lookback=True)
    inputs = np.asarray(every)[steps - first]
    # A catalog wants observations too, which the distribution does not depend on.
    distribution = Catalog(spaces.Box(-1.0, 1.0, (1,)), space, {}).get_action_dist_cls("torch")
    expected = (len(steps), distribution.required_input_dim(space))
    if inputs.shape != expected:
        raise ValueError(
            f"{Columns.ACTION_DIST_INPUTS} of agent {agent!r} are {inputs.shape[1:]} a step, RLlib's own "
            f"distribution for {space} takes {expected[1:]}"
        )
    given = convert_to_torch_tensor(batch(actions) if isinstance(actions, list) else actions)
    logp: np.ndarray = convert_to_numpy(distribution.from_logits(convert_to_torch_tensor(inputs)).logp(given))
    return logp


def _counted_from_zero(space: Any) -> bool:
    """Say whether RLlib's distribution for a space takes its actions as they are."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return all(map(_counted_from_zero, space.values() if isinstance(space, spaces.Dict) else space))
    if isinstance(space, spaces.Discrete):
        return bool(space.start == 0)
    if isinstance(space, spaces.MultiDiscrete):
        return space.nvec.ndim == 1 and not space.start.any()
    return isinstance(space, spaces.Box) and len(space.shape) == 1
