"""A recorded match as what each of our cars saw, chose, and what the game applied: episode after episode."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from rlgym.api import RewardFunction

from rlgym_bridge.clock import GAP_TICKS
from rlgym_bridge.components import component_factory
from rlgym_bridge.fingerprint import action_space
from rlgym_bridge.game import PLAYING_PHASES
from rlgym_bridge.manifest import Manifest
from rlgym_bridge.recording.applied import ActionFinder, applied_actions
from rlgym_bridge.recording.channels import Decision
from rlgym_bridge.recording.match import AgentTrack, MatchRecording
from rlgym_bridge.recording.writer import RecordingError
from rlgym_bridge.rlgym_view import to_rlgym
from rlgym_bridge.state import MatchState

RewardFactory: TypeAlias = Callable[[], RewardFunction[Any, Any, Any]]


@dataclass(frozen=True)
class Played:
    """One car in one episode: from a kickoff, or where the bot joined, to a goal or the end of play.

    Attributes:
        agent: Name of the car, `blue-0`.
        bot: Agent id of who played it.
        policy: Of the bot.
        space: Kind of distribution and sizes, see `rlgym_bridge.fingerprint.action_space`.
        frames: `(n + 1,)` int64, ticks of n decisions and of the state after the last.
        obs: `(n + 1, S)` float32.
        chosen: `(n,)` int64, `(n, choices)` int64 or `(n, k)` float32: what the policy chose.
        applied: Likewise, what the game applied; see `rlgym_bridge.recording.applied`. Real numbers are in
            -1..1, as parsers take them.
        told: `(n,)` bool, whether the game told that.
        rewards: `(n,)` float64.
        scored: Whether it ended with a goal; else the match, or the recording, was over.
    """

    agent: str
    bot: str
    policy: Manifest
    space: tuple[str, tuple[int, ...]]
    frames: np.ndarray
    obs: np.ndarray
    chosen: np.ndarray
    applied: np.ndarray
    told: np.ndarray
    rewards: np.ndarray
    scored: bool

    @property
    def differs(self) -> np.ndarray:
        """Where the game applied another action than was chosen, `(n,)` bool."""
        meant = self.chosen.clip(-1, 1) if self.space[0] == "gaussian" else self.chosen
        found: np.ndarray = (self.applied != meant).reshape(len(meant), -1).any(1)
        return found


def played(
    recording: MatchRecording,
    reward: RewardFactory | None = None,
    bots: Collection[str] | None = None,
    allow_modules: Sequence[str] = (),
) -> list[list[Played]]:
    """Return the episodes of a match, each as its cars that saw an observation.

    Args:
        recording: With the decisions of our bots.
        reward: Makes a reward function, one for each bot and episode; None: what the bot recorded, 0 where it
            recorded none.
        bots: Agent ids of those to take; None: all whose policies have observations.
        allow_modules: Modules that their policies may name components of.

    Raises:
        RecordingError: Nobody's decisions, or not those of a bot that is asked for, are in the recording.
        TypeError: `reward` is a reward function, not what makes one.
        ValueError: A policy's components cannot be made.
    """
    if isinstance(reward, RewardFunction):
        raise TypeError(
            f"reward is a {type(reward).__name__}, expected what makes one for each bot and episode: the "
            f"class, or lambda: {type(reward).__name__}(...)"
        )
    tracks = _tracks(recording, bots)
    starts, stops = _stretches_of_play(recording)
    episodes: list[list[Played]] = [[] for _ in starts]
    for track, manifest in tracks:
        make = component_factory(manifest.obs, manifest.parser, manifest.env, allow_modules)
        space = action_space(make().parser.get_action_space("blue-0"))
        whole = _Bot(recording, track, manifest, make, space)
        for number, decisions in enumerate(_by_episode(track.decisions, recording, starts, stops)):
            if len(decisions) > 1:
                episodes[number] += whole.cars(decisions, reward)
    return [cars for cars in episodes if cars]


class _Bot:
    """One bot's part of a recording."""

    def __init__(
        self,
        recording: MatchRecording,
        track: AgentTrack,
        manifest: Manifest,
        make: Callable[[], Any],
        space: tuple[str, tuple[int, ...]],
    ) -> None:
        self._recording, self._bot, self._manifest, self._space = recording, track.agent_id, manifest, space
        every = [self._of_policy(one.actions) for one in track.decisions if one.actions.shape[1]]
        self._finder = ActionFinder(make().parser, np.concatenate(every))

    def cars(self, decisions: Sequence[Decision], reward: RewardFactory | None) -> list[Played]:
        """Return the cars of an episode."""
        recording, acted = self._recording, decisions[:-1]
        frames = np.array([one.frame for one in decisions], np.int64)
        scored = not decisions[-1].actions.shape[1]
        gained = _recorded(decisions) if reward is None else _rewards(recording, decisions, scored, reward())
        obs = np.stack([one.obs for one in decisions])
        chosen = np.stack([self._of_policy(one.actions) for one in acted])
        found = []
        for place, seat in enumerate(decisions[0].seats.tolist()):
            controls = recording.state.car_controls[:, seat]
            applied, told = applied_actions(
                self._finder, controls, recording.tick, frames, self._manifest.action_delay, chosen[:, place]
            )
            if self._space[0] == "gaussian":
                applied = applied.clip(-1, 1)
            found.append(
                Played(
                    recording.state.agents[seat],
                    self._bot,
                    self._manifest,
                    self._space,
                    frames,
                    obs[:, place],
                    chosen[:, place],
                    applied,
                    told,
                    gained[:, place],
                    scored,
                )
            )
        return found

    def _of_policy(self, actions: np.ndarray) -> np.ndarray:
        """Return recorded actions `(cars, k)` float32 as the policy's: `(cars,)` for one choice."""
        kind, _ = self._space
        if kind == "gaussian":
            return actions
        whole = actions.round().astype(np.int64)
        return whole[:, 0] if kind == "categorical" else whole


