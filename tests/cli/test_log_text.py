"""Lines of the log cannot control a terminal."""

import logging
from pathlib import Path

import pytest

from rlgym_bridge.cli import main


def test_a_name_in_the_log_controls_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    file = tmp_path / "a\x1b[2J\u202eb.toml"
    file.write_text("[match]\nskip_replay = true\n")
    assert main(["match", str(file)]) == 2
    said = capsys.readouterr().err
    assert "skip_replay is unknown" in said and "a\\x1b[2J\\u202eb.toml" in said
    assert "\x1b" not in said and "\u202e" not in said
