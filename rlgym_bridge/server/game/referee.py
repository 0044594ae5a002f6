"""Decide phases, clock, score and end of a match, on whole ticks, and keep its scoreboard."""

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final

from rlbot import flat

from rlgym_bridge.game import (
    BLUE,
    COUNTDOWN_TICKS,
    GOAL_SCORED_TICKS,
    ORANGE,
    REPLAY_TICKS,
    TICKS_PER_SECOND,
    Phase,
)
from rlgym_bridge.sim.touches import is_new_touch

TEAM_NAMES = ("blue", "orange")
_TIE_BREAK_TICKS = 300 * TICKS_PER_SECOND


@dataclass(frozen=True)
class Course:
    """The limits of a match: playing time, score, overtime, kickoff."""

    regulation: float | None = 300.0  # playing time in seconds; None for no end, the clock then counts up
    max_score: int = 0  # goals that end the match at once; 0 for no limit
    skip_replays: bool = False  # go from GoalScored to Countdown directly
    max_overtime: float = math.inf  # overtime in seconds after which it is a draw
    # seconds a kickoff may stay untouched before the match is ended as it stands; without it two idle
    # cars would play for ever. Setting the ball begins to count anew
    max_kickoff: float = math.inf
    # seconds after the end of time that the ball may stay off the floor; then it counts as down. A ball
    # pinned to a wall by cars stayed up for 28 minutes. The real game has no such limit
    max_hang: float = math.inf
    # who wins after 5 minutes of overtime: "first", the team that scored first, or a team drawn by lot
    # where nobody has; "random", a team drawn by lot; None where overtime goes on
    tie_break: str | None = None
    # seconds from the first packet on after which the match ends, kickoffs and replays included. More
    # goals decide, then more shots [RLBot wiki]. None for no such limit
    max_time: float | None = None
    instant: bool = False  # whether kickoffs have no countdown


@dataclass
class Referee:
    """Decides the phase of every tick.

        Countdown 480 -> Kickoff until touched -> Active until a goal or the end of time
            ^                                        |
            +---- Replay 1080 <- GoalScored 360 <----+------> Ended

    The clock starts at the first touch after a kickoff and stands still in every phase but Active
    [measured in real replays]. At zero the ball is played until it meets the floor.
    """

    course: Course
    phase: int = Phase.COUNTDOWN
    score: list[int] = field(default_factory=lambda: [0, 0])
    overtime: bool = False
    clock: int = 0  # in-game clock, ticks: counts down in regulation, else up
    ended_by: str | None = None  # why the match is over, or will be after this GoalScored; None before that
    # ticks after GO at which the phase turns Active though nobody has touched the ball; the clock waits
    # for the touch all the same. None: the phase waits as well
    kickoff_ticks: int | None = None
    after_goal: bool = False  # whether there has been a goal since the latest countdown
    lot: int = BLUE  # team that wins where a team is drawn by lot
    tie_winner: int | None = None  # team that has won though the score is a draw, None where nobody has
    _first_scorer: int | None = field(default=None, init=False, repr=False)
    _ticks: int = field(default=0, init=False, repr=False)  # in this phase; since GO while untouched
    _hung: int = field(default=0, init=False, repr=False)  # ticks since time was up
    _untouched: bool = field(default=False, init=False, repr=False)  # Active, and nobody has touched the ball
    _lain: int = field(default=0, init=False, repr=False)  # ticks since GO, or since the ball was set

    def __post_init__(self) -> None:
        self._most_hung = self.course.max_hang * TICKS_PER_SECOND
        if self.course.regulation is not None:
            self.clock = round(self.course.regulation * TICKS_PER_SECOND)
        if self.course.instant and self.phase == Phase.COUNTDOWN:
            self.phase = Phase.KICKOFF

    @property
    def timed(self) -> bool:
        """Tell whether the clock counts down now."""
        return self.course.regulation is not None and not self.overtime

    @property
    def waits_for_floor(self) -> bool:
        """Tell whether time is up and the ball has yet to meet the floor."""
        return self.phase == Phase.ACTIVE and self.timed and self.clock <= 1 and not self._untouched

    @property
    def winner(self) -> str:
        """Name the team that leads: "blue", "orange" or "draw"."""
        blue, orange = self.score
        if blue == orange:
            return "draw" if self.tie_winner is None else TEAM_NAMES[self.tie_winner]
        return TEAM_NAMES[ORANGE if orange > blue else BLUE]

    def advance(self, touched: bool, goal_for: int | None, on_floor: bool) -> None:
        """Go on by one tick; `on_floor`, that the ball met the floor, is read while `waits_for_floor`."""
        self._ticks += 1
        if self.phase == Phase.KICKOFF or self._untouched:
            self._kick_off(touched, goal_for)
        elif self.phase == Phase.ACTIVE:
            self._play(goal_for, on_floor)
        elif self.phase == Phase.COUNTDOWN and self._ticks >= COUNTDOWN_TICKS:
            self._enter(Phase.KICKOFF)
        elif self.phase == Phase.GOAL_SCORED and self._ticks >= GOAL_SCORED_TICKS:
            if self.ended_by is not None:
                self._enter(Phase.ENDED)
            else:
                self._enter(Phase.COUNTDOWN if self.course.skip_replays else Phase.REPLAY)
        elif self.phase == Phase.REPLAY and self._ticks >= REPLAY_TICKS:
            self._enter(Phase.COUNTDOWN)

    def ball_set(self) -> None:
        """Note that a client has put the ball somewhere: an untouched kickoff begins anew."""
        self._lain = 0

    def kick_off_again(self) -> None:
        """Go to the countdown of the next kickoff, whatever the phase."""
        self.ended_by = None
        self._enter(Phase.COUNTDOWN)

    @property
    def countdown(self) -> float:
        """Return the seconds until the kickoff's GO; 0 in other phases."""
        left = COUNTDOWN_TICKS - self._ticks if self.phase == Phase.COUNTDOWN else 0
        return left / TICKS_PER_SECOND

    def end(self, reason: str) -> None:
        """End the match now, whatever its phase."""
        self.ended_by = reason
        self._enter(Phase.ENDED)

    def _kick_off(self, touched: bool, goal_for: int | None) -> None:
        self._lain += 1
        if goal_for is not None:
            self._goal(goal_for)
        elif touched:
            self._enter(Phase.ACTIVE)
        elif self._lain >= self.course.max_kickoff * TICKS_PER_SECOND:
            self.end("kickoff not touched")
        elif self.kickoff_ticks is not None and self._ticks >= self.kickoff_ticks:
            self.phase = Phase.ACTIVE
            self._untouched = True

    def _play(self, goal_for: int | None, on_floor: bool) -> None:
        if not self.timed:
            self.clock += 1
        elif self.clock > 0:
            self.clock -= 1
        if goal_for is not None:
            self._goal(goal_for)
        elif self.overtime:
            if self.course.tie_break is not None and self.clock >= _TIE_BREAK_TICKS:
                first = self._first_scorer if self.course.tie_break == "first" else None
                self.tie_winner = self.lot if first is None else first
                self.end("overtime tie-break")
            elif self.clock >= self.course.max_overtime * TICKS_PER_SECOND:
                self.end("max overtime: draw")
        elif self.timed and self.clock == 0 and not (on_floor or self._hung >= self._most_hung):
            self._hung += 1
        elif self.timed and self.clock == 0:
            if self.score[BLUE] != self.score[ORANGE]:
                self.end("time")
            else:
                self._enter(Phase.COUNTDOWN)

    def _goal(self, team: int) -> None:
        self.score[team] += 1
        if self._first_scorer is None:
            self._first_scorer = team
        self.after_goal = True
        limit = self.course.max_score
        if self.overtime:
            self.ended_by = "overtime goal"
        elif limit and self.score[team] >= limit:
            self.ended_by = "max score"
        elif self.timed and self.clock == 0 and self.score[BLUE] != self.score[ORANGE]:
            self.ended_by = "time"
        self._enter(Phase.GOAL_SCORED)

    def _enter(self, phase: int) -> None:
        self.phase = phase
        self._ticks = self._lain = 0
        self._untouched = False
        if phase == Phase.COUNTDOWN:
            self.after_goal = False
        if phase == Phase.COUNTDOWN and self.timed and self.clock == 0:
            self.overtime = True  # shown from the first packet of the countdown on [replays]
        if phase == Phase.COUNTDOWN and self.course.instant:
            self.phase = Phase.KICKOFF


