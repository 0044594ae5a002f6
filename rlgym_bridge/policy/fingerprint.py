"""Take the fingerprint of a policy's components: their numbers for a few fixed states and actions.

It catches a builder that orders or scales its numbers differently, and a parser whose actions changed
meaning: where they differ from what a manifest recorded, each difference is described.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Literal

import numpy as np

from rlgym_bridge import game
from rlgym_bridge.components.actions import action_space
from rlgym_bridge.components.ball_ahead import is_forecast
from rlgym_bridge.components.batch_form import works_in_batches
from rlgym_bridge.components.episode import ComponentCalls
from rlgym_bridge.components.spec import TRUSTED, Components
from rlgym_bridge.components.user_errors import locate_method
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.policy.symmetry import Mirror
from rlgym_bridge.rotations import rotation_of
from rlgym_bridge.state import MatchState, derive
from rlgym_bridge.user_input.arguments import count_of

_MAX_ACTIONS: Final = 128  # of a long action table, this many rows are enough


@dataclass(frozen=True)
class Fingerprint:
    """The numbers of one set of components for the probe."""

    observations: list[list[float]]  # for each team sizes, each probe state, the first and last car
    labels: list[str]  # for each such row its match, state and car, in words
    names: list[tuple[str, ...] | None]  # names of each row's numbers; None where it has none
    controls: list[list[float]]  # for each probe action: ticks given (0 for none), first and last row
    space: tuple[str, tuple[int, ...]]  # the parser's action space: kind of distribution and sizes
    masks: list[list[float]]  # for each row of `observations` what the car may choose, 0 or 1; or []

    @property
    def obs_size(self) -> int:
        """Numbers in an observation."""
        return len(self.observations[0])

    @property
    def ticks(self) -> int | None:
        """Ticks that the parser gives for every action; None where it gives single rows, or differing."""
        ticks = {int(row[0]) for row in self.controls} - {0}
        return ticks.pop() if len(ticks) == 1 else None

    @property
    def probe(self) -> dict[Literal["observations", "controls", "masks"], list[list[float]]]:
        """Observations, controls and masks, as the manifest keeps them."""
        masks: dict[Literal["observations", "controls", "masks"], list[list[float]]]
        masks = {"masks": self.masks} if self.masks else {}
        return {"observations": self.observations, "controls": self.controls, **masks}

    def mirror(self) -> Mirror:
        """Return the mirrored forms of observation and actions; raises ValueError where there are none."""
        kind, sizes = self.space
        if self.names[0] is None or kind != "categorical" or len(self.controls) != sizes[0]:
            raise ValueError(
                "mirroring needs an observation with names for its numbers, such as TeamObs, and one choice "
                f"of {_MAX_ACTIONS} at most, such as LookupTableAction; here the observation has "
                f"{'no ' if self.names[0] is None else ''}names, and the actions are {kind} {sizes}"
            )
        return Mirror(self.names[0], np.array(self.controls)[:, 1 : 1 + len(game.CONTROL_NAMES)])


@contextmanager
def same_draws() -> Iterator[None]:
    """Let mutators draw the same from the global generators each time, and put the generators back."""
    plain, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 (mutators use these)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(numpy)  # noqa: NPY002


@same_draws()
def fingerprint(components: Components, team_sizes: Sequence[tuple[int, int]], hitbox: int) -> Fingerprint:
    """Show the probe to fresh components, in RLGym's order of calls; raises ValueError where they fail."""
    builder = components.obs_builder
    if builder is None:
        raise ValueError(
            "there is no observation builder; a policy that reads the state alone needs no folder"
        )
    rows, labels, names, sizes, masks = [], [], [], {}, []
    for blue, orange in team_sizes:
        states = probe_states(blue, orange, hitbox)
        for i, (obs, allowed) in enumerate(_observations(components, states)):
            for car in sorted({0, states[0].layout.cars - 1}):
                labels.append(f"{blue} against {orange}, probe state {i}, car {car}")
                rows.append(_readable(obs[0, car], labels[-1]))
                names.append(_names(builder, blue, orange, car, len(rows[-1])))
                sizes[blue, orange] = len(rows[-1])
                masks += [] if allowed is None else [allowed[0, car].astype(float).tolist()]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(_explain_sizes(builder, sizes))
    if masks and len(masks) < len(rows):
        raise ValueError("some of the probe states have an action mask, others none; expected all or none")
    calls = _begin(components, states[0])
    space = _space_of(calls)
    controls = [_probe_controls(calls, action) for action in _probe_actions(*space)]
    return Fingerprint(rows, labels, names, controls, space, masks)


