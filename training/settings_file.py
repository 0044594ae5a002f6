"""Files of settings: flat TOML, of which a file needs only the keys that differ from the defaults.

`config.toml` beside this module holds all keys with their defaults.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from msgspec import Meta

from rlgym_bridge.training.settings import SettingsError, TrainingSettings, check_settings
from rlgym_bridge.user_input.text_files import explain_unreadable, read_toml, toml_line

_GROUPS = {
    "out": "the run",
    "team_sizes": "the match",
    "collectors": "playing; a batch is collectors * matches * rollout_steps * cars, less the opponents' cars",
    "network": "networks",
    "gamma": "learning",
    "checkpoint_every": "checkpoints",
    "goal": "rewards, each times its weight; see rlgym_bridge/components/rewards.py",
    "no_touch_seconds": "how episodes end and begin, besides goals",
}
"""Headings in a settings file, by the key that they stand before."""


def load_settings(*paths: Path, **changes: Any) -> TrainingSettings:
    """Read TOML files of settings.

    Args:
        paths: One or more; what stands in a later one counts, in tables key by key. Keys that they lack
            have their defaults.
        changes: Settings in place of the files'.

    Raises:
        SettingsError: A file is unreadable; a key is unknown; a value is of the wrong type or out of range.
    """
    return make_settings(read_settings(*paths), paths, changes)


def read_settings(*paths: Path) -> dict[str, Any]:
    """Return the values of TOML files by name, unchecked; what stands in a later file counts.

    Raises:
        SettingsError: A file is unreadable.
    """
    values: dict[str, Any] = {}
    for path in paths:
        try:
            read = read_toml(path)
        except (OSError, ValueError) as error:
            raise SettingsError(explain_unreadable(error)) from error
        for name, value in read.items():
            tables = isinstance(value, dict) and isinstance(values.get(name), dict)
            values[name] = values[name] | value if tables else value
    return values


def make_settings(
    values: Mapping[str, Any], paths: Sequence[Path], changes: Mapping[str, Any]
) -> TrainingSettings:
    """Return settings from the values of files.

    Args:
        values: As `read_settings` returns them.
        paths: The files, for messages.
        changes: Settings in place of the files'.

    Raises:
        SettingsError: As `load_settings`.
    """
    files = ", ".join(map(str, paths))
    try:
        settings = check_settings({name: value for name, value in values.items() if name not in changes})
    except SettingsError as error:
        raise SettingsError(f"{files}: {error}") from error
    try:
        return check_settings({**values, **changes}) if changes else settings
    except SettingsError as error:
        raise SettingsError(f"{error} (given in place of what {files} says)") from error


def settings_as_toml(settings: TrainingSettings) -> str:
    """Return the text of a file with these settings, each with its help."""
    lines = []
    helps = setting_helps()
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if field.name in ("physics", "obs_noise", "beginnings", "rivals", "my"):
            lines.append(f"\n# [{field.name}]: {helps[field.name]}")
            if value:
                lines += [f"[{field.name}]", *(toml_line(name, item) for name, item in value.items())]
            continue
        if field.name in _GROUPS:
            lines.append(f"\n# {_GROUPS[field.name]}")
        lines.append(toml_line(field.name, value, helps[field.name], 37))
    return "\n".join(lines).strip() + "\n"


def setting_helps() -> dict[str, str]:
    """Return the help text of every setting."""
    types = get_type_hints(TrainingSettings, include_extras=True)
    return {
        name: note.description
        for name, kind in types.items()
        for note in kind.__metadata__
        if isinstance(note, Meta) and note.description
    }
