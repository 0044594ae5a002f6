"""Names of modules and functions in files of others: nothing is imported and nothing is called for them."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.run_modules import run_modules, write_run_modules
from tests.support.policy_folders import save

MODULES = """
antigravity this turtledemo.clock idlelib.idle pytest _pytest.config pip setuptools torch.distributed.run
numpy.f2py.__main__ safetensors.torch mypy.main tests.support.mark_game rlgym_bridge.cli.__main__
rlgym_bridge.live.__main__ rlgym_bridge.training.__main__ rlgym_bridge.server rlgym_tools.v1.gym
rlgym.rocket_league.sim rlgym_tools.rocket_league.replays.parsed_replay
"""
CALLABLES = """
os:system os:abort subprocess:run runpy:run_path shutil:rmtree builtins:exec builtins:breakpoint
sys:exit pytest:main logging:shutdown threading:Thread pathlib:Path numpy:load
importlib:reload rlgym_bridge:play rlgym_bridge.cli:main rlgym_bridge:MatchServer rlgym_bridge:open_recording
rlgym.api:RLGym rlgym.rocket_league.sim:RocketSimEngine rlgym_bridge.components.spec:environment
rlgym_bridge.components.default_obs:np
"""
REFUSED = r"expected|would run code|a function of an installed package"

_WATCH: dict[str, Callable[[str], None] | None] = {"import": None}


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "import" and (told := _WATCH["import"]) is not None:
        told(arguments[0])


sys.addaudithook(_hear)


@contextmanager
def observed(module: str, name: str) -> Iterator[list[str]]:
    """Note the import of a module, and calls of a function of it that is loaded already."""
    found: list[str] = []
    watched = getattr(sys.modules.get(module), name, None)
    code = getattr(watched, "__code__", None)

    def imported(what: str) -> None:
        if what == module or module.startswith(f"{what}."):
            found.append(f"import {what}")

    def called(frame: FrameType, event: str, argument: Any) -> None:
        if (event == "call" and frame.f_code is code) or (event == "c_call" and argument is watched):
            found.append(f"call {module}:{name}")

    _WATCH["import"], before = imported, sys.getprofile()
    sys.setprofile(called if watched is not None else None)
    try:
        yield found
    finally:
        sys.setprofile(before)
        _WATCH["import"] = None


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stranger's run with one checkpoint."""
    run = tmp_path_factory.mktemp("strange")
    save(run / "checkpoints" / "1")
    return run


names = st.one_of(
    st.sampled_from(CALLABLES.split()),
    st.builds(
        "{}:{}".format,
        st.sampled_from(MODULES.split() + sorted(sys.stdlib_module_names)),
        st.sampled_from(["main", "run", "build", "Obs"]),
    ),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=names, where=st.sampled_from(["env", "obs", "parser", "nested"]), listed=st.booleans())
def test_no_name_in_a_policy_or_a_run_is_imported_or_called(
    run: Path, name: str, where: str, listed: bool
) -> None:
    module, _, function = name.partition(":")
    policy = run / "checkpoints" / "1"
    before = (policy / "policy.json").read_text()
    manifest = json.loads(before)
    if where == "env":
        manifest |= {"obs": None, "parser": None, "env": name}
    elif where == "nested":
        manifest["parser"]["nested"] = {"class": name, "args": {}}
    else:
        manifest[where] = {"class": name, "args": {}}
    write_run_modules(run, [module] if listed else [])
    try:
        (policy / "policy.json").write_text(json.dumps(manifest))
        with observed(module, function) as found, pytest.raises(ValueError, match=REFUSED):
            load_policy(policy, run_modules(run))
        assert not found
    finally:
        (policy / "policy.json").write_text(before)
