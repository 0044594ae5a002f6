"""Log what bots have drawn: below /match in the game's coordinates, below /camera on the screen."""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import rerun as rr

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.view.drawn_groups import DrawnGroups, Key, Places, Shapes
from rlgym_bridge.view.times import Times, drawn

_log = logging.getLogger(__name__)

PER_SECOND: Final = 30  # times a second at which drawings are looked at

MOST_BYTES: Final = 1 << 26
"""Bytes of shapes that a recording shows: 20 lines that move with a car take them in 18 minutes."""

_LINE: Final = rr.Radius.ui_points(1.2)
_LABEL: Final = rr.Radius.ui_points(1.0)


class _Kind(NamedTuple):
    """A kind of shape: where it is logged, which shapes it has, how it looks, and its columns."""

    below: str
    of: str
    look: Any
    columns: Callable[[list[Any]], rr.ComponentColumnList]


def _table(items: list[Any], width: int) -> np.ndarray:
    """Return the places of shapes, `(n, width)` uu or pixels."""
    return np.array([one[0] for one in items], np.float32).reshape(-1, width)


def _colors(items: list[Any]) -> np.ndarray:
    return np.array([one[-1] for one in items], np.uint32)


_KINDS: Final = (
    _Kind("/match/drawings/{}/lines", "lines", rr.LineStrips3D.from_fields(radii=_LINE),
          lambda all: rr.LineStrips3D.columns(
              strips=[one[0] for one in all], colors=_colors(all))),
    _Kind("/match/drawings/{}/labels", "labels", rr.Points3D.from_fields(radii=_LABEL, show_labels=True),
          lambda all: rr.Points3D.columns(
              positions=_table(all, 3), labels=[one[1] for one in all], colors=_colors(all))),
    _Kind("/match/drawings/{}/dots", "dots", None,
          lambda all: rr.Points3D.columns(
              positions=_table(all, 3), radii=[-one[1] for one in all], colors=_colors(all))),
    _Kind("/camera/drawings/{}/labels", "screen_labels",
          rr.Points2D.from_fields(radii=_LABEL, show_labels=True),
          lambda all: rr.Points2D.columns(
              positions=_table(all, 2), labels=[one[1] for one in all], colors=_colors(all))),
    _Kind("/camera/drawings/{}/boxes", "screen_boxes", None,
          lambda all: rr.Boxes2D.columns(
              half_sizes=(_table(all, 4)[:, 2:] - _table(all, 4)[:, :2]) / 2,
              centers=(_table(all, 4)[:, 2:] + _table(all, 4)[:, :2]) / 2, colors=_colors(all))),
)  # fmt: skip


def log_drawings(stream: rr.RecordingStream, recording: MatchRecording, times: Times) -> None:
    """Log the drawings of a recording, as they stand 30 times a second, up to `MOST_BYTES`."""
    if not recording.drawn:
        return
    groups = DrawnGroups()
    names = {index: recording.state.agents[row] for index, row in recording.rows_of.items()}
    log = DrawingsLog(stream, groups, names.get)
    waiting = iter(recording.drawn)
    following = next(waiting, None)
    rows: dict[Key, list[tuple[int, Shapes]]] = defaultdict(list)
    slot = recording.tick * PER_SECOND // TICKS_PER_SECOND
    places_at = _follow_bodies(recording)
    for row in np.flatnonzero(np.append(slot[1:] != slot[:-1], True)).tolist():
        while following is not None and following.frame <= recording.tick[row]:
            groups.take(following.content)
            following = next(waiting, None)
        if groups.changed or groups.moving:
            here = places_at(row)
            for key in groups.changed | groups.moving:
                if groups.spent < MOST_BYTES:
                    rows[key].append((row, groups.shapes(key, here)))
            groups.changed.clear()
        if groups.spent >= MOST_BYTES:
            _log.warning(
                "drawings of more than %d bytes: those from frame %d on are left out",
                MOST_BYTES, int(recording.tick[row]),
            )  # fmt: skip
            break
    for key, found in rows.items():
        log.put(key, times.at(np.array([row for row, _ in found])), [shapes for _, shapes in found])


class DrawingsLog:
    """Puts groups into a stream; `name` returns the name of a car by its index in packets."""

    def __init__(
        self, stream: rr.RecordingStream, groups: DrawnGroups, name: Callable[[int], str | None]
    ) -> None:
        self._stream, self._groups, self._name = stream, groups, name
        self._begun: set[str] = set()

    def put(self, key: Key, times: list[rr.TimeColumn], shapes: Sequence[Shapes]) -> None:
        """Log a group as it stood at some times; a kind of shape that it never had costs nothing."""
        who = self._name(self._groups.cars.get(key[0], -1)) or f"client-{key[0]}"
        for kind in _KINDS:
            path = kind.below.format(f"{who}/{key[1]}")
            each = [one[kind.of] for one in shapes]
            if path not in self._begun:
                if not any(each):
                    continue
                self._begun.add(path)
                if kind.look is not None:
                    self._stream.log(path, kind.look, static=True)
            columns = kind.columns([item for one in each for item in one])
            self._stream.send_columns(path, times, columns.partition([len(one) for one in each]))


def _follow_bodies(recording: MatchRecording) -> Callable[[int], Places]:
    """Return a function of a row that returns the ball and the cars that are there."""
    state = recording.state
    ball = drawn(recording, recording.ball_shown)
    cars = [
        drawn(recording, recording.car_shown[:, car], state.car_is_demoed[:, car] > 0)
        for car in range(state.layout.cars)
    ]

    def places_at(row: int) -> Places:
        return Places(
            (state.ball_position[row], state.ball_rotation[row]) if ball[row] else None,
            {
                index: (state.car_position[row, car], state.car_rotation[row, car])
                for index, car in recording.rows_of.items()
                if cars[car][row]
            },
        )

    return places_at
