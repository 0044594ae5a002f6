"""Seat opponents, policies from outside (Chaser, a policy folder, another run), in a collector's matches.

The first matches have a snapshot on one side, the next ones an opponent each. In all others the policy plays
itself. All collectors are alike. Of several team sizes each has its own share of such matches. A teacher,
another policy from outside, plays nowhere: the learning one imitates it at first.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rlgym_bridge.components.batch_form import act_within, find_masks, observe, works_in_batches
from rlgym_bridge.components.episode import ComponentCalls
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.spec import TRUSTED, UntrustedModuleError
from rlgym_bridge.game import CONTROL_NAMES, HITBOX_NAMES
from rlgym_bridge.policy import pilot
from rlgym_bridge.policy.files import MANIFEST_FILE, policy_path
from rlgym_bridge.policy.fingerprint import Fingerprint, fingerprint
from rlgym_bridge.policy.folder import LoadedPolicy, load_policy
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.policy.run_modules import RUN_FILE, run_modules
from rlgym_bridge.policy.shape import explain_misfit
from rlgym_bridge.state import MatchState
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.setting_values import name_sizes
from rlgym_bridge.training.settings import SettingsError, TrainingSettings


def snapshot_sides(settings: TrainingSettings) -> np.ndarray:
    """Return which team a snapshot plays in each match, `(matches,)` int8: 1 blue, -1 orange, 0 neither."""
    return _sides(settings, 0, round(settings.snapshot_share * settings.matches))


def opponent_sides(settings: TrainingSettings) -> dict[str, np.ndarray]:
    """Return the team of each opponent in each match, `(matches,)` int8: 1 blue, -1 orange, 0 neither."""
    ends = np.cumsum([settings.snapshot_share, *settings.opponents.values()])
    places = [round(end * settings.matches) for end in ends.round(9).tolist()]
    return {
        name: _sides(settings, first, end - first)
        for name, (first, end) in zip(settings.opponents, pairwise(places), strict=True)
    }


def cars_of_sides(sides: np.ndarray, settings: TrainingSettings) -> np.ndarray:
    """Return the cars of some sides, `(matches, cars)` bool."""
    cars: np.ndarray = sides[:, None] == np.repeat((1, -1), settings.team_sizes)
    return cars


def snapshot_cars(settings: TrainingSettings) -> np.ndarray:
    """Return the cars that a snapshot plays, `(cars,)` bool: of all matches, one after another."""
    return np.concatenate([cars_of_sides(snapshot_sides(one), one).ravel() for one in settings.by_size()])


def learned_cars(settings: TrainingSettings) -> np.ndarray:
    """Return the cars that are learned from, `(cars,)` bool: the policy's in training, of all matches."""
    opponents = (
        cars_of_sides(sum(opponent_sides(one).values(), snapshot_sides(one)), one)
        for one in settings.by_size()
    )
    learned: np.ndarray = ~np.concatenate([cars.ravel() for cars in opponents])
    return learned


def name_car(settings: TrainingSettings, number: int) -> str:
    """Name a car of a collector, where all cars stand one after another."""
    for one in settings.by_size():
        if number < one.matches * one.cars:
            match, car = divmod(number, one.cars)
            of = "" if one is settings else f" of {name_sizes(one.sizes)}"
            return f"car {car} in match {match}{of}"
        number -= one.matches * one.cars
    raise IndexError(number)


def _sides(settings: TrainingSettings, first: int, count: int) -> np.ndarray:
    sides = np.zeros(settings.matches, np.int8)
    sides[first : first + count : 2], sides[first + 1 : first + count : 2] = 1, -1
    return sides


_PROBED = 1000  # actions at most whose rows are compared


