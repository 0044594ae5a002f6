"""Drawings reach those who look, by client and group, and within limits; others pay nothing for them."""

import select

import pytest
from rlbot import flat

from rlgym_bridge.recording.mcap.channels import DRAWN
from rlgym_bridge.server.game.roster import seat_players
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.net.orders import DRAWN_TICK_BYTES, MOST_BYTES, MOST_DRAWINGS, MOST_GROUPS
from tests.support.raw_client import RawClient, agent, connect, heard, settle
from tests.support.shared_messages import Fields, packed
from tests.support.stepped_match import match_of, player

RED = flat.Color(255, 0, 0, 255)
HERE = flat.RenderAnchor(flat.Vector3(1.0, 2.0, 3.0))
VARIETIES = (
    flat.Line3D(HERE, flat.RenderAnchor(relative=flat.BallAnchor(0, flat.Vector3(z=9.0))), RED),
    flat.PolyLine3D([flat.Vector3(float(x), 0.0, 20.0) for x in range(40)], RED),
    flat.String2D("two", 0.5, 0.25, 1.0, RED, RED),
    flat.String3D("three", HERE, 2.0, RED, RED),
    flat.Rect2D(0.125, 0.25, 0.375, 0.5, RED),
    flat.Rect3D(flat.RenderAnchor(relative=flat.CarAnchor(1, flat.Vector3(x=5.0))), 0.125, 0.25, RED),
)
BIG = flat.PolyLine3D([flat.Vector3(float(x), 0.0, 20.0) for x in range(5000)], RED)


class Looker:
    """Look at the drawings of a match of one against one and a script."""

    def __init__(self, lobby: Lobby) -> None:
        self.lobby, self.tick, self.step = lobby, 0, 0
        self.seen: list[tuple[int, int, object]] = []

    def begin(self, rule: flat.DebugRendering, looks: bool = True) -> None:
        script = flat.ScriptConfiguration(name="Talker", agent_id="test/script")
        match = match_of(player(0, "ball"), player(1, "other"), script_configurations=[script])
        match.enable_rendering = rule
        self.lobby.open_match(seat_players(match))
        self.lobby.drawings.open(match, self._next_tick, [self._take] if looks else [])

    def _next_tick(self) -> int:
        self.tick += self.step
        return self.tick

    def _take(self, content: bytes) -> None:
        payload = content[DRAWN.size :]
        message = flat.InterfacePacket.unpack(payload).message if payload else None
        self.seen.append((*DRAWN.unpack_from(content), message))

    def groups(self) -> list[tuple[int, int, int]]:
        return [(number, car, message.id) for number, car, message in self.seen]  # type: ignore[attr-defined]


@pytest.fixture
def looker(lobby):
    one = Looker(lobby)
    one.begin(flat.DebugRendering.OnByDefault)
    return one


def group(number: int, *varieties: object) -> flat.RenderGroup:
    return flat.RenderGroup([flat.RenderMessage(one) for one in varieties], number)  # type: ignore[arg-type]


def draw(looker: Looker, client: RawClient, *messages: object) -> None:
    client.send(*messages)
    settle(looker.lobby)


def lives(looker: Looker, client: RawClient) -> bool:
    """Tell whether a ping behind all that a client has sent is answered."""
    client.send(flat.PingRequest(cookie=3))
    for _ in range(1000):
        looker.lobby.clients.pump(0.005)
        if select.select([client.socket], [], [], 0.0)[0]:
            break
    message = client.receive()
    return isinstance(message, flat.PingResponse) and message.cookie == 3


def statuses(lobby: Lobby, client: RawClient) -> list[tuple[int, bool, bool]]:
    """Return which switchings a client was told of so far: index, bot, on."""
    told = [message for message in heard(lobby, client) if isinstance(message, flat.RenderingStatus)]
    return [(message.index, message.is_bot, message.status) for message in told]


@pytest.mark.protocol("drawings.groups")
@pytest.mark.parametrize("variety", VARIETIES, ids=lambda one: type(one).__name__)
def test_each_kind_of_drawing_arrives_as_it_was_sent(looker, variety):
    client = connect(looker.lobby, agent("other"))
    draw(looker, client, group(-7, variety, *[variety] * 3))
    ((number, car, message),) = looker.seen
    assert (number, car, message.id, len(message.render_messages)) == (0, 1, -7, 4)
    assert repr(message.render_messages[0].variety) == repr(variety)


@pytest.mark.protocol("drawings.own-groups")
def test_clients_have_groups_of_their_own_and_remove_them(looker):
    first, second = connect(looker.lobby, agent("ball")), connect(looker.lobby, agent("other"))
    draw(looker, first, group(1, *VARIETIES))
    draw(looker, second, group(1, *VARIETIES), flat.RemoveRenderGroup(2), flat.RemoveRenderGroup(1))
    draw(looker, second, flat.RemoveRenderGroup(1))
    assert looker.groups() == [(0, 0, 1), (1, 1, 1), (1, 1, 1)]
    assert isinstance(looker.seen[-1][2], flat.RemoveRenderGroup)


@pytest.mark.protocol("drawings.end-with-client")
def test_who_leaves_takes_its_drawings_along(looker):
    first, second = connect(looker.lobby, agent("ball")), connect(looker.lobby)
    draw(looker, first, group(1, *VARIETIES))
    draw(looker, second, group(1, *VARIETIES))
    first.socket.close()
    settle(looker.lobby)
    assert [one[:2] for one in looker.seen] == [(0, 0), (1, -1), (0, 0)]
    assert looker.seen[-1][2] is None


