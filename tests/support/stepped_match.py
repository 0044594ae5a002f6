"""Matches for the tests, with and without a network."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.rotations import angles_of, rotation_of
from rlgym_bridge.server import MatchResult, MatchServer
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.game.roster import AgentSeat, seat_players
from rlgym_bridge.server.game.rules import Physics
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.game.simulation import OnKickoff
from rlgym_bridge.state import derive
from tests.support.short_waits import shorten_countdown

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


def result_of(match: flat.MatchConfiguration, **settings: Any) -> MatchResult:
    """Play a match with its bots' processes, in lockstep where nothing else is said."""
    with MatchServer(**{"pace": "lockstep"} | settings) as server:
        return server.play(match)


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
    simulator: str | None = None,
    **dialect: str,
) -> Match:
    """Return a match at its first Kickoff packet; it speaks the dialect named by point.

    Its countdown lasts half a second, and only the first packet of it is built.
    """
    if simulator is not None:
        physics = replace(physics or Physics(), simulator=simulator)
    match = Match(
        seats(team_size, bodies),
        course,
        physics,
        seed=seed,
        on_kickoff=on_kickoff,
        dialect=ProtocolVariant(dialect),
    )
    match.packet()
    with pytest.MonkeyPatch.context() as patch:
        shorten_countdown(patch)
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


def input_of(one: flat.ControllerState) -> tuple[float, ...]:
    """Return the eight controls, to be compared."""
    return (
        one.throttle, one.steer, one.pitch, one.yaw, one.roll, one.jump, one.boost, one.handbrake
    )  # fmt: skip


def place_of(vector: flat.Vector3) -> tuple[float, float, float]:
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


class Seen:
    """The fields of a body in the simulation: numbers, or float32 arrays."""

    def __init__(self, match: Match, of: str, place: int | None = None) -> None:
        self._state, self._of, self._place = match.simulation.state.copy(), of, place

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._state, self._of + name)[0]
        value = value if self._place is None else value[self._place]
        return value if value.ndim else value.item()


def car_of(match: Match, slot: int) -> Seen:
    """Return what the simulation has of a car (`state.CAR_FIELDS`)."""
    return Seen(match, "car_", match.simulation.places[slot])


def ball_of(match: Match) -> Seen:
    """Return what the simulation has of the ball: position, rotation and both velocities."""
    return Seen(match, "ball_")


def chase(match: Match, slot: int, jump: bool = False) -> flat.ControllerState:
    """Return an input that drives at the ball with full boost."""
    away, car = ball_of(match).position, car_of(match, slot)
    away = away - car.position
    turn = math.atan2(away[1], away[0]) - angles_of(car.rotation.ravel())[1]
    turn = (turn + math.pi) % (2.0 * math.pi) - math.pi
    return flat.ControllerState(
        throttle=1.0, steer=min(1.0, max(-1.0, 2.0 * turn)), boost=abs(turn) < 0.3, jump=jump
    )


_STANDING_Z = 30.0  # uu, below which a car that is put somewhere stands on its wheels


def put_car(
    match: Match, slot: int, position: Sequence[float], velocity: Sequence[float] = (0.0, 0.0, 0.0),
    yaw: float = 0.0, boost: float = 100.0, rotation: Sequence[float] | None = None, **fields: Any,
) -> None:  # fmt: skip
    """Set a car down as a new one; `rotation` has nine numbers, `fields` are others of `state.CAR_FIELDS`."""
    state, place = match.simulation.state.copy(), match.simulation.places[slot]
    layout = state.layout
    first = layout.column("position", car=place)
    state.buffer[0, first : layout.column("controls", car=place)] = 0.0
    state.car_position[0, place], state.car_linear_velocity[0, place] = position, velocity
    state.car_rotation[0, place] = np.reshape(rotation or rotation_of(0.0, yaw, 0.0), (3, 3))
    state.car_boost_amount[0, place] = boost
    state.car_bump_victim[0, place] = -1
    state.car_wheels_with_contact[0, place] = position[2] < _STANDING_Z
    for name, value in fields.items():
        getattr(state, f"car_{name}")[0, place] = value
    derive(state)
    state.car_is_supersonic[0, place] = math.hypot(*velocity) > 2200.0
    match.simulation.set(state, [slot], ball=False)


def move_car(
    match: Match, slot: int, position: Sequence[float], velocity: Sequence[float] | None = None,
    yaw: float | None = None,
) -> None:  # fmt: skip
    """Move a car as it is; velocity and yaw are kept where none is given."""
    state, place = match.simulation.state.copy(), match.simulation.places[slot]
    state.car_position[0, place] = position
    if velocity is not None:
        state.car_linear_velocity[0, place] = velocity
    if yaw is not None:
        state.car_rotation[0, place] = np.reshape(rotation_of(0.0, yaw, 0.0), (3, 3))
    match.simulation.set(state, [slot], ball=False)


def put_car_high(match: Match, slot: int = 0) -> None:
    """Lift a car as it is, so that it stays in the air for more than a second."""
    x, y, _ = car_of(match, slot).position
    move_car(match, slot, (x, y, 1700.0))


def put_ball(
    match: Match, position: Sequence[float], velocity: Sequence[float] = (0.0, 0.0, 0.0),
    rotation: Sequence[float] = rotation_of(0.0, 0.0, 0.0), aims: bool = True,
) -> None:  # fmt: skip
    """Set the ball; where it does not aim on, a homing ball begins anew."""
    state = match.simulation.state.copy()
    state.ball_position[:], state.ball_linear_velocity[:] = position, velocity
    state.ball_rotation[0] = np.reshape(rotation, (3, 3))
    state.ball_angular_velocity[:] = 0.0
    match.simulation.set(state, [], ball=True)
    if not aims:
        state.ball_position[0, 2] += 1e-3  # a ball that is not moved aims on
        match.simulation.put(state)
