"""Networks with memory: what is remembered in play is what is learned from, and it ends with the episode."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlgym_bridge.components.episode import Episode
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import batch_of, gradients_of, improve, main
from rlgym_bridge.training.rollouts import CollectedSteps
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.selfplay.snapshots import unpack
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.policy_folders import make_module
from tests.support.small_learners import (
    learner_of,
    move_weights,
    play_rollouts,
)
from tests.support.states import random_state
from tests.support.training_runs import SMALL, column, stand_in

OWN = """
import torch
from torch import nn

class Remembering(nn.Module):
    state_size = 6

    def __init__(self, inputs, outputs):
        super().__init__()
        self.into, self.out = nn.Linear(inputs + 6, 6), nn.Linear(6, outputs)

    def forward(self, obs, state, starts):
        state = torch.where(starts[:, None], 0.5, state)
        state = torch.tanh(self.into(torch.cat((obs, state), 1)))
        return self.out(state), state
"""
LATE = """
class LateEnv(stand_in.MarkEnv):
    def reset(self, seed=None):
        seen = super().reset(seed)
        self.before = self.marks
        return seen
    def hits(self, actions):
        return actions % MARKS == self.before
    def step(self, actions):
        marks = self.marks
        step = super().step(actions)
        self.before = marks
        return step
