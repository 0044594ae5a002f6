"""Wrong numbers and arrays are refused by name, and change nothing."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("field", STATE_FIELDS)
def test_a_bad_number_in_the_third_of_five_states_puts_none(field, unchanged):
    of_car = field.startswith("car_")
    words = "match 2, car 1: " if of_car else f"match 2, {field}"
    name = {"car_controls": "throttle"}.get(field, field.removeprefix("car_"))
    for value in (np.nan, np.inf, -np.inf, 1e30, -1e30):
        states = unchanged.buffer.copy()
        rs.views(unchanged.layout, states)[field][(2, 1) if of_car else 2] = value
        with pytest.raises(ValueError, match=words) as caught:
            unchanged.matches.put(unchanged.all, states, unchanged.buffer)
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
def test_bad_controls_name_match_car_and_control(value, unchanged):
    names = ["throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake"]
    for place, name in enumerate(names):
        controls = np.zeros((5, 3, 4, 8), np.float32)
        controls[3, 2, 1, place] = value
        with pytest.raises(ValueError, match=f"match 3, car 2: {name} is .*-1 to 1"):
            unchanged.matches.step(unchanged.buffer, controls, 4)
        with pytest.raises(ValueError, match=f"match 3, car 2: {name} is .*-1 to 1"):
            unchanged.matches.play(unchanged.buffer, controls)


FLOATS = "float32"
WANTED = r"expected a C-contiguous, aligned array float32"


def askew(buffer):
    """Return equal numbers that begin between two places of a float32."""
    bytes_ = np.zeros(buffer.nbytes + 1, np.uint8)[1:]
    bytes_[:] = np.ascontiguousarray(buffer).view(np.uint8).ravel()
    return bytes_.view(np.float32).reshape(buffer.shape)


def arrays(world):
    buffer, size = world.buffer, world.layout.size
    controls, delay = np.zeros((5, 3, 1, 8), np.float32), np.zeros((5, 3), np.int64)
    read_only = buffer.copy()
    read_only.flags.writeable = False
    return [
        ("fewer rows", buffer[:4], controls, delay, "float32.*5"),
        ("no rows", buffer[:0], controls, delay, "float32.*5"),
        ("short rows", np.ascontiguousarray(buffer[:, :-1]), controls, delay, str(size)),
        ("flat", buffer.ravel(), controls, delay, f"buffer is {FLOATS}.{5 * size}., {WANTED}.5, {size}.,"),
        ("float64", buffer.astype(float), controls, delay, "buffer is float64.*as np.zeros makes it"),
        ("big-endian", buffer.astype(">f4"), controls, delay, f"buffer is >f4.*, {WANTED}"),
        ("Fortran order", np.asfortranarray(buffer), controls, delay, "buffer is .*, not C-contiguous"),
        ("strided", np.repeat(buffer, 2, 1)[:, ::2], controls, delay, "buffer is .*, not C-contiguous"),
        ("upside down", buffer[::-1], controls, delay, "buffer is .*, not C-contiguous"),
        ("askew", askew(buffer), controls, delay, f"buffer is {FLOATS}.*, {WANTED}"),
        ("read-only", read_only, controls, delay, "buffer is read-only, expected an array to write into"),
        ("no array", buffer.tolist(), controls, delay, f"buffer is of the type list, {WANTED}"),
        ("None", None, controls, delay, f"buffer is of the type NoneType, {WANTED}"),
        ("controls of 4 matches", buffer, controls[:4], delay, "controls is .*expected"),
        ("controls of 2 cars", buffer, np.zeros((5, 2, 1, 8), np.float32), delay, "controls is .*expected"),
        ("no vectors", buffer, np.zeros((5, 3, 0, 8), np.float32), delay, "controls is .*expected"),
        ("3 vectors of 4", buffer, np.zeros((5, 3, 3, 8), np.float32), delay, "controls is .*expected"),
        ("7 controls", buffer, np.zeros((5, 3, 1, 7), np.float32), delay, "controls is .*expected"),
        ("float64 controls", buffer, controls.astype(float), delay, "controls is float64.*np.require"),
        ("3 dimensions", buffer, controls[:, :, 0], delay, r"controls is float32.5, 3, 8., .*5, 3, 4, 8"),
        ("broadcast", buffer, np.broadcast_to(controls[:1], controls.shape), delay, "controls is .*, not C-"),
        (
            "strided controls",
            buffer,
            np.zeros((5, 3, 1, 16), np.float32)[..., ::2],
            delay,
            "controls is .*, not C-contiguous",
        ),
        ("int32 delay", buffer, controls, delay.astype(np.int32), "delay is int32.*, .* array int64.5, 3."),
        ("list of delays", buffer, controls, delay.tolist(), "delay is of the type list, .* array int64"),
        ("delay of 4 matches", buffer, controls, delay[:4], "delay is .*expected"),
        ("negative delay", buffer, controls, delay - 1, "match 0, car 0 is -1"),
        ("endless delay", buffer, controls, delay + 2**62, "expected 0 to"),
    ]


@pytest.mark.parametrize("number", range(27))
def test_arrays_of_a_wrong_kind_are_refused(number, unchanged):
    what, buffer, controls, delay, words = arrays(unchanged)[number]
    with pytest.raises(ValueError, match=words):
        unchanged.matches.step(buffer, controls, 4, delay)
        pytest.fail(what)


def test_there_is_a_case_for_each_wrong_kind_of_array():
    assert len(arrays(playing(5, 2, 1, ticks=0))) == 27


def test_arrays_that_share_memory_are_refused(unchanged):
    buffer, size = unchanged.buffer, unchanged.layout.size
    words = "shares memory with another array in use, expected its own: "
    with pytest.raises(ValueError, match=words + r"\w+\.copy"):
        unchanged.matches.put(unchanged.all, buffer, buffer)
    with pytest.raises(ValueError, match=words + r"\w+\.copy"):
        unchanged.matches.nudge([1, 2], buffer[1:3], buffer)
    shared = np.zeros(5 * size + 5 * 3 * 8, np.float32)
    controls = shared[: 5 * 3 * 8].reshape(5, 3, 1, 8)
    with pytest.raises(ValueError, match=words + r"\w+\.copy"):
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
    for numbers, words in (
        ([5], "a number in matches is 5, expected 0 to 4"),
        ([0, -1], "a number in matches is -1, expected 0 to 4"),
        ([2**80], f"a number in matches is {2**80}, expected 0 to 4"),
        ([3, 1, 3], "matches has 3 twice"),
    ):
        for call in (
            lambda numbers: matches.kickoff(numbers, buffer),
            lambda numbers: matches.put(numbers, buffer[: len(numbers)].copy(), buffer),
            lambda numbers: matches.nudge(numbers, buffer[: len(numbers)].copy(), buffer),
            lambda numbers: matches.clone_into([0] * len(numbers), numbers, buffer),
            lambda numbers: matches.forecast_ball(numbers),
            lambda numbers: matches.seed(0, numbers),
        ):
            with pytest.raises(ValueError, match=words):
                call(numbers)
    for car in (3, -1, 2**80):
        with pytest.raises(ValueError, match=f"car is {car}, expected 0 to 2"):
            matches.demolish(0, car, buffer)
    with pytest.raises(ValueError, match="1 sources for 2 targets"):
        matches.clone_into([0], [1, 2], buffer)
    with pytest.raises(ValueError, match="states is float32"):
        matches.put([0, 1], buffer[:1].copy(), buffer)
    with pytest.raises(ValueError, match="cars is bool"):
        matches.nudge([0], buffer[:1].copy(), buffer, cars=np.ones((1, 2), bool))
    with pytest.raises(ValueError, match="a number in lengths is 5, expected 0 to 4"):
        matches.play(buffer, np.zeros((5, 3, 4, 8), np.float32), lengths=[1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match="lengths is a list of 2, expected 5 numbers"):
        matches.play(buffer, np.zeros((5, 3, 4, 8), np.float32), lengths=[1, 2])
    with pytest.raises(ValueError, match=r"expected .* at most; take fewer matches"):
        matches.play(buffer, np.zeros((5, 3, 300_000, 8), np.float32))


@pytest.mark.parametrize("mask", [[True, False], np.array([True, False, False, True, False])])
def test_a_mask_of_matches_is_not_taken_for_the_numbers_0_and_1(mask, unchanged):
    for call in (
        lambda: unchanged.matches.kickoff(mask, unchanged.buffer),
        lambda: unchanged.matches.clone_into(mask, mask, unchanged.buffer),
        lambda: unchanged.matches.forecast_ball(mask),
    ):
        with pytest.raises(TypeError, match=r"a bool came, expected a whole number; np.flatnonzero"):
            call()


def test_numbers_may_be_numpys_own(unchanged):
    numbers = np.flatnonzero(np.array([True, False, False, True, False]))
    assert unchanged.matches.forecast_ball(numbers, np.int64(8), np.uint8(4)).shape == (2, 2, 9)


@pytest.mark.parametrize("seed", [-1, 2**64, -(2**70)])
def test_seeds_below_zero_or_beyond_64_bits_are_refused(seed, unchanged):
    words = f"seed is {seed}, expected 0 to {2**64 - 1}"
    for call in (
        lambda: rs.Matches(1, unchanged.layout, seed=seed),
        lambda: unchanged.matches.seed(seed),
        lambda: unchanged.matches.set_seeds(0, (1, seed)),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    rs.Matches(1, unchanged.layout, seed=2**64 - 1)


def test_a_panic_of_an_unknown_call_is_refused(unchanged):
    with pytest.raises(ValueError, match='call is "play", expected one of step, put'):
        unchanged.matches.panic_next(0, "play")


@pytest.mark.parametrize("hitbox", [0.5, 5.999])
def test_a_hitbox_between_two_is_refused(hitbox, unchanged):
    states = unchanged.buffer.copy()
    rs.views(unchanged.layout, states)["car_hitbox"][2, 1] = hitbox
    with pytest.raises(
        ValueError, match=r"match 2, car 1: hitbox is .*, expected a whole number from 0 to 6"
    ):
        unchanged.matches.put(unchanged.all, states, unchanged.buffer)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (np.asfortranarray, r"buffer is float32\[5, \d+\], not C-contiguous, expected a C-contiguous"),
        (lambda buffer: buffer.astype(float), "buffer is float64.*expected .*float32.matches, "),
        (lambda buffer: buffer[0], "buffer is float32.*expected .*float32.matches, "),
        (lambda buffer: buffer[:, :-1], "buffer is float32.*expected .*float32.matches, "),
    ],
)
def test_no_views_are_returned_that_would_be_copies(spoil, words, unchanged):
    with pytest.raises(ValueError, match=words):
        rs.views(unchanged.layout, spoil(unchanged.buffer))


def test_an_error_tells_about_five_dead_matches_and_has_the_numbers_of_all():
    world = World(7, 1, 1)
    with pytest.raises(rs.MatchError) as caught:
        world.step()
    assert str(caught.value).endswith("match 4: it has no state yet; and 2 more")
    assert str(caught.value).startswith("dead matches; make them anew with put()")
    assert caught.value.args[1] == list(range(7))


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
        ({"demo_mode": 1.5}, "demo_mode is 1.5, expected a whole number from 0 to 2"),
        ({"unlimited_flips": 0.5}, "unlimited_flips is 0.5, expected a whole number from 0 to 1"),
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
        ({"blue": 5, "orange": 0}, "blue, the size of a team, is 5, expected 0 to 4"),
        ({"blue": 0, "orange": -1}, "orange, the size of a team, is -1, expected 0 to 4"),
        ({"blue": 1, "orange": 1, "size": 10}, "size is 10, expected"),
        ({"blue": 0, "orange": 0, "size": 0, "match_columns": {}, "car_start": 0}, "size is 0"),
        ({"blue": 1, "orange": 1, "car_start": 2**63, "car_stride": 2**62}, f"car_start is {2**63}, expected 0 to"),  # noqa: E501
        ({"blue": 1, "orange": 1, "car_stride": -1}, "car_stride is -1, expected 0 to"),
        ({"blue": 1, "orange": 0, "match_columns": {"gravity": -1}}, r"gravity.. is -1, expected 0 to"),
        ({"blue": 1, "orange": 0, "car_columns": {"position": 0}, "car_stride": 2}, "position. of 3 numbers, expected fields of 2"),  # noqa: E501
        ({"blue": 1, "orange": 0, "match_columns": {"speed": 0}}, "has \"speed\", expected names of"),
        ({"blue": 1, "orange": 0, "car_columns": {"position": 9}, "car_stride": 10}, "is 9, expected 0 to 7"),
        ({"blue": 1, "orange": 0, "car_columns": {"position": 2**64 - 2}}, "is 18446744073709551614, expected 0 to 67"),  # noqa: E501
        ({"blue": 1, "orange": 0, "car_columns": {"position": 0, "rotation": 2}}, "where position lie too"),
        ({"blue": 1, "orange": 0, "size": 200, "car_start": 1, "match_columns": {"gravity": 3}}, "the cars lie too"),  # noqa: E501
        ({"blue": 1, "orange": 0, "pads": [0] * 34}, "pads is"),
        ({"blue": 1, "orange": 0, "pads": list(range(33))}, "pads is"),
    ],
)  # fmt: skip
def test_layouts_that_cannot_be_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        rs.Layout(**options)


def test_groups_that_cannot_be_are_refused():
    rs.load_meshes()
    for matches, threads, words in (
        (0, 1, "matches is 0"),
        (10**9, 1, "matches is"),
        (1, 0, "threads is 0"),
        (1, -1, "threads is -1, expected 1 to 1024"),
    ):
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


def spoiled_meshes(folder, spoil):
    """Copy the meshes into a folder, each changed by `spoil(number, bytes)`; None leaves one out."""
    (spec,) = importlib.util.find_spec("rlgym.rocket_league.sim").submodule_search_locations
    (folder / "soccar").mkdir()
    for number, file in enumerate(sorted(Path(spec, "collision_meshes", "soccar").glob("*.cmf"))):
        new = spoil(number, file.read_bytes())
        if new is not None:
            (folder / "soccar" / file.name).write_bytes(new)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda number, old: old[:-7] if number == 3 else old,
            "that cannot be read, expected the 16 of: pip",
        ),
        (lambda number, old: b"", "that cannot be read, expected the 16 of: pip install --force-reinstall"),
        (lambda number, old: b"\xff" * 3000, "that cannot be read, expected the 16 of: pip install"),
        (lambda number, old: None if number == 9 else old, "has 15 collision meshes, expected 16 files"),
    ],
)
def test_spoiled_meshes_are_refused_and_whole_ones_taken_afterwards(spoil, words, tmp_path):
    spoiled_meshes(tmp_path, spoil)
    code = f"""
