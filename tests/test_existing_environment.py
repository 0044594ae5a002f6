"""An RLGym environment that somebody has, with rlgym-tools' components, trains here and plays here."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rlgym.api import ObsBuilder, RLGym, SharedInfoProvider, StateMutator
from rlgym.rocket_league.reward_functions import GoalReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence
from torch import nn

from rlgym_bridge.cli import main as bridge
from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.episode import Episode
from rlgym_bridge.components.mutators import KickoffMutator, blank_state
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.spec import Components, component_factory
from rlgym_bridge.policy.files import read_files
from rlgym_bridge.policy.folder import load_policy, save_policy
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.sim.vector_env import VectorEnv
from rlgym_bridge.training.environment import fit_to_environment
from rlgym_bridge.training.learner import PPOLearner
from rlgym_bridge.training.ppo import main as train
from rlgym_bridge.training.runs.checkpoints import Checkpoints
from rlgym_bridge.training.settings import SettingsError, TrainingSettings, check_settings
from tests.support.foreign_checkpoints import save_ppo
from tests.support.players_by_hand import Always
from tests.support.policy_folders import make_module, random_weights
from tests.support.rlgym_worlds import Counter, Log, noted

ENV = """
from rlgym.api import RLGym
from rlgym.rocket_league.action_parsers import RepeatAction
from rlgym.rocket_league.done_conditions import GoalCondition, TimeoutCondition
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import CombinedReward, GoalReward, TouchReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence
from rlgym_tools.rocket_league.action_parsers.action_history_wrapper import ActionHistoryWrapper
from rlgym_tools.rocket_league.action_parsers.advanced_lookup_table_action import AdvancedLookupTableAction
from rlgym_tools.rocket_league.action_parsers.delayed_action import DelayedAction
from rlgym_tools.rocket_league.action_parsers.queued_action import QueuedAction
from rlgym_tools.rocket_league.obs_builders.relative_default_obs import RelativeDefaultObs
from rlgym_tools.rocket_league.shared_info_providers.ball_prediction_provider import BallPredictionProvider
from rlgym_tools.rocket_league.shared_info_providers.multi_provider import MultiProvider
from rlgym_tools.rocket_league.shared_info_providers.serialized_provider import SerializedProvider


class Seeing(RelativeDefaultObs):
    # what the wrappers and the provider leave in the shared info is there when the bot sees
    def build_obs(self, agents, state, shared_info):
        assert len(shared_info["ball_prediction"]) >= 4 and shared_info["serialized_state"] is not None
        assert set(shared_info["action_queue"]) >= set(agents)
        assert all(shared_info["delayed_actions"][agent].shape == (3, 8) for agent in agents)
        history = shared_info.get("action_history", {})  # there from the first action on
        assert all(len(history[agent]) in (4, 8) for agent in agents if agent in history)
        return super().build_obs(agents, state, shared_info)


def build(teams=(1, 1), delay=True, repeats=8):
    parser = RepeatAction(AdvancedLookupTableAction(), repeats)
    return RLGym(
        MutatorSequence(FixedTeamSizeMutator(*teams), KickoffMutator()),
        Seeing(zero_padding=None),
        ActionHistoryWrapper(QueuedAction(DelayedAction(parser, 3), 2)),
        CombinedReward((GoalReward(), 10.0), (TouchReward(), 1.0)),
        RocketSimEngine(rlbot_delay=delay),
        GoalCondition(),
        TimeoutCondition(1.0),
        MultiProvider(SerializedProvider(), BallPredictionProvider(2.0, 0.5)),
    )


def of_two():
    return build((2, 2))


def at_once():
    return build(delay=False)


def short():
    return build(repeats=4)
"""


SEEN = 172
"""Numbers of RLGym's `DefaultObs` that is padded to three cars a team."""

