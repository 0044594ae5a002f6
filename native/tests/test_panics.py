"""A panic inside one match leaves the others and the process whole."""

import json
import subprocess
import sys

import numpy as np
import pytest
import rocketsim_batch as rs
from rocketsim_batch.replay import replay
from scenes import bits, playing, random_controls


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(rs, "crash_folder", tmp_path / "crashes")
    return tmp_path / "crashes"


def read(folder):
    """Return what the only file of a panic has."""
    (file,) = folder.glob("crash-*.json")
    return json.loads(file.read_text())


@pytest.mark.parametrize("threads", [1, 2])
def test_the_match_is_dead_and_the_others_equal_a_run_without_the_panic(threads):
    world, twin = playing(5, 2, 1, seed=3, threads=threads), playing(5, 2, 1, seed=3)
    controls = random_controls(np.random.default_rng(1), 5, 3)
    row = world.buffer[2].copy()
    world.matches.panic_next(2)
    with pytest.raises(rs.MatchError, match=r"match 2: .*a test asked for this panic") as caught:
        world.step(controls, 8)
    assert caught.value.args[1:] == ([2], [0])
    twin.step(controls, 8)
    others = [0, 1, 3, 4]
    assert (bits(world.buffer[others]) == bits(twin.buffer[others])).all()
    assert (bits(world.buffer[2]) == bits(row)).all()
    assert list(world.matches.dead()) == [2]
    with pytest.raises(rs.MatchError, match="dead matches; make them anew with put") as caught:
        world.step(controls, 8)
    assert caught.value.args[1] == [2]
    assert (bits(world.buffer[others]) == bits(twin.buffer[others])).all()
    for call in (
        lambda: world.matches.kickoff([2], world.buffer),
        lambda: world.matches.forecast_ball([2]),
        lambda: world.matches.clone_into([2], [0], world.buffer),
        lambda: world.matches.nudge([2], world.buffer[2:3].copy(), world.buffer),
        lambda: world.matches.demolish(2, 0, world.buffer),
    ):
        with pytest.raises(rs.MatchError):
            call()
    world.matches.kickoff([3], world.buffer)
    twin.matches.kickoff([3], twin.buffer)
    world.matches.put([2], world.buffer[2:3].copy(), world.buffer)
    twin.matches.put([2], row[None], twin.buffer)
    assert world.matches.dead() == {}
    for one in (world, twin):
        one.step(controls, 100)
    assert (bits(world.buffer) == bits(twin.buffer)).all()


def test_all_matches_that_panic_in_a_call_are_named():
    world = playing(4, 1, 1)
    for match in (0, 3):
        world.matches.panic_next(match)
    with pytest.raises(rs.MatchError) as caught:
        world.matches.play(world.buffer, np.zeros((4, 2, 20, 8), np.float32))
    assert caught.value.args[1] == [0, 3] and list(world.matches.dead()) == [0, 3]


def test_a_panic_in_one_of_several_groups_names_both():
    worlds = [playing(2, 1, 1), playing(3, 2, 2)]
    worlds[1].matches.panic_next(2)
    parts = [
        (world.matches, world.buffer, np.zeros((world.count, world.cars, 1, 8), np.float32), None)
        for world in worlds
    ]
    frames = worlds[0].state["frame"].copy()
    with pytest.raises(rs.MatchError, match="group 1, match 2") as caught:
        rs.step_groups(parts, 8)
    assert caught.value.args[1:] == ([2], [1]) and (worlds[0].state["frame"] == frames + 8).all()


