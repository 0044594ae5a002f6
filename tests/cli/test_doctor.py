"""`doctor` says what is wrong with a machine, and runs on one where much is."""

import json
import socket
import sys
import tomllib
import types
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from rlgym_bridge.cli import doctor, main
from rlgym_bridge.cli.doctor import Check, check_machine
from rlgym_bridge.cli.field_test import _announce
from rlgym_bridge.user_input.extras import MESHES_VARIABLE
from tests.support.processes import run_to_end


def checks() -> dict[str, Check]:
    return {one.name: one for one in check_machine()}


def with_versions(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: versions.get(name) or real(name))


def test_this_machine_can_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", str(tmp_path / "out.json")]) == 0
    said = capsys.readouterr().out
    found: list[dict[str, Any]] = json.loads((tmp_path / "out.json").read_text())["checks"]
    assert {"Python", "rlbot", "numpy", "RocketSim", "RLBotServer"} <= {one["name"] for one in found}
    assert all(one["name"] in said for one in found)
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    told = {one["name"] for one in found} | {"extra rlgym", "extra dev", "extra docs"}
    assert {f"extra {name}" for name in extras} <= told


@pytest.mark.parametrize(
    ("versions", "name", "advice"),
    [
        ({"rlbot": "1.68.0"}, "rlbot", 'plain "rlbot" is v4'),
        ({"numpy": "2.1.0"}, "numpy", "numpy>=1.26,<2"),
        ({"pyarrow": "26.0.0"}, "numpy", "pyarrow<26"),
    ],
    ids=["rlbot v4", "numpy 2", "pyarrow for numpy 2"],
)
def test_versions_that_do_not_fit_are_wrong(
    versions: dict[str, str], name: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_versions(monkeypatch, **versions)
    found = checks()[name]
    assert found.state == "wrong" and advice in found.advice
    assert main(["doctor", "-q"]) == 1


def test_parts_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = {"torch", "rerun", "ray", "subtr_actor", "aiohttp"}
    for name in hidden:
        monkeypatch.setitem(sys.modules, name, None)
    real = doctor.find_spec
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name in hidden else real(name))
    found = checks()
    for extra in ("train", "view", "play", "replay", "ray", "rllib"):
        assert found[f"extra {extra}"].state == "missing" and "pip install" in found[f"extra {extra}"].advice
    assert not any(one.state == "wrong" for one in found.values())


def test_a_simulator_that_does_not_load_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rlgym_bridge.sim.arena", None)
    found = checks()["simulator"]
    assert found.state == "wrong" and "rlgym_bridge.sim.arena" in found.found


def installed_module(monkeypatch: pytest.MonkeyPatch, built: str, failure: str = "") -> None:
    """Have a `rocketsim_batch` that was built of sources with the hash `built`; the checkout's is "now"."""
    module = types.ModuleType("rocketsim_batch")
    module.__spec__ = ModuleSpec("rocketsim_batch", None)
    vars(module).update(__version__="0.9.1", INTERFACE=7, SOURCE_HASH=built, source_hash=lambda folder: "now")
    monkeypatch.setitem(sys.modules, "rocketsim_batch", module)

    def make_simulator(*given: object) -> None:
        if failure:
            raise ImportError(failure)

    monkeypatch.setattr("rlgym_bridge.sim.simulator.make_simulator", make_simulator)


@pytest.mark.parametrize(
    ("built", "failure", "state", "told"),
    [
        (None, "", "missing", "RocketSim 2.2.1 plays and trains"),
        ("now", "", "fine", "rocketsim_batch 0.9.1, interface 7, built of the sources in "),
        ("before", "", "wrong", "a stale build"),
        ("now", "it has interface 7, expected 8", "wrong", "interface 7, expected 8"),
    ],
    ids=["not there", "fresh", "of other sources", "of another interface"],
)
def test_rocketsim_3_is_fine_only_as_a_fresh_build(
    built: str | None, failure: str, state: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if built is None:
        monkeypatch.setitem(sys.modules, "rocketsim_batch", None)
    else:
        installed_module(monkeypatch, built, failure)
    found = checks()["RocketSim 3"]
    assert found.state == state and told in found.found
    assert ("collision_meshes" in found.found) == (state == "fine")
    advised = "make native" in found.advice and "pip install ./native" in found.advice
    assert advised == (state != "fine")
    assert main(["doctor", "-q"]) == int(state == "wrong")


def test_where_the_meshes_are_missing_no_build_is_advised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MESHES_VARIABLE, str(tmp_path))
    found = checks()["RocketSim 3"]
    assert found.state == "wrong" and "let RLGYM_BRIDGE_MESHES name a folder" in found.found
    assert not found.advice


