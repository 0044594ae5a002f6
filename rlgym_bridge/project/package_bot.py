"""Package a policy as a bot for others: a folder that RLBot's window and its botpack take."""

import base64
import hashlib
import io
import platform
import re
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.components.spec import TRUSTED
from rlgym_bridge.game import BODY_OF_HITBOX
from rlgym_bridge.policy.carried_modules import use_carried
from rlgym_bridge.policy.files import policy_files, read_files
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.project.bot_description import (
    SIZE_TAGS,
    ProjectError,
    agent_id_of,
    bot_toml,
    check_name,
    identifier,
    show_team_sizes,
    size_tags,
)
from rlgym_bridge.project.first_start import start_once
from rlgym_bridge.user_input.own_modules import OwnModules, find_own_modules, imported_by
from rlgym_bridge.user_input.text_files import read_bytes, read_text, read_toml, toml_line
from rlgym_bridge.user_input.user_modules import add_module_folders, is_installed

BOT_FILE: Final = "bot.toml"
PROGRAM_FILE: Final = "bot.py"
SIMULATOR: Final = "rocketsim_batch"
"""Module of RocketSim 3; its distribution has the same name and lies at no package index."""

TEMPLATE: Final = Path(__file__).with_name("packaged")

_LICENSE, _LOGO = "LICENSE", "logo.png"
_MOST_BYTES: Final = 16 << 20  # of a logo, a module, or a file that modules read
_OF_INSTALLATION: Final = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")  # no files of a wheel
_WHEEL_TIME: Final = (1980, 1, 1, 0, 0, 0)  # of all files, so that equal files make equal wheels

_WINDOWS: Final = r"if exist .venv\Scripts\python.exe (.venv\Scripts\python bot.py) else (python bot.py)"
_LINUX: Final = "if [ -x .venv/bin/python ]; then exec .venv/bin/python bot.py; else exec python3 bot.py; fi"
# RLBot's core puts the second between double quotes, so none may stand in it [RLBot/core, ProcessUtils.cs].
_COLOURS: Final = {"blue": 29, "orange": 69}  # team_color_id
_ITEMS: Final = {"wheels_id": 1565, "boost_id": 35, "trails_id": 3220, "goal_explosion_id": 3018}


@dataclass(frozen=True)
class PackagePlan:
    """A bot to package."""

    policy: Path
    name: str | None = None  # of the bot; None takes the project's
    author: str | None = None  # who made it; None takes the project's
    # modules that the policy may import components from, `carried:NAME` for its copy; a project's
    # `bot.py` says it itself
    modules: Sequence[str] = ()
    hivemind: bool = False  # whether one process drives all its cars of a team
    project: Path | None = None  # folder with the `bot.toml` and `bot.py` to take; None writes new ones
    include: Sequence[Path] = ()  # files that the bot's own modules read, in the current folder


@dataclass(frozen=True)
class PackagedBot:
    """A bot as it was packaged."""

    name: str
    author: str  # who made it; "" where nobody said it
    agent_id: str
    manifest: Manifest
    modules: tuple[str, ...]
    wheel: str | None  # name of the file with `rocketsim_batch`; None where it is not installed
    files: Mapping[str, bytes]  # contents by their paths in the folder, with slashes

    @property
    def needs_torch(self) -> bool:
        """True where its network is a class of torch, which other bots do without."""
        return ":" in self.manifest.network

    @property
    def folder_name(self) -> str:
        """Name of the bot without what no folder's name may have on Windows."""
        return re.sub(r'[<>:"/\\|?*]', "-", self.name).strip(" .") or "bot"


