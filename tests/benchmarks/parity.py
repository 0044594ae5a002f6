"""Does a bot see in a match what it saw in training? Every field, every tick, counted.

    python -m tests.benchmarks.parity [--ticks N] [--seed S] [--write docs/parity.md]

One match in RocketSim, played by Chaser with random actions mixed in. After every tick the same physical
state is read twice: by RLGym's `RocketSimEngine`, and as the server's packet, packed to bytes and
unpacked again, by our decoder and by rlgym-compat. All fields of all cars, the ball and the pads are
compared with RLGym's.
"""

import argparse
import datetime
import importlib.metadata
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rlbot import flat
from rlgym.rocket_league.api import Car, GameConfig, GameState
from rlgym.rocket_league.sim import RocketSimEngine

from rlgym_bridge.actions import LookupTableAction
from rlgym_bridge.chaser import Chaser
from rlgym_bridge.game import PLAYING_PHASES, Phase
from rlgym_bridge.live.decoder import Decoder
from rlgym_bridge.rlgym_view import to_rlgym
from rlgym_bridge.server.match import Match
from rlgym_bridge.server.packer import field_info
from rlgym_bridge.server.referee import Course
from rlgym_bridge.server.roster import seat_players

TOLERANCES = {
    "position": (2e-3, "uu; float32 at 5,000 uu resolves 5e-4"),
    "linear_velocity": (2e-3, "uu/s; likewise"),
    "angular_velocity": (2e-4, "rad/s"),
    "rotation_mtx": (3e-4, "Euler angles in float32 near vertical"),
    "boost_pad_timers": (2e-4, "s; RocketSim sums float32 ticks"),
    "default": (2e-4, "s, or the field's own unit"),
}
"""How far a number may be off, and why."""

_CAR_FIELDS = (
    "team_num", "hitbox_type", "ball_touches", "bump_victim_id", "demo_respawn_timer",
    "wheels_with_contact", "supersonic_time", "boost_amount", "boost_active_time", "handbrake",
    "is_jumping", "has_jumped", "is_holding_jump", "jump_time", "has_flipped", "has_double_jumped",
    "air_time_since_jump", "flip_time", "flip_torque", "is_autoflipping", "autoflip_timer",
    "autoflip_direction", "is_demoed", "is_boosting", "is_supersonic", "on_ground", "has_flip",
    "can_flip", "is_flipping",
)  # fmt: skip
_PHYSICS_FIELDS = ("position", "linear_velocity", "angular_velocity", "rotation_mtx")


@dataclass
class Tally:
    """Samples, mismatches and the worst difference of one field."""

    samples: int = 0
    mismatches: int = 0
    worst: float = 0.0

    def add(self, difference: float, tolerance: float) -> None:
        self.samples += 1
        if difference > tolerance:
            self.mismatches += 1
            self.worst = max(self.worst, difference)


@dataclass
class Run:
    """What a run held and found.

    Attributes:
        counts: Events of the run: ticks, touches, goals, ...
        ours, compat: A tally for each field.
    """

    counts: dict[str, int] = field(default_factory=dict)
    ours: dict[str, Tally] = field(default_factory=dict)
    compat: dict[str, Tally] = field(default_factory=dict)

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number


def numbers_of(game: GameState[Any]) -> Iterator[tuple[str, Any]]:
    """Yield each field of a game state by name, cars in their order."""
    yield "goal_scored", game.goal_scored
    yield "boost_pad_timers", game.boost_pad_timers
    for name in _PHYSICS_FIELDS:
        yield f"ball.{name}", getattr(game.ball, name)
    order = list(game.cars)
    for car in game.cars.values():
        for name in _CAR_FIELDS:
            value = getattr(car, name)
            if name == "bump_victim_id":
                value = -1 if value is None else order.index(value)
            yield f"car.{name}", value
        for name in _PHYSICS_FIELDS:
            yield f"car.{name}", getattr(car.physics, name)


def compare(theirs: GameState[Any], game: GameState[Any], tallies: dict[str, Tally]) -> None:
    """Add one tick: `game` against the engine's `theirs`."""
    for (name, expected), (_, got) in zip(numbers_of(theirs), numbers_of(game), strict=True):
        difference = np.abs(np.asarray(got, np.float64) - np.asarray(expected, np.float64)).max()
        tolerance = TOLERANCES.get(name.split(".")[-1], TOLERANCES["default"])[0]
        tallies.setdefault(name, Tally()).add(float(difference), tolerance)


class EngineOn:
    """RLGym's own engine reading the arena of a match."""

    def __init__(self, match: Match) -> None:
        self._match = match
        self._engine: RocketSimEngine[Any] = RocketSimEngine()
        self._engine._game_config = GameConfig()
        self._engine._game_config.gravity = 1.0

    def read(self) -> GameState[Any]:
        engine, simulation = self._engine, self._match.simulation
        engine._arena = simulation.arena
        names = [f"{('blue', 'orange')[car.team]}-{car.id}" for car in simulation.cars]
        engine._cars = dict(zip(names, simulation.cars, strict=True))
        engine._agent_ids = {car.id: name for name, car in engine._cars.items()}
        engine._hitboxes = {car.id: 0 for car in simulation.cars}
        touched = simulation.events.touches
        engine._touches = {car.id: touched.count(slot) for slot, car in enumerate(simulation.cars)}
        engine._tick_count = self._match.frame
        return engine._get_state()


