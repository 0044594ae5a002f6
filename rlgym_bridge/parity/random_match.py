"""Play a match of random actions, in which the ball is shot about, for both worlds to see."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from rlbot import flat

from rlgym_bridge.components.actions import action_space
from rlgym_bridge.components.spec import Components
from rlgym_bridge.game import HITBOX_OF_BODY, TICKS_PER_SECOND
from rlgym_bridge.server.game.match_physics import Physics
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.state import MatchState

_ENDLESS: Final = 1e6  # s


def begin(team_sizes: tuple[int, int], seed: int, hitbox: int) -> Match:
    """Return an endless match without replays; `team_sizes` are cars of blue and orange."""
    bodies = {box: body for body, box in HITBOX_OF_BODY.items()}
    players = [
        flat.PlayerConfiguration(
            flat.CustomBot(
                f"{car}", agent_id=f"parity/{car}", loadout=flat.PlayerLoadout(car_id=bodies[hitbox])
            ),
            int(car >= team_sizes[0]),
        )
        for car in range(sum(team_sizes))
    ]
    cars = seat_players(flat.MatchConfiguration(player_configurations=players)).cars
    course = Course(regulation=_ENDLESS, skip_replays=True)
    return Match(cars, course=course, physics=Physics(), seed=seed)


def shot(random: np.random.Generator) -> flat.DesiredGameState:
    """Return a ball somewhere in the air, on its way."""
    x, y, z = random.uniform((-2500, -3500, 300), (2500, 3500, 1200)).tolist()
    fast = flat.Vector3Partial(*random.uniform(-1500, 1500, 3).tolist())
    return flat.DesiredGameState(
        [flat.DesiredBallState(flat.DesiredPhysics(flat.Vector3Partial(x, y, z), None, fast))]
    )


def read(match: Match) -> MatchState:
    """Return the state as the simulator has it, without touches: the caller adds up those of all ticks."""
    state = match.simulation.state.copy()
    state.car_ball_touches[:] = 0
    referee = match.referee
    state.frame[0], state.phase[0] = match.frame, referee.phase
    state.clock[0], state.overtime[0], state.score[0] = (
        referee.clock / TICKS_PER_SECOND,
        referee.overtime,
        referee.score,
    )
    return state


def draw(parts: Components, seed: int, agents: Sequence[str]) -> Iterator[np.ndarray]:
    """Yield random actions `(1, cars)` or `(1, cars, k)`, each held for up to 11 decisions.

    Whole numbers for a choice, float32 in -1..1 for controls.
    """
    random = np.random.default_rng(seed)
    distribution, sizes = action_space(parts.parser.get_action_space(agents[0]))
    cars = len(agents)
    while True:
        if distribution == "categorical":
            drawn = random.integers(sizes[0], size=(1, cars))
        elif distribution == "multi_categorical":
            drawn = random.integers(np.array(sizes), size=(1, cars, len(sizes)))
        else:
            drawn = random.uniform(-1, 1, size=(1, cars, sizes[0])).astype(np.float32)
        for _ in range(int(random.integers(1, 12))):
            yield drawn
