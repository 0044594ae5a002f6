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
from ray.job_config import JobConfig

from rlgym_bridge.training.processes import count_usable_cores
from rlgym_bridge.training.settings import SettingsError

_OBJECTS: Final = 512 << 20
"""Bytes of shared memory for the objects of a cluster of our own: a batch has a few MB."""

_REACH_SECONDS: Final = 5.0


@contextmanager
def cluster(address: str | None = None, processors: int = 0, silent: bool = False) -> Iterator[int]:
    """Be connected to a cluster.

    Args:
        address: Of one that is there, `"auto"` for that of this machine; None begins one that listens on
            loopback alone. Where this process is connected already, it stays connected to that.
        processors: That one of our own has at least, whatever the machine has.
        silent: Leave out what its processes say.

    Yields:
        Processors of the cluster.

    Raises:
        SettingsError: There is no cluster at the address.
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
        if address.rpartition(":")[2].isdecimal():  # Ray itself tries for minutes
            host, _, port = address.rpartition(":")
            socket.create_connection((host.removeprefix("ray://"), int(port)), _REACH_SECONDS).close()
        ray.init(address=address, **how)
    except (OSError, ValueError, RuntimeError) as error:
        raise SettingsError(
            f'no Ray cluster can be joined at "{address}": {str(error).partition(". ")[0]}. '
            "`ray start --head` begins one, and says its address"
        ) from error
