"""What conditions and rewards say, drawn over the game by RLBot; off unless `RLGYM_BRIDGE_OVERLAY` is set."""

import os
from typing import Final

from rlbot import flat

from rlgym_bridge.components.episode import StepReport

OVERLAY_VARIABLE: Final = "RLGYM_BRIDGE_OVERLAY"
"""Environment variable; any value but 0 and the empty one turns the overlay on."""

_GROUP: Final = 71  # RLBot tells groups of messages apart by number, for each connection
_X, _Y, _SCALE = 0.02, 0.3, 1.0  # of the screen's width and height; 20 pixels a line
_WHITE, _SHADE = flat.Color(255, 255, 255, 255), flat.Color(0, 0, 0, 128)


def is_on() -> bool:
    """Tell whether the environment asks for the overlay."""
    return os.environ.get(OVERLAY_VARIABLE, "") not in ("", "0")


def text(report: StepReport) -> str:
    """Return a line for each car: the latest step's reward, the episode's, and how it ended."""
    lines = []
    for agent, reward in report.rewards.items():
        line = f"{agent}: {reward:+.3f}, {report.returns.get(agent, 0.0):+.2f} since kickoff"
        ends = (("terminated", report.terminated), ("truncated", report.truncated))
        lines.append(line + "".join(f", {name}" for name, flags in ends if flags.get(agent)))
    return "\n".join(lines)


def message(shown: str) -> bytes:
    """Return the message that draws some lines."""
    drawn = flat.String2D(shown, _X, _Y, _SCALE, _WHITE, _SHADE, flat.TextHAlign.Left, flat.TextVAlign.Top)
    return flat.InterfacePacket(flat.RenderGroup([flat.RenderMessage(drawn)], _GROUP)).pack()
