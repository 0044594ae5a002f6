"""Record what a server's physics does in scripted scenes, pack it without names, and read such packs.

    scripted scenes -> SceneBattery (answers packets) -> recording -> nameless copy -> zip
    zip -> checked parts -> dialect, timing, errors of the simulators by scene, what explains them

Whoever owns the game makes a pack with `rlgym-bridge field-test`; anybody reads it with `--read`.
"""
