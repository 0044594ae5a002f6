"""Define the topics and messages of a recording: an MCAP file, which other programs can open.

    topic                    encoding                what
    /field_info              rlbot.flat.CorePacket   once, as it came
    /match_configuration     rlbot.flat.CorePacket   once, as it came
    /packets                 rlbot.flat.CorePacket   every game packet that the server made
    /inputs                  INPUT                   every input that the server took
    /comms                   rlbot.flat.CorePacket   every message of a bot that the server passed on
    /drawings                DRAWN and a message     every group of drawings that the server took
    /state                   json                    ball and cars ten times a second, to be drawn
    /agents/<id>/packets     rlbot.flat.CorePacket   every game packet that one agent got
    /agents/<id>/arrivals    nothing                 the same, where /packets holds what is in them
    /agents/<id>/inputs      INPUT                   every input that it sent
    /agents/<id>/decisions   DECISION and arrays     what it saw and did

A message's sequence is the game's frame, its log time frame / 120 s, and its publish time when it came or
was sent, in ns since 1970. Metadata `recording` says who made the file, `unrepeatable` why the match
may go otherwise when it is played again, and `policy <id>` holds an agent's policy.json.
"""

import struct
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from rlgym_bridge.game import TICKS_PER_SECOND

PROFILE: Final = "rlgym_bridge"  # of the MCAP files

FIELD_INFO: Final = "/field_info"
MATCH_CONFIGURATION: Final = "/match_configuration"
PACKETS: Final = "/packets"
INPUTS: Final = "/inputs"
COMMS: Final = "/comms"
DRAWINGS: Final = "/drawings"
STATE: Final = "/state"
AGENTS: Final = "/agents/"

FLAT: Final = "rlbot.flat.CorePacket"
ENCODINGS: Final = {
    "field_info": FLAT, "match_configuration": FLAT, "packets": FLAT, "comms": FLAT, "state": "json",
    "drawings": "rlgym_bridge.drawing",
    "inputs": "rlgym_bridge.input", "decisions": "rlgym_bridge.decision", "arrivals": "rlgym_bridge.arrival",
}  # fmt: skip
"""By the last part of a topic's name."""

ABOUT: Final = "recording"
UNREPEATABLE: Final = "unrepeatable"
POLICY: Final = "policy "

INPUT: Final = struct.Struct("<i8f")
"""Index of the car in the packet, and its controls in the order of `game.CONTROL_NAMES`."""

DRAWN: Final = struct.Struct("<ii")
"""Number of the client, from 0 in the order in which they first drew, and index of its car in the packet (its
first one; -1 for none). Behind it a `flat.InterfacePacket` as it came, with a RenderGroup or a
RemoveRenderGroup; nothing where all that the client drew is gone."""

DECISION: Final = struct.Struct("<iii")
"""Cars, numbers in an observation, numbers in an action; behind it rows in the state (int32, one a car), then
float32: observations, actions, rewards of the step before, and whether it terminated and truncated, each car
by car; NaN for what was not asked. An episode's last step has no action."""


class Decision(NamedTuple):
    """The observations and actions of an agent on one decision tick."""

    frame: int  # the tick
    seats: np.ndarray  # `(cars,)` int32, rows in the state
    obs: np.ndarray  # `(cars, size)` float32
    actions: np.ndarray  # `(cars, k)` float32, as the policy chose them; `(cars, 0)` where an episode ends
    rewards: np.ndarray  # `(cars,)` float32, of the step that ended here; NaN without one
    terminated: np.ndarray  # `(cars,)` float32, 0 or 1: what conditions said of it; NaN without one
    truncated: np.ndarray  # the same

    def to_bytes(self) -> bytes:
        """Return the message."""
        cars, obs, actions = len(self.seats), self.obs.shape[1], self.actions.shape[1]
        numbers = (self.obs, self.actions, self.rewards, self.terminated, self.truncated)
        parts = [self.seats.astype("<i4"), *(one.astype("<f4") for one in numbers)]
        return DECISION.pack(cars, obs, actions) + b"".join(part.tobytes() for part in parts)

    @classmethod
    def from_bytes(cls, frame: int, data: bytes) -> "Decision":
        """Read a message; raises ValueError if it has no car, or not the length that its head says."""
        if len(data) < DECISION.size:
            raise ValueError(f"a decision of {len(data)} bytes, expected {DECISION.size} or more")
        cars, obs, actions = DECISION.unpack_from(data)
        sizes = (cars, cars * obs, cars * actions, cars, cars, cars)
        if cars < 1 or min(obs, actions) < 0 or len(data) != DECISION.size + 4 * sum(sizes):
            raise ValueError(
                f"a decision of {len(data)} bytes, expected {DECISION.size + 4 * sum(sizes)} for {cars} cars"
            )
        bounds = [0, *accumulate(sizes)]
        numbers = np.frombuffer(data, "<f4", offset=DECISION.size)
        seats = np.frombuffer(data, "<i4", cars, DECISION.size)
        return cls(
            frame,
            seats,
            numbers[bounds[1] : bounds[2]].reshape(cars, obs),
            numbers[bounds[2] : bounds[3]].reshape(cars, actions),
            *(numbers[bounds[part] : bounds[part + 1]] for part in (3, 4, 5)),
        )


def log_time(frame: int) -> int:
    """Return the time in ns that stands for a frame."""
    return frame * 1_000_000_000 // TICKS_PER_SECOND


def agent_topic(agent_id: str, what: str) -> str:
    """Return an agent's topic; ids may have slashes."""
    return f"{AGENTS}{agent_id}/{what}"
