"""Constants of the game, each with its unit and source.

Sources: [RS] RocketSim 2.2.1 `RLConst`; [RG] RLGym 2.0.1 `common_values`;
[FB] rlbot_flatbuffers 0.19.0 docstrings; [RC] the hitbox table of rlgym-compat 2.3.6,
which lists what the game reports; [RE] timings measured in real replays.
Lengths are in unreal units (uu, 1 cm), times in seconds, angles in radians.
"""

from typing import Final, NamedTuple

TICKS_PER_SECOND: Final = 120  # physics ticks a second [RS]

TICK_SECONDS: Final = 1.0 / TICKS_PER_SECOND

TICK_SKIP: Final = 8
"""Ticks that a single control row is held where nobody says otherwise: RLGym's `RepeatAction` [RG]."""

CONTROL_NAMES: Final = ("throttle", "steer", "pitch", "yaw", "roll", "jump", "boost", "handbrake")
"""The eight controls in the order of every control row of this project.

RLGym's engine reads them in this order [RG, `RocketSimEngine.step`]; its documentation of
`ActionParser` has yaw before pitch, which the engine does not follow.
"""

ENGINE_AGENT: Final = "rlgym_bridge/engine/"
"""Beginning of RLBot agent ids of an engine's cars: our server in lockstep waits for them without limit."""

BLUE: Final = 0
ORANGE: Final = 1
MOST_TEAM_SIZE: Final = 4  # cars in a team


class Phase:
    """Match phases as RLBot v5 numbers them [FB, `MatchPhase`]."""

    INACTIVE: Final = 0
    COUNTDOWN: Final = 1
    KICKOFF: Final = 2
    ACTIVE: Final = 3
    GOAL_SCORED: Final = 4
    REPLAY: Final = 5
    PAUSED: Final = 6
    ENDED: Final = 7


PLAYING_PHASES: Final = frozenset({Phase.KICKOFF, Phase.ACTIVE})
"""Phases in which inputs move the cars and the ball is in play."""

COUNTDOWN_TICKS: Final = 480  # 4.0 s from the cars on their spawns to GO [RE: 729 kickoffs, median 4.02 s]
GOAL_SCORED_TICKS: Final = 360  # 3.0 s between a goal and its replay [RE: 135 goals, median 2.98 s]
REPLAY_TICKS: Final = 1080  # 9.0 s when nobody skips the goal replay [RE: p90 9.0 s]

# --- the field -----------------------------------------------------------------------------

SIDE_WALL_X: Final = 4096.0  # uu [RG]
BACK_WALL_Y: Final = 5120.0  # uu [RG]
CEILING_Z: Final = 2044.0  # uu [RG]
GOAL_THRESHOLD_Y: Final = 5215.5
"""RLGym's goal test: |ball y| above this, uu [RG]. RocketSim's own callback fires at 5216."""

GOAL_BACK_Y: Final = 6000.0  # uu, the back of the net [RG, BACK_NET_Y]
GOAL_CENTRE_Z: Final = 321.3875  # uu, half of the goal's height [RG]
GOAL_WIDTH: Final = 1785.51  # uu, post to post [RG]
GOAL_HEIGHT: Final = 642.775  # uu [RG]

BALL_RADIUS: Final = 91.25  # uu [RS]
STANDING_MOST_Z: Final = 22.0  # uu: a car this low and this upright is set on its wheels [measured, RS]
STANDING_LEAST_UP: Final = 0.995  # z of its up axis
BALL_REST_Z: Final = 93.15  # uu, height of the centre of a ball lying on the floor [RS]
GRAVITY: Final = 650.0  # uu/s^2, downwards [RS]

CAR_MAX_SPEED: Final = 2300.0  # uu/s [RS]
CAR_MAX_ANGULAR_SPEED: Final = 5.5  # rad/s [RS]
BALL_MAX_SPEED: Final = 6000.0  # uu/s [RS]
SUPERSONIC_START_SPEED: Final = 2200.0  # uu/s [RS]
SUPERSONIC_KEEP_SPEED: Final = 2100.0  # uu/s, kept for SUPERSONIC_KEEP_SECONDS [RS]
SUPERSONIC_KEEP_SECONDS: Final = 1.0  # [RS]

# --- jumps, dodges, boost ------------------------------------------------------------------

