"""Stepping one arena tick by tick with rules of the game, against RocketSim alone.

Microseconds are of the processor, not of the clock, so that what else runs on the machine counts less.
"""

import random
import time
from typing import Any

from rlgym_bridge.sim.arena import make_arena, place_cars
from rlgym_bridge.sim.arena_reader import control_of
from rlgym_bridge.sim.game_rules import parse_rules
from rlgym_bridge.sim.ruled_arena import RuledArena
from tests.benchmarks.runner import compared

_TICKS, _HELD = 2400, 8


def rule_tick(rules: str, team_size: int, rounds: int) -> dict[str, Any]:
    """Return microseconds of a tick with rules, as `parse_rules` reads them, and of RocketSim alone."""
    values, peers = [], []
    for seed in range(rounds):
        values.append(_tick(rules, team_size, seed))
        peers.append(_tick("rocketsim", team_size, seed))
    return compared(values, peers, "us/tick", "RocketSim alone", less_is_better=True)


def _tick(rules: str, team_size: int, seed: int) -> float:
    teams = [0] * team_size + [1] * team_size
    arena, _ = make_arena(teams)
    arena.reset_kickoff(seed)
    cars = place_cars(arena, teams)
    world, dice = RuledArena(arena, cars, parse_rules(rules)), random.Random(seed)
    spent = 0.0
    for _ in range(_TICKS // _HELD):
        for car in cars:
            jump = dice.random() < 0.1
            car.set_controls(control_of([1, dice.uniform(-1, 1), dice.uniform(-1, 1), 0, 0, jump, 1, 0]))
        began = time.process_time()
        world.step(_HELD)
        spent += time.process_time() - began
    return 1e6 * spent / _TICKS
