"""Simulate latency, jitter and loss of packets and inputs between the game and a bot.

What is random is drawn from the match's seed, for each client by itself: a lockstep match is the same every
time, unless a burst of more than 32 KB reaches a bot in parts, to which it may give several answers.
"""

import math
import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rlbot import flat

from rlgym_bridge.game import BLUE, ORANGE, TICKS_PER_SECOND
from rlgym_bridge.server.game.simulated_match import Match
from rlgym_bridge.server.net.connected_client import Client
from rlgym_bridge.server.net.wire import MAX_QUEUED

MOST_LATENCY: Final = 1200  # ticks of latency, 10 s: more is a slip
MOST_JITTER: Final = 10_000  # milliseconds of jitter


@dataclass(frozen=True)
class Impairments:
    """Simulated imperfections of connection and server; 0 turns each of them off."""

    latency: int = 0  # ticks by which every input acts later than it would, 0 to 1,200
    # milliseconds by which a packet leaves late at most, uniformly distributed; the order is kept. Only
    # in real time
    jitter: float = 0.0
    drop: float = 0.0  # percent of the packets that are not sent, for each client by itself, below 100
    # packets of a client that are held back to be sent together, 60 at most. The last ones of a match,
    # too few for a burst, are not sent
    burst: int = 0
    fps: int = 0  # frames that the client renders in a second, 120 at most; others are not sent to anybody
    # further ticks by which an input acts later at most, 0 to 1,200, uniformly distributed; inputs keep
    # their order. Jitter at any pace, in whole ticks
    latency_spread: int = 0
    team: int | None = None  # the only team that suffers all this, 0 blue or 1 orange; None for everybody

    def __post_init__(self) -> None:
        for name, expected, most in (
            ("latency", f"whole ticks, 0 to {MOST_LATENCY:,}", MOST_LATENCY),
            ("latency_spread", f"whole ticks, 0 to {MOST_LATENCY:,}", MOST_LATENCY),
            ("burst", f"a whole number of packets, 0 (off) to {MAX_QUEUED}", MAX_QUEUED),
            ("fps", f"whole frames a second, 0 (off) to {TICKS_PER_SECOND}: RLBot sends no more",
             TICKS_PER_SECOND),
        ):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value <= most:
                raise ValueError(f"{name} is {value}, expected {expected}")
        if not 0.0 <= self.jitter <= MOST_JITTER:
            raise ValueError(f"jitter is {self.jitter}, expected milliseconds, 0 to {MOST_JITTER:,}")
        if not 0.0 <= self.drop < 100.0:
            raise ValueError(f"drop is {self.drop}, expected percent, 0 or more and below 100")
        if self.team not in (None, BLUE, ORANGE):
            raise ValueError(f"team is {self.team}, expected {BLUE} (blue), {ORANGE} (orange) or None")

    def check_pace(self, pace: str) -> None:
        """Raise a ValueError for jitter in lockstep."""
        if self.jitter and pace == "lockstep":
            raise ValueError(
                f"jitter is {self.jitter:g} ms at lockstep pace, expected 0: there the game waits for every "
                f"answer, so that a late packet changes nothing; take latency, or realtime pace"
            )

    @property
    def sends_all(self) -> bool:
        """Tell whether every packet is sent to everybody at once."""
        return not (self.jitter or self.drop or self.burst > 1 or self.fps)

    def meets(self, teams: Iterable[int]) -> bool:
        """Tell whether somebody who drives cars of these teams suffers."""
        return self.team is None or self.team in teams

    def renders(self, tick: int) -> bool:
        """Tell whether a tick is rendered for anybody; tick 0 always is."""
        return self.team is not None or self.renders_for_its_team(tick)

    def renders_for_its_team(self, tick: int) -> bool:
        """Tell whether those who suffer get the packet of a tick."""
        return not self.fps or tick * self.fps % TICKS_PER_SECOND < self.fps


