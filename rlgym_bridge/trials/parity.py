"""Check whether a bot sees and does the same in the simulator and in a match.

Each side has components of its own, on the simulator's state or on what a decoder makes of its packet.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from rlbot import flat

from rlgym_bridge.components.actions import action_space
from rlgym_bridge.components.batch_form import works_in_batches
from rlgym_bridge.components.episode import ComponentCalls
from rlgym_bridge.components.skill_mutators import turn_field
from rlgym_bridge.components.spec import Components
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.game import CONTROL_NAMES, HITBOX_OF_BODY, PLAYING_PHASES, TICKS_PER_SECOND
from rlgym_bridge.packets.decoder import Decoder, player_input
from rlgym_bridge.policy.fingerprint import same_draws
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.game.rules import Physics
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.sim.arena import control_of
from rlgym_bridge.state import CAR_FIELDS, MATCH_FIELDS, MatchState, derive, layout_of

TOLERANCE: Final = 1e-5
"""Greatest difference of a number, times its size where that is above 1: float32 has 7 digits."""


@dataclass
class _Mismatch:
    """A number that differs, how often, and by how much at most; without a name of its own its index."""

    name: str
    count: int = 0
    worst: float = 0.0


@dataclass
class Parity:
    """The result of a comparison."""

    samples: int = 0  # observations and control rows compared
    numbers: int = 0  # numbers in them
    compared: int = 0  # decisions whose observations were compared
    unknown: int = 0  # decisions left out, because the decoder marks a field as unknown then
    _by_name: dict[str, _Mismatch] = field(default_factory=dict)

    @property
    def mismatches(self) -> list[_Mismatch]:
        """All numbers that differ, the most frequent first."""
        return sorted(self._by_name.values(), key=lambda mismatch: (-mismatch.count, mismatch.name))

    @property
    def decisions(self) -> int:
        """Return the number of decisions, those left out included."""
        return self.compared + self.unknown

    def note(self, name: str, difference: float) -> None:
        """Count a number that differs."""
        mismatch = self._by_name.setdefault(name, _Mismatch(name))
        mismatch.count += 1
        mismatch.worst = max(mismatch.worst, difference)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "samples": self.samples,
            "numbers": self.numbers,
            "unknown": self.unknown,
            "mismatches": [vars(mismatch) for mismatch in self.mismatches],
        }


def _differs(difference: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Tell which numbers of observations differ by more than the tolerance; NaN does."""
    off: np.ndarray = ~(difference <= TOLERANCE * np.maximum(1, np.abs(numbers)))
    return off


_ROTATION_TOLERANCE: Final = 3e-4
"""Of an element of a rotation matrix: packets hold float32 angles, worst within a degree of vertical."""

COUNTED_TOLERANCE: Final = 2.5e-4
"""Of a time in s, 0.03 ticks: float32 rounds each of the 1,200 steps in which 10 s are counted down."""

_COUNTED: Final = (
    "pad_timer", "car_demo_respawn_timer", "car_supersonic_time", "car_boost_active_time", "car_handbrake",
    "car_jump_time", "car_air_time_since_jump", "car_flip_time", "car_autoflip_timer",
)  # fmt: skip
_SYMMETRY_EVERY: Final = 25  # decisions: an environment of one's own may take long to make
_NOT_OBSERVED: Final = (
    "car_known", "car_player_id", "frame", "phase", "clock", "overtime", "score", "car_controls",
)  # fmt: skip


class _WorldSide:
    def __init__(self, parts: Components) -> None:
        if parts.obs_builder is None:
            raise ValueError("there is no observation builder to compare")
        self.parts = parts
        self._calls = ComponentCalls(parts, (parts.obs_builder, parts.parser))
        self._size: int | None = None

    def observe(self, state: MatchState, began: bool) -> np.ndarray:
        """Return the observations of all cars, `(cars, size)` float32."""
        if began:
            with same_draws():
                self._calls.begin(state, range(state.layout.cars))
        else:
            self._calls.step(state)
        observations = self._calls.observe()
        assert observations is not None  # checked by the constructor
        shown: np.ndarray = observations[0]
        name = type(self.parts.obs_builder).__name__
        if not np.isfinite(shown).all():
            car, number = np.argwhere(~np.isfinite(shown))[0].tolist()
            raise ValueError(
                f"{name} shows {state.agents[car]} {shown[car, number]} as number {number}, "
                "expected a finite one"
            )
        if self._size not in (None, shown.shape[1]):
            raise ValueError(f"{name} gave {self._size} numbers and then {shown.shape[1]}, expected as many")
        self._size = shown.shape[1]
        return shown

    def parse(self, actions: np.ndarray) -> list[np.ndarray]:
        return self._calls.parse(actions.copy())


