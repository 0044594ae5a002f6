"""Training, from play to update: our PPO against rlgym-learn's, in turns and with equal settings.

The peer wants a terminal, wandb and packages that nothing else here needs. So it gets an environment of its
own in `.venv/peer`, made when it is first needed, a terminal that nobody types into, and an empty wandb.
"""

import csv
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rlgym_bridge.training.settings import TrainingSettings, settings_as_toml
from tests.support.processes import run_to_end
from tools.benchmarks.runner import Skipped, compared

_ROOT = Path(__file__).parents[2]
_PEER = _ROOT / ".venv" / "peer"
PEER_PYTHON = _PEER / "bin" / "python"
_PACKAGES = (
    "rlgym-learn==1.0.5",
    "rlgym-learn-algos==0.2.6",
    "rlgym-rocket-league",
    "rocketsim",
    "numpy",
    "torch",
)
_INSTALL_SECONDS, _RUN_SECONDS = 1800.0, 600.0  # at most

_COLLECTORS, _MATCHES, _STEPS, _MINIBATCH = 2, 128, 32, 2048
BATCH = _COLLECTORS * _MATCHES * _STEPS * 2  # agent steps of an iteration, of either
_PROCESSES = 8  # of the peer, one match each
_WARM_UP = 3  # iterations that do not count
_OURS, _THEIRS = 40, 10  # iterations that do: about as long as each other


def ppo_vs_rlgym_learn(rounds: int) -> dict[str, Any]:
    """Train both in turns, some iterations each from the first on; medians of agent steps a second.

    Equal are the match (1v1, kickoffs, goals and touches, both timeouts), observation, actions and tick skip,
    the networks, the batch of an iteration, the steps of a gradient step, the epochs, torch and its threads.
    How they play is each one's own: we have two processes of 128 matches, the peer has a match to a process.

    Args:
        rounds: Turns.

    Raises:
        Skipped: The peer cannot be installed, or does not run here.
    """
    install_peer()
    ours, theirs = [], []
    for turn in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            ours.append(_ours(Path(folder), turn))
        with tempfile.TemporaryDirectory() as folder:
            try:
                theirs.append(_theirs(Path(folder), turn))
            except RuntimeError as error:
                raise Skipped(f"rlgym-learn does not run here: {error}") from error
    peer = f"{_PACKAGES[0]}, {_PACKAGES[1]}, {_PROCESSES} processes"
    return compared(ours, theirs, "agent steps/s of playing and learning", peer)


def settings_of(folder: Path, seed: int, iterations: int) -> TrainingSettings:
    """Return the settings of a run whose last `iterations` count."""
    steps = (_WARM_UP + iterations) * BATCH
    return TrainingSettings(
        out=str(folder / "run"),
        components="tools.benchmarks.default_obs",
        steps=steps,
        seed=seed,
        collectors=_COLLECTORS,
        matches=_MATCHES,
        rollout_steps=_STEPS,
        minibatch=_MINIBATCH,
        snapshot_share=0.0,
        device="cpu",
        threads=2,
        checkpoint_every=2 * steps,  # never: the peer does not either
        goal=10.0,
        touch=1.0,
        touch_strength=0.0,
        velocity_to_ball=0.0,
        velocity_ball_to_goal=0.0,
        no_touch_seconds=30.0,
        kickoff_share=1.0,
    )


def _ours(folder: Path, seed: int) -> float:
    settings, file = settings_of(folder, seed, _OURS), folder / "settings.toml"
    file.write_text(settings_as_toml(settings), encoding="utf-8")
    _run([sys.executable, "-m", "training", str(file), "--quiet"], folder, _ROOT)
    with (folder / "run" / "progress.csv").open(newline="", encoding="utf-8") as table:
        return speed_of([(int(row["steps"]), float(row["seconds"])) for row in csv.DictReader(table)])


def _theirs(folder: Path, seed: int) -> float:
    file, log, empty = (folder / name for name in ("settings.json", "log", "empty"))
    settings = dataclasses.asdict(settings_of(folder, seed, _THEIRS))
    settings |= {"batch": BATCH, "processes": _PROCESSES}
    file.write_text(json.dumps(settings), encoding="utf-8")
    log.touch()
    empty.mkdir()
    (empty / "wandb.py").touch()
    script = Path(__file__).with_name("rlgym_learn_peer.py")
    words = _run([str(PEER_PYTHON), str(script), str(file), str(log)], folder, empty)
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    if len(rows) < _WARM_UP + _THEIRS:  # it says what went wrong, and ends as if nothing had
        raise RuntimeError(f"rlgym-learn ended after {len(rows)} iterations:\n{words}")
    return speed_of(rows)


def speed_of(rows: list[Any]) -> float:
    """Return agent steps a second after the warm-up, from (agent steps, seconds) at each iteration's end."""
    (first, began), (last, ended) = rows[_WARM_UP - 1], rows[-1]
    return (last - first) / (ended - began)


def _run(command: list[str], folder: Path, packages: Path) -> str:
    """Run a program with a terminal as its input and end all that it started; return its last words."""
    env = os.environ | {
        "PYTHONPATH": str(packages),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive",
    }
    words, terminal = folder / "words", os.openpty()
    try:
        with words.open("w") as out:
            code = run_to_end(
                command, seconds=_RUN_SECONDS, stdin=terminal[1], stdout=out, stderr=out, cwd=folder, env=env,
                start_new_session=True,
            ).returncode  # fmt: skip
    except subprocess.TimeoutExpired:
        code = None
    finally:
        for end in terminal:
            os.close(end)
    said = words.read_text(errors="replace")[-2000:]
    if code != 0:
        how = f"takes more than {_RUN_SECONDS:.0f} s" if code is None else f"ends with exit code {code}"
        raise RuntimeError(f"{' '.join(command)} {how}:\n{said}")
    return said


def wanted_packages() -> str:
    """Return the packages of the peer with their versions in constraints.txt, as it records them."""
    names = {one.partition("==")[0] for one in _PACKAGES}
    pinned = (_ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join([*_PACKAGES, *(one for one in pinned if one.partition("==")[0] in names)])


def install_peer() -> None:
    """Make the peer's environment, unless it is there with these packages."""
    if sys.platform == "win32":
        raise Skipped("rlgym-learn is given a terminal that Windows does not have")
    constraints, done, wanted = _ROOT / "constraints.txt", _PEER / ".installed", wanted_packages()
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return
    print(f"making {_PEER.relative_to(_ROOT)} for rlgym-learn", flush=True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pip = [str(PEER_PYTHON), "-m", "pip", "install", "--quiet", "--constraint", str(constraints)]
    for command in ([sys.executable, "-m", "venv", "--clear", str(_PEER)], [*pip, *_PACKAGES]):
        try:
            run_to_end(command, env=env, check=True, seconds=_INSTALL_SECONDS)
        except subprocess.CalledProcessError as error:
            said = (error.stderr or error.stdout)[-500:]
            raise Skipped(f"rlgym-learn cannot be installed: {said}") from error
        except (subprocess.TimeoutExpired, OSError) as error:
            raise Skipped(f"rlgym-learn cannot be installed: {error}") from error
    done.write_text(wanted, encoding="utf-8")
