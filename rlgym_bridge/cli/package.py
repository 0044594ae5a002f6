"""`rlgym-bridge package`: make a bot's folder for others."""

import argparse
import shlex
from pathlib import Path
from typing import Final

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.policy.carried_modules import explain_copies
from rlgym_bridge.policy.files import CHECKPOINTS, MANIFEST_FILE, policy_path
from rlgym_bridge.policy.run_modules import RUN_FILE, run_modules
from rlgym_bridge.project import package_bot
from rlgym_bridge.project.bot_description import ProjectError, show_team_sizes, size_tags
from rlgym_bridge.project.this_project import run_folder
from rlgym_bridge.server.lineup import show_match_command
from rlgym_bridge.user_input.extras import explain_native

_POLICY: Final = Path("policy")
_ROOM: Final = Path("dist")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Package a policy as a bot for others: a folder that RLBot's window and its botpack take. It holds "
        "the policy, your own modules, bot.toml with a unique agent id, loadout, logo, licence, requirements "
        "(torch only for a network of your own), and what PyInstaller and the botpack's builder need. The "
        "bot is started once to see that it loads."
    )
    shared.add_option(
        parser, "policy POLICY", "policy folder, training run (its newest checkpoint) or checkpoint "
        "(default: the bot of the current folder, its bot.toml and bot.py, with its folder policy or else "
        "the run of its train.toml)", nargs="?",
    )  # fmt: skip
    shared.add_option(parser, "--name N", "name of the bot (default: that of the bot.toml here)")
    shared.add_option(parser, "--author A", "who made it (default: the developer of the bot.toml here)")
    shared.add_option(parser, "--hivemind", "let one process drive all of the bot's cars of a team")
    shared.add_modules_option(
        parser, "POLICY may import components from, besides those of a run; they are packaged"
    )
    shared.add_option(
        parser, "--include FILE", "files of the current folder that your modules read; modules are found "
        "without it", Path, nargs="+", default=[],
    )  # fmt: skip
    shared.add_option(parser, "--out DIR", "folder to write (default: dist/NAME)", output_files.folder_name)
    shared.add_option(
        parser, "--replace", "write over the files of a packaged bot in DIR; other files in it stay"
    )


def run(options: argparse.Namespace) -> int:
    """Make the bot, try it, write it, and say what comes next."""
    plan = _plan(options)
    output_files.check_outputs(options.json, inputs=plan.include)
    bot = package_bot.make_bot(plan)
    out = options.out or _ROOM / bot.folder_name
    output_files.check_output_folder(out, options.json, [plan.policy])
    _check_free(out, options.replace)
    try:
        seconds = package_bot.try_bot(bot)
    except ProjectError as error:
        # Copies help nobody whose program does not allow their module.
        copies = "" if "allow_modules=" in str(error) else explain_copies(plan.policy, options.allow_modules)
        raise ProjectError(f"{error}{copies}") from error
    package_bot.write_bot(bot, out)
    size = sum(map(len, bot.files.values()))
    sizes = show_team_sizes(bot.manifest.team_sizes)
    say = shared.printer(options)
    say(f"{out}: {len(bot.files)} files, {size / 1e6:.1f} MB")
    say(f"  {bot.name} plays {sizes}, with {plan.policy}")
    say(f"  agent id {bot.agent_id}")
    if not bot.author:
        say(f'  no author: LICENSE, if not yours, names "the author of {bot.name}"; --author A names you')
    if bot.modules:
        say(f"  your modules: {', '.join(bot.modules)}")
    if bot.wheel is None:
        without = (
            f"  without {package_bot.SIMULATOR}: it plays with RocketSim 2.2.1; to take RocketSim 3 along: "
        )
        say(without + explain_native())
    else:
        system = package_bot.this_system()
        say(f"  {bot.wheel} comes along: RocketSim 3 for {system}; elsewhere it plays without")
    torch = "with torch, which its network needs" if bot.needs_torch else "without torch"
    say(f"  it starts in {seconds:.1f} s, {torch}")
    say("next:")
    say("  rlgym_bridge is not at PyPI yet: put its wheel into the folder, by this command in its checkout")
    say(f"  pip wheel --no-deps -w {shlex.quote(str(out.absolute()))} .")
    play = show_match_command(str(out / package_bot.BOT_FILE), bot.manifest.team_sizes, " --pace lockstep")
    if play is not None:
        say(f"  {play}")
    result = {
        "folder": str(out), "name": bot.name, "agent_id": bot.agent_id, "policy": str(plan.policy),
        "tags": size_tags(bot.manifest.team_sizes), "modules": list(bot.modules), "wheel": bot.wheel,
        "files": sorted(bot.files), "bytes": size, "start_seconds": seconds,
    }  # fmt: skip
    output_files.write_json(options.json, result)
    return 0


def _plan(options: argparse.Namespace) -> package_bot.PackagePlan:
    """Return what is packaged; `ValueError` where nothing to package is named, or there is none here."""
    given, project = options.policy, None
    name, author = options.name, options.author
    if given is None:
        given, project = _policy_here(), Path()
    else:
        settings, details = (
            package_bot.bot_tables(Path()) if Path(package_bot.BOT_FILE).is_file() else ({}, {})
        )
        name = settings.get("name") if name is None else name
        author = details.get("developer") if author is None else author
        if not isinstance(name, str) or not isinstance(author, str):
            lacking = "--author" if isinstance(name, str) else "--name"
            raise ProjectError(
                f"{lacking} is missing, and no {package_bot.BOT_FILE} here says it; "
                "expected --name N --author A"
            )
    policy = Path(policy_path(given))
    if not (policy / MANIFEST_FILE).is_file() and any(
        (policy / one).exists() for one in (RUN_FILE, CHECKPOINTS)
    ):
        raise ProjectError(f"{policy} is a training run without a checkpoint, expected one: train longer")
    allowed = (*options.allow_modules, *run_modules(given, options.allow_modules))
    return package_bot.PackagePlan(policy, name, author, allowed, options.hivemind, project, options.include)


def _policy_here() -> str:
    """Return the policy of the current folder's bot; `ValueError` where it has none, or there is no bot."""
    if not Path(package_bot.BOT_FILE).is_file() or not Path(package_bot.PROGRAM_FILE).is_file():
        raise ProjectError(
            f"POLICY is missing, expected a policy folder, a run or a checkpoint; {Path.cwd()} has no "
            f"{package_bot.BOT_FILE} with {package_bot.PROGRAM_FILE} to package"
        )
    found = str(_POLICY) if _POLICY.is_dir() else run_folder()
    if found is None:
        raise ProjectError(f"{Path.cwd()} has no folder {_POLICY} and no train.toml, expected one of them")
    if not Path(found).exists():
        raise ProjectError(f"{found} is not there yet, expected a training run: rlgym-bridge train makes it")
    return found


def _check_free(out: Path, replace: bool) -> None:
    """Raise `ProjectError` for a folder with anything but a packaged bot that is to be replaced."""
    if not out.is_dir() or not any(out.iterdir()):
        return
    if not (out / "bob.toml").is_file() or not (out / package_bot.BOT_FILE).is_file():
        raise ProjectError(f"{out} holds something else than a packaged bot, expected a new or empty folder")
    if not replace:
        raise ProjectError(f"{out} is there already, expected a new folder, or --replace to write over it")
