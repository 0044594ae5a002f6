"""One run: a match of set situations and free play, every tick compared."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rlbot import flat
from rlgym.rocket_league.api import Car, GameState

from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.game import BALL_RADIUS, PLAYING_PHASES, WHEELS, Phase
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.protocol_variant import ProtocolVariant
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.sim.simulator import ROCKETSIM2
from tests.parity.fields import Comparison, known_of, row_of
from tests.parity.scenes import SCENES, Director, Scene
from tests.parity.world import MUTATORS, Truth, drive, make_match, through_bytes
from tests.support.stepped_match import ball_of, car_of

Peer = Callable[[flat.GamePacket], GameState[Any]]


@dataclass
class Loss:
    """Packets that do not arrive: a share of all, 0..1, in bursts of some in a row."""

    share: float = 0.0
    burst: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        self._random, self._left = random.Random(self.seed), 0

    def takes(self) -> bool:
        """Tell whether the next packet is lost."""
        if self._left == 0 and self._random.random() < self.share / self.burst:
            self._left = self.burst
        self._left = max(0, self._left - 1) if (lost := self._left > 0) else 0
        return lost


@dataclass
class Run:
    """Count the contents of a run by name, and hold a comparison for each reader."""

    counts: dict[str, int] = field(default_factory=dict)
    readers: dict[str, Comparison] = field(default_factory=dict)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a count; it is there from the first time on, be it 0."""
        self.counts[name] = self.counts.get(name, 0) + number


def run(
    ticks: int,
    team_size: int = 1,
    seed: int = 0,
    *,
    scenes: Sequence[Scene] = SCENES,
    hitboxes: Sequence[int] = (),
    readers: Sequence[str] = ("shadow",),
    loss: Loss | None = None,
    dialect: ProtocolVariant | None = None,
    simulator: str = ROCKETSIM2,
    into: Run | None = None,
) -> Run:
    """Play until `ticks` ticks of play are compared, with set situations in turns, and return or extend a
    run.

    Readers are "shadow", "counting", "compat", "compat with SimExtraInfo"; `loss` takes packets from them.
    """
    result = into or Run()
    match = make_match(team_size, seed, hitboxes=hitboxes, dialect=dialect, simulator=simulator)
    engine = Truth(match, hitboxes)
    director = Director(match, seed, scenes) if scenes else None
    peers = {name: _reader(name, simulator) for name in readers}
    for name in readers:
        result.readers.setdefault(name, Comparison(2 * team_size))
    last_phase, done = -1, 0
    edges = [False] * 2 * team_size
    before: list[Car[Any]] = []
    for sent in drive(match, seed, director):
        lost = loss is not None and loss.takes()
        phase = match.referee.phase
        result.count("goals", phase != last_phase and phase == Phase.GOAL_SCORED)
        last_phase = phase
        playing = phase in PLAYING_PHASES
        theirs = engine.read() if playing else None
        if theirs is not None:
            done += 1
            before = _count_events(result, match, theirs, before)
        if not lost:
            packet = through_bytes(sent)
            expected = row_of(theirs) if theirs is not None else None
            wrecks = _over_wrecks(theirs) if theirs is not None else []
            for name, read in peers.items():
                game, known = read(packet)
                if expected is not None:
                    result.readers[name].add(match.frame, expected, row_of(game), known, wrecks, edges)
        edges = _at_edge(match, hitboxes)  # wheels are found before a tick moves anything
        if done >= ticks:
            break
    result.count("ticks", done)
    for comparison in result.readers.values():
        comparison.finish()
    return result


_EDGE = 0.2  # uu; angles rounded in packets and RocketSim's collision margins move a wheel by less
_WRECK_REACH = 200.0  # uu between the middles of two cars, one of which may be under the other's wheels

Reading = tuple[GameState[Any], list[bool] | None]


