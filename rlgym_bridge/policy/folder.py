"""Save and load a policy folder: `weights.safetensors`, `policy.json` and `fingerprint.json`.

Loading runs no code but that of trusted modules (nothing is unpickled), rebuilds the components, shows them
the probe, and refuses the folder where anything differs from what was recorded.
"""

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from typing import Any, Final

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from rlgym_bridge.components.player_spec import Forecast
from rlgym_bridge.components.spec import Components, ComponentSpec, component_factory
from rlgym_bridge.components.user_errors import describe_error, is_ours
from rlgym_bridge.game import HITBOX_NAMES, MOST_TEAM_SIZE, TICK_SKIP
from rlgym_bridge.policy.carried_modules import explain_copies, use_carried, write_carried
from rlgym_bridge.policy.critic import make_critic
from rlgym_bridge.policy.files import MANIFEST_FILE, WEIGHTS_FILE, read_files, warn_once, write_files
from rlgym_bridge.policy.fingerprint import Fingerprint, changed_own, differences, fingerprint
from rlgym_bridge.policy.manifest import (
    FORMAT,
    SELECTIONS,
    Manifest,
    Normalisation,
    PolicyMismatch,
    SearchSettings,
)
from rlgym_bridge.policy.numpy_layers import Network
from rlgym_bridge.policy.numpy_network import NetworkPolicy, network_builder
from rlgym_bridge.policy.rollout_search import RolloutSearch
from rlgym_bridge.policy.shape import PERCEPTRON
from rlgym_bridge.user_input.extras import versions_of
from rlgym_bridge.user_input.own_modules import read_own_sources

CRITIC: Final = "critic."  # before the names of a critic's tensors in the weights, for a search

_PACKAGES: Final = ("rlgym_bridge", "rlgym-rocket-league", "rlgym-tools", "numpy", "safetensors")


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy folder that fits this checkout; `selection` of its manifest is the one in use."""

    folder: Path
    manifest: Manifest
    policy: NetworkPolicy
    components: Callable[[], Components]

    def obs_builder(self) -> Any:
        """Return a new observation builder, for one match."""
        return self.components().obs_builder

    def parser(self) -> Any:
        """Return a new action parser, for one match."""
        return self.components().parser


def save_policy(
    folder: str | Path, weights: Mapping[str, np.ndarray], *, distribution: str,
    team_sizes: Sequence[tuple[int, int]], obs: ComponentSpec | None = None,
    parser: ComponentSpec | None = None, env: str | None = None, tick_skip: int | None = None,
    action_delay: int | None = None, input_latency: int = 0, selection: str = "sample", seed: int = 0,
    obs_normalisation: Normalisation | None = None, hitbox: str = "octane", mirror: bool = False,
    training: Mapping[str, Any] | None = None, activation: str = "relu", modules: Sequence[str] = (),
    forecast: Forecast = 0, network: str = PERCEPTRON, search: SearchSettings | None = None,
) -> Manifest:  # fmt: skip
    """Write a policy folder; one that is there is replaced file by file.

    Args:
        folder: Made where it is not there.
        weights: Arrays by name, saved as float32: `layers.N.weight` (out, in) and `layers.N.bias` (out,),
            and what else `numpy_network.py` names, such as `log_std` (k,) of a gaussian.
        distribution: One of `manifest.DISTRIBUTIONS`, see `numpy_network.py`.
        team_sizes: (blue, orange) of the matches it was trained for.
        obs: The observation builder, from `ComponentSpec.of`.
        parser: The action parser, from `ComponentSpec.of`.
        env: In place of both, `"module:function"` that returns the `RLGym` it was trained in.
        tick_skip: Ticks of a decision; None: the parser's rows, or what the environment's engine holds, or 8.
        action_delay: Ticks; the environment's when None, 1 where there is none.
        input_latency: Ticks of input latency that the training reckoned with.
        forecast: Ticks of input latency to look ahead over in matches, or `"auto"`.
        selection: `"sample"` to sample actions, or `"argmax"` for the most likely ones.
        seed: Of `"sample"`.
        obs_normalisation: Mean, standard deviation and clip of observations.
        hitbox: Name of the hitbox trained with.
        training: JSON object with whatever is worth knowing later.
        activation: Between the layers, one of `activations.ACTIVATIONS`.
        mirror: Whether states of one half of the field are mirrored for the network, see `symmetry.py`.
        modules: Names of further modules; copies of the user's own go along, see `carried_modules.py`.
        network: One of `shape.NETWORKS`, or `"module:Class"` of torch, whose module goes along.
        search: How it looks ahead before it acts, with the critic whose tensors `critic.*` are in `weights`.

    Returns the manifest as it was written.

    Raises:
        ValueError: The parts do not fit each other, or a component cannot be made by name.
    """
    if Path(folder).exists() and not Path(folder).is_dir():
        raise ValueError(f"{folder} is a file, expected a folder to write")
    components = component_factory(obs, parser, env, allow=None)()
    built = fingerprint(components, teams := _pairs(team_sizes), _hitbox_number(hitbox))
    ticks = built.ticks or components.tick_skip or TICK_SKIP
    manifest = Manifest(
        format=FORMAT, obs=obs, parser=parser, env=env, tick_skip=ticks if tick_skip is None else tick_skip,
        action_delay=next(one for one in (action_delay, components.action_delay, 1) if one is not None),
        input_latency=input_latency, distribution=distribution, selection=selection, seed=seed,
        obs_size=built.obs_size, obs_names=built.names[0], obs_normalisation=obs_normalisation,
        team_sizes=teams, hitbox=hitbox, probe=built.probe, versions=_versions(), mirror=mirror,
        training=dict(training or {}), activation=activation, network=network, forecast=forecast,
        search=search, weights_sha256=hashlib.sha256(data := _as_safetensors(weights)).hexdigest(),
    )  # fmt: skip
    if said := "; ".join(differences(manifest, built, components)):
        raise PolicyMismatch(f"what is to be saved does not fit: {said}. {_remedy(manifest, built)}")
    _network(manifest, data, built, "what is to be saved", None)
    write_files(Path(folder), data, manifest)
    write_carried(Path(folder), read_own_sources([*modules, *manifest.modules]))
    return manifest


def _pairs(team_sizes: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return team sizes as pairs of whole numbers."""
    try:
        teams = tuple((index(blue), index(orange)) for blue, orange in team_sizes)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"team_sizes is {team_sizes!r}, expected a list of pairs (blue, orange), such as [(1, 1)]"
        ) from error
    if not all(0 <= size <= MOST_TEAM_SIZE for team in teams for size in team) or not all(map(any, teams)):
        raise ValueError(
            f"team_sizes is {team_sizes!r}, expected pairs of 0 to {MOST_TEAM_SIZE} cars with one at least"
        )
    if not teams:
        raise ValueError("team_sizes is empty, expected at least one pair (blue, orange)")
    return teams