def test_a_panic_leaves_a_file_with_all_that_a_replay_needs(folder):
    world = playing(3, 1, 1, seed=5)
    world.matches.set_mutators(1, {"ball_bounciness": 0.7})
    world.matches.put([1], world.buffer[1:2].copy(), world.buffer)
    late = random_controls(np.random.default_rng(2), 3, 2)
    world.step(late, 4, np.full((3, 2), 6))
    row, controls = world.buffer[1].copy(), random_controls(np.random.default_rng(1), 3, 2)
    world.matches.panic_next(1)
    with pytest.raises(rs.MatchError):
        world.step(controls, 8)
    (file,) = folder.glob("crash-*.json")
    crash = json.loads(file.read_text())
    assert crash["match"] == 1 and crash["call"] == "step"
    assert "a test asked for this panic" in crash["message"]
    assert crash["state_bits"] == row.view(np.uint32).tolist()
    assert crash["team_sizes"] == [1, 1] and crash["version"] == rs.VERSION
    assert crash["mutators"]["ball_bounciness"] == pytest.approx(0.7)
    assert np.array(crash["controls"], np.float32).shape == (1, 2, 8)
    assert (np.array(crash["controls"], np.float32)[0] == controls[1, :, 0]).all()
    again, words = replay(file)
    assert not again and "did not panic within 1 ticks" in words and "a test asked" in words
    done = subprocess.run(
        [sys.executable, "-m", "rocketsim_batch.replay", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stdout.strip() == words and not done.stderr


def test_a_file_has_the_controls_that_acted_with_their_delays(folder):
    world = playing(1, 1, 0, seed=5)
    first, second = (random_controls(np.random.default_rng(seed), 1, 1, 10) for seed in (1, 2))
    world.step(first, 10, np.array([[4]]))
    world.matches.panic_next(0, ticks=7)
    with pytest.raises(rs.MatchError):
        world.step(second, 10, np.array([[3]]))
    expected = np.concatenate([first[0, 0, 6:9], second[0, 0, :5]])
    assert (np.array(read(folder)["controls"], np.float32)[:, 0] == expected).all()


def test_a_file_begins_where_a_step_with_several_looks_for_ctrl_c_began(folder):
    world = playing(1, 1, 1, seed=5)
    row = world.buffer[0].copy()
    world.matches.panic_next(0, ticks=40_000)
    with pytest.raises(rs.MatchError):
        world.step(ticks=50_000)
    crash = read(folder)
    assert crash["state_bits"] == bits(row).tolist() and len(crash["controls"]) == 40_001
    assert (bits(world.buffer[0]) != bits(row)).any()


CALLS = {
    "step": lambda world, row: world.step(ticks=3),
    "play": lambda world, row: world.matches.play(world.buffer, np.zeros((2, 2, 3, 8), np.float32)),
    "put": lambda world, row: world.matches.put([1], row, world.buffer),
    "nudge": lambda world, row: world.matches.nudge([1], row, world.buffer, cars=np.array([[False, True]])),
    "kickoff": lambda world, row: world.matches.kickoff([1], world.buffer),
    "respawn": lambda world, row: world.matches.respawn(1, 0, world.buffer),
    "demolish": lambda world, row: world.matches.demolish(1, 1, world.buffer),
    "clone_into": lambda world, row: world.matches.clone_into([1], [0], world.buffer),
    "forecast_ball": lambda world, row: world.matches.forecast_ball([1], 20, 5),
    "forecast": lambda world, row: world.matches.forecast([1], np.full((1, 2, 3, 8), 0.5, np.float32), row),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_panic_in_any_call_leaves_a_file_that_replays_it(call, folder, monkeypatch):
    world = playing(2, 1, 1, seed=5)
    row = world.buffer[1:2].copy()
    rs.views(world.layout, row)["car_position"][:, :, 2] += 300
    before = world.buffer.copy()
    name = "step" if call == "play" else call
    world.matches.panic_next(1, name)
    with pytest.raises(rs.MatchError, match=r"match 1: .*a test asked for this panic") as caught:
        CALLS[call](world, row)
    assert caught.value.args[1:] == ([1], [0])
    assert (bits(world.buffer[1]) == bits(before[1])).all()
    crash = read(folder)
    assert (crash["match"], crash["call"]) == (1, name)
    state = np.array([crash["state_bits"]], np.uint32).view(np.float32)
    if call in (
        "clone_into",
        "forecast_ball",
        "forecast",
    ):  # they see no row, so they tell what the ball does
        for field in ("gravity", "ball_position", "ball_rotation", "ball_linear_velocity"):
            own, shown = (rs.views(world.layout, rows)[field] for rows in (state, before[1:2]))
            assert (own == shown).all()
    elif call != "put":
        assert (bits(state[0]) == bits(before[1])).all()
    assert crash["given_bits"] == (bits(row[0]).tolist() if call in ("put", "nudge") else [])
    expected = {"nudge": [1, 0, 1], "respawn": [0], "demolish": [1], "forecast_ball": [20, 5]}
    assert crash["arguments"] == expected.get(call, [])
    if call == "forecast":
        assert crash["controls"] == np.full((3, 2, 8), 0.5).tolist()
    again, words = replay(next(folder.iterdir()))
    assert not again and words.startswith("It did not panic")
    made = []

    class Panicking(rs.Matches):
        """Matches whose next call of the name panics."""

        def set_seeds(self, number, seeds):
            made.append(seeds)
            super().set_seeds(number, seeds)
            self.panic_next(0, name)

    monkeypatch.setattr(rs, "Matches", Panicking)
    again, words = replay(next(folder.glob("crash-*-1.json")))
    assert again and words.startswith("It panicked again") and made == [tuple(crash["seeds"])]


def test_a_replayed_kickoff_chooses_the_spots_of_the_one_that_panicked(folder, monkeypatch):
    world, twin = playing(1, 2, 2, seed=9), playing(1, 2, 2, seed=9)
    twin.matches.kickoff([0], twin.buffer)
    world.matches.panic_next(0, "kickoff")
    with pytest.raises(rs.MatchError):
        world.matches.kickoff([0], world.buffer)
    shown = []

    class Watched(rs.Matches):
        """Matches that remember what their kickoff shows."""

        def kickoff(self, matches, buffer):
            super().kickoff(matches, buffer)
            shown.append(buffer.copy())

    monkeypatch.setattr(rs, "Matches", Watched)
    replay(next(folder.iterdir()))
    places = rs.views(world.layout, shown[0])["car_position"]
    assert (places == twin.state["car_position"]).all()


@pytest.mark.parametrize("call", ["clone_into", "forecast_ball", "forecast"])
def test_a_panic_in_a_call_that_only_reads_leaves_the_match_alive(call):
    world = playing(2, 1, 1, seed=5)
    world.matches.panic_next(1, call)
    with pytest.raises(rs.MatchError):
        CALLS[call](world, world.buffer[1:2].copy())
    assert world.matches.dead() == {}
    world.step()


def test_a_match_without_cars_leaves_a_file_that_replays_too(folder):
    world = playing(1, 0, 0, ticks=0)
    world.matches.panic_next(0, ticks=3)
    with pytest.raises(rs.MatchError):
        world.step(ticks=5)
    again, words = replay(next(folder.iterdir()))
    assert not again and "within 4 ticks" in words


def test_the_folder_keeps_the_newest_twenty(folder):
    world = playing(1, 0, 0, ticks=0)
    for _ in range(23):
        world.matches.panic_next(0)
        with pytest.raises(rs.MatchError):
            world.step()
        with pytest.raises(rs.MatchError):
            world.step()  # dead already: no file
        world.put()
    files = sorted(folder.glob("*"))
    assert len(files) == 20


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"layout": 3}', "\x00"])
def test_what_is_no_file_of_a_panic_is_said(tmp_path, text):
    file = tmp_path / "odd.json"
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "rocketsim_batch.replay", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "is no file of a panic" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "change",
    [
        {"call": "frobnicate"},
        {"call": ["step"]},
        {"state_bits": [1, 2]},
        {"state_bits": [-1] * 273},
        {"state_bits": "text"},
        {"controls": [[[0] * 7] * 3]},
        {"controls": [[[9] * 8] * 3]},
        {"controls": []},
        {"mutators": {"gravty": 1}},
        {"mutators": {"gravity": None}},
        {"seeds": [1]},
        {"seeds": [-1, 2**64]},
        {"team_sizes": [9, 9]},
        {"team_sizes": None},
        {"layout": {"fields": {"gravity": -1}}},
        {"call": "demolish", "arguments": [7]},
        {"call": "nudge", "arguments": []},
        {"call": "forecast_ball", "arguments": [1, 2, 3]},
    ],
)
def test_a_file_with_values_that_no_panic_leaves_is_refused_with_its_name(change, folder):
    world = playing(1, 2, 1, ticks=0)
    world.matches.panic_next(0)
    with pytest.raises(rs.MatchError):
        world.step()
    (file,) = folder.glob("crash-*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(ValueError, match=rf"{file.name} is no file of a panic, expected one of .*: \w+Error"):
        replay(file)


def test_a_file_that_nests_without_end_is_no_file_of_a_panic(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 200_000)
    with pytest.raises(ValueError, match=r"deep.json is no file of a panic"):
        replay(tmp_path / "deep.json")


def test_a_folder_that_cannot_be_written_keeps_the_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(rs, "crash_folder", tmp_path / "file" / "below")
    world = playing(1, 0, 0, ticks=0)
    world.matches.panic_next(0)
    with pytest.raises(rs.MatchError, match="a test asked"):
        world.step()


def test_put_forgets_a_panic_that_was_asked_for():
    world = playing(1, 1, 1, ticks=0)
    world.matches.panic_next(0)
    world.put()
    world.step()
