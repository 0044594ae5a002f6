"""Findings of the probe: values of the dialect's points, and the whole report.

The report is also read from packs of others, so every field has its limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta, Struct

from rlgym_bridge.protocol_variant import POINTS
from rlgym_bridge.user_input.text_files import toml_line

Sentence = Annotated[str, Meta(max_length=2000)]
Name = Annotated[str, Meta(max_length=100)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Amount = Annotated[float, Meta(ge=-1e12, le=1e12)]
Sentences = Annotated[list[Sentence], Meta(max_length=200)]
Words = Annotated[dict[Name, Sentence], Meta(max_length=100)]

TIMING: Mapping[str, tuple[type, str]] = {
    "input_latency": (int, "ticks"), "packets_per_second": (float, ""),
}  # fmt: skip
"""Points that are no words, each with its type and unit."""


@dataclass(frozen=True)
class Finding:
    """The value of one point, None where it could not be found, and what was seen, or why there is none."""

    value: str | None
    evidence: str

    @classmethod
    def first_of(cls, evidence: str, otherwise: str = "", **holds: bool) -> Self:
        """Return the first value that holds; without one None, with more evidence."""
        value = next((name for name, is_so in holds.items() if is_so), None)
        return cls(value, evidence if value is not None else evidence + otherwise)


class ProbeTiming(Struct, frozen=True):
    """Times that the probe found; None where they are not settled."""

    input_latency: Count | None = None
    packets_per_second: Amount | None = None


class ProbeReport(Struct):
    """All findings of a probe."""

    dialect: Words  # the values that were found, by the names of `POINTS`
    open: Words  # why the other points, timing's too, have no value
    timing: ProbeTiming
    evidence: Words  # what was seen, by point: `POINTS`, then those of `TIMING`
    notes: Sentences  # problems on the way, as sentences
    packets: Count

    @classmethod
    def of(cls, findings: Mapping[str, Finding], notes: list[str], packets: int) -> Self:
        """Make the report of findings, which are one for each of `POINTS` and `TIMING`."""
        found = {point: one.value for point, one in findings.items() if one.value is not None}
        timing = {point: kind(found.pop(point)) for point, (kind, _) in TIMING.items() if point in found}
        evidence = {point: one.evidence for point, one in findings.items()}
        missing = {point: text for point, text in evidence.items() if findings[point].value is None}
        return cls(found, missing, ProbeTiming(**timing), evidence, notes, packets)

    def value(self, point: str) -> str | None:
        """Return the value of a point of `POINTS` or `TIMING`; None where it could not be found."""
        value = getattr(self.timing, point) if point in TIMING else self.dialect.get(point)
        return None if value is None else str(value)

    @property
    def settled(self) -> bool:
        """Tell whether every point has a value."""
        return not self.open

    def toml(self, where: str, server: str) -> str:
        """Return the text of `dialect.toml`: what is settled, measured on `server`, which is at `where`."""
        lines = [f"# Measured by `rlgym-bridge probe` on {where}; bots use it only with such a server."]
        lines += [toml_line("server", server)]
        for table, points in (("dialect", POINTS), ("timing", TIMING)):
            lines += ["", f"[{table}]"]
            for point in points:
                kind, unit = TIMING.get(point, (str, ""))
                value = self.value(point)
                lines.append(
                    f"# {point}: not settled: {self.open[point]}" if value is None
                    else toml_line(point, kind(value), unit)
                )  # fmt: skip
        return "\n".join(lines) + "\n"

    def as_json(self) -> dict[str, Any]:
        """Return the report as other programs read it."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found
