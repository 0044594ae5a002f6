"""Describe which bots a match waits for, with all that is known about them."""

from collections.abc import Callable, Sequence

from rlgym_bridge.server.game.roster import AgentSeat
from rlgym_bridge.server.net.launch import BotProcess


def describe_missing(
    seats: Sequence[AgentSeat],
    is_taken: Callable[[AgentSeat], bool],
    process_of: Callable[[AgentSeat], BotProcess | None],
    timeout: float,
) -> str:
    """Return lines on bots that are missing: what they did not do, and the ends of their logs.

    Args:
        seats: Seats that wait for their bots.
        is_taken: Tells whether a bot has connected for a seat.
        process_of: Returns the process that was started for a seat, None where there is none.
        timeout: Seconds that were waited.
    """
    lines = []
    for seat in seats:
        what = "did not say that it is ready" if is_taken(seat) else "did not connect"
        process = process_of(seat)
        code = process.exit_code if process else None
        if code is not None:
            lines.append(f"{seat.label} {what}: its process ended with exit code {code}")
        else:
            lines.append(f"{seat.label} {what} within {timeout:g} s")
        if process is None:
            lines.append("  you start this bot by hand: is it running, with this agent_id?")
            continue
        lines.append(f"  started with {seat.run_command!r} in {seat.root_dir}")
        tail = process.log_tail or "(nothing)"
        lines.append(f"  its log {process.log_path} ends with:")
        lines += [f"    {line}" for line in tail.splitlines()]
    lines.append("Run the command by hand in that folder to see what is wrong.")
    return "\n".join(lines)
