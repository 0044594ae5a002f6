"""Let the policy of a run forget some inputs: `python -m training.runs.forget_inputs RUN PART...`.

    newest checkpoint -> the first layer's weights of these inputs become 0 -> it is written anew

Inputs that are 0 in most matches, such as those of team mates, are learned from few examples. What was
learned of them early can do harm later, and goes away slowly. A policy that ignores them can learn them anew.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from rlgym_bridge.policy.files import newest_checkpoint, policy_path, read_files
from training.learner import PPOLearner
from training.runs.checkpoints import Checkpoints
from training.runs.lock import Locked
from training.runs.restore import STATE_FILE
from training.settings import SettingsError, check_settings


def forget_inputs(run: Path, parts: Sequence[str]) -> list[str]:
    """Forget inputs in the newest checkpoint of a run, which is written anew; its critic keeps them.

    Args:
        run: Folder of the run.
        parts: Beginnings of parts of an input's name: `ally-` is in `ally-0/position/x`.

    Returns:
        The names of the inputs that were forgotten.

    Raises:
        SettingsError: There is no checkpoint, it is damaged, its observation names no inputs, or a part is in
            no name.
    """
    if not run.is_dir() or newest_checkpoint(run) is None:
        raise SettingsError(f"{run} has no checkpoint, expected the folder of a training run that has one")
    with Locked(run):
        checkpoint = Path(policy_path(str(run)))
        names = read_files(checkpoint)[0].obs_names
        if names is None:
            raise SettingsError(
                f"the observation of {checkpoint} gives its inputs no names, expected `names`"
            )
        for part in parts:
            if not any(_has(name, part) for name in names):
                raise SettingsError(
                    f"no input of {checkpoint} has a part {part!r}; they are {', '.join(names)}"
                )
        state = torch.load(checkpoint / STATE_FILE, map_location="cpu", weights_only=True)
        learner = PPOLearner(check_settings(state["settings"] | {"out": str(run)}))
        learner.load(checkpoint)
        forgotten = [place for place, name in enumerate(names) if any(_has(name, part) for part in parts)]
        learner.policy.state_dict()["layers.0.weight"][:, forgotten] = 0.0
        learner.save(Checkpoints(run, sys.maxsize))
        return [names[place] for place in forgotten]


def _has(name: str, part: str) -> bool:
    return any(one.startswith(part) for one in name.split("/"))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a training run")
    parser.add_argument("parts", nargs="+", metavar="PART", help="beginning of a part of an input's name")
    options = parser.parse_args()
    try:
        forgotten = forget_inputs(options.run, options.parts)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{options.run}: forgot {len(forgotten)} inputs, {forgotten[0]} to {forgotten[-1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
