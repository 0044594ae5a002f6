"""A packaged bot has all that RLBot and its botpack want, is true of its policy, and starts without torch."""

import ast
import base64
import errno
import hashlib
import json
import shlex
import struct
import sys
import tomllib
import zipfile
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import psutil
import pytest
from packaging.requirements import Requirement

from rlgym_bridge import ComponentSpec, LookupTableAction, RepeatAction, TeamObs, save_policy
from rlgym_bridge.cli import main
from rlgym_bridge.policy.files import read_files
from rlgym_bridge.project.bot_description import ProjectError
from rlgym_bridge.project.first_start import start_once
from rlgym_bridge.project.new_project import new_project
from rlgym_bridge.project.package_bot import PackagedBot, PackagePlan, make_bot, pack_wheel, write_bot
from rlgym_bridge.server.bot_files import read_bot
from tests.support.policy_folders import make_module, random_weights, save
from tests.support.processes import run_to_end
from tests.support.simulators import needs_native
from tools.package_and_play import package_and_play

FILES = {
    ".gitignore", "LICENSE", "README.md", "bob.toml", "bot.py", "bot.spec", "bot.toml", "loadout.toml",
    "logo.png", "policy/fingerprint.json", "policy/policy.json", "policy/weights.safetensors",
    "requirements.txt",
}  # fmt: skip
FILES |= pack_wheel("rocketsim_batch").keys()  # none where it is not installed


def package(*words: str) -> int:
    return main(["package", *words, "-q"])


