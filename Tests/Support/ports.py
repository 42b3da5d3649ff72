"""Ports of loopback that no outgoing connection is given: a server that starts again on one, or a backend that leaves one for a
while, finds it free."""

import random
import socket

# The kernel gives outgoing connections a port from 32768 on (`net.ipv4.ip_local_port_range`).
CANDIDATES = range(12_000, 32_000)
ATTEMPTS = 200


def listening(port: int = 0, address: str = "127.0.0.1") -> socket.socket:
    """A socket that listens, on a port chosen at random unless one is named."""
    for _ in range(ATTEMPTS):
        try:
            return socket.create_server((address, port or random.choice(CANDIDATES)), backlog=256)
        except OSError:
            if port:
                raise
    raise OSError(f"no free port of {address} between {CANDIDATES.start} and {CANDIDATES.stop} after {ATTEMPTS} attempts")


def free_port(address: str = "127.0.0.1") -> int:
    """A port on which nothing listens now."""
    with listening(address=address) as sock:
        return sock.getsockname()[1]