def make_bot(plan: PackagePlan) -> PackagedBot:
    """Make the files of a bot. Its own modules are found in the current folder and where Python finds others.

    A ProjectError says that a name is none, or that a module is missing or has the name of a file of the bot;
    a ValueError or OSError that the policy, or a file of the project, cannot be read.
    """
    manifest, weights = read_files(plan.policy)
    modules = use_carried(plan.policy, plan.modules)
    settings, details = ({}, {}) if plan.project is None else bot_tables(plan.project)
    name = str(settings.get("name", "") if plan.name is None else plan.name)
    author = str(details.get("developer", "") if plan.author is None else plan.author)
    check_name(name, "the bot's name")
    if author:
        check_name(author, "the author")
    agent_id = _agent_id(plan, settings, name, author, manifest)
    needed = [*manifest.modules]
    if plan.project is None:
        allowed = tuple(_allowed(manifest, modules))
        program = _fill_template("packaged_bot.py", {"agent_id": agent_id})
        program = program.replace("allow_modules=()", f"allow_modules={allowed!r}")
    else:
        program = read_text(plan.project / PROGRAM_FILE)
        if old := settings.get("agent_id"):
            program = program.replace(f'"{old}"', f'"{agent_id}"')
        needed += imported_by(plan.project / PROGRAM_FILE)
    add_module_folders(Path.cwd())
    own = find_own_modules(needed)
    _check_found(own, manifest)
    data = {_path_here(file): file for file in plan.include}
    wheel = pack_wheel(SIMULATOR)
    bot = PackagedBot(name, author, agent_id, manifest, own.modules, next(iter(wheel), None), {})
    words = _words_of(bot, [*data])
    hivemind = plan.hivemind or settings.get("hivemind") is True
    texts = {
        BOT_FILE: _bot_toml(bot, hivemind, settings, details),
        PROGRAM_FILE: program,
        "loadout.toml": _loadout(manifest.hitbox),
        "requirements.txt": _requirements(own, bot),
        "bob.toml": _bob_toml(bot),
        ".gitignore": _fill_template("gitignore", words),
    } | {file: _fill_template(file, words) for file in (_LICENSE, "README.md", "bot.spec")}
    files = {path: text.encode() for path, text in texts.items()}
    files |= {f"policy/{file}": content for file, content in policy_files(manifest, weights).items()}
    files |= {_LOGO: (TEMPLATE / _LOGO).read_bytes()} | wheel
    files |= _files_of_project(plan.project, settings)
    more = {
        path: read_bytes(file, _MOST_BYTES, "a file of the bot")
        for path, file in {**own.files, **data}.items()
    }
    if taken := sorted(more.keys() & files.keys()):
        raise ProjectError(f"your own {taken[0]} has the name of a file of every bot, expected another name")
    return replace(bot, files=files | more)


def try_bot(bot: PackagedBot) -> float:
    """Start a bot from a folder that has nothing else; return the seconds until it connects."""
    with tempfile.TemporaryDirectory(prefix="rlgym-bridge-") as folder:
        write_bot(bot, Path(folder))
        return start_once(Path(folder), bot.agent_id, torch=bot.needs_torch)


def write_bot(bot: PackagedBot, folder: Path) -> None:
    """Write a bot's files into a folder; other files in it stay.

    All are written before the first is put in place, so that a full disk leaves the folder as it was.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder if folder.is_dir() else folder.parent
    with tempfile.TemporaryDirectory(prefix=".package-", dir=beside) as room:
        for path, content in bot.files.items():
            file = Path(room, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                file.write_bytes(content)
            except OSError as error:  # of a full disk it lacks the name
                raise OSError(error.errno, error.strerror, str(folder / path)) from error
        for path in bot.files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            Path(room, path).replace(folder / path)


def pack_wheel(name: str) -> dict[str, bytes]:
    """Make the wheel of an installed distribution anew, of its files; return its content by its file name.

    Empty where it is not installed, or has no compiled file: an editable installation has none there.
    """
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return {}
    paths = [
        path for path in found.files or ()
        if ".." not in path.parts and "__pycache__" not in path.parts and path.name not in _OF_INSTALLATION
    ]  # fmt: skip
    if not any(path.suffix in (".so", ".pyd") for path in paths):
        return {}
    files = {path.as_posix(): Path(str(found.locate_file(path))).read_bytes() for path in paths}
    (inside,) = {path.parts[0] for path in paths if path.parts[0].endswith(".dist-info")}
    digests = {path: base64.urlsafe_b64encode(hashlib.sha256(one).digest()) for path, one in files.items()}
    rows = [f"{path},sha256={digests[path].decode().rstrip('=')},{len(files[path])}" for path in files]
    record = f"{inside}/RECORD"
    files[record] = "\n".join([*rows, f"{record},,", ""]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, _WHEEL_TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return {f"{inside.removesuffix('.dist-info')}-{_tag_of(found)}.whl": packed.getvalue()}


def _tag_of(found: metadata.Distribution) -> str:
    """Return the tags of an installed wheel as its file name has them: cp310-abi3-linux_x86_64."""
    lines = (found.read_text("WHEEL") or "").splitlines()
    tags = [line.partition(": ")[2].split("-") for line in lines if line.startswith("Tag: ")]
    return "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*tags, strict=True))


def bot_tables(project: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings and details of a project's `bot.toml`."""
    found = read_toml(project / BOT_FILE)
    tables = [found.get(name, {}) for name in ("settings", "details")]
    if not all(isinstance(table, dict) for table in tables):
        raise ProjectError(f"{BOT_FILE} has no tables [settings] and [details], expected those of RLBot v5")
    return tables[0], tables[1]


