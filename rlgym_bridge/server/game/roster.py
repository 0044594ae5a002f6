"""Assign seats, names and ids to the bots and scripts of a match configuration."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rlbot import flat

from rlgym_bridge.game import ENGINE_AGENT, HITBOX_OF_BODY, MOST_TEAM_SIZE
from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.game.referee import TEAM_NAMES
from rlgym_bridge.server.result import ConfigError

_log = client_log(__name__)

SCRIPT_TEAM: Final = 2  # team number of scripts [RLBot core]
_HUMAN_ID: Final = 0  # `player_id` of a human [RLBot core]

ONLY_BOTS: Final = (
    "expected a bot of type rlbot: humans and Psyonix bots need the real game; take it out of the match, let "
    "its car stand idle (--allow-idle), or play with RLBotServer"
)
"""Text for errors, of who can drive cars on this server."""


@dataclass(frozen=True)
class AgentSeat:
    """A car and the agent that drives it, or a script."""

    index: int  # index in `GamePacket.players`; for a script its index among the scripts
    name: str
    team: int  # 0 blue, 1 orange, 2 for scripts
    agent_id: str
    identifier: int  # `player_id` of the car, or the script's id
    hitbox: int  # hitbox number 0..5 (`game.HITBOXES`)
    hivemind: bool = False  # one process drives all cars of this agent id and team
    run_command: str = ""  # command that starts the agent, empty where it is started by hand
    root_dir: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    player: str = "bot"  # "bot"; or "human" or "psyonix" for a car that nobody drives here

    @property
    def is_idle(self) -> bool:
        """Tell whether nobody drives the car: a human or a Psyonix bot would, in the real game."""
        return self.player != "bot"

    @property
    def is_engine(self) -> bool:
        """Tell whether a learner's environment drives it, which may think for minutes between two ticks."""
        return self.agent_id.startswith(ENGINE_AGENT)

    @property
    def label(self) -> str:
        """Describe the seat for messages: name, agent id, team."""
        return f"{self.name!r} (agent_id {self.agent_id!r}, {self.side})"

    @property
    def side(self) -> str:
        """Name the team, or script."""
        return "script" if self.team == SCRIPT_TEAM else TEAM_NAMES[self.team]


@dataclass(frozen=True)
class Roster:
    """All seats of a match, with the configuration that clients are sent.

    Cars have the order of `GamePacket.players`, scripts that of the configuration.
    """

    cars: list[AgentSeat]
    scripts: list[AgentSeat]
    configuration: flat.MatchConfiguration

    @property
    def agents(self) -> list[AgentSeat]:
        """List all seats in the order in which they are given out: bots, then scripts."""
        return [*(car for car in self.cars if not car.is_idle), *self.scripts]


def move_human_last(players: Sequence[flat.PlayerConfiguration]) -> list[flat.PlayerConfiguration]:
    """Return players in RLBot's order: a human changes places with the last; two are a ConfigError."""
    return [players[place] for place in _places(players)]


def _places(players: Sequence[flat.PlayerConfiguration]) -> list[int]:
    """Return the place of each player in the match configuration, in the order of packets."""
    places = list(range(len(players)))
    humans = [place for place in places if isinstance(players[place].variety, flat.Human)]
    if len(humans) > 1:
        raise ConfigError(
            f"players {humans[0]} and {humans[1]} are humans, expected one at most, as RLBot's core does: "
            f"take the others out of the match"
        )
    for human in humans:  # [RLBot core, `ConfigValidator.ValidatePlayers`]
        places[human], places[-1] = places[-1], places[human]
    return places


