"""Follow a match packet by packet in the game's thread, while a script sets its scenes."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rlbot import flat

from rlgym_bridge.game import PLAYING_PHASES
from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.net.hosted_match import HostedMatch

MOVED: Final = 100.0
"""A car that gets this far from its place moves, uu: less than its own length."""


class MatchWatch:
    """Keeps what packets tell of the cars that are checked.

    Args:
        cars: Their indices in packets.

    Attributes:
        server: The server of the match; set before it is played.
        packet: The latest packet.
        first_at: When the first packet came, on `time.perf_counter`'s clock; None before it.
        at_first: Called at the first packet.
        has_timed_out: Whether the match was stopped because its time was over.
    """

    def __init__(self, cars: Sequence[int]) -> None:
        self.cars = tuple(cars)
        self.server: MatchServer
        self.packet = flat.GamePacket()
        self.first_at: float | None = None
        self.at_first: Callable[[], None] = lambda: None
        self.has_timed_out = False
        self._script: Iterator[None] = iter(())
        self._until = math.inf
        self._places: dict[int, tuple[float, float, float]] = {}
        self._ways: dict[int, float] = {}

    def follow(self, script: Callable[[], Iterator[None]], seconds: float) -> None:
        """Have a script go on by one step at each packet; the match is stopped after it.

        Args:
            script: Returns the steps.
            seconds: Wall time from the first packet after which the match is stopped all the same.
        """
        self._script, self._seconds = script(), seconds

    def take(self, payload: bytes) -> None:
        """Take in a packet, as `MatchServer` passes it on."""
        message = flat.CorePacket.unpack(payload).message
        if not isinstance(message, flat.GamePacket):
            return
        self.packet = message
        now = time.perf_counter()
        if self.first_at is None:
            self.first_at, self._until = now, now + self._seconds
            self.at_first()
        if self.phase in PLAYING_PHASES:
            self._follow_cars()
        if now > self._until:
            self.has_timed_out = True
            self.server.stop()
        elif next(self._script, self) is self:
            self.server.stop()

    def allow(self, seconds: float) -> None:
        """Stop the match this much wall time from now on, and not before."""
        self._until = time.perf_counter() + seconds

    @property
    def match(self) -> HostedMatch:
        """Return the running match."""
        assert self.server.hosted is not None  # packets come while it is played
        return self.server.hosted

    @property
    def phase(self) -> int:
        """Return the match's phase, one of `game.Phase`."""
        return int(self.packet.match_info.match_phase)

    def _follow_cars(self) -> None:
        for car in self.cars:
            player = self.packet.players[car]
            if player.demolished_timeout >= 0:
                continue
            where = player.physics.location
            place = (where.x, where.y, where.z)
            start = self._places.setdefault(car, place)
            self._ways[car] = max(self._ways.get(car, 0.0), math.dist(start, place))

    def begin_way(self) -> None:
        """Measure how far the cars get from where they are at the next packet in play."""
        self._places.clear()
        self._ways.clear()

    def way(self, car: int) -> float:
        """Return how far a car has got from where its way began, uu."""
        return self._ways.get(car, 0.0)

    @property
    def have_moved(self) -> bool:
        """Tell whether all cars have moved since their ways began."""
        return all(self.way(car) >= MOVED for car in self.cars)

    @property
    def are_driven(self) -> bool:
        """Tell whether a bot is there for each car."""
        return all(self.match.accounts[car].ready for car in self.cars)

    @property
    def replies(self) -> int:
        """Return how many packets were answered, by the car that answered least."""
        return min(self.match.accounts[car].replies for car in self.cars)

    @property
    def reply_ms(self) -> float:
        """Return the median reply time so far of the slowest car, ms; NaN without any."""
        return max(self.match.accounts[car].reply_ms(50.0)[0] for car in self.cars)

    def wait(self, ticks: int, until: Callable[[], bool]) -> Iterator[None]:
        """Go on until something is so; `ticks` packets at most. The next step looks whether it is."""
        for _ in range(ticks):
            if until():
                return
            yield
