"""`compare --fit`: what training and matches are to change, as a TOML file that both read."""

from typing import Final

from rlgym_bridge.compare.comparison_result import Comparison, Size
from rlgym_bridge.physics import CONSTANTS, Spread, physics_as_toml
from rlgym_bridge.user_input.text_files import toml_line, toml_value

_WIDEST: Final = 0.1  # half of an interval beyond which a fit tells nothing worth training over


def fitted_constants(found: Comparison) -> dict[str, Spread]:
    """Return RocketSim's constants as recordings show them.

    Returns:
        By the names of `physics.CONSTANTS`; without those that recordings do not tell of, to 10 % or better.
        The value is RocketSim's own unless a gap is found that is told apart from all others. The range is
        what the recordings allow together; if they contradict each other, from the lowest to the highest.
    """
    every: dict[str, list[Size]] = {}
    for size in found.sizes:
        if size.mutator in CONSTANTS and size.high - size.low <= 2 * _WIDEST:
            every.setdefault(size.mutator, []).append(size)
    return {name: _together(sizes) for name, sizes in every.items()}


def _together(sizes: list[Size]) -> Spread:
    """Return what the intervals of one constant in several recordings allow."""
    low, high = max(size.low for size in sizes), min(size.high for size in sizes)
    if low > high:
        low, high = min(size.low for size in sizes), max(size.high for size in sizes)
    gaps = [size for size in sizes if size.gap]
    if not gaps:
        return Spread(1.0, min(low, 1.0), max(high, 1.0))
    best = min(gaps, key=lambda size: size.high - size.low)
    return Spread(min(max(best.value, low), high), low, high)


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
