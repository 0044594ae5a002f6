"""Measure skills: play scenes with one player, many trials at once, and report what it solves.

scene's beginning, half of the trials for blue -> player and opponent drive -> judge -> solved, and when
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from rlgym_bridge.components.actions import ContinuousAction, RepeatAction
from rlgym_bridge.components.initial_states import INITIAL_STATES
from rlgym_bridge.components.mutator_base import BatchMutator
from rlgym_bridge.components.mutators import KickoffMutator, blank_state
from rlgym_bridge.components.player_spec import PlayerSpec, Policy
from rlgym_bridge.components.skill_mutators import AerialMutator, SkillMutator
from rlgym_bridge.components.spec import Components
from rlgym_bridge.game import CAR_MAX_SPEED, CONTROL_NAMES, KICKOFF_SPAWNS, TICK_SKIP, TICKS_PER_SECOND, Phase
from rlgym_bridge.policy.load_player import CHARGER, CHASER, load_player
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, Simulator, make_simulator
from rlgym_bridge.state import MatchState, derive
from rlgym_bridge.training import evaluate
from rlgym_bridge.training.processes import open_pool
from rlgym_bridge.user_input.arguments import check_names

DRIVING_SPEED: Final = 1000.0
"""uu/s along the nose, forwards or backwards; a car that is thrown moves at 800 over the ground at most."""

CARRIED_Z: Final = 110.0  # uu: the centre of a ball that lies on the floor is at 93
CARRIED_GAP: Final = 300.0  # uu from the car's centre to the ball's; on the roof it is 134


class SceneView(NamedTuple):
    """A state that scenes are judged by, and their acting cars."""

    state: MatchState  # N matches after a decision
    acting: np.ndarray  # (N,) int, the acting car of each
    side: np.ndarray  # (N,) float, 1 where it is blue's, -1 where it is orange's

    def car(self, name: str) -> np.ndarray:
        """Return a field of the acting cars by its name in `CAR_FIELDS`, `(N, ...)`."""
        values: np.ndarray = getattr(self.state, f"car_{name}")[np.arange(len(self.acting)), self.acting]
        return values

    def forward_y(self) -> np.ndarray:
        """Return the ball's y towards the opponents' goal, uu, `(N,)`."""
        y: np.ndarray = self.state.ball_position[:, 1] * self.side
        return y

    def goals(self) -> np.ndarray:
        """Return 1 where the ball is in the opponents' goal, -1 in the own, else 0, `(N,)`."""
        goals: np.ndarray = (self.state.goal_scored > 0) * np.sign(self.forward_y())
        return goals


Judge = Callable[[SceneView], np.ndarray]
"""1 where a scene is solved, -1 where it failed, 0 where it goes on: `(N,)`."""


@dataclass(frozen=True)
class SkillScene:
    """One scene."""

    beginning: BatchMutator  # its initial states
    seconds: float  # game time until it ends
    solved_when: str  # when it is solved, in words
    judge: Judge  # called after each decision
    # called at the end: which of the open matches are solved, `(N,)` bool
    at_end: Callable[[SceneView], Any] = lambda view: np.zeros(len(view.acting), bool)
    # `stands`; `rams`, which the other team's first car does; or `chaser` or `charger`, then all cars of both
    # teams play
    opponent: str = "stands"
    timed: bool = False  # whether the seconds until it is solved are the result, not the share solved


def _is_kept(view: SceneView) -> np.ndarray:
    """Solve every trial that has not failed so far."""
    return np.ones(len(view.acting), bool)


def _drives(view: SceneView) -> np.ndarray:
    nose = view.car("rotation")[:, :, 0]
    speed = np.abs(np.einsum("ni,ni->n", view.car("linear_velocity"), nose))
    driving: np.ndarray = (view.car("on_ground") > 0) & (speed >= DRIVING_SPEED)
    return driving.astype(int)


