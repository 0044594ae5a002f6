"""Clients on rlbot's own classes that call every method they have: `python whole_bots.py bot|hive|script`.

Each writes what came of the calls, as JSON, to `RESULT_<kind>` of its environment.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from rlbot import flat
from rlbot.managers import Bot, Hivemind, Renderer, Script

CALLS: dict[str, str] = {}  # by call: "done", or the exception
HEARD: list[Any] = []
PASSED: set[int] = set()


def call(name: str, function: Any, *words: Any, **named: Any) -> None:
    try:
        function(*words, **named)
        CALLS[name] = "done"
    except Exception as error:
        CALLS[name] = type(error).__name__


def draw(renderer: Renderer, group: str) -> None:
    """Draw one of everything."""
    here, there = flat.Vector3(0, 0, 100), flat.BallAnchor(local=flat.Vector3(0, 0, 100))
    color = Renderer.create_color(255, 0, 0)
    call("set_default_color", renderer.set_default_color, Renderer.create_color_hsv(0.3, 1.0, 1.0))
    call("set_resolution", renderer.set_resolution, 1920, 1080)
    call("team_color", Renderer.team_color, 1, alt_color=True)
    with renderer.context(group):
        call("draw", renderer.draw, flat.Line3D(flat.RenderAnchor(here), flat.RenderAnchor(here), color))
        call("draw_line_3d", renderer.draw_line_3d, here, there)
        call("draw_polyline_3d", renderer.draw_polyline_3d, [here, flat.Vector3(500, 0, 100)], color)
        call("draw_string_2d", renderer.draw_string_2d, "two", 0.1, 0.1, 1.0)
        call("draw_string_3d", renderer.draw_string_3d, "three", flat.CarAnchor(0), 1.0)
        call("draw_rect_2d", renderer.draw_rect_2d, 0.1, 0.1, 0.2, 0.2)
        call("draw_rect_3d", renderer.draw_rect_3d, here, 0.1, 0.1)
        CALLS["is_rendering"] = str(renderer.is_rendering())
    call("begin_rendering", renderer.begin_rendering, f"{group} by hand")
    renderer.draw_rect_2d(0.5, 0.5, 0.1, 0.1)
    call("end_rendering", renderer.end_rendering)
    call("clear_render_group", renderer.clear_render_group, group)
    call("clear_all_render_groups", renderer.clear_all_render_groups)


def write(kind: str) -> None:
    Path(os.environ[f"RESULT_{kind}"]).write_text(json.dumps({"calls": CALLS, "heard": HEARD}))


def act(client: Any, kind: str, frame: int) -> None:
    """Call, some frames apart, what a client may call in play."""
    index = () if kind != "hive" else (client.indices[0],)
    if first_from(20, frame):
        call("send_match_comm", client.send_match_comm, *index, b"plan", f"{kind} says", False)
    if first_from(40, frame):
        draw(client.renderer, kind)
    if first_from(60, frame):
        call("update_rendering_status", client.update_rendering_status, False)
    if first_from(80, frame):
        call("set_game_state", client.set_game_state, {0: flat.DesiredBallState()})


def first_from(least: int, frame: int) -> bool:
    """Tell whether a frame is the first that is seen from a number on: packets may be lost."""
    if frame < least or least in PASSED:
        return False
    PASSED.add(least)
    return True


class WholeBot(Bot):
    def initialize(self) -> None:
        call("set_loadout", self.set_loadout, flat.PlayerLoadout(car_id=403))
        CALLS["initialize"] = f"{self.name} {self.team} {self.index} {len(self.field_info.boost_pads)}"

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        act(self, "bot", packet.match_info.frame_num)
        CALLS["ball_prediction"] = str(len(self.ball_prediction.slices))
        return flat.ControllerState(throttle=1.0)

    def handle_match_comm(
        self, index: int, team: int, content: bytes, display: str | None, team_only: bool
    ) -> None:
        HEARD.append([index, team, display])

    def retire(self) -> None:
        CALLS["retire"] = "done"
        write("bot")


class WholeHive(Hivemind):
    def initialize(self) -> None:
        call("set_loadout", self.set_loadout, flat.PlayerLoadout(car_id=30), self.indices[1])
        CALLS["initialize"] = f"{self.names} {self.team} {self.indices} {len(self.field_info.boost_pads)}"

    def get_outputs(self, packet: flat.GamePacket) -> dict[int, flat.ControllerState]:
        act(self, "hive", packet.match_info.frame_num)
        CALLS["ball_prediction"] = str(len(self.ball_prediction.slices))
        return {index: flat.ControllerState(throttle=-1.0) for index in self.indices}

    def handle_match_comm(
        self, index: int, team: int, content: bytes, display: str | None, team_only: bool
    ) -> None:
        HEARD.append([index, team, display])

    def retire(self) -> None:
        CALLS["retire"] = "done"
        write("hive")


class WholeScript(Script):
    def initialize(self) -> None:
        CALLS["initialize"] = f"{self.name} {self.index} {len(self.field_info.boost_pads)}"

    def handle_packet(self, packet: flat.GamePacket) -> None:
        frame = packet.match_info.frame_num
        act(self, "script", frame)
        CALLS["ball_prediction"] = str(len(self.ball_prediction.slices))
        if first_from(100, frame):
            call("set_loadout", self.set_loadout, flat.PlayerLoadout(car_id=22), 1)

    def handle_match_comm(
        self, index: int, team: int, content: bytes, display: str | None, team_only: bool
    ) -> None:
        HEARD.append([index, team, display])

    def retire(self) -> None:
        CALLS["retire"] = "done"
        write("script")


if __name__ == "__main__":
    {"bot": WholeBot, "hive": WholeHive, "script": WholeScript}[sys.argv[1]]().run()
