"""Make the matches of a run from the components that its settings name.

`components` is a module with one or more of the functions that `FUNCTIONS` lists; the others are those of
`rlgym_bridge.training.components`. `env` is a function that returns the `RLGym` of an existing bot; all of
its components are taken but the engine.
"""

from collections.abc import Collection
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from rlgym.api import DoneCondition, RewardFunction, StateMutator

from rlgym_bridge.components.batch_form import third_party_part
from rlgym_bridge.components.mutators import blank_state
from rlgym_bridge.components.spec import TRUSTED, Components, ComponentSpec, component_factory
from rlgym_bridge.components.user_errors import describe_error, locate_function
from rlgym_bridge.game import HITBOX_NAMES
from rlgym_bridge.physics import parse_physics
from rlgym_bridge.policy.environment_facts import EnvironmentFacts, read_environment
from rlgym_bridge.policy.fingerprint import fingerprint
from rlgym_bridge.sim.batch_parts import third_party_parts
from rlgym_bridge.sim.simulator import SimulatorError, check_simulator
from rlgym_bridge.sim.vector_env import VectorEnv, warn_match_by_match, without_warnings
from rlgym_bridge.training import components as standard
from rlgym_bridge.training.setting_values import name_sizes
from rlgym_bridge.training.settings import REWARDS, SettingsError, TrainingSettings
from rlgym_bridge.user_input.arguments import show_value
from rlgym_bridge.user_input.text_files import toml_value
from rlgym_bridge.user_input.user_modules import import_user_module

FUNCTIONS: Final = ("obs", "parser", "reward", "conditions", "mutator")
"""Functions that a module may have; `make_env(settings, matches)` takes the place of the last three."""

_READ_BY: Final = {
    "obs": ("ball_ahead",),
    "reward": (*REWARDS, "team_spirit", "zero_sum"),
    "conditions": ("no_touch_seconds", "episode_seconds", "task_seconds"),
    "mutator": ("kickoff_share", "initial_states"),
}
"""Settings that nobody reads but the functions of a module, by the standard one that does."""

LIVE: Final = (
    *_READ_BY["reward"], "my", "learning_rate", "learning_rate_schedule", "critic_learning_rate",
    "critic_learning_rate_schedule",
)  # fmt: skip
"""Settings that a person may change while a run goes on; they act from the next checkpoint on."""

_DEFAULTS: Final = {field.name: getattr(TrainingSettings(), field.name) for field in fields(TrainingSettings)}


def _watched(settings: TrainingSettings) -> tuple[TrainingSettings, set[str]]:
    """Return a copy of settings, and the names of those that are read from it from now on."""
    noted: set[str] = set()

    class Watched(TrainingSettings):
        """Settings that note what is read."""

        def __getattribute__(self, name: str) -> Any:
            """Note a name, and return its value."""
            noted.add(name)
            return super().__getattribute__(name)

    watched = Watched(**{field.name: getattr(settings, field.name) for field in fields(settings)})
    noted.clear()
    return watched, noted


