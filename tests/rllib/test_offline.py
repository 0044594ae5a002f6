"""Episodes in files: nothing is lost, and every row is one that RLlib learns from."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")

import msgpack
import msgpack_numpy
import pyarrow.parquet as pq
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rlgym_bridge.rllib.offline import write_episodes


def episode_of(steps: int, terminated: bool = False) -> SingleAgentEpisode:
    return SingleAgentEpisode(
        observations=[np.float32([step, steps]) for step in range(steps + 1)],
        actions=list(range(steps)),
        rewards=[0.5 * step for step in range(steps)],
        terminated=terminated,
        len_lookback_buffer=0,
    )


def rows_of(file: Path) -> list[SingleAgentEpisode]:
    states = [
        msgpack.unpackb(item, object_hook=msgpack_numpy.decode)
        for item in pq.read_table(file)["item"].to_pylist()
    ]
    return [SingleAgentEpisode.from_state(state) for state in states]


@pytest.mark.parametrize("steps", [1, 63, 64, 65, 128, 247])
@pytest.mark.parametrize("terminated", [True, False])
def test_long_episodes_are_cut_into_rows_that_hold_every_step(
    steps: int, terminated: bool, tmp_path: Path
) -> None:
    assert write_episodes([episode_of(steps, terminated)], tmp_path / "one.parquet") == steps
    rows = rows_of(tmp_path / "one.parquet")
    assert [len(row) for row in rows[:-1]] == [64] * (len(rows) - 1) and 0 < len(rows[-1]) <= 64
    assert np.concatenate([row.get_actions() for row in rows]).tolist() == list(range(steps))
    assert np.concatenate([row.get_rewards() for row in rows]).tolist() == [0.5 * n for n in range(steps)]
    first = 0
    for row in rows:
        seen = row.get_observations()
        assert seen[:, 0].tolist() == list(range(first, first + len(row) + 1))
        first += len(row)
    # RLlib refuses what goes on.
    assert [row.is_terminated for row in rows] == [False] * (len(rows) - 1) + [terminated]
    assert all(row.is_done for row in rows)
    assert len({row.id_ for row in rows}) == len(rows)


@pytest.mark.parametrize("part", [slice(0, 60), slice(30, 130), slice(100, 150)], ids=str)
def test_a_part_of_an_episode_is_written_as_cut_off(part: slice, tmp_path: Path) -> None:
    whole = episode_of(150, terminated=True)
    steps = write_episodes([whole[part], whole[part]], tmp_path / "parts.parquet")
    rows = rows_of(tmp_path / "parts.parquet")
    assert steps == 2 * (part.stop - part.start) == sum(map(len, rows)) and all(row.is_done for row in rows)
    done = np.concatenate([row.get_actions() for row in rows])
    assert done.tolist() == 2 * list(range(part.start, part.stop))


def test_nothing_to_write_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no steps to write"):
        write_episodes([], tmp_path / "none.parquet")
