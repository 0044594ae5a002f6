"""Decide which clients of a match may drive its cars and give orders: those that it has started.

A thread looks for the process of a client that asks; nothing of this runs in a tick in which nobody does.
"""

import ipaddress
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final
from weakref import WeakKeyDictionary

import psutil

from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.game.roster import AgentSeat
from rlgym_bridge.server.net.connected_client import Client
from rlgym_bridge.server.net.launch import MARK, MARK_VARIABLE, BotProcess
from rlgym_bridge.server.net.wire import plain_address
from rlgym_bridge.user_input.arguments import shorten_text

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
    """The process at the other end of a connection; what is not known of it is empty."""

    standing: Standing
    process: str = ""  # its number and name, for messages
    lineage: tuple[int, ...] = ()  # its number, and those of the processes that it comes from
    mark: str = ""  # the value of `MARK_VARIABLE` that it has


def ends_of(connection: Any) -> Ends:
    """Return the ends of a server's connection; an OSError says that it has been closed."""
    peer, own = connection.getpeername(), connection.getsockname()
    return (str(plain_address(peer[0])), peer[1]), (str(plain_address(own[0])), own[1])


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
    return (str(plain_address(near[0])), near[1]), (str(plain_address(far[0])), far[1])


def _described(process: psutil.Process, standing: Standing) -> Caller:
    name, lineage, mark = f"process {process.pid}", [process.pid], ""
    with suppress(psutil.Error, OSError):
        name = f"{name}, {process.name()}"
        lineage += [parent.pid for parent in process.parents()]
        mark = process.environ().get(MARK_VARIABLE, "")
    return Caller(standing, name, tuple(lineage), mark)


_log = client_log(__name__)

_REST_SECONDS: Final = 0.1  # between two searches among all processes, which take the game's thread's time
_NEAR_REST_SECONDS: Final = 0.02  # between two searches for those who find no room
_MOST_REQUESTS: Final = 8  # of a client, while it is not known who it is
_BY_HAND: Final = frozenset({Standing.OWN, Standing.SAME_USER, Standing.OTHER_MACHINE, Standing.UNKNOWN})
_STARTED: Final = frozenset({Standing.OWN, Standing.UNKNOWN})
_LET_IN: Final = "to let it in, add --allow-clients (allow_clients=True)"

Watch = Callable[[socket.socket, Callable[[], None]], None]
"""Has a function called in the game's thread when a socket can be read."""


