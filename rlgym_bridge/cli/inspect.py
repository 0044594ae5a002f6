"""Show what a recording holds, or export it: `rlgym-bridge inspect`."""

import argparse
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.markup import escape

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.game import CONTROL_NAMES, TICKS_PER_SECOND
from rlgym_bridge.recording.export import write_csv, write_parquet
from rlgym_bridge.recording.mcap.agent_track import AgentTrack
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.user_input.arguments import count_of
from rlgym_bridge.user_input.durable_files import naming

STATUS: Final = "0 read, 2 the recording cannot be read"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Print what a recording holds: a match recorded by rlgym-bridge (.mcap), a replay of the game "
        "(.replay), or a table of numbers. It can be exported as CSV or Parquet."
    )
    shared.add_recording(parser)
    shared.add_option(parser, "--csv OUT", "export every row and field as CSV", Path)
    shared.add_option(parser, "--parquet OUT", "export them as Parquet", Path)


def run(options: argparse.Namespace) -> int:
    """Read, print, and export."""
    console = shared.console_of(options)
    output_files.check_outputs(
        options.json, options.csv, options.parquet, inputs=[options.file, options.columns]
    )
    recording = open_recording(options.file, options.columns)
    found = summary(recording)
    _print(console, recording, found)
    for path, write in ((options.csv, write_csv), (options.parquet, write_parquet)):
        if path is not None:
            with naming(path):
                write(recording, path)
            console.print(f"written to {path}", markup=False)
    output_files.write_json(options.json, found)
    return 0


def summary(recording: Recording) -> dict[str, Any]:
    """Return what a recording holds, as JSON values."""
    state, layout = recording.state, recording.state.layout
    lengths = [recording.seconds[one.stop - 1] - recording.seconds[one.start] for one in recording.segments()]
    found: dict[str, Any] = {
        "source": recording.source,
        "clock": recording.clock.value,
        "inputs": recording.inputs.value,
        "inputs_recorded": [
            [name for name, there in zip(CONTROL_NAMES, row, strict=True) if there]
            for row in recording.inputs_recorded.tolist()
        ],
        "team_sizes": [layout.blue, layout.orange],
        "rows": state.matches,
        "rows_with_ball": int(recording.ball_shown.sum()),
        "rows_with_car": recording.car_shown.sum(0).tolist(),
        "segments": len(lengths),
        "seconds": round(float(sum(lengths)), 3),
        "longest_seconds": round(float(max(lengths, default=0.0)), 3),
        "notes": recording.notes,
    }
    if isinstance(recording, MatchRecording):
        found |= {
            "score": state.score[-1].astype(int).tolist(),
            "playing_seconds": round(recording.played_ticks / TICKS_PER_SECOND, 3),
            "lost_ticks": recording.lost_ticks,
            "about": recording.about,
            "agents": [_agent(recording, one) for one in recording.agents.values()],
        }
    return found


def _agent(recording: MatchRecording, track: AgentTrack) -> dict[str, Any]:
    rewards = np.array([one.rewards.sum() for one in track.decisions], np.float64)
    rewarded = np.isfinite(rewards)
    return {
        "agent_id": track.agent_id,
        "cars": sorted({recording.state.agents[row] for row in track.inputs.row.tolist() if row >= 0}),
        "packets": len(track.frame),
        "missed": recording.missed(track),
        "inputs": len(track.inputs.frame),
        "decisions": sum(one.actions.shape[1] > 0 for one in track.decisions),
        "terminated": int(sum(one.terminated[0] > 0 for one in track.decisions)),
        "truncated": int(sum(one.truncated[0] > 0 for one in track.decisions)),
        "reward": round(float(rewards[rewarded].sum()), 3) if rewarded.any() else None,
        "policy": track.policy is not None,
    }


def _print(console: Console, recording: Recording, found: dict[str, Any]) -> None:
    table = shared.make_table("", "")
    blue, orange = found["team_sizes"]
    rows = "one row" if found["rows"] == 1 else f"{found['rows']:,} rows"
    ball = " and the ball" if found["rows_with_ball"] else ""
    table.add_row("holds", f"{blue} blue and {orange} orange cars{ball}, {rows}")
    segments = f"{found['segments']:,} segments, the longest {found['longest_seconds']:,.1f} s"
    within = "one segment" if found["segments"] == 1 else segments
    table.add_row("time", f"{found['seconds']:,.1f} s in {within}; clock: {found['clock']}")
    if recording.inputs is Inputs.NONE:
        table.add_row("inputs", "none")
    else:
        missing = sorted(
            {name for row in found["inputs_recorded"] for name in CONTROL_NAMES if name not in row}
        )
        table.add_row(
            "inputs", found["inputs"] + (f"; not recorded: {', '.join(missing)}" if missing else "")
        )
    if "score" in found:
        table.add_row("score", f"blue {found['score'][0]} : {found['score'][1]} orange")
        table.add_row(
            "play", f"{found['playing_seconds']:,.1f} s, {found['lost_ticks']:,} ticks not recorded"
        )
        for agent in sorted(found["agents"], key=lambda one: one["cars"]):
            reward = "" if agent["reward"] is None else f", reward {agent['reward']:+,.2f}"
            kind = "" if agent["policy"] else " (no policy folder)"
            came = count_of(agent["packets"], "packet")
            if agent["missed"]:
                came += f" ({agent['missed']:,} more did not reach it)"
            table.add_row(
                ", ".join(agent["cars"]) or "agent",
                f"{escape(agent['agent_id'])}{kind}: {came}, "
                f"{count_of(agent['inputs'], 'input')}, {count_of(agent['decisions'], 'decision')}{reward}",
            )
    console.print(table)
    for note in recording.notes:
        console.print(note, markup=False)
