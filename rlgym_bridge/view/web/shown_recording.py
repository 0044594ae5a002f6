"""Show a recording on the page, and play on from any of its moments.

main thread: `run` -> frames of the recording, or a match that goes on from one of them
page thread: `open`, `take`, `close`
"""

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rlbot import flat

from rlgym_bridge import game
from rlgym_bridge.components.player_spec import PlayerSpec
from rlgym_bridge.components.user_errors import describe_error
from rlgym_bridge.recording.mcap.channels import Decision
from rlgym_bridge.recording.mcap.match_recording import MatchRecording
from rlgym_bridge.recording.recording import Recording
from rlgym_bridge.server import MatchServer
from rlgym_bridge.server.game.simulated_match import Moment
from rlgym_bridge.server.lineup import empty_match, make_driven_player
from rlgym_bridge.state import MatchState
from rlgym_bridge.view.web.car_drivers import describe_choice, table_of
from rlgym_bridge.view.web.landing import FallingBalls, whole_state
from rlgym_bridge.view.web.last_minute import LastMinute
from rlgym_bridge.view.web.page_messages import PageCommand, PageInput
from rlgym_bridge.view.web.page_server import PageServer, Viewer
from rlgym_bridge.view.web.played_match import RECORDED, PlayedMatch
from rlgym_bridge.view.web.recorded_frames import RecordedFrames

_FRAME_SECONDS: Final = 1.0 / 60.0
_STANDING_SECONDS: Final = 1.0 / 15.0
_BEGINS_MATCH: Final = frozenset({"take", "put", "rewind"})
_LONG: Final = 86_400.0  # s
_SECONDS: Final = 300.0  # on the clock of a match that goes on from a recording without one


