"""Changes that make one field of good packets wrong, each with where to make it and the field's name."""

import math
from collections.abc import Callable
from typing import Any

from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.server.game.packer import field_info
from tests.support.packet_streams import Packets, phase_of

Condition = Callable[[Any, Any], bool]
Change = Callable[[Packets, int], None]


def find(packets: Packets, condition: Condition) -> int:
    """Return the place of the first packet that meets a condition on (packet before, packet)."""
    for i in range(1, len(packets)):
        if condition(packets[i - 1], packets[i]):
            return i
    raise LookupError(f"none of {len(packets)} packets is like that")


def enters(phase: int) -> Condition:
    return lambda before, now: phase_of(now) == phase != phase_of(before)


def active(before: Any, now: Any) -> bool:
    """Well within Active."""
    return phase_of(now) == Phase.ACTIVE and now.match_info.game_time_remaining < 59.8


def on_ground(_: Any, now: Any) -> bool:
    car = now.players[0]
    return active(_, now) and car.air_state == flat.AirState.OnGround and 2.0 < car.boost < 80.0


def just_after_go(before: Any, now: Any) -> bool:
    return phase_of(before) == phase_of(now) == Phase.KICKOFF


def dodging(before: Any, now: Any) -> bool:
    return before.players[0].has_dodged and now.players[0].has_dodged


def timed(before: Any, now: Any) -> bool:
    return before.players[0].dodge_timeout > 0.1 and now.players[0].dodge_timeout > 0.1


def touched(before: Any, now: Any) -> bool:
    """Car 0 shows a new touch, not its first."""
    earlier, touch = before.players[0].latest_touch, now.players[0].latest_touch
    return earlier is not None and touch is not None and touch.game_seconds != earlier.game_seconds


def any_touch(_: Any, now: Any) -> bool:
    return now.players[0].latest_touch is not None and active(_, now)


def pad_of(packet: Any, least: float) -> int | None:
    """Return the first pad that has been away for `least` seconds."""
    return next(
        (i for i, pad in enumerate(packet.boost_pads) if not pad.is_active and pad.timer > least), None
    )


def pad_away(least: float) -> Condition:
    return lambda _, now: pad_of(now, least) is not None


def pad_back(before: Any, now: Any) -> bool:
    gone = pad_of(before, 3.0)
    return gone is not None and now.boost_pads[gone].is_active


goal = enters(Phase.GOAL_SCORED)


# --- changes: each gets the packets around a place, and that place among them -----------------------


def at_path(packet: Any, path: str) -> tuple[Any, str]:
    """Return what holds a field, named by attributes and indices joined by dots, and the field's own name."""
    *parts, name = path.split(".")
    for part in parts:
        packet = packet[int(part)] if part.isdigit() else getattr(packet, part)
    return packet, name


def put(**fields: object) -> Change:
    """Set fields of a packet; two underscores stand for a dot: `players__0__boost`."""

    def change(packets: Packets, at: int) -> None:
        for field, value in fields.items():
            setattr(*at_path(packets[at], field.replace("__", ".")), value)

    return change


def add(path: str, difference: float, onwards: bool = False) -> Change:
    """Add to a number of a packet, or of all packets from it on."""

    def change(packets: Packets, at: int) -> None:
        for packet in packets[at : None if onwards else at + 1]:
            owner, name = at_path(packet, path)
            setattr(owner, name, getattr(owner, name) + difference)

    return change


def repeated(path: str, more: float = 0.0) -> Change:
    """Show a number of the packet before, and a little more."""

    def change(packets: Packets, at: int) -> None:
        setattr(*at_path(packets[at], path), getattr(*at_path(packets[at - 1], path)) + more)

    return change


def car(**fields: object) -> Change:
    return put(**{f"players__0__{name}": value for name, value in fields.items()})


def skip(packets: Packets, at: int) -> None:
    del packets[at]


def repeat(packets: Packets, at: int) -> None:
    packets.insert(at, packets[at])


def pad_back_early(packets: Packets, at: int) -> None:
    pad = packets[at].boost_pads[pad_of(packets[at], 1.0)]
    pad.is_active, pad.timer = True, 0.0


