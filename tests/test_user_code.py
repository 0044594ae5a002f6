"""Errors below a user's code are told with the user's own line."""

from pathlib import Path

from rlgym_bridge.components.user_errors import describe_error


def test_an_error_in_a_library_names_the_users_line(tmp_path: Path) -> None:
    try:
        (tmp_path / "weights.json").read_text()
    except OSError as error:
        text = describe_error(error)
    assert text.startswith("FileNotFoundError: [Errno 2] No such file or directory")
    assert f"({__file__}, line " in text
