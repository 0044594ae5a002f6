"""Work out which lines, labels and rectangles stand at a moment, from the groups that bots have drawn."""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
from rlbot import flat

from rlgym_bridge.recording.mcap.channels import DRAWN
from rlgym_bridge.user_input.message_limits import TO_SERVER, check_message, group_of, kind_of
from rlgym_bridge.view.camera import CAMERA_SIZE, is_before_camera, project

_GROUP: Final = 6  # the kind of `flat.RenderGroup`
_MOST_GROUPS: Final = 1024  # of all clients; a recording may hold anything
_SHAPE_BYTES: Final = 100
_POINT_BYTES: Final = 24
_FAR: Final = 1e5  # uu; what is drawn farther away is left out
_SCREEN_PIXELS: Final = 1920, 1080  # of the screen that RLBot's core reckons with

Body = tuple[np.ndarray, np.ndarray]
"""Position `(3,)` uu and rotation `(3, 3)`, with the columns forward, right, up."""

Key = tuple[int, int]  # the number of a client, and the id of a group of its


class Places(NamedTuple):
    """Bodies that drawings are attached to, at a moment."""

    ball: Body | None  # None while there is none
    cars: Mapping[int, Body]  # by their index in packets; without those that are demolished


Shapes = defaultdict[str, list[tuple[Any, ...]]]
"""A group as it stands: shapes by their kind. The last item of each is its colour, RRGGBBAA.

`lines` have points `(n, 3)`, `labels` a place `(3,)` and a text, `dots` a place and a radius in pixels of the
viewer: uu of the game. `screen_labels` have a place `(2,)` and a text, `screen_boxes` left, top, right and
lower edge `(4,)`: pixels of the camera's image.
"""


class DrawnGroups:
    """The groups that stand, drawn message by message."""

    def __init__(self) -> None:
        self.cars: dict[int, int] = {}  # index of the first car of each client by its number; -1 for none
        self.changed: set[Key] = set()  # groups that are new, other, or gone since this was last cleared
        self.moving: set[Key] = set()  # groups that are attached to the ball or a car
        self.spent = 0  # bytes of all shapes, about; a drawing that is not placed counts, too
        self._groups: dict[Key, bytes | flat.RenderGroup] = {}

    def take(self, content: bytes) -> None:
        """Take in a message of the topic `/drawings`; what cannot be read is left out."""
        if len(content) < DRAWN.size:
            return
        client, car = DRAWN.unpack_from(content)
        payload = content[DRAWN.size :]
        with suppress(ValueError):
            if not payload:
                for gone in [one for one in self._groups if one[0] == client]:
                    self._drop(gone)
            elif kind_of(payload) == _GROUP:
                key = (client, group_of(payload)[0])
                if key in self._groups or len(self._groups) < _MOST_GROUPS:
                    self.cars[client] = car
                    self._groups[key] = payload  # decoded when it is looked at: most are replaced before
                    self.changed.add(key)
            elif isinstance(message := _decoded(payload), flat.RemoveRenderGroup):
                self._drop((client, message.id))

    def _drop(self, key: Key) -> None:
        if self._groups.pop(key, None) is not None:
            self.changed.add(key)
            self.moving.discard(key)

    def shapes(self, key: Key, places: Places) -> Shapes:
        """Return a group as it stands among these bodies; nothing where it is gone or cannot be read."""
        shapes: Shapes = defaultdict(list)
        group = self._groups.get(key)
        if isinstance(group, bytes):
            decoded = _decoded(group)
            group = decoded if isinstance(decoded, flat.RenderGroup) else flat.RenderGroup()
            self._groups[key] = group
            anchors = (
                getattr(one.variety, name, None)
                for one in group.render_messages
                for name in ("start", "end", "anchor")
            )
            moves = any(one is not None and one.relative is not None for one in anchors)
            (self.moving.add if moves else self.moving.discard)(key)
        if group is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is left out
                for one in group.render_messages:
                    self.spent += _size(one.variety)
                    _add(one.variety, places, shapes)
        return shapes


