"""Host one match: launch its bots, wait for them, play, and end everything."""

import logging
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from rlbot import flat

from rlgym_bridge.game import PLAYING_PHASES, Phase
from rlgym_bridge.server.framing import framed
from rlgym_bridge.server.game.continued_match import kept_cars
from rlgym_bridge.server.game.roster import AgentSeat, seat_players, warn_of_shared_ids
from rlgym_bridge.server.game.rules import check_rules, course_of, physics_of, warn_of_rules
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.net.bot_outcome import bot_result
from rlgym_bridge.server.net.connected_client import Client
from rlgym_bridge.server.net.host_settings import HostSettings
from rlgym_bridge.server.net.impairments import Lines, SlowInputs
from rlgym_bridge.server.net.launch import BotProcess, end_all, launch, processes_needed
from rlgym_bridge.server.net.loadouts import Loadouts
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.match_recorder import MatchRecorder
from rlgym_bridge.server.net.missing_bots import describe_missing
from rlgym_bridge.server.net.pace import Lockstep, RealTime, fine_timer, short_collections
from rlgym_bridge.server.repeatability import REAL_TIME, Deviation, Repeatability
from rlgym_bridge.server.result import MatchResult, MatchStatus
from rlgym_bridge.server.server_errors import MatchCalledOff

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.05  # between two looks at processes that have not connected yet
_STATUS_SECONDS: Final = 0.25  # of wall time
_STATUS_REPLIES: Final = 512  # a look at all of them would take milliseconds towards the end
_LEAVE_SECONDS: Final = 3.0  # bots have this long to end by themselves after a match
_NEVER_PLAYED_SECONDS: Final = 0.5  # and this long where it never began


