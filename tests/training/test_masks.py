"""Action masks hold alike in collecting, learning, evaluation, matches, and in numpy and torch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlgym_bridge.components.actions import (
    ContinuousAction,
    LookupTableAction,
    MultiDiscreteAction,
    RepeatAction,
)
from rlgym_bridge.components.batch_form import find_masks
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.episode import Episode
from rlgym_bridge.components.mutators import KickoffMutator
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.relative_obs import TeamObs
from rlgym_bridge.components.spec import Components
from rlgym_bridge.policy.folder import load_policy, save_policy
from rlgym_bridge.policy.manifest import PolicyMismatch
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.policy.symmetry import Mirror
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.training.ppo import batch_of, gradients_of
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.settings import SettingsError
from tests.support.policy_folders import edit, random_weights, spec
from tests.support.small_learners import (
    collected_by,
    learner_of,
    move_weights,
    play_rollouts,
)
from tests.support.states import random_state
from tests.support.training_runs import stand_in

TABLE = LookupTableAction.make_lookup_table()
BOOST, JUMP, TURN = TABLE[:, 6] > 0, TABLE[:, 5] > 0, TABLE[:, 2:5].any(1)
MASKED = """
from rlgym_bridge.training.components import obs
from rlgym_bridge.components.spec import ComponentSpec
from rlgym_bridge.components.actions import *
del make_env
def parser(settings):
    return ComponentSpec.of(RepeatAction, ComponentSpec.of(LookupTableAction, masked=True), repeats=8)
"""


class FirstActions(LookupTableAction):
    """Allow rows below a number alone."""

    def __init__(self, below: int) -> None:
        super().__init__()
        self._below = below

    def masks(self, state: Any) -> np.ndarray:
        shape = (state.matches, state.layout.cars, 90)
        return np.broadcast_to(np.arange(90) < self._below, shape).copy()


class EvenChoices(MultiDiscreteAction):
    """Forbid the middle of each stick, and the handbrake."""

    def masks(self, state: Any) -> np.ndarray:
        row = np.array([True, False, True] * 5 + [True, True] * 2 + [True, False])
        return np.broadcast_to(row, (state.matches, state.layout.cars, 21)).copy()


def test_the_ready_mask_forbids_useless_boost_and_dodges() -> None:
    state = random_state(1, 1, seed=1, matches=4)
    state.car_boost_amount[:], state.car_on_ground[:], state.car_has_flip[:] = 50, 0, 1
    state.car_boost_amount[1], state.car_has_flip[2] = 0, 0
    state.car_has_flip[3], state.car_on_ground[3] = 0, 1
    masks = LookupTableAction(masked=True).masks(state)
    assert masks is not None and masks.shape == (4, 2, 90)
    assert masks[[0, 3]].all()
    np.testing.assert_array_equal(masks[1], np.tile(~BOOST, (2, 1)))
    np.testing.assert_array_equal(masks[2], np.tile(~(JUMP & TURN), (2, 1)))
    assert masks[2, 0, JUMP].any()  # a car on its roof has to turn over
    assert LookupTableAction().masks(state) is None


def test_masks_are_found_through_wrappers_and_in_shared_info() -> None:
    state = random_state(1, 1, seed=1)
    shared = {"action_mask": {agent: (np.arange(90) % 2).tolist() for agent in state.agents}}
    odd = np.arange(90) % 2 == 1
    by_info = find_masks(RepeatAction(LookupTableAction(), 8), state, shared)
    np.testing.assert_array_equal(by_info, np.tile(odd, (1, 2, 1)))
    both = find_masks(RepeatAction(FirstActions(7), 8), state, shared)
    np.testing.assert_array_equal(both, np.tile(odd & (np.arange(90) < 7), (1, 2, 1)))
    assert find_masks(RepeatAction(LookupTableAction(), 8), state, {}) is None


@pytest.mark.parametrize(
    ("parser", "shared", "message"),
    [
        (FirstActions(0), None, r"leave orange-0 \(car 1\) in match 2 no action, .* \(.*test_masks.py, line"),
        (LookupTableAction(), {"blue-0": [1] * 90}, r"None for agent 'orange-0', expected a dict with 90"),
        (LookupTableAction(), {"blue-0": [1] * 8, "orange-0": [1] * 8}, r"\(8,\) .* for agent 'blue-0'"),
        (ContinuousAction(), {}, "ContinuousAction has continuous actions, and there is an action mask"),
    ],
)
def test_a_mask_that_does_not_fit_is_named(
    parser: Any, shared: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = random_state(1, 1, seed=1, matches=3 if shared is None else 1)
    if shared is None:
        given = np.ones((3, 2, 90), bool)
        given[2, 1] = False
        monkeypatch.setattr(parser, "masks", lambda state: given)
    with pytest.raises(ValueError, match=message):
        find_masks(parser, state, None if shared is None else {"action_mask": shared})


def test_an_empty_mask_of_one_match_is_named_with_its_number() -> None:
    class Emptying(DefaultObs):
        """Of three builders, one for each match, the last leaves a car without any action."""

        made = 0

        def __init__(self) -> None:
            super().__init__(None)
            self.number, Emptying.made = Emptying.made, Emptying.made + 1

        def build_obs(self, agents: Any, state: Any, shared_info: Any) -> Any:
            shared_info["action_mask"] = {agent: [int(self.number < 2)] * 90 for agent in agents}
            return super().build_obs(agents, state, shared_info)

    env = VectorEnv(3, lambda: Components(Emptying(), LookupTableAction(), state_mutator=KickoffMutator()))
    env.reset(0)
    with pytest.raises(ValueError, match=r"leave blue-0 \(car 0\) in match 2 no action"):
        env.masks()


def test_a_mask_of_another_shape_or_kind_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    parser, state = LookupTableAction(), random_state(1, 1, seed=1)
    for given in (np.ones((1, 2, 89), bool), np.ones((1, 2, 90)), None.__class__):
        monkeypatch.setattr(parser, "masks", lambda state, given=given: given)
        with pytest.raises(ValueError, match=r"LookupTableAction are .*, expected an array \(1, 2, 90\)"):
            find_masks(parser, state)


def test_masks_that_end_within_a_run_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        MASKED
        + """
