"""A policy that looks ahead: it takes the likely action that its critic and goals value most."""

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import KickoffMutator, blank_state
from rlgym_bridge.live.player import Faults, LivePlayer
from rlgym_bridge.policy import files, rollout_search
from rlgym_bridge.policy.folder import PolicyMismatch, load_policy
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.policy.manifest import SearchSettings
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.sim.simulator import SimulatorError
from rlgym_bridge.state import MatchState, derive
from tests.support.policy_folders import OBS_1V1, edit, save, zeros
from tests.support.searching_folders import AHEAD, BACK, SEARCH, SPEED_AHEAD, searching
from tests.support.simulators import needs_native


def kickoffs(matches: int = 1, blue: int = 1, orange: int = 1) -> MatchState:
    state = blank_state(blue, orange, matches)
    KickoffMutator().apply_batch(state, np.random.default_rng(0))
    derive(state)
    return state


def choose(folder: Path, state: MatchState, cars: list[int], selection: str | None = None) -> np.ndarray:
    loaded = load_policy(folder, selection=selection)
    loaded.policy.reset(cars, 0)
    obs = loaded.obs_builder().build_batch(state)[:, cars]
    actions: np.ndarray = loaded.policy.act(obs, state)
    return actions


@needs_native
@pytest.mark.parametrize(("liked", "expected"), [(1.0, AHEAD), (-1.0, BACK)], ids=["ahead", "back"])
def test_of_likely_actions_the_critics_favourite_is_taken(
    tmp_path: Path, liked: float, expected: int
) -> None:
    other = AHEAD + BACK - expected
    folder = searching(tmp_path / "p", {expected: 0.0, other: 1.0}, {SPEED_AHEAD: liked})
    state = kickoffs(3)
    assert (choose(folder, state, [0, 1]) == expected).all(), "orange sees the field turned around"
    assert (choose(folder, state, [0, 1], "argmax") == other).all(), "without its search"


@needs_native
@pytest.mark.parametrize(("prior", "expected"), [(0.0, AHEAD), (100.0, BACK)])
def test_with_a_large_prior_the_likelier_action_is_taken(tmp_path: Path, prior: float, expected: int) -> None:
    settings = msgspec.structs.replace(SEARCH, prior=prior)
    folder = searching(tmp_path / "p", {BACK: 1.0, AHEAD: 0.0}, {SPEED_AHEAD: 1.0}, search=settings)
    assert (choose(folder, kickoffs(), [0]) == expected).all()


@needs_native
def test_an_action_below_the_least_probability_is_not_tried(tmp_path: Path) -> None:
    folder = searching(tmp_path / "p", {BACK: 0.0, AHEAD: -3.0}, {SPEED_AHEAD: 1.0})
    assert (choose(folder, kickoffs(), [0]) == BACK).all()


@needs_native
@pytest.mark.parametrize("end", [1, -1], ids=["orange's goal", "blue's goal"])
def test_a_goal_counts_for_its_team_and_less_if_it_is_later(tmp_path: Path, end: int) -> None:
    loaded = load_policy(searching(tmp_path / "p", {BACK: 0.0, AHEAD: 0.0}, {}))
    state = kickoffs(2)
    state.ball_position[:] = [[0, end * 5100, 200], [0, end * 4900, 200]]
    state.ball_linear_velocity[:] = 0, end * 3000, 0
    found = loaded.policy.search.judge_actions(
        loaded.policy, state, np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([AHEAD] * 3)
    )
    assert found[:2] == pytest.approx([end * 30, -end * 30])
    assert found[2] == pytest.approx(end * 30 * 0.9), "a decision later"


@needs_native
def test_cars_choose_alike_whoever_else_is_played_with_them(tmp_path: Path) -> None:
    obs = DefaultObs(zero_padding=None)
    random = np.random.default_rng(1)
    size = obs.size(2, 2)
    weights = {
        "layers.0.weight": random.normal(size=(90, size)), "layers.0.bias": random.normal(size=90),
        "critic.layers.0.weight": random.normal(size=(1, size)), "critic.layers.0.bias": zeros(1),
    }  # fmt: skip
    settings = SearchSettings(decisions=3, choices=9, least_probability=0.01, goal=30.0, gamma=0.9)
    save(tmp_path / "p", weights=weights, search=settings, team_sizes=[(2, 2)])
    state = kickoffs(1, 2, 2)
    both = choose(tmp_path / "p", state, [0, 1])[0].tolist()
    assert both == [*choose(tmp_path / "p", state, [0])[0], *choose(tmp_path / "p", state, [1])[0]]
    assert both == choose(tmp_path / "p", state, [0, 1])[0].tolist(), "and again alike"