def _agent_id(
    plan: PackagePlan, settings: Mapping[str, Any], name: str, author: str, manifest: Manifest
) -> str:
    """Return `author/name/version`; the version follows from name, author and policy, unless it is given."""
    given = settings.get("agent_id")
    if not isinstance(given, str) or plan.name is not None or plan.author is not None:
        given = agent_id_of(author, name)
    if given.count("/") > 1:
        return given
    digest = hashlib.sha256("\0".join((author, name, manifest.weights_sha256)).encode()).hexdigest()
    return f"{given}/{digest[:8]}"


def _allowed(manifest: Manifest, allowed: Sequence[str]) -> list[str]:
    """Return the modules that `bot.py` has to allow; `ProjectError` for one that the user does not trust."""
    if manifest.env is not None and is_installed(manifest.modules[0]):
        foreign = [manifest.env]
    else:
        within = () if manifest.env else TRUSTED
        foreign = [name for name in manifest.modules if not _is_in(name, within)]
    for name in foreign:
        if name not in allowed and not _is_in(name, allowed):
            raise ProjectError(
                f"the policy names {name}, and the bot would run its code; if it is yours, give "
                f"--allow-modules {name}"
            )
    return list(dict.fromkeys(foreign))


def _is_in(module: str, packages: Sequence[str]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in packages)


def _check_found(own: OwnModules, manifest: Manifest) -> None:
    for name in manifest.modules:
        if name.partition(".")[0] in own.missing:
            raise ProjectError(
                f"the policy needs {name}, which is neither in {Path.cwd()} nor installed: package it in the "
                "folder where that module lies"
            )


def _files_of_project(project: Path | None, settings: Mapping[str, Any]) -> dict[str, bytes]:
    if project is None:
        return {}
    named = {_LOGO: settings.get("logo_file", _LOGO), "loadout.toml": settings.get("loadout_file")}
    found = {}
    for ours, theirs in (named | {_LICENSE: _LICENSE}).items():
        if isinstance(theirs, str) and (project / theirs).is_file():
            found[ours] = read_bytes(project / theirs, _MOST_BYTES, "a file of the bot")
    return found


def _path_here(file: Path) -> str:
    """Return the path of a file in the current folder, with slashes; `ProjectError` for others."""
    here = Path.cwd()
    if not file.resolve().is_relative_to(here):
        raise ProjectError(f"--include {file}: it is not in {here}, expected a file there")
    return file.resolve().relative_to(here).as_posix()


def _bot_toml(
    bot: PackagedBot, hivemind: bool, settings: Mapping[str, Any], details: Mapping[str, Any]
) -> str:
    """Return `bot.toml`; of the project's, `forecast`, the environment and details but team sizes stay."""
    said = {
        "agent_id": bot.agent_id, "name": bot.name, "loadout_file": "loadout.toml", "logo_file": _LOGO,
        "run_command": _WINDOWS, "run_command_linux": _LINUX, "hivemind": hivemind,
    }  # fmt: skip
    said |= {key: settings[key] for key in ("forecast", "environment") if key in settings}
    steps, sizes = bot.manifest.training.get("steps"), bot.manifest.team_sizes
    tags = details.get("tags")
    own_tags = [tag for tag in tags if tag not in SIZE_TAGS] if isinstance(tags, list) else []
    shown = {
        "description": f"{bot.name}, trained with rlgym_bridge; plays {show_team_sizes(sizes)}",
        "fun_fact": f"It learned in {steps:,} steps of RocketSim" if type(steps) is int else "",
        "source_link": "", "language": "Python", **details,
        "developer": bot.author, "tags": [*size_tags(sizes), *own_tags],
    }  # fmt: skip
    return bot_toml(said, shown)


