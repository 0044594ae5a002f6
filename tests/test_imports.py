"""Data flows one way, and the two ends of the wire share nothing but constants."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

import rlgym_bridge.training
from tests.support.imported_modules import imports, imports_of
from tests.support.processes import run_to_end

ROOT = Path(rlgym_bridge.__file__).parent


TRAINING = Path(rlgym_bridge.training.__file__).parent
"""In a clone it lies beside the package, in a wheel in it."""


def folder_of(room: str) -> Path:
    return TRAINING if room == "training" else ROOT / room


def modules(room: str) -> list[Path]:
    return sorted(folder_of(room).rglob("*.py"))


def ours(path: Path) -> set[str]:
    return {name for name in imports(path) if name.startswith("rlgym_bridge.")}


def test_the_server_uses_nothing_of_the_decoder_but_constants() -> None:
    allowed = ("rlgym_bridge.server", "rlgym_bridge.game", "rlgym_bridge.physics",
               "rlgym_bridge.protocol_variant", "rlgym_bridge.user_input.failures",
               "rlgym_bridge.sim.touches", "rlgym_bridge.user_input", "rlgym_bridge.sim.simulator",
               "rlgym_bridge.rotations", "rlgym_bridge.state",
               "rlgym_bridge.recording.mcap.mcap_writer",
               "rlgym_bridge.recording.mcap.channels")  # fmt: skip
    found = {(path.name, name) for path in modules("server") for name in ours(path)}
    found = {(file, name) for file, name in found if not name.startswith(allowed)}
    assert all(name.startswith("rlgym_bridge.policy") for _, name in found), found
    assert {file for file, _ in found} <= {"lineup.py"}, "it puts saved policies into a match configuration"


def test_the_live_side_knows_neither_server_nor_simulator() -> None:
    estimator = "rlgym_bridge.sim.state_estimator"  # where RocketSim is installed it follows the match
    own = {("decoder.py", estimator), ("decoder.py", f"{estimator}.StateEstimator")}
    found = {(path.name, name) for path in [*modules("live"), *modules("packets")] for name in imports(path)}
    others = ("rlgym_bridge.server", "rlgym_bridge.sim", "RocketSim")
    assert not {(file, name) for file, name in found - own if name.startswith(others)}


PROBE = (
    "car_scenes", "findings", "input_latency", "match_flow", "probe", "scene_player",
)  # fmt: skip
"""Modules of `trials` that a server's packets are judged by."""


def test_the_probe_shares_constants_alone_with_the_checked() -> None:
    found = {one for name in PROBE for one in imports(ROOT / "trials" / f"{name}.py")}
    allowed = ("rlgym_bridge.live.agent_connections", "rlgym_bridge.game", "rlgym_bridge.protocol_variant",
               "rlgym_bridge.user_input", *(f"rlgym_bridge.trials.{name}" for name in PROBE))  # fmt: skip
    shared = {name for name in found if name.startswith("rlgym_bridge.")} - {"rlgym_bridge.trials"}
    assert not {name for name in shared if not name.startswith(allowed)}
    assert not any(name.startswith("RocketSim") for name in found)


BETWEEN = sorted({*ROOT.glob("*.py"), *modules("components"), *modules("policy")})


def test_nothing_between_imports_rlbot_or_rocketsim() -> None:
    found = {(path, name.split(".")[0]) for path in BETWEEN for name in imports(path)}
    assert not [one for one in found if one[1] in ("rlbot", "RocketSim")]


