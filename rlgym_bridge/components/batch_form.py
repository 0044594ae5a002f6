"""Call any component in one way: in batches where it has a batch form, else match by match.

RLGym's form:  build_obs    parse_actions  get_rewards, reset  is_done, reset          apply
batch form:    build_batch  parse_batch    reward_batch        done_batch, reset_batch  apply_batch

Batch methods of standard components use a compiled form where one is provided, to the same bits.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, wraps
from typing import Any, Final, TypeGuard, TypeVar, cast

import numpy as np
from rlgym.api import ActionParser, DoneCondition, ObsBuilder, RewardFunction, StateMutator

from rlgym_bridge.components.actions import RepeatAction, action_space
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.components.rlgym_types import AnyCondition, CombinedReward, Game, SharedInfo
from rlgym_bridge.components.user_errors import locate_method
from rlgym_bridge.state import Layout, MatchState

_FORMS: Final = (
    (ObsBuilder, (("build_batch", "build_obs"),)),
    (ActionParser, (("parse_batch", "parse_actions"),)),
    (RewardFunction, (("reward_batch", "get_rewards"), ("reward_batch", "reset"))),
    (DoneCondition, (("done_batch", "is_done"), ("reset_batch", "reset"))),
    (StateMutator, (("apply_batch", "apply"),)),
)
"""For each kind of component its batch methods, and RLGym's methods that they stand for."""


def works_in_batches(component: object) -> bool:
    """Tell whether a component and all its parts have a batch form."""
    return third_party_part(component) is None


def third_party_part(component: object) -> Any | None:
    """Return a component's first part that works on RLGym's objects alone; None where all work in batches.

    A subclass of ours that overrides only RLGym's form counts, too: the batch form would bypass it.
    `RepeatAction` has a parser as its part; rewards, conditions and mutators have theirs in the attribute
    `parts`.
    """
    kind: Any = type(component)
    if not _has_batch_form(kind):
        return component
    for part in _parts_of(component):
        third_party = third_party_part(part)
        if third_party is not None:
            return third_party
    return None


_TWINS: Final = (
    "DefaultObs", "LookupTableAction", "RepeatAction", "conditions.GoalCondition",
    "conditions.NoTouchTimeoutCondition", "conditions.TimeoutCondition", "rewards.GoalReward",
    "rewards.TouchReward",
)  # fmt: skip
"""Classes of ours that give what RLGym's classes of the same name do, by their names in `rlgym_bridge`."""


def name_twin(kind: type) -> str | None:
    """Return the name of our class that gives what a class of RLGym does; None where there is none."""
    if not kind.__module__.startswith("rlgym.rocket_league."):
        return None
    names = (name for name in _TWINS if name.rpartition(".")[2] == kind.__qualname__)
    return next((f"rlgym_bridge.{name}" for name in names), None)


def third_party_leaves(component: object) -> list[Any]:
    """Return the parts of a component that have to be called match by match."""
    parts = open_parts(component)
    if parts:
        return [leaf for part in parts for leaf in third_party_leaves(part)]
    third_party = third_party_part(component)
    return [] if third_party is None else [third_party]


def open_parts(component: Any) -> Sequence[Any]:
    """Return the parts of a sum or of joined conditions that may be asked alone; () for all others.

    `join_columns` makes their answers one. These are our own classes with a method of that name, and RLGym's
    `CombinedReward` and `AnyCondition`, but no subclasses with a `get_rewards`, `is_done` or `reset` of their
    own.
    """
    kind: Any = type(component)
    if kind is CombinedReward:
        return tuple(component.reward_fns)
    if kind is AnyCondition:
        return tuple(component.conditions)
    asked = {RewardFunction: "get_rewards", DoneCondition: "is_done"}
    names = [name for base, name in asked.items() if isinstance(component, base)]
    if names and all(_stands_for(kind, "join_columns", name) for name in (*names, "reset")):
        return _parts_of(component)
    return ()


def every_part(component: Any) -> Iterator[Any]:
    """Yield a component and all that it is made of: parts of sums, of joined conditions and of mixtures."""
    yield component
    for part in open_parts(component) or _parts_of(component):
        yield from every_part(part)


