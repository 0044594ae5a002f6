"""Put bots into a match, each given as a path or a name, and read what they report."""

import os
import shlex
import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, ValidationError, convert
from rlbot import flat

from rlgym_bridge.game import BLUE, BODY_OF_HITBOX, HITBOXES, ORANGE
from rlgym_bridge.policy.files import (
    CHECKPOINTS,
    MANIFEST_FILE,
    explain_project,
    policy_path,
    read_files,
    run_of,
)
from rlgym_bridge.policy.load_player import BUILT_IN, CHASER
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.policy.shape import explain_misfit, show_players
from rlgym_bridge.server import BotResult, ConfigError, MatchResult, read_match_file
from rlgym_bridge.server.bot_account import REAL_TIME
from rlgym_bridge.server.bot_files import idle_player, read_bot
from rlgym_bridge.server.game.roster import move_human_last
from rlgym_bridge.user_input.arguments import count_of
from rlgym_bridge.user_input.text_files import (
    escape_controls,
    explain_unreadable,
    parse_json,
    read_text,
    read_toml,
)

_HUMAN: Final = "human"  # a BOT


def empty_match() -> flat.MatchConfiguration:
    """Return a five-minute match of standard soccar without players or goal replays."""
    return flat.MatchConfiguration(
        auto_start_agents=True,
        wait_for_agents=True,
        game_map_upk="Stadium_P",
        skip_replays=True,
        mutators=flat.MutatorSettings(),
    )


def with_line_up(
    match: flat.MatchConfiguration,
    blue: Sequence[str] | None,
    orange: Sequence[str] | None,
    humans: bool = False,
    allow_modules: Sequence[str] = (),
    follow: bool = False,
) -> flat.MatchConfiguration:
    """Return the match with the cars of one or both teams replaced.

    BOT arguments are policy folders, `bot.toml` files, `chaser`, or with `humans` `human` or `psyonix:SKILL`;
    None keeps a team's cars. With `follow` blue's are training runs, whose newer checkpoints are taken at
    kickoffs. Where a team is replaced, blue's cars come first; else all keep their order. A human comes last,
    as in RLBot's core. A ConfigError says that a BOT cannot be played, or that there are two humans.
    """
    players = list(match.player_configurations)
    named: list[tuple[str, str]] = []  # as the user did, and the policy that is meant
    for team, given in ((BLUE, blue), (ORANGE, orange)):
        if given is not None:
            bots = [policy_path(bot) for bot in given]
            allowed = [(*allow_modules, *_modules(bot, allow_modules)) for bot in given]
            players = [player for player in players if player.team != team]
            if follow and team == BLUE:
                players += [_followed_player(*pair, team) for pair in zip(given, allowed, strict=True)]
            else:
                players += [_player(bot, team, humans, its) for bot, its in zip(bots, allowed, strict=True)]
            named += zip(given, bots, strict=True)
    if named:
        players.sort(key=lambda player: player.team)
    match.player_configurations = move_human_last(players)
    blue_cars, orange_cars = (sum(player.team == team for player in players) for team in (BLUE, ORANGE))
    for name, bot in named:  # a bot.toml's process does so itself, when it hears of the match
        if (Path(bot) / MANIFEST_FILE).is_file():
            sizes = _manifest(bot).team_sizes
            problem = explain_misfit(sizes, (blue_cars, orange_cars), shlex.quote(name))
            if problem is not None:
                raise ConfigError(f"BOT {bot!r} {problem}")
    return match


