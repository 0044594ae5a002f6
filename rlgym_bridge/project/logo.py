"""Draw the logo of a bot: blocks in two colours that follow from its name, as a PNG."""

import colorsys
import hashlib
import struct
import zlib
from typing import Final

import numpy as np

_HEIGHT, _WIDTH = 300, 400  # pixels, as RLBot's window shows logos
_BLOCK: Final = 50  # pixels
_ROWS, _COLUMNS = 4, 3  # blocks drawn by chance; the columns are mirrored
_MARGIN: Final = 50  # pixels


def draw_logo(name: str) -> bytes:
    """Return a PNG of 400 x 300 pixels. Equal names have equal logos."""
    digest = hashlib.sha256(name.encode()).digest()
    hue = digest[0] / 256
    ground, ink = (
        np.array([round(255 * part) for part in colorsys.hls_to_rgb(turn % 1, light, 0.6)], np.uint8)
        for turn, light in ((hue, 0.22), (hue + 0.45 + digest[1] / 2560, 0.66))
    )
    bits = np.unpackbits(np.frombuffer(digest[2:4], np.uint8))[: _ROWS * _COLUMNS].reshape(_ROWS, _COLUMNS)
    half = bits.astype(bool)
    half[0, -1] = half[-1, -1] = True  # never empty
    blocks = np.concatenate([half, half[:, ::-1]], axis=1).repeat(_BLOCK, 0).repeat(_BLOCK, 1)
    picture = np.broadcast_to(ground, (_HEIGHT, _WIDTH, 3)).copy()
    picture[_MARGIN : _HEIGHT - _MARGIN, _MARGIN : _WIDTH - _MARGIN][blocks] = ink
    return _png(picture)


def _png(picture: np.ndarray) -> bytes:
    """Return a picture, `(height, width, 3)` uint8 from 0 to 255, as a PNG."""
    height, width, _ = picture.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits of red, green and blue
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
