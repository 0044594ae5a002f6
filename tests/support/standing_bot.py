"""A bot of rlbot's own that stands still."""

from rlbot import flat
from rlbot.managers import Bot


class StandingBot(Bot):
    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        return flat.ControllerState()


if __name__ == "__main__":
    StandingBot().run(wants_match_communications=False, wants_ball_predictions=False)
