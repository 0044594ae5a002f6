"""Draw what each cause costs a bot, as bars with intervals."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from rlgym_bridge.training.contests.stress_causes import CONTROL
from rlgym_bridge.training.contests.stress_plan import SERVER
from rlgym_bridge.training.contests.stress_results import Loss

matplotlib.rcParams["text.parse_math"] = False  # a name may hold $

_ROW_INCHES = 0.24


def draw_losses(name: str, losses: Sequence[Loss], path: Path) -> None:
    """Write a picture of what each cause costs, the dearest on top.

    Args:
        name: Of the tested bot.
        losses: As `losses_of` returns them.
        path: PNG file.
    """
    # A control that others are compared with has no interval, nor has what has no effect at all.
    shown = [loss for loss in losses if loss.lost.reach > 0 or loss.verdict == "no effect"]
    places = np.arange(len(shown))
    points = np.array([100 * loss.lost.value for loss in shown])
    reach = np.array([100 * loss.lost.reach for loss in shown])
    figure, axes = plt.subplots(figsize=(8.0, 1.3 + _ROW_INCHES * len(shown)), layout="constrained")
    colours = [_colour_of(loss) for loss in shown]
    axes.barh(
        places, points, xerr=reach, color=colours, height=0.7, error_kw={"linewidth": 0.9, "capsize": 2}
    )
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(places, [_label_of(loss) for loss in shown], fontsize="small")
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set(
        xlabel="points of win rate lost, 95 % (grey: within noise)",
        title=f"What costs {name} matches",
    )
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _colour_of(loss: Loss) -> str:
    if loss.verdict or loss.trial.cause.name == CONTROL:
        return "lightgrey"
    return "tab:red" if loss.lost.value > 0 else "tab:green"


def _label_of(loss: Loss) -> str:
    trial = loss.trial
    return f"{trial.cause.name} ({'server' if trial.place == SERVER else 'simulator'})"
