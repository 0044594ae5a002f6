"""Mutators that begin episodes with a task: a save, a shot, an aerial ball, a dribble, a wall, a recovery.

Each is described for a team whose own goal lies at -y, and mirrored for the other one.
"""

import math
from typing import Final

import numpy as np

from rlgym_bridge import game
from rlgym_bridge.components import mutators
from rlgym_bridge.components.mutator_base import BatchMutator, rest_ball
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.arguments import check_number

At = tuple[np.ndarray, np.ndarray]
"""One car of some matches, `(n,)` each: numbers of the matches, and of their cars."""

OTHERS_CLEAR: Final = 1200.0  # uu from the acting car and from the ball to all others, seen from above
_OTHERS_SPEED: Final = 1400.0  # uu/s, the speed that throttle alone reaches


class SkillMutator(BatchMutator):
    """An initial state with something to do for one car of each match, the acting one.

    The acting car is drawn: both teams have it equally often, and so have all cars of a team. All other cars
    drive on the ground, out of its way. All pads are there.

    Args:
        seed: Of the generator that RLGym's form draws from.
    """

    def apply_batch(self, state: MatchState, rng: np.random.Generator) -> None:
        """Fill all matches of `state`."""
        layout = state.layout
        teams = np.array([team for team, cars in enumerate((layout.blue, layout.orange)) if cars], np.intp)
        if not len(teams):
            return
        orange = rng.choice(teams, state.matches)
        acting = rng.integers(np.where(orange, layout.orange, layout.blue)) + orange * layout.blue
        self.begin(state, acting, rng)

    def begin(self, state: MatchState, acting: np.ndarray, rng: np.random.Generator) -> None:
        """Fill all matches of a blank `state`; `acting` `(matches,)` int are the acting cars."""
        rest_ball(state)
        state.phase[:] = game.Phase.ACTIVE
        state.pad_timer[:] = 0
        at = np.arange(state.matches), acting
        placed = np.zeros((state.matches, state.layout.cars), bool)
        placed[at] = True
        bounds = self._fill(state, at, placed, rng)
        _place_others(state, placed, bounds, rng)
        turn_field(state, np.flatnonzero(acting >= state.layout.blue))

    def _fill(self, state: MatchState, at: At, placed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Set ball and acting cars `at`, whose own goal is at -y, in matches with a resting ball.

        Return `(2, matches)` uu: least and largest y of all other cars. `placed` `(matches, cars)` bool are
        the cars that are set; one more that is set here is marked in it.
        """
        raise NotImplementedError


def turn_field(state: MatchState, matches: np.ndarray) -> None:
    """Turn ball and cars of some matches, `(n,)` int, by 180 degrees about the field's centre."""
    for who in ("ball", "car"):
        for name in ("position", "linear_velocity", "angular_velocity"):
            getattr(state, f"{who}_{name}")[matches] *= mutators.TURN
        getattr(state, f"{who}_rotation")[matches] *= mutators.TURN[:, None]


def stand_cars(
    state: MatchState, at: At, place: np.ndarray, yaw: np.ndarray, speed: np.ndarray, boost: np.ndarray
) -> None:
    """Put n cars on their wheels at `place` `(n, 2)` uu, driving forwards; rad, uu/s, boost 0..100."""
    height, _, pitch = mutators.SETTLED[state.car_hitbox[at].astype(np.intp)].T
    state.car_position[at] = np.column_stack((place, height))
    state.car_rotation[at] = mutators.make_rotations(pitch, yaw)
    state.car_linear_velocity[at] = heading(yaw) * speed[:, None]
    state.car_supersonic_time[at] = (speed >= game.SUPERSONIC_START_SPEED) * game.TICK_SECONDS
    state.car_wheels_with_contact[at] = 1
    state.car_boost_amount[at] = boost


def heading(yaw: np.ndarray) -> np.ndarray:
    """Return level unit vectors `(n, 3)` of bearings in rad, `(n,)`."""
    return np.column_stack((np.cos(yaw), np.sin(yaw), np.zeros_like(yaw)))


def bearing(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the bearing in rad, `(n,)`, from places to others, `(n, 2)` or more coordinates each."""
    return np.asarray(np.arctan2(end[:, 1] - start[:, 1], end[:, 0] - start[:, 0]))


def draw_bearings(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return bearings in rad, `(count,)`, evenly spread over all."""
    return rng.uniform(-math.pi, math.pi, count)


def _place_others(
    state: MatchState, placed: np.ndarray, bounds: np.ndarray, rng: np.random.Generator
) -> None:
    """Put the cars that are not placed on the ground, clear of the others and of the ball."""
    important = placed.copy()  # what the others keep away from by more than their size
    ball = state.ball_position[:, :2]
    for car in range(placed.shape[1]):
        missing = np.flatnonzero(~placed[:, car])
        while len(missing):
            low, high = np.clip(bounds[:, missing], -mutators.FLAT_Y, mutators.FLAT_Y)
            x, y = rng.uniform(-mutators.FLAT_X, mutators.FLAT_X, len(missing)), rng.uniform(low, high)
            place = np.column_stack((x, y))
            gaps = np.linalg.norm(state.car_position[missing, :, :2] - place[:, None], axis=-1)
            least = np.where(important[missing], OTHERS_CLEAR, mutators.APART) * placed[missing]
            bad = (np.abs(x) + np.abs(y) > mutators.FLAT_CORNER) | (gaps < least).any(1)
            bad |= np.linalg.norm(ball[missing] - place, axis=-1) < OTHERS_CLEAR
            good = missing[~bad]
            at = good, np.full(len(good), car)
            stand_cars(
                state, at, place[~bad], draw_bearings(len(good), rng),
                rng.uniform(0, _OTHERS_SPEED, len(good)), rng.uniform(0, 100, len(good)),
            )  # fmt: skip
            placed[good, car] = True
            missing = missing[bad]


_BALL_DECAY: Final = -math.log(1 - 0.03)  # 1/s: the ball loses 3 % of its velocity in a second [RS]
_ROLL_LOSS: Final = 230.0  # uu/s^2 that the floor takes off a ball that slides [measured, RS]
_FULL_BOOST: Final = 100.0
_BOX_MARGIN: Final = 3.0  # uu above the game's box, of which RocketSim's reaches 1.25
_ROOFS: Final = np.array([(box.offset_x, box.offset_z + box.height / 2) for box in game.HITBOXES])
_MOST_AERIAL: Final = 1100.0  # uu: a ball that begins 450 above it and rises by 377 stays below the ceiling
_BOOST_PUSH: Final = 1000.0  # uu/s^2, of boost and throttle in the air together: 1,058 [RS]
_FLIGHTS_FROM: Final = (-3600.0, -4600.0, 120.0), (3600.0, 4600.0, 1800.0)  # uu, least and largest place


class SaveMutator(SkillMutator):
    """A shot goes into the acting car's goal, which it reaches in about 1.5 to 2.5 s.

    Half of the shots roll, the others fly there without a bounce. The ball begins 2500 to 5000 uu before the
    goal line. The car is 420 to 1320 uu before the line and 300 to 700 uu beside the ball's path. It faces
    the ball within 1 rad, and drives at up to 300 uu/s. Others are behind the ball.
    """

    def _fill(self, state: MatchState, at: At, placed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count = len(at[0])
        gap, seconds = rng.uniform(2500, 5000, count), rng.uniform(1.5, 2.5, count)
        end = np.column_stack(
            (
                rng.uniform(-600, 600, count),
                np.full(count, -game.GOAL_THRESHOLD_Y),
                rng.uniform(110, 300, count),
            )
        )
        start = np.column_stack(
            (
                end[:, 0] + gap * rng.uniform(-0.5, 0.5, count),
                gap - game.BACK_WALL_Y,
                rng.uniform(100, 700, count),
            )
        )
        velocity, rolls = _aim(start, end, seconds), rng.random(count) < 0.5
        start[rolls, 2], velocity[rolls, 2] = game.BALL_REST_Z, 0
        speed = np.linalg.norm(velocity[rolls], axis=1)
        velocity[rolls] *= (1 + _ROLL_LOSS * seconds[rolls] / (2 * speed))[:, None]
        state.ball_position[:], state.ball_linear_velocity[:] = start, velocity
        y = -rng.uniform(3800, 4700, count)
        path = end[:, 0] + (start - end)[:, 0] * (y - end[:, 1]) / (start - end)[:, 1]
        place = np.column_stack((path + _signs(count, rng) * rng.uniform(300, 700, count), y))
        yaw = bearing(place, start) + rng.uniform(-1, 1, count)
        stand_cars(state, at, place, yaw, rng.uniform(0, 300, count), rng.uniform(20, _FULL_BOOST, count))
        return np.array((start[:, 1] + 300, np.full(count, mutators.FLAT_Y)))


class ShotMutator(SkillMutator):
    """The ball lies before the opponents' open goal, the acting car behind it.

    The ball is 1200 to 3000 uu before the goal line and rolls at up to 200 uu/s. The car is 600 to 1500 uu
    behind it, within 0.6 rad of the line to the goal, and faces it within 0.4 rad. Others are at least 2500
    uu farther back than the ball.
    """

    def _fill(self, state: MatchState, at: At, placed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count = len(at[0])
        x, gap = rng.uniform(-1500, 1500, count), rng.uniform(1200, 3000, count)
        ball = np.column_stack((x, game.BACK_WALL_Y - gap))
        state.ball_position[:, :2] = ball
        state.ball_linear_velocity[:] = _roll(200.0, count, rng)
        goal = np.broadcast_to((0.0, game.BACK_WALL_Y), ball.shape)
        away = bearing(goal, ball) + rng.uniform(-0.6, 0.6, count)
        place = ball + heading(away)[:, :2] * rng.uniform(600, 1500, (count, 1))
        yaw = away + math.pi + rng.uniform(-0.4, 0.4, count)
        stand_cars(state, at, place, yaw, rng.uniform(0, 500, count), rng.uniform(20, _FULL_BOOST, count))
        return np.array((np.full(count, -mutators.FLAT_Y), ball[:, 1] - 2500))


class AerialMutator(SkillMutator):
    """The ball rises above the acting car, which is on the ground, has boost, and faces it.

    The ball begins 250 to 450 uu above a height, rises at 400 to 700 uu/s, and stays above that height for
    1.7 to 2.8 s. The car is 300 to 1000 uu from it, seen from above. It drives at up to 1000 uu/s, and has
    60 to 100 boost.

    Args:
        lowest: Least height, uu.
        highest: Largest height, uu.
        seed: Of the generator that RLGym's form draws from.

    Raises:
        ValueError: A height is not within 100 to 1100 uu, or the least is above the largest.
    """

    def __init__(self, lowest: float = 300.0, highest: float = 1000.0, seed: int | None = None) -> None:
        super().__init__(seed)
        check_number("lowest", lowest, 100.0, _MOST_AERIAL, unit="uu")
        check_number("highest", highest, lowest, _MOST_AERIAL, unit="uu")
        self.lowest, self.highest = lowest, highest

    def _fill(self, state: MatchState, at: At, placed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count = len(at[0])
        ball = rng.uniform(-1, 1, (count, 2)) * (2200, 3200)
        height = rng.uniform(self.lowest, self.highest, count) + rng.uniform(250, 450, count)
        state.ball_position[:] = np.column_stack((ball, height))
        state.ball_linear_velocity[:] = _roll(400.0, count, rng)
        state.ball_linear_velocity[:, 2] = rng.uniform(400, 700, count)
        away = draw_bearings(count, rng)
        place = ball + heading(away)[:, :2] * rng.uniform(300, 1000, (count, 1))
        yaw = away + math.pi + rng.uniform(-0.3, 0.3, count)
        stand_cars(state, at, place, yaw, rng.uniform(0, 1000, count), rng.uniform(60, _FULL_BOOST, count))
        return _everywhere(count)


class FlightMutator(SkillMutator):
    """The acting car is on its way to a ball in the air, and would meet it in 0.3 to 1.6 s.

    For that its nose would point 34 to 74 degrees up, with boost held; it is off by 0.2 rad up and sideways
    (standard deviations). They would meet 400 to 1600 uu high. The car has jumped, and has its dodge and 40
    to 100 boost.
    """

    def _fill(self, state: MatchState, at: At, placed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count = len(at[0])
        meet = np.column_stack((rng.uniform(-1, 1, (count, 2)) * (2200, 3200), rng.uniform(400, 1600, count)))
        seconds, pitch = rng.uniform(0.3, 1.6, count), rng.uniform(0.6, 1.3, count)
        yaw = draw_bearings(count, rng)
        velocity = heading(yaw) * rng.uniform(200, 1200, (count, 1))
        velocity[:, 2] = rng.uniform(200, 700, count)
        push = _BOOST_PUSH * (heading(yaw) * np.cos(pitch)[:, None])
        push[:, 2] = _BOOST_PUSH * np.sin(pitch) - game.GRAVITY
        # The nose is as far behind the ball's centre as both reach; later the car is faster.
        start = meet - heading(yaw) * game.BALL_RADIUS - _way(velocity, push, seconds)
        state.car_position[at] = np.clip(start, *_FLIGHTS_FROM)
        off = rng.normal(0, 0.2, (2, count))
        state.car_rotation[at] = mutators.make_rotations(pitch + off[0], yaw + off[1])
        state.car_linear_velocity[at] = velocity
        state.car_wheels_with_contact[at] = 0
        state.car_has_jumped[at], state.car_jump_time[at] = 1, game.JUMP_MAX_SECONDS
        state.car_air_time_since_jump[at] = rng.uniform(game.TICK_SECONDS, 0.8, count)
        state.car_boost_amount[at] = rng.uniform(40, _FULL_BOOST, count)
        arrives = _roll(500.0, count, rng)
        arrives[:, 2] = rng.uniform(-600, 300, count)
        fall = np.zeros((count, 3))
        fall[:, 2] = -game.GRAVITY
        state.ball_linear_velocity[:] = arrives - fall * seconds[:, None]
        state.ball_position[:] = meet - _way(state.ball_linear_velocity, fall, seconds)
        below = state.ball_position[:, 2] < game.BALL_REST_Z  # it would have come through the floor
        state.ball_position[below, 2] = game.BALL_REST_Z
        return _everywhere(count)


def _way(velocity: np.ndarray, acceleration: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return how far bodies go in a time `(n,)`, `(n, 3)` uu, without drag."""
    return np.asarray(velocity * seconds[:, None] + acceleration * (seconds**2 / 2)[:, None])


class DribbleMutator(SkillMutator):
    """The ball lies on the acting car's roof; both move towards the field's middle, at 300 to 1100 uu/s."""

    def _fill(self, state: MatchState, at: At, placed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count = len(at[0])
        place, aim = rng.uniform(-1, 1, (2, count, 2)) * np.array((((2500, 3500),), ((800, 1200),)))
        yaw, speed = bearing(place, aim), rng.uniform(300, 1100, count)
        stand_cars(state, at, place, yaw, speed, rng.uniform(20, _FULL_BOOST, count))
        hitbox = state.car_hitbox[at].astype(np.intp)
        offset, roof = _ROOFS[hitbox].T
        above = np.column_stack((offset + rng.uniform(-15, 15, count), rng.uniform(-8, 8, count),
                                 roof + game.BALL_RADIUS + _BOX_MARGIN))  # fmt: skip
        carried = np.einsum("nij,nj->ni", state.car_rotation[at], above)
        state.ball_position[:] = state.car_position[at] + carried
        state.ball_linear_velocity[:] = state.car_linear_velocity[at]
        return _everywhere(count)


class WallMutator(SkillMutator):
    """The acting car drives on a side wall, and the ball rolls up or along the same wall near it."""

    def _fill(self, state: MatchState, at: At, placed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count = len(at[0])
        side, turn = _signs(count, rng), draw_bearings(count, rng)
        zero = np.zeros(count)
        height, _, pitch = mutators.SETTLED[state.car_hitbox[at].astype(np.intp)].T[:, :, None]
        along, up = np.column_stack((zero, np.cos(turn), np.sin(turn))), np.column_stack((-side, zero, zero))
        nose, roof = along * np.cos(pitch) + up * np.sin(pitch), up * np.cos(pitch) - along * np.sin(pitch)
        y, z = rng.uniform(-2000, 2000, count), rng.uniform(400, 1500, count)
        state.car_position[at] = np.column_stack((side * game.SIDE_WALL_X, y, z)) + up * height
        state.car_rotation[at] = np.stack((nose, np.cross(roof, nose), roof), -1)
        state.car_linear_velocity[at] = along * rng.uniform(600, 1800, (count, 1))
        state.car_wheels_with_contact[at] = 1
        state.car_boost_amount[at] = rng.uniform(20, _FULL_BOOST, count)
        ball_y = y + _signs(count, rng) * rng.uniform(300, 1200, count)
        state.ball_position[:] = np.column_stack(
            (side * (game.SIDE_WALL_X - game.BALL_REST_Z), ball_y, rng.uniform(400, 1500, count))
        )
        state.ball_linear_velocity[:] = np.column_stack(
            (zero, rng.uniform(-1000, 1000, count), rng.uniform(-300, 1000, count))
        )
        return _everywhere(count)


class RecoveryMutator(SkillMutator):
    """The acting car is thrown into the air: turned in any direction, and spinning at 1 to 5.5 rad/s.

    It is 200 to 700 uu high and moves at up to 800 uu/s over the ground. Half of the cars have no dodge left.
    The ball lies 1000 to 2500 uu away.
    """

    def _fill(self, state: MatchState, at: At, placed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count = len(at[0])
        place = rng.uniform(-1, 1, (count, 2)) * (2200, 3000)
        state.car_position[at] = np.column_stack((place, rng.uniform(200, 700, count)))
        state.car_rotation[at] = mutators.draw_rotations((count,), rng)
        velocity = _roll(800.0, count, rng)
        velocity[:, 2] = rng.uniform(-300, 600, count)
        state.car_linear_velocity[at] = velocity
        spin = rng.uniform(1, game.CAR_MAX_ANGULAR_SPEED, (count, 1))
        state.car_angular_velocity[at] = mutators.draw_directions((count,), rng) * spin
        state.car_wheels_with_contact[at] = 0
        state.car_boost_amount[at] = rng.uniform(0, _FULL_BOOST, count)
        spent = rng.random(count) < 0.5
        state.car_has_jumped[at] = state.car_has_double_jumped[at] = spent
        state.car_jump_time[at] = spent * game.JUMP_MAX_SECONDS
        state.car_air_time_since_jump[at] = spent * rng.uniform(game.TICK_SECONDS, 1.0, count)
        ball = place + heading(draw_bearings(count, rng))[:, :2] * rng.uniform(1000, 2500, (count, 1))
        state.ball_position[:, :2] = np.clip(ball, (-3200, -4000), (3200, 4000))
        return _everywhere(count)


class CollisionMutator(SkillMutator):
    """An opponent drives at the acting car at 2250 uu/s, from 2000 to 3500 uu away.

    It is the first car of the other team, and has full boost. The acting car faces anywhere and drives at up
    to 500 uu/s. Without opponents nobody comes.
    """

    def _fill(self, state: MatchState, at: At, placed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        rows, acting = at
        count = len(rows)
        place = rng.uniform(-1, 1, (count, 2)) * (1200, 2000)
        stand_cars(
            state, at, place, draw_bearings(count, rng), rng.uniform(0, 500, count),
            rng.uniform(0, _FULL_BOOST, count),
        )  # fmt: skip
        away, sign = draw_bearings(count, rng), _signs(count, rng)
        ball = heading(away + sign * math.pi / 2)[:, :2] * rng.uniform(1200, 1800, (count, 1))
        state.ball_position[:, :2] = place + ball
        layout = state.layout
        first = np.where(acting < layout.blue, layout.blue, 0)
        there = np.where(acting < layout.blue, layout.orange, layout.blue) > 0
        missing = np.flatnonzero(there)
        while len(missing):
            come = place[missing] + heading(away[missing])[:, :2] * rng.uniform(2000, 3500, (len(missing), 1))
            x, y = np.abs(come).T
            good = (x <= mutators.FLAT_X) & (y <= mutators.FLAT_Y) & (x + y <= mutators.FLAT_CORNER)
            some = missing[good]
            stand_cars(
                state, (some, first[some]), come[good], away[some] + math.pi, np.full(len(some), 2250.0),
                np.full(len(some), _FULL_BOOST),
            )  # fmt: skip
            placed[some, first[some]] = True
            missing = missing[~good]
        return _everywhere(count)


def _aim(start: np.ndarray, end: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return velocities `(n, 3)` that take a ball from places to others, `(n, 3)`, in a time, `(n,)`."""
    reach = (1 - np.exp(-_BALL_DECAY * seconds)) / _BALL_DECAY  # uu for each uu/s
    fall = np.zeros_like(start)
    fall[:, 2] = game.GRAVITY * (seconds - reach) / _BALL_DECAY
    return np.asarray((end - start + fall) / reach[:, None])


def _roll(most: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return level velocities `(count, 3)` in any direction, of up to `most` uu/s."""
    return np.asarray(heading(draw_bearings(count, rng)) * rng.uniform(0, most, (count, 1)))


def _signs(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return -1 or 1, equally likely, `(count,)`."""
    return rng.choice((-1.0, 1.0), count)


def _everywhere(count: int) -> np.ndarray:
    """Return bounds of y for cars that may be everywhere, `(2, count)`."""
    return np.repeat([[-mutators.FLAT_Y], [mutators.FLAT_Y]], count, axis=1)
