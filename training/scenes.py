"""Define the scenes that measure skills: how each begins, how long it lasts, and when it is solved.

beginning (as in training) -> state after each decision -> solved, failed or open -> at the end solved or not
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from rlgym_bridge.components.actions import ContinuousAction, RepeatAction
from rlgym_bridge.components.beginnings import BEGINNINGS
from rlgym_bridge.components.mutator_base import BatchMutator
from rlgym_bridge.components.mutators import KickoffMutator
from rlgym_bridge.components.player_spec import PlayerSpec, Policy
from rlgym_bridge.components.skill_mutators import AerialMutator
from rlgym_bridge.components.spec import Components
from rlgym_bridge.game import CAR_MAX_SPEED, CONTROL_NAMES, KICKOFF_SPAWNS
from rlgym_bridge.state import MatchState

DRIVING_SPEED: Final = 1000.0
"""uu/s along the nose, forwards or backwards; a car that is thrown moves at 800 over the ground at most."""

CARRIED_Z: Final = 110.0  # uu: the centre of a ball that lies on the floor is at 93
CARRIED_GAP: Final = 300.0  # uu from the car's centre to the ball's; on the roof it is 134


class SceneView(NamedTuple):
    """A state that scenes are judged by, and their acting cars.

    Attributes:
        state: N matches after a decision.
        acting: `(N,)` int, the acting car of each.
        side: `(N,)` float, 1 where it is blue's, -1 where it is orange's.
    """

    state: MatchState
    acting: np.ndarray
    side: np.ndarray

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
    """One scene.

    Attributes:
        beginning: How it begins.
        seconds: Game time until it ends.
        solved_when: When it is solved, in words.
        judge: Called after each decision.
        at_end: Called at the end, for the matches that are still open: whether they are solved, `(N,)` bool.
        opponent: What the other team does: `stands`; `rams`, which its first car does; `chaser` or
            `charger`, then all cars of both teams play.
        timed: Whether the seconds until it is solved are the result, rather than the share of solved trials.
    """

    beginning: BatchMutator
    seconds: float
    solved_when: str
    judge: Judge
    at_end: Callable[[SceneView], Any] = lambda view: np.zeros(len(view.acting), bool)
    opponent: str = "stands"
    timed: bool = False


def _is_kept(view: SceneView) -> np.ndarray:
    """Return True for every trial, `(N,)`: what has not failed so far is solved."""
    return np.ones(len(view.acting), bool)


def _lets_no_goal_in(view: SceneView) -> np.ndarray:
    return np.minimum(view.goals(), 0)


def _scores(view: SceneView) -> np.ndarray:
    return view.goals()


def _is_not_demolished(view: SceneView) -> np.ndarray:
    failed: np.ndarray = view.car("is_demoed") > 0
    return -failed.astype(int)


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
        _scores,
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
        BEGINNINGS["save"], 4.0, "no goal within 4 s; untouched, the ball goes in", _lets_no_goal_in, _is_kept
    ),
    "shot": SkillScene(BEGINNINGS["shot"], 5.0, "a goal at the open goal within 5 s", _scores),
    "aerial_500": _aerial(500),
    "aerial_1000": _aerial(1000),
    "dribble": SkillScene(
        BEGINNINGS["dribble"], 3.0, "for 3 s the ball stays above 110 uu, at most 300 uu from the car",
        _carries, _is_kept,
    ),
    "recovery": SkillScene(
        BEGINNINGS["recovery"], 6.0, "the car drives on its wheels, at 1,000 uu/s; 6 s at most", _drives,
        timed=True,
    ),
    "collision": SkillScene(
        BEGINNINGS["collision"], 3.0, "not demolished for 3 s by a car that comes at 2,250 uu/s and steers",
        _is_not_demolished, _is_kept, opponent="rams",
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
    return PlayerSpec(
        policy, lambda: Components(None, RepeatAction(ContinuousAction(), tick_skip)), tick_skip
    )
