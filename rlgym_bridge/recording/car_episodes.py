"""Turn a recorded match into episodes: what each car saw, chose, and what the game applied."""

import json
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
from rlgym.api import RewardFunction

from rlgym_bridge.clock import GAP_TICKS
from rlgym_bridge.components.actions import action_space
from rlgym_bridge.components.rlgym_state import to_rlgym
from rlgym_bridge.components.spec import component_factory
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.recording.applied_actions import ActionFinder, applied_actions
from rlgym_bridge.recording.mcap.agent_track import AgentTrack
from rlgym_bridge.recording.mcap.channels import Decision
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.mcap.mcap_writer import RecordingError
from rlgym_bridge.recording.recording import in_play
from rlgym_bridge.state import MatchState

_LOG = logging.getLogger(__name__)

RewardFactory: TypeAlias = Callable[[], RewardFunction[Any, Any, Any]]


@dataclass(frozen=True)
class Played:
    """One car in one episode: from a kickoff, or where the bot joined, to a goal or the end of play."""

    agent: str  # name of the car, `blue-0`
    bot: str  # agent id of who played it
    policy: Manifest
    # kind of distribution and sizes, see `components.actions.action_space`
    space: tuple[str, tuple[int, ...]]
    frames: np.ndarray  # `(n + 1,)` int64, ticks of n decisions and of the state after the last
    obs: np.ndarray  # `(n + 1, S)` float32
    chosen: np.ndarray  # `(n,)` int64, `(n, choices)` int64 or `(n, k)` float32: what the policy chose
    applied: np.ndarray  # the same of what the game applied, see `applied_actions`; real numbers are in -1..1
    told: np.ndarray  # `(n,)` bool, whether the game told that
    rewards: np.ndarray  # `(n,)` float64
    scored: bool  # whether it ended with a goal; else the match, or the recording, was over

    @property
    def differs(self) -> np.ndarray:
        """Decisions for which the game applied another action than was chosen, `(n,)` bool."""
        meant = self.chosen.clip(-1, 1) if self.space[0] == "gaussian" else self.chosen
        return np.asarray((self.applied != meant).reshape(len(meant), -1).any(1))


def played(
    recording: MatchRecording,
    reward: RewardFactory | None = None,
    bots: Collection[str] | None = None,
    allow_modules: Sequence[str] = (),
) -> list[list[Played]]:
    """Return the episodes of a match, each as its cars that saw an observation.

    `reward` makes a reward function, one for each bot and episode; None takes what the bot recorded, 0 if
    that is nothing. `bots` are agent ids, None all whose policies have observations. Raises RecordingError if
    the decisions of nobody, or not those of one that is asked for, are there, TypeError if `reward` is a
    reward function itself, ValueError if a policy's components cannot be made.
    """
    if isinstance(reward, RewardFunction):
        raise TypeError(
            f"reward is a {type(reward).__name__}, expected what makes one for each bot and episode: the "
            f"class, or lambda: {type(reward).__name__}(...)"
        )
    for note in recording.notes:
        _LOG.warning("%s: %s", recording.source, note)
    tracks = _tracks(recording, bots)
    starts, stops = _segments_of_play(recording)
    cars: dict[int, list[Played]] = {}
    for track, manifest in tracks:
        make = component_factory(manifest.obs, manifest.parser, manifest.env, allow_modules)
        whole = _Bot(recording, track, manifest, make)
        parts = _by_episode(track.decisions, starts, stops, manifest.tick_skip)
        for (number, _), decisions in parts.items():
            if len(decisions) > 1:
                cars.setdefault(number, []).extend(whole.cars(decisions, reward))
    return [together for number in sorted(cars) for together in _together(cars[number])]


def _together(cars: Sequence[Played]) -> list[list[Played]]:
    """Return the episodes of a segment of play: cars whose times overlap, each car once."""
    episodes: list[list[Played]] = []
    for car in sorted(cars, key=lambda car: int(car.frames[0])):
        for episode in reversed(episodes):
            last = max(int(one.frames[-1]) for one in episode)
            if car.frames[0] < last and car.agent not in [one.agent for one in episode]:
                episode.append(car)
                break
        else:
            episodes.append([car])
    return episodes


