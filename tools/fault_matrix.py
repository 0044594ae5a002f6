"""Every fault on the way to every client: `python -m tools.fault_matrix [FAULT...] [--json FILE]`.

A match in lockstep goes on tick by tick. A fault begins in play; answers from then on are judged.
"""

import argparse
import json
import logging
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pytest
from rlbot import flat

from rlgym_bridge.game import TICK_SECONDS
from rlgym_bridge.live.agent_connections import start_match
from rlgym_bridge.server import MatchServer
from tests.support.raw_client import RawClient
from tests.support.short_waits import shorten_answer_wait, shorten_countdown, shorten_farewell
from tools.fault_subjects import (
    OTHER,
    AgentSubject,
    EngineSubject,
    FullDisk,
    HivemindProcess,
    HivemindSubject,
    ProcessSubject,
    RecorderProcess,
    RecorderSubject,
    Subject,
    match_for,
)
from tools.faulty_proxy import FaultyProxy, Hangs, OtherCar, is_playing
from tools.stream_faults import FAULTS, Cut, StreamFault

RECOVERY: Final = 120
"""Ticks after a fault in which a client has to play again."""

_STEADY: Final = 16  # ticks in a row with control that count as playing
_BEFORE: Final = 600  # ticks at most until play
_AFTER: Final = 400  # ticks at most that a recovery is waited for

SUBJECTS: Final = ("agent", "hivemind", "LiveEngine", "server", "recorder")
_IN_THREAD: Final[dict[str, type[Subject]]] = {
    "agent": AgentSubject, "hivemind": HivemindSubject, "LiveEngine": EngineSubject,
    "recorder": RecorderSubject,
}  # fmt: skip
_IN_PROCESS: Final[dict[str, type[Subject]]] = {
    "agent": ProcessSubject, "hivemind": HivemindProcess, "LiveEngine": EngineSubject,
    "recorder": RecorderProcess,
}  # fmt: skip

ENDS: Final = {
    ("LiveEngine", "cut in a message"): "EOFError",
    ("LiveEngine", "players shrink"): "LiveEngineError",
    ("LiveEngine", "players grow"): "ValueError",
}
"""Cells in which a learner is told with an error, since an episode cannot go on."""


@dataclass
class Cell:
    """Effect of one fault on one subject.

    Attributes:
        fault: Name of the fault.
        subject: Name of the subject.
        expected: What has to happen.
        seen: What happened; for a cell that makes no sense, why.
        passed: Whether that is what was expected; None for a cell that makes no sense.
        without: Ticks without control, from the fault's first tick on.
        no_chance: Those of them that the fault itself kept from the client.
        recovery: Ticks from the fault's end to control that lasts; None where it does not come.
    """

    fault: str
    subject: str
    expected: str
    seen: str = ""
    passed: bool | None = None
    without: int = 0
    no_chance: int = 0
    recovery: int | None = None


def why_empty(fault: StreamFault, subject: str) -> str:
    """Return why a cell makes no sense; "" where it does."""
    if subject == "server" and fault.of_packets:
        return "the server makes the packets"
    if fault.name == "policy file replaced" and subject in ("LiveEngine", "server"):
        return "it reads no policy"
    if fault.name == "disk full" and subject != "recorder":
        return "it writes nothing to a disk but by the recorder"
    return ""


@contextmanager
def _serving(pauses: list[float]) -> Iterator[MatchServer]:
    """Serve matches in lockstep in a thread, which sleeps before a packet for what is put into `pauses`."""

    def sleep(_: bytes) -> None:
        if pauses:
            time.sleep(pauses.pop())

    with MatchServer(pace="lockstep", seed=3, on_packet=sleep) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.stop()
            thread.join(10.0)


def run_cell(fault: StreamFault, name: str) -> Cell:
    """Run one cell of the matrix."""
    error = ENDS.get((name, fault.name), "")
    cell = Cell(fault.name, name, f"{error} at once" if error else f"control within {RECOVERY} ticks")
    if reason := why_empty(fault, name):
        cell.seen = reason
        return cell
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        shorten_countdown(patch)
        shorten_farewell(patch)
        shorten_answer_wait(patch)
        for variable in ("RLBOT_AGENT_ID", "RLBOT_SERVER_IP", "RLBOT_SERVER_PORT"):
            patch.delenv(variable, raising=False)
        pauses: list[float] = []
        with _serving(pauses) as server:
            try:
                if name == "server":
                    _run_server(cell, fault, server, pauses)
                else:
                    _run_client(cell, fault, server, _subject_of(fault, name)(Path(folder)))
            except Hangs as hangs:
                cell.passed, cell.seen = False, f"hangs: {hangs}"
    return cell


