"""Measure input latency and packet loss, and say which settings fit: `rlgym-bridge timing`."""

import argparse
import time
from typing import Final

from rich.console import Console
from rich.table import Table
from rlbot import flat

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.cli.measuring_match import real_match, sim_match
from rlgym_bridge.cli.real_match import START_SECONDS
from rlgym_bridge.cli.server_options import add_server_option
from rlgym_bridge.client.agent_connections import AgentConnections, NoServer
from rlgym_bridge.client.own_players import agents_of, match_of, with_own_ids
from rlgym_bridge.game import PLAYING_PHASES, TICKS_PER_SECOND
from rlgym_bridge.server import MatchServer
from rlgym_bridge.trials.timing_report import Exchange, TimingReport, judge, number_of, numbered

_PATIENCE: Final = 20.0  # s for each step of the embedded server's handshake
_SILENCE: Final = 30.0  # s without a packet after which the server is given up
_NEUTRAL: Final = flat.ControllerState()


STATUS: Final = "0 measured, 1 the latency could not be measured, 2 bad usage or no server"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Measure how many ticks late inputs act and how packets arrive. One car plays with numbered inputs; "
        "the packets show when each of them took effect. Settings for training and play follow from that."
    )
    add_server_option(parser)
    parser.add_argument(
        "--seconds", type=shared.seconds, default=20.0, metavar="S",
        help="seconds of game time to play (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--pace", choices=("realtime", "lockstep"), default="realtime",
        help="pace of the embedded server (default: %(default)s)",
    )  # fmt: skip
    shared.add_impairment_options(parser)
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Play, and print what was measured."""
    console = shared.console_of(options)
    output_files.check_outputs(options.json)
    if not options.seconds:
        raise ValueError("--seconds is 0, expected more: inputs have to act while they are measured")
    timing = _measure(options)
    _print(console, timing)
    if not output_files.write_json(options.json, timing.as_json()):
        return 2
    return 0 if timing.input_latency is not None else 1


def _measure(options: argparse.Namespace) -> TimingReport:
    match = with_own_ids(match_of(1, 1))
    if options.server == "rlbot":
        with real_match(match) as server:
            return measure_timing(server.address, match, START_SECONDS, options.seconds)
    with (
        MatchServer(pace=options.pace, impairments=shared.impairments_of(options)) as match_server,
        sim_match(match_server, match),
    ):
        return measure_timing((match_server.host, match_server.port), match, _PATIENCE, options.seconds)


def measure_timing(
    server: tuple[str, int], match: flat.MatchConfiguration, patience: float, seconds: float
) -> TimingReport:
    """Play with numbered inputs on a server whose match has begun, then stop the match.

    Args:
        server: Address and port.
        match: The match, whose cars this process plays.
        patience: Seconds for each step of the handshake.
        seconds: Game time to play.

    Raises:
        NoServer: The server did not accept the agents, or sends no packets.
    """
    seats = AgentConnections(server, agents_of(match), patience)
    try:
        return judge(_exchanges(seats, seconds))
    finally:
        seats.stop_match()
        seats.close()


def _exchanges(seats: AgentConnections, seconds: float) -> list[list[Exchange]]:
    """Answer packets until a car has been in play for so long; return segments of play."""
    session: list[list[Exchange]] = [[]]
    number, played, before = 0, 0, 0
    seen = time.perf_counter()  # our cars, last
    own: list[int] = []
    while played < seconds * TICKS_PER_SECOND:
        packets = seats.packets(_SILENCE)
        received = time.perf_counter()
        if not packets:
            raise NoServer(f"no packet for {_SILENCE:g} s")
        for packet in packets:
            slots = {player.player_id: slot for slot, player in enumerate(packet.players)}
            if not set(seats.ids) <= set(slots):  # the cars have yet to come, or one has left
                if time.perf_counter() - seen > _SILENCE:
                    raise NoServer(f"no packet has the cars {seats.ids} for {_SILENCE:g} s")
                if session[-1]:
                    session.append([])
                continue
            seen = received
            own = [slots[one] for one in seats.ids]
            frame = packet.match_info.frame_num
            if int(packet.match_info.match_phase) not in PLAYING_PHASES:
                if session[-1]:
                    session.append([])
                continue
            played += max(0, frame - before) if session[-1] else 0
            before = frame
            session[-1].append(Exchange(frame, received, number_of(packet.players[own[0]].last_input)))
        if not own:
            continue
        inputs = [numbered(number), *(_NEUTRAL for _ in own[1:])]
        seats.answer([flat.PlayerInput(slot, one) for slot, one in zip(own, inputs, strict=True)])
        if session[-1] and session[-1][-1].frame == frame:
            newest = session[-1][-1]
            session[-1][-1] = Exchange(frame, received, newest.shown, number, time.perf_counter())
        number += 1
    return session


def _print(console: Console, timing: TimingReport) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for column in ("", "", ""):
        table.add_column(column, overflow="fold")
    latency = timing.input_latency
    told = " or ".join(map(str, (latency, *timing.also_fits)))
    counts = ", ".join(f"{ticks}: {count:,}" for ticks, count in sorted(timing.latencies.items()))
    table.add_row("input latency", "not told" if latency is None else f"{told} ticks", counts)
    table.add_row(
        "reply",
        f"{timing.reply_ms[0]:.2f} ms",
        f"p99 {timing.reply_ms[1]:.2f}: of this command, without a bot",
    )
    p10, p50, p90, p99 = timing.interval_ms
    table.add_row("between packets", f"{p50:.2f} ms", f"p10 {p10:.2f}, p90 {p90:.2f}, p99 {p99:.2f}")
    table.add_row("lost", f"{timing.lost_ticks:,} ticks", f"of {timing.packets:,} packets")
    console.print(table)
    for line in advice(timing):
        console.print(line)


def advice(timing: TimingReport) -> list[str]:
    """Return what to set, in sentences."""
    lines = []
    latency, delay = timing.input_latency, timing.action_delay
    if latency is not None and delay is not None:
        lines.append(
            f"policy.json: input_latency = {latency}; training: action_delay = [{delay[0]}, {delay[1]}]"
        )
        if latency > 1:
            late = "1 tick" if latency == 2 else f"{latency - 1} ticks"
            lines.append(f"A policy trained with action_delay = 1 acts {late} later than in training.")
    if timing.also_fits:
        lines.append("Packets leave out the ticks that would tell which it is; `rlgym-bridge probe` can.")
    if timing.frame_rate is not None:
        lines.append(
            f"The game seems to render {timing.frame_rate:.0f} frames a second, so that packets leave out "
            "ticks: cap it at 120 or 240."
        )
    return lines
