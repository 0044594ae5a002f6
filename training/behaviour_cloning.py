"""Clone the behaviour of recorded bots with RLlib.

recordings -> episodes -> what the game applied in place of what was commanded -> Parquet
-> behaviour cloning with RLlib -> policy folder, and how often it is right on what it never saw
"""

import dataclasses
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.policy.files import MANIFEST_FILE
from rlgym_bridge.policy.folder import save_policy
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.recording.car_episodes import Played, played
from rlgym_bridge.recording.mcap.match_recording import read_match
from training.returns import scaled

_PROCESSORS: Final = 3
"""Tasks that Ray keeps at work to read and learn at the same time."""

_SEEDS: Final = 2**32  # that NumPy takes
_BLOCK: Final = 240  # ticks; what is held out is two seconds here and there, to be like what is learned
_EPOCHS: Final = 20
_UPDATES: Final = 1000  # gradient steps at least, where nobody says how many


@dataclass(frozen=True)
class Imitation:
    """The result of an imitation.

    Attributes:
        bots: Agent ids of those imitated.
        steps: Decisions learned from.
        differing: Those of them for which the game applied another action than was commanded.
        corrected: Whether what was applied was learned, and not what was commanded.
        held_out: Decisions that were not learned from, to try the policy on.
        held_out_differing: Those of them for which the game applied another action than was commanded.
        untold: Decisions for which the recording does not tell what the game applied. They are not among
            those held out, nor, where what was applied is learned, among those learned from.
        epochs: How often each decision was learned from.
        accuracy_learned: Share of the decisions learned from in which the policy's likeliest action is what
            the game applied; nan for actions of real numbers, as the next four.
        accuracy: The same of the held-out decisions.
        accuracy_there: The same of the differing ones; nan without any.
        accuracy_commanded: Share in which it is the action that was commanded.
        commonest: Share in which the action applied most often in what was learned would have been right.
        error: For actions of real numbers, the mean absolute difference from what the game applied; else nan.
    """

    bots: list[str]
    steps: int
    differing: int
    corrected: bool
    held_out: int
    held_out_differing: int
    untold: int
    epochs: float
    accuracy_learned: float
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
    epochs: float | None = None,
    learning_rate: float = 1e-3,
    seed: int = 0,
    allow_modules: Sequence[str] = (),
    say: Callable[[str], object] = lambda line: None,
) -> Imitation:
    """Clone what bots did in recorded matches.

    Args:
        files: Recordings of ours.
        out: Policy folder to write; it sees and does what the recorded policies did.
        bots: Agent ids of those to imitate; None: all that have observations.
        commanded: Learn the actions that the policies chose, whatever the game applied.
        held_out: Share that is not learned from: two seconds here and there, the same of all cars of a match
            and of all its recordings.
        layers: Widths of the hidden layers.
        epochs: How often each decision is learned from; None: 20 times, or as often as 1,000 gradient steps
            take.
        learning_rate: Of Adam.
        seed: Of network and batches.
        allow_modules: Modules that the recorded policies may name components of.
        say: Told what is done next, in a line.

    Raises:
        ImportError: Ray is missing.
        OSError, RecordingError: A file cannot be read, or `out` cannot be written.
        ValueError: Recorded policies do not fit each other, or there is too little to learn from.
    """
    if not 0 < held_out < 1:
        raise ValueError(f"held_out is {held_out}, expected a share above 0 and below 1")
    _check_out(Path(out))
    for name, value in (("epochs", epochs), ("learning_rate", learning_rate)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} is {value}, expected more than 0")
    if not 0 <= seed < _SEEDS:
        raise ValueError(f"seed is {seed}, expected 0 to {_SEEDS - 1}")
    if not layers or min(layers) < 1:
        raise ValueError(f"layers are {list(layers)}, expected widths of 1 or more")
    # Imported late, so that --help takes no time; the first says what to install, and to Ray what to report.
    import training.rllib  # noqa: F401
    from rlgym_bridge.rllib.correct_actions import correct_applied_actions
    from rlgym_bridge.rllib.offline import BATCH, clone, write_episodes
    from rlgym_bridge.rllib.recorded_episodes import applied_of, episode_of
    from training.rllib.cluster import cluster

    episodes = []
    for file in files:
        say(f"reading {file}")
        episodes += played(read_match(file), bots=bots, allow_modules=allow_modules)
    cars = [car for together in episodes for car in together]
    manifest = _common(cars)
    kind, sizes = cars[0].space
    scaling = manifest.obs_normalisation
    pieces: list[Any] = []
    aside: list[np.ndarray] = []
    for number, together in enumerate(episodes):
        episode = episode_of(together, str(number))
        if not commanded:
            correct_applied_actions(episode, applied_of(episode))
        for car in together:
            one = episode.agent_episodes[car.agent]
            if scaling is not None:
                one.set_observations(new_data=list(scaled(car.obs, scaling)))
            known = np.ones_like(car.told) if commanded else car.told
            aside.append(_held_out(car.frames[:-1], held_out))
            pieces += [one[stretch] for stretch in _stretches(known & ~aside[-1])]
    if not any(mask.any() for mask in aside):
        raise ValueError(
            f"held_out is {held_out}, which holds nothing out of recordings as short as these; expected "
            "more, or longer recordings"
        )
    learned, tried = _told(cars, [~mask for mask in aside]), _told(cars, aside)
    if not pieces or not (commanded or len(tried["applied"])):
        raise ValueError(
            "the recordings tell of too few decisions what the game applied to learn from some and to try it "
            "on others; --commanded learns what the policies chose"
        )
    with tempfile.TemporaryDirectory() as folder, cluster(processors=_PROCESSORS, silent=True):
        steps = write_episodes(pieces, Path(folder, "episodes.parquet"))
        if epochs is None:
            epochs = max(_EPOCHS, math.ceil(_UPDATES * BATCH / steps))
        say(f"learning from {steps:,} decisions, {epochs:g} times from each")
        weights = clone(
            folder, pieces[0], steps, layers=layers, epochs=epochs, learning_rate=learning_rate, seed=seed
        )
    policy = NetworkPolicy(weights, kind, sizes, "argmax", normalisation=scaling)
    result = Imitation(
        sorted({car.bot for car in cars}),
        steps,
        int(learned["differs"].sum()),
        not commanded,
        len(tried["applied"]),
        int(tried["differs"].sum()),
        sum(int((~car.told).sum()) for car in cars),
        epochs,
        **_scores(policy, learned, tried),
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


def _check_out(folder: Path) -> None:
    """Make sure that a policy folder can be written; better known now than after an hour.

    Raises:
        OSError: It cannot be.
        ValueError: A policy is there, or a file.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, expected a folder to write the policy to (--out)")
    if Path(folder, MANIFEST_FILE).exists():
        raise ValueError(f"{folder} holds a policy already, which stays: name another folder with --out")
    folder = folder.resolve()
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in new:
        one.rmdir()


def _stretches(flags: np.ndarray) -> Iterator[slice]:
    """Yield where flags `(n,)` are set without a gap."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False)).tolist()
    yield from (slice(begin, end) for begin, end in pairwise(edges) if flags[begin])


def _held_out(frames: np.ndarray, share: float) -> np.ndarray:
    """Return which decisions, at ticks `(n,)` of a match, are held out: bool."""
    block = frames // _BLOCK
    aside: np.ndarray = np.floor((block + 1) * share) > np.floor(block * share)
    return aside


def _told(cars: Sequence[Played], rows: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Return some decisions of each car, those of which the recording tells what the game applied.

    Returns:
        `obs`, `chosen`, `applied` and `differs` as `Played` has them, all cars' together.
    """
    at = [np.flatnonzero(some & car.told) for car, some in zip(cars, rows, strict=True)]
    return {
        name: np.concatenate([getattr(car, name)[some] for car, some in zip(cars, at, strict=True)])
        for name in ("obs", "chosen", "applied", "differs")
    }


def _scores(
    policy: NetworkPolicy, learned: Mapping[str, np.ndarray], tried: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """Return how a policy does on what it learned and on what was held out, by the names of `Imitation`."""
    names = ("accuracy_learned", "accuracy", "accuracy_there", "accuracy_commanded", "commonest", "error")
    found = dict.fromkeys(names, math.nan)
    if not len(tried["obs"]):
        return found
    does = policy.act(tried["obs"][:, None])[:, 0]
    if does.dtype.kind == "f":
        return found | {"error": float(np.abs(does - tried["applied"]).mean())}
    fits = _same(does, tried["applied"])
    found["accuracy"] = float(fits.mean())
    found["accuracy_commanded"] = float(_same(does, tried["chosen"]).mean())
    if tried["differs"].any():
        found["accuracy_there"] = float(fits[tried["differs"]].mean())
    if len(learned["applied"]):
        again = policy.act(learned["obs"][:, None])[:, 0]
        found["accuracy_learned"] = float(_same(again, learned["applied"]).mean())
        actions, counts = np.unique(learned["applied"], axis=0, return_counts=True)
        found["commonest"] = float(_same(actions[counts.argmax()], tried["applied"]).mean())
    return found


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
        name = first.policy.differing(car.policy)
        if name is None and first.policy.obs_normalisation != car.policy.obs_normalisation:
            name = "obs_normalisation"
        if name is not None:
            ours, theirs = getattr(first.policy, name), getattr(car.policy, name)
            raise ValueError(
                f"{name} of {first.bot} is {_short(ours)} and that of {car.bot} {_short(theirs)}: one "
                "policy cannot learn from both; name those to imitate with --bot"
            )
    return first.policy


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."
