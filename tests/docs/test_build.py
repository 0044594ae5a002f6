"""The pages build without a warning and fetch nothing from elsewhere."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import rlgym_bridge
from rlgym_bridge.cli.commands import COMMANDS
from rlgym_bridge.training.settings import REWARDS
from tests.support.documentation import ROOT
from tests.support.processes import run_to_end

pytest.importorskip("zensical", reason="the pages are built with the extra docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    done = run_to_end([sys.executable, "docs_commands.py", str(folder)], cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    return folder / "site"


@pytest.mark.slow
@pytest.mark.parametrize("link", ["nothing.md", "compare.md#no-such-heading"])
def test_a_link_that_leads_nowhere_fails_the_build(link: str, tmp_path: Path) -> None:
    config = importlib.import_module("docs_commands").write_pages(tmp_path)
    with (tmp_path / "pages" / "gap" / "record.md").open("a", encoding="utf-8") as page:
        page.write(f"\nSee [there]({link}).\n")
    done = run_to_end([sys.executable, "-m", "zensical", "build", "--strict", "--config-file", config])
    assert done.returncode and "does not exist" in done.stdout + done.stderr


@pytest.mark.slow
def test_every_command_has_a_page_with_its_options(site: Path) -> None:
    for name in COMMANDS:
        page = (site / "reference" / "commands" / f"{name}.html").read_text(encoding="utf-8")
        assert "--quiet" in page and "Exit status" in page and f"rlgym-bridge {name}" in page


@pytest.mark.slow
def test_every_public_name_is_on_the_page_of_the_api(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text(encoding="utf-8")
    for name in rlgym_bridge.__all__:
        assert f'id="rlgym_bridge.{name}"' in page or f'id="rlgym_bridge.components.{name}.' in page, name


def test_the_table_of_rewards_has_each_weight_and_its_class() -> None:
    table = importlib.import_module("docs_commands").rewards_table()
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", table, re.MULTILINE))
    assert set(rows) == set(REWARDS) and len(REWARDS) > 10
    assert rows["touch_strength"] == "TouchReward" and rows["mate_distance"] == "MateDistanceReward"
    assert re.search(r"^\| `velocity_to_ball` \|.*\| -1 to 1 \| `0.1` \|$", table, re.MULTILINE)
    assert re.search(r"^\| `goal` \|.*\| -1, 0 or 1 \| `10.0` \|$", table, re.MULTILINE)


@pytest.mark.slow
def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r"<(?:script|img|iframe)[^>]+src=\"?https?:[^>]*>", text), page
        assert not re.findall(r"<link[^>]+stylesheet[^>]+https?:[^>]*>", text), page


@pytest.mark.slow
def test_what_the_code_knows_stands_in_the_pages(site: Path) -> None:
    expected = {
        "reference/units.html": "ball_known", "reference/dialect.html": "pad_timer",
        "design/map.html": "imports from", "train/settings.html": "gae_lambda",
        "reference/api.html": "compare_recordings",
        "train/rewards.html": "KickoffSpeedReward",
    }  # fmt: skip
    for page, word in expected.items():
        text = (site / page).read_text(encoding="utf-8")
        assert word in text and not re.search(r"<!-- (settings|rewards|dialect|rooms|fields: \w+) -->", text)
