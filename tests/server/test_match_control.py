"""A control in the server's process drives cars, lets the match wait, and puts it back to an earlier tick."""

from collections.abc import Callable

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.server import ConfigError, MatchServer
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.game.roster import Roster
from rlgym_bridge.server.game.simulated_match import Match
from tests.support.stepped_match import seats

FORWARD = flat.ControllerState(throttle=1.0)


class Counting:
    """Drives the first car for some ticks, and waits a few times before each."""

    def __init__(self, ticks: int, waits: int = 0, stays: bool = True) -> None:
        self.stays, self._ticks, self._waits = stays, ticks, waits
        self.frames: list[int] = []
        self.asked = 0
        self.server: MatchServer | None = None

    def begin(self, match: Match, roster: Roster, hold: Callable[[int, flat.ControllerState], bool]) -> None:
        self.match, self.hold, self.names = match, hold, [car.name for car in roster.cars]

    def see(self, packet: flat.GamePacket) -> None:
        self.frames.append(packet.match_info.frame_num)

    def act(self) -> bool:
        self.asked += 1
        if self.asked % (self._waits + 1):
            return False
        assert self.hold(0, FORWARD)
        if len(self.frames) >= self._ticks and self.server is not None:
            self.server.stop()
        return True


def two_cars() -> flat.MatchConfiguration:
    players = [flat.PlayerConfiguration(flat.PsyonixBot(f"Car {team}"), team) for team in (0, 1)]
    return flat.MatchConfiguration(player_configurations=players, mutators=flat.MutatorSettings())


@pytest.mark.parametrize("waits", [0, 2])
def test_a_control_drives_cars_that_no_bot_has(waits: int) -> None:
    control = Counting(700, waits)
    with MatchServer(pace="lockstep", control=control) as control.server:
        result = control.server.play(two_cars())
    assert control.frames == list(range(len(control.frames))) and result.ended_by == "stopped"
    assert control.asked == len(control.frames) * (waits + 1)
    assert control.names == ["Car 0", "Car 1"]
    assert control.match.simulation.state.car_linear_velocity[0, 0].any()
    assert not control.match.simulation.state.car_linear_velocity[0, 1, :2].any()


def test_a_control_that_only_looks_needs_bots() -> None:
    with MatchServer(control=Counting(1, stays=False)) as server, pytest.raises(ConfigError, match="Psyonix"):
        server.play(two_cars())


@pytest.mark.odd_packets("the match is rewound")
def test_a_match_that_was_put_back_goes_on_alike() -> None:
    match = Match(seats(), Course(instant=True))
    for tick in range(300):
        match.hold(0, FORWARD)
        match.advance()
        if tick == 200:
            then, score = match.moment(), match.referee.clock
    after, frame = match.simulation.state.buffer.copy(), match.frame
    match.restore(then)
    assert match.referee.clock == score and match.frame == frame
    for _ in range(99):
        match.advance()
    assert np.isclose(match.simulation.state.buffer, after, atol=0.5).mean() > 0.98
    match.restore(then)  # a moment may be used again
    assert np.allclose(match.simulation.state.ball_position, then.state[match_ball(match)])


def match_ball(match: Match) -> slice:
    first = match.simulation.state.layout.column("ball_position")
    return slice(first, first + 3)


@pytest.mark.odd_packets("the match begins again")
def test_a_match_begins_again_with_or_without_its_score() -> None:
    match = Match(seats(), Course(instant=True))
    for _ in range(60):
        match.advance()
    match.referee.score[:], match.referee.clock = [2, 1], 500
    match.kick_off()
    assert match.referee.score == [2, 1] and match.referee.clock == 500
    assert match.referee.phase == Phase.KICKOFF  # without a countdown here
    match.referee.end("time")
    match.kick_off(anew=True)
    assert match.referee.score == [0, 0] and match.clock == 300.0 and match.referee.ended_by is None
    assert match.referee.phase == Phase.KICKOFF


def test_the_countdown_is_told_in_seconds() -> None:
    match = Match(seats())
    assert match.referee.countdown == 4.0
    for _ in range(120):
        match.advance()
    assert match.referee.countdown == 3.0
    for _ in range(360):
        match.advance()
    assert match.referee.phase == Phase.KICKOFF and match.referee.countdown == 0.0
