"""Play a trained policy in numpy alone: a perceptron, a distribution over its outputs, and the choice.

Weights are named as in `numpy_layers.py`. A gaussian policy of k numbers either has a tensor `log_std` (k,)
beside a last layer of k means, or a last layer of 2k: means, then logarithms of standard deviations. A
bounded gaussian is rlgym-ppo's: tanh over a last layer of 2k, means, then what gives standard deviations. A
tanh gaussian is rlgym-learn's: a last layer of 2k, means, then standard deviations before softplus. tanh of a
sample is stretched to a tensor `action_ranges` (k, 2), least and greatest number of each.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from rlgym_bridge.components.spec import import_named
from rlgym_bridge.policy.manifest import DISTRIBUTIONS, SELECTIONS, Normalisation
from rlgym_bridge.policy.numpy_layers import ACTIVATIONS, AttentionNetwork, GruNetwork, Network, check_tensor
from rlgym_bridge.policy.shape import ATTENTION, GRU, PERCEPTRON, PlayerPlaces
from rlgym_bridge.policy.symmetry import Mirror
from rlgym_bridge.state import MatchState
from rlgym_bridge.user_input.extras import explain_install

BOUNDED_STD: Final = (0.1, 1.0)
"""Standard deviations of a bounded gaussian, where tanh gives -1 and 1 [rlgym-ppo, `ContinuousPolicy`]."""

LOG_STD_RANGE: Final = (-20.0, 2.0)
"""Logarithms of standard deviations are clipped to this before use; a trainer must do the same."""

_MODE_STEPS: Final = 60  # a handful are enough but where two likeliest places part
_MODE_PRECISION: Final = 1e-7


class InferenceNetwork(Protocol):
    """A network to play with; `inputs` and `outputs` are the numbers taken and given."""

    inputs: int
    outputs: int

    def __call__(self, inputs: np.ndarray, /) -> np.ndarray:
        """Return `(batch, outputs)` float32 for `(batch, inputs)` float32."""
        ...

    def row_by_row(self, inputs: np.ndarray, /) -> np.ndarray:
        """Return the outputs, each row's to the last bit as it would be alone."""
        ...


NetworkBuilder = Callable[[Mapping[str, np.ndarray]], InferenceNetwork]
"""Makes a network from its tensors by name."""


def network_builder(
    network: str, names: Sequence[str] | None, sizes: tuple[int, int], activation: str,
    allow: Sequence[str] | None = None,
) -> NetworkBuilder | None:  # fmt: skip
    """Return what makes a network that is no perceptron from its tensors; None for a perceptron.

    `network` is one of `shape.NETWORKS`, or `module:Class` of a user, which needs torch and `allow`; `names`
    are an observation's; `sizes` the numbers of an observation and of outputs. Raises ValueError where a
    class may not be imported, torch is not installed, or the observation does not suit it.
    """
    if network == PERCEPTRON:
        return None
    if network == ATTENTION:
        places = PlayerPlaces.of(names)
        return lambda weights: AttentionNetwork(weights, activation, places)
    if network == GRU:
        return lambda weights: GruNetwork(weights, activation)
    try:
        from rlgym_bridge.policy.torch_network import OwnInference
    except ImportError as error:
        raise ValueError(
            f"network is {network}, a class of torch, which is not installed: {explain_install('train')}"
        ) from error
    kind = import_named(network, allow)
    return lambda weights: OwnInference(network, kind, weights, *sizes)


