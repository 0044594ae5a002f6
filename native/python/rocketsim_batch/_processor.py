"""Refuse a processor that lacks instructions of the build, before the compiled part is loaded."""

import platform
from collections.abc import Mapping

import numpy as np


def check_processor(machine: str, features: Mapping[str, bool]) -> None:
    """Make sure that a processor has what `.cargo/config.toml` builds for.

    Args:
        machine: As `platform.machine` names it.
        features: Instruction sets by name, as numpy found them; one that is not named is taken to be there.

    Raises:
        ImportError: It lacks SSE4.2; the message says what to do.
    """
    if machine.lower() in ("x86_64", "amd64") and not features.get("SSE42", True):
        raise ImportError(
            "rocketsim_batch needs a processor of x86-64-v2 (SSE4.2), as most since 2009 are; else remove "
            "target-cpu from native/.cargo/config.toml, and enter: pip install ./native"
        )


def _features() -> Mapping[str, bool]:
    core = getattr(np, "_core", None) or np.core
    found: Mapping[str, bool] = getattr(core._multiarray_umath, "__cpu_features__", {})
    return found


check_processor(platform.machine(), _features())
