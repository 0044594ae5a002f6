"""Make RocketSim arenas that repeat a match exactly.

RocketSim keeps its cars in a hash set of pointers, so the order in which it walks them depends on where
the allocator put them; it matters where wheels stand on other cars. `place_cars` adds the cars until that
order is the pinned one, the order that a hash set without collisions gives; a set that once held many
cars keeps a large table, where collisions are rare.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import RocketSim as rsim

from rlgym_bridge.game import BLUE, MOST_TEAM_SIZE, ORANGE
from rlgym_bridge.user_input.extras import meshes_folder
from rlgym_bridge.user_input.failures import Failure

_WAKING_SPEED = 100.0  # uu/s: any that is not 0
_KICKOFF_SEED = 0  # any fixed seed
_PAD_SIDE = 100.0  # uu beside a big pad, whose reach is 208; two cars there do not touch
_PAD_HEIGHT = 90.0  # uu: wheels do not reach the floor, and the pad reaches up to 95 [RocketSim, RLConst]
_HIGH_UP = 1000.0  # uu, out of the way
_WARM_CARS = 120  # cars once held: enlarges the table. 3v3 pinned at once: 6 of 20 without, 19 with
_ORDER_TRIES = 60  # about 0.2 ms each; where they fail, a new arena (about 20 ms) shuffles the heap
_ARENA_TRIES = 20


@cache
def init_meshes() -> None:
    """Load the collision meshes, once per process; see `meshes_folder`.

    Raises:
        FileNotFoundError: The package or its meshes are not there.
    """
    folder = meshes_folder()
    try:
        rsim.init(str(folder))
    except RuntimeError as error:
        if "Already inited" not in str(error):  # RLGym's engine has loaded the same meshes
            raise


def make_arena(
    teams: Sequence[int], hitboxes: Sequence[int] | None = None, mode: int = rsim.GameMode.SOCCAR
) -> tuple[rsim.Arena, list[rsim.Car]]:
    """Make an arena whose cars lie in the pinned internal order.

    Two arenas made with the same arguments, given the same states and controls, go on alike to
    the bit; in another process too.

    Args:
        teams: Team of each car, 0 blue or 1 orange, at most 4 a team; blue and orange may be of
            different sizes, or empty.
        hitboxes: Hitbox number 0..5 of each car (`game.HITBOXES`); all Octane when None.
        mode: One of `RocketSim.GameMode`; the meshes at hand are those of standard soccar's arena, in
            which Heatseeker and Snowday are played too.

    Returns:
        The arena, and its cars in the order of `teams`. The cars stand on kickoff spots, but a
        caller who wants to repeat a match sets their state (`reset_kickoff` is skewed).

    Raises:
        ValueError: A team is not 0 or 1, more than 4 cars are in a team, or `hitboxes` does not
            fit `teams`.
        RuntimeError: The pinned order did not come up in 20 arenas, or RocketSim cannot make an arena
            of this mode.
    """
    _check(teams, [0] * len(teams) if hitboxes is None else hitboxes)
    init_meshes()
    for _ in range(_ARENA_TRIES):
        arena = _warm_arena(mode)
        try:
            return arena, place_cars(arena, teams, hitboxes)
        except _OrderError:
            continue
    raise Failure(
        f"RocketSim did not give {len(teams)} cars the pinned order in {_ARENA_TRIES} arenas; "
        f"please report this with your RocketSim version and operating system"
    )


def set_mutators(arena: rsim.Arena, config: rsim.MutatorConfig) -> None:
    """Set an arena's mutators, the gravity of a ball at rest too.

    RocketSim hands gravity on to moving bodies alone: a ball at rest would keep the old one for ever.

    Args:
        arena: The arena.
        config: From its `get_mutator_config`.
    """
    if config.gravity.as_tuple() == arena.get_mutator_config().gravity.as_tuple():
        arena.set_mutator_config(config)
        return
    ball, moving = arena.ball.get_state(), arena.ball.get_state()
    moving.vel = rsim.Vec(0, 0, _WAKING_SPEED)
    arena.ball.set_state(moving)
    arena.set_mutator_config(config)
    arena.ball.set_state(ball)


def scale_constants(config: rsim.MutatorConfig, factors: Mapping[str, float]) -> None:
    """Multiply constants of the physics.

    Args:
        config: Changed in place.
        factors: By the names of `physics.CONSTANTS`.
    """
    for name, factor in factors.items():
        if name == "gravity":
            config.gravity = rsim.Vec(0.0, 0.0, config.gravity.z * factor)
        else:
            setattr(config, name, getattr(config, name) * factor)


def place_cars(
    arena: rsim.Arena, teams: Sequence[int], hitboxes: Sequence[int] | None = None
) -> list[rsim.Car]:
    """Remove all cars and add fresh ones, without the hidden state that used cars carry.

    Ball and pads are left as RocketSim's kickoff has them.

    Args:
        arena: The arena; car objects taken from it before are invalid afterwards.
        teams: As for `make_arena`.
        hitboxes: As for `make_arena`.

    Returns:
        The new cars in the order of `teams`.

    Raises:
        ValueError: As for `make_arena`.
        RuntimeError: The order did not come up in this arena; `make_arena` gives a new one.
    """
    if hitboxes is None:
        hitboxes = [0] * len(teams)
    _check(teams, hitboxes)
    for attempt in range(_ORDER_TRIES):
        cars = _fresh(arena, teams, hitboxes, spare=attempt)
        if is_pinned(arena, cars):
            return cars
    raise _OrderError(
        f"RocketSim did not give {len(teams)} cars the pinned order in {_ORDER_TRIES} tries; "
        f"make a new arena with make_arena"
    )


class _OrderError(RuntimeError):
    """The pinned car order did not come up; a new arena may have it."""


def _check(teams: Sequence[int], hitboxes: Sequence[int]) -> None:
    if any(team not in (BLUE, ORANGE) for team in teams):
        raise ValueError(f"teams are {list(teams)}, expected 0 (blue) or 1 (orange) for each car")
    for team in (BLUE, ORANGE):
        size = list(teams).count(team)
        if size > MOST_TEAM_SIZE:
            raise ValueError(f"team {team} has {size} cars, expected at most {MOST_TEAM_SIZE}")
    if len(hitboxes) != len(teams):
        raise ValueError(f"{len(hitboxes)} hitboxes for {len(teams)} cars, expected one for each")
    if any(not 0 <= box <= 5 for box in hitboxes):
        raise ValueError(f"hitboxes are {list(hitboxes)}, expected numbers 0..5 (game.HITBOXES)")


def _warm_arena(mode: int) -> rsim.Arena:
    arena = rsim.Arena(mode)
    for _ in range(_WARM_CARS):
        arena.add_car(BLUE, rsim.CarConfig.OCTANE)
    _remove_cars(arena)
    return arena


def _remove_cars(arena: rsim.Arena) -> None:
    """Remove all cars, last added first.

    The collision engine hands freed handles out again last in, first out, and solves contacts in
    their order. Removed in any other order, the next cars would get other handles and
    collide a little differently (seen from the first contact on, in every second kickoff).
    """
    for car in sorted(arena.get_cars(), key=lambda car: -car.id):
        arena.remove_car(car)


def _fresh(
    arena: rsim.Arena, teams: Sequence[int], hitboxes: Sequence[int] | None = None, spare: int = 0
) -> list[rsim.Car]:
    """Replace all cars; blocks of memory held meanwhile move the new ones to other addresses."""
    _remove_cars(arena)
    boxes = hitboxes if hitboxes is not None else [rsim.CarConfig.OCTANE] * len(teams)
    held, cars = [], []
    for team, box in zip(teams, boxes, strict=True):
        held += [bytearray(1024 * (1 + (spare + block) % 5)) for block in range(spare)]
        cars.append(arena.add_car(team, box))
    return cars


def _walked_in_order(arena: rsim.Arena, cars: Sequence[rsim.Car], first: int) -> list[bool]:
    """Tell for each pair of neighbours in `cars` whether RocketSim walks its second car after its first.

    The two hover over one pad: of those who reach a pad in the same tick, the last one walked gets it.

    Args:
        arena: The arena; cars, ball and pads are moved, nothing touches anything.
        cars: All cars of the arena.
        first: Number of the first pair's first car, 0 or 1; then every second pair.
    """
    places = [pad.get_pos() for pad in arena.get_boost_pads() if pad.is_big]
    ball = rsim.BallState()
    ball.pos = rsim.Vec(0, 0, _HIGH_UP)
    arena.ball.set_state(ball)
    for number, car in enumerate(cars):
        pair, side = divmod(number - first, 2)
        state = rsim.CarState()
        state.is_on_ground = False
        state.boost = 0.0
        state.pos = rsim.Vec(200.0 * number, 0, _HIGH_UP + 300.0)
        if number >= first:
            x = places[pair].x + (_PAD_SIDE if side else -_PAD_SIDE)
            state.pos = rsim.Vec(x, places[pair].y, _PAD_HEIGHT)
        car.set_state(state)
    for pad in arena.get_boost_pads():
        pad.set_state(rsim.BoostPadState())
    arena.step(1)
    boost = [car.get_state().boost for car in cars]
    return [boost[number + 1] > boost[number] for number in range(first, len(cars) - 1, 2)]


@cache
def _last_added_first() -> bool:
    """Measure which way this platform walks a set without collisions (GNU's library: last added first)."""
    arena = _warm_arena(rsim.GameMode.SOCCAR)
    votes = [_walked_in_order(arena, _fresh(arena, [BLUE, BLUE], spare=spare), 0)[0] for spare in range(9)]
    return votes.count(False) > votes.count(True)


def is_pinned(arena: rsim.Arena, cars: Sequence[rsim.Car]) -> bool:
    """Tell whether RocketSim walks the cars as a set without collisions would; leaves a kickoff behind."""
    pairs = (0, 1) if len(cars) > 1 else ()
    up = [after for first in pairs for after in _walked_in_order(arena, cars, first)]
    arena.reset_kickoff(_KICKOFF_SEED)
    return up == [not _last_added_first()] * len(up)
