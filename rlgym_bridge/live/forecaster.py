"""Look ahead over the ticks by which a bot's actions act later than in training.

With an action delay of A ticks and inputs that act L ticks late, the forecast goes over L - A ticks, so that
the policy finds the age of state that it was trained with. With L of A or less there is no forecast.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from rlgym_bridge.clock import Timing
from rlgym_bridge.components.player_spec import MOST_FORECAST, Forecast
from rlgym_bridge.state import MatchState

OFF_UU: Final = 10.0  # distance in uu from which on a forecast place counts as wrong
_RING: Final = 128  # ticks of inputs that are kept
_MATCH: Final = 0.02  # between a sent and a shown control: games round sticks to 8 bits
_AGES: Final = np.arange(MOST_FORECAST + 2)  # ticks; a change needs one more than its latency
_FADE: Final = 0.9  # of earlier votes, at each change of the controls
_LEAST_LEAD: Final = 1.5  # votes, by which a new latency beats the one in use
_LEAST_DOUBT: Final = 0.5  # votes, by which it beats any other: sticks that come and go fit several

Places = tuple[list[float] | None, list[list[float] | None]]
"""Places of the ball and of each own car, uu; None for what is not there."""


@dataclass
class Errors:
    """Distances [uu] between forecast and shown places, of which those of `OFF_UU` or more are off."""

    checked: int = 0
    off: int = 0
    total: float = 0.0

    def add(self, forecast: list[float] | None, shown: list[float] | None) -> None:
        """Count one place; None is left out."""
        if forecast is None or shown is None:
            return
        distance = math.dist(forecast, shown)
        self.checked += 1
        self.off += distance >= OFF_UU
        self.total += distance

    def to_json(self) -> dict[str, float | int | None]:
        """Return the share of wrong places and the mean distance in uu, None where there were none."""
        share, mean = (
            round(value / self.checked, 6) if self.checked else None for value in (self.off, self.total)
        )
        return {"checked": self.checked, "share_off": share, "mean_error_uu": mean}


@dataclass
class ForecastReport:
    """Counts of a bot's forecasts."""

    latency: int = 0  # ticks by which inputs act late, as set or as last measured
    measured: bool = False
    ticks: int = 0  # of the latest forecast
    forecasts: int = 0  # decisions on a forecast state
    missing: int = 0  # decisions that should have been, where no simulation followed the match
    ball: Errors = field(default_factory=Errors)  # errors of the ball's place
    car: Errors = field(default_factory=Errors)  # errors of the own cars' places

    def to_json(self) -> dict[str, Any]:
        """Return the counts as the bot's report has them."""
        return {**vars(self), "off_uu": OFF_UU, "ball": self.ball.to_json(), "car": self.car.to_json()}


