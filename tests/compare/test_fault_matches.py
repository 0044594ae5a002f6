"""The generator of planted faults plays sane physics, and its recordings have the fault and the form."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.sim.simulator import ROCKETSIM3, make_simulator
from rlgym_bridge.state import MatchState
from tests.support import fault_matches
from tests.support.fault_matches import KINDS, KINDS_ASIDE, clean, plant
from tests.support.fault_scenes import Form
from tests.support.simulators import needs_native
from tools.planted import interval, table

pytestmark = needs_native

_LENGTH = 60  # ticks of a window
_TABLE = Form(table=True)


def errors(recording: Recording) -> tuple[np.ndarray, np.ndarray]:
    """Play windows of a recording of every tick from whole states; return errors of cars and ball, uu."""
    state = recording.state
    stays = recording.segment[_LENGTH:] == recording.segment[:-_LENGTH]
    starts = np.random.default_rng(0).choice(np.flatnonzero(stays), 200, replace=False)
    layout = state.layout
    simulator = make_simulator(ROCKETSIM3, len(starts), layout.blue, layout.orange)
    simulator.put(
        range(len(starts)), MatchState(layout.blue, layout.orange, len(starts), state.buffer[starts].copy())
    )
    rows = np.swapaxes(state.car_controls[starts[:, None] + 1 + np.arange(_LENGTH)], 1, 2)
    simulator.step(np.ascontiguousarray(rows), delay=np.zeros(rows.shape[:2], np.int64))
    ends = starts + _LENGTH
    off = simulator.state.car_position - state.car_position[ends]
    ball = simulator.state.ball_position - state.ball_position[ends]
    return np.linalg.norm(off, axis=-1), np.linalg.norm(ball, axis=-1)


def found(*causes: SimpleNamespace, untried: bool = False) -> SimpleNamespace:
    there = [SimpleNamespace(situations=["car in the air"])] if untried else []
    return SimpleNamespace(causes=list(causes), untried=there, fits=[], gaps=[])


def cause(name: str, *alike: str, cars: tuple[int, ...] = ()) -> SimpleNamespace:
    return SimpleNamespace(name=name, phrase=f"{name} 1.2", alike=list(alike), cars=list(cars))


@pytest.fixture
def unplayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the play out."""
    monkeypatch.setattr(fault_matches, "make_recording", lambda *_: None)


@pytest.mark.slow
def test_equal_seeds_give_equal_recordings() -> None:
    one, two = (plant(3, "drag on cars", _TABLE).recording for _ in range(2))
    assert one.state.buffer.tobytes() == two.state.buffer.tobytes()
    assert one.seconds.tolist() == two.seconds.tolist()


def test_a_clean_match_replays_to_the_digit() -> None:
    cars, ball = errors(clean(0, Form()).recording)
    # Bullet remembers contacts of a car's body, which no state holds
    assert (cars < 0.02).mean() > 0.95 and (ball < 0.02).mean() > 0.98


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "body", "least"),
    [("gain", "car", 0.2), ("steer stuck", "car", 0.05), ("second jump", "either car", 0.06),
     ("drag on cars", "both cars", 0.95), ("gravity", "ball", 0.5), ("rough floor", "ball", 0.2),
     ("ball late", "ball", 0.7), ("rocketsim2", "both cars", 0.7)],
)  # fmt: skip
def test_a_planted_fault_shows_on_its_bodies(kind: str, body: str, least: float) -> None:
    cars, ball = errors(plant(4, kind, Form()).recording)
    shown = {"car": cars[:, 0], "both cars": cars.min(1), "either car": cars.max(1), "ball": ball}[body]
    assert (shown > 0.1).mean() > least
    if body == "car":
        assert (cars[:, 1] > 0.1).mean() < 0.5 * least + 0.06


@pytest.mark.slow
def test_players_drive_jump_dodge_and_hit() -> None:
    state = clean(1, Form()).recording.state
    begun = {
        name: (np.diff(getattr(state, f"car_{name}"), axis=0) > 0).sum(0)
        for name in ("is_jumping", "has_flipped", "has_double_jumped", "ball_touches")
    }
    assert begun["is_jumping"][0] >= 10 and begun["has_flipped"][0] >= 5
    assert begun["has_double_jumped"][0] >= 2 and begun["ball_touches"].sum() >= 5
    assert (state.car_bump_victim >= 0).any(0).all()
    grounded = state.car_on_ground[:, 0] > 0
    assert 0.25 < grounded.mean() < 0.8
    assert (grounded & (np.abs(state.car_rotation[:, 0, 2, 2]) < 0.3)).mean() > 0.02  # on walls


