"""Errors that say how a command ends."""


class Failure(RuntimeError):
    """Something broke that was in order, such as a killed process: a command ends with status 1."""
