"""A bot process of ours that writes down what it saw and which calls its components got.

    python recording_bot.py POLICY LOG [calls]

POLICY is `chaser` or a policy folder. LOG.npz gets the frame and observation of every decision; with
`calls`, LOG.json gets every call of RLGym-style components.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.spec import Components
from rlgym_bridge.live.play import Agent
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.sim import state_estimator
from rlgym_bridge.sim.simulator import ROCKETSIM2
from rlgym_bridge.state import MatchState
from tests.support.call_log import CallLog, logged_components

FRAMES: list[int] = []
OBSERVATIONS: list[np.ndarray] = []


class RecordingObs(DefaultObs):
    """DefaultObs that keeps every observation, with the frame it was built on."""

    def build_batch(self, state: MatchState, seats: Any = None) -> np.ndarray:
        obs = super().build_batch(state, seats)
        FRAMES.append(int(state.frame[0]))
        OBSERVATIONS.append(obs[0].copy())
        return obs


def main() -> int:
    policy, log = sys.argv[1], Path(sys.argv[2])
    brain = load_player(policy)
    if sys.argv[3:] == ["calls"]:
        calls = CallLog()
        brain = replace(brain, components=lambda: logged_components(calls))
    else:
        parser = RepeatAction(LookupTableAction(), 8)
        brain = replace(brain, components=lambda: Components(RecordingObs(zero_padding=None), parser))
    agent = Agent(brain, seed=0)
    try:
        with patch.object(state_estimator, "DEFAULT_SIMULATOR", ROCKETSIM2):  # that of RLGym's engine
            return agent.run()
    finally:
        if sys.argv[3:] == ["calls"]:
            log.with_suffix(".json").write_text(json.dumps(calls.entries))
        else:
            np.savez(log.with_suffix(".npz"), frames=FRAMES, obs=np.array(OBSERVATIONS))
        if agent.report.faults.counts:
            print("faults:", agent.report.faults.counts)


if __name__ == "__main__":
    sys.exit(main())
