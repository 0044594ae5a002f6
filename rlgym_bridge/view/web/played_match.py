"""Show a match on the page while it is played, and let the page drive, pause and rewind it.

tick thread: MatchServer -> `begin`, `see`, `act` -> frames -> PageServer
page thread: PageServer -> `open`, `take`, `close` -> inputs and commands, taken up by `act`
"""

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from rlbot import flat

from rlgym_bridge import game
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.user_errors import describe_error
from rlgym_bridge.live.followed_run import FollowedRun
from rlgym_bridge.packets.decoder import player_input
from rlgym_bridge.server.game.roster import Roster
from rlgym_bridge.server.game.simulated_match import Match, Moment
from rlgym_bridge.state import MatchState
from rlgym_bridge.view.web import frames
from rlgym_bridge.view.web.car_drivers import PolicyDriver
from rlgym_bridge.view.web.frames import NO_LANDING, describe_car, make_setup, pack_frames
from rlgym_bridge.view.web.landing import find_landing
from rlgym_bridge.view.web.last_minute import LastMinute
from rlgym_bridge.view.web.page_messages import PageCommand, PageInput, Put, Take
from rlgym_bridge.view.web.page_server import PageServer, Viewer

_log = logging.getLogger(__name__)

HUMAN: Final = "human"  # the driver of a car that is whoever sits at a page
RECORDED: Final = "recorded"  # the driver of a car that goes on by the inputs of a recording
KEPT_TICKS: Final = 60 * game.TICKS_PER_SECOND  # ticks that a match can be rewound by

_REPLAY_BEFORE: Final = 3 * game.TICKS_PER_SECOND  # of a goal
_REPLAY_AFTER: Final = game.TICKS_PER_SECOND // 2
_LANDING_EVERY: Final = 8  # ticks between two forecasts
_CAR_REST_Z, _CAR_APART = 17.0, 60.0  # uu, from the floor and from walls
_STANDING_SECONDS: Final = 1.0 / 30.0  # between two frames of a match that stands still
_OLD_SECONDS: Final = 0.6  # from which on an input counts no more: the page sends one every 0.1 s
_SWITCH_SECONDS: Final = 0.0005  # Python's own 0.005 is more than half a tick
_NEUTRAL: Final = flat.ControllerState()
_WATCHING: Final = frozenset({"follow", "ready", "stall"})  # what who only watches may ask for
_EVENTS: Final = {
    "Goal": ("goal", "scores"), "OwnGoal": ("goal", "scores an own goal"), "Save": ("save", "saves"),
    "Shot": ("shot", "shoots"), "Demolish": ("demo", "demolishes"), "Assist": ("assist", "assists"),
}  # fmt: skip