class Opponent:
    """One policy, on blue's side in some matches and on orange's in others.

    `name` is that of the setting `opponents`: `chaser`, a policy folder, or a training run, of which the
    newest checkpoint plays. `sides` `(matches,)` int8 say where: 1 blue, -1 orange, 0 not. Its actions have
    to mean the same as those of `task`.

    Attributes:
        path: The policy folder that plays, or `chaser`.
        delays: `(matches, cars)` int, ticks after which its own actions act; -1 where it does not play.
    """

    def __init__(self, name: str, settings: TrainingSettings, task: Task, sides: np.ndarray) -> None:
        self._name, self._settings, self._task, self._sides = name, settings, task, sides
        self.path, self._seed = policy_path(name), 0
        self._take(self._load(self.path))

    def _take(self, player_spec: PlayerSpec) -> None:
        """Let a policy play from now on."""
        settings, sides = self._settings, self._sides
        components = player_spec.components()
        self._obs, self._parser = components.obs_builder, components.parser
        if self._obs is not None and not works_in_batches(self._obs):
            raise SettingsError(
                f'[opponents] has "{self._name}", whose observation {type(self._obs).__name__} has no '
                "build_batch"
            )
        self.delays = np.where(cars_of_sides(sides, settings), player_spec.timing.action_delay, -1)
        blue, cars = settings.team_sizes[0], settings.cars
        self._places = [
            (_without_search(player_spec.policy()), np.flatnonzero(sides == side), list(seats))
            for side, seats in ((1, range(blue)), (-1, range(blue, cars)))
            if (sides == side).any()
        ]

    def _load(self, path: str) -> PlayerSpec:
        """Load a policy, and check that it can play this run's matches."""
        given, settings, ours = f'[opponents] has "{self._name}"', self._settings, self._task.obs_and_parser()
        if (Path(path) / RUN_FILE).is_file() and not (Path(path) / MANIFEST_FILE).is_file():
            raise SettingsError(
                f"{given}, a training run that has no checkpoint yet: wait for one, or set its share to 0"
            )
        try:
            modules = [self._task.module.partition(".")[0], *run_modules(self._name)]
            player_spec = load_player(path, modules)
            theirs = player_spec.components()
        except (OSError, ValueError) as error:
            if isinstance(error.__cause__, UntrustedModuleError):
                raise SettingsError(
                    f"{given}, whose parts are in a module that this run does not import: expected "
                    f"{', '.join((*TRUSTED, *modules))}, or a training run, which names its modules"
                ) from error
            raise SettingsError(f"{given}, which cannot be played: {error}") from error
        trained, sizes = player_spec.team_sizes, settings.sizes[0]
        misfit = None if trained is None or not self._sides.any() else explain_misfit(trained, sizes)
        if misfit is not None:
            raise SettingsError(f"{given}, which {misfit}; chaser plays all sizes")
        if player_spec.tick_skip != settings.tick_skip:
            raise SettingsError(
                f"{given}, which decides every {player_spec.tick_skip} ticks, and tick_skip is "
                f"{settings.tick_skip}: both have to decide together"
            )
        if not _same_actions(ours.parser, theirs.parser):
            raise SettingsError(
                f"{given}, whose actions mean something else than those of this run: its parser "
                f"is {_describe(theirs.parser)}, that of this run {_describe(ours.parser)}; expected "
                "the same class and the same rows"
            )
        return player_spec

    def renew(self) -> None:
        """Let the newest checkpoint play from now on, where it is a training run.

        Where the run has no checkpoint any more, or its `latest` names none, the one before plays on. Raises
        SettingsError where the checkpoint does not fit, or has another delay or observation than before.
        """
        newest = _newest(self._name, self.path)
        if newest in (self.path, self._name):  # the second where it is no run, or has no checkpoint left
            return
        self.path, delays = newest, self.delays
        self._take(self._load(newest))
        if not np.array_equal(self.delays, delays):
            raise SettingsError(
                f'[opponents] has "{self._name}", whose newest checkpoint {newest} has another delay or '
                "observation than the one that played: give the same command with --resume to take it"
            )
        self.reset(self._seed + 1)  # matches may be under way

    def reset(self, seed: int) -> None:
        """Begin new matches."""
        self._seed = seed
        for number, (policy, _, seats) in enumerate(self._places):
            policy.reset(seats, 2 * seed + number)

    def forget(self, ended: np.ndarray) -> None:
        """Let a policy with memory begin episodes in matches, `(matches,)` bool."""
        for policy, matches, _ in self._places:
            if isinstance(policy, NetworkPolicy):
                policy.forget(ended[matches])

    def actions(self, state: MatchState) -> Iterator[tuple[tuple[np.ndarray, ...], np.ndarray]]:
        """Yield where it plays, an index into `(matches, cars)`, and its actions there."""
        for policy, matches, seats in self._places:
            some = state.select(matches)
            obs = None if self._obs is None else observe(self._obs, seats, some)
            masks = find_masks(self._parser, some)
            given = None if masks is None else masks[:, seats]
            yield np.ix_(matches, np.array(seats)), act_within(policy, obs, some, given)


