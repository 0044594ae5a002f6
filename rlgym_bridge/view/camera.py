"""The camera behind blue's goal, and the transform at /match that turns x around.

Rocket League's axes are left-handed, Rerun's right-handed; below /match lie the game's own numbers.
"""

from typing import Final

import numpy as np
import rerun as rr

MIRROR: Final = np.diag([-1.0, 1.0, 1.0])  # from the game's coordinates to those that Rerun draws

CAMERA_SIZE: Final = (1600, 900)  # pixels
CAMERA_FOCAL: Final = 1250.0  # pixels
CAMERA_POSITION: Final = (0.0, -9600.0, 4300.0)  # uu, in the coordinates that are drawn
CAMERA_TARGET: Final = (0.0, -600.0, 0.0)
_NEAR: Final = 100.0  # uu


def log_camera(stream: rr.RecordingStream) -> None:
    """Log the camera, which never moves."""
    width, height = CAMERA_SIZE
    stream.log(
        "/camera",
        rr.Transform3D(translation=CAMERA_POSITION, mat3x3=camera_axes()),
        rr.Pinhole(
            resolution=[width, height],
            focal_length=CAMERA_FOCAL,
            camera_xyz=rr.ViewCoordinates.RDF,
            image_plane_distance=600.0,
        ),
        static=True,
    )


def camera_axes() -> np.ndarray:
    """Return the camera's right, down and forward as the columns of a `(3, 3)` matrix."""
    forward = np.subtract(CAMERA_TARGET, CAMERA_POSITION)
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right = right / np.linalg.norm(right)
    return np.column_stack([right, np.cross(forward, right), forward])


def is_before_camera(position: np.ndarray) -> bool:
    """Tell whether the camera can see a position of the game, `(3,)` uu."""
    return bool((position @ MIRROR - CAMERA_POSITION) @ camera_axes()[:, 2] > _NEAR)


def project(positions: np.ndarray) -> np.ndarray:
    """Return where the camera sees positions of the game, `(n, 3)` uu, as `(n, 2)` pixels of its image."""
    seen = (positions @ MIRROR - CAMERA_POSITION) @ camera_axes()
    return np.asarray(seen[:, :2] / seen[:, 2:] * CAMERA_FOCAL + np.array(CAMERA_SIZE) / 2)
