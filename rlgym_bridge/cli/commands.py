"""List the commands of `rlgym-bridge`, grouped by purpose, and find the module of each."""

import argparse
from importlib import import_module
from typing import Any, Final

GROUPS: Final = {
    "play": {
        "play": "play against your bot in the browser, without the game",
        "match": "play a match between bots, with or without the game",
        "server": "run a match server that bots connect to as to RLBotServer",
        "view": "show a recorded match, in Rerun or in the browser",
    },
    "train": {
        "init": "begin a bot of your own: a folder with all it needs",
        "train": "train a bot by self-play in RocketSim",
        "evaluate": "let two policies play and say which is better, with an interval",
        "ratings": "rate the checkpoints of a training run on one scale",
        "average": "average the newest checkpoints of a run into one policy",
        "imitate": "train a policy to imitate recorded matches",
    },
    "bring a bot": {
        "import": "make a policy folder of a bot trained elsewhere",
        "convert": "translate match, bot and loadout files of RLBot v4",
    },
    "give away": {"package": "make a folder of a bot that RLBot and its botpack take"},
    "compare and check": {
        "inspect": "show what a recording holds, or export it",
        "compare": "measure where simulator and recorded game differ",
        "parity": "check that a bot sees and does the same in simulator and match",
        "league": "let bots play each other without the game, and rate them",
        "stress": "say what will cost a bot most matches in the real game",
        "check": "try a bot as RLBot would start it, and say what breaks",
        "doctor": "check whether this machine has what is needed, and say what to do",
        "timing": "measure input latency and packet loss",
        "probe": "find out how a server behaves where RLBot's documents are unclear",
        "field-test": "measure the real game in one go and pack it into a file, or read such a file",
    },
}
"""Groups of commands with the help of each, in the order in which `--help` shows them."""

COMMANDS: Final = {name: text for group in GROUPS.values() for name, text in group.items()}

REMOVED: Final = {
    "curves": "tensorboard --logdir RUN shows the curves of a run, and RUN/progress.csv has their numbers",
    "forget-inputs": "a new run whose observation leaves the inputs out learns without them",
    "sharpen": 'a policy plays its most likely actions with "selection": "argmax" in policy.json',
    "sim-vs-server": "parity checks that a bot sees and does the same in training and in a match, evaluate "
    "and league measure how it plays in either",
}
"""Commands of earlier versions, and what to use instead."""

_OVERVIEW: Final = """usage: rlgym-bridge COMMAND ...

Train Rocket League bots in RocketSim, play them in RLBot v5 matches with or without the game, and
compare the two.
{}

rlgym-bridge COMMAND --help shows its options, their units and defaults.
exit status: 0 fine, 1 a failure was found, 2 bad usage or input"""


def module_of(name: str) -> Any:
    """Return the module of a command, which has `add_to`, its options, and `run`."""
    module = {"import": "import_bot"}.get(name, name.replace("-", "_"))
    return import_module(f"rlgym_bridge.cli.{module}")


def make_parser(name: str, program: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of a command, with the options that all have."""
    parser = argparse.ArgumentParser(prog=program)
    module_of(name).add_to(parser)
    import_module("rlgym_bridge.cli.options").add_output_options(parser)  # late: --help needs no numpy
    return parser


def explain_broken(error: ImportError) -> str | None:
    """Return what is wrong with this machine, given what the import of a command raised; None for nothing."""
    checks = import_module("rlgym_bridge.cli.doctor").check_machine()
    wrong = [one for one in checks if one.state == "wrong"]
    wrong = [one for one in wrong if one.advice] or wrong  # the others follow from them
    told = [": ".join(filter(None, (one.name, one.found, one.advice))) for one in wrong]
    return "\n  ".join([f"it cannot be loaded, {error}. What is wrong:", *told]) if told else None


def overview() -> str:
    """Return the help of the whole program."""
    width = max(map(len, COMMANDS)) + 2
    lines: list[str] = []
    for title, group in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:{width}}{text}" for name, text in group.items())]
    return _OVERVIEW.format("\n".join(lines))