def _carries(view: SceneView) -> np.ndarray:
    ball = view.state.ball_position
    gap = np.linalg.norm(ball - view.car("position"), axis=1)
    lost: np.ndarray = (ball[:, 2] < CARRIED_Z) | (gap > CARRIED_GAP)
    return -lost.astype(int)


def _touches_above(height: float) -> Judge:
    def judge(view: SceneView) -> np.ndarray:
        touched: np.ndarray = (view.car("ball_touches") > 0) & (view.state.ball_position[:, 2] > height)
        return touched.astype(int)

    return judge


def _kickoff(*spots: int, opponent: str = "chaser", named: str = "Chaser") -> SkillScene:
    return SkillScene(
        KickoffMutator(spots=spots),
        5.0,
        f"5 s after GO the ball is in the opponents' half, or a goal comes before; against {named}",
        SceneView.goals,
        lambda view: view.forward_y() > 0,
        opponent=opponent,
    )


def _aerial(height: float) -> SkillScene:
    return SkillScene(
        AerialMutator(height, height), 3.5, f"the car touches the ball above {height:,.0f} uu within 3.5 s",
        _touches_above(height),
    )  # fmt: skip


SCENES: Final[Mapping[str, SkillScene]] = {
    "kickoff_diagonal": _kickoff(0, 1),
    "kickoff_off_centre": _kickoff(2, 3),
    "kickoff_straight": _kickoff(4),
    "kickoff_charged": _kickoff(
        *range(len(KICKOFF_SPAWNS)), opponent="charger", named="a car that drives through the ball"
    ),
    "save": SkillScene(
        INITIAL_STATES["save"], 4.0, "no goal within 4 s; untouched the ball goes in",
        lambda view: np.minimum(view.goals(), 0), _is_kept,
    ),
    "shot": SkillScene(INITIAL_STATES["shot"], 5.0, "a goal at the open goal within 5 s", SceneView.goals),
    "aerial_500": _aerial(500),
    "aerial_1000": _aerial(1000),
    "dribble": SkillScene(
        INITIAL_STATES["dribble"], 3.0, "for 3 s the ball stays above 110 uu, at most 300 uu from the car",
        _carries, _is_kept,
    ),
    "recovery": SkillScene(
        INITIAL_STATES["recovery"], 6.0, "the car drives on its wheels, at 1,000 uu/s; 6 s at most", _drives,
        timed=True,
    ),
    "collision": SkillScene(
        INITIAL_STATES["collision"], 3.0,
        "not demolished for 3 s by a car that comes at 2,250 uu/s and steers",
        lambda view: -(view.car("is_demoed") > 0).astype(int), _is_kept, opponent="rams",
    ),
}  # fmt: skip
"""All scenes by name; the spots of a kickoff are those of `game.KICKOFF_SPAWNS`."""


_STEER_GAIN: Final = 2.5  # of full steering for each rad that the target is beside the nose


