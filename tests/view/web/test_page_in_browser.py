"""The match's page, as a browser shows it and a human drives on it."""

import itertools
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")
pytest.importorskip("playwright")


from rlgym_bridge.recording.open import open_recording
from rlgym_bridge.view.web.recorded_frames import write_single_page
from tests.support.page_browser import (
    ask,
    command,
    find_chromium,
    open_page,
    opened_browser,
    shown_page,
    wait_until,
)
from tests.support.recorded_matches import chaser_and_policy

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="no chromium on this machine"),
    pytest.mark.odd_packets("pages put bodies elsewhere"),
]

MINE, OTHER = 0, 1
AWAY = [0, -4500, 17]  # uu, where the opponent does not matter
PAD = """window.pad = { connected: true, id: "pad of a test", axes: [0, 0], buttons: Array.from({ length: 17 }, () => ({ value: 0 })) };
navigator.getGamepads = () => [window.pad];"""  # noqa: E501


ROLLING = """async () => {
  const { Timeline } = await import("/page/frames.js"), timeline = new Timeline(), seen = [];
  const random = (n) => (Math.sin(n * 12.9898) * 43758.5453) % 1;
  let pushed = 0;
  for (let picture = 1; picture < 240; picture++) {
    const now = (1000 * picture) / 60;
    while ((1000 * pushed) / 120 + 6 * random(pushed) < now) {
      const view = new DataView(new ArrayBuffer(32 + 68 + 5)), time = pushed / 120, x = time > 3 ? time * 1000 - 4000 : time * 1000;
      [[8, 1], [28, time], [32, x], [44, 1000], [68, 1]].forEach(([at, value]) => view.setFloat32(at, value, true));
      timeline.push(view.buffer, (1000 * pushed++) / 120 + 6 * random(pushed));
    }
    seen.push(timeline.sample(now)?.ball.pos[0] ?? 0);
  }
  return seen;
}"""  # noqa: E501
"""Shows, 60 times a second, a ball of 1000 uu/s that is put 4000 uu back; frames come 6 ms early or late."""


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as one:
        yield one


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with shown_page(tmp_path_factory.mktemp("play"), "play", "random", "--seconds", "3000") as found:
        yield found


@pytest.fixture
def page(browser, address):
    one = open_page(browser, address, PAD)
    command(one, "resume")
    wait_until(one, "app.phase() === 'kickoff' || app.phase() === 'active'")
    yield one
    one.context.close()


def aim_at_goal(page):
    """Put car and ball on a line into orange's empty goal, as the car already faces."""
    command(page, "pause")
    wait_until(page, "app.frame.flags & 1")
    w, x, y, z = ask(page, f"app.frame.cars[{MINE}].quat")
    front = 1 - 2 * (y * y + z * z), 2 * (x * y + w * z)
    for body, far, height in (("ball", 600, 93.15), (MINE, 1300, 17.01)):
        place = [-front[0] * far, 5120 - front[1] * far, height]
        command(page, "put", {"body": body, "pos": place})
    command(page, "put", {"body": OTHER, "pos": AWAY})
    command(page, "resume")
    wait_until(page, "!(app.frame.flags & 1)")


def test_a_key_drives_the_ball_into_an_empty_goal(page):
    goals = ask(page, "app.frame.score[0]")
    aim_at_goal(page)
    page.keyboard.down("w")
    wait_until(page, f"app.frame.score[0] === {goals + 1}")
    page.keyboard.up("w")
    wait_until(page, "app.input.lag")
    pictures = ask(page, "new Promise((done) => setTimeout(() => done([app.rate, app.busy]), 2000))")
    lag = ask(page, "app.input.lag")
    print(f"{pictures[0]:.0f} pictures/s, {pictures[1]:.2f} ms of JavaScript each; input {lag}")


