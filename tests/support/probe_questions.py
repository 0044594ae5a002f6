"""The probe on a match in this process: no sockets, every packet as a client reads it."""

from collections.abc import Callable

from rlgym_bridge.dialect import Dialect
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.net.impairments import Impairments, SlowInputs
from rlgym_bridge.trials.findings import ProbeReport
from rlgym_bridge.trials.probe import Probe
from rlgym_bridge.trials.scene_player import Frame
from tests.support.stepped_match import as_received, seats

MOST_TICKS = 180 * 120
"""The battery is to take three minutes of game at most."""


def ask(
    dialect: Dialect | None = None,
    latency: int = 0,
    seed: int = 1,
    reaches: Callable[[int], bool] = lambda tick: True,
    sets_state: bool = True,
    watch: Callable[[Match, Frame], None] = lambda match, frame: None,
    **more: int,
) -> ProbeReport:
    """Let the probe play, and return its report; `reaches` tells which ticks' packets reach the probe."""
    sitting = seats()
    match = Match(sitting, dialect=dialect, seed=seed)
    inputs = SlowInputs(match, Impairments(latency=latency))
    probe = Probe((sitting[0].identifier, sitting[1].identifier), field_info(), **more)
    while not probe.done:
        packet = as_received(match.packet())
        if reaches(match.tick):
            reply, frame = probe.answer(packet)
            assert frame is not None
            watch(match, frame)
            for slot, controls in zip(frame.indices, reply.controls, strict=True):
                inputs.hold(slot, controls)
            desired = reply.desired(frame.indices)
            if desired is not None and sets_state:
                match.set_state(desired)
        inputs.arrive()
        match.advance()
        assert match.tick < MOST_TICKS
    return probe.report()