def _remedy(manifest: Manifest, built: Fingerprint) -> str:
    """Say which arguments of `save_policy` have to change so that the parts fit each other."""
    if built.ticks is not None and built.ticks != manifest.tick_skip:
        return f"To save it, give tick_skip={built.ticks}, or RepeatAction(repeats={manifest.tick_skip})"
    if built.space[0] != manifest.action_kind:
        return "To save it, change the distribution or the parser: give one that fits the other"
    return "To save it, leave action_delay out, or give the environment's"


def _as_safetensors(weights: Mapping[str, np.ndarray]) -> bytes:
    if not isinstance(weights, Mapping):
        raise ValueError(f"weights are {type(weights).__name__}, expected a dict of arrays by name")
    tensors = {}
    for name, value in weights.items():
        tensor = np.asarray(value)
        if not isinstance(name, str) or tensor.dtype.kind in "cOSUmM":
            raise ValueError(
                f"weights has {name!r} of dtype {tensor.dtype}, expected arrays of real numbers by name"
            )
        tensors[name] = np.array(tensor, np.float32, order="C")
    return safetensors.numpy.save(tensors)


def load_policy(
    folder: str | Path, allow_modules: Sequence[str] = (), selection: str | None = None
) -> LoadedPolicy:
    """Read a policy folder and make sure that it plays here as it was trained.

    Args:
        folder: Holds `policy.json`, `fingerprint.json` and `weights.safetensors`.
        allow_modules: Modules that its components may be imported from, besides the components of
            `spec.TRUSTED`; `carried:NAME` means the copy that the folder carries.
        selection: `"sample"` or `"argmax"` in place of the manifest's, and of a search.

    Returns:
        The manifest, the network, and a function that makes the components of one match.

    Raises:
        FileNotFoundError: A file is missing.
        PolicyMismatch: The weights are not those recorded or do not fit; the components here differ from
            those it was trained with.
        ValueError: A file is unreadable; a component may not be imported or cannot be made.
    """
    if selection is not None and selection not in SELECTIONS:
        raise ValueError(f"selection is {selection!r}, expected one of {', '.join(SELECTIONS)}")
    folder = Path(folder)
    manifest, data = read_files(folder)
    source = str(folder / MANIFEST_FILE)
    try:
        allowed = use_carried(folder, allow_modules)
        make = component_factory(manifest.obs, manifest.parser, manifest.env, allowed)
        components = make()
        _check_declared(manifest, components)
        built = fingerprint(components, manifest.team_sizes, _hitbox_number(manifest.hitbox))
    except (Exception, SystemExit) as error:  # a component's own, too, over the arguments it was given
        failed = "" if is_ours(error) else "the components cannot be made or called: "
        copies = explain_copies(folder, allow_modules)
        raise ValueError(f"{source}: {failed}{describe_error(error)}{copies}") from error
    _check_fits(manifest, built, components, source, explain_copies(folder, allow_modules))
    if selection is not None:
        manifest = replace(manifest, selection=selection)
    policy, critic = _network(manifest, data, built, str(folder / WEIGHTS_FILE), allowed)
    policy.folder = folder
    if critic is not None and selection is None:
        _give_search(policy, manifest, critic, components, source)
    return LoadedPolicy(folder, manifest, policy, make)


