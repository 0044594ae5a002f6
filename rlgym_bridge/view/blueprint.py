"""Lay out the viewer: the field from all sides and from the stand, curves below."""

from typing import Any, Final

import numpy as np
import rerun.blueprint as rrb

from rlgym_bridge.game import TICKS_PER_SECOND
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, Recording

try:
    from rerun.encodings import EntityPathLike, TimeInt, TimeRangeBoundary
except ModuleNotFoundError:  # Rerun before 0.37
    from rerun.datatypes import EntityPathLike, TimeInt, TimeRangeBoundary

_TRAIL_SECONDS: Final = 1
_LIVE_SECONDS: Final = 30  # of a match that goes on
_FAST: Final = 4000.0  # uu/s, of most balls
_NO_LEGEND: Final = rrb.PlotLegend(visible=False)
_BACKGROUND: Final = (14, 17, 20)


def blueprint(recording: Recording, compare: bool = False) -> rrb.Blueprint:
    """Return the layout for a recording, with distances to ghosts where `compare` has made some."""
    agents = recording.state.agents
    views: list[rrb.View | rrb.Container] = [_curves("/speed", "Speed, uu/s", _axis(0, _FAST))]
    if recording.state.car_boost_amount.any():
        views.append(_curves("/boost", "Boost", _axis(0, 100)))
    if compare:
        views.insert(0, _curves("/distance", "Distance to RocketSim, uu"))
    if agents and recording.inputs is not Inputs.NONE:
        controls = [_curves(f"/controls/{one}", f"Controls, {one}", _axis(-1, 1)) for one in agents]
        views.append(rrb.Tabs(*controls, name="Controls"))
    words: list[rrb.View] = []
    if isinstance(recording, MatchRecording):
        decided = [one for agent in recording.agents.values() for one in agent.decisions]
        if decided:
            chosen: list[rrb.View] = [_curves("/action", "Actions")]
            if any(np.isfinite(one.rewards).any() for one in decided):
                chosen.append(_curves("/reward", "Rewards"))
            views.append(rrb.Tabs(*chosen))
        words = _words()
    return _layout(_field(), words, views)


def live_blueprint() -> rrb.Blueprint:
    """Return the layout for a match while it is played: curves show its last 30 s."""
    curves: list[rrb.View | rrb.Container] = [
        _curves(origin, name, _axis(0, high), time_ranges=_last(_LIVE_SECONDS))
        for origin, name, high in (("/speed", "Speed, uu/s", _FAST), ("/boost", "Boost", 100))
    ]
    return _layout(_field(), _words(), curves)


def _field() -> rrb.Tabs:
    overrides: dict[EntityPathLike, Any] = {"/match/trail": rrb.VisibleTimeRanges(_last(_TRAIL_SECONDS))}
    space = rrb.Spatial3DView(
        origin="/", contents=["/match/**"], name="Field", background=_BACKGROUND, overrides=overrides,
        line_grid=rrb.archetypes.LineGrid3D(visible=False),
    )  # fmt: skip
    stand = rrb.Spatial2DView(
        origin="/camera", contents=["/match/**", "/camera/drawings/**"], name="From behind blue's goal",
        background=_BACKGROUND, overrides=overrides,
    )  # fmt: skip
    return rrb.Tabs(space, stand, name="Field", active_tab=1)  # the camera's view is filled by the field


def _curves(origin: str, name: str, axis: rrb.ScalarAxis | None = None, **more: Any) -> rrb.TimeSeriesView:
    """Return a plot without a legend, which would hide curves: the pointer on a curve shows its name."""
    return rrb.TimeSeriesView(origin=origin, name=name, axis_y=axis, plot_legend=_NO_LEGEND, **more)


def _last(seconds: int) -> list[rrb.VisibleTimeRange]:
    return [
        rrb.VisibleTimeRange("tick", start=_relative(-seconds * TICKS_PER_SECOND), end=_relative(0)),
        rrb.VisibleTimeRange("game time", start=_relative(-seconds * 1_000_000_000), end=_relative(0)),
    ]


def _words() -> list[rrb.View]:
    return [
        rrb.TextDocumentView(origin="/scoreboard", name="Score"),
        rrb.TextLogView(origin="/events", name="Events"),
    ]


def _layout(field: rrb.Tabs, words: list[rrb.View], curves: list[rrb.View | rrb.Container]) -> rrb.Blueprint:
    top = (
        rrb.Horizontal(field, rrb.Vertical(*words, row_shares=[1, 2]), column_shares=[7, 2])
        if words
        else field
    )
    return rrb.Blueprint(
        rrb.Vertical(top, rrb.Horizontal(*curves), row_shares=[3, 1]),
        rrb.BlueprintPanel(state="collapsed"),
        rrb.SelectionPanel(state="collapsed"),
        rrb.TimePanel(state="collapsed"),
        auto_views=False,
    )


class _Amount(TimeInt):
    """Rerun's 0.23 needs numpy 2 for the same."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype)


def _relative(amount: int) -> TimeRangeBoundary:
    """Return a time so many ticks or ns after the one that is looked at."""
    return TimeRangeBoundary(_Amount(seq=amount), kind="cursor_relative")


def _axis(low: float, high: float) -> rrb.ScalarAxis:
    edge = 0.05 * (high - low)
    return rrb.ScalarAxis(range=(low - edge, high + edge))
