"""Refusals of training with Ray before it begins."""

from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from rlgym_bridge.training.ray_cluster import cluster
from rlgym_bridge.training.rllib import ray_ppo
from rlgym_bridge.training.settings import SettingsError, check_settings
from tests.support.training_runs import SMALL


def test_three_runners_for_two_processors_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_ppo, "cluster", lambda address, collectors: nullcontext(2))
    with pytest.raises(
        SettingsError, match="collectors is 3, and the cluster has 2 processors, one for each"
    ):
        ray_ppo.main(check_settings(SMALL | {"out": str(tmp_path), "collectors": 3}), quiet=True)


@pytest.mark.parametrize("address", ["", "head", "head:", ":6379", "head:-1", "head:6379/0", "head:65536"])
def test_addresses_without_host_or_port_are_refused_at_once(address: str) -> None:
    message = f'at "{address}": it has no .* Expected host:port, or auto'
    with pytest.raises(SettingsError, match=message), cluster(address):
        pass


def test_what_listens_and_is_no_head_of_ray_is_refused_at_once() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        other.timeout = 60
        thread = Thread(target=other.handle_request)
        thread.start()
        address = f"127.0.0.1:{other.server_port}"
        with pytest.raises(SettingsError, match="what listens there is no Ray head"), cluster(address):
            pass
        thread.join()


def test_a_dead_head_in_the_environment_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(SettingsError, match=r'at "auto": .*refused'), cluster("auto"):
        pass


@pytest.mark.parametrize(
    ("name", "value", "others"),
    [
        ("uniform_coefficient", 0.1, r"0\.0"), ("critic_learning_rate", 0.1, r"0\.0"),
        ("critic_learning_rate_schedule", "linear", '"same"'), ("standardize_returns", True, "false"),
        ("value_clip", 0.1, r"0\.0"), ("target_kl", 0.1, r"0\.0"), ("overlap", True, "false"),
        ("mirror", True, "false"), ("network", "gru", '"perceptron"'),
    ],
)  # fmt: skip
def test_settings_that_rllib_does_not_have_are_refused(
    name: str, value: Any, others: str, tmp_path: Path
) -> None:
    message = rf"{name} is .*, which --engine rllib does not have; expected {others}, or --engine local"
    with pytest.raises(SettingsError, match=message):
        ray_ppo.main(check_settings(SMALL | {"out": str(tmp_path), name: value}), quiet=True)
