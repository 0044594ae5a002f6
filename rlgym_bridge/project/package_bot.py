"""Package a policy as a bot for others: a folder that RLBot's window and its botpack take."""

import base64
import colorsys
import hashlib
import io
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.components.spec import TRUSTED
from rlgym_bridge.policy.carried_modules import use_carried
from rlgym_bridge.policy.files import policy_files, read_files
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.project.bot_description import ProjectError, agent_id_of, check_name
from rlgym_bridge.project.bot_texts import (
    fill_template,
    folder_name,
    words_of,
    write_bob_toml,
    write_bot_toml,
    write_loadout,
    write_program,
    write_requirements,
)
from rlgym_bridge.project.first_start import start_once
from rlgym_bridge.user_input.own_modules import OwnModules, find_own_modules, imported_by
from rlgym_bridge.user_input.text_files import read_bytes, read_text, read_toml
from rlgym_bridge.user_input.user_modules import add_module_folders, is_installed

BOT_FILE: Final = "bot.toml"
PROGRAM_FILE: Final = "bot.py"
SIMULATOR: Final = "rocketsim_batch"
"""Module of RocketSim 3; its distribution has the same name and lies at no package index."""

_LICENSE: Final = "LICENSE"
_MOST_BYTES: Final = 16 << 20  # of a logo, a module, or a file that modules read
_OF_INSTALLATION: Final = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")  # no files of a wheel
_WHEEL_TIME: Final = (1980, 1, 1, 0, 0, 0)  # of all files, so that equal files make equal wheels


@dataclass(frozen=True)
class PackagePlan:
    """A bot to package.

    Attributes:
        policy: A policy folder.
        name: Of the bot; None takes the project's.
        author: Who made it; None takes the project's.
        modules: Modules that the policy may import components from, `carried:NAME` for its copy; a project's
            `bot.py` says it itself.
        hivemind: Whether one process drives all its cars of a team.
        project: Folder with the `bot.toml` and `bot.py` to take; None writes new ones.
        include: Files that the bot's own modules read, in the current folder.
    """

    policy: Path
    name: str | None = None
    author: str | None = None
    modules: Sequence[str] = ()
    hivemind: bool = False
    project: Path | None = None
    include: Sequence[Path] = ()


@dataclass(frozen=True)
class PackagedBot:
    """A bot as it was packaged.

    Attributes:
        name: Of the bot.
        author: Who made it; "" where nobody said it.
        agent_id: Its id.
        manifest: Of its policy.
        modules: The user's own.
        wheel: Name of the file with `rocketsim_batch`; None where it is not installed.
        files: Contents by their paths in the folder, with slashes.
    """

    name: str
    author: str
    agent_id: str
    manifest: Manifest
    modules: tuple[str, ...]
    wheel: str | None
    files: Mapping[str, bytes]

    @property
    def folder_name(self) -> str:
        """Name of the bot as a folder has it."""
        return folder_name(self.name)


def make_bot(plan: PackagePlan) -> PackagedBot:
    """Make the files of a bot. Its own modules are found in the current folder and where Python finds others.

    Raises:
        ProjectError: A name is none, or a module is missing or has the name of a file of the bot.
        ValueError: The policy, or a file of the project, cannot be read.
        OSError: The same.
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
        program = write_program(agent_id, _allowed(manifest, modules))
    else:
        program = read_text(plan.project / PROGRAM_FILE)
        if old := settings.get("agent_id"):
            program = program.replace(f'"{old}"', f'"{agent_id}"')
        needed += imported_by(plan.project / PROGRAM_FILE)
    add_module_folders(Path.cwd())
    own = find_own_modules(needed)
    if ":" in manifest.network:  # a class of torch, which other bots do without
        own = replace(
            own, requirements=(*own.requirements, f"torch=={metadata.version('torch').partition('+')[0]}")
        )
    _check_found(own, manifest)
    data = {_path_here(file): file for file in plan.include}
    by_name = dict.fromkeys((*own.modules, *manifest.modules))
    wheel = pack_wheel(SIMULATOR)
    wheel_name = next(iter(wheel), None)
    words = words_of(name, author, manifest, [*by_name], [*data], wheel_name)
    hivemind = plan.hivemind or settings.get("hivemind") is True
    texts = {
        BOT_FILE: write_bot_toml(name, author, agent_id, manifest, hivemind, settings, details),
        PROGRAM_FILE: program,
        "loadout.toml": write_loadout(manifest.hitbox),
        "requirements.txt": write_requirements(own, wheel_name),
        "bob.toml": write_bob_toml(name),
        ".gitignore": fill_template("gitignore", words),
    } | {file: fill_template(file, words) for file in (_LICENSE, "README.md", "bot.spec")}
    files = {path: text.encode() for path, text in texts.items()}
    files |= {f"policy/{file}": content for file, content in policy_files(manifest, weights).items()}
    files |= {"logo.png": draw_logo(name)} | wheel
    files |= _files_of_project(plan.project, settings)
    more = {
        path: read_bytes(file, _MOST_BYTES, "a file of the bot")
        for path, file in {**own.files, **data}.items()
    }
    if taken := sorted(more.keys() & files.keys()):
        raise ProjectError(f"your own {taken[0]} has the name of a file of every bot, expected another name")
    return PackagedBot(name, author, agent_id, manifest, own.modules, wheel_name, files | more)


def try_bot(bot: PackagedBot) -> float:
    """Start a bot from a folder that has nothing else; return the seconds until it connects.

    Only a network of the user's own finds torch.

    Raises:
        ProjectError: It does not start.
    """
    with tempfile.TemporaryDirectory(prefix="rlgym-bridge-") as folder:
        write_bot(bot, Path(folder))
        return start_once(Path(folder), bot.agent_id, torch=":" in bot.manifest.network)


def write_bot(bot: PackagedBot, folder: Path) -> None:
    """Write a bot's files into a folder; other files in it stay.

    All are written before the first is put in place, so that a full disk leaves the folder as it was.

    Raises:
        OSError: The folder cannot be written.
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
    """Make the wheel of an installed distribution anew, of its files.

    Args:
        name: Of the distribution.

    Returns:
        Content by file name. Empty where it is not installed, or has no compiled file (an editable
        installation has all of its files elsewhere).

    Raises:
        OSError: A file of it cannot be read.
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
    rows = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in files.items()]
    record = f"{inside}/RECORD"
    files[record] = "\n".join([*rows, f"{record},,", ""]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, _WHEEL_TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return {f"{inside.removesuffix('.dist-info')}-{_tag_of(found)}.whl": packed.getvalue()}


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _tag_of(found: metadata.Distribution) -> str:
    """Return the tags of an installed wheel as its file name has them: cp310-abi3-linux_x86_64."""
    lines = (found.read_text("WHEEL") or "").splitlines()
    tags = [line.partition(": ")[2].split("-") for line in lines if line.startswith("Tag: ")]
    return "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*tags, strict=True))


def bot_tables(project: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings and details of a project's `bot.toml`.

    Raises:
        ValueError: It cannot be read, or has something else in place of these tables.
        OSError: It cannot be read.
    """
    found = read_toml(project / BOT_FILE)
    tables = [found.get(name, {}) for name in ("settings", "details")]
    if not all(isinstance(table, dict) for table in tables):
        raise ProjectError(f"{BOT_FILE} has no tables [settings] and [details], expected those of RLBot v5")
    return tables[0], tables[1]