@pytest.mark.slow
def test_a_table_hides_what_tables_do_not_have() -> None:
    state = clean(3, _TABLE).recording.state
    assert not state.car_handbrake.any() and not state.car_wheels_with_contact.any()
    assert state.car_boost_amount.any() and state.ball_known.all()


def test_as_many_successive_seeds_as_kinds_plant_each_once(unplayed: None) -> None:
    for aside, kinds in ((False, KINDS), (True, KINDS_ASIDE)):
        block = range(len(kinds), 2 * len(kinds))
        assert Counter(plant(seed, aside=aside).kind for seed in block) == Counter(list(kinds))


def test_forms_differ_and_faults_ask_for_theirs(unplayed: None) -> None:
    forms = [clean(seed).form for seed in range(60)]
    assert {form.rate for form in forms} == {120, 60, 40, 30} and {form.cars for form in forms} == {1, 2}
    assert any(form.lag for form in forms) and any(form.lost for form in forms)
    assert any(form.fast for form in forms) and any(form.noisy for form in forms)
    lates = [plant(seed, "all inputs late").form for seed in range(12)]
    assert all(form.table and form.sent and 1 <= form.lag <= 5 for form in lates)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ([cause("jump and boost swapped", cars=(0,))], "right"),
        ([cause("jump and boost swapped"), cause("gravity", "ball drag 1.1")], "right"),
        ([cause("jump and boost swapped"), cause("gravity")], "wrong"),
        ([cause("jump and boost swapped", cars=(1,))], "wrong"),  # of the other car
        ([cause("gravity", "jump and boost swapped 1")], "among others"),
        ([cause("jump and boost swapped", "gravity")], "among others"),
        ([cause("gravity", "ball drag")], "nothing"),
        ([], "nothing"),
    ],
)
def test_what_is_said_of_swapped_controls_is_right_or_not(
    said: list[SimpleNamespace], outcome: str, unplayed: None
) -> None:
    planted = replace(plant(1, "swapped", Form()), names=("jump and boost swapped",))
    assert planted.tellable and planted.fault.cars == (0,)
    assert planted.outcome(found(*said))[0] == outcome
    assert planted.outcome(found(untried=True)) == ("untried", ["untried: car in the air"])


def test_a_lag_that_a_form_has_is_no_false_name(unplayed: None) -> None:
    planted = plant(1, "gravity", Form(True, sent=True, lag=3))
    assert planted.outcome(found(cause("gravity"), cause("input latency")))[0] == "right"
    assert planted.outcome(found(cause("gravity"), cause("clock")))[0] == "wrong"


def test_a_gap_in_time_is_right_for_faults_of_time(unplayed: None) -> None:
    for kind, name in (("clock", "clock"), ("inputs held", "inputs held for 2 ticks")):
        said = found(untried=True)
        said.gaps = [SimpleNamespace(name=name)]
        assert plant(1, kind).outcome(said)[0] == "right"
    assert plant(1, "inputs held").outcome(found())[0] == "right"


def test_faults_without_a_name_are_only_right_as_untried(unplayed: None) -> None:
    planted = plant(1, "drag on cars", Form())
    assert not planted.tellable
    assert planted.outcome(found(untried=True))[0] == "untried"
    assert planted.outcome(found(cause("gravity")))[0] == "wrong"


def test_shares_have_wilsons_intervals() -> None:
    assert interval(34, 40) == pytest.approx((0.7093, 0.9294), abs=1e-4)
    assert interval(0, 120) == pytest.approx((0, 0.0310), abs=1e-4)
    text = table({("gain", True): Counter(right=3), ("drag on cars", False): Counter(untried=2, wrong=1)})
    assert [line.split("|")[0].strip() for line in text.splitlines()] == [
        "kind", "drag on cars", "gain", "all tellable", "all untellable",
    ]  # fmt: skip
