# ruff: noqa: E501
"""Call the module with odd shapes, values and orders of calls: `python fuzz.py [SECONDS]`.

Build it with overflow checks and debug assertions first: `maturin build --profile release-checked`. An exception
that is none of the module's own kinds, a panic that left the module, or a number that is not finite ends it.
"""

import random as plain
import sys
import time
from collections import Counter

import numpy as np
import rocketsim_batch as rs
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

FINE = (ValueError, TypeError, OverflowError, rs.MatchError, MemoryError)
EXTREME = [
    0.0,
    -0.0,
    1e-45,
    1e-30,
    1e-8,
    0.1,
    0.5,
    0.65,
    1.0,
    1.25,
    2.0,
    93.15,
    99.9,
    2300.0,
    5124.25,
    6000.0,
    9999.0,
    19999.0,
    1e5,
    1e6,
    3e38,
    float("inf"),
    float("nan"),
]
number = st.one_of(st.sampled_from(EXTREME + [-value for value in EXTREME]), st.floats(width=32))
counts: Counter[str] = Counter()


def layouts(data):
    """Draw a layout, whole or with fields left out."""
    blue, orange = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    full = rs.Layout(blue, orange)
    if data.draw(st.booleans()):
        return full
    names = data.draw(st.sets(st.sampled_from(sorted(full.fields)), min_size=1))
    own, cars = {}, {}
    at = {"own": 0, "cars": 0}
    for name in sorted(names):
        which, of = ("cars", cars) if name.startswith("car_") else ("own", own)
        of[name.removeprefix("car_")] = at[which]
        at[which] += int(np.prod(full.fields[name][1], dtype=int)) + data.draw(st.integers(0, 2))
    pads = data.draw(st.permutations(range(34)))
    return rs.Layout(
        blue, orange, size=at["own"] + (blue + orange) * at["cars"] + data.draw(st.integers(0, 3)) or 1,
        match_columns=own, car_columns=cars, car_start=at["own"], car_stride=at["cars"], pads=pads,
    )  # fmt: skip


def spoil(data, buffer, layout, most=6):
    """Write odd numbers into some fields."""
    state = rs.views(layout, buffer)
    for _ in range(data.draw(st.integers(0, most))):
        name = data.draw(st.sampled_from(sorted(layout.fields)))
        view = state[name]
        if view.dtype != np.float32 or view.size == 0:
            continue
        value = data.draw(number)
        if data.draw(st.booleans()):
            view[...] = value
        else:
            view.flat[data.draw(st.integers(0, view.size - 1))] = value
    return buffer


def believable(random, layout, count):
    """Return states of play that the module takes, with extreme but finite values."""
    buffer = np.zeros((count, layout.size), np.float32)
    state = rs.views(layout, buffer)
    spread = random.choice([1, 100, 3000, 20000])
    ranges = {
        "ball_position": spread, "car_position": spread, "ball_linear_velocity": random.choice([1, 6000, 1e5]),
        "car_linear_velocity": random.choice([1, 2300, 1e5]), "ball_angular_velocity": random.choice([1, 6, 1e3]),
        "car_angular_velocity": random.choice([1, 5.5, 1e3]), "pad_timer": 0, "car_flip_torque": 10,
    }  # fmt: skip
    draw = np.random.default_rng(random.randrange(2**32))
    for name, view in state.items():
        if view.dtype != np.float32:
            continue
        if name.endswith("rotation"):
            q, r = np.linalg.qr(draw.normal(size=(*view.shape[:-2], 3, 3)))
            q = q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
            q[..., 0] *= np.sign(np.linalg.det(q))[..., None]
            view[...] = q
        elif name in ranges:
            view[...] = draw.uniform(-1, 1, view.shape) * ranges[name]
        elif name == "car_hitbox":
            view[...] = draw.integers(0, 7, view.shape)
        elif name in ("gravity", "boost_consumption"):
            view[...] = (
                random.choice([1, 1, 1, 0, -1, 1000]) if name == "gravity" else random.choice([0, 1, 1000])
            )
        elif "time" in name and name != "pad_timer":
            view[...] = draw.choice([0, 0.01, 0.65, 1.25, 2, 1e6], view.shape)
        else:
            view[...] = draw.choice([0, 1], view.shape)
    return buffer