def _reader(name: str, simulator: str) -> Callable[[flat.GamePacket], Reading]:
    if name in ("shadow", "counting"):
        decoder = Decoder(field_info(), MUTATORS, name == "shadow", simulator=simulator)
        judged = ("wheels_with_contact",) if name == "counting" else ()  # its best estimate

        def read(packet: flat.GamePacket) -> Reading:
            decoder.clear_touches()
            state = decoder.update(packet)
            return to_rlgym(state), known_of(state, judged)

        return read
    from rlgym_compat import GameState as CompatState
    from rlgym_compat.sim_extra_info import SimExtraInfo

    game = CompatState.create_compat_game_state(field_info(), MUTATORS)
    info = SimExtraInfo(field_info(), MUTATORS) if name.endswith("SimExtraInfo") else None

    def read_peer(packet: flat.GamePacket) -> Reading:
        game.reset_car_ball_touches()
        game.update(packet, info.get_extra_info(packet) if info is not None else None)
        return game, None

    return read_peer


def _at_edge(match: Match, hitboxes: Sequence[int]) -> list[bool]:
    """Tell of each car whether one of its wheels just touches the ball, or just does not."""
    centre = ball_of(match).position.astype(float)
    found = []
    for slot in range(len(match.teams)):
        car = car_of(match, slot)
        away = car.rotation.T.astype(float) @ (centre - car.position)  # in the car's own axes
        gaps = [
            _gap_to_ball(away - (x, side * y, z), reach)
            for x, y, z, reach in (WHEELS[hitboxes[slot] if hitboxes else 0])
            for side in (1, -1)
        ]
        found.append(min(gaps) < _EDGE)
    return found


def _gap_to_ball(away: np.ndarray, reach: float) -> float:
    """Return how far a wheel is from where its contact with the ball begins or ends, uu."""
    aside = float(np.hypot(away[0], away[1]))
    if aside >= BALL_RADIUS:
        return aside - BALL_RADIUS if away[2] < 0 else float("inf")
    return float(abs(-away[2] - (BALL_RADIUS**2 - aside**2) ** 0.5 - reach))


def _over_wrecks(game: GameState[Any]) -> list[bool]:
    """Tell of each car whether a demolished one may be under its wheels."""
    cars = list(game.cars.values())
    wrecks = [car.physics.position for car in cars if car.is_demoed]
    return [
        any(np.abs(car.physics.position - place).max() < _WRECK_REACH for place in wrecks) for car in cars
    ]


def _count_events(
    result: Run, match: Any, theirs: GameState[Any], before: Sequence[Car[Any]]
) -> list[Car[Any]]:
    events = match.simulation.events
    result.count("touches", len(events.touches))
    result.count("bumps", len(events.bumps))
    result.count("demolitions", len(events.demolitions))
    result.count("pad pickups", len(events.pads))
    cars: list[Car[Any]] = list(theirs.cars.values())
    for name in ("flip resets", "wall jumps", "auto-flips"):
        result.count(name, 0)
    for car, old in zip(cars, before, strict=False):
        position = car.physics.position
        result.count("flip resets", old.has_flipped and not car.has_flipped and position[2] > 300)
        result.count("wall jumps", car.has_jumped and not old.has_jumped and position[2] > 300)
        result.count("auto-flips", car.is_autoflipping and not old.is_autoflipping)
    result.count("car ticks on the ceiling", sum(c.on_ground and c.physics.position[2] > 1900 for c in cars))
    result.count(
        "car ticks on the roof", sum(c.physics.up[2] < -0.8 and c.physics.position[2] < 80 for c in cars)
    )
    result.count("car ticks with an empty tank", sum(car.boost_amount == 0 for car in cars))
    result.count("car ticks with a full tank", sum(car.boost_amount == 100 for car in cars))
    result.count("car ticks in the air", sum(not car.on_ground for car in cars))
    result.count("car ticks in a dodge", sum(car.is_flipping for car in cars))
    return cars
