"""A fault is named with its size, or said to be something that is not tried; never by another's name."""

from functools import cache

import numpy as np
import pytest

from rlgym_bridge.compare.comparison import compare_recordings
from rlgym_bridge.compare.comparison_result import Comparison
from tests.support.fault_matches import KINDS, Planted, clean, plant
from tests.support.fault_scenes import Form
from tests.support.simulators import needs_native
from tools.false_alarms import alarms
from tools.planted import outcomes

pytestmark = needs_native

_ONE = Form(table=True, cars=1)
_DIGITS = Form(table=True, cars=1, digits="6 digits", rate=60)
_WINDOWS = 48


@cache
def tried(seed: int, kind: str, form: Form, windows: int = _WINDOWS) -> tuple[Planted, Comparison]:
    planted = plant(seed, kind, form)
    return planted, compare_recordings(planted.recording, windows=windows)


def slow(*values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("kind", "seed", "form", "truth"),
    [
        ("gravity", 4, _ONE, 0.99), slow("gravity", 9, _DIGITS, None), slow("gain", 4, _ONE, None),
        slow("lag of one control", 6, _ONE, None), slow("ball too high", 2, _ONE, None),
        slow("boost in the air", 3, _ONE, 0.9412), slow("car too high", 2, _ONE, None),
        slow("mirrored axis", 5, _ONE, None),
        slow("jump push", 40, Form(True, 40, "6 digits"), None),
        slow("cars swapped", 3, Form(), None), slow("swapped", 5, _ONE, None),
    ],
)  # fmt: skip
def test_a_planted_fault_is_named_with_its_size(
    kind: str, seed: int, form: Form, truth: float | None
) -> None:
    planted, found = tried(seed, kind, form, _WINDOWS if truth is None else 24)
    outcome, said = planted.outcome(found)
    assert outcome == "right", said
    assert not found.agrees and found.causes
    cause = next(one for one in found.causes if one.certain)
    assert cause.share > 0.8 and cause.windows > 0
    if np.isfinite(cause.value):
        assert cause.low <= cause.value <= cause.high
    if truth is not None:
        assert cause.low <= truth <= cause.high and cause.value == pytest.approx(truth, abs=0.003)


@pytest.mark.slow
def test_a_button_that_sticks_now_and_then_is_named() -> None:
    planted = plant(24, "handbrake stuck")
    found = compare_recordings(planted.recording)
    assert planted.outcome(found)[0] == "right"
    (cause,) = found.causes
    assert cause.name == "handbrake stuck" and cause.cars == [0] and np.isnan(cause.value)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seed"), [("second jump", 8), ("wind on the ball", 7), ("drag on cars", 5)])
def test_what_nothing_describes_is_said_to_be_untried(kind: str, seed: int) -> None:
    planted, found = tried(seed, kind, _ONE)
    assert planted.outcome(found)[0] == "untried"
    (untried,) = found.untried
    assert untried.worst > 0.05 and untried.windows > 0 and untried.situations
    body = "ball" if "ball" in kind else "car"
    assert all(name.startswith(body) for name in untried.situations)
    assert "something that is not tried here" in str(found.as_json()["explanation"])


def test_every_parameter_has_an_interval_where_nothing_is_found() -> None:
    found = compare_recordings(clean(2, _ONE).recording, windows=24)
    assert found.agrees
    sizes = {size.name: size for size in found.sizes}
    assert {"gravity", "ball drag", "bounce of the ball", "clock", "height of the ball"} <= sizes.keys()
    for size in found.sizes:
        assert size.low <= size.value <= size.high and not size.gap and size.windows > 0
    assert sizes["gravity"].high - sizes["gravity"].low < 0.002
    assert sizes["clock"].high - sizes["clock"].low < 0.002


@pytest.mark.slow
def test_late_inputs_are_the_time_and_no_constant() -> None:
    late = clean(2, Form(table=True, cars=1, sent=True, lag=3)).recording
    found = compare_recordings(late, windows=24)
    assert found.input_latency_ticks == 3 and not found.causes and not found.untried
    assert [gap.name for gap in found.gaps] == ["input latency"]


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_of_twelve_faults_most_are_named_and_none_wrongly() -> None:
    tellable, right = 0, 0
    for planted, outcome, said in outcomes(len(KINDS) * 11, len(KINDS) * 11 + 11):
        assert outcome != "wrong", (planted.text, said)
        if planted.tellable:
            tellable += 1
            right += outcome in ("right", "among others")
        else:
            assert outcome == "untried", (planted.text, said)
    assert right >= 0.75 * tellable


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_twelve_clean_recordings_raise_at_most_one_alarm() -> None:
    raised = [(text, claims) for text, claims in alarms(501, 512) if claims]
    assert len(raised) <= 1, raised
