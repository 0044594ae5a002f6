"""Play a policy as `python -m rlgym_bridge.live` does, and write what the process did before each answer.

`python -m tools.watched_bot FILE POLICY` writes JSON to FILE when the match is over.
"""

import json
import sys
from pathlib import Path

from rlgym_bridge.live.play import play  # isort: skip  (the first: it sets numpy's threads)
from rlgym_bridge.live.session import BotSession
from tools.thread_watch import ThreadWatch


def watched_bot(policy: str, target: Path) -> int:
    """Play a match; write samples of the moments at which a packet had come and its answer had been sent."""
    watch = ThreadWatch()
    arrived = watch.read()
    receive, answer = BotSession._receive, BotSession._answer

    def note_packet(session: BotSession) -> list[bytes]:
        nonlocal arrived
        messages = receive(session)
        arrived = watch.read()
        return messages

    def note_answer(session: BotSession) -> None:
        was_due = session._newest is not None
        answer(session)
        if was_due:
            watch.note(arrived, watch.read())

    BotSession._receive = note_packet  # type: ignore[method-assign]
    BotSession._answer = note_answer  # type: ignore[method-assign]
    code = play(policy, folder=None)
    target.write_text(json.dumps({"answers": list(watch.samples), "imported": watch.imported}))
    return code


if __name__ == "__main__":
    sys.exit(watched_bot(sys.argv[2], Path(sys.argv[1])))