def _agent_id(
    plan: PackagePlan, settings: Mapping[str, Any], name: str, author: str, manifest: Manifest
) -> str:
    """Return `author/name/version`; the version follows from name, author and policy, unless it is given.

    It tells apart packages of several policies, and a package and the project it was made of.
    """
    given = settings.get("agent_id")
    if not isinstance(given, str) or plan.name is not None or plan.author is not None:
        given = agent_id_of(author, name)
    if given.count("/") > 1:
        return given
    digest = hashlib.sha256("\0".join((author, name, manifest.weights_sha256)).encode()).hexdigest()
    return f"{given}/{digest[:8]}"


def _allowed(manifest: Manifest, allowed: Sequence[str]) -> list[str]:
    """Return the modules that `bot.py` has to allow.

    Raises:
        ProjectError: One of them is not among those that the user trusts.
    """
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
    """Check that the modules are there that the policy names.

    Raises:
        ProjectError: One is not.
    """
    for name in manifest.modules:
        if name.partition(".")[0] in own.missing:
            raise ProjectError(
                f"the policy needs {name}, which is neither in {Path.cwd()} nor installed: package it in the "
                "folder where that module lies"
            )


def _files_of_project(project: Path | None, settings: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the project's own logo, loadout and licence, where it has them."""
    if project is None:
        return {}
    named = {"logo.png": settings.get("logo_file", "logo.png"), "loadout.toml": settings.get("loadout_file")}
    found = {}
    for ours, theirs in (named | {_LICENSE: _LICENSE}).items():
        if isinstance(theirs, str) and (project / theirs).is_file():
            found[ours] = read_bytes(project / theirs, _MOST_BYTES, "a file of the bot")
    return found


def _path_here(file: Path) -> str:
    """Return the path of a file from the current folder, with slashes.

    Raises:
        ProjectError: It does not lie in it.
    """
    here = Path.cwd()
    if not file.resolve().is_relative_to(here):
        raise ProjectError(f"--include {file}: it is not in {here}, expected a file there")
    return file.resolve().relative_to(here).as_posix()


_HEIGHT, _WIDTH = 300, 400  # pixels, as RLBot's window shows logos
_BLOCK: Final = 50  # pixels
_ROWS, _COLUMNS = 4, 3  # blocks drawn by chance; the columns are mirrored
_MARGIN: Final = 50  # pixels


def draw_logo(name: str) -> bytes:
    """Return a PNG of 400 x 300 pixels. Equal names have equal logos."""
    digest = hashlib.sha256(name.encode()).digest()
    hue = digest[0] / 256
    ground, ink = (
        np.array([round(255 * part) for part in colorsys.hls_to_rgb(turn % 1, light, 0.6)], np.uint8)
        for turn, light in ((hue, 0.22), (hue + 0.45 + digest[1] / 2560, 0.66))
    )
    bits = np.unpackbits(np.frombuffer(digest[2:4], np.uint8))[: _ROWS * _COLUMNS].reshape(_ROWS, _COLUMNS)
    half = bits.astype(bool)
    half[0, -1] = half[-1, -1] = True  # never empty
    blocks = np.concatenate([half, half[:, ::-1]], axis=1).repeat(_BLOCK, 0).repeat(_BLOCK, 1)
    picture = np.broadcast_to(ground, (_HEIGHT, _WIDTH, 3)).copy()
    picture[_MARGIN : _HEIGHT - _MARGIN, _MARGIN : _WIDTH - _MARGIN][blocks] = ink
    return _png(picture)


def _png(picture: np.ndarray) -> bytes:
    """Return a picture, `(height, width, 3)` uint8 from 0 to 255, as a PNG."""
    height, width, _ = picture.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits of red, green and blue
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
