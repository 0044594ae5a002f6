"""Clone the behaviour of recorded bots: `rlgym-bridge imitate`.

recordings -> decisions, with the actions that the game applied -> behaviour cloning -> policy folder, and its
accuracy on decisions that were held out
"""

import dataclasses
import math
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.policy.files import MANIFEST_FILE, policy_path
from rlgym_bridge.policy.folder import load_policy, save_policy
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.policy.numpy_layers import ACTIVATIONS
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.policy.shape import PolicyShape
from rlgym_bridge.recording.car_episodes import Played, played
from rlgym_bridge.recording.mcap.match_recording import read_match
from rlgym_bridge.recording.replays.replay_episodes import played_like
from rlgym_bridge.recording.replays.replicar_recording import convert_replay, read_replicar
from rlgym_bridge.training.running_scale import scaled
from rlgym_bridge.training.setting_values import MOST_LAYERS, MOST_WIDTH, check_layers
from rlgym_bridge.user_input.arguments import shorten_text, show_value
from rlgym_bridge.user_input.extras import meshes_folder

_SEEDS: Final = 2**32  # that NumPy takes
_EPOCHS: Final = 20
_UPDATES: Final = 1000  # gradient steps at least, where nobody says how many
_BATCH: Final = 1024  # decisions of a gradient step
_KEPT: Final = (
    "team_sizes", "obs", "parser", "env", "tick_skip", "action_delay", "input_latency", "forecast",
    "selection", "obs_normalisation", "hitbox",
)  # fmt: skip
"""Name the parts that a clone takes over from the recorded policy."""
_BLOCK: Final = 240  # ticks; two seconds here and there are held out, to be like what is learned


@dataclass(frozen=True)
class CloningData:
    """Decisions of recorded bots."""

    cars: list[Played]  # episodes of cars
    manifest: Manifest  # manifest of the policy that the cars have in common
    obs: np.ndarray  # (n, S) float32, normalised, of the decisions learned from
    actions: np.ndarray  # (n, ...), what the policies chose if `commanded`, else what the game applied
    commanded: bool  # see `imitate`
    learned: dict[str, np.ndarray]  # their `obs`, `chosen`, `applied` and `differs`, as `Played` has them
    # the same of those held out. Both leave out decisions whose applied action is not recorded.
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

    Raises OSError, RecordingError where a file cannot be read; ValueError where recorded policies do not fit
    each other, or there is too little to learn from.
    """
    episodes: list[list[Played]] = []
    for file in map(Path, files):
        say(f"reading {file}")
        if file.suffix in (".replay", ".parquet"):
            episodes += _played_by_people(file, bots, allow_modules, like, replicar)
        else:
            episodes += played(read_match(file), bots=bots, allow_modules=allow_modules)
    cars = [car for together in episodes for car in together]
    manifest = _common(cars)
    aside = [choose_held_out(car.frames[:-1], held_out) for car in cars]
    if not any(mask.any() for mask in aside):
        raise ValueError(
            f"held_out is {held_out}, which holds nothing out of recordings as short as these; expected "
            "more, or longer recordings"
        )
    rest = [~mask for mask in aside]
    learned, tried = _collect(cars, rest), _collect(cars, aside)
    data = _collect(cars, rest, untold=True) if commanded else learned
    obs, actions = data["obs"], data["chosen" if commanded else "applied"]
    if not len(obs) or not (commanded or len(tried["applied"])):
        raise ValueError(
            "the recordings tell of too few decisions what the game applied: some are learned from, others "
            "held out. Record more matches, or learn what the policies chose (--commanded)"
        )
    obs = scaled(obs, manifest.obs_normalisation)
    return CloningData(cars, manifest, obs, actions, commanded, learned, tried)


def _played_by_people(
    file: Path, bots: Sequence[str] | None, allow_modules: Sequence[str], like: str | Path | None, python: str
) -> list[list[Played]]:
    """Return the episodes of a replay, or of a file of replicar; raises ValueError where something lacks."""
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
    """Return which decisions, at ticks `(n,)` int64 of a match, are held out, `(n,)` bool: a share."""
    block = frames // _BLOCK
    aside: np.ndarray = np.floor((block + 1) * share) > np.floor(block * share)
    return aside


def _collect(
    cars: Sequence[Played], rows: Sequence[np.ndarray], untold: bool = False
) -> dict[str, np.ndarray]:
    """Return decisions of all cars by name, those whose applied action is recorded, or all if `untold`."""
    at = [np.flatnonzero(some & (car.told | untold)) for car, some in zip(cars, rows, strict=True)]
    return {
        name: np.concatenate([getattr(car, name)[some] for car, some in zip(cars, at, strict=True)])
        for name in ("obs", "chosen", "applied", "differs")
    }


def _common(cars: Sequence[Played]) -> Manifest:
    """Return the manifest of all cars' policies; raises ValueError where they see or do different things."""
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
                f"{name} of {first.bot} is {shorten_text(str(ours), 80)} and that of {car.bot} "
                f"{shorten_text(str(theirs), 80)}: one policy cannot learn from both; name those to imitate "
                "with --bot"
            )
    return first.policy


