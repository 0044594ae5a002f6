"""Draw rewards and ends of episodes over the game; off unless `RLGYM_BRIDGE_OVERLAY` is set."""

import os
from typing import Final

from rlbot import flat

from rlgym_bridge.components.episode import StepReport

OVERLAY_VARIABLE: Final = "RLGYM_BRIDGE_OVERLAY"
"""Name of the environment variable; any value but 0 and the empty one turns the overlay on."""

_GROUP: Final = 71  # RLBot distinguishes a connection's groups of messages by number
_X, _Y, _SCALE = 0.02, 0.3, 1.0  # of the screen's width and height; 20 pixels a line
_WHITE, _SHADE = flat.Color(255, 255, 255, 255), flat.Color(0, 0, 0, 128)


def is_on() -> bool:
    """Tell whether the environment turns the overlay on."""
    return os.environ.get(OVERLAY_VARIABLE, "") not in ("", "0")


def describe_step(report: StepReport) -> str:
    """Return a line for each car: the latest step's reward, the episode's so far, and whether it ended."""
    lines = []
    for agent, reward in report.rewards.items():
        line = f"{agent}: {reward:+.3f}, {report.returns.get(agent, 0.0):+.2f} since kickoff"
        ends = (("terminated", report.terminated), ("truncated", report.truncated))
        lines.append(line + "".join(f", {name}" for name, flags in ends if flags.get(agent)))
    return "\n".join(lines)


def draw_message(text: str) -> bytes:
    """Return the packed message that draws a text."""
    drawn = flat.String2D(text, _X, _Y, _SCALE, _WHITE, _SHADE, flat.TextHAlign.Left, flat.TextVAlign.Top)
    return flat.InterfacePacket(flat.RenderGroup([flat.RenderMessage(drawn)], _GROUP)).pack()