def _explain_sizes(builder: Any, sizes: Mapping[tuple[int, int], int]) -> str:
    """Say that observations differ in size from match to match, and what to set."""
    matches = ", ".join(f"{size} in {blue}v{orange}" for (blue, orange), size in sizes.items())
    most = max(map(max, sizes))
    pad = (
        f"set zero_padding = {most}"
        if hasattr(builder, "zero_padding")
        else f"pad them to {most} cars a team"
    )
    return (
        f"observation sizes differ: {type(builder).__name__} gives {matches}; {pad}, or train and save one "
        "policy for each team size"
    )


def _probe_actions(distribution: str, sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Return actions of shape (1,) or (k,)."""
    if distribution == "categorical":
        chosen = np.unique(np.linspace(0, sizes[0] - 1, min(sizes[0], _MAX_ACTIONS)).round().astype(np.int64))
        return [np.array([action]) for action in chosen]
    if distribution == "multi_categorical":
        return [np.array([(i + j) % size for j, size in enumerate(sizes)]) for i in range(2 * max(sizes))]
    return [
        np.array([0.3 * ((i + 3 * j) % 9 - 4) for j in range(sizes[0])], np.float32) for i in range(9)
    ]  # -1.2 .. 1.2


def _begin(components: Components, state: MatchState) -> ComponentCalls:
    """Begin an episode of the probe: conditions and rewards have no part in it."""
    calls = ComponentCalls(components, (components.obs_builder, components.parser))
    calls.begin(state, range(state.layout.cars))
    return calls


def _observations(
    components: Components, states: Sequence[MatchState]
) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """Yield observations `(1, cars, size)` and masks of each state, one action apart."""
    calls = _begin(components, states[0])
    for number, state in enumerate(states):
        if number:
            _probe_controls(calls, _probe_actions(*_space_of(calls))[0])
            calls.step(state)
        observations = calls.observe()
        assert observations is not None  # the caller has checked that there is a builder
        yield observations, calls.masks()


def _space_of(calls: ComponentCalls) -> tuple[str, tuple[int, ...]]:
    return action_space(calls.parts.parser.get_action_space(calls.agents[0]))


def _probe_controls(calls: ComponentCalls, action: np.ndarray) -> list[float]:
    """Parse one action for all agents; return ticks, first row and last row of the first agent."""
    agents, parser = calls.agents, calls.parts.parser
    actions = {agent: action.copy() for agent in agents}
    parsed = parser.parse_actions(actions, calls.game, calls.shared_info)
    name = type(parser).__name__
    if not isinstance(parsed, Mapping) or set(agents) - set(parsed):
        raise ValueError(f"{name} gave {parsed!r:.80}, expected rows for each of {agents}")
    every = [np.asarray(parsed[agent], np.float32) for agent in agents]
    for rows in every:
        if rows.ndim not in (1, 2) or rows.shape[-1] != 8 or rows.size == 0:
            raise ValueError(
                f"{name} gave rows of shape {rows.shape} for action {action.tolist()}, expected (8,) or "
                "(ticks, 8)"
            )
        if action.dtype.kind != "f" or np.abs(action).max() <= 1:  # none clips beyond
            checked_rows(rows, 1, f"{name}'s answer to action {action.tolist()}")
    if len({rows.shape for rows in every}) > 1:
        raise ValueError(
            f"{name} gave rows of shapes {[rows.shape for rows in every]} for the same action of "
            f"{agents}, expected the same number of ticks"
        )
    rows = every[0]
    ticks = float(len(rows)) if rows.ndim == 2 else 0.0
    table = rows.reshape(-1, 8)
    return [ticks, *_readable(table[0], "controls"), *_readable(table[-1], "controls")]


def _readable(values: np.ndarray, label: str) -> list[float]:
    """Return the numbers with the nine digits that a float32 has."""
    if not np.isfinite(values).all():
        raise ValueError(f"number {np.argmin(np.isfinite(values))} is not finite ({label})")
    return [float(f"{value:.9g}") for value in values.tolist()]


def _names(builder: Any, blue: int, orange: int, car: int, size: int) -> tuple[str, ...] | None:
    if not works_in_batches(builder) or not hasattr(builder, "names"):
        return None
    names = tuple(builder.names(blue, orange, car))
    if len(names) != size:
        raise ValueError(
            f"{type(builder).__name__} gives {size} numbers and names for {len(names)}, expected a name for "
            f"each: change build_batch or names{locate_method(builder, 'build_batch')}"
        )
    return names


PROBE_STATES: Final = 6
_GOLDEN: Final = (math.sqrt(5) - 1) / 2  # its multiples, modulo 1, spread evenly without repeating


def probe_states(blue: int, orange: int, hitbox: int) -> list[MatchState]:
    """Return `PROBE_STATES` states that differ in every field, at no symmetric spot, made by a formula.

    Changing them makes every saved policy unreadable: count `manifest.FORMAT` up with it. From state to state
    the cars take turns at the situations below, so that no two flags are equal throughout.
    """
    states = []
    for i in range(PROBE_STATES):
        state = MatchState(blue, orange)
        numbers = (((k + 1) * _GOLDEN) % 1.0 for k in count(1000 * i))

        def spread(low: float, high: float, shape: int = 1, numbers: Any = numbers) -> list[float]:
            return [low + (high - low) * next(numbers) for _ in range(shape)]

        _fill_match(state, i, spread)
        for car in range(state.layout.cars):
            state.car_player_id[0, car] = car
            state.car_hitbox[0, car] = hitbox
            _fill_car(state, car, spread)
            _SITUATIONS[(i + car) % len(_SITUATIONS)](state, car, spread)
        state.car_known[:] = 1
        derive(state)
        states.append(state)
    return states


def _fill_match(state: MatchState, i: int, spread: Any) -> None:
    state.frame[:] = 1000 + 8 * i
    state.phase[:], state.clock[:] = game.Phase.ACTIVE, 211 - i
    state.score[:] = (1, 2)
    state.gravity[:], state.boost_consumption[:], state.dodge_deadzone[:] = 1, 1, game.DODGE_DEADZONE
    state.ball_known[:] = 1
    state.ball_position[:] = (*spread(-3500, 3500), *spread(-4500, 4500), *spread(150, 1800))
    state.ball_rotation[:] = np.reshape(rotation_of(*spread(-1.2, 1.2, 3)), (3, 3))
    state.ball_linear_velocity[:] = spread(-1500, 1500, 3)
    state.ball_angular_velocity[:] = spread(-5, 5, 3)
    for pad in range(game.PAD_COUNT):
        if (pad + i) % 3 == 0:
            longest = game.BIG_PAD_SECONDS if pad in game.BIG_PADS else game.SMALL_PAD_SECONDS
            state.pad_timer[0, pad] = spread(0.1, longest)[0]


def _fill_car(state: MatchState, car: int, spread: Any) -> None:
    state.car_team[0, car] = 0 if car < state.layout.blue else game.ORANGE
    state.car_position[0, car] = (*spread(-3800, 3800), *spread(-4800, 4800), *spread(100, 1900))
    state.car_rotation[0, car] = np.reshape(rotation_of(*spread(-1.2, 1.2, 3)), (3, 3))
    state.car_linear_velocity[0, car] = spread(-1100, 1100, 3)
    state.car_angular_velocity[0, car] = spread(-3, 3, 3)
    state.car_boost_amount[0, car] = spread(5, 95)[0]
    state.car_handbrake[0, car] = spread(0.1, 0.9)[0]
    state.car_bump_victim[0, car] = -1
    state.car_controls[0, car, :5] = spread(-1, 1, 5)


def _drive(state: MatchState, car: int, spread: Any) -> None:
    """On the ground, boosting, supersonic, touching the ball and having bumped the car before it."""
    state.car_position[0, car, 2] = 17.0
    state.car_rotation[0, car] = np.reshape(rotation_of(0.0, spread(-3, 3)[0], 0.0), (3, 3))
    state.car_linear_velocity[0, car, 2] = 0
    state.car_wheels_with_contact[0, car] = 1
    state.car_boost_active_time[0, car] = spread(0.1, 1.5)[0]
    state.car_supersonic_time[0, car] = spread(0.1, 1.5)[0]
    state.car_ball_touches[0, car] = 2
    state.car_bump_victim[0, car] = car - 1


def _dodge(state: MatchState, car: int, spread: Any) -> None:
    """In the air, in a dodge."""
    state.car_has_jumped[0, car] = state.car_has_flipped[0, car] = 1
    state.car_jump_time[0, car] = 0.2
    state.car_air_time_since_jump[0, car] = spread(0.3, 1.1)[0]
    state.car_flip_time[0, car] = spread(0.05, 0.55)[0]
    state.car_flip_torque[0, car, :2] = spread(-1, 1, 2)


def _demolish(state: MatchState, car: int, spread: Any) -> None:
    """Demolished after a dodge that is spent."""
    state.car_has_jumped[0, car] = state.car_has_flipped[0, car] = 1
    state.car_flip_time[0, car] = 0.9
    state.car_demo_respawn_timer[0, car] = spread(0.5, 2.9)[0]


def _rise(state: MatchState, car: int, spread: Any) -> None:
    """In the air, rising, with the jump button held and two wheels still touching."""
    state.car_has_jumped[0, car] = state.car_is_jumping[0, car] = state.car_is_holding_jump[0, car] = 1
    state.car_controls[0, car, 5] = 1
    state.car_jump_time[0, car] = spread(0.03, 0.19)[0]
    state.car_wheels_with_contact[0, car] = (0, 0, 1, 1)


def _double_jump(state: MatchState, car: int, spread: Any) -> None:
    """In the air, boosting, the second jump just pressed."""
    state.car_has_jumped[0, car] = state.car_has_double_jumped[0, car] = 1
    state.car_is_holding_jump[0, car] = state.car_controls[0, car, 5] = 1
    state.car_air_time_since_jump[0, car] = spread(0.3, 1.1)[0]
    state.car_boost_active_time[0, car] = spread(0.1, 1.5)[0]


def _fall(state: MatchState, car: int, spread: Any) -> None:
    """In the air without a jump, supersonic, a dodge left."""
    state.car_supersonic_time[0, car] = spread(0.1, 1.5)[0]


_SITUATIONS: Final = (_drive, _dodge, _demolish, _rise, _double_jump, _fall)


TOLERANCE: Final = 1e-5
"""Of probe numbers, absolute, and relative to those above 1: room for another processor's last digits."""

FORECAST_TOLERANCE: Final = 5e-3
"""The same of the ball to come: forecasts with and without `rocketsim_batch` differ by 2 uu in the probe."""

_SHOWN: Final = 5


def differences(manifest: Manifest, built: Fingerprint, components: Components) -> list[str]:
    """Return a sentence for each difference of what was recorded and what is here."""
    comparisons = _compare_observations, _compare_controls, _compare_masks
    found = [sentence for compare in comparisons for sentence in compare(manifest, built)]
    if built.ticks not in (None, manifest.tick_skip):
        found.append(
            f"tick_skip is {manifest.tick_skip} and the parser gives {built.ticks} ticks an action "
            f"(RepeatAction sets them)"
        )
    if components.action_delay not in (None, manifest.action_delay):
        found.append(
            f"action_delay is {manifest.action_delay} and the environment's engine has "
            f"{components.action_delay}"
        )
    if built.space[0] != manifest.action_kind:
        found.append(
            f"distribution is {manifest.distribution}, the parser's action space needs {built.space[0]} "
            f"over {built.space[1]}"
        )
    return found


def changed_own(manifest: Manifest, built: Fingerprint) -> list[str]:
    """Return the names of components that differ and are the user's own."""
    sides = (
        (manifest.obs, _compare_observations),
        (manifest.parser, _compare_controls),
        (manifest.parser, _compare_masks),
    )
    changed = [spec for spec, compare in sides if spec is not None and compare(manifest, built)]
    names = [] if manifest.env is None else [manifest.env]
    while changed:
        spec = changed.pop(0)
        names.append(spec.path)
        if spec.nested is not None:
            changed.append(spec.nested)
    return [name for name in names if name.partition(":")[0].partition(".")[0] not in TRUSTED]


def _compare_observations(manifest: Manifest, built: Fingerprint) -> list[str]:
    recorded, names = manifest.obs_names, built.names[0]
    if recorded is not None and names is not None and recorded != names:
        moved = [i for i, (was, now) in enumerate(zip(recorded, names, strict=False)) if was != now]
        at = moved[0] if moved and set(recorded) == set(names) else None
        return [
            f"the observation was {len(recorded)} numbers and is {len(names)} here"
            + _listed("; new here: ", [name for name in names if name not in recorded])
            + _listed("; gone: ", [name for name in recorded if name not in names])
            + ("" if at is None else f"; number {at} was {recorded[at]} and is {names[at]}")
        ]
    if manifest.obs_size != built.obs_size:
        return [f"the observation was {manifest.obs_size} numbers (obs_size) and is {built.obs_size} here"]
    rows = manifest.probe["observations"]
    if [len(row) for row in rows] != [len(row) for row in built.observations]:
        return [f"probe.observations has {len(rows)} rows, this checkout makes {len(built.observations)}"]
    changed: dict[str, str] = {}
    for row, here, label, row_names in zip(rows, built.observations, built.labels, built.names, strict=True):
        for i in _unequal(row, here, row_names):
            name = f"number {i}" if row_names is None else row_names[i]
            changed.setdefault(name, f"{name} was {row[i]:.7g} and is {here[i]:.7g} ({label})")
    said = f"{count_of(len(changed), 'element')} of the observation changed: {_first(list(changed.values()))}"
    return [said] if changed else []


def _compare_controls(manifest: Manifest, built: Fingerprint) -> list[str]:
    rows = manifest.probe["controls"]
    if [len(row) for row in rows] != [len(row) for row in built.controls]:
        return [
            f"the parser had {len(rows)} probe actions (probe.controls) and has {len(built.controls)} here, "
            f"its action space being {built.space}"
        ]
    rows_named = (f"{name} of the {row} row" for row in ("first", "last") for name in game.CONTROL_NAMES)
    headings = ("ticks", *rows_named)
    changed = [
        f"{headings[i]} for probe action {action} was {row[i]:g} and is {here[i]:g}"
        for action, (row, here) in enumerate(zip(rows, built.controls, strict=True))
        for i in _unequal(row, here)
    ]
    return [f"{len(changed)} controls of the parser changed: {_first(changed)}"] if changed else []


def _compare_masks(manifest: Manifest, built: Fingerprint) -> list[str]:
    rows = manifest.probe.get("masks", [])
    if bool(rows) != bool(built.masks):
        return [
            f"it was trained {'with' if rows else 'without'} action masks, and the parser here gives "
            f"{'some' if built.masks else 'none'}"
        ]
    if [len(row) for row in rows] != [len(row) for row in built.masks]:
        return [f"probe.masks has {len(rows)} rows, this checkout makes {len(built.masks)} of other lengths"]
    changed = [
        f"action {i} was {'allowed' if row[i] else 'forbidden'} ({label})"
        for row, here, label in zip(rows, built.masks, built.labels, strict=False)
        for i in _unequal(row, here)
    ]
    return [f"{len(changed)} places of the action masks changed: {_first(changed)}"] if changed else []


def _unequal(
    recorded: Sequence[float], here: Sequence[float], names: Sequence[str] | None = None
) -> list[int]:
    was, now, tolerance = np.asarray(recorded, float), np.asarray(here, float), np.array(TOLERANCE)
    if names is not None:
        tolerance = np.where(list(map(is_forecast, names)), FORECAST_TOLERANCE, TOLERANCE)
    return [int(i) for i in np.flatnonzero(np.abs(was - now) > tolerance * np.maximum(1.0, np.abs(was)))]


def _listed(heading: str, names: list[str]) -> str:
    return heading + _first(names) if names else ""


def _first(items: list[str]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more
