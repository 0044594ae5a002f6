"""Which simulator a match of the server plays in, and by which rules."""

import pytest
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.server import MatchCalledOff, MatchServer
from rlgym_bridge.server.game.rules import physics_of
from rlgym_bridge.server.net.hosted_match import HostedMatch
from rlgym_bridge.sim import simulator
from rlgym_bridge.sim.boost_thrust import GAME_BOOST_AIR
from rlgym_bridge.sim.game_rules import DEFAULT, ROCKETSIM
from rlgym_bridge.sim.rocketsim2 import RocketSim2
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3, SimulatorError
from tests.support.simulators import needs_native
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


def started(server: MatchServer, mode: str) -> HostedMatch:
    """Return a match of a server before its bots are launched."""
    configuration = match_of(player(0), player(1), game_mode=getattr(flat.GameMode, mode))
    return HostedMatch(server._lobby, server._settings, configuration, (server.host, server.port))


@needs_native
def test_a_match_plays_in_the_simulator_that_the_server_names() -> None:
    from rlgym_bridge.sim.rocketsim3 import RocketSim3

    for name, kind in ((ROCKETSIM2, RocketSim2), (ROCKETSIM3, RocketSim3)):
        with MatchServer(simulator=name) as server:
            assert isinstance(started(server, "Soccar")._match.simulation.simulator, kind)


@needs_native
def test_heatseeker_is_refused_where_the_server_names_rocketsim_3() -> None:
    with (
        MatchServer(simulator=ROCKETSIM3) as server,
        pytest.raises(SimulatorError, match="mode is Heatseeker, expected Soccar"),
    ):
        started(server, "Heatseeker")


@pytest.mark.parametrize(("mode", "line"), [
    ("Soccar", "rocketsim_batch of RocketSim 3 is not installed; install it: "),
    ("Heatseeker", "Heatseeker is played in RocketSim 2.2.1: RocketSim 3 plays"),
])  # fmt: skip
def test_a_line_at_the_start_says_why_a_match_does_not_play_in_the_default(
    mode: str, line: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with MatchServer() as server:
        started(server, mode)
        assert not caplog.records  # the default plays it
        monkeypatch.setattr(simulator, "DEFAULT_SIMULATOR", ROCKETSIM3)
        monkeypatch.setattr(simulator, "_has_module", lambda: False)
        hosted = started(server, mode)
    assert isinstance(hosted._match.simulation.simulator, RocketSim2)
    assert [record.message.count(line) for record in caplog.records] == [1]


def test_a_server_refuses_a_simulator_that_is_not_known() -> None:
    with pytest.raises(SimulatorError, match="simulator is 'rocketsim4', expected rocketsim2 or rocketsim3"):
        MatchServer(simulator="rocketsim4")


@needs_native
def test_a_match_that_fails_inside_its_simulator_is_called_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocketsim_batch.crash_folder", None)
    with MatchServer(simulator=ROCKETSIM3) as server:
        hosted = started(server, "Soccar")
        hosted._match.simulation.simulator._matches.panic_next(0)  # type: ignore[attr-defined]
        with pytest.raises(
            MatchCalledOff, match=r"failed inside the simulator and cannot go on: .*match 0: panicked"
        ):
            hosted._advance()
