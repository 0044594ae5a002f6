"""Log a match while it is played, packet by packet; the entities are those of recordings."""

from typing import Final
from uuid import uuid4

import numpy as np
import rerun as rr
from rlbot import flat

from rlgym_bridge.game import TICKS_PER_SECOND, Phase
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.rotations import to_quaternions
from rlgym_bridge.state import MatchState
from rlgym_bridge.view import scene
from rlgym_bridge.view.blueprint import live_blueprint
from rlgym_bridge.view.drawn_groups import DrawnGroups, Places
from rlgym_bridge.view.log_drawings import PER_SECOND, DrawingsLog
from rlgym_bridge.view.time_series import car_color, log_still_curve, words_of_phase, words_of_score
from rlgym_bridge.view.times import APPLICATION, Times

_TICKS: Final = TICKS_PER_SECOND // PER_SECOND  # between two looks at drawings, curves and the trail


class LiveScene:
    """One match in the viewer, whose address for those who log is `proxy`."""

    def __init__(
        self, proxy: str, field_info: flat.FieldInfo, configuration: flat.MatchConfiguration
    ) -> None:
        self._stream = rr.RecordingStream(APPLICATION, recording_id=uuid4())
        self._stream.connect_grpc(proxy)
        self._stream.send_recording_name("live")
        self._stream.send_blueprint(live_blueprint(), make_active=True)
        scene.log_field(self._stream)
        scene.log_still_ball(self._stream)
        scene.log_still_pads(self._stream)
        self._decoder = Decoder(field_info, configuration, False)
        self._agents: tuple[str, ...] = ()
        self._shown: dict[str, object] = {}  # what was logged last of things that seldom change
        self._groups = DrawnGroups()
        self._drawings = DrawingsLog(self._stream, self._groups, self._name)
        self._looked = -_TICKS
        self._times: list[rr.TimeColumn] = []  # of the packet that is logged

    def draw(self, content: bytes) -> None:
        """Take in what a bot drew: a message of the topic `/drawings`."""
        self._groups.take(content)

    def show(self, packet: flat.GamePacket) -> None:
        """Log a packet; one with more cars than a state holds is left out."""
        try:
            state = self._decoder.update(packet).copy()  # Rerun reads it later
        except ValueError:
            return
        frame = packet.match_info.frame_num
        self._stream.set_time("tick", sequence=frame)
        self._stream.set_time("game time", duration=frame / TICKS_PER_SECOND)
        self._times = Times(np.array([frame]), np.array([frame / TICKS_PER_SECOND])).at(np.array([0]))
        if state.agents != self._agents:
            self._log_looks(state)
        self._log_bodies(state)
        self._log_words(state)
        if not 0 <= frame - self._looked < _TICKS:
            self._looked = frame
            self._log_curves(state)
            self._log_drawings(state)

    def close(self) -> None:
        """Send nothing any more."""
        self._stream.disconnect()

    def _name(self, car: int) -> str | None:
        indices = self._decoder.packet_indices
        return self._agents[indices.index(car)] if car in indices else None

    def _log_looks(self, state: MatchState) -> None:
        self._agents = tuple(state.agents)
        log_still_curve(self._stream, "/speed/ball", scene.BALL_COLOR)
        for car, name in enumerate(self._agents):
            scene.log_still_car(self._stream, state, car)
            for curve in ("speed", "boost"):
                log_still_curve(self._stream, f"/{curve}/{name}", car_color(state, car))

    def _log_bodies(self, state: MatchState) -> None:
        stream = self._stream
        stream.log("/match/ball", rr.Points3D.from_fields(positions=state.ball_position))
        turns = to_quaternions(state.car_rotation[0])[:, [1, 2, 3, 0]]
        for car, name in enumerate(self._agents):
            there = bool(state.car_is_demoed[0, car] == 0)
            if there:
                frame = rr.Transform3D.from_fields(
                    translation=state.car_position[0, car], quaternion=turns[car]
                )
                stream.log(f"/match/cars/{name}", frame)
            above = scene.name_place(state.car_position[0, car : car + there])
            stream.log(f"/match/names/{name}", rr.Points3D.from_fields(positions=above))
            if self._is_new(name, there):
                halves = scene.boxes(int(state.car_hitbox[0, car]))[0][: 2 * there]
                stream.log(f"/match/cars/{name}/body", rr.Boxes3D.from_fields(half_sizes=halves))
        taken = state.pad_timer[0] > 0
        if self._is_new("pads", taken.tobytes()):
            stream.log("/match/pads", rr.Points3D.from_fields(colors=scene.pad_colors(taken)))

    def _log_curves(self, state: MatchState) -> None:
        stream = self._stream
        stream.log("/match/trail", rr.Points3D.from_fields(positions=state.ball_position))
        stream.log("/speed/ball", rr.Scalars(np.linalg.norm(state.ball_linear_velocity[0])))
        for car, name in enumerate(self._agents):
            stream.log(f"/speed/{name}", rr.Scalars(np.linalg.norm(state.car_linear_velocity[0, car])))
            stream.log(f"/boost/{name}", rr.Scalars(state.car_boost_amount[0, car]))

    def _log_words(self, state: MatchState) -> None:
        (blue, orange), phase = state.score[0].astype(int).tolist(), int(state.phase[0])
        seconds = int(np.ceil(np.nan_to_num(state.clock[0])))
        board = words_of_score(blue, orange, phase, int(state.overtime[0]), seconds)
        if self._is_new("board", board):
            text = rr.TextDocument(board, media_type="text/markdown")
            self._stream.log("/scoreboard", text)
        if self._is_new("phase", phase):
            said = f"goal: {blue} : {orange}" if phase == Phase.GOAL_SCORED else words_of_phase(phase)
            self._stream.send_columns("/events", self._times, rr.TextLog.columns(text=[said]))

    def _log_drawings(self, state: MatchState) -> None:
        groups = self._groups
        if not (groups.changed or groups.moving):
            return
        cars = {
            index: (state.car_position[0, car], state.car_rotation[0, car])
            for car, index in enumerate(self._decoder.packet_indices)
            if state.car_is_demoed[0, car] == 0
        }
        places = Places((state.ball_position[0], state.ball_rotation[0]), cars)
        for key in groups.changed | groups.moving:
            self._drawings.put(key, self._times, [groups.shapes(key, places)])
        groups.changed.clear()

    def _is_new(self, name: str, value: object) -> bool:
        same = name in self._shown and self._shown[name] == value
        self._shown[name] = value
        return not same