def with_drivers(
    match: flat.MatchConfiguration,
    blue: Sequence[str],
    orange: Sequence[str],
    allow_modules: Sequence[str] = (),
) -> list[str | None]:
    """Put bots into a match, see `with_line_up`, whose policies drive in the server's own process.

    Return of each car, in the order of packets, the policy that drives it: a folder or a name; "human", or
    None for a bot that has a process of its own.
    """
    with_line_up(match, blue, orange, True, allow_modules)
    bots = [policy_path(bot) for bot in (*blue, *orange)]
    if _HUMAN in bots:  # it stands last, see `move_human_last`
        place = bots.index(_HUMAN)
        bots[place], bots[-1] = bots[-1], bots[place]
    drivers: list[str | None] = []
    for player, bot in zip(match.player_configurations, bots, strict=True):
        is_policy = bot in BUILT_IN or (Path(bot) / MANIFEST_FILE).is_file()
        if is_policy and isinstance(own := player.variety, flat.CustomBot):
            player.variety = make_driven_player(own.name, player.team, own.loadout).variety
        drivers.append(bot if is_policy or bot == _HUMAN else None)
    return drivers


def make_driven_player(
    name: str, team: int, loadout: flat.PlayerLoadout | None = None
) -> flat.PlayerConfiguration:
    """Return a player that a policy in the server's own process drives, a Psyonix bot to RLBot."""
    return flat.PlayerConfiguration(flat.PsyonixBot(name, loadout, flat.PsyonixSkill.Rookie), team)


def show_match_command(bot: str, team_sizes: Sequence[tuple[int, int]], more: str = "") -> str | None:
    """Return the line that plays a bot in the smallest match that it was trained for, against Chaser.

    `more` are further options, after a space. None for a bot that was trained without opponents.
    """
    players = show_players(shlex.quote(bot), team_sizes)
    return None if players is None else f"rlgym-bridge match {players}{more}"


def with_environment(match: flat.MatchConfiguration, variables: Sequence[Mapping[str, str]]) -> None:
    """Give each bot's process further environment variables, player by player."""
    for player, its in zip(match.player_configurations, variables, strict=True):
        if isinstance(player.variety, flat.CustomBot):
            added = [flat.EnvironmentVariable(name, value) for name, value in its.items()]
            player.variety.environment = [*(player.variety.environment or []), *added]


def first_of_process(match: flat.MatchConfiguration) -> list[int]:
    """Return for each player the first player of its process, by place in the match.

    A hivemind is one process for all its cars of a team, and has the environment of the first one.
    """
    first: dict[tuple[object, ...], int] = {}
    places = []
    for place, player in enumerate(match.player_configurations):
        bot = player.variety
        key: tuple[object, ...] = (place,)
        if isinstance(bot, flat.CustomBot) and bot.hivemind:
            key = (player.team, bot.agent_id, bot.root_dir, bot.run_command)
        places.append(first.setdefault(key, place))
    return places


def _player(bot: str, team: int, humans: bool, allow_modules: Sequence[str]) -> flat.PlayerConfiguration:
    path = Path(bot)
    if bot in BUILT_IN or os.path.lexists(path / MANIFEST_FILE):  # of whatever kind: the reader says
        policy = bot if bot in BUILT_IN else str(path.resolve())
        name = bot.capitalize() if bot in BUILT_IN else _name_of(path.resolve())
        return _own_player(name, policy, command_of(policy, allow_modules), _car_of(policy), team)
    if path.suffix == ".toml":
        return read_bot(path, team, "", None)
    if bot == _HUMAN or bot.startswith("psyonix:"):
        if not humans:
            raise ConfigError(f"BOT {bot!r} needs the real game: play with --server rlbot, or --allow-idle")
        return _game_player(bot, team)
    what = "a folder without policy.json" if path.is_dir() else "a file of another kind"
    what = what if path.exists() else "no file or folder"
    bot_file = f", or its {path / 'bot.toml'}" if (path / "bot.toml").is_file() else ""
    raise ConfigError(
        f"BOT {bot!r} is {what}; expected a policy folder, a run (train makes it), a bot.toml, "
        f"{' or '.join(BUILT_IN)}{explain_project(path)}{bot_file}"
    )


