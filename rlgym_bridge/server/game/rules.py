"""Define game modes, mutators and physics of matches, and refuse what RocketSim cannot play.

Sources: [RS] `RLConst` of RocketSim 2.2.1; [RSM] measured in an arena of RocketSim 2.2.1.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from rlbot import flat
from rlbot.utils.maps import GAME_MAP_TO_UPK, STANDARD_MAPS

from rlgym_bridge import game
from rlgym_bridge.game import BLUE, GRAVITY
from rlgym_bridge.physics import Spread
from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.game.referee import Course
from rlgym_bridge.server.result import ConfigError
from rlgym_bridge.sim.simulator import Simulator, make_simulator, simulator_for

Vector = tuple[float, float, float]

_HEIGHT, _UPRIGHT, _RISE = 2, 11, 14  # among a ball's numbers: z, z of its own z axis, velocity's z

_FLOOR_SLACK: Final = 1.0  # uu a lying or rolling ball may be above its rest height
_BOUNCE_REACH: Final = 60.0  # uu, a little more than the fastest ball falls in a tick
PUCK_RADIUS: Final = 114.25  # uu [RS, Snowday.PUCK_RADIUS]
PUCK_HEIGHT: Final = 62.5  # uu [RS, Snowday.PUCK_HEIGHT]
PUCK_REST_Z: Final = 33.14  # uu, height of the centre of a puck that lies flat [RSM]
_PUCK_GAP: Final = PUCK_REST_Z - 0.5 * PUCK_HEIGHT  # uu between floor and puck, 1.89; a ball's is 1.90

HEATSEEKER_SPAWNS: Final = (
    (-1000.0, -4620.0, 0.5), (1000.0, -4620.0, 0.5), (-2000.0, -4620.0, 0.5), (2000.0, -4620.0, 0.5),
)  # fmt: skip
"""(x uu, y uu, yaw in units of pi) of blue's four spots [RS, CAR_SPAWN_LOCATIONS_HEATSEEKER]."""


@dataclass(frozen=True)
class Mode:
    """A game mode."""

    name: str  # as `flat.GameMode` has it
    shape: flat.SphereShape | flat.CylinderShape  # of the ball, as packets show it
    # (x, y, z) of the ball at kickoffs, uu; of one that is served, where blue is served
    ball_place: tuple[float, float, float] = (0.0, 0.0, game.BALL_REST_Z)
    # velocity of the ball at GO where blue is served, uu/s; None for a ball that lies still. Where orange
    # is served, y of place and velocity are the other way round [RSM]
    serve: tuple[float, float, float] | None = None
    # (x uu, y uu, yaw in units of pi) of blue's kickoff spots; orange's are turned by 180 degrees
    spawns: tuple[tuple[float, float, float], ...] = game.KICKOFF_SPAWNS
    boost_per_second: float = game.BOOST_PER_SECOND  # boost used per second, of 100
    spawn_boost: float = game.KICKOFF_BOOST  # boost at kickoffs and respawns, 0..100
    homing: bool = False  # whether the ball turns to a goal by itself; packets then show the speed it aims at
    rest_z: float = game.BALL_REST_Z  # height of its centre on the floor, uu; a puck's depends on how it lies

    def with_ball(self, size: float) -> Self:
        """Return the mode with a ball of another size; the heights at which balls lie grow with it [RSM]."""
        if size == 1.0 or not isinstance(self.shape, flat.SphereShape):
            return self
        x, y, z = self.ball_place
        return replace(
            self, shape=flat.SphereShape(size * self.shape.diameter), ball_place=(x, y, size * z),
            rest_z=size * self.rest_z,
        )  # fmt: skip

    def kickoff_ball(self, served: int, moving: bool) -> tuple[Vector, Vector]:
        """Return place [uu] and velocity [uu/s] of the ball of a kickoff; it waits for GO unless `moving`.

        `served` is the team in whose half a ball that is served begins.
        """
        side = 1.0 if served == BLUE else -1.0
        x, y, z = self.ball_place
        forth, aside, up = self.serve if moving and self.serve is not None else (0.0, 0.0, 0.0)
        return (x, side * y, z), (forth, side * aside, up)

    def rest_height(self, upright: float) -> float:
        """Return the height of the centre [uu] of a ball on the floor, by z of its own z axis [RSM]."""
        if not isinstance(self.shape, flat.CylinderShape):
            return self.rest_z
        upright = min(1.0, abs(upright))
        return _PUCK_GAP + 0.5 * PUCK_HEIGHT * upright + PUCK_RADIUS * math.sqrt(1.0 - upright * upright)

    def meets_floor(self, ball: Sequence[float], before: Sequence[float], touched: bool) -> bool:
        """Tell whether a ball lies on the floor or has bounced off it in a tick, by its numbers.

        A bounce between two ticks is seen by the turn of the vertical speed near the floor, unless a car has
        touched the ball.
        """
        height, rest = ball[_HEIGHT], self.rest_height(ball[_UPRIGHT])
        if height <= rest + _FLOOR_SLACK:
            return True
        turned = before[_RISE] < 0.0 <= ball[_RISE]
        return turned and height < rest + _BOUNCE_REACH and not touched


