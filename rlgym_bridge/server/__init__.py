"""A match server for RLBot v5 bots: RocketSim behind the protocol of RLBotServer.

    match file -> MatchServer -> HostedMatch -> Match (referee, simulation, packer)
                      |              |
                 bots over TCP    bot processes

It reads nothing of the rest of the project but constants and the arena, so that what it sends
is an independent witness for the decoder in `rlgym_bridge.live`.
"""

from rlgym_bridge.server.config import read_match_file
from rlgym_bridge.server.errors import ConfigError, MatchCalledOff, ServerError
from rlgym_bridge.server.result import BotResult, MatchResult, MatchStatus
from rlgym_bridge.server.server import MatchServer
from rlgym_bridge.server.world import World

__all__ = [
    "BotResult",
    "ConfigError",
    "MatchCalledOff",
    "MatchResult",
    "MatchServer",
    "MatchStatus",
    "ServerError",
    "World",
    "read_match_file",
]
