"""Run `rlgym-bridge stress` as `python -m training.stress POLICY`."""

if __name__ == "__main__":
    from rlgym_bridge.cli import run_module

    run_module("stress")