def join_columns(component: Any, columns: Sequence[np.ndarray], layout: Layout) -> np.ndarray:
    """Join the answers of a component's opened parts, `(N, cars)`, of rewards or bools."""
    if type(component) is AnyCondition:
        return np.asarray(np.logical_or.reduce(columns))
    if type(component) is CombinedReward:
        total = np.zeros(columns[0].shape)
        for column, weight in zip(columns, component.weights, strict=True):
            total += column.astype(np.float64) * weight
        return total
    return np.asarray(component.join_columns(columns, layout))


def refuse_third_party(whole: object, third_party: object | None, needed: str, instead: str) -> None:
    """Raise TypeError, which names the part and what to call instead, unless `third_party` is None."""
    if third_party is not None:
        raise TypeError(
            f"{type(whole).__name__} holds {type(third_party).__name__}, which has no {needed} of its own; "
            f"use {instead}, one match at a time"
        )


def _parts_of(component: Any) -> Sequence[Any]:
    if isinstance(component, RepeatAction):
        return (component.parser,)
    if isinstance(component, ObsBuilder | ActionParser):
        return ()
    parts: Sequence[Any] = getattr(component, "parts", ())
    return parts


@cache
def _has_batch_form(kind: Any) -> bool:
    pairs = next((pairs for base, pairs in _FORMS if issubclass(kind, base)), None)
    return pairs is not None and all(_stands_for(kind, batch, single) for batch, single in pairs)


def _stands_for(kind: Any, batch: str, single: str) -> bool:
    """Tell whether `batch` is defined no further up among the bases than `single`."""
    batch_depth, single_depth = (
        next((depth for depth, base in enumerate(kind.__mro__) if name in vars(base)), None)
        for name in (batch, single)
    )
    return batch_depth is not None and single_depth is not None and batch_depth <= single_depth


def is_number_array(given: object) -> TypeGuard[np.ndarray]:
    """Tell whether something is an array of real numbers or of bools."""
    return isinstance(given, np.ndarray) and given.dtype.kind in "fiub"


def describe_array(given: object) -> str:
    """Describe in words what came in place of an array: its shape and dtype, or its type."""
    if isinstance(given, np.ndarray):
        return f"an array {given.shape} of {given.dtype}"
    return "None" if given is None else f"a {type(given).__name__}"


def check_observations(builder: Any, given: Any, state: MatchState, cars: Sequence[int]) -> np.ndarray:
    """Return observations `(matches, cars, size)`; raises ValueError unless they are so, and finite."""
    name = type(builder).__name__
    if not is_number_array(given) or given.ndim != 3 or given.shape[:2] != (state.matches, len(cars)):
        raise ValueError(
            f"{name} gave {describe_array(given)}, expected an array ({state.matches}, {len(cars)}, size) of "
            f"numbers: matches, cars and numbers of an observation{locate_method(builder, 'build_batch')}"
        )
    # A sum of squares is finite if every number is; one call, where isfinite().all() takes two.
    if not np.isfinite(np.vdot(given, given)) and not np.isfinite(given).all():
        match, car, number = (int(i) for i in np.argwhere(~np.isfinite(given))[0])
        which = f"number {number}{_name_of(builder, state, cars[car], number)}"
        raise ValueError(
            f"{name} gave {given[match, car, number]} as {which} for {state.agents[cars[car]]} in match "
            f"{match}, expected a finite number{locate_method(builder, 'build_batch')}"
        )
    return given


def _name_of(builder: Any, state: MatchState, car: int, number: int) -> str:
    """Return the name of an observation's number in brackets; "" where the builder tells none."""
    try:
        return f" ({builder.names(state.layout.blue, state.layout.orange, car)[number]})"
    except Exception:  # names are a user's own, and another error is being explained
        return ""


def observe(
    builder: ObsBuilder[Any, Any, Any, Any],
    cars: Sequence[int],
    state: MatchState,
    game: Game | None = None,
    shared_info: SharedInfo | None = None,
) -> np.ndarray:
    """Return the observations of some cars by any observation builder, `(matches, cars, size)` float32.

    A builder without a batch form gets one match in RLGym's form: `game`, made from `state` when None, and
    the dict `shared_info`. Raises ValueError if the builder refuses the match, gives something else than
    vectors of one length, or has no batch form for several matches.
    """
    if works_in_batches(builder):
        return check_observations(builder, builder.build_batch(state, cars), state, cars)
    agents, game = _one_match(type(builder).__name__, cars, state, game)
    built = builder.build_obs(agents, game, {} if shared_info is None else shared_info)
    _check_agents(type(builder).__name__, agents, built)
    vectors = [_vector(builder, agent, built[agent]) for agent in agents]
    if len(shapes := {vector.shape for vector in vectors}) > 1:
        raise ValueError(
            f"{type(builder).__name__} gave observations of shape {sorted(shapes)}, "
            "expected vectors of one length for all agents"
        )
    stacked: np.ndarray = np.stack(vectors)
    return stacked[None]


