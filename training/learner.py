"""The learner: networks, what trains them, and older versions of the policy."""

import hashlib
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from rlgym_bridge.components.user_errors import describe_error
from rlgym_bridge.game import HITBOX_NAMES
from rlgym_bridge.policy.fingerprint import Fingerprint, fingerprint
from rlgym_bridge.policy.folder import save_policy
from rlgym_bridge.policy.manifest import Normalisation
from rlgym_bridge.policy.shape import ATTENTION, PolicyShape
from rlgym_bridge.policy.symmetry import Mirror
from rlgym_bridge.policy.torch_network import ActingNetwork, ValueNetwork, make_networks
from rlgym_bridge.sim.simulator import ROCKETSIM2, simulator_for
from rlgym_bridge.sim.vector_env import without_warnings
from rlgym_bridge.training.environment import Task
from rlgym_bridge.training.gradients import Backpropagation, RecordedSteps
from rlgym_bridge.training.processes import count_usable_cores
from rlgym_bridge.training.running_scale import RunningScale, scaled
from rlgym_bridge.training.runs.checkpoints import (
    STATE_CHECKSUM,
    STATE_FILE,
    Checkpoints,
    DamagedCheckpoint,
    check_moments,
    check_tensors,
    load_start,
    load_state,
)
from rlgym_bridge.training.selfplay.opponents import check_opponents, check_teacher, learned_cars
from rlgym_bridge.training.selfplay.snapshots import Snapshots, pack
from rlgym_bridge.training.setting_values import name_sizes
from rlgym_bridge.training.settings import (
    SettingsError,
    TrainingSettings,
    describe_changes,
    recorded_settings,
)
from rlgym_bridge.user_input.arguments import count_of
from rlgym_bridge.user_input.durable_files import write_durably
from rlgym_bridge.user_input.failures import Failure
from rlgym_bridge.user_input.own_modules import read_own_sources

PART: Final = 2048
"""Most rows that go through the networks at once on a CPU: what they leave then stays in its caches."""

SEEN: Final = 10_000_000
"""Observations that the normalisation of a policy from elsewhere counts for: it moves on slowly."""

ADAM_EPS: Final = 1e-5
"""[Baselines' PPO, as Huang et al. 2022, detail 3]"""

MOST_WEIGHT: Final = 1e6
"""Larger ones come of a learning rate that is far too large; what the network gives then overflows."""

ARENAS, ACTIONS, OLDER, ORDER, POOL = range(5)
"""Uses of random numbers. Each use has its own stream, from (seed, steps, one of these)."""

Found = TypeVar("Found")


class Diverged(Failure):
    """A number that must be finite is not."""


