"""Build RLBot v5 packets from the simulation and the counts of a match; every field is set.

"flatbuffers" stands for the docstrings of rlbot_flatbuffers 0.19.0.
"""

import math
from collections.abc import Mapping
from typing import Final

from rlbot import flat

from rlgym_bridge.dialect import Dialect
from rlgym_bridge.game import (
    BACK_WALL_Y,
    BIG_PAD_SECONDS,
    BIG_PAD_Z,
    BIG_PADS,
    BLUE,
    GOAL_CENTRE_Z,
    GOAL_HEIGHT,
    GOAL_WIDTH,
    ORANGE,
    PAD_POSITIONS,
    SMALL_PAD_SECONDS,
    SMALL_PAD_Z,
    TICKS_PER_SECOND,
)
from rlgym_bridge.server.game.player_info import Player, physics
from rlgym_bridge.server.game.referee import Referee
from rlgym_bridge.server.game.roster import AgentSeat
from rlgym_bridge.server.game.scoreboard import Scoreboard
from rlgym_bridge.server.game.simulation import Simulation

_NO_CHARGE: Final = -1  # `charge_level` of a ball that is not Dropshot's [flatbuffers]
_PHASES: Final = tuple(flat.MatchPhase(number) for number in range(8))
_PAD_THERE: Final = flat.BoostPadState(True, 0.0)
_NO_PAD: Final = flat.BoostPadState(False, 0.0)  # in a match without boost


def field_info() -> flat.FieldInfo:
    """Return the standard field: 34 pads sorted by y then x, and the two goals."""
    pads = [
        (y, x, number in BIG_PADS) for number, (x, y) in enumerate(PAD_POSITIONS)
    ]  # sorted as tuples, so by y and then by x [flatbuffers, `FieldInfo`]
    return flat.FieldInfo(
        boost_pads=[
            flat.BoostPad(flat.Vector3(x, y, BIG_PAD_Z if big else SMALL_PAD_Z), big)
            for y, x, big in sorted(pads)
        ],
        goals=[
            flat.GoalInfo(
                team_num=team,
                location=flat.Vector3(0.0, -side * BACK_WALL_Y, GOAL_CENTRE_Z),
                direction=flat.Vector3(0.0, side, 0.0),
                width=GOAL_WIDTH,
                height=GOAL_HEIGHT,
            )
            for team, side in ((BLUE, 1.0), (ORANGE, -1.0))
        ],
        tiles=[],
    )


class Packer:
    """Builds the packets of one match.

    `packet` has to be called for every frame, in order (see `Player`).
    """

    def __init__(
        self,
        simulation: Simulation,
        referee: Referee,
        scores: Scoreboard,
        seats: list[AgentSeat],
        dialect: Dialect | None = None,
    ) -> None:
        dialect = (dialect or Dialect()).complete()
        self._simulation = simulation
        self._referee = referee
        self._scores = scores
        self.players = [Player(seat, dialect) for seat in seats]
        self._mode = simulation.physics.mode
        self._hides_ball = dialect["ball_after_goal"] == "hidden"
        self._whole_clock = dialect["clock"] == "whole"
        numbers = range(len(PAD_POSITIONS))
        self._pad_seconds = [BIG_PAD_SECONDS if pad in BIG_PADS else SMALL_PAD_SECONDS for pad in numbers]
        if dialect["pad_timer"] == "remaining":
            self._pad_seconds = []  # it counts down, as the simulation's does
        order = sorted(numbers, key=lambda pad: PAD_POSITIONS[pad][::-1])
        self._place_of_pad = {pad: place for place, pad in enumerate(order)}
        self._new_pad = _PAD_THERE if simulation.physics.has_pads else _NO_PAD
        self._pads = [self._new_pad] * len(order)
        self._away: dict[int, int] = {}  # number in the state -> place in the packet
        self._shown_score = (0, 0)
        self._teams = [flat.TeamInfo(BLUE, 0), flat.TeamInfo(ORANGE, 0)]

    def kickoff(self) -> None:
        """Forget what a kickoff resets: all pads are back, all cars are new."""
        self._away.clear()
        self._pads = [self._new_pad] * len(self._pads)
        for player in self.players:
            player.kickoff()

    def restore(self) -> None:
        """Show the pads as the simulation has them, after it was put back to an earlier state."""
        self.kickoff()
        timers = self._simulation.state.pad_timer[0]
        self.pads_taken([pad for pad in self._place_of_pad if timers[pad] > 0.0])

    def take_over(self, earlier: "Packer", kept: Mapping[int, int]) -> None:
        """Go on with the pads and cars of another match; `kept` has slots here and there."""
        self._pads, self._away = list(earlier._pads), dict(earlier._away)
        for slot, before in kept.items():
            self.players[slot].take_over(earlier.players[before])

    def pads_taken(self, pads: list[int]) -> None:
        """Note the pads that were picked up in the latest tick."""
        for pad in pads:
            self._away[pad] = self._place_of_pad[pad]

    def packet(self, frame: int, inputs: list[flat.ControllerState]) -> flat.GamePacket:
        """Build the packet of a frame, with the input of each slot that was in force in the latest tick."""
        cars, infos, accolades = self._simulation.cars, self._scores.infos, self._scores.accolades
        players = [
            player.info(cars[slot], infos[slot], accolades[slot], inputs[slot], frame)
            for slot, player in enumerate(self.players)
        ]
        if self._away:
            self._update_pads()
        balls = [] if self._hides_ball and self._referee.after_goal else [self._ball()]
        return flat.GamePacket(players, self._pads, balls, self._match_info(frame), self._team_infos(), [])

    def _update_pads(self) -> None:
        """Show how long each taken pad is away: seconds since pickup [flatbuffers], or left."""
        timers = self._simulation.state.pad_timer[0].tolist()
        shown, away, seconds = self._pads, self._away, self._pad_seconds
        for number, place in list(away.items()):
            left = timers[number]
            if left <= 0.0:
                del away[number]
                shown[place] = _PAD_THERE
            elif seconds:
                shown[place] = flat.BoostPadState(False, seconds[number] - left)
            else:
                shown[place] = flat.BoostPadState(False, left)

    def _ball(self) -> flat.BallInfo:
        ball = physics(self._simulation.ball)
        return flat.BallInfo(ball, self._mode.shape, _NO_CHARGE, self._simulation.target_speed)

    def _match_info(self, frame: int) -> flat.MatchInfo:
        referee = self._referee
        clock = referee.clock / TICKS_PER_SECOND
        return flat.MatchInfo(
            frame / TICKS_PER_SECOND,
            math.ceil(clock) if self._whole_clock else clock,
            referee.overtime,
            referee.course.regulation is None,
            _PHASES[referee.phase],
            self._simulation.physics.gravity_z,
            self._simulation.physics.game_speed,
            0,  # last_spectated
            frame,
        )

    def _team_infos(self) -> list[flat.TeamInfo]:
        blue, orange = self._referee.score
        if self._shown_score != (blue, orange):
            self._shown_score = (blue, orange)
            self._teams = [flat.TeamInfo(BLUE, blue), flat.TeamInfo(ORANGE, orange)]
        return self._teams
