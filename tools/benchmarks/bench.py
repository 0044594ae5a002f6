"""Every benchmark: `python -m tools.benchmarks.bench [NAME...]` writes `benchmarks.json`.

A list of `{name, value, unit, peer, peer_value, ratio}`; value and peer are measured in turns in one run,
and the medians given. `ratio` above 1 means faster than the peer. One whose peer cannot be had is left out.
One that fails or takes longer than it may is named with its error, the others go on, and the exit code is 1.
"""

import sys
from pathlib import Path

from rlgym_bridge.sim.simulator import ROCKETSIM3
from tools.benchmarks.env import (
    env_vs,
    mixed_vs_rlgym,
    module_vs,
    training_compiled,
    training_vs_rocketsim2,
    two_threads,
)
from tools.benchmarks.live_engine import live_engine
from tools.benchmarks.live_path import live_vs_compat
from tools.benchmarks.lockstep import server_lockstep
from tools.benchmarks.ppo import ppo_vs_rlgym_learn
from tools.benchmarks.rllib import rllib_growth, rllib_vs_local, rllib_vs_rlgym
from tools.benchmarks.runner import Benchmark, run_all

_ROUNDS = 5
_LONG = 3600.0  # s, of those that train
_LONGEST = 7200.0  # and install their peer, the first time

BENCHMARKS: dict[str, Benchmark] = {
    "live_vs_compat_1v1": Benchmark(lambda: live_vs_compat(1, _ROUNDS)),
    "live_vs_compat_3v3": Benchmark(lambda: live_vs_compat(3, _ROUNDS)),
    "live_shadow_vs_compat_1v1": Benchmark(lambda: live_vs_compat(1, _ROUNDS, shadow=True)),
    "server_lockstep_1v1": Benchmark(lambda: server_lockstep(1, _ROUNDS)),
    "server_lockstep_3v3": Benchmark(lambda: server_lockstep(3, 3)),
    "live_engine_1v1": Benchmark(lambda: live_engine(_ROUNDS)),
    "env_vs_raw_1v1": Benchmark(lambda: env_vs("raw", 1, _ROUNDS)),
    "env_vs_raw_3v3": Benchmark(lambda: env_vs("raw", 3, _ROUNDS)),
    "env_vs_rlgym_1v1": Benchmark(lambda: env_vs("rlgym", 1, _ROUNDS)),
    "env_vs_rlgym_3v3": Benchmark(lambda: env_vs("rlgym", 3, _ROUNDS)),
    "env_mixed_vs_rlgym_1v1": Benchmark(lambda: mixed_vs_rlgym(1, _ROUNDS)),
    "env_mixed_vs_rlgym_3v3": Benchmark(lambda: mixed_vs_rlgym(3, _ROUNDS)),
    "rocketsim3_env_mixed_vs_rlgym_1v1": Benchmark(lambda: mixed_vs_rlgym(1, _ROUNDS, simulator=ROCKETSIM3)),
    "rocketsim3_vs_rocketsim2_1v1": Benchmark(lambda: module_vs(1, _ROUNDS)),
    "rocketsim3_vs_rocketsim2_3v3": Benchmark(lambda: module_vs(3, _ROUNDS)),
    "rocketsim3_vs_rocketsim2_random_1v1": Benchmark(lambda: module_vs(1, _ROUNDS, is_held=False)),
    "rocketsim3_vs_rocketsim2_random_3v3": Benchmark(lambda: module_vs(3, _ROUNDS, is_held=False)),
    "rocketsim3_2_threads_1v1": Benchmark(lambda: two_threads(1, _ROUNDS)),
    "rocketsim3_2_threads_3v3": Benchmark(lambda: two_threads(3, _ROUNDS)),
    "rocketsim3_env_vs_raw_1v1": Benchmark(lambda: env_vs("raw", 1, _ROUNDS, simulator=ROCKETSIM3)),
    "rocketsim3_env_vs_raw_3v3": Benchmark(lambda: env_vs("raw", 3, _ROUNDS, simulator=ROCKETSIM3)),
    "rocketsim3_env_vs_rlgym_1v1": Benchmark(lambda: env_vs("rlgym", 1, _ROUNDS, simulator=ROCKETSIM3)),
    "rocketsim3_env_vs_rlgym_3v3": Benchmark(lambda: env_vs("rlgym", 3, _ROUNDS, simulator=ROCKETSIM3)),
    "rocketsim3_training_env_vs_rocketsim2_1v1": Benchmark(lambda: training_vs_rocketsim2(1, _ROUNDS)),
    "rocketsim3_training_env_vs_rocketsim2_3v3": Benchmark(lambda: training_vs_rocketsim2(3, _ROUNDS)),
    "training_env_compiled_vs_numpy_1v1": Benchmark(lambda: training_compiled(1, _ROUNDS)),
    "training_env_compiled_vs_numpy_3v3": Benchmark(lambda: training_compiled(3, _ROUNDS)),
    "ppo_vs_rlgym_learn_1v1": Benchmark(lambda: ppo_vs_rlgym_learn(_ROUNDS), _LONGEST),
    "rllib_vs_local_1v1": Benchmark(lambda: rllib_vs_local(3), _LONG),
    "rllib_vs_rlgym_1v1": Benchmark(lambda: rllib_vs_rlgym(3), _LONG),
    "rllib_2_runners_vs_1": Benchmark(lambda: rllib_growth(3), _LONG),
}

if __name__ == "__main__":
    sys.exit(run_all("tools.benchmarks.bench", sys.argv[1:], Path("benchmarks.json")))