class Lines:
    """The ways of the packets of one match, one for each client."""

    def __init__(self, impairments: Impairments, seed: int) -> None:
        self._impairments = impairments
        self._seed = seed
        self._lines: dict[Client, _Line] = {}

    def put(self, clients: Iterable[Client], data: bytes, now: float, prediction: bytes = b"") -> None:
        """Set a framed packet on its way to some clients, after the prediction for those who want it."""
        both = prediction + data
        for client in clients:
            line = self._lines.get(client)
            if line is None:
                # By its first car, not by when it came, which is left to chance.
                name = f"car {min(client.cars)}" if client.cars else f"client {len(self._lines)}"
                suffers = self._impairments.meets(seat.team for seat in client.seats)
                impairments = self._impairments if suffers else Impairments()
                line = self._lines[client] = _Line(impairments, random.Random(f"packets {self._seed} {name}"))
            line.put(both if client.wants_prediction else data, now)

    def take(self, client: Client, now: float) -> list[bytes]:
        """Return what reaches the way's end now, in order."""
        line = self._lines.get(client)
        return [] if line is None else line.take(now)

    def next_at(self, clients: Iterable[Client]) -> float:
        """Return when the next packet leaves for one of some clients, infinity if none is under way."""
        return min((line.next_at for one in clients if (line := self._lines.get(one))), default=math.inf)

    def forget(self, client: Client) -> None:
        """Forget a client that has left."""
        self._lines.pop(client, None)


class _Line:
    def __init__(self, impairments: Impairments, generator: random.Random) -> None:
        self._impairments = impairments
        self._random = generator
        self._ticks = 0  # so far
        self._held: list[bytes] = []
        self._under_way: deque[tuple[float, list[bytes]]] = deque()  # when they leave, which

    @property
    def next_at(self) -> float:
        return self._under_way[0][0] if self._under_way else math.inf

    def put(self, data: bytes, now: float) -> None:
        impairments = self._impairments
        self._ticks += 1
        if impairments.team is not None and not impairments.renders_for_its_team(self._ticks - 1):
            return
        if impairments.drop and 100.0 * self._random.random() < impairments.drop:
            return
        self._held.append(data)
        if len(self._held) < impairments.burst:
            return
        leaves = now
        if impairments.jitter:
            leaves += 0.001 * self._random.uniform(0.0, impairments.jitter)
            if self._under_way:
                leaves = max(leaves, self._under_way[-1][0])
        self._under_way.append((leaves, self._held))
        self._held = []

    def take(self, now: float) -> list[bytes]:
        packets: list[bytes] = []
        while self._under_way and self._under_way[0][0] <= now:
            packets += self._under_way.popleft()[1]
        return packets


class SlowInputs:
    """Inputs that act some ticks later than they would."""

    def __init__(self, match: Match, impairments: Impairments, seed: int = 0) -> None:
        self._match, self._impairments = match, impairments
        self._slow = [impairments.meets([team]) for team in match.teams]
        self._random = [random.Random(f"inputs {seed} car {car}") for car, _ in enumerate(match.teams)]
        # Of each car: when they act, which; None lets go of the controls.
        self._under_way: list[deque[tuple[int, flat.ControllerState | None]]] = [deque() for _ in match.teams]

    def hold(self, slot: int, controls: flat.ControllerState) -> bool:
        """Take an input; False, and it never acts, where a value is not finite (see `Match.hold`)."""
        axes = (controls.throttle, controls.steer, controls.pitch, controls.yaw, controls.roll)
        if not math.isfinite(sum(axes)):
            return False
        if not self._slow[slot]:
            return self._match.hold(slot, controls)
        self._put(slot, controls)
        return True

    def release(self, slot: int) -> None:
        """Let go of a car's controls, when the inputs before have acted."""
        if self._slow[slot]:
            self._put(slot, None)
        else:
            self._match.release(slot)

    def _put(self, slot: int, controls: flat.ControllerState | None) -> None:
        under_way, spread = self._under_way[slot], self._impairments.latency_spread
        acts = self._match.tick + self._impairments.latency
        if spread:
            acts += self._random[slot].randint(0, spread)
        under_way.append((max(acts, under_way[-1][0]) if under_way else acts, controls))

    def arrive(self) -> None:
        """Hand on what acts in the tick that comes; to be called before each `Match.advance`."""
        for slot, under_way in enumerate(self._under_way):
            while under_way and under_way[0][0] <= self._match.tick:
                _, controls = under_way.popleft()
                if controls is None:
                    self._match.release(slot)
                else:
                    self._match.hold(slot, controls)
