"""The result of a lockstep match names what made it depend on the machine's timing."""

from functools import partial
from pathlib import Path

import pytest

from rlgym_bridge.recording.mcap.channels import PACKETS, UNREPEATABLE
from rlgym_bridge.recording.mcap.mcap_reader import read_contents
from rlgym_bridge.recording.mcap.mcap_writer import Recorder
from rlgym_bridge.recording.mcap.merge import merge
from rlgym_bridge.server.bot_account import BotAccount, Repeatability
from tests.support.stepped_match import seats


def account_at(ticks: list[int]) -> tuple[BotAccount, Repeatability]:
    """Return a ready car's account, and what notes its deviations at the last of these ticks."""
    repeatability = Repeatability(lambda: ticks[-1])
    account = BotAccount(seats()[0])
    account.note = partial(repeatability.note, "Bot")
    account.ready = True
    return account, repeatability


def test_answers_in_time_leave_nothing_to_say() -> None:
    account, repeatability = account_at([7])
    for _ in range(3):
        account.sent(0.0)
        account.reply(0.1)
    assert repeatability.sentences == () and account.replies == 3


def test_answers_that_did_not_come_are_counted_from_the_first() -> None:
    ticks = [812]
    account, repeatability = account_at(ticks)
    for _ in range(3):
        account.sent(0.0)
        account.missed()
        ticks.append(ticks[-1] + 1)
    assert repeatability.sentences == ("lockstep went on without 3 answers of Bot, the first at tick 812",)


@pytest.mark.usefixtures("usual_answer_wait")
@pytest.mark.parametrize("answers", [True, False])
def test_lockstep_waits_long_for_a_bots_first_answer_alone(answers):
    account, _ = account_at([0])
    account.sent(0.0)
    first = account.patience
    account.reply(0.1) if answers else account.missed()
    account.sent(10.0)
    assert (first, account.patience) == (10.0, 1.0)


def test_a_second_input_and_a_lost_connection_are_named() -> None:
    ticks = [5]
    account, repeatability = account_at(ticks)
    account.sent(0.0)
    account.reply(0.1)
    account.note_extra_input()
    ticks.append(9)
    account.left()
    assert repeatability.sentences == (
        "1 input of Bot came when no answer was awaited, at tick 5",
        "1 connection of Bot ended, at tick 9",
    )


def test_a_state_set_out_of_turn_is_named() -> None:
    repeatability = Repeatability(lambda: 2)
    repeatability.note_state("client 127.0.0.1:9", awaited=False)
    assert "1 state of client 127.0.0.1:9 came when no answer" in repeatability.sentences[0]


def test_states_of_two_clients_in_one_tick_are_named() -> None:
    ticks = [2]
    repeatability = Repeatability(lambda: ticks[-1])
    for tick, who in ((2, "agent A"), (2, "agent A"), (3, "agent B"), (3, "agent A")):
        ticks.append(tick)
        repeatability.note_state(who, awaited=True)
    assert repeatability.sentences == (
        "1 state of agent A came in the same tick as another client's, at tick 3",
    )


def test_a_merged_recording_keeps_why_it_is_unrepeatable(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "match.mcap", {"by": "server", "pace": "lockstep"})
    recorder.put(PACKETS, 0, b"packet")
    recorder.tell(UNREPEATABLE, {"unrepeatable": '["lockstep went on"]'})
    recorder.close()
    assert merge(tmp_path / "match.mcap", []) == []
    about = read_contents(tmp_path / "match.mcap").about
    assert about == {"by": "server", "pace": "lockstep", "unrepeatable": ["lockstep went on"]}


def test_a_bot_that_skips_answers_is_hardly_waited_for() -> None:
    account, _ = account_at([0])
    for number in range(100):
        account.sent(number)
        if number % 5:
            account.reply(number + 0.002)
        else:
            account.missed()
    assert (account.skips, account.patience) == (True, pytest.approx(0.02))


@pytest.mark.usefixtures("usual_answer_wait")
def test_a_bot_that_rests_in_countdowns_is_waited_for_in_play() -> None:
    account, _ = account_at([0])
    for number in range(100):
        account.sent(number)
        if number % 5:
            account.missed(in_play=False)
        else:
            account.reply(number + 0.002)
    assert (account.skips, account.patience) == (True, pytest.approx(0.02))
    account.sent(100)
    account.missed(in_play=True)
    assert (account.skips, account.patience) == (False, 1.0)


@pytest.mark.usefixtures("usual_answer_wait")
def test_few_answers_that_did_not_come_leave_lockstep_patient() -> None:
    account, _ = account_at([0])
    for number in range(2000):
        account.sent(number)
        if number % 100 == 50:
            account.missed()
        else:
            account.reply(number + 0.002)
    assert (account.late, account.skips, account.patience) == (20, False, 1.0)
