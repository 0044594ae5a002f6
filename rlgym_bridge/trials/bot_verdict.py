"""Say what one check of a bot found."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class BotVerdict:
    """The result of one check.

    Attributes:
        name: Of the check.
        result: "failure" for what keeps a bot from playing as its files say, "warning" for what its author
            should look at, "not tried" where an earlier failure made it pointless.
        seen: What was seen.
        expected: What should have been seen.
        remedy: What to do; empty where nothing is to be done.
    """

    name: str
    result: Literal["pass", "warning", "failure", "not tried"]
    seen: str
    expected: str
    remedy: str = ""
