"""Say what a comparison's main sentences leave open."""

from typing import TYPE_CHECKING, Final

from rlgym_bridge.compare.findings.phrases import SECOND, listed, name_rules, short
from rlgym_bridge.sim.game_rules import parse_rules
from rlgym_bridge.user_input.arguments import count_of

if TYPE_CHECKING:
    from rlgym_bridge.compare.findings.comparison_result import Comparison

_FAR: Final = 1.0  # uu: tails below are of no interest
_TAIL: Final = 10.0  # tolerances of the median: from there on the median hides something
_DIFFERS: Final = ("physics gap", "wrong input", "missing input")
_BALL: Final = ("ball", "hit", "gravity")  # what gaps of the ball begin with; gravity pulls cars, too


def tell_recorder(found: "Comparison") -> str:
    """Return which recordings are the match server's own, and so of RocketSim; nothing where none is."""
    own = [fit for fit in found.fits if fit.written_rules]
    if not own:
        return ""
    if len(own) < len(found.fits):
        which = f"{listed([fit.source for fit in own])} {'is' if len(own) == 1 else 'are'}"
    else:
        which = "The recording is" if len(own) == 1 else "The recordings are"
    text = f"{which} of the match server, which plays in RocketSim: nothing here measures Rocket League."
    for fit in own:
        written = parse_rules(fit.written_rules)
        if fit.rules.given and fit.rules.rules != written:
            return (
                f"{text} {fit.source} was played by {name_rules(written)}, and is simulated by "
                f"{name_rules(fit.rules.rules)}, as asked for."
            )
    return text


def tell_open_rows(found: "Comparison") -> str:
    """Return which body differs beside what was named, where all that was named is of the other one."""
    names = [gap.name for gap in found.gaps if gap.kind.value in _DIFFERS]
    names += [each.name for each in found.mechanisms if each.kind != "timing"]
    if not names:
        return ""
    of_ball = [name.startswith(_BALL) for name in names]
    sentences = []
    for body, named, who in (
        ("car", any("gravity" in name for name in names) or not all(of_ball), "Cars differ"),
        ("ball", any(of_ball), "The ball differs"),
    ):
        rows = {
            row.name: None for row in found.situations
            if row.name.startswith(f"{body} ") and row.verdict.value in _DIFFERS
        }  # fmt: skip
        if rows and not named:
            sentences.append(f"{who} as well ({', '.join(rows)}); nothing that was tried explains it.")
    return " ".join(sentences)


def tell_tail(found: "Comparison") -> str:
    """Return where one window in ten is far off though the median agrees; nothing where none is."""
    parts = []
    for row in found.situations:
        far = row.p90 > max(_FAR, _TAIL * row.tolerance)
        single = " " in row.name and row.horizon_ticks == SECOND
        if single and far and row.verdict.value == "agrees":
            parts.append(
                f"more than {short(row.p90)} uu for {row.name} ({count_of(row.windows, 'window')}; RocketSim "
                f"against itself: {short(row.floor_p90)})"
            )
    return f"One window in ten is further off: {listed(parts)}." if parts else ""
