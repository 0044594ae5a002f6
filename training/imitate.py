"""`python -m training.imitate RECORDING...`: a policy that does what recorded matches show.

recordings -> episodes -> what the game applied in place of what was commanded -> Parquet
-> behaviour cloning with RLlib -> policy folder, and how often it is right on what it never saw
"""

import argparse
import dataclasses
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.manifest import Manifest
from rlgym_bridge.network import NetworkPolicy
from rlgym_bridge.policy import save_policy
from rlgym_bridge.policy_files import MANIFEST_FILE
from rlgym_bridge.recording.match import read_match
from rlgym_bridge.recording.played import Played, played
from training.command import errors_said, writable, write_json
from training.returns import scaled

_PROCESSORS: Final = 3
"""Tasks that Ray keeps at work to read and learn at the same time."""

_ALIKE: Final = (
    "obs",
    "parser",
    "env",
    "tick_skip",
    "action_delay",
    "distribution",
    "obs_size",
    "obs_normalisation",
)


@dataclass(frozen=True)
class Imitation:
    """How an imitation went.

    Attributes:
        bots: Agent ids of those imitated.
        steps: Decisions learned from.
        differing: Those of them for which the game applied another action than was commanded.
        untold: Those for which the recording does not tell what was applied; what was commanded stands.
        corrected: Whether what was applied was learned, and not what was commanded.
        held_out: Decisions that were not learned from.
        held_out_differing: Those of them for which the game applied another action than was commanded.
        accuracy: Share of the held-out decisions in which the policy's likeliest action is the one that the
            game applied; nan for actions of real numbers, as the next three.
        accuracy_there: The same of the differing ones; nan without any.
        accuracy_commanded: Share in which it is the action that was commanded.
        commonest: Share in which the action applied most often in what was learned would have been right.
        error: For actions of real numbers, the mean absolute difference from what the game applied; else nan.
    """

    bots: list[str]
    steps: int
    differing: int
    untold: int
    corrected: bool
    held_out: int
    held_out_differing: int
    accuracy: float
    accuracy_there: float
    accuracy_commanded: float
    commonest: float
    error: float

    def to_json(self) -> dict[str, Any]:
        """Return the attributes; None for nan."""
        return {name: None if value != value else value for name, value in dataclasses.asdict(self).items()}