def files_in(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a policy for 1v1 in `trained`."""
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "trained")
    return tmp_path


@pytest.fixture
def own_parts(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same with a module `parts` that the policy names, which imports a package beside it."""
    (here / "more").mkdir()
    (here / "more" / "__init__.py").write_text("")
    (here / "more" / "scale.py").write_text("def scale():\n    import torch\n    return 1.0\n")
    text = "from more.scale import scale\nfrom rlgym_bridge import RelativeObs\n"
    text += "class Parts(RelativeObs):\n    pass\n"
    make_module(here, monkeypatch, "parts", text)
    import parts

    spec = ComponentSpec.of
    save(
        here / "trained", obs=spec(parts.Parts, zero_padding=None), weights=random_weights(113, 32, 90),
        parser=spec(RepeatAction, spec(LookupTableAction), repeats=8),
    )  # fmt: skip
    return here


def made(policy: Path, name: str = "ace", author: str = "me", **others: Any) -> PackagedBot:
    return make_bot(PackagePlan(policy, name, author, **others))


def text_of(bot: PackagedBot, file: str) -> str:
    return bot.files[file].decode()


@pytest.mark.parametrize("name", ["ace", """it's "a" \\ bot""", "Çelik / №1"])
def test_every_name_makes_files_that_rlbot_reads(name: str, here: Path) -> None:
    bot = made(here / "trained", name, """O'Neill "Jo" \\""", hivemind=name == "ace")
    assert set(bot.files) == FILES
    write_bot(bot, here / "bot")
    read = read_bot(here / "bot" / "bot.toml", 0, "", None).variety
    assert (read.name, read.hivemind, read.loadout.car_id) == (name, name == "ace", 23)
    assert read.agent_id == bot.agent_id and bot.agent_id.startswith("o-neill-jo/")
    assert tomllib.loads(text_of(bot, "bot.toml"))["details"]["developer"] == """O'Neill "Jo" \\"""
    assert f'agent_id="{bot.agent_id}"' in text_of(bot, "bot.py")
    for file in ("bot.py", "bot.spec"):
        ast.parse(text_of(bot, file))
    assert "\\" not in text_of(bot, "bot.spec")  # the botpack's builder turns them into slashes
    (config,) = tomllib.loads(text_of(bot, "bob.toml"))["config"]
    assert config["bot_configs"] == ["bot.toml"] and "/" not in config["project_name"]
    assert config["builder_config"] == {"builder_type": "pyinstaller", "entry_file": "bot.spec"}
    settings = tomllib.loads(text_of(bot, "bot.toml"))["settings"]
    assert '"' not in settings["run_command_linux"] + settings["run_command"]  # core quotes the whole of it
    assert shlex.split(settings["run_command_linux"])[-2:] == ["bot.py;", "fi"]
    logo = bot.files["logo.png"]
    assert logo.startswith(b"\x89PNG\r\n\x1a\n") and struct.unpack(">II", logo[16:24]) == (400, 300)


@pytest.mark.parametrize(
    ("sizes", "tags"),
    [
        ([(1, 1)], ["1v1"]), ([(2, 2)], ["teamplay"]), ([(1, 1), (3, 3)], ["1v1", "teamplay"]),
        ([(1, 2)], []), ([(1, 0)], []),
    ],
)  # fmt: skip
def test_tags_are_the_team_sizes_that_the_policy_plays(sizes: list, tags: list[str], here: Path) -> None:
    obs = TeamObs()
    spec = ComponentSpec.of
    save_policy(
        here / "team", random_weights(obs.get_obs_space("blue-0")[1], 8, 90), distribution="categorical",
        team_sizes=sizes, obs=spec(TeamObs), parser=spec(RepeatAction, spec(LookupTableAction), repeats=8),
    )  # fmt: skip
    assert tomllib.loads(text_of(made(here / "team"), "bot.toml"))["details"]["tags"] == tags


def test_the_match_to_play_next_has_the_cars_of_training(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(here / "team", team_sizes=[(2, 2)], weights=random_weights(132, 32, 90))
    assert main(["package", "team", "--name", "Pair", "--author", "A", "--out", "out"]) == 0
    played = "match --blue out/bot.toml out/bot.toml --orange chaser chaser --pace lockstep\n"
    assert played in capsys.readouterr().out


def test_the_car_has_the_hitbox_of_training(here: Path) -> None:
    save(here / "flat", hitbox="dominus")
    write_bot(made(here / "flat"), here / "bot")
    assert read_bot(here / "bot" / "bot.toml", 1, "", None).variety.loadout.car_id == 403


def test_a_policy_has_the_same_id_again_and_others_another(here: Path) -> None:
    save(here / "other", weights=random_weights(92, 32, 90, seed=1))
    ids = [made(here / policy).agent_id for policy in ("trained", "trained", "other")]
    assert ids[0] == ids[1] != ids[2]


def test_packages_that_own_modules_import_are_required(own_parts: Path) -> None:
    (own_parts / "more" / "__init__.py").write_text("import rlgym_tools, json, numpy\n")
    lines = text_of(made(own_parts / "trained", modules=["parts"]), "requirements.txt").splitlines()
    names = [line.partition("==")[0] for line in lines[1:] if not line.startswith("./")]
    assert names == ["rlgym-bridge[rlgym]", "rlbot", "rlgym_tools"]


WHEEL_NAME = "rocketsim_batch-9.8-cp310-abi3-win_amd64.macosx_11_0_arm64.whl"


def install(folder: Path, file: str) -> None:
    """Lay out a distribution `rocketsim_batch`, with one file of a name, as pip does."""
    (folder / "rocketsim_batch" / "__pycache__").mkdir(parents=True)
    (folder / "rocketsim_batch-9.8.dist-info").mkdir()
    about = "rocketsim_batch-9.8.dist-info/"
    tags = "Tag: cp310-abi3-win_amd64\nTag: cp310-abi3-macosx_11_0_arm64\n"
    texts = {
        f"rocketsim_batch/{file}": "compiled", "rocketsim_batch/__init__.py": "", f"{about}INSTALLER": "pip",
        "rocketsim_batch/__pycache__/__init__.cpython-311.pyc": "old", f"{about}direct_url.json": "{}",
        f"{about}METADATA": "Metadata-Version: 2.4\nName: rocketsim-batch\nVersion: 9.8\n",
        f"{about}WHEEL": f"Wheel-Version: 1.0\n{tags}",
    }  # fmt: skip
    for path, text in texts.items():
        (folder / path).write_text(text)
    (folder / about / "RECORD").write_text("".join(f"{path},,\n" for path in (*texts, f"{about}RECORD")))


def test_rocketsim_3_comes_along_where_it_is_installed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(here / "installed", "_native.pyd")
    monkeypatch.syspath_prepend(here / "installed")
    assert main(["package", *PLAIN, "--json", "told.json"]) == 0
    assert f"  {WHEEL_NAME} comes along: RocketSim 3 for " in capsys.readouterr().out
    assert json.loads((here / "told.json").read_text())["wheel"] == WHEEL_NAME
    with zipfile.ZipFile(here / "dist" / "ace" / WHEEL_NAME) as wheel:
        inside = {name: wheel.read(name) for name in wheel.namelist()}
    about = "rocketsim_batch-9.8.dist-info/"
    record = inside.pop(f"{about}RECORD").decode()
    assert set(inside) == {
        "rocketsim_batch/_native.pyd", "rocketsim_batch/__init__.py", f"{about}METADATA", f"{about}WHEEL",
    }  # fmt: skip
    assert inside["rocketsim_batch/_native.pyd"] == b"compiled"
    digests = {
        name: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        for name, content in inside.items()
    }
    rows = {f"{name},sha256={digests[name]},{len(content)}" for name, content in inside.items()}
    assert set(record.splitlines()) == {*rows, f"{about}RECORD,,"}


def test_the_module_is_required_by_path_on_this_system(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(here / "installed", "_native.abi3.so")
    monkeypatch.syspath_prepend(here / "installed")
    bot = made(here / "trained")
    (line,) = [line for line in text_of(bot, "requirements.txt").splitlines() if "rocketsim" in line]
    path, _, marker = line.partition(" ; ")
    assert path == f"./{WHEEL_NAME}"  # a name alone could come from the package index
    required = Requirement(f"rocketsim_batch ; {marker}").marker
    assert required is not None and required.evaluate()
    other = "linux" if sys.platform == "win32" else "win32"
    assert not required.evaluate({"sys_platform": other})
    assert not required.evaluate({"platform_machine": "riscv64"})
    assert f"`{WHEEL_NAME}` is RocketSim 3 for" in text_of(bot, "README.md")


@needs_native
def test_the_module_that_comes_along_steps_as_the_installed_one(here: Path) -> None:
    wheel = pack_wheel("rocketsim_batch")
    assert wheel == pack_wheel("rocketsim_batch")  # equal packages have equal bytes
    zipfile.ZipFile(BytesIO(*wheel.values())).extractall(here / "unpacked")
    step = (
        f"import sys; sys.path.insert(0, {str(here / 'unpacked')!r})\n"
        "from rlgym_bridge.sim.simulator import make_simulator\n"
        "simulator = make_simulator('rocketsim3', 1, 1, 1)\n"
        "import rocketsim_batch; print(rocketsim_batch.__file__)\n"
    )
    done = run_to_end([sys.executable, "-c", step], check=True)
    assert Path(done.stdout.strip()).is_relative_to(here / "unpacked")


def test_a_bot_is_packaged_without_a_module_that_is_not_there(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(here / "installed", "elsewhere.pth")  # an editable installation, with the module in its sources
    monkeypatch.syspath_prepend(here / "installed")
    assert main(["package", *PLAIN]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "rocketsim_batch" in line]
    assert len(said) == 1 and said[0].startswith(
        "  without rocketsim_batch: it plays with RocketSim 2.2.1; to take RocketSim 3 along: "
    )
    folder = here / "dist" / "ace"
    assert not list(folder.glob("*.whl"))
    assert "rocketsim" not in (folder / "requirements.txt").read_text() + (folder / "README.md").read_text()
    assert pack_wheel("a-distribution-that-nobody-has") == {}


def test_files_that_modules_read_are_included(own_parts: Path) -> None:
    table = own_parts / "more" / "table.txt"
    table.write_text("1\n")
    bot = made(own_parts / "trained", modules=["parts"], include=[Path("more/table.txt")])
    assert bot.files["more/table.txt"] == b"1\n"
    assert "('more/table.txt', 'more')" in text_of(bot, "bot.spec")


def test_a_projects_own_program_logo_and_details_are_kept(here: Path, monkeypatch) -> None:
    project = here / "my bot"
    new_project(project, "Jo")
    save(project / "policy")
    monkeypatch.chdir(project)
    (project / "kickoff.py").write_text("SPEED = 1.0\n")
    (project / "logo.png").write_bytes(b"mine")
    (project / "bot.py").write_text("import kickoff\n" + (project / "bot.py").read_text())
    described = (project / "bot.toml").read_text().replace('tags = ["1v1"]', 'tags = ["teamplay", "memebot"]')
    described = described.replace("[settings]", '[settings]\nforecast = "auto"')
    (project / "bot.toml").write_text(described.replace("my bot, trained with rlgym_bridge", "a poem"))
    bot = make_bot(PackagePlan(Path("policy"), project=Path()))
    assert tomllib.loads(text_of(bot, "bot.toml"))["settings"]["forecast"] == "auto"
    assert (bot.name, bot.modules) == ("my bot", ("kickoff",))
    assert bot.files["logo.png"] == b"mine" and bot.files["kickoff.py"] == b"SPEED = 1.0\n"
    details = tomllib.loads(text_of(bot, "bot.toml"))["details"]
    assert details["description"] == "a poem" and details["developer"] == "Jo"
    assert details["tags"] == ["1v1", "memebot"]
    assert bot.agent_id.startswith("jo/my-bot/")  # RLBot's window names two bots with one id
    assert text_of(bot, "bot.py").startswith("import kickoff\n") and f'"{bot.agent_id}"' in text_of(
        bot, "bot.py"
    )


PLAIN = ["trained", "--name", "ace", "--author", "me"]


@pytest.mark.parametrize(
    ("words", "name", "author"),
    [([], "mine", "me"), (["--name", "other"], "other", "me"), (["--author", "you"], "mine", "you")],
)
def test_in_a_project_any_policy_has_its_name_and_author(
    words: list[str], name: str, author: str, here: Path
) -> None:
    (here / "bot.toml").write_text('[settings]\nname = "mine"\n[details]\ndeveloper = "me"\n')
    assert package("trained", *words) == 0
    bot = tomllib.loads((here / "dist" / name / "bot.toml").read_text("utf-8"))
    assert (bot["settings"]["name"], bot["details"]["developer"]) == (name, author)
    assert bot["settings"]["agent_id"].startswith(f"{author}/{name}/")


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("most", [0, 1, 5, 11])
def test_a_full_disk_leaves_the_folder_as_it_was(
    most: int, there: bool, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot, folder = made(here / "trained"), here / "dist" / "ace"
    if there:
        write_bot(made(here / "trained", author="before"), folder)
    before = {name: (folder / name).read_bytes() for name in files_in(folder)}
    write, written = Path.write_bytes, []

    def run_full(path: Path, content: bytes) -> int:
        if len(written) == most:
            write(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", run_full)
    with pytest.raises(OSError, match="No space left on device") as error:
        write_bot(bot, folder)
    assert str(error.value.filename).startswith(str(folder))  # the file that could not be written
    assert {name: (folder / name).read_bytes() for name in files_in(folder)} == before
    assert sorted(here.rglob(".package-*")) == [] and folder.exists() is there


def test_own_modules_come_along_with_what_they_import(own_parts: Path) -> None:
    assert package(*PLAIN, "--allow-modules", "parts") == 0  # torch is imported in a function alone
    folder = own_parts / "dist" / "ace"
    assert files_in(folder) == FILES | {"parts.py", "more/__init__.py", "more/scale.py"}
    assert "allow_modules=('parts',)" in (folder / "bot.py").read_text().replace('"', "'")
    assert "torch" not in (folder / "requirements.txt").read_text() + (folder / "README.md").read_text()
    assert "*['torch']" in (folder / "bot.spec").read_text()  # of what it leaves out
    for module in ("parts", "more", "more.scale"):
        assert f"'{module}'" in (folder / "bot.spec").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", *PLAIN[1:]], "run is a training run without a checkpoint"),
        ([*PLAIN, "--out", "file"], "is a file, expected a folder"),
        ([*PLAIN, "--out", "others", "--replace"], "holds something else than a packaged bot"),
        (["trained", "--name", "ace"], "--author is missing, and no bot.toml here says it"),
        (["trained", "--author", "me"], "--name is missing, and no bot.toml here says it"),
        (["trained", "--name", "new\nline", "--author", "me"], "characters that can be shown"),
        (["trained", "--name", "", "--author", "me"], "characters that can be shown"),
        (["nowhere", *PLAIN[1:]], "nowhere is no folder"),
        ([], "POLICY is missing, expected a policy folder"),
        ([*PLAIN, "--include", "/etc/hostname"], "expected a file there"),
    ],
)
def test_what_cannot_be_packaged_is_told(words: list[str], said: str, here: Path, refused) -> None:
    for folder in ("run/checkpoints", "others"):
        (here / folder).mkdir(parents=True)
    for file in ("file", "others/thesis.txt"):
        (here / file).write_text("years of work")
    before = files_in(here)
    assert said in refused("package", *words)
    assert files_in(here) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "neither in"),
        ("import torch\n", "import it in the functions"),
        ("def f(:\n", "line 1: "),
        ("raise SystemExit(3)\n", "does not start"),
        ("while 1: print('x' * 9999)\n", "prints more than"),
    ],
    ids=["missing", "torch", "syntax", "exit", "flood"],
)
def test_modules_that_no_bot_can_load_are_told(text: str | None, said: str, own_parts: Path, capsys) -> None:
    for name in ("parts", "more", "more.scale"):
        sys.modules.pop(name, None)
    if text is None:
        (own_parts / "parts.py").unlink()
    else:
        (own_parts / "more" / "scale.py").write_text(text)
    assert package(*PLAIN, "--allow-modules", "parts") == 2
    errors = capsys.readouterr().err
    assert said in errors and "Traceback" not in errors
    assert not (own_parts / "dist").exists()


def test_modules_of_a_policy_are_named_before_they_run(own_parts: Path, refused) -> None:
    assert "if it is yours, give --allow-modules parts" in refused("package", *PLAIN)


def test_a_packaged_bot_is_replaced_only_when_told(here: Path, capsys) -> None:
    assert package(*PLAIN, "--json", "told.json") == 0
    told = json.loads((here / "told.json").read_text())
    assert told["folder"] == str(Path("dist", "ace")) and set(told["files"]) == FILES
    assert read_files(here / "dist" / "ace" / "policy")[0] == read_files(here / "trained")[0]
    (here / "dist" / "ace" / "mine.txt").write_text("mine")
    assert package(*PLAIN) == 2
    assert "or --replace to write over it" in capsys.readouterr().err
    assert package(*PLAIN, "--replace") == 0
    assert files_in(here / "dist" / "ace") == FILES | {"mine.txt"}


@pytest.mark.skipif(sys.platform == "win32", reason="process groups of POSIX")
def test_what_a_bot_has_started_ends_with_its_first_start(here: Path) -> None:
    text = "import os, time\nchild = os.fork() or time.sleep(600)\nraise SystemExit(f'child {child}')\n"
    (here / "bot.py").write_text(text)
    with pytest.raises(ProjectError, match=r"status 1; child \d+") as error:
        start_once(here, "me/ace")
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(str(error.value).rpartition(" ")[2])).wait(20.0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(sys.platform != "linux", reason="the folder as the botpack has it is that of Linux")
def test_a_bot_is_packaged_and_played_in_clean_environments(tmp_path: Path) -> None:
    figures = package_and_play(tmp_path)
    print(json.dumps(figures, indent=1))
    assert figures["packaged folder MB"] < 2
    assert figures["environment of requirements.txt MB"] < 150
    assert figures["program of PyInstaller MB"] < 150


def test_a_projects_program_that_allows_no_module_is_told_so(own_parts: Path, capsys) -> None:
    (own_parts / "trained").rename(own_parts / "policy")
    new_project(own_parts / "made", "Jo")
    for name in ("bot.py", "bot.toml"):
        text = (own_parts / "made" / name).read_text().replace('("my_parts",)', "()")
        (own_parts / name).write_text(text)
    assert package("--allow-modules", "parts") == 2
    said = capsys.readouterr().err
    advice = "bot.py allows no module; if you trust parts, write play(..., allow_modules=('parts',)) there"
    assert advice in said and "--allow-modules" not in said  # the program names its modules itself