MATCHES = """
import random
from rlgym.api import RLGym, StateMutator
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.done_conditions import GoalCondition
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import TouchReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence
from rlgym_bridge import SimEngine


class KickoffsOnGoal(RocketSimEngine):
    pass


class Hitbox(StateMutator):
    def __init__(self, *boxes): self.boxes = boxes
    def apply(self, state, shared_info):
        for number, car in enumerate(state.cars.values()):
            car.hitbox_type = self.boxes[number % len(self.boxes)]


class AnySize(StateMutator):
    def apply(self, state, shared_info):
        FixedTeamSizeMutator(*random.choice([(1, 1), (2, 2)])).apply(state, shared_info)


def build(cars=FixedTeamSizeMutator(1, 1), hitbox=Hitbox(0), repeats=8, engine=RocketSimEngine()):
    return RLGym(
        MutatorSequence(cars, hitbox, KickoffMutator()), DefaultObs(zero_padding=3),
        RepeatAction(LookupTableAction(), repeats), TouchReward(), engine, GoalCondition(),
    )


def of_two(): return build(FixedTeamSizeMutator(2, 2), Hitbox(1), 4, KickoffsOnGoal(rlbot_delay=False))
def usual_engine(): return build()
def our_engine(): return build(engine=SimEngine())
def mixed(): return build(AnySize(), Hitbox(0, 1))
def uneven(): return build(FixedTeamSizeMutator(1, 2))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_module(tmp_path, monkeypatch, "tools_env", ENV)
    make_module(tmp_path, monkeypatch, "other_env", MATCHES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(here: Path, **changes: Any) -> TrainingSettings:
    return check_settings({
        "env": "tools_env:build", "out": str(here / "run"), "collectors": 1, "matches": 4,
        "rollout_steps": 20, "steps": 200, "policy_layers": [16], "critic_layers": [16], **changes,
    })  # fmt: skip


@pytest.mark.slow
def test_rlgym_tools_components_and_shared_info_train_and_play(here: Path) -> None:
    train(settings(here), quiet=True)
    checkpoint = train(settings(here, steps=300), resume=True, quiet=True).checkpoint
    words = ["--blue", str(checkpoint), "--orange", "chaser"]
    assert bridge(["match", *words, "--pace", "lockstep", "--seconds", "1", "--max-overtime", "0", "-q"]) == 0


def test_in_packets_they_make_what_they_make_in_the_simulator(here: Path) -> None:
    words = ["parity", "--env", "tools_env:build", "--ticks", "500", "--json", "found.json"]
    assert bridge(words) == 1
    found = json.loads((here / "found.json").read_text())
    # `math/relative.py` of rlgym-tools 2.6.5 multiplies the other cars' rotations the wrong way round:
    # orange is shown others than blue.
    names = sorted(one["name"] for one in found["mismatches"])
    assert names == [f"mirrored: number {n}" for n in (77, 78, 79)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"env": "tools_env:at_once"},
            r"action_delay is \[1, 1\], .* has a delay of 0 .*expected .*\[0, 0\]",
        ),
        ({"env": "tools_env:short"}, r"tick_skip is 8, and .* tools_env:short gives 4 .*repeats=8, or"),
        ({"env": "tools_env:of_two"}, r"2 blue and 2 orange cars.*team_sizes"),
        ({"env": "tools_env:none"}, r'env is "tools_env:none": tools_env has no none'),
        ({"env": "nowhere:build"}, r'env is "nowhere:build": .*nowhere'),
        ({"components": "mine"}, r'env is "tools_env:build" and components "mine", expected one of them'),
    ],
)
def test_an_unfit_environment_is_refused_before_training(
    here: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        train(settings(here, **changes), quiet=True)
    assert not (here / "run" / "checkpoints").exists()


def test_its_bot_plays_with_the_delay_of_its_engine(here: Path) -> None:
    learner = PPOLearner(settings(here, action_delay=[1, 9]))
    assert read_files(learner.save(Checkpoints(here / "run", 1)))[0].action_delay == 1


def fitted(env: str, **given: Any) -> tuple[TrainingSettings, list[str]]:
    return fit_to_environment(check_settings({"env": env, **given}), {"env", *given})


def test_what_settings_leave_open_is_the_environments(here: Path) -> None:
    found, lines = fitted("other_env:of_two", matches=3)
    assert found.team_sizes == (2, 2) and found.tick_skip == 4
    assert found.action_delay == (0, 0) and found.hitbox == "dominus"
    assert found.matches == 3
    assert lines[0] == (
        'taken from other_env:of_two: team_sizes = [2, 2], hitbox = "dominus", action_delay = [0, 0], '
        "tick_skip = 4"
    )
    assert fitted("tools_env:build")[1] == []  # its matches are those of the defaults


def test_settings_that_allow_the_environments_values_stay(here: Path) -> None:
    found, _ = fitted("other_env:of_two", action_delay=[0, 9], team_sizes=[2, 2], hitbox="dominus")
    assert found.action_delay == (0, 9) and found.tick_skip == 4
    assert fitted("other_env:usual_engine", hitbox="plank")[0].hitbox == "plank"  # the mutator names none


def test_all_settings_that_contradict_it_are_told_at_once(here: Path) -> None:
    given = {"tick_skip": 8, "action_delay": [1, 1], "team_sizes": [1, 1], "hitbox": "octane"}
    with pytest.raises(SettingsError) as refused:
        fitted("other_env:of_two", **given)
    assert str(refused.value) == (
        "the matches of other_env:of_two do not fit: team_sizes is [1, 1], expected [2, 2] or no such key; "
        'hitbox is "octane", expected "dominus" or no such key; '
        "action_delay is [1, 1], expected [0, 0] or no such key; tick_skip is 8, expected 4 or no such key"
    )


def test_an_environment_of_several_matches_is_refused(here: Path) -> None:
    with pytest.raises(SettingsError, match=r"it plays 1v1 and 2v2, .* one of these; .*octane, dominus"):
        fitted("other_env:mixed", tick_skip=8)


@pytest.mark.parametrize("env", ["usual_engine", "our_engine", "uneven"])
def test_of_rlgyms_engine_and_ours_nothing_is_said(env: str, here: Path) -> None:
    assert not any("engine" in line for line in fitted(f"other_env:{env}")[1])


@pytest.mark.parametrize("command", ["parity", "import", "train"])
def test_an_engine_of_ones_own_is_said_to_be_left_out(
    command: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "mine.toml").write_text('env = "other_env:of_two"\nactivation = "relu"\nmirror = true\n')
    torch.jit.script(nn.Sequential(nn.Linear(SEEN, 8), nn.ReLU(), nn.Linear(8, 90))).save("script.pt")
    words = {
        "parity": ["--env", "other_env:of_two", "--ticks", "100"],
        "import": ["script.pt", "--activation", "relu", "--env", "other_env:of_two", "--out", "bot"],
        "train": ["mine.toml"],  # mirror does not go with third-party components: it ends before it trains
    }
    bridge([command, *words[command]])
    said = capsys.readouterr().out
    assert (
        said.count("other_env:of_two has an engine of its own, other_env.KickoffsOnGoal, which is left out")
        == 1
    )


@pytest.mark.parametrize("env", [pytest.param("of_two", marks=pytest.mark.slow), "uneven"])
@pytest.mark.usefixtures("short_countdowns")
def test_the_command_that_import_prints_plays_the_bot(
    env: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.jit.script(nn.Sequential(nn.Linear(SEEN, 8), nn.ReLU(), nn.Linear(8, 90))).save("script.pt")
    assert (
        bridge(["import", "script.pt", "--activation", "relu", "--env", f"other_env:{env}", "--out", "bot"])
        == 0
    )
    printed = capsys.readouterr().out.splitlines()[-1].split()
    assert printed[:2] == ["rlgym-bridge", "match"]
    short = ["--pace", "lockstep", "--seconds", "1", "--max-overtime", "0", "-q", "--json", "match.json"]
    assert bridge([*printed[1:], *short]) == 0
    teams = [bot["team"] for bot in json.loads(Path("match.json").read_text())["bots"]]
    assert teams == {"of_two": [0, 0, 1, 1], "uneven": [0, 1, 1]}[env]


@pytest.mark.slow
@pytest.mark.parametrize("env", ["of_two", "usual_engine"])
def test_the_command_that_training_prints_plays_the_bot(
    env: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "mine.toml").write_text(
        f'env = "other_env:{env}"\nout = "run"\ncollectors = 1\nmatches = 2\nrollout_steps = 4\nsteps = 8\n'
    )
    assert bridge(["train", "mine.toml"]) == 0
    printed = capsys.readouterr().out.splitlines()[-1].removeprefix("next: ").split()
    short = ["--pace", "lockstep", "--max-overtime", "0"] if printed[1] == "match" else ["--matches", "2"]
    assert bridge([*printed[1:], *short, "--seconds", "1"]) == 0


GAME = """
import numpy as np
from rlgym.api import RLGym
from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
from rlgym.rocket_league.done_conditions import NoTouchTimeoutCondition
from rlgym.rocket_league.obs_builders import DefaultObs
from rlgym.rocket_league.reward_functions import TouchReward
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence
from rlgym_tools.rocket_league.done_conditions.game_condition import GameCondition
from rlgym_tools.rocket_league.shared_info_providers.scoreboard_provider import ScoreboardProvider
from rlgym_tools.rocket_league.state_mutators.game_mutator import GameMutator
from rlgym_tools.rocket_league.state_mutators.random_scoreboard_mutator import RandomScoreboardMutator


