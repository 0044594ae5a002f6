"""Draw the hitboxes of the cars of new episodes."""

from collections.abc import Sequence

import numpy as np


def draw_hitboxes(hitboxes: Sequence[int], shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Draw a hitbox for each car; nothing is drawn from the generator where there is only one.

    Args:
        hitboxes: Numbers of `game.HITBOXES`, each entry as likely as any other.
        shape: Matches and cars.
        random: Generator to draw from.

    Returns:
        `(matches, cars)` int.
    """
    if len(set(hitboxes)) == 1:
        return np.full(shape, hitboxes[0])
    drawn: np.ndarray = random.choice(np.array(hitboxes), shape)
    return drawn