SOCCAR: Final = Mode("Soccar", flat.SphereShape(2.0 * game.BALL_RADIUS))

HEATSEEKER: Final = Mode(
    "Heatseeker",
    flat.SphereShape(2.0 * game.BALL_RADIUS),
    ball_place=(-1000.0, -2220.0, 92.75),  # [RS, Heatseeker.BALL_START_POS]
    serve=(0.0, -65.0, 650.0),  # [RSM, `reset_kickoff` with 400 seeds: one half for each team]
    spawns=HEATSEEKER_SPAWNS,
    boost_per_second=0.0,  # [RSM, the arena's own mutators]
    spawn_boost=100.0,  # [RSM, the arena's own mutators]
    homing=True,
)

SNOWDAY: Final = Mode(
    "Snowday",
    flat.CylinderShape(2.0 * PUCK_RADIUS, PUCK_HEIGHT),
    # RocketSim's own kickoff lets the puck fall from z 93.15 at GO; it lies still after half a second.
    ball_place=(0.0, 0.0, PUCK_REST_Z),
)

MODES: Final[Mapping[str, Mode]] = {mode.name: mode for mode in (SOCCAR, HEATSEEKER, SNOWDAY)}
"""The modes by the names of `flat.GameMode`."""

WHY_NO_MODE: Final[Mapping[str, str]] = {
    "Hoops": "rlgym-rocket-league brings no collision meshes of its arena",
    "Dropshot": "RocketSim 2.2.1 makes no arena of it",
}
"""Reasons why modes that RocketSim knows by name cannot be played; it does not know the others."""


NORMAL_DEMOLITIONS: Final = 0
DEMOLITIONS_ON_CONTACT: Final = 1
NO_DEMOLITIONS: Final = 2


@dataclass(frozen=True)
class Physics:
    """Game mode, and what mutators change in it."""

    mode: Mode = SOCCAR
    gravity_z: float = -GRAVITY  # uu/s^2, negative is down
    boost_per_second: float = game.BOOST_PER_SECOND  # boost used per second, of 100
    spawn_boost: float = game.KICKOFF_BOOST  # boost at kickoffs and respawns, 0..100
    has_pads: bool = True  # whether boost can be picked up
    ball_max_speed: float = 6000.0  # uu/s
    respawn_seconds: float = 3.0  # from demolition to respawn
    demo_mode: int = NORMAL_DEMOLITIONS  # `NORMAL_DEMOLITIONS`, `DEMOLITIONS_ON_CONTACT` or `NO_DEMOLITIONS`
    team_demos: bool = False  # whether teammates can demolish each other
    unlimited_jumps: bool = False  # whether cars jump and dodge in the air as often as they like
    game_speed: float = 1.0  # seconds of the game in a second of real time
    factors: Mapping[str, float] = field(default_factory=dict)  # of constants, see `Simulator.set_mutators`
    thrust: bool = True  # whether boost in the air pushes in rocketsim2 as in the game; see `RocketSim2`
    simulator: str | None = None  # one of `SIMULATORS`; None takes the one of `simulator_for`

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
        values = {
            "car_spawn_boost_amount": self.spawn_boost, "ball_max_speed": self.ball_max_speed,
            "respawn_delay": self.respawn_seconds, "demo_mode": self.demo_mode,
            "enable_team_demos": self.team_demos, "unlimited_flips": self.unlimited_jumps,
            "unlimited_double_jumps": self.unlimited_jumps, "boost_pads_enabled": self.has_pads,
        }  # fmt: skip
        simulator.set_mutators(0, self.factors, {name: float(value) for name, value in values.items()})
        return simulator


