"""Bots as other trainers save them; their environments are in `foreign_env.py`."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

OUTPUTS = {"discrete": 90, "wrapped": 90, "continuous": 16, "buttons": 21}
OBS = 92


def network(outputs: int, *layers: int) -> nn.Sequential:
    """rlgym-ppo's: linear layers with ReLU between them, and one more activation where it has one."""
    torch.manual_seed(outputs)
    widths = [OBS, *(layers or (64, 32)), outputs]
    parts: list[nn.Module] = []
    for inputs, size in pairwise(widths):
        parts += [nn.Linear(inputs, size), nn.ReLU()]
    ends = {90: nn.Softmax(dim=-1), 16: nn.Tanh()}
    return nn.Sequential(*parts[:-1], *([ends[outputs]] if outputs in ends else []))


def save_ppo(folder: Path, model: nn.Sequential, stats: dict[str, Any] | None = None) -> Path:
    """Write what rlgym-ppo's `Learner.save` writes of a policy."""
    folder.mkdir(parents=True)
    holder = nn.Module()
    holder.model = model
    torch.save(holder.state_dict(), folder / "PPO_POLICY.pt")
    books = {"cumulative_timesteps": 5000} | ({} if stats is None else {"obs_running_stats": stats})
    (folder / "BOOK_KEEPING_VARS.json").write_text(json.dumps(books))
    return folder


def libtorch_archive(model: nn.Sequential) -> torch.jit.ScriptModule:
    """Write what `torch::save` of a Sequential does: modules with tensors, and no methods."""

    class Module(nn.Module):
        pass

    whole = Module()
    for name, part in model.named_children():
        one = Module()
        for what, tensor in part.named_parameters():
            one.register_parameter(what, nn.Parameter(tensor))
        whole.add_module(name, one)
    return torch.jit.script(whole)
