"""Modules of users: found where the user is told to put them, and nowhere else."""

import sys
from pathlib import Path

import pytest

from rlgym_bridge import ComponentSpec
from rlgym_bridge.components.spec import component_factory
from rlgym_bridge.user_input.user_modules import explain_not_found
from tests.support.foreign_checkpoints import network, save_ppo
from tests.support.policy_folders import save
from tests.support.processes import run_to_end
from tests.support.short_waits import SOON

PROGRAM = [sys.executable, "-P", "-c", "import sys; from rlgym_bridge.cli import main; sys.exit(main())"]
"""`rlgym-bridge`, as the script of an installed package runs it: without the current folder."""

PARTS = "from rlgym_bridge import DefaultObs\n\n\nclass Mine(DefaultObs):\n    pass\n"
ENV = """
from my_sibling import *
from rlgym.api import RLGym
from rlgym.rocket_league.sim import RocketSimEngine
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence
from rlgym_bridge import LookupTableAction, RepeatAction
from rlgym_bridge.components.conditions import GoalCondition
from rlgym_bridge.components.rewards import TouchReward


def build():
    return RLGym(
        state_mutator=MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator()), obs_builder=Mine(),
        action_parser=RepeatAction(LookupTableAction(), 8), reward_fn=TouchReward(),
        transition_engine=RocketSimEngine(), termination_cond=GoalCondition(),
    )
"""
SPOILER = (
    "from pathlib import Path\nPath(__file__).with_name('was_run').touch()\nraise SystemExit('was run')\n"
)


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A policy folder with files that have the names of packages."""
    folder = tmp_path / "stranger"
    save(folder)
    for name in ("safetensors", "numpy", "msgspec", "rlgym_bridge", "training", "my_parts"):
        (folder / f"{name}.py").write_text(SPOILER)
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of the user and a policy that names it."""
    (tmp_path / "my_parts.py").write_text(PARTS)
    (tmp_path / "my_sibling.py").write_text(PARTS)
    (tmp_path / "my_env.py").write_text(ENV)
    monkeypatch.syspath_prepend(tmp_path)
    import my_parts

    save(tmp_path / "policy", obs=ComponentSpec.of(my_parts.Mine, zero_padding=None))
    return tmp_path


