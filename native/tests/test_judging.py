"""Observers and rewards: what they write, and what they refuse."""

import numpy as np
import pytest
import rocketsim_batch as rs
from scenes import playing

LAYOUT = rs.Layout(2, 1)
CARS, MATCHES = 3, 4
START, STRIDE = LAYOUT.car_start, LAYOUT.car_stride
TABLE = np.zeros((2, 5), np.int64), np.ones((2, 5), np.float32)


def column(name, car=None):
    """Return the first column of a field."""
    place = LAYOUT.fields[name if car is None else f"car_{name}"][0]
    return place if car is None else START + car * STRIDE + place


def sights(count=5, cars=2):
    """Return arguments of vectors from each car to the ball."""
    ends = np.full((cars, count), column("ball_position"), np.int64)
    origins = np.array([[column("position", car)] * count for car in range(cars)], np.int64)
    return {
        "rotations": [column("rotation", car) for car in range(cars)],
        "places": [5 + 3 * number for number in range(count)],
        "ends": ends,
        "origins": origins,
        "sight_factors": np.full((cars, count), 0.5, np.float32),
        "goals": np.zeros((cars, 2, 3), np.float32),
    }


def test_an_observer_shows_columns_constants_and_vectors_in_the_cars_frame():
    world = playing(MATCHES, 2, 1, seed=3)
    columns = np.array([[0, column("clock"), column("boost_amount", car), -1] for car in range(2)], np.int64)
    columns[:, 0] = column("ball_position")
    factors = np.array([[2, 0, 0.01, 7]] * 2, np.float32)
    around = sights() | {"places": [4 + 3 * number for number in range(5)]}
    observer = rs.Observer(LAYOUT.size, 19, columns, factors, **around)
    seen = np.full((MATCHES, 2, 19), np.nan, np.float32)
    observer.observe(world.buffer, seen)
    state = world.state
    np.testing.assert_array_equal(seen[..., 0], 2 * state["ball_position"][:, :1].repeat(2, 1))
    np.testing.assert_allclose(seen[..., 2], state["car_boost_amount"][:, :2] * 0.01, rtol=1e-6)
    assert (seen[..., 1] == 0).all() and (seen[..., 3] == 7).all()
    away = (state["ball_position"][:, None] - state["car_position"][:, :2]) / 2
    expected = np.einsum("ncj,ncji->nci", away, state["car_rotation"][:, :2])
    np.testing.assert_allclose(seen[..., 13:16], expected, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(seen[..., 4:7], axis=-1), 0.5, rtol=1e-5)


def test_an_observer_takes_a_column_off_and_shows_absence():
    world = playing(MATCHES, 2, 1, seed=3)
    boost = column("boost_amount", 0)
    columns, factors = np.array([[boost, boost, boost]]), np.array([[1, 0.5, 3]], np.float32)
    minus = np.array([[-1, column("boost_amount", 1), -1]])
    observer = rs.Observer(
        LAYOUT.size, 3, columns, factors, minus=minus, absent=np.array([[False, False, True]])
    )
    world.state["car_boost_amount"][:2, 0] = 0
    seen = np.zeros((MATCHES, 1, 3), np.float32)
    observer.observe(world.buffer, seen)
    amounts = world.state["car_boost_amount"]
    np.testing.assert_array_equal(seen[:, 0, 1], (amounts[:, 0] - amounts[:, 1]) * np.float32(0.5))
    assert seen[:, 0, 2].tolist() == [1, 1, 0, 0]
    with pytest.raises(ValueError, match="a number in minus is -2"):
        rs.Observer(LAYOUT.size, 3, columns, factors, minus=minus - 1)
    with pytest.raises(ValueError, match="absent is int64"):
        rs.Observer(LAYOUT.size, 3, columns, factors, absent=minus)