def make_match(team_size: int, seed: int, seconds: float) -> Match:
    """Return a match of equal teams, in Octanes, without replays."""
    config = flat.MatchConfiguration(
        player_configurations=[
            flat.PlayerConfiguration(flat.CustomBot(f"{team}-{i}", agent_id=f"a/{team}{i}"), team)
            for team in (0, 1)
            for i in range(team_size)
        ]
    )
    course = Course(regulation=seconds, skip_replays=True)
    return Match(seat_players(config).cars, course=course, seed=seed)


def drive(match: Match, seed: int) -> Iterator[flat.GamePacket]:
    """Play a match with Chasers that do something random now and then; yield every packet."""
    rng = np.random.default_rng(seed)
    cars = len(match.simulation.cars)
    chaser, parser, decoder = Chaser(seed), LookupTableAction(), Decoder(field_info())
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
        match.advance()


def run(ticks: int, team_size: int = 1, seed: int = 0, compat: bool = True, shadow: bool = True) -> Run:
    """Play until `ticks` ticks of play are compared."""
    result = Run()
    match = make_match(team_size, seed, seconds=1e6)
    engine = EngineOn(match)
    decoder = Decoder(field_info(), flat.MatchConfiguration(mutators=flat.MutatorSettings()), shadow)
    peer = _peer() if compat else None
    last_phase = -1
    for sent in drive(match, seed):
        packet = through_bytes(sent)
        decoder.clear_touches()
        state = decoder.update(packet)
        other = peer(packet) if peer else None
        phase = match.referee.phase
        if phase in PLAYING_PHASES:
            theirs = engine.read()
            result.count("ticks")
            compare(theirs, to_rlgym(state), result.ours)
            if other is not None:
                compare(theirs, other, result.compat)
            _count_events(result, match, theirs)
        result.count("goals", phase != last_phase and phase == Phase.GOAL_SCORED)
        last_phase = phase
        if result.counts.get("ticks", 0) >= ticks:
            break
    return result


def through_bytes(packet: flat.GamePacket) -> flat.GamePacket:
    message = flat.CorePacket.unpack(flat.CorePacket(packet).pack()).message
    assert isinstance(message, flat.GamePacket)  # what was packed
    return message


def _count_events(result: Run, match: Match, theirs: GameState[Any]) -> None:
    events = match.simulation.events
    result.count("touches", len(events.touches))
    result.count("bumps", len(events.bumps))
    result.count("demolitions", len(events.demolitions))
    result.count("pads taken", len(events.pads))
    cars: list[Car[Any]] = list(theirs.cars.values())
    result.count("car ticks in the air", sum(not car.on_ground for car in cars))
    result.count("car ticks in a dodge", sum(car.is_flipping for car in cars))


def _peer() -> Callable[[flat.GamePacket], GameState[Any]]:
    from rlgym_compat import GameState as CompatState

    game = CompatState.create_compat_game_state(
        field_info(), flat.MatchConfiguration(mutators=flat.MutatorSettings())
    )

    def update(packet: flat.GamePacket) -> GameState[Any]:
        game.reset_car_ball_touches()
        game.update(packet)
        return game

    return update


def report(result: Run, command: str) -> str:
    """Return the run as Markdown."""
    packages = ("rlbot", "rlbot_flatbuffers", "rocketsim", "rlgym-rocket-league", "rlgym-compat", "numpy")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    lines = [
        "# Does a bot see in a match what it saw in training?",
        "",
        f"Made by `{command}` on {datetime.date.today().isoformat()} with {versions}, Python "
        f"{platform.python_version()}.",
        "",
        "One match in RocketSim, played by Chaser with random actions mixed in. After every tick of play",
        "the same physical state is read twice: by RLGym's `RocketSimEngine`, and as the match server's",
        "packet, packed to bytes and unpacked, by the live decoder (counting, without a shadow simulation)",
        "and by rlgym-compat without `SimExtraInfo`. This says nothing about the real client, whose packets",
        "may differ from the documented schema.",
        "",
        "The run: " + ", ".join(f"{number:,} {name}" for name, number in result.counts.items()) + ".",
        "",
        "| field | samples | mismatches, ours | worst | mismatches, rlgym-compat | worst |",
        "|---|---|---|---|---|---|",
    ]
    for name, ours in sorted(result.ours.items(), key=lambda item: (-item[1].mismatches, item[0])):
        peer = result.compat.get(name, Tally())
        lines.append(
            f"| {name} | {ours.samples:,} | {ours.mismatches:,} | {ours.worst:.3g} "
            f"| {peer.mismatches:,} | {peer.worst:.3g} |"
        )
    lines += ["", "Tolerances: " + "; ".join(f"{k} {v} ({why})" for k, (v, why) in TOLERANCES.items()) + "."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--ticks", type=int, default=20_000, help="ticks of play to compare (default: %(default)s)"
    )
    parser.add_argument("--team-size", type=int, default=1, help="cars a team (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="write the report to this file")
    options = parser.parse_args()
    command = (
        f"python -m tests.benchmarks.parity --ticks {options.ticks} "
        f"--team-size {options.team_size} --seed {options.seed}"
    )
    text = report(run(options.ticks, options.team_size, options.seed), command)
    if options.write:
        options.write.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
