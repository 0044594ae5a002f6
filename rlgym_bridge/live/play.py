"""Run the bot process: load a policy, connect to an RLBot server, and play; `bot.py` calls `play`."""

import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from rlbot.interface import RLBOT_SERVER_IP, RLBOT_SERVER_PORT
from threadpoolctl import threadpool_limits

from rlgym_bridge.components.player_spec import Forecast, PlayerSpec, check_forecast
from rlgym_bridge.components.spec import UntrustedModuleError
from rlgym_bridge.live.agent_recorder import begin_recording
from rlgym_bridge.live.followed_run import FollowedRun
from rlgym_bridge.live.player import Faults, Override
from rlgym_bridge.live.session import AgentReport, BotSession, Refused
from rlgym_bridge.policy.files import policy_path
from rlgym_bridge.policy.load_player import BUILT_IN, load_player
from rlgym_bridge.protocol_variant import VariantFile
from rlgym_bridge.user_input.arguments import show_value
from rlgym_bridge.user_input.text_files import read_toml

_LOG = logging.getLogger("rlgym_bridge.agent")
CONNECT_SECONDS = 120.0
RECONNECT_SECONDS = 30.0
_RECONNECT_PAUSES = (0.0, 0.1, 0.3, 1.0)  # seconds before the next connection, by those without a packet
_SILENT_CONNECTIONS = 30  # in a row without a packet, after which the bot gives up

SEED_VARIABLE = "RLGYM_BRIDGE_SEED"
"""Name of the environment variable with the seed of the first episode, a whole number."""


class Agent:
    """Plays the cars that one RLBot server gives to an agent id, match after match.

    `RLBOT_AGENT_ID`, `RLGYM_BRIDGE_SEED` and `RLGYM_BRIDGE_RECORD` stand above the arguments. `policy`, as
    `play` takes it, is stored in a recording. A `followed` run's newest checkpoint plays in place of `spec`.
    A ValueError says that there is no agent id, or that an environment variable is not a whole number.
    """

    def __init__(
        self,
        spec: PlayerSpec,
        agent_id: str | None = None,
        override: Override | None = None,
        seed: int | None = None,
        measured: VariantFile | None = None,
        policy: str | Path = "",
        record: str | Path | None = None,
        followed: FollowedRun | None = None,
    ) -> None:
        name = os.environ.get("RLBOT_AGENT_ID") or agent_id
        if not name:
            raise ValueError(
                "there is no agent id: RLBot sets RLBOT_AGENT_ID when it starts a bot; to start a bot by "
                "hand, set it to the agent_id in bot.toml"
            )
        self.server = server_address()
        self.report = AgentReport(name, Faults(_LOG))
        self._spec, self._followed = spec, followed
        if followed is not None:
            self.report.checkpoints = followed.taken
        self._recorder = begin_recording(name, policy, record)
        set_seed = _whole_number(SEED_VARIABLE)
        self._connection = partial(
            BotSession, report=self.report, override=override, measured=measured,
            seed=seed if set_seed is None else set_seed, recorder=self._recorder, followed=followed,
        )  # fmt: skip

    def run(self) -> int:
        """Play until the server says goodbye: return 0, 1 without a server, 2 for team sizes not played.

        After a connection that ends without a goodbye the agent tries to reconnect for 30 s: at once where
        packets came, else after a pause that grows up to 1 s.
        """
        try:
            return self._run()
        finally:
            if self._recorder is not None:
                self._recorder.close()

    def _run(self) -> int:
        wait, silent = CONNECT_SECONDS, 0
        report = self.report
        while True:
            packets = report.packets
            spec = self._spec if self._followed is None else self._followed.spec
            session = self._connection(self.server, spec)
            try:
                session.connect(wait)
            except (OSError, TimeoutError) as error:
                _LOG.error(
                    "no RLBot server at %s:%d within %.0f s: %s. Start the match first, or set "
                    "RLBOT_SERVER_IP and RLBOT_SERVER_PORT.", *self.server, wait, error,
                )  # fmt: skip
                report.write()
                return 1
            try:
                goodbye = session.run()
            except Refused as error:
                report.refused = str(error)
                _LOG.error("%s does not play: its policy %s", report.agent_id, error)
                report.write()
                return 2
            report.write()
            if goodbye:
                return 0
            report.disconnects += 1
            wait = RECONNECT_SECONDS
            silent = silent + 1 if report.packets == packets else 0
            if silent >= _SILENT_CONNECTIONS:
                _LOG.error("the server at %s:%d closed %d connections without a packet", *self.server, silent)
                return 1
            report.faults.add("disconnected", "the server closed the connection without a goodbye")
            time.sleep(_RECONNECT_PAUSES[min(silent, len(_RECONNECT_PAUSES) - 1)])


