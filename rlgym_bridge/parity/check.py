"""Does a bot see and do the same in both worlds? The same components on the simulator's state and on packets.

    match in RocketSim -+-> state -------------------> builder -> observation \
                        |                                                      compared, number by number
                        +-> packet -> bytes -> decoder -> builder -> observation /

    parser -> rows -+-> RocketSim's controls \
                    +-> RLBot's input          compared

Both sides have components of their own, called in RLGym's order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from rlbot import flat

from rlgym_bridge.compare.mirror import turn
from rlgym_bridge.components.batching import control_rows, observe, works_in_batches
from rlgym_bridge.components.spec import Components
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.game import CONTROL_NAMES, PLAYING_PHASES
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.packets.inputs import player_input
from rlgym_bridge.parity import random_match
from rlgym_bridge.rlgym_state import to_rlgym
from rlgym_bridge.server.packer import field_info
from rlgym_bridge.sim.reader import control_of
from rlgym_bridge.state import CAR_FIELDS, MATCH_FIELDS, MatchState

TOLERANCE: Final = 1e-5
"""Greatest difference of a number, times its size where that is above 1: float32 has 7 digits."""

ROTATION_TOLERANCE: Final = 3e-4
"""Of an element of a rotation matrix: packets hold float32 angles, worst within a degree of vertical."""

_KICK_EVERY: Final = 400  # ticks between two shots of the ball: who acts at random hardly touches it
_SYMMETRY_EVERY: Final = 25  # decisions: an environment of one's own may take long to make


@dataclass
class Mismatch:
    """A number that differs.

    Attributes:
        name: Of the number; where the builder has no names its index, and the state's field it comes from.
        count: How often.
        worst: Greatest difference.
    """

    name: str
    count: int = 0
    worst: float = 0.0


@dataclass
class Parity:
    """What a comparison found.

    Attributes:
        samples: Observations and control rows compared.
        numbers: Numbers in them.
        compared: Decisions whose observations were compared.
        unknown: Decisions left out, because the decoder says of a field that it cannot know it then.
        mismatches: What differs, the most frequent first.
    """

    samples: int = 0
    numbers: int = 0
    compared: int = 0
    unknown: int = 0
    _found: dict[str, Mismatch] = field(default_factory=dict)

    @property
    def mismatches(self) -> list[Mismatch]:
        """What differs, the most frequent first."""
        return sorted(self._found.values(), key=lambda one: (-one.count, one.name))

    def note(self, name: str, difference: float) -> None:
        """Count a number that differs."""
        one = self._found.setdefault(name, Mismatch(name))
        one.count += 1
        one.worst = max(one.worst, difference)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "samples": self.samples,
            "numbers": self.numbers,
            "unknown": self.unknown,
            "mismatches": [
                {"name": one.name, "count": one.count, "worst": one.worst} for one in self.mismatches
            ],
        }


def compare(
    components: Callable[[], Components],
    team_size: int = 1,
    ticks: int = 6000,
    seed: int = 0,
    *,
    tick_skip: int | None = None,
    hitbox: int = 0,
) -> Parity:
    """Play a match of random actions and compare what the components make of it in both worlds.

    Args:
        components: Makes builder, parser and shared info; called for each side.
        team_size: Cars a team.
        ticks: Of play.
        seed: Of match and actions.
        tick_skip: Ticks that an action has to last; None: as many as the parser says.
        hitbox: Of all cars, `game.HITBOXES`.

    Raises:
        ValueError: There is no builder, or it refuses the match.
    """
    match = random_match.begin(team_size, seed, hitbox)
    found = Parity()
    sim, live = _Side(components()), _Side(components())
    decoder = Decoder(field_info(), flat.MatchConfiguration(mutators=flat.MutatorSettings()))
    actions = random_match.draw(sim.parts, seed, 2 * team_size)
    names = _Names(components)
    symmetry = _Symmetry(found, components, names)
    random = np.random.default_rng((seed, 1))
    plan: list[np.ndarray] = []
    touches = np.zeros(2 * team_size)  # since the last decision
    last_phase, played, due, first = -1, 0, 0, 0
    while played < ticks:
        packet = flat.CorePacket.unpack(flat.CorePacket(match.packet()).pack()).message
        assert isinstance(packet, flat.GamePacket)  # what was packed
        seen = decoder.update(packet)
        phase = match.referee.phase
        if phase in PLAYING_PHASES:
            played += 1
            for slot in match.simulation.events.touches:
                touches[slot] += 1
            began = last_phase not in PLAYING_PHASES
            if began or played >= due:
                state = random_match.read(match, hitbox)
                state.car_ball_touches[0] = touches
                touches[:] = 0
                _forgive(state, seen)
                plan = _decide(found, sim, live, state, seen, began, actions, names)
                symmetry.look(state)
                due, first = played + _lasts(found, plan, tick_skip), played
                decoder.clear_touches()
            for slot, row in enumerate(plan):
                own = row[min(played - first, len(row) - 1)].tolist()
                match.hold(slot, player_input(slot, own).controller_state)
            if played % _KICK_EVERY == 1:
                match.set_state(random_match.shot(random))
        last_phase = phase
        match.advance()
    return found


class _Side:
    """Components that see one of the two worlds."""

    def __init__(self, parts: Components) -> None:
        if parts.obs_builder is None:
            raise ValueError("there is no observation builder to compare")
        self.parts = parts
        self._size: int | None = None
        self.shared: dict[str, Any] = {}
        if parts.shared_info_provider is not None:
            self.shared = parts.shared_info_provider.create({})

    def observe(self, state: MatchState, began: bool) -> tuple[np.ndarray, Any]:
        """Return the observations of all cars, and RLGym's form of the state."""
        parts, agents, game = self.parts, list(state.agents), to_rlgym(state)
        provider = parts.shared_info_provider
        if began:
            if provider is not None:
                self.shared = provider.set_state(agents, game, provider.create(self.shared))
            for part in (parts.obs_builder, parts.parser):
                assert part is not None  # checked by the constructor
                part.reset(agents, game, self.shared)
        elif provider is not None:
            self.shared = provider.step(agents, game, self.shared)
        assert parts.obs_builder is not None
        shown = observe(parts.obs_builder, range(len(agents)), state, game, self.shared)[0]
        name = type(parts.obs_builder).__name__
        if not np.isfinite(shown).all():
            seat, number = np.argwhere(~np.isfinite(shown))[0].tolist()
            raise ValueError(
                f"{name} shows {agents[seat]} {shown[seat, number]} as number {number}, expected a finite one"
            )
        if self._size not in (None, shown.shape[1]):
            raise ValueError(f"{name} gave {self._size} numbers and then {shown.shape[1]}, expected as many")
        self._size = shown.shape[1]
        return shown, game


