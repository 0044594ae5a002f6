"""A bot looks ahead over the ticks by which its actions act later than in training."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlbot import flat

from rlgym_bridge.clock import Timing
from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.spec import Components
from rlgym_bridge.game import Phase
from rlgym_bridge.live.forecaster import OFF_UU, Forecaster
from rlgym_bridge.live.play import play
from rlgym_bridge.packets.decoder import Decoder
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.sim.simulator import ROCKETSIM2
from rlgym_bridge.state import MatchState
from tests.support.late_match import LateMatch
from tests.support.players_by_hand import Always, brain, live_player, player_of
from tests.support.policy_folders import edit, save
from tests.support.simulators import needs_native
from tests.support.states import random_state
from tests.support.stepped_match import move_car, put_ball

pytestmark = needs_native
SHIPPED = Path(__file__).parents[2] / "bot" / "policy"


class Wandering:
    """Draws actions, and keeps the states that it was asked about."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def reset(self, seats: Sequence[int], seed: int | None = None) -> None:
        self.seats, self.random = len(seats), np.random.default_rng(seed)

    def act(self, obs: np.ndarray | None, state: MatchState) -> np.ndarray:
        self.seen.append(state.buffer.copy())
        return self.random.integers(0, 90, (1, self.seats))


def wanderer(forecast: Any, delay: int = 0, latency: int = 0, policy: Any = None) -> PlayerSpec:
    policy = policy or Wandering()
    parser = RepeatAction(LookupTableAction(), 8)
    return PlayerSpec(
        lambda: policy, lambda: Components(None, parser), timing=Timing(delay, latency), forecast=forecast
    )


def in_play(match: LateMatch, ticks: int) -> None:
    """Play the countdown and some ticks of play."""
    match.play_to(lambda: match.match.referee.phase in (Phase.KICKOFF, Phase.ACTIVE))
    for _ in range(ticks):
        match.tick()


@pytest.mark.parametrize(("latency", "delay"), [(8, 0), (8, 3), (60, 0), (17, 2)])
def test_decisions_are_made_on_the_state_that_they_act_on(latency: int, delay: int) -> None:
    policy = Wandering()
    match = LateMatch([wanderer(latency, delay, policy=policy)], latency)
    frames: dict[int, np.ndarray] = {}
    in_play(match, 0)
    move_car(match.match, 1, (3000, 4500, 17))  # the other car is out of the way
    for _ in range(500):
        frames[match.match.frame] = match.match.simulation.state.buffer.copy()
        match.tick()
    layout = match.match.simulation.state.layout
    columns = [layout.column("position", axis, car=0) for axis in range(3)]
    compared = 0
    for seen in policy.seen[10:]:
        state = MatchState(1, 1, 1, seen)
        later = frames.get(int(state.frame[0]))
        if later is not None:
            np.testing.assert_allclose(seen[0, columns], later[0, columns], atol=0.05)
            compared += 1
    assert compared > 40
    report = match.players[0].forecaster.report
    assert report.ticks == latency - delay and report.car.checked > 40 and not report.car.off


@pytest.mark.parametrize("latency", [0, 1, 5, 16, 33, 60])
def test_the_latency_is_measured_from_shown_inputs(latency: int) -> None:
    match = LateMatch([wanderer("auto", 1)], latency)
    in_play(match, latency + 100)
    player = match.players[0]
    assert player.forecaster.report.measured
    assert player.forecaster.latency == player.clock.timing.input_latency == latency
    assert player.forecaster.ticks == max(0, latency - 1)


def test_a_latency_that_varies_is_measured_within_its_range() -> None:
    match = LateMatch([wanderer("auto")], 6, spread=3)
    in_play(match, 600)
    assert 6 <= match.players[0].forecaster.latency <= 9


def test_a_latency_that_changes_is_measured_anew() -> None:
    match = LateMatch([wanderer("auto", latency=12)], 4)
    assert match.players[0].forecaster.latency == 12
    in_play(match, 150)
    assert match.players[0].forecaster.latency == 4


@pytest.mark.parametrize("forecast", ["auto", 0, 1, 2])
def test_with_no_more_latency_than_trained_rows_are_the_same(forecast: Any) -> None:
    def rows(setting: Any) -> list[bytes]:
        specs = [replace(load_player(SHIPPED), forecast=setting), load_player("chaser")]
        match, every = LateMatch(specs, 0, seed=3), []
        for _ in range(1500):
            match.tick()
            every += [row.tobytes() for _, row in match.players[0].inputs()]
        assert not match.faults.counts
        return every

    off = rows(0)
    if forecast in ("auto", 0):
        assert rows(forecast) == off
    else:  # the clock sends earlier by the ticks that it is told of
        assert load_player(SHIPPED).timing == Timing(2, 0)
        assert (
            LateMatch([replace(load_player(SHIPPED), forecast=forecast)], 0).players[0].forecaster.ticks == 0
        )


def test_rows_of_a_decision_act_from_its_first_on() -> None:
    class Counted(RepeatAction):
        def parse_batch(self, actions: np.ndarray) -> np.ndarray:
            rows = super().parse_batch(actions).copy()
            rows[..., 0] = np.arange(1, 9) / 8
            return rows

    spec = PlayerSpec(
        Wandering, lambda: Components(None, Counted(LookupTableAction(), 8)), timing=Timing(1, 0), forecast=4
    )
    match = LateMatch([spec], 4)
    in_play(match, 0)
    sent = []
    for _ in range(24):
        match.tick()
        sent.append(float(match.players[0].inputs()[0][1][0]))
    assert sent == [*(np.arange(1, 9) / 8)] * 3