def controls(data, random, count, cars, ticks):
    """Draw control vectors, sometimes of a wrong shape, kind or value."""
    shape = [count, cars, random.choice([1, ticks]), 8]
    if random.random() < 0.05:
        shape[random.randrange(4)] += random.choice([-1, 1])
    draw = np.random.default_rng(random.randrange(2**32))
    vectors = draw.uniform(-1, 1, [max(0, one) for one in shape]).astype(np.float32)
    if vectors.size and random.random() < 0.1:
        vectors.flat[random.randrange(vectors.size)] = data.draw(number)
    if random.random() < 0.03:
        vectors = vectors.astype(random.choice([np.float64, np.int32, bool]))
    return np.asfortranarray(vectors) if random.random() < 0.03 else vectors


TERMS = [
    "goal", "touch", "touch_strength", "velocity_to_ball", "speed", "velocity_ball_to_goal", "face_ball", "boost_kept",
    "boost_picked_up", "save", "demolition", "mate_distance", "air_touch", "fly_to_ball", "in_air", "kickoff_speed",
]  # fmt: skip


def spoiled_shape(random, *shape):
    """Return a shape, now and then with one number more or less in one place."""
    shape = list(shape)
    if random.random() < 0.05:
        shape[random.randrange(len(shape))] += random.choice([-1, 1])
    return [max(0, one) for one in shape]


def numbers_in(draw, random, low, high, *shape):
    """Draw int64 numbers of a range, now and then one outside, or a wrong dtype."""
    numbers = draw.integers(low, max(low + 1, high), spoiled_shape(random, *shape))
    if numbers.size and random.random() < 0.05:
        numbers.flat[random.randrange(numbers.size)] = random.choice([-2, high, 2**40, -(2**63), 2**63 - 1])
    return numbers.astype(np.int32) if random.random() < 0.02 else numbers


def observe(data, random, buffer, layout, count):
    """Make an observer of drawn columns and vectors and let it observe the matches of a buffer."""
    draw = np.random.default_rng(random.randrange(2**32))
    width, cars, size = layout.size, max(1, layout.blue + layout.orange), random.choice([1, 8, 60])
    columns = random.randrange(size + 1)
    options = {}
    if random.random() < 0.5:
        options["minus"] = numbers_in(draw, random, -1, width, cars, columns)
    if random.random() < 0.5:
        options["absent"] = draw.random(spoiled_shape(random, cars, columns)) < 0.3
    if random.random() < 0.6:
        vectors = random.choice([5, 5 + 2 * (cars - 1), 12])
        options |= {
            "rotations": numbers_in(draw, random, 0, width - 9, cars).tolist(),
            "places": numbers_in(draw, random, 0, size - 2, vectors).tolist(),
            "ends": numbers_in(draw, random, 0, width - 3, cars, vectors),
            "origins": numbers_in(draw, random, 0, width - 3, cars, vectors),
            "sight_factors": draw.normal(size=spoiled_shape(random, cars, vectors)).astype(np.float32),
            "goals": draw.normal(size=spoiled_shape(random, cars, 2, 3)).astype(np.float32),
        }
        if random.random() < 0.5:
            options["start"] = random.randrange(-1, size + 1)
            options["ranks"] = draw.random(spoiled_shape(random, cars, max(1, cars - 1)))
        if random.random() < 0.1:
            options.pop(random.choice(list(options)))
    factors = draw.normal(size=spoiled_shape(random, cars, columns)).astype(np.float32)
    observer = rs.Observer(
        width, size, numbers_in(draw, random, -1, width, cars, columns), factors, **options
    )
    states = spoil(data, buffer.copy(), layout) if random.random() < 0.3 else buffer
    observer.observe(states, np.zeros(spoiled_shape(random, count, cars, size), np.float32))


