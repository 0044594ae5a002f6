"""Scores of teams and players."""

from typing import Final

from rlgym_bridge.game import BLUE, ORANGE, PLAYING_PHASES, Phase
from tests.packet_checker.findings import Findings, Step
from tests.packet_checker.phases import NAMES, Phases
from tests.packet_checker.touches import Touches

_NUMBERS: Final = ("score", "goals", "own_goals", "assists", "saves", "shots", "demolitions")


class Scores:
    """Follows the scoreboard."""

    def __init__(self, phases: Phases, touches: Touches) -> None:
        self._phases = phases
        self._touches = touches
        self._infos: list[tuple[int, ...]] = []
        self._score = (0, 0)
        self._uncredited = [0, 0]  # goals of each team that no player's numbers hold

    def see(self, step: Step, findings: Findings) -> None:
        """Read a packet; touches have been read."""
        packet = step.packet
        teams = [(team.team_index, team.score) for team in packet.teams]
        if [index for index, _ in teams] != [BLUE, ORANGE]:
            findings.add("teams", f"of team_index {[index for index, _ in teams]}", "blue, 0, and orange, 1")
            return
        score = (teams[0][1], teams[1][1])
        infos = [
            (one.score, one.goals, one.own_goals, one.assists, one.saves, one.shots, one.demolitions)
            for one in [player.score_info for player in packet.players]
        ]
        if step.before is None:
            self._score, self._infos = score, infos
            self._uncredited = self._without_player(step, score)
            if min(score) < 0 or min((min(info) for info in infos), default=0) < 0:
                findings.add("scores", [score, infos], "0 or more")
            return
        goal = step.phase != step.phase_before and step.phase == Phase.GOAL_SCORED
        if score != self._score or goal:
            self._team_scores(step, score, goal, findings)
        if infos != self._infos:
            self._numbers(infos, findings)
        if goal or score != self._score or infos != self._infos:
            self._credits(step, score, goal, findings)
        self._score, self._infos = score, infos

    def _team_scores(self, step: Step, score: tuple[int, int], goal: bool, findings: Findings) -> None:
        rise = (score[0] - self._score[0], score[1] - self._score[1])
        for team in (BLUE, ORANGE):
            if rise[team] < 0:
                findings.add(f"teams[{team}].score", score[team], f"{self._score[team]} or more")
        if not step.exact:
            return
        if goal and sorted(rise) != [0, 1]:
            findings.add("teams.score", f"{self._score} -> {score}", "one goal more at GoalScored")
        if any(rise) and not (goal and step.phase_before in PLAYING_PHASES):
            findings.add(
                "teams.score", f"{self._score} -> {score} in {NAMES[step.phase]}", "goals at GoalScored only"
            )
        if goal and rise in ((1, 0), (0, 1)) and step.packet.balls and step.followed:
            y = step.packet.balls[0].physics.location.y
            if (y > 0) != (rise == (1, 0)):
                team = ("blue", "orange")[rise.index(1)]
                findings.add("balls[0].physics.location.y", y, f"the goal that {team} scored in")

    def _numbers(self, infos: list[tuple[int, ...]], findings: Findings) -> None:
        for slot, (info, before) in enumerate(zip(infos, self._infos, strict=False)):
            for name, value, earlier in zip(_NUMBERS, info, before, strict=True):
                if value < earlier:
                    findings.add(f"players[{slot}].score_info.{name}", value, f"{earlier} or more")

    def _credits(self, step: Step, score: tuple[int, int], goal: bool, findings: Findings) -> None:
        """Goals of a team are its players' goals and the others' own goals, but for untouched ones."""
        uncredited = self._without_player(step, score)
        touched = self._touches.since_go or (
            step.phase_before == Phase.ACTIVE and self._phases.active_means_touched
        )
        for team in (BLUE, ORANGE):
            rise = uncredited[team] - self._uncredited[team]
            if rise and not (rise == 1 and ((goal and not touched) or not step.exact)):
                findings.add(
                    f"teams[{team}].score", score[team],
                    f"{score[team] - rise}: as many more as players' goals and the others' own_goals",
                )  # fmt: skip
        self._uncredited = uncredited

    @staticmethod
    def _without_player(step: Step, score: tuple[int, int]) -> list[int]:
        left = list(score)
        for player in step.packet.players:
            if player.team in (BLUE, ORANGE):
                left[player.team] -= player.score_info.goals
                left[1 - player.team] -= player.score_info.own_goals
        return left
