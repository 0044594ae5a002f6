"""Check the players, and the places and speeds of their cars."""

from collections.abc import Sequence
from math import sqrt

from rlbot import flat

from rlgym_bridge.game import (
    BLUE,
    CAR_MAX_ANGULAR_SPEED,
    CAR_MAX_SPEED,
    HITBOXES,
    ORANGE,
    SUPERSONIC_KEEP_SPEED,
    SUPERSONIC_START_SPEED,
    TICK_SECONDS,
    Phase,
)
from tests.packet_checker.findings import Findings, Step, shown
from tests.packet_checker.limits import (
    BUMP_REACH,
    COUNTDOWN_SPEED,
    HALF_TURN,
    LEAP_SLACK,
    OUTER_SLACK,
    OUTER_X,
    OUTER_Y,
    OUTER_Z,
    QUARTER_TURN,
    SPEED_SLACK,
    TURN_SLACK,
)

_WHO = ("player_id", "name", "team", "is_bot", "hitbox", "hitbox_offset")


class Cars:
    """Follows identity, motion and last input of every car."""

    def __init__(self) -> None:
        self._who: list[tuple[object, ...]] = []
        self._speeds: list[float] = []  # in the packet before

    def see(self, step: Step, findings: Findings) -> None:
        """Read a packet."""
        players = step.packet.players
        who = [identity(player) for player in players]
        if who != self._who:
            self._identities(who, step, findings)
            self._who = who
        if len(self._speeds) != len(players):
            self._speeds = [0.0] * len(players)
        for slot, player in enumerate(players):
            name = f"players[{slot}]"
            # RocketSim keeps a demolished car as it was in the collision, before its speeds were limited.
            more = 1.0 if player.demolished_timeout < 0.0 else 2.0
            speed = body(name, player.physics, more * CAR_MAX_SPEED, more * CAR_MAX_ANGULAR_SPEED, findings)
            last_input(name, player.last_input, findings)
            if step.before is not None:
                self._motion(step, slot, player, speed, findings)
            if (
                player.rumble_item is not None
                or player.time_until_next_item
                or player.max_time_until_next_item
            ):
                findings.add(f"{name}.rumble_item", player.rumble_item, "no items in soccar")
            self._speeds[slot] = speed

    def _identities(self, who: list[tuple[object, ...]], step: Step, findings: Findings) -> None:
        ids = [one[0] for one in who]
        if len(set(ids)) < len(ids):
            findings.add("players.player_id", ids, "a different one for each player")
        if step.before is not None:
            if len(who) != len(self._who):
                findings.add("players", f"{len(who)} long", f"{len(self._who)}: the same over the match")
            for slot, (now, before) in enumerate(zip(who, self._who, strict=False)):
                for name, value, earlier in zip(_WHO, now, before, strict=True):
                    if value != earlier:
                        findings.add(f"players[{slot}].{name}", value, f"{earlier}, as before")
            return
        for slot, one in enumerate(who):
            if one[2] not in (BLUE, ORANGE):
                findings.add(f"players[{slot}].team", one[2], "0 or 1")
            numbers = (*one[4], *one[5])  # type: ignore[misc]
            if not any(close(numbers, (*box[1:4], box[4], 0.0, box[5])) for box in HITBOXES):
                findings.add(f"players[{slot}].hitbox", numbers, "one of the game's six hitboxes")

    def _motion(
        self, step: Step, slot: int, player: flat.PlayerInfo, speed: float, findings: Findings
    ) -> None:
        assert step.before is not None
        if slot >= len(step.before.players):
            return
        name, before = f"players[{slot}]", step.before.players[slot]
        if step.phase == Phase.COUNTDOWN and not speed <= COUNTDOWN_SPEED:
            findings.add(f"{name}.physics.velocity", shown(speed), "a car that does not move in Countdown")
        if step.phase == Phase.KICKOFF and step.reset and step.exact and speed > SPEED_SLACK:
            findings.add(f"{name}.physics.velocity", shown(speed), "a car at rest at GO")
        if player.demolished_timeout >= 0.0 or before.demolished_timeout >= 0.0 or not step.followed:
            return
        leap(
            f"{name}.physics.location",
            before.physics,
            player.physics,
            max(speed, self._speeds[slot]),
            findings,
        )
        self._supersonic(name, step, slot, speed, findings)

    def _supersonic(self, name: str, step: Step, slot: int, speed: float, findings: Findings) -> None:
        """Hold the flag against the speed.

        Both simulators set the flag after a tick's contacts and before they add its bump. So next to another
        car the flag may follow a speed that no packet shows, for one packet.
        """
        assert step.before is not None
        now, before = step.packet.players[slot].is_supersonic, step.before.players[slot].is_supersonic
        bumped, earlier = beside_another(step.packet.players, slot), self._speeds[slot]
        if now:
            least = SUPERSONIC_KEEP_SPEED if before or bumped else SUPERSONIC_START_SPEED
            if speed < least - SPEED_SLACK and not (bumped and earlier >= least - SPEED_SLACK):
                findings.add(f"{name}.is_supersonic", True, f"False at {shown(speed)} uu/s")
        elif speed > SUPERSONIC_START_SPEED + SPEED_SLACK and not (
            bumped and (before or earlier <= SUPERSONIC_START_SPEED + SPEED_SLACK)
        ):
            findings.add(f"{name}.is_supersonic", False, f"True at {shown(speed)} uu/s")


