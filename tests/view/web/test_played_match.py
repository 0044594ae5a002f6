import threading
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

pytest.importorskip("aiohttp")


from rlgym_bridge.game import GOAL_BACK_Y, TICKS_PER_SECOND, Phase
from rlgym_bridge.live.player import LivePlayer
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.server.game.referee import Course, Scoreboard
from rlgym_bridge.view.web.car_drivers import PolicyDriver
from rlgym_bridge.view.web.played_match import HUMAN
from tests.support.recorded_matches import POLICY
from tests.support.web_pages import SteppedShow

pytestmark = pytest.mark.odd_packets("pages put bodies elsewhere and rewind the match")

PAUSED, GOAL_REPLAY, WAITING, CHANGED = 1, 4, 8, 16


def kicked_off(*drivers: str | None) -> SteppedShow:
    return SteppedShow(*(drivers or (HUMAN, None)), course=Course(instant=True))


def test_the_match_waits_until_a_page_is_ready() -> None:
    show = kicked_off()
    assert show.step(5) == 0
    viewer = show.open(ready=False)
    assert show.step(5) == 0 and show.pages.frames[-1].flags & WAITING
    show.command(viewer, "ready")
    assert show.step(5) == 5 and not show.pages.frames[-1].flags & WAITING


def test_it_waits_while_the_drivers_tab_sleeps_or_is_gone() -> None:
    show = kicked_off()
    viewer = show.open()
    assert show.step(3) == 3
    show.command(viewer, "stall", 2.5)
    assert show.step(3) == 0
    show.command(viewer, "ready")
    assert show.step(3) == 3
    show.pages.viewers.remove(viewer)
    show.show.close(viewer)
    assert show.step(3) == 0
    assert show.open().seat == 0 and show.step(3) == 3, "a page that is loaded again has its car back"


