"""The viewer draws the ball where it must be: seen in a browser's picture."""

from uuid import uuid4

import numpy as np
import pytest

rr = pytest.importorskip("rerun")
pytest.importorskip("pyarrow")
pytest.importorskip("playwright")
pytest.importorskip("PIL")

import rerun.blueprint as rrb  # noqa: E402

from rlgym_bridge.view.camera import project  # noqa: E402
from rlgym_bridge.view.scene import BALL_COLOR  # noqa: E402
from rlgym_bridge.view.write import log_recording  # noqa: E402
from tests.support.page_browser import find_chromium  # noqa: E402
from tests.support.view_scenes import BALL, made_up  # noqa: E402
from tests.support.viewer_browser import has_webgl, like, viewer_page, wait_for  # noqa: E402

MARKS = np.array([(80.0, 60.0), (1520.0, 60.0), (80.0, 840.0)])
MARK_COLOR = (0, 255, 60)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The page's picture of a still scene through the camera, with marks at known pixels of its image."""
    if find_chromium() is None or not has_webgl():
        pytest.skip("no chromium that draws WebGL 2")
    path = tmp_path_factory.mktemp("view") / "still.rrd"
    stream = rr.RecordingStream("rlgym_bridge_test", recording_id=uuid4())
    view = rrb.Spatial2DView(origin="/camera", contents=["/match/**", "/camera/**"])
    panels = (panel(state="hidden") for panel in (rrb.BlueprintPanel, rrb.SelectionPanel, rrb.TimePanel))
    stream.save(path, default_blueprint=rrb.Blueprint(view, *panels, auto_views=False))
    stream.log("/camera/marks", rr.Points2D(MARKS, colors=MARK_COLOR, radii=8.0), static=True)
    log_recording(stream, made_up())
    stream.flush()
    stream.disconnect()
    with viewer_page(path, 1000, 640) as page:
        return wait_for(page, Settled(), 120)


class Settled:
    """Tells whether all is loaded: marks and ball are in two pictures in a row, at the same places."""

    def __init__(self):
        self.last = None

    def __call__(self, seen):
        now = np.stack([like(seen, color) for color in (MARK_COLOR, BALL_COLOR)])
        same = self.last is not None and (now == self.last).all()
        self.last = now
        return bool(same and (now.sum((1, 2)) > 20).all() and is_even(seen))


def is_even(seen):
    """Tell whether the marks lie as they do in the image, in whatever size."""
    across, down = scales(seen)[1:]
    return across > 0 and abs(across - down) < 0.01 * across


def middle(pixels):
    """Return x and y of the middle of some pixels' extent."""
    rows, columns = np.nonzero(pixels)
    return np.array([columns.min() + columns.max(), rows.min() + rows.max()]) / 2


def scales(seen):
    """Return where the first mark is, and the page's pixels in one of the image's, across and down."""
    rows, columns = np.nonzero(like(seen, MARK_COLOR))
    high = rows < (rows.min() + rows.max()) / 2
    left = columns < (columns.min() + columns.max()) / 2
    if not all(part.any() for part in (high & left, high & ~left, ~high & left)):
        return np.zeros(2), 0.0, 0.0
    found = [
        np.array([columns[part].mean(), rows[part].mean()])
        for part in (high & left, high & ~left, ~high & left)
    ]
    across = (found[1][0] - found[0][0]) / (MARKS[1][0] - MARKS[0][0])
    down = (found[2][1] - found[0][1]) / (MARKS[2][1] - MARKS[0][1])
    return found[0], across, down


def on_page(seen):
    """Return offset and scale from the camera's image to the page, from the marks."""
    assert like(seen, MARK_COLOR).any(), "the marks are not in the picture"
    assert is_even(seen), f"the marks do not lie as in the image: {scales(seen)}"
    first, scale, _ = scales(seen)
    return first - scale * MARKS[0], scale


@pytest.mark.slow
def test_the_ball_is_where_the_camera_must_see_it(drawn):
    offset, scale = on_page(drawn)
    (expected,) = offset + scale * project(np.array([BALL]))
    found = middle(like(drawn, BALL_COLOR))
    assert np.abs(found - expected).max() < 3, f"ball at {found}, expected at {expected}"
    mirrored = offset + scale * project(np.array([BALL]) * (-1, 1, 1))[0]
    assert np.abs(found - mirrored).max() > 100


@pytest.mark.slow
def test_the_ball_has_its_size(drawn):
    _, scale = on_page(drawn)
    columns = np.nonzero(like(drawn, BALL_COLOR).any(0))[0]
    edges = project(np.array(BALL) + np.array([(91.25, 0, 0), (-91.25, 0, 0)]))
    assert np.ptp(columns) == pytest.approx(scale * abs(edges[0, 0] - edges[1, 0]), abs=3)