class ShownRecording:
    """A recording on pages, a `Show`; raises ValueError if it has no moment.

    `load` returns the player of a policy's name. `policies` may drive cars where a page plays on. Cars that
    nobody takes go on by their recorded inputs, or, where there are none, by the first policy. `serve`
    returns the server of the pages, in `run`. `about` is what the recording of a match says that is played
    on, `weights` the `weights_sha256` of the first policy: cars that it drove show how likely its choices
    were.
    """

    def __init__(
        self,
        recording: Recording,
        load: Callable[[str], PlayerSpec],
        policies: Sequence[str],
        serve: "Callable[[ShownRecording], PageServer]",
        about: Mapping[str, Any],
        weights: str | None = None,
    ) -> None:
        if not len(recording.tick):
            raise ValueError(f"{recording.source} has no moment to show")
        self._recorded = RecordedFrames(recording)
        self._load, self._policies, self._about = load, list(policies), about
        self._known = _cars_of(recording, weights)
        self._spec = load(policies[0])
        self._commands: deque[tuple[Viewer, PageCommand]] = deque()
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._live: PlayedMatch | None = None
        self._server: MatchServer | None = None
        self._at, self._speed, self._paused = 0.0, 1.0, False
        self._number = 0
        self._decisions = _decisions_of(recording)
        self._told: dict[int, tuple[int, int]] = {}  # of each page, car and place of the latest decision
        self._balls = FallingBalls(recording.mode)
        layout = recording.state.layout
        self._can_play = layout.cars > 0 and max(layout.blue, layout.orange) <= game.MOST_TEAM_SIZE
        self._serve = serve

    def stop(self) -> None:
        """End `run`; may be called from a signal handler."""
        self._stopped.set()
        self._woken.set()
        if self._server is not None:
            self._server.stop()

    def run(self) -> None:
        """Serve the pages, and show the recording until `stop`."""
        self._pages = self._serve(self)
        try:
            while not self._stopped.is_set():
                begins = self._show()
                if begins is not None:
                    self._play_on(*begins)
        finally:
            self._pages.close()

    # --- in the thread that shows ------------------------------------------------------------

    def _show(self) -> tuple[Viewer, PageCommand] | None:
        """Show the recording until a page wants to play on; return what it wants, None at the end."""
        last = time.perf_counter()
        while not self._stopped.is_set():
            while self._commands:
                viewer, command = self._commands.popleft()
                if command.do in _BEGINS_MATCH:
                    return viewer, command
                self._obey(command)
            now = time.perf_counter()
            viewers = self._pages.viewers
            still = self._paused or not any(viewer.ready for viewer in viewers)
            if not still:
                self._at = min(self._at + (now - last) * self._speed, self._recorded.seconds)
            last = now
            if viewers:
                self._number += 1
                row = self._recorded.row_at(self._at)
                ended = self._at >= self._recorded.seconds
                stands = still or ended
                landing = self._balls.landing(self._recorded.state_of(row), row)
                self._pages.show_frame(self._recorded.frame(row, self._speed, stands, self._number, landing))
                self._tell_minds(row, viewers)
            self._woken.wait(_STANDING_SECONDS if still else _FRAME_SECONDS)
            self._woken.clear()
        return None

    def _obey(self, command: PageCommand) -> None:
        match command.do:
            case "pause":
                self._paused = True
            case "resume":
                self._paused = False
                if self._at >= self._recorded.seconds:
                    self._at = 0.0
            case "speed":
                self._speed = float(command.value)
            case "seek":
                self._at = min(command.value, self._recorded.seconds)
            case "reset":
                self._at = 0.0

    def _tell_minds(self, row: int, viewers: Sequence[Viewer]) -> None:
        """Tell pages what the bot of the car that they follow saw and chose last."""
        frame = int(self._recorded.frame_numbers[row])
        for viewer in viewers:
            car = viewer.follows
            if car is None or not self._decisions.get(car):
                continue
            decisions = self._decisions[car]
            place = bisect_right(decisions, frame, key=lambda one: one.frame) - 1
            if place < 0 or self._told.get(viewer.number) == (car, place):
                continue
            self._told[viewer.number] = (car, place)
            spec = self._spec if car in self._known else None
            mind = _describe_decision(decisions[place], car, spec)
            self._pages.tell({"type": "mind", "car": car, "tick": self._number, **mind}, viewer)

    def _play_on(self, viewer: Viewer, command: PageCommand) -> None:
        """Play a match that begins at the shown moment, until a page goes back to the recording."""
        at = self._at
        if command.do == "rewind":
            at = max(0.0, at - command.value)
        row = self._recorded.row_at(at)
        state = self._recorded.state_of(row)
        layout = state.layout
        controls = self._recorded.controls_from(row)
        names = [self._policies[0] if controls is None else RECORDED] * layout.cars
        drivers = self._policies if controls is None else [*self._policies, RECORDED]
        minute = LastMinute(self._about)

        def begin(live: PlayedMatch) -> PageServer:
            if command.do != "rewind":
                live.take(viewer, command)
            self._live = live
            for one in self._pages.viewers:
                self._pages.tell(live.open(one), one)
            return self._pages

        live = PlayedMatch(
            "view", names, self._load, drivers, begin, minute,
            first=moment_of(state, int(self._recorded.phase[row])), recorded=controls,
        )  # fmt: skip
        server = MatchServer(
            max_overtime=_LONG, max_kickoff=_LONG, recorder=minute, control=live, seconds=_SECONDS
        )
        self._server, live.leave = server, server.stop
        try:
            with server:
                if not self._stopped.is_set():
                    server.play(match_like(state, self._recorded.names))
        except (Exception, SystemExit) as error:  # a state that no simulator takes, a policy's own modules
            self._pages.say(f"nobody can play on from here: {describe_error(error)}", "error", viewer)
        finally:
            self._live = self._server = None
            self._at, self._paused = at, True
            for one in self._pages.viewers:
                live.close(one)
                one.seat = None
                self._pages.tell(self.open(one), one)

    # --- in the thread of the pages ----------------------------------------------------------

    def open(self, viewer: Viewer) -> Mapping[str, Any]:
        """Return the setup for a page."""
        if (live := self._live) is not None:
            return live.open(viewer)
        return self._recorded.setup(policies=self._policies, take_over=self._can_play)

    def close(self, viewer: Viewer) -> None:
        """Take leave of a page."""
        if (live := self._live) is not None:
            live.close(viewer)

    def take(self, viewer: Viewer, message: PageInput | PageCommand) -> None:
        """Keep a command, or hand it on to the match; raises ValueError for what a recording has not."""
        if (live := self._live) is not None:
            live.take(viewer, message)
            return
        if isinstance(message, PageInput):
            raise ValueError("an input while a recording is shown")
        match message.do:
            case "ready" | "stall":
                viewer.ready = message.do == "ready"
            case "follow":
                viewer.follows = message.value if message.value >= 0 else None
                self._told.pop(viewer.number, None)
            case "save" | "kickoff" | "give":
                raise ValueError(f"{message.do} while a recording is shown")
            case "take" | "put" | "rewind" if not self._can_play:
                raise ValueError("this recording has no cars, or too many: nobody can play on from it")
            case _:
                self._commands.append((viewer, message))
                self._woken.set()


