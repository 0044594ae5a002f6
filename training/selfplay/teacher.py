"""A trained policy that the learning one imitates at first: its probabilities for every step."""

from typing import Any

import numpy as np

from rlgym_bridge.components.batch_form import find_masks, observe, works_in_batches
from rlgym_bridge.components.episode import ComponentCalls
from rlgym_bridge.game import HITBOX_NAMES
from rlgym_bridge.policy.files import policy_path
from rlgym_bridge.policy.fingerprint import Fingerprint, fingerprint
from rlgym_bridge.policy.folder import LoadedPolicy, load_policy
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.policy.shape import explain_misfit
from rlgym_bridge.state import MatchState
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.settings import SettingsError, TrainingSettings


class Teacher:
    """The policy of the setting `teacher`, for matches of one team size; its actions are told as the task's.

    Raises SettingsError where it cannot be loaded, was trained for other team sizes, decides at another pace,
    or has an action that this run does not have.
    """

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
        """Return how likely the teacher would take each of our actions, `(matches, cars, actions)` float32.

        Each call is one step later than the one before.
        """
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
        return found if self._translation is None else found @ self._translation

    def _observe_one(self, match: int, state: MatchState) -> tuple[np.ndarray, np.ndarray | None]:
        """Return observations `(1, cars, size)` and masks of one match, by components without batch form."""
        layout, calls = state.layout, self._calls[match]
        one = MatchState(layout.blue, layout.orange, 1, state.buffer[match : match + 1].copy())
        if self._fresh[match]:
            calls.begin(one, range(layout.cars))
        else:
            calls.step(one)
        obs = calls.observe()
        assert obs is not None  # a policy folder has a builder
        return obs, calls.masks(match)


def check_teacher(settings: TrainingSettings, task: Task) -> None:
    """Make sure that the teacher fits matches of all team sizes; raises SettingsError where it does not."""
    if settings.teacher:
        for one in settings.by_size():
            Teacher(one, task)
