"""Play a match in the real game, on an RLBotServer, of which only what packets say is known."""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from rich.console import Console
from rlbot import flat

from rlgym_bridge.game import PLAYING_PHASES, TICKS_PER_SECOND, Phase
from rlgym_bridge.live.agent_connections import OWN_SECONDS, Connection, is_own_server, message_of
from rlgym_bridge.server import BotResult, MatchCalledOff, MatchResult, ServerError
from rlgym_bridge.server.bot_account import REAL_TIME
from rlgym_bridge.server.bot_files import check_texts
from rlgym_bridge.sim.touches import is_new_touch
from rlgym_bridge.trials.measured_match import REFUSED, START_SECONDS, running_server

_ASK_SECONDS = 1.0  # between two looks whether a bot will not play


@dataclass
class _Watched:
    touches: int = 0
    touch_seconds: float = -1.0
    boost: float = 0.0
    boost_used: float = 0.0


def play_real_match(
    configuration: flat.MatchConfiguration,
    console: Console,
    refusal: Callable[[], str | None],
    seconds: float | None = None,
) -> MatchResult:
    """Play a match on a running or installed RLBotServer, which launches its bots.

    The score is shown when it changes. `refusal` is asked about once a second until play begins why a bot
    will not play, None where all do. The match is stopped after `seconds` of game time in play. In the result
    reply times are NaN, replies and late packets 0: RLBotServer does not tell.

    Raises:
        ConfigError: The address in the environment is none, or a text of the match is no UTF-8.
        MatchCalledOff: A bot will not play; RLBotServer would wait for it for ever.
        ServerError: No RLBotServer can be found, it does not take the match, it sends no packets, or the
            connection breaks.
    """
    check_texts(configuration)
    ip, port = running_server()
    own = is_own_server((ip, port))
    began = time.perf_counter()
    connection: Connection | None = None
    try:
        connection = Connection((ip, port))
        connection.send(flat.ConnectionSettings("", False, False, False), configuration, flat.InitComplete())
        watch = _Watch(console, refusal, seconds, OWN_SECONDS if own else math.inf, f"{ip}:{port}")
        try:
            watch.follow(connection)
        except (MatchCalledOff, KeyboardInterrupt):
            _stop(connection)
            raise
        _stop(connection)
    except ServerError:
        raise
    except (EOFError, OSError) as error:
        raise ServerError(
            f"the RLBotServer at {ip}:{port} went away: {error or 'it closed'}; start it and play again"
        ) from error
    finally:
        if connection is not None:
            connection.close()
    return watch.result(configuration, time.perf_counter() - began)


def _stop(connection: Connection) -> None:
    with suppress(OSError):  # the match is over: a server that is gone by now has nothing to add
        connection.send(flat.StopCommand(False), flat.DisconnectSignal())


class _Watch:
    def __init__(
        self, console: Console, refusal: Callable[[], str | None], seconds: float | None, patience: float,
        where: str,
    ) -> None:  # fmt: skip
        self._console, self._refusal, self._where = console, refusal, where
        self._patience = patience  # s until the configuration has to be there
        self._taken = False
        self._most_ticks = math.inf if seconds is None else seconds * TICKS_PER_SECOND
        self._packet: flat.GamePacket | None = None
        self._cars: dict[int, _Watched] = {}
        self._first_frame: int | None = None
        self._was_active = False
        self._playing_ticks = 0

    def follow(self, connection: Connection) -> None:
        """Take in messages until the match has ended; see `play_real_match` for what is raised."""
        began = heard = asked = time.monotonic()
        while True:
            now = time.monotonic()
            if now - heard > START_SECONDS:
                raise ServerError(
                    f"the RLBotServer at {self._where} sent no packet for {START_SECONDS:g} s: is Rocket "
                    "League installed? Does its launcher wait? `rlgym-bridge doctor` says how it started"
                )
            if not self._taken and now - began > self._patience:
                raise ServerError(f"the server at {self._where} did not take the match: {REFUSED}")
            if now - asked >= _ASK_SECONDS and not self._was_active:
                asked = now
                if (refused := self._refusal()) is not None:
                    raise MatchCalledOff(refused)
            payload = connection.receive(_ASK_SECONDS)
            message = None if payload is None else message_of(payload)
            if isinstance(message, flat.DisconnectSignal):
                raise EOFError("it said goodbye")
            self._taken |= isinstance(message, flat.MatchConfiguration)
            if isinstance(message, flat.GamePacket):
                heard = time.monotonic()
                if self._take(message):
                    return

    def _take(self, packet: flat.GamePacket) -> bool:
        """Count one packet; tell whether the match is over."""
        before, self._packet = self._packet, packet
        info = packet.match_info
        phase = int(info.match_phase)
        if self._first_frame is None:
            self._first_frame = info.frame_num
        self._was_active |= phase in PLAYING_PHASES
        if before is not None and int(before.match_info.match_phase) in PLAYING_PHASES:
            self._playing_ticks += max(0, info.frame_num - before.match_info.frame_num)
        for player in packet.players:
            car = self._cars.setdefault(player.player_id, _Watched(boost=player.boost))
            if phase in PLAYING_PHASES:
                car.boost_used += max(0.0, car.boost - player.boost)
                touch = player.latest_touch
                if touch is not None and touch.game_seconds != car.touch_seconds:
                    since = touch.game_seconds - car.touch_seconds
                    car.touches += is_new_touch(round(since * TICKS_PER_SECOND))
                    car.touch_seconds = touch.game_seconds
            car.boost = player.boost
        if before is None or _score(before) != _score(packet):
            clock = math.ceil(info.game_time_remaining)
            self._console.print(f"{_score(packet)[0]} : {_score(packet)[1]}   {clock // 60}:{clock % 60:02d}")
        return (self._was_active and phase == Phase.ENDED) or self._playing_ticks >= self._most_ticks

    def result(self, configuration: flat.MatchConfiguration, seconds: float) -> MatchResult:
        packet = self._packet
        assert packet is not None  # followed to its end
        blue, orange = _score(packet)
        winner = "draw" if blue == orange else ("blue" if blue > orange else "orange")
        ticks = packet.match_info.frame_num - (self._first_frame or 0) + 1
        overtime = packet.match_info.is_overtime
        return MatchResult(
            score=(blue, orange),
            winner=winner,
            overtime=overtime,
            ended_by="overtime goal" if overtime else "time",
            ticks=ticks,
            playing_ticks=self._playing_ticks,
            seed=0,
            server_late=0,
            seconds=seconds,
            unrepeatable=REAL_TIME,
            bots=tuple(
                self._bot(index, player, configuration) for index, player in enumerate(packet.players)
            ),
        )

    def _bot(self, index: int, player: flat.PlayerInfo, configuration: flat.MatchConfiguration) -> BotResult:
        car = self._cars[player.player_id]
        known = configuration.player_configurations
        variety = known[index].variety if index < len(known) else None
        return BotResult(
            name=player.name,
            team=player.team,
            index=index,
            agent_id=variety.agent_id if isinstance(variety, flat.CustomBot) else "",
            connected=True,
            crashed=False,
            touches=car.touches,
            goals=player.score_info.goals,
            demolitions=player.score_info.demolitions,
            boost_used=car.boost_used,
        )


def _score(packet: flat.GamePacket) -> tuple[int, int]:
    scores = [team.score for team in packet.teams] or [0, 0]
    return scores[0], scores[-1]
