"""Say what will cost a bot most matches in the real game: `rlgym-bridge stress POLICY`."""

import argparse
from dataclasses import replace
from pathlib import Path

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files, play_options
from rlgym_bridge.policy.files import MANIFEST_FILE, policy_path, read_files
from rlgym_bridge.policy.load_player import CHASER
from rlgym_bridge.project.this_project import run_named
from rlgym_bridge.training.contests import stress
from rlgym_bridge.training.contests.kept_matches import FILE, KeptMatches, play_jobs
from rlgym_bridge.training.contests.pictures import draw_losses
from rlgym_bridge.training.contests.served_match import Entrant, play_missing, read_entrants, split_selection
from rlgym_bridge.training.evaluate import team_size_of
from rlgym_bridge.training.processes import Locked
from rlgym_bridge.user_input.arguments import check_names

_WORK = "stress"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Say what costs a bot matches: it plays against itself, with one thing at a time that differs for it "
        "alone. Causes: "
        + "; ".join(f"{name}: {text}" for name, text in stress.GROUPS.items())
        + ". Causes of "
        "packets are played over the match server, the others in training's matches in RocketSim. DIR gets "
        "stress.json, stress.txt and stress.png."
    )
    shared.add_option(
        parser, "policy POLICY", "policy folder, training run or checkpoint to test; :sample or :argmax "
        "behind it chooses how it plays, on both sides (default: the run of train.toml in this folder)",
        nargs="?",
    )  # fmt: skip
    shared.add_option(
        parser, "--against BOT", "opponent: a policy, a run, a bot.toml, chaser, charger or random (default: "
        "the tested policy itself)",
    )  # fmt: skip
    shared.add_option(
        parser, "--causes NAME", f"play only these causes: {', '.join(stress.GROUPS)} (default: all)",
        nargs="+", default=list(stress.GROUPS),
    )  # fmt: skip
    play_options.add_contest_options(parser, 200, "for each cause in RocketSim", _WORK)
    shared.add_option(
        parser, "--server-matches N", "matches for each cause over the match server", play_options.even,
        default=40,
    )  # fmt: skip
    shared.add_option(
        parser, "--team-size N", "cars in a team (default: what the policy was trained for)",
        play_options.positive,
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    plan, against = _plan_of(options)
    read = [Path(plan.tested.path)]
    play_options.check_contest_outputs(options, read)
    output_files.check_output_folder(options.out / stress.DIALECTS, options.json)
    with Locked(options.out, _WORK):
        kept = KeptMatches(options.out / FILE, {
            "what": _WORK, "seconds": plan.seconds, "team_size": plan.team_size, "seed": plan.seed,
            "tested": plan.tested.identity, "against": against.identity,
        })  # fmt: skip
        try:
            complete = _play(plan, kept, options)
        except KeyboardInterrupt:
            complete = False
        if not complete:
            _print_so_far(plan, kept, options)
            play_options.say_stopped(kept, str(len(kept.results)))
            return 1
        return _report(plan, kept, options)


def _plan_of(options: argparse.Namespace) -> tuple[stress.StressPlan, Entrant]:
    """Return what is to be played, and against whom."""
    check_names("--causes", options.causes, stress.GROUPS)
    options.policy = run_named(options.policy, "POLICY", "a policy folder, a training run or a checkpoint")
    if options.team_size is None:
        policy = policy_path(split_selection(options.policy)[0])
        options.team_size = team_size_of(policy) if (Path(policy) / MANIFEST_FILE).is_file() else 1
    (tested,) = read_entrants([options.policy], options.team_size)
    if not tested.is_policy:
        raise ValueError(
            f"POLICY is {options.policy!r}, expected a policy folder, a training run or a checkpoint"
        )
    against = tested if options.against is None else read_entrants([options.against], options.team_size)[0]
    (chaser,) = read_entrants([CHASER], options.team_size)
    allowed = dict.fromkeys([*shared.allowed_modules(options), *tested.allow_modules, *against.allow_modules])
    manifest, _ = read_files(Path(tested.path))
    causes = stress.list_causes(manifest, tested.selection or manifest.selection, options.causes)
    trials = stress.plan_trials(causes, tested, against, chaser, (options.matches, options.server_matches))
    plan = stress.StressPlan(
        tested=tested, manifest=manifest, trials=trials, team_size=options.team_size,
        seconds=options.seconds, seed=options.seed, allow_modules=tuple(allowed), out=options.out,
    )  # fmt: skip
    return plan, against


def _play(plan: stress.StressPlan, kept: KeptMatches, options: argparse.Namespace) -> bool:
    """Play the matches that are not kept yet: those in RocketSim, then those over the server."""
    jobs = list(stress.simulated_jobs(plan))
    with play_options.shown_progress(options, options.jobs) as show:
        play_jobs(kept, jobs, options.jobs, show)
    matches = stress.served_matches(plan)
    if jobs and matches:
        shared.printer(options)(
            f"in RocketSim all is played; now {len(matches)} matches over the match server"
        )
    with play_options.shown_progress(options, options.jobs) as show:
        return play_missing(kept, matches, options.jobs, show)


def _print_so_far(plan: stress.StressPlan, kept: KeptMatches, options: argparse.Namespace) -> None:
    """Print the table of the causes whose matches are all played, those without one left out."""
    trials = [trial for trial in plan.trials if all(key in kept.results for key in trial.keys)]
    whole = tuple(trial for trial in trials if trial.baseline in trials)
    if any(trial.cause.name != stress.CONTROL for trial in whole):
        part = replace(plan, trials=whole)
        lines = stress.describe_losses(part, stress.losses_of(part, kept.results))
        shared.printer(options)(
            "\n".join([f"{len(whole)} of {len(plan.trials)} rows are whole so far:", *lines])
        )


def _report(plan: stress.StressPlan, kept: KeptMatches, options: argparse.Namespace) -> int:
    """Print and write what each cause costs; 1 where a bot forfeited."""
    losses = stress.losses_of(plan, kept.results)
    lines = stress.describe_losses(plan, losses)
    shared.printer(options)("\n".join(lines))
    result = {**kept.settings, "causes": stress.summarise_losses(losses)}
    draw_losses(plan.tested.name, losses, options.out / "stress.png")
    play_options.write_results(options, _WORK, lines, result)
    return int(any(loss.forfeits for loss in losses))
