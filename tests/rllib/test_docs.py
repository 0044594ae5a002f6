"""The examples of docs/rllib.md do what it says."""

import os
import re
import sys
from pathlib import Path

from rlgym_bridge.policy.folder import load_policy
from tests.support.processes import run_to_end
from tests.support.recorded_matches import record

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "rllib.md").read_text(encoding="utf-8")


def example(word: str) -> str:
    (found,) = (one for one in re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL) if word in one)
    return found


def run(code: str, folder: Path) -> str:
    """Run a program as a user would, in a process of its own."""
    (folder / "example.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
    done = run_to_end(
        [sys.executable, "example.py"],
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_example_of_ones_own_config_trains_a_policy_that_can_be_saved(tmp_path: Path) -> None:
    said = run(example("env_runner_cls=MatchRunner"), tmp_path)
    assert load_policy(tmp_path / "runs" / "own").manifest.obs_size == 92
    assert "'blue-0': " in said


def test_the_example_of_recorded_episodes_reads_a_match(tmp_path: Path) -> None:
    record(tmp_path / "match.mcap", seconds=5)
    said = run(example("episodes_from_recording"), tmp_path)
    lines = said.splitlines()
    assert lines and all(re.fullmatch(r"match.mcap-\d+ \d+ -?[\d.]+ (True|False)", line) for line in lines)
    assert any(float(line.split()[2]) for line in lines)


def test_the_tests_that_the_table_names_are_there() -> None:
    written = (ROOT / "tests" / "rllib" / "test_set_actions.py").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", DOCS)) - {"test_applied_logp"}
    missing = [name for name in named if f"def {name}(" not in written]
    assert len(named) > 20 and not missing, missing
