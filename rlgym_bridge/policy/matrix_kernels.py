"""Choose the kernels of numpy's matrix products by what the processor can do.

numpy 1.26, the last that RLGym allows, brings OpenBLAS 0.3.23. That knows processors by their models, and
takes kernels of 2004 on newer ones (measured on Emerald Rapids): a network of 2x256 costs four times as much.
"""

import os
import sys
from typing import Final

VARIABLE: Final = "OPENBLAS_CORETYPE"
"""Name of the environment variable that OpenBLAS reads as it is loaded; other libraries do not know it."""

_AVX512: Final = {"avx512f", "avx512dq", "avx512bw", "avx512cd", "avx512vl"}
_AVX2: Final = {"avx2", "fma"}
_WINDOWS_HAS_AVX2: Final = 40  # PF_AVX2_INSTRUCTIONS_AVAILABLE [Windows SDK, winnt.h]
_READ_BYTES: Final = 8192  # of /proc/cpuinfo: one processor's entry has 1,500 or so


def choose_kernels() -> None:
    """Have numpy, where it is not loaded yet, and child processes use the kernels of this processor.

    What the environment says already stays. Older processors and those of other kinds are left to OpenBLAS.
    """
    if VARIABLE not in os.environ and (kernels := kernels_for(processor_flags())):
        os.environ[VARIABLE] = kernels


def kernels_for(flags: set[str]) -> str | None:
    """Return OpenBLAS's name for the best kernels that flags of /proc/cpuinfo allow, or None."""
    if flags >= _AVX512 | _AVX2:
        return "SKYLAKEX"
    return "HASWELL" if flags >= _AVX2 else None


def processor_flags() -> set[str]:
    """Return the instruction sets of this processor; empty where they are not known."""
    if sys.platform == "win32":
        import ctypes

        return set(_AVX2) if ctypes.windll.kernel32.IsProcessorFeaturePresent(_WINDOWS_HAS_AVX2) else set()
    try:
        with open("/proc/cpuinfo", "rb") as file:  # noqa: PTH123  (pathlib takes 5 ms to import)
            text = file.read(_READ_BYTES).decode(errors="replace")
    except OSError:  # not Linux
        return set()
    found = (line.partition(":")[2].split() for line in text.splitlines() if line.startswith("flags"))
    return set(next(found, ()))
