"""Read what single agents recorded of a match: packets that came, inputs, decisions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rlgym_bridge.recording.mcap.channels import AGENTS, INPUT, Decision
from rlgym_bridge.recording.mcap.mcap_reader import Contents, Message
from rlgym_bridge.user_input.text_files import parse_json

SECOND: Final = 1e-9  # s in a ns


@dataclass
class InputTrack:
    """Inputs on their way."""

    frame: np.ndarray  # `(n,)` int64, the frame they answered or came in
    seconds: np.ndarray  # `(n,)` float64, when, in seconds since 1970
    row: np.ndarray  # `(n,)` int64, the car's row in the state; -1 for one that is not there
    controls: np.ndarray  # `(n, 8)` float32


@dataclass
class AgentTrack:
    """The recording of one agent."""

    agent_id: str
    frame: np.ndarray  # `(n,)` int64: the packets that came
    seconds: np.ndarray  # `(n,)` float64: when, in seconds since 1970
    inputs: InputTrack  # what it sent
    decisions: list[Decision]  # what it saw and did, decision after decision
    policy: dict[str, Any] | None = None  # its policy.json; None where it had none


def read_inputs(messages: Sequence[Message], rows_of: dict[int, int]) -> InputTrack:
    """Return the inputs of messages; `rows_of` gives the row of each index of a packet's cars."""
    messages = [one for one in messages if len(one.content) == INPUT.size]
    read = np.frombuffer(b"".join(one.content for one in messages), [("car", "<i4"), ("controls", "<f4", 8)])
    return InputTrack(
        np.array([one.frame for one in messages], np.int64),
        np.array([one.time for one in messages], np.float64) * SECOND,
        np.array([rows_of.get(car, -1) for car in read["car"].tolist()], np.int64),
        read["controls"].astype(np.float32),
    )


def read_agent(contents: Contents, agent: str, rows_of: dict[int, int], notes: list[str]) -> AgentTrack:
    """Return what an agent recorded; what cannot be read is told in `notes`."""

    def of(what: str) -> list[Message]:
        return contents.topics.get(f"{AGENTS}{agent}/{what}", [])

    came = of("arrivals") or of("packets")
    decisions, bad = [], 0
    for one in of("decisions"):
        try:
            decision = Decision.from_bytes(one.frame, one.content)
        except ValueError:
            bad += 1
            continue
        if all(0 <= seat < len(rows_of) for seat in decision.seats.tolist()):
            decisions.append(decision)
        else:  # of cars that the match does not have
            bad += 1
    if bad:
        notes.append(f"{bad:,} decisions of {agent} cannot be read")
    policy = None
    if text := contents.policies.get(agent):
        try:
            policy = parse_json(text)
        except ValueError as error:
            notes.append(f"the policy.json of {agent} cannot be read: {error}")
    return AgentTrack(
        agent,
        np.array([one.frame for one in came], np.int64),
        np.array([one.time for one in came], np.float64) * SECOND,
        read_inputs(of("inputs"), rows_of),
        decisions,
        policy,
    )
