"""A kept connection to the backend carries nothing from one caller's exchange into the next, plain and under TLS: what a backend sends that no
request asked for closes the connection, wherever it is held (our buffer, OpenSSL, the socket); TLS's own messages do not."""

import os
import pathlib
import signal
import socket
import threading

import pytest

from authority import Authority
from backend import Backend, ok
from clock import Clock
from gateway import Gateway
from sockets import has_arrived
from tls_backend import TLSBackend, send_key_update, send_session_ticket
from waiting import HANGS, until

STOLEN = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"


def head_answer(sock: socket.socket, *behind: bytes) -> None:
    """Answers a HEAD; `behind` follows in the same segment, each in a TLS record of its own."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    for part in (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(STOLEN), *behind):
        sock.sendall(part)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)


@pytest.fixture(name="front", params=["plain", "tls"])
def start(request, tmp_path):
    """A gateway of one worker before a backend of that kind; `front.backend.answer` is the test's to set."""
    authority = Authority(tmp_path / "ca")
    backend = TLSBackend(*authority.issue("server")) if request.param == "tls" else Backend()
    # The baseline has no setting for it, and OpenSSL's own variable does the same.
    with backend, Gateway(tmp_path / "gateway", "--tls", "off", "--workers", 1, "--upstream", backend.url,
                          environment={"SSL_CERT_FILE": str(authority.path)}, clock=Clock(tmp_path)) as gateway:
        gateway.add_app("demo")
        gateway.key, gateway.backend = gateway.add_release(), backend
        yield gateway


def connections(backend: Backend) -> int:
    return len(backend.raw)


def follows(front: Gateway, target: str) -> None:
    """The next caller gets its own answer."""
    answer = front.send(front.key.request("GET", target))
    assert (answer.status, answer.body) == (200, f"GET {target} 0\n".encode())


@pytest.mark.parametrize("where", ["same write", "same segment", "later", "half a record later"])
def test_bytes_behind_an_answer_reach_no_caller(front, where):
    sent, is_answered, is_spoiled = [], threading.Event(), threading.Event()

    def answer(seen, sock):
        if seen.method != "HEAD":
            return ok(seen, sock)
        sent.append(sock)
        if where == "same write":
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(STOLEN) + STOLEN)
        elif where == "same segment":
            head_answer(sock, STOLEN)
        else:
            head_answer(sock)
            assert is_answered.wait(HANGS)
            if where == "later":
                sock.sendall(STOLEN)
            else:
                # Of TLS, the header of a record and a part of it.
                socket.socket.send(sock, b"\x17\x03\x03\x00\x40half")
            until(lambda: has_arrived(sock), "the bytes do not arrive")
            is_spoiled.set()

    front.backend.answer = answer
    for number in range(3):
        assert front.send(front.key.request("HEAD", f"/{number}"), to_head=True).status == 200
        if "later" in where:
            is_answered.set()
            assert is_spoiled.wait(HANGS)
            is_answered.clear()
            is_spoiled.clear()
        follows(front, f"/{number}")
    assert len(sent) == 3
    assert connections(front.backend) >= 3, "a connection with something behind its answer was used again"


def halt(pid: int) -> None:
    """Stops the process, and waits until each of its threads has stopped."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: all(stat.read_text().rsplit(")", 1)[1].split()[0] == "T" for stat in
                      pathlib.Path(f"/proc/{pid}/task").glob("*/stat")), "it does not stop")


class Afterwards:
    """Answers, and does something more on that connection once it is told to: in the thread that reads it, as OpenSSL asks."""

    def __init__(self, action):
        self.action, self.go, self.done = action, threading.Event(), threading.Event()
        self.connections = 0

    def __call__(self, seen, sock):
        ok(seen, sock)
        if not self.done.is_set():
            self.connections += 1
            assert self.go.wait(60)
            self.action(sock)
            self.done.set()

    def act(self):
        self.go.set()
        assert self.done.wait(60)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_comes_before_the_poller_says_so(front, method):
    """One poll reports 32 descriptors at first. 40 callers come at once, and behind them bytes on the idle
    connection: a request that is served from the first poll must not get the connection that the second
    would have reported."""
    front.backend.answer = poison = Afterwards(lambda sock: sock.sendall(STOLEN))
    follows(front, "/first")
    descriptors = pathlib.Path(f"/proc/{front.process.pid}/fd")
    before = len(list(descriptors.iterdir()))
    callers = [front.connect() for _ in range(40)]
    # The first caller's connection may have been open still.
    until(lambda: len(list(descriptors.iterdir())) >= before + 39, "the gateway does not accept")
    halt(front.process.pid)
    try:
        for number, caller in enumerate(callers):
            caller.send(front.key.request(method, f"/{number}"))
        # What loopback has taken has arrived.
        poison.act()
    finally:
        os.kill(front.process.pid, signal.SIGCONT)
    assert poison.connections == 1
    for number, caller in enumerate(callers):
        answered = caller.answer()
        assert (answered.status, answered.body) == (200, f"{method} /{number} 0\n".encode())
        caller.sock.close()


MESSAGES = {
    "ticket": [send_session_ticket],
    "key update": [send_key_update],
    "key update that asks for another": [lambda sock: send_key_update(sock, ask=True)],
    "all of them": [send_session_ticket, send_key_update, send_session_ticket],
}


@pytest.mark.parametrize("front", ["tls"], indirect=True)
@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("pause", [0, 1.5], ids=["at once", "after a tick"])
def test_messages_of_tls_are_no_data(front, message, pause):
    for number in range(3):
        front.backend.answer = messages = Afterwards(lambda sock: [send(sock) for send in MESSAGES[message]])
        follows(front, f"/{number}")
        messages.act()
        front.clock.advance(pause)
    follows(front, "/last")
    assert connections(front.backend) == 1, "a message of TLS's own closed the connection"


@pytest.mark.parametrize("front", ["tls"], indirect=True)
def test_data_on_an_idle_connection_closes_it(front):
    def spoil(sock):
        send_session_ticket(sock)
        sock.sendall(STOLEN)

    front.backend.answer = spoiled = Afterwards(spoil)
    follows(front, "/1")
    spoiled.act()
    until(lambda: not front.backend.open, "the connection is still open")
    follows(front, "/2")
