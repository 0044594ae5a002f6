"""The page in the browser: a match to play or to watch, a recording, a training run.

Nothing here is imported unless it is used; it needs the extra `play`.
"""
