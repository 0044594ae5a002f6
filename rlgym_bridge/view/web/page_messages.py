"""Messages that the page sends, checked before anybody acts on them."""

from typing import Annotated, Any, Final, Literal

import msgspec

MOST_BYTES: Final = 2048  # of a message

_Number = Annotated[float, msgspec.Meta(ge=-1e4, le=1e4)]
_Vector = Annotated[list[_Number], msgspec.Meta(min_length=3, max_length=3)]
_Car = Annotated[int, msgspec.Meta(ge=0, le=7)]


class PageInput(msgspec.Struct, frozen=True, tag_field="type", tag="input"):
    """Controls of the keys or the gamepad: `game.CONTROL_NAMES`, -1..1, with a number that rises."""

    seq: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    controls: Annotated[
        list[Annotated[float, msgspec.Meta(ge=-1, le=1)]], msgspec.Meta(min_length=8, max_length=8)
    ]


Deed = Literal[
    "pause", "resume", "speed", "reset", "kickoff", "save", "seek", "rewind", "take", "give", "put", "follow",
    "ready", "stall",
]  # fmt: skip


class PageCommand(msgspec.Struct, frozen=True, tag_field="type", tag="command"):
    """A wish of the page; `value` has the form that `VALUES` gives for `do`."""

    do: Deed
    value: Any = None


class Take(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another driver for a car: `human`, who is at this page, or a policy by its name."""

    car: _Car
    driver: Annotated[str, msgspec.Meta(max_length=1000)]


class Put(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another place for a body: the ball or a car; uu and uu/s."""

    body: Literal["ball"] | _Car
    pos: _Vector
    vel: _Vector = msgspec.field(default_factory=lambda: [0.0, 0.0, 0.0])


SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0)  # seconds of the game in a second

VALUES: Final[dict[str, Any]] = {
    "speed": float,
    "seek": Annotated[float, msgspec.Meta(ge=0, le=1e6)],
    "rewind": Annotated[float, msgspec.Meta(ge=0, le=60)],
    "take": Take,
    "give": Annotated[int, msgspec.Meta(ge=-1, le=7)],
    "put": Put,
    "follow": Annotated[int, msgspec.Meta(ge=-1, le=7)],
    "stall": Annotated[float, msgspec.Meta(ge=0, le=1e6)],
}
"""Form of the values; commands that are not named take none."""

_DECODER: Final = msgspec.json.Decoder(PageInput | PageCommand)


def read_message(text: str) -> PageInput | PageCommand:
    """Return a message of the page, a command's value by `VALUES`; raises ValueError for any other."""
    try:
        message: PageInput | PageCommand = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("brackets in brackets in brackets, expected at most a few") from None
    if isinstance(message, PageInput) or message.do not in VALUES:
        return message
    if message.do == "speed" and message.value not in SPEEDS:
        known = ", ".join(f"{speed:g}" for speed in SPEEDS)
        raise ValueError(f"speed is not one of {known}")
    try:
        return PageCommand(message.do, msgspec.convert(message.value, VALUES[message.do]))
    except msgspec.ValidationError as error:
        raise ValueError(f"value of {message.do}: {error}") from error
