"""Play whole matches between two policies in RocketSim, many at once, and measure which is better.

A match is a segment of game time; a goal is followed by the next kickoff at once. Policies see and act as in
training. Half of the matches are played from each side; a win is more goals, a draw half a win.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.batch_form import act_within, find_masks, observe, works_in_batches
from rlgym_bridge.components.episode import Episode
from rlgym_bridge.components.mutators import KickoffMutator, blank_state
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.game import HITBOX_NAMES, TICKS_PER_SECOND, Phase
from rlgym_bridge.policy.files import read_files
from rlgym_bridge.policy.load_player import BUILT_IN, load_player
from rlgym_bridge.policy.manifest import MOST_TICKS
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.server.game.rules import LONGEST_SECONDS
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, make_simulator
from rlgym_bridge.sim.touches import TouchCounter
from rlgym_bridge.state import MatchState, derive
from rlgym_bridge.training.elo import CONFIDENCE_Z
from rlgym_bridge.training.processes import open_pool

MATCHES: Final = 200  # matches when nothing is said
_LEAST_SECONDS = 1.0  # shorter ones end before a step
_MOST_MATCHES = 1_000_000
_AT_ONCE = 25  # matches of a job


@dataclass
class MatchTotals:
    """Goals and touches of some matches."""

    goals: np.ndarray  # (matches, 2) int64, of blue and orange
    touches: np.ndarray  # (matches, cars) int64
    minutes: float  # game time of each match
    delays: tuple[int, int]  # ticks after which the actions of blue and of orange acted
    courses: np.ndarray  # (matches,) a number of the last state, which is equal where matches went alike


class BatchSide:
    """One team of all matches, where its components work in batches."""

    def __init__(self, player_spec: PlayerSpec, seats: Sequence[int], seed: int) -> None:
        components = player_spec.components()
        self._obs, self._parser = components.obs_builder, components.parser
        self._policy = player_spec.policy()
        self._seats = list(seats)
        self._policy.reset(self._seats, seed)

    def begin(self, state: MatchState, matches: Sequence[int]) -> None:
        """Begin at a kickoff: a policy with memory forgets these matches."""
        if isinstance(self._policy, NetworkPolicy):
            self._policy.forget(matches)

    def rows(self, state: MatchState) -> np.ndarray:
        """Return control vectors `(matches, seats, ticks, 8)`."""
        obs = None if self._obs is None else observe(self._obs, self._seats, state)
        masks = find_masks(self._parser, state)
        actions = act_within(self._policy, obs, state, None if masks is None else masks[:, self._seats])
        rows: np.ndarray = self._parser.parse_batch(actions)
        if not (np.abs(rows) <= 1).all():
            for one in rows.reshape(-1, *rows.shape[2:]):
                checked_rows(one, 1, type(self._parser).__name__)
        return rows


class EpisodeSide:
    """One team, match by match, as in live play: for components without a batch form."""

    def __init__(self, player_spec: PlayerSpec, seats: Sequence[int], seed: int, matches: int) -> None:
        self._episodes = [Episode(player_spec) for _ in range(matches)]
        self._seats, self._seed = list(seats), seed
        self._fresh = [True] * matches

    def begin(self, state: MatchState, matches: Sequence[int]) -> None:
        """Begin at a kickoff."""
        for match in matches:
            self._seed += 1
            self._episodes[match].reset(_one(state, match), self._seats, self._seed)
            self._fresh[match] = True

    def rows(self, state: MatchState) -> np.ndarray:
        """Return control vectors `(matches, seats, ticks, 8)`."""
        every = []
        for match, episode in enumerate(self._episodes):
            one = _one(state, match)
            if not self._fresh[match]:
                episode.step(one)
            self._fresh[match] = False
            every.append(episode.decide(one))
        return np.array(every, np.float32)


def _one(state: MatchState, match: int) -> MatchState:
    return state.select(np.array([match]))


Side = BatchSide | EpisodeSide


def make_side(player_spec: PlayerSpec, seats: Sequence[int], seed: int, matches: int) -> Side:
    """Return what drives some cars, `seats`, of all matches: in batches where its components can."""
    components = player_spec.components()
    ours = [one for one in (components.obs_builder, components.parser) if one is not None]
    if components.shared_info_provider is None and all(map(works_in_batches, ours)):
        return BatchSide(player_spec, seats, seed)
    return EpisodeSide(player_spec, seats, seed, matches)


def team_size_of(*players: str) -> int:
    """Return the equal team size that the first of some policies was trained for; 1 for those built in."""
    for one in players:
        if one not in BUILT_IN:
            sizes = read_files(Path(one))[0].team_sizes
            equal = [blue for blue, orange in sizes if blue == orange]
            if not equal:
                raise ValueError(f"{one} was trained for {sizes}, expected teams of equal size")
            return equal[0]
    return 1


Player = str | Path | PlayerSpec
"""A policy folder, the name of what is built in, or how a bot plays."""


def play_matches(
    blue: Player,
    orange: Player,
    matches: int,
    *,
    seconds: float = 60.0,
    seed: int = 0,
    team_size: int = 1,
    selection: str | Sequence[str | None] | None = None,
    action_delay: Sequence[int] | None = None,
    hitboxes: Sequence[str | None] = (None, None),
    allow_modules: Sequence[str] = (),
    simulator: str = DEFAULT_SIMULATOR,
) -> MatchTotals:
    """Play some matches at once between two players: folders, `"chaser"`, `"charger"`, `"random"` or specs.

    `seconds` are game time, kickoffs included; the seed is that of kickoffs, respawns and policies. In place
    of the folders' own there may be a selection, of both teams or of each; ticks after which the actions of
    blue and of orange act; and hitboxes, of `game.HITBOX_NAMES`. `allow_modules` are those that folders may
    name. Raises ValueError where something is out of range or missing, or a policy cannot play this match.
    """
    boxes = check_players((blue, orange), team_size, action_delay, hitboxes)
    player_specs = _load_both((blue, orange), allow_modules, selection)
    delays = [one.timing.action_delay for one in player_specs] if action_delay is None else list(action_delay)
    sides = [
        make_side(one, range(number * team_size, (number + 1) * team_size), seed + number, matches)
        for number, one in enumerate(player_specs)
    ]
    arenas = make_simulator(simulator, matches, team_size, team_size, seed=seed)
    random, tick, end = np.random.default_rng((seed, 2)), 0, round(seconds * TICKS_PER_SECOND)
    goals, touches = (np.zeros((matches, count), np.int64) for count in (2, 2 * team_size))
    counter, lates = TouchCounter(*touches.shape), np.tile(np.repeat(delays, team_size), (matches, 1))

    def kick_off(which: np.ndarray, clock: float) -> None:
        began = blank_state(team_size, team_size, len(which))
        began.car_hitbox[:] = np.repeat(boxes, team_size)
        KickoffMutator().apply_batch(began, random)
        derive(began)
        began.phase[:], began.clock[:], began.score[:] = Phase.KICKOFF, clock, goals[which]
        arenas.put(which.tolist(), began)
        for side in sides:
            side.begin(arenas.state, which.tolist())

    kick_off(np.arange(matches), seconds)
    while tick < end:
        rows = np.concatenate([side.rows(arenas.state) for side in sides], 1)
        arenas.step(rows, lates)
        tick += rows.shape[2]
        state = arenas.state
        state.clock[:] = max(0.0, seconds - tick / TICKS_PER_SECOND)
        touches += counter.new(touched := state.car_ball_touches > 0, rows.shape[2])
        state.phase[touched.any(1)] = Phase.ACTIVE
        if len(scored := np.flatnonzero(state.goal_scored)):
            goals[scored, (state.ball_position[scored, 1] < 0).astype(int)] += 1
            kick_off(scored, state.clock[0])
    courses = arenas.state.ball_position.sum(1) + arenas.state.car_position.sum((1, 2))
    return MatchTotals(goals, touches, tick / TICKS_PER_SECOND / 60, (delays[0], delays[1]), courses)


def check_players(
    players: Sequence[Player],
    team_size: int,
    action_delay: Sequence[int] | None,
    hitboxes: Sequence[str | None] = (None, None),
) -> list[int]:
    """Check what needs no code of the players; return their hitboxes, indices of `HITBOX_NAMES`."""
    if action_delay is not None and not all(0 <= delay <= MOST_TICKS for delay in action_delay):
        raise ValueError(f"action_delay is {[*action_delay]}, expected 0 to {MOST_TICKS} ticks")
    own = [_hitbox(player, team_size) for player in players]
    return [
        its if given is None else HITBOX_NAMES.index(given) for its, given in zip(own, hitboxes, strict=True)
    ]


def _hitbox(player: Player, team_size: int) -> int:
    """Return the hitbox that a player was trained with, an index of `HITBOX_NAMES`; 0 if it is no folder."""
    if isinstance(player, PlayerSpec) or str(player) in BUILT_IN:
        return 0
    manifest, _ = read_files(Path(player))
    sizes = manifest.team_sizes
    if (team_size, team_size) not in sizes:
        trained = ", ".join(f"{first}v{second}" for first, second in sizes)
        raise ValueError(f"{player} was trained for {trained}, expected {team_size}v{team_size}")
    return HITBOX_NAMES.index(manifest.hitbox)


def _load_both(
    players: tuple[Player, Player],
    allow_modules: Sequence[str],
    selection: str | Sequence[str | None] | None,
) -> list[PlayerSpec]:
    """Load both players, which decide on the same ticks."""
    selections = [selection] * 2 if selection is None or isinstance(selection, str) else selection
    specs = [
        one if isinstance(one, PlayerSpec) else load_player(one, allow_modules, its)
        for one, its in zip(players, selections, strict=True)
    ]
    blue, orange = (spec.tick_skip for spec in specs)
    if blue != orange:
        raise ValueError(
            f"{players[0]} decides every {blue} ticks, {players[1]} every {orange}, expected the same tick "
            "skip: rlgym-bridge match plays them as they are"
        )
    return specs


def share_interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % bounds of a share, 0..1, that was found in `count` trials [Wilson's interval]."""
    z = CONFIDENCE_Z
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def median_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return the median of `values` `(n,)`, n above 0, and its 95 % bounds: two of them, by their ranks.

    No shape of the distribution is assumed. With fewer than six values, the bounds are the extremes.
    """
    ordered, count = np.sort(values), len(values)
    reach = CONFIDENCE_Z * math.sqrt(count) / 2
    low, high = math.floor(count / 2 - reach), math.ceil(count / 2 + reach)
    middle = ordered[[(count - 1) // 2, count // 2]]
    median = middle[0] if middle[0] == middle[1] else middle.mean()
    return float(median), float(ordered[max(low, 1) - 1]), float(ordered[min(high + 1, count) - 1])


@dataclass(frozen=True)
class Evaluation:
    """Some matches of A against B."""

    goals: np.ndarray  # (matches, 2) int64, of A and B
    touches: np.ndarray  # (matches, 2) int64, of A's cars and B's
    minutes: np.ndarray  # (matches,) of play
    team_size: int = 1  # cars a team
    delays: tuple[int, int] = (1, 1)  # ticks after which the actions of A and of B acted
    different: int = 0  # matches that are no repetition of another one; 0 where they are not counted

    @property
    def matches(self) -> int:
        """Number of matches."""
        return len(self.goals)

    @property
    def leads(self) -> np.ndarray:
        """`(matches,)` goals of A less those of B."""
        leads: np.ndarray = self.goals[:, 0] - self.goals[:, 1]
        return leads

    @property
    def results(self) -> tuple[int, int, int]:
        """Matches that A won, drew and lost."""
        return int((self.leads > 0).sum()), int((self.leads == 0).sum()), int((self.leads < 0).sum())

    @property
    def touches_per_minute(self) -> tuple[float, float]:
        """Of a car of A and of B."""
        a, b = (self.touches.sum(0) / (self.minutes.sum() * self.team_size)).tolist()
        return a, b

    @property
    def win_rate(self) -> float:
        """Wins and half of the draws, of all matches."""
        won, drawn, _ = self.results
        return (won + drawn / 2) / self.matches

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the win rate, 95 % confidence (Wilson's interval; too wide where matches are drawn)."""
        return share_interval(self.win_rate, self.matches)

    def to_json(self) -> dict[str, Any]:
        """Return results, goals and win rate for other programs."""
        won, drawn, lost = self.results
        return {
            "matches": self.matches, "won": won, "drawn": drawn, "lost": lost,
            "goals": self.goals.sum(0).tolist(), "win_rate": self.win_rate, "interval": list(self.interval),
        }  # fmt: skip


