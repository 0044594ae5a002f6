"""Keep the scoreboard of a match: touches, goals, assists, saves, shots, demolitions, bumps."""

from collections.abc import Mapping
from copy import copy
from typing import Any, Final

from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.sim.touches import is_new_touch

_OWN_GOAL_TICKS: Final = 4 * TICKS_PER_SECOND
"""A goal after a defender's touch still counts for an attacker who touched the ball this shortly
before [RocketSim's event tracker gives goals within 4 s]."""

_HAT_TRICK: Final = 3
"""Goals, assists or saves of a car that have a name of their own: HatTrick, Playmaker, Savior."""

_GOAL_POINTS: Final = 100  # as on the game's scoreboard
_ASSIST_POINTS: Final = 50
_SAVE_POINTS: Final = 50
_SHOT_POINTS: Final = 10

_COUNTS: Final = (
    "touches", "goals", "own_goals", "assists", "saves", "shots", "demolitions", "bumps", "infos",
    "_last_touch",
)  # fmt: skip


class Scoreboard:
    """Counts of each car, and their `flat.ScoreInfo`, which are rebuilt only when they change.

    Attributes:
        infos: `flat.ScoreInfo` of each car.
        accolades: Names of each car's events in the present tick [flatbuffers, `PlayerInfo.accolades`]:
            BallHit, FirstTouch, Shot, Save, Savior, Assist, Playmaker, Goal, OvertimeGoal, HatTrick, OwnGoal,
            Demolish, Win, Loss.
        touches: Ball touches of each car; see `is_new_touch`.
    """

    def __init__(self, teams: list[int]) -> None:
        """Start at zero.

        Args:
            teams: Team of each car, 0 blue, 1 orange.
        """
        cars = len(teams)
        self._teams = teams
        self._last_touch = [-1] * cars  # frame of each car's latest touch since the kickoff
        self._last_toucher: int | None = None
        self._scorer: int | None = None
        self.touches = [0] * cars
        self.goals = [0] * cars
        self.own_goals = [0] * cars
        self.assists = [0] * cars
        self.saves = [0] * cars
        self.shots = [0] * cars
        self.demolitions = [0] * cars
        self.bumps = [0] * cars
        self.infos = [flat.ScoreInfo(0, 0, 0, 0, 0, 0, 0)] * cars
        self.accolades: list[list[str]] = [[] for _ in teams]
        self._honoured: list[int] = []  # cars that have some

    def take_over(self, earlier: "Scoreboard", kept: Mapping[int, int]) -> None:
        """Go on with the counts of another match; `kept` has cars here and there."""
        here = {before: car for car, before in kept.items()}
        for car, before in kept.items():
            for name in _COUNTS:
                getattr(self, name)[car] = getattr(earlier, name)[before]
        self._last_toucher = here.get(earlier._last_toucher) if earlier._last_toucher is not None else None
        self._scorer = here.get(earlier._scorer) if earlier._scorer is not None else None

    def moment(self) -> dict[str, Any]:
        """Return the present counts, as `restore` takes them."""
        return {name: copy(getattr(self, name)) for name in (*_COUNTS, "_last_toucher", "_scorer")}

    def restore(self, moment: Mapping[str, Any], frames: int) -> None:
        """Go back to earlier counts; `frames` packets have been numbered since."""
        vars(self).update({name: copy(value) for name, value in moment.items()})
        self._last_touch = [last if last < 0 else last + frames for last in self._last_touch]
        self.begin_tick()

    def begin_tick(self) -> None:
        """Clear the accolades of the tick before."""
        for car in self._honoured:
            self.accolades[car] = []
        self._honoured.clear()

    def kickoff(self) -> None:
        """Forget who touched the ball: a new kickoff."""
        self._last_touch = [-1] * len(self._teams)
        self._last_toucher = self._scorer = None

    def touch(self, car: int, frame: int) -> None:
        """Count a contact of a car with the ball, shown first by packet `frame`."""
        last = self._last_touch[car]
        if last < 0 or is_new_touch(frame - last):
            self.touches[car] += 1
            self._honour(car, "BallHit")
        if self._last_toucher is None:
            self._honour(car, "FirstTouch")
        self._last_touch[car] = frame
        self._last_toucher = car

    def goal(self, team: int, frame: int, overtime: bool = False) -> None:
        """Count a goal for `team` in packet `frame`, and find who scored it."""
        self._scorer = self._find_scorer(team, frame)
        if self._scorer is not None:
            self.goals[self._scorer] += 1
            self._honour(self._scorer, "Goal", *(["OvertimeGoal"] if overtime else []))
            self._honour_third(self._scorer, self.goals, "HatTrick")
            self._renew(self._scorer)
        elif self._last_toucher is not None:
            self.own_goals[self._last_toucher] += 1
            self._honour(self._last_toucher, "OwnGoal")
            self._renew(self._last_toucher)

    def assist(self, car: int) -> None:
        """Count an assist, unless the same car has scored."""
        if self._scorer is not None and car != self._scorer:
            self.assists[car] += 1
            self._honour(car, "Assist")
            self._honour_third(car, self.assists, "Playmaker")
            self._renew(car)

    def shot(self, car: int) -> None:
        """Count a shot on goal."""
        self.shots[car] += 1
        self._honour(car, "Shot")
        self._renew(car)

    def save(self, car: int) -> None:
        """Count a save."""
        self.saves[car] += 1
        self._honour(car, "Save")
        self._honour_third(car, self.saves, "Savior")
        self._renew(car)

    def shots_of(self, team: int) -> int:
        """Return the shots of a team."""
        return sum(shots for shots, its_team in zip(self.shots, self._teams, strict=True) if its_team == team)

    def demolition(self, car: int) -> None:
        """Count a demolition made by a car."""
        self.demolitions[car] += 1
        self._honour(car, "Demolish")
        self._renew(car)

    def end(self, winner: int | None) -> None:
        """Note who has won the match, None for a draw."""
        for car, team in enumerate(self._teams if winner is not None else ()):
            self._honour(car, "Win" if team == winner else "Loss")

    def _honour(self, car: int, *names: str) -> None:
        self.accolades[car] = [*self.accolades[car], *names]  # packets keep the list before
        self._honoured.append(car)

    def _honour_third(self, car: int, counts: list[int], name: str) -> None:
        if counts[car] == _HAT_TRICK:
            self._honour(car, name)

    def _find_scorer(self, team: int, frame: int) -> int | None:
        """Return the attacker to whom a goal belongs; None for an own goal."""
        last = self._last_toucher
        if last is None or self._teams[last] == team:
            return last
        attackers = [car for car, its_team in enumerate(self._teams) if its_team == team]
        if not attackers:
            return None
        latest = max(attackers, key=lambda car: self._last_touch[car])
        touched = self._last_touch[latest]
        return latest if touched >= 0 and frame - touched <= _OWN_GOAL_TICKS else None

    def _renew(self, car: int) -> None:
        points = (
            _GOAL_POINTS * self.goals[car] + _ASSIST_POINTS * self.assists[car]
            + _SAVE_POINTS * self.saves[car] + _SHOT_POINTS * self.shots[car]
        )  # fmt: skip
        self.infos[car] = flat.ScoreInfo(
            points, self.goals[car], self.own_goals[car], self.assists[car],
            self.saves[car], self.shots[car], self.demolitions[car],
        )  # fmt: skip