import rocketsim_batch as rs
try:
    rs.load_meshes({str(tmp_path)!r})
except FileNotFoundError as error:
    print(error)
assert not rs.meshes_loaded()
rs.load_meshes()
rs.Matches(1, rs.Layout(1, 1))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert words in done.stdout and str(tmp_path / "soccar") in done.stdout


@pytest.mark.parametrize("call", ["rs.Matches(1, rs.Layout(1, 1))", "rs.pad_positions()"])
def test_what_needs_meshes_says_so_before_they_are_loaded(call):
    code = f"import rocketsim_batch as rs; {call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "FileNotFoundError: the collision meshes are not loaded; call load_meshes() first" in done.stderr


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
    with pytest.raises(
        RuntimeError, match=r"these matches are in another call, .*, expected one call at a time"
    ):
        rs.step_groups(
            [(unchanged.matches, unchanged.buffer, np.zeros((5, 3, 1, 8), np.float32), None)] * 2, 8
        )


def test_odd_calls_in_any_order_crash_nothing(monkeypatch, capsys):
    """`python fuzz.py SECONDS` goes on for longer."""
    pytest.importorskip("hypothesis")
    import fuzz

    monkeypatch.setattr(rs, "crash_folder", None)
    fuzz.fuzz(1)
    printed = capsys.readouterr().out
    assert "no crash" in printed and "PANIC" not in printed