class NetworkPolicy:
    """A policy that plays a trained network.

    Sampling takes one uniform number for each choice (one normal for each real number), in the order of
    matches, cars, choices, from a generator that every `reset` starts anew. In a single match each car has a
    generator of its own, and the network's products are made car by car. So a car's actions there depend on
    no other car that is played with it: one process for a team plays as a process for each car does.

    Args:
        weights: Tensors as this module's heading names them.
        sizes: Choices of each decision: `(90,)`, `(3, 3, 3, 3, 3, 2, 2, 2)`; for the gaussians `(k,)`.
        selection: `"sample"`, or `"argmax"` for the likeliest action (the mean of a gaussian,
            the mode of a tanh gaussian).
        seed: Start of the random stream.
        mirror: Of observations and actions, for a categorical policy that knows one half of the field alone.
        masked: Whether it was trained with action masks, without which it does not play.
        build: Makes a network that is no perceptron from the tensors; see `network_builder`.

    Attributes:
        takes_masks: True: `act` takes action masks.
        state_size: Numbers that it remembers of each car; 0 without memory.
        memory: `(matches, cars, state_size)` float32, what it remembers since the latest `act`, or None.
        fresh: `(matches, cars)` bool, where an episode begins with the next `act`, or None.
    """

    takes_masks = True
    folder: Path | None = None  # the policy folder that it was loaded from, or None
    search: Any = None  # a `rollout_search.RolloutSearch` that `act` asks where it is given a state, or None
    no_search: str | None = None  # why a policy that should search does not; else None

    def __init__(
        self,
        weights: Mapping[str, np.ndarray],
        distribution: str,
        sizes: Sequence[int],
        selection: str = "sample",
        seed: int = 0,
        normalisation: Normalisation | None = None,
        activation: str = "relu",
        mirror: Mirror | None = None,
        masked: bool = False,
        build: NetworkBuilder | None = None,
    ) -> None:
        for name, value, known in (
            ("distribution", distribution, DISTRIBUTIONS),
            ("selection", selection, SELECTIONS),
            ("activation", activation, ACTIVATIONS),
        ):
            if value not in known:
                raise ValueError(f"{name} is {value!r}, expected one of {', '.join(known)}")
        self.distribution, self.selection, self.sizes = distribution, selection, tuple(sizes)
        layers = dict(weights)
        self._log_std = layers.pop("log_std", None) if distribution == "gaussian" else None
        self._ranges = layers.pop("action_ranges", None) if distribution == "tanh_gaussian" else None
        self.network = Network(layers, activation) if build is None else build(layers)
        self.obs_size = self.network.inputs
        self.state_size = int(getattr(self.network, "state_size", 0))
        self.memory: np.ndarray | None = None
        self.fresh: np.ndarray | None = None
        self._check_outputs()
        self._mirror, self._masked = mirror, masked
        self._normalisation = _as_arrays(normalisation, self.obs_size)
        # Columns of a (choices, largest) table that hold logits; the others stay at probability 0.
        largest = max(self.sizes)
        self._columns = np.flatnonzero(np.arange(largest) < np.array(self.sizes)[:, None])
        self._seed, self._resets = seed, 0
        self._rng = np.random.default_rng(seed)
        self._cars: list[int] = []
        self._episode: tuple[int, ...] = (seed,)
        self._rng_of_car: list[np.random.Generator] = []  # made by the first decision that needs them

    def reset(self, cars: Sequence[int], seed: int | None = None) -> None:
        """Start the random stream of an episode of `cars` anew.

        It depends on the policy's seed, on `cars`, and on `seed` or else on how many resets there were, so
        that one decision more or less in an episode does not change the next.
        """
        self._resets += 1
        episode = (0, self._resets) if seed is None else (1, seed % 2**64)
        self._cars, self._episode, self._rng_of_car = list(map(int, cars)), (self._seed, *episode), []
        self._rng = np.random.default_rng([*self._episode, *self._cars])
        self.memory = self.fresh = None

    def forget(self, matches: Sequence[int] | np.ndarray) -> None:
        """Begin episodes in some of the matches that `act` decides for: their memory is empty."""
        if self.fresh is not None:
            self.fresh[matches] = True

    def act(
        self, obs: np.ndarray | None, state: MatchState | None = None, masks: np.ndarray | None = None
    ) -> np.ndarray:
        """Return an action for every observation.

        Args:
            obs: `(matches, cars, size)` float32.
            state: The same matches; read by a search alone, which masks leave out.
            masks: `(matches, cars, choices)` bool, which choices it may make; those of several decisions
                stand one after another. None allows all.

        Returns:
            `(matches, cars)` int64 for categorical, `(matches, cars, choices)` int64 for
            multi_categorical, `(matches, cars, k)` float32 for the gaussians: clipped to -1..1
            for bounded_gaussian, within `action_ranges` for tanh_gaussian, not bounded for gaussian.

        Raises:
            ValueError: `obs` is None, of another shape, or not finite; masks are of another shape, or missing
                for a policy that was trained with them.
        """
        if self.search is None or state is None or obs is None or masks is not None:
            return self._decide(obs, masks)[0]
        if obs.shape[1:2] != (len(self._cars),):  # it does not say which cars these are
            return self._decide(obs, masks)[0]
        chosen: np.ndarray = self.search.choose(self, obs, state, self._cars)
        return chosen

    def act_with_log_probs(
        self, obs: np.ndarray, masks: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return actions as `act` does, and their log-probabilities or densities, `(matches, cars)`."""
        actions, outputs, chosen = self._decide(obs, masks)
        return actions, self._log_probs(outputs, chosen).reshape(obs.shape[:2])

    def _decide(
        self, obs: np.ndarray | None, masks: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return actions; outputs `(rows, n)` of the network, -inf where masks forbid, and choices."""
        found, mirrored, apart = self._evaluate(obs, masks)
        matches, cars = found.shape[:2]
        outputs = found.reshape(matches * cars, -1)
        if apart and self.selection == "sample":
            chosen = self._choose_car_by_car(outputs)
        else:
            chosen = self._choose(outputs, self._rng)
        actions = chosen
        if self._mirror is not None and mirrored is not None:
            actions = self._mirror.exchange(chosen, mirrored)
        shape = (matches, cars) if self.distribution == "categorical" else (matches, cars, -1)
        return actions.reshape(shape), outputs, chosen

    def probabilities(self, obs: np.ndarray | None, masks: np.ndarray | None = None) -> np.ndarray:
        """Return each choice's probability, `(matches, cars, choices)` float32; remember as `act` does.

        Nothing is drawn. Those of several decisions stand one after another.

        Raises:
            ValueError: As `act` raises it, or the policy is a gaussian.
        """
        if self.distribution.endswith("gaussian"):
            raise ValueError(f"a {self.distribution} policy has no choices, expected discrete actions")
        outputs, mirrored, _ = self._evaluate(obs, masks)
        found = np.empty_like(outputs)
        ends = np.cumsum(self.sizes)
        for start, end in zip(ends - self.sizes, ends, strict=True):
            part = outputs[..., start:end]
            part = np.exp(part - part.max(-1, keepdims=True))
            found[..., start:end] = part / part.sum(-1, keepdims=True)
        if self._mirror is not None and mirrored is not None:
            found = self._mirror.exchange_masks(found, mirrored.reshape(found.shape[:2]))
        return found

    def _evaluate(
        self, obs: np.ndarray | None, masks: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None, bool]:
        """Return the network's outputs `(matches, cars, outputs)` float32, -inf where masks forbid a choice.

        And which rows are mirrored, `(matches * cars,)` bool or None; and whether each was computed alone.
        """
        if obs is None or obs.ndim != 3 or obs.shape[2] != self.obs_size:
            shape = None if obs is None else obs.shape
            raise ValueError(f"observations have shape {shape}, expected (matches, cars, {self.obs_size})")
        matches, cars, size = obs.shape
        if masks is not None or self._masked:
            self._check_masks(masks, matches, cars)
        rows = np.ascontiguousarray(obs.reshape(matches * cars, size), np.float32)
        # A sum of squares is finite if every number is; one call, where isfinite().all() takes two.
        if not math.isfinite(np.vdot(rows, rows)) and not np.isfinite(rows).all():
            row, number = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
            match, car = divmod(row, cars)
            raise ValueError(
                f"number {number} of the observation of match {match}, car {car} is "
                f"{obs[match, car, number]}, expected a finite number"
            )
        rows, mirrored = self.show_network(rows)
        apart = matches == 1 and cars > 1
        outputs = self._outputs(rows, (matches, cars), apart)
        if not math.isfinite(np.vdot(outputs, outputs)) and not np.isfinite(outputs).all():
            raise ValueError("the network gave a number that is not finite: its weights are too large")
        if masks is not None:
            allowed = masks.reshape(matches * cars, -1)
            if self._mirror is not None and mirrored is not None:
                allowed = self._mirror.exchange_masks(allowed, mirrored)
            outputs = np.where(allowed, outputs, np.float32(-np.inf))
        return outputs.reshape(matches, cars, -1), mirrored, apart

    def show_network(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return observations `(rows, size)` as networks see them, and which are mirrored, `(rows,)`."""
        mirrored = None
        if self._mirror is not None:
            mirrored = self._mirror.applies(rows)
            rows = self._mirror.show(rows, mirrored)
        if self._normalisation is not None:
            mean, factor, clip = self._normalisation
            rows = ((rows - mean) * factor).clip(-clip, clip)
        return rows, mirrored

    def _log_probs(self, outputs: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return the log-probabilities of choices, `(rows,)` float32."""
        if self.distribution == "gaussian":
            (size,) = self.sizes
            log_std = np.clip(outputs[:, size:] if self._log_std is None else self._log_std, *LOG_STD_RANGE)
            distances = (chosen - outputs[:, :size]) / np.exp(log_std, dtype=np.float32)
            densities = -0.5 * np.square(distances) - log_std - 0.5 * math.log(2 * math.pi)
            total: np.ndarray = densities.sum(1, dtype=np.float32)
            return total
        if self.distribution not in ("categorical", "multi_categorical"):
            raise ValueError(f"the distribution is {self.distribution}, expected one that our trainer trains")
        found, start = np.zeros(len(outputs), np.float32), 0
        for size, choice in zip(self.sizes, chosen.reshape(len(outputs), -1).T, strict=True):
            logits = outputs[:, start : start + size]
            shifted = logits - logits.max(1, keepdims=True)
            found += shifted[np.arange(len(choice)), choice] - np.log(np.exp(shifted).sum(1))
            start += size
        return found

    def _outputs(self, rows: np.ndarray, shape: tuple[int, int], apart: bool) -> np.ndarray:
        """Return outputs for `(matches * cars, size)`, each row's alone if `apart`, and remember."""
        if not self.state_size:
            return self.network.row_by_row(rows) if apart else self.network(rows)
        if self.memory is None or self.fresh is None or self.memory.shape[:2] != shape:
            self.memory, self.fresh = np.zeros((*shape, self.state_size), np.float32), np.ones(shape, bool)
        starts = self.fresh.reshape(-1)
        state = self.memory.reshape(len(rows), -1) * ~starts[:, None]
        step: Any = getattr(self.network, "step")  # noqa: B009 (networks without memory have none)
        parts = [slice(i, i + 1) for i in range(len(rows))] if apart else [slice(None)]
        found = [[one.copy() for one in step(rows[at], state[at], starts[at])] for at in parts]
        outputs: np.ndarray = np.concatenate([one for one, _ in found])
        after: np.ndarray = np.concatenate([one for _, one in found])
        self.memory, self.fresh = after.reshape(*shape, -1), np.zeros(shape, bool)
        return outputs

    def _check_masks(self, masks: np.ndarray | None, matches: int, cars: int) -> None:
        """Raise ValueError unless there are masks `(matches, cars, choices)` for a policy of choices."""
        if masks is None:
            raise ValueError("there are no action masks, expected those that the policy was trained with")
        if self.distribution.endswith("gaussian") or masks.shape != (matches, cars, self.network.outputs):
            raise ValueError(
                f"action masks have shape {masks.shape} for a {self.distribution} policy over {self.sizes}, "
                f"expected ({matches}, {cars}, {sum(self.sizes)}), and a policy of discrete actions"
            )

    def _choose_car_by_car(self, outputs: np.ndarray) -> np.ndarray:
        """Choose for the cars of one match, each with the random numbers that it would have alone."""
        if len(outputs) != len(self._cars):  # no `reset` said which cars these are
            return self._choose(outputs, self._rng)
        if not self._rng_of_car:
            self._rng_of_car = [np.random.default_rng([*self._episode, car]) for car in self._cars]
        rows = [outputs[i : i + 1] for i in range(len(outputs))]
        return np.concatenate(list(map(self._choose, rows, self._rng_of_car)))

    def _choose(self, outputs: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        rng = generator if self.selection == "sample" else None
        if self.distribution == "gaussian":
            return self._gaussian(outputs, rng)
        if self.distribution == "bounded_gaussian":
            return self._bounded_gaussian(outputs, rng)
        if self.distribution == "tanh_gaussian":
            return self._tanh_gaussian(outputs, rng)
        if self.distribution == "multi_categorical":
            shape = (len(outputs), len(self.sizes) * max(self.sizes))
            table = np.full(shape, -np.inf, np.float32)
            table[:, self._columns] = outputs
            outputs = table.reshape(-1, max(self.sizes))
        return categorical(outputs, rng)

    def _gaussian(self, outputs: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        (size,) = self.sizes
        mean = outputs[:, :size]
        if rng is None:
            return mean.copy()
        log_std = outputs[:, size:] if self._log_std is None else self._log_std
        noise = rng.standard_normal(mean.shape, np.float32)
        actions: np.ndarray = mean + noise * np.exp(np.clip(log_std, *LOG_STD_RANGE), dtype=np.float32)
        return actions

    def _bounded_gaussian(self, outputs: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        (size,) = self.sizes
        squashed: np.ndarray = np.tanh(outputs)
        mean, low, high = squashed[:, :size], *BOUNDED_STD
        if rng is None:
            return mean.copy()
        std = squashed[:, size:] * ((high - low) / 2) + (high + low) / 2
        drawn: np.ndarray = (mean + rng.standard_normal(mean.shape, np.float32) * std).clip(-1, 1)
        return drawn

    def _tanh_gaussian(self, outputs: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        assert self._ranges is not None  # checked by the constructor
        (size,) = self.sizes
        mean, std = outputs[:, :size], np.logaddexp(np.float32(0), outputs[:, size:])
        plain = (
            _tanh_mode(mean, std) if rng is None else mean + rng.standard_normal(mean.shape, np.float32) * std
        )
        low, high = self._ranges.astype(np.float32).T
        actions: np.ndarray = np.tanh(plain) * ((high - low) / 2) + (high + low) / 2
        return actions

    def _check_outputs(self) -> None:
        expected = sum(self.sizes)
        if self.distribution == "gaussian":
            if self._log_std is not None:
                check_tensor("log_std", self._log_std, (expected,))
            else:
                expected *= 2
        elif self.distribution == "bounded_gaussian":
            expected *= 2
        elif self.distribution == "tanh_gaussian":
            if self._ranges is None:
                raise ValueError(f"there is no tensor action_ranges, expected one of shape ({expected}, 2)")
            check_tensor("action_ranges", self._ranges, (expected, 2))
            low, high = self._ranges.T
            if not ((low < high) & (low >= -1) & (high <= 1)).all():
                raise ValueError(
                    f"action_ranges are {self._ranges.tolist()}, expected pairs within -1 to 1, low first"
                )
            expected *= 2
        if self.network.outputs != expected:
            raise ValueError(
                f"the last layer gives {self.network.outputs} numbers, expected {expected} for a "
                f"{self.distribution} policy over {self.sizes}"
            )


def _tanh_mode(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return where tanh of a normal number is likeliest, before the tanh: u = mean + 2 std^2 tanh(u)."""
    centre, pull = np.abs(mean).astype(np.float64), 2 * std.astype(np.float64) ** 2
    place = centre + pull  # not below the solution; from there on Newton's method comes down to it
    for _ in range(_MODE_STEPS):
        bent = np.tanh(place)
        step = (place - centre - pull * bent) / np.maximum(1 - pull * (1 - bent * bent), 1e-9)
        place = np.maximum(place - step, centre)
        if np.abs(step).max(initial=0.0) < _MODE_PRECISION:
            break
    mode: np.ndarray = np.where(mean < 0, -place, place).astype(np.float32)
    return mode


def categorical(logits: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
    """Pick a column in each row of logits, -inf for never: `(rows,)` int64; the largest without rng."""
    picked: np.ndarray
    if rng is None:
        picked = logits.argmax(1)
        return picked
    if len(logits) == 1:  # a live bot: the calls that cost least
        row = logits[0]
        ladder = np.add.accumulate(np.exp(row - row[row.argmax()]))
        picked = np.array([ladder.searchsorted(rng.random() * float(ladder[-1]), "right")])
        return picked
    ladder = np.add.accumulate(np.exp(logits - logits.max(1, keepdims=True)), 1)
    # In double precision the product stays below the last step, so the last columns of probability 0
    # are never picked.
    draws = rng.random(len(logits)) * ladder[:, -1].astype(np.float64)
    picked = (ladder <= draws[:, None]).sum(1)
    return picked


def _as_arrays(normalisation: Normalisation | None, size: int) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return mean, 1 / std and clip."""
    if normalisation is None:
        return None
    with np.errstate(over="ignore"):
        mean = np.array(normalisation.mean, np.float32)
        std = np.array(normalisation.std, np.float32)
        fits = mean.shape == std.shape == (size,) and bool((std > 0).all())
        fits = fits and bool(np.isfinite(mean).all() and np.isfinite(1 / std).all())
    if not fits:
        raise ValueError(
            f"obs_normalisation has a mean of {mean.shape} and a std of {std.shape}, expected ({size},) each "
            "and every std above 0, all finite as float32"
        )
    return mean, 1 / std, float(normalisation.clip)
