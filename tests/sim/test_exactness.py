"""RocketSim 3 gives the last printed digits of captures of the real game, with nothing fitted."""

import re
from functools import cache

import numpy as np
import pytest

from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3, SimulatorError, check_simulator
from tests.support.captures import Capture, load_capture
from tests.support.free_runs import FOLLOWED, FreeRun, capture_files, run_free
from tests.support.real_data import real
from tools.physics.capture_tables import describe_captures
from tools.physics.window_tables import describe_recordings, read_recording

_KNOWN = {
    "airborne-hit", "ball-hit-65", "bumpr_900", "clean-dodge", "goal-shot-net-entry", "half_flip", "landing",
    "probe_ball_wall", "probe_powerslide", "throttle-jump", "wall_ride",
}  # fmt: skip
_SECOND = 120  # ticks
_LAST_DIGIT = 0.01 * 3**0.5  # uu, or uu/s, of three components

every_capture = pytest.mark.parametrize("name", sorted(_KNOWN | {path.stem for path in capture_files()}))


def require_native() -> None:
    """Skip the test where RocketSim 3 is not installed."""
    try:
        check_simulator(ROCKETSIM3)
    except SimulatorError as error:
        pytest.skip(str(error))


@cache
def read(name: str) -> Capture:
    return load_capture(real(f"game-2026/{name}.csv"))


@cache
def played(name: str, free: int = FOLLOWED) -> FreeRun:
    """Return a capture beside RocketSim 3; the test is skipped where one of them is absent."""
    require_native()
    return run_free(read(name), ROCKETSIM3, free)


def hits(name: str) -> list[int]:
    """Return the rows of a capture in which a car has hit the ball."""
    capture = read(name)
    return [int(row) for row in np.searchsorted(capture.recording.tick, capture.hits)]


@every_capture
def test_every_car_is_within_hundredths_of_the_game_s(name: str) -> None:
    run = played(name)
    for car in range(run.real.layout.cars):
        if (second := run.row_after(_SECOND)) is not None:
            assert run.car_error(second, car)[0] <= 0.02
        assert run.car_error(-1, car)[0] <= 0.05


@every_capture
def test_a_ball_without_a_hit_is_within_hundredths_for_a_second(name: str) -> None:
    struck = hits(name)
    for free in (FOLLOWED, *(row + 2 for row in struck)):
        run = played(name, free)
        rows = np.flatnonzero((run.ticks >= 0) & (run.ticks <= _SECOND)).tolist()
        untouched = [row for row in rows if not any(free < hit <= row for hit in struck)]
        assert len(untouched) > 20 and max(run.ball_error(row)[0] for row in untouched) <= 0.02


@pytest.mark.parametrize(
    ("name", "speed"), [("airborne-hit", 3165), ("ball-hit-65", 1591), ("goal-shot-net-entry", 2512)]
)
def test_a_hit_gives_ball_and_car_the_velocities_of_the_game(name: str, speed: int) -> None:
    (hit,) = hits(name)
    for free in (FOLLOWED, hit - 1):
        run = played(name, free)
        assert np.linalg.norm(run.real.ball_linear_velocity[hit]) == pytest.approx(speed, abs=1)
        assert run.ball_error(hit)[1] <= 0.2
        assert run.car_error(hit, 0)[1] <= _LAST_DIGIT


def test_the_table_shows_that_the_old_simulator_is_farther_off() -> None:
    capture, run = read("probe_powerslide"), played("probe_powerslide")
    old = run_free(capture, ROCKETSIM2)
    after = run.row_after(_SECOND)
    assert after is not None and old.car_error(after, 0)[0] > 3
    lines = [line for line in describe_captures([capture]) if line.startswith("| probe_powerslide")]
    assert [line.split(" | ")[1] for line in lines] == [ROCKETSIM2, ROCKETSIM3]
    for line, one in zip(lines, (old, run), strict=True):
        assert f"{one.car_error(after, 0)[0]:.3f} / {one.car_error(after, 0)[1]:.2f}" == line.split(" | ")[4]


def test_the_ball_of_a_replay_flies_as_the_game_s_for_a_second() -> None:
    pytest.importorskip("subtr_actor")
    require_native()
    file = real("replays/KICKOFF_TEST_1.replay")
    lines = describe_recordings([read_recording(file)], [ROCKETSIM3])
    (line,) = (line for line in lines if line.startswith("| ball in the air"))
    told = re.fullmatch(r"(\S+) / \S+; \S+ / \S+ \((\d+)\)", line.split(" | ")[4])
    assert told is not None and float(told[1]) <= 0.02 and int(told[2]) >= 10
