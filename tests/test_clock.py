"""The clock chooses the row that answers a packet."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlgym_bridge.clock import Clock, Event, Timing
from rlgym_bridge.controls import NEUTRAL
from rlgym_bridge.game import Phase


def plan(number: int, ticks: int = 8) -> list[np.ndarray]:
    """Rows that name their decision (throttle) and their tick (steer)."""
    rows = np.zeros((ticks, 8), np.float32)
    rows[:, 0] = number / 1000
    rows[:, 1] = np.arange(ticks) / 1000
    return [rows]


def drive(clock: Clock, packets: list[tuple[int, int]], ticks: int = 8) -> list[tuple[int, int] | None]:
    """Feed (frame, phase) packets; return for each the (decision, tick) sent, None for neutral."""
    decisions, sent = 0, []
    for frame, phase in packets:
        if clock.see(frame, phase) in (Event.DECIDE, Event.RESET):
            decisions += 1
            clock.submit(plan(decisions, ticks))
        (row,) = clock.row()
        sent.append(None if row is NEUTRAL else (round(row[0] * 1000), round(row[1] * 1000)))
    return sent


def rlgym_rows(ticks: int, skip: int = 8) -> list[tuple[int, int] | None]:
    """The row that drives tick n -> n+1 in RLGym's engine with rlbot_delay: one tick late."""
    return [None] + [(tick // skip + 1, tick % skip) for tick in range(ticks - 1)]


PLAY = [(100 + tick, Phase.KICKOFF if tick < 20 else Phase.ACTIVE) for tick in range(60)]


def test_rows_drive_the_same_ticks_as_in_rlgyms_engine() -> None:
    assert drive(Clock(), PLAY) == rlgym_rows(60)


@pytest.mark.parametrize("latency", [0, 1, 2, 3])
def test_input_latency_is_made_up_for_by_answering_earlier(latency: int) -> None:
    sent = drive(Clock(Timing(action_delay=3, input_latency=latency)), PLAY)
    driven = [None] * latency + sent  # what answers packet N drives N + latency
    without = drive(Clock(Timing(action_delay=3, input_latency=0)), PLAY)
    assert driven[:60] == without


def test_without_delay_the_first_answer_is_the_decision() -> None:
    assert drive(Clock(Timing(action_delay=0)), PLAY)[:9] == [(1, tick) for tick in range(8)] + [(2, 0)]


def test_a_latency_above_the_delay_is_reported_and_skips_rows() -> None:
    timing = Timing(action_delay=1, input_latency=3)
    assert timing.unreachable_ticks == 2
    assert drive(Clock(timing), PLAY)[:2] == [(1, 2), (1, 3)]


@pytest.mark.parametrize(
    "phase", [Phase.INACTIVE, Phase.COUNTDOWN, Phase.GOAL_SCORED, Phase.REPLAY, Phase.PAUSED, Phase.ENDED]
)
def test_packets_out_of_play_get_a_neutral_reply(phase: int) -> None:
    clock = Clock()
    drive(clock, PLAY)
    assert drive(clock, [(160, phase), (161, phase)]) == [None, None]


def test_entering_kickoff_begins_a_new_grid_with_a_neutral_tick() -> None:
    clock = Clock()
    drive(clock, PLAY)
    after_goal = [(160, Phase.GOAL_SCORED), (161, Phase.COUNTDOWN)]
    kickoff = [(165 + tick, Phase.KICKOFF) for tick in range(10)]
    assert drive(clock, after_goal + kickoff)[2:] == rlgym_rows(10)


def test_play_after_a_pause_goes_on_on_the_same_grid() -> None:
    clock = Clock()
    drive(clock, PLAY)
    assert drive(clock, [(160, Phase.PAUSED), (160, Phase.ACTIVE)]) == [None, (8, 3)]
    assert clock.see(163, Phase.ACTIVE) is Event.PLAY
    assert clock.see(164, Phase.ACTIVE) is Event.DECIDE


def test_joining_in_play_resets_on_the_first_packet() -> None:
    clock = Clock()
    assert clock.see(5000, Phase.ACTIVE) is Event.RESET


@pytest.mark.parametrize("jump", [-1, -4000, 121, 5000])
def test_a_frame_number_that_goes_back_or_far_ahead_resets(jump: int) -> None:
    clock = Clock()
    drive(clock, PLAY)
    assert clock.see(159 + jump, Phase.ACTIVE) is Event.RESET


@pytest.mark.parametrize("step", [-1, -50, 5000])
def test_frame_numbers_that_keep_breaking_cost_a_neutral_tick(step: int) -> None:
    clock = Clock()
    drive(clock, PLAY)
    sent = drive(clock, [(10_000 + step * tick, Phase.ACTIVE) for tick in range(60)])
    assert sent == rlgym_rows(60)


def test_a_second_break_in_frame_numbers_much_later_begins_anew() -> None:
    clock = Clock()
    drive(clock, [(frame, Phase.ACTIVE) for frame in (100, 50, *range(51, 51 + 120))])
    assert clock.see(20, Phase.ACTIVE) is Event.RESET


def test_a_repeated_frame_gets_the_same_row_and_no_decision() -> None:
    clock = Clock()
    packets = [(frame, phase) for frame, phase in PLAY for _ in range(2)]
    sent = drive(clock, packets)
    assert sent[::2] == sent[1::2] == rlgym_rows(60)


def test_a_late_decision_skips_rows_and_the_grid_stays() -> None:
    clock = Clock()
    frames = [100, 101, 105, 107, 111, 112, 115, 116]
    sent = drive(clock, [(frame, Phase.ACTIVE) for frame in frames])
    assert sent == [None, (1, 0), (1, 4), (1, 6), (2, 2), (2, 3), (2, 6), (3 - 1, 7)]
    assert clock.skipped_decisions == 0


def test_the_last_row_is_held_until_a_late_decision() -> None:
    clock = Clock()
    drive(clock, [(100, Phase.ACTIVE)])
    assert clock.see(113, Phase.ACTIVE) is Event.DECIDE  # the rows drove the ticks 101 to 108
    assert clock.row()[0][1] == np.float32(0.007)


def test_decisions_without_any_packet_are_skipped_and_counted() -> None:
    clock = Clock()
    drive(clock, [(100, Phase.ACTIVE)])
    assert clock.see(126, Phase.ACTIVE) is Event.DECIDE  # due 108, 116, 124: the last stands
    clock.submit(plan(9))
    assert clock.skipped_decisions == 2
    assert clock.row()[0][1] == np.float32(0.001)  # grid 124, first tick 125
    assert clock.see(132, Phase.ACTIVE) is Event.DECIDE


def test_rows_of_changing_length_move_the_next_decision() -> None:
    clock, due = Clock(), []
    for frame in range(100, 130):
        if clock.see(frame, Phase.ACTIVE) is not Event.PLAY:
            due.append(frame)
            clock.submit(plan(len(due), ticks=len(due) * 3))
    assert due == [100, 103, 109, 118]


def test_all_cars_of_one_agent_get_their_own_row() -> None:
    clock = Clock(cars=2)
    clock.see(0, Phase.ACTIVE)
    clock.submit([*plan(1), *plan(2)])
    clock.see(1, Phase.ACTIVE)
    assert [float(row[0]) for row in clock.row()] == pytest.approx([0.001, 0.002])


def test_negative_delays_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a whole number of ticks, 0 or more"):
        Timing(action_delay=-1)


@given(
    drops=st.sets(st.integers(1, 199), max_size=120),
    delay=st.integers(0, 4),
    latency=st.integers(0, 4),
    ticks=st.integers(1, 12),
)
def test_no_row_is_sent_for_another_tick_than_its_own(
    drops: set[int], delay: int, latency: int, ticks: int
) -> None:
    clock = Clock(Timing(delay, latency))
    grid: dict[int, int] = {}
    decisions = 0
    for frame in (tick for tick in range(200) if tick not in drops):
        if clock.see(frame, Phase.ACTIVE) is not Event.PLAY:
            decisions += 1
            grid[decisions] = frame - frame % ticks
            clock.submit(plan(decisions, ticks))
        (row,) = clock.row()
        if row is NEUTRAL:
            assert frame + latency < delay
            continue
        decision, index = round(row[0] * 1000), round(row[1] * 1000)
        wanted = frame + latency - delay - grid[decision]
        assert index == min(wanted, ticks - 1)


def test_a_pause_in_a_kickoff_is_no_new_kickoff() -> None:
    clock = Clock()
    events = [clock.see(100 + i, Phase.KICKOFF) for i in range(5)]
    events += [clock.see(104, Phase.PAUSED) for _ in range(3)]
    events += [clock.see(105, Phase.KICKOFF)]
    assert events.count(Event.RESET) == 1


_FRAMES = st.lists(
    st.tuples(
        st.sampled_from((0, 1, 1, 1, 1, 2, 5, 9, 121, -3)),
        st.sampled_from((Phase.ACTIVE,) * 6 + (Phase.KICKOFF, Phase.PAUSED, Phase.GOAL_SCORED)),
    ),
    max_size=60,
)


@given(steps=_FRAMES, delay=st.integers(0, 3), latency=st.integers(0, 3), ticks=st.integers(1, 9))
@example(steps=[(0, Phase.ACTIVE), (5, Phase.ACTIVE)], delay=1, latency=0, ticks=2)  # a decision comes late
@settings(max_examples=400)
def test_an_answer_before_thinking_is_the_one_after_it(
    steps: list[tuple[int, int]], delay: int, latency: int, ticks: int
) -> None:
    clock = Clock(Timing(delay, latency))
    frame, decisions = 1000, 0
    for step, phase in steps:
        frame += step
        foreseen = clock.foresee(frame, phase)
        if clock.see(frame, phase) in (Event.DECIDE, Event.RESET):
            decisions += 1
            clock.submit(plan(decisions, ticks))
        if foreseen is not None:
            assert [row.tolist() for row in foreseen] == [row.tolist() for row in clock.row()]


def test_with_delay_answers_are_known_before_thinking() -> None:
    clock = Clock(Timing(1, 0))
    foreseen = []
    for frame, phase in PLAY:
        foreseen.append(clock.foresee(frame, phase) is not None)
        if clock.see(frame, phase) is not Event.PLAY:
            clock.submit(plan(1))
    assert foreseen == [False] + [True] * (len(PLAY) - 1)
