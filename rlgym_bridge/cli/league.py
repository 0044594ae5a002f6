"""Let bots play each other over the match server, and print their ratings: `rlgym-bridge league`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import play_options
from rlgym_bridge.policy.files import MANIFEST_FILE, policy_path
from rlgym_bridge.policy.load_player import CHASER
from rlgym_bridge.project.this_project import SETTINGS_FILE, run_named
from rlgym_bridge.training.contests import league, served_match
from rlgym_bridge.training.contests.kept_matches import FILE, KeptMatches, MatchKey, seen_by_first
from rlgym_bridge.training.contests.pictures import draw_league
from rlgym_bridge.training.evaluate import team_size_of
from rlgym_bridge.training.processes import Locked

_WORK = "league"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Let bots play each other over the match server, without the game, and rate them (Elo). Every "
        "entry plays every other, and itself, from both sides. A bot that does not connect or leaves early "
        "forfeits the match. DIR gets league.json, league.txt and league.png."
    )
    shared.add_option(
        parser, "entries ENTRY", "policy folder, training run (its newest checkpoint), checkpoint, bot.toml, "
        "chaser, charger or random; :sample or :argmax behind a policy chooses how it plays (default: the "
        "run of train.toml in this folder, and chaser)", nargs="*",
    )  # fmt: skip
    play_options.add_contest_options(
        parser, 20, "for each pair of entries and each entry against its copy", _WORK
    )
    shared.add_option(
        parser, "--gauntlet", "play only the matches of the first entry against each of the others"
    )
    shared.add_option(
        parser, "--team-size N", "cars in a team, all driven by the entry (default: what the first policy "
        "was trained for)", play_options.positive,
    )  # fmt: skip
    shared.add_simulator_option(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    entrants = _entrants_of(options)
    read = [Path(one.path) for one in entrants]
    play_options.check_contest_outputs(options, read)
    matches = league.league_matches(
        entrants, options.matches, gauntlet=options.gauntlet, team_size=options.team_size,
        seconds=options.seconds, seed=options.seed, simulator=options.simulator,
        allow_modules=shared.allowed_modules(options), logs=options.out / served_match.LOGS,
    )  # fmt: skip
    with Locked(options.out, _WORK):
        kept = KeptMatches(options.out / FILE, {
            "what": _WORK, "seconds": options.seconds, "team_size": options.team_size, "seed": options.seed,
            "simulator": options.simulator, "entries": [one.identity for one in entrants],
        })  # fmt: skip
        with play_options.shown_progress(options, options.jobs) as show:
            complete = served_match.play_missing(kept, matches, options.jobs, show)
        if not complete:
            play_options.say_stopped(
                kept, f"{sum(key in kept.results for key, _ in matches)} of {len(matches)}"
            )
        # A gauntlet in the folder of a whole league shows the other pairs, too.
        known = dict.fromkeys([*(key for key, _ in matches), *sorted(kept.results)])
        keys = [key for key in known if key in kept.results and key[2] < options.matches]
        return _report(options, entrants, kept, keys, complete)


def _entrants_of(options: argparse.Namespace) -> list[served_match.Entrant]:
    """Return the entries, and set the size of the teams where nothing was said."""
    if not options.entries:
        run = run_named(None, "ENTRY", "two or more policy folders, training runs or bots")
        options.entries = [run, CHASER]
        shared.printer(options)(f"entries: {run}, of {SETTINGS_FILE} in this folder, and {CHASER}")
    if len(options.entries) < 2:
        raise ValueError("there is 1 ENTRY, expected two or more (the same one may be named twice)")
    if options.team_size is None:
        named = [policy_path(served_match.split_selection(one)[0]) for one in options.entries]
        options.team_size = team_size_of(*(one for one in named if (Path(one) / MANIFEST_FILE).is_file()))
    return served_match.read_entrants(options.entries, options.team_size)


def _report(
    options: argparse.Namespace, entrants: Sequence[served_match.Entrant], kept: KeptMatches,
    keys: Sequence[MatchKey], complete: bool,
) -> int:  # fmt: skip
    """Print the standings, and write them where all was played; 1 where it was not, or a bot forfeited."""
    if not keys:
        return 1
    matches = [seen_by_first(key, kept.results[key]) for key in keys]
    standings = league.rank([one.name for one in entrants], matches)
    pairs = league.pairs_of(standings, matches)
    remarks = [remark for key in keys for remark in kept.results[key].remarks]
    lines = league.describe_league(standings, pairs, matches, remarks)
    shared.printer(options)("\n".join(lines))
    if not complete:
        return 1
    result = {
        **kept.settings, "matches": options.matches,
        **league.summarise_league(standings, pairs, matches, remarks),
    }  # fmt: skip
    draw_league(standings, pairs, options.out / "league.png")
    play_options.write_results(options, _WORK, lines, result)
    return int(any(one.forfeits for one in standings))
