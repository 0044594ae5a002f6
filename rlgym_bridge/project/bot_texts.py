"""Write the files of a packaged bot that follow from what it is, but for its modules and its policy."""

import platform
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.game import BODY_OF_HITBOX
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.project.bot_description import SIZE_TAGS, bot_toml, identifier, show_team_sizes, size_tags
from rlgym_bridge.user_input.own_modules import OwnModules
from rlgym_bridge.user_input.text_files import toml_line

TEMPLATE: Final = Path(__file__).with_name("packaged")

_WINDOWS: Final = r"if exist .venv\Scripts\python.exe (.venv\Scripts\python bot.py) else (python bot.py)"
_LINUX: Final = "if [ -x .venv/bin/python ]; then exec .venv/bin/python bot.py; else exec python3 bot.py; fi"
# RLBot's core puts the second between double quotes, so none may stand in it [RLBot/core, ProcessUtils.cs].
_COLOURS: Final = {"blue": 29, "orange": 69}  # team_color_id
_ITEMS: Final = {"wheels_id": 1565, "boost_id": 35, "trails_id": 3220, "goal_explosion_id": 3018}


def write_program(agent_id: str, modules: Sequence[str]) -> str:
    """Return `bot.py`, which plays the folder `policy`.

    Args:
        agent_id: Of the bot.
        modules: That the policy may import components from.
    """
    text = fill_template("packaged_bot.py", {"agent_id": agent_id})
    return text.replace("allow_modules=()", f"allow_modules={tuple(modules)!r}")


def write_bot_toml(
    name: str, author: str, agent_id: str, manifest: Manifest, hivemind: bool,
    settings: Mapping[str, Any], details: Mapping[str, Any],
) -> str:  # fmt: skip
    """Return `bot.toml`.

    Args:
        name: Of the bot.
        author: Who made it.
        agent_id: Of the bot.
        manifest: Of its policy.
        hivemind: Whether one process drives all its cars of a team.
        settings: Of the project's `bot.toml`; `forecast` and its environment variables stay.
        details: Of the project's `bot.toml`; they stay, but for tags that say team sizes.
    """
    said = {
        "agent_id": agent_id, "name": name, "loadout_file": "loadout.toml", "logo_file": "logo.png",
        "run_command": _WINDOWS, "run_command_linux": _LINUX, "hivemind": hivemind,
    }  # fmt: skip
    said |= {key: settings[key] for key in ("forecast", "environment") if key in settings}
    steps = manifest.training.get("steps")
    sizes = show_team_sizes(manifest.team_sizes)
    tags = details.get("tags")
    own_tags = [tag for tag in tags if tag not in SIZE_TAGS] if isinstance(tags, list) else []
    shown = {
        "description": f"{name}, trained with rlgym_bridge; plays {sizes}",
        "fun_fact": f"It learned in {steps:,} steps of RocketSim" if type(steps) is int else "",
        "source_link": "", "language": "Python", **details,
        "developer": author, "tags": [*size_tags(manifest.team_sizes), *own_tags],
    }  # fmt: skip
    return bot_toml(said, shown)


def write_loadout(hitbox: str) -> str:
    """Return a `loadout.toml` with a car of the hitbox that a policy was trained with."""
    lines = [f"# car_id decides the hitbox: {hitbox}, as in training."]
    for team, colour in _COLOURS.items():
        items = {"team_color_id": colour, "car_id": BODY_OF_HITBOX[hitbox], **_ITEMS}
        lines += ["", f"[{team}_loadout]", *(f"{key} = {value}" for key, value in items.items())]
    return "\n".join(lines) + "\n"


def write_requirements(own: OwnModules, wheel: str | None) -> str:
    """Return `requirements.txt`: this version of rlgym_bridge, and what the bot's own modules import.

    Args:
        own: The bot's own modules.
        wheel: Name of the file with `rocketsim_batch`, for this system; None for none. It is required by
            its path, since anybody may give a package of that name to the package index.
    """
    here = f'sys_platform == "{sys.platform}" and platform_machine == "{platform.machine()}"'
    lines = [
        "--find-links .  # takes a wheel of rlgym_bridge beside this file, too",
        f"rlgym-bridge=={version('rlgym-bridge')}",
        f"rlbot=={version('rlbot')}  # a pre-release: the next may differ",
        *([] if wheel is None else [f"./{wheel} ; {here}"]),
        *own.requirements,
    ]
    return "\n".join(lines) + "\n"


def write_bob_toml(name: str) -> str:
    """Return `bob.toml`, by which the builder of RLBot's botpack knows a bot [swz-git/bob, config.rs]."""
    lines = [
        "[[config]]",
        toml_line("project_name", folder_name(name)),
        toml_line("bot_configs", ["bot.toml"]),
        "",
        "[config.builder_config]",
        toml_line("builder_type", "pyinstaller"),
        toml_line("entry_file", "bot.spec"),
    ]
    return "\n".join(lines) + "\n"


def fill_template(file: str, words: Mapping[str, str]) -> str:
    """Return a file of the template with words in place of `{their names}`."""
    text = (TEMPLATE / file).read_text("utf-8")
    return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)


def this_system() -> str:
    """Return the system that compiled files of this machine are for: "Linux x86_64"."""
    return f"{platform.system()} {platform.machine()}"


def words_of(
    name: str, author: str, manifest: Manifest, modules: Sequence[str], data: Sequence[str],
    wheel: str | None,
) -> dict[str, str]:  # fmt: skip
    """Return the words for the templates.

    Args:
        name: Of the bot.
        author: Who made it.
        manifest: Of its policy.
        modules: That are imported by name, the bot's own among them.
        data: Files that modules read, by their paths in the bot's folder.
        wheel: Name of the file with `rocketsim_batch`; None for none.
    """
    simulator = (
        f"\n`{wheel}` is RocketSim 3 for {this_system()}, and `requirements.txt` takes it there. On other "
        "systems the bot\nplays without it, with RocketSim 2.2.1.\n"
    )
    return {
        "name": name,
        "author": author or f"the author of {name}",
        "program": identifier(name) or "bot",
        "year": str(datetime.now(UTC).year),
        "team_sizes": show_team_sizes(manifest.team_sizes),
        "simulator": "" if wheel is None else simulator,
        "modules": repr([*modules]),
        "files": repr([(path, Path(path).parent.as_posix()) for path in data]),
    }


def folder_name(name: str) -> str:
    """Return a name without what no folder's name may have on Windows."""
    return re.sub(r'[<>:"/\\|?*]', "-", name).strip(" .") or "bot"
