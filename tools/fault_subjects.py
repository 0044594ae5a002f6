"""The clients that the fault matrix puts behind a proxy: each a way to run one of ours."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
from mcap.exceptions import McapError
from mcap.records import Channel, Message
from mcap.stream_reader import StreamReader
from rlbot import flat
from rlgym.api import RLGym
from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, MutatorSequence

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.default_obs import DefaultObs
from rlgym_bridge.components.mutators import KickoffMutator
from rlgym_bridge.components.rewards import TouchReward
from rlgym_bridge.engines.live import LiveEngine
from rlgym_bridge.live.play import Agent
from rlgym_bridge.policy.folder import ComponentSpec, save_policy
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.recording.mcap.channels import agent_topic
from rlgym_bridge.recording.open import open_recording
from tests.support.players_by_hand import Always, brain
from tests.support.processes import child
from tests.support.rlgym_worlds import STANDARD

AGENT: Final = "matrix/ours"
OTHER: Final = "matrix/other"
CIRCLE: Final = 20  # of the lookup table: throttle and steer
_ENDS: Final = 10.0  # seconds in which a client ends


def match_for(cars: int, engine: bool = False) -> flat.MatchConfiguration:
    """Return a match of our cars in blue against the other one; nobody is started by the server."""
    ours = flat.CustomBot("Ours", agent_id=AGENT, hivemind=cars > 1)
    other = flat.CustomBot("Other", agent_id=OTHER, run_command="started by the matrix")
    teams = [flat.PlayerConfiguration(ours, 0) for _ in range(cars)] + [flat.PlayerConfiguration(other, 1)]
    return flat.MatchConfiguration(
        player_configurations=teams, wait_for_agents=True, skip_replays=True,
        enable_state_setting=engine, mutators=flat.MutatorSettings(),
    )  # fmt: skip


class Subject:
    """A client under test.

    Attributes:
        cars: That it drives.
        starts_match: It starts the match itself.
        error: What it ended with; "" while it goes on.
        ended: Nobody plays any more.
    """

    cars = 1
    starts_match = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.error = ""

    @property
    def ended(self) -> bool:
        return False

    def start(self, port: int) -> None:
        """Begin to play through the proxy."""

    def pause(self) -> None:
        """Stop it."""

    def go_on(self) -> None:
        """Let it go on."""

    def stop(self, delivered: int) -> str:
        """End it; return what is wrong with what it leaves behind."""
        return ""


class InThread(Subject):
    """A client that runs in a thread of this process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._may_play = threading.Event()
        self._may_play.set()
        self._port = 0

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def start(self, port: int) -> None:
        self._port = port
        self._thread.start()

    def _run(self) -> None:
        try:
            self._play()
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"

    def _play(self) -> None:
        raise NotImplementedError

    def stop(self, delivered: int) -> str:
        self._thread.join(_ENDS)
        return "it does not end" if self._thread.is_alive() else ""


class AgentSubject(InThread):
    """An agent that plays a policy folder."""

    records: Path | None = None

    def policy(self) -> Path:
        """Save a policy that drives in a circle."""
        sizes = (self.cars, 1)
        inputs = DefaultObs(zero_padding=None).size(*sizes)
        bias = np.zeros(90, np.float32)
        bias[CIRCLE] = 50.0
        save_policy(
            self.folder / "policy",
            {"layers.0.weight": np.zeros((90, inputs), np.float32), "layers.0.bias": bias},
            distribution="categorical", team_sizes=[sizes], selection="argmax",
            obs=ComponentSpec.of(DefaultObs, zero_padding=None),
            parser=ComponentSpec.of(RepeatAction, ComponentSpec.of(LookupTableAction), repeats=8),
        )  # fmt: skip
        return self.folder / "policy"

    def start(self, port: int) -> None:
        self._agent = Agent(load_player(self.policy()), AGENT, record=self.records)
        self._agent.server = ("127.0.0.1", port)
        super().start(port)

    def _play(self) -> None:
        self._agent.run()

    def replace_policy(self) -> None:
        """Put something else in place of its policy's files."""
        for file in (self.folder / "policy").iterdir():
            file.write_bytes(b"something else")