def _hitbox_number(name: str) -> int:
    if name not in HITBOX_NAMES:
        raise ValueError(f"hitbox is {name!r}, expected one of {', '.join(HITBOX_NAMES)}")
    return HITBOX_NAMES.index(name)


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | versions_of(*_PACKAGES)


def _check_declared(manifest: Manifest, components: Components) -> None:
    """Check the size that a builder declares, before it builds: one of a hostile folder may be vast."""
    try:
        _, declared = components.obs_builder.get_obs_space("blue-0")  # type: ignore[union-attr]
        known = bool(declared >= 0)  # a float, too: RLGym's builder takes its sizes as they are given
    except (Exception, SystemExit):  # one of others may not know before its first match
        return
    if known and declared != manifest.obs_size:
        raise PolicyMismatch(
            f"the observation was {manifest.obs_size} numbers (obs_size) and is {declared} here: use the "
            "code that the policy was trained with, or train anew into another folder"
        )


def _check_fits(
    manifest: Manifest, built: Fingerprint, components: Components, source: str, copies: str
) -> None:
    found = differences(manifest, built, components)
    if found:
        own = [f"your {name}" for name in changed_own(manifest, built)]
        here = _versions()
        changed = [f"{k} {v} (here {here.get(k)})" for k, v in manifest.versions.items() if here.get(k) != v]
        hint = "; saved with other versions: " + ", ".join(changed) if changed else ""
        raise PolicyMismatch(
            f"{source} does not fit {' and '.join(own) or 'this checkout'}: {'; '.join(found)}. Use the code "
            f"it was trained with, or train anew into another folder{hint}{copies}."
        )


def _network(
    manifest: Manifest, data: bytes, built: Fingerprint, source: str, allowed: Sequence[str] | None
) -> tuple[NetworkPolicy, Network | None]:
    """Return the policy, and its critic where the manifest has a search; raises PolicyMismatch."""
    try:
        weights = safetensors.numpy.load(data)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{source} is not readable as safetensors: {error}") from error
    names = [name for name in weights if name.startswith(CRITIC)]
    critic = {name.removeprefix(CRITIC): weights.pop(name) for name in names}
    distribution, sizes = manifest.distribution, built.space[1]
    own_deviations = distribution.endswith("gaussian") and "log_std" not in weights
    numbers = (manifest.obs_size, sum(sizes) * (1 + own_deviations))
    try:
        build = network_builder(manifest.network, manifest.obs_names, numbers, manifest.activation, allowed)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    try:
        policy = NetworkPolicy(
            weights,
            distribution,
            sizes,
            manifest.selection,
            manifest.seed,
            manifest.obs_normalisation,
            manifest.activation,
            built.mirror() if manifest.mirror else None,
            masked="masks" in manifest.probe,
            build=build,
        )
    except ValueError as error:
        raise PolicyMismatch(f"{source}: {error}") from error
    if policy.obs_size != manifest.obs_size:
        raise PolicyMismatch(
            f"{source}: {'layers.0.weight' if build is None else manifest.network} takes {policy.obs_size} "
            f"numbers, the observation has {manifest.obs_size} (obs_size)"
        )
    if manifest.search is None:
        return policy, None
    return policy, make_search_critic(manifest, critic, source, policy.state_size > 0)


def make_search_critic(
    manifest: Manifest, tensors: Mapping[str, np.ndarray], source: str, has_memory: bool
) -> Network:
    """Return the critic of a policy that searches; raises PolicyMismatch where the two do not fit."""
    if manifest.distribution != "categorical" or has_memory or "masks" in manifest.probe:
        raise PolicyMismatch(
            f"{source}: search is set, expected a policy of one choice, without memory and action masks"
        )
    try:
        critic = make_critic(tensors, manifest.network, manifest.activation, manifest.obs_names)
        if (critic.inputs, critic.outputs) != (manifest.obs_size, 1):
            raise ValueError(
                f"it takes {critic.inputs} numbers and gives {critic.outputs}, expected "
                f"{manifest.obs_size} and 1"
            )
    except ValueError as error:
        raise PolicyMismatch(
            f"{source}: search is set, and the weights have no fitting critic, in tensors {CRITIC}*: {error}"
        ) from error
    return critic


def _give_search(
    policy: NetworkPolicy, manifest: Manifest, critic: Network, components: Components, source: str
) -> None:
    """Give a policy the search that its manifest asks for; warn where there can be none here."""
    assert manifest.search is not None  # the caller has checked it
    delays = manifest.tick_skip, manifest.action_delay
    try:
        policy.search = RolloutSearch(manifest.search, critic, components, *delays)
    except (ValueError, FileNotFoundError, ImportError) as error:
        policy.no_search = str(error)
        warn_once(f"{source}: the bot plays without its search: {error}")
