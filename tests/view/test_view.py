import sys

import numpy as np
import pytest

pytest.importorskip("rerun")
pytest.importorskip("pyarrow")

from rlgym_bridge.game import CONTROL_NAMES, HITBOXES, PAD_COUNT, Phase
from rlgym_bridge.recording.mcap.agent_track import AgentTrack, InputTrack
from rlgym_bridge.recording.mcap.channels import Decision
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.rotations import from_quaternions
from rlgym_bridge.view.camera import MIRROR, project
from rlgym_bridge.view.scene import BALL_COLOR
from rlgym_bridge.view.simulated_ghosts import ghosts
from rlgym_bridge.view.write import write_rrd
from tests.support.planted_gaps import play
from tests.support.processes import run_to_end
from tests.support.view_scenes import BALL, Logged, made_up


@pytest.fixture
def written(tmp_path):
    def write(recording, compare=False):
        write_rrd(recording, tmp_path / "x.rrd", compare)
        return Logged(tmp_path / "x.rrd")

    return write


def rgb(color):
    return color >> 24, color >> 16 & 255, color >> 8 & 255


def test_the_ball_is_a_point_of_its_radius_in_its_place(written):
    recording = made_up()
    recording.state.ball_position[:, 1] = np.arange(40) * 30
    file = written(recording)
    ticks, positions = file.column("/match/ball", "Position3D")
    assert ticks == recording.tick.tolist()
    np.testing.assert_array_equal(np.array(positions)[:, 0], recording.state.ball_position)
    assert file.static("/match/ball", "Radius") == [91.25]
    assert rgb(file.static("/match/ball", "Color")[0]) == BALL_COLOR


def test_cars_are_turned_hitboxes_with_a_nose_in_front(written):
    recording = made_up()
    file = written(recording)
    for car, name in enumerate(("blue-0", "orange-0")):
        _, (halves,) = file.column(f"/match/cars/{name}/body", "HalfSize3D")
        box = HITBOXES[car]
        np.testing.assert_allclose(halves[0], np.array([box.length, box.width, box.height]) / 2, rtol=1e-6)
        centre, nose = file.static(f"/match/cars/{name}/body", "PoseTranslation3D")
        np.testing.assert_allclose(centre, (box.offset_x, 0, box.offset_z), rtol=1e-6)
        assert nose[0] == pytest.approx(box.offset_x + box.length / 2)
        _, moves = file.column(f"/match/cars/{name}", "Translation3D")
        np.testing.assert_array_equal(np.array(moves)[:, 0], recording.state.car_position[:, car])
        _, turns = file.column(f"/match/cars/{name}", "RotationQuat")
        x, y, z, w = np.array(turns)[:, 0].T
        turned = from_quaternions(np.column_stack([w, x, y, z]))
        np.testing.assert_allclose(turned, recording.state.car_rotation[:, car], atol=1e-6)


def test_a_name_is_above_each_car_while_it_is_there(written):
    recording = made_up()
    recording.car_shown[10:30, 1] = False
    recording.state.car_is_demoed[10:30, 1] = 1
    file = written(recording)
    for car, name in enumerate(("blue-0", "orange-0")):
        assert file.static(f"/match/names/{name}", "Text") == [name]
        ticks, places = file.column(f"/match/names/{name}", "Position3D")
        assert places[0] == [pytest.approx(recording.state.car_position[0, car] + (0, 0, 250))]
    assert places[ticks.index(10)] == [] and len(places[ticks.index(30)]) == 1


def test_left_is_left_from_behind_blues_goal():
    """Look along +y, and the game's +x is on the left."""
    left, right = project(np.array([(1000.0, 0.0, 0.0), (-1000.0, 0.0, 0.0)]))
    assert left[0] < right[0]
    near, far = project(np.array([(0.0, -3000.0, 0.0), (0.0, 3000.0, 0.0)]))
    assert near[1] > far[1]  # image rows go down
    ((x, y),) = project(np.array([BALL]))
    assert 0 < x < 1600 and 0 < y < 900


def test_one_transform_mirrors_all_that_is_in_the_match(written):
    file = written(made_up())
    (matrix,) = file.static("/match", "TransformMat3x3")
    np.testing.assert_array_equal(np.reshape(matrix, (3, 3)), MIRROR)
    solid = [one for one in file.entities() if one.startswith("/match/")]
    assert {"/match/field/meshes", "/match/ball", "/match/pads", "/match/cars/blue-0"} <= set(solid)


def test_a_demolished_car_is_taken_away_and_its_curves_end(written):
    recording = made_up()
    recording.car_shown[10:30, 1] = False
    recording.state.car_is_demoed[10:30, 1] = 1
    file = written(recording)
    ticks, halves = file.column("/match/cars/orange-0/body", "HalfSize3D")
    assert ticks == [0, 10, 30]
    assert [len(one) for one in halves] == [2, 0, 2]
    ticks, speeds = file.column("/speed/orange-0", "Scalar")
    assert speeds[ticks.index(10)] == []


def test_a_body_shown_now_and_then_stays_for_a_while(written):
    recording = made_up(60)
    recording.ball_shown[:] = False
    recording.ball_shown[[0, 9]] = True
    ticks, positions = written(recording).column("/match/ball", "Position3D")
    assert ticks == [0, 9, 25]  # 15 ticks are the longest between updates of a replay
    assert [len(one) for one in positions] == [1, 1, 0]


