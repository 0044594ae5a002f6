"""What `bot.py` calls: load a policy, play the match that RLBot started this process for."""

import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from rlgym_bridge.dialect import Dialect, read_input_latency
from rlgym_bridge.live.agent import Agent
from rlgym_bridge.live.player import Override
from rlgym_bridge.policy.load_player import load_player

SELECTION_VARIABLE = "RLGYM_BRIDGE_SELECTION"
"""Environment variable that overrides how actions are chosen: `sample` or `argmax`."""

DIALECT_VARIABLE = "RLGYM_BRIDGE_DIALECT"
"""Environment variable with the path of a `dialect.toml`, in place of the one in the bot's folder."""

DIALECT_FILE = "dialect.toml"
"""Read from the bot's folder, where it is there; `rlgym-bridge probe --out` writes it."""

_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
_LOG = logging.getLogger("rlgym_bridge")


def play(
    policy: str | Path,
    *,
    agent_id: str | None = None,
    allow_modules: Sequence[str] = (),
    override: Override | None = None,
    folder: str | Path | None = ".",
    record: str | Path | None = None,
) -> int:
    """Play a match; returns when the server says goodbye.

    A `dialect.toml` in the bot's folder says how the server speaks, and how many ticks late inputs act: that
    is made up for as far as the policy's action delay allows. `RLGYM_BRIDGE_DIALECT` names another one.

    Args:
        policy: A policy folder, or `"chaser"`.
        agent_id: Used where RLBot did not set `RLBOT_AGENT_ID`: the one of your `bot.toml`.
        allow_modules: See `load_player`.
        override: Called with the state of a packet in play; the rows it returns, `(8,)` for one tick or
            `(ticks, 8)`, are sent in place of the policy's, and it is asked again when they are used up: a
            hard-coded kickoff, for example. Where it takes two arguments it is called for each car of the
            bot, with the car's row in the state (`state.car_position[0, row]`).
        record: File or folder to record the match to: packets, inputs, decisions. The environment variable
            `RLGYM_BRIDGE_RECORD` goes before it.
        folder: The bot's folder; the current one is, where RLBot started the bot. None: it has none.

    Returns:
        The exit code: 0 after a goodbye, 1 without a server, 2 when the policy cannot be played, or not in
        a match of these team sizes.
    """
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    _limit_threads()
    try:
        selection = os.environ.get(SELECTION_VARIABLE) or None
        brain, dialect = load_player(policy, allow_modules, selection), None
        if override is not None:
            brain = replace(brain, shadow=None)  # it may read what Chaser does without
        file = _dialect_file(folder)
        if file is not None:
            dialect, latency = Dialect.read(file), read_input_latency(file)
            _tell(file, dialect, latency)
            if latency is not None:
                brain = replace(brain, timing=replace(brain.timing, input_latency=latency))
        agent = Agent(brain, agent_id, override, dialect=dialect, policy=policy, record=record)
    except (OSError, ValueError) as error:
        _LOG.error("%s", error)
        return 2
    agent.report.dialect_file = None if file is None else str(file)
    return agent.run()


def _limit_threads() -> None:
    """Leave one thread to numpy's matrix products, unless the environment says how many.

    A bot's products are small: threads that wait for each other on the game's cores cost milliseconds.
    """
    if not any(name in os.environ for name in _THREAD_VARIABLES):
        threadpool_limits(1, user_api="blas")


def _dialect_file(folder: str | Path | None) -> Path | None:
    """Return the file that tells of the server, None where there is none."""
    if named := os.environ.get(DIALECT_VARIABLE):
        return Path(named).absolute()
    file = None if folder is None else Path(folder, DIALECT_FILE).absolute()
    return file if file is not None and file.is_file() else None


def _tell(file: Path, dialect: Dialect, latency: int | None) -> None:
    """Say in the log what a file settles."""
    settled = [f"{name}={value}" for name, value in dialect.items()]
    if latency is not None:
        settled.append(f"input_latency={latency}")
    _LOG.info("%s settles %s", file, ", ".join(settled) or "nothing")