class Ending(LookupTableAction):
    asked = 0
    def masks(self, state):
        self.asked += 1
        return np.ones((state.matches, state.layout.cars, 90), bool) if self.asked < 12 else None
def parser(settings): return ComponentSpec.of(RepeatAction, ComponentSpec.of(Ending), repeats=8)
"""
    )
    learner = learner_of(tmp_path / "run", False, components=stand_in(tmp_path, monkeypatch, text), matches=1)
    with pytest.raises(ValueError, match=r"Ending gave no action mask for a match, .* \(.*py, line \d+\)"):
        play_rollouts(learner, 2)


@pytest.mark.parametrize(
    ("distribution", "sizes"), [("categorical", (90,)), ("multi_categorical", (3,) * 5 + (2,) * 3)]
)
def test_forbidden_actions_are_never_drawn_in_numpy(distribution: str, sizes: tuple[int, ...]) -> None:
    rng, outputs = np.random.default_rng(0), sum(sizes)
    weights, masks = random_weights(12, 16, outputs), rng.random((1, 1, outputs)) < 0.5
    masks[..., np.cumsum(sizes) - 1] = True
    obs = rng.normal(size=(1, 1, 12)).astype(np.float32)
    policy = NetworkPolicy(weights, distribution, sizes)
    many = np.repeat(obs, 20_000, 0)
    drawn = policy.act(many, masks=np.repeat(masks, 20_000, 0)).reshape(20_000, -1)
    logits = policy.network(obs[:, 0])[0]
    starts = np.cumsum((0, *sizes[:-1]))
    for decision, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        allowed, part = masks[0, 0, start : start + size], logits[start : start + size].astype(np.float64)
        exact = np.where(allowed, np.exp(part - part.max()), 0.0)
        found = np.bincount(drawn[:, decision], minlength=size) / 20_000
        assert (found[~allowed] == 0).all()
        np.testing.assert_allclose(found, exact / exact.sum(), atol=0.02)
    best = NetworkPolicy(weights, distribution, sizes, "argmax").act(obs, masks=masks).reshape(-1)
    assert masks[0, 0][starts + best].all()


@pytest.mark.parametrize("parser", ["FirstActions, below=7", "EvenChoices"])
def test_learning_counts_allowed_actions_alone(
    parser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from tests.training.test_masks import FirstActions, EvenChoices\n"
    held = f"ComponentSpec.of(RepeatAction, ComponentSpec.of({parser}), repeats=8)"
    text += f"def parser(settings): return {held}"
    learner = learner_of(
        tmp_path / "run", False, components=stand_in(tmp_path, monkeypatch, text), uniform_coefficient=0.3,
        entropy_coefficient=0.05,
    )  # fmt: skip
    assert " with masks, network perceptron" in learner.about(1)
    assert learner.shape.masked and learner.backpropagation is not None
    batch = batch_of(learner, collected_by(learner))
    assert batch.masks is not None
    move_weights(learner, 0.3)
    part = torch.arange(50)
    found, sums = gradients_of(learner, batch, part, 70)
    learner.backpropagation = None
    expected, their_sums = gradients_of(learner, batch, part, 70)
    torch.testing.assert_close(sums, their_sums, rtol=1e-4, atol=1e-4)
    for own, other in zip(found, expected, strict=True):
        assert other.isfinite().all()
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-6)


def test_a_mirrored_policy_keeps_to_mirrored_masks() -> None:
    mirror, rng = Mirror(TeamObs().names(1, 1), TABLE), np.random.default_rng(0)
    obs = TeamObs().build_batch(random_state(1, 1, seed=3, matches=200))
    masks = rng.random((200, 2, 90)) < 0.1
    masks[..., 40] = True
    where = mirror.applies(obs)
    assert where.any() and not where.all()
    chosen = mirror.exchange(rng.integers(90, size=(200, 2)), where)
    network = np.take_along_axis(
        mirror.exchange_masks(masks, where), mirror.exchange(chosen, where)[..., None], 2
    )
    np.testing.assert_array_equal(network, np.take_along_axis(masks, chosen[..., None], 2))
    policy = NetworkPolicy(random_weights(222, 16, 90), "categorical", (90,), mirror=mirror, masked=True)
    assert np.take_along_axis(masks, policy.act(obs, masks=masks)[..., None], 2).all()
    with pytest.raises(ValueError, match="there are no action masks, expected those"):
        policy.act(obs)


@pytest.mark.parametrize(("rlgym", "renewed"), [(False, False), (True, False), (False, True), (True, True)])
def test_collected_actions_keep_to_the_masks(
    rlgym: bool, renewed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = MASKED
    if rlgym:  # RLGym's form: a builder without batch form fills the shared info
        text += """
