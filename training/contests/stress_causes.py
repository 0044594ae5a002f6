"""List what may hurt a bot in the real game: each cause, and how a match is played with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rlgym_bridge.dialect import POINTS
from rlgym_bridge.game import HITBOX_NAMES
from rlgym_bridge.policy.manifest import SELECTIONS, Manifest
from rlgym_bridge.server import Impairments
from rlgym_bridge.sim.simulator import DEFAULT_SIMULATOR, SIMULATORS, is_installed

GROUPS: Final[Mapping[str, str]] = {
    "latency": "the bot's inputs act 1 to 4 ticks later",
    "jitter": "each input acts up to 2 or 4 ticks later, drawn anew for each",
    "loss": "1, 5 or 10 % of the packets never reach the bot",
    "burst": "packets reach the bot 2 or 4 at a time",
    "fps": "the bot gets packets of 60 or 30 frames a second",
    "selection": "the bot samples its actions, or takes the most likely ones, other than its policy says",
    "hitbox": "the bot's car has another hitbox",
    "dialect": "packets differ on a point that the protocol's documents leave open; the opponent is told",
    "physics": "both play in the other simulator, against Chaser",
}
"""Groups of causes, with what each does."""

_LATENCIES: Final = (0, 1, 2, 3, 4)
_SPREADS: Final = (2, 4)
_LOSSES: Final = (1, 5, 10)
_BURSTS: Final = (2, 4)
_FRAME_RATES: Final = (60, 30)


@dataclass(frozen=True)
class Cause:
    """Something that differs from training for the tested bot.

    Attributes:
        name: In tables.
        group: One of `GROUPS`; empty for the control, in which nothing differs.
        impairments: Between the game and the tested bot.
        selection: How it chooses actions; None for its own way.
        hitbox: Of its car; None for its own.
        dialect: Points of the server's dialect.
        simulator: What both play in.
        is_shared: It meets the opponent, too, so that matches without it are played for comparison.
    """

    name: str
    group: str = ""
    impairments: Impairments = field(default_factory=Impairments)
    selection: str | None = None
    hitbox: str | None = None
    dialect: Mapping[str, str] = field(default_factory=dict, hash=False)
    simulator: str = DEFAULT_SIMULATOR
    is_shared: bool = False

    @property
    def needs_server(self) -> bool:
        """Tell whether only the match server can play it: it acts on packets."""
        return bool(self.dialect or self.impairments.latency_spread or not self.impairments.sends_all)


CONTROL: Final = "nothing"
"""Name of the cause in which nothing differs."""


def list_causes(manifest: Manifest, selection: str, groups: Sequence[str]) -> list[Cause]:
    """Return the causes of some groups for a policy.

    Args:
        manifest: The policy's.
        selection: How it chooses its actions where nothing else is said.
        groups: Names of `GROUPS`.
    """
    causes = [
        Cause(_ticks_of(latency), "latency", Impairments(latency=latency))
        for latency in _LATENCIES if latency != manifest.input_latency
    ]  # fmt: skip
    causes += [
        Cause(f"jitter of 0 to {spread} ticks", "jitter", Impairments(latency_spread=spread))
        for spread in _SPREADS
    ]
    causes += [Cause(f"{share} % of packets lost", "loss", Impairments(drop=share)) for share in _LOSSES]
    causes += [Cause(f"bursts of {size} packets", "burst", Impairments(burst=size)) for size in _BURSTS]
    causes += [Cause(f"{rate} frames a second", "fps", Impairments(fps=rate)) for rate in _FRAME_RATES]
    (other,) = (one for one in SELECTIONS if one != selection)
    named = {"sample": "sampled actions", "argmax": "most likely actions"}
    causes.append(Cause(named[other], "selection", selection=other))
    causes += [
        Cause(f"hitbox {name}", "hitbox", hitbox=name) for name in HITBOX_NAMES if name != manifest.hitbox
    ]
    causes += [
        Cause(f"{point}={value}", "dialect", dialect={point: value})
        for point, its in POINTS.items() for value in its.values[1:]
    ]  # fmt: skip
    others = [name for name in SIMULATORS if name != DEFAULT_SIMULATOR and is_installed(name)]
    causes += [Cause(name, "physics", simulator=name, is_shared=True) for name in others]
    return [cause for cause in causes if cause.group in groups]


def _ticks_of(latency: int) -> str:
    return "no latency" if not latency else f"latency of {latency} tick{'' if latency == 1 else 's'}"
