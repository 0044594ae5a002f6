"""The commands that a newcomer enters first name what is there."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from rlgym_bridge.user_input.extras import explain_install
from tests.support.documentation import ROOT, blocks, command_lines
from tests.support.processes import run_to_end

Make = Callable[..., subprocess.CompletedProcess[str]]


def test_three_windows_commands_install_and_play() -> None:
    first = [block for block in blocks("bat") if "-m venv" in block.text]
    assert len(first) == 2 and first[0].text == first[1].text  # README and its page
    make, install, play = command_lines(first[0])
    supported = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    version = re.search(r"-(3\.\d+) ", make)
    assert version and supported.startswith(f">={version[1]},")
    assert '-c constraints.txt -e ".[rlgym]"' in install and (ROOT / "constraints.txt").is_file()
    assert (ROOT / play.split()[2]).is_file()


def test_pages_give_the_cpu_build_of_the_tested_torch() -> None:
    tested = re.search(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert tested is not None
    for page in ("README.md", "docs/start/first-bot.md", "docs/start/windows.md"):
        text = (ROOT / page).read_text()
        line = r"^pip install torch==(\S+) --index-url https://download.pytorch.org/whl/cpu\b"
        assert re.findall(line, text, re.M) == [tested[1]], page
        assert text.index("/whl/cpu") < text.index('-e ".[rlgym,train]"'), page


@pytest.mark.parametrize(
    ("platform", "extra", "there", "told"),
    [
        ("linux", "train", False, True), ("linux", "rllib", False, True), ("linux", "train", True, False),
        ("linux", "view", False, False), ("win32", "train", False, False), ("darwin", "train", False, False),
    ],
)  # fmt: skip
def test_on_linux_a_missing_extra_names_torchs_cpu_build(
    platform: str, extra: str, there: bool, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr("rlgym_bridge.user_input.extras.find_spec", lambda _: object() if there else None)
    assert ("--index-url https://download.pytorch.org/whl/cpu" in explain_install(extra)) is told


@pytest.mark.parametrize("version", [(3, 10), (3, 14)])
def test_pip_says_which_python_is_needed_before_it_fetches(
    version: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # pip runs setup.py first of all, and reads requires-python after it has fetched and built numpy
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    said = rf"needs Python 3\.11 to 3\.13, and this is Python 3\.{version[1]}: "
    with pytest.raises(SystemExit, match=said):
        runpy.run_path(str(ROOT / "setup.py"))
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert required == ">=3.11,<3.14"  # make's peers, which tests compare with, need RLGym: 3.11 or 3.12
    assert re.search(r"^SUPPORTED := 3\.11\|3\.12$", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return what runs make in a copy, where each python3.N is a script and pip does nothing.

    Its cargo, a script too, has the version that is given; None is a path without cargo.
    """
    if os.name == "nt" or shutil.which("make") is None:
        pytest.skip("needs make")
    names = ("Makefile", "pyproject.toml", "constraints.txt", *(f"native/{name}" for name in _NATIVE_FILES))
    (tmp_path / "native" / "src").mkdir(parents=True)
    for name in names:
        shutil.copy(ROOT / name, tmp_path / name)
    pythons = tmp_path / "pythons"
    pythons.mkdir()
    for minor in (10, 11, 12, 13):
        script = pythons / f"python3.{minor}"
        script.write_text(_PYTHON.format(minor=minor))
        script.chmod(0o755)

    def run(*words: str, cargo: str | None = None) -> subprocess.CompletedProcess[str]:
        (pythons / "cargo").unlink(missing_ok=True)
        others = [one for one in os.environ["PATH"].split(os.pathsep) if not Path(one, "cargo").exists()]
        if cargo is not None:
            (pythons / "cargo").write_text(f"#!/bin/sh\necho 'cargo {cargo} (f2d3ce0bd 2026-03-21)'\n")
            (pythons / "cargo").chmod(0o755)
        path = os.pathsep.join([str(pythons), *others])
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        environment.pop("PYTHON", None)
        return run_to_end(["make", *words], cwd=tmp_path, env=environment | {"PATH": path})

    return run


_NATIVE_FILES = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "src/lib.rs")
_PYTHON = """#!/bin/sh
if [ "$2" = "import rocketsim_batch" ]; then exit 1; fi
if [ "$1" = -c ]; then echo 3.{minor}; fi
if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi
"""


@pytest.mark.parametrize("python", ["python3.10", "python3.13", "no-such-python"])
def test_make_refuses_a_wrong_python_and_leaves_nothing(make: Make, python: str, tmp_path: Path) -> None:
    refused = make("install", f"PYTHON={python}")
    assert refused.returncode and not refused.stdout
    line, _ = refused.stderr.splitlines()  # make's own says that it ends
    assert line.startswith(f"PYTHON is {python} (") and "expected Python 3.11 or 3.12" in line
    assert not (tmp_path / ".venv").exists()