class Task:
    """The task that a run trains: `name` is that of its module or function, `module` that of the module.

    `settings` are of the run; where it has several team sizes, of one of them: what `reward`, `conditions`
    and `mutator` are given. Then `whole` are those of the run, which name observation and parser. Raises
    SettingsError where the task cannot be imported, or lacks a function.
    """

    def __init__(self, settings: TrainingSettings, whole: TrainingSettings | None = None) -> None:
        self._settings, self._whole = settings, whole or settings
        self.name = settings.env or settings.components
        self.module = self.name.partition(":")[0]
        self._module: Any = None
        if settings.env:
            try:
                self._make = component_factory(None, None, settings.env, allow=None)
            except ValueError as error:
                raise SettingsError(f'env is "{settings.env}": {error}') from error
        else:
            self._module = _imported(settings.components)

    def named(self) -> dict[str, Any]:
        """Return what a policy folder calls observation and parser by: arguments of `save_policy`."""
        if self._module is None:
            return {"env": self.name}
        return {"obs": self._module.obs(self._whole), "parser": self._module.parser(self._whole)}

    def name_standard(self) -> str:
        """Say which functions a module of one's own has, and which are standard; "" without one."""
        own = [name for name in FUNCTIONS if getattr(self._module, name, None) is not getattr(standard, name)]
        others = [name for name in FUNCTIONS if name not in own]
        if self._module is None or self.name == standard.__name__ or hasattr(self._module, "make_env"):
            return ""
        return f"{self.name} has {', '.join(own)}" + (f"; standard: {', '.join(others)}" if others else "")

    def name_unread(self) -> str:
        """Say which settings differ from the defaults and are read by no component; "" for none."""
        own = (name for names in _READ_BY.values() for name in names)
        changed = [name for name in own if getattr(self._settings, name) != _DEFAULTS[name]]
        if not changed or hasattr(self._module, "make_env"):
            return ""  # nobody knows what a make_env reads before it makes all matches
        noted: set[str] = set()
        if self._module is not None:
            watched, noted = _watched(self._settings.by_size()[0])
            for name in FUNCTIONS:
                getattr(self._module, name)(watched)
        unread = [name for name in changed if name not in noted]
        by = ", ".join(name for name, names in _READ_BY.items() if set(unread) & set(names))
        said = ", ".join(f"{name} = {toml_value(getattr(self._settings, name))}" for name in unread)
        whose = f"{self.name} does not read {'them' if len(unread) > 1 else 'it'}"
        if self._module is not None:
            whose = f"the {by} of {whose}"
        return f"without effect: {said}: {whose}" if unread else ""

    def modules(self) -> list[str]:
        """Return the names of its own module and of those that its policy folders name, without `TRUSTED`."""
        specs = [one for one in self.named().values() if isinstance(one, ComponentSpec)]
        network = self._whole.network.partition(":")
        named = [*(name for spec in specs for name in spec.modules), *([network[0]] if network[1] else [])]
        names = [name for name in named if name.partition(".")[0] not in TRUSTED]
        return list(dict.fromkeys([self.module, *names]))

    def obs_and_parser(self) -> Components:
        """Return builder, parser and provider of shared info, as a policy folder names them."""
        if self._module is None:
            return self._make()
        named = self.named()
        return component_factory(named["obs"], named["parser"], None, allow=None)()

    def components(self) -> Components:
        """Return all components of one match; raises SettingsError for none, or another delay."""
        parts = self.obs_and_parser()
        low, high = self._settings.action_delay
        if parts.action_delay is not None and not low <= parts.action_delay <= high:
            raise SettingsError(
                f"action_delay is [{low}, {high}], and {self.name} has a delay of {parts.action_delay} "
                f"(rlbot_delay of its engine), expected a range with it: [{parts.action_delay}, "
                f"{parts.action_delay}]"
            )
        if self._module is None:
            return parts
        conditions = self._module.conditions(self._settings)
        if not (isinstance(conditions, tuple | list) and len(conditions) == 2):
            raise self._wrong("conditions", conditions, "two conditions: termination and truncation")
        reward, mutator = self._module.reward(self._settings), self._module.mutator(self._settings)
        for function, given, kind, expected in (
            *(("conditions", one, DoneCondition | None, "a DoneCondition or None") for one in conditions),
            ("reward", reward, RewardFunction, "a RewardFunction"),
            ("mutator", mutator, StateMutator, "a StateMutator"),
        ):
            if not isinstance(given, kind):
                raise self._wrong(function, given, f"{expected} of rlgym.api")
        ends = {"termination_cond": conditions[0], "truncation_cond": conditions[1]}
        return replace(parts, reward_fn=reward, state_mutator=mutator, **ends)

    def _wrong(self, function: str, given: object, expected: str) -> SettingsError:
        """Return the error for what a function of the module returned."""
        where = locate_function(getattr(self._module, function))
        return SettingsError(
            f"{function} of {self.name} returned {show_value(given)}, expected {expected}: does it end with "
            f"return?{where}"
        )

    def make_env(self, own_delays: np.ndarray | None = None) -> Any:
        """Return the matches of one collector, without the warnings that `check` gives for the whole run.

        `own_delays` are those of single cars in ticks, `(matches, cars)`, see `VectorEnv`.
        """
        settings = self._settings
        if hasattr(self._module, "make_env"):
            return self._module.make_env(settings, settings.matches)
        with without_warnings():
            return self._vector_env(settings.matches, own_delays)

    def check(self) -> None:
        """Make everything once for each team size, and begin a match.

        A warning says which components have no batch form, once for all processes of the run. Raises
        SettingsError where the simulator is not installed, or settings do not fit the components.
        """
        try:
            check_simulator(self._settings.simulator)
        except SimulatorError as error:
            raise SettingsError(f'{error}; or train with simulator = "rocketsim2"') from error
        if self._module is None:
            if len(self._settings.sizes) > 1:
                raise SettingsError(
                    f"team_sizes is {toml_value(self._settings.team_sizes)}, and the matches of {self.name} "
                    "have one size: expected that, or `components` in place of env"
                )
            self._vector_env(1).reset(0)
        elif not hasattr(self._module, "make_env"):
            foreign: dict[type, None] = {}
            for settings in self._settings.by_size():
                foreign |= dict.fromkeys(
                    _check_components(Task(settings, self._whole).components(), settings)
                )
            if foreign:
                warn_match_by_match(foreign)
        elif self._settings.obs_noise:
            raise SettingsError(
                f"[obs_noise] is set, and {self.name} has a make_env of its own, in which it has no effect: "
                "remove one of the two"
            )

    def _vector_env(self, matches: int, own_delays: np.ndarray | None = None) -> VectorEnv:
        settings = self._settings
        return VectorEnv(
            matches,
            self.components,
            settings.team_sizes,
            tick_skip=settings.tick_skip,
            action_delay=settings.action_delay,
            delay_noise=settings.action_delay_noise,
            own_delays=own_delays,
            hitbox=[HITBOX_NAMES.index(name) for name in settings.hitboxes or (settings.hitbox,)],
            constants=parse_physics(settings.physics),
            obs_noise=settings.obs_noise,
            simulator=settings.simulator,
        )


