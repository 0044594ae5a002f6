"""The named differences between the real game's physics and RocketSim 2.2.1, each one a rule with a switch.

Evidence: recordings of the game at 120 Hz of 2026, replays of 2018 to 2026, recordings of 2018; see
docs/gap/physics.md. `RuledArena` applies rules to an arena, tick by tick.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rlgym_bridge.user_input.arguments import check_list, show_value


class GameRule(NamedTuple):
    """One difference between the game and RocketSim.

    Attributes:
        text: The rule, as a sentence.
        evidence: Recordings that show it, with numbers.
        loop: Whether it acts between ticks; otherwise constants or control rows are enough.
    """

    text: str
    evidence: str
    loop: bool


RULES: Final = {
    "velocity_cut": GameRule(
        "After every tick each component of a velocity is cut towards zero: uu/s to 0.01, rad/s to 0.0001, "
        "plus a tenth of that; a component of 0 stays 0",
        "8 captures of 2026: all 10,622 components end so, but for 0 and the first rows, which were set; the "
        "ball's next tick is exact in 538 of 576, without the rule in 73. A replay of September 2018 has it, "
        "balls of 2018 (Lobot) do not",
        loop=True,
    ),
    "position_rounding": GameRule(
        "After every tick each coordinate is rounded to 0.01 uu, and the next tick starts there",
        "6 captures of 2026: 905 of 910 ball coordinates are exact",
        loop=True,
    ),
    "thrust": GameRule(
        "Boost in the air includes full throttle: 1,058.33 uu/s^2 with any throttle",
        "1,058 with throttle 1 (2018, 41 ticks) and 0 (2018, 758 ticks), 1,059 with throttle 1 (2025, 14); "
        "RocketSim adds 66.67 for throttle 1",
        loop=False,
    ),
    "wheels": GameRule(
        "On the flat floor engine, brake, steering and friction act in their own tick, after the suspension, "
        "whose rays are 2.5 uu longer",
        "4 captures of 2026: next velocity exact in 97 to 100 % of components, RocketSim's in 4 to 90 %",
        loop=True,
    ),
    "jump": GameRule(
        "A jump pushes with full force from its first tick on, before the suspension acts",
        "5 jumps in captures of 2026",
        loop=True,
    ),
    "dodge": GameRule(
        "A dodge turns for 79 ticks from the press on with torques in whole numbers; damping, yaw and roll "
        "act meanwhile; z is damped one tick later",
        "2 dodges in captures of 2026: spin exact in 595 of 635 components",
        loop=True,
    ),
    "bump": GameRule(
        "A bump goes by the bumper's whole speed at the tick's start, over curves in whole km/h, and throws "
        "nobody up who flies",
        "1 bump in a capture of 2026, with the curves that fit 4: 1,410.55 -> 1,415.5 uu/s ahead",
        loop=True,
    ),
}
"""All rules by name."""

ROCKETSIM: Final[frozenset[str]] = frozenset()
"""RocketSim as it is: no rule."""

DEFAULT: Final = frozenset({"thrust"})
"""Rules of training, matches and parity where nothing else is named: those that need no loop over ticks."""

GAME: Final = frozenset(RULES)
"""The game's own physics, as far as it is known."""


def parse_rules(given: str | Sequence[str]) -> frozenset[str]:
    """Return rules by their names.

    Args:
        given: `"rocketsim"` for none, `"default"` for `DEFAULT`, `"game"` for the game's own, or names of
            `RULES`: as a list, or as one text with commas between them.

    Raises:
        ValueError: A name is unknown.
    """
    if not isinstance(given, str):
        check_list("rules", given, "names of rules, or one text")
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    found: set[str] = set()
    for name in names:
        if name == "game":
            found |= GAME
        elif name == "default":
            found |= DEFAULT
        elif name in RULES:
            found.add(name)
        elif name != "rocketsim":
            raise ValueError(
                f"rule {show_value(name)} is unknown, expected rocketsim, default, game, or some of "
                f"{', '.join(RULES)}"
            )
    return frozenset(found)


def describe_rules(rules: frozenset[str]) -> str:
    """Return rules as one text that `parse_rules` reads: rocketsim, default, game, or names with commas."""
    if rules in (GAME, DEFAULT):
        return "game" if rules == GAME else "default"
    return ",".join(name for name in RULES if name in rules) or "rocketsim"
