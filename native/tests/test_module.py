"""The module as a whole: its README, its build, threads, processes, signals and memory."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import rocketsim_batch as rs
from scenes import bits, playing, random_controls

NATIVE = Path(__file__).parents[1]
SLOW = bool(os.environ.get("ROCKETSIM_BATCH_SLOW"))


def test_the_examples_of_the_readme_run(capsys):
    first, second = re.findall(
        r"```python\n(.*?)```", (NATIVE / "README.md").read_text(encoding="utf-8"), re.S
    )
    assert len(first.splitlines()) <= 15
    names = {}
    exec(first, names)
    assert "[" in capsys.readouterr().out
    exec(second, names)
    assert "(2, 90, 9)" in capsys.readouterr().out
    assert (names["state"]["frame"] == 120 + 240).all()


def test_the_readme_tells_what_each_field_and_each_kind_of_event_is():
    text = (NATIVE / "README.md").read_text(encoding="utf-8")
    for name in rs.Layout(1, 1).fields:
        assert f"`{name}`" in text, name
    source = Path(rs.__file__).read_text(encoding="utf-8")
    for kind, _ in rs.KINDS:
        assert re.search(rf"^\| .*\b{kind}\b", source, re.M), kind


def test_new_states_begin_matches_by_the_games_rules():
    rs.load_meshes()
    layout = rs.Layout(2, 1)
    states = rs.new_states(layout, 3)
    assert states.shape == (3, layout.size) and states.dtype == np.float32
    matches, buffer = rs.Matches(3, layout), np.zeros((3, layout.size), np.float32)
    matches.put(range(3), states, buffer)
    matches.kickoff(range(3), buffer)
    state = rs.views(layout, buffer)
    assert (state["car_boost_amount"] > 33).all() and (state["car_team"] == (0, 0, 1)).all()
    assert (state["gravity"] == 1).all() and (state["boost_consumption"] == 1).all()
    assert (state["dodge_deadzone"] == 0.5).all() and (state["car_bump_victim"] == -1).all()
    few = rs.Layout(1, 0, size=12, match_columns={}, car_start=0, car_stride=12, car_columns={"rotation": 3})
    assert rs.new_states(few, 1).sum() == 3


def test_a_build_of_these_sources_has_their_hash_and_another_has_not(tmp_path):
    assert rs.source_hash(NATIVE) == rs.SOURCE_HASH, "the build is stale: pip install ./native"
    (tmp_path / "src").mkdir()
    for file in (NATIVE / "src").glob("*.rs"):
        (tmp_path / "src" / file.name).write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    (tmp_path / ".cargo").mkdir()
    for name in ("Cargo.lock", ".cargo/config.toml"):
        (tmp_path / name).write_bytes((NATIVE / name).read_bytes())
    assert rs.source_hash(tmp_path) == rs.SOURCE_HASH, "Windows' line ends change nothing"
    (tmp_path / "src" / "game.rs").write_bytes((NATIVE / "src" / "game.rs").read_bytes() + b"//")
    assert rs.source_hash(tmp_path) != rs.SOURCE_HASH
    assert isinstance(rs.INTERFACE, int)


def test_every_public_method_says_what_it_does():
    for of in (rs._native.Matches, rs.Layout, rs.BallFlights):
        for name in dir(of):
            if not name.startswith("_"):
                assert getattr(of, name).__doc__, name


def test_sources_are_without_unsafe_code_and_at_most_4000_lines():
    texts = [file.read_text(encoding="utf-8") for file in (NATIVE / "src").glob("*.rs")]
    assert sum(text.count("\n") for text in texts) <= 4000
    assert not any(re.search(r"\bunsafe\b", text.replace("unsafe_code", "")) for text in texts)


@pytest.mark.skipif(os.name == "nt", reason="SIGINT to a child process")
@pytest.mark.parametrize("call", ["matches.play(buffer, long)", "matches.step(buffer, held, 3_000_000)"])
def test_ctrl_c_ends_a_long_call_within_a_second_and_shows_what_was_simulated(call):
    code = f"""
import sys, numpy as np
sys.path.insert(0, {str(Path(__file__).parent)!r})
from scenes import playing
world = playing(4, 3, 3)
matches, buffer, frame = world.matches, world.buffer, world.state["frame"]
held, long = np.zeros((4, 6, 1, 8), np.float32), np.zeros((4, 6, 100_000, 8), np.float32)
matches.step(buffer, held, 1)
before = frame.copy()
print("begins", flush=True)
try:
    {call.replace("long)", "long, every=1000)")}
    print("ended", flush=True)