class StandingDriver:
    """A policy that presses nothing."""

    def reset(self, cars: Sequence[int], seed: int | None = None) -> None:
        """Take the cars, by their place in the state."""
        self._cars = list(cars)

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Return neutral controls, `(matches, cars, 8)`."""
        return np.zeros((state.matches, len(self._cars), len(CONTROL_NAMES)), np.float32)


class RammingDriver(StandingDriver):
    """A policy that boosts at the first car of the other team, and steers to where it will be."""

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        """Return full throttle and boost, and the steering, `(matches, cars, 8)`."""
        rows = super().act(obs, state)
        layout = state.layout
        for column, car in enumerate(self._cars):
            target = layout.blue if car < layout.blue else 0
            gap = state.car_position[:, target] - state.car_position[:, car]
            seconds = np.linalg.norm(gap, axis=1, keepdims=True) / CAR_MAX_SPEED
            to = gap + state.car_linear_velocity[:, target] * seconds
            front, right, _ = np.einsum("nij,ni->jn", state.car_rotation[:, car], to)
            rows[:, column, CONTROL_NAMES.index("steer")] = _STEER_GAIN * np.arctan2(right, front)
            rows[:, column, [CONTROL_NAMES.index("throttle"), CONTROL_NAMES.index("boost")]] = 1
        return rows


def scripted_player(policy: type[Policy], tick_skip: int) -> PlayerSpec:
    """Return a player whose policy gives all eight controls, held for `tick_skip` ticks."""
    return PlayerSpec(policy, partial(_all_controls, tick_skip), tick_skip)


def _all_controls(tick_skip: int) -> Components:
    return Components(None, RepeatAction(ContinuousAction(), tick_skip))


_OPPONENT_DELAY: Final = 1  # ticks, Chaser's own
_SEEDS: Final = 1000  # of scenes, for each seed that is given
_WHOLE_TEAMS: Final = (CHASER, CHARGER)  # opponents against which all cars play, at Chaser's pace


@dataclass(frozen=True)
class SceneResult:
    """Trials of one scene: `seconds` `(trials,)` until each was solved; infinity where it was not."""

    name: str
    seconds: np.ndarray

    @property
    def trials(self) -> int:
        """Number of trials."""
        return len(self.seconds)

    @property
    def solved(self) -> int:
        """Number of trials that were solved."""
        return int(np.isfinite(self.seconds).sum())

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the share of solved trials, 95 %."""
        return evaluate.share_interval(self.solved / self.trials, self.trials)

    def to_json(self) -> dict[str, Any]:
        """Return the result for programs; times are null where fewer than half of the trials reach them."""
        scene = SCENES[self.name]
        median, *bounds = evaluate.median_interval(self.seconds) if scene.timed else (np.inf, np.inf, np.inf)
        finite = [bound if np.isfinite(bound) else None for bound in (median, *bounds)]
        return {
            "name": self.name, "solved_when": scene.solved_when, "horizon_seconds": scene.seconds,
            "trials": self.trials, "solved": self.solved, "share": self.solved / self.trials,
            "interval": list(self.interval), "median_seconds": finite[0], "median_interval": finite[1:],
        }  # fmt: skip


def play_scenes(
    player: PlayerSpec,
    scenes: Sequence[str],
    trials: int,
    *,
    seed: int = 0,
    team_size: int = 1,
    hitbox: int = 0,
    action_delay: int | None = None,
    simulator: str = DEFAULT_SIMULATOR,
) -> list[SceneResult]:
    """Let a player play scenes, names in `SCENES`, one after another, half of the trials on each side.

    Cars without a task stand. `hitbox` is that of the player's cars, an index of `HITBOX_NAMES`; the others
    are Octanes. `action_delay` is in ticks; None for the player's own. Raises ValueError where a scene is
    unknown, or the player decides at another pace than its opponent.
    """
    check_names("scenes", scenes, SCENES)
    against = [name for name in scenes if SCENES[name].opponent in _WHOLE_TEAMS]
    if against and player.tick_skip != TICK_SKIP:
        raise ValueError(
            f"the player decides every {player.tick_skip} ticks, and Chaser, its opponent in "
            f"{', '.join(against)}, every {TICK_SKIP}; expected other scenes"
        )
    delay = player.timing.action_delay if action_delay is None else action_delay
    arenas = make_simulator(simulator, trials, team_size, team_size, seed=seed)
    # Each scene's seed is of its name alone: another scene does not change how this one is played.
    seeds = [(seed, zlib.crc32(name.encode()) % _SEEDS) for name in scenes]
    return [
        SceneResult(name, _play(SCENES[name], player, arenas, its, hitbox, delay))
        for name, its in zip(scenes, seeds, strict=True)
    ]


