"""Components that a file can name, those of an environment, and the check of their methods.

Without the user's word a policy folder gets only component classes of this project, of RLGym and of
rlgym-tools: no other module is imported, and no function is called. Ours are named by the package's public
face.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr
from rlgym import api

import rlgym_bridge
from rlgym_bridge.components import user_errors
from rlgym_bridge.components.rlgym_types import AllCondition, AnyCondition, CombinedReward, MutatorSequence
from rlgym_bridge.user_input.user_modules import (
    explain_not_found,
    import_user_module,
    is_installed,
    rlgym_ppo_importable,
)

TRUSTED: Final = ("rlgym_bridge", "rlgym", "rlgym_tools")
"""Packages that have components which any policy folder may name."""

_COMPONENT_ROOMS: Final = (
    "rlgym_bridge.components",
    *(
        f"{package}.rocket_league.{room}"
        for package in ("rlgym", "rlgym_tools")
        for room in ("obs_builders", "action_parsers")
    ),
)
"""Packages of `TRUSTED` whose classes any policy folder may name, if they are of the kind asked for."""

_MOST_ARGUMENT: Final = 10_000  # of whole numbers: cars, ticks, choices

_V1: Final = ("rlgym_sim.", "rlgym.utils.", "rlgym.envs.", "rlgym.gym.", "rlgym.gamelaunch.")
"""Beginnings of the names of RLGym 1's modules, and of rlgym-sim's, which are its copies."""

_FORMER_PATHS: Final = {
    "rlgym_bridge.actions:ContinuousAction": "rlgym_bridge:ContinuousAction",
    "rlgym_bridge.actions:LookupTableAction": "rlgym_bridge:LookupTableAction",
    "rlgym_bridge.actions:MultiDiscreteAction": "rlgym_bridge:MultiDiscreteAction",
    "rlgym_bridge.actions:RepeatAction": "rlgym_bridge:RepeatAction",
    "rlgym_bridge.observations:DefaultObs": "rlgym_bridge:DefaultObs",
    "rlgym_bridge.relative_obs:RelativeObs": "rlgym_bridge:RelativeObs",
}
"""Names that older policy folders have for our components; they go on loading."""


class UntrustedModuleError(ValueError):
    """A policy names a module that the caller did not allow; `allow` is what allows it."""

    def __init__(self, problem: str, allow: str = "", more: str = "") -> None:
        self.problem, self.allow = problem, allow
        advice = (
            f'; if you trust it, give allow_modules=("{allow}",), on the command line --allow-modules {allow}'
        )
        super().__init__(f"{problem}{advice if allow else ''}{more}")


def _without_tuples(value: Any) -> Any:
    """Return a value with lists in place of tuples, as JSON has them."""
    if isinstance(value, list | tuple):
        return [_without_tuples(one) for one in value]
    return {key: _without_tuples(one) for key, one in value.items()} if isinstance(value, dict) else value


class ComponentSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"path": "class"}):
    """A component by name, so that a file can hold it.

    Attributes:
        path: `"module:Class"`; a former path of ours is replaced with the public one.
        args: Keyword arguments; JSON values only, and tuples, which become lists.
        nested: A component given as the first argument, as `RepeatAction` takes a parser.
    """

    path: Annotated[str, Meta(pattern="^[^:]+:[^:]+$")]
    args: Mapping[str, Any] = msgspec.field(default_factory=dict)
    nested: "ComponentSpec | None" = None

    def __post_init__(self) -> None:
        """Take the public path in place of a former one."""
        if self.path in _FORMER_PATHS:
            force_setattr(self, "path", _FORMER_PATHS[self.path])

    @classmethod
    def of(cls, component: type, nested: "ComponentSpec | None" = None, **args: Any) -> "ComponentSpec":
        """Return the spec that makes `component(nested, **args)`.

        Raises:
            ValueError: It is no class, or one that cannot be imported by name; what is nested is no spec; or
                an argument is no JSON value.
        """
        if not isinstance(component, type):
            raise ValueError(f"a component is {component!r}, expected its class")
        where = f"{component.__module__}:{component.__qualname__}"
        if component.__qualname__ in rlgym_bridge.__all__ and component is getattr(
            rlgym_bridge, component.__qualname__
        ):
            where = f"rlgym_bridge:{component.__qualname__}"
        if component.__module__ == "__main__" or "." in component.__qualname__:
            raise ValueError(
                f"{where} cannot be imported by name; put the class at the top level of a module"
            )
        if nested is not None and not isinstance(nested, ComponentSpec):
            raise ValueError(
                f"what is nested in {where} is {nested!r}, expected ComponentSpec.of("
                f"{getattr(nested, '__name__', type(nested).__name__)}), with its arguments by name"
            )
        given = {name: _without_tuples(value) for name, value in args.items()}
        try:
            same = json.loads(json.dumps(given, allow_nan=False)) == given
        except (TypeError, ValueError):
            same = False
        if not same:
            raise ValueError(
                f"arguments of {where} are {args!r}, expected JSON values: numbers, text, true, false, None, "
                "lists and dictionaries by text, no arrays"
            )
        return cls(where, given, nested)

    @property
    def modules(self) -> tuple[str, ...]:
        """Names of the modules that it and what is nested in it come from."""
        nested = () if self.nested is None else self.nested.modules
        return (self.path.partition(":")[0], *nested)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        form: dict[str, Any] = msgspec.to_builtins(self)
        return form


@dataclass(frozen=True)
class Components:
    """The components of one match; they keep state, so another match needs its own."""

    # observation builder; None for a policy that reads the state alone
    obs_builder: api.ObsBuilder[Any, Any, Any, Any] | None
    parser: api.ActionParser[Any, Any, Any, Any, Any]  # action parser
    # None where the dict of shared info starts empty
    shared_info_provider: api.SharedInfoProvider[Any, Any] | None = None
    # ticks, where an environment says it: 1 with RLGym's `rlbot_delay`, else 0
    action_delay: int | None = None
    reward_fn: api.RewardFunction[Any, Any, Any] | None = None  # called in a match as in training; optional
    termination_cond: api.DoneCondition[Any, Any] | None = None
    truncation_cond: api.DoneCondition[Any, Any] | None = None
    state_mutator: api.StateMutator[Any] | None = None  # begins an episode in training alone
    # given the state of every decision in a match; training draws nothing
    renderer: api.Renderer[Any] | None = None
    # ticks that the environment's engine holds a single row `(8,)`; None where it takes none
    tick_skip: int | None = None

    def __post_init__(self) -> None:
        """Raise TypeError where a method has an older signature; the message shows the right one."""
        for part in vars(self).values():
            check_signatures(part)


def component_factory(
    obs: ComponentSpec | None, parser: ComponentSpec | None, env: str | None, allow: Sequence[str] | None = ()
) -> Callable[[], Components]:
    """Return a function that makes the components of one match: by `obs` and `parser`, or of an environment.

    `env` is the `"module:function"` that returns an `RLGym`, or a wrapper of one. `allow` are the user's own
    modules that may be imported besides the components of `TRUSTED`, each with what lies in it; None for all.
    It must name an environment's module, or, in an installed package, its `"module:function"`. Raises
    ValueError if a name may not be imported, is missing or something else.
    """
    if env is not None:
        function = _env_function(env, allow)
        return lambda: _components_of(_build(env, function))
    if obs is None or parser is None:
        raise ValueError(
            f"obs is {obs!r} and parser {parser!r}, expected both, as ComponentSpec.of makes them, or an "
            "environment (env) in their place"
        )
    make_obs = _factory(obs, api.ObsBuilder, allow)
    make_parser = _factory(parser, api.ActionParser, allow)
    return lambda: Components(make_obs(), make_parser())


def _components_of(env: api.RLGym[Any, Any, Any, Any, Any, Any, Any, Any]) -> Components:
    delay = env.transition_engine.config.get("rlbot_delay")
    same = {one.name: getattr(env, one.name) for one in fields(Components) if hasattr(env, one.name)}
    tick_skip = getattr(env.transition_engine, "tick_skip", None)
    delay = None if delay is None else int(delay)
    others = {"parser": env.action_parser, "action_delay": delay, "tick_skip": tick_skip}
    return Components(**(same | others))


def environment(name: str) -> api.RLGym[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return the environment that a trusted function, `"module:function"`, makes; else raise ValueError."""
    return _build(name, _env_function(name, None))


