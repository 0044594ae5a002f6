"""Test by the ball's flights whether a recording's velocities are cut and its positions rounded."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import RocketSim as rsim

from rlgym_bridge.compare.findings.rule_tests import CUT_LEVEL, RULE_LEVEL, RuleTest, Shown, judge_windows
from rlgym_bridge.compare.fit.timed_recording import TimedRecording
from rlgym_bridge.compare.simulate.rollout import Adjust, RolloutArena
from rlgym_bridge.compare.simulate.tracks import BALL, POSITION, Track
from rlgym_bridge.compare.simulate.window_errors import simulate_end
from rlgym_bridge.compare.simulate.windows import BALL_AIR, situation, starts, thinned
from rlgym_bridge.sim.arena import scale_constants
from rlgym_bridge.sim.game_rules import ROCKETSIM

_LONG, _SHORT = 120, 60  # ticks of a flight; the short ones where long ones are few
_ENOUGH: Final = 20  # long flights
_MOST: Final = 60  # flights
_BESIDE: Final = 0.1  # of a flight, how far a row may be beside its end
_LEAD: Final = 1.0  # ticks followed before
_STEP: Final = 0.02  # by which a constant is changed to see what that does
_OUTLIER: Final = 3.0  # median errors from which on a flight does not count in the fit of constants
_CONSTANTS: Final = ("ball_drag", "gravity")

Flight = tuple[Track, int, int]


def judge_flights(scene: TimedRecording) -> list[RuleTest]:
    """Test the cut of velocities, and the rounding of positions where there is a cut.

    A drag or a gravity that differs slows the ball too. So the cut, which has no free number, has to come
    nearer than these two constants do after they were fitted to the same flights.
    """
    if BALL not in scene.bodies:
        return []
    flights = _flights(scene, _LONG)
    if len(flights) < _ENOUGH:
        flights = _flights(scene, _SHORT)
    if not flights:
        return []
    plain, cut = _off(scene, flights, ROCKETSIM), _off(scene, flights, frozenset({"velocity_cut"}))
    fitted = _fit_constants(scene, flights, plain)
    first = judge_windows("velocity_cut", _sizes(plain), _sizes(cut), CUT_LEVEL)
    if first.shown is Shown.SHOWN:
        other = judge_windows("velocity_cut", _sizes(fitted), _sizes(cut), CUT_LEVEL)
        if other.shown is not Shown.SHOWN:
            text = f"{first.text}; but drag and gravity that differ explain as much"
            first = RuleTest("velocity_cut", Shown.UNTOLD, text)
    if first.shown is not Shown.SHOWN:
        return [first, RuleTest("position_rounding", first.shown, "goes with the cut of velocities")]
    both = _off(scene, flights, frozenset({"velocity_cut", "position_rounding"}))
    return [first, judge_windows("position_rounding", _sizes(cut), _sizes(both), RULE_LEVEL)]


def _flights(scene: TimedRecording, ticks: int) -> list[Flight]:
    """Return flights that do not overlap: (track, first moment, last moment)."""
    stage, near = RolloutArena(scene.recording, (BALL,)), scene.near[:, BALL]
    found = []
    for track in scene.tracks((BALL,)):
        for start in starts(track, float(ticks)).tolist():
            end = int(track.nearest(np.array(track.times[start] + ticks)))
            if end <= start or abs(track.times[end] - track.times[start] - ticks) > _BESIDE * ticks:
                continue
            found.append((track, start, end))
    chosen = []
    for track, start, end in thinned(found, 3 * _MOST):  # some bounce
        path = stage.roll(track, start, ticks + ticks // 8, _LEAD, [None])
        if situation(track, 0, path, start, end, near, np.inf) == BALL_AIR:
            chosen.append((track, start, end))
    return thinned(chosen, _MOST)


def _off(
    scene: TimedRecording, flights: Sequence[Flight], rules: frozenset[str], adjust: Adjust | None = None
) -> np.ndarray:
    """Return `(flights, 3)` uu: where the ball was at the end of each flight, less where it is simulated."""
    stage = RolloutArena(scene.recording, (BALL,), adjust, rules)
    found = []
    for track, start, end in flights:
        simulated = simulate_end(stage, track, start, end, _LEAD, [None])[0]
        found.append((track.values[end, 0] - simulated)[POSITION])
    return np.array(found)


def _fit_constants(scene: TimedRecording, flights: Sequence[Flight], plain: np.ndarray) -> np.ndarray:
    """Return what is left of errors, `(flights, 3)` uu, when drag and gravity are fitted to them."""
    effects = []
    for name in _CONSTANTS:

        def adjust(mutators: rsim.MutatorConfig, name: str = name) -> None:
            scale_constants(mutators, {name: 1 + _STEP})

        effects.append(plain - _off(scene, flights, ROCKETSIM, adjust))
    design = np.stack(effects, axis=-1)  # (flights, 3, constants)
    sizes = _sizes(plain)
    used = sizes <= _OUTLIER * np.median(sizes)
    amounts = np.linalg.lstsq(design[used].reshape(-1, len(_CONSTANTS)), plain[used].ravel(), rcond=None)[0]
    return np.asarray(plain - design @ amounts)


def _sizes(off: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(off, axis=1))
