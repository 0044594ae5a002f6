"""Which dialect the server speaks, as far as it matters here: told by a file, or heard in the packets."""

from rlgym_bridge.dialect import Dialect

_FIELDS = {
    "pad_timer": ("pad_timer",),
    "dodge_timeout": ("air_time_since_jump", "has_flip", "can_flip"),
    "demolished_place": ("position", "rotation", "linear_velocity", "angular_velocity"),
}
"""The points that change what a state says, and the fields they change. Of the others the decoder takes
what it needs from elsewhere: it reads every packet of either kind alike."""


class Settled:
    """What is settled; shared by all that read one session's packets.

    Args:
        dialect: What is known beforehand.

    Attributes:
        elapsed: Pad timers count up from the pickup; None while that is open.
        adds_hold: `dodge_timeout` has the time of the jump in it; None while that is open.
        at_origin: A demolished car is shown at the origin; None while that is open.
    """

    def __init__(self, dialect: Dialect | None = None) -> None:
        given = dialect or Dialect()
        self.elapsed = _is(given.get("pad_timer"), "elapsed")
        self.adds_hold = _is(given.get("dodge_timeout"), "plus_hold")
        self.at_origin = _is(given.get("demolished_place"), "origin")

    @property
    def dialect(self) -> Dialect:
        """What is settled, as a dialect."""
        values = (
            ("pad_timer", self.elapsed, "elapsed", "remaining"),
            ("dodge_timeout", self.adds_hold, "plus_hold", "after_jump"),
            ("demolished_place", self.at_origin, "origin", "kept"),
        )
        return Dialect({name: yes if it else no for name, it, yes, no in values if it is not None})

    @property
    def in_doubt(self) -> dict[str, tuple[str, ...]]:
        """The points that are open still, and the fields of `MatchState` that may be wrong because of it."""
        settled = self.dialect
        return {name: fields for name, fields in _FIELDS.items() if name not in settled}


def _is(value: str | None, meant: str) -> bool | None:
    return None if value is None else value == meant
