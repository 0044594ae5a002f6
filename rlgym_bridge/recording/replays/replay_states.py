"""States of replays in which episodes may begin.

frames -> bodies brought to one moment -> states whose bodies are all known and in the field
"""

from collections import Counter
from typing import Final

import numpy as np

from rlgym_bridge import game
from rlgym_bridge.components.mutators import SETTLED, blank_state
from rlgym_bridge.recording.recording import BodyMotion, Recording, in_play, jumps
from rlgym_bridge.state import MatchState, derive

_MOST_AGE: Final = 8  # ticks, two frames: bodies that are further moved would miss a bounce
_SLACK_SECONDS: Final = 5 * game.TICK_SECONDS  # a body's state is up to 4 ticks older than its frame
_MOST_JUMPS: Final = 0.1  # share of a car's frames; real replays have less than 0.01
_FLAT: Final = 0.99  # upward part of a car's roof that stands on the floor: 8 degrees
_STANDS_BELOW: Final = 3.0  # uu above where a car of the hitbox stands still
_CORNER: Final = 8064.0  # uu, |x| + |y| of a corner's wall [RLBot wiki, useful game values]


def states_of_replay(recording: Recording, every: int) -> MatchState:
    """Return states of a replay, `every` ticks apart at least, in which all bodies are known.

    A frame shows some of the bodies; the others are taken from up to 8 ticks before and moved on by their
    velocity. What a replay does not tell is as in a fresh state: pads are all there, and a car in the air
    still has its dodge. Only moments are taken in which as many cars are there as most of the time. Raises
    ValueError if cars are not where their velocities take them, or there are too many.
    """
    _check_motion(recording)
    source, rows = recording.state, np.arange(len(recording.tick))
    blue = source.layout.blue
    present = recording.car_present
    sizes = np.stack((present[:, :blue].sum(1), present[:, blue:].sum(1)), -1)
    playing = in_play(source)
    counted = Counter(map(tuple, sizes[playing & sizes.any(1)].tolist()))
    if not counted:
        return MatchState(0, 0, 0)
    size = counted.most_common(1)[0][0]
    if max(size) > game.MOST_TEAM_SIZE:
        raise ValueError(
            f"{recording.source} is a match of {size[0]} against {size[1]}, expected "
            f"{game.MOST_TEAM_SIZE} cars a team at most"
        )
    ages = np.stack([recording.ages(shown) for shown in (recording.ball_shown, *recording.car_shown.T)])
    resting = [np.zeros(len(rows), bool)] * len(ages)
    resting[0] = ~source.ball_linear_velocity.any(1) & (source.ball_known > 0)
    for car in range(len(ages) - 1):
        resting[1 + car] = ~source.car_linear_velocity[:, car].any(1) & source.car_position[:, car].any(1)
    known = (ages <= _MOST_AGE) | np.stack(resting)
    known[1:] |= ~present.T
    fits = playing & (sizes == size).all(1) & known.all(0)
    chosen = _spaced(recording.tick, np.flatnonzero(fits), every)
    seconds = np.where(ages > _MOST_AGE, 0, ages)[:, chosen] * game.TICK_SECONDS
    made = _fill(source, present, chosen, seconds, (int(size[0]), int(size[1])))
    return made.select(_in_field(made))


def _check_motion(recording: Recording) -> None:
    """Raise ValueError where cars are not where their velocities take them."""
    state = recording.state
    for car, name in enumerate(state.agents):
        shown = recording.car_shown[:, car]
        motion = BodyMotion(state.car_position[:, car], state.car_linear_velocity[:, car], shown)
        off = jumps(recording.seconds, [motion], _SLACK_SECONDS).sum() / max(int(shown.sum()), 1)
        if off > _MOST_JUMPS:
            raise ValueError(
                f"{recording.source}: in {off:.0%} of its frames {name} is where its velocity cannot have "
                f"brought it, expected less than {_MOST_JUMPS:.0%}: episodes cannot begin in such states"
            )


def _spaced(tick: np.ndarray, rows: np.ndarray, every: int) -> np.ndarray:
    """Return those of some rows that lie `every` ticks or more apart."""
    kept: list[int] = []
    for row in rows.tolist():
        if not kept or not 0 <= tick[row] - tick[kept[-1]] < every:
            kept.append(row)
    return np.array(kept, int)


def _fill(
    source: MatchState, present: np.ndarray, rows: np.ndarray, seconds: np.ndarray, size: tuple[int, int]
) -> MatchState:
    """Return states of some rows, their bodies moved on by `(1 + cars, rows)` seconds."""
    made = blank_state(*size, len(rows))
    for name in ("position", "rotation", "linear_velocity", "angular_velocity"):
        getattr(made, f"ball_{name}")[:] = getattr(source, f"ball_{name}")[rows]
    made.ball_position[:] += made.ball_linear_velocity * seconds[0, :, None]
    made.phase[:] = source.phase[rows]
    # Cars of each row in their order: those who are there then, of all who ever were.
    cars = np.argsort(~present[rows], axis=1, kind="stable")[:, : sum(size)]
    cars = np.sort(cars, axis=1)
    at = rows[:, None], cars
    for name in ("position", "rotation", "linear_velocity", "angular_velocity", "boost_amount", "hitbox"):
        getattr(made, f"car_{name}")[:] = getattr(source, f"car_{name}")[at]
    ages = seconds[1:].T[np.arange(len(rows))[:, None], cars]
    made.car_position[:] += made.car_linear_velocity * ages[..., None]
    heights = SETTLED[made.car_hitbox.astype(int)][..., 0]
    stands = (made.car_rotation[..., 2, 2] > _FLAT) & (made.car_position[..., 2] < heights + _STANDS_BELOW)
    made.car_wheels_with_contact[:] = stands[..., None]
    speeds = np.linalg.norm(made.car_linear_velocity, axis=-1)
    made.car_supersonic_time[:] = (speeds >= game.SUPERSONIC_START_SPEED) * game.TICK_SECONDS
    derive(made)
    return made


def _in_field(state: MatchState) -> np.ndarray:
    """Return the states whose bodies are within the walls, `(matches,)` bool: moved on, one may be beyond."""
    inside: np.ndarray = np.isfinite(state.buffer).all(1)
    bodies = [(state.ball_position, game.BALL_RADIUS)]
    bodies += [(state.car_position[:, car], 0.0) for car in range(state.layout.cars)]
    for position, radius in bodies:
        x, y, z = position.T
        inside &= (np.abs(x) <= game.SIDE_WALL_X - radius) & (np.abs(y) <= game.BACK_WALL_Y - radius)
        inside &= np.abs(x) + np.abs(y) <= _CORNER - radius * np.sqrt(2)
        inside &= (z >= radius - 1) & (z <= game.CEILING_Z - radius)
    return inside
