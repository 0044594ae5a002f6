"""Log curves over time, which end where a body is gone, the scoreboard and events."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import rerun as rr

from rlgym_bridge.game import CONTROL_NAMES, Phase
from rlgym_bridge.recording.mcap.agent_track import AgentTrack
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, Recording
from rlgym_bridge.state import MatchState
from rlgym_bridge.view.scene import BALL_COLOR, TEAM_COLORS
from rlgym_bridge.view.times import Times, drawn, steps, thinned, updates

_PER_SECOND: Final = 30  # points of a smooth curve
_MOST_SECONDS: Final = 1e6  # on the match's clock; a damaged packet may have any number

_SHADES: Final = (1.0, 0.62, 1.35, 0.4)  # of the team's colour, for its cars in turn
_CONTROL_COLORS: Final = (
    (90, 200, 120), (230, 90, 90), (110, 160, 240), (200, 130, 230),
    (240, 200, 90), (240, 240, 240), (255, 150, 60), (150, 150, 150),
)  # fmt: skip
_PHASES: Final = {
    value: name.replace("_", " ").lower() for name, value in vars(Phase).items() if isinstance(value, int)
}


def log_curves(stream: rr.RecordingStream, recording: Recording, times: Times) -> None:
    """Log all curves of a recording."""
    state = recording.state
    there = drawn(recording, recording.ball_shown)
    speed = np.linalg.norm(state.ball_linear_velocity, axis=-1)
    log_smooth(stream, "/speed/ball", times, recording.ball_shown, there, speed, BALL_COLOR)
    for car, name in enumerate(state.agents):
        shown, color = recording.car_shown[:, car], car_color(state, car)
        there = drawn(recording, shown, state.car_is_demoed[:, car] > 0)
        speed = np.linalg.norm(state.car_linear_velocity[:, car], axis=-1)
        log_smooth(stream, f"/speed/{name}", times, shown, there, speed, color)
        boost = state.car_boost_amount[:, car]
        if state.car_boost_amount.any():
            log_smooth(stream, f"/boost/{name}", times, shown, there, boost, color)
        if recording.inputs is not Inputs.NONE:
            recorded = recording.inputs_recorded[car]
            names = [one for one, known in zip(CONTROL_NAMES, recorded, strict=True) if known]
            colors = [one for one, known in zip(_CONTROL_COLORS, recorded, strict=True) if known]
            controls = state.car_controls[:, car][:, recorded]
            log_steps(stream, f"/controls/{name}", times, np.arange(len(controls)), controls, names, colors)
    if isinstance(recording, MatchRecording):
        _log_words(stream, recording, times)
        for agent in recording.agents.values():
            _log_decisions(stream, recording, agent, times)


def car_color(state: MatchState, car: int) -> tuple[int, ...]:
    """Return a car's colour: its team's, lighter or darker than those of its teammates."""
    teams = state.car_team[0].astype(int)
    place = int((teams[:car] == teams[car]).sum())
    shade = _SHADES[place % len(_SHADES)]
    return tuple(min(255, round(one * shade)) for one in TEAM_COLORS[teams[car]])


def log_smooth(
    stream: rr.RecordingStream, path: str, times: Times, shown: np.ndarray, there: np.ndarray,
    values: np.ndarray, color: tuple[int, ...],
) -> None:  # fmt: skip
    """Log a curve of `values` `(rows,)`, which ends where its body is gone; its path ends with its name.

    `shown` `(rows,)` bool are the rows that have a value, `there` is what `drawn` makes of them.
    """
    rows, here = updates(shown, there)
    some = thinned(rows, here, times.tick, _PER_SECOND)
    if not len(some):
        return
    log_still_curve(stream, path, color)
    rows, here = rows[some], here[some]
    columns = rr.Scalars.columns(scalars=values[rows[here]]).partition(here.astype(int))
    stream.send_columns(path, times.at(rows), columns)


def log_still_curve(stream: rr.RecordingStream, path: str, color: tuple[int, ...]) -> None:
    """Log a curve's colour and its name, with which its path ends."""
    look = rr.SeriesLines(colors=[color], names=[path.rpartition("/")[2]])
    stream.log(path, look, static=True)


