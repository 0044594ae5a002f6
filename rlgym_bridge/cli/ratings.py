"""Rate the checkpoints of a run, and print and draw the ratings: `rlgym-bridge ratings`."""

import argparse
from pathlib import Path
from typing import Final

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files, play_options
from rlgym_bridge.policy.files import policy_path
from rlgym_bridge.project.this_project import run_named
from rlgym_bridge.training.contests import ratings
from rlgym_bridge.training.contests.kept_matches import FILE, KeptMatches, play_jobs
from rlgym_bridge.training.contests.pictures import draw_ratings
from rlgym_bridge.training.elo import FIRST_RATING
from rlgym_bridge.training.evaluate import check_numbers, team_size_of
from rlgym_bridge.training.processes import Locked

_WORK: Final = "ratings"
_MATCHES: Final = 40


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Rate the checkpoints of a training run against fixed opponents (Elo), and say how far copies of one "
        "version differ. Anchors keep their ratings and matches are kept, so that the same command later "
        "plays newer checkpoints alone, on the same scale. DIR gets ratings.json, ratings.txt, ratings.png."
    )
    shared.add_option(
        parser, "run RUN", "folder of a training run (default: the run of train.toml in this folder)", Path,
        nargs="?",
    )  # fmt: skip
    shared.add_option(
        parser, "--anchors BOT", "fixed opponents: policy folders, chaser or random; :sample or :argmax "
        f"behind a folder chooses how it plays. The first one ever named has {FIRST_RATING:g} points "
        "(default: those of DIR, else chaser)", nargs="+", default=[],
    )  # fmt: skip
    play_options.add_options(
        parser, _MATCHES, "for each checkpoint with each anchor and with itself, half from each side"
    )
    shared.add_option(
        parser, "--most N", "rate at most N checkpoints newer than those rated, evenly spread", default=10
    )
    shared.add_option(parser, "--team-size N", "cars in a team (default: what the run trained)", int)
    shared.add_option(
        parser, "--out DIR", "folder for results, matches and the ratings of anchors (default: "
        "RUN/ratings-1v1, or as the team size is)", output_files.folder_name,
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    options.run = Path(run_named(options.run and str(options.run), "RUN", "the folder of a training run"))
    newest = policy_path(str(options.run))
    if options.team_size is None:
        options.team_size = 1 if newest == str(options.run) else team_size_of(newest)
    size = options.team_size
    check_numbers(
        options.matches, options.seconds, seed=(options.seed, 0), most=(options.most, 1),
        processes=(options.processes, 1), team_size=(size, 1),
    )  # fmt: skip
    options.out = options.out or options.run / f"ratings-{size}v{size}"
    output_files.check_outputs(options.json)
    output_files.check_output_folder(options.out, options.json)
    book = ratings.RatingBook.read(options.out / ratings.BOOK)
    checkpoints = book.choose_checkpoints(options.run, options.most, size)
    anchors = ratings.read_anchors(options.anchors, book, size)
    with Locked(options.out, _WORK):
        kept = KeptMatches(options.out / FILE, {
            "what": _WORK, "run": options.run.resolve().name, "seconds": options.seconds,
            "team_size": options.team_size, "seed": options.seed, "simulator": options.simulator,
        })  # fmt: skip
        book.write(options.out / ratings.BOOK)
        modules = play_options.how(options, options.run)["allow_modules"]
        pairs = list(ratings.pairs_of(book, checkpoints.values(), anchors))
        how_played = {name: getattr(options, name) for name in ("seconds", "seed", "team_size", "simulator")}
        jobs = [
            job for pair in pairs for job in ratings.jobs_of(pair, options.matches, modules, **how_played)
        ]
        try:
            with play_options.shown_progress(options, options.processes) as show:
                play_jobs(kept, jobs, options.processes, show)
        except KeyboardInterrupt:
            play_options.say_stopped(kept, str(len(kept.results)))
            return 1
        ratings.fix_anchors(book, anchors, kept)
        book.write(options.out / ratings.BOOK)
        return _report(options, book, kept)


def _report(options: argparse.Namespace, book: ratings.RatingBook, kept: KeptMatches) -> int:
    rated, size = ratings.rate_checkpoints(book, kept.results), options.team_size
    title = f"{options.run.resolve().name}, {size}v{size}, matches of {options.seconds:g} s"
    lines = [title, *ratings.describe_ratings(rated, book.anchors)]
    shared.printer(options)("\n".join(lines))
    result = {**kept.settings, **ratings.summarise_ratings(rated, book.anchors)}
    draw_ratings(title, rated, book.anchors, options.out / "ratings.png")
    play_options.write_results(options, _WORK, lines, result)
    return 0
