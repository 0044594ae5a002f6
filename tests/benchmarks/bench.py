"""Every benchmark: `python -m tests.benchmarks.bench [NAME...]` writes `benchmarks.json`.

A list of `{name, value, unit, peer, peer_value, ratio}`; value and peer are measured in turns in one run,
and the medians given. `ratio` above 1 means faster than the peer. One whose peer cannot be had is left out.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.env import env_vs
from tests.benchmarks.live_engine import live_engine
from tests.benchmarks.live_path import live_vs_compat
from tests.benchmarks.lockstep import server_lockstep
from tests.benchmarks.ppo import Skipped, ppo_vs_rlgym_learn
from tests.benchmarks.rllib import rllib_growth, rllib_vs_local, rllib_vs_rlgym

_ROUNDS = 5

BENCHMARKS: dict[str, Callable[[], dict[str, Any]]] = {
    "live_vs_compat_1v1": lambda: live_vs_compat(1, _ROUNDS),
    "live_vs_compat_3v3": lambda: live_vs_compat(3, _ROUNDS),
    "live_shadow_vs_compat_1v1": lambda: live_vs_compat(1, _ROUNDS, shadow=True),
    "server_lockstep_1v1": lambda: server_lockstep(1, _ROUNDS),
    "server_lockstep_3v3": lambda: server_lockstep(3, 3),
    "live_engine_1v1": lambda: live_engine(_ROUNDS),
    "env_vs_raw_1v1": lambda: env_vs("raw", 1, _ROUNDS),
    "env_vs_raw_3v3": lambda: env_vs("raw", 3, _ROUNDS),
    "env_vs_rlgym_1v1": lambda: env_vs("rlgym", 1, _ROUNDS),
    "env_vs_rlgym_3v3": lambda: env_vs("rlgym", 3, _ROUNDS),
    "ppo_vs_rlgym_learn_1v1": lambda: ppo_vs_rlgym_learn(_ROUNDS),
    "rllib_vs_local_1v1": lambda: rllib_vs_local(3),
    "rllib_vs_rlgym_1v1": lambda: rllib_vs_rlgym(3),
    "rllib_2_runners_vs_1": lambda: rllib_growth(3),
}


def main() -> int:
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
        return 2
    results = []
    for name in names:
        began = time.perf_counter()
        try:
            result = {"name": name, **BENCHMARKS[name]()}
        except Skipped as why:
            print(f"{name}: skipped. {why}", flush=True)
            continue
        results.append(result)
        print(
            f"{name}: {result['value']:,.1f} {result['unit']} against {result['peer_value']:,.1f} "
            f"({result['peer']}): ratio {result['ratio']:.2f}   [{time.perf_counter() - began:.0f} s]",
            flush=True,
        )
    Path("benchmarks.json").write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
