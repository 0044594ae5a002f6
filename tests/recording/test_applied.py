"""Applied actions are found again where they were planted."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlgym.api import ActionParser

from rlgym_bridge.components.actions import (
    ContinuousAction,
    LookupTableAction,
    MultiDiscreteAction,
    RepeatAction,
)
from rlgym_bridge.recording.applied_actions import ActionFinder, applied_actions

LOOKUP = ActionFinder(RepeatAction(LookupTableAction(), 8), np.arange(1))
ROWS = LookupTableAction().parse_batch(np.arange(90)[None])[0, :, 0]  # (90, 8)


def test_controls_as_rough_as_a_gamepads_are_found() -> None:
    assert LOOKUP.find(np.round(ROWS * 127) / 127).tolist() == list(range(90))
    noise = np.random.default_rng(0).uniform(-0.004, 0.004, (90, 8)).astype(np.float32)
    assert LOOKUP.find(ROWS + noise).tolist() == list(range(90))


def test_controls_that_no_action_makes_are_not_found() -> None:
    strange = np.array([[0.3, 0.1, 0, 0, 0, 0, 0, 0]], np.float32)
    assert LOOKUP.find(np.concatenate([strange, ROWS[7:8]])).tolist() == [-1, 7]


def test_chosen_choices_and_real_numbers_are_found() -> None:
    random = np.random.default_rng(0)
    parser = MultiDiscreteAction()
    chosen = random.integers(0, (3, 3, 3, 3, 3, 2, 2, 2), (50, 8))
    finder = ActionFinder(RepeatAction(parser, 4), chosen)
    found = finder.find(parser.parse_batch(chosen[None])[0, :, 0])
    assert np.array_equal(finder.actions[found], chosen)
    reals = random.uniform(-1, 1, (50, 8)).astype(np.float32)
    continuous = ContinuousAction()
    finder = ActionFinder(continuous, reals)
    rows = continuous.parse_batch(reals[None])[0, :, 0]
    again = continuous.parse_batch(finder.actions[finder.find(rows)][None])[0, :, 0]
    assert np.allclose(again, rows)


class Remembering(LookupTableAction):
    """Has no memory before an episode has begun."""

    def reset(self, agents: Any, initial_state: Any, shared_info: Any) -> None:
        assert set(initial_state.cars) == set(agents)
        self.latest = dict.fromkeys(agents, 0)

    def parse_actions(self, actions: Any, state: Any, shared_info: Any) -> dict[Any, np.ndarray]:
        self.latest |= {agent: int(action[0]) for agent, action in actions.items()}
        return super().parse_actions(actions, state, shared_info)


def test_a_parser_that_needs_an_episode_is_asked_within_one() -> None:
    assert ActionFinder(Remembering(), np.arange(1)).find(ROWS).tolist() == list(range(90))


class Own(ActionParser[Any, Any, np.ndarray, Any, Any]):
    """Steers left, straight on or right, for orange the other way round; or as a subclass likes it."""

    def get_action_space(self, agent: Any) -> tuple[str, int]:
        return "discrete", 3

    def reset(self, agents: Any, initial_state: Any, shared_info: Any) -> None:
        self.before = dict.fromkeys(agents, 0.0)

    def steer(self, agent: Any, action: int, state: Any) -> float:
        return -action if state.cars[agent].is_orange else action

    def parse_actions(self, actions: Any, state: Any, shared_info: Any) -> dict[Any, np.ndarray]:
        rows = {agent: np.zeros((4, 8), np.float32) for agent in actions}
        for agent, action in actions.items():
            rows[agent][:, 1] = self.steer(agent, int(action[0]) - 1, state)
        return rows


class Smooth(Own):
    def steer(self, agent: Any, action: int, state: Any) -> float:
        self.before[agent] = float(np.clip(self.before[agent] + 0.2 * action, -1, 1))
        return self.before[agent]


class Airborne(Own):
    def steer(self, agent: Any, action: int, state: Any) -> float:
        return action if state.cars[agent].on_ground else -action


@pytest.mark.parametrize(("seat", "left"), [(0, -1.0), (1, 1.0)])
def test_a_parser_that_knows_teams_is_asked_for_the_car_itself(seat: int, left: float) -> None:
    finder = ActionFinder(Own(), np.arange(3), (1, 1), seat)
    rows = np.zeros((3, 8), np.float32)
    rows[:, 1] = (left, 0, -left)
    assert finder.steady and finder.find(rows).tolist() == [0, 1, 2]


class Rarely(Own):
    """One action alone, and in few states."""

    def steer(self, agent: Any, action: int, state: Any) -> float:
        return action if action < 1 or state.cars[agent].on_ground else 0.5


class Frugal(Own):
    def steer(self, agent: Any, action: int, state: Any) -> float:
        return action if state.cars[agent].boost_amount else 0.0


class Turning(Own):
    """The other way round at every other call."""

    calls = 0

    def steer(self, agent: Any, action: int, state: Any) -> float:
        self.calls += 1
        return action if self.calls % 2 else -action


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("parser", [Smooth, Airborne, Rarely, Frugal, Turning])
def test_controls_of_more_than_the_action_tell_nothing(parser: type[Own], seat: int) -> None:
    chosen = np.array([2, 0, 1])
    finder = ActionFinder(parser(), np.arange(3), (1, 1), seat)
    assert not finder.steady
    rows = np.zeros((13, 8), np.float32)
    found, told = applied_actions(finder, rows, np.arange(13), np.arange(4) * 4, 0, chosen)
    assert np.array_equal(found, chosen) and not told.any()


class Flips(LookupTableAction):
    """An action's first tick is a jump, those after it steer: 0 and 2 to the left, 1 and 3 do not jump."""

    def get_action_space(self, agent: Any) -> tuple[str, int]:
        return "discrete", 4

    def parse_batch(self, actions: np.ndarray) -> np.ndarray:
        rows = np.zeros((*actions.shape, 4, 8), np.float32)
        rows[..., 0, 5] = actions % 2 == 0
        rows[..., 1] = np.where(actions < 2, -1, 1)[..., None]
        return rows