@dataclass(frozen=True)
class Imitation:
    """The result of an imitation."""

    bots: list[str]  # agent ids of those imitated
    steps: int  # decisions learned from
    differing: int  # those of them for which the game applied another action than was commanded
    corrected: bool  # whether what was applied was learned, and not what was commanded
    held_out: int  # decisions that were not learned from, to try the policy on
    held_out_differing: int  # those of them for which the game applied another action than was commanded
    untold: int  # decisions of which the recordings do not tell what was applied
    epochs: float  # how often each decision was learned from
    accuracy_learned: float  # share of what was learned in which the likeliest action was applied; or nan
    accuracy: float  # the same of the held-out decisions
    accuracy_there: float  # the same of the differing ones; nan without any
    accuracy_commanded: float  # share in which it is the action that was commanded
    commonest: float  # share in which the action applied most often in what was learned would have been right
    error: float  # for real numbers, the mean absolute difference from what was applied; else nan

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
    activation: str = "relu",
    layer_norm: bool = False,
    epochs: float | None = None,
    learning_rate: float = 1e-3,
    seed: int = 0,
    allow_modules: Sequence[str] = (),
    say: Callable[[str], object] = lambda line: None,
    like: str | Path | None = None,
    replicar: str = "",
) -> Imitation:
    """Clone what bots did in recorded matches, or people in replays.

    Args:
        files: Recordings of ours, replays (`.replay`), or files that replicar made of them (`.parquet`).
        out: Policy folder to write; it sees and does what the recorded policies did.
        bots: Agent ids of those to imitate; None: all that have observations.
        commanded: Learn the actions that the policies chose, whatever the game applied.
        held_out: Share that is not learned from: two seconds here and there, the same of all cars of a match
            and of all its recordings.
        layers: Widths of the hidden layers.
        activation: One of `policy.numpy_layers.ACTIVATIONS`, between the layers.
        layer_norm: Whether layer normalisation stands before each activation.
        epochs: How often each decision is learned from; None: 20 times, or as often as 1,000 gradient steps
            take.
        learning_rate: Of Adam.
        seed: Of network and batches.
        allow_modules: Modules that the recorded policies may name components of.
        say: Told what is done next, in a line.
        like: Policy folder or training run whose observations, actions and timing the clone of a replay gets.
        replicar: Python that has replicar, to convert replays; "": this one.

    Raises:
        ImportError: Torch is missing.
        OSError, RecordingError: A file cannot be read, or `out` cannot be written.
        ValueError: Recorded policies do not fit each other, or there is too little to learn from.
    """
    _check_arguments(held_out, epochs, learning_rate, seed, layers, activation)
    _check_out(Path(out))
    import torch  # noqa: F401  what is missing is named before the recordings are read

    data = read_cloning_data(
        files, bots=bots, commanded=commanded, held_out=held_out, allow_modules=allow_modules, say=say,
        like=like, replicar=replicar,
    )  # fmt: skip
    steps = len(data.obs)
    if epochs is None:
        epochs = max(_EPOCHS, math.ceil(_UPDATES * min(_BATCH, steps) / steps))
    say(f"learning from {steps:,} decisions, {epochs:g} times from each")
    car = data.cars[0]
    shape = PolicyShape(car.obs.shape[1], *car.space, tuple(layers), None, activation, layer_norm)
    weights = clone(data.obs, data.actions, shape, epochs, learning_rate, seed, say)
    policy = NetworkPolicy(
        weights, *car.space, "argmax", normalisation=data.manifest.obs_normalisation, activation=activation
    )
    result = _describe_result(data, policy, epochs)
    notes = {"imitates": [Path(file).name for file in files], **result.to_json()}
    kept: dict[str, Any] = {name: getattr(data.manifest, name) for name in _KEPT}
    kind = data.manifest.action_kind
    save_policy(out, weights, distribution=kind, training=notes, activation=activation, **kept)
    return result