def _env_function(name: str, allow: Sequence[str] | None) -> Callable[[], Any]:
    module = name.partition(":")[0]
    if allow is not None and name not in allow and (is_installed(module) or _is_within(module, TRUSTED)):
        raise UntrustedModuleError(
            f"the policy names the environment {name}, a function of an installed package", name
        )
    with rlgym_ppo_importable():
        function = import_named(name, allow)
    if not callable(function):
        raise ValueError(f"{name} is {function!r}, expected a function that returns an RLGym")
    home = getattr(function, "__module__", None) or ""
    if allow is not None and name not in allow and not _is_within(home, allow):
        raise UntrustedModuleError(
            f"the policy names {name}, which is defined in {home or 'no module'}, expected a function of a "
            f"module that you allow: {', '.join(allow)}"
        )
    made: Callable[[], Any] = function
    return made


def _build(name: str, function: Callable[[], Any]) -> api.RLGym[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return the checked RLGym that an environment function gives, bare or in a wrapper."""
    with rlgym_ppo_importable():
        env = function()
    for one in (env, getattr(env, "rlgym_env", None), getattr(env, "env", None)):
        if isinstance(one, api.RLGym):
            try:
                _components_of(one)
            except TypeError as error:
                raise ValueError(f"{name}{user_errors.locate_function(function)}: {error}") from error
            return one
    raise ValueError(
        f"{name} returned {type(env).__name__}, expected an RLGym, or a wrapper with one in rlgym_env"
        f"{_explain_v1(type(env))}"
    )


def locate_environment(name: str) -> str:
    """Return where the function of an environment is defined, as ` (my_env.py, line 23)`; "" if unknown."""
    return user_errors.locate_function(_env_function(name, None))


def _factory(spec: ComponentSpec, kind: Any, allow: Sequence[str] | None) -> Callable[[], Any]:
    """Return a function that makes the component; names are imported now, so that errors come early."""
    if not isinstance(spec, ComponentSpec):
        raise ValueError(
            f"a component is {spec!r}, expected its name, so that a file can hold it: "
            f"ComponentSpec.of({type(spec).__name__}, ...) with its arguments by name"
        )
    component: Any = import_named(spec.path, allow)
    for name, value in spec.args.items():  # a file of a stranger may name them: no vast sizes
        if type(value) is int and abs(value) > _MOST_ARGUMENT and spec.modules[0].startswith(TRUSTED):
            raise ValueError(f"{spec.path} has {name} = {value:,}, expected {_MOST_ARGUMENT:,} at most")
    if not (isinstance(component, type) and issubclass(component, kind)):
        raise ValueError(
            f"{spec.path} is {component!r}, expected a subclass of rlgym.api.{kind.__name__}"
            f"{_explain_v1(component)}"
        )
    make_nested = None if spec.nested is None else _factory(spec.nested, kind, allow)

    def make() -> Any:
        try:
            return component(**spec.args) if make_nested is None else component(make_nested(), **spec.args)
        except TypeError as error:
            raise ValueError(f"{spec.path} cannot be made with {dict(spec.args)}: {error}") from error

    return make


def _is_open(module: str, name: str) -> bool:
    """Tell whether any policy folder may name a class: one of our public components, or of RLGym's."""
    if module == rlgym_bridge.__name__:
        return rlgym_bridge.is_component(name)
    return _is_within(module, _COMPONENT_ROOMS)


def _is_within(module: str, entries: Sequence[str]) -> bool:
    return any(module == entry or module.startswith(entry + ".") for entry in entries)


def _explain_v1(found: Any) -> str:
    """Return the way out for a component, a class or a module's name of RLGym 1; "" for anything else."""
    bases = [base.__module__ for base in getattr(found, "__mro__", ())] or [str(found)]
    if not any(f"{name}.".startswith(_V1) for name in bases):
        return ""
    return (
        ". It is RLGym 1's (rlgym-sim), whose methods take other arguments. Its AdvancedObs, DefaultObs and "
        "discrete actions are here: --obs rlgym_bridge:AdvancedObs --action-delay 7, without an environment. "
        "Rewrite one of your own for rlgym.api, RLGym 2"
    )


def import_named(path: str, allow: Sequence[str] | None) -> Any:
    """Import `"module:Name"`, which `allow` permits as for `component_factory`; else raise ValueError."""
    module_name, _, name = path.partition(":")
    if not (name.isidentifier() and all(part.isidentifier() for part in module_name.split("."))):
        raise ValueError(f'"{path}" is no name of the form "package.module:Name"')
    if allow is not None and not (
        path in allow or _is_within(module_name, allow) or _is_open(module_name, name)
    ):
        raise UntrustedModuleError(
            f"the policy names {path}, and importing it would run code of {module_name}", module_name,
            " (of a run those are allowed that the settings in the current folder name). Allowed now: "
            f"{', '.join(('components of ' + ', '.join(TRUSTED), *allow))}",
        )  # fmt: skip
    try:
        module = import_user_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name == missing or module_name.startswith(missing + "."):
            raise ValueError(
                f"{missing} (for {path}) cannot be imported: {error}; {explain_not_found(missing)}"
                f"{_explain_v1(missing)}"
            ) from error
        who, where = user_errors.locate_import(error) or (module_name, "")
        raise ValueError(
            f"{who} (for {path}) imports {missing}, which is not installed here; install it, or move the "
            f"import into the function that needs it{where}{_explain_v1(missing)}"
        ) from error
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"{module_name} (for {path}) cannot be imported: {user_errors.describe_error(error)}"
        ) from error
    try:
        return getattr(module, name)
    except AttributeError:
        raise ValueError(f"{module_name} has no {name}, expected a function or class of that name") from None


