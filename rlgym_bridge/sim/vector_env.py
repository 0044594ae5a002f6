"""Step many matches together for training: the components of live play around a `Simulator`.

Calls, their order and what they see are `RLGym.step`'s and `RLGym.reset`'s, for all matches at once.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
from rlgym.api import StateMutator

from rlgym_bridge.components.batch_form import name_twin
from rlgym_bridge.components.spec import Components
from rlgym_bridge.game import HITBOX_NAMES, MOST_TEAM_SIZE, TICKS_PER_SECOND
from rlgym_bridge.physics import Spread
from rlgym_bridge.sim.batch_parts import BatchParts, is_batch, third_party_parts
from rlgym_bridge.sim.match_parts import MatchParts
from rlgym_bridge.sim.native_parts import provide_native_forms
from rlgym_bridge.sim.play_statistics import PlayStatistics
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, DeadMatches, PartTimes, make_simulator
from rlgym_bridge.sim.state_noise import StateNoise
from rlgym_bridge.sim.touches import TouchCounter
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.arguments import check_number, check_whole, show_value

_LOG = logging.getLogger(__name__)

MOST_DEAD: Final = 3  # matches that die inside the simulator before play stops

_COUNTED: Final = ("episodes", "goals", "touches", "car_minutes", "game_minutes", "dead_matches")


class Step(NamedTuple):
    """The results of a step."""

    # `(matches, cars, size)` float32, what the next actions are chosen on: of a new episode where one has
    # ended
    obs: np.ndarray
    rewards: np.ndarray  # `(matches, cars)` float32
    terminated: np.ndarray  # `(matches,)` bool, by the termination condition
    # `(matches,)` bool, by the truncation condition alone; or the match died, see `step`
    truncated: np.ndarray
    # `(ended, cars, size)` float32, the last observations of the matches that ended, in order
    final_obs: np.ndarray


class VectorEnv:
    """N matches that begin their next episode by themselves.

    Components of ours work on all matches at once. Every match has its own instances of the others, which
    are given RLGym's `GameState`: this makes a step several times slower, and the log names them.

    Args:
        matches: N, 1 or more.
        components: Makes builder, parser, reward, conditions and mutator; called once, or once a match.
            The mutator is needed; without conditions an episode never ends, without a reward it is 0.
        team_sizes: Cars of blue and orange.
        tick_skip: Ticks that a parser's single row is held, `(8,)` or `(1, 8)`. None: `(8,)` is held for 8
            ticks, and `(1, 8)` lasts one tick, as in RLGym. Several rows last as many ticks.
        action_delay: Ticks from the state that an action was decided on to the first tick it drives; or
            (least, most), from which each episode's is drawn.
        delay_noise: Standard deviation, in ticks, of single decisions' delays around their episode's; a delay
            is 0 at least.
        own_delays: `(matches, cars)` int, ticks of cars whose actions have a delay of their own, without
            noise; -1 for all others.
        hitbox: Of all cars, a number of `game.HITBOXES`; or several, of which each car's is drawn for each
            episode, every entry as likely as any other.
        constants: Of the physics by name, as multiples of the simulator's own, see `physics.parse_physics`;
            drawn evenly from their ranges for each episode. Those not named are the simulator's.
        obs_noise: Standard deviations of the noise of observations, by the names of
            `state_noise.NOISY_FIELDS`. Rewards and conditions see the state as it is; so does `state`.
        thrust: Whether boost in the air pushes in rocketsim2 as in the game; see `RocketSim2`.
        simulator: What steps the matches: `"rocketsim2"` or `"rocketsim3"`.
        seed: Of kickoffs, respawns and drawn delays.

    Attributes:
        state: All matches as they are; of a new episode where one has ended.
        scored: `(matches,)` int8, who scored in the latest step: 1 blue, -1 orange, 0 nobody.
        cars: Cars in a match.
        agents: Their names.
        parser: The action parser (of the first match).
        times: Counts how long `physics`, `reading`, `observing` (components too) and `episodes` (new ones)
            take; None, as at first, counts nothing.
        statistics: Adds up what cars do and what each reward gives them; None, as at first, adds up nothing.

    Raises:
        ValueError: A number is out of range, `components` is no function, or the mutator is missing.
            `reset` raises it where an observation is not finite.
        SimulatorError: The simulator is unknown or not installed.
    """

    def __init__(
        self,
        matches: int,
        components: Callable[[], Components],
        team_sizes: tuple[int, int] = (1, 1),
        *,
        tick_skip: int | None = None,
        action_delay: int | tuple[int, int] = 1,
        delay_noise: float = 0.0,
        own_delays: np.ndarray | None = None,
        hitbox: int | Sequence[int] = 0,
        constants: Mapping[str, Spread] | None = None,
        obs_noise: Mapping[str, float] | None = None,
        thrust: bool = True,
        simulator: str = DEFAULT_SIMULATOR,
        seed: int = 0,
    ) -> None:
        sizes, delays, hitboxes = check_settings(
            matches, team_sizes, tick_skip, action_delay, delay_noise, own_delays, hitbox, constants, seed
        )
        if not callable(components):
            raise ValueError(
                f"components is a {type(components).__name__}, expected a function that returns a new "
                "Components at each call, such as lambda: Components(...)"
            )
        provide_native_forms()
        first = components()
        if not isinstance(first, Components):
            raise ValueError(
                f"components gave a {type(first).__name__}, expected rlgym_bridge.components.spec.Components"
            )
        self._parts = _parts_of(components, first, matches, sizes, tick_skip, hitboxes)
        self._noise = StateNoise(obs_noise or {})
        if self._noise and (third_party := third_party_parts(first)):
            names = ", ".join(type(part).__name__ for part in third_party)
            raise ValueError(
                f"obs_noise is {obs_noise}, expected none where components have no batch form: {names}"
            )
        self._simulator = make_simulator(simulator, matches, *sizes, thrust=thrust)
        self.state, self.cars, self.parser = self._simulator.state, sum(sizes), first.parser
        self.agents = self.state.agents
        self._before = self.state.copy()
        self._delay_range, self._delay_noise = delays, delay_noise
        self._constants = dict(constants or {})
        self._own_delays = np.full((matches, self.cars), -1) if own_delays is None else own_delays
        self._delays = np.where(self._own_delays < 0, delays[0], self._own_delays)  # without noise
        self._touches = TouchCounter(matches, self.cars)
        self.scored = np.zeros(matches, np.int8)
        self._counts: dict[str, float] = {}
        self._seed = seed
        self.times: PartTimes | None = None
        self._unread = PartTimes()
        self.statistics: PlayStatistics | None = None
        self._died = 0

    def reset(self, seed: int | None = None) -> np.ndarray:
        """Begin new episodes in all matches; return observations `(matches, cars, size)` float32.

        Everything restarts from `seed`; None goes on with the streams there are, at first the constructor's.
        """
        if seed is not None:
            check_whole("seed", seed)
        if seed is not None or not self._counts:
            seed = self._seed if seed is None else seed
            self._random = np.random.default_rng((seed, 0))
            self._noise_random = np.random.default_rng((seed, 2))
            self._simulator.seed(seed)
            self._parts.forget()
        self._counts = dict.fromkeys(_COUNTED, 0.0)
        if self.statistics is not None:
            self.statistics.begin()
        return self._begin(np.arange(self.state.matches))

    def step(self, actions: np.ndarray) -> Step:
        """Play one decision in every match.

        A match that dies inside the simulator is truncated where it stood, with rewards of 0, and begins
        anew; the log names it.

        Args:
            actions: As the parser's `parse_batch` takes them, `(matches, cars)` or `(matches, cars, k)`.

        Returns:
            Observations, rewards and ends of all matches; where a match ended, the observations are those of
            its new episode and the last ones are in `final_obs`.

        Raises:
            ValueError: An action is not in the action space, rows are no controls, or a reward or an
                observation is not finite: with what gave it.
            DeadMatches: The third match has died.
        """
        times = self.times or self._unread
        times.begin()
        rows = self._parts.rows(actions, self.state)
        self._before.buffer[:] = self.state.buffer
        times.end("observing")
        dead = self._advance(rows)
        self._count(rows.shape[2])
        obs, terminated, truncated, rewards = self._parts.judge(self._before, self.state, self._seen())
        if dead:
            terminated, truncated, rewards = terminated.copy(), truncated.copy(), rewards.copy()
            terminated[dead], truncated[dead], rewards[dead] = False, True, 0.0
        truncated = truncated & ~terminated
        if (statistics := self.statistics) is not None:
            statistics.count_rewards(self._parts.split_rewards(rewards), self._parts.name_rewards)
            statistics.count_ends(terminated, truncated)
            if statistics.looks_closer:
                statistics.count_metrics(self._parts.metrics(self.state))
        ended = np.flatnonzero(terminated | truncated)
        final_obs = obs[ended]
        self._counts["episodes"] += len(ended)
        times.end("observing")
        if len(ended):
            obs[ended] = self._begin(ended)
        times.end("episodes")
        return Step(obs, rewards, terminated, truncated, final_obs)

    def masks(self) -> np.ndarray | None:
        """Return which actions each car may choose next, `(matches, cars, actions)` bool; None for all."""
        return self._parts.masks(self.state)

    def take_counts(self) -> dict[str, float]:
        """Return counts of what happened since the last call, or the last reset.

        They are `episodes` that ended, `goals`, `touches` (as `TouchCounter` tells them), `car_minutes` and
        `game_minutes` of game time, and `dead_matches`, those that died inside the simulator.
        """
        counts, self._counts = self._counts, dict.fromkeys(self._counts, 0.0)
        return counts

    def _advance(self, rows: np.ndarray) -> list[int]:
        """Step the simulator, and return the numbers of matches that died in it."""
        try:
            self._simulator.step(rows, self._delays_of_cars(), self.times)
        except DeadMatches as error:
            self._died += len(error.numbers)
            self._counts["dead_matches"] += len(error.numbers)
            if self._died >= MOST_DEAD:
                raise DeadMatches(
                    f"{error}. {self._died} of {self.state.matches} matches have died so far, expected fewer "
                    f"than {MOST_DEAD}: report this message with the settings and the seed {self._seed}",
                    error.numbers,
                ) from error
            _LOG.warning("%s. They begin anew, and the others go on; the third death stops play", error)
            self.state.car_ball_touches[error.numbers] = 0  # those of the step before
            return error.numbers
        return []

    def _begin(self, matches: np.ndarray) -> np.ndarray:
        desired = self._parts.new_states(matches, self._random)
        numbers = matches.tolist()
        if self._constants:
            lows, highs = (
                [getattr(spread, end) for spread in self._constants.values()] for end in ("low", "high")
            )
            for match, drawn in zip(
                numbers, self._random.uniform(lows, highs, (len(numbers), len(lows))).tolist(), strict=True
            ):
                self._simulator.set_mutators(match, dict(zip(self._constants, drawn, strict=True)))
        self._simulator.put(numbers, desired)
        low, high = self._delay_range
        if low != high:
            drawn, own = self._random.integers(low, high + 1, len(numbers)), self._own_delays[matches]
            self._delays[matches] = np.where(own < 0, drawn[:, None], own)
        self._touches.forget(matches)
        return self._parts.begin(self.state, matches, self._seen())

    def _seen(self) -> MatchState:
        return self._noise.seen(self.state, self._noise_random) if self._noise else self.state

    def _delays_of_cars(self) -> np.ndarray:
        if not self._delay_noise:
            return self._delays
        noise = self._random.normal(0.0, self._delay_noise, (len(self._delays), 1))
        delays = np.round(self._delays + noise).clip(0).astype(int)
        return np.where(self._own_delays < 0, delays, self._own_delays)

    def _count(self, ticks: int) -> None:
        minutes = ticks * self.state.matches / (60 * TICKS_PER_SECOND)
        new = self.state.goal_scored > self._before.goal_scored
        self.scored = np.zeros(len(new), np.int8)
        if new.any():
            self.scored[new] = np.where(self.state.ball_position[new, 1] > 0, 1, -1)
        contacts, counts = self.state.car_ball_touches > 0, self._counts
        touches = self._touches.new(contacts, ticks)
        if self.statistics is not None:
            self.statistics.count(self._before, self.state, contacts, touches, self.scored, ticks)
        counts["touches"] += np.count_nonzero(touches)
        counts["goals"] += np.count_nonzero(new)
        counts["game_minutes"] += minutes
        counts["car_minutes"] += self.cars * minutes


def _parts_of(
    components: Callable[[], Components], first: Components, matches: int, sizes: tuple[int, int],
    tick_skip: int | None, hitboxes: Sequence[int],
) -> BatchParts | MatchParts:  # fmt: skip
    """Return one set of components for all matches, or one for each where a component has no batch form."""
    for name in ("obs_builder", "state_mutator"):
        if getattr(first, name) is None:
            raise ValueError(f"components have no {name}, expected one")
    third_party = third_party_parts(first)
    if third_party:
        warn_match_by_match(map(type, third_party))
    elif is_batch(first):
        return BatchParts(first, sizes, tick_skip, hitboxes)
    return MatchParts([first, *(components() for _ in range(matches - 1))], sizes, tick_skip, hitboxes)


def warn_match_by_match(third_party: Iterable[type]) -> None:
    """Log which components make steps slower, because they have no batch form, and what is fast instead.

    Mutators among them are left out: they run once an episode.
    """
    slow = []
    for kind in dict.fromkeys(third_party):
        if not issubclass(kind, StateMutator):
            name = f"{kind.__name__} of {kind.__module__.partition('.')[0]}"
            twin = name_twin(kind)
            slow.append(name if twin is None else f"{name} (in batches: {twin})")
    if slow:
        _LOG.warning(
            "%s: no batch form, so called match by match on RLGym's GameState, which makes a step several "
            "times slower; see docs/train/rewards.md",
            ", ".join(slow),
        )


@contextmanager
def without_warnings() -> Iterator[None]:
    """Make a `VectorEnv` without warnings, where another process of the run has given them."""
    level = _LOG.level
    _LOG.setLevel(logging.ERROR)
    try:
        yield
    finally:
        _LOG.setLevel(level)


_MOST_DELAY_NOISE: Final = 1e9  # ticks; keeps out infinity


def check_settings(
    matches: int, team_sizes: tuple[int, int], tick_skip: int | None, action_delay: int | tuple[int, int],
    delay_noise: float, own_delays: np.ndarray | None, hitbox: int | Sequence[int],
    constants: Mapping[str, Spread] | None, seed: int,
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, ...]]:  # fmt: skip
    """Return sizes, delays and hitboxes; raises ValueError for a setting of `VectorEnv` out of range."""
    ticks = 1 if tick_skip is None else tick_skip
    for name, number, least in (("matches", matches, 1), ("tick_skip", ticks, 1), ("seed", seed, 0)):
        check_whole(name, number, least)
    if not _is_pair(team_sizes) or not 1 <= max(team_sizes) <= MOST_TEAM_SIZE:
        raise ValueError(
            f"team_sizes is {show_value(team_sizes)}, expected (blue, orange), 0 to 4 cars each and one "
            "at least"
        )
    delays: Any = (action_delay, action_delay) if _is_whole(action_delay) else action_delay
    if not _is_pair(delays) or delays[0] > delays[1]:
        raise ValueError(
            f"action_delay is {show_value(action_delay)}, expected ticks, 0 or more; or a pair of them, "
            "(least, most)"
        )
    boxes: Any = tuple(hitbox) if isinstance(hitbox, list | tuple) else (hitbox,)
    if not boxes or not all(_is_whole(box) and box < len(HITBOX_NAMES) for box in boxes):
        numbers = ", ".join(f"{number} {name}" for number, name in enumerate(HITBOX_NAMES))
        raise ValueError(
            f"hitbox is {show_value(hitbox)}, expected the number of one, or a list of them: {numbers}"
        )
    spreads = list(constants.values()) if isinstance(constants, Mapping) else [constants]
    if constants is not None and not all(isinstance(spread, Spread) for spread in spreads):
        raise ValueError(
            f"constants is {show_value(constants)}, expected rlgym_bridge.physics.Spread by name, as "
            "parse_physics "
            "makes them"
        )
    expected = (matches, sum(team_sizes))
    if own_delays is not None and (
        not isinstance(own_delays, np.ndarray)
        or own_delays.shape != expected
        or own_delays.dtype.kind not in "iu"
        or own_delays.min() < -1
    ):
        raise ValueError(
            f"own_delays is {show_value(own_delays)}, expected an array {expected} of whole ticks, 0 or "
            "more, or -1"
        )
    check_number("delay_noise", delay_noise, most=_MOST_DELAY_NOISE, unit="ticks")
    return (team_sizes[0], team_sizes[1]), (delays[0], delays[1]), boxes  # a file gives lists


def _is_whole(value: object, least: int = 0) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def _is_pair(value: object) -> bool:
    return isinstance(value, Sequence) and len(value) == 2 and all(map(_is_whole, value))
