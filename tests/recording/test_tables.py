from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase
from rlgym_bridge.recording.tables.column_map import read_columns
from rlgym_bridge.recording.tables.table_recording import read_table
from tests.support.real_data import COLUMNS, real

BALL_MAP = """
[time]
seconds = 0
[ball]
position = [1, 2, 3]
velocity = [4, 5, 6]
"""
CAR_MAP = """
inputs = "sent"
[time]
tick = 0
[[car]]
position = [1, 2, 3]
velocity = [4, 5, 6]
controls = { throttle = 7, jump = 8 }
"""
TRIAL_MAP = """
inputs = "sent"
[trial]
ticks = 1
held = 2
always = { throttle = 1 }
while_held = { steer = -1 }
[trial.start]
team = "orange"
position = [{ value = 0 }, { value = -3000 }, { value = 17 }]
velocity = [{ value = 0 }, 0, { value = 0 }]
[trial.end]
position = [3, { column = 4, add = -3000 }, { value = 17 }]
euler = [{ value = 0 }, { value = 90 }, { value = 0 }]
half_turn = 180
forward_speed = 5
"""

NAMED_MAP = '[time]\nseconds = "t"\n[ball]\nposition = ["x", "y", "z"]\n'
SCALED_MAP = "[time]\ndt = 0.1\n[ball]\nposition = { columns = [0, 1, 2], scale = 1e308 }\n"


def written(folder: Path, table: str, columns: str) -> tuple[Path, Path]:
    (folder / "table.csv").write_text(table)
    (folder / "map.toml").write_text(columns)
    return folder / "table.csv", folder / "map.toml"


def read(folder: Path, table: str, columns: str) -> Recording:
    return read_table(*written(folder, table, columns))


def falling(rows: int, separator: str = ",", start: float = 0.0) -> str:
    """Return a ball that flies along x at 1200 uu/s, 10 uu a tick."""
    lines = ([start + row / 120, 10 * row, 0, 500, 1200, 0, 0] for row in range(rows))
    return "\n".join(separator.join(map(str, line)) for line in lines) + "\n"


@pytest.mark.parametrize("separator", [",", ", ", "\t", "  "])
def test_numbers_may_be_parted_by_commas_tabs_or_spaces(tmp_path: Path, separator: str) -> None:
    found = read(tmp_path, falling(5, separator), BALL_MAP)
    np.testing.assert_array_equal(found.state.ball_position[:, 0], [0, 10, 20, 30, 40])
    np.testing.assert_array_equal(found.tick, [0, 1, 2, 3, 4])
    assert (found.clock, found.inputs) == (TimeBase.SECONDS, Inputs.NONE)
    assert found.ball_shown.all() and found.state.layout.cars == 0


@pytest.mark.parametrize("separator", [",", ", ", "\t", " "])
def test_numbers_and_names_may_be_in_quotes(tmp_path: Path, separator: str) -> None:
    rows = ['"t" "x" "y" "z"', '"0" "1" "2.5" 3', '"0.1" "4" "5" "-6"']
    found = read(tmp_path, "\n".join(row.replace(" ", separator) for row in rows), NAMED_MAP)
    np.testing.assert_array_equal(found.state.ball_position, [[1, 2.5, 3], [4, 5, -6]])


@pytest.mark.parametrize(
    "table",
    ["0;1;2;3;4;5;6\n", "0,5;1,5;2,5;3,5;4,5;5,5;6,5\n", "0;1\n0,1;2\n", '"a; b",1,2,3\n'],
    ids=["plain", "with decimal commas", "now and then a comma", "in quotes"],
)
def test_a_table_with_semicolons_is_told_what_is_expected(tmp_path: Path, table: str) -> None:
    with pytest.raises(ValueError, match="it has semicolons, expected commas, tabs or spaces between"):
        read(tmp_path, table, BALL_MAP)


def test_a_header_may_have_dotted_names(tmp_path: Path) -> None:
    names = [f"ball.position.{axis}" for axis in "xyz"]
    (tmp_path / "map.toml").write_text(f"[time]\ndt = 1\n[ball]\nposition = {names}\n")
    (tmp_path / "flat.csv").write_text(",".join(names) + "\n1,2,3\n")
    found = read_table(tmp_path / "flat.csv", tmp_path / "map.toml")
    assert found.state.ball_position.tolist() == [[1, 2, 3]]