@needs_native
def test_a_state_that_rocketsim_refuses_is_not_searched(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = searching(tmp_path / "p", {BACK: 1.0, AHEAD: 0.0}, {SPEED_AHEAD: 1.0})
    policy, state = load_policy(folder).policy, kickoffs()
    obs = load_policy(folder).obs_builder().build_batch(state)
    for boost in (-1, -2):
        state.car_boost_amount[:] = boost
        policy.reset([0, 1], 0)
        assert (policy.act(obs, state) == BACK).all()
    assert "boost_amount is -1" in caplog.text and "boost_amount is -2" not in caplog.text, "said once"


@needs_native
@pytest.mark.parametrize("failure", [ZeroDivisionError, None], ids=["raises", "not finite"])
def test_where_its_critic_fails_the_network_decides(
    failure: type[Exception] | None, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def judge(seen: np.ndarray) -> np.ndarray:
        if failure is not None:
            raise failure("of a component")
        values: np.ndarray = np.append(np.zeros(len(seen) - 1), np.nan)[:, None]
        return values

    loaded = load_policy(searching(tmp_path / "p", {BACK: 1.0, AHEAD: 0.0}, {SPEED_AHEAD: 1.0}))
    monkeypatch.setattr(loaded.policy.search, "_critic", judge)
    state = kickoffs()
    loaded.policy.reset([0], 0)
    assert (loaded.policy.act(loaded.obs_builder().build_batch(state)[:, [0]], state) == BACK).all()
    assert ("finite" if failure is None else "ZeroDivisionError: of a component") in caplog.text


@needs_native
def test_masks_bind_a_policy_that_could_search(tmp_path: Path) -> None:
    loaded = load_policy(searching(tmp_path / "p", {BACK: 1.0, AHEAD: 0.0}, {SPEED_AHEAD: 1.0}))
    state, masks = kickoffs(), np.zeros((1, 1, 90), bool)
    masks[..., 7] = True
    loaded.policy.reset([0], 0)
    obs = loaded.obs_builder().build_batch(state)[:, [0]]
    assert loaded.policy.act(obs, state).tolist() == [[AHEAD]]
    assert loaded.policy.act(obs, state, masks).tolist() == [[7]]


@needs_native
def test_threads_search_at_the_same_time(tmp_path: Path) -> None:
    spec = load_player(searching(tmp_path / "p", {BACK: 1.0, AHEAD: 0.0}, {SPEED_AHEAD: 1.0}))
    state = kickoffs()
    obs = spec.components().obs_builder.build_batch(state)[:, [0]]

    def decide(_: int) -> bool:
        policy = spec.policy()
        policy.reset([0], 0)
        return all((policy.act(obs, state.copy()) == AHEAD).all() for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(decide, range(4)))


@needs_native
@pytest.mark.parametrize("mode", ["Soccar", "Snowday", "Heatseeker"])
def test_a_bot_searches_in_soccar_alone(mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files.warn_once.cache_clear()
    spec = load_player(searching(tmp_path / "p", {BACK: 1.0, AHEAD: 0.0}, {SPEED_AHEAD: 1.0}))
    config = flat.MatchConfiguration(game_mode=getattr(flat.GameMode, mode))
    player = LivePlayer(spec, field_info(), config, [7], Faults(logging.getLogger("tests")))
    searches: list[bool] = []
    for _ in range(2):
        policy = player.episode.policy
        assert isinstance(policy, NetworkPolicy)
        searches.append(policy.search is not None)
        player.take(spec)  # as at a kickoff, from a training run
    assert searches == [mode == "Soccar"] * 2
    assert player.no_search == (None if mode == "Soccar" else f"it expects Soccar, and the match is {mode}")
    assert caplog.text.count("plays without its search") == (mode != "Soccar")


def test_without_rocketsim_3_it_plays_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any) -> None:
        raise SimulatorError("rocketsim_batch is not installed")

    folder = searching(tmp_path / "p", {BACK: 1.0, AHEAD: 0.0}, {SPEED_AHEAD: 1.0})
    monkeypatch.setattr(rollout_search, "make_simulator", refuse)
    files.warn_once.cache_clear()
    for _ in range(2):
        assert (choose(folder, kickoffs(), [0]) == BACK).all()
    assert caplog.text.count("plays without its search") == 1
    assert "rocketsim_batch is not installed" in caplog.text
    assert load_policy(folder).policy.no_search == "rocketsim_batch is not installed"


CRITICLESS = {"layers.0.weight": zeros(90, OBS_1V1), "layers.0.bias": zeros(90)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": CRITICLESS}, r"no fitting critic, in tensors critic\.\*: tensors are none"),
        (
            {
                "weights": CRITICLESS
                | {"critic.layers.0.weight": zeros(1, 5), "critic.layers.0.bias": zeros(1)}
            },
            r"it takes 5 numbers and gives 1, expected 92 and 1",
        ),
    ],
    ids=["no critic", "another observation"],
)
def test_a_search_without_a_fitting_critic_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(PolicyMismatch, match=message):
        searching(tmp_path / "p", {}, {}, **changes)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "is {}, expected"),
        (3, "is 3, expected"),
        ({"depth": 3}, "is {'depth': 3}, expected"),
        (msgspec.structs.asdict(SEARCH) | {"decisions": 0}, "has decisions 0, expected .*1 to 60"),
        (msgspec.structs.asdict(SEARCH) | {"decisions": 60, "choices": 4}, "a product of 200 at most"),
        (msgspec.structs.asdict(SEARCH) | {"decisions": 1}, "more ticks than action_delay, 8"),
    ],
    ids=["empty", "number", "unknown", "decisions", "long", "short"],
)
def test_settings_of_a_search_are_checked(tmp_path: Path, value: Any, message: str) -> None:
    edit(searching(tmp_path / "p", {}, {}), search=value, action_delay=8)
    with pytest.raises(ValueError, match=rf"policy\.json: search .*{message}"):
        load_policy(tmp_path / "p")


@needs_native
def test_each_player_of_a_folder_knows_its_own_cars(tmp_path: Path) -> None:
    spec = load_player(searching(tmp_path / "p", {BACK: 1.0, AHEAD: 0.0}, {SPEED_AHEAD: 1.0}))
    blue, orange, state = spec.policy(), spec.policy(), kickoffs()
    blue.reset([0], 0)
    orange.reset([1], 0)
    obs = spec.components().obs_builder.build_batch(state)
    assert (blue.act(obs[:, [0]], state) == AHEAD).all() and (orange.act(obs[:, [1]], state) == AHEAD).all()
