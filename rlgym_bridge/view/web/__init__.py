"""The page in the browser: a match to play or to watch, a recording, a training run.

Nothing here is imported unless it is used; it needs the extra `play`.
"""

from typing import Final

READY: Final = "ready "
"""The process of `shown_run` prints this and the page's address once it shows a run, else why it does not."""