def test_of_equal_controls_a_chosen_action_is_told() -> None:
    chosen = np.array([1, 2, 2])
    rows = Flips().parse_batch(chosen[None])[0].reshape(-1, 8)
    held = np.concatenate([np.zeros((1, 8), np.float32), rows[:4], rows[3:4], rows[3:4], rows[4:10]])
    found, told = applied_actions(
        ActionFinder(Flips(), chosen), held, np.arange(13), np.arange(4) * 4, 0, chosen
    )
    assert found.tolist() == [1, 2, 2] and told.all()
    held[5:9] = rows[3]  # the first is held
    found, _ = applied_actions(
        ActionFinder(Flips(), chosen), held, np.arange(13), np.arange(4) * 4, 0, chosen
    )
    assert found.tolist() == [1, 1, 2]


def test_mostly_foreign_controls_tell_nothing() -> None:
    chosen = np.array([5, 6])
    rows, tick, frames = applied([5, 6], 4, 0, 0)
    rows[1:3] = rows[5:8] = 0.3
    found, told = applied_actions(LOOKUP, rows, tick, frames, 0, chosen)
    assert found.tolist() == [5, 6] and told.tolist() == [True, False]


def applied(
    chosen: list[int], ticks: int, delay: int, late: int, missing: frozenset[int] = frozenset()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return controls, ticks and decisions of a game that applies each action some ticks too late."""
    last = len(chosen) * ticks + delay
    tick = np.array([one for one in range(last + 1) if one not in missing])
    doing = [(one - 1 - delay - late) // ticks for one in tick]  # the decision that drove one - 1 -> one
    rows = np.array([ROWS[chosen[min(one, len(chosen) - 1)]] if one >= 0 else np.zeros(8) for one in doing])
    return rows.astype(np.float32), tick, np.arange(len(chosen) + 1) * ticks


@pytest.mark.parametrize("ticks", [1, 2, 5, 8])
@pytest.mark.parametrize("delay", [0, 1, 3])
def test_what_acts_in_time_is_what_was_chosen(ticks: int, delay: int) -> None:
    chosen = np.random.default_rng(ticks).integers(1, 90, 40)
    rows, tick, frames = applied(chosen.tolist(), ticks, delay, 0)
    found, told = applied_actions(LOOKUP, rows, tick, frames, delay, chosen)
    assert np.array_equal(found, chosen)
    assert told.tolist() == [
        frame + delay < frames[-1] for frame in frames[:-1]
    ]  # the end cuts the others off


def test_neutral_controls_count_before_anything_was_applied() -> None:
    chosen = 1 + np.arange(10) % 89
    rows, tick, frames = applied(chosen.tolist(), 2, 1, 4)
    found, _ = applied_actions(LOOKUP, rows, tick, frames, 1, chosen)
    assert np.array_equal(ROWS[found[:2]], np.zeros((2, 8)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_it_is_what_a_count_tick_by_tick_says(data: st.DataObject) -> None:
    ticks, delay = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 4))
    late = data.draw(st.integers(0, 9))
    chosen = np.array(data.draw(st.lists(st.integers(1, 5), min_size=3, max_size=12)))
    last = len(chosen) * ticks + delay
    missing = frozenset(data.draw(st.sets(st.integers(1, last), max_size=last // 3)))
    rows, tick, frames = applied(chosen.tolist(), ticks, delay, late, missing)
    found, told = applied_actions(LOOKUP, rows, tick, frames, delay, chosen)
    by_tick = dict(zip(tick.tolist(), LOOKUP.find(rows).tolist(), strict=True))
    for number, frame in enumerate(frames[:-1].tolist()):
        driven = range(frame + delay + 1, min(frame + delay + ticks, frames[-1]) + 1)
        window = [by_tick[one] for one in driven if one in by_tick]
        assert told[number] == bool(window)
        counts = {one: window.count(one) for one in window}
        if not window or counts.get(chosen[number]) == max(counts.values()):
            assert found[number] == chosen[number]
        else:
            assert counts[found[number]] == max(counts.values())


def test_an_action_with_anothers_controls_is_as_chosen() -> None:
    class Twins(LookupTableAction):
        """Every action makes what the even one below it makes."""

        def parse_batch(self, actions: np.ndarray) -> np.ndarray:
            return super().parse_batch(actions // 2 * 2)

    chosen = np.random.default_rng(0).integers(0, 90, 30)
    finder = ActionFinder(RepeatAction(Twins(), 4), chosen)
    rows, tick, frames = applied((chosen // 2 * 2).tolist(), 4, 1, 0)
    found, _ = applied_actions(finder, rows, tick, frames, 1, chosen)
    assert np.array_equal(found, chosen)


def test_controls_that_are_not_known_tell_nothing() -> None:
    chosen = np.arange(1, 11)
    rows, tick, frames = applied(chosen.tolist(), 4, 0, 0)
    rows[9:17] = np.nan
    found, told = applied_actions(LOOKUP, rows, tick, frames, 0, chosen)
    assert np.array_equal(found, chosen) and np.flatnonzero(~told).tolist() == [2, 3]
