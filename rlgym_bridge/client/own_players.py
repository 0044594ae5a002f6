"""Configure matches whose cars this process plays itself."""

import itertools
import os
from collections.abc import Sequence
from typing import Final

from rlbot import flat

from rlgym_bridge.game import ENGINE_AGENT

_OCTANE: Final = 23  # `car_id` of a loadout
_NUMBERS: Final = itertools.count()  # of matches


def own_players(agents: Sequence[tuple[str, str, int]]) -> list[flat.PlayerConfiguration]:
    """Return players in Octanes, of names, agent ids and teams, for which the server starts no process."""
    return [
        flat.PlayerConfiguration(
            flat.CustomBot(
                name=name, root_dir="", run_command="", agent_id=agent_id,
                loadout=flat.PlayerLoadout(car_id=_OCTANE),
            ),
            team,
            0,
        )
        for name, agent_id, team in agents
    ]  # fmt: skip


def match_of(blue: int, orange: int) -> flat.MatchConfiguration:
    """Return an unlimited soccar match with state setting, whose cars are all played by an engine.

    Raises:
        ValueError: There are no cars, or more than four in a team.
    """
    if not (0 <= blue <= 4 and 0 <= orange <= 4 and blue + orange):
        raise ValueError(f"the match has {blue} blue and {orange} orange cars, expected 1 to 4 in a team")
    players = [
        (f"{name} {number}", f"{ENGINE_AGENT}{name}-{number}", team)
        for team, (name, size) in enumerate((("blue", blue), ("orange", orange)))
        for number in range(size)
    ]
    return flat.MatchConfiguration(
        game_map_upk="Stadium_P",
        player_configurations=own_players(players),
        auto_start_agents=True,
        wait_for_agents=True,
        skip_replays=True,
        enable_state_setting=True,
        mutators=flat.MutatorSettings(match_length=flat.MatchLengthMutator.Unlimited),
    )


def agents_of(match: flat.MatchConfiguration) -> list[str]:
    """Return the agent ids of a match's bots that the server does not start."""
    bots = [player.variety for player in match.player_configurations]
    return [bot.agent_id for bot in bots if isinstance(bot, flat.CustomBot) and not bot.run_command]


def with_own_ids(match: flat.MatchConfiguration) -> flat.MatchConfiguration:
    """Return a copy of a match in which bots without a run command have unique agent ids of an engine.

    A server confirms a new match while it still runs the last one: equal ids could get a car of the old one.
    """
    made = flat.CorePacket.unpack(flat.CorePacket(match).pack()).message
    assert isinstance(made, flat.MatchConfiguration)  # what was packed
    token = f"{os.getpid()}-{next(_NUMBERS)}"
    for player in made.player_configurations:
        bot = player.variety
        if isinstance(bot, flat.CustomBot) and bot.agent_id and not bot.run_command:
            bot.agent_id = f"{ENGINE_AGENT}{bot.agent_id.removeprefix(ENGINE_AGENT)}-{token}"
    return made
