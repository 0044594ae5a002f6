"""Frames of a recording, for the page and for a file that holds both."""

import base64
import json
import re
import struct
import zlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from rlgym_bridge.game import TICKS_PER_SECOND, Phase
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Inputs, Recording, TimeBase, latest_rows
from rlgym_bridge.state import MatchState
from rlgym_bridge.view.web import frames
from rlgym_bridge.view.web.frames import NO_LANDING, describe_car, make_setup, pack_frames
from rlgym_bridge.view.web.landing import FallingBalls

FRAMES_PER_SECOND: Final = 30
"""Of a single file."""

_HOLE_TICKS: Final = 2 * TICKS_PER_SECOND  # a longer step is shown as one tick
_STEPS: Final = {
    "position": 4.0, "landing": 64.0, "quaternion": 4096.0, "velocity": 1.0, "spin": 1.0, "boost": 1.0,
    "steer": 64.0, "throttle": 64.0, "clock": 8.0, "countdown": 32.0,
}  # of a number of a frame in a single file, in one of its units; powers of 2  # fmt: skip
_LONGEST_NAME: Final = 40


class RecordedFrames:
    """The moments of a recording, which has some, on one time line, without holes.

    What a moment does not show stays where it was last. `state` has a row for each moment, `names` are those
    of the cars. `tick` `(rows,)` int64 rises from 0, `phase` `(rows,)` are `game.Phase`, `frame_numbers`
    `(rows,)` int64 the recording's own ticks.
    """

    def __init__(self, recording: Recording) -> None:
        self.source, self.mode, self.frame_numbers = recording.source, recording.mode, recording.tick
        named = recording.names if isinstance(recording, MatchRecording) else []
        agents = list(recording.state.agents)
        self.names = [name[:_LONGEST_NAME] for name in named] if len(named) == len(agents) else agents
        self.state = _filled(recording)
        applied = recording.inputs is Inputs.APPLIED and recording.clock is TimeBase.TICKS
        self._has_inputs = applied and bool(recording.inputs_recorded.all())
        steps = np.diff(recording.tick, prepend=recording.tick[:1] - 1)
        steps[(steps <= 0) | (steps > _HOLE_TICKS)] = 1
        self.tick = np.cumsum(steps) - steps[0]
        phase = self.state.phase.astype(int)
        self.phase = phase if phase.any() else np.full_like(phase, Phase.ACTIVE)
        self._countdown = _time_left(self.tick, self.phase == Phase.COUNTDOWN)

    @property
    def seconds(self) -> float:
        """Return its length."""
        return float(self.tick[-1]) / TICKS_PER_SECOND

    def row_at(self, seconds: float) -> int:
        """Return the latest row that is not after a time."""
        place = int(np.searchsorted(self.tick, seconds * TICKS_PER_SECOND + 1e-6, "right")) - 1
        return min(max(place, 0), len(self.tick) - 1)

    def setup(self, **more: Any) -> dict[str, Any]:
        """Return the first message to a page; `more` has further keys."""
        state = self.state
        hitboxes = state.car_hitbox[0].astype(int).tolist()
        cars = [
            describe_car(name, int(number >= state.layout.blue), hitbox, human=False)
            for number, (name, hitbox) in enumerate(zip(self.names, hitboxes, strict=True))
        ]
        return make_setup("view", cars, title=self.source, length_s=self.seconds) | more

    def frame(
        self, row: int, speed: float, paused: bool, number: int, landing: Sequence[float] = NO_LANDING
    ) -> bytes:
        """Return the moment of a row as a frame; its number rises from frame to frame."""
        return self._frames(
            np.array([row]), np.array([landing]), flags=frames.PAUSED * paused, tick=number,
            speed=0.0 if paused else speed,
        ).tobytes()  # fmt: skip

    def _frames(self, rows: np.ndarray, landings: np.ndarray, flags: int = 0, **head: Any) -> np.ndarray:
        """Return moments as frames, `(n,)`; `landings` are `(n, 4)`, `head` has tick and speed."""
        state = self.state_of(rows)
        return pack_frames(
            state, landings, phase=self.phase[rows], flags=flags | frames.OVERTIME * (state.overtime > 0),
            clock=state.clock, countdown=self._countdown[rows], score=state.score,
            time=self.tick[rows] / TICKS_PER_SECOND, **head,
        )  # fmt: skip

    def state_of(self, rows: int | np.ndarray) -> MatchState:
        """Return a moment, or moments `(n,)`."""
        layout, buffer = self.state.layout, np.atleast_2d(self.state.buffer[rows])
        most = max(layout.blue, layout.orange)
        return MatchState(layout.blue, layout.orange, len(buffer), buffer, most=most)

    def controls_from(self, row: int) -> np.ndarray | None:
        """Return the recorded controls of the ticks after a moment, `(ticks, cars, 8)`; None without all."""
        if not self._has_inputs:
            return None
        ticks = np.arange(self.tick[row] + 1, self.tick[-1] + 1)
        rows = np.minimum(np.searchsorted(self.tick, ticks, "left"), len(self.tick) - 1)
        return np.asarray(self.state.car_controls[rows])

    def pack(self) -> bytes:
        """Pack it for a single file, 30 frames a second.

        First come the u32 length of a setup as JSON, which has `frames` and the `bytes` of one beside a
        page's, and the JSON. The first bytes of all rounded frames follow together, then the second ones, and
        so on; each is the difference to the frame before, modulo 256.
        """
        count = int(self.tick[-1]) * FRAMES_PER_SECOND // TICKS_PER_SECOND + 1
        step = TICKS_PER_SECOND // FRAMES_PER_SECOND
        rows = np.searchsorted(self.tick, np.arange(count) * step, "right") - 1
        balls = FallingBalls(self.mode)
        landings = np.array([balls.landing(self.state_of(row), row) for row in rows.tolist()])
        packed = _rounded(self._frames(rows, landings, tick=self.tick[rows], speed=1.0))
        setup = json.dumps(
            self.setup(frames=count, bytes=packed.itemsize, fps=FRAMES_PER_SECOND), separators=(",", ":")
        ).encode()
        steps = np.diff(packed.view(np.uint8).reshape(count, -1), axis=0, prepend=np.uint8(0))
        return struct.pack("<I", len(setup)) + setup + steps.T.tobytes()