def test_an_input_acts_in_the_next_tick_and_its_number_is_told() -> None:
    show = kicked_off()
    viewer = show.open()
    show.step(10)
    number = show.drive(viewer, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    assert show.pages.frames[-1].input == 0
    show.step(2)  # the packet before it, and the one after
    frame = show.pages.frames[-1]
    assert frame.input == number and frame.cars[0][11:13] == [0.0, 1.0] and int(frame.cars[0][13]) & 2
    show.step(60)
    assert np.linalg.norm(show.pages.frames[-1].cars[0][7:10]) > 500


def test_an_old_input_counts_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    show = kicked_off()
    viewer = show.open()
    show.drive(viewer, 1.0)
    show.step(3)
    assert show.pages.frames[-1].cars[0][12] == 1.0
    monkeypatch.setattr("rlgym_bridge.view.web.played_match._OLD_SECONDS", -1.0)
    show.step(3)
    assert show.pages.frames[-1].cars[0][12] == 0.0


def test_the_second_page_looks_and_may_not_drive() -> None:
    show = kicked_off()
    show.open()
    other = show.open()
    assert other.seat is None
    with pytest.raises(ValueError, match="drives no car"):
        show.drive(other, 1.0)


def test_a_page_that_opens_takes_the_car_of_one_that_sleeps() -> None:
    show = kicked_off()
    asleep = show.open()
    show.command(asleep, "stall", 1.0)
    awake = show.open()
    assert awake.seat == 0 and asleep.seat is None and show.step(3) == 3
    assert [told["seat"] for told in show.pages.told if told["type"] == "setup"] == [0, None, 0]
    show.command(asleep, "ready")
    assert show.open().seat is None, "both are awake"


def test_pause_and_speed_are_told_in_frames() -> None:
    show = kicked_off()
    viewer = show.open()
    show.step(2)
    show.command(viewer, "speed", 0.25)
    show.step(2)
    assert show.pages.frames[-1].speed == 0.25 and show.match.game_speed == 0.25
    show.command(viewer, "pause")
    assert show.step(5) == 0 and show.pages.frames[-1].flags & PAUSED and show.pages.frames[-1].speed == 0.0
    show.command(viewer, "resume")
    assert show.step(5) == 5


def test_a_policy_of_this_process_drives_to_the_ball() -> None:
    show = kicked_off(HUMAN, "chaser")
    show.open()
    show.until(Phase.ACTIVE)
    assert show.match.scores.touches == [0, 1]


def test_rewinding_goes_back_to_the_very_state_and_pauses() -> None:
    show = kicked_off(HUMAN, "chaser")
    viewer = show.open()
    show.step(200)
    then, at = show.buffer, show.pages.frames[-1].time
    show.step(1)  # the moment is kept with its packet
    show.step(239)
    show.command(viewer, "rewind", 2.0)
    assert show.step(1) == 0
    frame = show.pages.frames[-1]
    assert (
        frame.flags & PAUSED and frame.flags & CHANGED and frame.time == pytest.approx(at + 1 / 120, abs=0.01)
    )
    different = ~np.isclose(show.buffer, then, atol=0.01)
    assert different.sum() <= 3, np.flatnonzero(different)  # counters of ticks
    ticks = [one.tick for one in show.pages.frames]
    assert ticks == sorted(ticks)
    show.command(viewer, "resume")
    assert show.step(50) == 50
    assert show.pages.frames[-1].time > frame.time


def test_rewinding_ends_at_the_beginning() -> None:
    show = kicked_off()
    viewer = show.open()
    show.step(30)
    show.command(viewer, "rewind", 60)
    show.step(1)
    assert show.pages.frames[-1].time == pytest.approx(1 / 120)


def test_score_and_clock_go_back_too() -> None:
    show = kicked_off()
    viewer = show.open()
    show.step(10)
    show.command(viewer, "put", {"body": "ball", "pos": [0, 5000, 300], "vel": [0, 2000, 0]})
    show.until(Phase.GOAL_SCORED, 100)
    assert show.match.referee.score == [1, 0]
    show.command(viewer, "rewind", 0.05)
    show.step(1)
    assert show.match.referee.score == [0, 0] and show.pages.frames[-1].score == (0, 0)
    show.command(viewer, "resume")
    show.until(Phase.GOAL_SCORED, 200)  # the moments since the ball was put are there


def test_what_cars_have_counted_goes_back_too() -> None:
    show = kicked_off(HUMAN, "chaser")
    viewer = show.open()
    show.until(Phase.ACTIVE)
    scores = show.match.scores
    scores.credit(1, "Shot")
    assert scores.touches == [0, 1] and show.match.packet().players[1].score_info.shots == 1
    show.command(viewer, "rewind", 1.0)
    show.step(1)
    assert scores.touches == [0, 0] and show.match.packet().players[1].score_info.shots == 0
    show.command(viewer, "resume")
    show.until(Phase.ACTIVE)
    assert scores.touches == [0, 1], "the kept moment was not written to"


def test_a_touch_that_goes_on_after_a_rewind_is_counted_once() -> None:
    scores = Scoreboard([0, 1])
    scores.touch(0, 100)
    then = scores.moment()
    scores.goal(0, 200)
    scores.restore(then, 500)
    assert scores.goals == [0, 0]
    scores.touch(0, 601)
    assert scores.touches == [1, 0]


def test_bodies_are_put_elsewhere_at_rest_and_within_the_field() -> None:
    show = kicked_off(HUMAN, None)
    viewer = show.open()
    show.step(5)
    show.command(viewer, "pause")
    show.step(1)
    show.command(viewer, "put", {"body": "ball", "pos": [1000, -2000, 9000]})
    show.command(viewer, "put", {"body": 1, "pos": [-500, 700, 0], "vel": [0, 300, 0]})
    show.step(1)
    state = show.match.simulation.state
    assert state.ball_position[0].tolist() == [1000, -2000, 1952.75] and not state.ball_linear_velocity.any()
    assert state.car_position[0, 1].tolist() == [-500, 700, 17]
    assert state.car_linear_velocity[0, 1] == pytest.approx([0, 300, 0], abs=0.01)
    frame = show.pages.frames[-1]
    assert frame.ball[:3] == [1000, -2000, 1952.75] and frame.flags & CHANGED


def test_a_page_takes_a_car_from_a_policy_and_gives_it_back() -> None:
    show = kicked_off("chaser", "chaser")
    viewer = show.open()
    assert viewer.seat is None
    show.step(3)
    show.command(viewer, "take", {"car": 1, "driver": HUMAN})
    show.step(3)
    assert viewer.seat == 1 and show.texts("setup")[-1]["drivers"] == ["chaser", HUMAN]
    assert show.texts("setup")[-1]["seat"] == 1
    show.drive(viewer, -1.0)
    show.step(3)
    assert show.pages.frames[-1].cars[1][12] == -1.0
    show.command(viewer, "give", 1)
    show.step(30)
    assert viewer.seat is None and show.texts("setup")[-1]["drivers"] == ["chaser", "chaser"]
    assert show.pages.frames[-1].cars[1][12] == 1.0


def test_a_car_that_is_given_back_to_its_process_is_left_to_it() -> None:
    show = kicked_off(HUMAN, None)
    viewer = show.open()
    show.command(viewer, "take", {"car": 1, "driver": "chaser"})
    show.step(30)
    assert show.pages.frames[-1].cars[1][12] == 1.0
    show.command(viewer, "give", 1)
    show.step(5)
    assert show.pages.frames[-1].cars[1][12] == 0.0
    with pytest.raises(ValueError, match="driver is 'recorded'"):
        show.command(viewer, "take", {"car": 1, "driver": "recorded"})


def test_another_policy_takes_over() -> None:
    show = kicked_off(HUMAN, None)
    viewer = show.open()
    show.command(viewer, "take", {"car": 0, "driver": "chaser"})
    show.step(60)
    assert viewer.seat is None and show.pages.frames[-1].cars[0][12] == 1.0
    assert [car["name"] for car in show.texts("setup")[-1]["cars"]] == ["chaser", "Car 1"]
    with pytest.raises(ValueError, match="expected human or one of chaser"):
        show.command(viewer, "take", {"car": 0, "driver": "../../x"})
    with pytest.raises(ValueError, match="expected 0 to 1"):
        show.command(viewer, "take", {"car": 2, "driver": "chaser"})


def test_a_page_that_has_gone_takes_no_car() -> None:
    show = kicked_off(HUMAN, "chaser")
    show.open()
    gone = show.open()
    show.command(gone, "take", {"car": 1, "driver": HUMAN})
    show.pages.viewers.remove(gone)
    show.show.close(gone)
    show.step(3)
    assert show.texts("setup")[-1]["drivers"] == [HUMAN, "chaser"]
    assert show.open().seat is None, "its car is still the policy's"


@pytest.mark.parametrize("do", ["put", "follow"])
def test_a_car_that_is_not_there_is_refused(do: str) -> None:
    show = kicked_off(HUMAN, "chaser")
    viewer = show.open()
    value = {"body": 2, "pos": [0, 0, 100]} if do == "put" else 2
    with pytest.raises(ValueError, match="car is 2, expected 0 to 1"):
        show.command(viewer, do, value)


def test_of_a_policy_that_fails_pages_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LivePlayer, "_see", Mock(side_effect=KeyError("of its own")))
    show = kicked_off(HUMAN, "chaser")
    show.open()
    assert show.step(20) == 20
    assert [one["text"] for one in show.texts("say")] == [
        "chaser: packet failed: neutral controls: 'of its own'"
    ]


