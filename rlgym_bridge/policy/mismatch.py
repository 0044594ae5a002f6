"""Describe how a recorded manifest and the components of this checkout differ."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rlgym_bridge.components.spec import TRUSTED, Components
from rlgym_bridge.game import CONTROL_NAMES
from rlgym_bridge.policy.fingerprint import Fingerprint
from rlgym_bridge.policy.manifest import Manifest
from rlgym_bridge.user_input.arguments import count_of

TOLERANCE: Final = 1e-5
"""Of probe numbers, absolute, and relative to those above 1: room for another processor's last digits."""

_SHOWN: Final = 5


def differences(manifest: Manifest, built: Fingerprint, components: Components) -> list[str]:
    """Return a sentence for each difference of what was recorded and what is here."""
    found = _observations(manifest, built) + _controls(manifest, built) + _masks(manifest, built)
    found += _timing(manifest, built, components)
    if built.space[0] != manifest.action_kind:
        found.append(
            f"distribution is {manifest.distribution}, the parser's action space needs {built.space[0]} "
            f"over {built.space[1]}"
        )
    return found


def changed_own(manifest: Manifest, built: Fingerprint) -> list[str]:
    """Return the names of components that differ and are the user's own."""
    sides = ((manifest.obs, _observations), (manifest.parser, _controls), (manifest.parser, _masks))
    changed = [spec for spec, compare in sides if spec is not None and compare(manifest, built)]
    names = [] if manifest.env is None else [manifest.env]
    while changed:
        spec = changed.pop(0)
        names.append(spec.path)
        if spec.nested is not None:
            changed.append(spec.nested)
    return [name for name in names if name.partition(":")[0].partition(".")[0] not in TRUSTED]


def _observations(manifest: Manifest, built: Fingerprint) -> list[str]:
    recorded, names = manifest.obs_names, built.names[0]
    if recorded is not None and names is not None and recorded != names:
        return [
            f"the observation was {len(recorded)} numbers and is {len(names)} here"
            + _listed("; new here: ", [name for name in names if name not in recorded])
            + _listed("; gone: ", [name for name in recorded if name not in names])
            + _moved(recorded, names)
        ]
    if manifest.obs_size != built.obs_size:
        return [f"the observation was {manifest.obs_size} numbers (obs_size) and is {built.obs_size} here"]
    rows = manifest.probe["observations"]
    if [len(row) for row in rows] != [len(row) for row in built.observations]:
        return [f"probe.observations has {len(rows)} rows, this checkout makes {len(built.observations)}"]
    changed: dict[str, str] = {}
    for row, here, label, row_names in zip(rows, built.observations, built.labels, built.names, strict=True):
        for i in _unequal(row, here):
            name = f"number {i}" if row_names is None else row_names[i]
            changed.setdefault(name, f"{name} was {row[i]:.7g} and is {here[i]:.7g} ({label})")
    return (
        [f"{count_of(len(changed), 'element')} of the observation changed: {_first(list(changed.values()))}"]
        if changed
        else []
    )


def _controls(manifest: Manifest, built: Fingerprint) -> list[str]:
    rows = manifest.probe["controls"]
    if [len(row) for row in rows] != [len(row) for row in built.controls]:
        return [
            f"the parser had {len(rows)} probe actions (probe.controls) and has {len(built.controls)} here, "
            f"its action space being {built.space}"
        ]
    headings = ("ticks", *(f"{name} of the {row} row" for row in ("first", "last") for name in CONTROL_NAMES))
    changed = [
        f"{headings[i]} for probe action {action} was {row[i]:g} and is {here[i]:g}"
        for action, (row, here) in enumerate(zip(rows, built.controls, strict=True))
        for i in _unequal(row, here)
    ]
    return [f"{len(changed)} controls of the parser changed: {_first(changed)}"] if changed else []


def _masks(manifest: Manifest, built: Fingerprint) -> list[str]:
    rows = manifest.probe.get("masks", [])
    if bool(rows) != bool(built.masks):
        return [
            f"it was trained {'with' if rows else 'without'} action masks, and the parser here gives "
            f"{'some' if built.masks else 'none'}"
        ]
    if [len(row) for row in rows] != [len(row) for row in built.masks]:
        return [f"probe.masks has {len(rows)} rows, this checkout makes {len(built.masks)} of other lengths"]
    changed = [
        f"action {i} was {'allowed' if row[i] else 'forbidden'} ({label})"
        for row, here, label in zip(rows, built.masks, built.labels, strict=False)
        for i in _unequal(row, here)
    ]
    return [f"{len(changed)} places of the action masks changed: {_first(changed)}"] if changed else []


def _timing(manifest: Manifest, built: Fingerprint, components: Components) -> list[str]:
    found = []
    if built.ticks is not None and built.ticks != manifest.tick_skip:
        found.append(
            f"tick_skip is {manifest.tick_skip} and the parser gives {built.ticks} ticks an action "
            f"(RepeatAction sets them)"
        )
    if components.action_delay is not None and components.action_delay != manifest.action_delay:
        found.append(
            f"action_delay is {manifest.action_delay} and the environment's engine has "
            f"{components.action_delay}"
        )
    return found


def _unequal(recorded: Sequence[float], here: Sequence[float]) -> list[int]:
    was, now = np.asarray(recorded, float), np.asarray(here, float)
    return [int(i) for i in np.flatnonzero(np.abs(was - now) > TOLERANCE * np.maximum(1.0, np.abs(was)))]


def _moved(recorded: Sequence[str], names: Sequence[str]) -> str:
    if set(recorded) != set(names):
        return ""
    for i, (was, now) in enumerate(zip(recorded, names, strict=False)):
        if was != now:
            return f"; number {i} was {was} and is {now}"
    return ""


def _listed(heading: str, names: list[str]) -> str:
    return heading + _first(names) if names else ""


def _first(items: list[str]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more
