"""Errors below a user's code are told with the user's own line."""

import traceback
from pathlib import Path

from rlgym_bridge.components.user_errors import describe_error, is_ours
from rlgym_bridge.policy.folder import load_policy


def test_an_error_in_a_library_names_the_users_line(tmp_path: Path) -> None:
    try:
        (tmp_path / "weights.json").read_text()
    except OSError as error:
        text = describe_error(error)
    assert text.startswith("FileNotFoundError: [Errno 2] No such file or directory")
    assert f"({__file__}, line " in text


def test_an_error_of_ours_in_another_process_has_no_type() -> None:
    class _RemoteTraceback(Exception):
        """The part of another process's traceback that `concurrent.futures` keeps."""

    try:
        load_policy("nowhere")
    except FileNotFoundError as error:
        text, arrived = traceback.format_exc(), type(error)(*error.args)
    arrived.__cause__ = _RemoteTraceback(text)
    assert is_ours(arrived)
    assert describe_error(arrived).startswith("nowhere is no folder; expected a policy folder")
    arrived.__cause__ = _RemoteTraceback('  File "/home/me/my_bot.py", line 3, in build\n')
    assert not is_ours(arrived)
