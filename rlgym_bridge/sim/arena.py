"""RocketSim arenas that play the same match twice.

RocketSim keeps its cars in a hash set of pointers, so the order in which it walks them depends
on where the allocator put them. `place_cars` adds the cars until that order is the pinned one,
the order that a hash set without collisions gives; a set that once held many cars keeps a large
table, where collisions are rare.
"""

import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import RocketSim as rsim

from rlgym_bridge.game import BLUE, ORANGE

_KICKOFF_SEED = 0  # any fixed seed: it is only used to read the order off the spawn slots
_TEAM_SIZE_MAX = 4
_WARM_CARS = 120  # cars once held: enlarges the table. 3v3 pinned at once: 6 of 20 without, 19 with
_ORDER_TRIES = 60  # about 0.1 ms each; where they fail, a new arena (about 20 ms) shuffles the heap
_ARENA_TRIES = 20


@cache
def init_meshes() -> None:
    """Load the collision meshes that come with `rlgym-rocket-league`, once per process.

    Raises:
        FileNotFoundError: The package or its meshes are not there.
    """
    spec = importlib.util.find_spec("rlgym.rocket_league.sim")
    folder = None
    if spec is not None and spec.submodule_search_locations:
        folder = Path(next(iter(spec.submodule_search_locations))) / "collision_meshes"
    if folder is None or not folder.is_dir():
        raise FileNotFoundError(
            f"RocketSim needs the collision meshes that come with rlgym-rocket-league; looked in "
            f"{folder}. Install them: pip install rlgym-rocket-league"
        )
    rsim.init(str(folder))


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
    init_meshes()
    for _ in range(_ARENA_TRIES):
        arena = _warm_arena(mode)
        try:
            return arena, place_cars(arena, teams, hitboxes)
        except _OrderError:
            continue
    raise RuntimeError(
        f"RocketSim did not give {len(teams)} cars the pinned order in {_ARENA_TRIES} arenas; "
        f"please report this with your RocketSim version and operating system"
    )


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
        if _is_pinned(arena, cars, teams):
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
        size = sum(one == team for one in teams)
        if size > _TEAM_SIZE_MAX:
            raise ValueError(f"team {team} has {size} cars, expected at most {_TEAM_SIZE_MAX}")
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

    The collision engine hands freed slots out again last in, first out, and solves contacts in
    the order of the slots. Removed in any other order, the next cars would sit in other slots and
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


def _spots(arena: rsim.Arena, cars: Sequence[rsim.Car], team: int) -> list[tuple[int, int]]:
    """Return the kickoff spot, as blue's, that each car of one team gets from RocketSim."""
    arena.reset_kickoff(_KICKOFF_SEED)
    sign = 1 if team == BLUE else -1
    positions = [car.get_state().pos for car in cars]
    return [(round(sign * position.x), round(sign * position.y)) for position in positions]


@cache
def _walk(mode: int) -> tuple[tuple[tuple[int, int], ...], bool]:
    """Measure how this platform's RocketSim walks cars.

    Args:
        mode: Game mode of the arena, which decides the spots.

    Returns:
        The spots handed to the first, second, ... car walked of a team, and whether the last car
        added is walked first (so with GNU's library) or last.
    """
    arena = _warm_arena(mode)
    slots: list[tuple[int, int]] = []
    for size in range(1, _TEAM_SIZE_MAX + 1):
        slots += [s for s in _spots(arena, _fresh(arena, [BLUE] * size), BLUE) if s not in slots]
    last_first = 0
    for spare in range(9):
        cars = _fresh(arena, [BLUE] * 2, spare=spare)
        last_first += _spots(arena, cars, BLUE)[1] == slots[0]
    return tuple(slots), last_first > 4


def _is_pinned(arena: rsim.Arena, cars: Sequence[rsim.Car], teams: Sequence[int]) -> bool:
    """Tell whether RocketSim walks the cars of each team as a set without collisions would."""
    slots, last_first = _walk(arena.game_mode)
    for team in (BLUE, ORANGE):
        members = [car for car, its_team in zip(cars, teams, strict=True) if its_team == team]
        expected = list(slots[: len(members)])
        if _spots(arena, members, team) != (expected[::-1] if last_first else expected):
            return False
    return True
