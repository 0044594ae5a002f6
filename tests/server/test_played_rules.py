"""Which simulator a match of the server plays in, and by which rules."""

import pytest
from rlbot import flat

from rlgym_bridge.cli import main
from rlgym_bridge.server import MatchCalledOff, MatchServer
from rlgym_bridge.server.game.rules import physics_of
from rlgym_bridge.server.net.hosted_match import HostedMatch
from rlgym_bridge.sim import simulator
from rlgym_bridge.sim.rocketsim2 import GAME_BOOST_AIR, RocketSim2
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3, SimulatorError
from tests.support.simulators import needs_native
from tests.support.stepped_match import kicked_off, match_of, player


def test_thrust_is_a_constant_of_the_match() -> None:
    configuration = match_of(player(0), player(1))
    boosts = []
    for thrust in (False, True):
        match = kicked_off(physics=physics_of(configuration, None, thrust), simulator=ROCKETSIM2)
        assert isinstance(match.simulation.simulator, RocketSim2)
        config = match.simulation.simulator._matches[0].arena.get_mutator_config()
        boosts.append(config.boost_accel_air)
    assert boosts[1] / boosts[0] == pytest.approx(GAME_BOOST_AIR)


@pytest.mark.parametrize(
    "command",
    [["match", "--blue", "chaser"], ["match", "--server", "rlbot"], ["server"], ["field-test"],
     ["league", "chaser", "random"], ["evaluate", "chaser", "random"], ["ratings", "runs/x"],
     ["compare", "match.mcap"], ["view", "match.mcap"]],
    ids=lambda command: " ".join(command[:2]),
)  # fmt: skip
@pytest.mark.parametrize("rules", ["game", "default", "fast"])
def test_rules_get_one_sentence(command: list[str], rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*command, "--rules", rules])
    assert "--rules: rules of the game are no setting any more: leave them out" in capsys.readouterr().err


def test_the_real_game_takes_no_simulator(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "--server", "rlbot", "--simulator", "rocketsim2"]) == 2
    assert "--physics and --simulator change the simulated match" in capsys.readouterr().err


def started(server: MatchServer, mode: str) -> HostedMatch:
    """Return a match of a server before its bots are launched."""
    configuration = match_of(player(0), player(1), game_mode=getattr(flat.GameMode, mode))
    return HostedMatch(server._lobby, server, configuration, (server.host, server.port))


@needs_native
def test_a_match_plays_in_the_simulator_that_the_server_names() -> None:
    from rlgym_bridge.sim.rocketsim3 import RocketSim3

    for name, kind in ((ROCKETSIM2, RocketSim2), (ROCKETSIM3, RocketSim3)):
        with MatchServer(simulator=name) as server:
            assert isinstance(started(server, "Soccar")._match.simulation.simulator, kind)


@needs_native
def test_heatseeker_is_refused_where_rocketsim_3_is_named() -> None:
    with (
        MatchServer(simulator=ROCKETSIM3) as server,
        pytest.raises(SimulatorError, match="mode is Heatseeker, expected Soccar"),
    ):
        started(server, "Heatseeker")


@pytest.mark.parametrize(("mode", "line"), [
    ("Soccar", "rocketsim_batch of RocketSim 3 is not installed; install it: "),
    ("Heatseeker", "Heatseeker is played in RocketSim 2.2.1: RocketSim 3 plays"),
])  # fmt: skip
def test_a_line_at_the_start_says_why_it_is_not_the_default(
    mode: str, line: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with MatchServer() as server:
        monkeypatch.setattr(simulator, "is_installed", lambda name: name == ROCKETSIM2)
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
