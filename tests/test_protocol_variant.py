"""The open points of the protocol: names, values, and the file that settles them."""

from pathlib import Path

import pytest

from rlgym_bridge.protocol_variant import POINTS, ProtocolVariant, VariantFile


def test_a_complete_dialect_has_first_values_where_not_given() -> None:
    dialect = ProtocolVariant.parse(["pad_timer=remaining"])
    complete = dialect.complete()
    assert set(complete) == set(POINTS)
    assert complete["pad_timer"] == "remaining" and complete["clock"] == "fraction"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pad_timer"], "is not of the form NAME=VALUE"),
        (["pads=elapsed"], "no point 'pads'; there are pad_timer"),
        (["pad_timer=up"], "pad_timer is 'up', expected one of elapsed, remaining"),
        (["clock=whole", "clock=fraction"], "clock is given twice"),
    ],
)
def test_unknown_points_are_refused_with_those_there_are(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProtocolVariant.parse(words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[dialect", "cannot be read as TOML"),
        ("", r"has no table \[dialect\]"),
        ("pad_timer = 'elapsed'\n[dialect]", r"pad_timer stands outside the table \[dialect\]"),
        ("[dialect]\npad_timers = 'elapsed'", "no point 'pad_timers'; .* The nearest is pad_timer$"),
        ("[dialects]\n", "'dialects' is unknown, expected dialect"),
        ("timing = 5\n[dialect]", r"timing is 5, expected a table \[timing\]"),
        ("[dialect]\n[[timing]]\ninput_latency = 1", r"expected a table \[timing\]"),
        (
            "[dialect]\n[timing]\ninput_latncy = 1",
            r"'input_latncy' in \[timing\] is unknown, expected input_latency",
        ),
        (
            "[dialect]\n[timing]\ninput_latency = 1201",
            r"is 1201, expected ticks, a whole number from 0 to 1200 \(10 s\)",
        ),
        (f"[dialect]\n[timing]\ninput_latency = {'9' * 5000}", "cannot be read as TOML: .* limit"),
        (
            f"[dialect]\n[timing]\ninput_latency = 0x{'f' * 15}",
            "expected ticks, a whole number from 0 to 1200",
        ),
        ("[dialect]\n[timing]\npackets_per_second = 'x'", "packets_per_second is 'x', expected a number"),
        ("[dialect]\n[timing]\npackets_per_second = nan", "packets_per_second is nan, expected a number"),
        ("server = 'game'\n[dialect]", "server is 'game', expected 'rlgym-bridge' or 'other'"),
        ("server = 3\n[dialect]", "server is 3, expected 'rlgym-bridge' or 'other'"),
        ("a = " + "[" * 5000, "nested more than 100 levels deep"),
        ("[dialect]\npad_timer = 3", "pad_timer is 3, expected one of"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "dialect.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        VariantFile.read(path)
    assert str(path) in str(error.value)
    path.write_text("[dialect]\nclock = 'whole'\n")
    assert VariantFile.read(path).dialect == {"clock": "whole"}


def test_a_byte_order_mark_is_read_and_utf_16_named(tmp_path: Path) -> None:
    path = tmp_path / "dialect.toml"
    path.write_text("[dialect]\nclock = 'whole'\n[timing]\ninput_latency = 2\n", encoding="utf-8-sig")
    assert VariantFile.read(path).dialect == {"clock": "whole"} and VariantFile.read(path).input_latency == 2
    path.write_text("[dialect]\nclock = 'whole'\n", encoding="utf-16")
    with pytest.raises(ValueError, match=r"dialect\.toml cannot be read: it is no UTF-8 text"):
        VariantFile.read(path)


def test_a_file_may_say_how_late_inputs_act(tmp_path: Path) -> None:
    path = tmp_path / "dialect.toml"
    path.write_text("[dialect]\n[timing]\ninput_latency = 2\n")
    assert VariantFile.read(path).input_latency == 2
    path.write_text("[dialect]\n")
    assert VariantFile.read(path) == VariantFile(path, ProtocolVariant())
    path.write_text("[dialect]\n[timing]\ninput_latency = 1.5\n")
    with pytest.raises(ValueError, match=r"input_latency is 1\.5, expected ticks, a whole number"):
        VariantFile.read(path)


@pytest.mark.parametrize(
    ("line", "own", "others"),
    [("server = 'rlgym-bridge'", True, False), ("server = 'other'", False, True), ("", True, True)],
)
def test_a_file_is_for_the_servers_that_it_was_measured_on(
    line: str, own: bool, others: bool, tmp_path: Path
) -> None:
    path = tmp_path / "dialect.toml"
    path.write_text(f"{line}\n[dialect]\nclock = 'whole'\n")
    file = VariantFile.read(path)
    assert (file.fits(own_server=True), file.fits(own_server=False)) == (own, others)
