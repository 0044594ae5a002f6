"""Reads a stream of game packets and says where it breaks the rules of the game or of the protocol.

It knows neither the server nor the decoder: only the constants of the game, the names of the
protocol's open points, and the packets' own types. So it can judge both, and the real game.
"""

from tests.packet_checker.checker import PacketChecker
from tests.packet_checker.limits import Rules

__all__ = ["PacketChecker", "Rules"]
