"""Read what behaviour cloning learns from, and what it is tried on.

recordings -> episodes -> the applied actions in place of the commanded ones -> pieces to learn from
                                                                             -> decisions that are held out
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.policy.files import policy_path
from rlgym_bridge.policy.folder import load_policy
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.recording.car_episodes import Played, played
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.replays.replay_episodes import played_like
from rlgym_bridge.recording.replays.replicar_recording import convert_replay, read_replicar
from rlgym_bridge.sim.arena import meshes_folder
from rlgym_bridge.training.returns import scaled

_BLOCK: Final = 240  # ticks; two seconds here and there are held out, to be like what is learned


@dataclass(frozen=True)
class CloningData:
    """Decisions of recorded bots.

    Attributes:
        cars: Episodes of cars.
        manifest: Manifest of the policy that the cars have in common.
        pieces: Episodes of RLlib to learn from, without the decisions that are held out.
        learned: `obs`, `chosen`, `applied` and `differs` of the decisions learned from, as `Played` has them.
        held_out: The same of those held out. Both leave out decisions whose applied action is not recorded.
    """

    cars: list[Played]
    manifest: Manifest
    pieces: list[Any]
    learned: dict[str, np.ndarray]
    held_out: dict[str, np.ndarray]


def read_cloning_data(
    files: Sequence[str | Path],
    *,
    bots: Sequence[str] | None,
    commanded: bool,
    held_out: float,
    allow_modules: Sequence[str],
    say: Callable[[str], object],
    like: str | Path | None = None,
    replicar: str = "",
) -> CloningData:
    """Read recordings and divide them; the arguments are those of `imitate`.

    Raises:
        ImportError: Ray is missing.
        OSError, RecordingError: A file cannot be read.
        ValueError: Recorded policies do not fit each other, or there is too little to learn from.
    """
    from rlgym_bridge.rllib.correct_actions import correct_applied_actions
    from rlgym_bridge.rllib.recorded_episodes import applied_of, episode_of

    episodes: list[list[Played]] = []
    for file in map(Path, files):
        say(f"reading {file}")
        if file.suffix in (".replay", ".parquet"):
            episodes += _played_by_people(file, bots, allow_modules, like, replicar)
        else:
            episodes += played(read_match(file), bots=bots, allow_modules=allow_modules)
    cars = [car for together in episodes for car in together]
    manifest = _common(cars)
    pieces: list[Any] = []
    aside: list[np.ndarray] = []
    for number, together in enumerate(episodes):
        episode = episode_of(together, str(number))
        if not commanded:
            correct_applied_actions(episode, applied_of(episode))
        for car in together:
            own = episode.agent_episodes[car.agent]
            if manifest.obs_normalisation is not None:
                own.set_observations(new_data=list(scaled(car.obs, manifest.obs_normalisation)))
            known = np.ones_like(car.told) if commanded else car.told
            aside.append(choose_held_out(car.frames[:-1], held_out))
            pieces += [own[segment] for segment in _segments(known & ~aside[-1])]
    if not any(mask.any() for mask in aside):
        raise ValueError(
            f"held_out is {held_out}, which holds nothing out of recordings as short as these; expected "
            "more, or longer recordings"
        )
    learned, tried = _collect(cars, [~mask for mask in aside]), _collect(cars, aside)
    if not pieces or not (commanded or len(tried["applied"])):
        raise ValueError(
            "the recordings tell of too few decisions what the game applied: some are learned from, others "
            "held out. Record more matches, or learn what the policies chose (--commanded)"
        )
    return CloningData(cars, manifest, pieces, learned, tried)


def _played_by_people(
    file: Path, bots: Sequence[str] | None, allow_modules: Sequence[str], like: str | Path | None, python: str
) -> list[list[Played]]:
    """Return the episodes of a replay, or of a file of replicar.

    Raises:
        ValueError: There is no policy to play like, or nothing that converts replays.
    """
    if like is None:
        raise ValueError(
            f"{file} holds no observations and no actions of a policy, expected --like POLICY: a policy "
            "folder, or a training run, whose observations and actions the clone gets"
        )
    policy = load_policy(policy_path(str(like)), allow_modules)
    if file.suffix == ".parquet":
        return played_like(read_replicar(file), policy, bots)
    if not python and find_spec("replicar_native") is None:
        raise ValueError(
            f"{file} is a replay, which holds neither pitch, yaw and roll nor jumps of its players, and "
            "replicar, which finds them, is not here: expected --replicar PYTHON, a Python 3.12 or later "
            'with `pip install "replicar[convert]"`, or the .parquet that replicar made of it'
        )
    with tempfile.TemporaryDirectory() as folder:
        converted = Path(folder, f"{file.stem}.parquet")
        convert_replay(file, converted, python or sys.executable, meshes_folder())
        return played_like(read_replicar(converted), policy, bots)


def choose_held_out(frames: np.ndarray, share: float) -> np.ndarray:
    """Choose the decisions that are held out.

    Args:
        frames: Ticks of a match, `(n,)` int64.
        share: Share to hold out, 0 to 1.

    Returns:
        `(n,)` bool.
    """
    block = frames // _BLOCK
    aside: np.ndarray = np.floor((block + 1) * share) > np.floor(block * share)
    return aside


def _segments(flags: np.ndarray) -> Iterator[slice]:
    """Yield where flags `(n,)` are set without a gap."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False)).tolist()
    yield from (slice(begin, end) for begin, end in pairwise(edges) if flags[begin])


def _collect(cars: Sequence[Played], rows: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the chosen decisions of each car whose applied action is recorded.

    Returns:
        `obs`, `chosen`, `applied` and `differs` as `Played` has them, all cars' together.
    """
    at = [np.flatnonzero(some & car.told) for car, some in zip(cars, rows, strict=True)]
    return {
        name: np.concatenate([getattr(car, name)[some] for car, some in zip(cars, at, strict=True)])
        for name in ("obs", "chosen", "applied", "differs")
    }


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