@pytest.mark.slow
def test_a_gamepad_drives_outside_its_dead_zone(page):
    ask(page, "void (window.pad.axes = [0.1, 0])")
    ask(page, "void (window.pad.buttons[7].value = 1)")
    wait_until(page, f"app.frame.cars[{MINE}].throttle > 0.99")
    assert ask(page, f"app.frame.cars[{MINE}].steer") == 0
    ask(page, "void (window.pad.axes = [0.575, 0])")  # the middle between dead zone and end
    wait_until(page, f"Math.abs(app.frame.cars[{MINE}].steer - 0.5) < 0.01")
    ask(page, "void (window.pad.buttons[0].value = 1)")
    wait_until(page, f"app.frame.cars[{MINE}].flags & 16")
    camera = ask(page, "app.camera.kind")
    ask(page, "void (window.pad.buttons[3].value = 1)")
    wait_until(page, f"app.camera.kind !== '{camera}'")


@pytest.mark.slow
def test_a_second_page_looks_while_the_first_one_drives(page, browser, address):
    second = open_page(browser, address)
    assert ask(page, "app.setup.seat") == MINE and ask(second, "app.setup.seat") is None
    page.keyboard.down("w")
    wait_until(second, f"app.frame.cars[{MINE}].throttle === 1")
    page.keyboard.up("w")
    assert abs(ask(second, "app.frame.tick") - ask(page, "app.frame.tick")) < 240
    second.context.close()


@pytest.mark.slow
def test_a_page_that_is_loaded_again_or_cut_off_drives_on(page):
    page.reload()
    wait_until(page, f"window.app?.view && app.setup.seat === {MINE}")
    ask(page, "app.source.socket.close()")
    wait_until(page, "!document.getElementById('notice').hidden")
    wait_until(page, f"document.getElementById('notice').hidden && app.setup.seat === {MINE}")
    tick = ask(page, "app.frame.tick")
    page.keyboard.down("s")
    wait_until(page, f"app.frame.tick > {tick + 60} && app.frame.cars[{MINE}].throttle === -1")
    page.keyboard.up("s")


@pytest.mark.slow
def test_a_lost_picture_comes_back_and_the_followed_car_stays(page):
    page.select_option("#follow", str(OTHER))
    ask(page, "void (window.lost = app.renderer.gl.getExtension('WEBGL_lose_context')).loseContext()")
    ask(page, "new Promise((done) => setTimeout(done, 300))")
    ask(page, "void lost.restoreContext()")
    wait_until(page, "!app.renderer.gl.isContextLost() && app.renderer.shapes.plates")
    tick = ask(page, "app.frame.tick")
    wait_until(page, f"app.frame.tick > {tick + 30}")
    assert ask(page, "app.followed") == OTHER and not ask(page, "app.renderer.gl.getError()")
    ask(page, "void (app.source.socket.close(), (document.getElementById('mind-of').textContent = ''))")
    wait_until(page, "document.getElementById('mind-of').textContent")  # it is told on of the followed car
    page.select_option("#follow", str(MINE))


@pytest.mark.slow
def test_a_key_that_was_changed_is_kept(page):
    page.click("#help")
    page.click("#bindings label:has-text('Jump') button")
    page.keyboard.press("j")
    page.click("dialog form button:has-text('Close')")
    page.reload()
    wait_until(page, "window.app?.view && app.input.driving")
    page.keyboard.down("j")
    wait_until(page, f"app.frame.cars[{MINE}].flags & 16")
    page.keyboard.up("j")
    assert ask(page, "app.input.keys.jump") == "KeyJ"


