"""The match server plays by the thrust of the game, and by no other rule that corrects RocketSim 2.2.1."""

import pytest
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.game.rules import physics_of
from rlgym_bridge.sim.boost_thrust import GAME_BOOST_AIR
from rlgym_bridge.sim.game_rules import DEFAULT, ROCKETSIM
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.sim.simulator import ROCKETSIM2, SimulatorError
from tests.support.stepped_match import kicked_off, match_of, player


def test_thrust_is_a_constant_of_the_match() -> None:
    configuration = match_of(player(0), player(1))
    boosts = []
    for rules in ("rocketsim", "thrust"):
        match = kicked_off(physics=physics_of(configuration, None, rules), simulator=ROCKETSIM2)
        assert isinstance(match.simulation.simulator, RocketSim2)
        config = match.simulation.simulator._matches[0].arena.get_mutator_config()
        boosts.append(config.boost_accel_air)
    assert boosts[1] / boosts[0] == pytest.approx(GAME_BOOST_AIR)


def test_rules_that_only_compare_has_are_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SimulatorError, match="rules are game, expected rocketsim or default: only `compare`"):
        MatchServer(rules="game")
    for command in (
        ["match", "--blue", "chaser", "--orange", "chaser"],
        ["server"],
        ["league", "chaser", "random"],
    ):
        assert main([*command, "--rules", "game"]) == 2
        error = capsys.readouterr().err
        assert "rules are game, expected rocketsim or default" in error and "Traceback" not in error


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
