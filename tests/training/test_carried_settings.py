"""Public examples of rlgym-ppo and rlgym-learn, carried over by the table in the docs."""

from pathlib import Path

import numpy as np
import pytest

from rlgym_bridge.training.settings import check_settings
from tools.side_by_side import EXAMPLES, carry_over, draw, our_curve, peer_curve, peer_settings

SAME = {
    "gamma": 0.99, "gae_lambda": 0.95, "clip": 0.2, "minibatch": 50_000, "standardize_returns": True,
    "policy_layers": (256, 256, 256), "critic_layers": (256, 256, 256), "steps": 1_000_000_000, "seed": 123,
    "keep_checkpoints": 5, "epochs": 3,
    "checkpoint_every": 1_000_000,  # rlgym-ppo's has 100,000: matches would end after 4 seconds
    "max_grad_norm": 0.5, "goal": 10.0, "touch": 0.1, "value_clip": 0.0,
}  # fmt: skip
OTHERS = {
    "rlgym-ppo": {
        "learning_rate": 3e-4, "critic_learning_rate": 3e-4, "entropy_coefficient": 0.001,
        "no_touch_seconds": 10.0, "team_sizes": (1, 1),
    },
    "rlgym-learn": {
        "learning_rate": 5e-5, "critic_learning_rate": 5e-5, "entropy_coefficient": 0.01,
        "no_touch_seconds": 30.0, "team_sizes": (2, 2),
    },
}  # fmt: skip


@pytest.mark.parametrize("library", EXAMPLES)
@pytest.mark.parametrize("collectors", [1, 2, 16])
def test_an_example_is_carried_over_by_the_table(library: str, collectors: int, tmp_path: Path) -> None:
    carried, left = carry_over(library, collectors)
    settings = check_settings(carried)
    for name, value in (SAME | OTHERS[library]).items():
        assert getattr(settings, name) == value, name
    batch = collectors * settings.matches * settings.rollout_steps * settings.cars
    assert batch == pytest.approx(50_000, rel=0.02)
    # Minibatches of theirs are parts of a gradient step, and advantages are always normalised here.
    assert set(left) <= {"ppo_minibatch_size", "n_minibatches", "advantage_normalization"}
    theirs = peer_settings(settings, library, tmp_path, 8)  # the example as it is
    assert (theirs["epochs"], theirs["batch"], theirs["buffer"]) == (1, 50_000, 150_000)


def test_touches_of_all_processes_are_added(tmp_path: Path) -> None:
    for number in (1, 2):  # a touch each second of 60 agent steps, and the second process begins later
        rows = [[float(now), 60 * (now - number), now - number] for now in range(number, 102)]
        (tmp_path / f"touches-{number}").write_text("".join(f"{row}\n" for row in rows))
    theirs = peer_curve(sorted(tmp_path.glob("touches-*")), 8 / 120 / 60)
    assert theirs[-1] == pytest.approx([100, 60 * 199, 15])  # 60 steps of 8 ticks are 4 seconds
    np.testing.assert_allclose(theirs[2:, 2], 15, rtol=1e-6)
    (tmp_path / "progress.csv").write_text("steps,seconds,touches_per_car_minute\n100,2,3\n200,4,5\n")
    ours = our_curve(tmp_path / "progress.csv")
    assert ours.tolist() == [[2, 100, 3], [4, 200, 5]]
    draw({"here": ours, "there": theirs}, "an example", tmp_path / "touches.png")
    assert (tmp_path / "touches.png").stat().st_size > 5000