def _rounded(packed: np.ndarray) -> np.ndarray:
    """Return frames whose numbers have few bits, which pack well; nobody sees the difference."""
    for part in (packed, packed["ball"], packed["car"]):
        for name in set(_STEPS).intersection(part.dtype.names or ()):
            part[name] = np.rint(part[name] * _STEPS[name]) / _STEPS[name]
    return packed


def _filled(recording: Recording) -> MatchState:
    """Return a recording's state, in which what a row does not show is as it was last."""
    given = recording.state
    most = max(given.layout.blue, given.layout.orange)
    state = MatchState(given.layout.blue, given.layout.orange, given.matches, given.buffer.copy(), most=most)
    rows = np.arange(state.matches)
    if not recording.ball_shown.all():
        last = _last(recording.ball_shown)
        for name in ("position", "rotation", "linear_velocity", "angular_velocity"):
            view = getattr(state, f"ball_{name}")
            view[:] = view[last]
    for car in range(state.layout.cars):
        shown = recording.car_shown[:, car]
        if shown.all():
            continue
        last = _last(shown)
        for name in ("position", "rotation", "linear_velocity", "boost_amount"):
            view = getattr(state, f"car_{name}")
            view[rows, car] = view[last, car]
        state.car_is_demoed[~recording.car_present[:, car], car] = 1
    return state


def _last(shown: np.ndarray) -> np.ndarray:
    """Return for each row the latest one that is shown, else the first one that is."""
    rows = latest_rows(shown)
    return np.where(rows < 0, np.argmax(shown), rows)


def _time_left(tick: np.ndarray, waits: np.ndarray) -> np.ndarray:
    """Return the seconds until each run of `waits` ends, 0 outside of one; `(rows,)`."""
    ends = np.where(waits, len(tick) - 1, np.arange(len(tick)))
    ends = np.minimum.accumulate(ends[::-1])[::-1]
    return np.where(waits, (tick[ends] - tick) / TICKS_PER_SECOND, 0.0)


def single_page(recorded: RecordedFrames) -> str:
    """Return the page with a recording in it, as one HTML file that needs neither server nor internet."""
    page = files(__package__).joinpath("page")
    sources = {one.name: one.read_text(encoding="utf-8") for one in page.iterdir() if one.is_file()}
    html = sources["index.html"]
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    text = base64.b64encode(packed.compress(recorded.pack()) + packed.flush()).decode()
    imports = {f"page/{name}": _as_url(sources[name]) for name in sources if name.endswith(".js")}
    head = f'<script>window.RECORDING = "{text}"</script>\n'
    head += f'<script type="importmap">{json.dumps({"imports": imports})}</script>'
    styles = r'<link rel="stylesheet" href="/?page/([\w.-]+)">'
    html = re.sub(styles, lambda found: f"<style>\n{sources[found[1]]}</style>", html)
    html, replaced = re.subn(
        r'<script type="module" src="/?page/([\w.-]+)"[^>]*></script>',
        lambda found: f'{head}\n<script type="module">import "page/{found[1]}"</script>',
        html,
    )
    if not replaced:
        raise ValueError("the page's index.html has no module to begin with")
    return html


def _as_url(source: str) -> str:
    """Return a module as a data URL that imports others by their names in the import map."""
    source = re.sub(r'(from|import) "\./([\w.-]+)"', r'\1 "page/\2"', source)
    return "data:text/javascript;charset=utf-8;base64," + base64.b64encode(source.encode()).decode()


def write_single_page(recording: Recording, file: Path) -> int:
    """Write a recording and the page into one file; return its bytes. Raises ValueError without a moment."""
    if not len(recording.tick):
        raise ValueError(f"{recording.source} has no moment to show")
    return file.write_bytes(single_page(RecordedFrames(recording)).encode())