def imitate(
    files: Sequence[str | Path],
    out: str | Path,
    *,
    bots: Sequence[str] | None = None,
    commanded: bool = False,
    held_out: float = 0.2,
    layers: Sequence[int] = (256, 256),
    epochs: float = 20,
    learning_rate: float = 1e-3,
    seed: int = 0,
    allow_modules: Sequence[str] = (),
) -> Imitation:
    """Clone what bots did in recorded matches.

    Args:
        files: Recordings of ours.
        out: Policy folder to write; it sees and does what the recorded policies did.
        bots: Agent ids of those to imitate; None: all that have observations.
        commanded: Learn the actions that the policies chose, whatever the game applied.
        held_out: Share of each episode, its end, that is not learned from.
        layers: Widths of the hidden layers.
        epochs: How often each decision is learned from.
        learning_rate: Of Adam.
        seed: Of network and batches.
        allow_modules: Modules that the recorded policies may name components of.

    Raises:
        ImportError: Ray is missing.
        OSError, RecordingError: A file cannot be read, or `out` cannot be written.
        ValueError: Recorded policies do not fit each other, or there is too little to learn from.
    """
    if not 0 < held_out < 1:
        raise ValueError(f"held_out is {held_out}, expected a share above 0 and below 1")
    if Path(out).exists() and not Path(out).is_dir():
        raise ValueError(f"{out} is a file, expected a folder to write the policy to (--out)")
    if Path(out, MANIFEST_FILE).exists():
        raise ValueError(f"{out} holds a policy already, which stays: name another folder with --out")
    for name, value in (("epochs", epochs), ("learning_rate", learning_rate)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} is {value}, expected more than 0")
    if not layers or min(layers) < 1:
        raise ValueError(f"layers are {list(layers)}, expected widths of 1 or more")
    # Imported late, so that --help takes no time; the first says what to install, and to Ray what to report.
    import training.rllib  # noqa: F401
    from rlgym_bridge.rllib.applied import correct_applied_actions
    from rlgym_bridge.rllib.offline import clone, write_episodes
    from rlgym_bridge.rllib.recorded import applied_of, episode_of
    from training.rllib.cluster import cluster

    episodes = [
        cars for file in files for cars in played(read_match(file), bots=bots, allow_modules=allow_modules)
    ]
    manifest = _common([car for cars in episodes for car in cars])
    learned: list[Any] = []
    shown: list[np.ndarray] = []
    parts: dict[str, list[np.ndarray]] = {"applied": [], "chosen": [], "differs": [], "learned": []}
    differing = untold = 0
    for number, cars in enumerate(episodes):
        episode = episode_of(cars, str(number))
        if not commanded:
            correct_applied_actions(episode, applied_of(episode))
        for car in cars:
            steps = round(len(car.chosen) * (1 - held_out))
            shown.append(car.obs[steps:-1])
            for name in ("applied", "chosen", "differs"):
                parts[name].append(getattr(car, name)[steps:])
            parts["learned"].append(car.applied[:steps])
            one = episode.agent_episodes[car.agent][:steps]
            if manifest.obs_normalisation is not None:
                one.set_observations(new_data=list(scaled(car.obs[: steps + 1], manifest.obs_normalisation)))
            learned.append(one)
            differing += int(car.differs[:steps].sum())
            untold += int((~car.told[:steps]).sum())
    if not sum(map(len, shown)) or not any(map(len, learned)):
        raise ValueError("the recordings hold too few decisions to learn from some and to try it on others")
    with tempfile.TemporaryDirectory() as folder, cluster(processors=_PROCESSORS, silent=True):
        steps = write_episodes(learned, Path(folder, "episodes.parquet"))
        weights = clone(
            folder, learned[0], steps, layers=layers, epochs=epochs, learning_rate=learning_rate, seed=seed
        )
    kind, sizes = episodes[0][0].space
    scaling = manifest.obs_normalisation
    policy = NetworkPolicy(weights, kind, sizes, "argmax", normalisation=scaling)
    wanted, commands, there, seen = (np.concatenate(part) for part in parts.values())
    does = policy.act(np.concatenate(shown)[:, None])[:, 0]
    real, nothing = kind == "gaussian", math.nan
    actions, counts = np.unique(seen, axis=0, return_counts=True)
    fits = _same(does, wanted)
    result = Imitation(
        sorted({car.bot for cars in episodes for car in cars}),
        steps,
        differing,
        untold,
        not commanded,
        len(wanted),
        int(there.sum()),
        accuracy=nothing if real else float(fits.mean()),
        accuracy_there=nothing if real or not there.any() else float(fits[there].mean()),
        accuracy_commanded=nothing if real else float(_same(does, commands).mean()),
        commonest=nothing if real else float(_same(actions[counts.argmax()], wanted).mean()),
        error=float(np.abs(does - wanted).mean()) if real else nothing,
    )
    save_policy(
        out,
        weights,
        distribution=kind,
        team_sizes=manifest.team_sizes,
        obs=manifest.obs,
        parser=manifest.parser,
        env=manifest.env,
        tick_skip=manifest.tick_skip,
        action_delay=manifest.action_delay,
        input_latency=manifest.input_latency,
        selection=manifest.selection,
        obs_normalisation=scaling,
        hitbox=manifest.hitbox,
        training={"imitates": [Path(file).name for file in files], **result.to_json()},
    )
    return result


