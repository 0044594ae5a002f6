"""Let policies drive cars of a match in the server's process, as they do in one of their own."""

import io
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from rlbot import flat

from rlgym_bridge.components.actions import LookupTableAction, RepeatAction
from rlgym_bridge.components.episode import Episode
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.game import BLUE, CONTROL_NAMES, ORANGE
from rlgym_bridge.live.followed_run import FollowedRun
from rlgym_bridge.live.player import Faults, LivePlayer
from rlgym_bridge.packets.decoder import player_input
from rlgym_bridge.policy.critic import critic_tensors, make_critic
from rlgym_bridge.policy.files import MANIFEST_FILE
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.policy.numpy_layers import Network
from rlgym_bridge.policy.numpy_network import NetworkPolicy
from rlgym_bridge.policy.shape import ATTENTION, PERCEPTRON
from rlgym_bridge.server.game.packer import field_info
from rlgym_bridge.server.game.roster import AgentSeat

_BEST: Final = 5  # choices that the page is told of
_BUTTONS: Final = ("jump", "boost", "handbrake")
_STATE_FILE: Final = "training.pt"  # of a checkpoint, which has the critic
_KEPT_CHECKPOINTS: Final = 4
_LOADER: Final = ThreadPoolExecutor(1, "critic")  # importing torch takes seconds, and no match waits for it
_LOG = logging.getLogger(__name__)

OnMind = Callable[[Mapping[str, Any]], None]


class PolicyDriver:
    """A policy that drives one car.

    `seed` is that of its random numbers; with `followed` a run's newest checkpoint is taken at every
    countdown, in place of `spec`.
    """

    def __init__(
        self,
        name: str,
        spec: PlayerSpec,
        seat: AgentSeat,
        configuration: flat.MatchConfiguration,
        seed: int,
        followed: FollowedRun | None = None,
    ) -> None:
        self.name, self._spec, self._seat = name, spec if followed is None else followed.spec, seat
        self.followed = followed
        self._configuration, self._seed = configuration, seed
        teams = [player.team for player in configuration.player_configurations]
        self._sizes = (teams.count(BLUE), teams.count(ORANGE))
        self.faults = Faults(_LOG)
        self._told_faults = 0  # kinds
        self._on_mind: OnMind | None = None
        self._player = LivePlayer(
            self._spec, field_info(), configuration, [seat.identifier], self.faults, seed=seed,
            on_decision=self._decided,
        )  # fmt: skip

    def renew(self) -> "PolicyDriver":
        """Return a driver that remembers nothing, for a match that was rewound."""
        self._player.close()
        return PolicyDriver(self.name, self._spec, self._seat, self._configuration, self._seed, self.followed)

    def new_fault(self) -> str | None:
        """Return the latest fault of the policy where it is the first of its kind."""
        kinds, self._told_faults = self._told_faults, len(self.faults.counts)
        return self.faults.latest if self._told_faults > kinds else None

    def answer(self, packet: flat.GamePacket, on_mind: OnMind | None = None) -> flat.ControllerState | None:
        """Return the controls that answer a packet; every packet is needed. None where the car is not there.

        `on_mind` is called with what the policy saw and chose, where it decides.
        """
        self._on_mind = on_mind
        self._player.see(packet)
        if self.followed is not None:
            self.followed.see(packet, self._player, self._configuration)
            self._spec = self.followed.spec
        return next(
            (player_input(i, row.tolist()).controller_state for i, row in self._player.inputs()), None
        )

    def _decided(self, frame: int, cars: Sequence[int], episode: Episode, acted: bool) -> None:
        if self._on_mind is not None and acted:
            try:
                mind = describe_mind(episode, self._sizes, cars[0])
            except Exception as error:  # an own component may raise anything; its car drives on
                self.faults.add("mind not told", str(error), error)
            else:
                self._on_mind(mind)


def describe_mind(episode: Episode, sizes: tuple[int, int], car: int) -> dict[str, Any]:
    """Return what a policy saw and chose at its latest decision, for one car; see `describe_choice`.

    `sizes` are the cars of blue and of orange, `car` is its place in the state.
    """
    seen = None if episode.observation is None else episode.observation[0, 0]
    chosen = np.zeros(0) if episode.actions is None else np.ravel(episode.actions[0, 0])
    names_of = getattr(episode.parts.obs_builder, "names", None)
    words = () if names_of is None else tuple(names_of(*sizes, car))
    table = table_of(episode.parts.parser)
    return describe_choice(chosen, seen, episode.policy, table, episode.masks(), words)