class _NumberNames:
    def __init__(self, components: Callable[[], Components]) -> None:
        self._make = components
        builder: Any = components().obs_builder
        self._names = builder.names if works_in_batches(builder) and hasattr(builder, "names") else None
        self._sources: dict[tuple[int, int], str] = {}

    def plain(self, state: MatchState, car: int, number: int) -> str:
        if self._names is None:
            return f"number {number}"
        return str(self._names(state.layout.blue, state.layout.orange, car)[number])

    def explained(self, state: MatchState, seen: MatchState, car: int, number: int) -> str:
        """Return the builder's own name of a number; else its index, and the fields that it differs by."""
        if self._names is not None:
            return self.plain(state, car, number)
        if (car, number) not in self._sources:
            differing = _differing_fields(state, seen)
            fields = [name for name in differing if self._depends(state, seen, name, car, number)]
            self._sources[car, number] = ", ".join(fields or differing) or "no field of the state differs"
        return f"number {number} ({self._sources[car, number]})"

    def _depends(self, state: MatchState, seen: MatchState, name: str, car: int, number: int) -> bool:
        """Tell whether fresh components show another number where one field is as in the packet."""
        changed = state.copy()
        getattr(changed, name)[:] = getattr(seen, name)
        before, after = (
            _WorldSide(self._make()).observe(shown, True)[car, number] for shown in (state, changed)
        )
        return bool(before != after)


def _check_symmetry(
    parity: Parity, components: Callable[[], Components], names: _NumberNames, state: MatchState
) -> None:
    """Count where orange is not shown what blue is shown in the match turned by 180 degrees."""
    blue = state.layout.blue
    if blue != state.layout.orange:
        return
    as_is, turned = (_WorldSide(components()).observe(one, True) for one in (state, _turn(state)))
    expected = np.concatenate([turned[blue:], turned[:blue]])  # the teams change sides
    parity.samples += len(expected)
    parity.numbers += expected.size
    difference = np.abs(as_is - expected)
    for car, number in np.argwhere(_differs(difference, expected)).tolist():
        parity.note(f"mirrored: {names.plain(state, car, number)}", float(difference[car, number]))


def _turn(state: MatchState) -> MatchState:
    """Return matches of equal teams turned by 180 degrees about z, blue's cars orange and orange's blue."""
    half = state.layout.blue
    turned = state.copy()
    order = [*range(half, 2 * half), *range(half)]
    for one in CAR_FIELDS:
        if one.name not in ("team", "player_id"):
            getattr(turned, "car_" + one.name)[:] = getattr(state, "car_" + one.name)[:, order]
    bumped = turned.car_bump_victim
    bumped[:] = np.where(bumped >= 0, (bumped + half) % (2 * half), -1)
    turn_field(turned, np.arange(turned.matches))
    turned.pad_timer[:] = state.pad_timer[:, ::-1]
    turned.score[:] = state.score[:, ::-1]
    derive(turned)
    return turned


def _compare_observations(
    parity: Parity, names: _NumberNames, ours: np.ndarray, theirs: np.ndarray, state: MatchState,
    seen: MatchState,
) -> None:  # fmt: skip
    """Count where observations of the simulator's state and of the packet's, both `(cars, size)`, differ."""
    parity.samples += len(ours)
    parity.numbers += ours.size
    if ours.shape != theirs.shape:
        parity.note(f"size of the observation: {ours.shape[1]} and {theirs.shape[1]}", 0.0)
        return
    difference = np.abs(ours - theirs)
    for car, number in np.argwhere(_differs(difference, ours)).tolist():
        parity.note(names.explained(state, seen, car, number), float(difference[car, number]))


def _round_as_seen(state: MatchState, seen: MatchState) -> None:
    """Put the packet's rotations and times into the simulator's state where only rounding differs."""
    tolerances = dict.fromkeys(("ball_rotation", "car_rotation"), _ROTATION_TOLERANCE)
    for name, tolerance in (tolerances | dict.fromkeys(_COUNTED, COUNTED_TOLERANCE)).items():
        mine, theirs = getattr(state, name), getattr(seen, name)
        np.copyto(mine, theirs, where=np.abs(mine - theirs) <= tolerance)


