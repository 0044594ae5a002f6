"""Send the curves of a run to Weights & Biases, where the settings name a project.

The package is imported only then. With WANDB_MODE=offline it keeps them in the folder of the run.
"""

import secrets
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from rlgym_bridge.training.runs.policy_output import recorded_settings
from rlgym_bridge.training.settings import SettingsError, TrainingSettings
from rlgym_bridge.user_input.durable_files import write_durably
from rlgym_bridge.user_input.extras import explain_install

_ID_FILE: Final = "wandb_id.txt"  # by which a resumed run goes on with its curves


def import_wandb(settings: TrainingSettings) -> Any:
    """Return the package; None where the settings name no project.

    Raises:
        SettingsError: It is not installed.
    """
    if not settings.wandb:
        return None
    try:
        module = import_module("wandb")
        module.init  # a folder `wandb` here, which the package leaves behind, has none  # noqa: B018
    except (ImportError, AttributeError) as error:
        raise SettingsError(
            f'wandb is "{settings.wandb}", and the package wandb is not installed: '
            f"{explain_install('wandb')}, or take wandb out of the settings"
        ) from error
    return module


class WandbRun:
    """A run of Weights & Biases; no failure to send ends training.

    Args:
        settings: Of the run, which name the project.
        steps: Agent steps trained already; with any, the curves of the run before go on.
        quiet: Let the package print nothing.
        say: Prints a line.

    Raises:
        SettingsError: The package is not installed, or begins no run, as where nobody is signed in.
    """

    def __init__(
        self, settings: TrainingSettings, steps: int, quiet: bool, say: Callable[[str], None]
    ) -> None:
        wandb, self._say, self._failed = import_wandb(settings), say, False
        out = Path(settings.out)
        config = recorded_settings(settings)
        del config["out"]  # a place on this machine
        try:
            self._run: Any = wandb.init(
                project=settings.wandb, name=out.name, id=_identify(out, steps), resume="allow", dir=str(out),
                config=config, settings=wandb.Settings(console="off", silent=quiet),
            )  # fmt: skip
            self._run.define_metric("steps")
            self._run.define_metric("*", step_metric="steps")
        except Exception as error:  # of a package of others and of a service elsewhere
            why = str(error).strip().partition("\n")[0]
            raise SettingsError(
                f'wandb is "{settings.wandb}", and no run begins there ({why}): `wandb login` signs in, and '
                f"WANDB_MODE=offline keeps the curves in {out / 'wandb'}"
            ) from error

    def add(self, scalars: Mapping[str, float], steps: int) -> None:
        """Send an iteration.

        Args:
            scalars: Numbers by name.
            steps: Agent steps trained so far.
        """
        try:
            self._run.log({**scalars, "steps": steps})
            self._failed = False
        except Exception as error:
            if not self._failed:
                self._say(f"wandb does not take the curves: {error}; training goes on")
            self._failed = True

    def close(self) -> None:
        """Send what is left."""
        try:
            self._run.finish()
        except Exception as error:
            self._say(f"wandb did not take the last curves: {error}")


def _identify(out: Path, steps: int) -> str:
    """Return what the run is called there: a new name at the first step, else the one that it had."""
    file = out / _ID_FILE
    if steps and file.is_file():
        return file.read_text(encoding="utf-8").strip()
    name = secrets.token_hex(4)
    write_durably(out, {_ID_FILE: f"{name}\n".encode()})
    return name
