"""`compare --fit`: what training and matches are to change, as a TOML file that both read."""

from typing import Final

from rlgym_bridge.compare.findings.comparison_result import Comparison
from rlgym_bridge.compare.findings.fitted_constants import Size
from rlgym_bridge.physics import Spread, physics_as_toml
from rlgym_bridge.user_input.toml_text import toml_line, toml_value

_WIDEST: Final = 0.1  # half of an interval beyond which a fit tells nothing worth training over


def fitted_constants(found: Comparison) -> dict[str, Spread]:
    """Return RocketSim's constants as recordings show them.

    The value is RocketSim's own unless a gap is found. The range is the interval that the recordings allow;
    where there is no gap, so far widened that RocketSim's own is in it. Of gravity, which ball and cars both
    show, the narrower interval is taken.

    Args:
        found: The comparison.

    Returns:
        By the names of `physics.CONSTANTS`; without those that recordings do not tell of, to 10 % or better,
        and without those of cars whose inputs are not all recorded, are wrong, or act nobody knows when.
    """
    best: dict[str, Size] = {}
    for size in found.sizes:
        half = (size.high - size.low) / 2
        if half > _WIDEST or (found.inputs_are_off and size.body == "car"):
            continue
        other = best.get(size.mutator)
        if other is None or half < (other.high - other.low) / 2:
            best[size.mutator] = size
    return {
        name: Spread(size.value, size.low, size.high)
        if size.gap
        else Spread(1.0, min(size.low, 1.0), max(size.high, 1.0))
        for name, size in best.items()
    }


def fit_as_toml(found: Comparison) -> str:
    """Return the file: settings of `python -m training`, whose table [physics] matches read too."""
    delays = [fit.delay for fit in found.fits if fit.delay is not None]
    sources = ", ".join(toml_value(fit.source) for fit in found.fits)
    lines = [f"# what recordings show, made by rlgym-bridge compare --fit of {sources}", ""]
    if delays:
        low, high = min(one.low for one in delays), max(one.high for one in delays)
        noise = max(one.noise for one in delays)
        latency = max(delays, key=lambda one: one.inputs).input_latency
        lines += [
            toml_line("action_delay", [low, high], "ticks, lowest and highest of a segment of play"),
            toml_line(
                "action_delay_noise", float(f"{noise:.3g}"), "ticks, of single decisions within a segment"
            ),
            toml_line("input_latency", latency, "ticks, of most inputs; rows are sent that much earlier"),
        ]
        if len({one.input_latency for one in delays}) > 1:
            told = ", ".join(
                f"{toml_value(fit.source)} {fit.delay.input_latency}"
                for fit in found.fits
                if fit.delay is not None
            )
            lines.append(f"# inputs of these recordings act late by different ticks ({told}): fit them apart")
    else:
        lines += ["# how late actions act is not told: no input that was sent stands beside what it did"]
    constants = fitted_constants(found)
    lines += [
        "",
        "# multiples of RocketSim's own: matches are played with value, training draws from low to",
        "# high, which is what these recordings allow; widen it by hand for a bot that is to bear more",
    ]
    return "\n".join(lines) + "\n" + physics_as_toml(constants)