def _decoded(payload: bytes) -> Any:
    with suppress(ValueError):
        check_message(payload, TO_SERVER)
        return flat.InterfacePacket.unpack(payload).message


def _size(drawing: Any) -> int:
    points = len(drawing.points) if isinstance(drawing, flat.PolyLine3D) else 0
    text = len(drawing.text) if isinstance(drawing, flat.String2D | flat.String3D) else 0
    return _SHAPE_BYTES + _POINT_BYTES * points + text


def _add(drawing: Any, places: Places, shapes: Shapes) -> None:
    if isinstance(drawing, flat.Line3D):
        ends = _place(drawing.start, places), _place(drawing.end, places)
        if ends[0] is not None and ends[1] is not None:
            shapes["lines"].append((np.stack(ends), _color(drawing.color)))  # type: ignore[arg-type]
    elif isinstance(drawing, flat.PolyLine3D):
        points = np.array([(one.x, one.y, one.z) for one in drawing.points]).reshape(-1, 3)
        if len(points) > 1 and (np.abs(points) < _FAR).all():
            shapes["lines"].append((points, _color(drawing.color)))
    elif isinstance(drawing, flat.String3D | flat.Rect3D):
        place = _place(drawing.anchor, places)
        if place is None:
            return
        if isinstance(drawing, flat.String3D):
            color = _color(drawing.foreground)
            shapes["labels"].append((place, drawing.text, color))
            if is_before_camera(place):  # Rerun shows no label of a place in an image
                shapes["screen_labels"].append((project(place[None])[0], drawing.text, color))
        else:  # as large on the screen from everywhere, as a dot is
            width, height = (
                np.clip(abs(share), 0.0, 1.0) * size
                for share, size in zip((drawing.width, drawing.height), _SCREEN_PIXELS, strict=True)
            )
            shapes["dots"].append((place, float(np.sqrt(width * height) / 2), _color(drawing.color)))
    elif isinstance(drawing, flat.String2D | flat.Rect2D):
        _add_to_screen(drawing, shapes)


def _add_to_screen(drawing: flat.String2D | flat.Rect2D, shapes: Shapes) -> None:
    corner = np.array((drawing.x, drawing.y), float)
    if isinstance(drawing, flat.String2D):
        if np.isfinite(corner).all():
            place = corner.clip(0.0, 1.0) * CAMERA_SIZE
            shapes["screen_labels"].append((place, drawing.text, _color(drawing.foreground)))
        return
    size = np.array((drawing.width, drawing.height), float)
    corner = corner - size * (int(drawing.h_align) / 2, int(drawing.v_align) / 2)  # 0 first, 1 middle, 2 last
    edges = np.concatenate([np.minimum(corner, corner + size), np.maximum(corner, corner + size)])
    if np.isfinite(edges).all():
        edges = edges.clip(0.0, 1.0) * (*CAMERA_SIZE, *CAMERA_SIZE)
        shapes["screen_boxes"].append((edges, _color(drawing.color)))


def _place(anchor: flat.RenderAnchor, places: Places) -> np.ndarray | None:
    """Return the point `(3,)` uu of an anchor; None where the body is not there or the point impossible."""
    point = np.array((anchor.world.x, anchor.world.y, anchor.world.z), float)
    relative = anchor.relative
    if relative is not None:
        ball = isinstance(relative, flat.BallAnchor)
        body = (places.ball if relative.index == 0 else None) if ball else places.cars.get(relative.index)
        if body is None:
            return None
        local = relative.local  # along the columns of the rotation: y is "left" in the schema (inferred)
        point = point + body[0] + body[1] @ np.array((local.x, local.y, local.z))
    return point if (np.abs(point) < _FAR).all() else None  # NaN is not


def _color(color: flat.Color) -> int:
    return color.r << 24 | color.g << 16 | color.b << 8 | color.a
