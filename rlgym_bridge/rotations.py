"""Convert Euler angles and quaternions to the rotation matrices of a state, and back.

All matrices have the columns forward, right, up in world axes; right of +x is +y, as in the game.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

_STEEP: Final = 0.99  # sine of the pitch from which its float32 no longer tells it to 1e-6


def from_euler(angles: np.ndarray) -> np.ndarray:
    """Return matrices `(..., 3, 3)` of Euler angles `(..., 3)` in radians.

    They are pitch (nose up positive), yaw (from +x towards +y) and roll (right side down positive).
    """
    (cp, cy, cr), (sp, sy, sr) = (np.moveaxis(of(angles), -1, 0) for of in (np.cos, np.sin))
    rows = (
        (cp * cy, cy * sp * sr - cr * sy, -cr * cy * sp - sr * sy),
        (cp * sy, sy * sp * sr + cr * cy, -cr * sy * sp + sr * cy),
        (sp, -cp * sr, cp * cr),
    )
    return np.stack([np.stack(row, -1) for row in rows], -2)


def from_quaternions(quaternions: np.ndarray) -> np.ndarray:
    """Return matrices `(rows, 3, 3)` of quaternions `(rows, 4)`, w first, of any length; 0 gives 0."""
    lengths = np.linalg.norm(quaternions, axis=-1, keepdims=True)
    w, x, y, z = (quaternions / np.where(lengths > 0, lengths, 1)).T
    one = w * w + x * x + y * y + z * z
    rows = (
        (one - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), one - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), one - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, -1) for row in rows], -2)


def to_quaternions(matrices: np.ndarray) -> np.ndarray:
    """Return quaternions `(rows, 4)`, w first, of matrices `(rows, 3, 3)`; a matrix of 0 turns nothing."""
    unknown = ~matrices.any((1, 2))
    m = np.where(unknown[:, None, None], np.eye(3), matrices).astype(float)
    x, y, z = m[:, 0, 0], m[:, 1, 1], m[:, 2, 2]
    sums = {(one, other): m[:, one, other] + m[:, other, one] for one, other in ((0, 1), (0, 2), (1, 2))}
    gaps = {(one, other): m[:, one, other] - m[:, other, one] for one, other in ((2, 1), (0, 2), (1, 0))}
    # Each row is the quaternion times four of its own diagonal element: the longest is the most exact.
    products = np.stack([
        np.stack([1 + x + y + z, gaps[2, 1], gaps[0, 2], gaps[1, 0]], -1),
        np.stack([gaps[2, 1], 1 + x - y - z, sums[0, 1], sums[0, 2]], -1),
        np.stack([gaps[0, 2], sums[0, 1], 1 - x + y - z, sums[1, 2]], -1),
        np.stack([gaps[1, 0], sums[0, 2], sums[1, 2], 1 - x - y + z], -1),
    ])  # fmt: skip
    best = products[np.argmax(products[range(4), :, range(4)], axis=0), np.arange(len(m))]
    return np.asarray(best / np.linalg.norm(best, axis=1, keepdims=True))


def rotation_of(pitch: float, yaw: float, roll: float) -> tuple[float, ...]:
    """Return the rotation of RLBot's angles in radians: nine numbers, row by row."""
    cp, sp = math.cos(pitch), math.sin(pitch)
    cy, sy = math.cos(yaw), math.sin(yaw)
    cr, sr = math.cos(roll), math.sin(roll)
    return (
        cp * cy, cy * sp * sr - cr * sy, -cr * cy * sp - sr * sy,
        cp * sy, sy * sp * sr + cr * cy, -cr * sy * sp + sr * cy,
        sp, -cp * sr, cp * cr,
    )  # fmt: skip


def angles_of(numbers: Sequence[float], at: int = 0) -> tuple[float, float, float]:
    """Return pitch, yaw and roll in radians of nine numbers row by row, from a place among others on."""
    rise = numbers[at + 6]
    if not -_STEEP < rise < _STEEP:
        return _steep_angles_of(*numbers[at : at + 7])
    yaw, roll = math.atan2(numbers[at + 3], numbers[at]), math.atan2(-numbers[at + 7], numbers[at + 8])
    return math.asin(rise), yaw, roll


def _steep_angles_of(
    forward_x: float, right_x: float, up_x: float, forward_y: float, right_y: float, up_y: float, rise: float
) -> tuple[float, float, float]:
    """Return the angles of a rotation near vertical; roll is measured from the uncertain yaw."""
    level = math.hypot(forward_x, forward_y)
    if level == 0.0:  # any yaw will do
        forward_x = 1.0
    roll = math.atan2(forward_x * up_y - forward_y * up_x, forward_x * right_y - forward_y * right_x)
    return math.atan2(rise, level), math.atan2(forward_y, forward_x), roll