def _play(
    scene: SkillScene, player: PlayerSpec, arenas: Simulator, seed: tuple[int, int], hitbox: int, delay: int
) -> np.ndarray:
    """Return the seconds until each trial of a scene was solved, infinity where it was not, `(trials,)`."""
    state = arenas.state
    trials, size = state.matches, state.layout.blue
    blue = np.arange(trials) < (trials + 1) // 2
    acting, side = np.where(blue, 0, size), np.where(blue, 1.0, -1.0)
    ours = np.repeat(np.stack((blue, ~blue), 1), size, axis=1)
    drivers = _drivers(scene, player, int(blue.sum()), state, seed)
    begun = _begin(scene, state, acting, np.where(ours, hitbox, 0), drivers, np.random.default_rng(seed))
    arenas.put(range(trials), begun)
    for driver in drivers:
        driver.side.begin(driver.part(state), range(driver.part(state).matches))
    late = np.where(ours, delay, _OPPONENT_DELAY)
    verdict, times, tick = np.zeros(trials, int), np.full(trials, np.inf), 0
    while tick < scene.seconds * TICKS_PER_SECOND and not verdict.all():
        driven = [driver.side.rows(driver.part(state)) for driver in drivers]
        rows = np.zeros((trials, 2 * size, driven[0].shape[2], 8), np.float32)
        for driver, its in zip(drivers, driven, strict=True):
            rows[driver.matches, driver.seats] = its
        arenas.step(rows, late)
        tick += rows.shape[2]
        state.phase[(state.car_ball_touches > 0).any(1)] = Phase.ACTIVE
        judged = scene.judge(SceneView(state, acting, side)).astype(int)
        times[(verdict == 0) & (judged > 0)] = tick / TICKS_PER_SECOND
        verdict = np.where(verdict == 0, judged, verdict)
    times[(verdict == 0) & scene.at_end(SceneView(state, acting, side))] = tick / TICKS_PER_SECOND
    return times


class _Driver(NamedTuple):
    """A player that drives some cars of neighbouring trials."""

    matches: slice
    seats: slice
    side: evaluate.Side

    def part(self, state: MatchState) -> MatchState:
        """Return its trials, a view."""
        return state.select(self.matches)


def _drivers(
    scene: SkillScene, player: PlayerSpec, blue: int, state: MatchState, seed: tuple[int, int]
) -> list[_Driver]:
    """Return who drives: the player, in the first trials as blue, and its opponent where there is one."""
    size, found = state.layout.blue, []
    number = _SEEDS * seed[0] + seed[1]
    opponent = {name: load_player(name) for name in _WHOLE_TEAMS}
    opponent["rams"] = scripted_player(RammingDriver, player.tick_skip or TICK_SKIP)
    cars = size if scene.opponent in _WHOLE_TEAMS else 1
    for matches, own in ((slice(0, blue), 0), (slice(blue, state.matches), size)):
        pairs = [(player, own)]
        if scene.opponent in opponent:
            pairs.append((opponent[scene.opponent], size - own))
        for one, first in pairs:
            seats = range(first, first + cars)
            side = evaluate.make_side(one, seats, 2 * number + (own > 0), matches.stop - matches.start)
            found.append(_Driver(matches, slice(seats.start, seats.stop), side))
    return [driver for driver in found if driver.matches.stop > driver.matches.start]


def _begin(
    scene: SkillScene, state: MatchState, acting: np.ndarray, hitboxes: np.ndarray,
    drivers: Sequence[_Driver], random: np.random.Generator,
) -> MatchState:  # fmt: skip
    """Return states in which the trials of a scene begin; cars that nobody drives rest."""
    begun = blank_state(state.layout.blue, state.layout.orange, state.matches)
    begun.car_hitbox[:] = hitboxes
    if isinstance(scene.beginning, SkillMutator):
        scene.beginning.begin(begun, acting, random)
    else:
        scene.beginning.apply_batch(begun, random)
    idle = np.ones(hitboxes.shape, bool)
    for driver in drivers:
        idle[driver.matches, driver.seats] = False
    begun.car_linear_velocity[idle] = 0
    begun.car_supersonic_time[idle] = 0
    derive(begun)
    return begun


