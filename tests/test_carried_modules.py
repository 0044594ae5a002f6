"""A policy folder carries the user's own modules, and plays with them where the user allows it by name."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rlgym_bridge import ComponentSpec
from rlgym_bridge.cli import main
from rlgym_bridge.policy.carried_modules import CARRIED_FOLDER, carried_names, use_carried
from rlgym_bridge.project.bot_description import ProjectError
from rlgym_bridge.project.first_start import start_once
from rlgym_bridge.user_input.own_modules import read_own_sources
from tests.support.policy_folders import make_module, save
from tests.support.processes import run_to_end

PARTS = """
import own_pack.inner
from own_scale import SCALE
from rlgym_bridge import DefaultObs


class Scaled(DefaultObs):
    def build_batch(self, *given):
        return super().build_batch(*given) * SCALE
"""
PLAY = (
    "import sys; from rlgym_bridge import load_policy; policy = load_policy(sys.argv[1], sys.argv[2:]); "
    "import own_scale; print(own_scale.SCALE)"
)
CARRIED = ("carried:own_parts", "carried:own_scale", "carried:own_pack")


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy of the current folder's own_parts, whose scale was 0.5 and has since become 0.25."""
    (tmp_path / "own_pack").mkdir()
    for name, text in (("__init__", ""), ("inner", "from . import deep"), ("deep", ""), ("unused", "")):
        (tmp_path / "own_pack" / f"{name}.py").write_text(f"{text}\n")
    (tmp_path / "own_scale.py").write_text("SCALE = 0.5\n")
    make_module(tmp_path, monkeypatch, "own_parts", PARTS)
    monkeypatch.chdir(tmp_path)
    from own_parts import Scaled

    save(tmp_path / "policy", obs=ComponentSpec.of(Scaled, zero_padding=None))
    (tmp_path / "own_scale.py").write_text("SCALE = 0.25\n")
    return tmp_path / "policy"