def _followed_player(run: str, allow_modules: Sequence[str], team: int) -> flat.PlayerConfiguration:
    folder = run_of(run)
    if folder is None:
        raise ConfigError(f"--follow is {run!r}, expected the folder of a training run with a checkpoint")
    command = command_of(str(folder), allow_modules, follow=True)
    return _own_player(folder.name, str(folder), command, _car_of(policy_path(str(folder))), team)


def _own_player(
    name: str, path: str, command: str, car: flat.PlayerLoadout | None, team: int
) -> flat.PlayerConfiguration:
    """Return a player of this project, whose agent id tells apart what lies at different paths."""
    bot = flat.CustomBot(
        name=name,
        root_dir=str(Path.cwd()),
        run_command=command,
        agent_id=f"rlgym_bridge/{name.replace(' ', '-')}-{zlib.crc32(os.fsencode(path)):08x}",
        loadout=car,
    )
    return flat.PlayerConfiguration(bot, team)


def command_of(policy: str, allow_modules: Sequence[str] = (), follow: bool = False) -> str:
    """Return the command that plays a policy, or follows a run, with this Python, without local modules."""
    words = ["--follow", policy] if follow else [policy]
    command = [sys.executable, "-P", "-m", "rlgym_bridge.live", *words, *allow_modules]
    return subprocess.list2cmdline(command) if sys.platform == "win32" else shlex.join(command)


def _name_of(folder: Path) -> str:
    """Return what a policy is called: a checkpoint by its run and its steps, a bot's own as the bot is."""
    bot = folder.parent / "bot.toml"
    if folder.name == "policy" and bot.is_file():
        with suppress(OSError, ValueError):  # a broken bot.toml names nothing
            settings = read_toml(bot).get("settings")
            if isinstance(settings, dict) and isinstance(name := settings.get("name"), str) and name.strip():
                return name
    run = folder.parent.parent
    return f"{run.name} {folder.name}" if folder.parent.name == CHECKPOINTS else folder.name


def _car_of(policy: str) -> flat.PlayerLoadout | None:
    """Return a car with the hitbox that a policy was trained with; None for the usual Octane."""
    if policy in BUILT_IN:
        return None
    hitbox = _manifest(policy).hitbox
    return None if HITBOXES[0].name == hitbox else flat.PlayerLoadout(car_id=BODY_OF_HITBOX[hitbox])


def _modules(bot: str, allow_modules: Sequence[str]) -> tuple[str, ...]:
    try:
        return run_modules(bot, allow_modules)
    except (OSError, ValueError) as error:
        raise ConfigError(f"BOT {bot!r}: {explain_unreadable(error)}") from error


def _manifest(policy: str) -> Manifest:
    try:
        return read_files(Path(policy))[0]
    except (OSError, ValueError) as error:
        raise ConfigError(f"BOT {policy!r}: {explain_unreadable(error)}") from error


def _game_player(bot: str, team: int) -> flat.PlayerConfiguration:
    if bot == _HUMAN:
        return idle_player(_HUMAN, team)
    skills = {
        name.lower(): getattr(flat.PsyonixSkill, name) for name in ("Beginner", "Rookie", "Pro", "AllStar")
    }
    skill = bot.removeprefix("psyonix:").lower()
    if skill not in skills:
        raise ConfigError(f"BOT {bot!r} has skill {skill!r}, expected one of {', '.join(skills)}")
    return flat.PlayerConfiguration(flat.PsyonixBot("", None, skills[skill]), team)


MATCH_FILE: Final = "rlbot.cfg"
_PACKAGE: Final = Path(__file__).parents[1]


def find_shipped_folder() -> Path:
    """Return the folder with the match file and the shipped bot: in an installed package, or a checkout's."""
    for folder in (_PACKAGE / "shipped", _PACKAGE.parent):
        if (folder / MATCH_FILE).is_file() and (folder / "bot" / "policy").is_dir():
            return folder
    raise ConfigError(
        f"there is no {MATCH_FILE} in {Path.cwd()} and no shipped bot in {_PACKAGE}; name a match file, or "
        "give --blue and --orange"
    )


