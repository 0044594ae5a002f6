"""Let the policy of a run forget some inputs: `python -m training.runs.forget_inputs RUN PART...`.

    newest checkpoint -> the first layer's weights of these inputs become 0 -> it is written anew

Inputs that are 0 in most matches, such as those of team mates, are learned from few examples. What was
learned of them early can do harm later, and goes away slowly. A policy that ignores them can learn them anew.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rlgym_bridge.policy.files import newest_checkpoint, read_files
from training.learner import PPOLearner
from training.runs.checkpoints import Checkpoints
from training.runs.lock import Locked
from training.settings import SettingsError, check_settings


def forget_inputs(run: Path, parts: Sequence[str]) -> list[str]:
    """Forget inputs in the newest checkpoint of a run, which is written anew; its critic keeps them.

    Args:
        run: Folder of the run.
        parts: Names of inputs, or beginnings of parts of a name: `ally-` is in `ally-0/position/x`.

    Returns:
        The names of the inputs that were forgotten.

    Raises:
        SettingsError: There is no checkpoint, it is damaged, its observation names no inputs, or a part is in
            no name.
    """
    checkpoint = newest_checkpoint(run)
    if checkpoint is None:
        raise SettingsError(f"{run} has no checkpoint, expected the folder of a training run that has one")
    with Locked(run):
        manifest, _ = read_files(checkpoint)
        names, recorded = manifest.obs_names, manifest.training.get("settings")
        if names is None:
            raise SettingsError(
                f"the observation of {checkpoint} gives its inputs no names, expected `names`"
            )
        if not isinstance(recorded, dict):
            raise SettingsError(
                f"{checkpoint} records no settings of its run, expected a checkpoint of training"
            )
        for part in parts:
            if not part or not any(_has(name, part) for name in names):
                groups = dict.fromkeys(name.partition("/")[0] for name in names)
                raise SettingsError(
                    f"no input of {checkpoint} has a part {part!r}; they are of {', '.join(groups)}"
                )
        learner = PPOLearner(check_settings(recorded | {"out": str(run)}))
        learner.load(checkpoint)
        if str(learner.steps) != checkpoint.name:
            raise SettingsError(f"{checkpoint} has {learner.steps} agent steps, expected its name to say so")
        forgotten = [place for place, name in enumerate(names) if any(_has(name, part) for part in parts)]
        learner.policy.state_dict()["layers.0.weight"][:, forgotten] = 0.0
        learner.save(Checkpoints(run, sys.maxsize))
        return [names[place] for place in forgotten]


def _has(name: str, part: str) -> bool:
    return name == part or any(one.startswith(part) for one in name.split("/"))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a training run")
    parser.add_argument(
        "parts", nargs="+", metavar="PART", help="name of an input, or beginning of a part of names"
    )
    options = parser.parse_args()
    try:
        forgotten = forget_inputs(options.run, options.parts)
    except (OSError, ValueError, RuntimeError) as error:  # the last where weights are damaged
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{options.run}: its newest checkpoint forgot {', '.join(forgotten)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
