"""Bring a bot of rlgym-ppo from a clean environment: `python -m tools.bring_a_bot`.

    wheel -> environment -> a checkpoint as rlgym-ppo writes one -> import -> parity -> match

Prints times and sizes. The environment has the wheel and what it needs: no torch and no rlgym-ppo. The bot
sees RLGym v1's AdvancedObs, and its weights are random.
"""

import json
from pathlib import Path

import torch
from torch import nn

from tests.support.foreign_checkpoints import save_ppo
from tools.clean_folder import CleanFolder, build_wheel, make_environment, print_figures

ADVANCED_OBS = 107  # numbers in 1v1


def bring_a_bot(folder: Path) -> dict[str, float]:
    """Do all of it in an empty folder; return seconds and megabytes by name."""
    clean = CleanFolder(folder)
    python = make_environment(clean, folder / "clean", str(build_wheel(clean)))
    clean.weigh("environment", folder / "clean")
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(ADVANCED_OBS, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 90),
        nn.Softmax(-1),
    )  # fmt: skip
    save_ppo(folder / "checkpoints" / "5000", model)
    program = python.with_name("rlgym-bridge")
    named = ("--obs", "rlgym_bridge:AdvancedObs", "--action-delay", "7", "--out", "my_policy")
    with clean.timed("import"):
        print(clean.run(program, "import", "checkpoints", *named))
    with clean.timed("parity"):
        print(clean.run(program, "parity", "--policy", "my_policy", "--ticks", "2000"))
    match = ("--blue", "my_policy", "--orange", "chaser", "--pace", "lockstep", "--json", "match.json")
    with clean.timed("match of 10 s"):
        print(clean.run(program, "match", *match, "--seconds", "10", "--max-overtime", "0"))
    bot = json.loads((folder / "match.json").read_text())["bots"][0]
    assert bot["name"] == "my_policy" and not bot["missed"] and not bot["faults"], bot
    return clean.figures


if __name__ == "__main__":
    print_figures(bring_a_bot)