def _decide(
    found: Parity, sim: _Side, live: _Side, state: MatchState, seen: MatchState, began: bool,
    actions: Iterator[np.ndarray], names: "_Names",
) -> list[np.ndarray]:  # fmt: skip
    ours, game = sim.observe(state, began)
    theirs, packet_game = live.observe(seen, began)
    if (seen.car_known < 1).any():
        found.unknown += 1
    else:
        found.compared += 1
        _compare_observations(found, names, ours, theirs, state, seen)
    action = next(actions)
    seats = range(state.layout.cars)
    rows = []
    for side, one, its_game in ((sim, state, game), (live, seen, packet_game)):
        name = type(side.parts.parser).__name__
        given = control_rows(side.parts.parser, action.copy(), seats, one, its_game, side.shared)
        rows.append([checked_rows(row, 1, name) for row in given])
    for into_sim, into_match in zip(*rows, strict=True):
        found.samples += 1
        found.numbers += into_sim.size
        if len(into_sim) != len(into_match):
            found.note("control rows: number of ticks", abs(len(into_sim) - len(into_match)))
        for a, b in zip(into_sim.tolist(), into_match.tolist(), strict=False):
            controls, held = control_of(a), player_input(0, b).controller_state
            for name in CONTROL_NAMES:
                difference = abs(float(getattr(controls, name)) - float(getattr(held, name)))
                if difference > TOLERANCE:
                    found.note(f"control {name}", difference)
            for index, name in enumerate(CONTROL_NAMES):
                if abs(float(getattr(held, name)) - b[index]) > TOLERANCE:
                    found.note(f"control {name} of the input", abs(float(getattr(held, name)) - b[index]))
    return rows[0]


def _lasts(found: Parity, rows: Sequence[np.ndarray], tick_skip: int | None) -> int:
    """Return how long actions last, and note where that is not as it should be."""
    lasts = max(map(len, rows))
    if tick_skip is not None and lasts > 1 and lasts != tick_skip:
        found.note(f"tick skip: the parser gives {lasts} rows, expected {tick_skip}", abs(lasts - tick_skip))
    return tick_skip if lasts == 1 and tick_skip is not None else lasts


