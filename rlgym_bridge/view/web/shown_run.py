"""Show a training run on the page: its newest checkpoint plays against itself, beside the curves.

`python -m rlgym_bridge.view.web.shown_run RUN PORT [browser]` does so until its standard input ends. It is a
process of its own, of low priority, so that training waits for nothing.
"""

import csv
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from threadpoolctl import threadpool_limits

from rlgym_bridge.components.user_errors import describe_error
from rlgym_bridge.live.followed_run import FollowedRun
from rlgym_bridge.policy.files import newest_checkpoint
from rlgym_bridge.policy.load_player import load_player
from rlgym_bridge.policy.run_modules import run_modules
from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.lineup import empty_match, make_driven_player
from rlgym_bridge.user_input.user_modules import add_module_folders
from rlgym_bridge.view.display import open_browser
from rlgym_bridge.view.web import READY
from rlgym_bridge.view.web.car_drivers import read_state
from rlgym_bridge.view.web.page_server import PageServer
from rlgym_bridge.view.web.played_match import PlayedMatch

_SHOWN: Final = (
    "elo", "touches_per_car_minute", "goals_per_minute", "episode_reward", "entropy", "value_loss",
    "explained_variance", "steps_per_second",
)  # fmt: skip
_ROWS: Final = 400  # of a table that pages are told
_LOOK_SECONDS: Final = 1.0
_LEAST_SECONDS: Final = 15.0  # of a match before a newer checkpoint begins it anew, countdown included
_LONG: Final = 86_400.0  # s

_log = logging.getLogger("rlgym_bridge.page")


def read_curves(run: Path) -> dict[str, Any] | None:
    """Return the message with the curves of a run, 400 lines at most; None where there are none yet."""
    try:
        with (run / "progress.csv").open(encoding="utf-8", newline="") as stream:
            lines = list(csv.DictReader(stream))
    except (OSError, ValueError, csv.Error):
        return None
    columns = ["steps", *(name for name in _SHOWN if lines and name in lines[0])]
    chosen = lines[:: max(1, math.ceil(len(lines) / _ROWS))]
    if lines and chosen[-1] is not lines[-1]:
        chosen.append(lines[-1])
    rows = [[_number(line.get(name)) for name in columns] for line in chosen]
    return {"type": "curves", "columns": columns, "rows": rows} if rows else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


class RunShow:
    """The run in a folder, on pages of a port; 0 for any free one."""

    def __init__(self, run: Path, port: int) -> None:
        self._run, self._port = run, port
        self._stopped = threading.Event()
        self._told: tuple[float, frozenset[int]] = (0.0, frozenset())
        self._newest: Path | None = None
        self._server: MatchServer | None = None

    def stop(self) -> None:
        """End `show`; another thread may call it."""
        self._stopped.set()
        if self._server is not None:
            self._server.stop()

    def show(self, opened: Any) -> None:
        """Wait for a checkpoint, and show the run until `stop`; `opened` is called with the address."""
        while newest_checkpoint(self._run) is None:
            if self._stopped.wait(_LOOK_SECONDS):
                return
        followed = self._follow()
        blue, orange = min(followed.spec.team_sizes or ((1, 1),), key=sum)
        match, teams = empty_match(), [0] * blue + [1] * orange
        match.player_configurations = [make_driven_player(self._run.name, team) for team in teams]

        def serve(show: PlayedMatch) -> PageServer:
            pages = PageServer(show, self._port)
            opened(pages.address)
            return pages

        names = [self._run.name] * len(teams)
        show = PlayedMatch(
            "train", names, lambda _: followed.spec, names[:1], serve, follow=self._follow
        )  # fmt: skip
        with (
            threadpool_limits(1),
            MatchServer(seconds=300.0, max_overtime=_LONG, max_kickoff=_LONG, control=show) as server,
            show,
        ):
            self._server = server
            looker = threading.Thread(target=self._look, args=(show,), name="run", daemon=True)
            looker.start()
            if not self._stopped.is_set():
                server.play(match)

    def _follow(self) -> FollowedRun:
        return FollowedRun(self._run, self._load)

    def _load(self, folder: Path) -> Any:
        read_state(folder)  # before the run deletes it
        return load_player(folder, run_modules(str(folder), ()))

    def _look(self, show: PlayedMatch) -> None:
        """Tell pages of new curves, and begin anew with new checkpoints, after some play at least."""
        self._newest = newest_checkpoint(self._run)
        begun = time.monotonic()
        while not self._stopped.wait(_LOOK_SECONDS):
            with suppress(AssertionError, OSError, ValueError):  # the pages come later; `latest` is replaced
                viewers = show.pages.viewers
                written = (self._run / "progress.csv").stat().st_mtime
                now = (written, frozenset(viewer.number for viewer in viewers))
                if viewers and now != self._told:
                    self._told = now
                    if (curves := read_curves(self._run)) is not None:
                        show.pages.tell(curves)
                newest = newest_checkpoint(self._run)
                is_due = time.monotonic() - begun >= _LEAST_SECONDS
                if newest is not None and newest != self._newest and is_due:
                    self._newest, begun = newest, time.monotonic()
                    show.kick_off_soon()
                    show.pages.say(f"checkpoint {newest.name}")


def main(words: Sequence[str]) -> int:
    """Show a run until standard input ends; return 0, or 2 where the run cannot be shown.

    `words` are the run's folder, the port, and `browser` to open one.
    """
    with suppress(AttributeError, OSError):  # training comes first; Windows is told at the start
        os.nice(10)
    add_module_folders(Path.cwd())
    show = RunShow(Path(words[0]), int(words[1]))

    def opened(address: str) -> None:
        print(READY + address, flush=True)
        if "browser" in words[2:]:
            open_browser(address)

    def wait() -> None:
        sys.stdin.read()
        show.stop()

    threading.Thread(target=wait, daemon=True).start()
    try:
        show.show(opened)
    except (Exception, SystemExit) as error:  # a run's own modules may raise anything
        print(f"\n{describe_error(error)}", flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