def play(policy: Path, *allowed: str) -> str:
    """Load a policy in the current folder, in a process of its own; return what it says."""
    done = run_to_end([sys.executable, "-c", PLAY, str(policy), *allowed])
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def bridge(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder, in a process of its own."""
    return run_to_end([sys.executable, "-m", "rlgym_bridge.cli", *words], cwd=folder, seconds=120)


def test_a_policy_carries_the_modules_of_its_components(policy: Path) -> None:
    folder = policy / CARRIED_FOLDER
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*.py")}
    own_pack = {f"own_pack/{name}.py" for name in ("__init__", "inner", "deep")}
    assert files == {"own_parts.py", "own_scale.py"} | own_pack
    assert (folder / "own_scale.py").read_text() == "SCALE = 0.5\n"
    assert carried_names(policy) == ["own_pack", "own_parts", "own_scale"]


def test_a_policy_of_the_standard_components_carries_none(tmp_path: Path) -> None:
    save(tmp_path)
    assert not (tmp_path / CARRIED_FOLDER).exists() and carried_names(tmp_path) == []


def test_only_copies_that_the_user_names_play(policy: Path) -> None:
    said = play(policy, "own_parts")  # which has changed
    assert "does not fit your own_parts:Scaled: 92 elements of the observation changed" in said
    assert said.endswith("--allow-modules carried:own_pack carried:own_parts carried:own_scale.")
    assert "does not fit" in play(policy, "carried:own_parts")  # own_scale is the user's, and has changed
    assert play(policy, *CARRIED) == "0.5"


def test_nothing_that_a_policy_carries_is_imported_unnamed(policy: Path, tmp_path: Path) -> None:
    for name in ("numpy", "json", "own_parts"):
        (policy / CARRIED_FOLDER / f"{name}.py").write_text("raise SystemExit('it was run')")
    (tmp_path / "own_scale.py").write_text("SCALE = 0.5\n")
    assert play(policy, "own_parts") == "0.5"
    assert "it was run" not in play(policy, "carried:own_scale")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("carried:numpy", "numpy is an installed package, expected a module of the policy"),
        ("carried:gone", "importing it would run code of own_parts"),
        ("carried:../own_parts", "importing it would run code of own_parts"),
        ("carried:", "importing it would run code of own_parts"),
    ],
)
def test_a_copy_that_cannot_be_used_is_refused(name: str, message: str, policy: Path) -> None:
    (policy / CARRIED_FOLDER / "numpy.py").write_text("")
    assert message in play(policy, name)


def test_a_process_uses_one_copy_of_a_module(policy: Path, tmp_path: Path) -> None:
    other = shutil.copytree(policy, tmp_path / "other")
    code = (
        "import sys; from rlgym_bridge.policy.carried_modules import use_carried; from pathlib import Path; "
        "[use_carried(Path(one), ['carried:own_scale']) for one in sys.argv[1:]]"
    )
    command = [sys.executable, "-c", code, str(policy), str(other)]
    assert run_to_end(command).returncode == 0
    (other / CARRIED_FOLDER / "own_scale.py").write_text("SCALE = 2\n")
    assert "differs from one that this process has imported" in run_to_end(command).stderr
    with pytest.raises(ValueError, match=r"this process has imported own_scale from .*own_scale.py already"):
        use_carried(policy, ["carried:own_scale"])


@pytest.mark.usefixtures("short_countdowns")
def test_a_match_plays_with_the_copies(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["match", "--blue", str(policy), "--orange", "chaser", "--pace", "lockstep", "--seconds", "1"]
    assert main([*words, "--max-overtime", "0", "--allow-modules", *CARRIED]) == 0
    assert main([*words, "--allow-modules", "own_parts"]) == 1
    assert "--allow-modules carried:own_pack carried:own_parts" in capsys.readouterr().err


def test_a_package_takes_the_copies_along(policy: Path, tmp_path: Path) -> None:
    words = ["package", str(policy), "--name", "Old", "--author", "Me", "--out", str(tmp_path / "old"), "-q"]
    done = run_to_end([sys.executable, "-m", "rlgym_bridge.cli", *words, "--allow-modules", *CARRIED])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "old" / "own_scale.py").read_text() == "SCALE = 0.5\n"
    assert 'allow_modules=("own_parts",)' in (tmp_path / "old" / "bot.py").read_text().replace("'", '"')


def test_held_sources_stay_as_they_were(policy: Path, tmp_path: Path) -> None:
    (tmp_path / "own_held.py").write_text("1\n")
    assert read_own_sources(["own_held"]) == {"own_held.py": b"1\n"}
    (tmp_path / "own_held.py").write_text("2\n")
    assert read_own_sources(["own_held"], hold=True) == {"own_held.py": b"2\n"}
    (tmp_path / "own_held.py").write_text("3\n")
    assert read_own_sources(["own_held", "numpy", "json"]) == {"own_held.py": b"2\n"}


def test_a_module_that_cannot_be_read_is_not_carried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_module(tmp_path, monkeypatch, "own_broken", "def (")
    assert read_own_sources(["own_broken"]) == {}
    assert "carries no copy of your modules" in caplog.text and "own_broken.py, line 1" in caplog.text


def test_a_run_goes_on_with_the_modules_that_it_carries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bot = (
        "from rlgym_bridge import ComponentSpec, DefaultObs\nSCALE = 0.5\nclass Scaled(DefaultObs):\n"
        "    def build_batch(self, *given):\n        return super().build_batch(*given) * SCALE\n"
        "def obs(settings):\n    return ComponentSpec.of(Scaled, zero_padding=None)\n"
    )
    few = "collectors = 1\nmatches = 2\nrollout_steps = 8\nminibatch = 32\nthreads = 1\n"
    (tmp_path / "own_bot.py").write_text(bot)
    (tmp_path / "train.toml").write_text(f'components = "own_bot"\nout = "run"\ncheckpoint_every = 32\n{few}')

    monkeypatch.chdir(tmp_path)
    assert main(["train", "-q", "--steps", "32"]) == 0
    (tmp_path / "own_bot.py").write_text(bot.replace("0.5", "0.25"))
    del sys.modules["own_bot"]
    assert main(["train", "-q", "--steps", "64", "--resume"]) == 2
    refused = capsys.readouterr().err
    assert "does not fit what is to be trained: 92 elements" in refused
    assert refused.endswith("--allow-modules carried:own_bot\n")
    words = ["train", "--steps", "64", "--resume", "--allow-modules", "carried:own_bot"]
    del sys.modules["own_bot"]
    assert main(words) == 0
    said = capsys.readouterr().out
    code = f"own_bot: the code is that of the run ({Path('run/checkpoints/32') / CARRIED_FOLDER})"
    assert f"{code}, not of your own modules of these names" in said.splitlines()
    assert "SCALE = 0.5" in (tmp_path / "run/checkpoints/64" / CARRIED_FOLDER / "own_bot.py").read_text()


def test_training_takes_copies_of_a_resumed_run_alone(
    policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(policy, tmp_path / "run" / "checkpoints" / "8")
    words = ["train", "-q", "--out", "run", "--allow-modules"]
    assert main([*words, "carried:own_parts"]) == main([*words, "own_parts", "--resume"]) == 2
    said = capsys.readouterr().err
    assert "expected --resume with it: a new run takes your own modules" in said
    assert "checkpoints/8 carries: carried:own_pack, carried:own_parts, carried:own_scale" in said


def test_names_that_no_module_has_are_not_advised(policy: Path) -> None:
    for name in ("x; touch it #.py", "$(touch it)", "two\nlines.py"):
        (policy / CARRIED_FOLDER / name).mkdir()
    assert carried_names(policy) == ["own_pack", "own_parts", "own_scale"]
    (policy / CARRIED_FOLDER / "own_link").symlink_to("/")
    assert use_carried(policy, ["carried:own_link"]) == ()


def test_modules_that_reach_no_bot_are_refused(
    policy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("match.toml").write_text("")
    assert main(["match", "--allow-modules", "carried:own_parts"]) == 2
    assert "expected policies or runs with it, such as --blue runs/mine" in capsys.readouterr().err


def test_elsewhere_a_run_plays_with_the_copies_alone(policy: Path, tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "runs" / "mine", tmp_path / "elsewhere"
    shutil.copytree(policy, run / "checkpoints" / "8")
    (run / "run.toml").write_text('modules = ["own_parts"]\n')
    elsewhere.mkdir()
    words = ["evaluate", str(run), "chaser", "--matches", "2", "--seconds", "1", "-q"]

    def evaluate(*more: str) -> str:
        command = [sys.executable, "-P", "-m", "rlgym_bridge.cli", *words, *more]
        return run_to_end(command, cwd=elsewhere, seconds=120).stderr

    assert "if you trust it: --allow-modules carried:own_parts" in evaluate()
    assert evaluate("--allow-modules", *CARRIED) == ""


@pytest.fixture
def run(policy: Path, tmp_path: Path) -> Path:
    """The same folder with a run of two checkpoints that are this policy."""
    for steps in ("8", "16"):
        shutil.copytree(policy, tmp_path / "run" / "checkpoints" / steps)
    return tmp_path / "run"


def test_a_mean_of_policies_carries_their_modules(run: Path, policy: Path, tmp_path: Path) -> None:
    assert main(["average", "run", "--out", "made", "-q"]) == 0
    assert carried_names(tmp_path / "made") == carried_names(policy)
    assert (tmp_path / "made" / CARRIED_FOLDER / "own_scale.py").read_text() == "SCALE = 0.5\n"
    assert play(tmp_path / "made", *CARRIED) == "0.5"


def test_a_mean_is_made_only_with_modules_that_fit(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["average", "run", "--out", "made", "--allow-modules"]
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]  # the scale has changed since
    assert main([*words, "own_parts"]) == 2
    assert "does not fit your own_parts:Scaled" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()
    assert bridge(tmp_path, *words, *CARRIED).returncode == 0
    assert (tmp_path / "made" / "policy.json").is_file()


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_folder_is_no_place_for_copies(
    kind: str, run: Path, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(policy, tmp_path / "made")
    shutil.rmtree(tmp_path / "made" / CARRIED_FOLDER)
    if kind == "file":
        (tmp_path / "made" / CARRIED_FOLDER).write_text("mine")
    else:
        (tmp_path / "made" / CARRIED_FOLDER).symlink_to(policy)
    before = (tmp_path / "made" / "policy.json").read_bytes()
    said = f"{CARRIED_FOLDER} is a {kind}, expected a folder with copies of your modules, or nothing: move it"
    assert main(["average", "run", "--out", "made", "-q"]) == 2  # before anything is written
    assert said in capsys.readouterr().err
    assert (tmp_path / "made" / "policy.json").read_bytes() == before
    with pytest.raises(ValueError, match=said):
        use_carried(tmp_path / "made", ["carried:own_parts"])
    assert use_carried(tmp_path / "made", ["own_parts"]) == ("own_parts",)  # needs no copies
    shutil.rmtree(run / "checkpoints" / "16")
    (tmp_path / "made").rename(run / "checkpoints" / "16")
    assert main(["average", "run", "--out", "new", "-q"]) == 2  # copies are not left out silently
    assert said in capsys.readouterr().err


def test_a_program_is_told_how_to_allow_a_module(policy: Path, tmp_path: Path) -> None:
    (tmp_path / "own_scale.py").write_text("SCALE = 0.5\n")  # as the policy was trained with
    program = tmp_path / "my_bot.py"
    text = "import sys\nfrom rlgym_bridge import play\nsys.exit(play('policy', agent_id='me/it'{}))\n"

    def start(more: str) -> None:
        program.write_text(text.format(more))
        start_once(tmp_path, "me/it", [sys.executable, program.name])

    with pytest.raises(ProjectError) as refused:
        start("")
    said = str(refused.value)
    assert "my_bot.py allows no module; if you trust own_parts, write play(..., " in said
    assert "--allow-modules" not in said  # no command line reaches this program
    advised = said.partition("play(..., ")[2].partition(" there")[0].removesuffix(")")
    start(f", {advised}")  # and it connects
