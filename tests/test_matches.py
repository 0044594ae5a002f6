"""Matches that this process sets up, and what is made of the reports of their bots."""

import pytest
from rlbot import flat

from rlgym_bridge.live.agent_connections import agents_of, match_of, with_own_ids
from rlgym_bridge.server import BotResult
from rlgym_bridge.server.lineup import BotReport, find_troubles, first_of_process


def result(**fields) -> BotResult:
    return BotResult("Bot", 0, 0, "a/b", connected=True, crashed=False, replies=100, **fields)


@pytest.mark.parametrize(
    ("fields", "told", "named"),
    [
        ({"exceptions": 2}, BotReport(), ["wrote 2 tracebacks"]),
        ({"exceptions": 2}, BotReport(missed=0), ["wrote 2 tracebacks"]),
        ({"exceptions": 2}, BotReport(missed=0, faults={"decision failed": 2}), []),
        ({"unanswered": 100}, BotReport(), ["left 50% of its packets unanswered"]),
        ({"unanswered": 100}, BotReport(missed=100), []),
    ],
)
def test_a_report_takes_the_place_of_what_the_server_counts(fields, told, named):
    assert list(find_troubles(result(**fields), told)) == named


def test_each_match_has_agent_ids_of_its_own():
    match = match_of(1, 1)
    first, second = with_own_ids(match), with_own_ids(match)
    assert len({*agents_of(match), *agents_of(first), *agents_of(second)}) == 6
    match.player_configurations[0].variety.run_command = "python bot.py"
    assert len(agents_of(with_own_ids(match))) == 1


def test_a_hivemind_is_a_process_for_each_team():
    hive = flat.CustomBot("Hive", "/there", "python hive.py", None, "test/hive", True)
    players = [flat.PlayerConfiguration(hive, team) for team in (0, 0, 1, 1)]
    assert first_of_process(flat.MatchConfiguration(player_configurations=players)) == [0, 0, 2, 2]
