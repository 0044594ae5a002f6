"""Play against bots, or with them, on a page in the browser: `rlgym-bridge play`."""

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rlbot import flat
from threadpoolctl import threadpool_limits

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.cli.browser_page import NamedPolicies, add_page_options, check_installed, page_opener
from rlgym_bridge.cli.match_summary import describe_match, summarise
from rlgym_bridge.live.play import SEED_VARIABLE
from rlgym_bridge.live.session import REPORT_VARIABLE
from rlgym_bridge.policy.files import MANIFEST_FILE, newest_checkpoint, policy_path, read_files
from rlgym_bridge.policy.load_player import BUILT_IN
from rlgym_bridge.project.this_project import run_folder
from rlgym_bridge.server import ConfigError, MatchCalledOff, MatchResult, MatchServer, lineup
from rlgym_bridge.user_input.stop_signals import stopped_by_signals

STATUS: Final = "0 played until Ctrl-C, 2 the match cannot be played or shown"

_HUMAN: Final = "human"
_LONG: Final = 86_400.0  # s: no match ends because nobody plays on


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Play against bots in the browser, in RocketSim and real time: no game is needed. The page shows the "
        "keys; a gamepad works, too. Ctrl-C ends."
    )
    bot = "a policy folder, a training run, a bot.toml, chaser, charger or random"
    shared.add_option(
        parser, "bots BOT", f"your opponents, each {bot} (default: the run of train.toml here, else the "
        "shipped bot)", nargs="*",
    )  # fmt: skip
    shared.add_option(parser, "--with BOT", "your teammates", nargs="+", default=[], dest="mates")
    shared.add_option(parser, "--team", "your team", default="blue", choices=("blue", "orange"))
    shared.add_option(
        parser, "--blue BOT", "all cars of the blue team in place of these; one BOT of a match may be human",
        nargs="+",
    )  # fmt: skip
    shared.add_option(parser, "--orange BOT", "the same for the orange team", nargs="+")
    shared.add_modules_option(parser)
    shared.add_option(
        parser, "--seconds N", "length of the match in seconds of game time", shared.seconds, default=300.0
    )
    shared.add_seed_option(parser)
    add_page_options(parser)
    shared.add_physics_option(parser)
    shared.add_simulator_option(parser, default=None)


def run(options: argparse.Namespace) -> int:
    """Play until Ctrl-C, and write the result where that is wanted."""
    check_installed()
    output_files.check_outputs(options.json, inputs=[options.physics])
    blue, orange = choose_cars(options)
    match = lineup.empty_match()
    match.skip_replays = False
    drivers = lineup.with_drivers(match, blue, orange, options.allow_modules)
    with tempfile.TemporaryDirectory(prefix="rlgym-bridge-", ignore_cleanup_errors=True) as folder:
        reports = [Path(folder) / f"{i}.json" for i in range(len(drivers))]
        seed = {SEED_VARIABLE: str(options.seed)}
        lineup.with_environment(match, [seed | {REPORT_VARIABLE: str(report)} for report in reports])
        try:
            result = _play(options, match, drivers)
        except MatchCalledOff as error:
            if (refused := lineup.find_refusal(match, reports)) is not None:
                raise ConfigError(f"the match was called off: {refused}") from error
            raise
        told = [lineup.read_bot_report(path) for path in reports]
    blue_goals, orange_goals = result.score
    shared.printer(options)(f"blue {blue_goals} : {orange_goals} orange")
    output_files.write_json(options.json, summarise(result, told, None))
    return 0


def _play(
    options: argparse.Namespace, match: flat.MatchConfiguration, drivers: Sequence[str | None]
) -> MatchResult:
    """Play a match on the page until Ctrl-C; `drivers` is what `with_drivers` returned."""
    from rlgym_bridge.view.web.last_minute import LastMinute
    from rlgym_bridge.view.web.played_match import PlayedMatch

    policies = NamedPolicies((one for one in drivers if one not in (None, _HUMAN)), options.allow_modules)
    settings: dict[str, Any] = {name: getattr(options, name) for name in ("seed", "simulator")}
    settings["constants"] = shared.physics_of(options)
    minute = LastMinute(describe_match("Soccar", settings | {"pace": "realtime"}))
    control = PlayedMatch(
        "play", [one if one in (None, _HUMAN) else policies.name_of(one) for one in drivers],
        policies.load, policies.names, page_opener(options), minute, seed=options.seed,
    )  # fmt: skip
    with (
        threadpool_limits(1),
        MatchServer(
            **settings, seconds=options.seconds, max_overtime=_LONG, max_kickoff=_LONG, recorder=minute,
            log_dir=Path("logs") / str(os.getpid()), control=control,
        ) as server,
        control,
        stopped_by_signals(server.stop),
    ):  # fmt: skip
        return server.play(match)


def choose_cars(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the BOTs of blue and orange; raises ConfigError if both ways to name them are used."""
    if options.blue or options.orange:
        if options.bots or options.mates or options.team != "blue":
            raise ConfigError(
                "--blue and --orange name all cars, expected neither BOT nor --with nor --team beside them"
            )
        return options.blue or [_HUMAN], options.orange or [_HUMAN]
    mates, opponents = options.mates, options.bots or [_own_bot(shared.printer(options))]
    if len(opponents) == 1 and not mates:
        mates, opponents = _fitting(opponents[0])
    mine = [_HUMAN, *mates]
    return (mine, opponents) if options.team == "blue" else (opponents, mine)


def _own_bot(say: Callable[[str], None]) -> str:
    """Return the run that the settings of this folder train if it has a checkpoint, else the shipped bot."""
    run = run_folder()
    if run is not None and newest_checkpoint(Path(run)) is not None:
        say(f"opponent: {run}, the run of this folder")
        return run
    say("opponent: the shipped bot")
    return str(lineup.find_shipped_folder() / "bot" / "policy")


def _fitting(bot: str) -> tuple[list[str], list[str]]:
    """Return your teammates and opponents where a bot is named once: the smallest teams that it plays in."""
    folder = Path(policy_path(bot))
    if bot in BUILT_IN or not (folder / MANIFEST_FILE).is_file():
        return [], [bot]
    sizes = [size for size in read_files(folder)[0].team_sizes if all(size)] or [(1, 1)]
    mine, others = min(sizes, key=sum)
    return [bot] * (mine - 1), [bot] * others