def test_blocks_are_sorted_by_distance_and_rank():
    world = playing(MATCHES, 2, 1, seed=5)
    around = sights(9, 1)
    for block, car in enumerate((1, 2)):
        around["ends"][0, 5 + 2 * block : 7 + 2 * block] = column("position", car)
    around["places"] = [0, 3, 6, 9, 12, 18, 21, 27, 30]
    columns, factors = np.full((1, 33), -1, np.int64), np.zeros((1, 33), np.float32)
    factors[0, [15, 24]] = (1, 2)
    state = world.state
    away = np.linalg.norm(state["car_position"][:, 1:] - state["car_position"][:, :1], axis=-1)
    for ranks, expected in (((0, 0), 1 + away.argmin(1)), ((1e12, 0), [2] * 4), ((0, 1e12), [1] * 4)):
        observer = rs.Observer(
            LAYOUT.size, 33, columns, factors, **around, start=15, ranks=np.array([ranks], float)
        )
        seen = np.zeros((MATCHES, 1, 33), np.float32)
        observer.observe(world.buffer, seen)
        assert seen[:, 0, 15].tolist() == list(expected)


def test_an_observer_refuses_what_lies_outside():
    columns, factors = TABLE
    far = columns.copy()
    far[1, 2] = LAYOUT.size
    below = columns - 2
    for wrong, words in (
        ((LAYOUT.size, 5, far, factors), "a number in columns is .*, expected 0 to"),
        ((LAYOUT.size, 5, below, factors), "a number in columns is -2"),
        ((LAYOUT.size, 4, columns, factors), "columns have 5 numbers, expected 4 at most"),
        ((LAYOUT.size, 5, columns, factors[:1]), r"factors is float32\[1, 5\]"),
        ((LAYOUT.size, 5, columns.astype(np.int32), factors), "columns is int32"),
        ((LAYOUT.size, 5, None, factors), r"columns have the shape \[\]"),
        ((2, 5, columns, factors), "width is 2"),
        ((LAYOUT.size, 5, np.zeros((1 << 20, 0), np.int64), factors), "cars, expected 128 at most"),
    ):
        with pytest.raises(ValueError, match=words):
            rs.Observer(*wrong)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"places": [0, 1, 2, 3]}, "4 places, expected"),
        ({"places": [0, 1, 2, 3, 18]}, "a number in places is 18"),
        ({"rotations": [0]}, "1 rotations"),
        ({"rotations": [0, LAYOUT.size - 8]}, "a number in rotations"),
        ({"ends": np.full((2, 5), LAYOUT.size - 2)}, "a number in ends"),
        ({"origins": np.full((2, 5), -1)}, "a number in origins is -1"),
        ({"goals": np.zeros((2, 2, 2), np.float32)}, "goals is"),
        ({"start": 5, "ranks": np.zeros((2, 0))}, "0 cars"),
        ({"start": 5}, "expected both or none"),
        ({"goals": None}, "expected all of rotations to goals or none"),
    ],
)
def test_an_observer_refuses_wrong_vectors(changes, words):
    with pytest.raises(ValueError, match=words):
        rs.Observer(LAYOUT.size, 20, *TABLE, **(sights() | changes))


def test_blocks_of_another_size_than_the_rest_are_refused():
    for size, start in ((30, 15), (30, 31), (20000, 0)):
        around = sights(9) | {"places": [0] * 9}
        with pytest.raises(ValueError, match="expected"):
            rs.Observer(LAYOUT.size, size, *TABLE, **around, start=start, ranks=np.zeros((2, 2)))


def test_observations_have_to_fit_their_observer():
    observer = rs.Observer(LAYOUT.size, 5, *TABLE)
    world = playing(MATCHES, 2, 1)
    for buffer, seen, words in (
        (world.buffer, np.zeros((MATCHES, 2, 6), np.float32), "observations is"),
        (world.buffer, np.zeros((MATCHES + 1, 2, 5), np.float32), "observations is"),
        (world.buffer[:, 1:], np.zeros((MATCHES, 2, 5), np.float32), "buffer is"),
        ("rows", np.zeros((0, 2, 5), np.float32), "buffer is of the type"),
    ):
        with pytest.raises(ValueError, match=words):
            observer.observe(buffer, seen)
    observer.observe(world.buffer[:0], np.zeros((0, 2, 5), np.float32))


