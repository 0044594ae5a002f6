"""The probe names what the match server was told to speak."""

import random
from collections import Counter, deque
from collections.abc import Callable
from itertools import combinations

import pytest
from rlbot import flat

from rlgym_bridge.protocol_variant import POINTS, ProtocolVariant
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.net.impairments import Impairments, SlowInputs
from rlgym_bridge.trials.car_scenes import count_touching_wheels
from rlgym_bridge.trials.findings import ProbeReport
from rlgym_bridge.trials.probe import Probe
from rlgym_bridge.trials.scene_player import Frame
from rlgym_bridge.trials.scripted_scenes import SceneBattery, ScriptedScene, all_scenes
from tests.support.simulators import needs_native
from tests.support.stepped_match import as_received, car_of, seats

MOST_TICKS = 180 * 120
"""The battery is to take three minutes of game at most."""


def ask(
    dialect: ProtocolVariant | None = None,
    latency: int = 0,
    seed: int = 1,
    reaches: Callable[[int], bool] = lambda tick: True,
    sets_state: bool = True,
    watch: Callable[[Match, Frame], None] = lambda match, frame: None,
    **more: int,
) -> ProbeReport:
    """Let the probe play, and return its report; `reaches` tells which ticks' packets reach the probe."""
    sitting = seats()
    match = Match(sitting, dialect=dialect, seed=seed)
    inputs = SlowInputs(match, Impairments(latency=latency))
    probe = Probe((sitting[0].identifier, sitting[1].identifier), field_info(), **more)
    while not probe.done:
        packet = as_received(match.packet())
        if reaches(match.tick):
            reply, frame = probe.answer(packet)
            assert frame is not None
            watch(match, frame)
            for slot, controls in zip(frame.indices, reply.controls, strict=True):
                inputs.hold(slot, controls)
            desired = reply.desired(frame.indices)
            if desired is not None and sets_state:
                match.set_state(desired)
        inputs.arrive()
        match.advance()
        assert match.tick < MOST_TICKS
    return probe.report()


OTHERS = [(name, value) for name, point in POINTS.items() for value in point.values[1:]]
PAIRS = [pair for pair in combinations(OTHERS, 2) if pair[0][0] != pair[1][0]]


def random_dialect(seed: int) -> ProtocolVariant:
    generator = random.Random(seed)
    return ProtocolVariant({name: generator.choice(point.values) for name, point in POINTS.items()})


def names(dialect: ProtocolVariant, latency: int = 0, **more) -> None:
    """Assert that the probe finds out a dialect and a latency."""
    report = ask(dialect, latency, **more)
    assert report.dialect == dialect.complete()
    assert report.timing.input_latency == latency
    assert report.settled and report.notes == []


def test_the_probe_names_the_standard_dialect() -> None:
    names(ProtocolVariant())


def at_least(quick: tuple[int, ...], number: int) -> list[object]:
    """Return 0 to `number` - 1; all but the quick ones are slow."""
    return [one if one in quick else pytest.param(one, marks=pytest.mark.slow) for one in range(number)]


@pytest.mark.parametrize("place", at_least((2,), len(OTHERS)))
def test_the_probe_names_all_values_and_latencies_of_0_to_3(place: int) -> None:
    names(ProtocolVariant(dict([OTHERS[place]])), latency=place % 4)


@pytest.mark.parametrize("seed", at_least((2,), 4))
def test_the_probe_names_whole_dialects(seed: int) -> None:
    names(random_dialect(seed), latency=seed, seed=seed)


def test_the_probe_names_a_dialect_of_differences_alone() -> None:
    names(ProtocolVariant(dict(OTHERS)), latency=1)


@pytest.mark.slow
@pytest.mark.parametrize(("one", "two"), PAIRS, ids=lambda choice: "=".join(choice))
def test_the_probe_names_every_pair_of_values(one: tuple[str, str], two: tuple[str, str]) -> None:
    names(ProtocolVariant(dict([one, two])))


def test_a_latency_of_39_ticks_is_told() -> None:
    assert ask(latency=39).timing.input_latency == 39


def test_a_latency_of_more_is_out_of_reach() -> None:
    assert "at most 39 ticks can be measured" in ask(latency=40).open["input_latency"]


@pytest.mark.slow
def test_an_input_seconds_late_is_not_taken_for_a_later_one() -> None:
    assert "at most 39 ticks can be measured" in ask(latency=220).open["input_latency"]


