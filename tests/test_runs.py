"""A run's policies may use the modules that the user's project names; a policy folder may use none."""

import shutil
import sys
from pathlib import Path

import pytest

from rlgym_bridge.cli import main
from rlgym_bridge.policy.run_modules import RUN_FILE, run_modules, write_run_modules
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.settings import check_settings
from tests.support.policy_folders import save
from tests.support.processes import run_to_end


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with two checkpoints, of which the file `latest` names the first."""
    run = tmp_path / "run"
    for steps in ("5", "10"):
        save(run / "checkpoints" / steps)
    (run / "checkpoints" / "latest").write_text("5\n")
    write_run_modules(run, ["my_bot", "my_parts", "json"])
    return run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's project, the current folder: its settings name my_bot, which imports my_parts."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "mine.toml").write_text('components = "my_bot"\n')
    (project / "my_bot.py").write_text("import json\nimport my_parts\n")
    (project / "my_parts.py").write_text("")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(project)
    return project


@pytest.mark.parametrize("name", ["", "checkpoints", "checkpoints/latest", "checkpoints/5", "checkpoints/10"])
def test_a_run_may_use_what_the_users_project_names(name: str, run: Path, project: Path) -> None:
    assert run_modules(run / name) == run_modules(str(run / name)) == ("my_bot", "my_parts")


def test_a_runs_own_word_allows_nothing(run: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "mine.toml").unlink()
    assert run_modules(run) == ()
    (project / "mine.toml").write_text("components = 3\n")
    assert run_modules(run) == ()
    shutil.copy(run / RUN_FILE, project)  # a folder of a run, whose settings may come from anybody
    (project / "mine.toml").write_text('components = "my_bot"\n')
    assert run_modules(run) == ()
    (project / RUN_FILE).unlink()
    (run / RUN_FILE).unlink()  # as older runs have none
    assert run_modules(run) == ()


def test_a_projects_environment_is_allowed_by_its_function(run: Path, project: Path) -> None:
    (project / "train.toml").write_text('env = "json:loads"\n')
    assert run_modules(run) == ("my_bot", "json:loads", "json", "my_parts")


def test_a_policy_folder_is_trusted_with_nothing(run: Path, project: Path) -> None:
    policy = run.parent / "policy"
    shutil.copytree(run / "checkpoints" / "5", policy)
    assert run_modules(policy) == ()
    shutil.copytree(run, policy, dirs_exist_ok=True)
    assert (policy / RUN_FILE).exists() and run_modules(policy) == ()
    assert run_modules(policy / "checkpoints" / "5") == ()  # in a policy folder, not in a run
    shutil.copytree(policy, run / "averaged")
    assert run_modules(run / "averaged") == ()


@pytest.mark.parametrize("name", ["chaser", "nothing/there", "run/checkpoints/7", "run/progress.csv"])
def test_what_is_no_run_is_trusted_with_nothing(name: str, run: Path) -> None:
    assert run_modules(run.parent / name) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modules =", "run.toml cannot be read"),
        ("modules = 'os'", "modules is 'os', expected a list of names"),
    ],
)
def test_a_broken_file_of_a_run_is_named(
    text: str, message: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / RUN_FILE).write_text(text)
    with pytest.raises(ValueError, match=message):
        run_modules(run)
    assert main(["match", "--blue", str(run), "--orange", "chaser"]) == 2
    assert message in capsys.readouterr().err


def test_modules_are_not_looked_for_in_the_folder_of_a_run(run: Path) -> None:
    stranger = "my_parts:SpeedObs"
    for checkpoint in (run / "checkpoints").glob("*/policy.json"):
        text = checkpoint.read_text().replace("rlgym_bridge:DefaultObs", stranger)
        checkpoint.write_text(text)
        for folder in (run, run / "checkpoints", checkpoint.parent):
            (folder / "my_parts.py").write_text("raise SystemExit('it was run')")
    command = [sys.executable, "-m", "rlgym_bridge.cli", "evaluate", str(run), "chaser", "--matches", "2"]
    done = run_to_end(command, seconds=120)
    assert done.returncode == 2
    assert f"the policy names {stranger}, and importing it would run code" in done.stderr
    done = run_to_end([*command, "--allow-modules", "my_parts"], cwd=run, seconds=120)
    assert done.returncode == 2
    assert f"my_parts (for {stranger}) cannot be imported" in done.stderr


def test_a_run_names_the_modules_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "named_parts.py").write_text(
        "from rlgym_bridge import LookupTableAction\n\n\nclass Mine(LookupTableAction):\n    pass\n"
    )
    (tmp_path / "named_bot.py").write_text(
        "from rlgym_bridge import ComponentSpec, RepeatAction\n"
        "from rlgym_bridge.training.components import *\nimport named_parts\n\n\n"
        "def parser(settings):\n"
        "    return ComponentSpec.of(RepeatAction, ComponentSpec.of(named_parts.Mine), repeats=8)\n"
    )
    assert Task(check_settings({"components": "named_bot"})).modules() == ["named_bot", "named_parts"]
    assert Task(check_settings({})).modules() == ["rlgym_bridge.training.components"]


@pytest.mark.parametrize("module", ["strangers_pack", "strangers_pack.run.evil"])
def test_a_module_that_came_with_the_run_is_refused(
    module: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = tmp_path / "given" / "strangers_pack"
    shutil.copytree(run, pack / "run")
    for folder in (pack, pack / "run"):
        (folder / "evil.py").write_text("raise SystemExit('it was run')")
    write_run_modules(pack / "run", [module])
    (pack.parent / "train.toml").write_text(f'components = "{module}"\n')
    monkeypatch.chdir(pack.parent)
    monkeypatch.syspath_prepend(pack.parent)
    with pytest.raises(ValueError, match=rf"{module} would be imported from .*, which came with the run"):
        run_modules("strangers_pack/run")


def test_a_dangling_link_makes_no_run_of_a_policy_folder(run: Path) -> None:
    (run / "policy.json").symlink_to(run / "nowhere")
    assert run_modules(run) == ()