def test_terms_fill_their_rows_and_leave_others():
    world = playing(MATCHES, 2, 1, seed=2)
    before = world.buffer.copy()
    world.step(np.ones((MATCHES, CARS, 1, 8), np.float32), 8)
    columns = np.full((3, MATCHES, CARS), 9, np.float32)
    rs.Rewards(LAYOUT, [(2, "speed", 0.0), (0, "in_air", 0.0)]).fill(before, world.buffer, columns)
    speeds = np.linalg.norm(world.state["car_linear_velocity"], axis=-1) / 2300
    alive = 1 - world.state["car_is_demoed"]
    np.testing.assert_allclose(columns[2], speeds * alive, rtol=1e-5)
    np.testing.assert_array_equal(columns[0], (1 - world.state["car_on_ground"]) * alive)
    assert (columns[1] == 9).all()


def test_rewards_are_added_and_shared():
    columns = np.array([[[1, 3, 5]], [[10, 20, 30]]], np.float32)
    total = np.zeros((1, 3), np.float32)
    for spirit, zero_sum, expected in (
        (0, False, [12, 26, 40]), (1, False, [19, 19, 40]), (0, True, [-28, -14, 21]),
    ):  # fmt: skip
        rs.add_rewards(columns, [2.0, 1.0], 2, spirit, zero_sum, total)
        assert total[0].tolist() == expected
    rs.add_rewards(columns, [2.0, 1.0], 3, 0.5, True, total)
    assert total[0].tolist() == [19, 26, 33], "no opponents, nothing is taken off"


def test_rewards_refuse_what_does_not_fit():
    world = playing(MATCHES, 2, 1)
    columns, few = np.zeros((1, MATCHES, CARS), np.float32), rs.Layout(1, 1, match_columns={}, car_columns={})
    for make, words in (
        (lambda: rs.Rewards(LAYOUT, [(0, "luck", 0.0)]), 'a term is "luck", expected one of goal, touch'),
        (lambda: rs.Rewards(LAYOUT, [(-1, "goal", 0.0)]), "the row of a term is -1"),
        (lambda: rs.Rewards(few, []), "the layout has no"),
        (lambda: rs.Rewards(LAYOUT, [(1, "goal", 0.0)]).fill(*[world.buffer] * 2, columns), "fills row 1"),
        (lambda: rs.Rewards(LAYOUT, []).fill(world.buffer[:2], world.buffer, columns), "before is"),
        (lambda: rs.Rewards(LAYOUT, []).fill(*[world.buffer] * 2, columns[:, 1:]), "columns is"),
        (lambda: rs.add_rewards(columns, [1.0, 2.0], 2, 0.0, False, columns[0].copy()), "columns is"),
        (lambda: rs.add_rewards(columns, [1.0], 4, 0.0, False, columns[0].copy()), "blue is 4"),
        (lambda: rs.add_rewards(columns, [1.0], 2, 0.0, False, columns), "total has the shape"),
        (lambda: rs.add_rewards(columns, [1.0], 2, 0.0, False, columns[0]), "shares memory"),
    ):
        with pytest.raises(ValueError, match=words):
            make()


def test_an_observer_without_vectors_takes_a_row_that_is_narrower_than_a_rotation():
    seen = np.zeros((2, 1, 1), np.float32)
    rs.Observer(5, 1, np.array([[4]]), np.ones((1, 1), np.float32)).observe(np.eye(2, 5, 3, np.float32), seen)
    assert seen.ravel().tolist() == [0, 1]


def test_blocks_of_no_numbers_are_refused():
    around = sights(7) | {"start": 26, "ranks": np.zeros((2, 1))}
    with pytest.raises(ValueError, match=r"^0 numbers from 26 on .* expected blocks of one size, 1 to"):
        rs.Observer(LAYOUT.size, 26, *TABLE, **around)