def describe_choice(
    chosen: np.ndarray,
    seen: np.ndarray | None,
    policy: Any,
    table: np.ndarray | None,
    masks: np.ndarray | None = None,
    words: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what the page is told of a decision.

    `chosen` are `(k,)` numbers, or `(1,)` the number of a choice among the control vectors of `table`,
    `(choices, 8)`, within `masks`, `(1, 1, choices)`. `seen` is the `(size,)` observation, `words` name its
    numbers. What is not at hand is None.

    There are `action` and `names`, the numbers chosen; `best`, pairs of a choice and its probability;
    `value`, see `estimate_value`; `observed`, pairs of a name and a number, None without an observation.
    """
    is_known = table is not None and chosen.size == 1 and 0 <= chosen[0] < len(table)
    shown = table[int(chosen[0])].tolist() if table is not None and is_known else chosen.tolist()
    names = list(CONTROL_NAMES) if is_known else [f"action {number}" for number in range(len(shown))]
    observed, batch = None, None
    if seen is not None:
        words = words if len(words) == len(seen) else [str(number) for number in range(len(seen))]
        observed = [[word, round(number, 4)] for word, number in zip(words, seen.tolist(), strict=True)]
        batch = seen[None, None]
    best, value = likeliest(policy, batch, masks, table), estimate_value(policy, batch)
    return {"action": shown, "names": names, "best": best, "value": value, "observed": observed}


def estimate_value(policy: Any, observation: np.ndarray | None) -> float | None:
    """Return the discounted reward that a checkpoint's critic expects from an observation `(1, 1, size)`.

    None without a checkpoint, without torch, for a critic with memory or of a user's own class, and until
    it is loaded.
    """
    if not isinstance(policy, NetworkPolicy) or policy.folder is None or observation is None:
        return None
    loading = _critic_of(policy.folder)
    critic = loading.result() if loading.done() else None
    if critic is None or critic.inputs != observation.size:
        return None
    rows, _ = policy.show_network(observation.reshape(1, -1).astype(np.float32))
    return round(float(critic(rows)[0, 0]), 4)


@lru_cache(_KEPT_CHECKPOINTS)
def read_state(folder: Path) -> tuple[bytes, str] | None:
    """Return a checkpoint's `training.pt`, which has the critic, and `policy.json`; None without them.

    Later on the run may delete them.
    """
    try:
        return (folder / _STATE_FILE).read_bytes(), (folder / MANIFEST_FILE).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


@lru_cache(_KEPT_CHECKPOINTS)
def _critic_of(folder: Path) -> "Future[Network | None]":
    return _LOADER.submit(_load_critic, folder)


def _load_critic(folder: Path) -> Network | None:
    """Return the critic of a checkpoint; None where there is none."""
    if (read := read_state(folder)) is None:
        return None
    try:
        import torch

        state = torch.load(io.BytesIO(read[0]), map_location="cpu", weights_only=True)
        tensors = critic_tensors(state)
        names = Manifest.from_json(read[1], str(folder / MANIFEST_FILE)).obs_names
        kind = ATTENTION if "query.weight" in tensors else PERCEPTRON
        return make_critic(tensors, kind, state["settings"].get("activation", "relu"), names)
    except Exception as error:  # torch has many ways to say that a file is damaged
        _LOG.debug("no critic in %s: %s", folder, error)
        return None


def likeliest(
    policy: Any, observation: np.ndarray | None, masks: np.ndarray | None, table: np.ndarray | None
) -> list[list[Any]]:
    """Return the five likeliest choices and their probabilities, none of a policy without such.

    `observation` is `(1, 1, size)`, `masks` `(1, 1, choices)`, `table` `(choices, 8)`, see `describe_choice`.
    """
    if not isinstance(policy, NetworkPolicy) or policy.distribution != "categorical" or policy.state_size:
        return []  # asking one with memory would change what it remembers
    try:
        likely = policy.probabilities(observation, masks)[0, 0]
    except ValueError:  # another policy's observation
        return []
    order = np.argsort(-likely, kind="stable")[:_BEST].tolist()
    return [[_label(table, number), round(float(likely[number]), 4)] for number in order]


def _label(table: np.ndarray | None, number: int) -> str:
    """Name a choice by the controls that it presses."""
    if table is None or number >= len(table):
        return f"action {number}"
    words = [
        name if name in _BUTTONS else f"{name} {value:+g}"
        for name, value in zip(CONTROL_NAMES, table[number].tolist(), strict=True)
        if value
    ]
    return ", ".join(words) or "nothing"


def table_of(parser: Any) -> np.ndarray | None:
    """Return the control vectors `(choices, 8)` that a parser chooses from; None for other parsers."""
    inner = parser.parser if isinstance(parser, RepeatAction) else parser
    table = getattr(inner, "_table" if isinstance(inner, LookupTableAction) else "_lookup_table", None)
    return table if isinstance(table, np.ndarray) and table.ndim == 2 and table.shape[1] == 8 else None