class Admission:
    """The clients that may do more than watch a match.

    A seat whose bot the match starts is for the process that was started for it, or for this one. A seat
    whose bot is started by hand is for processes of this user, and of other machines where they can connect;
    a bot that the match starts gets no other seats than its own. RLBot's core asks for the agent id alone.
    Orders are taken from what this process has started. Where the system tells nothing of connections, all
    are let in.
    """

    def __init__(self, watch: Watch) -> None:
        self.is_guarded = False  # somebody is kept out; otherwise nothing is looked for
        self.starts_bots = True  # the match starts the bots that have a command
        self.processes: Sequence[BotProcess] = ()  # that the match has started
        self._watch = watch
        self._callers: WeakKeyDictionary[Client, Caller] = WeakKeyDictionary()
        self._waiting: WeakKeyDictionary[Client, list[Callable[[], None]]] = WeakKeyDictionary()
        self._newcomers: deque[tuple[Client, Ends]] = deque()  # for whom there is no place
        self._found: deque[tuple[Client, Caller]] = deque()
        self._near: ThreadPoolExecutor | None = None  # looks among the processes of this one
        self._far: ThreadPoolExecutor | None = None  # looks among all
        self._wake: tuple[socket.socket, socket.socket] | None = None

    def knows(self, client: Client, then: Callable[[], None]) -> bool:
        """Tell whether it is known who a client is; if not, find out, and call `then` in this thread."""
        if not self.is_guarded or client in self._callers:
            return True
        if client in self._waiting:
            if len(self._waiting[client]) < _MOST_REQUESTS:
                self._waiting[client].append(then)
        else:
            self.find_out(client, then, far=True)
        return False

    def find_out(self, client: Client, then: Callable[[], None], far: bool) -> bool:
        """Find out who a client is, and call `then` in the game's thread; return False where it has gone.

        Unless `far`, find out only whether it is of a process that this one has started: see `has_started`.
        """
        try:
            ends = ends_of(client.link.socket)
        except (OSError, ValueError):
            return False  # it has gone
        self._waiting[client] = [then]
        near = self._begin()
        if far:
            near.submit(self._look, client, ends)
        else:
            self._newcomers.append((client, ends))
            near.submit(self._look_near)
        return True

    def has_started(self, client: Client) -> bool:
        """Tell whether a client is known to be of a process that this one has started."""
        caller = self._callers.get(client)
        return caller is not None and caller.standing is Standing.OWN

    def may_drive(self, client: Client, seat: AgentSeat) -> bool:
        """Tell whether a client that is known may have a seat; the log says why not, once."""
        by_hand = not (seat.run_command and self.starts_bots)
        allowed = self._is_one_of(client, _BY_HAND if by_hand else _STARTED)
        if allowed and self.is_guarded:
            allowed = self._is_seat_of(client, seat)
        if not allowed:
            expected = "a process of this user" if by_hand else "the bot that the match starts"
            self._refuse(client, f"asks for {seat.label}: refused, expected {expected}")
        return allowed

    def _is_seat_of(self, client: Client, seat: AgentSeat) -> bool:
        """Tell whether a bot process may have a seat; each gets as many as it was started for."""
        process, caller = self._process_of(client), self._callers[client]
        if process is None:  # one that lost its parents and its mark may be of any bot
            is_launched = any(seat in one.seats for one in self.processes)
            return not is_launched or caller.standing is Standing.UNKNOWN or os.getpid() in caller.lineage[:1]
        held = sum(len(one.seats) for one in self._callers if self._process_of(one) is process)
        return held < len(process.seats) and seat.agent_id in {one.agent_id for one in process.seats}

    def _process_of(self, client: Client) -> BotProcess | None:
        caller = self._callers.get(client)
        if caller is None:
            return None
        for one in self.processes:
            if one.popen.pid in caller.lineage or (one.mark and one.mark == caller.mark):
                return one
        return None

    def note_agent_id(self, client: Client) -> None:
        """Note where a bot process connects under another agent id than those it was started for."""
        process, agent_id = self._process_of(client), shorten_text(client.agent_id or "")
        if process is None or client.agent_id in {seat.agent_id for seat in process.seats}:
            return
        if agent_id not in process.foreign_ids and len(process.foreign_ids) < _MOST_REQUESTS:
            process.foreign_ids.append(agent_id)

    def takes_order(self, client: Client, what: str, then: Callable[[], None]) -> bool:
        """Tell whether an order counts; `then` gives it anew once it is known who the client is."""
        if not self.knows(client, then):
            return False
        allowed = self._is_one_of(client, _STARTED)
        if not allowed:
            self._refuse(client, f"{what}: ignored, expected that of a process that the match started")
        return allowed

    def close(self) -> None:
        """End the threads; searches that go on find nobody who waits."""
        self._waiting.clear()
        for threads in (self._near, self._far):
            if threads is not None:
                threads.shutdown(wait=False, cancel_futures=True)
        for one in self._wake or ():
            one.close()

    def _is_one_of(self, client: Client, standings: frozenset[Standing]) -> bool:
        caller = self._callers.get(client)
        return not self.is_guarded or (caller is not None and caller.standing in standings)

    def _refuse(self, client: Client, why: str) -> None:
        caller = self._callers.get(client)
        process = "" if caller is None else caller.process
        who = f" ({shorten_text(process)})" if process else ""
        client.warn_once(f"%s%s {why.replace('%', '%%')}; {_LET_IN}", who)

    def _begin(self) -> ThreadPoolExecutor:
        if self._near is None:
            self._near = ThreadPoolExecutor(1, "callers")
            self._far = ThreadPoolExecutor(1, "all-callers")
            self._wake = socket.socketpair()
            for one in self._wake:
                one.setblocking(False)
            self._watch(self._wake[0], self._hear)
        return self._near

    def _look(self, client: Client, ends: Ends) -> None:
        gone = client.link.broken  # who connects and leaves without end holds up nobody
        caller = Caller(Standing.STRANGER) if gone else find_own({ends}).get(ends)
        if caller is not None:
            self._tell(client, caller)
        elif self._far is not None:
            with suppress(RuntimeError):  # the server is closing
                self._far.submit(self._look_far, client, ends)

    def _look_near(self) -> None:
        """Look for all newcomers in one search, so that a flood of them is turned away quickly."""
        newcomers = [self._newcomers.popleft() for _ in range(len(self._newcomers))]
        if not newcomers:
            return  # an earlier search was for them, too
        found = find_own({ends for client, ends in newcomers if not client.link.broken})
        for client, ends in newcomers:
            self._tell(client, found.get(ends) or Caller(Standing.STRANGER))
        if len(found) < len(newcomers):
            time.sleep(_NEAR_REST_SECONDS)

    def _look_far(self, client: Client, ends: Ends) -> None:
        if client.link.broken:
            self._tell(client, Caller(Standing.STRANGER))
            return
        self._tell(client, find_caller(ends))
        time.sleep(_REST_SECONDS)

    def _tell(self, client: Client, caller: Caller) -> None:
        self._found.append((client, caller))
        with suppress(OSError, TypeError):  # full: it wakes all the same; or the server has closed
            self._wake[1].send(b"\0")  # type: ignore[index]

    def _hear(self) -> None:
        """Take in what the threads have found, in the game's thread."""
        with suppress(OSError, TypeError):
            self._wake[0].recv(4096)  # type: ignore[index]
        while self._found:
            client, caller = self._found.popleft()
            self._callers[client] = caller
            if caller.standing is Standing.UNKNOWN:
                client.warn_once("%s is let in: this system does not tell whose connections are whose")
            for then in self._waiting.pop(client, ()):
                then()
