"""Ports of loopback that belong to one test."""

import fcntl
import socket
import subprocess
import sys
import termios

import processes


def reserve_port(address: str = "127.0.0.1") -> int:
    """A port that no other process is given, for a server that listens on it, ends, and starts again.

    A socket stays bound to the port until the test or fixture ends, and does not listen: connections are refused
    while no server listens. Linux lets sockets with SO_REUSEADDR bind to the same port as long as none of the
    others listens, and gives a bound port neither to `bind` with port 0 nor to an outgoing connection."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    processes.current().at_end(sock.close)
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        sock.setsockopt(socket.SOL_SOCKET, option, 1)
    sock.bind((address, 0))
    return sock.getsockname()[1]


def listens(port: int, process: subprocess.Popen) -> bool:
    """Whether the process, which must run, listens on the port."""
    assert process.poll() is None, f"exit {process.returncode}"
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def has_unread(sock: socket.socket) -> bool:
    """Whether bytes have arrived that this process has not read. Source: tcp(7), SIOCINQ."""
    return int.from_bytes(fcntl.ioctl(sock.fileno(), termios.FIONREAD, bytes(4)), sys.byteorder) > 0


def listening(port: int = 0, address: str = "127.0.0.1") -> socket.socket:
    """A socket that listens, on a free port unless one is named."""
    return socket.create_server((address, port), backlog=256)
