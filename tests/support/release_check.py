"""Do what the release workflow does, but publish: `python -m tests.support.release_check`.

    copy of the checkout -> sdist, wheel -> twine's check -> an empty environment with the wheel -> a match

Prints times and sizes. The commands are those of .github/workflows/release.yml; nothing is sent anywhere.
"""

import json
import re
import tomllib
import zipfile
from pathlib import Path
from typing import Final

from tests.support.clean_folder import ROOT, CleanFolder, copy_sources, make_environment, print_figures

WORKFLOW: Final = ".github/workflows/release.yml"
_BUILD: Final = "python -m build"
_CHECK: Final = "python -m twine check --strict dist/*"
_MATCH: Final = "rlgym-bridge match --pace lockstep --seconds 10"
_TOOLS: Final = re.compile(r"pip install (build==\S+) (twine==\S+)")


def release_check(folder: Path) -> dict[str, float]:
    """Do all of it in an empty folder; return seconds and megabytes by name.

    Raises:
        AssertionError: The workflow has other commands, or version, changelog and files do not agree.
        subprocess.CalledProcessError: A command fails.
    """
    workflow = (ROOT / WORKFLOW).read_text("utf-8")
    tools = _TOOLS.search(workflow)
    assert tools is not None, f"{WORKFLOW} does not install build and twine"
    for command in (_BUILD, _CHECK, _MATCH, "rlgym-bridge --help"):
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
    assert "rlgym_bridge/shipped/bot/policy/weights.safetensors" in zipfile.ZipFile(wheel).namelist()
    python = make_environment(clean, folder / "player", "-c", str(sources / "constraints.txt"), str(wheel))
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
    return clean.figures


def check_version(sources: Path) -> str:
    """Return the version, which stands in pyproject.toml alone and has a part of the changelog.

    Raises:
        AssertionError: Code names it, or the changelog does not.
    """
    version = str(tomllib.loads((sources / "pyproject.toml").read_text("utf-8"))["project"]["version"])
    changelog = (sources / "CHANGELOG.md").read_text("utf-8")
    assert f"\n## [{version}]" in changelog, f"CHANGELOG.md has no [{version}]"
    code = [file for package in ("rlgym_bridge", "training") for file in (sources / package).rglob("*.py")]
    named = [file for file in code if f'"{version}"' in file.read_text("utf-8")]
    assert not named, f"{version} stands in {named}, expected it in pyproject.toml alone"
    return version


if __name__ == "__main__":
    print_figures(release_check)