def test_columns_may_be_named_by_a_header(tmp_path: Path) -> None:
    found = read(tmp_path, "# made up\nwho,t,x,y,z\nme,0,1,2,3\nme,0.1,4,5,6\n", NAMED_MAP)
    np.testing.assert_array_equal(found.state.ball_position, [[1, 2, 3], [4, 5, 6]])


def test_scales_bring_a_table_to_the_games_units(tmp_path: Path) -> None:
    columns = """
    [time]
    dt = 0.5
    [ball]
    position = { columns = [0, 1, { column = 2, add = 1 }], scale = 100 }
    velocity = [{ column = 0, scale = -1 }, { value = 5 }, 2]
    """
    found = read(tmp_path, "1,2,3\n1,2,4\n", columns)
    np.testing.assert_array_equal(found.state.ball_position, [[100, 200, 400], [100, 200, 500]])
    np.testing.assert_array_equal(found.state.ball_linear_velocity, [[-1, 5, 3], [-1, 5, 4]])
    np.testing.assert_array_equal(found.seconds, [0, 0.5])


@pytest.mark.parametrize(
    ("rotation", "cells"),
    [
        ("euler = [3, 4, 5]\nhalf_turn = 32768", "0,16384,0"),
        ("euler = [3, 4, 5]\nhalf_turn = 180", "0,90,0"),
        ("quaternion = [3, 4, 5, 6]", f"{0.5**0.5},0,0,{0.5**0.5}"),
        ("matrix = [3, 4, 5, 6, 7, 8, 9, 10, 11]", "0,-1,0,1,0,0,0,0,1"),
    ],
)
def test_a_quarter_turn_is_the_same_in_every_notation(tmp_path: Path, rotation: str, cells: str) -> None:
    found = read(tmp_path, f"1,2,3,{cells}\n", f"[time]\ndt = 1\n[ball]\nposition = [0, 1, 2]\n{rotation}\n")
    forward, right, up = found.state.ball_rotation[0].T
    np.testing.assert_allclose([forward, right, up], [[0, 1, 0], [-1, 0, 0], [0, 0, 1]], atol=1e-6)


@pytest.mark.parametrize(
    ("cells", "forward", "right"),
    [("90,0,0", [0, 0, 1], [0, 1, 0]), ("0,90,0", [0, 1, 0], [-1, 0, 0]), ("0,0,90", [1, 0, 0], [0, 0, -1])],
    ids=["pitch lifts the nose", "yaw turns right", "roll lowers the right side"],
)
def test_euler_angles_turn_as_in_the_game(
    tmp_path: Path, cells: str, forward: list[int], right: list[int]
) -> None:
    columns = "[time]\ndt = 1\n[ball]\nposition = [0, 1, 2]\neuler = [3, 4, 5]\nhalf_turn = 180\n"
    turned = read(tmp_path, f"1,2,3,{cells}\n", columns).state.ball_rotation[0].T
    np.testing.assert_allclose(turned, [forward, right, np.cross(forward, right)], atol=1e-6)


def test_cars_stand_blue_first_and_the_ball_beside_them(tmp_path: Path) -> None:
    columns = """
    [time]
    tick = 0
    [ball]
    position = [1, 1, 1]
    [[car]]
    team = "orange"
    hitbox = "dominus"
    position = [2, 2, 2]
    state = { on_ground = 4, boost_amount = 5 }
    [[car]]
    team = "blue"
    position = [3, 3, 3]
    """
    found = read(tmp_path, "0,10,20,30,true,50\n1,10,20,30,0,50\n2,11,21,31,0,50\n", columns)
    state = found.state
    assert state.agents == ("blue-0", "orange-0") and state.car_hitbox[0].tolist() == [0, 1]
    assert (state.ball_position[0, 0], *state.car_position[0, :, 0]) == (10, 30, 20)
    assert state.car_on_ground[0].tolist() == [0, 1] and state.car_boost_amount[0].tolist() == [0, 50]
    assert found.inputs is Inputs.NONE and not found.inputs_recorded.any()


def test_rows_that_say_nothing_new_are_dropped_and_counted(tmp_path: Path) -> None:
    lines = falling(4).splitlines()
    found = read(tmp_path, "\n".join([lines[0], lines[0], *lines[1:], lines[3]]), BALL_MAP)
    assert found.state.matches == 4
    assert found.notes == ["rows dropped that repeat the row before: 2"]