STANDING: Final = "standing"  # name of a car that does nothing, in place of a policy
TRIALS: Final = 100  # of each scene when nothing is said
_MOST: Final = 1_000_000  # trials
_AT_ONCE: Final = 50  # trials of a job; an even number, half of them for each side


def evaluate_scenes(
    player: str,
    scenes: Sequence[str],
    trials: int = TRIALS,
    *,
    seed: int = 0,
    team_size: int | None = None,
    selection: str | None = None,
    action_delay: int | None = None,
    allow_modules: Sequence[str] = (),
    processes: int = 2,
    simulator: str = DEFAULT_SIMULATOR,
) -> list[SceneResult]:
    """Let a player, a policy folder, `"chaser"` or `"standing"`, play scenes in several processes.

    There are 1 to 1,000,000 trials of each scene. A team size of None is what the player was trained for;
    other arguments are those of `play_scenes` and of `load_player`. Raises ValueError where a scene is
    unknown, a number is out of range, or the policy cannot play these matches.
    """
    for name, value in (("trials", trials), ("processes", processes)):
        if not 1 <= value <= _MOST:
            raise ValueError(f"{name} is {value}, expected 1 to {_MOST:,}")
    if seed < 0:
        raise ValueError(f"seed is {seed}, expected 0 or more")
    check_names("scenes", scenes, SCENES)
    known = CHASER if player == STANDING else player
    size = evaluate.team_size_of(known) if team_size is None else team_size
    if size < 1:
        raise ValueError(f"team_size is {size}, expected 1 or more")
    delays = None if action_delay is None else [action_delay]
    (hitbox,) = evaluate.check_players([known], size, delays, [None])
    counts = [min(_AT_ONCE, trials - first) for first in range(0, trials, _AT_ONCE)]
    with open_pool(min(processes, len(counts))) as pool:
        jobs = [
            pool.submit(
                _play_job, player, allow_modules, selection, scenes, count, seed=1_000_003 * seed + number,
                team_size=size, hitbox=hitbox, action_delay=action_delay, simulator=simulator,
            )
            for number, count in enumerate(counts)
        ]  # fmt: skip
        parts = [job.result() for job in jobs]
    return [
        SceneResult(name, np.concatenate([part[number].seconds for part in parts]))
        for number, name in enumerate(scenes)
    ]


def _play_job(
    player: str, allow_modules: Sequence[str], selection: str | None, scenes: Sequence[str], trials: int,
    **more: Any,
) -> list[SceneResult]:  # fmt: skip
    """Play some trials in a process of its own."""
    if player == STANDING:
        return play_scenes(scripted_player(StandingDriver, TICK_SKIP), scenes, trials, **more)
    return play_scenes(load_player(player, allow_modules, selection), scenes, trials, **more)


def parse_scenes(text: str) -> list[str]:
    """Return the scenes that a text names, with commas between; raises ValueError where one is unknown."""
    names = list(dict.fromkeys(text.split(",")))
    check_names("--scenes", names, SCENES)
    return names


def describe_results(results: Sequence[SceneResult]) -> list[str]:
    """Return a table of results, a line a scene."""
    width = max(len(one.name) for one in results)
    lines = [f"  {'scene':{width}}  solved  95 %          median time            solved when"]
    for one in results:
        found = one.to_json()
        low, high = (f"{bound:.0%}" for bound in one.interval)
        time = _describe_median(found) if SCENES[one.name].timed else ""
        share = f"{found['share']:6.0%}  {f'{low} to {high}':13}"
        lines.append(f"  {one.name:{width}}  {share} {time:22} {found['solved_when']}")
    return lines


def _describe_median(found: dict[str, Any]) -> str:
    """Return the median time and its interval in words, from `SceneResult.to_json`."""
    most = f"over {found['horizon_seconds']:g}"
    times = (found["median_seconds"], *found["median_interval"])
    median, low, high = (most if seconds is None else f"{seconds:.2f}" for seconds in times)
    return f"{median} s" if low == most else f"{median} s ({low} to {high})"
