"""Wrong numbers and arrays are refused by name, and change nothing."""

import re
import subprocess
import sys

import numpy as np
import pytest
import rocketsim_batch as rs
from scenes import World, bits, playing, random_controls, resting

STATE_FIELDS = [
    "gravity", "boost_consumption", "dodge_deadzone", "ball_position", "ball_rotation",
    "ball_linear_velocity", "ball_angular_velocity", "pad_timer",
    "car_hitbox", "car_position", "car_rotation", "car_linear_velocity",
    "car_angular_velocity", "car_boost_amount", "car_demo_respawn_timer", "car_supersonic_time",
    "car_boost_active_time", "car_handbrake", "car_has_jumped", "car_is_holding_jump", "car_is_jumping",
    "car_jump_time", "car_has_flipped", "car_has_double_jumped", "car_air_time_since_jump", "car_flip_time",
    "car_flip_torque", "car_is_autoflipping", "car_autoflip_timer", "car_autoflip_direction", "car_controls",
]  # fmt: skip
"""Fields that `put` reads."""


@pytest.fixture
def unchanged():
    """Return a world of five matches; afterwards it must go on as a twin does to which nothing was done."""
    world, twin = (playing(5, 2, 1, seed=4) for _ in range(2))
    before = bits(world.buffer).copy()
    yield world
    assert (bits(world.buffer) == before).all(), "the buffer changed"
    controls = random_controls(np.random.default_rng(1), 5, 3)
    for one in (world, twin):
        one.step(controls, 60)
    assert (bits(world.buffer) == bits(twin.buffer)).all(), "the matches changed"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, -1e30])
@pytest.mark.parametrize("field", STATE_FIELDS)
def test_a_bad_number_in_the_third_of_five_states_puts_none(field, value, unchanged):
    states = unchanged.buffer.copy()
    of_car = field.startswith("car_")
    rs.views(unchanged.layout, states)[field][(2, 1) if of_car else 2] = value
    words = "match 2, car 1: " if of_car else f"match 2, {field}"
    with pytest.raises(ValueError, match=words) as caught:
        unchanged.matches.put(unchanged.all, states, unchanged.buffer)
    name = {"car_controls": "throttle"}.get(field, field.removeprefix("car_"))
    assert name in str(caught.value) and "expected" in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e9])
@pytest.mark.parametrize(
    "field", ["ball_position", "ball_linear_velocity", "car_position", "car_angular_velocity"]
)
def test_a_bad_number_in_a_nudge_moves_nothing(field, value, unchanged):
    states = unchanged.buffer.copy()
    rs.views(unchanged.layout, states)[field][3, ..., -1] = value
    with pytest.raises(ValueError, match=f"match 3, .*{field.removeprefix('car_')}"):
        unchanged.matches.nudge(unchanged.all, states, unchanged.buffer)


@pytest.mark.parametrize(
    "rotation", [np.zeros((3, 3)), np.diag([1, 1, -1]), np.full((3, 3), 0.5), 2 * np.eye(3)]
)
def test_what_is_no_rotation_is_refused(rotation, unchanged):
    states = unchanged.buffer.copy()
    rs.views(unchanged.layout, states)["car_rotation"][1, 2] = rotation
    with pytest.raises(ValueError, match=r"match 1, car 2: rotation is .*expected a rotation matrix"):
        unchanged.matches.put(unchanged.all, states, unchanged.buffer)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1.01, -1.01, 1e30])
@pytest.mark.parametrize("name", ["throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake"])
def test_bad_controls_name_match_car_and_control(name, value, unchanged):
    names = ["throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake"]
    controls = np.zeros((5, 3, 4, 8), np.float32)
    controls[3, 2, 1, names.index(name)] = value
    with pytest.raises(ValueError, match=f"match 3, car 2: {name} is .*-1 to 1"):
        unchanged.matches.step(unchanged.buffer, controls, 4)
    with pytest.raises(ValueError, match=f"match 3, car 2: {name} is .*-1 to 1"):
        unchanged.matches.play(unchanged.buffer, controls)