# --- observations ------------------------------------------------------------------------------------


def _compare_observations(
    found: Parity, names: "_Names", ours: np.ndarray, theirs: np.ndarray, state: MatchState, seen: MatchState
) -> None:
    found.samples += len(ours)
    found.numbers += ours.size
    if ours.shape != theirs.shape:
        found.note(f"size of the observation: {ours.shape[1]} and {theirs.shape[1]}", 0.0)
        return
    difference = np.abs(ours - theirs)
    for seat, number in np.argwhere(_off(difference, ours)).tolist():
        found.note(names.name(state, seen, seat, number), float(difference[seat, number]))


def _off(difference: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Tell which numbers differ by more than the tolerance; NaN does."""
    off: np.ndarray = ~(difference <= TOLERANCE * np.maximum(1, np.abs(numbers)))
    return off


class _Names:
    """Names of the numbers in an observation."""

    def __init__(self, components: Callable[[], Components]) -> None:
        self._make = components
        builder: Any = components().obs_builder
        self._names = builder.names if works_in_batches(builder) and hasattr(builder, "names") else None
        self._sources: dict[tuple[int, int], str] = {}

    def plain(self, state: MatchState, seat: int, number: int) -> str:
        """Return the builder's own name of a number; else its index."""
        if self._names is None:
            return f"number {number}"
        return str(self._names(state.layout.blue, state.layout.orange, seat)[number])

    def name(self, state: MatchState, seen: MatchState, seat: int, number: int) -> str:
        """Return the builder's own name of a number; else its index, and the fields that it differs by."""
        if self._names is not None:
            return self.plain(state, seat, number)
        if (seat, number) not in self._sources:
            differing = _differing(state, seen)
            fields = [one for one in differing if self._depends(state, seen, one, seat, number)] or differing
            self._sources[seat, number] = ", ".join(fields) or "no field of the state differs"
        return f"number {number} ({self._sources[seat, number]})"

    def _depends(self, state: MatchState, seen: MatchState, name: str, seat: int, number: int) -> bool:
        """Tell whether fresh components show another number where one field is as in the packet."""
        changed = state.copy()
        getattr(changed, name)[:] = getattr(seen, name)
        shown = [_Side(self._make()).observe(one, True)[0][seat, number] for one in (state, changed)]
        return bool(shown[0] != shown[1])


def _differing(state: MatchState, seen: MatchState) -> list[str]:
    """Return the fields in which two states differ."""
    names = [one.name for one in MATCH_FIELDS] + ["car_" + one.name for one in CAR_FIELDS]
    skipped = ("car_known", "car_player_id", "frame", "phase", "clock", "overtime", "score", "car_controls")
    found = []
    for name in names:
        a, b = getattr(state, name), getattr(seen, name)
        if name not in skipped and not np.allclose(a, b, atol=TOLERANCE, rtol=TOLERANCE, equal_nan=False):
            found.append(name)
    return found


def _forgive(state: MatchState, seen: MatchState) -> None:
    """Turn the simulator's bodies as the packet has them, where that is no more than rounding."""
    for name in ("ball_rotation", "car_rotation"):
        mine, theirs = getattr(state, name), getattr(seen, name)
        np.copyto(mine, theirs, where=np.abs(mine - theirs) <= ROTATION_TOLERANCE)


class _Symmetry:
    """Looks whether orange is shown what blue is shown in the same match turned by 180 degrees."""

    def __init__(self, found: Parity, components: Callable[[], Components], names: _Names) -> None:
        self._found, self._make, self._names = found, components, names
        self._states = 0

    def look(self, state: MatchState) -> None:
        """Look at a state now and then; builders, which may remember, are fresh ones each time."""
        self._states += 1
        if self._states % _SYMMETRY_EVERY != 1:
            return
        blue = state.layout.blue
        shown = [_Side(self._make()).observe(one, True)[0] for one in (state, turn(state))]
        expected = np.concatenate([shown[1][blue:], shown[1][:blue]])  # seats change sides
        self._found.samples += len(expected)
        self._found.numbers += expected.size
        difference = np.abs(shown[0] - expected)
        for seat, number in np.argwhere(_off(difference, expected)).tolist():
            name = f"mirrored: {self._names.plain(state, seat, number)}"
            self._found.note(name, float(difference[seat, number]))
