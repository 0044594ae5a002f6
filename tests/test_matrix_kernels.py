"""Matrix products use the kernels of the processor, also where numpy's library does not know its model."""

import os
import sys

import numpy  # noqa: F401  (its library is asked for below)
import pytest
from threadpoolctl import threadpool_info

from rlgym_bridge.policy.matrix_kernels import VARIABLE, choose_kernels, kernels_for, processor_flags
from tests.support.processes import run_to_end

AVX2 = {"avx2", "fma"}
AVX512 = {"avx512f", "avx512dq", "avx512bw", "avx512cd", "avx512vl"}


@pytest.mark.parametrize(
    ("flags", "kernels"),
    [
        (AVX2 | AVX512 | {"amx_tile"}, "SKYLAKEX"),
        (AVX2 | {"avx512f"}, "HASWELL"),
        (AVX2, "HASWELL"),
        ({"avx", "sse4_2"}, None),
        (set(), None),
    ],
    ids=["avx512", "part of avx512", "avx2", "avx", "unknown"],
)
def test_the_best_kernels_that_can_run_are_chosen(flags: set[str], kernels: str | None) -> None:
    assert kernels_for(flags) == kernels


def test_what_the_environment_says_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "NEHALEM")
    choose_kernels()
    assert os.environ[VARIABLE] == "NEHALEM"


@pytest.mark.skipif(not processor_flags() >= AVX2, reason="the processor has no AVX2, or nobody can tell")
def test_a_bots_products_use_vectors_of_256_bits_and_more(monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(one["internal_api"] == "openblas" for one in threadpool_info()):
        pytest.skip("numpy has another library here")
    monkeypatch.delenv(VARIABLE, raising=False)
    code = """
import rlgym_bridge, numpy
from threadpoolctl import threadpool_info
print(*(one["architecture"] for one in threadpool_info() if one["internal_api"] == "openblas"))
"""
    done = run_to_end([sys.executable, "-c", code])
    assert done.stdout.strip() in ("SkylakeX", "Haswell"), done.stderr
