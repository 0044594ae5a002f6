"""Find the process at the other end of a connection, and whether this program has started it."""

import ipaddress
import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import psutil

MARK_VARIABLE: Final = "RLGYM_BRIDGE_MATCH"
"""Environment variable by which bots, and what they start, are known where their parents have ended."""

MARK: Final = secrets.token_hex(16)
"""Its value begins with this, another one for each server process; a number for each bot process follows."""

Ends = tuple[tuple[str, int], tuple[str, int]]
"""Address and port of the client's end of a connection, then of the server's."""


class Standing(Enum):
    """The relation of a client's process to this one."""

    OWN = "this process, or one that it has started"
    SAME_USER = "another process of this user"
    OTHER_MACHINE = "a process on another machine"
    STRANGER = "a process of another user, or one that cannot be seen"
    UNKNOWN = "the system does not tell whose connections are whose"


@dataclass(frozen=True)
class Caller:
    """The process at the other end of a connection.

    Attributes:
        standing: Its relation to this process.
        process: Its number and name, for messages; empty where they are not known.
        lineage: Its number, and those of the processes that it comes from; empty where they are not known.
        mark: The value of `MARK_VARIABLE` that it has, if any.
    """

    standing: Standing
    process: str = ""
    lineage: tuple[int, ...] = ()
    mark: str = ""


def ends_of(connection: Any) -> Ends:
    """Return the ends of a server's connection; an OSError says that it has been closed."""
    peer, own = connection.getpeername(), connection.getsockname()
    return (_plain(peer[0]), peer[1]), (_plain(own[0]), own[1])


def find_own(wanted: Collection[Ends]) -> dict[Ends, Caller]:
    """Look for other ends of connections here and in all processes that this one has started."""
    found: dict[Ends, Caller] = {}
    if not wanted:
        return found
    with suppress(psutil.Error, OSError):
        here = psutil.Process()
        for process in (here, *here.children(recursive=True)):
            with suppress(psutil.Error, OSError):
                held = {_ends_of(one) for one in process.net_connections("tcp")}
                own = [ends for ends in wanted if ends in held]
                if own:
                    found |= dict.fromkeys(own, _described(process, Standing.OWN))
            if len(found) == len(wanted):
                break
    return found


def find_caller(ends: Ends) -> Caller:
    """Look for a connection's other end among all processes: tens of milliseconds."""
    try:
        pid, is_here = _pid_of(ends)
    except (psutil.Error, OSError, NotImplementedError):
        return Caller(Standing.UNKNOWN)
    if pid is None:
        remote = not is_here and not ipaddress.ip_address(ends[0][0]).is_loopback
        return Caller(Standing.OTHER_MACHINE if remote else Standing.STRANGER)
    try:
        process = psutil.Process(pid)
        return _described(process, _standing_of(process))
    except (psutil.Error, OSError):
        return Caller(Standing.STRANGER, f"process {pid}")


def _standing_of(process: psutil.Process) -> Standing:
    own = os.getpid()
    if process.pid == own or any(parent.pid == own for parent in process.parents()):
        return Standing.OWN
    with suppress(psutil.Error, OSError):  # the parents of a bot may have ended
        if process.environ().get(MARK_VARIABLE, "").startswith(MARK):
            return Standing.OWN
    same = process.username() == psutil.Process().username()
    return Standing.SAME_USER if same else Standing.STRANGER


def _pid_of(ends: Ends) -> tuple[int | None, bool]:
    """Return the number of the process that has a connection's client end, and whether that end is here."""
    is_here = False
    for pid, connection in _all_connections():
        if _ends_of(connection) == ends:
            is_here = True
            if pid is not None:
                return pid, True
    return None, is_here


def _all_connections() -> Iterator[tuple[int | None, Any]]:
    try:
        every = psutil.net_connections("tcp")
    except psutil.AccessDenied:  # macOS: only each process by itself
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                for connection in process.net_connections("tcp"):
                    yield process.pid, connection
        return
    for connection in every:
        yield connection.pid, connection


def _ends_of(connection: Any) -> Ends | None:
    if not connection.laddr or not connection.raddr:
        return None
    near, far = connection.laddr, connection.raddr
    return (_plain(near[0]), near[1]), (_plain(far[0]), far[1])


def _plain(address: str) -> str:
    """Return an address without a scope; one of IPv4 that is written as IPv6 as what it is."""
    plain = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(plain, "ipv4_mapped", None)
    return str(mapped or plain)


def _described(process: psutil.Process, standing: Standing) -> Caller:
    """Return a process with all that is known of it."""
    name, lineage, mark = f"process {process.pid}", [process.pid], ""
    with suppress(psutil.Error, OSError):
        name = f"{name}, {process.name()}"
        lineage += [parent.pid for parent in process.parents()]
        mark = process.environ().get(MARK_VARIABLE, "")
    return Caller(standing, name, tuple(lineage), mark)
