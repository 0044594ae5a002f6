"""Build step: `training/` is `rlgym_bridge.training`, and the wheel carries the shipped bot and its match."""

import shutil
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

if not (3, 11) <= sys.version_info < (3, 14):  # pip looks at requires-python last, and compiles numpy before
    found = ".".join(map(str, sys.version_info[:2]))
    python = "py -3.11" if sys.platform == "win32" else "python3.11"
    sys.exit(
        "rlgym-bridge needs Python 3.11 to 3.13, and this is Python " + found + ": "
        "make the environment anew, as by `" + python + " -m venv --clear .venv`"
    )

ROOT = Path(__file__).parent
SHIPPED = [Path("rlbot.cfg"), *sorted(path.relative_to(ROOT) for path in (ROOT / "bot").rglob("*"))]


class BuildWithShippedBot(build_py):
    """Copy `bot/` and `rlbot.cfg` to `rlgym_bridge/shipped/`; an editable install does without."""

    def run(self):
        """Build the packages, then copy."""
        super().run()
        if not self.editable_mode:
            for source, target in self._copies().items():
                Path(target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)

    def get_outputs(self, include_bytecode=True):
        """Return all files that are built."""
        copied = [] if self.editable_mode else list(self._copies().values())
        return [*super().get_outputs(include_bytecode), *copied]

    def _copies(self):
        """Return the targets of the copies by their sources."""
        files = [path for path in SHIPPED if (ROOT / path).is_file() and "__pycache__" not in path.parts]
        return {
            str(ROOT / path): str(Path(self.build_lib, "rlgym_bridge", "shipped", path)) for path in files
        }


setup(
    cmdclass={"build_py": BuildWithShippedBot},
    packages=[
        *find_packages(include=["rlgym_bridge", "rlgym_bridge.*"]),
        "rlgym_bridge.training",
        *(f"rlgym_bridge.training.{name}" for name in find_packages("training")),
    ],
    package_dir={"rlgym_bridge.training": "training"},  # a user's own `training` is his
)