def test_without_a_checkout_rocketsim_3_comes_from_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlgym_bridge.user_input.extras._ROOT", tmp_path)
    installed_module(monkeypatch, "before")
    assert checks()["RocketSim 3"].state == "fine"  # no sources here that it could be too old for
    monkeypatch.setitem(sys.modules, "rocketsim_batch", None)
    assert "rocketsim_batch-*.whl" in checks()["RocketSim 3"].advice


def test_a_server_that_listens_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("RLBOT_SERVER_PORT", str(listener.getsockname()[1]))
        found = checks()["RLBotServer"]
    assert found.state == "fine" and "something listens on 127.0.0.1" in found.found
    for port in ("abc", "-1", "99999999"):
        monkeypatch.setenv("RLBOT_SERVER_PORT", port)
        found = doctor._server()
        assert found.state == "wrong" and f"RLBOT_SERVER_PORT is {port!r}" in found.found


def installed_server(monkeypatch: pytest.MonkeyPatch, folder: Path, says: str) -> str:
    """Install a program in RLBotServer's place that prints a text and ends; return its path."""
    file = folder / "RLBot5" / "bin" / "RLBotServer"
    file.parent.mkdir(parents=True)
    file.write_text(
        f"#!{sys.executable}\nimport sys\nprint({says!r} if sys.argv[1:] == ['--version'] else '')"
    )
    file.chmod(0o755)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    return str(file)


@pytest.mark.skipif(sys.platform == "win32", reason="starts a file with a shebang")
@pytest.mark.parametrize(
    ("says", "state", "told"),
    [
        ("RLBotServer v5.0.0-rc.16\nBridge 0.9.2", "fine", "5.0.0-rc.16"),
        ("RLBotServer v5.0.0-rc17", "fine", "5.0.0-rc17"),
        ("RLBotServer v5.0.0", "fine", "5.0.0"),
        ("RLBotServer v5.1.0-rc.2", "fine", "5.1.0-rc.2"),
        ("RLBotServer v5.0.0-rc.15", "wrong", "5.0.0-rc.15"),
        ("RLBotServer v5.beta.7.10", "wrong", "5.beta.7.10"),
        ("Usage: something else", "note", "'Usage: something else"),
    ],
)
def test_an_rlbot_that_is_too_old_is_wrong(
    says: str, state: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = installed_server(monkeypatch, tmp_path, says)
    found = checks()["RLBot core"]
    assert found.state == state and told in found.found and file in found.found
    assert ("RLBot's launcher" in found.advice) == (state == "wrong")


@pytest.mark.skipif(sys.platform == "win32", reason="starts a file with a shebang")
def test_an_rlbot_that_does_not_start_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(installed_server(monkeypatch, tmp_path, "")).write_bytes(b"no program")
    found = checks()["RLBot core"]
    assert found.state == "note" and "did not say its version" in found.found


@pytest.mark.parametrize(
    ("name", "command", "state", "told"),
    [
        ("RocketLeague.exe", ["C:\\RocketLeague.exe", "-rlbot", "-nomovie"], "fine", "as process 7"),
        ("RocketLeague.exe", None, "fine", "as process 7"),
        ("RocketLeague.exe", ["RocketLeague_EAC.exe", "-rlbot"], "note", "with Easy Anti-Cheat"),
        ("RocketLeague_EAC.exe", None, "note", "with Easy Anti-Cheat"),
        ("RocketLeague.exe", ["C:\\RocketLeague.exe"], "note", "without -rlbot"),
    ],
    ids=["by RLBot", "unreadable", "EAC as an argument", "EAC as a name", "by its player"],
)
def test_a_game_that_rlbot_did_not_start_is_to_be_closed(
    name: str, command: list[str] | None, state: str, told: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    one = SimpleNamespace(info={"name": name, "pid": 7, "exe": None, "cmdline": command})
    monkeypatch.setattr("psutil.process_iter", lambda names: [one])
    found = checks()["Rocket League"]
    assert found.state == state and told in found.found
    assert ("close it" in found.advice) == (state == "note")
    options: Any = SimpleNamespace(parts=["probe"], server="rlbot")
    test: Any = SimpleNamespace(seconds=lambda part: 110.0)
    _announce(options, Console(width=300), test, real=True)  # what `field-test` prints before it begins
    assert (told in capsys.readouterr().out) == (state == "note")


@pytest.mark.parametrize("command", ["doctor", pytest.param("match", marks=pytest.mark.slow)])
def test_without_a_package_that_all_need_a_line_says_so(command: str, tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['rlbot'] = None; from rlgym_bridge.cli import main; sys.exit(main())"
    done = run_to_end([sys.executable, "-c", hidden, command], cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"error: {command}: it cannot be loaded" in done.stderr
    assert "packages: rlbot not installed: pip install" in done.stderr