def test_segments_whose_times_begin_again_follow_each_other(written):
    recording = made_up()
    recording.segment[20:] = 1
    recording.tick[20:] -= 20
    recording.seconds[20:] -= recording.seconds[20]
    ticks, _ = written(recording).column("/match/ball", "Position3D")
    assert ticks == list(range(40))


def test_pads_are_dark_while_they_cannot_be_taken(written):
    ticks, colors = written(made_up()).column("/match/pads", "Color")
    assert ticks == [0, 20]
    assert len(colors[0]) == len(colors[1]) == PAD_COUNT
    changed = [pad for pad in range(PAD_COUNT) if colors[0][pad] != colors[1][pad]]
    assert changed == [3]
    assert sum(rgb(colors[1][3])) < sum(rgb(colors[0][3]))


def test_controls_are_steps_and_named(written):
    file = written(made_up())
    assert file.static("/controls/blue-0", "Name") == list(CONTROL_NAMES)
    ticks, values = file.column("/controls/blue-0", "Scalar")
    assert ticks == [0, 19, 20, 39]
    assert [one[0] for one in values] == [0, 0, 1, 1]


def test_controls_that_were_not_recorded_are_left_out(written):
    recording = made_up()
    recording.inputs_recorded[:, 2:5] = False
    names = written(recording).static("/controls/blue-0", "Name")
    assert names == ["throttle", "steer", "jump", "boost", "handbrake"]


def test_a_recording_without_rows_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"made up has no rows, expected some"):
        write_rrd(made_up(0), tmp_path / "x.rrd")


def test_ghosts_are_wire_frames_with_their_distance(written):
    recording = play(1, 2.0)
    expected = ghosts(recording)
    file = written(recording, compare=True)
    for column, name in enumerate((*recording.state.agents, "ball")):
        rows = np.flatnonzero(expected.there[:, column])
        ticks, positions = file.column(f"/match/ghosts/{name}", "Translation3D")
        assert ticks == recording.tick[rows].tolist()
        np.testing.assert_allclose(np.array(positions)[:, 0], expected.position[rows, column], rtol=1e-5)
        ticks, distances = file.column(f"/distance/{name}", "Scalar")
        at = np.searchsorted(recording.tick, np.array(ticks)[[len(one) == 1 for one in distances]])
        logged = [one[0] for one in distances if one]
        np.testing.assert_allclose(logged, expected.distance[at, column])
    _, (halves, *_) = file.column("/match/ghosts/ball/body", "HalfSize3D")
    assert halves == [[91.25] * 3]


def with_agent(*decisions):
    """Return a match in which an agent decided for orange: `(frame, actions, reward)` each."""
    base = made_up()
    state = base.state
    state.phase[:] = Phase.ACTIVE
    state.phase[30:] = Phase.GOAL_SCORED
    state.score[29:, 0] = 1
    state.clock[:] = 61.5
    made = [
        Decision(
            frame, np.array([1], np.int32), np.zeros((1, 3), np.float32), np.array([actions], np.float32),
            np.array([reward], np.float32), np.full(1, np.nan, np.float32), np.full(1, np.nan, np.float32),
        )
        for frame, actions, reward in decisions
    ]  # fmt: skip
    none = InputTrack(np.empty(0, int), np.empty(0), np.empty(0, int), np.empty((0, 8)))
    track = AgentTrack("us/bot", base.tick, base.seconds, none, made)
    return MatchRecording(
        base.source, state, base.tick, base.seconds, base.segment, base.ball_shown, base.car_shown,
        agents={"us/bot": track},
    )  # fmt: skip


@pytest.mark.parametrize(("clock", "shown"), [(np.nan, "0:00"), (np.inf, "16666:40"), (61.0, "1:01")])
def test_a_clock_that_no_match_has_is_shown_all_the_same(written, clock, shown):
    recording = with_agent()
    recording.state.clock[:] = clock
    _, texts = written(recording).column("/scoreboard", "Text")
    assert f"**{shown}**" in texts[0][0]


def test_what_an_agent_chose_and_got_stands_at_its_ticks(written):
    file = written(with_agent((0, [5], np.nan), (8, [7], 0.5), (16, [7], -1.0), (24, [], 2.0)))
    ticks, actions = file.column("/action/orange-0", "Scalar")
    assert dict(zip(ticks, actions, strict=True)) == {0: [5], 7: [5], 8: [7], 16: [7]}
    ticks, rewards = file.column("/reward/orange-0", "Scalar")
    assert dict(zip(ticks, rewards, strict=True)) == {8: [0.5], 16: [-1], 24: [2]}
    assert not any(one.endswith("blue-0") and "action" in one for one in file.entities())


def test_score_and_phase_are_told_in_words(written):
    file = written(with_agent())
    ticks, (first, _, last) = file.column("/scoreboard", "Text")
    assert ticks == [0, 29, 30]
    assert "blue 0 : 0 orange" in first[0]
    assert "1:02" in first[0]
    assert "blue 1 : 0 orange" in last[0]
    _, events = file.column("/events", "Text")
    assert [one[0] for one in events] == ["active", "goal for blue: 1 : 0", "goal scored"]


def test_the_viewer_takes_our_layout_alone(tmp_path):
    write_rrd(play(seconds=8), tmp_path / "match.rrd")
    words = [sys.executable, "-m", "rerun_cli", "rrd", "print", str(tmp_path / "match.rrd")]
    printed = run_to_end(words, check=True).stdout
    assert "BlueprintActivationCommand" in printed and "make_active: true" in printed