def server_address() -> tuple[str, int]:
    """Return the RLBot server's numeric address, as rlbot's relay needs it, and its port.

    A ValueError says that `RLBOT_SERVER_IP` is not an address, or `RLBOT_SERVER_PORT` not a port.
    """
    host = os.environ.get("RLBOT_SERVER_IP") or RLBOT_SERVER_IP
    port = _whole_number("RLBOT_SERVER_PORT") or RLBOT_SERVER_PORT
    if not 0 < port < 65536:
        raise ValueError(f"RLBOT_SERVER_PORT is {port}, expected a TCP port from 1 to 65535")
    try:
        return str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]), port
    except OSError as error:
        raise ValueError(f"RLBOT_SERVER_IP is {host!r}, expected an address: {error}") from None


def _whole_number(variable: str) -> int | None:
    text = os.environ.get(variable)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{variable} is {text!r}, expected a whole number") from None


SELECTION_VARIABLE = "RLGYM_BRIDGE_SELECTION"
"""Name of the environment variable that overrides how actions are chosen: `sample` or `argmax`."""

DIALECT_VARIABLE = "RLGYM_BRIDGE_DIALECT"
"""Name of the environment variable with the path of a `dialect.toml` that replaces the bot's own."""

DIALECT_FILE = "dialect.toml"
"""Name of the dialect file in the bot's folder, if any; `rlgym-bridge probe --out` writes it."""

FORECAST_VARIABLE = "RLGYM_BRIDGE_FORECAST"
"""Name of the environment variable that overrides the setting `forecast`: `auto`, or ticks."""

_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def play(
    policy: str | Path | PlayerSpec,
    *,
    agent_id: str | None = None,
    allow_modules: Sequence[str] = (),
    override: Override | None = None,
    folder: str | Path | None = ".",
    record: str | Path | None = None,
    follow: bool = False,
) -> int:
    """Play a match; returns when the server says goodbye.

    A `dialect.toml` in the bot's folder gives the server's dialect and its input latency in ticks. The bot
    sends its inputs earlier by the latency, as far as the policy's action delay allows. A file that was
    measured on this project's match server counts there only, and one of another server does not count
    there. `RLGYM_BRIDGE_DIALECT` names another file.

    Args:
        policy: A policy folder, `"chaser"`, `"charger"` or `"random"`; or a player of your own making, with
            any object that has `reset` and `act`.
        agent_id: The agent id in your `bot.toml`, used where RLBot did not set `RLBOT_AGENT_ID`.
        allow_modules: See `load_player`.
        override: A function such as a hard-coded kickoff, called with the state of a packet in play. It
            returns None to let the policy play, or control rows, `(8,)` for one tick or `(ticks, 8)`, to
            send instead; it is called again when they are used up. With one parameter its rows drive all
            cars of the bot. With two it is called for each car, whose place in the state is the second
            argument (`state.car_position[0, car]`, uu).
        folder: The bot's folder; RLBot starts a bot in it. None for a bot without one.
        record: File or folder to record packets, inputs and decisions to. The environment variable
            `RLGYM_BRIDGE_RECORD` takes precedence.
        follow: Whether `policy` is a training run, whose newest checkpoint is played: newer ones are taken
            at kickoffs, never in play.

    Returns:
        The exit code: 0 after a goodbye, 1 without a server, 2 when the policy cannot be loaded, or does
        not play matches of these team sizes.
    """
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    if not any(name in os.environ for name in _THREAD_VARIABLES):  # small matrices need one thread
        threadpool_limits(1, user_api="blas")
    try:
        file = _dialect_file(folder)
        measured = None if file is None else VariantFile.read(file)
        forecast = _forecast_of(folder, agent_id)
        load = partial(_load, allow_modules, override is not None, forecast)
        followed = _followed(policy, load) if follow else None
        spec = load(policy) if followed is None else followed.spec
        named = "" if isinstance(policy, PlayerSpec) else policy_path(str(policy)) if follow else policy
        agent = Agent(
            spec, agent_id, override, measured=measured, policy=named, record=record, followed=followed
        )
    except (OSError, ValueError) as error:
        logging.getLogger("rlgym_bridge").error("%s", error)
        return 2
    return agent.run()