_OWN_GOAL_TICKS: Final = 4 * TICKS_PER_SECOND
"""A goal after a defender's touch still counts for an attacker who touched the ball this shortly
before [RocketSim's event tracker gives goals within 4 s]."""

_HAT_TRICK: Final = 3
"""Goals, assists or saves of a car that have a name of their own: HatTrick, Playmaker, Savior."""

_CREDITED: Final = {
    "Assist": ("assists", "Playmaker"), "Shot": ("shots", ""), "Save": ("saves", "Savior"),
    "Demolish": ("demolitions", ""),
}  # fmt: skip
"""The counts that an event goes to, and what the third one of a car is called."""

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

    `accolades` are names of each car's events in the present tick [flatbuffers, `PlayerInfo.accolades`]:
    BallHit, FirstTouch, Shot, Save, Savior, Assist, Playmaker, Goal, OvertimeGoal, HatTrick, OwnGoal,
    Demolish, Win, Loss.
    """

    def __init__(self, teams: list[int]) -> None:
        cars = len(teams)
        self._teams = teams
        self._last_touch = [-1] * cars  # frame of each car's latest touch since the kickoff
        self._last_toucher: int | None = None
        self._scorer: int | None = None
        self.touches = [0] * cars  # see `is_new_touch`
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

    def credit(self, car: int, name: str) -> None:
        """Count an Assist, unless the same car has scored, or a Shot, a Save or a Demolish of a car."""
        which, third = _CREDITED[name]
        if name == "Assist" and self._scorer in (None, car):
            return
        counts: list[int] = getattr(self, which)
        counts[car] += 1
        self._honour(car, name)
        self._honour_third(car, counts, third)
        self._renew(car)

    def shots_of(self, team: int) -> int:
        """Return the shots of a team."""
        return sum(shots for shots, its_team in zip(self.shots, self._teams, strict=True) if its_team == team)

    def end(self, winner: int | None) -> None:
        """Note who has won the match, None for a draw."""
        for car, team in enumerate(self._teams if winner is not None else ()):
            self._honour(car, "Win" if team == winner else "Loss")

    def _honour(self, car: int, *names: str) -> None:
        self.accolades[car] = [*self.accolades[car], *names]  # packets keep the list before
        self._honoured.append(car)

    def _honour_third(self, car: int, counts: list[int], name: str) -> None:
        if name and counts[car] == _HAT_TRICK:
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