def test_a_repeated_body_is_not_shown_but_its_controls_stay(tmp_path: Path) -> None:
    table = "0,0,0,17,1200,0,0,1,0\n1,0,0,17,1200,0,0,1,1\n2,20,0,17,1200,0,0,1,1\n"
    found = read(tmp_path, table, CAR_MAP)
    assert found.car_shown[:, 0].tolist() == [True, False, True]
    assert found.state.car_controls[:, 0, CONTROL_NAMES.index("jump")].tolist() == [0, 1, 1]
    assert found.segment.tolist() == [0, 0, 0] and found.clock is TimeBase.TICKS
    assert found.inputs_recorded[0].tolist() == [name in ("throttle", "jump") for name in CONTROL_NAMES]


def test_a_resting_car_is_shown_when_its_controls_change(tmp_path: Path) -> None:
    found = read(tmp_path, "0,0,0,17,0,0,8.3,0,0\n1,0,0,17,0,0,8.3,0,1\n", CAR_MAP)
    assert found.car_shown.all()


def test_a_hole_a_jump_and_a_fall_of_time_begin_new_segments(tmp_path: Path) -> None:
    first, later = falling(5), falling(5, start=1.0)
    jumped = later.replace("1.0,0,0,500", "1.0,0,4000,500")
    found = read(tmp_path, first + later + first + jumped, BALL_MAP)
    assert [part.stop - part.start for part in found.segments()] == [5, 5, 5, 1, 4]
    assert found.notes == [
        "new segments where the time falls: 1",
        "new segments, after holes in the time or where nothing moved: 2",
        "new segments where a body is too far from where it was: 1",
    ]


def test_rows_within_one_tick_are_dropped(tmp_path: Path) -> None:
    found = read(tmp_path, "0,0,0,500,1200,0,0\n0.001,1,0,500,1200,0,0\n0.01,12,0,500,1200,0,0\n", BALL_MAP)
    assert found.tick.tolist() == [0, 1] and found.notes == ["rows dropped in the tick of the row before: 1"]


@pytest.mark.parametrize("pace", [0.9958, 1.0, 1.004])
def test_a_rounded_clock_that_runs_slow_or_fast_keeps_all_rows(pace: float, tmp_path: Path) -> None:
    seconds = np.round(np.arange(600) / 120 * pace, 3).tolist()
    text = "".join(f"{time:.3f},{10 * row},0,500,1200,0,0\n" for row, time in enumerate(seconds))
    found = read(tmp_path, text, BALL_MAP)
    assert found.seconds.tolist() == seconds and not found.notes
    assert np.abs(found.tick - np.arange(600)).max() <= 3 and (np.diff(found.tick) > 0).all()


def test_a_trial_shows_the_car_at_its_start_and_its_end(tmp_path: Path) -> None:
    found = read(tmp_path, "100,3,2,-5,7,40\n200,0,0,0,0,0\n300,5,5,-6,8,50\n", TRIAL_MAP)
    first, second = found.segments()
    assert found.state.agents == ("orange-0",)
    start, end = (np.flatnonzero(found.car_shown[first, 0])).tolist()
    assert end - start == 3 and end == first.stop - 1
    np.testing.assert_array_equal(found.state.car_linear_velocity[start, 0], [0, 100, 0])
    np.testing.assert_array_equal(found.state.car_position[end, 0], [-5, -2993, 17])
    np.testing.assert_allclose(found.state.car_linear_velocity[end, 0], [0, 40, 0], atol=1e-4)
    steer = found.state.car_controls[first, 0, CONTROL_NAMES.index("steer")]
    assert steer.tolist() == [0] * start + [-1, -1, 0, 0]
    assert (found.state.car_controls[:, 0, CONTROL_NAMES.index("throttle")] == 1).all()
    assert second.stop - second.start == start + 6
    assert "rows dropped whose trial lasts 0 ticks: 1" in found.notes