_MINUTES: Final = (
    "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve", "Thirteen",
    "Fourteen", "Fifteen",
)  # fmt: skip
_MUTATORS: Final[Mapping[str, Mapping[str, Any]]] = {
    "match_length": {"FiveMinutes": 300.0, "TenMinutes": 600.0, "TwentyMinutes": 1200.0, "Unlimited": None},
    "max_score": {
        "Unlimited": 0, "OneGoal": 1, "ThreeGoals": 3, "FiveGoals": 5, "SevenGoals": 7,
        "TenGoals": 10, "TwentyGoals": 20, "ThirtyGoals": 30, "FortyGoals": 40, "FiftyGoals": 50,
        "SixtyGoals": 60, "SeventyGoals": 70, "EightyGoals": 80, "NinetyGoals": 90,
        "HundredGoals": 100, "OneHundredFiftyOneGoals": 151,
    },
    "overtime": {"Unlimited": None, "FiveMaxFirstScore": "first", "FiveMaxRandomTeam": "random"},
    "max_time": {
        "Unlimited": None, "OneMinute": 60.0,
        **{f"{name}Minutes": 60.0 * number for number, name in enumerate(_MINUTES, 2)},
    },
    "gravity": {
        "Default": -GRAVITY, "Low": -0.5 * GRAVITY, "High": -1.75 * GRAVITY, "SuperHigh": -5.0 * GRAVITY,
        "Reverse": GRAVITY,
    },
    "ball_max_speed": {"Default": 6000.0, "Slow": 1500.0, "Fast": 9000.0, "SuperFast": 15000.0},
    "boost_strength": {"One": 1.0, "OneAndAHalf": 1.5, "Two": 2.0, "Five": 5.0, "Ten": 10.0},
    "respawn_time": {"ThreeSeconds": 3.0, "TwoSeconds": 2.0, "OneSecond": 1.0},
    "demolish": {  # and whether teammates can be demolished
        "Default": (NORMAL_DEMOLITIONS, False), "Disabled": (NO_DEMOLITIONS, False),
        "FriendlyFire": (NORMAL_DEMOLITIONS, True), "OnContact": (DEMOLITIONS_ON_CONTACT, False),
        "OnContactFf": (DEMOLITIONS_ON_CONTACT, True),
    },
    "boost_amount": {  # whether boost is used up, its amount at spawns (None: the mode's), and pads
        "NormalBoost": (True, None, True), "UnlimitedBoost": (False, 100.0, True),
        "NoBoost": (True, 0.0, False),
    },
    "game_speed": {"Default": 1.0, "SloMo": 0.5},
    "jump": {"Default": False, "Unlimited": True},
    "ball_size": {"Default": 1.0, "Small": 0.75},
    "ball_weight": {"Default": 1.0, "SuperLight": 0.25, "Light": 0.5, "Heavy": 2.0},
    "ball_bounciness": {
        "Default": 1.0, "Low": 0.5, "Lowish": 0.75, "High": 4.0 / 3.0, "SuperHigh": 19.0 / 12.0,
    },
}  # fmt: skip
"""Meanings of a mutator's values: s, uu/s^2, uu/s, seconds of the game in a second, or multiples."""

_ASSUMED: Final = {
    "ball_size": "with {:.3g} times the usual ball_radius",
    "ball_weight": "with {:.3g} times the usual ball_mass",
    "ball_bounciness": "with {:.3g} times the usual ball_world_restitution",
    "game_speed": "at {:g} times the usual speed",
}
"""Mutators whose values are assumed, but for the defaults, and how they are played, by names of RocketSim's
`MutatorConfig`. RocketSim leaves 0.6 of a ball's speed, so the last two bouncinesses leave 0.8 and 0.95."""

_FACTORS: Final = {
    "boost_accel_air": "boost_strength", "boost_accel_ground": "boost_strength", "ball_radius": "ball_size",
    "ball_mass": "ball_weight", "ball_world_restitution": "ball_bounciness",
}  # fmt: skip
"""Mutators that multiply the mode's own constants, by the constants' names in RocketSim."""

_WHY_NO_VALUE: Final = {
    "ball_size": "RocketSim 2.2.1 ends the program for balls of more than 102 uu in radius",
    "ball_weight": "the others curve, which RocketSim does not know",
    "boost_amount": "RocketSim has no boost that comes back by itself",
    "game_speed": "how TimeWarp follows the ball is not documented",
}
_IGNORED: Final = ("audio",)  # nobody here hears it


def name_of(value: object) -> str:
    """Return the name of a flatbuffer enum's value, such as "FiveMinutes"."""
    return str(value).rsplit(".", 1)[-1]


_log = client_log(__name__)

LONGEST_SECONDS: Final = 86_400.0
"""Playing time of the longest match, a day; frame numbers have room for 207 of them."""

_STANDARD_FIELDS: Final = frozenset(GAME_MAP_TO_UPK[name].lower() for name in STANDARD_MAPS)