def arrays(world):
    buffer, size = world.buffer, world.layout.size
    controls, delay = np.zeros((5, 3, 1, 8), np.float32), np.zeros((5, 3), np.int64)
    read_only = buffer.copy()
    read_only.flags.writeable = False
    return [
        ("fewer rows", buffer[:4], controls, delay, "float32.*5"),
        ("no rows", buffer[:0], controls, delay, "float32.*5"),
        ("short rows", np.ascontiguousarray(buffer[:, :-1]), controls, delay, str(size)),
        ("flat", buffer.ravel(), controls, delay, ""),
        ("float64", buffer.astype(float), controls, delay, ""),
        ("big-endian", buffer.astype(">f4"), controls, delay, ""),
        ("Fortran order", np.asfortranarray(buffer), controls, delay, "buffer is not C-contiguous"),
        ("strided", np.repeat(buffer, 2, 1)[:, ::2], controls, delay, "buffer is not C-contiguous"),
        ("read-only", read_only, controls, delay, ""),
        ("no array", buffer.tolist(), controls, delay, ""),
        ("None", None, controls, delay, ""),
        ("controls of 4 matches", buffer, controls[:4], delay, "controls is .*expected"),
        ("controls of 2 cars", buffer, np.zeros((5, 2, 1, 8), np.float32), delay, "controls is .*expected"),
        ("no vectors", buffer, np.zeros((5, 3, 0, 8), np.float32), delay, "controls is .*expected"),
        ("3 vectors of 4", buffer, np.zeros((5, 3, 3, 8), np.float32), delay, "controls is .*expected"),
        ("7 controls", buffer, np.zeros((5, 3, 1, 7), np.float32), delay, "controls is .*expected"),
        ("float64 controls", buffer, controls.astype(float), delay, ""),
        ("3 dimensions", buffer, controls[:, :, 0], delay, ""),
        (
            "strided controls",
            buffer,
            np.zeros((5, 3, 1, 16), np.float32)[..., ::2],
            delay,
            "controls is not C-cont",
        ),
        ("int32 delay", buffer, controls, delay.astype(np.int32), ""),
        ("delay of 4 matches", buffer, controls, delay[:4], "delay is .*expected"),
        ("negative delay", buffer, controls, delay - 1, "match 0, car 0 is -1"),
        ("endless delay", buffer, controls, delay + 2**62, "expected 0 to"),
    ]


@pytest.mark.parametrize("number", range(23))
def test_arrays_of_a_wrong_kind_are_refused(number, unchanged):
    what, buffer, controls, delay, words = arrays(unchanged)[number]
    with pytest.raises((ValueError, TypeError), match=words):
        unchanged.matches.step(buffer, controls, 4, delay)
        pytest.fail(what)


def test_arrays_that_share_memory_are_refused(unchanged):
    buffer = unchanged.buffer
    with pytest.raises(Exception, match="borrow") as caught:
        unchanged.matches.put(unchanged.all, buffer, buffer)
    assert isinstance(caught.value, Exception)
    shared = np.zeros(2000, np.float32)
    size = unchanged.layout.size
    shared = np.zeros(5 * size + 5 * 3 * 8, np.float32)
    controls = shared[: 5 * 3 * 8].reshape(5, 3, 1, 8)
    with pytest.raises(Exception, match="borrow"):
        unchanged.matches.step(shared[: 5 * size].reshape(5, size), controls, 1)


@pytest.mark.parametrize("ticks", [0, -1, 10**9, 2**64, 1.5, None, "8"])
def test_absurd_numbers_of_ticks_are_refused(ticks, unchanged):
    controls = np.zeros((5, 3, 1, 8), np.float32)
    with pytest.raises((ValueError, TypeError, OverflowError)):
        unchanged.matches.step(unchanged.buffer, controls, ticks)
    with pytest.raises((ValueError, TypeError, OverflowError)):
        unchanged.matches.forecast_ball([0], ticks)
    with pytest.raises((ValueError, TypeError, OverflowError)):
        unchanged.matches.forecast_ball([0], 10, ticks)


