"""Who touched, scored, assisted, saved and demolished: the scoreboard of a match."""

from typing import Final

from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.sim.touches import is_new_touch

_OWN_GOAL_TICKS: Final = 4 * TICKS_PER_SECOND
"""A goal after a defender's touch still counts for an attacker who touched the ball this shortly
before [RocketSim's event tracker gives goals within 4 s]."""

_GOAL_POINTS: Final = 100  # as on the game's scoreboard
_ASSIST_POINTS: Final = 50
_SAVE_POINTS: Final = 50
_SHOT_POINTS: Final = 10


class Scoreboard:
    """Counts per slot, and their `flat.ScoreInfo`, which are made anew only when they change.

    Attributes:
        infos: `flat.ScoreInfo` of each slot.
        touches: Ball touches of each slot; see `is_new_touch`.
    """

    def __init__(self, teams: list[int]) -> None:
        """Start at zero.

        Args:
            teams: Team of each slot.
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

    def kickoff(self) -> None:
        """Forget who touched the ball: a new kickoff."""
        self._last_touch = [-1] * len(self._teams)
        self._last_toucher = None

    def touch(self, slot: int, frame: int) -> None:
        """Count a contact of a car with the ball, shown first by packet `frame`."""
        last = self._last_touch[slot]
        if last < 0 or is_new_touch(frame - last):
            self.touches[slot] += 1
        self._last_touch[slot] = frame
        self._last_toucher = slot

    def goal(self, team: int, frame: int) -> None:
        """Count a goal for `team` in packet `frame`, and find who scored it."""
        self._scorer = self._find_scorer(team, frame)
        if self._scorer is not None:
            self.goals[self._scorer] += 1
            self._renew(self._scorer)
        elif self._last_toucher is not None:
            self.own_goals[self._last_toucher] += 1
            self._renew(self._last_toucher)

    def assist(self, slot: int) -> None:
        """Count an assist, unless the same car has scored."""
        if self._scorer is not None and slot != self._scorer:
            self.assists[slot] += 1
            self._renew(slot)

    def shot(self, slot: int) -> None:
        """Count a shot on goal."""
        self.shots[slot] += 1
        self._renew(slot)

    def save(self, slot: int) -> None:
        """Count a save."""
        self.saves[slot] += 1
        self._renew(slot)

    def demolition(self, slot: int) -> None:
        """Count a demolition made by a car."""
        self.demolitions[slot] += 1
        self._renew(slot)

    def _find_scorer(self, team: int, frame: int) -> int | None:
        """Return the attacker to whom a goal belongs; None for an own goal."""
        last = self._last_toucher
        if last is None or self._teams[last] == team:
            return last
        attackers = [slot for slot, its_team in enumerate(self._teams) if its_team == team]
        if not attackers:
            return None
        latest = max(attackers, key=lambda slot: self._last_touch[slot])
        touched = self._last_touch[latest]
        return latest if touched >= 0 and frame - touched <= _OWN_GOAL_TICKS else None

    def _renew(self, slot: int) -> None:
        points = (
            _GOAL_POINTS * self.goals[slot] + _ASSIST_POINTS * self.assists[slot]
            + _SAVE_POINTS * self.saves[slot] + _SHOT_POINTS * self.shots[slot]
        )  # fmt: skip
        self.infos[slot] = flat.ScoreInfo(
            points, self.goals[slot], self.own_goals[slot], self.assists[slot],
            self.saves[slot], self.shots[slot], self.demolitions[slot],
        )  # fmt: skip
