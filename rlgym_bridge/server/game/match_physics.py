"""Set the physics of a match: its game mode, and what mutators change in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from rlgym_bridge.game import BOOST_PER_SECOND, GRAVITY, KICKOFF_BOOST
from rlgym_bridge.server.game.modes import SOCCAR, Mode
from rlgym_bridge.sim.simulator import Simulator, make_simulator, simulator_for

NORMAL_DEMOLITIONS: Final = 0
DEMOLITIONS_ON_CONTACT: Final = 1
NO_DEMOLITIONS: Final = 2


@dataclass(frozen=True)
class Physics:
    """Game mode, and what mutators change in it.

    Attributes:
        mode: The game mode; `of` gives the values that go with it.
        gravity_z: uu/s^2, negative is down.
        boost_per_second: Boost used per second, of 100.
        boost_strength: Factor on the acceleration of boost.
        spawn_boost: Boost at kickoffs and respawns, 0..100.
        has_pads: Whether boost can be picked up.
        ball_max_speed: uu/s.
        respawn_seconds: From demolition to respawn.
        demo_mode: `NORMAL_DEMOLITIONS`, `DEMOLITIONS_ON_CONTACT` or `NO_DEMOLITIONS`.
        team_demos: Whether team mates can demolish each other.
        unlimited_jumps: Whether cars jump and dodge in the air as often as they like.
        game_speed: Seconds of the game in a second of real time.
        factors: Multiples of the simulator's constants, see `Simulator.set_mutators`.
        thrust: Whether boost in the air pushes in rocketsim2 as in the game; see `RocketSim2`.
        simulator: One of `SIMULATORS`; None takes the one of `simulator_for`.
    """

    mode: Mode = SOCCAR
    gravity_z: float = -GRAVITY
    boost_per_second: float = BOOST_PER_SECOND
    boost_strength: float = 1.0
    spawn_boost: float = KICKOFF_BOOST
    has_pads: bool = True
    ball_max_speed: float = 6000.0
    respawn_seconds: float = 3.0
    demo_mode: int = NORMAL_DEMOLITIONS
    team_demos: bool = False
    unlimited_jumps: bool = False
    game_speed: float = 1.0
    factors: Mapping[str, float] = field(default_factory=dict)
    thrust: bool = True
    simulator: str | None = None

    @classmethod
    def of(cls, mode: Mode, simulator: str | None = None) -> Self:
        """Return a mode without mutators."""
        return cls(
            mode, boost_per_second=mode.boost_per_second, spawn_boost=mode.spawn_boost, simulator=simulator
        )

    def make(self, blue: int, orange: int, seed: int) -> Simulator:
        """Return one match in the simulator; gravity and the use of boost are in the states put into it."""
        name = self.simulator or simulator_for(self.mode.name)[0]
        simulator = make_simulator(name, 1, blue, orange, mode=self.mode.name, seed=seed, thrust=self.thrust)
        factors = dict(self.factors)
        if self.boost_strength != 1.0:
            for name in ("boost_accel_air", "boost_accel_ground"):
                factors[name] = factors.get(name, 1.0) * self.boost_strength
        values = {
            "car_spawn_boost_amount": self.spawn_boost, "ball_max_speed": self.ball_max_speed,
            "respawn_delay": self.respawn_seconds, "demo_mode": self.demo_mode,
            "enable_team_demos": self.team_demos, "unlimited_flips": self.unlimited_jumps,
            "unlimited_double_jumps": self.unlimited_jumps, "boost_pads_enabled": self.has_pads,
        }  # fmt: skip
        simulator.set_mutators(0, factors, {name: float(value) for name, value in values.items()})
        return simulator