@pytest.mark.slow
def test_a_paused_match_is_rewound_changed_and_taken_over(page):
    wait_until(page, "app.frame.time > 1.5")
    command(page, "pause")
    wait_until(page, "app.frame.flags & 1")
    time = ask(page, "app.frame.time")
    page.locator("#rewind").focus()
    page.keyboard.press("ArrowRight")
    wait_until(page, f"Math.abs(app.frame.time - {time - 1}) < 0.1")
    command(page, "put", {"body": "ball", "pos": [1000, -2000, 500]})
    wait_until(page, "Math.hypot(app.frame.ball.pos[0] - 1000, app.frame.ball.pos[1] + 2000) < 1")
    page.select_option("#follow", str(OTHER))
    page.select_option("#driver", "human")
    wait_until(page, f"app.setup.seat === {OTHER} && app.followed === {OTHER}")
    command(page, "resume")
    page.keyboard.down("w")
    wait_until(page, f"app.frame.cars[{OTHER}].throttle === 1")
    page.keyboard.up("w")
    command(page, "give", OTHER)
    page.select_option("#follow", str(MINE))
    page.select_option("#driver", "human")
    wait_until(page, f"app.setup.seat === {MINE}")


@pytest.mark.slow
def test_the_match_waits_while_the_tab_sleeps(page):
    before, asleep = ask(
        page,
        """new Promise((done) => {
      const tick = () => app.source.frames.at(-1).tick, before = tick();
      app.step = () => {};
      Object.defineProperty(document, "hidden", { get: () => true });
      document.dispatchEvent(new Event("visibilitychange"));
      setTimeout(() => done([before, tick()]), 2000);
    })""",
    )
    assert asleep - before < 60, "ticks played in two seconds that nobody saw"
    ask(page, "(delete app.step, app.step(performance.now()))")
    wait_until(page, f"!(app.frame.flags & 8) && app.frame.tick > {asleep} + 10")


@pytest.mark.slow
def test_motion_is_even_though_frames_come_unevenly(page):
    places = page.evaluate(ROLLING)
    steps = [after - before for before, after in itertools.pairwise(places)][30:]
    jumps = [step for step in steps if step < 0]
    assert len(jumps) == 1 and jumps[0] < -3900, "put elsewhere at once, not slid there"
    even = [step for step in steps if step > 0]
    assert max(even) < 1000 / 60 * 1.3 and min(even) > 1000 / 60 * 0.7, "uu a picture, 16.7 expected"


@pytest.mark.slow
def test_neither_another_site_nor_a_wrong_token_gets_in(browser, address):
    foreign = browser.new_context().new_page()
    socket = address.replace("http", "ws").replace("/?", "/ws?")
    asked = "(to) => new Promise((done) => { const s = new WebSocket(to); s.onopen = () => done('open'); s.onerror = () => done('refused'); })"  # noqa: E501
    assert foreign.evaluate(asked, socket) == "refused"
    answer = foreign.goto(address[:-4] + "0000")
    assert answer is not None and answer.status == 403
    foreign.context.close()


@pytest.mark.slow
def test_a_page_says_that_its_match_has_ended(browser, tmp_path: Path):
    with shown_page(tmp_path, "play", "random") as address:
        page = open_page(browser, address)
    wait_until(page, "document.getElementById('notice').textContent === 'Closed: it has ended'")
    page.context.close()


@pytest.mark.slow
def test_one_file_shows_a_recording_without_a_server(browser, tmp_path: Path, tmp_path_factory):
    file = tmp_path / "match.html"
    write_single_page(open_recording(chaser_and_policy(tmp_path_factory)), file)
    asked: list[str] = []
    page = open_page(browser, "about:blank", drawn=False)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    wait_until(page, "window.app?.view && app.frame.time > 0.2")
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked), asked
    length = ask(page, "app.setup.length_s")
    command(page, "seek", length)
    wait_until(page, f"app.frame.time === {length} && app.frame.flags & 1")
    assert ask(page, "app.frame.tick === app.source.frames.at(-1).tick")
    page.click("#pause")
    wait_until(page, f"app.frame.time < {length / 2} && !(app.frame.flags & 1)")
    command(page, "speed", 0.25)
    wait_until(page, "app.frame.speed === 0.25")
    page.context.close()
