"""Describe ten-second segments of a match by play statistics.

MatchRecording -> pieces of play -> features of each car
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from rlgym_bridge.compare.action_delay import latencies
from rlgym_bridge.game import CONTROL_NAMES, PLAYING_PHASES, TICKS_PER_SECOND
from rlgym_bridge.recording.mcap.agent_track import AgentTrack, InputTrack
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.sim.touches import is_new_touch

PIECE_SECONDS: Final = 10.0
"""Length of a piece: longer than a car's moves hang together, short enough that a match has many."""

_LEAST_SECONDS: Final = 3.0  # shorter rests of play are left out
_MINUTE: Final = 60.0
_AXES: Final = 5  # of the controls; the others are buttons
_PRESSED: Final = 0.5


@dataclass
class Pieces:
    """The features of some pieces of play.

    Attributes:
        means: By name: `(pieces,)`, one number a piece.
        samples: By name: for each piece the values of a distribution, `(ticks or decisions,)`.
        actions: By name: for each piece what a policy chose, numbers that are names and not amounts.
    """

    means: dict[str, np.ndarray]
    samples: dict[str, list[np.ndarray]]
    actions: dict[str, list[np.ndarray]]


def pieces_of(recording: MatchRecording) -> Pieces:
    """Cut a match into pieces and describe each.

    For each car touches, goals and boost per minute, the input latency, and as distributions: speed, height,
    boost, controls, actions and observations of the policy, as far as they were recorded.
    """
    rows = list(_pieces(recording))
    means: dict[str, list[float]] = {}
    samples: dict[str, list[np.ndarray]] = {}
    actions: dict[str, list[np.ndarray]] = {}
    state = recording.state
    score = state.score.astype(int)
    seats = {row: track for track in recording.agents.values() for row in set(track.inputs.row.tolist())}
    touches = _touches(recording)
    latencies = {row: _latency(recording, track.inputs, row) for row, track in seats.items() if row >= 0}
    for piece in rows:
        minutes = (piece.stop - piece.start) / TICKS_PER_SECOND / _MINUTE
        for team, name in enumerate(("blue", "orange")):
            scored = score[min(piece.stop, len(score) - 1), team] - score[piece.start, team]
            means.setdefault(f"{name} goals/min", []).append(scored / minutes)
        for car, agent in enumerate(state.agents):
            shown = recording.car_shown[piece, car]
            speed = np.linalg.norm(state.car_linear_velocity[piece, car], axis=-1)
            boost = state.car_boost_amount[piece, car]
            values = {
                "speed, uu/s": speed[shown],
                "height, uu": state.car_position[piece, car, 2][shown],
                "boost": boost[shown],
                "distance to ball, uu": np.linalg.norm(
                    state.ball_position[piece] - state.car_position[piece, car], axis=-1
                )[shown],
            }
            for name, one in values.items():
                samples.setdefault(f"{agent} {name}", []).append(one)
            controls = state.car_controls[piece, car]
            for number, control in enumerate(CONTROL_NAMES):
                if number < _AXES:
                    samples.setdefault(f"{agent} {control}", []).append(controls[:, number])
                else:
                    pressed = float((controls[:, number] > _PRESSED).mean())
                    means.setdefault(f"{agent} {control} held, share", []).append(pressed)
            used = np.clip(-np.diff(boost), 0, None)
            numbers = {
                "touches/min": int(touches[piece, car].sum()) / minutes,
                "in the air, share": float((state.car_on_ground[piece, car] < 1).mean()),
                "boost used/min": float(used[used < 5].sum()) / minutes,
            }
            if car in latencies:
                numbers["input latency, ticks"] = latencies[car]
            for name, value in numbers.items():
                means.setdefault(f"{agent} {name}", []).append(value)
    for track in recording.agents.values():
        _add_decisions(recording, track, rows, samples, actions)
    return Pieces({name: np.array(one) for name, one in means.items()}, samples, actions)


def _pieces(recording: MatchRecording) -> Iterator[slice]:
    """Yield segments of play, cut into pieces."""
    size, least = int(PIECE_SECONDS * TICKS_PER_SECOND), int(_LEAST_SECONDS * TICKS_PER_SECOND)
    for play in _plays(recording):
        for first in range(play.start, play.stop, size):
            last = min(first + size, play.stop)
            if last - first >= least:
                yield slice(first, last)


def _plays(recording: MatchRecording) -> list[slice]:
    """Return the rows of each segment of play."""
    playing = np.isin(recording.state.phase, [int(phase) for phase in PLAYING_PHASES])
    ends = np.flatnonzero(np.diff(playing.astype(np.int8), prepend=0, append=0)).tolist()
    return [slice(start, stop) for start, stop in zip(ends[::2], ends[1::2], strict=True)]


def _touches(recording: MatchRecording) -> np.ndarray:
    """Return in which rows of play each car began a touch, `(rows, cars)` bool."""
    contacts = recording.state.car_ball_touches > 0
    begun = np.zeros(contacts.shape, bool)
    for play in _plays(recording):
        for car in range(contacts.shape[1]):
            rows = play.start + np.flatnonzero(contacts[play, car])
            begun[rows[:1], car] = True
            begun[rows[1:], car] = is_new_touch(np.diff(recording.tick[rows]))
    return begun


def _latency(recording: MatchRecording, sent: InputTrack, car: int) -> float:
    """Return how many ticks after the next one most inputs act; NaN where inputs hardly change."""
    _, late = latencies(recording, sent, car)
    return float(np.bincount(late).argmax()) if len(late) else float("nan")


def _add_decisions(
    recording: MatchRecording,
    track: AgentTrack,
    rows: list[slice],
    samples: dict[str, list[np.ndarray]],
    actions: dict[str, list[np.ndarray]],
) -> None:
    """Add the distributions of what a policy saw and chose."""
    if not track.decisions:
        return
    seats, shape = track.decisions[0].seats.tolist(), track.decisions[0].actions.shape
    decisions = [one for one in track.decisions if one.seats.tolist() == seats and one.actions.shape == shape]
    here = np.array([one.frame for one in decisions])
    names = None if track.policy is None else track.policy.get("obs_names")
    for place, seat in enumerate(seats):
        agent = recording.state.agents[seat]
        obs = np.array([one.obs[place] for one in decisions])
        acted = np.array([one.actions[place] for one in decisions])
        for piece in rows:
            low, high = recording.tick[piece.start], recording.tick[piece.stop - 1]
            chosen = (here >= low) & (here <= high)
            for number in range(obs.shape[1]):
                name = names[number] if names and number < len(names) else f"number {number}"
                samples.setdefault(f"{agent} sees {name}", []).append(obs[chosen, number])
            for number in range(acted.shape[1]):
                name = "action" if acted.shape[1] == 1 else f"action {number}"
                actions.setdefault(f"{agent} {name}", []).append(acted[chosen, number])
