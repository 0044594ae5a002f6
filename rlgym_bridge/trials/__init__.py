"""Measure a server's dialect: scenes are played, and judged from the packets alone.

    packet - Probe.answer - Reply (inputs of two cars, a state to set) - server - packet
                 |
             frames of each scene - judges - findings, facts, timing - dialect.toml

Only `client.py` sends and receives packets. Nothing here shares code with a server, so the probe is an
independent check of what servers send.
"""

from rlgym_bridge.trials.battery import Probe
from rlgym_bridge.trials.findings import Fact, Finding, ProbeReport
from rlgym_bridge.trials.frames import Frame, Reply

__all__ = ["Fact", "Finding", "Frame", "Probe", "ProbeReport", "Reply"]
