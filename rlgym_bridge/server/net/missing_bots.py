"""Find out which bots a match waits for, and why they do not come."""

from collections.abc import Callable, Iterable, Sequence

from rlgym_bridge.server.game.roster import AgentSeat
from rlgym_bridge.server.net.launch import BotProcess
from rlgym_bridge.server.net.lobby import Lobby
from rlgym_bridge.server.server_errors import AbsentBot


def find_strangers(lobby: Lobby, seats: Iterable[AgentSeat]) -> tuple[str, ...]:
    """Return the agent ids under which processes of this match have connected, and which it does not have.

    Args:
        lobby: The connections.
        seats: All seats of the match.
    """
    known = {seat.agent_id for seat in seats}
    strangers = {
        client.agent_id
        for client in lobby.clients.everyone
        if client.agent_id and client.agent_id not in known and lobby.admission.has_started(client)
    }
    return tuple(sorted(strangers))


def describe_absent(
    seats: Sequence[AgentSeat],
    lobby: Lobby,
    process_of: Callable[[AgentSeat], BotProcess | None],
    strangers: tuple[str, ...],
) -> list[AbsentBot]:
    """Return all that is known about bots that a match waits for.

    Args:
        seats: Of the missing bots.
        lobby: The connections.
        process_of: Returns the process that was started for a seat; None where there is none.
        strangers: What `find_strangers` has found.
    """
    absent = []
    for seat in seats:
        process = process_of(seat)
        absent.append(
            AbsentBot(
                car=seat.index,
                label=seat.label,
                started_with=f"{seat.run_command!r} in {seat.root_dir}" if process else None,
                connected=lobby.is_taken(seat),
                exit_code=process.exit_code if process else None,
                log_path=str(process.log_path) if process else None,
                log_tail=process.log_tail if process else "",
                strangers=strangers,
            )
        )
    return absent


def explain_absence(absent: Iterable[AbsentBot], timeout: float) -> str:
    """Return in lines why a match does not begin.

    Args:
        absent: The missing bots.
        timeout: How long they are waited for, s.
    """
    lines = []
    for bot in absent:
        what = "did not say that it is ready" if bot.connected else "did not connect"
        if bot.exit_code is not None:
            lines.append(f"{bot.label} {what}: its process ended with exit code {bot.exit_code}")
        elif bot.strangers and not bot.connected:
            ids = ", ".join(map(repr, bot.strangers))
            lines.append(f"{bot.label} {what}: a process of this match came as agent_id {ids}")
        else:
            lines.append(f"{bot.label} {what} within {timeout:g} s")
        if bot.started_with is None:
            lines.append("  you start this bot by hand: is it running, with this agent_id?")
            continue
        lines.append(f"  started with {bot.started_with}")
        lines.append(f"  its log {bot.log_path} ends with:")
        lines += [f"    {line}" for line in (bot.log_tail or "(nothing)").splitlines()]
    lines.append("Run the command by hand in that folder to see what is wrong.")
    return "\n".join(lines)
