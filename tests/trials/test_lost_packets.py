"""The probe on a server whose packets do not all arrive."""

import threading
from contextlib import closing

import pytest

from rlgym_bridge.server import Impairments, MatchResult, MatchServer
from rlgym_bridge.trials.probe import Players, Probe, match_of_two


@pytest.mark.parametrize(
    "impairments", [Impairments(drop=5.0), Impairments(drop=30.0), Impairments(burst=3, drop=10.0)]
)
def test_lockstep_does_not_wait_for_a_lone_cars_packet(
    impairments: Impairments,
) -> None:
    results: list[MatchResult] = []
    with MatchServer(pace="lockstep", impairments=impairments) as server:
        thread = threading.Thread(target=lambda: results.append(server.play(match_of_two())), daemon=True)
        thread.start()
        with closing(Players((server.host, server.port), patience=10.0)) as players:
            players.follow(Probe(players.ids, players.field, most_packets=700), seconds=60.0)
            players.stop_match()
        thread.join(10.0)
    (result,) = results
    assert result.ticks > 700
    assert [bot.late for bot in result.bots] == [0, 0]
