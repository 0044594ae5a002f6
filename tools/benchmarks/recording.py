"""`python -m tools.benchmarks.recording`: what recording costs the thread that plays, the disk and the CPU.

With `match [SECONDS]` after it: the same of whole matches, played in real time without and with a recording.

A bot's packets come 120 times a second, as in a match in real time, and are written down as the agent does
it: every packet, every input, every eighth tick a decision. Nothing else runs in the process but the writer.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rlbot import flat

from rlgym_bridge.cli import main as bridge
from rlgym_bridge.components.episode import Episode
from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.live.agent_recorder import AgentRecorder
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.recording.mcap.channels import PACKETS
from rlgym_bridge.recording.mcap.drawable import state_message
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.mcap.mcap_reader import read_contents
from rlgym_bridge.recording.mcap.mcap_writer import Recorder
from rlgym_bridge.state import MatchState
from tests.support.processes import run_to_end

_TICK_SKIP = 8


def measure(team_size: int, seconds: float) -> dict[str, float]:
    """Return what recording adds: microseconds of a tick, megabytes of a minute, percent of one CPU."""
    with tempfile.TemporaryDirectory() as folder:
        played = Path(folder) / "played.mcap"
        words = ["--blue", *["chaser"] * team_size, "--orange", *["chaser"] * team_size, "--seconds", "15"]
        bridge(["match", *words, "--max-overtime", "0", "--pace", "lockstep", "-q", "--record", str(played)])
        packets = [one.content for one in read_contents(played).topics[PACKETS]]
        states = read_match(played, shadow=False).state
        episode = Episode(load_player("bot/policy")) if team_size == 1 else None
        row = np.array([1, 0.5, 0, 0, 0, 0, 1, 0], np.float32)
        target = Path(folder) / "recorded.mcap"
        decoder = Decoder(flat.FieldInfo(), None, shadow=False)
        recorder = Recorder(target, prepare=state_message)
        recorder = AgentRecorder(recorder, "benchmark")
        costs, cpu = [], time.process_time()
        spent_here = 0.0
        due = time.perf_counter()
        for tick in range(int(seconds * TICKS_PER_SECOND)):
            due += 1 / TICKS_PER_SECOND
            if episode is not None and tick % _TICK_SKIP == 0:
                one = MatchState(1, 1, 1, states.buffer[tick % len(packets)][None].copy())
                began = time.process_time()
                if tick == 0:
                    episode.reset(one, [0], 0)
                episode.step(one)
                episode.decide(one)
                spent_here += time.process_time() - began
            number = tick % len(packets)
            began = time.process_time()
            content = flat.CorePacket.unpack(packets[number]).message  # as the bot does, before it answers
            decoder.update(content)
            spent_here += time.process_time() - began
            start = time.perf_counter()
            recorder.record_message(content, packets[number])
            recorder.record_input(tick, 0, row)
            if episode is not None and tick % _TICK_SKIP == 0:
                recorder.record_decision(tick, [0], episode, True)
            costs.append(time.perf_counter() - start)
            time.sleep(max(0.0, due - time.perf_counter()))
        used = time.process_time() - cpu - spent_here
        recorder.close()
        p50, p99 = np.percentile(costs, [50, 99]) * 1e6
        size = target.stat().st_size / 1e6
    return {
        "p50_us": round(float(p50), 1),
        "p99_us": round(float(p99), 1),
        "megabytes_a_minute": round(size * 60 / seconds, 2),
        "cpu_percent": round(100 * used / seconds, 1),
    }


def whole_match(seconds: float, record: Path | None) -> dict[str, Any]:
    """Play a match in real time; return replies in ms, percent of one CPU, late ticks, size in MB."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "match.json"
        words = ["match", "--blue", "bot/policy", "--orange", "chaser", "--seconds", str(seconds)]
        words += ["--max-overtime", "0", "-q", "--json", str(told)]
        words += ["--record", str(record)] if record else []
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run_to_end([sys.executable, "-m", "rlgym_bridge.cli", *words], check=True, seconds=2 * seconds + 120)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        match = json.loads(told.read_text())
    found = {bot["name"]: bot["reply_ms"] for bot in match["bots"]}
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found |= {"cpu_percent": round(100 * used / match["seconds"], 1), "server_late": match["server_late"]}
    if record:
        found["megabytes_a_minute"] = round(record.stat().st_size / 1e6 * 60 / match["seconds"], 2)
    return found


def main() -> None:
    """Measure packets alone, or whole matches in turns."""
    if sys.argv[1:2] != ["match"]:
        found = {f"{size}v{size}": measure(size, float((sys.argv[1:] or ["60"])[0])) for size in (1, 3)}
        print(json.dumps(found, indent=1))
        return
    seconds = float((sys.argv[2:] or ["300"])[0])
    with tempfile.TemporaryDirectory() as folder:
        for record in (None, Path(folder) / "match.mcap"):
            print(json.dumps({"recorded": record is not None} | whole_match(seconds, record), indent=1))


if __name__ == "__main__":
    main()