def beside_another(players: Sequence[flat.PlayerInfo], slot: int) -> bool:
    """Tell whether another car is near enough to have bumped this one in the tick."""
    place = players[slot].physics.location
    return any(
        (one.x - place.x) ** 2 + (one.y - place.y) ** 2 + (one.z - place.z) ** 2 < BUMP_REACH**2
        for one in (player.physics.location for player in players[:slot] + players[slot + 1 :])
    )


def identity(player: flat.PlayerInfo) -> tuple[object, ...]:
    """Return what a player keeps over a match, in the order of `_WHO`."""
    box, offset = player.hitbox, player.hitbox_offset
    return (
        player.player_id, player.name, player.team, player.is_bot,
        (box.length, box.width, box.height), (offset.x, offset.y, offset.z),
    )  # fmt: skip


def close(numbers: tuple[float, ...], others: tuple[float, ...]) -> bool:
    """Tell whether numbers are equal but for float32."""
    return all(abs(a - b) < 1e-3 for a, b in zip(numbers, others, strict=True))


def body(name: str, physics: flat.Physics, max_speed: float, max_turn: float, findings: Findings) -> float:
    """Hold place, angles and speeds against their bounds, finite numbers alone; return the speed, uu/s."""
    place, turned, velocity, spin = (
        physics.location, physics.rotation, physics.velocity, physics.angular_velocity
    )  # fmt: skip
    x, y, z = place.x, place.y, place.z
    if not (abs(x) <= OUTER_X + OUTER_SLACK and abs(y) <= OUTER_Y + OUTER_SLACK):
        findings.add(f"{name}.physics.location", (x, y, z), "a place in the arena")
    elif not -OUTER_SLACK <= z <= OUTER_Z + OUTER_SLACK:
        findings.add(f"{name}.physics.location.z", z, f"0..{OUTER_Z:g}")
    if not (
        abs(turned.pitch) <= QUARTER_TURN and abs(turned.yaw) <= HALF_TURN and abs(turned.roll) <= HALF_TURN
    ):
        angles = (turned.pitch, turned.yaw, turned.roll)
        findings.add(f"{name}.physics.rotation", angles, "pitch within pi / 2, yaw and roll within pi")
    x, y, z = velocity.x, velocity.y, velocity.z
    speed = sqrt(x * x + y * y + z * z)
    if not speed <= max_speed + SPEED_SLACK:
        findings.add(f"{name}.physics.velocity", shown(speed), f"{max_speed:g} uu/s at most")
    x, y, z = spin.x, spin.y, spin.z
    turn = sqrt(x * x + y * y + z * z)
    if not turn <= max_turn + TURN_SLACK:
        findings.add(f"{name}.physics.angular_velocity", shown(turn), f"{max_turn:g} rad/s at most")
    return speed


def leap(name: str, before: flat.Physics, now: flat.Physics, speed: float, findings: Findings) -> None:
    """Hold the way of a tick against the speed, uu/s."""
    a, b = before.location, now.location
    x, y, z = b.x - a.x, b.y - a.y, b.z - a.z
    way = sqrt(x * x + y * y + z * z)
    if way > speed * TICK_SECONDS + LEAP_SLACK:
        findings.add(
            name, f"{shown(way)} uu from the one before", f"what {shown(speed)} uu/s allow in a tick"
        )


def last_input(name: str, controls: flat.ControllerState, findings: Findings) -> None:
    """Hold the axes against their range."""
    axes = (controls.throttle, controls.steer, controls.pitch, controls.yaw, controls.roll)
    # One sum for all of them: NaN and infinity never pass.
    if not (max(axes) <= 1.0 and min(axes) >= -1.0 and -5.0 <= sum(axes) <= 5.0):
        findings.add(f"{name}.last_input", axes, "axes in -1..1")
