"""Measure input latency and packet loss, and say which settings fit: `rlgym-bridge timing`."""

import argparse
from typing import Final

from rich.console import Console

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.live.agent_connections import match_of, with_own_ids
from rlgym_bridge.trials.input_latency import TimingReport, measure_timing
from rlgym_bridge.trials.measured_match import measured_match

STATUS: Final = "0 measured, 1 the latency could not be measured, 2 bad usage or no server"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Measure how many ticks late inputs act and how packets arrive. One car plays with numbered inputs; "
        "the packets show when each of them took effect. Settings for training and play follow from that."
    )
    shared.add_server_option(parser)
    shared.add_option(parser, "--seconds S", "seconds of game time to play", shared.seconds, default=20.0)
    shared.add_option(
        parser, "--pace", "pace of the embedded server", default="realtime", choices=("realtime", "lockstep")
    )
    shared.add_impairment_options(parser)


def run(options: argparse.Namespace) -> int:
    """Play, and print what was measured."""
    console = shared.console_of(options)
    output_files.check_outputs(options.json)
    if not options.seconds:
        raise ValueError("--seconds is 0, expected more: inputs have to act while they are measured")
    shared.refuse_with_rlbot(options, pace="realtime", **dict.fromkeys(shared.IMPAIRMENTS, 0))
    match = with_own_ids(match_of(1, 1))
    with measured_match(match, shared.embedded_server(options)) as server:
        timing = measure_timing(server.address, match, server.patience, options.seconds)
    _print(console, timing)
    output_files.write_json(options.json, timing.as_json())
    return int(timing.input_latency_ticks is None)


def _print(console: Console, timing: TimingReport) -> None:
    table = shared.make_table("", "", "")
    latency = timing.input_latency_ticks
    told = " or ".join(map(str, (latency, *timing.also_fits)))
    counts = ", ".join(f"{ticks}: {count:,}" for ticks, count in timing.latencies.items())
    table.add_row("input latency", "not told" if latency is None else f"{told} ticks", counts)
    for what, times, note in (
        ("reply", timing.reply_ms, ": of this command, without a bot"),
        ("between packets", timing.interval_ms, ""),
    ):
        shown = {name: "-" if value is None else f"{value:.2f}" for name, value in times.items()}
        rest = ", ".join(f"{name} {text}" for name, text in shown.items() if name != "p50")
        table.add_row(what, f"{shown['p50']} ms", rest + note)
    table.add_row("lost", f"{timing.lost_ticks:,} ticks", f"of {timing.packets:,} packets")
    console.print(table)
    for line in advice(timing):
        console.print(line)


def advice(timing: TimingReport) -> list[str]:
    """Return what to set, in sentences."""
    lines = []
    latency, delay = timing.input_latency_ticks, timing.action_delay
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