@pytest.mark.protocol("drawings.end-with-match")
def test_a_match_begins_without_drawings(looker):
    client = connect(looker.lobby)
    draw(looker, client, group(1, *VARIETIES))
    looker.lobby.close_match()
    draw(looker, client, group(2, *VARIETIES))
    looker.begin(flat.DebugRendering.OnByDefault)
    draw(looker, client, flat.RemoveRenderGroup(1), group(3, *VARIETIES))
    assert looker.groups() == [(0, -1, 1), (0, -1, 3)]


@pytest.mark.protocol("drawings.off-by-default")
def test_a_bot_draws_once_it_is_switched_on(looker):
    looker.begin(flat.DebugRendering.OffByDefault)
    client, other = connect(looker.lobby, agent("ball")), connect(looker.lobby, agent("other"))
    draw(looker, client, group(1, *VARIETIES))
    draw(looker, other, flat.RenderingStatus(0, True, True))
    draw(looker, client, group(2, *VARIETIES))
    draw(looker, other, group(2, *VARIETIES))
    draw(looker, other, flat.RenderingStatus(0, True, False))
    draw(looker, client, group(3, *VARIETIES))
    assert [(car, getattr(message, "id", None)) for _, car, message in looker.seen] == [(0, 2), (0, None)]


@pytest.mark.protocol("drawings.status-told")
def test_a_switching_is_told_to_its_agent_and_observers(looker):
    first, second = connect(looker.lobby, agent("ball")), connect(looker.lobby, agent("other"))
    script, observer = connect(looker.lobby, agent("script")), connect(looker.lobby)
    draw(looker, first, flat.RenderingStatus(0, False, False), flat.RenderingStatus(1, True, True))
    told = [statuses(looker.lobby, one) for one in (first, second, script, observer)]
    assert told == [[], [(1, True, True)], [(0, False, False)], [(0, False, False), (1, True, True)]]


@pytest.mark.protocol("drawings.always-off")
def test_always_off_stays_off(looker):
    looker.begin(flat.DebugRendering.AlwaysOff)
    client = connect(looker.lobby, agent("ball"))
    draw(looker, client, flat.RenderingStatus(0, True, True), group(1, *VARIETIES))
    assert statuses(looker.lobby, client) == [] and looker.seen == []


def too_many_groups(client: RawClient) -> None:
    client.send(*(group(one, *VARIETIES[2:3]) for one in range(MOST_GROUPS + 5)))


def too_many_drawings(client: RawClient) -> None:
    line = flat.PolyLine3D()
    client.send(group(1, *VARIETIES), group(2, *[line] * (MOST_DRAWINGS + 1)), group(3, *[line] * 1001))


def too_many_bytes_a_tick(client: RawClient) -> None:
    client.send(*(group(1, BIG) for _ in range(25)))


@pytest.mark.parametrize(
    ("send", "taken", "warning"),
    [
        (too_many_groups, MOST_GROUPS, f"draws more than {MOST_GROUPS} groups"),
        (too_many_drawings, 1, f"expected {MOST_DRAWINGS} at most"),
        (too_many_bytes_a_tick, 17, f"draws more than {DRAWN_TICK_BYTES} bytes a tick"),
    ],
)
def test_what_is_too_much_is_left_out_and_said_once(looker, caplog, send, taken, warning):
    client = connect(looker.lobby)
    send(client)
    assert lives(looker, client)
    assert len(looker.seen) == taken and caplog.text.count(warning) == 1


def test_groups_of_too_many_bytes_are_left_out(looker, caplog):
    client = connect(looker.lobby)
    looker.step = 10  # ticks from one group to the next, so that time is no limit
    client.send(*(group(one, BIG) for one in range(25)))
    assert lives(looker, client)
    assert len(looker.seen) == MOST_BYTES // 60_100
    assert caplog.text.count(f"of more than {MOST_BYTES} bytes") == 1
    draw(looker, client, flat.RemoveRenderGroup(0), group(30, BIG), group(31, BIG))
    assert looker.groups()[-1] == (0, -1, 30)


def test_a_group_that_is_drawn_anew_takes_the_place_of_itself(looker):
    client = connect(looker.lobby)
    looker.step = 10
    client.send(*(group(1, BIG) for _ in range(25)))
    assert lives(looker, client) and len(looker.seen) == 25


def test_broken_drawings_are_left_out_and_keep_their_client(looker, caplog):
    client = connect(looker.lobby)
    broken = packed(Fields({0: 6, 1: Fields()}))[:-4] + b"\xff\x7f\xff\x7f" * 100
    client.socket.sendall(len(broken).to_bytes(2, "big") + broken)
    assert lives(looker, client) and looker.seen == []
    assert caplog.text.count("draws something that cannot be read") == 1


def test_nobody_who_looks_means_nothing_is_kept(looker):
    looker.begin(flat.DebugRendering.OnByDefault, looks=False)
    client = connect(looker.lobby)
    client.send(*(group(one, BIG) for one in range(25)))
    assert lives(looker, client)
    assert looker.seen == [] and looker.lobby.drawings._drawers == {}