def test_a_policy_that_cannot_begin_anew_ends_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    show = kicked_off(HUMAN, "chaser")
    viewer = show.open()
    show.step(5)
    monkeypatch.setattr(PolicyDriver, "renew", Mock(side_effect=ZeroDivisionError("of its own")))
    show.command(viewer, "rewind", 1)
    show.step(1)
    assert "rewind: ZeroDivisionError: of its own" in show.texts("say")[-1]["text"]
    show.command(viewer, "resume")
    assert show.step(5) == 5


def test_a_driver_who_changes_cars_leaves_the_first_to_nobody() -> None:
    show = kicked_off(HUMAN, "chaser")
    viewer = show.open()
    show.step(2)
    show.command(viewer, "take", {"car": 1, "driver": HUMAN})
    show.step(2)
    assert viewer.seat == 1
    assert show.open().seat == 0, "the human's own car is free"


def test_a_goal_is_shown_again_from_three_seconds_before_it() -> None:
    show = kicked_off()
    viewer = show.open()
    show.step(400)
    show.command(viewer, "put", {"body": "ball", "pos": [0, 4500, 300], "vel": [0, 1500, 0]})
    show.until(Phase.REPLAY)
    goals = [one["event"] for one in show.texts("event")]
    assert goals.count("goal") == 0  # nobody has touched it
    first = len(show.pages.frames)
    show.until(Phase.KICKOFF)
    shown = [frame for frame in show.pages.frames[first:] if frame.flags & GOAL_REPLAY]
    assert len(shown) == pytest.approx(3.5 * TICKS_PER_SECOND, abs=3)
    assert shown[0].ball[1] < 100 and 5100 < shown[-1].ball[1] < GOAL_BACK_Y + 100


def test_the_replay_is_skipped_by_the_next_kickoff() -> None:
    show = kicked_off()
    viewer = show.open()
    show.step(10)
    show.command(viewer, "put", {"body": "ball", "pos": [0, 5000, 300], "vel": [0, 2000, 0]})
    show.until(Phase.REPLAY)
    show.command(viewer, "kickoff")
    show.step(3)
    assert show.match.referee.phase == Phase.KICKOFF and show.match.referee.score == [1, 0]
    assert not show.pages.frames[-1].flags & GOAL_REPLAY


