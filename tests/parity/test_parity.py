"""The comparison itself can fail, and lost packets make nothing wrong that is said to be known."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rlbot import flat

from rlgym_bridge.protocol_variant import POINTS, ProtocolVariant
from rlgym_bridge.server.game.packer import Packer
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3
from tests.parity.run import Loss, run
from tests.parity.scenes import Inputs, Scene, Stage, press
from tests.parity.world import with_fields
from tests.support.simulators import needs_native


@pytest.mark.parametrize(
    ("loss", "reader", "ticks"),
    [
        pytest.param(Loss(0.02), "shadow", 2000, marks=pytest.mark.slow),
        pytest.param(Loss(0.10), "shadow", 2000, marks=pytest.mark.slow),
        pytest.param(Loss(0.10, burst=3), "shadow", 2000, marks=pytest.mark.slow),
        pytest.param(Loss(0.10, burst=3), "counting", 2000, marks=pytest.mark.slow),
        (Loss(0.10, burst=3), "shadow", 700), (Loss(0.10, burst=3), "counting", 700),
    ],
)  # fmt: skip
def test_after_lost_packets_what_is_known_is_right(loss: Loss, reader: str, ticks: int) -> None:
    result = run(ticks, seed=4, loss=loss, readers=(reader,))
    compared = result.readers[reader].tallies["car.position"].samples
    assert compared < 2 * ticks * (1 - 0.5 * loss.share), "packets were lost"
    wrong = result.readers[reader].wrong()
    if reader == "counting":  # wheels are its estimates
        wrong = {name: tally for name, tally in wrong.items() if name not in _FROM_WHEELS}
    assert not wrong


@pytest.mark.parametrize(
    ("simulator", "size", "seed", "loss"),
    [
        pytest.param(ROCKETSIM3, 1, 5, Loss(0.05), marks=needs_native),
        pytest.param(ROCKETSIM3, 2, 7, Loss(0.1), marks=needs_native),
        pytest.param(ROCKETSIM3, 2, 9, Loss(0.1, burst=3), marks=[needs_native, pytest.mark.slow]),
        pytest.param(ROCKETSIM3, 3, 10, Loss(0.15, burst=5), marks=[needs_native, pytest.mark.slow]),
        pytest.param(ROCKETSIM2, 1, 8, Loss(0.1, burst=3)),
        pytest.param(ROCKETSIM2, 2, 7, Loss(0.1), marks=pytest.mark.slow),
    ],
    ids=lambda value: f"{value.share} of {value.burst}" if isinstance(value, Loss) else None,
)
def test_boost_burns_are_known_soon_after_lost_packets(
    simulator: str, size: int, seed: int, loss: Loss
) -> None:
    reader = run(700, size, seed=seed, loss=loss, simulator=simulator).readers["shadow"]
    assert not reader.wrong(), "nor is any other field wrong"
    for name, share in (("boost_active_time", 0.1), ("is_boosting", 0.1), ("air_time_since_jump", 0.3)):
        tally = reader.tallies[f"car.{name}"]
        assert tally.samples and tally.unknown < share * tally.samples


_FROM_WHEELS = ("car.wheels_with_contact", "car.on_ground", "car.can_flip")


_COUNTED = {
    "car.wheels_with_contact", "car.on_ground", "car.can_flip", "car.has_flip", "car.boost_active_time",
    "car.is_boosting", "car.handbrake", "car.is_holding_jump", "car.jump_time", "car.air_time_since_jump",
    "car.bump_victim_id",
}  # fmt: skip
"""Name the fields that no packet carries: the decoder counts them by the ticks of RocketSim 2.2.1."""


@needs_native
@pytest.mark.parametrize("size", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_all_that_packets_carry_of_rocketsim_3_is_what_it_has(size: int) -> None:
    found = run(1600, size, seed=2, readers=("counting",), simulator=ROCKETSIM3)
    assert found.counts["goals"] and found.counts["demolitions"] and found.counts["pad pickups"] > 3
    assert found.readers["counting"].tallies["car.position"].samples >= 2 * size * 1600
    assert set(found.readers["counting"].wrong()) <= _COUNTED


def burn_out(stage: Stage) -> Iterator[Inputs]:
    """A car lets go of boost, which burns on for some ticks, while another car is put somewhere else."""
    one, other = stage.opponents()
    stage.car(one, (-2000, stage.random.uniform(-3000, 3000), 17), (1, 0, 0), boost=60)
    for tick in range(40):
        if tick == 36:
            stage.car(other, (2000, stage.random.uniform(-3000, 3000), 17), (1, 0, 0))
        yield {one: press(boost=28 <= tick < 34), other: press()}


def land_dodging(stage: Stage) -> Iterator[Inputs]:
    """A car that has not jumped comes down hind wheels first, and dodges before the others touch."""
    one, _ = stage.opponents()
    x, y = stage.place()
    nose_up = {"forward": (0, 0.955, 0.296), "up": (0, -0.296, 0.955)}
    stage.car(one, (x, y, 60), **nose_up, velocity=(0, 500, -300))
    dodge = stage.random.randrange(14, 17)
    for tick in range(32):
        yield {one: press(jump=dodge <= tick < dodge + 2, pitch=-1.0 if tick >= dodge else 0.0)}


@pytest.mark.parametrize(
    ("scene", "size", "simulator"),
    [
        pytest.param(burn_out, 1, ROCKETSIM2, id="a car that burns on while another is set"),
        pytest.param(land_dodging, 1, ROCKETSIM3, id="a dodge on landing without a jump", marks=needs_native),
    ],
)  # fmt: skip
def test_where_two_things_meet_in_a_tick_what_is_known_is_right(
    scene: Scene, size: int, simulator: str
) -> None:
    assert not run(600, size, seed=1, scenes=(scene,), simulator=simulator).readers["shadow"].wrong()


_HARD = ("pad_timer", "dodge_timeout", "demolished_place", "on_ground")  # those that touch what is compared


def test_in_the_hardest_dialect_known_values_survive_losses() -> None:
    dialect = ProtocolVariant({point: POINTS[point].values[1] for point in _HARD})
    assert not run(600, seed=2, dialect=dialect, loss=Loss(0.05)).readers["shadow"].wrong()


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_in_every_dialect_what_is_known_is_right(point: str, share: float) -> None:
    dialect = ProtocolVariant({point: POINTS[point].values[1]})
    assert not run(6000, seed=2, dialect=dialect, loss=Loss(share)).readers["shadow"].wrong()


Change = Callable[[flat.GamePacket], flat.GamePacket]


def physics(**changes: Callable[[Any], Any]) -> Change:
    """Return a change of parts of every body's physics."""

    def of(body: Any) -> Any:
        parts = {name: make(getattr(body.physics, name)) for name, make in changes.items()}
        return with_fields(body, physics=with_fields(body.physics, **parts))

    return lambda one: with_fields(one, players=[*map(of, one.players)], balls=[*map(of, one.balls)])


