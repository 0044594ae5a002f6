"""Folders for the examples of the documentation, made once."""

from pathlib import Path

import pytest

from tests.support.documentation_folders import readers_folder, trained_folder
from tests.support.recorded_matches import chaser_and_policy


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder: the bots, a recorded match, the files of the pages."""
    return readers_folder(tmp_path_factory.mktemp("reader"), chaser_and_policy(tmp_path_factory))


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a trained bot with modules of its own, trained with `--out runs/mine`."""
    return trained_folder(tmp_path_factory.mktemp("own"))
