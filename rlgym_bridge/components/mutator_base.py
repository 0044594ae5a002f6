"""The base of our mutators, RLGym `StateMutator`s that also work on N matches; and a draw among several."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rlgym.api import StateMutator

from rlgym_bridge.components import rlgym_state
from rlgym_bridge.components.batch_form import refuse_third_party, third_party_part
from rlgym_bridge.components.rlgym_types import Game, MutatorSequence, SharedInfo
from rlgym_bridge.components.user_errors import describe_error, is_of_user, is_ours, locate_method
from rlgym_bridge.game import BALL_REST_Z, BOOST_CONSUMPTION, DODGE_DEADZONE, HITBOXES, ORANGE, Phase
from rlgym_bridge.state import MatchState, derive
from rlgym_bridge.user_input.arguments import check_list, check_seed, show_value


def blank_state(blue: int, orange: int, matches: int, hitbox: int = 0) -> MatchState:
    """Return matches for a mutator to fill: all is set but the places of the cars.

    The ball lies in the centre, all pads are there, the cars are whole, without boost, not turned, and all at
    the origin. The phase is Active. `derive` has not run. Raises ValueError if a team size or the hitbox does
    not exist.
    """
    if not 0 <= hitbox < len(HITBOXES):
        raise ValueError(f"hitbox is {hitbox}, expected a number 0..{len(HITBOXES) - 1} (game.HITBOXES)")
    state = MatchState(blue, orange, matches)
    state.phase[:] = Phase.ACTIVE
    state.gravity[:] = 1
    state.boost_consumption[:] = BOOST_CONSUMPTION
    state.dodge_deadzone[:] = DODGE_DEADZONE
    rest_ball(state)
    state.car_player_id[:] = np.arange(state.layout.cars)
    state.car_team[:, blue:] = ORANGE
    state.car_hitbox[:] = hitbox
    state.car_rotation[:] = np.eye(3)
    state.car_bump_victim[:] = -1
    state.car_known[:] = 1
    return state


def rest_ball(state: MatchState) -> None:
    """Put the ball of every match at rest in the centre, as at a kickoff."""
    state.ball_known[:] = 1
    state.ball_position[:] = (0, 0, BALL_REST_Z)
    state.ball_rotation[:] = np.eye(3)
    state.ball_linear_velocity[:] = state.ball_angular_velocity[:] = 0


class BatchMutator(StateMutator[Game]):
    """A mutator that fills whole batches of matches.

    Args:
        seed: Of the generator that RLGym's form draws from; None for a different one each time.
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__()
        check_seed(seed)
        self._rng = np.random.default_rng(seed)

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        """Fill all matches of `state`, in place; the caller runs `derive` afterwards.

        Args:
            state: Matches as `blank_state` makes them.
            rng: Generator of all that is random.
        """
        raise NotImplementedError

    def apply(self, state: Game, shared_info: SharedInfo) -> None:
        """Fill a game state that has its cars; its `ball` and the objects in `cars` are replaced."""
        match = rlgym_state.from_rlgym(state)
        # RLGym's base state has a ball without a place, and new cars have none either.
        blank = blank_state(match.layout.blue, match.layout.orange, 1).buffer
        np.copyto(match.buffer, blank, where=np.isnan(match.buffer))
        self.apply_batch(match, self._rng)
        derive(match)
        made = rlgym_state.to_rlgym(match, agents=list(rlgym_state.cars_by_agent(state)))
        state.goal_scored, state.ball = made.goal_scored, made.ball
        state.boost_pad_timers = made.boost_pad_timers
        for agent in state.cars:  # in their own order, which is the engine's
            state.cars[agent] = made.cars[agent]


class WeightedMutator(BatchMutator):
    """A mutator that draws one of several by weight, for each match.

    Args:
        mutators: Pairs of a mutator and its weight; weights are shares of their sum. Other RLGym mutators may
            be among them; then only RLGym's form works.
        seed: Of the generator that RLGym's form draws from.

    Attributes:
        parts: The mutators.
        shares: Their shares, which add up to 1.

    Raises TypeError if something is no pair of an RLGym mutator and a weight; ValueError if there is none, a
    weight is negative or not finite, or all are 0.
    """

    def __init__(self, mutators: Sequence[tuple[StateMutator[Any], float]], seed: int | None = None) -> None:
        super().__init__(seed)
        check_list("mutators", mutators, "pairs of an RLGym mutator and its weight")
        for pair in mutators:
            if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], StateMutator)):
                raise TypeError(
                    f"mutators hold {show_value(pair)}, expected pairs of an RLGym mutator and its weight"
                )
        weights = np.array([weight for _, weight in mutators], np.float64)
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise ValueError(
                f"weights of mutators are {weights.tolist()}, expected numbers of 0 or more, one above 0"
            )
        self.parts: tuple[Any, ...] = tuple(mutator for mutator, _ in mutators)
        self.shares = weights / weights.sum()
        self._third_party = third_party_part(self)

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        """Fill all matches of `state`; raises TypeError where a part has no batch form."""
        refuse_third_party(self, self._third_party, "apply_batch", "apply")
        drawn = rng.choice(len(self.parts), state.matches, p=self.shares)
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(drawn == number)
            if len(rows):
                chosen = state.select(rows)
                part.apply_batch(chosen, rng)
                state.buffer[rows] = chosen.buffer

    def apply(self, state: Game, shared_info: SharedInfo) -> None:
        """Fill a game state by one of the mutators; one of others by its own generator."""
        if self._third_party is None:
            super().apply(state, shared_info)
        else:
            self.parts[self._rng.choice(len(self.parts), p=self.shares)].apply(state, shared_info)


def apply_mutator(mutator: StateMutator[Any], game: Game, shared_info: SharedInfo) -> None:
    """Apply a mutator of RLGym's form, and name the part of a `MutatorSequence` that spoils a match.

    Raises ValueError if a value is none that a match can have, or a mutator of an installed package failed.
    """
    for part in _sequence_of(mutator):
        try:
            part.apply(game, shared_info)
        except Exception as error:
            if is_of_user(error) or is_ours(error):
                raise
            raise ValueError(f"{type(part).__name__} failed: {describe_error(error)}") from error
        for odd in rlgym_state.odd_structure(game):  # before the next part fails on it
            raise ValueError(f"{odd}; {type(part).__name__} set it{locate_method(part, 'apply')}")
    for odd in rlgym_state.odd_values(game):
        raise ValueError(f"{odd}; {_blame(mutator, odd, shared_info)}")


def _sequence_of(mutator: Any) -> tuple[Any, ...]:
    """Return the mutators of a sequence, and of sequences in it; else the mutator alone."""
    if type(mutator) is not MutatorSequence:
        return (mutator,)
    return tuple(one for part in mutator.mutators for one in _sequence_of(part))


def _blame(mutator: Any, odd: str, shared_info: SharedInfo) -> str:
    """Name the mutator, of a sequence the part, that set an odd value."""
    parts = _sequence_of(mutator)
    game, before, guilty = rlgym_state.base_state(), True, mutator
    for number, part in enumerate((None, *parts)):
        if part is not None:
            part.apply(game, shared_info)
        now = odd.partition(" is ")[0] in {text.partition(" is ")[0] for text in rlgym_state.odd_values(game)}
        if now and not before:
            guilty = parts[number - 1]
        before = now
    names = [type(part).__name__ for part in parts if part is not guilty]
    if guilty is not mutator or not names:
        return f"{type(guilty).__name__} set it{locate_method(guilty, 'apply')}"
    return f"no part of {type(mutator).__name__} ({', '.join(names)}) set it"