class InfoObs(MarkObs):
    def build_obs(self, agents, state, shared_info):
        shared_info["action_mask"] = {agent: np.arange(90) % 5 == i for i, agent in enumerate(agents)}
        return super().build_obs(agents, state, shared_info)
def obs(settings): return ComponentSpec.of(InfoObs)
def parser(settings): return ComponentSpec.of(RepeatAction, ComponentSpec.of(LookupTableAction), repeats=8)
"""
    name = stand_in(tmp_path, monkeypatch, text)
    learner = learner_of(
        tmp_path / "run", False, components=name, rollout_steps=32, team_sizes=[1, 1], kickoff_share=0.0
    )
    # as where a person changes a reward while a run goes on
    ((rows, _),) = play_rollouts(learner, 1, replace(learner.settings, goal=3.0) if renewed else None)
    allowed = np.take_along_axis(rows["masks"], rows["actions"][..., None], 3)
    assert allowed.all() and not rows["masks"].all()
    seen, actions, masks = (torch.from_numpy(rows[name]) for name in ("obs", "actions", "masks"))
    learned = learner.learned
    with torch.no_grad():  # what collectors tell counts the allowed actions alone
        obs, *every = (one[:, :, learned].flatten(0, 2) for one in (seen[:, :-1], actions, masks))
        told = learner.policy.log_probs_of(learner.policy(obs), *every)
    np.testing.assert_allclose(rows["log_probs"][..., learned].reshape(-1), told, rtol=1e-4, atol=1e-4)
    if rlgym:
        np.testing.assert_array_equal(rows["actions"][0] % 5, np.tile([0, 1], (32, 8)))


def test_a_masked_run_does_not_go_on_without_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masked, plain = (
        learner_of(tmp_path, False, components=stand_in(tmp_path, monkeypatch, text), normalise_obs=True)
        for text in (MASKED, MASKED.replace("masked=True", "masked=False"))
    )
    folder = masked.save(Checkpoints(tmp_path, 1))
    with pytest.raises(SettingsError, match="trained with action masks, and the parser here gives none"):
        plain.load(folder)


def test_a_folder_plays_within_the_masks_it_was_saved_with(tmp_path: Path) -> None:
    parser = spec(RepeatAction, spec(LookupTableAction, masked=True), repeats=8)
    save_policy(
        tmp_path / "p", random_weights(92, 16, 90), distribution="categorical", team_sizes=[(1, 1)],
        obs=spec(DefaultObs, zero_padding=None), parser=parser,
    )  # fmt: skip
    loaded = load_policy(tmp_path / "p")
    assert len(loaded.manifest.probe["masks"]) == len(loaded.manifest.probe["observations"])
    state = random_state(1, 1, seed=2)
    state.car_boost_amount[:] = 0
    episode = Episode(PlayerSpec(lambda: loaded.policy, loaded.components, 8))
    episode.reset(state, [0, 1], seed=0)
    for _ in range(40):
        rows = episode.decide(state)
        assert not any(plan[:, 6].any() for plan in rows)  # nobody boosts
    probe = loaded.manifest.probe | {"masks": [[1.0] * 90] * len(loaded.manifest.probe["masks"])}
    edit(tmp_path / "p", probe=probe)
    with pytest.raises(PolicyMismatch, match=r"of the action masks changed: action .* was allowed"):
        load_policy(tmp_path / "p")
