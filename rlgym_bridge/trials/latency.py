"""Measure the input latency: by how many ticks an input acts later than it could.

With latency L the input that answers packet N acts on the tick from N + L to N + L + 1, so packet N + L + 1
is the first to show it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rlbot import flat

from rlgym_bridge.trials.findings import Finding
from rlgym_bridge.trials.frames import press
from rlgym_bridge.trials.probe_scene import Play, ProbeScene

_PAUSE: Final = 11  # ticks between two changes; odd, so that odd and even frames are answered
_MOST: Final = 40  # packets within which a change must be seen, which allows a latency of 39
_CHANGES: Final = 4  # rounds of all inputs below

_INPUTS: Final[Sequence[tuple[flat.ControllerState, Callable[[flat.ControllerState], bool]]]] = (
    (press(steer=1.0), lambda shown: shown.steer > 0.5),
    (press(steer=-1.0), lambda shown: shown.steer < -0.5),
    (press(handbrake=True), lambda shown: shown.handbrake),
    (press(throttle=1.0), lambda shown: shown.throttle > 0.5),
    (press(throttle=-1.0), lambda shown: shown.throttle < -0.5),
)


@dataclass(frozen=True)
class InputChange:
    """One change of an input.

    Attributes:
        answered: Frame number of the packet that was answered with it.
        before: Frame number of the last packet without it.
        shown: Frame number of the first packet whose `last_input` has it.
        moved: Frame number at which the car began to move, extrapolated from its first speeds; None where
            the input does not move a car at rest. The game and RocketSim 3 move it in the tick on which the
            input acts (captures of 2026), RocketSim 2.2.1 one later.
    """

    answered: int
    before: int
    shown: int
    moved: float | None = None

    @property
    def range(self) -> tuple[int, int]:
        """Return the lowest and highest latency that fit, ticks."""
        return self.before - self.answered, self.shown - self.answered - 1


def change_inputs(scene: ProbeScene) -> Play[list[InputChange]]:
    """Change one input after another on a standing car, then start it from rest.

    The scene ends at the first change that is not seen in time: it could be mistaken for a later one.
    """
    changes: list[InputChange] = []
    yield from scene.stand()
    for _ in range(_CHANGES):
        for controls, shows in _INPUTS:
            change = yield from _change(scene, controls, shows)
            if change is None:
                return changes
            changes.append(change)
            yield from scene.hold(_PAUSE)
    for _ in range(3):
        yield from scene.stand(settle=60)
        change = yield from _start(scene)
        if change is None:
            return changes
        changes.append(change)
    yield from scene.stand()
    change = yield from _change(scene, press(jump=True), lambda shown: shown.jump)
    if change is not None:
        changes.append(change)
    yield from scene.hold(30)
    yield from scene.land()
    return changes


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
    """Start a car from rest; its speed grows linearly in the first ticks."""
    scene.frames = [scene.frame]
    change = yield from _change(scene, *_INPUTS[3])
    yield from scene.hold(8, _INPUTS[3][0])
    if change is None:
        return None
    driven = [frame for frame in scene.frames if abs(frame.car.physics.velocity.x) > 5.0][:4]
    if len(driven) < 2 or driven[-1].number == driven[0].number:
        return change
    first, last = driven[0], driven[-1]
    speed = abs(first.car.physics.velocity.x)
    gain = (abs(last.car.physics.velocity.x) - speed) / (last.number - first.number)
    if gain < 1.0:
        return change
    return InputChange(change.answered, change.before, change.shown, first.number - speed / gain)


def judge(changes: Sequence[InputChange]) -> Finding:
    """Find the latency: the one that fits most changes, and more than half of them."""
    name = "input_latency"
    if len(changes) < 5:
        seen = f"{len(changes)} inputs were" if changes else "no input was"
        return Finding(
            name, None,
            f"{seen} seen in last_input within {_MOST} packets: at most {_MOST - 1} ticks can be measured",
        )  # fmt: skip
    fits = Counter(
        ticks
        for change in changes
        for ticks in range(change.range[0], change.range[1] + 1)
        if change.range[0] >= -1
    )
    moved = sorted(change.moved - change.answered for change in changes if change.moved is not None)
    middle = moved[len(moved) // 2] if moved else None
    count = max(fits.values(), default=0)
    best = [ticks for ticks, often in sorted(fits.items()) if often == count]
    if len(best) > 1 and middle is not None:  # packets skip frames: use the car's motion
        best = [ticks for ticks in best if abs(ticks - middle) < 0.4] or best
    if len(best) != 1 or count <= 0.5 * len(changes):
        evidence = " or ".join(map(str, best)) or "none"
        return Finding(name, None, f"{evidence} ticks fit {count} of {len(changes)} changes")
    evidence = f"{best[0]} ticks fit {count} of {len(changes)} changes of last_input"
    if middle is not None:
        evidence += f", and a car at rest starts to move {_early_or_late(round(middle, 1))}"
    return Finding(name, str(best[0]), evidence)


def _early_or_late(ticks: float) -> str:
    """Return ticks of lateness in words, with their sign."""
    return f"{ticks:+.1f} ticks, {'late' if ticks > 0 else 'early'}" if ticks else "on time"
