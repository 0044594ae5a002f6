"""Matches whose cars this process plays itself."""

import itertools
import os
from collections.abc import Sequence
from typing import Final

from rlbot import flat

from rlgym_bridge.game import ENGINE_AGENT

_OCTANE: Final = 23  # `car_id` of a loadout
_NUMBERS: Final = itertools.count()  # of matches


def own_players(agents: Sequence[tuple[str, str, int]]) -> list[flat.PlayerConfiguration]:
    """Return players, in Octanes, that nobody but this process starts.

    Args:
        agents: Name, agent id and team of each.
    """
    return [
        flat.PlayerConfiguration(
            flat.CustomBot(
                name=name, root_dir="", run_command="", agent_id=agent,
                loadout=flat.PlayerLoadout(car_id=_OCTANE),
            ),
            team,
            0,
        )
        for name, agent, team in agents
    ]  # fmt: skip


def match_of(blue: int, orange: int) -> flat.MatchConfiguration:
    """Return an endless soccar match whose cars are all played by an engine, with state setting.

    Args:
        blue: Cars in the blue team.
        orange: Cars in the orange team.

    Raises:
        ValueError: There are none, or more than four in a team.
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
    """Return the agent ids of the bots in a match that nobody starts."""
    bots = [player.variety for player in match.player_configurations]
    return [bot.agent_id for bot in bots if isinstance(bot, flat.CustomBot) and not bot.run_command]


def with_own_ids(match: flat.MatchConfiguration) -> flat.MatchConfiguration:
    """Return a match whose bots without a run command have agent ids of an engine that no other match has.

    A match that nobody plays any more goes on until the next one begins, and a server says that it has
    taken the new one before that: with the same ids the seats of the old match would be taken for the new's.
    """
    made = flat.CorePacket.unpack(flat.CorePacket(match).pack()).message
    assert isinstance(made, flat.MatchConfiguration)  # what was packed
    token = f"{os.getpid()}-{next(_NUMBERS)}"
    for player in made.player_configurations:
        bot = player.variety
        if isinstance(bot, flat.CustomBot) and bot.agent_id and not bot.run_command:
            bot.agent_id = f"{ENGINE_AGENT}{bot.agent_id.removeprefix(ENGINE_AGENT)}-{token}"
    return made
