"""Ports of loopback that no outgoing connection is given: a server that starts again on one, or a backend that leaves one for a
while, finds it free."""

import os
import random
import socket

# The kernel gives outgoing connections a port from 32768 on (`net.ipv4.ip_local_port_range`). Each worker of a parallel run
# has its own part, so that none takes a port that another has found free and not yet used.
PARTS, PART = 8, 2_500
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PARTS
CANDIDATES = range(12_000 + WORKER * PART, 12_000 + (WORKER + 1) * PART)
ATTEMPTS = 200
given: set[int] = set()


def listening(port: int = 0, address: str = "127.0.0.1") -> socket.socket:
    """A socket that listens, on a port chosen at random unless one is named. One that was chosen is not chosen again soon."""
    for _ in range(ATTEMPTS):
        candidate = port or random.choice(CANDIDATES)
        if not port and candidate in given:
            continue
        try:
            sock = socket.create_server((address, candidate), backlog=256)
        except OSError:
            if port:
                raise
            continue
        if len(given) > PART // 2:
            given.clear()
        given.add(candidate)
        return sock
    raise OSError(f"no free port of {address} between {CANDIDATES.start} and {CANDIDATES.stop} after {ATTEMPTS} attempts")


def free_port(address: str = "127.0.0.1") -> int:
    """A port on which nothing listens now."""
    with listening(address=address) as sock:
        return sock.getsockname()[1]