def _same(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which actions are the same, `(n,)` bool."""
    found: np.ndarray = (some == others).reshape(len(others), -1).all(1)
    return found


def _common(cars: Sequence[Played]) -> Manifest:
    """Return the manifest of the first car's policy, if the others' see and do the same.

    Raises:
        ValueError: They do not.
    """
    if not cars:
        raise ValueError("the recordings hold no two decisions in a row to learn from")
    first = cars[0]
    for car in cars:
        for name in _ALIKE:
            ours, theirs = getattr(first.policy, name), getattr(car.policy, name)
            if ours != theirs:
                raise ValueError(
                    f"{name} of {first.bot} is {_short(ours)} and that of {car.bot} {_short(theirs)}: one "
                    "policy cannot learn from both; name those to imitate with --bot"
                )
    return first.policy


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


@errors_said
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m training.imitate",
        description="Clone what bots did in recorded matches: a policy that does in every state what the "
        "game applied for them.",
        epilog="exit status: 0 cloned, 1 something broke, 2 bad usage or input",
    )
    parser.add_argument(
        "files", nargs="+", metavar="RECORDING", help="of rlgym-bridge match --record (.mcap)"
    )
    parser.add_argument("--out", default="runs/imitation", metavar="DIR", help="default: %(default)s")
    parser.add_argument(
        "--bot", action="append", metavar="ID",
        help="agent id of a bot to imitate, as `rlgym-bridge inspect` shows it; may be repeated (default: "
        "all that play policy folders)",
    )  # fmt: skip
    parser.add_argument(
        "--commanded", action="store_true", help="learn what the policies chose, whatever the game applied"
    )
    parser.add_argument(
        "--held-out", type=float, default=0.2, metavar="SHARE",
        help="of each episode, its end, to try the policy on (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--layers", type=int, nargs="+", default=[256, 256], metavar="N",
        help="widths of the hidden layers (default: 256 256)",
    )  # fmt: skip
    parser.add_argument(
        "--epochs",
        type=float,
        default=20,
        metavar="N",
        help="how often to learn from each decision (default: 20)",
    )
    parser.add_argument(
        "--learning-rate", type=float, default=1e-3, metavar="RATE", help="of Adam (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="of network and batches (default: 0)"
    )
    parser.add_argument(
        "--allow-modules", action="append", default=[], metavar="M",
        help="a module that the recorded policies may name components of",
    )  # fmt: skip
    parser.add_argument("-q", "--quiet", action="store_true", help="show nothing but errors")
    parser.add_argument("--json", type=writable, metavar="FILE", help="write the result to this file")
    options = parser.parse_args(arguments)
    how = {
        name: getattr(options, name)
        for name in ("commanded", "held_out", "layers", "epochs", "learning_rate", "seed", "allow_modules")
    }
    try:
        found = imitate(options.files, options.out, bots=options.bot, **how)
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_json(options, found.to_json())
    if not options.quiet:
        _say(options.out, found)
    return 0


def _say(out: str, found: Imitation) -> None:
    learned = "which it learned" if found.corrected else "and it learned what was commanded"
    print(f"{out}: learned from {found.steps:,} decisions of {', '.join(found.bots)}")
    print(f"for {found.differing:,} of them the game applied another action than was commanded, {learned}")
    if found.untold:
        print(f"for {found.untold:,} the recording does not tell; there it learned what was commanded")
    if found.error == found.error:  # not nan
        print(f"on {found.held_out:,} others it is {found.error:.3f} off what the game applied")
        return
    print(
        f"on {found.held_out:,} others it does what the game applied in {found.accuracy:.1%}, what was "
        f"commanded in {found.accuracy_commanded:.1%}; the commonest action alone would be right in "
        f"{found.commonest:.1%}"
    )
    if found.accuracy < found.commonest:
        print("that is worse than doing the same all the time: it takes more recordings, or fewer --epochs")


if __name__ == "__main__":
    sys.exit(main())
