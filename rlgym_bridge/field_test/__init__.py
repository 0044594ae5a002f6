"""Record what a server's physics does in scripted scenes, pack it without names, and read such packs.

    scripted scenes -> SceneBattery (answers packets) -> recording -> nameless copy -> zip
    zip -> checked parts -> dialect, timing, rules of the game, errors of RocketSim by scene

Whoever owns the game makes a pack with `rlgym-bridge field-test`; anybody reads it with `--read`.
"""