class _Bot:
    def __init__(
        self, recording: MatchRecording, track: AgentTrack, manifest: Manifest, make: Callable[[], Any]
    ) -> None:
        self._recording, self._bot, self._manifest = recording, track.agent_id, manifest
        self._space = action_space(make().parser.get_action_space("blue-0"))
        self._check(track.decisions)
        every = [self._of_policy(one.actions) for one in track.decisions if one.actions.shape[1]]
        layout = recording.state.layout
        self._finders = {
            seat: ActionFinder(make().parser, np.concatenate(every), (layout.blue, layout.orange), seat)
            for seat in sorted({seat for one in track.decisions for seat in one.seats.tolist()})
        }
        if not all(finder.steady for finder in self._finders.values()):
            _LOG.warning(
                "%s: %s of %s turns one action into different controls, depending on the state or on earlier "
                "actions, so the controls do not tell which action the game applied",
                recording.source, type(make().parser).__name__, self._bot,
            )  # fmt: skip

    def cars(self, decisions: Sequence[Decision], reward: RewardFactory | None) -> list[Played]:
        recording, acted = self._recording, decisions[:-1]
        frames = np.array([one.frame for one in decisions], np.int64)
        scored = not decisions[-1].actions.shape[1]
        if reward is None:
            own = np.stack([one.rewards for one in decisions[1:]]).astype(np.float64)
            gained = np.where(np.isfinite(own), own, 0.0)  # where the bot was given some itself
        else:
            gained = _rewards(recording, decisions, scored, reward())
        obs = np.stack([one.obs for one in decisions])
        chosen = np.stack([self._of_policy(one.actions) for one in acted])
        found = []
        rows = slice(*np.searchsorted(recording.tick, (frames[0], frames[-1] + 1)))
        for place, seat in enumerate(decisions[0].seats.tolist()):
            # A demolished car applies nothing, and its packets go on showing what was before.
            gone = recording.state.car_is_demoed[rows, seat] > 0
            controls = np.where(gone[:, None], np.nan, recording.state.car_controls[rows, seat])
            applied, told = applied_actions(
                self._finders[seat], controls, recording.tick[rows], frames, self._manifest.action_delay,
                chosen[:, place],
            )  # fmt: skip
            if self._space[0] == "gaussian":
                applied = applied.clip(-1, 1)
            whose = (recording.state.agents[seat], self._bot, self._manifest, self._space)
            seen, meant = obs[:, place], chosen[:, place]
            found.append(Played(*whose, frames, seen, meant, applied, told, gained[:, place], scored))
        return found

    def _check(self, decisions: Sequence[Decision]) -> None:
        """Make sure that decisions are of cars that are there, and hold numbers that a policy can have."""
        kind, sizes = self._space
        for one in decisions:
            where = f"the decision of {self._bot} at frame {one.frame} of {self._recording.source}"
            if not ((one.seats >= 0) & (one.seats < self._recording.state.layout.cars)).all():
                raise ValueError(
                    f"{where} is of the cars {one.seats.tolist()}, which the match does not have"
                )
            if not np.isfinite(one.obs).all() or not np.isfinite(one.actions).all():
                raise ValueError(f"{where} holds a number that is not finite: the recording is damaged")
            width = one.actions.shape[1]
            expected = sizes[0] if kind == "gaussian" else len(sizes)
            fits = width in (0, expected)  # an episode's last has none
            if fits and width and kind != "gaussian":
                fits = bool(((one.actions >= 0) & (one.actions < np.array(sizes))).all())
            if not fits:
                raise ValueError(f"{where} is {one.actions.tolist()}, expected actions of {kind} {sizes}")

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
        if track.policy is not None
        and any(one.obs.shape[1] and one.actions.shape[1] for one in track.decisions)
    }
    wanted = list(known) if bots is None else [bots] if isinstance(bots, str) else list(dict.fromkeys(bots))
    missing = [name for name in wanted if name not in known]
    if missing or not wanted:
        whose = ", ".join(map(str, missing)) or "anybody"
        raise RecordingError(
            f"{recording.source} holds no decisions with observations of {whose}; it holds those of "
            f"{', '.join(known) or 'nobody'}: bots that play policy folders write them in "
            "`rlgym-bridge match --record`"
        )
    return [
        (known[name], Manifest.from_json(json.dumps(known[name].policy), f"policy.json of {name}"))
        for name in wanted
    ]


def _rewards(
    recording: MatchRecording, decisions: Sequence[Decision], scored: bool, reward: Any
) -> np.ndarray:
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
        if missing := [agent for agent in agents if agent not in given]:
            raise ValueError(f"{type(reward).__name__} gave no reward for {', '.join(missing)}")
        gained[number] = [given[agent] for agent in agents]
        if not np.isfinite(gained[number]).all():
            raise ValueError(
                f"{type(reward).__name__} gave {gained[number].tolist()}, expected finite numbers"
            )
    return gained


def _since(recording: MatchRecording, before: int, row: int) -> MatchState:
    """Return a row's state with the touches since another row, which is how a decision sees them."""
    state = recording.state.select(np.array([row]))
    state.car_ball_touches[0] = recording.state.car_ball_touches[before + 1 : row + 1].sum(0)
    return state


_GAP_DECISIONS: Final = 4  # in a row that lost packets may make a bot miss, and it is still the same episode
_GAP_LEAST: Final = 12  # ticks that they may


def _segments_of_play(recording: MatchRecording) -> tuple[np.ndarray, np.ndarray]:
    """Return the ticks at which play begins and ends: `(n,)` int64 each."""
    playing = in_play(recording.state)
    steps = np.diff(recording.tick, prepend=recording.tick[:1])
    if (steps < 0).any():
        raise RecordingError(
            f"the frames of {recording.source} begin anew at row {int(np.argmax(steps < 0))}: it holds more "
            "than one match, expected a recording of each"
        )
    broken = steps > GAP_TICKS
    begins = playing & (np.diff(playing, prepend=False) | broken)
    starts = recording.tick[begins]
    last = np.r_[playing[1:] & ~begins[1:], False]  # play goes on in the next row
    return starts, recording.tick[playing & ~last]


def _by_episode(
    decisions: Sequence[Decision], starts: np.ndarray, stops: np.ndarray, tick_skip: int
) -> dict[tuple[int, int], list[Decision]]:
    """Return the decisions of each segment of play, divided where decisions are missing."""
    found: dict[tuple[int, int], list[Decision]] = {}
    number, part = -1, 0
    for one in decisions:
        here = int(np.searchsorted(starts, one.frame, side="right")) - 1
        if here < 0 or one.frame > stops[here] + GAP_TICKS:
            continue
        if here != number:
            number, part = here, 0
        before = found.get((number, part), [])
        if before and (
            not before[-1].actions.shape[1]
            or not 0 < one.frame - before[-1].frame <= max(_GAP_DECISIONS * tick_skip, _GAP_LEAST)
            or one.seats.tolist() != before[0].seats.tolist()
            or one.obs.shape != before[0].obs.shape
        ):
            part += 1
        found.setdefault((number, part), []).append(one)
    return found