def match_like(state: MatchState, names: Sequence[str]) -> flat.MatchConfiguration:
    """Return a match with the cars of a state, which policies in this process drive."""
    bodies = [game.BODY_OF_HITBOX[game.HITBOXES[hitbox].name] for hitbox in state.car_hitbox[0].astype(int)]
    match = empty_match()
    match.skip_replays = False
    match.player_configurations = [
        make_driven_player(name, int(number >= state.layout.blue), flat.PlayerLoadout(car_id=body))
        for number, (name, body) in enumerate(zip(names, bodies, strict=True))
    ]
    return match


def moment_of(state: MatchState, phase: int) -> Moment:
    """Return a recorded state, one match, as a moment that a match can be put into; it begins in play."""
    overtime = bool(state.overtime[0] > 0)
    left = round(float(state.clock[0]) * game.TICKS_PER_SECOND)
    referee = {
        "phase": game.Phase.KICKOFF if phase == game.Phase.KICKOFF else game.Phase.ACTIVE,
        "score": state.score[0].astype(int).tolist(), "overtime": overtime, "ended_by": None,
        "clock": left if left or overtime else round(_SECONDS * game.TICKS_PER_SECOND),
    }  # fmt: skip
    return Moment(whole_state(state).buffer[0], referee)


def _decisions_of(recording: Recording) -> dict[int, list[Decision]]:
    found: dict[int, list[Decision]] = {}
    if isinstance(recording, MatchRecording):
        for track in recording.agents.values():
            for decision in track.decisions:
                for car in decision.seats.tolist() if decision.actions.size else ():
                    found.setdefault(car, []).append(decision)
    return {car: sorted(decisions, key=lambda one: one.frame) for car, decisions in found.items()}


def _cars_of(recording: Recording, weights: str | None) -> set[int]:
    """Return the cars that a policy with these weights drove."""
    if weights is None or not isinstance(recording, MatchRecording):
        return set()
    tracks = [
        one for one in recording.agents.values() if one.policy and one.policy.get("weights_sha256") == weights
    ]
    return {car for one in tracks for decision in one.decisions for car in decision.seats.tolist()}


def _describe_decision(decision: Decision, car: int, spec: PlayerSpec | None) -> dict[str, Any]:
    """Return what a bot saw and chose for a car; `spec` is its policy, None where that is not at hand."""
    place = decision.seats.tolist().index(car)
    if spec is None:
        return describe_choice(decision.actions[place], decision.obs[place], None, None)
    table = table_of(spec.components().parser)
    return describe_choice(decision.actions[place], decision.obs[place], spec.policy(), table)
