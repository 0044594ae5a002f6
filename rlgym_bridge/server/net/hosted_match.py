"""Host one match: launch its bots, wait for them, play, record, and end everything."""

import json
import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Final

from rlbot import flat

import rlgym_bridge.recording.mcap.channels as channels
from rlgym_bridge.game import CONTROL_NAMES, PLAYING_PHASES, Phase
from rlgym_bridge.server.bot_account import REAL_TIME, BotAccount, Deviation, Repeatability
from rlgym_bridge.server.bot_files import check_texts
from rlgym_bridge.server.game.packer import field_info, framed
from rlgym_bridge.server.game.roster import seat_players, warn_of_shared_ids
from rlgym_bridge.server.game.rules import check_rules, course_of, name_of, physics_of, warn_of_rules
from rlgym_bridge.server.game.simulated_match import Match, kept_cars
from rlgym_bridge.server.net.connected_client import Client
from rlgym_bridge.server.net.host_settings import HostSettings, MatchControl, Sink
from rlgym_bridge.server.net.impairments import Impairments, Lines, SlowInputs
from rlgym_bridge.server.net.launch import BotProcess
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.match_processes import MatchProcesses
from rlgym_bridge.server.net.orders import Loadouts
from rlgym_bridge.server.net.pace import AHEAD_SECONDS, Lockstep, RealTime, steady_ticks
from rlgym_bridge.server.result import BotResult, MatchCalledOff, MatchResult, MatchStatus
from rlgym_bridge.sim.simulator import DeadMatches, simulator_for

_CONTROLS: Final = attrgetter(*CONTROL_NAMES)

TakeInput = Callable[[int, flat.ControllerState], bool]


class MatchRecorder:
    """Writes a match into a recording, or shows it to those who watch."""

    def __init__(self, recorder: Sink, match: Match) -> None:
        self._put, self._tell = recorder.put, recorder.tell
        self._match = match

    def begin(self, configuration: flat.MatchConfiguration) -> None:
        """Record field info and match configuration, without the commands and folders of bots."""
        self._put(channels.FIELD_INFO, 0, framed(field_info())[2:], True)
        copy = flat.MatchConfiguration.unpack(configuration.pack())
        bots = [player.variety for player in copy.player_configurations]
        for agent in (*bots, *copy.script_configurations):
            if isinstance(agent, flat.CustomBot | flat.ScriptConfiguration):
                agent.environment, agent.root_dir, agent.run_command = [], "", ""
        self._put(channels.MATCH_CONFIGURATION, 0, framed(copy)[2:], True)

    def end(self, unrepeatable: tuple[str, ...]) -> None:
        """Record why the match may go otherwise when it is played again; empty where nothing says so."""
        self._tell(channels.UNREPEATABLE, {"unrepeatable": json.dumps(unrepeatable)})

    def put(self, topic: str, payload: bytes) -> None:
        """Record a message of this frame: a packet, one between bots, or what a client drew."""
        self._put(topic, self._match.frame, payload)

    def inputs(self, take: TakeInput) -> TakeInput:
        """Return a function that passes inputs to `take`, and records the valid ones."""

        def noting(index: int, controls: flat.ControllerState) -> bool:
            if not take(index, controls):
                return False
            self._put(channels.INPUTS, self._match.frame, channels.INPUT.pack(index, *_CONTROLS(controls)))
            return True

        return noting


_log = logging.getLogger(__name__)