def seat_players(
    configuration: flat.MatchConfiguration, allow_idle: bool = False, allow_no_bots: bool = False
) -> Roster:
    """Give every bot and script of a match its seat, name and id, and write these into the match for clients.

    Cars of humans and Psyonix bots stand idle where `allow_idle`; with `allow_no_bots` all cars may. A
    ConfigError says that a player has no seat here, that a team has too many cars, that there is nobody to
    play, or that an agent id is missing or taken.
    """
    cars = []
    taken: set[int] = {_HUMAN_ID}
    names: set[str] = set()
    sizes = [0, 0]
    given = list(configuration.player_configurations)
    places = _places(given)
    for index, place in enumerate(places):
        player = given[place]
        if player.team not in (0, 1):
            raise ConfigError(f"player {place} has team {player.team}, expected 0 (blue) or 1 (orange)")
        slot = sizes[player.team]
        sizes[player.team] += 1
        if not isinstance(player.variety, flat.CustomBot):
            if not allow_idle:
                human = isinstance(player.variety, flat.Human)
                raise ConfigError(f"player {place} is a {'human' if human else 'Psyonix bot'}, {ONLY_BOTS}")
            cars.append(_idle_seat(index, player, slot, names, taken))
            continue
        bot = player.variety
        if not bot.agent_id.strip():
            raise ConfigError(
                f"player {place} ({bot.name!r}) has no agent_id, expected something like "
                f"'developer/bot': set agent_id under [settings] in its bot.toml"
            )
        identifier = _identifier(f"{bot.agent_id}/{player.team}/{slot}", taken)
        body = 0 if bot.loadout is None else bot.loadout.car_id
        cars.append(
            AgentSeat(
                index, _unique(bot.name or bot.agent_id, names), player.team, bot.agent_id.strip(),
                identifier, HITBOX_OF_BODY.get(body, 0), bot.hivemind, bot.run_command,
                bot.root_dir, _environment(bot.environment),
            )
        )  # fmt: skip
    for team, size in zip(TEAM_NAMES, sizes, strict=True):
        if size > MOST_TEAM_SIZE:
            raise ConfigError(f"{team} has {size} cars, expected at most {MOST_TEAM_SIZE}")
    idle = all(car.is_idle for car in cars)
    if not cars or (idle and not allow_no_bots and not configuration.script_configurations):
        raise ConfigError(
            f"the match has no {'bots' if cars else 'cars'}, expected at least one bot of type rlbot"
        )
    scripts = _seat_scripts(configuration, taken, cars)
    configuration.player_configurations = [
        _as_shown(given[place], car) for place, car in zip(places, cars, strict=True)
    ]
    return Roster(cars, scripts, configuration)


def _as_shown(player: flat.PlayerConfiguration, car: AgentSeat) -> flat.PlayerConfiguration:
    """Return a player with the name and id that packets have; the given objects may be used twice."""
    bot = player.variety
    if not isinstance(bot, flat.Human) and bot.name != car.name:
        bot = type(bot)(*(getattr(bot, field) for field in bot.__match_args__))
        bot.name = car.name
    return flat.PlayerConfiguration(bot, player.team, car.identifier)


def warn_of_shared_ids(roster: Roster) -> None:
    """Log which different bots share an agent id: each connection takes the first free car of its id."""
    first: dict[str, AgentSeat] = {}
    for seat in roster.agents:
        other = first.setdefault(seat.agent_id, seat)
        if (seat.run_command, seat.root_dir) != (other.run_command, other.root_dir):
            _log.warning(
                "%s and %s are different bots with one agent_id: who connects first gets the first car",
                other.label, seat.label,
            )  # fmt: skip


def _idle_seat(
    index: int, player: flat.PlayerConfiguration, slot: int, names: set[str], taken: set[int]
) -> AgentSeat:
    bot, body = player.variety, 0
    if isinstance(bot, flat.PsyonixBot):
        kind, name = "psyonix", _unique(bot.name or "Psyonix", names)
        body = 0 if bot.loadout is None else bot.loadout.car_id
        identifier = _identifier(f"{kind}/{player.team}/{slot}", taken)
    else:
        kind, name, identifier = "human", _unique("Human", names), _HUMAN_ID
    return AgentSeat(index, name, player.team, "", identifier, HITBOX_OF_BODY.get(body, 0), player=kind)


def _seat_scripts(
    configuration: flat.MatchConfiguration, taken: set[int], cars: list[AgentSeat]
) -> list[AgentSeat]:
    seats: list[AgentSeat] = []
    names: set[str] = set()
    ids = {car.agent_id for car in cars if car.run_command}
    for index, script in enumerate(configuration.script_configurations):
        agent_id = script.agent_id.strip()
        if not agent_id:
            raise ConfigError(f"script {index} ({script.name!r}) has no agent_id, expected one")
        if agent_id in ids:
            raise ConfigError(
                f"script {index} has agent_id {agent_id!r}, which another script or bot has too; "
                f"expected one of its own"
            )
        ids.add(agent_id)
        script.script_id = _identifier(f"{agent_id}/{SCRIPT_TEAM}/{index}", taken)
        script.name = _unique(script.name or agent_id, names)
        seats.append(
            AgentSeat(
                index, script.name, SCRIPT_TEAM, agent_id, script.script_id, 0, False,
                script.run_command, script.root_dir, _environment(script.environment),
            )
        )  # fmt: skip
    return seats


def _environment(variables: Sequence[flat.EnvironmentVariable] | None) -> tuple[tuple[str, str], ...]:
    return tuple((one.name, one.value) for one in variables or ())


def _identifier(text: str, taken: set[int]) -> int:
    """Return an id from -2^31 to 2^31 - 1 that is always the same for the same text."""
    value = zlib.crc32(text.encode())
    while (number := value - (1 << 32) if value >= 1 << 31 else value) in taken:
        value = (value + 1) % (1 << 32)
    taken.add(number)
    return number


def _unique(name: str, names: set[str]) -> str:
    """Return the name, or "name (2)", "name (3)" ... where it is taken, and take it."""
    unique, number = name, 1
    while unique in names:
        number += 1
        unique = f"{name} ({number})"
    names.add(unique)
    return unique