class Forecaster:
    """Forecasts the match for one connection's own cars, and finds out how right that was.

    The latency is measured from the inputs that packets show where the setting is `"auto"`. Until then
    that of the timing holds, 0 to 60 ticks.
    """

    def __init__(self, setting: Forecast, timing: Timing, cars: int) -> None:
        self._measures, self._trained = setting == "auto", timing.action_delay
        self.latency = timing.input_latency if setting == "auto" else setting
        self.report = ForecastReport(self.latency)
        self._sent = np.zeros((cars, _RING, 8), np.float32)  # what answered a frame, by its number
        self._newest: int | None = None  # frame that was answered last
        self._shown: tuple[int, bytes, np.ndarray] | None = None  # frame and controls of a car in a packet
        self._votes = np.zeros(MOST_FORECAST + 1)
        self._due: deque[tuple[int, Places]] = deque()  # forecasts to be judged, by their frames

    @property
    def timing(self) -> Timing:
        """Delay and latency by which the clock has to send, so that actions fit the forecast."""
        return Timing(max(self._trained, self.latency), self.latency)

    @property
    def ticks(self) -> int:
        """Ticks that a forecast goes over."""
        return max(0, self.latency - self._trained)

    def note(self, frame: int, rows: Sequence[np.ndarray]) -> None:
        """Note the control vectors `(8,)` float32 of the own cars that answer the packet of a frame."""
        newest, self._newest = self._newest, frame
        if newest is None or not 0 <= frame - newest < _RING:
            self._sent[:] = 0
        elif frame - newest > 1:  # packets without an answer: the game held the last one
            self._sent[:, np.arange(newest + 1, frame) % _RING] = self._sent[:, newest % _RING, None]
        for sent, row in zip(self._sent, rows, strict=True):
            sent[frame % _RING] = row

    def forget(self) -> None:
        """Drop the forecasts that are not judged yet: what comes does not follow from what was."""
        self._due.clear()
        self._shown = None

    def see(self, frame: int, state: MatchState, cars: Sequence[int], places: Sequence[int]) -> None:
        """Judge the forecast of a frame by the match that it shows, and measure the latency.

        Own cars are given by their places in the state, and by those among the rows of `note`.
        """
        while self._due and self._due[0][0] <= frame:
            due, (ball, own) = self._due.popleft()
            if due == frame:
                shown_ball, shown_cars = _places(state, cars)
                self.report.ball.add(ball, shown_ball)
                for forecast, shown in zip(own, shown_cars, strict=True):
                    self.report.car.add(forecast, shown)
        if self._measures and cars:
            self._measure(frame, state.car_controls[0, cars[0]], places[0])

    def _measure(self, frame: int, controls: np.ndarray, place: int) -> None:
        """Count which latencies explain that a car's controls have changed since the packet before."""
        before, key = self._shown, controls.tobytes()
        if before is not None and before[0] == frame - 1 and before[1] == key:
            self._shown = (frame, key, before[2])
            return
        self._shown = (frame, key, controls.copy())
        if before is None or before[0] != frame - 1 or self._newest is None:
            return
        # The input that answers packet N drives N + L -> N + L + 1, and packet N + L + 1 shows it.
        answered = np.minimum(frame - 1 - _AGES, self._newest)
        sent = self._sent[place, answered % _RING]
        fits = np.abs(sent[:-1] - controls).max(1) < _MATCH
        fits &= np.abs(sent[1:] - before[2]).max(1) < _MATCH
        self._votes *= _FADE
        self._votes += fits
        best, second = int(self._votes.argmax()), float(np.partition(self._votes, -2)[-2])
        in_use = second if best == self.latency else float(self._votes[self.latency])
        if self._votes[best] >= max(second + _LEAST_DOUBT, in_use + _LEAST_LEAD):
            self.latency, self.report.latency, self.report.measured = best, best, True

    def look_ahead(
        self, frame: int, state: MatchState, cars: Sequence[int], places: Sequence[int],
        forecast: Callable[[np.ndarray], MatchState | None],
    ) -> MatchState:  # fmt: skip
        """Return the forecast match to decide on, or `state` where there is nothing to look ahead over.

        `cars` and `places` are as in `see`; `forecast` steps on by `(1, cars, ticks, 8)`.
        """
        ticks = self.ticks
        self.report.ticks = ticks
        if not ticks or self._newest is None:
            return state
        rows = state.car_controls[:, :, None].repeat(ticks, 2)
        on_their_way = np.arange(frame - self.latency, frame - self.latency + ticks)
        on_their_way = np.minimum(on_their_way, self._newest) % _RING
        for car, place in zip(cars, places, strict=True):
            rows[0, car] = self._sent[place, on_their_way]
        ahead = forecast(rows)
        if ahead is None:
            self.report.missing += 1
            return state
        self.report.forecasts += 1
        self._due.append((frame + ticks, _places(ahead, cars)))
        return ahead


def _places(state: MatchState, cars: Sequence[int]) -> Places:
    """Return where ball and cars are; demolished cars are nowhere."""
    ball = state.ball_position[0].tolist() if state.ball_known[0] else None
    wrecks, places = state.car_is_demoed[0].tolist(), state.car_position[0].tolist()
    return ball, [None if wrecks[car] else places[car] for car in cars]
