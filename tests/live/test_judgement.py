"""Conditions, rewards and renderers live in a match, and cannot stop play."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from rlbot import flat
from rlgym.api import Renderer, RewardFunction

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.conditions import TimeoutCondition
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.episode import StepReport
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.spec import Components
from rlgym_bridge.game import Phase
from rlgym_bridge.live.player import Faults, LivePlayer
from rlgym_bridge.live.session import OVERLAY_VARIABLE, AgentReport, BotSession, describe_step, draw_message
from rlgym_bridge.server.game.packer import field_info
from tests.support.made_packets import at, player
from tests.support.players_by_hand import CONFIG, Always, brain


class Each(RewardFunction[Any, Any, float]):
    """Half a point a step."""

    def reset(self, agents: Any, initial_state: Any, shared_info: Any) -> None: ...

    def get_rewards(
        self, agents: Any, state: Any, is_terminated: Any, is_truncated: Any, shared_info: Any
    ) -> dict[Any, float]:
        return dict.fromkeys(agents, 0.5)


class Broken(Each):
    def get_rewards(
        self, agents: Any, state: Any, is_terminated: Any, is_truncated: Any, shared_info: Any
    ) -> dict[Any, float]:
        raise RuntimeError("no such reward")


class Screen(Renderer[Any]):
    def __init__(self) -> None:
        self.ticks: list[int] = []
        self.closed = False

    def render(self, state: Any, shared_info: Any) -> None:
        self.ticks.append(state.tick_count)

    def close(self) -> None:
        self.closed = True


def played(
    reward: Any, screen: Screen | None = None, ticks: int = 25
) -> tuple[LivePlayer, list[list[float]]]:
    """Play some ticks from a kickoff."""

    def parts() -> Components:
        return Components(
            DefaultObs(zero_padding=None), RepeatAction(LookupTableAction(), 8), reward_fn=reward,
            truncation_cond=TimeoutCondition(0.1), renderer=screen,
        )  # fmt: skip

    whole: PlayerSpec = replace(brain(Always()), components=parts)
    live_player = LivePlayer(whole, field_info(), CONFIG, [7], Faults(logging.getLogger("tests")))
    rows = []
    for frame in range(1, ticks + 1):
        live_player.see(at(frame, Phase.KICKOFF, player()))
        rows.append(live_player.inputs()[0][1].tolist())
    return live_player, rows


def test_judges_are_asked_at_every_decision_but_the_first() -> None:
    live_player, _ = played(Each())
    report = live_player.episode.report  # decisions at frames 1, 9, 17, 25
    assert report.rewards == {"blue-0": 0.5} and report.returns == {"blue-0": 1.5}
    assert report.truncated == {"blue-0": True}


def test_a_reward_that_raises_is_counted_and_changes_nothing() -> None:
    live_player, rows = played(Broken())
    assert live_player.faults.counts == {"judgement failed": 3}
    assert rows == played(None)[1]


def test_a_renderer_is_shown_every_decision_and_closed() -> None:
    screen = Screen()
    live_player, _ = played(Each(), screen)
    assert screen.ticks == [9, 17, 25]
    live_player.close()
    assert screen.closed


def test_the_overlay_says_rewards_and_how_the_episode_ended() -> None:
    report = StepReport({"blue-0": 0.25, "blue-1": -1.0}, {"blue-0": 3.0}, {"blue-0": True}, {})
    assert describe_step(report) == (
        "blue-0: +0.250, +3.00 since kickoff, terminated\nblue-1: -1.000, +0.00 since kickoff"
    )
    sent = flat.InterfacePacket.unpack(draw_message("hello")).message
    assert isinstance(sent, flat.RenderGroup)
    assert [one.variety.text for one in sent.render_messages] == ["hello"]


@pytest.mark.parametrize(("value", "drawn"), [(None, 0), ("0", 0), ("1", 2)])
def test_the_overlay_is_drawn_on_request_and_change(
    value: str | None, drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(OVERLAY_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(OVERLAY_VARIABLE, value)
    session = BotSession(
        ("127.0.0.1", 1), brain(Always()), AgentReport("me", Faults(logging.getLogger("tests")))
    )
    sent: list[bytes] = []
    monkeypatch.setattr(session._relay, "send_bytes", sent.append)
    session._player, _ = played(Each())
    for reward in (0.5, 0.5, 0.75):
        session._player.episode.report = StepReport({"blue-0": reward})
        session._newest = at(26, Phase.KICKOFF, player())
        session._answer()
    groups = [flat.InterfacePacket.unpack(one).message for one in sent]
    assert sum(isinstance(one, flat.RenderGroup) for one in groups) == drawn
