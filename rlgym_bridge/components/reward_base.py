"""The base of our rewards, RLGym `RewardFunction`s that also work on N matches; and the sum of several."""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any, Final

import numpy as np
from rlgym.api import RewardFunction

from rlgym_bridge.components import batch_form
from rlgym_bridge.components.rlgym_state import car_of, cars_by_agent, from_rlgym
from rlgym_bridge.components.rlgym_types import Agents, CombinedReward, Flags, Game, SharedInfo
from rlgym_bridge.components.user_errors import check_arguments, locate_function, locate_method
from rlgym_bridge.state import Layout, MatchState
from rlgym_bridge.user_input.arguments import check_list, check_number, show_value

Between = tuple[MatchState, MatchState]
_MOST_WEIGHT: Final = 1e30  # float32 ends at 3e38


class BatchReward(RewardFunction[Any, Game, float]):
    """A reward with one formula, `reward_batch`, that compares two states and has no memory.

    RLGym's form converts its game state and keeps the one before.

    Attributes:
        name: By which the curves of a training show it; "" for that of its class, `air_touch` for
            `AirTouchReward`.
    """

    name: str = ""

    _before: MatchState | None = None

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return the reward of every car for one step of every match.

        Args:
            before: N matches at the last decision, or as they were reset. Derived fields are filled.
            after: The same matches now; touches are those since `before`.
            terminated: `(N,)` bool, the episode was terminated on this step.
            truncated: `(N,)` bool, the episode was truncated on this step.

        Returns:
            `(N, cars)` float32, a new array.
        """
        raise NotImplementedError

    def reset(self, agents: Agents, initial_state: Game, shared_info: SharedInfo) -> None:
        """Take the state that the first step starts from."""
        self._before = from_rlgym(initial_state)

    def get_rewards(
        self, agents: Agents, state: Game, is_terminated: Flags, is_truncated: Flags, shared_info: SharedInfo
    ) -> dict[Hashable, float]:
        """Return the agents' rewards for the step that led to `state`; one True flag counts for the match.

        Raises RuntimeError if `reset` was not called; ValueError if an agent has no car, or there are other
        cars than at the last call.
        """
        after = from_rlgym(state)
        before = self._take_before(after)
        ended, cut = (np.array([any(flags.values())]) for flags in (is_terminated, is_truncated))
        rewards = self.reward_batch(before, after, ended, cut)[0]
        cars = cars_by_agent(state)
        return {agent: float(rewards[car_of(cars, agent)]) for agent in agents}

    def _take_before(self, after: MatchState) -> MatchState:
        """Return the state of the last call and keep this one for the next."""
        before, name = self._before, type(self).__name__
        if before is None:
            raise RuntimeError(f"{name}.get_rewards needs the state before: call reset first")
        if before.layout is not after.layout:
            raise ValueError(
                f"{name} was given {after.agents} after {before.agents}, expected the same cars until reset"
            )
        self._before = after
        return before


class FormulaReward(BatchReward):
    """A reward of this project: `_formula` of two states gives `(N, cars)`, or its compiled form does."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "_formula" in vars(cls):
            cls._formula = batch_form.with_native_form(cls._formula)  # type: ignore[method-assign]

    def _formula(self, before: MatchState, after: MatchState) -> Any:
        raise NotImplementedError

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return the reward of every car, `(N, cars)` float32, whether the episode ended or not."""
        return np.asarray(self._formula(before, after))


class FunctionReward(BatchReward):
    """A reward that is a plain function of two states, which returns `(N, cars)` numbers."""

    def __init__(self, function: Callable[[MatchState, MatchState], np.ndarray]) -> None:
        super().__init__()
        check_arguments(function, f"the reward {function.__name__}", "before, after")
        self.function, self.name = function, function.__name__

    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return what the function gives, `(N, cars)` float32; raises ValueError for any other shape."""
        return checked_shape(self, self.function(before, after), after).astype(np.float32)


