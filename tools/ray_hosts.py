"""Train on three machines that are namespaces of this one: `sudo .venv/bin/python tools/ray_hosts.py`.

    switch: a bridge  --- veth --- host 1: head, learner --- host 2: worker --- host 3: worker --- host 4 ...

Each host has a network, processes, `/tmp` and `/dev/shm` of its own. Nothing of them has a name outside, and
no packet leaves them: with their first processes everything is gone, whatever ends this program; after a
kill -9 a folder in `/var/tmp` stays. It needs Linux, root, and iproute2 and util-linux.
"""

import argparse
import csv
import ctypes
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

ROOT: Final = Path(__file__).parents[1]
RAY: Final = (sys.executable, "-m", "ray.scripts.scripts")
BRIDGE: Final = (sys.executable, "-m", "rlgym_bridge.cli")
SETTINGS: Final = 'simulator = "rocketsim3"\nthreads = 1\ncheckpoint_every = 500_000\n'
PORTS: Final = {"--node-manager-port": 6380, "--object-manager-port": 6381, "--min-worker-port": 10002,
                "--max-worker-port": 10999}  # fmt: skip
"""Ports that a firewall between the hosts would have to open, beside 6379 of the head."""
_DIE_WITH_PARENT: Final = (1, signal.SIGKILL)  # PR_SET_PDEATHSIG
_KEEP: Final = "mount --bind {folder} /tmp && mount -t tmpfs tmpfs /dev/shm && exec sleep infinity"


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(*_DIE_WITH_PARENT)


class Host:
    """A machine made of namespaces; a context manager.

    Args:
        number: Of the host; its address is `10.77.0.NUMBER`.
        folder: Becomes its `/tmp`.
    """

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder, self.address = number, folder, f"10.77.0.{number}"
        folder.mkdir()
        spaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        keep = ["sh", "-c", _KEEP.format(folder=folder)]
        self._keeper = subprocess.Popen([*spaces, *keep], preexec_fn=_die_with_parent)
        children = Path(f"/proc/{self._keeper.pid}/task/{self._keeper.pid}/children")
        until = time.monotonic() + 5
        while not (text := children.read_text().split()) and time.monotonic() < until:
            time.sleep(0.01)
        self.pid = int(text[0])
        time.sleep(0.2)  # for its mounts

    def command(self, *words: str) -> list[str]:
        """Return a command that runs in the host."""
        return ["nsenter", "-t", str(self.pid), "--net", "--mount", "--pid", "--", *words]

    def run(self, *words: str) -> str:
        """Run a command in the host to its end; return what it prints."""
        return subprocess.run(self.command(*words), check=True, stdout=subprocess.PIPE, text=True).stdout

    def network(self, *words: str) -> str:
        """Run a command in the host's network alone: processes have the numbers of this machine."""
        command = ["nsenter", "-t", str(self.pid), "--net", "--", *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def start(self, *words: str, log: str, **environment: str) -> "subprocess.Popen[bytes]":
        """Start a command in the host; its output goes to a file of the host's folder."""
        own = {"HOME": "/tmp", "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": "/tmp"}
        with (self.folder / log).open("ab") as file:
            return subprocess.Popen(
                self.command(*words), stdout=file, stderr=file, cwd=ROOT,
                env=os.environ | own | environment, preexec_fn=_die_with_parent,
            )  # fmt: skip

    def end(self) -> None:
        """End all its processes at once, as a power cut would."""
        self._keeper.kill()
        self._keeper.wait()

    def __enter__(self) -> Self:
        """Return the host."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """End it."""
        self.end()


class Network:
    """Hosts on a bridge, and Ray on them; a context manager.

    Args:
        folder: For what they write.
        processors: Of each worker.
    """

    def __init__(self, folder: Path, processors: int) -> None:
        self._folder, self._processors, self._open = folder, processors, ExitStack()
        self._secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self._switch = self._open.enter_context(Host(0, folder / "switch"))
        self._switch.network("ip", "link", "add", "bridge", "type", "bridge")
        self._switch.network("ip", "link", "set", "bridge", "up")
        self.hosts: list[Host] = []

    def add(self) -> Host:
        """Add a host and begin Ray on it: the first is the head, without processors for collectors."""
        number = len(self.hosts) + 1
        host = self._open.enter_context(Host(number, self._folder / str(number)))
        self.hosts.append(host)
        port = f"port{number}"
        peer = ["peer", "name", "eth0", "netns", str(host.pid)]
        self._switch.network("ip", "link", "add", port, "type", "veth", *peer)
        self._switch.network("ip", "link", "set", port, "master", "bridge", "up")
        host.network("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            host.network("ip", "link", "set", device, "up")
        first = self.hosts[0].address
        role = ["--head", "--port", "6379", "--include-dashboard", "false", "--num-cpus", "0"]
        if number > 1:
            role = ["--address", f"{first}:6379", "--num-cpus", str(self._processors)]
        ports = [str(one) for pair in PORTS.items() for one in pair]
        common = [
            *ports,
            "--node-ip-address",
            host.address,
            "--object-store-memory",
            str(256 << 20),
            "--block",
        ]
        host.start(*RAY, "start", *role, *common, log="ray.log", **self._secret)
        return host

    def train(self, *words: str, log: str) -> "subprocess.Popen[bytes]":
        """Start a training on the head."""
        command = [*BRIDGE, "train", *words]
        return self.hosts[0].start(*command, log=log, **self._secret)

    def bytes_of_ports(self) -> dict[str, tuple[int, int]]:
        """Return the bytes that each host has sent and received."""
        found: list[dict[str, Any]] = json.loads(self._switch.network("ip", "-s", "-j", "link"))
        ports = [one for one in found if one["ifname"].startswith("port")]
        return {
            f"10.77.0.{one['ifname'].removeprefix('port')}": (
                one["stats64"]["rx"]["bytes"], one["stats64"]["tx"]["bytes"],
            )
            for one in ports
        }  # fmt: skip

    def __enter__(self) -> Self:
        """Return the network."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """End all hosts."""
        self._open.close()


def rows_of(run: Path) -> list[dict[str, float]]:
    """Return the whole lines of a run's table; none before there is one."""
    try:
        text = (run / "progress.csv").read_text()
    except FileNotFoundError:
        return []
    lines = text[: text.rfind("\n") + 1].splitlines()
    return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(lines)]


