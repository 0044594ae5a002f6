"""Episodes of people's cars: what a policy would have seen, and its action nearest to their inputs."""

from collections.abc import Collection
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.actions import action_space
from rlgym_bridge.components.batch_form import observe
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.applied_actions import ActionFinder
from rlgym_bridge.recording.car_episodes import Played
from rlgym_bridge.recording.recording import Recording

_WEIGHTS: Final = {  # of a squared difference: on wheels, and in the air
    "throttle": (1, 0.05), "steer": (1, 0.01), "pitch": (0.01, 1), "yaw": (0.01, 1), "roll": (0.01, 1),
    "jump": (4, 4), "boost": (1, 1), "handbrake": (1, 0.01),
}  # fmt: skip
_AT_ONCE: Final = 4096  # decisions


def played_like(recording: Recording, policy: Any, bots: Collection[str] | None = None) -> list[list[Played]]:
    """Return the episodes of a match of people, as a policy would have seen and played it.

    A decision's action is the one whose controls are nearest to the mean of those on the ticks that it
    drives; jump counts where it was pressed on one of them. Steering and throttle count on wheels, pitch, yaw
    and roll in the air. `policy` is the `LoadedPolicy` whose observations, actions and timing are taken;
    `bots` are names of cars (`blue-0`), None all. Raises ValueError if the policy plays no matches of this
    size, has no finite set of actions, or there is no such car.
    """
    layout, manifest = recording.state.layout, policy.manifest
    size = layout.blue, layout.orange
    if size not in manifest.team_sizes:
        raise ValueError(
            f"{recording.source} has {size[0]} and {size[1]} cars, and the policy of --like plays "
            f"{' or '.join(f'{blue}v{orange}' for blue, orange in manifest.team_sizes)}: expected one for it"
        )
    missing = set(bots or ()) - set(layout.agents)
    if missing:
        raise ValueError(
            f"{recording.source} has no {', '.join(sorted(missing))}: {', '.join(layout.agents)}"
        )
    parser = policy.parser()
    space = action_space(parser.get_action_space("blue-0"))
    finder = ActionFinder(parser, np.zeros(1, np.int64), size)
    if space[0] != "categorical" or not finder.steady:
        raise ValueError(
            f"the policy of --like has {space[0]} actions of {type(parser).__name__}, expected a list of "
            "actions that always make the same controls, to find the nearest in"
        )
    episodes = []
    for part in recording.segments():
        if not recording.car_shown[part].all():
            continue
        # A row holds what drove the tick that ended in it.
        last = part.stop - 1 - manifest.action_delay
        rows = np.arange(part.start, last + 1, manifest.tick_skip)
        if len(rows) < 3:
            continue
        state = recording.state.select(rows)
        obs = observe(policy.obs_builder(), range(layout.cars), state)
        scored = bool(recording.state.goal_scored[part.stop - 1])
        episodes.append([
            _car(recording, manifest, space, finder, rows, obs[:, seat], seat, scored)
            for seat in range(layout.cars)
            if not bots or layout.agents[seat] in bots
        ])  # fmt: skip
    return episodes


def _car(
    recording: Recording, manifest: Any, space: tuple[str, tuple[int, ...]], finder: ActionFinder,
    rows: np.ndarray, obs: np.ndarray, seat: int, scored: bool,
) -> Played:  # fmt: skip
    """Return a car's episode with decisions at all `rows` but the last."""
    first = rows[:-1, None] + manifest.action_delay + 1
    driven = recording.state.car_controls[first + np.arange(manifest.tick_skip), seat]  # (n, ticks, 8)
    meant = driven.mean(1)
    jump = CONTROL_NAMES.index("jump")
    meant[:, jump] = driven[:, :, jump].max(1)
    ground = recording.state.car_on_ground[rows[:-1], seat] > 0
    weights = np.array([_WEIGHTS[name] for name in CONTROL_NAMES], np.float32).T  # (2, 8)
    weights, made, found = weights[np.where(ground, 0, 1)], finder.mean_controls(), []
    for start in range(0, len(meant), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        away = (np.square(meant[some, None] - made) * weights[some, None]).sum(2)
        found.append(finder.actions[away.argmin(1)])  # the first of several
    chosen = np.concatenate(found)
    agent = recording.state.agents[seat]
    count = len(rows) - 1
    return Played(
        agent, agent, manifest, space, recording.tick[rows], obs, chosen, chosen, np.ones(count, bool),
        np.zeros(count), scored,
    )  # fmt: skip