class WeightedSum(BatchReward):
    """The weighted sum of rewards, which teams may share, and which may be zero-sum between teams.

    Team spirit s comes first: own * (1 - s) + s * mean of the team. Then, with `zero_sum`, the mean of the
    other team is taken off (nothing where it has no cars), so that between teams of equal size all rewards
    of a match add up to 0.

    Args:
        rewards: Pairs of a reward and its weight. A reward may be a function that takes the matches before
            the step and after it, and returns `(N, cars)`. Other RLGym rewards may be among them; then only
            the dict form works. It asks them about all cars where teams share, not just about the agents in
            question.
        team_spirit: s, 0 for each on its own to 1 for all equal.
        zero_sum: Whether what one team gets is taken from the other.

    Attributes:
        parts: The rewards.
        weights: Their weights.
        foreign: The first part without a batch form; None where all have one.
        last: Of each part `(N, cars)` float32 in the latest call, so that a bad number finds its name.

    Raises TypeError if something is no pair of an RLGym reward, or a function, and a weight; or the function
    does not take two states; ValueError if there is no reward, a weight is not finite or above 1e30, or
    `team_spirit` is not within 0..1.
    """

    def __init__(
        self,
        rewards: Sequence[tuple[RewardFunction[Any, Any, Any] | Callable[..., np.ndarray], float]],
        team_spirit: float = 0.0,
        zero_sum: bool = False,
    ) -> None:
        super().__init__()
        check_list("rewards", rewards, "pairs of an RLGym reward and its weight")
        for pair in rewards:
            kinds = RewardFunction | FunctionType | MethodType
            if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], kinds)):
                raise TypeError(
                    f"rewards hold {show_value(pair)}, expected pairs of an RLGym reward, or a function of "
                    "(before, after), and its weight"
                )
            if not math.isfinite(pair[1]) or abs(pair[1]) > _MOST_WEIGHT:
                kind = getattr(pair[0], "__name__", type(pair[0]).__name__)
                raise ValueError(f"the weight of {kind} is {pair[1]}, expected a finite one, 1e30 at most")
        if not rewards:
            raise ValueError("there are no rewards to add up, expected one or more")
        check_number("team_spirit", team_spirit, most=1.0, unit="(0: each on its own, 1: all equal)")
        self.parts: tuple[Any, ...] = tuple(
            reward if isinstance(reward, RewardFunction) else FunctionReward(reward) for reward, _ in rewards
        )
        self.weights = tuple(float(weight) for _, weight in rewards)
        self.team_spirit, self.zero_sum = team_spirit, zero_sum
        self.foreign = batch_form.third_party_part(self)
        self.last: Sequence[np.ndarray] = ()

    @batch_form.with_native_form
    def reward_batch(
        self, before: MatchState, after: MatchState, terminated: np.ndarray, truncated: np.ndarray
    ) -> np.ndarray:
        """Return each car's sum, `(N, cars)` float32; raises TypeError if a part has no batch form."""
        batch_form.refuse_third_party(self, self.foreign, "reward_batch", "get_rewards")
        columns = [
            checked_shape(part, part.reward_batch(before, after, terminated, truncated), after)
            for part in self.parts
        ]
        return self.join_columns(columns, after.layout)

    def reset(self, agents: Agents, initial_state: Game, shared_info: SharedInfo) -> None:
        """Take the state that the first step starts from, and reset third-party parts."""
        super().reset(agents, initial_state, shared_info)
        for part in self.parts:
            if batch_form.third_party_part(part) is not None:
                part.reset(self._asked(agents, initial_state), initial_state, shared_info)

    def get_rewards(
        self, agents: Agents, state: Game, is_terminated: Flags, is_truncated: Flags, shared_info: SharedInfo
    ) -> dict[Hashable, float]:
        """Return the agents' sums; arguments and errors as for any `BatchReward`."""
        if self.foreign is None:
            return super().get_rewards(agents, state, is_terminated, is_truncated, shared_info)
        after = from_rlgym(state)
        before = self._take_before(after)
        return self.sum_for(agents, (before, after), state, is_terminated, is_truncated, shared_info)

    def sum_for(
        self,
        agents: Agents,
        between: Between,
        state: Game,
        is_terminated: Flags,
        is_truncated: Flags,
        shared_info: SharedInfo,
    ) -> dict[Hashable, float]:
        """Return the agents' sums: this package's parts get `between`, third-party ones RLGym's `state`."""
        (before, after), asked, cars = between, self._asked(agents, state), cars_by_agent(state)
        flags = [any(given.values()) for given in (is_terminated, is_truncated)]
        ended, cut = (
            dict.fromkeys(asked, flag) | dict(given)
            for flag, given in zip(flags, (is_terminated, is_truncated), strict=True)
        )
        columns: list[np.ndarray] = []
        for part in self.parts:
            if batch_form.third_party_part(part) is None:
                column = part.reward_batch(before, after, *(np.array([flag]) for flag in flags))
            else:
                column = np.zeros((1, len(cars)), np.float32)
                given = ask_reward(part, asked, state, ended, cut, shared_info, between)
                for agent, reward in given.items():
                    column[0, car_of(cars, agent)] = reward
            columns.append(column)
        total = self.join_columns(columns, after.layout)[0]
        return {agent: float(total[car_of(cars, agent)]) for agent in agents}

    def join_columns(self, columns: Sequence[np.ndarray], layout: Layout) -> np.ndarray:
        """Return the sum, `(N, cars)` float32, of rewards `(N, cars)` that the parts have given."""
        self.last = [np.asarray(column, np.float32) for column in columns]
        total = np.zeros_like(self.last[0], np.float32)
        for column, weight in zip(self.last, self.weights, strict=True):
            total += np.float32(weight) * column
        teams = total[:, : layout.blue], total[:, layout.blue :]  # views
        if self.team_spirit:
            for team in teams:
                if team.shape[1]:
                    mean = team.mean(1, keepdims=True)
                    team *= 1.0 - self.team_spirit
                    team += self.team_spirit * mean
        if self.zero_sum and layout.blue and layout.orange:
            blue, orange = (team.mean(1, keepdims=True) for team in teams)
            total[:, : layout.blue] -= orange
            total[:, layout.blue :] -= blue
        return total

    def _asked(self, agents: Agents, state: Game) -> list[Hashable]:
        return list(state.cars) if self.team_spirit or self.zero_sum else list(agents)


