"""Matches for the tests, with and without a network."""

import math
import random
from collections.abc import Sequence
from pathlib import Path

import RocketSim as rsim
from rlbot import flat

from rlgym_bridge.dialect import Dialect
from rlgym_bridge.game import Phase
from rlgym_bridge.server.game.match_physics import Physics
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.game.roster import AgentSeat, seat_players
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.game.simulation import OnKickoff

HERE = Path(__file__).parent


def player(team: int, kind: str = "ball", name: str = "Bot", **fields: object) -> flat.PlayerConfiguration:
    """Return a bot of `simple_bots.py`."""
    bot = flat.CustomBot(
        name=name, root_dir=str(HERE), run_command=f"python simple_bots.py {kind}", agent_id=f"test/{kind}"
    )
    for field, value in fields.items():
        setattr(bot, field, value)
    return flat.PlayerConfiguration(bot, team, 0)


def match_of(*players: flat.PlayerConfiguration, **fields: object) -> flat.MatchConfiguration:
    """Return a match that launches its bots and skips replays."""
    configuration = flat.MatchConfiguration(
        player_configurations=list(players), auto_start_agents=True, wait_for_agents=True, skip_replays=True
    )
    for field, value in fields.items():
        setattr(configuration, field, value)
    return configuration


def seats(team_size: int = 1, bodies: Sequence[int] = ()) -> list[AgentSeat]:
    """Return the seats of a match of `team_size` against `team_size`."""
    players = []
    for slot in range(2 * team_size):
        one = player(slot // team_size)
        if bodies:
            one.variety.loadout = flat.PlayerLoadout(car_id=bodies[slot])
        players.append(one)
    return seat_players(match_of(*players)).cars


def kicked_off(
    team_size: int = 1,
    seed: int = 1,
    course: Course | None = None,
    bodies: Sequence[int] = (),
    on_kickoff: OnKickoff | None = None,
    physics: Physics | None = None,
    **dialect: str,
) -> Match:
    """Return a match at its first Kickoff packet; it speaks the dialect named by point.

    Of the countdown only the first packet is built.
    """
    match = Match(
        seats(team_size, bodies), course, physics, seed=seed, on_kickoff=on_kickoff, dialect=Dialect(dialect)
    )
    match.packet()
    while match.referee.phase != Phase.KICKOFF:
        match.advance()
    match.packet()
    return match


def to_phase(match: Match, phase: int, limit: int = 5000) -> flat.GamePacket:
    """Go on until a phase, building every packet; return its first packet."""
    packet = match.packet()
    for _ in range(limit):
        if match.referee.phase == phase:
            return as_received(packet)
        match.advance()
        packet = match.packet()
    raise AssertionError(f"phase {phase} did not come in {limit} ticks, it is {match.referee.phase}")


def go_on(match: Match, ticks: int = 1) -> flat.GamePacket:
    """Go on by some ticks, building every packet; return the last one."""
    for _ in range(ticks):
        match.advance()
        packet = match.packet()
    return as_received(packet)


def as_received(packet: flat.GamePacket) -> flat.GamePacket:
    """Return a packet as a client sees it: packed and unpacked, in float32."""
    return flat.GamePacket.unpack(packet.pack())


def input_of(one: flat.ControllerState | rsim.CarControls) -> tuple[float, ...]:
    """Return the eight controls, to be compared."""
    return (
        one.throttle, one.steer, one.pitch, one.yaw, one.roll, one.jump, one.boost, one.handbrake
    )  # fmt: skip


def place_of(vector: flat.Vector3 | rsim.Vec) -> tuple[float, float, float]:
    """Return the three numbers of a vector, to be compared."""
    return (vector.x, vector.y, vector.z)


def controls(**values: float | bool) -> flat.ControllerState:
    """Return an input; what is not named is neutral."""
    return flat.ControllerState(**values)


def random_controls(generator: random.Random) -> flat.ControllerState:
    """Return an input that drives, turns, jumps, dodges and boosts."""
    axis = lambda: generator.choice((-1.0, 0.0, 1.0, generator.uniform(-1.0, 1.0)))  # noqa: E731
    return flat.ControllerState(
        throttle=generator.choice((1.0, 1.0, -1.0)), steer=axis(), pitch=axis(), yaw=axis(), roll=axis(),
        jump=generator.random() < 0.3, boost=generator.random() < 0.6, handbrake=generator.random() < 0.1,
    )  # fmt: skip


def chase(match: Match, slot: int, jump: bool = False) -> flat.ControllerState:
    """Return an input that drives at the ball with full boost."""
    ball, state = match.simulation.ball.pos, match.simulation.states[slot]
    turn = math.atan2(ball.y - state.pos.y, ball.x - state.pos.x) - state.rot_mat.as_angle().yaw
    turn = (turn + math.pi) % (2.0 * math.pi) - math.pi
    return flat.ControllerState(
        throttle=1.0, steer=min(1.0, max(-1.0, 2.0 * turn)), boost=abs(turn) < 0.3, jump=jump
    )


def put_car(
    match: Match, slot: int, position: Sequence[float], velocity: Sequence[float] = (0.0, 0.0, 0.0),
    yaw: float = 0.0, boost: float = 100.0,
) -> None:  # fmt: skip
    """Set a car down; it is seen in the packet after the next tick."""
    state = rsim.CarState()
    state.pos, state.vel = rsim.Vec(*position), rsim.Vec(*velocity)
    state.rot_mat = rsim.Angle(yaw, 0.0, 0.0).as_rot_mat()
    state.boost = boost
    state.is_supersonic = math.hypot(*velocity) > 2200.0
    match.simulation.cars[slot].set_state(state)


def put_car_high(match: Match, slot: int = 0) -> None:
    """Lift a car as it is, so that it stays in the air for more than a second."""
    state = match.simulation.cars[slot].get_state()
    state.pos = rsim.Vec(state.pos.x, state.pos.y, 1700)
    match.simulation.cars[slot].set_state(state)


def put_ball(match: Match, position: Sequence[float], velocity: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
    """Set the ball; it is seen in the packet after the next tick."""
    state = rsim.BallState()
    state.pos, state.vel = rsim.Vec(*position), rsim.Vec(*velocity)
    match.simulation.arena.ball.set_state(state)