def test_a_ball_that_is_put_elsewhere_counts_as_wrong() -> None:
    match = LateMatch([wanderer(8, policy=Always(8))], 8)
    in_play(match, 50)
    report = match.players[0].forecaster.report
    before = report.ball.off
    put_ball(match.match, (0, 0, 800), (1500, 0, 0))
    for _ in range(16):
        match.tick()
    assert report.ball.off > before and report.ball.total > OFF_UU
    off = report.ball.off
    for _ in range(100):
        match.tick()
    assert report.ball.off == off, "the next packet has corrected it"


def test_inputs_of_unanswered_packets_are_the_last_ones() -> None:
    forecaster = Forecaster(4, Timing(0, 0), 1)
    state, seen = random_state(1, 1, seed=1), []
    for frame in (10, 11, 14):
        forecaster.note(frame, [np.full(8, frame / 100, np.float32)])
    forecaster.look_ahead(15, state, [0], [0], lambda rows: seen.append(rows) or None)
    assert seen[0][0, 0, :, 0].tolist() == pytest.approx([0.11, 0.11, 0.11, 0.14])
    assert (seen[0][0, 1] == state.car_controls[0, 1]).all(), "others hold their last input"
    assert forecaster.report.missing == 1 and forecaster.report.forecasts == 0


@pytest.mark.parametrize("value", [61, -1, True, 2.5, "often", None, float("nan")])
def test_a_forecast_that_is_no_number_of_ticks_is_refused(value: Any, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"forecast is .*, expected \"auto\" or whole ticks from 0 \(off\) to 60"
    ):
        replace(brain(Always()), forecast=value)
    save(tmp_path)
    edit(tmp_path, forecast=None if value != value else value)
    with pytest.raises(
        ValueError, match=r"forecast is .*, expected \"auto\" or whole ticks from 0 \(off\) to 60"
    ):
        load_player(tmp_path)


@pytest.mark.parametrize("value", ["auto", 0, 60])
def test_the_policy_says_how_far_to_look_ahead(value: Any, tmp_path: Path) -> None:
    save(tmp_path)
    assert "forecast" not in json.loads((tmp_path / "policy.json").read_text())
    edit(tmp_path, forecast=value)
    assert load_player(tmp_path).forecast == value
    save(tmp_path / "new", forecast=value)
    assert load_player(tmp_path / "new").forecast == value


@pytest.mark.parametrize(
    ("files", "variable", "expected"),
    [
        ({"bot.toml": "forecast = 61"}, None, "bot.toml: forecast is 61, expected"),
        ({"other.bot.toml": 'forecast = "x"'}, None, "other.bot.toml: forecast is 'x', expected"),
        ({"bot.toml": "forecast = 3"}, "-2", "RLGYM_BRIDGE_FORECAST: forecast is -2, expected"),
    ],
)
def test_a_wrong_forecast_in_a_bots_files_names_the_place(
    files: dict[str, str], variable: str | None, expected: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(f'[settings]\nagent_id = "tests/agent"\n{text}\n')
    if variable is not None:
        monkeypatch.setenv("RLGYM_BRIDGE_FORECAST", variable)
    assert play("chaser", agent_id="tests/agent", folder=tmp_path) == 2
    assert expected in caplog.text


def test_the_file_of_the_own_agent_id_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[PlayerSpec] = []

    class Noted:
        def __init__(self, spec: PlayerSpec, *_: Any, **__: Any) -> None:
            made.append(spec)

        def run(self) -> int:
            return 0

    monkeypatch.setattr("rlgym_bridge.live.play.Agent", Noted)
    (tmp_path / "a.bot.toml").write_text('[settings]\nagent_id = "tests/other"\nforecast = 5\n')
    (tmp_path / "b.bot.toml").write_text('[settings]\nagent_id = "tests/agent"\nforecast = "auto"\n')
    (tmp_path / "c.bot.toml").write_text("no toml")
    for name in ("tests/agent", "tests/other", "tests/third"):
        assert play(SHIPPED, agent_id=name, folder=tmp_path) == 0
    monkeypatch.setenv("RLGYM_BRIDGE_FORECAST", "7")
    assert play(SHIPPED, agent_id="tests/agent", folder=tmp_path) == 0
    assert [spec.forecast for spec in made] == ["auto", 5, 0, 7]


@pytest.mark.parametrize("mode", ["Heatseeker", "Snowday"])
def test_other_modes_than_soccar_are_not_forecast(mode: str) -> None:
    config = flat.MatchConfiguration(game_mode=getattr(flat.GameMode, mode), mutators=flat.MutatorSettings())
    assert (
        Decoder(field_info(), config).explain_no_forecast().startswith(f"{mode} is played in RocketSim 2.2.1")
    )
    assert (
        Decoder(field_info(), config, simulator=ROCKETSIM2).forecast(np.zeros((1, 2, 1, 8), np.float32))
        is None
    )


def test_without_an_estimator_one_sentence_says_that_it_is_off() -> None:
    player = player_of(replace(wanderer("auto"), shadow=False), [7])
    assert player.forecaster is None
    assert (
        player.no_forecast
        == "no state estimator follows the match, expected a player whose shadow is not False"
    )
    late = player_of(wanderer("auto", latency=100), [7])
    assert late.forecaster is None and late.no_forecast == "inputs act 100 ticks late, expected 60 at most"
    assert live_player(Always()).no_forecast is None


def test_without_the_module_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("simulator", "state_estimator"):
        monkeypatch.setattr(f"rlgym_bridge.sim.{place}.is_installed", lambda name: name == ROCKETSIM2)
    player = player_of(wanderer("auto"), [7])
    assert player.forecaster is None
    assert player.no_forecast.endswith("pip install ./native") or "rocketsim_batch" in player.no_forecast
