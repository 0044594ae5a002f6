"""The commands that a newcomer enters first name what is there."""

import re
import tomllib

from tests.support.documentation import ROOT, blocks, command_lines


def test_three_windows_commands_install_and_play() -> None:
    first = [block for block in blocks("bat") if "-m venv" in block.text]
    assert len(first) == 2 and first[0].text == first[1].text  # README and its page
    make, install, play = command_lines(first[0])
    supported = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    version = re.search(r"-(3\.\d+) ", make)
    assert version and supported.startswith(f">={version[1]},")
    assert "-c constraints.txt -e ." in install and (ROOT / "constraints.txt").is_file()
    assert (ROOT / play.split()[2]).is_file()
