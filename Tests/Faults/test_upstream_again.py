"""When the gateway sends a request to the backend a second time, and when not; and that a backend's early answer to a large body arrives.

A kept connection may die between its last answer and the next request. TCP does not tell whether the backend read that request before it went."""

import base64
import hashlib
import json
import socket
import threading

import pytest

from authority import Authority
from backend import Backend, ReadsAndCloses, ok
from gateway import gateway_before
from ports import has_unread
from tls_backend import TLSBackend
from waiting import HANGS, until
from wire import Closed

KEY = [("idempotency-key", "k1")]


def arrived(backend: Backend, target: str) -> int:
    return [seen.target for seen in backend.seen].count(target)


@pytest.mark.parametrize(("method", "fields", "times"), [
    ("GET", [], 2), ("HEAD", [], 2), ("PUT", [], 1), ("DELETE", [], 1), ("POST", [], 1),
    ("PUT", KEY, 1), ("DELETE", KEY, 1), ("POST", KEY, 1),
], ids=lambda value: {"[]": "", str(KEY): "keyed"}.get(str(value), str(value)))
def test_a_request_that_was_read_is_sent_again_only_if_it_is_safe(tmp_path, method, fields, times):
    with Backend(ReadsAndCloses()) as backend:
        front = gateway_before(backend, tmp_path, "--tls", "off")
        assert front.send(front.key.request()).status == 200
        body = b"" if method in ("GET", "HEAD", "DELETE") else b"{}"
        answer = front.send(front.key.request(method, "/again", body, fields=fields), to_head=method == "HEAD")
        assert arrived(backend, "/again") == times
        assert answer.status == (200 if times == 2 else 502)
        if fields:
            # Nor does the caller's own second copy reach the backend.
            again = front.send(front.key.request(method, "/again", body, fields=fields))
            assert (again.status, json.loads(again.body)["code"]) == (503, "unavailable")
            assert arrived(backend, "/again") == 1
        assert front.stop() == 0


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
def test_a_keyed_request_survives_a_connection_that_closed_while_idle(tmp_path, method):
    """Nothing was sent on that one: the request goes out once, on a new connection."""
    with Backend() as backend:
        front = gateway_before(backend, tmp_path, "--tls", "off")
        for number in range(5):
            target, fields = f"/{number}", [("idempotency-key", f"k{number}")]
            assert front.send(front.key.request("GET", "/idle")).status == 200
            backend.cut()
            assert front.send(front.key.request(method, target, b"{}", fields=fields)).status == 200
            assert arrived(backend, target) == 1
        assert front.stop() == 0


def test_a_keyed_body_that_streams_is_not_sent_again_once_the_backend_has_read_of_it(tmp_path):
    """The backend reads the head and some of the body, and goes away."""
    def cut(seen, sock):
        sock.recv(100_000)
        raise Closed

    body = b"x" * (4 << 20)
    with Backend(cut, reads_bodies=False) as backend:
        front = gateway_before(backend, tmp_path, "--tls", "off")
        codes = []
        for _ in range(2):
            with front.connect() as connection:
                connection.send(front.key.request("PUT", "/large", body, fields=KEY))
                answer = connection.answer()
                codes.append((answer.status, json.loads(answer.body)["code"]))
        assert codes == [(502, "upstream-failed"), (503, "unavailable")]
        assert arrived(backend, "/large") == 1
        assert front.stop() == 0


def refusing(behaviour: str, done: list, is_answered: threading.Event):
    """Refuses a large body after its head. The socket's buffers are small, so the gateway cannot be rid of the body."""
    def answer(seen, sock):
        if seen.get("content-length") in (None, "0"):
            return ok(seen, sock)
        if behaviour == "after some of the body":
            sock.recv(50_000)
        connection = b"Connection: close\r\n" if behaviour != "and reads no further" else b""
        done.append(seen.target)
        sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n" + connection + b"\r\nno\n")
        if behaviour == "and reads no further":
            assert is_answered.wait(HANGS)
        elif behaviour == "and closes later":
            until(lambda: has_unread(sock), "the gateway goes on sending the body")
        raise Closed
    return answer


@pytest.mark.parametrize("behaviour", ["and closes", "and closes later", "and reads no further", "after some of the body"])
@pytest.mark.parametrize("size", [12 << 20, 20 << 20], ids=["held", "streamed"])
@pytest.mark.parametrize("kind", ["plain", "tls"])
def test_an_early_answer_arrives(tmp_path, kind, size, behaviour):
    done: list[str] = []
    authority = Authority(tmp_path / "ca")
    is_answered = threading.Event()
    answer = refusing(behaviour, done, is_answered)
    backend = (TLSBackend(*authority.issue("server"), answer, reads_bodies=False) if kind == "tls"
               else Backend(answer, reads_bodies=False))
    with backend:
        # Connections inherit it from the listener.
        backend.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        front = gateway_before(backend, tmp_path, "--tls", "off", "--limit-held-body", 16 << 20,
                               "--limit-address-unproven-bytes", 64 << 20, "--limit-unproven-bytes", 64 << 20,
                               "--deadline-upstream-answer", 3,
                               environment={"SSL_CERT_FILE": str(tmp_path / "ca/ca.pem")})
        body = b"x" * size
        value = base64.b64encode(hashlib.sha256(body).digest()).decode()
        for number in range(2):
            target = f"/early{number}"
            is_answered.clear()
            head = front.key.head("PUT", target, body_digest=f"sha-256=:{value}:", length=f"Content-Length: {size}")
            with front.connect() as connection:
                connection.send(head + body)
                got = connection.answer()
            assert (got.status, got.body) == (413, b"no\n")
            is_answered.set()
            assert done[-1] == target
            # The next caller gets an answer of its own, on another connection: this one has unread bytes in it.
            after = front.send(front.key.request("GET", "/after"))
            assert (after.status, after.body) == (200, b"GET /after 0\n")
        assert front.stop() == 0
