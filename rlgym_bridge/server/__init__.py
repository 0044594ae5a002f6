"""Serve RLBot v5 bots with matches in RocketSim, over the protocol of RLBotServer.

It imports nothing that decodes packets: what it sends is an independent check of `rlgym_bridge.packets`.
"""

from rlgym_bridge.server.match_file import read_match_file
from rlgym_bridge.server.match_server import MatchServer
from rlgym_bridge.server.net.impairments import Impairments
from rlgym_bridge.server.result import (
    BotResult,
    ConfigError,
    MatchCalledOff,
    MatchResult,
    MatchStatus,
    ServerError,
)

__all__ = [
    "BotResult",
    "ConfigError",
    "Impairments",
    "MatchCalledOff",
    "MatchResult",
    "MatchServer",
    "MatchStatus",
    "ServerError",
    "read_match_file",
]
