"""The bots on the page about policies of one's own play a match as their page has them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlgym_bridge import (
    ContinuousAction,
    LookupTableAction,
    MultiDiscreteAction,
    PlayerSpec,
    RepeatAction,
    play,
)
from rlgym_bridge.components.spec import Components
from rlgym_bridge.policy.chaser import Chaser
from tests.support.documentation import blocks
from tests.support.documentation_folders import run_command
from tests.support.made_packets import at
from tests.support.players_by_hand import player_of, sent

PAGE = "docs/bring/own-policy.md"
BOT = """[settings]
agent_id = "{agent_id}"
name = "Mine"
run_command = "python bot.py"
run_command_linux = "{python} bot.py"
"""
STAND_IN = """
import numpy as np


class PPO:
    def __init__(self):
        self.seen = None

    @classmethod
    def load(cls, path, device="auto"):
        open(path).close()
        return cls()

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert observation.shape == (1, 107) and observation.dtype == np.float32 and deterministic
        return np.array([[2, 1, 1, 1, 1, 0, 1, 0]]), state
"""
"""A module with what the example calls of Stable-Baselines3; its model drives straight on."""


def play_example(folder: Path, word: str) -> dict:
    """Play the page's `bot.py` with this word against Chaser; return its result."""
    (text,) = (block.text for block in blocks("python") if block.page == PAGE and word in block.text)
    (agent_id,) = (line.split('"')[1] for line in text.splitlines() if "agent_id=" in line)
    (folder / "bot.py").write_text(text, encoding="utf-8")
    python = sys.executable
    (folder / "bot.toml").write_text(BOT.format(agent_id=agent_id, python=python), encoding="utf-8")
    words = "--pace lockstep --seconds 2 --max-overtime 0 --json result.json"
    run_command(folder, f"match --blue bot.toml --orange chaser {words}")
    mine, _ = json.loads((folder / "result.json").read_text())["bots"]
    assert mine["name"] == "Mine" and mine["faults"] == {} and mine["missed"] == 0
    return mine


def test_a_program_of_ones_own_drives_a_car(tmp_path: Path) -> None:
    assert play_example(tmp_path, "class DrivesAtTheBall")["boost_used"] == 0


@pytest.mark.parametrize(
    ("tick_skip", "parser", "every"),
    [
        (4, ContinuousAction(), 4), (None, ContinuousAction(), 1), (5, MultiDiscreteAction(), 5),
        (3, LookupTableAction(), 3), (4, RepeatAction(ContinuousAction(), 6), 6),
    ],
)  # fmt: skip
def test_a_player_decides_once_in_its_tick_skip(tick_skip: int | None, parser: Any, every: int) -> None:
    class Counting:
        def reset(self, cars: Any, seed: int | None = None) -> None:
            pass

        def act(self, obs: Any, state: Any) -> np.ndarray:
            shape = (1, 1) if isinstance(parser, LookupTableAction) else (1, 1, 8)
            return np.zeros(shape, np.int64)

    one = player_of(PlayerSpec(Counting, lambda: Components(None, parser), tick_skip=tick_skip), [7])
    for frame in range(1, 62):
        sent(one, at(frame))
    assert one.decisions == pytest.approx(60 / every, abs=1)


def test_a_tick_skip_that_is_none_is_refused() -> None:
    for given in (0, 2.5, True):
        with pytest.raises(ValueError, match=r"tick_skip is .*, expected a whole number of ticks, 1 or more"):
            PlayerSpec(Chaser, lambda: Components(None, ContinuousAction()), tick_skip=given)  # type: ignore[arg-type]


def test_a_policy_object_is_no_run_to_follow(caplog: pytest.LogCaptureFixture) -> None:
    spec = PlayerSpec(Chaser, lambda: Components(None, ContinuousAction()))
    assert play(spec, agent_id="test/mine", follow=True) == 2
    assert "policy is a PlayerSpec, expected the folder of a training run" in caplog.text


def test_what_is_no_policy_is_named(caplog: pytest.LogCaptureFixture) -> None:
    for follow in (False, True):
        assert play(3, agent_id="test/mine", follow=follow) == 2  # type: ignore[arg-type]
    assert "follow is True and policy is 3, expected the folder of a training run" in caplog.text
    assert "policy is 3, expected a folder, chaser or charger or random, or a PlayerSpec" in caplog.text
    with pytest.raises(
        ValueError, match=r"policy is <.*Chaser object.*>, expected a function without arguments, or a class"
    ):
        PlayerSpec(Chaser(), lambda: Components(None, ContinuousAction()))  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_recurrent_network_plays(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    weights = {"lstm.weight_ih_l0": (256, 92), "lstm.weight_hh_l0": (256, 64), "lstm.bias_ih_l0": (256,)}
    shapes = weights | {"lstm.bias_hh_l0": (256,), "head.weight": (90, 64), "head.bias": (90,)}
    torch.save({name: torch.randn(shape) for name, shape in shapes.items()}, tmp_path / "lstm.pt")
    play_example(tmp_path, "class RecurrentPolicy")


@pytest.mark.slow
def test_a_model_of_stable_baselines_plays(tmp_path: Path) -> None:
    (tmp_path / "stable_baselines3.py").write_text(STAND_IN)
    (tmp_path / "model.zip").touch()
    assert play_example(tmp_path, "class StableBaselines")["boost_used"] > 20


@pytest.mark.slow
def test_an_onnx_file_plays(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    make: Callable = onnx.helper.make_tensor_value_info
    logits = onnx.numpy_helper.from_array(np.random.default_rng(0).normal(size=(92, 90)).astype("f4"), "w")
    float32 = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["obs", "w"], ["logits"])], "policy",
        [make("obs", float32, ["cars", 92])], [make("logits", float32, ["cars", 90])], [logits],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(tmp_path / "policy.onnx"))
    play_example(tmp_path, "class OnnxPolicy")