def make_env(settings, matches): return LateEnv(matches, settings.cars)
"""


def network_of(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if name == "own":
        make_module(tmp_path, monkeypatch, "remembering_nets", OWN)
        return "remembering_nets:Remembering"
    return name


@pytest.mark.parametrize(
    ("name", "layers"), [("gru", {}), ("gru", {"activation": "tanh", "layer_norm": True}), ("own", {})]
)
def test_learning_sees_the_memory_that_play_had(
    name: str, layers: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, lengths = network_of(name, tmp_path, monkeypatch), {"rollout_steps": 12, "sequence_length": 4}
    learner = learner_of(tmp_path / "run", False, network=network, **lengths | layers)
    move_weights(learner, 0.3)
    player = unpack(learner.shape, learner.packed(), (0,)).network
    cars = len(learner.learned)
    size = player.state_size
    state, fresh = np.zeros((cars, size), np.float32), np.ones(cars, bool)
    critic_state = torch.zeros(int(learner.learned.sum()), learner.critic.state_size)
    for rows, _ in play_rollouts(learner, 2):
        batch = batch_of(learner, CollectedSteps.of(learner, rows))
        log_probs = np.empty((12, cars), np.float32)
        values = np.empty((13, int(learner.learned.sum())), np.float32)
        for step in range(12):
            obs = rows["obs"][0, step]
            begins = torch.from_numpy(fresh[learner.learned])
            critic_state = critic_state * ~begins[:, None]
            with torch.no_grad():
                seen = torch.from_numpy(obs[learner.learned])
                value, critic_state = learner.critic.step(seen, critic_state, begins)
            values[step] = value[:, 0]
            outputs, state = player.step(obs, state * ~fresh[:, None], fresh)
            logs = torch.from_numpy(outputs).log_softmax(1).numpy()
            log_probs[step] = np.take_along_axis(logs, rows["actions"][0, step][:, None], 1)[:, 0]
            fresh = rows["terminated"][0, step] | rows["truncated"][0, step]
        expected = log_probs[:, learner.learned].reshape(3, 4, -1).swapaxes(1, 2).reshape(-1)
        np.testing.assert_allclose(batch.log_probs.numpy(), expected, atol=1e-5, rtol=1e-5)
        assert batch.pieces is not None and batch.pieces.length == 4
        every = torch.arange(len(batch.pieces.starts))
        with torch.no_grad():
            again = batch.pieces.values(learner.critic, batch.shown[batch.rows], every)
        by_piece = values[:12].reshape(3, 4, -1).swapaxes(1, 2).reshape(-1)
        np.testing.assert_allclose(again.numpy(), by_piece, atol=1e-5, rtol=1e-5)
        gradients, sums = gradients_of(learner, batch, every, len(batch.rows))
        assert all(one.isfinite().all() for one in gradients)
        assert abs(float(sums[4])) < 1e-4  # the policy is the one that played


def test_a_truncated_episode_is_worth_what_its_memory_says(tmp_path: Path) -> None:
    learner = learner_of(tmp_path, False, network="gru", rollout_steps=4, sequence_length=4)
    move_weights(learner, 0.3)
    ((rows, _),) = play_rollouts(learner, 1)
    rows["terminated"][:], rows["truncated"][:] = False, False
    rows["starts"][:], rows["starts"][:, 0] = False, True
    rows["truncated"][0, 1] = rows["starts"][0, 2] = True
    rows["rewards"][:] = 0
    rows["final_obs"][0, 1] = np.random.default_rng(0).normal(size=rows["final_obs"][0, 1].shape)
    learned = torch.from_numpy(learner.learned)
    batch = batch_of(learner, CollectedSteps.of(learner, rows))
    obs, final = (
        torch.from_numpy(rows["obs"][0])[:, learned],
        torch.from_numpy(rows["final_obs"][0, 1])[learned],
    )
    nobody = torch.zeros(len(obs[0]), dtype=torch.bool)
    with torch.no_grad():
        _, state = learner.critic.step(obs[0], torch.zeros(len(obs[0]), 128), ~nobody)
        value, state = learner.critic.step(obs[1], state, nobody)
        outcome, _ = learner.critic.step(final, state, nobody)
        _, state = learner.critic.step(obs[2], torch.zeros(len(obs[0]), 128), ~nobody)
        _, state = learner.critic.step(obs[3], state, nobody)
        following, _ = learner.critic.step(obs[4], state, nobody)
    # The value target of the step before the cut is what its own last observation is worth, discounted.
    targets, gamma = batch.returns.reshape(-1, 4), learner.settings.gamma
    torch.testing.assert_close(targets[:, 1], gamma * outcome[:, 0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(targets[:, 3], gamma * following[:, 0], atol=1e-5, rtol=1e-4)
    assert (value[:, 0] - outcome[:, 0]).abs().max() > 1e-3


def test_a_memory_learns_within_value_clip_and_up_to_target_kl(tmp_path: Path) -> None:
    def learner_with(**changes: Any) -> PPOLearner:
        given = {"network": "gru", "sequence_length": 4, "learning_rate": 0.01}
        return learner_of(tmp_path, False, **given | {"epochs": 4, "minibatch": 56} | changes)

    ((rows, _),) = play_rollouts(learner_with(), 1)
    gradients, moved = [], []
    for clip in (0.0, 1e6, 0.01):
        learner = learner_with(value_clip=clip)
        batch = batch_of(learner, CollectedSteps.of(learner, rows))
        assert batch.pieces is not None
        every = torch.arange(len(batch.pieces.starts))
        gradients.append(gradients_of(learner, batch, every, len(batch.rows))[0])
        improve(learner, batch)
        with torch.no_grad():
            values = batch.pieces.values(learner.critic, batch.shown[batch.rows], every)
        moved.append(float((values - batch.values).abs().mean()))
    for one, other in zip(*gradients[:2], strict=True):  # a wide clip changes nothing
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)
    assert moved[0] == pytest.approx(moved[1]) and moved[2] < 0.5 * moved[0]
    stats = []
    for most in (1e6, 0.02):
        learner = learner_with(target_kl=most)
        stats.append(improve(learner, batch_of(learner, CollectedSteps.of(learner, rows))))
    assert stats[0]["epochs_taken"] == 4 and stats[1]["epochs_taken"] < 4
    assert stats[1]["kl"] < 0.5 * stats[0]["kl"]


def test_only_a_memory_learns_a_game_of_the_mark_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    components = stand_in(tmp_path, monkeypatch, LATE)
    changes = {"matches": 32, "rollout_steps": 32, "learning_rate": 1e-2, "minibatch": 512, "gamma": 0.0}
    shares = {}
    for network in ("gru", "perceptron"):
        given = SMALL | changes | {"out": str(tmp_path / network), "components": components, "steps": 17_000}
        main(check_settings(given | {"network": network, "snapshot_share": 0.0}), quiet=True)
        shares[network] = column(tmp_path / network, "touches_per_car_minute")[-1] / 900
    assert shares["gru"] > 0.8  # an episode's first step is a guess
    assert shares["perceptron"] < 0.35


def test_a_policy_remembers_until_the_next_episode(tmp_path: Path) -> None:
    settings = {"components": "rlgym_bridge.training.components", "network": "gru", "rollout_steps": 16}
    learner = learner_of(tmp_path / "run", False, **settings)
    move_weights(learner, 0.3)
    folder = learner.save(Checkpoints(tmp_path / "run", 1))
    loaded = load_policy(folder, selection="argmax")
    obs = loaded.obs_builder().build_batch(random_state(1, 1, seed=1, matches=5))
    loaded.policy.reset([0, 1])
    loaded.policy.act(obs)
    first = loaded.policy.memory
    loaded.policy.act(obs)
    assert first is not None and loaded.policy.memory is not None
    assert (np.abs(loaded.policy.memory - first).max((1, 2)) > 1e-4).all()
    loaded.policy.forget([1, 3])
    loaded.policy.act(obs)
    np.testing.assert_allclose(loaded.policy.memory[[1, 3]], first[[1, 3]], atol=1e-6)
    assert (np.abs(loaded.policy.memory[[0, 2, 4]] - first[[0, 2, 4]]).max((1, 2)) > 1e-4).all()
    with torch.no_grad():  # torch remembers the same
        rows = torch.from_numpy(obs.reshape(10, -1))
        _, state = learner.policy.step(rows, torch.zeros(10, 128), torch.ones(10, dtype=torch.bool))
    np.testing.assert_allclose(first.reshape(10, -1), state.numpy(), atol=1e-5)
    one, other = (Episode(load_player(folder)) for _ in range(2))
    for episode, seed in ((one, 1), (other, 2)):
        episode.reset(random_state(1, 1, seed=seed), [0])
        episode.decide(random_state(1, 1, seed=seed))
    assert one.policy is not other.policy


def test_wrong_settings_of_a_memory_get_a_sentence(tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"rollout_steps": 24}, "rollout_steps is 24 and sequence_length 16, expected a multiple"),
        ({"mirror": True, "rollout_steps": 16}, "whose memory has no mirrored form"),
    ]
    for changes, message in wrong:
        with pytest.raises(SettingsError, match=message):
            learner_of(
                tmp_path, False, network="gru", components="rlgym_bridge.training.components", **changes
            )