def split_rewards(reward: RewardFunction[Any, Any, Any], rewards: np.ndarray) -> list[np.ndarray]:
    """Return what each part of a reward gave in its last call, `(N, cars)` each, before its weight.

    Sums within sums are opened; a reward without parts is its own part. The order is that of `name_parts`.
    """
    if not isinstance(reward, WeightedSum) or len(reward.last) != len(reward.parts):
        return [rewards]
    pairs = zip(reward.parts, reward.last, strict=True)
    return [numbers for part, given in pairs for numbers in split_rewards(part, given)]


def name_parts(reward: RewardFunction[Any, Any, Any]) -> list[tuple[str, float]]:
    """Return names and weights of the parts that `split_rewards` finds; names may be there twice."""
    if not isinstance(reward, WeightedSum) or len(reward.last) != len(reward.parts):
        return [(name_reward(reward), 1.0)]
    return weigh_parts(reward.weights, map(name_parts, reward.parts))


def weigh_parts(
    weights: Sequence[float], parts: Iterable[Sequence[tuple[str, float]]]
) -> list[tuple[str, float]]:
    """Return names and weights of all parts of a sum, from its weights and what its parts are made of."""
    pairs = zip(weights, parts, strict=True)
    return [(name, weight * inner) for weight, own in pairs for name, inner in own]


def name_reward(reward: RewardFunction[Any, Any, Any]) -> str:
    """Return the name by which curves show a reward: its own, or that of its class in small letters."""
    own, kind = getattr(reward, "name", ""), type(reward).__name__
    if isinstance(own, str) and own:
        return own
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.removesuffix("Reward") or kind).lower()


def reward_between(
    reward: Any, agents: Agents, between: Between, is_terminated: Flags, is_truncated: Flags
) -> dict[Hashable, float]:
    """Return the agents' rewards by a reward that works in batches, between two states of one match."""
    flags = (np.array([any(given.values())]) for given in (is_terminated, is_truncated))
    rewards = reward.reward_batch(*between, *flags)[0]
    cars: dict[Hashable, int] = {agent: car for car, agent in enumerate(between[1].agents)}
    return {agent: float(rewards[car_of(cars, agent)]) for agent in agents}