def player(**changes: Callable[[flat.PlayerInfo], Any]) -> Change:
    """Return a change of fields of every player."""

    def of(car: flat.PlayerInfo) -> Any:
        return with_fields(car, **{name: make(car) for name, make in changes.items()})

    return lambda one: with_fields(one, players=[*map(of, one.players)])


def late_inputs() -> Change:
    """Return a change that shows the inputs of the tick before."""
    last: list[flat.ControllerState] = []

    def change(one: flat.GamePacket) -> flat.GamePacket:
        before = list(last)
        last[:] = [car.last_input for car in one.players]
        pairs = zip(one.players, before or last, strict=True)
        return with_fields(one, players=[with_fields(car, last_input=old) for car, old in pairs])

    return change


MUTATIONS: dict[str, tuple[Change, str]] = {
    "velocity in m/s": (
        physics(velocity=lambda v: flat.Vector3(v.x / 100, v.y / 100, v.z / 100)), "linear_velocity",
    ),
    "x mirrored": (physics(location=lambda v: flat.Vector3(-v.x, v.y, v.z)), "position"),
    "roll turned round": (physics(rotation=lambda r: flat.Rotator(r.pitch, r.yaw, -r.roll)), "rotation_mtx"),
    "pitch for yaw": (physics(rotation=lambda r: flat.Rotator(r.yaw, r.pitch, r.roll)), "rotation_mtx"),
    "spin in degrees": (
        physics(angular_velocity=lambda v: flat.Vector3(v.x * 57, v.y * 57, v.z * 57)), "angular_velocity",
    ),
    "boost of 1": (player(boost=lambda one: one.boost / 100), "boost_amount"),
    "dodge direction exchanged": (
        player(dodge_dir=lambda one: flat.Vector2(one.dodge_dir.y, one.dodge_dir.x)), "flip_torque",
    ),
    "a dodge a tick too old": (
        player(dodge_elapsed=lambda one: one.dodge_elapsed + (1 / 120 if one.has_dodged else 0)), "flip_time",
    ),
    "never a dodge left": (player(dodge_timeout=lambda one: -1.0), "has_flip"),
    "demolition counted up": (
        player(demolished_timeout=lambda car: -1 if (left := car.demolished_timeout) < 0 else 3 - left),
        "demo_respawn_timer",
    ),
    "hitbox long as wide": (
        player(hitbox=lambda one: flat.BoxShape(one.hitbox.width, one.hitbox.length, one.hitbox.height)),
        "hitbox_type",
    ),
    "jumps unseen": (player(has_jumped=lambda one: False), "has_jumped"),
    "inputs a tick late": (late_inputs(), "is_holding_jump"),
    "no supersonic": (player(is_supersonic=lambda one: False), "is_supersonic"),
}  # fmt: skip


@pytest.mark.odd_packets("one field is wrong on purpose")
@pytest.mark.parametrize(("name", "ticks"), [
    ("pitch for yaw", 300), ("inputs a tick late", 400), ("demolition counted up", 600),
    *(pytest.param(name, 1300, marks=pytest.mark.slow) for name in MUTATIONS),
])  # fmt: skip
def test_a_packer_that_gets_one_field_wrong_is_caught(
    name: str, ticks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, field = MUTATIONS[name]
    original = Packer.packet
    monkeypatch.setattr(Packer, "packet", lambda self, *given: change(original(self, *given)))
    boxes = (1, 5) if "hitbox" in name else ()
    wrong = run(ticks, seed=2, hitboxes=boxes).readers["shadow"].wrong()
    assert any(one.endswith(field) for one in wrong), set(wrong)


@pytest.mark.parametrize("ticks", [400, pytest.param(1300, marks=pytest.mark.slow)])
def test_with_none_of_these_nothing_is_caught(ticks: int) -> None:
    assert not run(ticks, seed=2).readers["shadow"].wrong()
    assert not run(ticks, seed=2, hitboxes=(1, 5)).readers["shadow"].wrong()
