"""Parse the `.cfg` files of RLBot v4."""

import configparser
from typing import Final

from rlgym_bridge.server.config.toml_lines import Source
from rlgym_bridge.server.server_errors import ConfigError
from rlgym_bridge.user_input.arguments import shorten_text

_MOST_IN_LINE: Final = 1000  # characters: configparser takes time with the square of the spaces in a line
_NO_DEFAULTS: Final = "\n"  # no section has this name: v4 has no defaults, and each section would repeat them


def parse_cfg(source: Source) -> configparser.ConfigParser:
    """Return the sections of a v4 file.

    Args:
        source: The file.

    Raises:
        ConfigError: It is no valid cfg file, or has a line of more than 1,000 characters.
    """
    parser = configparser.ConfigParser(
        interpolation=None, inline_comment_prefixes=("#", ";"), default_section=_NO_DEFAULTS
    )
    for number, line in enumerate(source.text.splitlines(), 1):
        if len(line) > _MOST_IN_LINE:
            problem = f"has {len(line):,} characters, expected {_MOST_IN_LINE:,} at most"
            raise ConfigError(f"{source.path}:{number}: the line {problem}")
    try:
        parser.read_string(source.text, source=str(source.path))
    except configparser.Error as error:
        raise ConfigError(f"{source.path}: no valid cfg file: {shorten_text(str(error), 300)}") from error
    return parser
