"""Training needs an extra, `pip install -e ".[train]"`; without it its tests are left out."""

from importlib.util import find_spec

collect_ignore: list[str] = []
if not (find_spec("torch") and find_spec("tensorboard")):
    collect_ignore += ["test_command.py", "test_networks.py", "test_ppo.py", "test_returns.py"]