def judge(data, random, buffer, layout, count):
    """Let rewards of drawn parts judge a buffer, and add them."""
    draw = np.random.default_rng(random.randrange(2**32))
    cars, rows = layout.blue + layout.orange, random.randrange(1, 6)
    terms = [
        (
            random.randrange(rows),
            random.choice(TERMS if random.random() < 0.98 else ["nonsense"]),
            data.draw(number),
        )
        for _ in range(random.randrange(8))
    ]
    after = spoil(data, buffer.copy(), layout) if random.random() < 0.5 else buffer
    columns = np.zeros(spoiled_shape(random, rows, count, cars), np.float32)
    rs.Rewards(layout, terms).fill(buffer, after, columns)
    rs.add_rewards(
        columns, draw.normal(size=spoiled_shape(random, rows)).tolist(), random.choice([layout.blue, layout.blue, 0, 9]),
        random.choice([0.0, 0.5, 1.0, data.draw(number)]), random.random() < 0.5,
        np.zeros(spoiled_shape(random, count, cars), np.float32),
    )  # fmt: skip


def fly(data, random):
    """Forecast balls of drawn states."""
    draw = np.random.default_rng(random.randrange(2**32))
    ticks = [random.choice([1, 2, 30, 240, 1200]) for _ in range(random.randrange(4))]
    if random.random() < 0.05:
        ticks.append(random.choice([0, -1, 1201, 2**40]))
    balls = draw.uniform(-1, 1, spoiled_shape(random, random.randrange(4), 10)).astype(np.float32)
    scale = [
        random.choice([1, 0, 3]),
        4000,
        5000,
        2000,
        *[random.choice([6000, 1e5])] * 3,
        *[random.choice([6, 1e4])] * 3,
    ]
    if balls.shape[-1:] == (10,):
        balls *= np.array(scale, np.float32)
    if balls.size and random.random() < 0.3:
        balls.flat[random.randrange(balls.size)] = data.draw(number)
    flown = rs.BallFlights(ticks).forecast(balls)
    assert np.isfinite(flown).all(), (balls, flown)


def call(data, random, group, others):
    """Call one method with drawn arguments."""
    matches, buffer, layout, count = group
    cars = layout.blue + layout.orange
    some = data.draw(
        st.lists(st.integers(-1 if random.random() < 0.02 else 0, count), max_size=count, unique=True)
    )
    if random.random() < 0.9:
        some = [one for one in some if 0 <= one < count]
    ticks = random.choice([1, 1, 2, 8, 30, 200])
    what = random.choice(
        [
            "step",
            "step",
            "step",
            "put",
            "put",
            "nudge",
            "kickoff",
            "clone_into",
            "play",
            "forecast_ball",
            "forecast",
            "set_mutators",
            "respawn",
            "demolish",
            "seed",
            "groups",
            "panic",
            "observe",
            "judge",
            "fly",
        ]
    )
    counts[what] += 1
    if what == "observe":
        return observe(data, random, buffer, layout, count)
    if what == "judge":
        return judge(data, random, buffer, layout, count)
    if what == "fly":
        return fly(data, random)
    if what in ("step", "play"):
        vectors = controls(data, random, count, cars, ticks)
        if what == "play":
            return matches.play(
                buffer,
                vectors,
                every=random.choice([1, 3, ticks, 500]),
                lengths=random.choice([None, [random.randrange(ticks + 1) for _ in range(count)]]),
            )
        delay = None
        if random.random() < 0.5:
            delay = np.random.default_rng(random.randrange(99)).integers(
                0, random.choice([1, 5, 40]), (count, cars)
            )
            if random.random() < 0.05:
                delay = delay + random.choice([-1, 2**40, 2**63 - 50])
        return matches.step(
            buffer,
            vectors,
            random.choice([ticks, ticks, ticks, 0, 10**8]) if random.random() < 0.1 else ticks,
            delay,
        )
    if what == "put":
        states = believable(random, layout, len(some))
        return matches.put(some, spoil(data, states, layout) if random.random() < 0.4 else states, buffer)
    if what == "nudge":
        states = (
            buffer[some].copy()
            if random.random() < 0.5 and all(0 <= one < count for one in some)
            else believable(random, layout, len(some))
        )
        moved = np.random.default_rng(random.randrange(99)).random((len(some), cars)) < 0.5
        return matches.nudge(
            some,
            spoil(data, states, layout, 2) if random.random() < 0.3 else states,
            buffer,
            ball=random.random() < 0.5,
            cars=random.choice([None, moved]),
        )
    if what == "kickoff":
        return matches.kickoff(some, buffer)
    if what == "clone_into":
        return matches.clone_into([random.randrange(count) for _ in some], some, buffer)
    if what == "forecast_ball":
        ball = matches.forecast_ball(some, ticks, random.choice([1, 3, ticks]))
        assert np.isfinite(ball).all()
        return None
    if what == "forecast":
        states = np.zeros((len(some), layout.size), np.float32)
        return matches.forecast(some, controls(data, random, len(some), cars, ticks), states)
    if what == "set_mutators":
        names = sorted(matches.mutators(0))
        return matches.set_mutators(
            random.randrange(count), {random.choice(names): data.draw(number) for _ in range(2)}
        )
    if what in ("respawn", "demolish"):
        return getattr(matches, what)(random.randrange(count), random.randrange(cars + 1), buffer)
    if what == "seed":
        return matches.seed(random.choice([0, 1, 2**64 - 1, 2**64]), random.choice([None, some]))
    if what == "panic":
        if random.random() < 0.7:
            calls = ["put", "nudge", "kickoff", "clone_into", "forecast_ball", "forecast", "respawn"]
            calls += ["demolish"]
            calls += ["step"] * 3
            matches.panic_next(random.randrange(count), random.choice(calls), random.choice([0, 0, 5]))
        return None
    return rs.step_groups(
        [
            (one[0], one[1], controls(data, random, one[3], one[2].blue + one[2].orange, ticks), None)
            for one in others
        ],
        ticks,
    )