def check_rules(configuration: flat.MatchConfiguration) -> None:
    """Raise a ConfigError for a mode that cannot be played here, or a mutator that would not act."""
    mode = name_of(configuration.game_mode)
    if mode not in MODES:
        why = WHY_NO_MODE.get(mode, "RocketSim does not have it")
        raise ConfigError(
            f"game_mode is {mode}, expected one of {', '.join(MODES)}: {why}; it needs the real game and "
            f"RLBotServer"
        )
    standard = flat.MutatorSettings()
    mutators = configuration.mutators or standard
    for name in mutators.__match_args__:
        value, supported = getattr(mutators, name), _MUTATORS.get(name)
        if name in _IGNORED or value == getattr(standard, name):
            continue
        if supported is None:
            raise ConfigError(
                f"mutator {name} is {name_of(value)}, which has no effect in RocketSim; expected "
                f"{name_of(getattr(standard, name))}, the default: take it out of the match"
            )
        if name_of(value) not in supported:
            why = _WHY_NO_VALUE.get(name, "the others have no effect in RocketSim")
            raise ConfigError(
                f"mutator {name} is {name_of(value)}, expected one of {', '.join(supported)}: {why}"
            )
        if name == "ball_size" and mode == "Snowday":
            raise ConfigError("mutator ball_size is Small, expected Default: RocketSim has pucks of one size")


def _meanings_of(configuration: flat.MatchConfiguration) -> dict[str, Any]:
    mutators = configuration.mutators or flat.MutatorSettings()
    return {name: values[name_of(getattr(mutators, name))] for name, values in _MUTATORS.items()}


def warn_of_rules(configuration: flat.MatchConfiguration) -> None:
    """Log what is played here, but not as in the game."""
    field = configuration.game_map_upk
    if field and field.lower() not in _STANDARD_FIELDS:
        _log.warning(
            "game_map_upk %s is not known to have the standard field's shape: the match is played on the "
            "standard field", field,
        )  # fmt: skip
    meanings = _meanings_of(configuration)
    for name, how in _ASSUMED.items():
        if meanings[name] != 1.0:
            value = name_of(getattr(configuration.mutators, name))
            played = f"mutator {name} = {value} is played {how.format(meanings[name])}"
            _log.warning("%s: the game's own value is not documented", played)
    if configuration.freeplay:
        _log.warning("freeplay has no effect here: a match is played")
    if configuration.auto_save_replay:
        _log.warning("auto_save_replay has no effect here: there is no game to save a replay")


def course_of(
    configuration: flat.MatchConfiguration,
    seconds: float | None = None,
    max_overtime: float = math.inf,
    max_kickoff: float = math.inf,
    max_hang: float = math.inf,
) -> Course:
    """Return how long a match goes on; `seconds` stands above its own regulation, None does not.

    A match without end has no limit of untouched kickoffs.
    """
    given = _meanings_of(configuration)
    regulation = given["match_length"] if seconds is None else seconds
    if regulation is None:
        max_kickoff = math.inf
    return Course(
        regulation, given["max_score"], configuration.skip_replays, max_overtime, max_kickoff, max_hang,
        tie_break=given["overtime"], max_time=given["max_time"], instant=configuration.instant_start,
    )  # fmt: skip


def physics_of(
    configuration: flat.MatchConfiguration,
    constants: Mapping[str, Spread] | None = None,
    simulator: str | None = None,
) -> Physics:
    """Return mode and mutators of a match, with the values of `constants` besides."""
    given = _meanings_of(configuration)
    factors = {name: one.value for name, one in (constants or {}).items()}
    for constant, mutator in _FACTORS.items():
        if given[mutator] != 1.0:
            factors[constant] = factors.get(constant, 1.0) * given[mutator]
    mode = MODES[name_of(configuration.game_mode)].with_ball(given["ball_size"])
    burns, spawn_boost, has_pads = given["boost_amount"]
    demo_mode, team_demos = given["demolish"]
    return Physics(
        mode,
        gravity_z=given["gravity"],
        boost_per_second=mode.boost_per_second if burns else 0.0,
        spawn_boost=mode.spawn_boost if spawn_boost is None else spawn_boost,
        has_pads=has_pads,
        ball_max_speed=given["ball_max_speed"],
        respawn_seconds=given["respawn_time"],
        demo_mode=demo_mode,
        team_demos=team_demos,
        unlimited_jumps=given["jump"],
        game_speed=given["game_speed"],
        factors=factors,
        simulator=simulator,
    )
