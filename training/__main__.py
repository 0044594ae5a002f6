"""Run `rlgym-bridge train` as `python -m training`."""

if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("train")
