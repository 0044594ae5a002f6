"""Errors below a user's code are told with the user's own line."""

import re
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from rlgym_bridge import RelativeObs
from rlgym_bridge.components.user_errors import describe_error, explain_error, is_ours, locate_method
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


def test_an_explained_error_lists_the_users_calls_and_no_others() -> None:
    def inner() -> None:
        np.zeros(3).reshape(2, 2)

    try:
        inner()
    except ValueError as error:
        lines = explain_error(error).splitlines()
    assert len(lines) == 3 and lines[0].startswith("ValueError: cannot reshape array")
    assert all(line.startswith(f"  {__file__}, line ") for line in lines[1:])


def test_an_error_that_no_user_made_comes_with_its_traceback() -> None:
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(np.zeros, -1).exception()
    assert error is not None
    assert "\nTraceback " in explain_error(error) and "thread.py" in explain_error(error)


def test_a_method_of_a_users_class_alone_is_located() -> None:
    class Mine(RelativeObs):
        def names(self, blue: int, orange: int, car: int = 0) -> tuple[str, ...]:
            return ()

    assert re.fullmatch(rf" \({re.escape(__file__)}, line \d+\)", locate_method(Mine(), "names"))
    assert locate_method(Mine(), "build_batch") == locate_method(Mine(), "nothing") == ""
