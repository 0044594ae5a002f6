"""Which dialect the server speaks, as far as it matters here: told by a file, or heard in the packets."""

import logging

from rlgym_bridge.dialect import Dialect

_LOG = logging.getLogger(__name__)

_FIELDS = {
    "pad_timer": ("pad_timer",),
    "dodge_timeout": ("air_time_since_jump", "has_flip", "can_flip"),
    "demolished_place": ("position", "rotation", "linear_velocity", "angular_velocity"),
}
"""The points that change what a state says, and the fields they change. Of the others the decoder takes
what it needs from elsewhere: it reads every packet of either kind alike."""

_VALUES = {
    "elapsed": ("pad_timer", "elapsed", "remaining"),
    "adds_hold": ("dodge_timeout", "plus_hold", "after_jump"),
    "at_origin": ("demolished_place", "origin", "kept"),
}
"""By attribute of `Settled`: the point, and its value where the attribute is True and where it is False."""


class Settled:
    """What is settled; shared by all that read one session's packets.

    Args:
        dialect: What is known beforehand. It stands, whatever packets show: a contradiction is said once.

    Attributes:
        elapsed: Pad timers count up from the pickup; None while that is open.
        adds_hold: `dodge_timeout` has the time of the jump in it; None while that is open.
        at_origin: A demolished car is shown at the origin; None while that is open.
        listening: Names of the attributes that packets are still to settle, or may contradict.
    """

    def __init__(self, dialect: Dialect | None = None) -> None:
        given = dialect or Dialect()
        self.elapsed = _is(given.get("pad_timer"), "elapsed")
        self.adds_hold = _is(given.get("dodge_timeout"), "plus_hold")
        self.at_origin = _is(given.get("demolished_place"), "origin")
        self.listening = set(_VALUES)
        self._told = {name for name, (point, _, _) in _VALUES.items() if point in given}

    def hear(self, name: str, value: bool) -> None:
        """Take what a packet shows of one of the attributes."""
        if name not in self._told:
            setattr(self, name, value)
            self.listening.discard(name)
        elif value is not getattr(self, name) and name in self.listening:
            self.listening.discard(name)
            point, *values = _VALUES[name]
            shown, told = values if value else reversed(values)
            _LOG.warning(
                "packets show %s=%s, the bot was told %s=%s, which it goes by: it may be wrong about %s",
                point, shown, point, told, ", ".join(_FIELDS[point]),
            )  # fmt: skip

    @property
    def dialect(self) -> Dialect:
        """What is settled, as a dialect."""
        values = ((point, getattr(self, name), yes, no) for name, (point, yes, no) in _VALUES.items())
        return Dialect({point: yes if it else no for point, it, yes, no in values if it is not None})

    @property
    def in_doubt(self) -> dict[str, tuple[str, ...]]:
        """The points that are open still, and the fields of `MatchState` that may be wrong because of it."""
        settled = self.dialect
        return {name: fields for name, fields in _FIELDS.items() if name not in settled}


def _is(value: str | None, meant: str) -> bool | None:
    return None if value is None else value == meant