def test_numbers_of_matches_and_cars_are_checked(unchanged):
    matches, buffer = unchanged.matches, unchanged.buffer
    for numbers in ([5], [0, 0], [2**40]):
        with pytest.raises(ValueError, match="matches has"):
            matches.kickoff(numbers, buffer)
        with pytest.raises(ValueError, match="matches has"):
            matches.put(numbers, buffer[: len(numbers)].copy(), buffer)
        with pytest.raises(ValueError, match="matches has"):
            matches.forecast_ball(numbers)
    with pytest.raises(ValueError, match="car is 3, the match has 3 cars"):
        matches.demolish(0, 3, buffer)
    with pytest.raises(ValueError, match="1 sources for 2 targets"):
        matches.clone_into([0], [1, 2], buffer)
    with pytest.raises(ValueError, match="states is float32"):
        matches.put([0, 1], buffer[:1].copy(), buffer)
    with pytest.raises(ValueError, match="cars is bool"):
        matches.nudge([0], buffer[:1].copy(), buffer, cars=np.ones((1, 2), bool))
    with pytest.raises(ValueError, match="lengths is"):
        matches.play(buffer, np.zeros((5, 3, 4, 8), np.float32), lengths=[1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match=r"expected .* at most; take fewer matches"):
        matches.play(buffer, np.zeros((5, 3, 300_000, 8), np.float32))


def test_no_matches_at_all_are_fine(unchanged):
    empty = np.zeros((0, unchanged.layout.size), np.float32)
    unchanged.matches.put([], empty, unchanged.buffer)
    unchanged.matches.nudge([], empty, unchanged.buffer)
    unchanged.matches.kickoff([], unchanged.buffer)
    unchanged.matches.clone_into([], [], unchanged.buffer)
    assert unchanged.matches.forecast_ball([], 80, 8).shape == (0, 10, 9)
    assert unchanged.matches.forecast_ball([0], 5, 8).shape == (1, 0, 9)


@pytest.mark.parametrize(
    ("mutators", "words"),
    [
        ({"gravty": 1}, "no mutator \"gravty\", expected one of .*gravity"),
        ({"gravity": np.nan}, "match 1: mutator gravity is NaN"),
        ({"ball_radius": 0}, "ball_radius is 0, expected"),
        ({"boost_accel_air": 0, "car_mass": -1}, "car_mass is -1"),
        ({"ball_bounciness": 2.5}, "ball_bounciness is 2.5"),
    ],
)  # fmt: skip
def test_mutators_are_checked_and_none_is_changed(mutators, words, unchanged):
    before = unchanged.matches.mutators(1)
    with pytest.raises(ValueError, match=words):
        unchanged.matches.set_mutators(1, mutators)
    assert unchanged.matches.mutators(1) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"blue": 5, "orange": 0}, "team sizes are 5 and 0"),
        ({"blue": -1, "orange": 0}, ""),
        ({"blue": 1, "orange": 1, "size": 10}, "size is 10, expected"),
        ({"blue": 0, "orange": 0, "size": 0, "match_columns": {}, "car_start": 0}, "size is 0"),
        ({"blue": 1, "orange": 1, "car_start": 2**63, "car_stride": 2**62}, "size is"),
        ({"blue": 1, "orange": 0, "match_columns": {"speed": 0}}, "has \"speed\", expected names of"),
        ({"blue": 1, "orange": 0, "car_columns": {"position": 9}, "car_stride": 10}, "is 9, expected at most 7"),  # noqa: E501
        ({"blue": 1, "orange": 0, "car_columns": {"position": 2**64 - 2}}, "expected at most"),
        ({"blue": 1, "orange": 0, "car_columns": {"position": 0, "rotation": 2}}, "where position lie too"),
        ({"blue": 1, "orange": 0, "size": 200, "car_start": 1, "match_columns": {"gravity": 3}}, "the cars lie too"),  # noqa: E501
        ({"blue": 1, "orange": 0, "pads": [0] * 34}, "pads is"),
        ({"blue": 1, "orange": 0, "pads": list(range(33))}, "pads is"),
    ],
)  # fmt: skip
def test_layouts_that_cannot_be_are_refused(options, words):
    with pytest.raises((ValueError, OverflowError), match=words):
        rs.Layout(**options)


def test_groups_that_cannot_be_are_refused():
    rs.load_meshes()
    for matches, threads, words in ((0, 1, "matches is 0"), (10**9, 1, "matches is"), (1, 0, "threads is 0")):
        with pytest.raises(ValueError, match=words):
            rs.Matches(matches, rs.Layout(1, 1), threads=threads)


def test_a_group_without_states_says_so():
    world = World(2, 1, 1)
    for call in (
        world.step,
        lambda: world.matches.kickoff([0], world.buffer),
        lambda: world.matches.forecast_ball([1]),
    ):
        with pytest.raises(rs.MatchError, match=re.escape("it has no state yet")):
            call()


def test_a_folder_without_meshes_is_refused_with_what_to_install(tmp_path):
    code = f"import rocketsim_batch as rs; rs.load_meshes({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "FileNotFoundError" in done.stderr and "pip install rlgym-rocket-league" in done.stderr
    code = "import rocketsim_batch as rs; rs.Matches(1, rs.Layout(1, 1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "call load_meshes() first" in done.stderr


def test_one_bad_group_of_several_steps_none(unchanged):
    other = resting(2, 1, 1)
    before = other.buffer.copy()
    bad = np.full((2, 2, 1, 8), 7, np.float32)
    with pytest.raises(ValueError, match="group 1: controls of match 0, car 0: throttle is 7"):
        rs.step_groups(
            [
                (unchanged.matches, unchanged.buffer, np.zeros((5, 3, 1, 8), np.float32), None),
                (other.matches, other.buffer, bad, None),
            ],
            8,
        )
    assert (other.buffer == before).all()
    with pytest.raises(RuntimeError):
        rs.step_groups(
            [(unchanged.matches, unchanged.buffer, np.zeros((5, 3, 1, 8), np.float32), None)] * 2, 8
        )


def test_odd_calls_in_any_order_crash_nothing(monkeypatch, capsys):
    """`python fuzz.py SECONDS` goes on for longer."""
    pytest.importorskip("hypothesis")
    import fuzz

    monkeypatch.setattr(rs, "crash_folder", None)
    fuzz.fuzz(3)
    printed = capsys.readouterr().out
    assert "no crash" in printed and "PANIC" not in printed