def _without_search(policy: Any) -> Any:
    """Return a policy that does not look ahead: a search would take most of the time of training."""
    if isinstance(policy, NetworkPolicy):
        policy.search = None
    return policy


def check_opponents(settings: TrainingSettings, task: Task) -> None:
    """Raise SettingsError unless all opponents can play, and get matches."""
    played = dict.fromkeys(settings.opponents, 0)
    for one in settings.by_size():
        for name, sides in opponent_sides(one).items():
            Opponent(name, one, task, sides)
            played[name] += np.count_nonzero(sides)
    for name, count in played.items():
        if not count:
            raise SettingsError(
                f'[opponents] gives "{name}" {settings.opponents[name]} of {settings.matches} matches, '
                "which is none: expected a larger share, or more matches"
            )


def newest_opponents(settings: TrainingSettings) -> dict[str, str]:
    """Return the number of the newest checkpoint of each opponent that is a training run."""
    newest = {name: _newest(name, name) for name in settings.opponents}
    return {name: Path(path).name for name, path in newest.items() if path != name}


def _newest(name: str, otherwise: str) -> str:
    """Return what plays as an opponent now; `otherwise` where its run has no checkpoint by now."""
    try:
        return policy_path(name)
    except ValueError:
        return otherwise


def _same_actions(ours: Any, theirs: Any) -> bool:
    """Tell whether two parsers make the same control rows of the same actions."""
    space = ours.get_action_space("")
    if type(ours) is not type(theirs) or space != theirs.get_action_space(""):
        return False
    if space[0] != "discrete" or not works_in_batches(ours):
        return True
    every = np.arange(min(int(space[1]), _PROBED))[:, None]
    return bool(np.array_equal(ours.parse_batch(every), theirs.parse_batch(every)))


def _describe(parser: Any) -> str:
    """Return the class of a parser with its module, which tells RLGym's from ours of the same name."""
    return f"{type(parser).__module__}.{type(parser).__qualname__}"


