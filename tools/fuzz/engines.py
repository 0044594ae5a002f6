"""Run one target in this process: `python -m tools.fuzz.engines ENGINE TARGET SECONDS SEED FOLDER`.

The engine `hypothesis` mutates good bytes by chance. The engine `atheris` is guided by the lines that it has
reached; it is used where it is installed. A finding is written into the folder, and ends the process with 1.
"""

import hashlib
import logging
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_SECONDS: Final = 20  # of processor time for one input: more is a finding, whatever else the machine does
_OTHER_SECONDS: Final = 60  # of processor time for imports and the end of the process
_MEMORY: Final = 6 << 30  # bytes of address space: more is a finding
_BATCH: Final = 200  # examples between two looks at the time


class TooSlow(BaseException):
    """An input took longer than it may; no reader catches this."""


def _stop(number: int, frame: Any) -> None:
    raise TooSlow(f"more than {_SECONDS} s of processor time")


@contextmanager
def limited() -> Iterator[None]:
    """Raise TooSlow in a block that takes more than `_SECONDS` of this process's processor time."""
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _keep(folder: Path, name: str, data: bytes, error: BaseException) -> None:
    """Write a finding: the bytes, and the traceback beside them."""
    file = folder / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    file.write_bytes(data)
    text = "".join(traceback.format_exception(error))
    file.with_suffix(".txt").write_text(text)
    print(f"{name}: {type(error).__name__}: {str(error)[:200]} ({file})", flush=True)


def by_chance(name: str, seconds: float, seed: int, folder: Path) -> int:
    """Fuzz a target with hypothesis; return the exit status."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    from tools.fuzz import targets
    from tools.fuzz.mutants import mutants

    one, tried = targets.target(name), 0
    seeds = one.seeds()
    if not seeds:
        print(f"{name}: nothing to begin with")
        return 0
    end, last = time.monotonic() + seconds, b""

    @settings(
        max_examples=_BATCH, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    @given(mutants(seeds))
    def look(data: bytes) -> None:
        nonlocal tried, last
        if time.monotonic() < end:
            tried, last = tried + 1, data
            with limited():
                targets.run_one(one, data)

    while time.monotonic() < end:
        try:
            seeded(seed)(look)()
        except BaseException as error:
            _keep(folder, name, last, error)
            return 1
        seed += 1
    print(f"{name}: {tried:,} inputs by hypothesis, no finding", flush=True)
    return 0


def guided(name: str, seconds: float, seed: int, folder: Path) -> int:
    """Fuzz a target with atheris; return the exit status."""
    import atheris

    with atheris.instrument_imports(include=["rlgym_bridge"]):
        from tools.fuzz.targets import run_one, target

        one = target(name)
        seeds = one.seeds()
        for data in seeds:
            run_one(one, data)  # what is imported late is instrumented, too
    if not seeds:
        print(f"{name}: nothing to begin with")
        return 0
    corpus = folder / f"corpus-{name}"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(data)

    def look(data: bytes) -> None:
        try:
            with limited():
                run_one(one, data)
        except BaseException as error:
            _keep(folder, name, data, error)
            raise

    longest = max(map(len, seeds)) * 2 + 64
    words = [
        f"-max_total_time={max(1, int(seconds))}", f"-seed={seed}", f"-max_len={longest}",
        "-rss_limit_mb=6000", f"-artifact_prefix={folder}/{name}-", "-verbosity=0",
        "-print_final_stats=1", str(corpus),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *words], look)
    atheris.Fuzz()
    return 0


def main() -> int:
    """Run what the command line says."""
    engine, name, seconds, seed, folder = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGPROF, _stop)
    most = int(float(seconds)) + _SECONDS + _OTHER_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))  # ends what does not come back to Python
    if engine == "hypothesis":
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        return by_chance(name, float(seconds), int(seed), Path(folder))
    return guided(name, float(seconds), int(seed), Path(folder))


if __name__ == "__main__":
    sys.exit(main())
