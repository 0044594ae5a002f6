"""Bytes that differ from good ones in a few places, for hypothesis."""

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

_MOST_EDITS: Final = 6
_WORDS: Final = (
    b"\0" * 8, b"\xff" * 8, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"nan", b"1e999", b"-1", b"9" * 30,
    b'"', b"[", b"{", b"\n", b"\x1b[2J", b"\xc3", "\u202e".encode(), b"[" * 300, b"a." * 300, b"true", b"''",
)  # fmt: skip
"""Bytes that readers may stumble over."""


@st.composite
def mutants(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """Draw one of some byte strings, or none, with a few places overwritten, cut, repeated or filled."""
    data = bytearray(draw(st.sampled_from([*seeds, b""])))
    for _ in range(draw(st.integers(0, _MOST_EDITS))):
        place = draw(st.integers(0, len(data)))
        end = min(len(data), place + draw(st.sampled_from((0, 1, 2, 4, 8, 30, 300))))
        kind = draw(st.sampled_from(("write", "insert", "word", "cut", "repeat", "end")))
        if kind in ("write", "insert"):
            data[place : end if kind == "write" else place] = draw(st.binary(min_size=1, max_size=8))
        elif kind == "word":
            data[place:end] = draw(st.sampled_from(_WORDS))
        elif kind == "repeat":
            data[place:place] = data[place:end] * draw(st.integers(1, 20))
        else:
            del data[place : end if kind == "cut" else len(data)]
    return bytes(data)
