"""Describe the parts of a field test's pack, as they are written and as those of others are checked."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from rlgym_bridge.trials.scripted_scene import MOST_SCENES, PlayedScene, ScriptedScene

FORMAT: Final = 1
"""Number of the pack's format; packs of other formats are refused."""

Sentence = Annotated[str, Meta(max_length=2000)]
Name = Annotated[str, Meta(max_length=100)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Amount = Annotated[float, Meta(ge=-1e12, le=1e12)]
Sentences = Annotated[list[Sentence], Meta(max_length=200)]
Words = Annotated[dict[Name, Sentence], Meta(max_length=100)]


class PartOutcome(Struct, frozen=True):
    """The outcome of one part of a field test.

    Attributes:
        name: Its name: probe, timing, scenes or match.
        state: done; failed; stopped by Ctrl-C; not begun.
        seconds: Wall time that it took.
        note: Why it is not done; empty where it is.
    """

    name: Name
    state: Literal["done", "failed", "stopped", "not begun"]
    seconds: Amount = 0.0
    note: Sentence = ""


class AboutPack(Struct, frozen=True):
    """The description of a pack.

    Attributes:
        format: `FORMAT`.
        made: Day on which it was made, in UTC.
        server: sim for the match server of this project, also in RLBotServer's place; rlbot for any other.
        versions: Of packages and Python, and the operating system's name.
        settings: Of the field test.
        parts: What became of each part.
    """

    format: int
    made: Name
    server: Literal["rlbot", "sim"]
    versions: Words
    settings: Annotated[dict[Name, Sentence | Amount | None], Meta(max_length=100)]
    parts: Annotated[list[PartOutcome], Meta(max_length=20)]


class ProbeTiming(Struct, frozen=True):
    """Times that the probe found; None where they are not settled."""

    input_latency: Count | None = None
    packets_per_second: Amount | None = None


class ProbeFact(Struct, frozen=True):
    """A number that the probe measured, with RocketSim's; see `probe.Fact`."""

    name: Sentence
    value: Amount | None
    expected: Amount
    unit: Name
    differs: bool


class ProbePart(Struct, frozen=True):
    """The probe's report, as `ProbeReport.as_json` has it."""

    dialect: Words
    open: Words
    timing: ProbeTiming
    evidence: Words
    facts: Annotated[list[ProbeFact], Meta(max_length=100)]
    notes: Sentences
    packets: Count


class TimingPart(Struct, frozen=True):
    """The timing's report, as `TimingReport.as_json` has it."""

    packets: Count
    input_latency_ticks: Count | None
    also_fits: Annotated[list[Count], Meta(max_length=100)]
    latencies: Annotated[dict[Name, Count], Meta(max_length=200)]
    lost_ticks: Count
    tick_step: Count
    reply_ms: Annotated[dict[Name, Amount | None], Meta(max_length=10)]
    interval_ms: Annotated[dict[Name, Amount | None], Meta(max_length=10)]
    frame_rate: Amount | None


class MatchPart(Struct, frozen=True):
    """The result of the match: goals of blue and orange, ticks of play, and each bot's touches and replies.

    Attributes:
        score: Goals of blue and orange.
        playing_ticks: Ticks of play.
        ended_by: Why it ended.
        touches: Of each bot.
        unanswered: Packets that each bot did not answer; None where it does not say.
    """

    score: tuple[Count, Count]
    playing_ticks: Count
    ended_by: Name
    touches: Annotated[list[Count], Meta(max_length=8)]
    unanswered: Annotated[list[Count | None], Meta(max_length=8)]


class ScenesPart(Struct, frozen=True):
    """The scripted scenes: their definitions, and the frames at which they were played."""

    scenes: Annotated[list[ScriptedScene], Meta(max_length=MOST_SCENES)]
    played: Annotated[list[PlayedScene], Meta(max_length=MOST_SCENES)]
    notes: Sentences


PARTS: Final[dict[str, Any]] = {
    "probe": ProbePart, "timing": TimingPart, "scenes": ScenesPart, "match": MatchPart,
}  # fmt: skip
"""Parts of a field test by name, in the order in which they are played, with the form of their results."""

RECORDED: Final = ("probe", "scenes", "match")
"""Parts with a recording."""