KINDS: Final[tuple[type, ...]] = (
    api.ActionParser, api.DoneCondition, api.ObsBuilder, api.Renderer, api.RewardFunction,
    api.SharedInfoProvider, api.StateMutator,
)  # fmt: skip

_HOLDERS: Final = (
    (api.ActionParser, "parser"), (KINDS, "parts"), (CombinedReward, "reward_fns"),
    (AnyCondition, "conditions"), (AllCondition, "conditions"), (MutatorSequence, "mutators"),
)  # fmt: skip

_NEVER_CALLED: Final = ("get_obs_space", "close")
"""Methods that a component may leave out: nothing here needs their result."""


_OURS: Final = {
    "build_batch": "state, cars",
    "parse_batch": "actions",
    "reward_batch": "before, after, terminated, truncated",
    "done_batch": "state",
    "reset_batch": "state, begun",
    "apply_batch": "state, rng",
    "masks": "state",
    "metrics": "state",
}
"""Methods that a component may have beside RLGym's, with their arguments."""


def check_signatures(component: Any) -> None:
    """Raise TypeError if RLGym 2 or this package cannot call a component, or one of its parts."""
    for part in _parts_of(component):
        check_signatures(part)
    for kind in KINDS:
        if not isinstance(component, kind):
            continue
        for name, expected in _methods(kind).items():
            own, who = getattr(component, name), f"{type(component).__name__}.{name}"
            right = f"{name}({', '.join(expected.parameters)})"
            if getattr(own, "__func__", own) is getattr(kind, name) and name not in _NEVER_CALLED:
                raise TypeError(
                    f"{type(component).__name__}{user_errors.locate_class(component)} has no {name} of its "
                    f"own, expected a subclass of rlgym.api.{kind.__name__} with {right}"
                )
            try:
                signature = inspect.signature(own)
            except ValueError:  # it is not written in Python and does not say
                continue
            except TypeError:
                raise TypeError(
                    f"{who} is {own!r}, expected a method {right} as in rlgym.api.{kind.__name__}"
                ) from None
            try:
                signature.bind(*[None] * (len(expected.parameters) - 1))  # without self
            except TypeError:
                written = str(signature).replace("(", "(self, " if signature.parameters else "(self", 1)
                raise TypeError(
                    f"{who}{written} does not take what RLGym 2 gives it, expected {right} as in "
                    f"rlgym.api.{kind.__name__}"
                ) from None
    if isinstance(component, KINDS):
        for name, arguments in _OURS.items():
            if (own := getattr(component, name, None)) is not None:
                user_errors.check_arguments(own, f"{type(component).__name__}.{name}", arguments)


def _parts_of(component: Any) -> Sequence[Any]:
    """Return the parts of components that hold others: RLGym's, and ours."""
    for kind, attribute in _HOLDERS:
        if isinstance(component, kind) and hasattr(component, attribute):
            parts = getattr(component, attribute)
            return parts if isinstance(parts, tuple | list) else (parts,)
    return ()


@cache
def _methods(kind: Any) -> dict[str, inspect.Signature]:
    """Return the public methods that a kind of component itself has."""
    names = [name for name in vars(kind) if not name.startswith("_") and callable(getattr(kind, name))]
    return {name: inspect.signature(getattr(kind, name)) for name in names}