def test_make_makes_the_environment_anew_for_another_python(make: Make, tmp_path: Path) -> None:
    venv = tmp_path / ".venv"

    def made() -> str:
        assert (venv / ".installed").is_file()
        return re.findall(r"echo (3\.\d+)", (venv / "bin" / "python").read_text())[0]

    (venv / "bin").mkdir(parents=True)
    shutil.copy(tmp_path / "pythons" / "python3.13", venv / "bin" / "python")  # by hand, or by an older make
    (venv / "of-3.13").touch()
    assert not make("install").returncode and made() == "3.11"
    assert not (venv / "of-3.13").exists()
    assert "pip install" in make("install", "PYTHON=python3.12").stdout and made() == "3.12"
    for words in (["install"], ["install", "PYTHON=python3.12"]):  # who names no other keeps what is there
        assert "pip install" not in make(*words).stdout and made() == "3.12"


def test_make_keeps_an_environment_that_was_made_by_hand(make: Make, tmp_path: Path) -> None:
    bin_folder = tmp_path / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    shutil.copy(tmp_path / "pythons" / "python3.12", bin_folder / "python")
    (tmp_path / ".venv" / ".installed").touch()
    assert "pip install" not in make("install").stdout
    assert (bin_folder / "python").read_text() == (tmp_path / "pythons" / "python3.12").read_text()


@pytest.mark.parametrize("cargo", [None, "1.94.1", "0.99.0"], ids=["no cargo", "an older one", "a first one"])
def test_make_without_cargo_says_what_it_does_without(make: Make, cargo: str | None) -> None:
    done = make("install", cargo=cargo)
    assert not done.returncode and "./native" not in done.stdout
    (line,) = done.stderr.splitlines()
    assert "RocketSim 2.2.1 plays and trains" in line and "tests of RocketSim 3 are skipped" in line
    assert "cargo 1.95 or later" in line and "https://rustup.rs" in line and line.endswith("make native")
    asked = make("native", cargo=cargo)
    assert asked.returncode and "cargo 1.95 or later is not on the path" in asked.stderr


@pytest.mark.parametrize("cargo", ["1.95.0", "1.100.2-nightly", "2.0.0"])
def test_make_builds_native_once_for_the_same_sources(make: Make, cargo: str, tmp_path: Path) -> None:
    build = "-m pip install --quiet --force-reinstall --no-deps ./native"
    first = make("install", cargo=cargo)
    assert build in first.stdout and not first.stderr
    assert build not in make("install", cargo=cargo).stdout
    for changed in (*_NATIVE_FILES, "src/new.rs"):
        stamp = tmp_path / ".venv" / ".native"
        (tmp_path / "native" / changed).touch()
        later = stamp.stat().st_mtime + 5
        os.utime(tmp_path / "native" / changed, (later, later))
        assert build in make("native", cargo=cargo).stdout, changed
        os.utime(stamp, (later + 5, later + 5))
        assert build not in make("native", cargo=cargo).stdout, changed


def test_make_check_and_make_test_run_cargo_where_it_is(make: Make, tmp_path: Path) -> None:
    (tmp_path / "native/src/one.rs").write_text("#[test]\nfn holds() {}\n")
    with_cargo = {target: make("-n", target, cargo="1.95.0").stdout for target in ("check", "test")}
    assert "cargo fmt --manifest-path native/Cargo.toml --check" in with_cargo["check"]
    assert re.search(r"cargo clippy .*--release --locked .*-- -D warnings", with_cargo["check"])
    assert re.search(r"cargo test .*--locked", with_cargo["test"])
    slow = make("-n", "test-slow", cargo="1.95.0").stdout.replace("\\\n", "")
    assert re.search(r"ROCKETSIM_MESHES=.*cargo test .*--locked .*--test modes -- --ignored", slow)
    for target in (*with_cargo, "test-slow"):
        assert not re.search("cargo (fmt|clippy|test)", make("-n", target).stdout)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert settings["testpaths"] == ["tests", "native/tests"]


def test_without_the_module_its_tests_are_skipped_by_name(tmp_path: Path) -> None:
    shutil.copy(ROOT / "native/tests/conftest.py", tmp_path)
    (tmp_path / "test_steps.py").write_text("import rocketsim_batch\ndef test_one(): pass\n")
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['rocketsim_batch'] = None\n")
    words = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "test_steps.py"]
    done = run_to_end(words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert "test_steps.py" in done.stdout and "rocketsim_batch is not installed: make native" in done.stdout
    assert "1 skipped" in done.stdout and "error" not in done.stdout


def test_every_place_names_the_same_rust_and_maturin() -> None:
    for page in ("README.md", "docs/start/windows.md"):
        assert "pip install ./native" in (ROOT / page).read_text(), page
    native = tomllib.loads((ROOT / "native/pyproject.toml").read_text())
    assert native["build-system"]["build-backend"] == "maturin"
    rust = tomllib.loads((ROOT / "native/Cargo.toml").read_text())["package"]["rust-version"]
    makefile = (ROOT / "Makefile").read_text()
    assert rust == "1.95" and "v[1] == 1 && v[2] >= 95" in makefile and "cargo 1.95 or later" in makefile
    maturin = re.search(r"^maturin==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    for name in ("release.yml", "tests.yml"):
        workflow = (ROOT / ".github/workflows" / name).read_text()
        assert re.findall(r'^  RUST: "([\d.]+)"', workflow, re.MULTILINE) == [f"{rust}.0"]
        named = re.findall(r"maturin\[zig\]==(\S+)", workflow)
        assert maturin and named == ([maturin[1]] if name == "release.yml" else [])
