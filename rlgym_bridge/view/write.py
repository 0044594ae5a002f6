"""Write a recording as a file for Rerun."""

from pathlib import Path
from uuid import uuid4

import rerun as rr

from rlgym_bridge.compare.simulated_ghosts import ghosts
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.view.blueprint import blueprint
from rlgym_bridge.view.ghosts import log_ghosts
from rlgym_bridge.view.log_drawings import log_drawings
from rlgym_bridge.view.scene import log_ball, log_car, log_field, log_pads
from rlgym_bridge.view.time_series import log_curves
from rlgym_bridge.view.times import APPLICATION, Times, rising


def write_rrd(recording: Recording, path: Path, compare: bool = False, simulator: str | None = None) -> None:
    """Write a recording as `.rrd`, with the layout in which the viewer opens it.

    Args:
        recording: The recording.
        path: The file; one that is there is replaced.
        compare: Add what a simulator makes of the recorded inputs.
        simulator: Which, as for `compare_recordings`.

    Raises:
        FileNotFoundError: The collision meshes are not installed.
        ValueError: The recording has no rows; the simulator is unknown.
        OSError: It cannot be written.
    """
    if not len(recording.tick):
        raise ValueError(f"{recording.source} has no rows, expected some to look at")
    stream = rr.RecordingStream(APPLICATION, recording_id=uuid4())
    written = rr.binary_stream(stream)  # not `save`: Rerun would say a full disk in its log alone
    stream.send_blueprint(blueprint(recording, compare), make_active=True)
    log_recording(stream, recording)
    if compare:
        log_ghosts(stream, recording, Times(*rising(recording)), ghosts(recording, simulator=simulator))
    data = written.read(flush=True) or b""
    stream.disconnect()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def log_recording(stream: rr.RecordingStream, recording: Recording) -> None:
    """Log field, bodies, curves and drawings.

    Raises:
        FileNotFoundError: The collision meshes are not installed.
    """
    stream.send_recording_name(recording.source)
    times = Times(*rising(recording))
    log_field(stream)
    log_pads(stream, recording, times)
    log_ball(stream, recording, times)
    for car in range(recording.state.layout.cars):
        log_car(stream, recording, times, car)
    log_curves(stream, recording, times)
    if isinstance(recording, MatchRecording):
        log_drawings(stream, recording, times)