def wait_for_ray(host: Host) -> None:
    """Wait until Ray runs on a host."""
    log, until = host.folder / "ray.log", time.monotonic() + 90
    while "Ray runtime started" not in log.read_text():
        if time.monotonic() > until:
            raise RuntimeError(f"Ray does not begin on {host.address}:\n{log.read_text()}")
        time.sleep(0.5)


def say(text: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def wait_for_steps(training: "subprocess.Popen[bytes]", run: Path, lines: int, log: Path) -> None:
    """Wait until a training has written so many lines of its table."""
    until = time.monotonic() + 180
    while len(rows_of(run)) < lines:
        if training.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"the training does not begin:\n{log.read_text()}")
        time.sleep(0.5)


def stop(training: "subprocess.Popen[bytes]", head: Host) -> int:
    """End a training as Ctrl-C does; return its exit code."""
    head.run("pkill", "-INT", "-f", "rlgym_bridge.cli train")
    return training.wait(120)


class Watched:
    """A training on the head: its log as it is written, and the bytes that hosts send.

    Args:
        network: Of the hosts.
        log: File of the log.
    """

    def __init__(self, network: Network, log: Path) -> None:
        self._network, self._log, self._shown = network, log, 0
        self._first = network.bytes_of_ports()
        self._last = dict(self._first)

    def look(self) -> None:
        """Print new lines of the log; count bytes, also of hosts that are gone later."""
        text = self._log.read_text()
        for line in text[self._shown : text.rfind("\n") + 1].splitlines():
            say(f"  {line[:200]}")
        self._shown = max(self._shown, text.rfind("\n") + 1)
        self._last |= self._network.bytes_of_ports()

    def sent(self) -> dict[str, int]:
        """Return the bytes that each host has sent."""
        return {host: sent - self._first.get(host, (0, 0))[0] for host, (sent, _) in self._last.items()}


