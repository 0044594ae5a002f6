"""`doctor` says what is wrong with a machine, and runs on one where much is."""

import json
import socket
import sys
import types
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from rlgym_bridge.cli import machine_checks, main
from rlgym_bridge.cli.machine_checks import Check, check_machine
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
    for name in ("torch", "rerun", "ray", "subtr_actor"):
        monkeypatch.setitem(sys.modules, name, None)
    real = machine_checks.find_spec
    hidden = {"torch", "rerun", "ray", "subtr_actor"}
    monkeypatch.setattr(machine_checks, "find_spec", lambda name: None if name in hidden else real(name))
    found = checks()
    for extra in ("train", "view", "replay", "ray", "rllib"):
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


def test_without_rocketsim_3_doctor_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rocketsim_batch", None)
    found = checks()["RocketSim 3"]
    assert found.state == "missing" and "RocketSim 2.2.1 plays and trains" in found.found
    assert "make native" in found.advice and "pip install ./native" in found.advice
    assert main(["doctor", "-q"]) == 0


def test_a_fresh_build_of_rocketsim_3_has_version_and_meshes(monkeypatch: pytest.MonkeyPatch) -> None:
    installed_module(monkeypatch, "now")
    found = checks()["RocketSim 3"]
    assert (found.state, found.advice) == ("fine", "")
    assert found.found.startswith("rocketsim_batch 0.9.1, interface 7, built of the sources in ")
    assert "collision_meshes" in found.found


@pytest.mark.parametrize(
    ("built", "failure", "told"),
    [("before", "", "a stale build"), ("now", "it has interface 7, expected 8", "interface 7, expected 8")],
    ids=["of other sources", "of another interface"],
)
def test_a_stale_build_of_rocketsim_3_is_wrong(
    built: str, failure: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_module(monkeypatch, built, failure)
    found = checks()["RocketSim 3"]
    assert found.state == "wrong" and told in found.found and "make native" in found.advice
    assert main(["doctor", "-q"]) == 1


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


@pytest.mark.parametrize("port", ["abc", "-1", "99999999"])
def test_a_port_that_is_none_is_named(port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLBOT_SERVER_PORT", port)
    found = checks()["RLBotServer"]
    assert found.state == "wrong" and f"RLBOT_SERVER_PORT is {port!r}" in found.found


@pytest.mark.parametrize("command", ["doctor", "match"])
def test_without_a_package_that_all_need_a_line_says_so(command: str, tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['rlbot'] = None; from rlgym_bridge.cli import main; sys.exit(main())"
    done = run_to_end([sys.executable, "-c", hidden, command], cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"error: {command}: it cannot be loaded" in done.stderr
    assert "packages: rlbot not installed: pip install" in done.stderr
