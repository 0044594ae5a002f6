"""Serves matches in a process of its own."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.processes import child


@contextmanager
def match_server(*words: str, **options: Any) -> Iterator[int]:
    """Run `rlgym-bridge server` in lockstep on a free port of this machine; yield it when it listens."""
    command = [sys.executable, "-m", "rlgym_bridge.cli", "server", "0", "--pace", "lockstep", *words]
    with child(command, stdout=subprocess.PIPE, text=True, **options) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        listening = re.match(r"listening on 127\.0\.0\.1:(\d+) ", said)
        if listening is None:
            raise RuntimeError(f"the match server said {said!r}, expected where it listens")
        yield int(listening[1])