class HostedMatch:
    """A match with its bot processes and clients."""

    def __init__(
        self,
        lobby: Lobby,
        settings: HostSettings,
        configuration: flat.MatchConfiguration,
        address: tuple[str, int],
        earlier: "HostedMatch | None" = None,
    ) -> None:
        """Set up the match and offer its seats; nothing is launched yet.

        Args:
            lobby: The connections and their seats.
            settings: Settings of the server.
            configuration: The match.
            address: Address and port that bots are to connect to.
            earlier: The match that was played until now, which may go on; see `kept_cars`.

        Raises:
            ConfigError: The match cannot be played here.
        """
        check_rules(configuration)
        warn_of_rules(configuration)
        if settings.watch is not None and configuration.enable_rendering == flat.DebugRendering.OffByDefault:
            configuration.enable_rendering = flat.DebugRendering.OnByDefault  # somebody looks
        self._roster = seat_players(configuration, settings.allow_idle)
        warn_of_shared_ids(self._roster)
        self._lobby = lobby
        self._settings = settings
        self._address = address
        self._match: Match = self._make_match(configuration, earlier)
        self._pace = RealTime() if settings.pace == "realtime" else Lockstep()
        self._processes: list[BotProcess] = []
        self._temporary: Path | None = None  # folder of logs, kept where something went wrong
        self._given_up: set[int] = set()  # pids of bots whose early end has been logged
        self._began = time.perf_counter()
        self._next_status = (self._began + _STATUS_SECONDS, self._began, 0)
        impairments = settings.impairments
        lobby.open_match(self._roster, None if impairments.sends_all else Lines(impairments, settings.seed))
        self._slow_inputs = SlowInputs.of(self._match, impairments, settings.seed)
        inputs = self._slow_inputs or self._match
        self._recorder = None if settings.recorder is None else MatchRecorder(settings.recorder, self._match)
        lobby.take_input = inputs.hold if self._recorder is None else self._recorder.inputs(inputs.hold)
        lobby.release = inputs.release
        self._watch = None if settings.watch is None else MatchRecorder(settings.watch, self._match)
        if self._watch is not None:
            self._watch.begin(configuration)
        looks = [one.drawing for one in (self._recorder, self._watch) if one is not None]
        lobby.drawings.open(configuration, lambda: self._match.frame, looks)
        loadouts = Loadouts(self._roster, self._match.set_hitbox, lobby.admission, lambda: self._match.tick)
        lobby.clients.handlers.update(loadouts.handlers)
        lobby.orders.take_state = self._match.set_state
        lobby.orders.take_input = partial(self._hold_other, lobby.take_input)
        lobby.orders.on_state = self._note_state
        self._repeatability = Repeatability(lambda: self._match.tick)
        for account in lobby.accounts:
            account.note = partial(self._repeatability.note, account.seat.name)

    def _make_match(self, configuration: flat.MatchConfiguration, earlier: "HostedMatch | None") -> Match:
        """Return the match to play: a new one, or what the earlier one goes on as."""
        settings, cars = self._settings, self._roster.cars
        kept, before = None, earlier._match if earlier is not None else None
        if earlier is not None:
            kept = kept_cars(earlier._match, earlier._roster.configuration, configuration)
        if before is not None and kept is not None:
            course, physics = before.referee.course, before.simulation.physics
        else:
            course = course_of(
                configuration, settings.seconds, settings.max_overtime, settings.max_kickoff,
                settings.max_hang,
            )  # fmt: skip
            physics = physics_of(configuration, settings.constants, settings.rules)
        match = Match(cars, course, physics, settings.seed, settings.on_kickoff, settings.dialect)
        if before is not None and kept is not None:
            match.take_over(before, kept)
        return match

    # --- before ------------------------------------------------------------------------------

    def gather(self, patient: bool) -> None:
        """Launch the bots and wait until all are ready, or until a client has an order.

        In lockstep a bot is launched when the one before it has taken its seat, so that equal
        bots always get the same cars.

        Args:
            patient: Wait without limit, as RLBot's core does, instead of `connect_timeout`.

        Raises:
            MatchCalledOff: A bot did not connect or did not get ready in time.
        """
        configuration = self._roster.configuration
        groups = processes_needed(self._roster.agents) if configuration.auto_start_agents else []
        log_dir = self._log_dir() if groups else Path()
        for group in groups:
            process = launch(group, *self._address, log_dir)
            self._processes.append(process)
            if self._settings.pace == "lockstep":
                self._wait_until_none(partial(self._not_taken, group), patient)
            if self._lobby.orders.latest is not None:
                return
        if configuration.wait_for_agents or not patient:
            self._wait_until_none(self._lobby.missing, patient)
        for process in self._processes:
            process.watch_family()

    def _log_dir(self) -> Path:
        if self._settings.log_dir is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="rlgym-bridge-match-"))
            return self._temporary
        self._settings.log_dir.mkdir(parents=True, exist_ok=True)
        return self._settings.log_dir

    def _not_taken(self, seats: list[AgentSeat]) -> list[AgentSeat]:
        return [seat for seat in seats if not self._lobby.is_taken(seat)]

    def _wait_until_none(self, missing: Callable[[], list[AgentSeat]], patient: bool) -> None:
        deadline = time.perf_counter() + self._settings.connect_timeout
        while (seats := missing()) and self._lobby.orders.latest is None:
            failed = [
                one for one in self._processes
                if any(seat in seats for seat in one.seats) and one.has_ended
            ]  # fmt: skip
            if not patient and (failed or time.perf_counter() > deadline):
                absent = failed[0].seats if failed else seats
                raise MatchCalledOff(f"the match was called off: {self._why_not(absent)}", absent)
            for process in failed:
                if process.popen.pid not in self._given_up:
                    self._given_up.add(process.popen.pid)
                    _log.error("the match waits: %s", self._why_not(process.seats))
            self._lobby.clients.pump(_LOOK_SECONDS)

    def _why_not(self, seats: list[AgentSeat]) -> str:
        timeout = self._settings.connect_timeout
        return describe_missing(seats, self._lobby.is_taken, self._process_of, timeout)

    def _process_of(self, seat: AgentSeat) -> BotProcess | None:
        return next((one for one in self._processes if seat in one.seats), None)

    # --- during ------------------------------------------------------------------------------

    def run(self, forever: bool) -> None:
        """Play until the match has ended or a client sends an order.

        Args:
            forever: Go on sending Ended, as RLBot's core does, until there is an order.
        """
        match, lobby, pace = self._match, self._lobby, self._pace
        referee, on_packet = match.referee, self._settings.on_packet
        impairments, slow_inputs = self._settings.impairments, self._slow_inputs
        watch = self._watch
        ended_pace = RealTime()
        driven = not forever and any(not account.seat.is_idle for account in lobby.accounts)
        if self._recorder is not None:
            self._recorder.begin(self._roster.configuration)
        for account in lobby.accounts:
            if not account.ready and not account.seat.is_idle:
                self._repeatability.note(account.seat.name, Deviation.ABSENT)
        on_comm = None if self._recorder is None else self._recorder.comm
        lobby.comms.open(on_comm, lambda: self._match.tick)
        self._began = time.perf_counter()
        self._next_status = (self._began + _STATUS_SECONDS, self._began, 0)
        with fine_timer(), short_collections():
            while lobby.orders.latest is None:
                packet = match.packet()  # of every frame, whether it is shown or not
                data = framed(packet) if impairments.renders(match.tick) else b""
                if data and on_packet is not None:
                    on_packet(data[2:])
                prediction = match.prediction() if data and lobby.clients.wants_prediction else b""
                sent_at = lobby.send_packet(data, prediction)
                if data and self._recorder is not None:
                    self._recorder.packet(data[2:])
                if data and watch is not None:
                    watch.packet(data[2:])
                ended = referee.phase == Phase.ENDED
                report = self._report if sent_at >= self._next_status[0] else None
                (ended_pace if ended and forever else pace).wait(lobby, sent_at, report, match.game_speed)
                lobby.book_late(referee.phase in PLAYING_PHASES)
                if ended and not forever:
                    return
                if slow_inputs is not None:
                    slow_inputs.arrive()
                match.advance()
                if driven and not any(account.ready for account in lobby.accounts):
                    referee.end("no bots left")

    def _hold_other(
        self, hold: Callable[[int, flat.ControllerState], bool], car: int, controls: flat.ControllerState
    ) -> bool:
        return car < len(self._roster.cars) and hold(car, controls)

    def _note_state(self, client: Client) -> None:
        awaited = any(self._lobby.accounts[car].pending for car in client.cars)
        self._repeatability.note_state(client.link.name, awaited)

    def _report(self) -> None:
        now = time.perf_counter()
        _, before, ticks_before = self._next_status
        ticks = self._match.tick + 1
        self._next_status = (now + _STATUS_SECONDS, now, ticks)
        if self._settings.on_progress is None:
            return
        referee = self._match.referee
        self._settings.on_progress(
            MatchStatus(
                phase=referee.phase,
                score=(referee.score[0], referee.score[1]),
                clock=self._match.clock,
                overtime=referee.overtime,
                ticks=ticks,
                ticks_per_second=(ticks - ticks_before) / (now - before),
                teams=tuple(one.seat.team for one in self._lobby.accounts),
                reply_p50_ms=tuple(
                    one.reply_ms(50.0, latest=_STATUS_REPLIES)[0] for one in self._lobby.accounts
                ),
            )
        )

    # --- after -------------------------------------------------------------------------------

    def end(self) -> MatchResult:
        """Disconnect the bots, end their processes, and return the result."""
        seconds = time.perf_counter() - self._began
        accounts = list(self._lobby.accounts)
        left_early = {one.seat.index for one in accounts if not one.ready and not one.seat.is_idle}
        for process in self._processes:
            process.note_end()
        self._lobby.note_dropped()
        self._lobby.clients.handlers.pop(flat.SetLoadout, None)
        self._lobby.close_match()
        end_all(self._processes, _LEAVE_SECONDS if self._match.tick else _NEVER_PLAYED_SECONDS)
        bots = [
            bot_result(account, self._match, self._process_of(account.seat), account.seat.index in left_early)
            for account in accounts
        ]
        if self._temporary is not None and self._match.tick and not any(bot.troubles for bot in bots):
            shutil.rmtree(self._temporary, ignore_errors=True)
            bots = [replace(bot, log_path=None) for bot in bots]
        unrepeatable = REAL_TIME if self._settings.pace == "realtime" else self._repeatability.sentences
        if self._recorder is not None:
            self._recorder.end(unrepeatable)
        referee = self._match.referee
        return MatchResult(
            score=(referee.score[0], referee.score[1]),
            winner=referee.winner,
            overtime=referee.overtime,
            ended_by=referee.ended_by or "stopped",
            ticks=self._match.tick + 1,
            playing_ticks=self._match.playing_ticks,
            seed=self._settings.seed,
            server_late=self._pace.late,
            seconds=seconds,
            unrepeatable=unrepeatable,
            bots=tuple(bots),
        )
