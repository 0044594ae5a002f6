"""Write episodes as Parquet for RLlib's offline algorithms, and clone behaviour from them.

RLlib reads episodes of single agents alone, so each agent's part is a row of its own.
"""

import gc
import math
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgpack
import msgpack_numpy
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from ray.rllib.algorithms.bc import BCConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rlgym_bridge.rllib.module import PolicyModule

_STEPS: Final = 64  # of a row: RLlib mixes rows
_ROWS: Final = 4  # that RLlib reads at once; of these it then draws one batch
BATCH: Final = 1024
"""Steps of a gradient step, four times what is read: all of it is drawn, likely."""


def write_episodes(episodes: Iterable[SingleAgentEpisode], file: str | Path) -> int:
    """Write episodes as Parquet, as `output_write_episodes` of RLlib does: a column `item`, a row each.

    Args:
        episodes: Each agent's; long ones are cut into rows of 64 steps, the last observation of one being the
            first of the next. What is not done is marked as truncated, since RLlib passes over what goes on.
        file: To write, `.parquet`.

    Returns:
        Steps written.

    Raises:
        ValueError: There are none.
        OSError: The file cannot be written.
    """
    items, steps = [], 0
    for episode in episodes:
        for start in range(0, len(episode), _STEPS):
            end = min(start + _STEPS, len(episode))  # past its end a slice forgets that it is done
            piece = episode[start:end]
            if not piece.is_done:
                piece.is_terminated, piece.is_truncated = False, True
            piece.id_ = uuid.uuid4().hex  # RLlib reads each id once
            piece.to_numpy()
            items.append(msgpack.packb(piece.get_state(), default=msgpack_numpy.encode))
            steps += len(piece)
    if not items:
        raise ValueError("there are no steps to write")
    pq.write_table(pa.table({"item": pa.array(items, pa.binary())}), str(file))
    return steps


def clone(
    folder: str | Path,
    example: SingleAgentEpisode,
    steps: int,
    *,
    layers: Sequence[int] = (256, 256),
    epochs: float = 20,
    learning_rate: float = 1e-3,
    seed: int = 0,
    activation: str = "relu",
    layer_norm: bool = False,
) -> dict[str, np.ndarray]:
    """Train a policy to do what episodes show: behaviour cloning with RLlib, on Ray as it was initialised.

    Args:
        folder: Folder with the files of `write_episodes`.
        example: An episode with the spaces of all.
        steps: Steps in the folder.
        layers: Widths of the hidden layers.
        epochs: Mean number of times that each step is learned from.
        learning_rate: Learning rate of Adam.
        seed: Seed of network and batches.
        activation: One of `policy.numpy_layers.ACTIVATIONS`, between the layers.
        layer_norm: Whether layer normalisation stands before each activation.

    Returns:
        The tensors of a policy folder: `layers.0.weight` of shape (outputs, inputs), `layers.0.bias` of
        shape (outputs,) and so on, float32; with layer normalisation `norms.0.weight` (outputs,), too.
    """
    updates = max(1, math.ceil(epochs * steps / BATCH))
    config = (
        BCConfig()
        .environment(observation_space=example.observation_space, action_space=example.action_space)
        .env_runners(num_env_runners=0)
        .learners(num_learners=0)
        .rl_module(rl_module_spec=_describe_module(layers, activation, layer_norm))
        .offline_data(
            input_=[str(Path(folder).absolute())],
            input_read_method="read_parquet",
            input_read_episodes=True,
            input_read_batch_size=_ROWS,
            map_batches_kwargs={"concurrency": 1, "num_cpus": 1},
            dataset_num_iters_per_learner=updates,
        )
        .training(lr=learning_rate, train_batch_size_per_learner=BATCH)
        .debugging(seed=seed)
    )
    algorithm = config.build_algo()
    try:
        algorithm.train()
        weights = algorithm.learner_group.get_weights()[DEFAULT_MODULE_ID]
    finally:
        algorithm.stop()
        del algorithm
        gc.collect()  # of readers that would miss Ray once it has been shut down
    start = "policy."
    return {
        name[len(start) :]: np.asarray(tensor) for name, tensor in weights.items() if name.startswith(start)
    }


def _describe_module(layers: Sequence[int], activation: str, layer_norm: bool) -> RLModuleSpec:
    """Return what RLlib makes the network of; behaviour cloning needs no critic."""
    config = {
        "policy_layers": tuple(layers), "critic_layers": (1,), "activation": activation,
        "layer_norm": layer_norm,
    }  # fmt: skip
    return RLModuleSpec(module_class=PolicyModule, model_config=config)