def fit_to_environment(
    settings: TrainingSettings, given: Collection[str]
) -> tuple[TrainingSettings, list[str]]:
    """Return the settings of a run with `env` as their environment has them, and lines that say so.

    Those that the user gave, by their names in `given`, stay. Raises SettingsError where the environment
    cannot be made, or given settings contradict it: all of them.
    """
    name = settings.env
    try:
        facts = read_environment(name)
        told = _read_settings(facts)
    except (Exception, SystemExit) as error:  # whatever an environment may raise
        raise SettingsError(f'env is "{name}": {describe_error(error)}') from error
    wrong = [
        f"{key} is {toml_value(getattr(settings, key))}, expected {toml_value(value)} or no such key"
        for key, value in told.items()
        if key in given and not _agrees(settings, key, value)
    ]
    wrong += _name_mixtures(facts, given)
    if wrong:
        raise SettingsError(f"the matches of {name} do not fit: {'; '.join(wrong)}")
    taken = {key: value for key, value in told.items() if key not in given}
    fitted = replace(settings, **taken)
    changed = [key for key in taken if getattr(settings, key) != taken[key]]
    lines = [f"taken from {name}: {', '.join(f'{key} = {toml_value(taken[key])}' for key in changed)}"]
    engine = facts.explain_engine()
    return fitted, [*(lines if changed else []), *([engine] if engine else [])]


