"""Draws what a command printed: `python -m tools.terminal_picture TYPESCRIPT OUT.svg`.

The pictures in the documentation are of these commands, run in a terminal of 100 columns (`stty cols 100`):

    script -qc "rlgym-bridge match rlbot.cfg --pace lockstep" match.txt
    script -qc "rlgym-bridge train --out runs/mine" train.txt
    python -m tools.terminal_picture match.txt docs/pictures/match.svg
    python -m tools.terminal_picture train.txt docs/pictures/training.svg
"""

import argparse
import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

_FORMAT = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)  # fonts of other sites
_WIDEST = 88  # columns; longer lines are broken, so that the picture can be read
_ESCAPE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


def main() -> None:
    """Read what `script` wrote, and draw the last screen of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("typescript", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--title", default="")
    parser.add_argument(
        "--skip", default="started ", help="leave out lines of the log, which have this in them"
    )
    options = parser.parse_args()
    written = options.typescript.read_bytes().decode("utf-8", "replace")
    lines = [line for line in screen(written) if options.skip not in line]
    while lines and not lines[-1].strip():
        lines.pop()
    width = min(_WIDEST, max(len(_ESCAPE.sub("", line).rstrip()) for line in lines))
    console = Console(
        record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    for line in lines:
        console.print(Text.from_ansi(line.rstrip()), overflow="fold")
    options.out.write_text(console.export_svg(title=options.title, code_format=_FORMAT), encoding="utf-8")


def screen(written: str) -> list[str]:
    """Return the lines that a terminal shows in the end; colours stay in them."""
    body = written.split("\n", 1)[1] if written.startswith("Script started") else written
    body = body.split("\nScript done", 1)[0]
    lines, row, column = [""], 0, 0
    position = 0
    while position < len(body):
        escape = _ESCAPE.match(body, position)
        if escape:
            count, kind = escape.group(1), escape.group(2)
            position = escape.end()
            if kind == "A":
                row = max(0, row - int(count or 1))
            elif kind == "K":
                lines[row] = ""
            elif kind == "m":
                lines[row] += escape.group(0)
            continue
        letter = body[position]
        position += 1
        if letter == "\n":
            row, column = row + 1, 0
            if row == len(lines):
                lines.append("")
        elif letter == "\r":
            column = 0
        elif letter >= " ":
            if column == 0:  # written over from its beginning on: what is shorter pads with spaces
                lines[row] = ""
            lines[row] += letter
            column += 1
    return lines


if __name__ == "__main__":
    main()
