"""Name in v5 what RLBot v4 calls otherwise, and say what has no counterpart."""

from typing import Final

SKILLS: Final = ((0.25, "Rookie"), (0.75, "Pro"), (1.0, "AllStar"))
"""Upper ends of `participant_bot_skill`. 0 is rookie, 0.5 pro and 1 all-star [v4's agent_config_parser.py];
values between go to the nearest. v5's Beginner has no counterpart."""

KINDS: Final = {
    "rlbot": "rlbot", "party_member_bot": "rlbot", "human": "human", "controller_passthrough": "human",
    "psyonix": "psyonix",
}  # fmt: skip
"""v5's types of cars by v4's. A bot that the game takes for a human, and a human whom the framework passes
on, have none of their own."""

LAUNCHERS: Final = {"steam": "Steam", "epic": "Epic"}

LOADOUT: Final = (
    "team_color_id", "custom_color_id", "car_id", "decal_id", "wheels_id", "boost_id", "antenna_id", "hat_id",
    "paint_finish_id", "custom_finish_id", "engine_audio_id", "trails_id", "goal_explosion_id",
)  # fmt: skip
PAINT: Final = (
    "car_paint_id", "decal_paint_id", "wheels_paint_id", "boost_paint_id", "antenna_paint_id", "hat_paint_id",
    "trails_paint_id", "goal_explosion_paint_id",
)  # fmt: skip
LOADOUT_SECTIONS: Final = {
    "Bot Loadout": ("blue_loadout", LOADOUT), "Bot Loadout Orange": ("orange_loadout", LOADOUT),
    "Bot Paint Blue": ("blue_loadout.paint", PAINT), "Bot Paint Orange": ("orange_loadout.paint", PAINT),
}  # fmt: skip
WHY_NOT: Final = {
    "enable_lockstep": "v5 has no lockstep; --pace lockstep of rlgym-bridge match is one",
    "python_file": "became run_command; code for v4's BaseAgent has to be written anew for v5's Bot",
    "maximum_tick_rate_preference": "v5 sends every packet, 120 a second",
    "use_virtual_environment": "run_command names the Python",
    "requirements_file": "installing is not RLBot v5's affair",
    "num_participants": "v5 counts [[cars]]",
}
