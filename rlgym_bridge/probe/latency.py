"""Input latency: how many ticks later than it could an input acts.

With latency L the input that answers packet N drives N + L to N + L + 1: packet N + L + 1 shows it first.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rlbot import flat

from rlgym_bridge.probe.findings import Finding
from rlgym_bridge.probe.frames import press
from rlgym_bridge.probe.probe_scene import Play, ProbeScene

_PAUSE: Final = 11  # ticks between two changes; odd, so that frames of all parities are answered
_MOST: Final = 40  # packets in which a change has to be seen: so a latency of 39 can be told
_CHANGES: Final = 4  # rounds of all inputs below
_START_TICKS: Final = (
    1.0  # from the packet that an input drives first to the car's first motion (RocketSim 2.2.1)
)

_INPUTS: Final[Sequence[tuple[flat.ControllerState, Callable[[flat.ControllerState], bool]]]] = (
    (press(steer=1.0), lambda one: one.steer > 0.5),
    (press(steer=-1.0), lambda one: one.steer < -0.5),
    (press(handbrake=True), lambda one: one.handbrake),
    (press(throttle=1.0), lambda one: one.throttle > 0.5),
    (press(throttle=-1.0), lambda one: one.throttle < -0.5),
)


@dataclass(frozen=True)
class InputChange:
    """One change of an input.

    Attributes:
        answered: Frame number of the packet that was answered with it.
        before: Frame number of the last packet without it.
        shown: Frame number of the first packet whose `last_input` has it.
        moved: Frame number at which the car has begun to move by it, from its first speeds; None where
            the input does not move a car at rest.
    """

    answered: int
    before: int
    shown: int
    moved: float | None = None

    @property
    def range(self) -> tuple[int, int]:
        """Return the least and the most latency that fit, ticks."""
        return self.before - self.answered, self.shown - self.answered - 1


def trials(scene: ProbeScene) -> Play[list[InputChange]]:
    """Change one input after another on a car that stands; then start from rest.

    The first change that is not seen in time ends it: seen later, it would be taken for another one.
    """
    found: list[InputChange] = []
    yield from scene.stand()
    for _ in range(_CHANGES):
        for controls, shows in _INPUTS:
            one = yield from _change(scene, controls, shows)
            if one is None:
                return found
            found.append(one)
            yield from scene.hold(_PAUSE)
    for _ in range(3):
        yield from scene.stand(settle=60)
        one = yield from _start(scene)
        if one is None:
            return found
        found.append(one)
    yield from scene.stand()
    one = yield from _change(scene, press(jump=True), lambda now: now.jump)
    if one is not None:
        found.append(one)
    yield from scene.hold(30)
    yield from scene.land()
    return found


def _change(
    scene: ProbeScene, controls: flat.ControllerState, shows: Callable[[flat.ControllerState], bool]
) -> Play[InputChange | None]:
    answered = before = scene.frame.number
    for _ in range(_MOST):
        yield from scene.step(controls)
        if shows(scene.frame.car.last_input):
            return InputChange(answered, before, scene.frame.number)
        before = scene.frame.number
    return None


def _start(scene: ProbeScene) -> Play[InputChange | None]:
    """Start a car from rest; its speed grows evenly in the first ticks."""
    scene.frames = [scene.frame]
    one = yield from _change(scene, *_INPUTS[3])
    yield from scene.hold(8, _INPUTS[3][0])
    if one is None:
        return None
    driven = [frame for frame in scene.frames if abs(frame.car.physics.velocity.x) > 5.0][:4]
    if len(driven) < 2 or driven[-1].number == driven[0].number:
        return one
    first, last = driven[0], driven[-1]
    speed = abs(first.car.physics.velocity.x)
    gain = (abs(last.car.physics.velocity.x) - speed) / (last.number - first.number)
    if gain < 1.0:
        return one
    return InputChange(one.answered, one.before, one.shown, first.number - speed / gain)


def judge(found: Sequence[InputChange]) -> Finding:
    """Settle the latency: the one that fits most changes, and more than half of them."""
    name = "input_latency"
    if len(found) < 5:
        seen = f"{len(found)} inputs were" if found else "no input was"
        return Finding(
            name, None,
            f"{seen} seen in last_input within {_MOST} packets: up to {_MOST - 1} ticks can be told",
        )  # fmt: skip
    fits = Counter(
        ticks for one in found for ticks in range(one.range[0], one.range[1] + 1) if one.range[0] >= -1
    )
    moved = sorted(one.moved - one.answered - _START_TICKS for one in found if one.moved is not None)
    middle = moved[len(moved) // 2] if moved else None
    count = max(fits.values(), default=0)
    best = [ticks for ticks, often in sorted(fits.items()) if often == count]
    if len(best) > 1 and middle is not None:  # packets leave out frames: ask the car itself
        best = [ticks for ticks in best if abs(ticks - middle) < 0.4] or best
    if len(best) != 1 or count <= 0.5 * len(found):
        said = " or ".join(map(str, best)) or "none"
        return Finding(name, None, f"{said} ticks fit {count} of {len(found)} changes")
    said = f"{best[0]} ticks fit {count} of {len(found)} changes of last_input"
    if middle is not None:
        said += f", and a car at rest that moves off {abs(middle):.1f} ticks late"
    return Finding(name, str(best[0]), said)
