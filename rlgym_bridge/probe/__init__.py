"""Which dialect does a server speak: a battery of scenes, played and judged from packets alone.

    packet - Probe.answer - Reply (inputs of two cars, a state to be set) - server - packet
                 |
             frames of each scene - judges - findings, facts, timing - dialect.toml

Nothing here knows how packets come and go but `client.py` and its `connection.py`, and nothing shares code
with a server: the probe is a check on those who write packets.
"""

from rlgym_bridge.probe.battery import Probe
from rlgym_bridge.probe.findings import Fact, Finding, ProbeReport
from rlgym_bridge.probe.frames import Frame, Reply

__all__ = ["Fact", "Finding", "Frame", "Probe", "ProbeReport", "Reply"]
