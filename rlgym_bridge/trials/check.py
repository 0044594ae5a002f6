"""Check whether a bot sees and does the same in the simulator and in a match.

    match in RocketSim -+-> state -------------------> builder -> observation \
                        |                                                      compared, number by number
                        +-> packet -> bytes -> decoder -> builder -> observation /

    parser -> rows -+-> RocketSim's controls \
                    +-> RLBot's input          compared

Both sides have components of their own, called in RLGym's order.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from rlbot import flat

from rlgym_bridge.components.spec import Components
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.game import CONTROL_NAMES, PLAYING_PHASES
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.packets.inputs import player_input
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.sim.arena_reader import control_of
from rlgym_bridge.state import MatchState, layout_of
from rlgym_bridge.trials import random_match
from rlgym_bridge.trials.mismatches import TOLERANCE, Parity
from rlgym_bridge.trials.observation_check import (
    NumberNames,
    SymmetryCheck,
    WorldSide,
    compare_observations,
    round_as_seen,
)  # fmt: skip

_KICK_EVERY: Final = 400  # ticks between two shots of the ball: who acts at random hardly touches it


def compare(
    components: Callable[[], Components],
    team_sizes: tuple[int, int] = (1, 1),
    ticks: int = 6000,
    seed: int = 0,
    *,
    tick_skip: int | None = None,
    hitbox: int = 0,
) -> Parity:
    """Play a match of random actions and compare what the components make of it in both worlds.

    Args:
        components: Makes builder, parser and shared info; called for each side.
        team_sizes: Cars of blue and orange.
        ticks: Of play.
        seed: Of match and actions.
        tick_skip: Ticks that an action has to last; None: as many as the parser says.
        hitbox: Of all cars, `game.HITBOXES`.

    Raises:
        ValueError: There is no builder, or it refuses the match.
    """
    match = random_match.begin(team_sizes, seed, hitbox)
    parity = Parity()
    sim, live = WorldSide(components()), WorldSide(components())
    decoder = Decoder(field_info(), flat.MatchConfiguration(mutators=flat.MutatorSettings()))
    actions = random_match.draw(sim.parts, seed, layout_of(*team_sizes).agents)
    names = NumberNames(components)
    symmetry = SymmetryCheck(parity, components, names)
    random = np.random.default_rng((seed, 1))
    plan: list[np.ndarray] = []
    touches = np.zeros(sum(team_sizes))  # since the last decision
    last_phase, played, due, first = -1, 0, 0, 0
    while played < ticks:
        packet = flat.CorePacket.unpack(flat.CorePacket(match.packet()).pack()).message
        assert isinstance(packet, flat.GamePacket)  # what was packed
        seen = decoder.update(packet)
        phase = match.referee.phase
        if phase in PLAYING_PHASES:
            played += 1
            for car in match.simulation.events.touches:
                touches[car] += 1
            began = last_phase not in PLAYING_PHASES
            if began or played >= due:
                state = random_match.read(match)
                state.car_ball_touches[0] = touches
                touches[:] = 0
                round_as_seen(state, seen)
                plan = _decide(parity, names, sim, live, state, seen, began, next(actions))
                symmetry.look(state)
                due, first = played + _lasts(parity, plan, tick_skip), played
                decoder.clear_touches()
            for car, row in enumerate(plan):
                own = row[min(played - first, len(row) - 1)].tolist()
                match.hold(car, player_input(car, own).controller_state)
            if played % _KICK_EVERY == 1:
                match.set_state(random_match.shot(random))
        last_phase = phase
        match.advance()
    return parity


def _decide(
    parity: Parity, names: NumberNames, sim: WorldSide, live: WorldSide, state: MatchState, seen: MatchState,
    began: bool, action: np.ndarray,
) -> list[np.ndarray]:  # fmt: skip
    """Compare what both worlds make of one decision; return the simulator's rows, `(ticks, 8)` a car."""
    ours, theirs = sim.observe(state, began), live.observe(seen, began)
    if (seen.car_known < 1).any():
        parity.unknown += 1
    else:
        parity.compared += 1
        compare_observations(parity, names, ours, theirs, state, seen)
    rows = []
    for side in (sim, live):
        name = type(side.parts.parser).__name__
        rows.append([checked_rows(given, 1, name) for given in side.parse(action)])
    for into_sim, into_match in zip(*rows, strict=True):
        _compare_rows(parity, into_sim, into_match)
    return rows[0]


def _compare_rows(parity: Parity, into_sim: np.ndarray, into_match: np.ndarray) -> None:
    """Compare one car's rows `(ticks, 8)`, as RocketSim and RLBot hold them."""
    parity.samples += 1
    parity.numbers += into_sim.size
    if len(into_sim) != len(into_match):
        parity.note("control rows: number of ticks", abs(len(into_sim) - len(into_match)))
    for sim_row, match_row in zip(into_sim.tolist(), into_match.tolist(), strict=False):
        controls, held = control_of(sim_row), player_input(0, match_row).controller_state
        for name in CONTROL_NAMES:
            difference = abs(float(getattr(controls, name)) - float(getattr(held, name)))
            if difference > TOLERANCE:
                parity.note(f"control {name}", difference)
        for name, expected in zip(CONTROL_NAMES, match_row, strict=True):
            difference = abs(float(getattr(held, name)) - expected)
            if difference > TOLERANCE:
                parity.note(f"control {name} of the input", difference)


def _lasts(parity: Parity, rows: Sequence[np.ndarray], tick_skip: int | None) -> int:
    """Return the ticks that actions last, and note where they are not as expected."""
    lasts = max(map(len, rows))
    if tick_skip is not None and lasts > 1 and lasts != tick_skip:
        parity.note(f"tick skip: the parser gives {lasts} rows, expected {tick_skip}", abs(lasts - tick_skip))
    return tick_skip if lasts == 1 and tick_skip is not None else lasts
