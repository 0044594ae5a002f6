"""Let two policies play, or one the scenes, and print how well: `rlgym-bridge evaluate`."""

import argparse
from pathlib import Path

from rlgym_bridge.cli import options as shared
from rlgym_bridge.cli import output_files
from rlgym_bridge.cli.play_options import SECONDS, add_options, how
from rlgym_bridge.policy.files import policy_path, shorten_policy
from rlgym_bridge.policy.load_player import CHASER
from rlgym_bridge.project.this_project import run_named
from rlgym_bridge.training import scenes
from rlgym_bridge.training.evaluate import MATCHES, evaluate


def _delays(text: str) -> list[int]:
    """Return the delays of A and B from one number, or from two with a comma between."""
    try:
        delays = [int(one) for one in text.split(",")]
    except ValueError:
        delays = []
    if not 1 <= len(delays) <= 2:
        raise argparse.ArgumentTypeError(f"{text!r}, expected ticks, or A's and B's: 16,1")
    return delays * 2 if len(delays) == 1 else delays


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Let two policies play against each other and say which is better, with a 95 % interval. A win is "
        "more goals; a draw counts half. Or, with --scenes, measure the skills of one."
    )
    shared.add_option(
        parser, "a A", "policy folder, training run (its newest checkpoint), chaser, charger, or random, "
        "which presses buttons at random (default: the run of train.toml in this folder)", nargs="?",
    )  # fmt: skip
    shared.add_option(parser, "b B", "its opponent, given the same way (default: chaser)", nargs="?")
    add_options(parser, MATCHES, "half of them from each side")
    parser.set_defaults(matches=None, seconds=None)  # so that `run` knows what was given
    shared.add_option(
        parser, "--scenes NAMES", "play scenes with A in place of matches: saves, shots and other skills; A "
        "may be standing, a car that does nothing (NAMES: with commas between them: "
        f"{', '.join(scenes.SCENES)}; default: all)", nargs="?", const=",".join(scenes.SCENES),
    )  # fmt: skip
    shared.add_option(
        parser, "--trials N", "with --scenes: trials of each, half of them on each side (default: "
        f"{scenes.TRIALS})", int,
    )  # fmt: skip
    shared.add_option(parser, "--team-size N", "cars in a team (default: what A was trained for)", int)
    shared.add_option(
        parser, "--action-delay TICKS[,TICKS]", "ticks that an action waits, from the state it was decided "
        "on to the first tick it drives: of both, or of A and of B (default: what the policy folders say)",
        _delays,
    )  # fmt: skip
    shared.add_selection_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    say = shared.printer(options)
    output_files.check_outputs(options.json)
    first = run_named(options.a, "A", "a policy folder, a training run, chaser, charger or random")
    if options.scenes is not None:
        return _run_scenes(options, first)
    if options.trials is not None:
        raise ValueError("--trials is given without --scenes, expected --matches, or --scenes beside it")
    if options.seconds is None:
        options.seconds = SECONDS
    second = options.b or CHASER
    a, b = policy_path(first), policy_path(second)
    found = evaluate(
        a,
        b,
        MATCHES if options.matches is None else options.matches,
        team_size=options.team_size,
        selection=options.selection,
        action_delay=options.action_delay,
        **how(options, first, second),
    )
    (low, high), (won, drawn, lost) = found.interval, found.results
    goals, touches = found.goals.sum(0).tolist(), found.touches_per_minute
    chosen = {"sample": ", sampled actions", "argmax": ", argmax actions"}.get(options.selection, "")
    size = found.team_size
    names = f"{shorten_policy(a)} against {shorten_policy(b)}"
    which = f"{size}v{size} of {options.seconds:g} s in {options.simulator}{chosen}"
    say(f"{names}, {found.matches} matches {which}")
    say(f"  won {won}, drawn {drawn}, lost {lost}, goals {goals[0]} : {goals[1]}")
    say(f"  win rate {found.win_rate:.1%} (a draw counts half; 95 %: {low:.1%} to {high:.1%})")
    say(f"  touches per car per minute {touches[0]:.1f} and {touches[1]:.1f}")
    delays = " and ".join(map(str, found.delays))
    say(f"  action delay {delays} ticks, from the state decided on to the first tick driven")
    result = found.to_json() | {
        "action_delay": found.delays, "touches_per_minute": list(touches),
        "minutes": float(found.minutes.sum()), "team_size": size, "simulator": options.simulator,
    }  # fmt: skip
    output_files.write_json(options.json, result)
    return 0


def _run_scenes(options: argparse.Namespace, first: str) -> int:
    if options.b is not None:
        raise ValueError(f"B is {options.b} with --scenes, expected A alone: scenes have their own opponents")
    if ignored := [f"--{name}" for name in ("matches", "seconds") if getattr(options, name) is not None]:
        raise ValueError(
            f"{' and '.join(ignored)} given with --scenes, expected --trials: a scene has a length of its own"
        )
    names = scenes.parse_scenes(options.scenes)
    say = shared.printer(options)
    player = first if first == scenes.STANDING else policy_path(first)
    played = how(options, first)
    del played["seconds"]
    trials = scenes.TRIALS if options.trials is None else options.trials
    delay = None if options.action_delay is None else options.action_delay[0]
    found = scenes.evaluate_scenes(
        player, names, trials, team_size=options.team_size, selection=options.selection,
        action_delay=delay, **played,
    )  # fmt: skip
    say(f"{shorten_policy(player)}, {trials} trials of each scene, half of them on each side")
    for line in scenes.describe_results(found):
        say(line)
    scenes_json = [one.to_json() for one in found]
    result = {"policy": Path(player).as_posix(), "seed": options.seed, "scenes": scenes_json}
    output_files.write_json(options.json, result)
    return 0