@needs_native  # RocketSim 2.2.1 moves a car at rest one tick later than the game
@pytest.mark.parametrize("latency", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_client_that_renders_every_other_frame_spoils_nothing(latency: int) -> None:
    dialect = ProtocolVariant(dict(OTHERS[::2]))
    report = ask(dialect, latency, reaches=lambda tick: tick % 2 == 0)
    assert report.dialect == dialect.complete()
    assert (report.timing.input_latency, report.timing.packets_per_second) == (latency, 60.0)


@pytest.mark.parametrize("seed", at_least((0,), 2))
def test_lost_packets_spoil_nothing(seed: int) -> None:
    generator = random.Random(seed)
    dialect = random_dialect(10 + seed)
    report = ask(dialect, 2, seed, reaches=lambda tick: generator.random() > 0.05)
    assert report.dialect == dialect.complete()
    assert report.timing.input_latency == 2
    assert report.timing.packets_per_second == pytest.approx(114.0, abs=2.0)


@pytest.mark.parametrize("seed", at_least((1,), 2))
def test_a_server_that_ignores_states_settles_what_needs_none(seed: int) -> None:
    report = ask(random_dialect(20 + seed), seed=seed, sets_state=False)
    settled = set(report.dialect)
    assert report.dialect == {
        name: value for name, value in random_dialect(20 + seed).items() if name in settled
    }
    assert settled >= {
        "dodge_timeout", "dodge_timeout_jumping", "dodge_timeout_used", "dodge_timeout_expired",
        "kickoff_ends", "clock", "pad_timer",
    }  # fmt: skip
    assert report.timing.input_latency == 0
    assert "the server ignores state setting (enable_state_setting)" in report.notes
    assert not report.settled
    for name in ("demolished_place", "ball_after_goal", "idle_frames"):
        assert report.open[name].endswith("the server ignores state setting")


def test_the_probe_ends_when_it_has_seen_too_many_packets() -> None:
    report = ask(most_packets=1500)
    assert "ended after 1500 packets, before all scenes were played" in report.notes
    assert report.dialect["kickoff_ends"] == "at_touch"
    assert report.open["clock"] == "its scene was not reached"
    assert not report.settled


def test_wheels_by_geometry_are_those_of_the_simulation() -> None:
    counts: Counter[tuple[int, int]] = Counter()

    def compare(match: Match, frame: Frame) -> None:
        car = frame.car
        place = car.physics.location
        flat_floor = max(abs(place.x), abs(place.y)) < 3500.0 and place.z < 100.0
        if (
            not frame.playing
            or not flat_floor
            or car.air_state not in (flat.AirState.OnGround, flat.AirState.InAir)
        ):
            return
        geometry = count_touching_wheels(car)
        if geometry is not None:
            counts[geometry, int(car_of(match, 0).wheels_with_contact.sum())] += 1

    ask(watch=compare)
    wrong = sum(count for (ours, theirs), count in counts.items() if ours != theirs)
    assert sum(counts.values()) > 500 and counts[3, 3] > 10 and counts[2, 2] > 10
    assert wrong <= 0.01 * sum(counts.values())
    assert sum(count for (ours, theirs), count in counts.items() if ours == 3 != theirs) <= 1


def play(
    scenes: list[ScriptedScene], late: int, sets_state: bool = True
) -> tuple[SceneBattery, dict[int, flat.GamePacket]]:
    """Play scenes on a match that sets states some ticks late; return the packets by their frames, too."""
    sitting = seats()
    match = Match(sitting, seed=1)
    battery = SceneBattery((sitting[0].identifier, sitting[1].identifier), scenes)
    waiting: deque[tuple[int, flat.DesiredGameState]] = deque()
    packets = {}
    while not battery.done:
        packet = as_received(match.packet())
        packets[packet.match_info.frame_num] = packet
        reply, frame = battery.answer(packet)
        assert frame is not None
        for slot, controls in zip(frame.indices, reply.controls, strict=True):
            match.hold(slot, controls)
        if (desired := reply.desired(frame.indices)) is not None and sets_state:
            waiting.append((match.tick + late, desired))
        while waiting and waiting[0][0] <= match.tick:
            match.set_state(waiting.popleft()[1])
        match.advance()
    return battery, packets


def test_a_scene_begins_when_cars_and_ball_are_there() -> None:
    scenes = [scene for scene in all_scenes() if scene.kind in ("ball in the air", "ball bounces")]
    battery, packets = play(scenes, late=4)
    assert battery.notes == [] and len(battery.played) == len(scenes) == 6
    for played in battery.played:
        scene = scenes[played.scene]
        place = packets[played.shown].balls[0].physics.location
        assert abs(place.z - scene.ball.position[2]) < 150 and abs(place.x - scene.ball.position[0]) < 100
        assert played.asked < played.shown < played.began < played.ended


def test_the_controls_that_are_asked_for_are_pressed() -> None:
    (scene,) = [scene for scene in all_scenes() if scene.name == "jump, held 12 ticks"]
    battery, packets = play([scene], late=0)
    (played,) = battery.played
    pressed = [frame for frame, packet in packets.items() if packet.players[0].last_input.jump]
    assert pressed == list(range(played.began + 1, played.began + 13))


def test_a_server_that_sets_no_states_ends_the_scenes() -> None:
    battery, _ = play(list(all_scenes()), late=0, sets_state=False)
    assert battery.played == []
    assert battery.notes == ["the server ignores state setting (enable_state_setting)"]


def test_scenes_have_names_of_their_own_and_repeat_what_matters() -> None:
    scenes = all_scenes()
    assert len({scene.name for scene in scenes}) == len(scenes)
    kinds = [scene.kind for scene in scenes]
    assert all(kinds.count(kind) >= 12 for kind in ("boost in the air", "dodge", "bump"))
    assert sum(kind in ("jump", "double jump", "dodge", "half flip") for kind in kinds) >= 12
