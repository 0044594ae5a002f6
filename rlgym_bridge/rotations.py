"""Convert Euler angles and quaternions to the rotation matrices of a state, and back.

All matrices have the columns forward, right, up in world axes; right of +x is +y, as in the game.
"""

import numpy as np


def from_euler(angles: np.ndarray) -> np.ndarray:
    """Return matrices `(rows, 3, 3)` of Euler angles.

    Args:
        angles: `(rows, 3)` in radians: pitch (nose up positive), yaw (from +x towards +y), roll (right side
            down positive).
    """
    (cp, cy, cr), (sp, sy, sr) = np.cos(angles).T, np.sin(angles).T
    rows = (
        (cp * cy, cy * sp * sr - cr * sy, -cr * cy * sp - sr * sy),
        (cp * sy, sy * sp * sr + cr * cy, -cr * sy * sp + sr * cy),
        (sp, -cp * sr, cp * cr),
    )
    return np.stack([np.stack(row, -1) for row in rows], -2)


def from_quaternions(quaternions: np.ndarray) -> np.ndarray:
    """Return matrices `(rows, 3, 3)` of quaternions `(rows, 4)` in the order w, x, y, z, of any length.

    Where a quaternion is 0 the matrix is too.
    """
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
    """Return quaternions `(rows, 4)` in the order w, x, y, z of matrices `(rows, 3, 3)`.

    Where a matrix is 0, as that of a body whose rotation is not known, nothing is turned.
    """
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