def _tracks(recording: MatchRecording, bots: Collection[str] | None) -> list[tuple[AgentTrack, Manifest]]:
    known = {
        name: track
        for name, track in recording.agents.items()
        if track.policy is not None and track.decisions and track.decisions[0].obs.shape[1]
    }
    wanted = list(known) if bots is None else list(bots)
    missing = [name for name in wanted if name not in known]
    if missing or not wanted:
        raise RecordingError(
            f"{recording.source} holds no decisions of {', '.join(missing) or 'policies that see anything'}, "
            f"expected those of policy folders, of which it has {', '.join(known) or 'none'}; `rlgym-bridge "
            "match --record` writes them"
        )
    return [
        (known[name], Manifest.from_json(json.dumps(known[name].policy), f"policy.json of {name}"))
        for name in wanted
    ]


def _stretches_of_play(recording: MatchRecording) -> tuple[np.ndarray, np.ndarray]:
    """Return the ticks at which play begins and ends: `(n,)` int64 each."""
    playing = np.isin(recording.state.phase, [int(phase) for phase in PLAYING_PHASES])
    steps = np.diff(recording.tick, prepend=recording.tick[:1])
    broken = (steps < 0) | (steps > GAP_TICKS)
    begins = playing & (np.diff(playing, prepend=False) | broken)
    starts = recording.tick[begins]
    last = np.r_[playing[1:] & ~begins[1:], False]  # play goes on in the next row
    return starts, recording.tick[playing & ~last]


def _by_episode(
    decisions: Sequence[Decision], recording: MatchRecording, starts: np.ndarray, stops: np.ndarray
) -> list[list[Decision]]:
    """Return the decisions of each stretch of play; the one that ends it may stand on the tick after."""
    found: list[list[Decision]] = [[] for _ in starts]
    for one in decisions:
        number = int(np.searchsorted(starts, one.frame, side="right")) - 1
        if number < 0 or one.frame > stops[number] + GAP_TICKS:
            continue
        so_far = found[number]
        if so_far and (
            not so_far[-1].actions.shape[1]
            or one.frame <= so_far[-1].frame
            or one.seats.tolist() != so_far[0].seats.tolist()
        ):
            continue  # the bot has joined anew, or changed cars: what came first stays
        so_far.append(one)
    return found


def _recorded(decisions: Sequence[Decision]) -> np.ndarray:
    """Return `(n, cars)` rewards that the bot itself was given; 0 where it was not."""
    given: np.ndarray = np.nan_to_num(np.stack([one.rewards for one in decisions[1:]]).astype(np.float64))
    return given


def _rewards(
    recording: MatchRecording,
    decisions: Sequence[Decision],
    scored: bool,
    reward: RewardFunction[Any, Any, Any],
) -> np.ndarray:
    """Ask a reward function about an episode; return `(n, cars)`."""
    rows = np.searchsorted(recording.tick, [one.frame for one in decisions]).clip(0, len(recording.tick) - 1)
    agents = [recording.state.agents[seat] for seat in decisions[0].seats]
    info: dict[str, Any] = {}
    gained = np.zeros((len(decisions) - 1, len(agents)))
    reward.reset(agents, to_rlgym(_since(recording, rows[0], rows[0])), info)
    for number, (before, row) in enumerate(pairwise(rows.tolist())):
        over = scored and number == len(gained) - 1
        state = _since(recording, before, row)
        state.goal_scored[0] = over
        ended, cut = dict.fromkeys(agents, over), dict.fromkeys(agents, False)
        given = reward.get_rewards(agents, to_rlgym(state), ended, cut, info)
        gained[number] = [given[agent] for agent in agents]
    return gained


def _since(recording: MatchRecording, before: int, row: int) -> MatchState:
    """Return a row's state with the touches since another row, which is how a decision sees them."""
    layout = recording.state.layout
    state = MatchState(layout.blue, layout.orange, 1, recording.state.buffer[row : row + 1].copy())
    state.car_ball_touches[0] = recording.state.car_ball_touches[before + 1 : row + 1].sum(0)
    return state