_STANDING_SECONDS: Final = 0.008  # between two questions whether a match that waits goes on
_STATUS_SECONDS: Final = 0.25  # of wall time
_STATUS_REPLIES: Final = 512  # a look at all of them would take milliseconds towards the end


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
        """Set up the match, or what the earlier one goes on as, and offer its seats; nothing is launched yet.

        A ConfigError says that it cannot be played here.
        """
        check_texts(configuration)
        check_rules(configuration)
        warn_of_rules(configuration)
        if settings.simulator is None:
            _, why_other = simulator_for(name_of(configuration.game_mode))
            if why_other:
                _log.warning("%s", why_other)
        if settings.watch is not None and configuration.enable_rendering == flat.DebugRendering.OffByDefault:
            configuration.enable_rendering = flat.DebugRendering.OnByDefault  # somebody looks
        self._control = settings.control
        no_bots = self._control is not None and self._control.stays
        self._roster = seat_players(configuration, settings.allow_idle, no_bots)
        warn_of_shared_ids(self._roster)
        self._lobby = lobby
        self._settings = settings
        self._match: Match = self._make_match(configuration, earlier)
        self._pace = RealTime() if settings.pace == "realtime" else Lockstep()
        self._processes = MatchProcesses(lobby, settings, self._roster, address)
        self._began = time.perf_counter()
        self._next_status = (self._began + _STATUS_SECONDS, self._began, 0)
        self._impairments = impairments = settings.impairments or Impairments()
        lobby.open_match(self._roster, None if impairments.sends_all else Lines(impairments, settings.seed))
        self._slow_inputs: SlowInputs | None = None
        if impairments.latency or impairments.latency_spread:
            self._slow_inputs = SlowInputs(self._match, impairments, settings.seed)
        inputs = self._slow_inputs or self._match
        self._recorder = None if settings.recorder is None else MatchRecorder(settings.recorder, self._match)
        lobby.take_input = inputs.hold if self._recorder is None else self._recorder.inputs(inputs.hold)
        lobby.release = inputs.release
        self._watch = None if settings.watch is None else MatchRecorder(settings.watch, self._match)
        if self._watch is not None:
            self._watch.begin(configuration)
        looks = [
            partial(one.put, channels.DRAWINGS) for one in (self._recorder, self._watch) if one is not None
        ]
        lobby.drawings.open(configuration, lambda: self._match.frame, looks)
        loadouts = Loadouts(self._roster, self._match.set_hitbox, lobby.admission, lambda: self._match.tick)
        lobby.clients.handlers.update(loadouts.handlers)
        lobby.orders.take_state = self._match.set_state
        hold, cars = lobby.take_input, len(self._roster.cars)
        lobby.orders.take_input = lambda car, controls: car < cars and hold(car, controls)
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
            physics = physics_of(configuration, settings.constants, settings.simulator)
        match = Match(cars, course, physics, settings.seed, settings.on_kickoff, settings.dialect)
        if before is not None and kept is not None:
            match.take_over(before, kept)
        return match

    def gather(self, patient: bool) -> None:
        """Launch the bots and wait until all are ready; see `MatchProcesses.gather`."""
        self._processes.gather(patient)

    @property
    def accounts(self) -> list[BotAccount]:
        """List the counts of each car's answers, in packet order."""
        return self._lobby.accounts

    def set_state(self, desired: flat.DesiredGameState) -> bool:
        """Set a state after the next tick; see `Match.set_state`."""
        return self._match.set_state(desired)

    def restart_bot(self, car: int) -> None:
        """End the process of a car's bot and start it anew, to join the running match.

        From then on the match does not end by itself where no bot is left.
        """
        self._processes.restart(car)

    def run(self, forever: bool) -> None:
        """Play until the match has ended or a client sends an order; `forever` sends Ended until then."""
        match, lobby, pace = self._match, self._lobby, self._pace
        referee, on_packet = match.referee, self._settings.on_packet
        impairments, slow_inputs = self._impairments, self._slow_inputs
        watch, control = self._watch, self._control
        ended_pace, current = RealTime(), pace
        if control is not None and lobby.orders.latest is None:
            assert lobby.take_input is not None  # set with the match
            control.begin(match, self._roster, lobby.take_input)
        stays = control is not None and control.stays
        driven = not forever and not stays and any(not account.seat.is_idle for account in lobby.accounts)
        if self._recorder is not None:
            self._recorder.begin(self._roster.configuration)
        for account in lobby.accounts:
            if not account.ready and not account.seat.is_idle:
                self._repeatability.note(account.seat.name, Deviation.ABSENT)
        on_comm = None if self._recorder is None else partial(self._recorder.put, channels.COMMS)
        lobby.comms.open(on_comm, lambda: self._match.tick)
        self._began = time.perf_counter()
        self._next_status = (self._began + _STATUS_SECONDS, self._began, 0)
        with steady_ticks():
            while lobby.orders.latest is None:
                packet = match.packet()  # of every frame, whether it is shown or not
                data = framed(packet) if impairments.renders(match.tick) else b""
                if data and on_packet is not None:
                    on_packet(data[2:])
                prediction = match.prediction() if data and lobby.clients.wants_prediction else b""
                current.hold(lobby)
                sent_at = lobby.send_packet(data, prediction)
                if data and self._recorder is not None:
                    self._recorder.put(channels.PACKETS, data[2:])
                if data and watch is not None:
                    watch.put(channels.PACKETS, data[2:])
                if control is not None:
                    control.see(packet)
                ended = referee.phase == Phase.ENDED and not stays
                report = self._report if sent_at >= self._next_status[0] else None
                current = ended_pace if ended and forever else pace
                ahead = AHEAD_SECONDS if lobby.clients.wants_prediction else 0.0
                current.wait(lobby, sent_at, report, match.game_speed, ahead)
                lobby.book_late(referee.phase in PLAYING_PHASES)
                if ended and not forever:
                    return
                if slow_inputs is not None:
                    slow_inputs.arrive()
                if control is not None:
                    self._wait_for(control, current)
                self._advance()
                is_left = not any(one.ready for one in lobby.accounts)
                if driven and is_left and not self._processes.has_restarted:
                    referee.end("no bots left")

    def _advance(self) -> None:
        try:
            self._match.advance()
        except DeadMatches as error:
            why = f"the match failed inside the simulator and cannot go on: {error}"
            raise MatchCalledOff(why) from error

    def _wait_for(self, control: MatchControl, pace: RealTime | Lockstep) -> None:
        """Wait until the control lets the match go on, or somebody has an order."""
        while not control.act() and self._lobby.orders.latest is None:
            self._lobby.clients.pump(_STANDING_SECONDS)
            pace.pause()

    def _note_state(self, client: Client) -> None:
        script = client.script
        answers_all = script is not None and script.waited_for and not script.late
        awaited = answers_all or any(self._lobby.accounts[car].pending for car in client.cars)
        self._repeatability.note_state(client.link.name, awaited)

    def _report(self) -> None:
        now = time.perf_counter()
        _, before, ticks_before = self._next_status
        ticks = self._match.tick + 1
        self._next_status = (now + _STATUS_SECONDS, now, ticks)
        self._processes.shorten_logs()
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

    def end(self) -> MatchResult:
        """Disconnect the bots, end their processes, and return the result."""
        seconds = time.perf_counter() - self._began
        accounts = list(self._lobby.accounts)
        left_early = {one.seat.index for one in accounts if not one.ready and not one.seat.is_idle}
        self._processes.note_ends(left_early if self._match.tick else ())
        self._lobby.clients.handlers.pop(flat.SetLoadout, None)
        self._lobby.close_match()
        self._processes.end(was_played=self._match.tick > 0)
        bots = [
            bot_result(one, self._match, self._processes.of(one.seat), one.seat.index in left_early)
            for one in accounts
        ]
        temporary = self._processes.temporary  # kept where something went wrong
        if temporary is not None and self._match.tick and not any(bot.troubles for bot in bots):
            shutil.rmtree(temporary, ignore_errors=True)
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


def bot_result(account: BotAccount, match: Match, process: BotProcess | None, crashed: bool) -> BotResult:
    """Return the result of a car; its process is None where it was started by hand."""
    seat, scores = account.seat, match.scores
    p50, p99 = account.reply_ms(50.0, 99.0)
    return BotResult(
        name=seat.name,
        team=seat.team,
        index=seat.index,
        agent_id=seat.agent_id,
        connected=not crashed,
        crashed=crashed,
        exit_code=process.early_exit_code if process else None,
        log_path=str(process.log_path) if process else None,
        log_tail=process.log_tail if process and crashed else "",
        exceptions=process.exceptions if process else 0,
        touches=scores.touches[seat.index],
        goals=scores.goals[seat.index],
        demolitions=scores.demolitions[seat.index],
        bumps=scores.bumps[seat.index],
        boost_used=match.simulation.boost_used[seat.index],
        replies=account.replies,
        late=account.late,
        unanswered=max(0, account.late_in_play - account.extra),
        reply_p50_ms=p50,
        reply_p99_ms=p99,
        invalid_inputs=account.invalid,
        dropped_messages=account.dropped,
        was_told_to_end=process.was_told_to_end if process else False,
        foreign_ids=tuple(process.foreign_ids) if process else (),
    )
