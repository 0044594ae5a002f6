"""Take the loadouts that bots give their cars in a match; here a loadout decides the hitbox."""

import logging
from collections.abc import Callable

from rlbot import flat

from rlgym_bridge.game import HITBOX_OF_BODY, HITBOXES
from rlgym_bridge.server.game.roster import Roster
from rlgym_bridge.server.net.connected_client import Client, Handler

_log = logging.getLogger(__name__)


def hitbox_of(body: int, whose: str) -> int:
    """Return the hitbox number of a loadout's `car_id`; an unknown one is logged and plays as an Octane."""
    if body and body not in HITBOX_OF_BODY:
        _log.warning("%s has car_id %d, whose hitbox is not known here: it plays as an Octane", whose, body)
    return HITBOX_OF_BODY.get(body, 0)


class Loadouts:
    """The loadouts of the cars of one match.

    Args:
        roster: The match.
        set_hitbox: Called with the index of a car and the number of its hitbox.
    """

    def __init__(self, roster: Roster, set_hitbox: Callable[[int, int], None]) -> None:
        self._seats, self._set = roster.cars, set_hitbox
        self._in_play = roster.configuration.enable_state_setting
        for player, seat in zip(roster.configuration.player_configurations, self._seats, strict=True):
            loadout = getattr(player.variety, "loadout", None)
            hitbox_of(0 if loadout is None else loadout.car_id, seat.label)

    @property
    def handlers(self) -> dict[type, Handler]:
        """Return what to do with each type of message that is a loadout."""
        return {flat.SetLoadout: self._on_loadout}

    def _on_loadout(self, client: Client, message: flat.SetLoadout) -> None:
        index = message.index
        if client.ready and not self._in_play:
            client.warn_once(
                "%s sets a loadout after InitComplete: ignored, the match does not have enable_state_setting"
            )
        elif index >= len(self._seats) or self._seats[index].is_idle or (
            not client.ready and index not in client.cars
        ):  # fmt: skip
            client.warn_once("%s sets the loadout of car %d, which is not its own: ignored", index)
        else:
            label = self._seats[index].label
            hitbox = hitbox_of(message.loadout.car_id, label)
            _log.info("%s plays with the hitbox of %s", label, HITBOXES[hitbox].name.capitalize())
            self._set(index, hitbox)