def read_shipped_match() -> flat.MatchConfiguration:
    """Return the match of the shipped bot against Chaser, both started by this Python."""
    folder = find_shipped_folder()
    match = read_match_file(folder / MATCH_FILE)
    for player, policy in zip(
        match.player_configurations, (str(folder / "bot" / "policy"), CHASER), strict=True
    ):
        if not isinstance(player.variety, flat.CustomBot):
            raise ConfigError(f"{folder / MATCH_FILE} has a player that is no bot, expected two bots")
        player.variety.run_command = command_of(policy)
        player.variety.root_dir = str(Path.cwd())
    return match


@dataclass(frozen=True)
class ForecastErrors:
    """Share and mean of a bot's `live.forecaster.Errors` as its report has them, None without any."""

    checked: int
    share_off: float | None
    mean_error_uu: float | None


@dataclass(frozen=True)
class ForecastCounts:
    """A bot's `live.forecaster.ForecastReport` as its report has it; places are off from `off_uu` on."""

    latency: int
    measured: bool
    ticks: int
    forecasts: int
    missing: int
    off_uu: float
    ball: ForecastErrors
    car: ForecastErrors


@dataclass(frozen=True)
class BotReport:
    """The `live.session.AgentReport` of a bot of this project; a bot without one has missed None."""

    missed: Annotated[int, Meta(ge=0)] | None = None
    faults: Mapping[str, int] = field(default_factory=dict)
    dialect_file: str | None = None
    refused: str | None = None
    checkpoints: Sequence[str] = ()
    forecast: ForecastCounts | None = None
    no_forecast: str | None = None
    no_search: str | None = None


def read_bot_report(report: Path) -> BotReport:
    """Read a bot's report, whose texts change no terminal; an empty one if there is none, or it is none."""
    try:
        found = convert(parse_json(read_text(report)), BotReport)
    except (OSError, ValueError, ValidationError):
        return BotReport()
    faults = {escape_controls(kind): n for kind, n in found.faults.items()}
    names = ("dialect_file", "refused", "no_forecast", "no_search")
    texts: dict[str, Any] = {
        name: text and escape_controls(text) for name in names for text in [getattr(found, name)]
    }
    checkpoints = tuple(map(escape_controls, found.checkpoints))
    return replace(found, faults=faults, checkpoints=checkpoints, **texts)


def find_troubles(bot: BotResult, reported: BotReport) -> Sequence[str]:
    """Return what the server saw go wrong in a bot beside the faults that it reports itself.

    A bot of this project reports what it missed: it leaves packets out in bursts, which is no trouble. Its
    tracebacks are none where it counts faults.
    """
    if reported.missed is None:
        return bot.troubles
    found = list(bot.intrusions)
    if bot.exceptions and not reported.faults:
        found.append(f"wrote {count_of(bot.exceptions, 'traceback')}")
    return found


def find_refusal(match: flat.MatchConfiguration, reports: Sequence[Path]) -> str | None:
    """Return which bot will not play a match, and why, by the reports of its players; None where all play."""
    for player, report in zip(match.player_configurations, reports, strict=True):
        refused = read_bot_report(report).refused
        if refused is not None:
            return f"{getattr(player.variety, 'name', '')!r} {refused}"
    return None


def with_followed(result: MatchResult, reported: list[BotReport]) -> MatchResult:
    """Return the result of a match, which cannot be repeated where a bot took a newer checkpoint in it."""
    took = [bot.name for bot, its in zip(result.bots, reported, strict=True) if len(its.checkpoints) > 1]
    if not took or result.unrepeatable == REAL_TIME:
        return result
    sentence = f"{', '.join(dict.fromkeys(took))} took newer checkpoints"
    return replace(result, unrepeatable=(*result.unrepeatable, sentence))
