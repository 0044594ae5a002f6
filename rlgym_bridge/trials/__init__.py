"""Play scripted scenes on a server, with two cars or with a bot, and judge what comes of them.

    probe, scripted scenes, matches that check a bot -> SceneScript.answer -> findings, packs, verdicts

`rlgym-bridge` runs them as probe, timing, field-test, check and parity.
"""