class HivemindSubject(AgentSubject):
    """An agent that plays two cars."""

    cars = 2


class RecorderSubject(AgentSubject):
    """An agent that records what it receives, does and sends."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.records = folder / "recorded.mcap"

    def stop(self, delivered: int) -> str:
        wrong = super().stop(delivered)
        assert self.records is not None
        return wrong or describe_loss(self.records, delivered)


class ProcessSubject(Subject):
    """An agent in a process of its own, which can be stopped or kept from writing."""

    cars = 1
    arguments: tuple[str, ...] = ()

    def start(self, port: int) -> None:
        self._stack = ExitStack()
        self._process: subprocess.Popen[Any] = self._stack.enter_context(
            child([sys.executable, "-m", "tools.fault_subjects", str(port), *self.arguments],
                  stderr=subprocess.PIPE, text=True)
        )  # fmt: skip

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def pause(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def stop(self, delivered: int) -> str:
        try:
            _, self.said = self._process.communicate(timeout=_ENDS)
        except subprocess.TimeoutExpired:
            return "it does not end"
        finally:
            self._stack.close()
        return f"exit code {self._process.returncode}" if self._process.returncode else ""


class HivemindProcess(ProcessSubject):
    """A hivemind in a process of its own."""

    cars = 2


class RecorderProcess(ProcessSubject):
    """A recording agent in a process of its own, whose files may grow up to some bytes."""

    limit = 0

    def start(self, port: int) -> None:
        self._file = self.folder / "recorded.mcap"
        self.arguments = (str(self._file), str(self.limit))
        super().start(port)

    def stop(self, delivered: int) -> str:
        wrong = super().stop(delivered)
        if self.limit and "the recording" not in self.said:
            return wrong or "no line in the log says that the recording ends"
        return wrong or describe_loss(self._file, 1 if self.limit else delivered)


class FullDisk(RecorderProcess):
    """A recording agent whose file may not grow beyond a few chunks."""

    limit = 40_000


class EngineSubject(InThread):
    """A learner's environment over the match: it steps without end, and begins anew after a goal."""

    starts_match = True

    def _play(self) -> None:
        engine = LiveEngine(
            match_for(1, engine=True), ("127.0.0.1", self._port), set_states=False, dialect=STANDARD,
            patience=20.0,
        )  # fmt: skip
        env: Any = RLGym(
            MutatorSequence(FixedTeamSizeMutator(1, 1), KickoffMutator(seed=0)),
            DefaultObs(zero_padding=None), RepeatAction(LookupTableAction(), 8), TouchReward(), engine,
        )  # fmt: skip
        try:
            env.reset()
            while True:
                self._may_play.wait(_ENDS)
                *_, ended, _ = env.step({agent: np.array([CIRCLE]) for agent in env.agents})
                if any(ended.values()):
                    env.reset()
        finally:
            engine._stream._connections.close()  # the match is not to end

    def pause(self) -> None:
        self._may_play.clear()

    def go_on(self) -> None:
        self._may_play.set()


def describe_loss(file: Path, delivered: int) -> str:
    """Return what a recording lacks; "" where it can be read and has as many packets as were delivered."""
    open_recording(file)
    with file.open("rb") as stream:
        reader = StreamReader(stream, skip_magic=False)
        topic = agent_topic(AGENT, "packets")
        channels, packets = {}, 0
        try:
            for record in reader.records:
                if isinstance(record, Channel):
                    channels[record.id] = record.topic
                packets += isinstance(record, Message) and channels[record.channel_id] == topic
        except McapError:  # the file of a full disk breaks off
            pass
    return "" if packets >= delivered else f"{packets} packets recorded of {delivered}"


def _run_agent(port: int, record: Path | None, limit: int) -> int:
    """Play through the proxy in this process, whose files may grow up to `limit` bytes."""
    if limit:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    agent = Agent(brain(Always(CIRCLE)), AGENT, record=record)
    agent.server = ("127.0.0.1", port)
    return agent.run()


if __name__ == "__main__":
    words = sys.argv[1:]
    file = Path(words[1]) if len(words) > 1 else None
    sys.exit(_run_agent(int(words[0]), file, int(words[2]) if len(words) > 2 else 0))