def _subject_of(fault: StreamFault, name: str) -> type[Subject]:
    if fault.name == "disk full":
        return FullDisk
    return (_IN_PROCESS if fault.name == "paused 3 s" else _IN_THREAD)[name]


def _run_client(cell: Cell, fault: StreamFault, server: MatchServer, subject: Subject) -> None:
    """Play behind a proxy, with the fault, and judge."""
    proxy = FaultyProxy(server.port)
    wrong, answers = "", []
    try:
        if not subject.starts_match:
            start_match(("127.0.0.1", server.port), match_for(subject.cars), 20.0)
        subject.start(proxy.port)
        if subject.starts_match:
            proxy.connect()  # it starts the match and leaves
        other = OtherCar(server.port, OTHER)
        proxy.connect()
        answers = _play(fault, proxy, other, subject)
    finally:
        server.stop()
        _see_off(proxy, subject)
        try:
            wrong = subject.stop(proxy.delivered)
        except Exception as error:
            wrong = f"what it leaves behind: {type(error).__name__}: {error}"
        proxy.close()
    if (subject.error.split(":")[0] in ENDS.values() or subject.error) and cell.expected.endswith("at once"):
        cell.seen, cell.passed = subject.error[:70], subject.error.startswith(cell.expected.split()[0])
        return
    _judge(cell, fault, answers, wrong)


def _see_off(proxy: FaultyProxy, subject: Subject) -> None:
    """Let the client read the server's goodbye, and close."""
    deadline = time.monotonic() + 10.0
    while proxy.is_connected and not subject.ended and time.monotonic() < deadline:
        proxy.pass_on()


def _play(
    fault: StreamFault, proxy: FaultyProxy, other: OtherCar, subject: Subject
) -> list[tuple[str, bool]]:
    """Return the answers to each tick, from the fault's first on."""
    ids: set[int] = set()
    answers: list[tuple[str, bool]] = []
    steady, tick = 0, -1  # tick of the fault
    for _ in range(_BEFORE + fault.ticks + _AFTER):
        packet = other.packet()
        ids = ids or {one.player_id for one in packet.players if one.team == 0}
        if tick < 0 and steady >= _STEADY:
            tick = 0
        during = 0 <= tick < fault.ticks
        if during and tick == 0:
            _begin(fault, subject)
        if tick == fault.ticks and fault.name == "paused 3 s":
            subject.go_on()
        may_wait = not (during and fault.name == "paused 3 s")
        if not may_wait:
            time.sleep(TICK_SECONDS)
        answer = proxy.tick(packet, ids, fault if during else None, tick, subject, may_wait)
        if not may_wait:
            answer = answer[0], True
        other.answer()
        if not is_playing(packet):
            continue
        steady = steady + 1 if answer[0] == "control" else 0
        if tick >= 0:
            answers.append(answer)
            tick += 1
        if subject.ended or (tick > fault.ticks + _STEADY and steady >= _STEADY):
            break
    return answers


def _begin(fault: StreamFault, subject: Subject) -> None:
    """Do to a process or its files what the fault says."""
    if fault.name == "paused 3 s":
        subject.pause()
    if fault.name == "policy file replaced" and isinstance(subject, AgentSubject):
        subject.replace_policy()


def _judge(cell: Cell, fault: StreamFault, answers: Sequence[tuple[str, bool]], wrong: str) -> None:
    """Fill in what was seen."""
    kinds = [answer for answer, _ in answers]
    cell.without = sum(kind != "control" for kind in kinds)
    cell.no_chance = sum(kind != "control" and missed for kind, missed in answers)
    after = kinds[fault.ticks :]
    lost = [tick for tick, kind in enumerate(after) if kind != "control"]
    steady = len(after) - (lost[-1] + 1 if lost else 0)
    cell.recovery = (lost[-1] + 1 if lost else 0) if steady >= _STEADY else None
    if "wrong" in kinds:
        wrong = wrong or "an input for another car, or out of range"
    if cell.recovery is None:
        wrong = wrong or "no control any more"
    cell.passed = not wrong and cell.recovery is not None and cell.recovery <= RECOVERY
    cell.seen = wrong or f"control {cell.recovery} ticks after it"