def evaluate(
    a: str | PlayerSpec,
    b: str | PlayerSpec,
    matches: int = MATCHES,
    *,
    seconds: float = 60.0,
    seed: int = 0,
    team_size: int | None = None,
    selection: str | Sequence[str | None] | None = None,
    action_delay: Sequence[int] | None = None,
    hitboxes: Sequence[str | None] = (None, None),
    allow_modules: Sequence[str] = (),
    processes: int = 2,
    simulator: str = DEFAULT_SIMULATOR,
) -> Evaluation:
    """Let A and B play, half of the matches from each side; what is not named here is as for `play_matches`.

    `matches` is even. `team_size` None is what A was trained for, and so many `processes` play at once.
    Raises ValueError where the number of matches is odd, below 2 or above 1,000,000; else as `play_matches`.
    """
    check_numbers(matches, seconds, seed=(seed, 0), processes=(processes, 1))
    if team_size is None:
        team_size = team_size_of(*(one for one in (a, b) if isinstance(one, str)))
    check_numbers(matches, seconds, team_size=(team_size, 1))
    check_players((a, b), team_size, action_delay, hitboxes)
    half, each = (
        matches // 2,
        [selection] * 2 if selection is None or isinstance(selection, str) else selection,
    )
    jobs = [  # of some matches each: whether A is orange, number of matches, seed
        (swapped, min(half - first, _AT_ONCE), 1_000_003 * seed + 10 * number + 5 * swapped)
        for swapped in (False, True)
        for number, first in enumerate(range(0, half, _AT_ONCE))  # not by the processes, for the seeds
    ]
    goals, touches, minutes = [], [], []
    with open_pool(processes) as pool:
        futures = [
            pool.submit(
                play_matches, *((b, a) if swapped else (a, b)), size, seconds=seconds, seed=one,
                team_size=team_size, selection=each[::-1] if swapped else each,
                action_delay=action_delay[::-1] if swapped and action_delay else action_delay,
                hitboxes=hitboxes[::-1] if swapped else hitboxes, allow_modules=allow_modules,
                simulator=simulator,
            )
            for swapped, size, one in jobs
        ]  # fmt: skip
        for (swapped, size, _), future in zip(jobs, futures, strict=True):
            scores: MatchTotals = future.result()
            order = [1, 0] if swapped else [0, 1]
            delays = scores.delays[order[0]], scores.delays[order[1]]
            goals.append(scores.goals[:, order])
            touches.append(scores.touches.reshape(size, 2, team_size).sum(2)[:, order])
            minutes.append(np.full(size, scores.minutes))
    every = [np.concatenate(found) for found in (goals, touches, minutes)]
    return Evaluation(every[0], every[1], every[2], team_size, delays)


def check_numbers(matches: int, seconds: float, **least: tuple[int, int]) -> None:
    """Raise ValueError where a number is out of range; `least` has value and lower bound by name."""
    if matches < 2 or matches % 2:
        raise ValueError(
            f"matches is {matches}, expected an even number, 2 or more: half are played from each side"
        )
    if matches > _MOST_MATCHES:
        raise ValueError(f"matches is {matches}, expected {_MOST_MATCHES:,} at most")
    if not _LEAST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise ValueError(
            f"seconds is {seconds:g}, expected {_LEAST_SECONDS:g} to {LONGEST_SECONDS:g} (a day)"
        )
    for name, (value, bound) in least.items():
        if value < bound:
            raise ValueError(f"{name} is {value}, expected {bound} or more")


if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("evaluate")
