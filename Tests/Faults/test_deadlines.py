"""Deadlines are absolute: a byte a second does not move them. They are shortened here, to be quick."""

import json
import socket
import ssl

import pytest

from backend import Backend
from clock import Clock
from gateway import Gateway
from signing import digest
from waiting import HANGS, until
from wire import Closed


@pytest.fixture(scope="module")
def hurried(tmp_path_factory):
    clock = Clock(tmp_path_factory.mktemp("clock"))

    def slow(seen, sock):
        if seen.target == "/slow":
            clock.advance(3)
            # The gateway closes the connection.
            sock.settimeout(HANGS)
            sock.recv(1)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with Backend(slow) as backend, Gateway(
            tmp_path_factory.mktemp("deadlines"), "--upstream", backend.url, "--deadline-head", 2, "--deadline-body", 2,
            "--deadline-idle", 2, "--deadline-upstream-answer", 2, clock=clock) as running:
        running.add_app("demo")
        running.key, running.backend = running.add_release(), backend
        yield running


def drip(gateway: Gateway, connection, data: bytes) -> None:
    """Sends a byte each 0.25 s for three seconds, and then as the server reads them, until the other side ends it."""
    began, sent = gateway.time(), iter(data)
    connection.sock.setblocking(False)

    def is_cut() -> bool:
        if gateway.time() - began < 3:
            gateway.clock.advance(0.25)
        try:
            connection.sock.send(bytes([next(sent)]))
            return connection.sock.recv(65536) == b""
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError:
            return True

    until(is_cut, "each byte moves the deadline")
    assert gateway.time() - began >= 1


@pytest.mark.parametrize("part", ["head", "body", "chunks"])
def test_a_byte_at_a_time_is_cut(hurried, part):
    body, before = b"x" * 10_000, hurried.backend.bytes()
    framing = "Transfer-Encoding: chunked" if part == "chunks" else f"Content-Length: {len(body)}"
    head = hurried.key.head("POST", "/drip", body=body, length=framing)
    with hurried.connect() as connection:
        if part != "head":
            connection.send(head)
        drip(hurried, connection, head if part == "head" else b"2710\r\n" + body if part == "chunks" else body)
    assert hurried.backend.bytes() == before
    assert hurried.send(hurried.key.request()).status == 200


def test_a_connection_that_says_nothing_is_cut(hurried):
    with hurried.connect() as connection:
        hurried.clock.advance(3)
        assert connection.is_closed()


def test_an_idle_connection_is_cut(hurried):
    with hurried.connect() as connection:
        connection.send(hurried.key.request())
        assert connection.answer().status == 200
        hurried.clock.advance(3)
        assert connection.is_closed()


def test_a_handshake_that_never_ends_is_cut(hurried):
    with socket.create_connection(("127.0.0.1", hurried.port), timeout=15) as sock:
        sock.sendall(b"\x16\x03\x01")
        hurried.clock.advance(3)
        try:
            assert sock.recv(10) == b""
        except ConnectionError:
            pass


def test_a_late_answer_is_504(hurried):
    answer = hurried.send(hurried.key.request(target="/slow"))
    assert (answer.status, json.loads(answer.body)["code"]) == (504, "upstream-failed")
    assert hurried.send(hurried.key.request()).status == 200


def test_many_slow_clients_do_not_stop_the_others(hurried):
    """Two hundred connections that trickle; a healthy request is answered all the while."""
    slow = [hurried.connect() for _ in range(200)]
    try:
        for connection in slow:
            connection.send(b"GET / HTTP/1.1\r\nHost:")
        for _ in range(10):
            assert hurried.send(hurried.key.request()).status == 200
        hurried.clock.advance(4)
        assert all(connection.is_closed() for connection in slow)
    finally:
        for connection in slow:
            connection.sock.close()


def test_a_large_body_that_stalls_is_cut(hurried):
    """A streamed body: the backend's request is cut as well, and is never complete."""
    size = 4 << 20
    with hurried.connect() as connection:
        connection.send(hurried.key.head("PUT", "/big", body_digest=digest(b"?"), length=f"Content-Length: {size}"))
        connection.send(b"x" * (size // 2))
        seen = len(hurried.backend.seen)
        try:
            # 2 s, and a second for each 32 KiB of 4 MiB: far away; the stall is what ends it, or the client's patience.
            connection.sock.settimeout(3)
            connection.answer()
        except (Closed, TimeoutError):
            pass
    # Whatever the gateway sent earlier has reached the backend, too.
    assert hurried.send(hurried.key.request()).status == 200
    assert len(hurried.backend.seen) == seen + 1, "half a body reached the backend as a whole request"
