"""The names that bot makers import, and the paths that policy folders keep."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import rlgym_bridge
from rlgym_bridge import ComponentSpec, DefaultObs, RepeatAction, load_policy
from tests.support.processes import run_to_end

DATA = Path(__file__).parent / "data"


def in_a_fresh_process(code: str) -> str:
    return run_to_end([sys.executable, "-c", code], check=True).stdout.strip()


@pytest.mark.parametrize("name", rlgym_bridge.__all__)
def test_every_public_name_is_there_and_listed(name: str) -> None:
    assert getattr(rlgym_bridge, name) is not None
    assert name in dir(rlgym_bridge)


def test_a_name_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(
        AttributeError, match=r"no attribute 'RelativeObservation'; it has AdvancedObs, .*RelativeObs"
    ):
        _ = rlgym_bridge.RelativeObservation


@pytest.mark.parametrize("heavy", ["numpy", "torch", "mcap", "rich", "RocketSim", "rlbot"])
def test_the_package_alone_imports_nothing_heavy(heavy: str) -> None:
    assert in_a_fresh_process(f"import rlgym_bridge, sys; print({heavy!r} in sys.modules)") == "False"


@pytest.mark.parametrize("heavy", ["torch", "mcap", "rich", "ray", "matplotlib", "pyarrow"])
def test_a_bot_imports_neither_the_trainer_nor_the_recorder(heavy: str) -> None:
    code = (
        f"import sys; from rlgym_bridge import DefaultObs, load_policy, play; print({heavy!r} in sys.modules)"
    )
    assert in_a_fresh_process(code) == "False"


@pytest.mark.parametrize("before", ["", "from rlgym_bridge import MatchState; MatchState(1, 1);"])
def test_play_limits_the_threads_of_matrix_products(before: str) -> None:
    code = f"""
import os
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.pop(name, None)
{before}
from rlgym_bridge import play
assert play("no_such_folder") == 2
import numpy
from threadpoolctl import threadpool_info
print({{one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}})
"""
    assert in_a_fresh_process(code) == "{1}"


def test_components_of_ours_are_named_by_public_paths() -> None:
    spec = ComponentSpec.of(RepeatAction, ComponentSpec.of(rlgym_bridge.LookupTableAction), repeats=4)
    assert spec.path == "rlgym_bridge:RepeatAction"
    assert spec.nested is not None and spec.nested.path == "rlgym_bridge:LookupTableAction"
    assert ComponentSpec.of(DefaultObs).path == "rlgym_bridge:DefaultObs"


def test_a_folder_that_was_saved_before_the_public_face_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DATA))
    folder = DATA / "policy-2026-11"
    saved = json.loads((folder / "policy.json").read_text(encoding="utf-8"))
    assert saved["parser"]["class"] == "rlgym_bridge.actions:RepeatAction"
    loaded = load_policy(folder, ["own_parts"])
    assert loaded.manifest.parser is not None
    assert loaded.manifest.parser.path == "rlgym_bridge:RepeatAction"
    np.testing.assert_equal(loaded.manifest.to_json().count("rlgym_bridge."), 0)


@pytest.mark.parametrize(
    "path", ["actions:RepeatAction", "observations:DefaultObs", "relative_obs:RelativeObs"]
)
def test_former_paths_of_ours_become_public_ones(path: str) -> None:
    spec = ComponentSpec(f"rlgym_bridge.{path}")
    assert spec.path == f"rlgym_bridge:{path.partition(':')[2]}"
    assert getattr(importlib.import_module("rlgym_bridge"), path.partition(":")[2])