class PlayedMatch:
    """A match that is shown on pages; a `MatchControl` for the server, and a `Show` for the pages.

    Args:
        mode: "play"; "view" where it goes on from a recording; "watch" or "train" for pages that only look.
        drivers: Of each car in the order of packets: `HUMAN`, the name of a policy that drives in this
            process, or None for a bot with a process of its own.
        load: Returns the player of a policy's name.
        policies: Names of policies that may take over a car.
        serve: Returns the server of the pages, as the match begins.
        minute: Keeps what `save` writes into `folder`; None where nothing can be saved.
        first: A moment to begin at, paused; None begins with a kickoff.
        recorded: `(ticks, cars, 8)` controls from the first tick on, for cars whose driver is `RECORDED`.
        follow: Returns the run whose newest checkpoint drives a car that a policy drives; None for none.
    """

    def __init__(
        self,
        mode: str,
        drivers: Sequence[str | None],
        load: Callable[[str], PlayerSpec],
        policies: Sequence[str],
        serve: "Callable[[PlayedMatch], PageServer]",
        minute: LastMinute | None = None,
        folder: Path = Path(),
        seed: int = 0,
        first: Moment | None = None,
        follow: Callable[[], FollowedRun] | None = None,
        recorded: np.ndarray | None = None,
    ) -> None:
        self.mode, self.paused = mode, first is not None
        self.stays = mode != "watch"  # whether a match that is over goes on until it is stopped
        self._only_looks = mode in ("watch", "train")
        self._first_names, self._load, self._policies = list(drivers), load, list(policies)
        self._serve, self._minute, self._folder, self._seed, self._first = serve, minute, folder, seed, first
        self._follow, self._recorded = follow, recorded
        self._by_recording: set[int] = set()  # cars
        self.leave: Callable[[], None] | None = None  # back to the recording that the match began in
        self._lock = threading.Lock()  # seats
        self._pages: PageServer | None = None
        self._humans: dict[int, Viewer | None] = {}  # of the cars that humans drive, by their place
        self._inputs: dict[Viewer, tuple[float, PageInput]] = {}
        self._commands: deque[tuple[Viewer, PageCommand, PolicyDriver | None]] = deque()
        self._policy_drivers: dict[int, PolicyDriver] = {}
        self._moments: deque[tuple[int, Moment]] = deque(maxlen=KEPT_TICKS)
        self._time = self._tick = 0  # in ticks; the first goes back where the match is rewound
        self._goal_time = 0
        self._replay: deque[tuple[int, Moment]] = deque()
        self._phase = game.Phase.COUNTDOWN
        self._changed = first is not None
        self._landing: Sequence[float] = NO_LANDING
        self._acted: dict[Viewer, int] = {}  # number of the latest input of each page that acted
        self._saver: threading.Thread | None = None
        self._next_standing = 0.0
        self._counts = _TickCounts()

    def __enter__(self) -> Self:
        """Let the thread that plays have its turn soon, while pages keep another one busy."""
        self._switched = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        """Close its pages."""
        sys.setswitchinterval(self._switched)
        if self._pages is not None:
            self._pages.close()

    @property
    def pages(self) -> PageServer:
        """Return the server of the pages, which is there from `begin` on."""
        assert self._pages is not None
        return self._pages

    # --- in the thread that plays ------------------------------------------------------------

    def begin(self, match: Match, roster: Roster, hold: Callable[[int, flat.ControllerState], bool]) -> None:
        """Take a match before its first packet, and open the pages; see `MatchControl.begin`."""
        self._match, self._roster, self._hold = match, roster, hold
        self._places = list(match.simulation.places)
        self._slots = [self._places.index(place) for place in range(len(self._places))]
        with self._lock:
            for slot, name in enumerate(self._first_names):
                self._humans.update({self._places[slot]: None} if name == HUMAN else {})
        for slot, name in enumerate(self._first_names):
            if name == RECORDED:
                self._by_recording.add(self._places[slot])
            elif name not in (HUMAN, None):
                self._policy_drivers[self._places[slot]] = self._driver(self._places[slot], str(name))
        if self._first is not None:
            match.restore(self._first)
        self._pages = self._serve(self)

    def see(self, packet: flat.GamePacket) -> None:
        """Let policies answer a packet, keep its moment and show it."""
        match = self._match
        self._time += 1
        self._tick += 1
        for place, driver in list(self._policy_drivers.items()):
            slot = self._slots[place]
            controls = driver.answer(packet, self._on_mind(place))
            if controls is not None:
                self._hold(slot, controls)
            if (fault := driver.new_fault()) is not None:
                self.pages.say(f"{driver.name}: {fault}", "error")
        if self._recorded is not None and self._time <= len(self._recorded):
            for place in self._by_recording:
                row = self._recorded[self._time - 1, place].tolist()
                self._hold(self._slots[place], player_input(0, row).controller_state)
        self._tell_events()
        if match.referee.phase == game.Phase.REPLAY:
            self._show_replay()
            return
        self._moments.append((self._time, match.moment()))
        if self.pages.viewers:
            if self._tick % _LANDING_EVERY == 0:
                self._landing = find_landing(match.simulation.simulator, match.simulation.state)
            self._show(match.simulation.state, 0, self._time)
        told = self._counts.tick()
        if told is not None:
            self.pages.tell(told)

    def act(self) -> bool:
        """Take up commands and inputs; return whether the match goes on."""
        while self._commands:
            asker, command, driver = self._commands.popleft()
            try:
                self._obey(asker, command, driver)
            except (Exception, SystemExit) as error:  # of the simulator, or of a policy that begins anew
                self.pages.say(f"{command.do}: {describe_error(error)}", "error", asker)
            self._next_standing = 0.0  # what it changed is shown at once
        if self.stays and (self.paused or self.waits):
            self._stand_still()
            return False
        if self._phase == game.Phase.REPLAY and not self._replay:
            self._match.kick_off()
        now = time.perf_counter()
        with self._lock:
            humans = list(self._humans.items())
        for place, viewer in humans:
            since, given = self._inputs.get(viewer, (0.0, None)) if viewer is not None else (0.0, None)
            controls = _NEUTRAL
            if given is not None and now - since < _OLD_SECONDS:
                controls = player_input(0, given.controls).controller_state
                if viewer is not None and given.seq != self._acted.get(viewer):
                    self._acted[viewer] = given.seq
                    self._counts.input(now - since)
            self._hold(self._slots[place], controls)
        return True

    @property
    def waits(self) -> bool:
        """Tell whether nobody looks, or somebody who drives does not look."""
        viewers = self.pages.viewers
        is_seen = any(viewer.ready for viewer in viewers)
        return not is_seen or any(viewer.seat is not None and not viewer.ready for viewer in viewers)

    def _stand_still(self) -> None:
        now = time.perf_counter()
        self._counts.pause()
        if now >= self._next_standing and self.pages.viewers:
            self._next_standing = now + _STANDING_SECONDS
            self._show(self._match.simulation.state, 0, self._time)

    def _show(self, state: MatchState, flags: int, at: int) -> None:
        referee, standing = self._match.referee, self.paused or self.waits
        flags |= (frames.PAUSED * self.paused) | (frames.OVERTIME * referee.overtime)
        flags |= (frames.WAITING * self.waits) | (frames.CHANGED * self._changed)
        frame = pack_frames(
            state, self._landing, phase=referee.phase, flags=flags, tick=self._tick,
            speed=0.0 if standing else self._match.game_speed, clock=self._match.clock,
            countdown=referee.countdown, score=referee.score, time=at / game.TICKS_PER_SECOND,
        )  # fmt: skip
        self.pages.show_frame(frame.tobytes(), self._acted)

    def _show_replay(self) -> None:
        if not self._replay:
            return
        at, moment = self._replay.popleft()
        self._landing = NO_LANDING
        layout = self._match.simulation.state.layout
        state = MatchState(layout.blue, layout.orange, buffer=moment.state[None])
        self._show(state, frames.GOAL_REPLAY, at)

    def _tell_events(self) -> None:
        match, before = self._match, self._phase
        self._phase = match.referee.phase
        for slot, names in enumerate(match.scores.accolades):
            for name in names:
                if name in _EVENTS:
                    event, verb = _EVENTS[name]
                    self._tell(event, f"{self._shown_name(self._places[slot])} {verb}")
        if self._phase == before:
            return
        if self._phase == game.Phase.GOAL_SCORED:
            self._goal_time = self._time
        elif self._phase == game.Phase.REPLAY:
            first, last = self._goal_time - _REPLAY_BEFORE, self._goal_time + _REPLAY_AFTER
            self._replay = deque((at, moment) for at, moment in self._moments if first <= at <= last)
        elif self._phase == game.Phase.KICKOFF:
            self._tell("kickoff", "go")
        elif self._phase == game.Phase.ENDED:
            blue, orange = match.referee.score
            self._tell("end", f"the match is over: {blue} - {orange}, {match.referee.ended_by}")

    def _tell(self, event: str, text: str) -> None:
        self.pages.tell({"type": "event", "tick": self._tick, "event": event, "text": text})

    def _on_mind(self, place: int) -> Callable[[Mapping[str, Any]], None] | None:
        """Return what tells pages of a driver's decisions; None where no page follows its car."""
        followers = [viewer for viewer in self.pages.viewers if viewer.follows == place]
        if not followers:
            return None

        def tell(mind: Mapping[str, Any]) -> None:
            for viewer in followers:
                self.pages.tell({"type": "mind", "car": place, "tick": self._tick, **mind}, viewer)

        return tell

    # --- commands ----------------------------------------------------------------------------

    def kick_off_soon(self) -> None:
        """Go to the next kickoff before the next tick; any thread may call it."""
        self._commands.append((Viewer(0), PageCommand("kickoff"), None))

    def _obey(self, viewer: Viewer, command: PageCommand, driver: PolicyDriver | None) -> None:
        value = command.value
        match command.do:
            case "pause":
                self.paused = True
            case "resume":
                self.paused = False
            case "speed":
                self._match.set_now(
                    flat.DesiredGameState(match_info=flat.DesiredMatchInfo(game_speed=float(value)))
                )
            case "reset" | "kickoff":
                self._replay.clear()
                self._changed = self._changed and command.do == "kickoff"
                self._match.kick_off(anew=command.do == "reset")
                self._renew()
            case "rewind":
                self._rewind(round(value * game.TICKS_PER_SECOND))
            case "put":
                self._put(value)
            case "take" | "give":
                self._change_driver(viewer, value, driver)
            case "save":
                if self._saver is not None and self._saver.is_alive():
                    raise ValueError("the last minute is being saved already")
                self._saver = threading.Thread(target=self._save, args=(viewer,), name="save", daemon=True)
                self._saver.start()

    def _rewind(self, ticks: int) -> None:
        if not self._moments:
            return
        for _ in range(min(ticks, len(self._moments) - 1)):
            self._moments.pop()
        self._time, moment = self._moments[-1]
        self._match.restore(moment)
        self._replay.clear()
        self._phase = self._match.referee.phase
        self.paused = self._changed = True
        self._renew()

    def _put(self, put: Put) -> None:
        (x, y, z), is_ball = put.pos, put.body == "ball"
        least, apart = (game.BALL_REST_Z, game.BALL_RADIUS) if is_ball else (_CAR_REST_Z, _CAR_APART)
        in_goal = abs(x) < 0.5 * game.GOAL_WIDTH - apart and z < game.GOAL_HEIGHT - apart
        ends = (game.GOAL_BACK_Y if in_goal else game.BACK_WALL_Y) - apart
        x, y = (min(end, max(-end, place)) for end, place in ((game.SIDE_WALL_X - apart, x), (ends, y)))
        location = flat.Vector3Partial(x, y, min(game.CEILING_Z - apart, max(least, z)))
        body = flat.DesiredPhysics(
            location=location, velocity=flat.Vector3Partial(*put.vel),
            angular_velocity=flat.Vector3Partial(0.0, 0.0, 0.0),
        )  # fmt: skip
        desired = flat.DesiredGameState()
        if is_ball:
            desired.ball_states = [flat.DesiredBallState(body)]
        elif isinstance(put.body, int):
            cars = [flat.DesiredCarState() for _ in self._slots]
            cars[self._slots[put.body]] = flat.DesiredCarState(body)
            desired.car_states = cars
        self._match.set_now(desired)
        self._changed = True
        self._tick += 1
        self._landing = NO_LANDING
        self._moments.append((self._time, self._match.moment()))

    def _renew(self) -> None:
        """Let policies forget what they remember of a match that does not go on from there."""
        self._tick += 1
        self._landing = NO_LANDING
        self._policy_drivers = {place: one.renew() for place, one in self._policy_drivers.items()}

    def _change_driver(self, viewer: Viewer, value: Take | int, driver: PolicyDriver | None) -> None:
        place = value.car if isinstance(value, Take) else value  # `take` has checked it
        name = value.driver if isinstance(value, Take) else self._first_names[self._slots[place]]
        to_human = name == HUMAN
        with self._lock:
            if to_human and viewer not in self.pages.viewers:
                return  # it has gone since it asked, and would keep the seat
            left = self._humans.pop(place, None)
            if left is not None:
                left.seat = None
            if to_human:
                if viewer.seat is not None:
                    self._humans[viewer.seat] = None
                    self._humans = {
                        car: who for car, who in self._humans.items() if who or self._is_human(car)
                    }
                self._humans[place], viewer.seat = viewer, place
        self._policy_drivers.pop(place, None)
        self._by_recording.discard(place)
        if name == RECORDED:
            self._by_recording.add(place)
        elif driver is not None:
            self._policy_drivers[place] = driver
        self._changed = True
        self._hold(self._slots[place], _NEUTRAL)
        for one in self.pages.viewers:
            self.pages.tell(self._setup(one), one)

    def _is_human(self, place: int) -> bool:
        return self._first_names[self._slots[place]] == HUMAN

    def _save(self, viewer: Viewer) -> None:
        if self._minute is None:
            self.pages.say("this match is not kept: nothing can be saved", "error", viewer)
            return
        try:
            path = self._minute.save(self._folder / f"play-{time.strftime('%Y%m%d-%H%M%S')}.mcap")
        except (OSError, ValueError) as error:
            self.pages.say(f"not saved: {error}", "error", viewer)
        else:
            self.pages.say(f"saved the last minute to {path}", viewer=viewer)
            _log.info("saved the last minute to %s", path)

    # --- in the thread of the pages ----------------------------------------------------------

    def open(self, viewer: Viewer) -> Mapping[str, Any]:
        """Give a page a free seat, or that of a page that sleeps, if there is one, and return its setup."""
        left: Viewer | None = None
        with self._lock:
            seats = self._humans.items()
            free = [(who is not None, place) for place, who in seats if who is None or not who.ready]
            if free and not self._only_looks:
                viewer.seat = min(free)[1]
                left, self._humans[viewer.seat] = self._humans[viewer.seat], viewer
                if left is not None:
                    left.seat = None
        if left is not None:
            self.pages.tell(self._setup(left), left)
        return self._setup(viewer)

    def close(self, viewer: Viewer) -> None:
        """Free the seat of a page that has gone; the car stands idle until somebody takes it."""
        with self._lock:
            for place, who in self._humans.items():
                if who is viewer:
                    self._humans[place] = None
            self._inputs.pop(viewer, None)
            self._acted.pop(viewer, None)

    def take(self, viewer: Viewer, message: PageInput | PageCommand) -> None:
        """Keep an input or a command for the next tick; raises ValueError if the page may not do this."""
        if isinstance(message, PageInput):
            if viewer.seat is None:
                raise ValueError("an input of a page that drives no car")
            self._inputs[viewer] = (time.perf_counter(), message)
            return
        if self._only_looks and message.do not in _WATCHING:
            raise ValueError(f"{message.do} in a match that is only watched")
        match message.do:
            case "ready":
                viewer.ready = True
            case "stall":
                viewer.ready = False
            case "put" if isinstance(message.value.body, int):
                self._checked(message.value.body)
                self._commands.append((viewer, message, None))
            case "follow":
                viewer.follows = self._checked(message.value) if message.value >= 0 else None
            case "give" if message.value < 0 and self.leave is not None:
                self.leave()
            case "seek":
                raise ValueError("seek in a match that is being played, expected rewind")
            case _:
                self._commands.append((viewer, message, self._wanted_driver(message)))

    def _wanted_driver(self, message: PageCommand) -> PolicyDriver | None:
        """Load the policy that a command gives a car to; None for a human or a bot's own process."""
        if message.do == "take":
            place, name = self._checked(message.value.car), message.value.driver
        elif message.do == "give":
            place = self._checked(message.value)
            name = self._first_names[self._slots[place]]
        else:
            return None
        of_recording = name == RECORDED and self._recorded is not None
        return None if name in (HUMAN, None) or of_recording else self._driver(place, str(name))

    def _checked(self, place: int) -> int:
        if not 0 <= place < len(self._slots):
            raise ValueError(f"car is {place}, expected 0 to {len(self._slots) - 1}")
        return place

    def _driver(self, place: int, name: str) -> PolicyDriver:
        if name not in self._policies:
            raise ValueError(f"driver is {name!r}, expected human or one of {', '.join(self._policies)}")
        seat = self._roster.cars[self._slots[place]]
        followed = None if self._follow is None else self._follow()
        spec = self._load(name) if followed is None else followed.spec
        return PolicyDriver(name, spec, seat, self._roster.configuration, self._seed, followed)

    def _setup(self, viewer: Viewer) -> dict[str, Any]:
        seats = [self._roster.cars[slot] for slot in self._slots]
        with self._lock:
            humans = set(self._humans)
        drivers = [self._driver_name(place, humans) for place in range(len(seats))]
        names = [self._shown_name(place) for place in range(len(seats))]
        cars = [
            describe_car(names[place], seat.team, seat.hitbox, place in humans)
            for place, seat in enumerate(seats)
        ]
        teams = (
            ", ".join(name for name, seat in zip(names, seats, strict=True) if seat.team == team)
            for team in (game.BLUE, game.ORANGE)
        )
        return make_setup(
            self.mode, cars, seat=viewer.seat, policies=self._policies, drivers=drivers,
            title=" - ".join(teams), take_over=not self._only_looks,
        )  # fmt: skip

    def _shown_name(self, place: int) -> str:
        """Return a car's name; a human's car that something else drives is called by its driver."""
        driver = self._policy_drivers.get(place)
        if driver is not None and self._is_human(place):
            return driver.name
        return self._roster.cars[self._slots[place]].name

    def _driver_name(self, place: int, humans: set[int]) -> str:
        driver = self._policy_drivers.get(place)
        if place in humans or place in self._by_recording:
            return HUMAN if place in humans else RECORDED
        return self._roster.cars[self._slots[place]].name if driver is None else driver.name


class _TickCounts:
    """Counts ticks and the age of inputs, to tell the pages once a second."""

    def __init__(self) -> None:
        self.pause()

    def pause(self) -> None:
        """Begin anew: the match stands still."""
        self._since = self._last = 0.0
        self._ticks, self._late = 0, 0.0
        self._ages: list[float] = []

    def input(self, age: float) -> None:
        """Count an input that acts in the next tick, `age` seconds after it came."""
        self._ages.append(age)

    def tick(self) -> dict[str, Any] | None:
        """Count a tick; return the message of the last second, where one is over."""
        now = time.perf_counter()
        if not self._since:
            self._since = self._last = now
            return None
        self._ticks += 1
        self._late = max(self._late, now - self._last - 1.0 / game.TICKS_PER_SECOND)
        self._last = now
        seconds = now - self._since
        if seconds < 1.0:
            return None
        ages = self._ages
        told = {
            "type": "stats", "ticks_s": round(self._ticks / seconds, 1),
            "late_ms": round(self._late * 1e3, 2),
            "input_ticks": round(1 + sum(ages) / len(ages) * game.TICKS_PER_SECOND, 2) if ages else None,
        }  # fmt: skip
        self.pause()
        self._since = self._last = now
        return told
