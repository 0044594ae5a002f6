"""Scripted scenes are played as they are written, on servers that are slow to set states, too."""

from collections import deque

from rlbot import flat

from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.trials.scripted_scenes import SceneBattery, ScriptedScene, all_scenes
from tests.support.stepped_match import as_received, seats


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
