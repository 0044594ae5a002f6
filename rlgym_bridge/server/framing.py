"""Pack messages for clients, with their length before them."""

from typing import Final

from rlbot import flat

from rlgym_bridge.dialect import OWN_SERVER
from rlgym_bridge.server.client_log import client_log

MAX_PAYLOAD: Final = 65535
"""Bytes in one message: the length has 16 bits [RLBot core]."""

_log = client_log(__name__)


def framed(message: object, *, named: bool = False) -> bytes:
    """Pack a message of a `flat.CorePacket` for a client, length first; empty and logged if it is too long.

    `named` appends `OWN_SERVER`, by which clients of this project know its server.
    """
    payload = flat.CorePacket(message).pack()  # type: ignore[arg-type]
    if named:
        payload += OWN_SERVER.encode()
    if len(payload) > MAX_PAYLOAD:
        _log.error(
            "not sent: a %s of %d bytes, the protocol allows %d",
            type(message).__name__, len(payload), MAX_PAYLOAD,
        )  # fmt: skip
        return b""
    return len(payload).to_bytes(2, "big") + payload
