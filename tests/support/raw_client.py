"""Clients of a lobby that speak the protocol themselves, message by message."""

import socket

from rlbot import flat


class RawClient:
    """A client that speaks the protocol byte by byte."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5.0)
        self.buffer = b""

    def send(self, *messages):
        for message in messages:
            payload = flat.InterfacePacket(message).pack()
            self.socket.sendall(len(payload).to_bytes(2, "big") + payload)

    def receive(self):
        """Return the next message; None when the server has closed."""
        header = self.exactly(2)
        if header is None:
            return None
        return flat.CorePacket.unpack(self.exactly(int.from_bytes(header, "big"))).message

    def exactly(self, count):
        while len(self.buffer) < count:
            data = self.socket.recv(65536)
            if not data:
                return None
            self.buffer += data
        result, self.buffer = self.buffer[:count], self.buffer[count:]
        return result


def connect(lobby, *messages):
    client = RawClient(lobby.clients.listener.getsockname()[1])
    client.send(*messages)
    settle(lobby)
    return client


def heard(lobby, client):
    """Return the messages that a client has been sent so far."""
    client.send(flat.PingRequest(cookie=1))
    settle(lobby)
    messages = []
    while not isinstance(message := client.receive(), flat.PingResponse):
        assert message is not None, f"the server closed the connection after {messages}"
        messages.append(message)
    return messages


def settle(lobby):
    """Let everything arrive."""
    for _ in range(20):
        lobby.clients.pump(0.005)


def agent(kind="ball", close=True):
    return flat.ConnectionSettings(
        agent_id=f"test/{kind}", wants_ball_predictions=False, wants_comms=False, close_between_matches=close
    )