JUMP_MAX_SECONDS: Final = 0.2  # a held jump pushes this long [RS]
DODGE_DEADZONE: Final = 0.5
"""Sum of the sticks from which a second jump is a dodge [RS, `CarConfig.dodgeDeadzone`]; the game's default.

Neither packets nor RocketSim's state carry it.
"""
DODGE_DEADLINE_SECONDS: Final = 1.25  # from the end of the jump to the last dodge [RS]
FLIP_TORQUE_SECONDS: Final = 0.65  # a dodge turns the car this long [RS]
HANDBRAKE_RISE_PER_SECOND: Final = 5.0  # [RS, POWERSLIDE_RISE_RATE]
HANDBRAKE_FALL_PER_SECOND: Final = 2.0  # [RS, POWERSLIDE_FALL_RATE]
BOOST_MIN_SECONDS: Final = 0.1  # a tapped boost burns this long [RS]
BOOST_PER_SECOND: Final = 100.0 / 3.0  # of 100, while boosting [RS]
RLGYM_BOOST_PER_SECOND: Final = 33.3
"""Boost that RLGym's `GameConfig.boost_consumption` of 1 stands for [RG]: 0.1 % less than RocketSim's own.

A match here burns RocketSim's rate, so its `boost_consumption` is `BOOST_CONSUMPTION`.
"""
BOOST_CONSUMPTION: Final = BOOST_PER_SECOND / RLGYM_BOOST_PER_SECOND  # 1.001, in RLGym's unit
KICKOFF_BOOST: Final = 100.0 / 3.0  # of 100 [RS, BOOST_SPAWN_AMOUNT]
DEMOLISHED_SECONDS: Final = 3.0  # from demolition to respawn [RS]

# --- hitboxes ------------------------------------------------------------------------------


class Hitbox(NamedTuple):
    """A car body as the game reports it: box size and its centre in car coordinates, uu."""

    name: str
    length: float
    width: float
    height: float
    offset_x: float
    offset_z: float


HITBOXES: Final = (
    Hitbox("octane", 118.00738, 84.19941, 36.159073, 13.87566, 20.754988),
    Hitbox("dominus", 127.92678, 83.27995, 31.3, 9.0, 15.75),
    Hitbox("plank", 128.81978, 84.670364, 29.394402, 9.008572, 12.0942),
    Hitbox("breakout", 131.49236, 80.521, 30.3, 12.5, 11.75),
    Hitbox("hybrid", 127.01919, 82.18787, 34.159073, 13.87566, 20.754988),
    Hitbox("merc", 120.72023, 76.71031, 41.659073, 11.37566, 21.504988),
)
"""The six hitboxes, in the order of RLGym's and RocketSim's numbers 0..5 [RC].

RocketSim's own boxes are 2.5 uu larger in each dimension.
"""

HITBOX_NAMES: Final = tuple(hitbox.name for hitbox in HITBOXES)
"""Names of the six hitboxes, in the order of their numbers."""


class Wheels(NamedTuple):
    """Mounts of a car's wheels: (x, |y|, z) in car coordinates and the reach downwards, uu."""

    front: tuple[float, float, float, float]
    back: tuple[float, float, float, float]


WHEELS: Final = (
    Wheels((51.25, 25.9, 20.755, 48.755), (-33.75, 29.5, 20.755, 49.555)),  # octane
    Wheels((50.3, 31.1, 15.75, 43.45), (-34.75, 33.0, 15.75, 44.85)),  # dominus
    Wheels((49.97, 27.8, 12.0942, 41.9242), (-35.43, 20.28, 12.0942, 42.4242)),  # plank
    Wheels((51.5, 26.67, 11.75, 40.7), (-35.75, 35.0, 11.75, 42.166)),  # breakout
    Wheels((51.25, 25.9, 20.755, 48.755), (-34.0, 29.5, 20.755, 49.555)),  # hybrid
    Wheels((51.25, 25.9, 21.505, 52.005), (-33.75, 29.5, 21.505, 51.605)),  # merc
)
"""Wheels of the six hitboxes [RS, `CarConfig`]. A wheel touches what lies within its reach of the mount,
against the car's up direction: suspension rest length + wheel radius - 2.5 (measured to 0.01 uu)."""

