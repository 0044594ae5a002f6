"""Name the mechanisms that recordings show, and settle which other findings they replace."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from rlgym_bridge.compare.findings.boost_use import find_boost_use
from rlgym_bridge.compare.findings.contact_windows import ContactWindows
from rlgym_bridge.compare.findings.explained_windows import CarWindows
from rlgym_bridge.compare.findings.explanations import (
    explanations_of_contacts,
    explanations_of_controls,
    explanations_of_motion,
)
from rlgym_bridge.compare.findings.fitted_constants import Size
from rlgym_bridge.compare.findings.gaps import Gap
from rlgym_bridge.compare.findings.mechanisms import Mechanism, find_mechanisms
from rlgym_bridge.compare.findings.missing_inputs import Missing, Worth
from rlgym_bridge.compare.findings.significance import LEVEL
from rlgym_bridge.compare.findings.stuck_controls import find_stuck
from rlgym_bridge.compare.findings.verdict import GapVerdict
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.tracks import BALL
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.recording.recording import TimeBase
from rlgym_bridge.user_input.arguments import count_of

_LEAST, _MOST = 24, 120  # windows of a car
_OFF: Final = 3  # blocks of time of these that have to be far off, for a search of sticks that got stuck
_STUCK: Final = 0.75  # share of a level that is theirs; the tank, which is told with ease, has the rest
_KINDS: Final = {
    "controls": GapVerdict.WRONG,
    "frame": GapVerdict.WRONG,
    "timing": GapVerdict.TIMING,
    "physics": GapVerdict.PHYSICS,
}


def explain(scenes: Sequence[TimedRecording], windows: int) -> list[Mechanism]:
    """Return the mechanisms that recordings show, each borne out at its share of `significance.LEVEL`.

    Args:
        scenes: The recordings, with their fitted time and lag.
        windows: Windows of a body that the comparison may simulate; a part of them is used.
    """
    families = [(scene, car) for scene in scenes for car in _cars(scene)]
    # Motion of each car, its tank and stuck sticks together, and contacts.
    level = LEVEL / max(2 * len(families) + len(scenes), 1)
    most = int(np.clip(windows // max(len(families), 2), _LEAST, _MOST))
    claims: list[Mechanism] = []
    for scene, car in families:
        recording = scene.recording
        pressed = recording.state.car_controls[:, car].any(0) & recording.inputs_recorded[car]
        used = [name for name, there in zip(CONTROL_NAMES, pressed, strict=True) if there]
        explanations = [*explanations_of_controls(car, used, scene.unseen), *explanations_of_motion()]
        seen = CarWindows(scene, car, most)
        found = find_mechanisms(seen, explanations, level, recording.source, car)
        claims += found
        # Where another control than recorded burns boost, the tank says nothing of its use.
        turned = any("boost" in each.name and each.kind != "physics" for each in found)
        tank = None if turned else find_boost_use(scene, car, (1 - _STUCK) * level)
        stuck = None if found or seen.far_blocks() < _OFF else find_stuck(scene, car, _STUCK * level)
        claims += [each for each in (tank, stuck) if each is not None]
    for scene in scenes:
        contacts = ContactWindows(scene, max(_MOST // len(scenes), _LEAST))
        claims += find_mechanisms(contacts, explanations_of_contacts(), level, scene.recording.source, None)
    return _together(claims)


def mechanism_gaps(mechanisms: Sequence[Mechanism], sizes: Sequence[Size]) -> list[Gap]:
    """Return the gaps that mechanisms are; a constant that is fitted as a size is left to that.

    Args:
        mechanisms: From `explain`.
        sizes: Constants, settled by `settle_sizes`.
    """
    fitted = {size.mutator for size in sizes if size.gap}
    return [
        Gap(_KINDS[each.kind], each.name, each.value, each.low, each.high, each.unit, tell_mechanism(each))
        for each in mechanisms
        if not (each.mutator and each.mutator in fitted)
    ]


def tell_mechanism(each: Mechanism) -> str:
    """Return a mechanism as a sentence, with its interval, its share, its chance and what does as well."""
    who = f"car{'s' if len(each.cars) > 1 else ''} {', '.join(map(str, each.cars))} of " if each.cars else ""
    within = f" ({each.low:.3g} to {each.high:.3g})" if each.low < each.high else ""
    others = f"; not told apart from: {', '.join(each.alike)}" if each.alike else ""
    return (
        f"{who}{each.source}: {each.phrase}{within} explains {100 * each.share:.0f} % of what is off, over "
        f"{count_of(each.blocks, 'block')} of time that had no part in its choice (chance {each.chance:.2g})"
        f"{others}"
    )


def settle_sizes(sizes: Sequence[Size], mechanisms: Sequence[Mechanism]) -> list[Size]:
    """Return sizes; those of cars make no gap where another mechanism explains the cars as well.

    Args:
        sizes: Constants as they were fitted.
        mechanisms: What was found beside them.
    """
    others = [each for each in mechanisms if each.cars and not each.mutator and each.kind != "timing"]
    doubted = {size.name for size in sizes for each in mechanisms
               if any(phrase.startswith(size.name) for phrase in each.alike)}  # fmt: skip
    return [
        replace(size, gap=False) if size.body == "car" and (others or size.name in doubted) else size
        for size in sizes
    ]


def settle_inputs(
    source: str, missing: Sequence[Missing], worth: Sequence[Worth], mechanisms: Sequence[Mechanism]
) -> tuple[list[Missing], list[Worth]]:
    """Return the controls of a recording that are missing or wrong and that no mechanism accounts for."""
    claims = [each for each in mechanisms if each.source == source and each.kind != "physics"]
    cars = {car for each in claims for car in each.cars}
    named = {(car, one.control) for each in claims for car in each.cars for one in missing
             if one.control in each.name}  # fmt: skip
    return (
        [one for one in missing if (one.car, one.control) not in named],
        [one for one in worth if one.car not in cars],
    )


def _cars(scene: TimedRecording) -> list[int]:
    """Return the cars whose inputs drive them; in replays, which lack most inputs, there are none."""
    if not scene.driven or scene.recording.clock is TimeBase.FRAMES:
        return []
    recorded = scene.recording.inputs_recorded
    return [body for body in scene.bodies if body != BALL and recorded[body].any()]


def _together(claims: Sequence[Mechanism]) -> list[Mechanism]:
    """Return claims, those of several cars of a recording with like parameters as one."""
    merged: list[Mechanism] = []
    for claim in sorted(claims, key=lambda each: each.chance):
        same = [each for each in merged if (each.name, each.source) == (claim.name, claim.source)]
        near = [each for each in same if not each.unit or (each.low <= claim.high and claim.low <= each.high)]
        if near:
            near[0].cars = sorted({*near[0].cars, *claim.cars})
        else:
            merged.append(replace(claim))
    return merged
