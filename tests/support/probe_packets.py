"""Frames made by hand, for the judges."""

from rlbot import flat

from rlgym_bridge.game import Phase
from rlgym_bridge.trials.scene_player import Frame


def vector(values: tuple[float, float, float]) -> flat.Vector3:
    return flat.Vector3(*values)


def car(
    name: str = "Somebody",
    player_id: int = 1,
    air_state: flat.AirState = flat.AirState.OnGround,
    place: tuple[float, float, float] = (0.0, 0.0, 17.0),
    **values: object,
) -> flat.PlayerInfo:
    """Return a car; what is not named is that of one that stands at the middle."""
    zero = vector((0.0, 0.0, 0.0))
    fields = {
        "physics": flat.Physics(vector(place), flat.Rotator(), zero, zero), "air_state": air_state,
        "dodge_timeout": -1.0, "demolished_timeout": -1.0, "name": name, "player_id": player_id,
    } | values  # fmt: skip
    return flat.PlayerInfo(**fields)


def frame(
    number: int,
    *cars: flat.PlayerInfo,
    phase: int = Phase.ACTIVE,
    clock: float = 300.0,
    ball: bool = True,
    pads: tuple[flat.BoostPadState, ...] = (),
) -> Frame:
    """Return a packet of two cars, 1 and 2, as the probe sees it."""
    players = list(cars) or [car()]
    if len(players) == 1:
        players.append(car("Else", 2))
    info = flat.MatchInfo(
        seconds_elapsed=number / 120,
        game_time_remaining=clock,
        match_phase=flat.MatchPhase(phase),
        frame_num=number,
    )
    packet = flat.GamePacket(players, list(pads), [flat.BallInfo()] if ball else [], info, [], [])
    seen = Frame.of(packet, (1, 2))
    assert seen is not None
    return seen