def _read_settings(facts: EnvironmentFacts) -> dict[str, Any]:
    """Return the settings that an environment determines, by name."""
    make = component_factory(None, None, facts.name, allow=None)
    parts = make()
    told: dict[str, Any] = {}
    if len(facts.team_sizes) == 1:
        told["team_sizes"] = facts.team_sizes[0]
    if len(facts.hitboxes) == 1:
        told["hitbox"] = facts.hitboxes[0]
    if parts.action_delay is not None:
        told["action_delay"] = (parts.action_delay, parts.action_delay)
    box = HITBOX_NAMES.index(facts.hitboxes[0])
    ticks = fingerprint(parts, facts.team_sizes[:1], box).ticks or parts.tick_skip
    if ticks is not None:
        told["tick_skip"] = ticks
    return told


def _name_mixtures(facts: EnvironmentFacts, given: Collection[str]) -> list[str]:
    """Say which settings an environment whose matches differ leaves open."""
    wrong = []
    if len(facts.team_sizes) > 1:
        wrong.append(f"it plays {name_sizes(facts.team_sizes)}, and a run with env plays one of these")
    if len(facts.hitboxes) > 1 and not {"hitbox", "hitboxes"} & set(given):
        wrong.append(
            f"its cars have the hitboxes {', '.join(facts.hitboxes)}: expected hitboxes = "
            f"{toml_value(list(facts.hitboxes))}, and hitbox = the one that the bot has in matches"
        )
    return wrong


def _agrees(settings: TrainingSettings, key: str, value: Any) -> bool:
    """Tell whether a given setting allows the environment's value."""
    has = getattr(settings, key)
    if key == "action_delay":
        return bool(has[0] <= value[0] <= has[1])
    if key == "hitbox":  # a mutator that leaves the hitbox as it is makes an Octane
        return value in ("octane", has, *settings.hitboxes)
    return bool(has == value)


def _check_components(parts: Components, settings: TrainingSettings) -> list[type]:
    """Begin an episode of one team size; return the classes of components that have no batch form."""
    foreign = [type(part) for part in third_party_parts(parts)]
    if foreign and any(settings.obs_noise.values()):
        raise SettingsError(
            f"obs_noise is {toml_value(settings.obs_noise)}, expected none where components have no batch "
            f"form: {', '.join(kind.__name__ for kind in foreign)}"
        )
    if parts.state_mutator is not None and third_party_part(parts.state_mutator) is None:
        mutator: Any = parts.state_mutator
        mutator.apply_batch(blank_state(*settings.sizes[0], 1), np.random.default_rng(settings.seed))
    return foreign


def _imported(name: str) -> SimpleNamespace:
    """Import a module of one's own, and return its functions; those that it lacks are the standard ones."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise SettingsError(f'components is "{name}", expected the name of a module, such as my_bot')
    if name.endswith(".py"):
        raise SettingsError(f'components is "{name}", expected the name of a module: leave out .py')
    try:
        module = import_user_module(name)
    except (Exception, SystemExit) as error:  # a module of one's own may raise anything
        lacking = isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")
        where = ". It is looked for beside the file of settings, in the current folder and on PYTHONPATH"
        raise SettingsError(
            f'components is "{name}", which cannot be imported: {describe_error(error)}'
            f"{where if lacking else ''}"
        ) from error
    functions = (*FUNCTIONS, "make_env")
    own = {one: getattr(module, one) for one in functions if callable(getattr(module, one, None))}
    if not own:
        raise SettingsError(
            f'components is "{name}", which has no function {", ".join(functions)}; expected a module with '
            "one of these at least"
        )
    if "make_env" in own and not {"obs", "parser"} <= set(own):
        raise SettingsError(
            f'components is "{name}", whose make_env needs the functions obs and parser beside it'
        )
    return SimpleNamespace(**{one: getattr(standard, one) for one in FUNCTIONS} | own)
