"""Server, simulator, comparison and the count in the real game tell the same touches of the same contacts."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rlbot import flat

from rlgym_bridge.compare.two_sets import pieces_of
from rlgym_bridge.game import TICKS_PER_SECOND, Phase
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.server.game.referee import Scoreboard
from rlgym_bridge.sim.touches import TouchCounter
from rlgym_bridge.state import MatchState
from rlgym_bridge.trials.real_match import _Watch


def of_server(contacts: Sequence[int]) -> int:
    scores = Scoreboard([0, 1])
    for tick in contacts:
        scores.touch(0, tick)
    return scores.touches[0]


def of_simulator(contacts: Sequence[int]) -> int:
    counter, touched = TouchCounter(1, 1), np.zeros(contacts[-1] + 1, bool)
    touched[list(contacts)] = True
    return int(sum(counter.new(one.reshape(1, 1), 1).sum() for one in touched))


def of_comparison(contacts: Sequence[int], every: int = 1) -> int:
    """Count in a recording of play that shows a tick of `every`, and lasts whole pieces of ten seconds."""
    rows = (contacts[-1] // 1200 + 1) * 1200 // every
    state = MatchState(1, 0, rows)
    state.phase[:] = Phase.ACTIVE
    state.car_ball_touches[[tick // every for tick in contacts], 0] = 1
    tick = np.arange(rows, dtype=np.int64) * every
    shown = np.ones(rows, bool)
    recording = MatchRecording(
        "contacts", state, tick, tick / TICKS_PER_SECOND, np.zeros(rows, np.int32), shown, shown[:, None]
    )
    minutes = rows / 1200 / 6
    a_minute = pieces_of(recording).means["blue-0 touches/min"]
    return round(float(a_minute.mean()) * minutes)


def of_real_game(contacts: Sequence[int]) -> int:
    """Count in packets, whose times are float32 seconds."""
    watch, info = (
        _Watch(Console(quiet=True), lambda: None, None, math.inf, ""),
        flat.MatchInfo(match_phase=flat.MatchPhase.Active),
    )
    teams = [flat.TeamInfo(), flat.TeamInfo()]
    for tick in contacts:
        car = flat.PlayerInfo(player_id=7, latest_touch=flat.Touch(tick / TICKS_PER_SECOND))
        packet = flat.CorePacket(flat.GamePacket(players=[car], match_info=info, teams=teams))
        message = flat.CorePacket.unpack(packet.pack()).message
        assert isinstance(message, flat.GamePacket)
        watch._take(message)
    return watch._cars[7].touches


@pytest.mark.parametrize(("apart", "touches"), [(29, 1), (30, 2), (31, 2)])
@pytest.mark.parametrize("first", [100, 15_332])
def test_contacts_thirty_ticks_apart_are_two_touches_for_all(apart: int, touches: int, first: int) -> None:
    contacts = [first, first + apart]
    assert of_server(contacts) == of_simulator(contacts) == touches
    assert of_comparison(contacts) == of_real_game(contacts) == touches


def test_contacts_soon_after_each_other_are_one_touch() -> None:
    contacts = range(1100, 1300, 29)  # the comparison cuts pieces of 1200 ticks
    assert of_server(contacts) == of_simulator(contacts) == of_comparison(contacts) == 1


@pytest.mark.parametrize(("apart", "touches"), [(28, 1), (30, 2)])
def test_a_recording_of_every_second_tick_counts_in_ticks(apart: int, touches: int) -> None:
    assert of_comparison([100, 100 + apart], every=2) == touches


GAPS = st.one_of(st.integers(1, 5), st.integers(27, 33), st.integers(1, 400))


@settings(deadline=None)
@given(st.lists(GAPS, min_size=1, max_size=60))
def test_all_count_alike_whatever_the_contacts(gaps: list[int]) -> None:
    contacts = np.cumsum(gaps).tolist()
    assert of_server(contacts) == of_simulator(contacts) == of_comparison(contacts)