def test_reset_begins_the_whole_match_again() -> None:
    show = SteppedShow(HUMAN, None)
    viewer = show.open()
    assert show.step(1) == 1 and show.pages.frames[0].countdown == pytest.approx(4.0, abs=0.02)
    show.until(Phase.KICKOFF)
    show.command(viewer, "put", {"body": "ball", "pos": [0, 5000, 300], "vel": [0, 2000, 0]})
    show.until(Phase.GOAL_SCORED)
    show.command(viewer, "reset")
    show.step(2)
    frame = show.pages.frames[-1]
    assert frame.phase == Phase.COUNTDOWN and frame.score == (0, 0) and frame.clock == 300.0


def test_the_landing_of_a_falling_ball_is_where_it_lands() -> None:
    show = kicked_off()
    viewer = show.open()
    show.step(2)
    show.command(viewer, "put", {"body": "ball", "pos": [0, 0, 1500], "vel": [600, 300, 0]})
    show.step(16)
    landing = show.pages.frames[-1].ball[13:]
    show.step(round(landing[3] * 120))
    x, y, z = show.pages.frames[-1].ball[:3]
    assert (x, y) == pytest.approx(landing[:2], abs=60) and z < 150
    show.step(2000)
    assert np.isnan(show.pages.frames[-1].ball[13:]).all(), "it lies on the floor"


def test_the_last_minute_is_saved_as_a_recording(tmp_path: Path) -> None:
    show = SteppedShow(HUMAN, "chaser", folder=tmp_path, course=Course(instant=True))
    viewer = show.open()
    show.step(300)
    show.show._save(viewer)
    said = show.texts("say")[-1]["text"]
    recording = open_recording(said.removeprefix("saved the last minute to "))
    assert len(recording.tick) == 300 and recording.state.layout.cars == 2
    assert recording.state.car_controls[-1, 1, 0] == 1.0


def test_one_recording_is_saved_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    show = kicked_off()
    viewer = show.open()
    go_on, begun = threading.Event(), []
    monkeypatch.setattr(show.show, "_save", lambda _: (begun.append(1), go_on.wait(30)))
    for _ in range(2):
        show.command(viewer, "save")
    show.step(2)
    go_on.set()
    assert "is being saved already" in show.texts("say")[-1]["text"]
    show.show._saver.join(30)
    show.command(viewer, "save")
    show.step(2)
    show.show._saver.join(30)
    assert begun == [1, 1]


def test_a_page_that_follows_is_told_what_the_bot_saw_and_chose() -> None:
    show = kicked_off(HUMAN, "chaser")
    viewer = show.open()
    show.step(20)
    assert not show.texts("mind")
    show.command(viewer, "follow", 1)
    show.step(20)
    mind = show.texts("mind")[-1]
    assert mind["car"] == 1 and dict(zip(mind["names"], mind["action"], strict=True))["throttle"] == 1.0


def test_of_a_policy_the_likeliest_choices_are_told() -> None:
    show = kicked_off(HUMAN, POLICY)
    show.command(show.open(), "follow", 1)
    show.step(40)
    mind = show.texts("mind")[-1]
    likely = [share for _, share in mind["best"]]
    assert len(likely) == 5 and likely == sorted(likely, reverse=True) and 0.2 < sum(likely) <= 1.001
    assert all("action" not in label for label, _ in mind["best"])
    assert len(mind["observed"]) > 50 and not mind["observed"][0][0].isdigit()


def test_a_component_that_names_nothing_does_not_stop_its_car(monkeypatch: pytest.MonkeyPatch) -> None:
    show = kicked_off(HUMAN, POLICY)
    show.command(show.open(), "follow", 1)
    monkeypatch.setattr("rlgym_bridge.view.web.car_drivers.table_of", lambda _: 1 / 0)
    show.step(40)
    assert not show.texts("mind")
    assert np.linalg.norm(show.pages.frames[-1].cars[1][7:10]) > 100


def test_pages_of_a_match_that_is_watched_change_nothing() -> None:
    show = SteppedShow(None, None, mode="watch", course=Course(instant=True))
    assert show.step(3) == 3, "it waits for nobody"
    viewer = show.open(ready=False)
    assert show.step(3) == 3 and viewer.seat is None
    with pytest.raises(ValueError, match="only watched"):
        show.command(viewer, "pause")