def run(folder: Path, *words: str, code: int = 0) -> str:
    program = [*PROGRAM[:-1], SOON] if words[0] == "match" else PROGRAM
    done = run_to_end([*program, *words], cwd=folder, seconds=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


MATCH = ("match", "--orange", "chaser", "--pace", "lockstep", "--seconds", "1", "--max-overtime", "0")
SHORT = ("--seconds", "1", "--matches", "2", "--processes", "1")


def test_nothing_in_the_folder_of_a_strangers_policy_runs(stranger: Path) -> None:
    run(stranger, *MATCH, "--blue", ".")
    run(stranger, "parity", "--obs", "my_parts:Mine", code=2)  # it is not searched for modules
    assert not (stranger / "was_run").exists()


@pytest.mark.parametrize(
    "words",
    [
        (*MATCH, "--blue", "policy", "--allow-modules", "my_parts"),
        pytest.param(
            ("evaluate", "policy", "chaser", *SHORT, "--allow-modules", "my_parts"), marks=pytest.mark.slow
        ),
        ("parity", "--policy", "policy", "--ticks", "200", "--allow-modules", "my_parts"),
        ("parity", "--env", "my_env:build", "--ticks", "200"),
        pytest.param(("parity", "--obs", "my_parts:Mine", "--ticks", "200"), marks=pytest.mark.slow),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_module_that_is_named_is_found_in_the_current_folder(here: Path, words: tuple[str, ...]) -> None:
    (here / "safetensors.py").write_text(SPOILER)
    run(here, *words)
    assert not (here / "was_run").exists()


def test_a_module_beside_settings_is_loaded_from_anywhere(here: Path, tmp_path_factory) -> None:
    (here / "my_bot.py").write_text(
        "from rlgym_bridge.training.components import *\nfrom my_parts import Mine\n"
        "def obs(settings):\n    raise RuntimeError(f'{Mine.__module__} is here')\n"
    )
    (here / "numpy.py").write_text(SPOILER)
    (here / "my.toml").write_text('components = "my_bot"\n')
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert "my_parts is here" in run(elsewhere, "train", str(here / "my.toml"), "--out", "run", "-q", code=2)
    assert not (here / "was_run").exists()


def test_an_installed_package_comes_before_a_file_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "safetensors.py").write_text(SPOILER)
    code = (
        "from rlgym_bridge.user_input.user_modules import import_user_module; "
        f"print(import_user_module('safetensors', [{str(tmp_path)!r}]).__file__)"
    )
    done = run_to_end([sys.executable, "-c", code], check=True)
    assert str(tmp_path) not in done.stdout


def test_folders_are_searched_in_the_order_they_are_given(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "numbered.py").write_text(f"import beside_{number}\nnumber = {number}\n")
        (tmp_path / str(number) / f"beside_{number}.py").write_text("")
    code = (
        "from rlgym_bridge.user_input.user_modules import import_user_module; "
        f"print(import_user_module('numbered', [{str(tmp_path / '2')!r}, {str(tmp_path / '1')!r}]).number)"
    )
    assert run_to_end([sys.executable, "-c", code], check=True).stdout.strip() == "2"


LATE_ENV = ENV.replace("from my_sibling import *", "from my_sibling import Mine").replace(
    "def build():", "def build():\n    from training{} import MyReward"
).replace("TouchReward(),", "MyReward(),").replace("Mine(),", "Mine(zero_padding=None),")  # fmt: skip
REWARDS = (
    "from rlgym_bridge.components.rewards import TouchReward\n\n\nclass MyReward(TouchReward):\n    pass\n"
)
FEW = (
    'env = "my_late_env:build"\nout = "run"\ncollectors = 1\nmatches = 2\nrollout_steps = 8\nsteps = 30\n'
    "policy_layers = [16]\ncritic_layers = [16]\n"
)


@pytest.fixture(params=["package", pytest.param("file", marks=pytest.mark.slow)])
def with_training(request: pytest.FixtureRequest, here: Path) -> Path:
    """A folder with a `training` of the user, which his environment imports as late as in `build`."""
    if request.param == "package":
        (here / "training").mkdir()
        (here / "training" / "__init__.py").touch()
        (here / "training" / "rewards.py").write_text(REWARDS)
    else:
        (here / "training.py").write_text(REWARDS)
    (here / "my_late_env.py").write_text(LATE_ENV.format(".rewards" if request.param == "package" else ""))
    (here / "train.toml").write_text(FEW)
    return here


def test_a_users_own_training_is_imported_in_every_process(with_training: Path) -> None:
    run(with_training, "train", "-q")
    run(with_training, "evaluate", "run", "chaser", *SHORT)
    run(with_training, *MATCH, "--blue", "run")


@pytest.mark.slow  # train, evaluate and match find it in the test above
def test_a_users_own_training_is_imported_by_parity_and_import(with_training: Path) -> None:
    run(with_training, "parity", "--env", "my_late_env:build", "--ticks", "200")
    checkpoint = save_ppo(with_training / "theirs", network(90))
    run(with_training, "import", str(checkpoint), "--env", "my_late_env:build", "--out", "bot")


def test_a_users_training_changes_no_other_command(here: Path) -> None:
    (here / "training.py").write_text(SPOILER)
    (here / "train.toml").write_text(FEW.replace('env = "my_late_env:build"\n', ""))
    run(here, "train", "-q")
    run(here, "evaluate", "run", "chaser", *SHORT)
    assert not (here / "was_run").exists()


@pytest.mark.parametrize("module", ["rlgym_bridge.training", "rlgym_bridge.cli"])
def test_python_m_runs_no_file_of_the_current_folder(module: str, tmp_path: Path) -> None:
    standard = ("json", "typing", "argparse", "logging", "difflib", "tomllib", "pathlib", "dataclasses")
    for name in ("numpy", "random", "rlgym", "rich", *standard):
        (tmp_path / f"{name}.py").write_text(SPOILER)
    done = run_to_end([sys.executable, "-m", module, "--help"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "was_run").exists()


def test_a_module_that_is_there_and_not_found_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_other_parts.py").write_text(PARTS)
    with pytest.raises(ValueError, match=r"my_other_parts.py is there, but .* set PYTHONPATH to it"):
        component_factory(None, None, "my_other_parts:build", allow=None)
    with pytest.raises(ValueError, match=r"rlgym is /.*, expected my_env in it; rename another rlgym"):
        component_factory(None, None, "rlgym.my_env:build", allow=None)
    monkeypatch.delitem(sys.modules, "training", raising=False)
    assert explain_not_found("training.rewards") == (
        f"expected it in the current folder or on PYTHONPATH; the current folder is {tmp_path}; "
        "this project's own is rlgym_bridge.training"
    )
    Path("policy.json").write_text("{}")
    with pytest.raises(ValueError, match=r"my_other_parts.py is not used: .* of a policy or a run"):
        component_factory(None, None, "my_other_parts:build", allow=None)
    with pytest.raises(ValueError, match="in another current folder: this one is of a policy or a run"):
        component_factory(None, None, "not_there_at_all:f", None)
