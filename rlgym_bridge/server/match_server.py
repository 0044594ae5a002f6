"""Serve matches in a simulator: one match with `play`, or in RLBotServer's place with `serve_forever`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from rlbot import flat

from rlgym_bridge.recording.mcap.mcap_writer import Recorder
from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.game.rules import check_rules
from rlgym_bridge.server.match_file import read_match_file
from rlgym_bridge.server.net.host_settings import HostSettings
from rlgym_bridge.server.net.hosted_match import HostedMatch
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.orders import Order
from rlgym_bridge.server.net.wire import is_this_machine, listen
from rlgym_bridge.server.result import MatchCalledOff, MatchResult
from rlgym_bridge.user_input.arguments import check_whole, show_value

_log = client_log(__name__)

_DISK_SECONDS = 30.0  # lockstep waits this long for a disk rather than lose a part of the recording
_IDLE_SECONDS = 0.5  # between two checks for orders while there is no match


@dataclass(repr=False, eq=False)
class MatchServer(HostSettings):
    """A server of RLBot's v5 protocol that plays matches in RocketSim.

    The server listens as soon as it is constructed, so bots may connect before their match begins. All
    work is done in the thread that calls `play` or `serve_forever`.

    A match that a client starts names commands for its bots. They are run, as RLBotServer does, only where
    nobody but this machine can connect.

    Args:
        host: Address to listen on; only this machine can connect by default.
        port: TCP port, 0 for any free one. RLBotServer's is 23234.
        pace: "realtime" for 120 ticks a second, "lockstep" to go on when every bot has
            answered, 1 s at most, or 10 s for its first answer, and every script has read or answered its
            packet (`ScriptAccount`).
        seed: Decides kickoff and respawn spots, and what is random in `impairments`.
        seconds: Regulation time in place of the match's own, a day at most; None to keep that.
        max_overtime: Seconds of overtime after which the match is a draw.
        max_kickoff: Seconds of an untouched kickoff after which the match is ended, unless it is
            unlimited.
        max_hang: Seconds after the end of time that the ball may stay off the floor before the match is ended
            all the same.
        connect_timeout: Seconds in which a bot must connect in `play`, and again in which
            all must be ready.
        on_progress: Called about four times a second of wall time, in the thread of the game:
            ticks are late when it takes more than a millisecond or two.
        on_kickoff: Called with a copy of the `MatchState` at every GO, before the first Kickoff packet is
            built; blue's cars come first, in packet order within a team.
        on_packet: Called with the payload of every GamePacket, a packed `flat.CorePacket`, even
            of those that `impairments` loses, but not of frames that it does not render.
        recorder: Writes down every packet that is made and every input that is taken.
        watch: Shows the matches while they are played; bots may draw then, unless the match says AlwaysOff.
        log_dir: Folder for the bots' logs. When None, a new temporary one for each match, which is kept where
            a bot was in trouble (`BotResult.troubles`) or the match was called off.
        impairments: Latency, jitter and loss to simulate; none when None.
        dialect: How packets speak where documents of the protocol disagree or are silent; the first
            value of `POINTS` where it says nothing.
        constants: Physics constants from `physics.read_physics`; matches are played with their values.
        simulator: What plays the matches, rocketsim2 or rocketsim3. None takes the default where it plays
            the match's mode and is installed, else rocketsim2; a line of the log says so then.
        allow_clients: Whether in `play` every client that connects may drive cars and give orders, not just
            those that the match has started; see `Admission`.
        allow_idle: Whether the cars of humans and Psyonix bots stand idle; else their matches are refused.
        control: Shows the match, or drives cars in this process, pauses and rewinds. Where it does more than
            show it, humans and Psyonix bots are allowed.

    Attributes:
        host: Address it listens on.
        port: Port it listens on.
        hosted: The match of `play` while it is played, for callbacks; None at other times.

    Raises:
        ServerError: The port is in use, or the address does not belong to this machine.
        SimulatorError: `simulator` is unknown or not installed, or does not play the match's mode.
        ValueError: `pace` is unknown, a time is negative, `seconds` is more than a day,
            `host` is no text, `port` is no whole number up to 65535, or `impairments` are impossible at
            `pace`.
        TypeError: `impairments`, `dialect` or `constants` are something else.
    """

    host: str = "127.0.0.1"
    port: int = 0
    hosted: HostedMatch | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.host, str):
            raise ValueError(
                f"host is {show_value(self.host)}, expected an address or a name, such as '127.0.0.1'"
            )
        check_whole("port", self.port, 0, 65535)
        if isinstance(self.recorder, Recorder) and self.pace == "lockstep":
            self.recorder.patience = _DISK_SECONDS
        listener = listen(self.host, self.port)
        address, self.port = listener.getsockname()[:2]
        self._runs_commands = is_this_machine(address)
        self._lobby = Lobby(listener)

    def play(self, match: flat.MatchConfiguration | Path | str) -> MatchResult:
        """Launch the bots of a match, or of a match file, play it to its end, and end the bots.

        Return the score and what each bot did. A client's StopCommand or `stop` ends the match early.

        Raises:
            ConfigError: The match cannot be played here.
            MatchCalledOff: A bot did not connect or get ready in time.
        """
        if not isinstance(match, flat.MatchConfiguration):
            match = read_match_file(match, allow_idle=self.allow_idle)
        self._lobby.orders.latest = None
        self._lobby.orders.read_match = None
        self._lobby.admission.is_guarded = not self.allow_clients
        hosted = HostedMatch(self._lobby, self, match, (self.host, self.port))
        self.hosted = hosted
        try:
            hosted.gather(patient=False)
            hosted.run(forever=False)
        finally:
            self.hosted = None
            result = hosted.end()
        return result

    def serve_forever(self, on_result: Callable[[MatchResult], None] | None = None) -> None:
        """Play the matches that clients start, as RLBotServer does, until one sends a shutdown.

        `on_result` is called with the result of each match that was begun.
        """
        lobby = self._lobby
        lobby.orders.read_match = self._read_match
        lobby.admission.is_guarded = False
        if not self._runs_commands:
            _log.warning(
                "listening on %s: other machines can connect, start matches and stop this server. Commands "
                "of their matches are not run: start bots by hand, or listen on 127.0.0.1", self.host,
            )  # fmt: skip
        playing: HostedMatch | None = None
        while True:
            while lobby.orders.latest is None:
                lobby.clients.pump(_IDLE_SECONDS)
            order, lobby.orders.latest = lobby.orders.latest, None
            if order.shut_down:
                return
            before, playing = playing, None
            try:
                played = self._serve(order, before)
                if played is not None:
                    playing, result = played
                    if on_result is not None:
                        on_result(result)
            except Exception:  # a bug here costs a match, not the server: the traceback is logged
                _log.exception("the match was called off by an unexpected error")

    def _read_match(self, match: flat.MatchConfiguration | str) -> flat.MatchConfiguration:
        """Return a client's match; a `ConfigError` says why it cannot be played here."""
        if isinstance(match, str):
            return read_match_file(match, allow_idle=self.allow_idle)
        check_rules(match)
        seat_players(match, self.allow_idle)
        return match

    def _serve(self, order: Order, before: HostedMatch | None) -> tuple[HostedMatch, MatchResult] | None:
        """Play the match of an order, if any; errors are logged but not sent to clients.

        Return it with its result, where it was played until another order came. The match before ends, unless
        that of the order says otherwise.
        """
        match = order.start
        if match is None:
            return None
        try:
            if match.auto_start_agents and not self._runs_commands:
                match.auto_start_agents = False
                _log.warning("the bots of the match are not started: start them by hand (%s)", self.host)
            # Bots that connected before their match are disconnected, as RLBot's core does.
            self._lobby.close_match()
            hosted = HostedMatch(self._lobby, self, match, (self.host, self.port), before)
        except (ValueError, OSError) as error:
            _log.error("cannot start the match: %s", error)
            return None
        try:
            hosted.gather(patient=True)
            hosted.run(forever=True)
        except (MatchCalledOff, ValueError, OSError) as error:
            _log.error("the match was called off: %s", error)
        finally:
            result = hosted.end()
        _log.info("match over (%s): %d - %d", result.ended_by, *result.score)
        for bot in result.bots:
            if bot.troubles:
                where = f"; its log is {bot.log_path}" if bot.log_path else ""
                _log.warning("%s %s%s", bot.name, ", ".join(bot.troubles), where)
        return hosted, result

    def stop(self) -> None:
        """End `play` or `serve_forever` at the next tick; may be called from a signal handler."""
        self._lobby.orders.latest = Order(shut_down=True)

    def close(self) -> None:
        """Disconnect all clients and close the port."""
        self._lobby.clients.close()
        self._lobby.admission.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
