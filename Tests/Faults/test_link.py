"""The proxy of Tests/Support/link.py does to a connection what its mode says."""

import select
import socket
import threading

import pytest

from link import Link
from ports import listening
from waiting import until


@pytest.fixture
def link():
    """To a server that answers each line, and says `end` when its client has sent everything."""
    def serve(sock: socket.socket) -> None:
        try:
            while line := sock.recv(100):
                sock.sendall(line)
            sock.sendall(b"end")
        except OSError:
            pass
        sock.close()

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(sock,), daemon=True).start()

    listener = listening()
    threading.Thread(target=accept, daemon=True).start()
    with Link(listener.getsockname()[1]) as link:
        yield link
    listener.close()


def connect(link: Link) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", link.port), 5)
    sock.sendall(b"1")
    return sock


def test_it_passes_and_cuts(link):
    with connect(link) as sock:
        assert sock.recv(10) == b"1"
        link.set("cut")
        assert sock.recv(10) == b"" and link.touched == 1
    with socket.create_connection(("127.0.0.1", link.port), 5) as sock:
        assert sock.recv(10) == b""
    link.set("pass")
    with connect(link) as sock:
        assert sock.recv(10) == b"1"


@pytest.mark.parametrize("mode", ["delay", "hold"])
def test_it_delays_and_holds(mode, link):
    with connect(link) as sock:
        assert sock.recv(10) == b"1"
        link.set(mode, 3600)
        sock.sendall(b"2")
        until(lambda: link.touched > 0, "the link holds it")
        assert not select.select([sock], [], [], 0)[0]
        link.set("pass")
        assert sock.recv(10) == b"2"
        link.set("delay", 0.01)
        sock.sendall(b"3")
        assert sock.recv(10) == b"3", "a delay ends"


def test_it_half_closes(link):
    with connect(link) as sock:
        assert sock.recv(10) == b"1"
        link.set("half-close")
        assert sock.recv(10) == b"end" and sock.recv(10) == b""