class Lucky(GameMutator):
    def apply(self, state, shared_info):
        shared_info["luck"] = np.random.random()
        super().apply(state, shared_info)


class ScoreObs(DefaultObs):
    def build_obs(self, agents, state, shared_info):
        board = shared_info["scoreboard"]
        seen = [min(board.game_timer_seconds, 600), board.kickoff_timer_seconds, board.blue_score,
                board.orange_score, shared_info.get("luck", 0.5)]
        return {agent: np.append(one, seen) for agent, one in
                super().build_obs(agents, state, shared_info).items()}

    def get_obs_space(self, agent):
        kind, size = super().get_obs_space(agent)
        return kind, size + 5 if size > 0 else size


def build(mutator=None):
    return RLGym(
        MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator(), mutator or Lucky()),
        ScoreObs(zero_padding=None), RepeatAction(LookupTableAction(), 8), TouchReward(), RocketSimEngine(),
        GameCondition(max_overtime_seconds=60), NoTouchTimeoutCondition(30.0), ScoreboardProvider(),
    )


def whole_game():
    env = build()
    env.state_mutator = MutatorSequence(FixedTeamSizeMutator(1, 1), GameMutator())
    return env


def random_scores():
    return build(RandomScoreboardMutator())


def longer():
    return build(GameMutator(game_length_seconds=600.0))