def test_inputs_that_are_applied_need_no_rows_before_a_trial(tmp_path: Path) -> None:
    found = read(tmp_path, "100,3,2,-5,7,40\n", TRIAL_MAP.replace("sent", "applied"))
    assert found.tick.tolist() == [0, 1, 2, 3] and found.car_shown[[0, -1]].all()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", r"table.csv holds no rows, expected a table of numbers"),
        ("0,1,2,3,4,5,6\n1,1,2,x,4,5,6\n", r"table.csv row 2, column 3 \(position of ball\): 'x', expected"),
        ("t,x,y,z,u,v,w\n0,1,2,3,4,5,6\n", r"row 1, column 0 .*: 't', expected a number; .* header = true"),
        ("0,1,2,nan,4,5,6\n", r"row 1, column 3 \(position of ball\): nan, expected a finite number"),
        ("0,1,2,1e999,4,5,6\n", r"row 1, column 3 .*: inf, expected a finite number"),
        ("0,1,2,3,4,5,6\n\n1,1,2\n", r"table.csv row 3 has 3 columns, expected 7 as before it"),
        ("0,1,2\n", r"table.csv has 3 columns \(0 to 2\), expected a column 3 .* belong to this table"),
        ("0,1,2,30000,4,5,6\n", r"row 1, position of ball: 30000 uu, expected 0 to 10000; .* scale right"),
        ("0,1,2,3,4,5,60000\n", r"row 1, velocity of ball: 60000 uu/s, expected 0 to 7000"),
        ("1e12,1,2,3,4,5,6\n0,1,2,3,4,5,6\n", r"row 2, seconds: 0 s, more than a match can last"),
        ('{"0": 1}\n', r"line 1, column 1 \(position of ball\): there is no '1' in the object, which has 0"),
        ("{]\n", r"table.csv line 1 is {\], expected one whole JSON object on each line: "),
    ],
)
def test_what_is_wrong_with_a_table_is_said_in_one_line(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, table, BALL_MAP)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("columns", "table", "message"),
    [
        (NAMED_MAP, "t;x;y;z\n0;1;2;3\n", r"no column 't' .*it has t;x;y;z; it has semicolons, expected"),
        (NAMED_MAP, "x,y,z\n1,2,3\n", r"has no column 't' \(seconds\); it has x, y, z"),
        (NAMED_MAP, "t,x,y,z,x\n0,1,2,3,4\n", r"has 2 columns 'x' \(position of ball\), expected one: name"),
        (CAR_MAP, "0.5,0,0,17,0,0,0,0,0\n", r"row 1, tick: 0.5, expected a whole number; is it a time"),
        (CAR_MAP, "0,0,0,17,0,0,0,100,0\n", r"row 1, throttle of car 0: 100 of a control, expected -1 to 1"),
        (SCALED_MAP, "1000,2,3\n", "row 1, position of ball: inf uu, expected"),
        ("[time]\ndt = 0.1\n" + "[[car]]\nposition = [0, 1, 2]\n" * 5, "1,2,3\n",
         r"it has 5 \[\[car\]\] of team blue, expected 4 at most"),
    ],
)  # fmt: skip
def test_what_a_map_does_not_find_in_a_table_is_named(
    tmp_path: Path, columns: str, table: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, table, columns)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    table, columns = written(tmp_path, "", BALL_MAP)
    table.write_bytes(b"\x89PNG\xff\x00")
    with pytest.raises(ValueError, match=r"table.csv is no text \(byte 0\), expected CSV or JSON lines"):
        read_table(table, columns)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[ball]", "[bal]"), r"map.toml: the map has a key bal, which means nothing; the nearest is ball"),
        (("velocity", "velocty"), r"\[ball\] has a key velocty, .* the nearest is velocity"),
        (("[1, 2, 3]", "[1, 2]"), r"position in \[ball\] is \[1, 2\], expected 3 columns"),
        (("[1, 2, 3]", "[1, 2, -3]"), r"position in \[ball\] is -3, expected a column \(an index from 0"),
        (("seconds = 0", ""), r"\[time\] has nothing, expected one of seconds, tick and dt"),
        (("seconds = 0", "dt = 0"), r"dt in \[time\] is 0, expected seconds above 0"),
        (("[time]\nseconds = 0", ""), r"it has no \[time\], expected one of \[time\] and \[trial\]"),
        (("position = [1, 2, 3]", ""), r"\[ball\] has no position"),
        (("[4, 5, 6]", "[4, 5, 6]\neuler=[1,2,3]\nmatrix=[1,2,3,4,5,6,7,8,9]"), r"expected one of them"),
        (("[4, 5, 6]", "[4, 5, 6]\nhalf_turn = 180"), r"half_turn stands in \[ball\] without euler"),
        (("[4, 5, 6]", "[4, 5, 6]\nteam = 'blue'"), r"\[ball\] has a key team"),
        (("[time]", "header = 1\n[time]"), r"header is 1, expected true or false"),
        (("[time]", "[time"), r"map.toml cannot be read as TOML: .*line 2"),
    ],
)
def test_what_is_wrong_with_a_map_is_said_in_one_line(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    _, columns = written(tmp_path, "", BALL_MAP.replace(*change))
    with pytest.raises(ValueError, match=message) as caught:
        read_columns(columns)
    assert "\n" not in str(caught.value)


def test_a_map_says_whether_controls_were_sent_or_applied(tmp_path: Path) -> None:
    _, columns = written(tmp_path, "", CAR_MAP.replace('inputs = "sent"', ""))
    with pytest.raises(ValueError, match=r"map.toml: inputs is missing, expected one of sent, applied"):
        read_columns(columns)


@pytest.mark.parametrize("columns", sorted(COLUMNS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_map_that_comes_with_the_project_is_read(columns: Path) -> None:
    assert read_columns(columns).source == columns


def turned(found: Recording, rotation: np.ndarray, spin: np.ndarray, rows: np.ndarray) -> float:
    """Return how far rotations turn from row to row beside what the spin says, median in rad/s."""
    turn = np.einsum("nij,nkj->nik", rotation[rows + 1], rotation[rows])
    axis = np.stack(
        [turn[:, 2, 1] - turn[:, 1, 2], turn[:, 0, 2] - turn[:, 2, 0], turn[:, 1, 0] - turn[:, 0, 1]], -1
    )
    rate = axis / 2 / (found.seconds[rows + 1] - found.seconds[rows])[:, None]
    return float(np.median(np.linalg.norm(rate - (spin[rows + 1] + spin[rows]) / 2, axis=-1)))


def test_a_real_free_ball_moves_and_turns_as_its_velocities_say() -> None:
    found = read_table(real("ball/episode_000000.csv"), COLUMNS / "lobot-ball.toml")
    state = found.state
    assert found.segment[-1] == 0 and state.matches == 613 and found.clock is TimeBase.SECONDS
    rows = np.arange(200)
    way = np.diff(state.ball_position[:201], axis=0) / np.diff(found.seconds[:201])[:, None]
    between = (state.ball_linear_velocity[1:201] + state.ball_linear_velocity[:200]) / 2
    assert np.median(np.linalg.norm(way - between, axis=-1)) < 6  # 0.2 percent of wrong clock at 2000 uu/s
    assert turned(found, state.ball_rotation, state.ball_angular_velocity, rows) < 0.1


def test_a_real_aerial_turns_by_its_spin_and_keeps_its_jumps() -> None:
    found = read_table(real("car/aerial_120hz.txt"), COLUMNS / "lobot-car.toml")
    state = found.state
    assert found.inputs is Inputs.SENT and found.inputs_recorded.all()
    steady = (np.diff(found.tick) == 1) & (np.diff(found.segment) == 0)
    rows = np.flatnonzero(steady & (state.car_on_ground[:-1, 0] == 0))
    assert turned(found, state.car_rotation[:, 0], state.car_angular_velocity[:, 0], rows) < 0.05
    jump = state.car_controls[:, 0, CONTROL_NAMES.index("jump")]
    assert (np.diff(jump) > 0).sum() == 7
    speed = np.linalg.norm(state.car_linear_velocity[:, 0], axis=-1)
    assert speed[state.car_is_supersonic[:, 0] > 0].min() > 2100


def test_real_drives_without_a_clock_have_one_of_61_hertz() -> None:
    found = read_table(real("car/ground_episode_02.csv"), COLUMNS / "lobot-car-untimed.toml")
    assert found.state.matches == 301 and found.seconds[-1] == pytest.approx(300 * 0.01639)
    state = found.state
    way = np.diff(state.car_position[:, 0], axis=0)[:, :2] / 0.01639
    between = (state.car_linear_velocity[1:, 0, :2] + state.car_linear_velocity[:-1, 0, :2]) / 2
    wrong = np.linalg.norm(way - between, axis=-1) / np.linalg.norm(between, axis=-1)
    assert np.median(wrong) < 0.01  # the usual rate is not quite that of this drive
    assert (state.car_on_ground == 1).all() and (state.car_boost_amount == 100).all()


def test_real_turns_are_trials_to_their_measured_end() -> None:
    found = read_table(real("turns/turn.accel.txt"), COLUMNS / "measurebot-turns.toml")
    assert found.segment[-1] + 1 == 3214
    part = list(found.segments())[1]
    start, end = (part.start + np.flatnonzero(found.car_shown[part, 0])).tolist()
    assert end - start == 6  # the one that the bot's setting takes, and 5
    forward = found.state.car_rotation[end, 0, :, 0]
    assert np.arctan2(-forward[0], forward[1]) == pytest.approx(0.008341, abs=1e-5)
    steer = found.state.car_controls[:, 0, CONTROL_NAMES.index("steer")]
    assert steer[part].sum() == 5 and steer[start] == 1