def pad_kept_away(packets: Packets, at: int) -> None:
    pad = pad_of(packets[at - 1], 3.0)
    for packet in packets[at : at + 5]:
        packet.boost_pads[pad].is_active = False
        packet.boost_pads[pad].timer = 4.0


def pad_timer_stands(packets: Packets, at: int) -> None:
    pad = pad_of(packets[at], 1.0)
    packets[at].boost_pads[pad].timer = packets[at - 1].boost_pads[pad].timer


def pads_remaining(packets: Packets, at: int) -> None:
    pad = packets[at].boost_pads[pad_of(packets[at], 1.0)]
    pad.timer = 4.0 - pad.timer


def pad_gone(packets: Packets, at: int) -> None:
    """The pad in the farthest corner from car 0 goes."""
    cars = [car.physics.location for car in packets[at].players]
    pads = field_info().boost_pads
    far = max(
        (i for i, pad in enumerate(packets[at].boost_pads) if pad.is_active),
        key=lambda i: min(math.dist((pads[i].location.x, pads[i].location.y), (c.x, c.y)) for c in cars),
    )
    packets[at].boost_pads[far].is_active = False


def swap_players(packets: Packets, at: int) -> None:
    packets[at].players = packets[at].players[::-1]


def same_id(packets: Packets, at: int) -> None:
    for packet in packets:
        packet.players[1].player_id = packet.players[0].player_id


def one_team(packets: Packets, at: int) -> None:
    packets[at].teams = packets[at].teams[:1]


def nobodys_goal(packets: Packets, at: int) -> None:
    for packet in packets[at:]:
        for player in packet.players:
            player.score_info.goals = player.score_info.own_goals = 0


NAN = math.nan
CLOCK, PHASE = "match_info.game_time_remaining", "match_info.match_phase"
SECONDS, TOUCH = "match_info.seconds_elapsed", "players.0.latest_touch.game_seconds"

