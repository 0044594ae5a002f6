"""List the commands of `rlgym-bridge`, grouped by purpose, with the module of each."""

from importlib import import_module
from typing import Final, NamedTuple

from rlgym_bridge.user_input.extras import explain_install


class Command(NamedTuple):
    """A command: the module with its `add_to` and `run`, and what `--help` says of it."""

    module: str
    help: str


GROUPS: Final[dict[str, dict[str, Command]]] = {
    "play": {
        "match": Command(
            "rlgym_bridge.cli.match_command", "play a match between bots, with or without the game"
        ),
        "server": Command(
            "rlgym_bridge.cli.server_command", "run a match server that bots connect to as to RLBotServer"
        ),
        "view": Command("rlgym_bridge.cli.view_command", "show a recorded match in the Rerun viewer"),
    },
    "train": {
        "init": Command(
            "rlgym_bridge.cli.init_command", "begin a bot of your own: a folder with all it needs"
        ),
        "train": Command("rlgym_bridge.cli.train_command", "train a bot by self-play in RocketSim"),
        "evaluate": Command(
            "rlgym_bridge.cli.evaluate_command",
            "let two policies play and say which is better, with an interval",
        ),
        "ratings": Command(
            "rlgym_bridge.cli.ratings_command", "rate the checkpoints of a training run on one scale"
        ),
        "average": Command(
            "rlgym_bridge.cli.average_command", "average the newest checkpoints of a run into one policy"
        ),
        "curves": Command("rlgym_bridge.cli.curves_command", "plot the learning curves of training runs"),
        "imitate": Command("rlgym_bridge.cli.imitate_command", "train a policy to imitate recorded matches"),
    },
    "bring a bot": {
        "import": Command(
            "rlgym_bridge.cli.import_command", "make a policy folder of a bot trained elsewhere"
        ),
        "convert": Command(
            "rlgym_bridge.cli.convert_command", "translate match, bot and loadout files of RLBot v4"
        ),
    },
    "give away": {
        "package": Command(
            "rlgym_bridge.cli.package_command", "make a folder of a bot that RLBot and its botpack take"
        ),
    },
    "compare and check": {
        "inspect": Command("rlgym_bridge.cli.inspect_command", "show what a recording holds, or export it"),
        "compare": Command(
            "rlgym_bridge.cli.compare_command", "measure where simulator and recorded game differ"
        ),
        "parity": Command(
            "rlgym_bridge.cli.parity_command",
            "check that a bot sees and does the same in simulator and match",
        ),
        "league": Command(
            "rlgym_bridge.cli.league_command", "let bots play each other without the game, and rate them"
        ),
        "stress": Command(
            "rlgym_bridge.cli.stress_command", "say what will cost a bot most matches in the real game"
        ),
        "check": Command(
            "rlgym_bridge.cli.check_command", "try a bot as RLBot would start it, and say what breaks"
        ),
        "sim-vs-server": Command(
            "rlgym_bridge.cli.sim_vs_server_command",
            "check that a policy plays on the match server as it did in training",
        ),
        "doctor": Command(
            "rlgym_bridge.cli.doctor_command",
            "check whether this machine has what is needed, and say what to do",
        ),
        "timing": Command("rlgym_bridge.cli.timing_command", "measure input latency and packet loss"),
        "probe": Command(
            "rlgym_bridge.cli.probe_command",
            "find out how a server behaves where RLBot's documents are unclear",
        ),
        "field-test": Command(
            "rlgym_bridge.cli.field_test_command",
            "measure the real game in one go and pack it into a file, or read such a file",
        ),
    },
}
"""Groups of commands, in the order in which `--help` shows them."""

COMMANDS: Final = {name: command for group in GROUPS.values() for name, command in group.items()}

MODULES: Final = {name: command.module for name, command in COMMANDS.items()} | {
    "sharpen": "rlgym_bridge.cli.sharpen_command",
    "forget-inputs": "rlgym_bridge.cli.forget_inputs_command",
}
"""Modules of the commands by name; those of runs that are retouched by hand have no place in `--help`."""


_EXTRAS: Final = {
    "train": ("torch", "tensorboard", "openskill", "matplotlib"),
    "view": ("rerun", "rerun_sdk", "pyarrow"),
    "ray": ("ray",),
    "rllib": ("gymnasium", "msgpack_numpy"),
    "replay": ("subtr_actor",),
}
"""Packages that each extra installs, by the names that are imported."""


def explain_missing(package: str | None) -> str | None:
    """Return which extra installs a package that is missing; None where none does.

    Args:
        package: Name of the module that could not be imported.
    """
    root = (package or "").partition(".")[0]
    for extra, packages in _EXTRAS.items():
        if root in packages:
            return f"{root} is not installed, expected the extra {extra}: {explain_install(extra)}"
    return None


def explain_broken(error: ImportError) -> str | None:
    """Return what is wrong with this machine where a command cannot be loaded; None where nothing is.

    Args:
        error: What loading it raised.
    """
    checks = import_module("rlgym_bridge.cli.machine_checks").check_machine()
    wrong = [one for one in checks if one.state == "wrong"]
    wrong = [one for one in wrong if one.advice] or wrong  # the others follow from them
    told = [": ".join(filter(None, (one.name, one.found, one.advice))) for one in wrong]
    return "\n  ".join([f"it cannot be loaded, {error}. What is wrong:", *told]) if told else None


def overview() -> str:
    """Return the help of the whole program."""
    lines = [
        "usage: rlgym-bridge COMMAND ...",
        "",
        "Train Rocket League bots in RocketSim, play them in RLBot v5 matches with or without the game, and",
        "compare the two.",
    ]
    width = max(map(len, COMMANDS)) + 2
    for title, group in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:{width}}{command.help}" for name, command in group.items()]
    lines += [
        "",
        "rlgym-bridge COMMAND --help shows its options, their units and defaults.",
        "exit status: 0 fine, 1 a failure was found, 2 bad usage or input",
    ]
    return "\n".join(lines)
