"""Describe a player: its policy, what it sees, what its actions mean, and when they act."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

import numpy as np

from rlgym_bridge.clock import Timing
from rlgym_bridge.components.spec import Components
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.arguments import check_whole, show_value

MOST_FORECAST: Final = 60  # ticks of the longest forecast, half a second

Forecast = int | Literal["auto"]
"""Ticks of input latency that a player looks ahead over, 0 for none, or `"auto"`: as it is measured."""


def check_forecast(value: object) -> Forecast:
    """Return the setting `forecast`; raises ValueError unless it is `"auto"` or 0 to 60 ticks."""
    if value == "auto" or (isinstance(value, int) and value is not True and 0 <= value <= MOST_FORECAST):
        return value
    raise ValueError(
        f'forecast is {show_value(value)}, expected "auto" or whole ticks from 0 (off) to {MOST_FORECAST}'
    )


class Policy(Protocol):
    """A trained network or a program that chooses actions.

    One with the attribute `takes_masks = True` is called `act(obs, state, masks)`, with masks
    `(matches, cars, actions)` bool of its cars, or None where its parser has none.
    """

    def reset(self, cars: Sequence[int], seed: int | None = None, /) -> None:
        """Begin an episode; called at every kickoff.

        Args:
            cars: Cars to play, by their place in the state.
            seed: Of the episode's random numbers; None leaves it to the policy.
        """

    def act(self, obs: np.ndarray | None, state: MatchState, /) -> np.ndarray:
        """Return an action for every car of every match.

        Args:
            obs: `(matches, cars, size)` float32; None where there is no observation builder.
            state: The same matches, all cars.

        Returns:
            `(matches, cars)` for one choice a car, else `(matches, cars, k)`.
        """
        ...


@dataclass(frozen=True)
class PlayerSpec:
    """All that decides how a bot plays, as factories: every match gets instances of its own.

    Attributes:
        policy: Called without arguments; returns the `Policy` that chooses the actions.
        components: Called without arguments; returns the `Components` that build what the policy sees, and
            turn its actions into control rows.
        tick_skip: Ticks that a parser's single row is held, `(8,)` or `(1, 8)`. None: `(8,)` is held for 8
            ticks, and `(1, 8)` lasts one tick, as in RLGym. Several rows last as many ticks.
        timing: Action delay and input latency.
        shadow: Whether a simulation follows a live match, which gives wheels, auto-flips and bumps exactly.
            None: where RocketSim is installed. Counting alone estimates them, in half the time.
        team_sizes: (blue, orange) of the matches it can play, on either side; None for all.
        forecast: Input latency in ticks that a live player looks ahead over; see `live.forecaster`.

    Raises:
        ValueError: `policy` or `components` is no function or class, `tick_skip` no whole number above 0, or
            `forecast` neither `"auto"` nor 0 to 60 ticks.
    """

    policy: Callable[[], Policy]
    components: Callable[[], Components]
    tick_skip: int | None = None
    timing: Timing = field(default_factory=Timing)
    shadow: bool | None = None
    team_sizes: tuple[tuple[int, int], ...] | None = None
    forecast: Forecast = 0

    def __post_init__(self) -> None:
        check_forecast(self.forecast)
        if self.tick_skip is not None:
            check_whole("tick_skip", self.tick_skip, 1, unit="ticks")
        for name in ("policy", "components"):
            made = getattr(self, name)
            if not callable(made):
                raise ValueError(
                    f"{name} is {show_value(made)}, expected a function without arguments, or a class, that "
                    "makes it: `lambda: ...` for one that is made already"
                )
