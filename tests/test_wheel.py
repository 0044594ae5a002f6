"""The wheel: what is installed from it plays, and says what is missing."""

import os
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from rlgym_bridge.server.lineup import find_shipped_folder
from tests.support.processes import run_to_end

ROOT = Path(__file__).parents[1]
TRY = (
    "import sys; sys.modules.update(dict.fromkeys({missing!r})); "
    "from rlgym_bridge.cli import main; sys.exit(main())"
)
BUILD = "import sys, setuptools.build_meta as made; print(getattr(made, sys.argv[1])(sys.argv[2]))"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with nothing but pip and setuptools."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True, symlinks=os.name != "nt")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run_to_end([str(python), "-m", "pip", "install", "-q", "setuptools>=77"], check=True, seconds=120)
    return python


@pytest.fixture(scope="module")
def wheel(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that is built of a source distribution of the checkout."""
    folder = tmp_path_factory.mktemp("built")

    def build(what: str, source: Path) -> Path:
        made = run_to_end(
            [str(environment), "-c", BUILD, what, str(folder)], cwd=source, check=True, seconds=120
        )
        return folder / made.stdout.splitlines()[-1]

    sources = build("build_sdist", ROOT)
    run_to_end([sys.executable, "-m", "tarfile", "-e", str(sources), str(folder)], check=True)
    return build("build_wheel", folder / sources.name.removesuffix(".tar.gz"))


@pytest.fixture(scope="module")
def installed(environment: Path, wheel: Path) -> Path:
    """The Python of an environment with the wheel, and the packages of this one behind it."""
    install = ["-m", "pip", "install", "-q", "--no-deps", str(wheel)]
    run_to_end([str(environment), *install], check=True, seconds=120)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = run_to_end([str(environment), "-c", where], check=True).stdout.strip()
    others = [path for path in sys.path if path.endswith("-packages")]
    Path(site, "zz_others.pth").write_text("\n".join(others))
    return environment


@pytest.mark.slow
def test_nothing_but_the_package_is_in_the_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"rlgym_bridge"}
    shipped = "rlgym_bridge/shipped"
    files = {"rlgym_bridge/py.typed", "rlgym_bridge/training/config.toml", f"{shipped}/rlbot.cfg"}
    assert files <= set(names)
    assert f"{shipped}/bot/policy/weights.safetensors" in names


@pytest.mark.slow
def test_an_installed_wheel_plays_the_shipped_bot(installed: Path, tmp_path: Path) -> None:
    words = ["match", "-v", "--pace", "lockstep", "--seconds", "2", "--max-overtime", "0"]
    program = installed.with_name("rlgym-bridge" + (".exe" if os.name == "nt" else ""))
    done = run_to_end([str(program), *words], cwd=tmp_path, seconds=120)
    assert done.returncode == 0, done.stderr
    assert "Bridge" in done.stdout and "Chaser" in done.stdout
    assert f"-m rlgym_bridge.live {installed.parents[1]}" in done.stderr  # not the checkout's
    done = run_to_end([str(program), "train", "--settings"], cwd=tmp_path, check=True)
    assert 'components = "rlgym_bridge.training.components"' in done.stdout


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        ("train", "torch", "train"),
        ("ratings run", "matplotlib", "train"),
    ],
)
def test_an_extra_that_is_missing_is_named_with_its_pip_line(words: str, package: str, extra: str) -> None:
    code = TRY.format(missing=[package])
    done = run_to_end([sys.executable, "-c", code, *words.split()], seconds=120)
    assert done.returncode == 2
    assert f"{package} is not installed" in done.stderr
    assert f'pip install -c constraints.txt -e ".[{extra}]" (in the folder {ROOT})' in done.stderr


def test_a_checkout_ships_its_own_bot_folder() -> None:
    assert find_shipped_folder() == ROOT
