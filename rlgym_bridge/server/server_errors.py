"""Exceptions of the match server that a caller may catch."""


class ConfigError(ValueError):
    """A match cannot be played as described: unreadable, unknown, inconsistent or unsupported."""


class ServerError(OSError):
    """The server cannot listen on its address and port."""


class MatchCalledOff(RuntimeError):
    """A match could not begin because a bot never connected or never got ready."""
