"""Deadlines are absolute: a byte a second does not move them. They are shortened here, to be quick."""

import json
import socket
import time

import pytest

from backend import Backend
from gateway import Gateway
from signing import digest
from wire import Closed


@pytest.fixture(scope="module")
def hurried(tmp_path_factory):
    def slow(seen, sock):
        time.sleep(6 if seen.target == "/slow" else 0)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with Backend(slow) as backend, Gateway(
            tmp_path_factory.mktemp("deadlines"), "--upstream", backend.url, "--deadline-head", 2, "--deadline-body", 2,
            "--deadline-idle", 2, "--deadline-upstream-answer", 2) as running:
        running.add_app("demo")
        running.key, running.backend = running.add_release(), backend
        yield running


def drip(connection, data: bytes, seconds: float) -> float:
    """Sends a byte each 0.25 s until the other side ends it; returns how long it took."""
    began = time.monotonic()
    connection.sock.settimeout(0.25)
    for index in range(len(data)):
        connection.send(data[index:index + 1])
        try:
            if not connection.sock.recv(65536):
                break
            connection.reader.buffer = b"answered"
        except TimeoutError:
            continue
        except OSError:
            break
        if time.monotonic() - began > seconds:
            break
    return time.monotonic() - began


@pytest.mark.parametrize("part", ["head", "body", "chunks"])
def test_a_byte_at_a_time_is_cut(hurried, part):
    body, before = b"x" * 1000, hurried.backend.bytes()
    framing = "Transfer-Encoding: chunked" if part == "chunks" else f"Content-Length: {len(body)}"
    head = hurried.key.head("POST", "/drip", body=body, length=framing)
    with hurried.connect() as connection:
        if part != "head":
            connection.send(head)
        took = drip(connection, head if part == "head" else b"3e8\r\n" + body if part == "chunks" else body, 15)
    assert 1 <= took <= 6, f"cut after {took:.1f} s, with a deadline of 2"
    assert hurried.backend.bytes() == before
    assert hurried.send(hurried.key.request()).status == 200


def test_a_connection_that_says_nothing_is_cut(hurried):
    with hurried.connect() as connection:
        began = time.monotonic()
        assert connection.is_closed()
        assert time.monotonic() - began <= 6


def test_an_idle_connection_is_cut(hurried):
    with hurried.connect() as connection:
        connection.send(hurried.key.request())
        assert connection.answer().status == 200
        began = time.monotonic()
        assert connection.is_closed()
        assert 1 <= time.monotonic() - began <= 6


def test_a_handshake_that_never_ends_is_cut(hurried):
    with socket.create_connection(("127.0.0.1", hurried.port), timeout=15) as sock:
        began = time.monotonic()
        sock.sendall(b"\x16\x03\x01")
        try:
            assert sock.recv(10) == b""
        except ConnectionError:
            pass
        assert time.monotonic() - began <= 6


def test_a_late_answer_is_504(hurried):
    answer = hurried.send(hurried.key.request(target="/slow"))
    assert (answer.status, json.loads(answer.body)["code"]) == (504, "upstream-failed")
    assert hurried.send(hurried.key.request()).status == 200


def test_many_slow_clients_do_not_stop_the_others(hurried):
    """Two hundred connections that trickle; a healthy request is answered at once all the while."""
    slow = [hurried.connect() for _ in range(200)]
    try:
        for connection in slow:
            connection.send(b"GET / HTTP/1.1\r\nHost:")
        worst = 0.0
        for _ in range(10):
            began = time.monotonic()
            assert hurried.send(hurried.key.request()).status == 200
            worst = max(worst, time.monotonic() - began)
        assert worst < 1, f"{worst:.2f} s"
        time.sleep(4)
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
    time.sleep(0.5)
    assert len(hurried.backend.seen) == seen, "half a body reached the backend as a whole request"
