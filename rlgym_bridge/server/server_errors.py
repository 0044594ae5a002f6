"""What can go wrong in the match server, as exceptions that a caller may catch."""


class ConfigError(ValueError):
    """A match cannot be played as described: unreadable, unknown, inconsistent or unsupported."""


class ServerError(OSError):
    """The server cannot listen where it was told to."""


class MatchCalledOff(RuntimeError):
    """A match could not begin because a bot never connected or never got ready."""
