"""Play whole matches between two policies, many at once, in RocketSim without a server.

A match is a segment of game time; a goal is followed by the next kickoff at once. Policies see and act
as in training: their own observations and parsers, a decision every `tick_skip` ticks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, Simulator, make_simulator
from rlgym_bridge.sim.touches import TouchCounter
from rlgym_bridge.state import MatchState, derive


@dataclass
class MatchTotals:
    """Goals and touches of some matches.

    Attributes:
        goals: `(matches, 2)` int64, of blue and orange.
        touches: `(matches, cars)` int64; as `TouchCounter` tells them.
        minutes: Game time of each match.
        delays: Ticks after which the actions of blue and of orange acted.
        courses: `(matches,)` a number of the last state, which is equal where matches went alike.
    """

    goals: np.ndarray
    touches: np.ndarray
    minutes: float
    delays: tuple[int, int]
    courses: np.ndarray


class BatchSide:
    """One team of all matches, where its components work in batches."""

    def __init__(self, player_spec: PlayerSpec, seats: Sequence[int], seed: int) -> None:
        parts = player_spec.components()
        self._obs: Any = parts.obs_builder
        self._parser: Any = parts.parser
        self._policy = player_spec.policy()
        self._seats = list(seats)
        self._policy.reset(self._seats, seed)

    def begin(self, state: MatchState, matches: Sequence[int]) -> None:
        """Begin at a kickoff: a policy with memory forgets what it knew of these matches."""
        if isinstance(self._policy, NetworkPolicy):
            self._policy.forget(matches)

    def rows(self, state: MatchState) -> np.ndarray:
        """Return control rows `(matches, seats, ticks, 8)`."""
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
        """Return control rows `(matches, seats, ticks, 8)`."""
        every = []
        for match, episode in enumerate(self._episodes):
            one = _one(state, match)
            if not self._fresh[match]:
                episode.step(one)
            self._fresh[match] = False
            every.append(episode.decide(one))
        return np.array(every, np.float32)


def _one(state: MatchState, match: int) -> MatchState:
    layout = state.layout
    return MatchState(layout.blue, layout.orange, 1, state.buffer[match : match + 1].copy())


Side = BatchSide | EpisodeSide


def make_side(player_spec: PlayerSpec, seats: Sequence[int], seed: int, matches: int) -> Side:
    """Return what drives some cars of all matches: in batches where the player's components can.

    Args:
        player_spec: The player.
        seats: Its cars, by their place in the state.
        seed: Of its actions.
        matches: How many there are.
    """
    parts = player_spec.components()
    ours = [one for one in (parts.obs_builder, parts.parser) if one is not None]
    if parts.shared_info_provider is None and all(map(works_in_batches, ours)):
        return BatchSide(player_spec, seats, seed)
    return EpisodeSide(player_spec, seats, seed, matches)


def team_size_of(*players: str) -> int:
    """Return the team size that the first of some players was trained for; 1 where all are built in.

    Raises:
        FileNotFoundError: A folder is not there.
        ValueError: It cannot be read, or is of no match between teams of equal size.
    """
    for one in players:
        if one not in BUILT_IN:
            sizes = read_files(Path(one))[0].team_sizes
            equal = [blue for blue, orange in sizes if blue == orange]
            if not equal:
                raise ValueError(f"{one} was trained for {sizes}, expected teams of equal size")
            return equal[0]
    return 1


def play_matches(
    blue: str | Path,
    orange: str | Path,
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
    """Play some matches at once.

    Args:
        blue: A policy folder, `"chaser"`, `"charger"` or `"random"`.
        orange: The other team's policy, in the same form.
        matches: How many.
        seconds: Game time of each, kickoffs included.
        seed: Of kickoffs, respawns and both policies.
        team_size: Cars a team.
        selection: `"sample"` or `"argmax"` in place of the folders' own; of both teams, or of each.
        action_delay: Ticks after which the actions of blue and of orange act, in place of the folders' own.
        hitboxes: Of blue's cars and of orange's, of `game.HITBOX_NAMES`; None for the folders' own.
        allow_modules: Modules that the folders may name.
        simulator: What plays, one of `simulator.SIMULATORS`.

    Raises:
        FileNotFoundError: A folder is not there.
        ValueError: The simulator is not installed, a delay is below 0, or a policy cannot be read or plays
            at another pace or with other team sizes.
    """
    boxes = check_players((blue, orange), team_size, action_delay, hitboxes)
    player_specs = _load_both((blue, orange), allow_modules, selection)
    delays = [one.timing.action_delay for one in player_specs] if action_delay is None else list(action_delay)
    seats = [list(range(team_size)), list(range(team_size, 2 * team_size))]
    sides = [
        make_side(player_spec, one, seed + number, matches)
        for number, (player_spec, one) in enumerate(zip(player_specs, seats, strict=True))
    ]
    arenas = make_simulator(simulator, matches, team_size, team_size, seed=seed)
    random, tick, end = np.random.default_rng((seed, 2)), 0, round(seconds * TICKS_PER_SECOND)
    goals, touches = (np.zeros((matches, count), np.int64) for count in (2, 2 * team_size))
    counter, lates = TouchCounter(*touches.shape), np.tile(np.repeat(delays, team_size), (matches, 1))
    _kick_off(arenas, sides, np.arange(matches), boxes, random, goals, seconds)
    while tick < end:
        parts = [side.rows(arenas.state) for side in sides]
        arenas.step(np.concatenate(parts, 1), lates)
        tick += parts[0].shape[2]
        state = arenas.state
        state.clock[:] = max(0.0, seconds - tick / TICKS_PER_SECOND)
        touches += counter.new(touched := state.car_ball_touches > 0, parts[0].shape[2])
        state.phase[touched.any(1)] = Phase.ACTIVE
        if len(scored := np.flatnonzero(state.goal_scored)):
            goals[scored, (state.ball_position[scored, 1] < 0).astype(int)] += 1
            _kick_off(arenas, sides, scored, boxes, random, goals, state.clock[0])
    courses = arenas.state.ball_position.sum(1) + arenas.state.car_position.sum((1, 2))
    return MatchTotals(goals, touches, tick / TICKS_PER_SECOND / 60, (delays[0], delays[1]), courses)


def check_players(
    players: Sequence[str | Path],
    team_size: int,
    action_delay: Sequence[int] | None,
    hitboxes: Sequence[str | None] = (None, None),
) -> list[int]:
    """Check what needs no code of the players, before processes are started.

    Args:
        players: Policy folders, `"chaser"`, `"charger"` or `"random"`.
        team_size: Cars a team.
        action_delay: Ticks after which the actions of each act; None for their own.
        hitboxes: Of the cars of each, of `game.HITBOX_NAMES`; None for its own.

    Returns:
        Hitboxes of the players, indices of `HITBOX_NAMES`.

    Raises:
        FileNotFoundError: A folder is not there.
        ValueError: A policy cannot be read or was trained for other team sizes; a delay is out of range.
    """
    if action_delay is not None and not all(0 <= delay <= MOST_TICKS for delay in action_delay):
        raise ValueError(f"action_delay is {[*action_delay]}, expected 0 to {MOST_TICKS} ticks")
    own = [_hitbox(player, team_size) for player in players]
    return [
        its if given is None else HITBOX_NAMES.index(given) for its, given in zip(own, hitboxes, strict=True)
    ]


def _hitbox(player: str | Path, team_size: int) -> int:
    """Return the hitbox that a player was trained with, an index of `HITBOX_NAMES`; 0 for what is built in.

    Raises:
        ValueError: It was trained for other team sizes.
    """
    if str(player) in BUILT_IN:
        return 0
    manifest, _ = read_files(Path(player))
    sizes = manifest.team_sizes
    if (team_size, team_size) not in sizes:
        trained = ", ".join(f"{first}v{second}" for first, second in sizes)
        raise ValueError(f"{player} was trained for {trained}, expected {team_size}v{team_size}")
    return HITBOX_NAMES.index(manifest.hitbox)


def _load_both(
    players: tuple[str | Path, str | Path],
    allow_modules: Sequence[str],
    selection: str | Sequence[str | None] | None,
) -> list[PlayerSpec]:
    """Load both players, which decide on the same ticks.

    Raises:
        ValueError: They differ in tick skip, or see `load_player`.
    """
    selections = [selection] * 2 if selection is None or isinstance(selection, str) else selection
    specs = [load_player(one, allow_modules, its) for one, its in zip(players, selections, strict=True)]
    blue, orange = (spec.tick_skip for spec in specs)
    if blue != orange:
        raise ValueError(
            f"{players[0]} decides every {blue} ticks, {players[1]} every {orange}, expected the same tick "
            "skip: rlgym-bridge match plays them as they are"
        )
    return specs


def _kick_off(
    arenas: Simulator,
    sides: Sequence[Side],
    matches: np.ndarray,
    hitboxes: Sequence[int],
    random: np.random.Generator,
    goals: np.ndarray,
    clock: float,
) -> None:
    layout = arenas.state.layout
    state = blank_state(layout.blue, layout.orange, len(matches))
    state.car_hitbox[:] = np.repeat(hitboxes, (layout.blue, layout.orange))
    KickoffMutator().apply_batch(state, random)
    derive(state)
    state.phase[:], state.clock[:], state.score[:] = Phase.KICKOFF, clock, goals[matches]
    arenas.put(matches.tolist(), state)
    for side in sides:
        side.begin(arenas.state, matches.tolist())