CHANGES: dict[str, tuple[str, Condition, Change]] = {
    "a frame is skipped": ("match_info.frame_num", active, skip),
    "a frame comes twice": ("match_info.frame_num", active, repeat),
    "the time is a tick off": (SECONDS, active, add(SECONDS, 1 / 120)),
    "the clock runs in Kickoff": (
        CLOCK, enters(Phase.KICKOFF), add(CLOCK, -1 / 120)),
    "the clock stands in Active": (CLOCK, active, repeated(CLOCK)),
    "the clock goes up": (CLOCK, active, add(CLOCK, 1.0)),
    "the clock is no number": (CLOCK, active, put(match_info__game_time_remaining=NAN)),
    "Active without a touch": (
        PHASE, enters(Phase.KICKOFF), put(match_info__match_phase=flat.MatchPhase.Active)),
    "Active after a goal": (PHASE, goal, put(match_info__match_phase=flat.MatchPhase.Replay)),
    "overtime before its time": ("match_info.is_overtime", active, put(match_info__is_overtime=True)),
    "boost of 101": ("players[0].boost", on_ground, car(boost=101.0)),
    "boost is no number": ("players[0].boost", on_ground, car(boost=NAN)),
    "boost from nowhere": ("players[0].boost", on_ground, add("players.0.boost", 12.0, onwards=True)),
    "boost lost": ("players[0].boost", on_ground, add("players.0.boost", -1.0, onwards=True)),
    "boost of 30 at a kickoff": ("players[0].boost", enters(Phase.KICKOFF), car(boost=30.0)),
    "a pad back early": ("is_active", pad_away(1.0), pad_back_early),
    "a pad away too long": ("timer", pad_back, pad_kept_away),
    "a pad's timer stands": ("timer", pad_away(1.0), pad_timer_stands),
    "a pad counts down": ("timer", pad_away(1.0), pads_remaining),
    "a pad goes that no car is near": ("is_active", active, pad_gone),
    "a pad is away in Countdown": ("is_active", enters(Phase.COUNTDOWN), pad_gone),
    "two players swapped": ("players[0].player_id", active, swap_players),
    "two players with one id": ("players.player_id", active, same_id),
    "another name": ("players[0].name", active, car(name="Nobody")),
    "another team": ("players[0].team", active, car(team=1)),
    "another hitbox": ("players[0].hitbox", active, add("players.0.hitbox.length", 1.0)),
    "a score goes down": ("teams[0].score", enters(Phase.REPLAY), add("teams.0.score", -1, onwards=True)),
    "a score rises in play": ("teams.score", active, add("teams.0.score", 1, onwards=True)),
    "a goal counts twice": ("teams.score", goal, add("teams.0.score", 1, onwards=True)),
    "a goal for the wrong team": ("teams.score", goal, add("teams.1.score", 1, onwards=True)),
    "a goal of nobody": ("teams[0].score", goal, nobodys_goal),
    "one team only": ("teams", active, one_team),
    "points are lost": ("players[0].score_info.score", active, car(score_info__score=-5)),
    "a touch in the future": ("players[0].latest_touch.game_seconds", any_touch, add(TOUCH, 1.0)),
    "a touch of long ago": ("players[0].latest_touch.game_seconds", touched, add(TOUCH, -3.0)),
    "a touch is forgotten": ("players[0].latest_touch", any_touch, car(latest_touch=None)),
    "a touch outlives a kickoff": (
        "players.latest_touch", enters(Phase.COUNTDOWN), car(latest_touch=flat.Touch()),
    ),
    "a normal that is not a unit vector": (
        "players[0].latest_touch.normal", touched, add("players.0.latest_touch.normal.x", 0.5)),
    "a place is no number": ("players[0].physics.location", active, car(physics__location__x=NAN)),
    "a car outside the arena": ("players[0].physics.location", active, car(physics__location__x=5e3)),
    "a car jumps 100 uu": ("players[0].physics.location", active, add("players.0.physics.location.z", 100.0)),
    "a car of 2400 uu/s": ("players[0].physics.velocity", active, car(physics__velocity__x=2400.0)),
    "a car of 6 rad/s": (
        "players[0].physics.angular_velocity", active, car(physics__angular_velocity__z=6.0)),
    "a yaw of 4": ("players[0].physics.rotation", active, car(physics__rotation__yaw=4.0)),
    "an infinite speed of the ball": (
        "balls[0].physics.velocity", active, put(balls__0__physics__velocity__y=math.inf)),
    "a ball below the floor": (
        "balls[0].physics.location.z", active, put(balls__0__physics__location__z=-50.0)),
    "no ball": ("balls", active, put(balls=[])),
    "a cube for a ball": ("balls[0].shape", active, put(balls__0__shape=flat.BoxShape(1.0, 1.0, 1.0))),
    "a goal in midfield": ("balls[0].physics.location.y", goal, put(balls__0__physics__location__y=100.0)),
    "steering by 1.5": ("players[0].last_input", active, car(last_input__steer=1.5)),
    "supersonic at rest": (
        "players[0].is_supersonic", just_after_go, car(is_supersonic=True)),
    "demolished for a packet": (
        "players[0].demolished_timeout", active, car(demolished_timeout=0.0)),
    "dodged on the ground": ("players[0].has_dodged", on_ground, car(has_dodged=True)),
    "a dodge without its flag": ("players[0].has_dodged", dodging, car(
        has_dodged=False, dodge_elapsed=0.0, air_state=flat.AirState.Dodging)),
    "a dodge that takes no time": ("players[0].dodge_elapsed", dodging, repeated("players.0.dodge_elapsed")),
    "a dodge_timeout that rises": (
        "players[0].dodge_timeout", timed, repeated("players.0.dodge_timeout", 0.01)),
    "a dodge_timeout on the ground": ("players[0].dodge_timeout", on_ground, car(dodge_timeout=0.5)),
    "a dodge_dir of length 2": ("players[0].dodge_dir", on_ground, car(dodge_dir=flat.Vector2(2.0, 0.0))),
}  # fmt: skip
"""Name -> the field that the checker has to name, where, and what is done to the packets."""