# --- the server: the fault is on the way of a client's inputs ------------------------------------------


def _driver(port: int) -> RawClient:
    """Connect a client that drives our car."""
    client = RawClient(port)
    client.send(flat.ConnectionSettings("matrix/ours", close_between_matches=True))
    while not isinstance(client.receive(), flat.FieldInfo):
        pass
    client.send(flat.InitComplete(), flat.PingRequest(cookie=1))
    while not isinstance(client.receive(), flat.PingResponse):
        pass
    client.socket.setblocking(False)
    return client


def _run_server(cell: Cell, fault: StreamFault, server: MatchServer, pauses: list[float]) -> None:
    """Send inputs with the fault on their way; what the next packet shows as our last input is judged."""
    start_match(("127.0.0.1", server.port), match_for(1), 20.0)
    other = OtherCar(server.port, OTHER)
    driver: RawClient | None = _driver(server.port)
    framed = _framed(flat.PlayerInput(0, flat.ControllerState(throttle=1.0, steer=1.0)))
    answers: list[tuple[str, bool]] = []
    held: list[bytes] = []
    steady, tick = 0, -1
    for _ in range(_BEFORE + fault.ticks + _AFTER):
        packet = other.packet()
        if is_playing(packet):
            drives = packet.players[0].last_input.throttle == 1.0
            steady = steady + 1 if drives else 0
            if tick > 0:
                answers.append(("control" if drives else "none", tick <= fault.ticks))
            if tick > fault.ticks + _STEADY and steady >= _STEADY:
                break
            tick = 0 if tick < 0 and steady >= _STEADY else tick
        driver = driver or _driver(server.port)
        _read_all(driver)
        writes = [framed]
        if 0 <= tick < fault.ticks:
            if fault.name == "paused 3 s":
                pauses += [3.0] if tick == 0 else []
            elif fault.spoil is not None:
                try:
                    writes = fault.spoil(tick, held, framed)
                except Cut as cut:
                    driver.socket.sendall(cut.args[0])
                    driver.socket.close()
                    driver, writes = None, []
        for data in writes:
            driver.socket.sendall(data)  # type: ignore[union-attr]
        tick += tick >= 0
        other.answer()
    _judge(cell, fault, answers, "")


def _framed(message: object) -> bytes:
    payload = flat.InterfacePacket(message).pack()  # type: ignore[arg-type]
    return len(payload).to_bytes(2, "big") + payload


def _read_all(client: RawClient) -> None:
    try:
        while client.socket.recv(1 << 18):
            pass
    except BlockingIOError:
        pass


def as_table(cells: Sequence[Cell]) -> str:
    """Return the matrix as Markdown: `ticks without control (of these kept away by the fault) / recovery`."""
    lines = [f"| fault | {' | '.join(SUBJECTS)} |", "|---" * (len(SUBJECTS) + 1) + "|"]
    for fault in dict.fromkeys(cell.fault for cell in cells):
        row = [_text(cell) for cell in cells if cell.fault == fault]
        lines.append(f"| {fault} | {' | '.join(row)} |")
    return "\n".join(lines)


def _text(cell: Cell) -> str:
    if cell.passed is None:
        return "-"
    if not cell.passed:
        return f"FAILS: {cell.seen}"
    if cell.recovery is None:
        return cell.expected
    return f"{cell.without} ({cell.no_chance}) / {cell.recovery}"


def main(words: Sequence[str] | None = None) -> int:
    """Run the matrix and print it; return 1 where a cell failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="faults to run (default: all)")
    parser.add_argument("--subject", action="append", choices=SUBJECTS, help="subjects to run (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the cells to FILE")
    options = parser.parse_args(words)
    if unknown := sorted(set(options.faults) - set(FAULTS)):
        parser.error(f"no fault {unknown}, expected some of {list(FAULTS)}")
    logging.disable(logging.CRITICAL)
    cells: list[Cell] = []
    for fault in options.faults or FAULTS:
        for subject in options.subject or SUBJECTS:
            cells.append(run_cell(FAULTS[fault], subject))
            print(f"{fault:22}{subject:12}{cells[-1].passed!s:7}{cells[-1].seen}", file=sys.stderr)
    print(as_table(cells))
    if options.json:
        options.json.write_text(json.dumps([asdict(cell) for cell in cells], indent=1) + "\n")
    return int(any(cell.passed is False for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