def face(data):
    """Call a few groups in turn."""
    random = plain.Random(data.draw(st.integers(0, 2**32)))
    groups = []
    for _ in range(data.draw(st.integers(1, 2))):
        layout, count = layouts(data), data.draw(st.integers(1, 3))
        matches = rs.Matches(count, layout, seed=random.randrange(2**64), threads=random.choice([1, 1, 2]))
        buffer = np.zeros((count, layout.size), np.float32)
        matches.put(list(range(count)), believable(random, layout, count), buffer)
        groups.append((matches, buffer, layout, count))
    for _ in range(data.draw(st.integers(1, 15))):
        group = random.choice(groups)
        try:
            call(data, random, group, groups)
            counts["fine"] += 1
        except FINE as error:
            counts[type(error).__name__] += 1
            if (
                isinstance(error, rs.MatchError)
                and "a test asked" not in str(error)
                and "dead matches" not in str(error)
            ):
                counts["PANIC " + str(error.args[0])[-230:]] += 1
        matches, buffer, layout, count = group
        events, statistics = matches.events(), matches.statistics()
        assert np.isfinite(events["numbers"]).all() and (statistics >= 0).all()
        shown = rs.views(layout, buffer)
        for name in (
            "ball_position",
            "ball_linear_velocity",
            "ball_rotation",
            "car_position",
            "car_linear_velocity",
            "car_angular_velocity",
            "car_rotation",
            "car_boost_amount",
        ):
            if name in shown:
                assert np.isfinite(shown[name]).all(), (name, shown[name])
        if random.random() < 0.5:
            for dead in matches.dead():
                matches.panic_next(dead)  # not in put
                matches.put([dead], believable(random, layout, 1), buffer)


def fuzz(seconds):
    """Fuzz for some seconds and print what was called."""
    rs.load_meshes()
    end, examples, number_of = time.time() + seconds, 0, int(time.time())
    while time.time() < end:
        phases = [Phase.generate]
        options = settings(
            max_examples=40,
            deadline=None,
            database=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        )
        print("seed", number_of, end="\r", flush=True)

        def once(data):
            face(data)

        options(seed(number_of)(given(st.data())(once)))()
        examples, number_of = examples + 40, number_of + 1
    print(f"{examples} examples, no crash")
    for name, count in counts.most_common():
        print(f"{count:8} {name}")


if __name__ == "__main__":
    rs.crash_folder = None
    fuzz(float(sys.argv[1]) if len(sys.argv) > 1 else 120)
