"""Start the bots of one match, wait for them, say why one does not come, start one anew, and end them."""

import logging
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from rlgym_bridge.server.game.roster import AgentSeat, Roster
from rlgym_bridge.server.net.host_settings import HostSettings
from rlgym_bridge.server.net.launch import (
    BotProcess,
    end_all,
    inherit_orphans,
    launch,
    processes_needed,
)
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.result import AbsentBot, MatchCalledOff

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.05  # between two looks at processes that have not connected yet
_LEAVE_SECONDS: Final = 3.0  # bots have this long to end by themselves after a match
_NEVER_PLAYED_SECONDS: Final = 0.5  # and this long where it never began
_LEFT_SECONDS: Final = 1.0  # a bot that has left may print why and end, before its exit code is read
_STRANGER_SECONDS: Final = 3.0  # a bot is waited for after its process has connected under another agent id


class MatchProcesses:
    """The processes of a match's bots."""

    def __init__(
        self, lobby: Lobby, settings: HostSettings, roster: Roster, address: tuple[str, int]
    ) -> None:
        self._lobby, self._settings, self._roster, self._address = lobby, settings, roster, address
        self._started: list[BotProcess] = []
        lobby.admission.processes = self._started
        self._given_up: set[int] = set()  # pids of bots whose early end has been logged
        self.temporary: Path | None = None  # folder with their logs, where the settings name none
        self.has_restarted = False  # a bot was started anew, and may be on its way

    def gather(self, patient: bool) -> None:
        """Launch the bots and wait until all are ready, or until a client has an order.

        In lockstep a bot is launched when the one before it has taken its seat, so that equal bots always get
        the same cars. `patient` waits without limit, as RLBot's core does; else it is a MatchCalledOff.
        """
        configuration = self._roster.configuration
        groups = processes_needed(self._roster.agents) if configuration.auto_start_agents else []
        log_dir = self._log_dir() if groups else Path()
        inherit_orphans(bool(groups))
        for group in groups:
            process = launch(group, *self._address, log_dir)
            self._started.append(process)
            if self._settings.pace == "lockstep":
                self._wait_until_none(partial(self._not_taken, group), patient)
            if self._lobby.orders.latest is not None:
                return
        if configuration.wait_for_agents or not patient:
            self._wait_until_none(self._lobby.missing, patient)
        for process in self._started:
            process.watch_family()

    def of(self, seat: AgentSeat) -> BotProcess | None:
        """Return the process that was started for a seat; None where there is none."""
        return next((one for one in self._started if seat in one.seats), None)

    def restart(self, car: int) -> None:
        """End the process of a car's bot and start it anew, with a log in the folder `restarted`."""
        process = self.of(self._roster.cars[car])
        if process is not None:
            self.has_restarted = True
            end_all([process], 0.0)
            again = launch(process.seats, *self._address, process.log_path.parent / "restarted")
            self._started[self._started.index(process)] = again

    def shorten_logs(self) -> None:
        """Cut logs that have grown too long."""
        for process in self._started:
            process.shorten_log()

    def note_ends(self, left: Collection[int]) -> None:
        """Note who has ended before connections are closed; bots that `left` in play may still print why."""
        deadline = time.monotonic() + _LEFT_SECONDS
        for process in self._started:
            if any(seat.index in left for seat in process.seats):
                with suppress(subprocess.TimeoutExpired):
                    process.popen.wait(max(0.0, deadline - time.monotonic()))
            process.note_end()

    def end(self, was_played: bool) -> None:
        """End all, after they have had time to end by themselves."""
        end_all(self._started, _LEAVE_SECONDS if was_played else _NEVER_PLAYED_SECONDS)
        inherit_orphans(False)

    def _log_dir(self) -> Path:
        if self._settings.log_dir is not None:
            try:
                self._settings.log_dir.mkdir(parents=True, exist_ok=True)
                return self._settings.log_dir
            except OSError as error:
                _log.warning("%s: bots log to a temporary folder instead", error)
        self.temporary = Path(tempfile.mkdtemp(prefix="rlgym-bridge-match-"))
        return self.temporary

    def _not_taken(self, seats: list[AgentSeat]) -> list[AgentSeat]:
        return [seat for seat in seats if not self._lobby.is_taken(seat)]

    def _wait_until_none(self, missing: Callable[[], list[AgentSeat]], patient: bool) -> None:
        timeout = self._settings.connect_timeout
        deadline = time.perf_counter() + timeout
        while (seats := missing()) and self._lobby.orders.latest is None:
            failed = [
                one for one in self._started if any(seat in seats for seat in one.seats) and one.has_ended
            ]  # fmt: skip
            strangers = self._find_strangers()
            if strangers:  # nobody else will come from that process
                deadline = min(deadline, time.perf_counter() + _STRANGER_SECONDS)
            if not patient and (failed or time.perf_counter() > deadline):
                gone = failed[0].seats if failed else seats
                absent = self._describe_absent(gone, strangers)
                why = explain_absence(absent, timeout)
                raise MatchCalledOff(f"the match was called off: {why}", absent)
            for process in failed:
                if process.popen.pid not in self._given_up:
                    self._given_up.add(process.popen.pid)
                    absent = self._describe_absent(process.seats, strangers)
                    _log.error("the match waits: %s", explain_absence(absent, timeout))
            self.shorten_logs()
            self._lobby.clients.pump(_LOOK_SECONDS)

    def _find_strangers(self) -> tuple[str, ...]:
        """Return the agent ids, none of the match, under which processes of it have connected."""
        known, lobby = {seat.agent_id for seat in self._roster.agents}, self._lobby
        strangers = {
            client.agent_id
            for client in lobby.clients.everyone
            if client.agent_id and client.agent_id not in known and lobby.admission.has_started(client)
        }
        return tuple(sorted(strangers))

    def _describe_absent(self, seats: Sequence[AgentSeat], strangers: tuple[str, ...]) -> list[AbsentBot]:
        absent = []
        for seat in seats:
            process = self.of(seat)
            absent.append(
                AbsentBot(
                    car=seat.index,
                    label=seat.label,
                    started_with=f"{seat.run_command!r} in {seat.root_dir}" if process else None,
                    connected=self._lobby.is_taken(seat),
                    exit_code=process.exit_code if process else None,
                    log_path=str(process.log_path) if process else None,
                    log_tail=process.log_tail if process else "",
                    strangers=strangers,
                )
            )
        return absent


def explain_absence(absent: Iterable[AbsentBot], timeout: float) -> str:
    """Return in lines why a match does not begin, after the seconds that bots are waited for."""
    lines = []
    for bot in absent:
        what = "did not say that it is ready" if bot.connected else "did not connect"
        if bot.exit_code is not None:
            lines.append(f"{bot.label} {what}: its process ended with exit code {bot.exit_code}")
        elif bot.strangers and not bot.connected:
            ids = ", ".join(map(repr, bot.strangers))
            lines.append(f"{bot.label} {what}: a process of this match came as agent_id {ids}")
        else:
            lines.append(f"{bot.label} {what} within {timeout:g} s")
        if bot.started_with is None:
            lines.append("  you start this bot by hand: is it running, with this agent_id?")
            continue
        lines.append(f"  started with {bot.started_with}")
        lines.append(f"  its log {bot.log_path} ends with:")
        lines += [f"    {line}" for line in (bot.log_tail or "(nothing)").splitlines()]
    lines.append("Run the command by hand in that folder to see what is wrong.")
    return "\n".join(lines)
