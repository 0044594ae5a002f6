"""Ordinary RLBot bots for the tests, on `rlbot`'s own classes: `python simple_bots.py KIND`."""

import atexit
import math
import os
import socket
import sys
import time

from rlbot import flat
from rlbot.managers import Bot, Hivemind


def drive(packet: flat.GamePacket, index: int, x: float, y: float) -> flat.ControllerState:
    """Drive a car towards a point, boosting when it is ahead."""
    car = packet.players[index].physics
    angle = math.atan2(y - car.location.y, x - car.location.x) - car.rotation.yaw
    angle = (angle + math.pi) % (2.0 * math.pi) - math.pi
    return flat.ControllerState(throttle=1.0, steer=max(-1.0, min(1.0, 3.0 * angle)), boost=abs(angle) < 0.4)


def at_ball(packet: flat.GamePacket, index: int) -> flat.ControllerState:
    """Drive at the ball."""
    ball = packet.balls[0].physics.location
    return drive(packet, index, ball.x, ball.y)


def at_opponent(packet: flat.GamePacket, index: int) -> flat.ControllerState:
    """Drive at an opponent, the ball be damned; the second of a team goes for the ball."""
    me = packet.players[index]
    if index % 2:
        return at_ball(packet, index)
    others = [one for one in packet.players if one.team != me.team and one.demolished_timeout < 0]
    if not others:
        return at_ball(packet, index)
    target = others[0].physics.location
    return drive(packet, index, target.x, target.y)


class AtBall(Bot):
    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        return at_ball(packet, self.index)


class Standing(Bot):
    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        return flat.ControllerState()


class AtOpponent(Bot):
    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        return at_opponent(packet, self.index)


class NotANumber(Bot):
    """Sends controls that are no numbers on every second packet."""

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        if packet.match_info.frame_num % 2:
            return flat.ControllerState(throttle=math.nan, steer=1.0)
        return at_ball(packet, self.index)


class Crashing(Bot):
    """Dies a second after the kickoff."""

    played = 0

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        self.played += packet.match_info.match_phase != flat.MatchPhase.Countdown
        if self.played == 120:
            print("out of luck", file=sys.stderr, flush=True)
            os._exit(3)
        return at_ball(packet, self.index)


class SlowlyEnding(Crashing):
    """Leaves a second after the kickoff, and ends half a second later."""

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        self.played += packet.match_info.match_phase != flat.MatchPhase.Countdown
        if self.played == 120:
            os.closerange(3, 64)  # its connection among them
        return at_ball(packet, self.index)


class Silent(Bot):
    """Connects and never answers."""

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        raise RuntimeError("no idea")


class Skipping(Bot):
    """Answers every eleventh packet, as a bot does that cannot find its ball prediction."""

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        if packet.match_info.frame_num % 11:
            raise IndexError("list index out of range")
        return at_ball(packet, self.index)


class Unready(Bot):
    """Never gets ready."""

    def initialize(self) -> None:
        import time

        time.sleep(600.0)


class Setter(Bot):
    """Puts the ball 1000 uu and the frame's number high on every tenth packet."""

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        frame = packet.match_info.frame_num
        if frame % 10 == 0:
            place, speed = flat.Vector3Partial(z=1000.0 + frame), flat.Vector3Partial(z=-1.0)
            physics = flat.DesiredPhysics(location=place, velocity=speed)
            desired = flat.DesiredGameState(ball_states=[flat.DesiredBallState(physics)])
            self._game_interface.send_msg(desired)  # rlbot 2.0.0b56's set_game_state raises
        return flat.ControllerState()


class Starter(Bot):
    """Stands still and drives from frame 200 on."""

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        return flat.ControllerState(throttle=float(packet.match_info.frame_num >= 200))


class Dominus(Bot):
    """Plays with a Dominus, whatever its loadout file says."""

    def initialize(self) -> None:
        self.set_loadout(flat.PlayerLoadout(car_id=403))

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        return at_ball(packet, self.index)


class Reader(Bot):
    """Answers no packet whose prediction does not begin a tick after it."""

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        first, *_, last = self.ball_prediction.slices
        now = packet.match_info.seconds_elapsed
        if abs(first.game_seconds - now - 1 / 120) > 1e-4 or abs(last.game_seconds - now - 6.0) > 1e-4:
            raise RuntimeError(f"the prediction is of {first.game_seconds}, the packet of {now}")
        return at_ball(packet, self.index)


class Artist(Bot):
    """Draws one of each kind, about itself and the ball; the words go and come back every two seconds."""

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        draw, car = self.renderer, flat.CarAnchor(self.index, flat.Vector3(z=150.0))
        frame = packet.match_info.frame_num
        if self.renderer.can_render:
            draw.begin_rendering("plan")
            draw.draw_line_3d(flat.CarAnchor(self.index), flat.BallAnchor(0), draw.lime)
            path = [flat.Vector3(400.0 * x, 300.0 * (x % 3) - 2000.0, 50.0) for x in range(-6, 7)]
            draw.draw_polyline_3d(path, draw.yellow)
            draw.draw_rect_3d(flat.BallAnchor(0, flat.Vector3(z=200.0)), 0.02, 0.02, draw.cyan)
            draw.end_rendering()
            draw.begin_rendering("words")
            draw.draw_string_3d("to the ball", car, 1.0, draw.white)
            draw.draw_string_2d(f"boost {packet.players[self.index].boost:.0f}", 0.15, 0.1, 1.0, draw.red)
            draw.draw_rect_2d(0.05, 0.05, 0.1, 0.1, draw.create_color(0, 90, 255))
            draw.end_rendering()
            if frame % 240 == 239:
                draw.clear_render_group("words")
        return at_ball(packet, self.index)


class Thief(Bot):
    """Connects a second time as its opponent, before that is there."""

    def initialize(self) -> None:
        address = os.environ["RLBOT_SERVER_IP"], int(os.environ["RLBOT_SERVER_PORT"])
        self.second = socket.create_connection(address)
        settings = flat.ConnectionSettings("test/ball", False, False, True)
        message = flat.InterfacePacket(settings).pack()
        self.second.sendall(len(message).to_bytes(2, "big") + message)
        self.second.recv(2)  # the match's configuration: the server knows by now who it is

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        return at_ball(packet, self.index)


class Hive(Hivemind):
    def get_outputs(self, packet: flat.GamePacket) -> dict[int, flat.ControllerState]:
        return {index: at_ball(packet, index) for index in self.indices}


KINDS = {
    "ball": AtBall, "ram": AtOpponent, "nan": NotANumber, "crash": Crashing, "slow": SlowlyEnding,
    "silent": Silent, "skip": Skipping, "unready": Unready, "setter": Setter, "starter": Starter,
    "hive": Hive, "reader": Reader, "dominus": Dominus, "artist": Artist,
    "thief": Thief, "stand": Standing,
}  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1] == "exit":
        print("no such model: weights.safetensors")
        sys.exit(7)
    if sys.argv[1] == "done":
        print("nothing to do")
        sys.exit(0)
    if sys.argv[1] == "sleep":
        time.sleep(600.0)
    if sys.argv[1] == "slow":
        atexit.register(os._exit, 3)
        atexit.register(time.sleep, 0.5)
    reads = KINDS[sys.argv[1]] is Reader
    KINDS[sys.argv[1]]().run(wants_match_communications=False, wants_ball_predictions=reads)
