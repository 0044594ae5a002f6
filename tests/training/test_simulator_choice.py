"""A run trains in the simulator that its settings name, says so, and keeps it when it is resumed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from rlgym_bridge.cli import run_command
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.sim.simulator import ROCKETSIM2, ROCKETSIM3, DeadMatches
from rlgym_bridge.training.ppo import Local, main
from rlgym_bridge.training.runs.checkpoints import STATE_FILE, Checkpoints, settings_of_run
from rlgym_bridge.training.runs.run import Iteration, run
from rlgym_bridge.training.settings import (
    SettingsError,
    check_settings,
    settings_as_toml,
)
from tests.support.simulators import needs_native
from tests.support.training_runs import forget_checksum, small_settings

SHORT = {
    "collectors": 1, "matches": 4, "rollout_steps": 16, "snapshot_share": 0.0, "policy_layers": [16],
    "critic_layers": [16], "minibatch": 64, "threads": 1, "no_touch_seconds": 1.0,
}  # fmt: skip
BATCH = 4 * 16 * 2


def trained(out: Path, steps: int = BATCH, **changes: Any) -> Path:
    """Train, and return the last checkpoint."""
    return main(check_settings(SHORT | {"out": str(out), "steps": steps} | changes), quiet=True).checkpoint


def command(file: Path, out: Path, steps: int, *words: str) -> int:
    given = [str(file), "--out", str(out), "--steps", str(steps), "--resume", "-q", *words]
    return run_command("train", given)


def settings_in(checkpoint: Path) -> dict[str, Any]:
    found: dict[str, Any] = load_policy(checkpoint).manifest.training["settings"]
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of settings that says nothing of a simulator."""
    text = settings_as_toml(check_settings(SHORT))
    lines = [line for line in text.splitlines() if "simulator" not in line[:9]]
    path = tmp_path / "short.toml"
    path.write_text("\n".join(lines))
    return path


def forget_simulator(checkpoint: Path) -> None:
    """Make a checkpoint one of before there was a choice."""
    forget_checksum(checkpoint)
    manifest = json.loads((checkpoint / "policy.json").read_text())
    del manifest["training"]["settings"]["simulator"]
    (checkpoint / "policy.json").write_text(json.dumps(manifest))
    state = torch.load(checkpoint / STATE_FILE, weights_only=True)
    del state["settings"]["simulator"]
    torch.save(state, checkpoint / STATE_FILE)


@needs_native
def test_a_run_in_rocketsim_3_says_so_and_goes_on_in_it(tmp_path: Path, file: Path) -> None:
    first = trained(tmp_path / "run", simulator=ROCKETSIM3)
    assert settings_in(first)["simulator"] == ROCKETSIM3
    assert command(file, tmp_path / "run", 2 * BATCH) == 0
    second = Checkpoints(tmp_path / "run", 1).folder / str(2 * BATCH)
    assert settings_in(second)["simulator"] == ROCKETSIM3
    straight = trained(tmp_path / "straight", 2 * BATCH, simulator=ROCKETSIM3, checkpoint_every=BATCH)
    assert (straight / "weights.safetensors").read_bytes() == (second / "weights.safetensors").read_bytes()
    other = trained(tmp_path / "other", 2 * BATCH, simulator=ROCKETSIM2, checkpoint_every=BATCH)
    assert settings_in(other)["simulator"] == ROCKETSIM2
    assert (straight / "weights.safetensors").read_bytes() != (other / "weights.safetensors").read_bytes()


@needs_native
def test_an_older_run_is_of_rocketsim_2_and_changes_by_name(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    forget_simulator(trained(out))
    assert settings_of_run(out)["simulator"] == ROCKETSIM2
    assert command(file, out, 2 * BATCH) == 0
    newest = Checkpoints(out, 1).folder
    assert settings_in(newest / str(2 * BATCH))["simulator"] == ROCKETSIM2
    named = file.with_name("named.toml")
    named.write_text('simulator = "rocketsim3"\n' + file.read_text())
    capsys.readouterr()
    assert command(named, out, 3 * BATCH) == 2
    said = capsys.readouterr().err
    for part in ("simulator was another when", "rocketsim2 -> rocketsim3", "--simulator rocketsim3"):
        assert part in said
    assert command(file, out, 3 * BATCH, "--simulator", ROCKETSIM3) == 0
    assert settings_in(newest / str(3 * BATCH))["simulator"] == ROCKETSIM3


def test_rocketsim_3_takes_constants() -> None:
    assert check_settings({"simulator": "rocketsim3", "physics": {"gravity": 1.1}})


def test_a_run_without_its_module_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgym_bridge.sim.simulator.importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        SettingsError, match=r"rocketsim_batch is not installed; install it: .*; or train with"
    ):
        trained(tmp_path / "run", simulator=ROCKETSIM3)


class Losing(Local):
    """Tells of one dead match in each of several iterations, as collectors would that have one each."""

    def iterate(self, older: int) -> Iteration:
        """Play and learn."""
        done = super().iterate(older)
        return replace(done, counts={**done.counts, "dead_matches": 1.0})


def test_a_run_stops_when_three_of_its_matches_have_died(tmp_path: Path) -> None:
    settings = small_settings(tmp_path / "run", checkpoint_every=112, steps=10**6)
    with pytest.raises(DeadMatches, match="3 matches have died inside the simulator, expected fewer than 3"):
        run(settings, Losing, quiet=True)
    assert Checkpoints(tmp_path / "run", 1).folder.joinpath("latest").exists()
