"""Set the physics of a match: its game mode, and what mutators change in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import RocketSim as rsim

from rlgym_bridge.game import BOOST_PER_SECOND, GRAVITY, KICKOFF_BOOST
from rlgym_bridge.server.game.modes import SOCCAR, Mode
from rlgym_bridge.sim.arena import scale_constants, set_mutators
from rlgym_bridge.sim.boost_thrust import use_game_thrust
from rlgym_bridge.sim.game_rules import ROCKETSIM
from rlgym_bridge.sim.ruled_arena import stepper


@dataclass(frozen=True)
class Physics:
    """Game mode, and what mutators change in it, in RocketSim's own units.

    Attributes:
        mode: The game mode; `of` gives the values that go with it.
        gravity_z: uu/s^2, negative is down.
        boost_per_second: Boost used per second, of 100.
        boost_strength: Factor on the acceleration of boost.
        spawn_boost: Boost at kickoffs and respawns, 0..100.
        has_pads: Whether boost can be picked up.
        ball_max_speed: uu/s.
        respawn_seconds: From demolition to respawn.
        demo_mode: One of RocketSim's `DemoMode`.
        team_demos: Whether team mates can demolish each other.
        unlimited_jumps: Whether cars jump and dodge in the air as often as they like.
        game_speed: Seconds of the game in a second of real time.
        factors: Multiples of RocketSim's constants, by the names of its `MutatorConfig`.
        rules: Names of the game's rules; none is RocketSim alone.
    """

    mode: Mode = SOCCAR
    gravity_z: float = -GRAVITY
    boost_per_second: float = BOOST_PER_SECOND
    boost_strength: float = 1.0
    spawn_boost: float = KICKOFF_BOOST
    has_pads: bool = True
    ball_max_speed: float = 6000.0
    respawn_seconds: float = 3.0
    demo_mode: int = rsim.DemoMode.NORMAL
    team_demos: bool = False
    unlimited_jumps: bool = False
    game_speed: float = 1.0
    factors: Mapping[str, float] = field(default_factory=dict)
    rules: frozenset[str] = ROCKETSIM

    @classmethod
    def of(cls, mode: Mode) -> Self:
        """Return a mode without mutators."""
        return cls(mode, boost_per_second=mode.boost_per_second, spawn_boost=mode.spawn_boost)

    def apply(self, arena: rsim.Arena) -> None:
        """Change a new arena of the mode; what is not named here stays as the mode has it."""
        config = arena.get_mutator_config()
        config.gravity = rsim.Vec(0.0, 0.0, self.gravity_z)
        config.boost_used_per_second = self.boost_per_second
        config.boost_accel_air *= self.boost_strength
        config.boost_accel_ground *= self.boost_strength
        config.car_spawn_boost_amount = self.spawn_boost
        config.ball_max_speed = self.ball_max_speed
        config.respawn_delay = self.respawn_seconds
        config.demo_mode = self.demo_mode
        config.enable_team_demos = self.team_demos
        config.unlimited_flips = config.unlimited_double_jumps = self.unlimited_jumps
        scale_constants(config, self.factors)
        use_game_thrust(config, self.rules)
        set_mutators(arena, config)

    def stepper(
        self, arena: rsim.Arena, cars: Sequence[rsim.Car], held: Sequence[rsim.CarControls]
    ) -> Callable[[int], None]:
        """Return what steps an arena by some ticks: with the rules, or RocketSim itself at its own speed.

        Args:
            arena: The arena.
            cars: Its cars.
            held: The controls that they have; the caller changes the items, not the list.
        """
        return stepper(arena, cars, self.rules, held)