def _vector(builder: Any, agent: str, given: Any) -> np.ndarray:
    with suppress(ValueError, TypeError):  # no numbers, or lists of different lengths
        vector: np.ndarray = np.asarray(given, np.float32)
        if vector.ndim == 1:
            return vector
    parts = ""
    if isinstance(given, Mapping):
        parts = (
            f" with {', '.join(map(str, given))}: join its parts with np.concatenate, in one order for all"
        )
    raise ValueError(
        f"{type(builder).__name__} gave {describe_array(given)}{parts} for agent {agent!r}, expected one "
        f"vector of numbers, which the network takes{locate_method(builder, 'build_obs')}"
    )


def control_rows(
    parser: ActionParser[Any, Any, Any, Any, Any],
    actions: np.ndarray,
    cars: Sequence[int],
    state: MatchState,
    game: Game | None = None,
    shared_info: SharedInfo | None = None,
) -> list[np.ndarray]:
    """Return the control vectors that any action parser makes of the actions of one match, for each car.

    They are unchecked: `(ticks, 8)` from ours, `(8,)` or `(ticks, 8)` from another. That one gets each
    agent's action as an array `(1,)` or `(k,)`, real numbers clipped to -1..1, as RLGym's continuous actions
    are. `actions` are `(1, cars)` or `(1, cars, k)`; all else is as `observe` takes it. Raises ValueError if
    an action is not in the action space; there are several matches; an agent has no rows.
    """
    if works_in_batches(parser):
        return list(parser.parse_batch(actions)[0])
    agents, game = _one_match(type(parser).__name__, cars, state, game)
    if actions.dtype.kind == "f":
        actions = actions.clip(-1, 1)
    given = {agent: actions[0, i].reshape(-1) for i, agent in enumerate(agents)}
    rows = parser.parse_actions(given, game, {} if shared_info is None else shared_info)
    _check_agents(type(parser).__name__, agents, rows)
    return [np.asarray(rows[agent]) for agent in agents]


def _one_match(who: str, cars: Sequence[int], state: MatchState, game: Game | None) -> tuple[list[str], Game]:
    if state.matches != 1:
        raise ValueError(f"{who} has no batch form and takes one match at a time, not {state.matches}")
    return [state.agents[car] for car in cars], to_rlgym(state) if game is None else game


def _check_agents(who: str, agents: Sequence[str], given: Any) -> None:
    if not isinstance(given, Mapping):
        raise ValueError(f"{who} gave {describe_array(given)}, expected a dict by agent: {agents}")
    for agent in agents:
        if agent not in given:
            raise ValueError(f"{who} gave nothing for agent {agent!r}, only for {list(given)}")


SHARED: Final = "action_mask"
"""Key of the shared info under which a provider, a parser or an observation builder may put masks."""


def find_masks(
    parser: Any, state: MatchState, shared_info: Mapping[str, Any] | None = None, match: int = 0
) -> np.ndarray | None:
    """Return which actions each car may choose on a state, `(matches, cars, actions)` bool; None for all.

    Masks come from a method `masks(state)` of the parser, or of one that it wraps, and from `action_mask` in
    the shared info of a single match: for each agent a number for each action, 0 for never. `match` is the
    number of the first match, for errors. Raises ValueError if a mask has another shape, leaves a car no
    action, or is for actions that are no choices.
    """
    holder = mask_holder(parser)
    given = holder.masks(state) if hasattr(holder, "masks") else None
    who = f"the masks of {type(holder).__name__}"
    shared = None if shared_info is None else shared_info.get(SHARED)
    if given is None and shared is None:
        return None
    kind, sizes = action_space(parser.get_action_space(state.agents[0]))
    if kind == "gaussian":
        raise ValueError(
            f"{type(parser).__name__} has continuous actions, and there is an action mask for them: expected "
            "none, or a parser of discrete actions"
        )
    if given is not None:
        shape = (state.matches, state.layout.cars, sum(sizes))
        if not isinstance(given, np.ndarray) or given.dtype != bool or given.shape != shape:
            raise ValueError(
                f"{who} are {describe_array(given)}, expected an array {shape} of bool: matches, cars and "
                f"actions{locate_method(holder, 'masks')}"
            )
    if shared is not None:
        of_agents = _masks_of_agents(shared, state, sum(sizes))
        given, who = (of_agents, f'shared_info["{SHARED}"]') if given is None else (given & of_agents, who)
    assert given is not None  # one of the two is there
    _check_choices(given, sizes, state, (who, locate_method(holder, "masks")), match)
    return given


