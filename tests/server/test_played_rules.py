"""The match server plays by the game's rules where it is asked to, and by RocketSim alone otherwise."""

import hashlib

import numpy as np
import pytest
import RocketSim as rsim
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.game.match_physics import Physics
from rlgym_bridge.server.game.rules import physics_of
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.sim.arena import make_arena
from rlgym_bridge.sim.boost_thrust import GAME_BOOST_AIR
from rlgym_bridge.sim.game_rules import DEFAULT, GAME, ROCKETSIM
from tests.support.stepped_match import kicked_off, match_of, player


def driven(match: Match, ticks: int = 120) -> Match:
    for slot in range(2):
        match.simulation.hold(slot, rsim.CarControls(throttle=1.0, steer=0.3, boost=True))
    for _ in range(ticks):
        match.advance()
    return match


def residues(match: Match) -> np.ndarray:
    """Return what is left of cars' velocities beyond whole hundredths of a uu/s, in those."""
    parts = np.abs([part for car in match.simulation.states for part in car.vel.as_tuple()])
    return np.asarray(parts[(parts > 1) & (parts < 1000)] * 100 % 1)


def test_a_match_by_the_games_rules_shows_them() -> None:
    left = residues(driven(kicked_off(physics=Physics(rules=GAME))))
    assert len(left) > 1 and np.allclose(left, 0.1, atol=0.03)
    assert not np.allclose(residues(driven(kicked_off())), 0.1, atol=0.03)


@pytest.mark.slow
def test_a_match_by_rules_is_the_same_twice() -> None:
    hashes = set()
    for _ in range(2):
        match = driven(kicked_off(physics=Physics(rules=GAME)), 240)
        packet = match.packet()
        hashes.add(hashlib.sha256(packet.pack()).hexdigest())
    assert len(hashes) == 1


def test_without_rules_rocketsim_steps_itself() -> None:
    arena, cars = make_arena([0])
    assert Physics().stepper(arena, cars, []) == arena.step


def test_a_match_by_rules_takes_a_gravity_that_is_set() -> None:
    match = kicked_off(physics=Physics(rules=frozenset({"velocity_cut", "wheels"})))
    match.simulation.set_gravity(-100.0)
    flying = match.simulation.states[0]
    flying.pos, flying.vel, flying.is_on_ground = rsim.Vec(0, 0, 800), rsim.Vec(0, 0, 0), False
    flying.wheels_with_contact = (False,) * 4
    match.simulation.set_car(0, flying)
    for _ in range(60):
        match.advance()
    assert match.simulation.states[0].vel.z == pytest.approx(-50, abs=1.5)


def test_thrust_is_a_constant_of_the_match() -> None:
    configuration = match_of(player(0), player(1))
    found = [physics_of(configuration, None, rules) for rules in ("rocketsim", "thrust")]
    arena, _ = make_arena([0])
    boosts = []
    for physics in found:
        physics.apply(arena)
        boosts.append(arena.get_mutator_config().boost_accel_air)
        arena.set_mutator_config(rsim.MutatorConfig(rsim.GameMode.SOCCAR))
    assert boosts[1] / boosts[0] == pytest.approx(GAME_BOOST_AIR)


def test_unknown_rules_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="rule 'fast' is unknown"):
        MatchServer(rules="fast")
    with pytest.raises(SystemExit, match="2"):
        main(["match", "--rules", "fast"])
    assert "rule 'fast' is unknown" in capsys.readouterr().err


def test_the_real_game_takes_no_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "--server", "rlbot", "--rules", "game"]) == 2
    assert "--physics and --rules change the simulated match" in capsys.readouterr().err


def test_rules_go_with_a_configuration() -> None:
    assert physics_of(match_of(player(0))).rules == DEFAULT
    assert physics_of(match_of(player(0)), None, "rocketsim").rules == ROCKETSIM
    assert isinstance(match_of(player(0)), flat.MatchConfiguration)
    assert physics_of(match_of(player(0)), None, "game").rules == GAME
