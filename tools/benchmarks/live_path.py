"""From a packet's bytes to control rows: ours against rlgym-compat with RLGym's own components."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from rlbot import flat
from rlgym.rocket_league.action_parsers import LookupTableAction as PeerLookup
from rlgym.rocket_league.action_parsers import RepeatAction as PeerRepeat
from rlgym.rocket_league.obs_builders import DefaultObs as PeerObs
from rlgym_compat import GameState as PeerState
from rlgym_compat.sim_extra_info import SimExtraInfo

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.server.game.packer import field_info
from tests.parity.world import drive, make_match
from tools.benchmarks.runner import compared

_PACKETS = 2000
_CONFIG = flat.MatchConfiguration(mutators=flat.MutatorSettings())


Choose = Callable[[np.ndarray], np.ndarray]
"""Observations (1, size) float32 to one action (1,)."""


def live_vs_compat(team_size: int, rounds: int, shadow: bool = False) -> dict[str, Any]:
    """Time both paths on the same packets, every one a decision of one car, with equal weights.

    The peer's users run their networks in torch; `ratio_equal_network` gives the peer our numpy network.

    Args:
        team_size: Cars a team.
        rounds: Measured in turns; the medians are given.
        shadow: Our state estimator against the peer's `SimExtraInfo`, in place of counting alone.
    """
    torch.set_num_threads(1)
    packets = record_packets(team_size)
    weights = draw_weights(DefaultObs(zero_padding=None).size(team_size, team_size))
    network = NetworkPolicy(weights, "categorical", (90,), "argmax")
    network.reset([0])
    in_torch, in_numpy = _torch_choice(weights), lambda obs: network.act(obs[None], None)[0]
    ours, theirs, equal = [], [], []
    for _ in range(rounds):
        ours.append(time_ours(packets, network, shadow))
        theirs.append(_peers(packets, in_torch, shadow))
        equal.append(_peers(packets, in_numpy, shadow))
    peer = f"rlgym-compat 2.3.6{' with SimExtraInfo' * shadow}, RLGym's DefaultObs and parser, torch"
    ours, theirs, equal = ([1e6 * one for one in side] for side in (ours, theirs, equal))
    found = compared(ours, theirs, "us a packet, bytes to controls", peer, less_is_better=True)
    return found | {"ratio_equal_network": statistics.median(equal) / found["value"]}


def record_packets(team_size: int) -> list[bytes]:
    """Return the packets of a match with the default rules, as a client receives them."""
    match = make_match(team_size, seed=0, seconds=1e6, thrust=True)
    packets = []
    for packet in drive(match, seed=0):
        packets.append(flat.CorePacket(packet).pack())
        if len(packets) >= _PACKETS:
            break
    return packets


def draw_weights(size: int) -> dict[str, np.ndarray]:
    """Return weights of two layers of 256, for observations of `size` numbers and 90 actions."""
    rng = np.random.default_rng(0)
    weights = {}
    for i, (inputs, outputs) in enumerate(((size, 256), (256, 256), (256, 90))):
        weights[f"layers.{i}.weight"] = rng.normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)
        weights[f"layers.{i}.bias"] = np.zeros(outputs, np.float32)
    return weights


def _torch_choice(weights: dict[str, np.ndarray]) -> Choose:
    layers: list[torch.nn.Module] = []
    for i in range(len(weights) // 2):
        outputs, inputs = weights[f"layers.{i}.weight"].shape
        layer = torch.nn.Linear(inputs, outputs)
        layer.load_state_dict(
            {part: torch.from_numpy(weights[f"layers.{i}.{part}"]) for part in ("weight", "bias")}
        )
        layers += [layer, torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers[:-1])

    def choose(obs: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return network(torch.from_numpy(obs)).argmax(-1).numpy()

    return choose


def time_ours(packets: list[bytes], network: NetworkPolicy, shadow: bool) -> float:
    """Return the mean seconds from a packet\'s bytes to control rows."""
    decoder, obs = Decoder(field_info(), _CONFIG, shadow), DefaultObs(zero_padding=None)
    parser = RepeatAction(LookupTableAction(), 8)
    began = time.perf_counter()
    for data in packets:
        state = decoder.update(flat.CorePacket.unpack(data).message)
        parser.parse_batch(network.act(obs.build_batch(state, (0,)), state))
        decoder.clear_touches()
    return (time.perf_counter() - began) / len(packets)


def _peers(packets: list[bytes], choose: Choose, simulates: bool) -> float:
    info = SimExtraInfo(field_info(), _CONFIG) if simulates else None
    game = PeerState.create_compat_game_state(field_info(), _CONFIG)
    obs, parser = PeerObs(zero_padding=None), PeerRepeat(PeerLookup(), 8)
    agent = None
    began = time.perf_counter()
    for data in packets:
        packet = flat.CorePacket.unpack(data).message
        game.update(packet, info.get_extra_info(packet) if info is not None else None)
        if agent is None:
            agent = next(iter(game.cars))
        seen = obs.build_obs([agent], game, {})[agent].astype(np.float32)
        parser.parse_actions({agent: choose(seen[None])}, game, {})
        game.reset_car_ball_touches()
    return (time.perf_counter() - began) / len(packets)
