"""A match that is read twice: in its simulator, and as packets."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rlbot import flat
from rlgym.rocket_league.api import GameConfig, GameState
from rlgym.rocket_league.sim import RocketSimEngine

from rlgym_bridge.components.actions import LookupTableAction
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.game import HITBOX_OF_BODY, PLAYING_PHASES, Phase
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.policy.chaser import Chaser
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.game.rules import Physics
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.sim.simulator import ROCKETSIM2
from tests.parity.scenes import Director

MUTATORS = flat.MatchConfiguration(mutators=flat.MutatorSettings())


class Truth:
    """Read the simulator's state of a match: RocketSim 2.2.1 by RLGym's own engine, RocketSim 3 as it is."""

    def __init__(self, match: Match, hitboxes: Sequence[int] = ()) -> None:
        self._match = match
        self._hitboxes = list(hitboxes) or [0] * len(match.teams)
        self._engine: RocketSimEngine[Any] = RocketSimEngine()
        self._engine._game_config = GameConfig()
        self._engine._game_config.gravity = 1.0

    def read(self) -> GameState[Any]:
        """Return the present state; touches are those of the latest tick."""
        simulation = self._match.simulation
        if not isinstance(simulation.simulator, RocketSim2):
            state = simulation.state.copy()
            state.frame[:] = self._match.frame
            return to_rlgym(state)
        engine, arena = self._engine, simulation.simulator._matches[0]
        cars = arena.reader.cars
        engine._arena = arena.arena
        names = [f"{('blue', 'orange')[car.team]}-{car.id}" for car in cars]
        engine._cars = dict(zip(names, cars, strict=True))
        engine._agent_ids = {car.id: name for name, car in engine._cars.items()}
        engine._hitboxes = {car.id: box for car, box in zip(cars, self._hitboxes, strict=True)}
        touched = simulation.events.touches
        engine._touches = {car.id: touched.count(slot) for slot, car in enumerate(cars)}
        engine._tick_count = self._match.frame
        return engine._get_state()


def make_match(
    team_size: int,
    seed: int,
    seconds: float = 1e6,
    hitboxes: Sequence[int] = (),
    dialect: ProtocolVariant | None = None,
    thrust: bool = False,
    simulator: str = ROCKETSIM2,
) -> Match:
    """Return a match of equal teams without replays, in Octanes where no hitboxes are given.

    `seconds` are of playing time; `thrust` gives rocketsim2 the game's boost in the air, which RLGym's engine
    has not.
    """
    bodies = {box: body for body, box in HITBOX_OF_BODY.items()}
    players = []
    for slot in range(2 * team_size):
        loadout = flat.PlayerLoadout(car_id=bodies[hitboxes[slot]] if hitboxes else 23)
        bot = flat.CustomBot(f"{slot}", agent_id=f"a/{slot}", loadout=loadout)
        players.append(flat.PlayerConfiguration(bot, slot // team_size))
    config = flat.MatchConfiguration(player_configurations=players)
    course = Course(regulation=seconds, skip_replays=True)
    physics = Physics(thrust=thrust, simulator=simulator)
    return Match(seat_players(config).cars, course=course, physics=physics, seed=seed, dialect=dialect)


def through_bytes(packet: flat.GamePacket) -> flat.GamePacket:
    """Return a packet as a client gets it."""
    message = flat.CorePacket.unpack(flat.CorePacket(packet).pack()).message
    assert isinstance(message, flat.GamePacket)  # what was packed
    return message


def with_fields(one: Any, **values: Any) -> Any:
    """Return a copy of a flatbuffer object with some fields changed; they cannot be written."""
    names = [name for name in dir(one) if not name.startswith("_") and name not in ("pack", "unpack")]
    return type(one)(**{name: getattr(one, name) for name in names} | values)


def drive(match: Match, seed: int, director: Director | None = None) -> Iterator[flat.GamePacket]:
    """Play a match from its first packet on with Chasers that do something random now and then; yield
    packets.
    """
    rng = np.random.default_rng(seed)
    cars = len(match.teams)
    chaser, parser, decoder = Chaser(seed), LookupTableAction(), Decoder(field_info(), shadow=False)
    until, drawn = [0] * cars, [0] * cars
    last_phase = -1
    while True:
        packet = match.packet()
        yield packet
        state, phase = decoder.update(packet), match.referee.phase
        if phase != last_phase and phase == Phase.KICKOFF:
            chaser.reset(range(cars), match.frame)
        last_phase = phase
        if match.frame % 8 == 0 and phase in PLAYING_PHASES:
            actions = chaser.act(None, state)[0]
            for slot in range(cars):
                if match.frame >= until[slot] and rng.random() < 0.02:
                    until[slot] = match.frame + int(rng.integers(60, 240))
                if rng.random() < 0.3:
                    drawn[slot] = int(rng.integers(90))
                action = drawn[slot] if match.frame < until[slot] else int(actions[slot])
                row = parser.parse_batch(np.array([[action]]))[0, 0, 0].tolist()
                match.hold(slot, flat.ControllerState(*row[:5], *(value > 0 for value in row[5:]), False))
        if director is not None:
            if phase in PLAYING_PHASES:
                for slot, pressed in director.inputs().items():
                    match.hold(slot, pressed)
            else:
                director.stop()
        match.advance()