"""


@pytest.fixture
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_module(tmp_path, monkeypatch, "game_env", GAME)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save_game(env: str) -> Manifest:
    return save_policy(
        "bot", random_weights(97, 90), distribution="categorical", team_sizes=[(1, 1)], env=f"game_env:{env}"
    )


@pytest.mark.parametrize("env", ["build", "random_scores", "longer"])
def test_a_policy_that_sees_the_scoreboard_is_saved_and_read(env: str, game: Path) -> None:
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    probe = np.array(save_game(env).probe["observations"])
    # The probe's states have 211 s left at first and 1 : 2 goals, whatever a mutator draws.
    assert (probe[:, -5] <= 211).all() and (probe[:, -5] > 210).all() and (probe[:, -3:-1] == [1, 2]).all()
    load_policy("bot", ["game_env"])
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_the_scoreboard_counts_on_in_training(game: Path) -> None:
    env = VectorEnv(1, component_factory(None, None, "game_env:build", allow=None))
    first = env.reset(0)[0, 0, -5:]
    assert first[:4].tolist() == [300, 5, 0, 0]
    after = env.step(np.full((1, 2), 8)).obs[0, 0, -5:]
    assert after[:4].tolist() == pytest.approx([300, 5 - 8 / 120, 0, 0])


def test_an_environment_of_whole_games_is_imported(game: Path) -> None:
    torch.manual_seed(0)
    save_ppo(game / "5", nn.Sequential(nn.Linear(97, 8), nn.ReLU(), nn.Linear(8, 90)))
    assert bridge(["import", "5", "--env", "game_env:whole_game", "--out", "bot", "-q"]) == 0
    assert load_policy("bot", ["game_env"]).manifest.team_sizes == ((1, 1),)


@pytest.mark.parametrize("env", ["build", "random_scores"])
def test_a_kickoff_of_a_match_shows_its_own_clock_and_score(env: str, game: Path) -> None:
    episode = Episode(PlayerSpec(lambda: Always(), component_factory(None, None, f"game_env:{env}", None)))
    state = blank_state(1, 1, 1)
    KickoffMutator().apply_batch(state, np.random.default_rng(0))
    timer = 5 if env == "build" else 0  # GameMutator's own
    for clock, overtime, score in ((300, 0, (0, 0)), (123, 0, (2, 1)), (4, 1, (2, 2))):
        state.clock[:], state.overtime[:], state.score[:] = clock, overtime, score
        episode.reset(state, [0, 1])
        assert episode.observation is not None
        seen = episode.observation[0, 0, -5:-1].tolist()
        assert seen == [600 if overtime else clock, timer, *score]


def test_components_of_an_episode_are_called_as_rlgym_does() -> None:
    theirs, ours = Log(), Log()

    def parts(log: Log) -> tuple[Any, Any, Any]:
        mutator = MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator())
        kinds = ((mutator, StateMutator), (DefaultObs(None), ObsBuilder), (Counter(), SharedInfoProvider))
        mutator, obs, provider = (noted(component, kind, log) for component, kind in kinds)
        return mutator, obs, provider

    parser, (mutator, obs, provider) = RepeatAction(LookupTableAction(), 8), parts(theirs)
    env: Any = RLGym(mutator, obs, parser, GoalReward(), RocketSimEngine(), shared_info_provider=provider)
    mutator, obs, provider = parts(ours)
    made = Components(obs, parser, provider, state_mutator=mutator)
    episode = Episode(PlayerSpec(lambda: Always(), lambda: made))
    for log in (theirs, ours):
        log.calls.clear()
    env.reset()
    episode.reset(blank_state(1, 1, 1), [0, 1])
    assert ours.names() == theirs.names() == [
        "SharedInfoProvider.create", "StateMutator.apply", "SharedInfoProvider.set_state", "ObsBuilder.reset",
        "ObsBuilder.build_obs",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_bot_that_sees_the_scoreboard_trains_and_plays(game: Path, caplog: Any) -> None:
    checkpoint = train(settings(game, env="game_env:build"), quiet=True).checkpoint
    words = ["--blue", str(checkpoint), "--orange", "chaser", "--allow-modules", "game_env"]
    play = ["--pace", "lockstep", "--seconds", "2", "--max-overtime", "0", "--json", "match.json", "-q"]
    assert bridge(["match", *words, *play]) == 0
    found = json.loads((game / "match.json").read_text())
    assert "failed" not in json.dumps(found)
    assert bridge(["parity", "--env", "game_env:build", "--ticks", "500", "-q"]) == 0


def test_an_environments_run_has_its_own_folder(
    here: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (here / "mine.toml").write_text(
        'env = "other_env:of_two"\ncollectors = 2\nmatches = 2\nrollout_steps = 4\nsteps = 8\n'
    )
    assert bridge(["train", "mine.toml"]) == 0
    said = capfd.readouterr()
    assert "no out in them: the run is runs/other_env-of_two" in said.out
    assert (here / "runs" / "other_env-of_two" / "checkpoints").is_dir()
    assert not (here / "runs" / "1v1").exists()
    assert (said.err + caplog.text).count("called match by match") == 1
