"""Findings of the probe: values of the dialect's points, measured facts, and the whole report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlgym_bridge.dialect import POINTS, Dialect
from rlgym_bridge.user_input.toml_text import toml_line


@dataclass(frozen=True)
class Finding:
    """The value of one point of the dialect, with its evidence.

    Attributes:
        point: Its name in `POINTS`, or "input_latency" or "packets_per_second".
        value: Its value; None where it could not be found.
        evidence: What was seen, or why no value was found.
    """

    point: str
    value: str | None
    evidence: str


@dataclass(frozen=True)
class Fact:
    """A measured number, with RocketSim's for comparison.

    Attributes:
        name: What was measured.
        value: The number; None where it was not seen.
        expected: RocketSim's number.
        unit: Unit of both.
        tolerance: Difference up to which they count as equal.
    """

    name: str
    value: float | None
    expected: float
    unit: str
    tolerance: float

    @property
    def differs(self) -> bool:
        """Tell whether it was measured and differs from RocketSim's."""
        return self.value is not None and abs(self.value - self.expected) > self.tolerance


@dataclass
class ProbeReport:
    """All findings of a probe.

    Attributes:
        findings: One for each of `POINTS`.
        latency: The finding about `input_latency`: ticks as a whole number.
        rate: The finding about `packets_per_second`.
        facts: Measured numbers, with RocketSim's.
        notes: Problems on the way, as sentences.
        packets: Number of packets seen.
    """

    findings: Mapping[str, Finding]
    latency: Finding
    rate: Finding
    facts: list[Fact] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    packets: int = 0

    @property
    def dialect(self) -> Dialect:
        """Return the points whose value was found."""
        return Dialect({one.point: one.value for one in self.findings.values() if one.value is not None})

    @property
    def rows(self) -> list[Finding]:
        """Return all findings in the order of `POINTS`, then those about timing."""
        return [self.findings[name] for name in POINTS] + [self.latency, self.rate]

    @property
    def settled(self) -> bool:
        """Tell whether every finding has a value."""
        return all(one.value is not None for one in self.rows)

    def toml(self, where: str, server: str) -> str:
        """Return the text of `dialect.toml`: what is settled.

        Args:
            where: Which server was asked, for the first line.
            server: `dialect.OWN_SERVER` or `dialect.OTHER_SERVER`.
        """
        lines = [f"# Measured by `rlgym-bridge probe` on {where}; bots use it only with such a server."]
        lines += [toml_line("server", server), "", "[dialect]"]
        for one in self.rows[:-2]:
            if one.value is None:
                lines.append(f"# {one.point}: not settled: {one.evidence}")
            else:
                lines.append(toml_line(one.point, one.value))
        lines += ["", "[timing]"]
        for one, kind, unit in ((self.latency, int, "ticks"), (self.rate, float, "")):
            if one.value is None:
                lines.append(f"# {one.point}: not settled: {one.evidence}")
            else:
                lines.append(toml_line(one.point, kind(one.value), unit))
        return "\n".join(lines) + "\n"

    def as_json(self) -> dict[str, Any]:
        """Return the report as other programs read it."""
        latency, rate = self.latency.value, self.rate.value
        return {
            "dialect": dict(self.dialect),
            "open": {one.point: one.evidence for one in self.rows if one.value is None},
            "timing": {
                "input_latency": None if latency is None else int(latency),
                "packets_per_second": None if rate is None else float(rate),
            },
            "evidence": {one.point: one.evidence for one in self.rows},
            "facts": [
                {
                    "name": one.name, "value": one.value, "expected": one.expected, "unit": one.unit,
                    "differs": one.differs,
                }
                for one in self.facts
            ],
            "notes": self.notes,
            "packets": self.packets,
        }  # fmt: skip
