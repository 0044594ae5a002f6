"""Detect from packets which dialect the server speaks, where no file says so."""

import logging

from rlgym_bridge.dialect import Dialect

_LOG = logging.getLogger(__name__)

_FIELDS = {
    "pad_timer": ("pad_timer",),
    "dodge_timeout": ("air_time_since_jump", "has_flip", "can_flip"),
    "demolished_place": ("position", "rotation", "linear_velocity", "angular_velocity"),
}
"""The points of the dialect that packets show by themselves, and the fields of `MatchState` they change.

`on_ground`, `kickoff_ends` and `clock` count only where a file says them. In play the others change nothing:
packets are decoded in the same way whatever their values.
"""

_VALUES = {
    "elapsed": ("pad_timer", "elapsed", "remaining"),
    "adds_hold": ("dodge_timeout", "plus_hold", "after_jump"),
    "at_origin": ("demolished_place", "origin", "kept"),
}
"""By attribute of `DialectDetector`: the point, and its values for True and for False."""


class DialectDetector:
    """The server's dialect as far as it is known, shared by all that read one connection's packets.

    Args:
        dialect: What is known beforehand. Packets do not overrule it: a contradiction is logged once.

    Attributes:
        elapsed: Pad timers count up from the pickup; None while unknown.
        adds_hold: `dodge_timeout` includes the time that the jump was held; None while unknown.
        at_origin: A demolished car is shown at the origin; None while unknown.
        wheels_on_ground: Wheels that touch where a packet says `OnGround`, at least.
        waits_for_touch: Phase Kickoff may end before the first touch, which ends it in the state.
        whole_seconds: The clock in packets is rounded up.
        undecided: Names of the attributes that packets may still decide, or contradict.
    """

    def __init__(self, dialect: Dialect | None = None) -> None:
        given = dialect or Dialect()
        self.elapsed = _is(given.get("pad_timer"), "elapsed")
        self.adds_hold = _is(given.get("dodge_timeout"), "plus_hold")
        self.at_origin = _is(given.get("demolished_place"), "origin")
        self.wheels_on_ground = 4 if given.get("on_ground") == "four_wheels" else 3
        self.waits_for_touch = given.get("kickoff_ends") == "after_two_seconds"
        self.whole_seconds = given.get("clock") == "whole"
        self.undecided = set(_VALUES)
        self._given = {name for name, (point, _, _) in _VALUES.items() if point in given}

    def observe(self, name: str, value: bool) -> None:
        """Note what a packet shows about one of the attributes."""
        if name not in self._given:
            setattr(self, name, value)
            self.undecided.discard(name)
        elif value is not getattr(self, name) and name in self.undecided:
            self.undecided.discard(name)
            point, *values = _VALUES[name]
            shown, given = values if value else reversed(values)
            _LOG.warning(
                "packets show %s=%s, but the given dialect says %s=%s, which is used: these may be wrong: %s",
                point, shown, point, given, ", ".join(_FIELDS[point]),
            )  # fmt: skip

    @property
    def dialect(self) -> Dialect:
        """Return the values that are known."""
        values = ((point, getattr(self, name), yes, no) for name, (point, yes, no) in _VALUES.items())
        return Dialect(
            {point: yes if is_yes else no for point, is_yes, yes, no in values if is_yes is not None}
        )

    @property
    def in_doubt(self) -> dict[str, tuple[str, ...]]:
        """Return the points that are still unknown, with the fields of `MatchState` that may be wrong."""
        known = self.dialect
        return {point: fields for point, fields in _FIELDS.items() if point not in known}


def _is(value: str | None, meant: str) -> bool | None:
    return None if value is None else value == meant
