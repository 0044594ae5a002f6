"""Do what the release workflow does, but publish: `python -m tools.release_check`.

    copy of the checkout -> sdist, wheel -> twine's check -> an empty environment with the wheel -> a match
    native/ -> its wheel for Linux, where cargo is there -> the same environment -> RocketSim 3 loads

Prints times and sizes. The commands are those of .github/workflows/release.yml; nothing is sent anywhere.
"""

import json
import os
import re
import shutil
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Final

from tools.clean_folder import ROOT, CleanFolder, copy_sources, make_environment, print_figures

WORKFLOW: Final = ".github/workflows/release.yml"
_BUILD: Final = "python -m build"
_CHECK: Final = "python -m twine check --strict dist/*"
_MATCH: Final = "rlgym-bridge match --pace lockstep --seconds 10"
_MATURIN: Final = "pip install maturin[zig]==1.16.0"
_OPTIONS: Final = "--zig --compatibility manylinux_2_17"
_NATIVE: Final = "maturin build --release --locked --out ../wheels ${{ matrix.options }}"
_LINUX: Final = f"{{os: ubuntu-24.04, options: {_OPTIONS}}}"
_LOAD: Final = "from rlgym_bridge.sim.simulator import make_simulator; make_simulator('rocketsim3', 1, 1, 1)"
_TOOLS: Final = re.compile(r"pip install (build==\S+) (twine==\S+)")


def release_check(folder: Path) -> dict[str, float]:
    """Do all of it in an empty folder; return seconds and megabytes by name."""
    workflow = (ROOT / WORKFLOW).read_text("utf-8")
    tools = _TOOLS.search(workflow)
    assert tools is not None, f"{WORKFLOW} does not install build and twine"
    for command in (
        _BUILD,
        _CHECK,
        _MATCH,
        "rlgym-bridge --help",
        _MATURIN,
        _NATIVE,
        f'python -c "{_LOAD}"',
        _LINUX,
    ):
        assert f"{command}\n" in workflow, f"{WORKFLOW} does not run {command}"
    clean = CleanFolder(folder)
    sources = copy_sources(clean)
    version = check_version(sources)
    builder = make_environment(clean, folder / "builder", *tools.groups())
    with clean.timed("build"):
        clean.run(builder, "-m", "build", cwd=sources)
    files = sorted((sources / "dist").iterdir())
    assert [file.name for file in files] == [
        f"rlgym_bridge-{version}-py3-none-any.whl", f"rlgym_bridge-{version}.tar.gz"
    ]  # fmt: skip
    wheel, sdist = files
    clean.weigh("wheel", wheel)
    clean.weigh("sdist", sdist)
    print(clean.run(builder, "-m", "twine", "check", "--strict", wheel, sdist).strip())
    names = zipfile.ZipFile(wheel).namelist()
    assert "rlgym_bridge/shipped/bot/policy/weights.safetensors" in names
    with tarfile.open(sdist) as archive:
        names += archive.getnames()
    assert not any("native/" in name or "rocketsim_batch" in name for name in names), names
    python = make_environment(
        clean, folder / "player", "-c", str(sources / "constraints.txt"), f"{wheel}[rlgym]"
    )
    clean.weigh("environment", folder / "player")
    clean.run(python, "-m", "pip", "check")
    program = python.with_name("rlgym-bridge")
    empty = folder / "empty"
    empty.mkdir()
    clean.run(program, "--help", cwd=empty)
    with clean.timed("match of 10 s"):
        print(clean.run(program, *_MATCH.split()[1:], "--json", "match.json", cwd=empty).strip())
    bots = json.loads((empty / "match.json").read_text("utf-8"))["bots"]
    assert [bot["name"] for bot in bots] == ["Bridge", "Chaser"] and not any(bot["missed"] for bot in bots)
    if shutil.which("cargo") and sys.platform == "linux":
        _check_native(clean, sources, python)
    return clean.figures


def _check_native(clean: CleanFolder, sources: Path, player: Path) -> None:
    """Build the wheel of `native/`, install it into the player's environment, and load it there."""
    builder = make_environment(clean, clean.folder / "native-builder", _MATURIN.split()[-1])
    command = _NATIVE.replace("${{ matrix.options }}", _OPTIONS).split()
    with clean.timed("build of native"):
        path = f"PATH={builder.parent}{os.pathsep}{os.environ['PATH']}"  # maturin looks for zig there
        clean.run("env", path, *command, cwd=sources / "native")  # there cargo finds its flags
    (wheel,) = (sources / "wheels").iterdir()
    assert "-cp310-abi3-" in wheel.name and "manylinux_2_17" in wheel.name, wheel.name
    clean.weigh("wheel of native", wheel)
    clean.run(player, "-m", "pip", "install", "-q", "--no-deps", wheel)
    clean.run(player, "-c", _LOAD, cwd=clean.folder / "empty")


def check_version(sources: Path) -> str:
    """Return the version, which stands in pyproject.toml alone and has a part of the changelog."""
    version = str(tomllib.loads((sources / "pyproject.toml").read_text("utf-8"))["project"]["version"])
    changelog = (sources / "CHANGELOG.md").read_text("utf-8")
    assert f"\n## [{version}]" in changelog, f"CHANGELOG.md has no [{version}]"
    code = [file for package in ("rlgym_bridge", "training") for file in (sources / package).rglob("*.py")]
    named = [file for file in code if f'"{version}"' in file.read_text("utf-8")]
    assert not named, f"{version} stands in {named}, expected it in pyproject.toml alone"
    return version


if __name__ == "__main__":
    print_figures(release_check)