class PPOLearner:
    """All that a checkpoint holds: networks, what trains them, and older versions of the policy."""

    def __init__(self, settings: TrainingSettings) -> None:
        self.device = choose_device(settings)
        self.settings = settings = settings.for_machine(count_usable_cores(), self.device.type == "cuda")
        self._task = Task(settings)
        self._built = built = probe_components(settings, self._task)
        self._own_delay = self._task.obs_and_parser().action_delay  # of its environment
        clip = settings.obs_clip if settings.normalise_obs else None
        kind = settings.activation, settings.layer_norm
        layers, mirror = settings.policy_layers, mirror_of(settings, built)
        masked = bool(built.masks)
        network, names = settings.network, built.names[0]
        shape = PolicyShape(built.obs_size, *built.space, layers, clip, *kind, mirror, masked, network, names)
        self.asynchronous = self.device.type != "cpu"  # it computes while Python goes on
        # Whether collectors play on while it learns.
        self.overlaps = self.asynchronous if settings.overlap == "auto" else settings.overlap
        # Threads that each compute a part of a minibatch wait for each other once; torch's own would do so
        # in every operation.
        self._threads = (settings.threads or count_usable_cores()) if self.device.type == "cpu" else 1
        self._pool = ThreadPoolExecutor(self._threads, "learner")
        torch.set_num_threads(1)
        torch.manual_seed(settings.seed)
        self.shape, self.policy, self.critic = networks_of(settings, shape, self.device)
        networks = self.policy, self.critic
        groups = [{"params": [one for one in each.parameters() if one.requires_grad]} for each in networks]
        self.parameters = [one for group in groups for one in group["params"]]
        self.optimizer = torch.optim.Adam(groups, settings.learning_rate, eps=ADAM_EPS, fused=True)
        # Gradient steps are taken as CUDA graphs, or without autograd on a CPU, where either is possible.
        # Nobody knows whether a network of a user waits for the GPU, which nothing recorded may do.
        may_record = not self.shape.is_own and not self.shape.state_size
        self.recorded = RecordedSteps() if self.device.type == "cuda" and may_record else None
        # (cars, numbers) float32, what a critic with memory knew of the cars at the end of a rollout.
        self.critic_memory: Tensor | None = None
        self._ready_optimizer()
        by_hand = self.device.type == "cpu" and Backpropagation.serves(settings, self.policy)
        self.backpropagation = Backpropagation(self.policy, self.critic, settings) if by_hand else None
        self.learned = learned_cars(settings)  # (cars,) bool, of all matches of each collector
        self.modules = self._task.modules()
        read_own_sources(self.modules, hold=True)
        check_opponents(settings, self._task)
        check_teacher(settings, self._task)
        self.steps = 0  # agent steps learned from
        self.scale = RunningScale.of_size(self.shape.obs_size)  # of observations, where they are normalised
        self.return_scale = RunningScale.of_size(1)  # where rewards are divided by its deviation
        self.snapshots = Snapshots(settings.snapshots, self.packed())

    def renew(self, settings: TrainingSettings) -> None:
        """Go on with settings of which those in `environment.LIVE` alone are others.

        Raises:
            SettingsError: The components cannot be made of them, or observation and actions become others.
        """
        task = Task(settings)
        with without_warnings(), _explaining(task):  # the run has given them
            task.check()
            Task(replace(settings.by_size()[0], matches=1), settings).make_env()
        if task.named() != self._task.named():
            raise SettingsError(f"the observation or the parser of {task.name} would be another one")
        self.settings, self._task = settings, task

    def name_unread(self) -> str:
        """Say which settings no component reads; "" for none."""
        return self._task.name_unread()

    def packed(self) -> np.ndarray:
        """Return the policy as a row `(numbers,)`; raises Diverged where one is beyond `MOST_WEIGHT`."""
        row = pack(self.shape, self.policy.arrays(), self._scaling())
        largest = float(np.abs(row).max())
        if not largest <= MOST_WEIGHT:
            raise Diverged(
                f"a weight of the policy is {largest:g} after {self.steps} steps, expected {MOST_WEIGHT:g} "
                "at most: make the learning_rate smaller"
            )
        return row

    def random(self, purpose: int, steps: int | None = None) -> np.random.Generator:
        """Return a generator for one purpose, such as `ARENAS`, of an iteration; a resumed run gets the same.

        `steps` are agent steps at the iteration's beginning; None: the present ones.
        """
        return np.random.default_rng((self.settings.seed, self.steps if steps is None else steps, purpose))

    def draw_older(self, steps: int | None = None) -> int:
        """Return the number of the older version that an iteration meets; `steps` as `random` takes it."""
        at, by_rating = self.steps if steps is None else steps, self.settings.snapshot_choice == "rating"
        return self.snapshots.draw(at, self.random(OLDER, steps), by_rating)

    def tensor(self, array: np.ndarray) -> Tensor:
        """Return an array, of any shape, where the networks are."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def shown(self, obs: np.ndarray) -> Tensor:
        """Return observations `(..., size)` as the networks see them."""
        scaling = self._scaling()
        return self.tensor(obs if scaling is None else scaled(obs, scaling))

    def _scaling(self) -> Normalisation | None:
        clip = self.shape.obs_clip
        return None if clip is None else self.scale.normalisation(clip)

    def take_in(self, obs: np.ndarray) -> None:
        """Let observations `(rows, size)` count for the normalisation from the next iteration on."""
        if self.shape.obs_clip is not None:
            self.scale.update(obs)

    def in_parts(self, function: Callable[[Tensor], Found], rows: Tensor) -> list[Found]:
        """Cut rows `(n, ...)` into parts, and return what a function makes of each, in order.

        On a CPU the parts are computed on all threads at once. With equal threads they are always cut alike,
        so that what comes out is the same to the last bit.
        """
        if self.asynchronous:
            return [function(rows)]
        longest = min(PART, max(1, math.ceil(len(rows) / self._threads)))
        return list(self._pool.map(function, rows.split(longest)))

    def precision(self) -> torch.autocast:
        """Return the context of all that the networks compute to be compared, as `bfloat16` says."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.bfloat16)

    def values(self, shown: Tensor) -> np.ndarray:
        """Return the critic's values, `(rows,)` float32, of `(rows, size)`."""

        def values_of(part: Tensor) -> Tensor:
            with torch.no_grad(), self.precision():
                return self.critic.values(part)

        found: np.ndarray = torch.cat(self.in_parts(values_of, shown)).cpu().numpy()
        return found

    def set_learning_rates(self) -> tuple[float, float]:
        """Set this iteration's learning rates of policy and critic, and return them."""
        settings, left = self.settings, max(0.0, 1 - self.steps / self.settings.steps)
        schedule, own = settings.learning_rate_schedule, settings.critic_learning_rate_schedule
        policy, critic = settings.learning_rate, settings.critic_learning_rate or settings.learning_rate
        rates = (
            policy * left if schedule == "linear" else policy,
            critic * left if (schedule if own == "same" else own) == "linear" else critic,
        )
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            if self.recorded is None:
                group["lr"] = rate
            else:  # recorded steps read it where it is
                group["lr"].fill_(rate)
        return rates

    def return_deviation(self) -> float:
        """Return what rewards are divided by: 1 unless `standardize_returns` says so, and returns differ."""
        scale = self.return_scale
        if not self.settings.standardize_returns or not scale.spread[0]:
            return 1.0
        return float(np.sqrt(scale.spread[0] / scale.count))

    def _ready_optimizer(self) -> None:
        """Let the optimiser's steps be recorded where this learner's are, whatever made the checkpoint."""
        for group in self.optimizer.param_groups:
            group["capturable"] = self.recorded is not None
            rate = float(group["lr"])
            group["lr"] = rate if self.recorded is None else torch.tensor(rate, device=self.device)

    def teacher_weight(self, steps: int | None = None) -> float:
        """Return the weight of the teacher in the loss; `steps` as `random` takes it."""
        settings, at = self.settings, self.steps if steps is None else steps
        if not settings.teacher or at >= settings.teacher_steps:
            return 0.0
        return settings.teacher_coefficient * (1 - at / settings.teacher_steps)

    @property
    def critic_learns_alone(self) -> bool:
        """Tell whether the policy stays as it is: a critic that knows nothing yet would only mislead it."""
        return bool(self.settings.start_from) and self.steps < self.settings.critic_alone

    def descend(self, gradients: Iterable[Tensor], where: str) -> Tensor:
        """Take a step of Adam with each network's gradient, shortened to the longest allowed.

        There is a gradient for each of `parameters`. Returns how long those of policy and critic were, `(2,)`
        float32. On a CPU a gradient that is not finite raises Diverged, which says `where`, before the step.
        On a GPU nothing here waits for it: `check_norms` says so later.
        """
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        longest, networks = self.settings.max_grad_norm, (self.policy, self.critic)
        norms = torch.stack([nn.utils.clip_grad_norm_(one.parameters(), longest) for one in networks])
        if not self.asynchronous:
            self.check_norms(norms.tolist(), where)
        if self.critic_learns_alone:
            for parameter in self.policy.parameters():
                parameter.grad = None
        self.optimizer.step()
        return norms

    def check_norms(self, norms: Sequence[float], where: str) -> None:
        """Raise Diverged unless the norms of both networks' gradients are finite; it says `where`."""
        for name, network, norm in zip(("policy", "critic"), (self.policy, self.critic), norms, strict=True):
            if not np.isfinite(norm):
                wrong = [
                    f"{name}.{part}"
                    for part, tensor in network.named_parameters()
                    if tensor.grad is not None and not tensor.grad.isfinite().all()
                ]
                raise Diverged(
                    f"the gradient of {', '.join(wrong) or name} is not finite in {where}: make the "
                    "learning_rate smaller, or the weights of rewards"
                )

    def save(self, checkpoints: Checkpoints) -> Path:
        """Write a checkpoint; its policy may be played against from now on."""
        self.snapshots.offer(self.packed(), self.random(POOL))
        # Any device can load the optimiser with a plain number as learning rate.
        adam = self.optimizer.state_dict()
        groups = [{**one, "lr": float(one["lr"]), "capturable": False} for one in adam["param_groups"]]
        state = {
            "steps": self.steps,
            "settings": recorded_settings(self.settings),
            "policy": self.policy.state_dict(),
            "critic": self.critic.state_dict(),
            "optimizer": adam | {"param_groups": groups},
            **{
                name: (one.count, torch.from_numpy(one.mean), torch.from_numpy(one.spread))
                for name, one in (("scale", self.scale), ("return_scale", self.return_scale))
            },
            **(kept := self.snapshots.state()),
            "snapshots": torch.from_numpy(kept["snapshots"]),
        }
        torch.save(state, file := io.BytesIO())  # torch itself does not name a full disk
        data = file.getvalue()

        def write(folder: Path) -> None:
            self._write_policy(folder, hashlib.sha256(data).hexdigest())
            write_durably(folder, {STATE_FILE: data})

        return checkpoints.save(self.steps, write)

    def _write_policy(self, folder: Path, checksum: str) -> None:
        """Write the policy so that it plays in matches as it was trained; the checksum is the state's."""
        settings, shape, delay = self.settings, self.shape, self._own_delay
        # A bot plays with one delay: its environment's, or what it meets, and no sooner than inputs act. With
        # a forecast, which goes over what they act later than in training, it keeps the delay of training.
        if delay is None:
            delay = max(sum(settings.action_delay) // 2, 0 if settings.forecast else settings.input_latency)
        recorded = recorded_settings(settings)
        del recorded["out"]  # a place on this machine, which is nobody else's business
        save_policy(
            folder,
            self.policy.arrays(),
            distribution=shape.distribution,
            team_sizes=settings.sizes,
            **self._task.named(),
            tick_skip=settings.tick_skip,
            action_delay=delay,
            input_latency=settings.input_latency,
            forecast=settings.forecast,
            seed=settings.seed,
            obs_normalisation=self._scaling(),
            hitbox=settings.hitbox,
            training={"steps": self.steps, STATE_CHECKSUM: checksum, "settings": recorded},
            activation=shape.activation,
            mirror=shape.mirror is not None,
            network=shape.network,
            modules=self._task.modules(),
        )

    def steps_of_iteration(self, collectors: int) -> int:
        """Return the agent steps that one iteration learns from."""
        return collectors * self.settings.rollout_steps * int(self.learned.sum())

    def explain_rounding(self, collectors: int) -> str:
        """Say how many agent steps whole iterations make of the steps that are set; "" for as many."""
        asked, batch = self.settings.steps, self.steps_of_iteration(collectors)
        more = -(asked - self.steps) % batch
        if not more:
            return ""
        return (
            f"steps is {asked:,}, rounded up to whole iterations of {batch:,}: this run ends at "
            f"{asked + more:,} agent steps"
        )

    def about(self, collectors: int) -> str:
        """Say what learns from what, and what is not of the run's own module."""
        settings, begins = self.settings, not self.steps and self.settings.start_from
        batch = self.steps_of_iteration(collectors)
        alone = f"; the critic alone learns up to {settings.critic_alone:,}" if begins else ""
        lacks = simulator_for("Soccar")[1] if settings.simulator == ROCKETSIM2 else ""
        whole = settings.minibatch > batch and (
            f"minibatch is {settings.minibatch:,}, above the {batch:,} agent steps of an iteration: each "
            "epoch takes one gradient step"
        )
        parts = [*filter(None, (whole, lacks, self._task.name_standard(), self._task.name_unread()))]
        return (
            f"{name_sizes(settings.sizes)} of {self._task.name}: {self.shape.obs_size} numbers, "
            f"{self.shape.distribution} actions {self.shape.sizes}{' with masks' * self.shape.masked}, "
            f"network {settings.network}; {count_of(collectors, 'collector')} of {settings.matches} matches "
            f"in {settings.simulator}, {batch:,} agent steps an iteration; learner on {self.device.type}, "
            f"{count_of(self._threads, 'thread')}{alone}" + "".join(f"\n{line}" for line in parts)
        )

    def start(self) -> None:
        """Begin with the policy in `settings.start_from`, if any; raises SettingsError where it is unfit."""
        if not self.settings.start_from:
            return
        steps, alone = self.settings.steps, self.settings.critic_alone
        if steps <= alone:
            raise SettingsError(
                f"steps is {steps:_} and critic_alone {alone:_}, in which the policy of start_from stays as "
                "it is: expected more steps, or a smaller critic_alone"
            )
        weights, scaling = load_start(self.settings, self._built, self._task, self.shape)
        self.policy.load_state_dict(weights)
        if scaling is not None:
            self.scale = RunningScale.of(scaling, SEEN)
        self.snapshots = Snapshots(self.settings.snapshots, self.packed())

    def load(self, folder: Path) -> dict[str, str]:
        """Go on from a checkpoint; return settings that were others then, by name: `0.5 -> 0.3`."""
        try:
            state = load_state(folder, self.settings, self._built, self._task)
            self._take(folder, state)
        except SettingsError:
            raise
        except Exception as error:
            raise DamagedCheckpoint(
                f"the checkpoint {folder} cannot be read: {STATE_FILE} is not as training writes it: "
                f"{describe_error(error)}"
            ) from error
        return describe_changes(state["settings"], self.settings)

    def _take(self, folder: Path, state: Mapping[str, Any]) -> None:
        """Go on from the state of a checkpoint; raise SettingsError where the networks have other tensors."""
        kept, parts = state["optimizer"]["state"], (("policy", self.policy), ("critic", self.critic))
        for name, network in parts:
            check_tensors(folder, f"{name} ({self.settings.network})", network.state_dict(), state[name])
        check_moments(kept, self.parameters)
        self.policy.load_state_dict(state["policy"])
        self.critic.load_state_dict(state["critic"])
        groups = self.optimizer.state_dict()["param_groups"]  # of this run's settings
        self.optimizer.load_state_dict({"state": kept, "param_groups": groups})
        self._ready_optimizer()
        self.scale, self.return_scale = (
            RunningScale(count, mean.numpy(), spread.numpy())
            for count, mean, spread in (state["scale"], state["return_scale"])
        )
        self.snapshots.restore(state)
        self.steps = int(state["steps"])


@contextmanager
def _explaining(task: Task) -> Iterator[None]:
    """Turn whatever a run's components raise into a SettingsError."""
    try:
        yield
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:
        raise SettingsError(f"the components of {task.name} do not fit: {describe_error(error)}") from error


def probe_components(settings: TrainingSettings, task: Task) -> Fingerprint:
    """Return what the components make of known states; raises SettingsError where they fail or do not fit."""
    with _explaining(task):
        task.check()
        parts = task.obs_and_parser()
        built = fingerprint(parts, settings.sizes, HITBOX_NAMES.index(settings.hitbox))
    if built.ticks not in (None, settings.tick_skip):
        raise SettingsError(
            f"tick_skip is {settings.tick_skip}, and the parser of {task.name} gives {built.ticks} ticks an "
            f"action; expected the same: RepeatAction around it, with repeats={settings.tick_skip}, or "
            f"tick_skip = {built.ticks}"
        )
    if built.ticks is None and parts.tick_skip not in (None, settings.tick_skip):
        raise SettingsError(
            f"tick_skip is {settings.tick_skip}, and the engine of {task.name} holds a row for "
            f"{parts.tick_skip} ticks; expected the same: tick_skip = {parts.tick_skip}"
        )
    return built


def mirror_of(settings: TrainingSettings, built: Fingerprint) -> Mirror | None:
    """Return the mirrored forms that the settings want, if any; raises SettingsError where there are none."""
    if not settings.mirror:
        return None
    try:
        return built.mirror()
    except ValueError as error:
        raise SettingsError(f"mirror is true: {error}. Change that, or set mirror = false") from error


def networks_of(
    settings: TrainingSettings, shape: PolicyShape, device: torch.device
) -> tuple[PolicyShape, ActingNetwork, ValueNetwork]:
    """Return a run's networks, on their device, and the shape of the policy with all that they hold.

    Raises SettingsError where the observation does not suit them, or a class of the user does not fit.
    """
    if shape.network == ATTENTION and settings.normalise_obs:
        raise SettingsError(
            'network is "attention" and normalise_obs true, which hides whether a car is there; expected '
            "normalise_obs = false: TeamObs scales its numbers itself"
        )
    try:
        shape, policy, critic = make_networks(shape, settings.critic_layers)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    if not policy.state_size and not critic.state_size:
        return shape, policy.to(device), critic.to(device)
    if settings.rollout_steps % settings.sequence_length:
        raise SettingsError(
            f"rollout_steps is {settings.rollout_steps} and sequence_length {settings.sequence_length}, "
            "expected a multiple of it for a network with memory"
        )
    if settings.mirror:
        raise SettingsError(
            f'mirror is true and network "{settings.network}", whose memory has no mirrored form; expected '
            "mirror = false, or a network without memory"
        )
    return shape, policy.to(device), critic.to(device)


def choose_device(settings: TrainingSettings) -> torch.device:
    """Return the device of the networks; raises SettingsError where the one that is set is not there."""
    there = torch.cuda.is_available()
    if settings.device == "cuda" and not there:
        built = f"made for CUDA {torch.version.cuda}" if torch.version.cuda else "made without CUDA"
        raise SettingsError(
            f'device is "cuda", and torch {torch.__version__} ({built}) finds no CUDA device here; '
            'expected "auto" or "cpu", or a machine with an NVIDIA GPU, its driver, and a torch made for CUDA'
        )
    return torch.device("cuda" if there and settings.device != "cpu" else "cpu")