def log_steps(
    stream: rr.RecordingStream, path: str, times: Times, rows: np.ndarray, values: np.ndarray,
    names: list[str], colors: Sequence[tuple[int, ...]] | None = None,
) -> None:  # fmt: skip
    """Log curves of one entity that keep a value until the next.

    `values` `(n, curves)` begin in `rows` `(n,)`, which rise. Without colours Rerun chooses them.
    """
    if not names or not len(rows):
        return
    each = np.unique(np.concatenate([rows, rows[1:] - 1]))  # a value holds until the row before the next
    values, rows = values[np.searchsorted(rows, each, side="right") - 1], each
    some = steps(values)
    look = rr.SeriesLines(names=names, colors=colors, aggregation_policy="off")  # else steps become slopes
    stream.log(path, look, static=True)
    columns = rr.Scalars.columns(scalars=values[some].ravel()).partition(np.full(len(some), len(names)))
    stream.send_columns(path, times.at(rows[some]), columns)


def _log_decisions(
    stream: rr.RecordingStream, recording: MatchRecording, agent: AgentTrack, times: Times
) -> None:
    """Log what an agent chose for each of its cars, and what it was rewarded with."""
    for seat in sorted({seat for one in agent.decisions for seat in one.seats.tolist()}):
        if not 0 <= seat < recording.state.layout.cars:
            continue
        own = [(one, one.seats.tolist().index(seat)) for one in agent.decisions if seat in one.seats]
        name, color = recording.state.agents[seat], car_color(recording.state, seat)
        width = max(one.actions.shape[1] for one, _ in own)
        chosen = [  # an episode's last step has none
            (one.frame, one.actions[place]) for one, place in own if 0 < one.actions.shape[1] == width
        ]
        rows, actions = _on_rows(recording, chosen)
        names = [name] if width == 1 else [f"{name} {index}" for index in range(width)]
        log_steps(stream, f"/action/{name}", times, rows, actions, names, [color] * width)
        told = [(one.frame, one.rewards[place]) for one, place in own if np.isfinite(one.rewards[place])]
        rows, rewards = _on_rows(recording, told)
        if len(rows):
            log_still_curve(stream, f"/reward/{name}", color)
            stream.send_columns(f"/reward/{name}", times.at(rows), rr.Scalars.columns(scalars=rewards))


def _on_rows(recording: Recording, said: Sequence[tuple[int, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows at or after frames, rising, and what was said last in each."""
    frames = np.array([frame for frame, _ in said], np.int64)
    rows = np.minimum(np.searchsorted(recording.tick, frames), len(recording.tick) - 1)
    last_of = {row: value for row, (_, value) in zip(rows.tolist(), said, strict=True)}
    return np.array(sorted(last_of), int), np.array([last_of[row] for row in sorted(last_of)], float)


def _log_words(stream: rr.RecordingStream, recording: MatchRecording, times: Times) -> None:
    """Log the scoreboard each second of the match's clock, and what happened."""
    state = recording.state
    seconds = np.ceil(np.nan_to_num(state.clock).clip(-_MOST_SECONDS, _MOST_SECONDS)).astype(int)
    board = np.column_stack([state.score, state.phase, state.overtime, seconds])
    rows = np.flatnonzero(np.concatenate([[True], (board[1:] != board[:-1]).any(1)]))
    texts = [words_of_score(*row) for row in board[rows].astype(int).tolist()]
    stream.log("/scoreboard", rr.TextDocument.from_fields(media_type="text/markdown"), static=True)
    stream.send_columns("/scoreboard", times.at(rows), rr.TextDocument.columns(text=texts))
    events: list[tuple[int, str]] = []
    for row in np.flatnonzero(np.diff(state.phase, prepend=-1)).tolist():
        events.append((row, words_of_phase(int(state.phase[row]))))
    for team, name in enumerate(("blue", "orange")):
        for row in (np.flatnonzero(np.diff(state.score[:, team]) > 0) + 1).tolist():
            events.append((row, f"goal for {name}: {state.score[row, 0]:.0f} : {state.score[row, 1]:.0f}"))
    for car, name in enumerate(state.agents):
        for row in (np.flatnonzero(np.diff(state.car_is_demoed[:, car]) > 0) + 1).tolist():
            events.append((row, f"{name} is demolished"))
    events.sort()
    rows = np.array([row for row, _ in events])
    stream.send_columns("/events", times.at(rows), rr.TextLog.columns(text=[text for _, text in events]))


def words_of_score(blue: int, orange: int, phase: int, overtime: int, seconds: int) -> str:
    """Return the scoreboard as Markdown."""
    clock = f"{'+' if overtime else ''}{seconds // 60}:{seconds % 60:02}"
    return f"# blue {blue} : {orange} orange\n\n**{clock}** {_PHASES.get(phase, '')}"


def words_of_phase(phase: int) -> str:
    """Return the name of a phase."""
    return _PHASES.get(phase, "unknown phase")