_BODIES: Final = (  # by hitbox, in the order of `HITBOXES`
    (23, 21, 25, 26, 27, 402, 404, 523, 607, 625, 723, 1172, 1295, 1300, 1475, 1478, 1533, 1568, 1623,
     2665, 2853, 2919, 2949, 4284, 4318, 4319, 4320, 4782, 4906, 5020, 5039, 5188, 5361, 5547, 5713,
     5837, 5951, 6939, 7947, 7948, 8383, 8806, 8807, 10896, 10897, 10900, 10901, 11314, 11603, 12104,
     12105),
    (403, 29, 597, 600, 1018, 1171, 1286, 1675, 1689, 1883, 2070, 2268, 2666, 2950, 2951, 3155, 3156,
     3157, 3265, 3426, 3875, 3879, 3880, 4014, 4155, 4367, 4472, 4473, 4745, 4770, 4781, 4861, 4864,
     5709, 5773, 5823, 5858, 5964, 5979, 6122, 6244, 6247, 6260, 6836, 7211, 7337, 7338, 7341, 7343,
     7415, 7512, 7532, 7593, 7772, 8454, 9053, 9088, 9089, 9140, 9388, 9894, 10094, 10440, 10441, 10694,
     10695, 11016, 11095, 11315, 11336, 11534, 11941, 11996, 12106, 12142, 12262, 12286, 12325, 12382,
     12563, 12669),
    (24, 803, 1603, 1691, 1919, 3594, 3614, 3622, 4268, 5265, 7052, 8524),
    (22, 1416, 1894, 1932, 3031, 3311, 6243, 6489, 7651, 7696, 7890, 7901, 8006, 8360, 8361, 8565, 8566,
     8669, 9357, 10697, 10698, 10817, 10822, 11038, 11394, 11505, 11677, 11800, 11933, 11949, 12173,
     12315, 12361, 12484),
    (28, 31, 1159, 1317, 1624, 1856, 2269, 3451, 3582, 3702, 5470, 5488, 5879, 7012, 9084, 9085, 9427,
     10044, 10805, 11138, 11141, 11379, 11932, 12569, 12652),
    (30, 4780, 7336, 7477, 7815, 7979, 10689, 11098, 11736, 11905, 11950, 12318, 12335),
)  # fmt: skip

HITBOX_OF_BODY: Final = {body: number for number, bodies in enumerate(_BODIES) for body in bodies}
"""Hitbox number of the `car_id`s of a loadout that are known; any other body plays as an Octane here.

Sources: HitboxPlugin of BakkesMod, `CarManager.cpp`, 2021; subtr-actor 1.2.0, `geometry.rs`, for the ids that
the game reports and for Epic's list of hitboxes. RLBot's core has no list: it passes the id on to the game.
"""

BODY_OF_HITBOX: Final = {name: bodies[0] for name, bodies in zip(HITBOX_NAMES, _BODIES, strict=True)}
"""The `car_id` of a body of each hitbox, by the hitbox's name."""

# --- boost pads ----------------------------------------------------------------------------

PAD_COUNT: Final = 34
BIG_PAD_SECONDS: Final = 10.0  # until a big pad is back [RS]
SMALL_PAD_SECONDS: Final = 4.0  # until a small pad is back [RS]
BIG_PAD_Z: Final = 73.0  # uu [RS]
SMALL_PAD_Z: Final = 70.0  # uu [RS]

PAD_POSITIONS: Final = (
    (0.0, -4240.0), (-1792.0, -4184.0), (1792.0, -4184.0), (-3072.0, -4096.0), (3072.0, -4096.0),
    (-940.0, -3308.0), (940.0, -3308.0), (0.0, -2816.0), (-3584.0, -2484.0), (3584.0, -2484.0),
    (-1788.0, -2300.0), (1788.0, -2300.0), (-2048.0, -1036.0), (0.0, -1024.0), (2048.0, -1036.0),
    (-3584.0, 0.0), (-1024.0, 0.0), (1024.0, 0.0), (3584.0, 0.0),
    (-2048.0, 1036.0), (0.0, 1024.0), (2048.0, 1036.0), (-1788.0, 2300.0), (1788.0, 2300.0),
    (-3584.0, 2484.0), (3584.0, 2484.0), (0.0, 2816.0), (-940.0, 3308.0), (940.0, 3308.0),
    (-3072.0, 4096.0), (3072.0, 4096.0), (-1792.0, 4184.0), (1792.0, 4184.0), (0.0, 4240.0),
)  # fmt: skip
"""(x, y) of the 34 pads of standard soccar in RLGym's order, uu [RS].

Turning the field by 180 degrees about z maps pad i to pad 33 - i. RLGym's own table has pad 27
at y 3310, 2 uu off RocketSim's; RLBot's field info lists the pads sorted by y then x, which
differs from this order in two pairs: pads are matched by position, never by index.
"""

BIG_PADS: Final = frozenset({3, 4, 15, 18, 29, 30})
"""Indices into `PAD_POSITIONS` of the pads that give 100 boost; the others give 12."""
PAD_SECONDS: Final = tuple(
    BIG_PAD_SECONDS if pad in BIG_PADS else SMALL_PAD_SECONDS for pad in range(PAD_COUNT)
)

# --- kickoffs ------------------------------------------------------------------------------

KICKOFF_SPAWNS: Final = (
    (-2048.0, -2560.0, 0.25), (2048.0, -2560.0, 0.75), (-256.0, -3840.0, 0.5),
    (256.0, -3840.0, 0.5), (0.0, -4608.0, 0.5),
)  # fmt: skip
"""(x uu, y uu, yaw in units of pi) of blue's five kickoff spots [RS]; orange's are turned by 180 degrees."""