def ask_reward(
    reward: RewardFunction[Any, Any, Any],
    agents: Agents,
    state: Game,
    is_terminated: Flags,
    is_truncated: Flags,
    shared_info: SharedInfo,
    between: Between | None = None,
) -> Mapping[Hashable, Any]:
    """Return what any reward gives the agents for a step, in RLGym's form.

    The parts of RLGym's `CombinedReward` are asked one by one, and added up as it does, so that an error has
    the name of the part. Where `between`, the match at the last decision and now, is at hand, rewards of ours
    are given these, without the way over RLGym's form. Raises ValueError if a reward gives something else
    than a number for each agent; the message names it.
    """
    arguments = (state, is_terminated, is_truncated, shared_info)
    if between is not None and batch_form.works_in_batches(reward):
        return reward_between(reward, agents, between, is_terminated, is_truncated)
    if between is not None and isinstance(reward, WeightedSum) and batch_form.open_parts(reward):
        return reward.sum_for(agents, between, *arguments)
    if type(reward) is CombinedReward:
        total = dict.fromkeys(agents, 0.0)
        for part, weight in zip(reward.reward_fns, reward.weights, strict=True):
            for agent, one in ask_reward(part, agents, *arguments, between).items():
                total[agent] += one * weight
        return total
    given: Any = reward.get_rewards(list(agents), *arguments)
    name = f"reward {type(reward).__name__}"
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{name} gave {batch_form.describe_array(given)}, expected a dict with a number for each agent"
            f"{locate_method(reward, 'get_rewards')}"
        )
    for agent, one in given.items():
        if type(one) is not float and not (np.ndim(one) == 0 and batch_form.is_number_array(np.asarray(one))):
            raise ValueError(
                f"{name} gave {batch_form.describe_array(one)} for {agent}, expected a number"
                f"{locate_method(reward, 'get_rewards')}"
            )
    return given


def checked_shape(reward: RewardFunction[Any, Any, Any], given: Any, state: MatchState) -> np.ndarray:
    """Return what `reward_batch` gave; raises ValueError unless it is an array `(N, cars)` of numbers."""
    expected = (state.matches, state.layout.cars)
    if not batch_form.is_number_array(given) or given.shape != expected:
        raise ValueError(
            f"reward {_title(reward)} gave {batch_form.describe_array(given)}, expected an array {expected} "
            f"of numbers: matches and cars{_locate(reward)}"
        )
    return given


def name_of_bad(
    reward: RewardFunction[Any, Any, Any], rewards: np.ndarray, agents: Agents, first_match: int = 0
) -> str | None:
    """Name the reward, car and match of a number that is not finite; None where all are finite.

    Costs one look over `rewards` `(N, cars)` while all is well. A `WeightedSum` keeps the numbers of its
    parts until its next call, so that nothing is computed again.
    """
    if np.isfinite(np.vdot(rewards, rewards)):  # a sum of squares: one call while all is well
        return None
    finite = np.isfinite(rewards)
    if finite.all():
        return None
    who, guilty = f"reward {_title(reward)}", reward
    if isinstance(reward, WeightedSum):
        for part, weight, numbers in zip(reward.parts, reward.weights, reward.last, strict=True):
            if not np.isfinite(numbers).all():
                if isinstance(part, WeightedSum):
                    return name_of_bad(part, numbers, agents, first_match)
                who, guilty = f"reward {_title(part)} (weight {weight:g})", part
                rewards, finite = numbers, np.isfinite(numbers)
                break
    match, car = (int(i) for i in np.argwhere(~finite)[0])
    where = _locate(guilty)
    return f"{who} gave {rewards[match, car]} for {agents[car]} in match {first_match + match}{where}"


def _title(reward: RewardFunction[Any, Any, Any]) -> str:
    """Return what a message calls a reward: its class, or its function."""
    return reward.name if isinstance(reward, FunctionReward) else type(reward).__name__


def _locate(reward: RewardFunction[Any, Any, Any]) -> str:
    """Return where a user's reward is defined, as ` (my_parts.py, line 23)`; "" for one of this project."""
    if isinstance(reward, FunctionReward):
        return locate_function(reward.function)
    return locate_method(reward, "reward_batch") or locate_method(reward, "get_rewards")