def mask_holder(parser: Any) -> Any:
    """Return the parser with a method `masks` that one wraps, or itself; the innermost one has none."""
    while not hasattr(parser, "masks") and hasattr(parser, "parser"):
        parser = parser.parser
    return parser


def act_within(policy: Any, obs: np.ndarray | None, state: MatchState, masks: np.ndarray | None) -> Any:
    """Return a policy's actions, within masks `(matches, cars, actions)` bool where it has `takes_masks`."""
    if getattr(policy, "takes_masks", False):
        return policy.act(obs, state, masks)
    return policy.act(obs, state)


def _masks_of_agents(shared: Any, state: MatchState, actions: int) -> np.ndarray:
    """Return `(1, cars, actions)` bool of what the shared info holds for each agent."""
    rows = []
    for agent in state.agents:
        given = shared.get(agent) if isinstance(shared, Mapping) else None
        row = np.asarray(given)
        if row.dtype.kind not in "biuf" or row.shape != (actions,):
            raise ValueError(
                f'shared_info["{SHARED}"] has {describe_array(None if given is None else row)} for agent '
                f"{agent!r}, expected a dict with {actions} numbers for each agent: 0 for an action that it "
                "may not choose"
            )
        rows.append(row != 0)
    return np.array(rows)[None]


def _check_choices(
    masks: np.ndarray, sizes: tuple[int, ...], state: MatchState, who: tuple[str, str], first: int
) -> None:
    """Raise ValueError where a decision of a car has no choice left; `first` is the first match's number.

    `who` are the words for the masks, and where their method is.
    """
    starts = np.cumsum((0, *sizes[:-1]))
    left = np.logical_or.reduceat(masks, starts, 2)  # (matches, cars, decisions)
    if left.all():
        return
    match, car, decision = (int(i) for i in np.argwhere(~left)[0])
    of = f" for decision {decision}" if len(sizes) > 1 else ""
    raise ValueError(
        f"{who[0]} leave {state.agents[car]} (car {car}) in match {first + match} no action{of}, expected "
        f"one at least{who[1]}"
    )


FORMS: Final[dict[str, Callable[..., np.ndarray | None]]] = {}
"""Compiled forms by the qualified names of batch methods, whose arguments they take.

None says that the numpy formula is to be used. `sim.native_parts` fills this where matches are stepped.
"""

_FREE: Final = frozenset(
    ("build_batch", "reward_batch", "build_obs", "get_rewards", "reset", "names", "size", "get_obs_space")
)  # fmt: skip
"""Methods that no formula asks for: a subclass may have its own."""

Method = TypeVar("Method", bound=Callable[..., np.ndarray])


def with_native_form(method: Method) -> Method:
    """Ask the compiled form of a batch method first; a decorator of that method.

    A subclass that changes what the formula is made of is computed in numpy.
    """
    name = method.__qualname__

    @wraps(method)
    def ask(self: Any, *given: Any, **named: Any) -> np.ndarray:
        form, kind = FORMS.get(name), cast(Any, type(self))
        if form is not None and _keeps_formula(kind, ask):
            answer = form(self, *given, **named)
            if answer is not None:
                return answer
        return method(self, *given, **named)

    return cast(Method, ask)


@cache
def _keeps_formula(kind: Any, ask: Callable[..., Any]) -> bool:
    """Tell whether a class has all methods that its formula is made of."""
    owner = next(base for base in kind.__mro__ if vars(base).get(ask.__name__) is ask)
    names = {
        name
        for base in owner.__mro__
        for name, value in vars(base).items()
        if callable(value) and not name.startswith("__") and name not in _FREE
    }
    return all(getattr(kind, name) is getattr(owner, name) for name in (*names, "__eq__", "__hash__"))