class Teacher:
    """The policy of the setting `teacher`, for one team size; raises SettingsError where it does not fit."""

    def __init__(self, settings: TrainingSettings, task: Task) -> None:
        self._given = f'teacher is "{settings.teacher}"'
        loaded = self._load(settings, task)
        misfit = explain_misfit(loaded.manifest.team_sizes, settings.sizes[0])
        if misfit is not None:
            raise SettingsError(f"{self._given}, which {misfit}")
        if loaded.manifest.tick_skip != settings.tick_skip:
            raise SettingsError(
                f"{self._given}, which decides every {loaded.manifest.tick_skip} ticks, and tick_skip is "
                f"{settings.tick_skip}; expected the same"
            )
        built = fingerprint(task.obs_and_parser(), settings.sizes, HITBOX_NAMES.index(settings.hitbox))
        self._translation = self._translate(loaded, built)
        self._pilot = settings.pilot
        self._table: np.ndarray | None = None  # (actions, 8), our actions' control vectors, for the pilot
        if settings.pilot:
            self._table = np.array(built.controls)[:, 1 : 1 + len(CONTROL_NAMES)]
            if built.space != ("categorical", (len(self._table),)):
                raise SettingsError(
                    f"pilot is {settings.pilot:g}, and actions are {built.space[0]} over {built.space[1]}; "
                    "expected one choice from a table of control vectors, of 128 rows at most"
                )
        components = loaded.components()
        self._policy, self._parser = loaded.policy, components.parser
        self._obs: Any = components.obs_builder
        self._calls: list[ComponentCalls] = []
        if components.shared_info_provider is not None or not works_in_batches(self._obs):
            self._calls = [ComponentCalls(loaded.components()) for _ in range(settings.matches)]
        self._fresh = np.ones(settings.matches, bool)

    def _load(self, settings: TrainingSettings, task: Task) -> LoadedPolicy:
        modules = [task.module.partition(".")[0], *run_modules(settings.teacher)]
        try:
            return load_policy(policy_path(settings.teacher), modules)
        except (OSError, ValueError) as error:
            raise SettingsError(f"{self._given}, which cannot be loaded: {error}") from error

    def _translate(self, loaded: LoadedPolicy, built: Fingerprint) -> np.ndarray | None:
        """Return which of our actions each teacher's is, `(theirs, ours)` float32; None for the same."""
        theirs, ours, manifest = loaded.manifest.probe["controls"], built.controls, loaded.manifest
        (kind, sizes), own = built.space, loaded.policy.sizes
        discrete = kind == manifest.action_kind and kind != "gaussian"
        if discrete and own == sizes and np.array_equal(theirs, ours):
            return None
        listed = (own, sizes) == ((len(theirs),), (len(ours),))  # not of several decisions, and all probed
        if not discrete or not listed:
            raise SettingsError(
                f"{self._given}, whose actions are {manifest.distribution} over {own}, and this run's are "
                f"{kind} over {sizes}; expected the same discrete ones, or tables of 128 rows at most"
            )
        table = np.zeros((len(theirs), len(ours)), np.float32)
        for action, row in enumerate(theirs):
            same = np.flatnonzero(np.abs(np.array(ours)[:, 1:] - row[1:]).max(1) < 1e-6)
            if not len(same):
                raise SettingsError(
                    f"{self._given}, whose action {action} gives the controls {list(row[1:9])}, which no "
                    "action of this run gives; expected a table with all of the teacher's rows"
                )
            table[action, same[0]] = 1
        return table

    def restart(self) -> None:
        """Begin episodes everywhere."""
        self._fresh[:] = True
        self._policy.reset([], 0)

    def forget(self, ended: np.ndarray) -> None:
        """Begin episodes in some matches, `(matches,)` bool."""
        self._fresh |= ended
        self._policy.forget(ended)

    def probabilities(self, state: MatchState) -> np.ndarray:
        """Return how likely the teacher would take our actions next, `(matches, cars, actions)` float32."""
        cars = range(state.layout.cars)
        if self._calls:
            given = [self._observe_one(match, state) for match in range(state.matches)]
            obs = np.concatenate([one for one, _ in given])
            every = [masks for _, masks in given if masks is not None]
            masks = np.concatenate(every) if every else None
        else:
            obs, masks = observe(self._obs, cars, state), find_masks(self._parser, state)
        self._fresh[:] = False
        found = self._policy.probabilities(obs, masks)
        if self._translation is not None:
            found = found @ self._translation
        return found if self._table is None else _teach_flights(found, state, self._pilot, self._table)

    def _observe_one(self, match: int, state: MatchState) -> tuple[np.ndarray, np.ndarray | None]:
        """Return observations `(1, cars, size)` and masks of one match, by components without batch form."""
        calls, one = self._calls[match], state.select(np.array([match]))
        if self._fresh[match]:
            calls.begin(one, range(one.layout.cars))
        else:
            calls.step(one)
        obs = calls.observe()
        assert obs is not None  # a policy folder has a builder
        return obs, calls.masks(match)


def _teach_flights(found: np.ndarray, state: MatchState, weight: float, table: np.ndarray) -> np.ndarray:
    """Return probabilities `(matches, cars, actions)`, with the pilot's action where a car is to fly.

    That action has the weight in place of 1: so much more a step counts that the pilot teaches.
    """
    flights = pilot.plan_flights(state)
    flying = pilot.worth_flying(state, flights)
    if flying.any():
        actions = pilot.nearest_rows(pilot.fly(state, flights)[flying], table)
        found = found.copy()
        found[flying] = np.eye(len(table), dtype=np.float32)[actions] * weight
    return found


def check_teacher(settings: TrainingSettings, task: Task) -> None:
    """Make sure that the teacher fits matches of all team sizes; raises SettingsError where it does not."""
    if settings.teacher:
        for one in settings.by_size():
            Teacher(one, task)
