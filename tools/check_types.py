"""Run mypy over the project: `python tools/check_types.py [MYPY OPTION...]`.

`training/` is imported as `rlgym_bridge.training`, which mypy cannot be told. So it looks at a folder of
links, `build/types`, in which the package lies as a wheel has it.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def link_packages(folder: Path) -> None:
    """Make a folder in which each package lies where its import name says."""
    package = folder / "rlgym_bridge"
    package.mkdir(parents=True, exist_ok=True)
    for link in (*package.iterdir(), folder / "bot"):
        link.unlink(missing_ok=True)
    for source in (*(ROOT / "rlgym_bridge").iterdir(), ROOT / "training"):
        (package / source.name).symlink_to(source)
    (folder / "bot").symlink_to(ROOT / "bot")


def main() -> int:
    """Return mypy's exit code."""
    folder = ROOT / "build/types"
    link_packages(folder)
    words = ["--config-file", str(ROOT / "pyproject.toml"), *sys.argv[1:], "rlgym_bridge", "bot"]
    return subprocess.run([sys.executable, "-m", "mypy", *words], cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