def _loadout(hitbox: str) -> str:
    lines = [f"# car_id decides the hitbox: {hitbox}, as in training."]
    for team, colour in _COLOURS.items():
        items = {"team_color_id": colour, "car_id": BODY_OF_HITBOX[hitbox], **_ITEMS}
        lines += ["", f"[{team}_loadout]", *(f"{key} = {value}" for key, value in items.items())]
    return "\n".join(lines) + "\n"


def _requirements(own: OwnModules, bot: PackagedBot) -> str:
    """Return `requirements.txt`: this version of rlgym_bridge, and what the bot's own modules import."""
    # The wheel is required by its path, since anybody may give a package of its name to the package index.
    here = f'sys_platform == "{sys.platform}" and platform_machine == "{platform.machine()}"'
    lines = [
        "--find-links .  # takes a wheel of rlgym_bridge beside this file, too",
        f"rlgym-bridge[rlgym]=={metadata.version('rlgym-bridge')}",
        f"rlbot=={metadata.version('rlbot')}  # a pre-release: the next may differ",
        *([] if bot.wheel is None else [f"./{bot.wheel} ; {here}"]),
        *own.requirements,
        *([_torch_required()] if bot.needs_torch else []),
    ]
    return "\n".join(lines) + "\n"


def _torch_required() -> str:
    return f"torch=={metadata.version('torch').partition('+')[0]}"


def _bob_toml(bot: PackagedBot) -> str:
    """Return `bob.toml`, by which the builder of RLBot's botpack knows a bot [swz-git/bob, config.rs]."""
    lines = [
        "[[config]]",
        toml_line("project_name", bot.folder_name),
        toml_line("bot_configs", [BOT_FILE]),
        "",
        "[config.builder_config]",
        toml_line("builder_type", "pyinstaller"),
        toml_line("entry_file", "bot.spec"),
    ]
    return "\n".join(lines) + "\n"


def _fill_template(file: str, words: Mapping[str, str]) -> str:
    text = (TEMPLATE / file).read_text("utf-8")
    return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)


def this_system() -> str:
    """Return the system that compiled files of this machine are for: "Linux x86_64"."""
    return f"{platform.system()} {platform.machine()}"


def _words_of(bot: PackagedBot, data: Sequence[str]) -> dict[str, str]:
    """Return the words for the templates; `data` are files that modules read, by their paths."""
    simulator = (
        f"\n`{bot.wheel}` is RocketSim 3 for {this_system()}, and `requirements.txt` takes it there. On "
        "other systems the bot\nplays without it, with RocketSim 2.2.1.\n"
    )
    torch = (
        f".venv/bin/python -m pip install {_torch_required()} --index-url "
        "https://download.pytorch.org/whl/cpu  # else CUDA comes, several GB\n"
    ) if bot.needs_torch else ""  # fmt: skip
    modules = dict.fromkeys((*bot.modules, *bot.manifest.modules))  # that are imported by name
    return {
        "agent_id": bot.agent_id,
        "name": bot.name,
        "author": bot.author or f"the author of {bot.name}",
        "program": identifier(bot.name) or "bot",
        "year": str(datetime.now(UTC).year),
        "team_sizes": show_team_sizes(bot.manifest.team_sizes),
        "simulator": "" if bot.wheel is None else simulator,
        "torch": torch,
        "unneeded": repr([] if bot.needs_torch else ["torch"]),
        "modules": repr([*modules]),
        "files": repr([(path, Path(path).parent.as_posix()) for path in data]),
    }