def _differing_fields(state: MatchState, seen: MatchState) -> list[str]:
    names = [field.name for field in MATCH_FIELDS] + ["car_" + field.name for field in CAR_FIELDS]
    return [
        name for name in names
        if name not in _NOT_OBSERVED and not np.allclose(
            getattr(state, name), getattr(seen, name), atol=TOLERANCE, rtol=TOLERANCE, equal_nan=False
        )
    ]  # fmt: skip


_KICK_EVERY: Final = 400  # ticks between two shots of the ball: who acts at random hardly touches it


def compare_worlds(
    components: Callable[[], Components],
    team_sizes: tuple[int, int] = (1, 1),
    ticks: int = 6000,
    seed: int = 0,
    *,
    tick_skip: int | None = None,
    hitbox: int = 0,
) -> Parity:
    """Play a match of random actions and compare what the components make of it in both worlds.

    `components` makes builder, parser and shared info of each side. An action has to last `tick_skip` ticks,
    or as many as the parser says. All cars have one of `game.HITBOXES`. A ValueError says that there is no
    builder, or that it refuses the match.
    """
    match = _begin_match(team_sizes, seed, hitbox)
    parity = Parity()
    sim, live = _WorldSide(components()), _WorldSide(components())
    decoder = Decoder(field_info(), flat.MatchConfiguration(mutators=flat.MutatorSettings()))
    actions = _draw_actions(sim.parts, seed, layout_of(*team_sizes).agents)
    names = _NumberNames(components)
    random = np.random.default_rng((seed, 1))
    plan: list[np.ndarray] = []
    touches = np.zeros(sum(team_sizes))  # since the last decision
    last_phase, played, due, first = -1, 0, 0, 0
    while played < ticks:
        packet = flat.GamePacket.unpack(match.packet().pack())
        seen = decoder.update(packet)
        phase = match.referee.phase
        if phase in PLAYING_PHASES:
            played += 1
            np.add.at(touches, list(match.simulation.events.touches), 1)
            began = last_phase not in PLAYING_PHASES
            if began or played >= due:
                state = _read_state(match)
                state.car_ball_touches[0] = touches
                touches[:] = 0
                _round_as_seen(state, seen)
                plan = _decide(parity, names, sim, live, state, seen, began, next(actions))
                if parity.decisions % _SYMMETRY_EVERY == 1:
                    _check_symmetry(parity, components, names, state)
                due, first = played + _lasts(parity, plan, tick_skip), played
                decoder.clear_touches()
            for car, row in enumerate(plan):
                own = row[min(played - first, len(row) - 1)].tolist()
                match.hold(car, player_input(car, own).controller_state)
            if played % _KICK_EVERY == 1:
                match.set_state(_kick_ball(random))
        last_phase = phase
        match.advance()
    return parity


def _decide(
    parity: Parity, names: _NumberNames, sim: _WorldSide, live: _WorldSide, state: MatchState,
    seen: MatchState, began: bool, action: np.ndarray,
) -> list[np.ndarray]:  # fmt: skip
    """Compare what both worlds make of one decision; return the simulator's rows, `(ticks, 8)` a car."""
    ours, theirs = sim.observe(state, began), live.observe(seen, began)
    if (seen.car_known < 1).any():
        parity.unknown += 1
    else:
        parity.compared += 1
        _compare_observations(parity, names, ours, theirs, state, seen)
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


_ENDLESS: Final = 1e6  # s


def _begin_match(team_sizes: tuple[int, int], seed: int, hitbox: int) -> Match:
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


def _kick_ball(random: np.random.Generator) -> flat.DesiredGameState:
    """Return a ball somewhere in the air, on its way."""
    x, y, z = random.uniform((-2500, -3500, 300), (2500, 3500, 1200)).tolist()
    fast = flat.Vector3Partial(*random.uniform(-1500, 1500, 3).tolist())
    return flat.DesiredGameState(
        [flat.DesiredBallState(flat.DesiredPhysics(flat.Vector3Partial(x, y, z), None, fast))]
    )


def _read_state(match: Match) -> MatchState:
    """Return the state as the simulator has it, without touches: the caller adds up those of all ticks."""
    state = match.simulation.state.copy()
    state.car_ball_touches[:] = 0
    referee = match.referee
    state.frame[0], state.phase[0] = match.frame, referee.phase
    state.clock[0], state.overtime[0] = referee.clock / TICKS_PER_SECOND, referee.overtime
    state.score[0] = referee.score
    return state


def _draw_actions(parts: Components, seed: int, agents: Sequence[str]) -> Iterator[np.ndarray]:
    """Yield random actions `(1, cars)` or `(1, cars, k)`, each held for up to 11 decisions."""
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
