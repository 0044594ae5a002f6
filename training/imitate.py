"""Run `rlgym-bridge imitate` as `python -m training.imitate RECORDING...`."""

if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("imitate")
