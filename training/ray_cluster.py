"""A Ray cluster: one that is there, or one of this machine alone that ends with what needed it."""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray asks before it is imported whether to report

import ray
from ray._private.services import canonicalize_bootstrap_address
from ray.exceptions import AuthenticationError
from ray.job_config import JobConfig

from rlgym_bridge.training.processes import count_usable_cores
from rlgym_bridge.training.settings import SettingsError

_OBJECTS: Final = 512 << 20
"""Bytes of shared memory for the objects of a cluster of our own: a batch has a few MB."""

_REACH_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 20.0

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The first bytes of an HTTP/2 client, which Ray's are; the server's first frame is of type 4, too."""


@contextmanager
def cluster(address: str | None = None, processors: int = 0, silent: bool = False) -> Iterator[int]:
    """Be connected to a cluster, and yield how many processors it has.

    `address` is that of one that is there, `"auto"` for this machine's; None begins one, of so many
    `processors` at least, that listens on loopback alone. A process that is connected already stays so.
    `silent` leaves out what its processes say. Raises SettingsError where there is no cluster.
    """
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells of its progress
    own = not ray.is_initialized()
    if own:
        here = threading.current_thread() is threading.main_thread()
        handler = signal.getsignal(signal.SIGTERM)
        _begin(address, processors, silent)
        if here:  # Ray puts its own in place, which ends the process without a checkpoint
            signal.signal(signal.SIGTERM, handler)
    try:
        if (data := sys.modules.get("ray.data")) is not None:  # RLlib brings it
            data.DataContext.get_current().enable_progress_bars = False
        yield int(ray.cluster_resources().get("CPU", 1))
    finally:
        if own:
            ray.shutdown()


def _begin(address: str | None, processors: int, silent: bool) -> None:
    # Other machines look for a user's components where this process finds them.
    places = [str(Path(place).absolute()) for place in sys.path if Path(place).is_dir()]
    how: dict[str, Any] = {"job_config": JobConfig(code_search_path=places), "logging_level": "ERROR"}
    how["log_to_driver"] = not silent
    if address is None:
        ray.init(
            "local",  # whatever cluster this machine may be part of
            num_cpus=max(count_usable_cores(), processors),
            include_dashboard=False,
            object_store_memory=_OBJECTS,
            _node_ip_address="127.0.0.1",
            **how,
        )
        return
    try:
        named = canonicalize_bootstrap_address(address) if address == "auto" else address
        if named is not None:
            _check_head(named)  # Ray itself tries for minutes
        ray.init(address=address, **how)
    except (OSError, ValueError, RuntimeError, AuthenticationError) as error:
        if isinstance(error, AuthenticationError) or "InvalidAuthToken" in str(error.__cause__):
            raise SettingsError(
                f'the Ray cluster at "{address}" expects a token: set RAY_AUTH_MODE=token, and copy '
                "~/.ray/auth_token from its first machine"
            ) from error
        raise SettingsError(
            f'no Ray cluster can be joined at "{address}": {str(error).partition(". ")[0]}. Expected '
            "host:port, or auto; `ray start --head` begins one, and says its address"
        ) from error


def _check_head(address: str) -> None:
    """Raise OSError or ValueError unless something that could be a Ray head listens at an address."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError("it has no host, or no port from 1 to 65535")
    with socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS) as tried:
        if os.environ.get("RAY_USE_TLS", "0") in ("1", "true"):
            return
        tried.settimeout(_ANSWER_SECONDS)
        tried.sendall(_PREFACE)
        first = b""
        while len(first) < 4 and (more := tried.recv(4 - len(first))):
            first += more
    if first[3:] != _PREFACE[-6:-5]:
        raise ValueError("what listens there is no Ray head")