def clone(
    obs: np.ndarray, actions: np.ndarray, shape: PolicyShape, epochs: float, learning_rate: float, seed: int,
    say: Callable[[str], object] = lambda line: None,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Train a perceptron to choose the given actions: behaviour cloning with Adam.

    Observations `(n, S)` float32 are as it is shown them, actions `(n, ...)` as in `Played.chosen`. Return
    the tensors of a policy folder, see `PolicyShape.tensors`, without normalisation. `say` is told the loss
    after each tenth of the gradient steps.
    """
    import torch  # late, so that --help takes no time

    from rlgym_bridge.policy.torch_network import PolicyNetwork

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PolicyNetwork(shape)
    optimizer = torch.optim.Adam(network.parameters(), learning_rate)
    seen, wanted = torch.from_numpy(obs), torch.from_numpy(actions)
    random = torch.Generator().manual_seed(seed)
    size = min(_BATCH, len(obs))
    order = torch.empty(0, dtype=torch.int64)
    updates = max(1, math.ceil(epochs * len(obs) / size))
    for update in range(1, updates + 1):
        if len(order) < size:
            order = torch.cat([order, torch.randperm(len(obs), generator=random)])
        rows, order = order[:size], order[size:]
        loss = -network.log_probs_of(network(seen[rows]), wanted[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update * 10 // updates > (update - 1) * 10 // updates:
            say(f"gradient step {update:,} of {updates:,}: loss {loss.item():.3f}")
    return {name: array.copy() for name, array in network.arrays().items()}


def _describe_result(data: CloningData, policy: NetworkPolicy, epochs: float) -> Imitation:
    return Imitation(
        sorted({car.bot for car in data.cars}),
        len(data.obs),
        int(data.learned["differs"].sum()),
        not data.commanded,
        len(data.held_out["applied"]),
        int(data.held_out["differs"].sum()),
        sum(int((~car.told).sum()) for car in data.cars),
        epochs,
        **_scores(policy, data.learned, data.held_out),
    )


def _check_arguments(
    held_out: float, epochs: float | None, learning_rate: float, seed: int, layers: Sequence[int],
    activation: str,
) -> None:  # fmt: skip
    if not 0 < held_out < 1:
        raise ValueError(f"held_out is {held_out}, expected a share above 0 and below 1")
    for name, value in (("epochs", epochs), ("learning_rate", learning_rate)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} is {value}, expected a finite number above 0")
    if not 0 <= seed < _SEEDS:
        raise ValueError(f"seed is {seed}, expected 0 to {_SEEDS - 1}")
    if not 0 < len(layers) <= MOST_LAYERS or not all(1 <= width <= MOST_WIDTH for width in layers):
        raise ValueError(
            f"layers are {show_value(list(layers))}, expected 1 to {MOST_LAYERS} widths from 1 to "
            f"{MOST_WIDTH}"
        )
    check_layers("layers", layers)
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation is {activation!r}, expected one of {', '.join(ACTIVATIONS)}")


def _check_out(folder: Path) -> None:
    """Raise OSError or ValueError unless a policy folder can be written: better known now than in an hour."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, expected a folder to write the policy to (--out)")
    if Path(folder, MANIFEST_FILE).exists():
        raise ValueError(f"{folder} holds a policy already, which stays: name another folder with --out")
    folder = folder.resolve()
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in new:
        one.rmdir()


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


if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("imitate")