except KeyboardInterrupt:
    gone = frame - before
    print("interrupted", gone.min() > 0 and (gone == gone[0]).all(), flush=True)
    matches.step(buffer, held, 8)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begins\n"
        time.sleep(0.6)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        words = process.stdout.read()
        took = time.monotonic() - begin
    assert words == "interrupted True\n" and process.returncode == 0
    assert took < 3  # 0.2 s where nothing else runs


def test_other_threads_run_while_a_step_does():
    world = playing(8, 3, 3)
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    world.step(ticks=6000)
    during = counted[0] - before
    done.set()
    thread.join()
    assert during > 5


def test_a_second_call_during_a_step_is_an_error_and_not_a_crash():
    world = playing(8, 3, 3)
    errors = []
    thread = threading.Thread(target=lambda: world.step(ticks=20_000))
    thread.start()
    time.sleep(0.1)
    for call in (
        world.step, world.matches.events, world.matches.dead, lambda: len(world.matches),
        lambda: world.matches.kickoff([0], world.buffer), lambda: world.matches.forecast_ball([0]),
    ):  # fmt: skip
        if thread.is_alive():
            with pytest.raises(
                RuntimeError, match=r"these matches are in another call, .* wait until it returns"
            ):
                call()
            errors.append(call)
    thread.join()
    assert errors
    world.step()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_with_two_threads_plays_the_same_bits():
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
from scenes import digest, playing
world = playing(8, 1, 1, threads=2)
read, write = os.pipe()
child = os.fork()
world.step(ticks=200)
if child == 0:
    os.write(write, digest(world.buffer).encode())
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(os.read(read, 100).decode() == digest(world.buffer))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "True\n", done.stderr


def test_groups_stepped_in_one_call_equal_groups_stepped_alone():
    def worlds():
        return [playing(3, 1, 1, seed=1, threads=2), playing(2, 3, 2, seed=2), playing(4, 0, 0, seed=3)]

    together, alone = worlds(), worlds()
    random = np.random.default_rng(0)
    for _ in range(30):
        controls = [random_controls(random, world.count, world.cars, 8) for world in together]
        delays = [random.integers(0, 12, (3, 2)), None, None]
        parts = zip(together, controls, delays, strict=True)
        rs.step_groups([(world.matches, world.buffer, own, delay) for world, own, delay in parts], 8)
        for world, own, delay in zip(alone, controls, delays, strict=True):
            world.step(own, 8, delay)
        for one, other in zip(together, alone, strict=True):
            assert (bits(one.buffer) == bits(other.buffer)).all()
            assert one.matches.events().tobytes() == other.matches.events().tobytes()
    rs.step_groups([], 8)


@pytest.mark.timeout(3600 if SLOW else 300)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's memory counters")
def test_memory_stays_the_same_over_many_steps():
    """1,000 matches and 10,000 steps with ROCKETSIM_BATCH_SLOW=1."""
    matches, steps = (1000, 10_000) if SLOW else (100, 300)
    world = playing(matches, 1, 1, seed=1)
    random = np.random.default_rng(1)
    some = [random_controls(random, matches, 2) for _ in range(50)]
    late = np.full((matches, 2), 10)

    def play(count):
        for step in range(count):
            world.step(some[step % 50], 8, late)
            if step % 20 == 0:
                world.matches.put([step % matches], world.buffer[:1].copy(), world.buffer)
                world.matches.clone_into([0], [1], world.buffer)
                world.matches.forecast_ball([0], 60)
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    first = play(steps // 3)
    assert play(steps) - first < 2e6 + 1000 * matches


@pytest.mark.timeout(600)
@pytest.mark.skipif(not SLOW, reason="takes half a minute: ROCKETSIM_BATCH_SLOW=1")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's memory counters")
def test_memory_saturates_in_single_ticks_of_random_play():
    """RocketSim's lists of contacts and cells keep their largest size, which matches reach by and by."""
    world = playing(100, 3, 3, ticks=0)
    random = np.random.default_rng(1)
    some = [random_controls(random, 100, 6) for _ in range(64)]

    def grow():
        before = int(Path("/proc/self/statm").read_text().split()[1])
        for _ in range(10_000):
            world.step(some[random.integers(64)])
        return (int(Path("/proc/self/statm").read_text().split()[1]) - before) * os.sysconf("SC_PAGE_SIZE")

    first, second = grow(), grow()
    assert second < 400_000 and second < first / 4  # a byte a match and tick would be 1,000,000


def test_a_processor_without_the_build_s_instructions_is_refused() -> None:
    from rocketsim_batch._processor import check_processor

    for features in ({"SSE42": True}, {}):
        check_processor("x86_64", features)
    check_processor("arm64", {"SSE42": False})
    with pytest.raises(ImportError, match=r"needs a processor of x86-64-v2 .* pip install ./native"):
        check_processor("AMD64", {"SSE42": False})
