"""What a policy's components make of a few fixed states and actions: the fingerprint in its manifest.

It catches a builder that orders or scales its numbers differently without changing how many they are,
and a parser whose actions changed meaning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.batching import observe, works_in_batches
from rlgym_bridge.components.spec import Components
from rlgym_bridge.controls import checked_rows
from rlgym_bridge.policy.fingerprint_states import probe_states
from rlgym_bridge.rlgym_state import to_rlgym
from rlgym_bridge.state import MatchState

_MAX_ACTIONS: Final = 128  # of a long action table, this many rows are enough


@dataclass(frozen=True)
class Fingerprint:
    """What one set of components made of the probe.

    Attributes:
        observations: Rows of numbers: for each of the team sizes, each probe state, the first and last car.
        labels: For each such row, which match, state and seat it is.
        names: For each such row the names of its numbers; None where the builder has none.
        controls: For each probe action: ticks given (0 for a single row without ticks), first row, last row.
        space: The parser's action space: kind of distribution and sizes.
    """

    observations: list[list[float]]
    labels: list[str]
    names: list[tuple[str, ...] | None]
    controls: list[list[float]]
    space: tuple[str, tuple[int, ...]]

    @property
    def obs_size(self) -> int:
        """Numbers in an observation."""
        return len(self.observations[0])

    @property
    def ticks(self) -> int | None:
        """Ticks that the parser gives for every action; None where it gives single rows, or differing."""
        ticks = {int(row[0]) for row in self.controls} - {0}
        return ticks.pop() if len(ticks) == 1 else None


def fingerprint(components: Components, team_sizes: Sequence[tuple[int, int]], hitbox: int) -> Fingerprint:
    """Show the probe to the components, in the order of calls of `RLGym.reset` and `RLGym.step`.

    Args:
        components: Fresh ones; their state is used up.
        team_sizes: (blue, orange) of each match to show.
        hitbox: Number of the cars' hitbox.

    Raises:
        ValueError: The builder refuses a match, gives numbers that are not finite, or sizes that differ from
            match to match; the parser's action space or rows are not understood.
    """
    builder = components.obs_builder
    if builder is None:
        raise ValueError(
            "there is no observation builder; a policy that reads the state alone needs no folder"
        )
    rows, labels, names, controls = [], [], [], []
    for blue, orange in team_sizes:
        states = probe_states(blue, orange, hitbox)
        seats = sorted({0, states[0].layout.cars - 1})
        episode = _Episode(components, states[0])
        for i, state in enumerate(states):
            obs = observe(builder, range(state.layout.cars), state, *episode.enter(state))
            for seat in seats:
                labels.append(f"{blue} against {orange}, probe state {i}, seat {seat}")
                rows.append(_readable(obs[0, seat], labels[-1]))
                names.append(_names(builder, blue, orange, seat, len(rows[-1])))
    if len({len(row) for row in rows}) > 1:
        sizes = ", ".join(f"{len(row)} ({label})" for row, label in zip(rows, labels, strict=True))
        raise ValueError(
            f"observation sizes differ: {sizes}; pad them, or save one policy for each team size"
        )
    space = action_space(components.parser.get_action_space(states[0].agents[0]))
    episode = _Episode(components, states[0])
    for action in _probe_actions(*space):
        controls.append(episode.controls(action))
    return Fingerprint(rows, labels, names, controls, space)


def action_space(space: Any) -> tuple[str, tuple[int, ...]]:
    """Return the distribution that fits an RLGym action space, and its sizes.

    Args:
        space: A pair of name and size, as RLGym's parsers give: `("discrete", 90)`,
            `("multi_discrete", (3, 2))`, `("continuous", 8)`; or of size and name, as an example in
            RLGym's documentation has it: `(8.0, "continuous")`.

    Raises:
        ValueError: It is something else.
    """
    try:
        name, size = reversed(space) if isinstance(space[1], str) else space
        sizes = tuple(int(n) for n in size) if isinstance(size, list | tuple | np.ndarray) else (int(size),)
    except (TypeError, ValueError, IndexError, KeyError):
        name, sizes = "", ()
    if not isinstance(name, str) or not sizes or min(sizes) < 1:
        raise ValueError(f'the action space is {space!r}, expected a pair such as ("discrete", 90)')
    if len(sizes) > 1:
        return "multi_categorical", sizes
    return ("categorical" if "discrete" in name else "gaussian"), sizes


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


class _Episode:
    """One episode of the probe, its calls in RLGym's order."""

    def __init__(self, components: Components, first: MatchState) -> None:
        self._components = components
        self._provider = components.shared_info_provider
        self._agents = list(first.agents)
        self._shared: dict[str, Any] = {} if self._provider is None else self._provider.create({})
        self._game = to_rlgym(first)
        if self._provider is not None:
            self._shared = self._provider.set_state(self._agents, self._game, self._shared)
        if components.obs_builder is not None:
            components.obs_builder.reset(self._agents, self._game, self._shared)
        components.parser.reset(self._agents, self._game, self._shared)
        self._entered = False

    def enter(self, state: MatchState) -> tuple[Any, dict[str, Any]]:
        """Step to a state; return what a builder is given of it. The first is the one of the reset."""
        if self._entered:
            space = action_space(self._components.parser.get_action_space(self._agents[0]))
            self.controls(_probe_actions(*space)[0])
            self._game = to_rlgym(state)
            if self._provider is not None:
                self._shared = self._provider.step(self._agents, self._game, self._shared)
        self._entered = True
        return self._game, self._shared

    def controls(self, action: np.ndarray) -> list[float]:
        """Parse one action for all agents; return ticks, first row and last row of the first agent."""
        actions = {agent: action.copy() for agent in self._agents}
        parsed = self._components.parser.parse_actions(actions, self._game, self._shared)
        name = type(self._components.parser).__name__
        if not isinstance(parsed, Mapping) or set(self._agents) - set(parsed):
            raise ValueError(f"{name} gave {parsed!r:.80}, expected rows for each of {self._agents}")
        every = [np.asarray(parsed[agent], np.float32) for agent in self._agents]
        for rows in every:
            if rows.ndim not in (1, 2) or rows.shape[-1] != 8 or rows.size == 0:
                raise ValueError(
                    f"{name} gave rows of shape {rows.shape} for action {action.tolist()}, expected (8,) or "
                    "(ticks, 8)"
                )
            if action.dtype.kind != "f" or np.abs(action).max() <= 1:  # none clips beyond
                checked_rows(rows, 1, f"{name}'s answer to action {action.tolist()}")
        rows = every[0]
        if len({one.shape for one in every}) > 1:
            raise ValueError(
                f"{name} gave rows of shapes {[one.shape for one in every]} for the same action of "
                f"{self._agents}, expected the same number of ticks"
            )
        ticks = float(len(rows)) if rows.ndim == 2 else 0.0
        table = rows.reshape(-1, 8)
        return [ticks, *_readable(table[0], "controls"), *_readable(table[-1], "controls")]


def _readable(values: np.ndarray, label: str) -> list[float]:
    """Return the numbers with the nine digits that a float32 has."""
    if not np.isfinite(values).all():
        raise ValueError(f"number {np.argmin(np.isfinite(values))} is not finite ({label})")
    return [float(f"{value:.9g}") for value in values.tolist()]


def _names(builder: Any, blue: int, orange: int, seat: int, size: int) -> tuple[str, ...] | None:
    if not works_in_batches(builder) or not hasattr(builder, "names"):
        return None
    names = tuple(builder.names(blue, orange, seat))
    if len(names) != size:
        raise ValueError(f"{type(builder).__name__} has {len(names)} names for {size} numbers")
    return names
