"""Take the loadouts that bots give their cars in a match; here a loadout decides the hitbox."""

from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

from rlbot import flat

from rlgym_bridge.game import HITBOX_OF_BODY, HITBOXES
from rlgym_bridge.server.client_log import client_log
from rlgym_bridge.server.game.roster import Roster
from rlgym_bridge.server.net.admission import Admission
from rlgym_bridge.server.net.client_limits import Allowance
from rlgym_bridge.server.net.connected_client import Client, Handler, after_settings

_log = client_log(__name__)

_TICKS_OF_ONE: Final = 4  # all cars of a match are made anew for one, and the log has a line


def hitbox_of(body: int, whose: str) -> int:
    """Return the hitbox number of a loadout's `car_id`; an unknown one is logged and plays as an Octane."""
    if body and body not in HITBOX_OF_BODY:
        _log.warning("%s has car_id %d, whose hitbox is not known here: it plays as an Octane", whose, body)
    return HITBOX_OF_BODY.get(body, 0)


class Loadouts:
    """The loadouts of the cars of one match.

    A client sets those of its own cars before it is ready. In a match with state setting it may set all of
    them later, as far as it may give orders.
    """

    def __init__(
        self,
        roster: Roster,
        set_hitbox: Callable[[int, int], None],
        admission: Admission,
        tick: Callable[[], int],
    ) -> None:
        self._seats, self._set, self._admission, self._tick = roster.cars, set_hitbox, admission, tick
        self._allowances: WeakKeyDictionary[Client, Allowance] = WeakKeyDictionary()
        self._in_play = roster.configuration.enable_state_setting
        for player, seat in zip(roster.configuration.player_configurations, self._seats, strict=True):
            loadout = getattr(player.variety, "loadout", None)
            hitbox_of(0 if loadout is None else loadout.car_id, seat.label)

    @property
    def handlers(self) -> dict[type, Handler]:
        """Return what to do with each type of message that is a loadout."""
        return {flat.SetLoadout: after_settings(self._on_loadout)}

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
        elif (client.ready and not client.seats) and not self._admission.takes_order(
            client, "sets a loadout", lambda: self._on_loadout(client, message)
        ):
            return
        elif not self._has_allowance(client):
            client.warn_once("%s sets more than a loadout in %d ticks: some are ignored", _TICKS_OF_ONE)
        else:
            label = self._seats[index].label
            hitbox = hitbox_of(message.loadout.car_id, label)
            _log.info("%s plays with the hitbox of %s", label, HITBOXES[hitbox].name.capitalize())
            self._set(index, hitbox)

    def _has_allowance(self, client: Client) -> bool:
        allowance = self._allowances.setdefault(client, Allowance(1 / _TICKS_OF_ONE, 0))
        allowed = allowance.has(1, self._tick())
        allowance.left -= allowed
        return allowed