def test_a_bot_plays_without_torch_and_without_rocketsim() -> None:
    code = (
        "import sys; sys.modules['torch'] = sys.modules['RocketSim'] = None;"
        "from rlgym_bridge.policy.load_player import load_player; load_player('chaser').components()"
    )
    done = run_to_end([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr


ROOMS = {
    "user_input": set(),
    "components": set(),
    "policy": {"components", "sim"},
    "sim": {"components"},
    "packets": {"sim"},
    "recording": {"components", "packets", "policy"},
    "server": {"policy", "recording", "sim"},
    "live": {"components", "packets", "policy", "recording"},
    "engines": {"components", "live", "packets", "sim"},
    "compare": {"recording", "sim"},
    "view": {"compare", "components", "live", "packets", "policy", "recording", "server", "sim"},
    "project": {"components", "policy"},
    "trials": {"compare", "components", "live", "packets", "policy", "recording", "server", "sim"},
    "training": {"components", "live", "policy", "recording", "server", "sim", "trials"},
    "cli": {
        "compare", "components", "live", "policy", "project", "recording", "server", "sim", "training",
        "trials", "view",
    },
}  # fmt: skip
"""Rooms from which each room may import, besides `user_input` and the modules at the package's root."""


def without_entry(path: Path) -> ast.Module:
    """Return a module without the lines that Python runs where it is started by `python -m`."""
    body = [node for node in ast.parse(path.read_text()).body if not is_entry(node)]
    return ast.Module(body, [])


def is_entry(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If) or ast.unparse(node.test) != "__name__ == '__main__'":
        return False
    lines = "; ".join(map(ast.unparse, node.body))
    return bool(re.fullmatch(r"from rlgym_bridge\.cli import run_module; run_module\('[a-z-]+'\)", lines))


def test_training_parses_no_command_line() -> None:
    found = {(path, name) for path in modules("training") for name in imports_of(without_entry(path))}
    assert not [one for one in found if one[1].startswith("rlgym_bridge.cli") or one[1] == "argparse"]


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_from_those_below_them_alone(room: str) -> None:
    found = {
        name.split(".")[1]
        for path in modules(room)
        for name in imports_of(without_entry(path))
        if name.startswith("rlgym_bridge.") and folder_of(name.split(".")[1]).is_dir()
    }
    assert found - {room, "user_input"} <= ROOMS[room]


def test_every_room_is_listed_and_none_reaches_itself() -> None:
    assert set(ROOMS) == {path.parent.name for path in ROOT.glob("*/__init__.py")} | {"training"}
    for room in ROOMS:
        reached: set[str] = set()
        waiting = [*ROOMS[room]]
        while waiting:
            one = waiting.pop()
            if one not in reached:
                reached.add(one)
                waiting += ROOMS[one]
        assert room not in reached, f"{room} imports itself over others"


INNER_ROOMS = {
    "server": {
        "game": set(),
        "net": {"game"},
    },
}  # fmt: skip
"""Rooms inside a room: from which of the others each may import."""


@pytest.mark.parametrize(
    "outer, room", [(outer, room) for outer in INNER_ROOMS for room in INNER_ROOMS[outer]]
)
def test_rooms_inside_a_room_import_in_one_direction(outer: str, room: str) -> None:
    inside = f"rlgym_bridge.{outer}."
    found = {
        name.removeprefix(inside).split(".")[0]
        for path in modules(f"{outer}/{room}")
        for name in imports(path)
        if name.startswith(inside)
    }
    assert found & set(INNER_ROOMS[outer]) - {room} <= INNER_ROOMS[outer][room]


@pytest.mark.parametrize("outer", INNER_ROOMS)
def test_every_room_inside_a_room_is_listed(outer: str) -> None:
    assert set(INNER_ROOMS[outer]) == {path.parent.name for path in (ROOT / outer).glob("*/__init__.py")}


def test_few_modules_lie_beside_the_rooms() -> None:
    assert len([path for path in ROOT.glob("*.py") if path.name != "__init__.py"]) <= 8


SIMULATORS = ("RocketSim", "rocketsim_batch")
NEEDS_A_SIMULATOR = {
    "rlgym_bridge/sim/arena.py",
    "rlgym_bridge/sim/rocketsim2.py",
    "rlgym_bridge/sim/rocketsim3.py",
    "rlgym_bridge/user_input/extras.py",
}
"""Modules that import a simulator's package: the two classes behind `sim.simulator`, what `RocketSim2` is
made of, and what checks the interface of `rocketsim_batch` for all. No new one comes here."""


def test_no_other_module_imports_a_simulator() -> None:
    places = {ROOT: ROOT.name, TRAINING: "training"}
    found = {
        f"{name}/{path.relative_to(place).as_posix()}"
        for place, name in places.items()
        for path in place.rglob("*.py")
        if any(one.split(".")[0] in SIMULATORS for one in imports(path))
    }
    assert found == NEEDS_A_SIMULATOR, "a new one, or one that no longer does"


def test_only_train_imports_what_is_for_rllib() -> None:
    found = {
        path.relative_to(place).as_posix()
        for place in (ROOT, TRAINING)
        for path in place.rglob("*.py")
        if "rllib" not in path.with_suffix("").parts
        and any(re.match(r"rlgym_bridge\.(training\.)?rllib\b", name) for name in imports(path))
    }
    assert found == {"cli/train.py"}, "its --engine rllib"


NEEDS_AN_EXTRA = {
    "training": ("train",), "training/rllib": ("rllib",), "training/ray_": ("ray",),
    "rllib.py": ("rllib", "train"), "view": ("view",), "view/web": ("play",),
    "recording/replays": ("replay",), "policy/torch_network.py": ("train",),
}  # fmt: skip
"""Modules, or folders of them, that import what an extra brings as they are loaded."""

DISTRIBUTIONS = {
    "RocketSim": "rocketsim", "rerun": "rerun-sdk", "rerun_cli": "rerun-sdk", "subtr_actor": "subtr-actor-py",
    "tomli_w": "tomli-w", "tree": "dm-tree", "msgpack_numpy": "msgpack-numpy", "rlgym": "rlgym-api",
}  # fmt: skip


def declared() -> tuple[set[str], dict[str, set[str]]]:
    """Return the distributions that the project requires, and those of each extra."""
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["project"]

    def names(lines: list[str]) -> set[str]:
        return {re.split(r"[\[<>=; ]", line)[0] for line in lines}

    extras = {extra: names(lines) for extra, lines in project["optional-dependencies"].items()}
    return names(project["dependencies"]), extras


def third_party(names: set[str]) -> set[str]:
    """Return the distributions of imported modules that are neither Python's nor this project's."""
    found = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names)
    found -= {"rlgym_bridge", "rocketsim_batch"}  # the second is native/, a project of its own
    return {DISTRIBUTIONS.get(name, name) for name in found}


def imports_when_loaded(tree: ast.Module) -> set[str]:
    """Return what a module imports as it is loaded: not in functions, nor for type checkers."""
    return imports_of(
        ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
    )


@pytest.mark.skipif(not (ROOT.parent / "pyproject.toml").is_file(), reason="needs a checkout")
def test_every_import_is_declared_where_it_is_needed() -> None:
    base, extras = declared()
    modules = {f"training/{path.relative_to(TRAINING).as_posix()}": path for path in TRAINING.rglob("*.py")}
    modules |= {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob("*.py")}
    missing = {}
    for name, path in modules.items():
        if name.startswith(("project/template/", "project/packaged/", "shipped/")):  # users' own
            continue
        tree = ast.parse(path.read_text())
        own = [
            extras[one] for place, ones in NEEDS_AN_EXTRA.items() if name.startswith(place) for one in ones
        ]
        lacks = third_party(imports_when_loaded(tree)) - base.union(*own)
        lacks |= third_party(imports_of(tree)) - base.union(*extras.values())
        if lacks:
            missing[name] = lacks
    assert not missing


def test_rooms_import_only_from_lines_below_them_on_the_map() -> None:
    page = (ROOT.parent / "docs" / "design" / "map.md").read_text(encoding="utf-8")
    picture = page.split("```text\n", 1)[1].split("```", 1)[0].splitlines()
    rooms = [re.split(" {3,}", line)[0].split() for line in picture]  # what follows explains them
    line_of = {room: number for number, names in enumerate(rooms) for room in names}
    assert set(ROOMS) <= set(line_of)
    lower = [(room, below) for room in ROOMS for below in {*ROOMS[room], "user_input"} - {room}]
    assert not [arrow for arrow in lower if line_of[arrow[0]] >= line_of[arrow[1]]]