def _followed(run: str | Path | PlayerSpec, load: Callable[[Path], PlayerSpec]) -> FollowedRun:
    if not isinstance(run, str | Path):
        given = "a PlayerSpec" if isinstance(run, PlayerSpec) else show_value(run)
        raise ValueError(f"follow is True and policy is {given}, expected the folder of a training run")
    return FollowedRun(run, load)


def _load(
    allow_modules: Sequence[str], overridden: bool, forecast: Forecast | None, policy: str | Path | PlayerSpec
) -> PlayerSpec:
    spec = policy
    if not isinstance(spec, str | Path | PlayerSpec):
        raise ValueError(
            f"policy is {show_value(spec)}, expected a folder, {' or '.join(BUILT_IN)}, or a PlayerSpec"
        )
    if not isinstance(spec, PlayerSpec):
        folder = spec
        try:
            spec = load_player(folder, allow_modules, os.environ.get(SELECTION_VARIABLE) or None)
        except ValueError as error:
            told = _for_program(error, folder, allow_modules)
            if told is None:
                raise
            raise told from error
    if overridden:
        spec = replace(spec, shadow=None)  # the override may read fields that Chaser does not need
    return spec if forecast is None else replace(spec, forecast=forecast)


def _forecast_of(folder: str | Path | None, agent_id: str | None) -> Forecast | None:
    """Return the setting `forecast` that stands above the policy's, if any; ValueError for a wrong one."""
    if given := os.environ.get(FORECAST_VARIABLE):
        try:
            return check_forecast(int(given) if given.lstrip("-").isdecimal() else given)
        except ValueError as error:
            raise ValueError(f"{FORECAST_VARIABLE}: {error}") from None
    own = os.environ.get("RLBOT_AGENT_ID") or agent_id
    for file in [] if folder is None else sorted(Path(folder).glob("*bot.toml")):
        settings: object = None
        with suppress(OSError, ValueError):  # RLBot has read the file that is this bot's
            settings = read_toml(file).get("settings")
        if isinstance(settings, dict) and settings.get("agent_id") == own and "forecast" in settings:
            try:
                return check_forecast(settings["forecast"])
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from None
    return None


def _for_program(error: ValueError, policy: str | Path, allow_modules: Sequence[str]) -> ValueError | None:
    """Return the error of a policy whose module `play` was not given, with advice; None for other errors."""
    cause, program = error.__cause__, Path(sys.argv[0])
    if not isinstance(cause, UntrustedModuleError) or not cause.allow or program.name == "__main__.py":
        return None
    name = program.name if program.suffix == ".py" else "the bot's program"
    given = (*allow_modules, cause.allow)
    return ValueError(
        f"{policy}: {cause.problem}. {name} allows {', '.join(allow_modules) or 'no module'}; "
        f"if you trust {cause.allow}, write play(..., allow_modules={given!r}) there"
    )


def _dialect_file(folder: str | Path | None) -> Path | None:
    if path := os.environ.get(DIALECT_VARIABLE):
        return Path(path).absolute()
    file = None if folder is None else Path(folder, DIALECT_FILE).absolute()
    return file if file is not None and file.is_file() else None
