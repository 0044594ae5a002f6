"""A release can be made of the checkout: version, changelog, and all that the workflow does but publish."""

from pathlib import Path

import pytest

from tools.clean_folder import ROOT, CleanFolder, copy_sources
from tools.release_check import check_version, release_check


def test_the_version_stands_in_one_place_and_in_the_changelog() -> None:
    assert check_version(ROOT).count(".") == 2


def test_a_copy_of_the_sources_has_every_package(tmp_path: Path) -> None:
    copy = copy_sources(CleanFolder(tmp_path))
    for package in ("rlgym_bridge", "training"):
        files = {file.relative_to(ROOT) for file in (ROOT / package).rglob("*.py")}
        assert files == {file.relative_to(copy) for file in (copy / package).rglob("*.py")}
    assert not (copy / ".git").exists()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_is_released_plays_in_an_empty_environment(tmp_path: Path) -> None:
    figures = release_check(tmp_path)
    assert figures["wheel MB"] < 10 and figures["environment MB"] < 150