def live_through(network: Network, folder: Path, minutes: float, words: list[str]) -> int:
    """Train for some minutes while a collector is killed, a host joins, and another loses its power."""
    head, run, log = network.hosts[0], folder / "1" / "run", folder / "1" / "train.log"
    training = network.train(*words, "--ray", f"{head.address}:6379", "--out", "/tmp/run", log="train.log")
    wait_for_steps(training, run, 3, log)
    began, steps, watched = time.monotonic(), rows_of(run)[-1]["steps"], Watched(network, log)
    length, victim = minutes * 60, network.hosts[random.choice((1, 2))]
    events = [
        (random.uniform(0.2, 0.4) * length, "kill"), (0.5 * length, "join"), (0.7 * length, "power"),
    ]  # fmt: skip
    for at, event in [*events, (length, "end")]:
        while time.monotonic() - began < at and training.poll() is None:
            watched.look()
            time.sleep(0.5)
        if event == "kill":
            pid = victim.run("pgrep", "-f", "ray::RemoteCollector").split()[0]
            victim.run("kill", "-9", pid)
            say(f"killed a collector on {victim.address} (kill -9)")
        elif event == "join":
            say(f"host {network.add().address} begins")
        elif event == "power":
            victim.end()
            say(f"host {victim.address} has lost its power")
    watched.look()
    rows = rows_of(run)
    code = stop(training, head)
    watched.look()
    played, sent = rows[-1]["steps"] - steps, watched.sent()
    say(f"{played:,.0f} agent steps in {time.monotonic() - began:.0f} s; Ctrl-C: exit code {code}")
    megabytes = {host: round(count / 1e6, 1) for host, count in sent.items()}
    say(f"{sum(sent.values()) / played:.0f} bytes a step; MB that each host sent: {megabytes}")
    for name in ("lost_collectors", "dropped_rollouts"):
        say(f"{name}: {sum(row[name] for row in rows):.0f}")
    longest = max(after["seconds"] - before["seconds"] for before, after in pairwise(rows))
    oldest = max(row["batch_age"] for row in rows)
    say(f"longest iteration: {longest:.1f} s; oldest batch: {oldest:.1f} updates")
    return code


def compare(network: Network, folder: Path, pairs: int, seconds: float, words: list[str]) -> None:
    """Train in turns on the hosts and on the head alone, with as many collectors; print both speeds."""
    head, count = network.hosts[0], len(network.hosts) - 1
    (folder / "1" / "count.toml").write_text(f"collectors = {count}\n")
    for number in range(pairs):
        speeds = {}
        for kind in ("ray", "local"):
            run, name = folder / "1" / f"{kind}{number}", f"{kind}{number}"
            where = ["--ray", f"{head.address}:6379"] if kind == "ray" else []
            training = network.train(
                *words, "/tmp/count.toml", *where, "--out", f"/tmp/{name}", log=name + ".log"
            )
            wait_for_steps(training, run, 3, folder / "1" / f"{name}.log")
            first, before = rows_of(run)[-1], network.bytes_of_ports()
            time.sleep(seconds)
            last, after = rows_of(run)[-1], network.bytes_of_ports()
            stop(training, head)
            steps = last["steps"] - first["steps"]
            speeds[kind] = steps / (last["seconds"] - first["seconds"])
            sent = sum(after[host][0] - before[host][0] for host in after)
            say(f"{name}: {speeds[kind]:,.0f} agent steps/s, {sent / steps:.0f} bytes a step")
        say(f"ray / local: {speeds['ray'] / speeds['local']:.2f}")


def main() -> int:
    """Make the hosts, and train on them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("settings", nargs="*", help="files of settings of the training")
    parser.add_argument("--minutes", type=float, default=10.0, help="of the training (default: 10)")
    parser.add_argument("--processors", type=int, default=1, help="of each worker (default: 1)")
    parser.add_argument("--pairs", type=int, default=0, help="compare with local collectors, so many times")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each training of a pair")
    options = parser.parse_args()
    if sys.platform != "linux" or os.geteuid():
        parser.error("expected Linux, and root, who may make namespaces")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="ray-hosts-", dir="/var/tmp") as text:
        folder = Path(text)
        with Network(folder, options.processors) as network:
            head = network.add()
            wait_for_ray(head)
            for worker in [network.add(), network.add()]:
                wait_for_ray(worker)
                say(f"host {worker.address} is there")
            (head.folder / "settings.toml").write_text(SETTINGS)
            words = ["/tmp/settings.toml"]
            for number, file in enumerate(options.settings):  # the head has a /tmp of its own
                shutil.copyfile(file, head.folder / f"settings-{number}.toml")
                words.append(f"/tmp/settings-{number}.toml")
            if options.pairs:
                compare(network, folder, options.pairs, options.seconds, words)
                return 0
            return live_through(network, folder, options.minutes, words)


if __name__ == "__main__":
    sys.exit(main())
