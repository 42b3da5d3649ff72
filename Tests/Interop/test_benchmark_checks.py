"""Tools/Benchmarks/load.c and backend.c find every proxy that does less than its work, or another: each run of the
benchmark checks that requests and answers arrived whole, once, and as this request's own."""

import re
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from products import ROOT

sys.path.insert(0, str(ROOT / "Tools/Benchmarks"))

from cases import Backend, Lie, checked  # noqa: E402

pytestmark = pytest.mark.full

REQUESTS, BODY = 40, 6000


def message(stream) -> bytes:
    """One request or answer, or nothing at the end."""
    head = b""
    while line := stream.readline():
        head += line
        if line == b"\r\n":
            break
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    return head + (stream.read(int(length[1])) if length else b"")


@dataclass
class Proxy:
    """Sends each request on, and each answer back, changed by two functions. `answer` also has all answers so far."""
    backend: int
    request: Callable[[bytes], bytes] = lambda whole: whole
    answer: Callable[[bytes, list[bytes]], bytes] = lambda whole, _: whole
    times: int = 1

    def __post_init__(self):
        self.answers: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client: socket.socket) -> None:
        try:
            with client, client.makefile("rb") as asked, \
                    socket.create_connection(("127.0.0.1", self.backend)) as upstream, upstream.makefile("rb") as answers:
                while whole := message(asked):
                    for _ in range(self.times):
                        upstream.sendall(self.request(whole))
                        if not (answer := message(answers)):
                            return
                        self.answers.append(answer)
                    client.sendall(self.answer(self.answers[-1], self.answers))
        except OSError:
            # Load and backend end where they find a fault.
            return


def run(tools, method: str, **lies) -> dict:
    backend = Backend(tools / "backend")
    proxy = Proxy(backend.port, **lies)
    body = BODY if method == "POST" else 0
    try:
        return checked(backend, [tools / "load", "--port", proxy.port, "--scheme", "none", "--requests", REQUESTS,
                                 "--connections", 2, "--body", body, "--answer", 5000], REQUESTS, REQUESTS * body,
                       passed=REQUESTS)
    finally:
        proxy.listener.close()
        backend.stop()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_proxy_that_does_its_work_passes(tools, method):
    assert run(tools, method)["requests"] == REQUESTS


def last(whole: bytes) -> bytes:
    return whole[:-1] + bytes([whole[-1] ^ 1])


# What each does wrong, and the word that tells it.
REQUEST_LIES = {
    "a byte of the body": (last, "whole"),
    "a shorter body": (lambda whole: whole[:-1].replace(b"Content-Length: 6000", b"Content-Length: 5999"), "whole"),
    "no body": (lambda whole: whole.split(b"\r\n\r\n")[0].replace(b"Content-Length: 6000", b"Content-Length: 0")
                + b"\r\n\r\n", "whole"),
    "a field left out": (lambda whole: whole.replace(b"Accept: */*\r\n", b""), "whole"),
    "a field changed": (lambda whole: whole.replace(b"en;q=0.8", b"en;q=0.9"), "whole"),
    "a value in another field": (lambda whole: whole.replace(b"Accept: */*\r\nAccept-Encoding: identity",
                                                             b"Accept: identity\r\nAccept-Encoding: */*"), "whole"),
    "another method": (lambda whole: whole.replace(b"POST ", b"PUT ", 1), "whole"),
    "another query": (lambda whole: whole.replace(b"page=2", b"page=3", 1), "whole"),
    "another number": (lambda whole: re.sub(rb"n=\d{8}", b"n=00000003", whole, count=1), "whole"),
    "chunks": (lambda whole: whole.split(b"\r\n\r\n")[0].replace(b"Content-Length: 6000", b"Transfer-Encoding: chunked")
               + b"\r\n\r\n0\r\n\r\n", "backend: chunks"),
}
ANSWER_LIES = {
    "a byte of the body": (lambda whole, _: last(whole), "changed"),
    "a byte in the middle of the body": (lambda whole, _: whole[:-2000] + b"y" + whole[-1999:], "changed"),
    "a shorter body": (lambda whole, _: whole[:-1].replace(b"Content-Length: 5000", b"Content-Length: 4999"), "whole"),
    "a field left out": (lambda whole, _: whole.replace(b"Cache-Control: no-store\r\n", b""), "without a field"),
    "a field changed": (lambda whole, _: whole.replace(b"no-store", b"no-cache"), "head of another"),
    "a field twice": (lambda whole, _: whole.replace(b"Cache-", b"Cache-Control: no-store\r\nCache-"), "twice"),
    "the first answer kept for all": (lambda whole, answers: answers[0], "another"),
    "another status": (lambda whole, _: whole.replace(b"200 OK", b"502 Bad", 1), "status"),
    "bytes behind the answer": (lambda whole, _: whole + b"x", "behind"),
}


@pytest.mark.parametrize("name", REQUEST_LIES)
def test_a_changed_request_is_found(tools, name):
    change, said = REQUEST_LIES[name]
    with pytest.raises(Lie, match=said):
        run(tools, "POST", request=change)


@pytest.mark.parametrize("name", ANSWER_LIES)
def test_a_changed_answer_is_found(tools, name):
    change, said = ANSWER_LIES[name]
    with pytest.raises(Lie, match=said):
        run(tools, "GET", answer=change)


def test_a_request_that_is_sent_twice_is_found(tools):
    with pytest.raises(Lie, match="the backend had {'requests': 80"):
        run(tools, "GET", times=2)


def test_a_request_that_is_not_sent_is_found(tools):
    """The answer is right, to the byte, and the backend did not make it."""
    backend = Backend(tools / "backend")
    other = Backend(tools / "backend")
    proxy = Proxy(other.port)
    try:
        with pytest.raises(Lie, match="the backend had {'requests': 0"):
            checked(backend, [tools / "load", "--port", proxy.port, "--scheme", "none", "--requests", REQUESTS,
                              "--connections", 2], REQUESTS, 0, passed=REQUESTS)
    finally:
        proxy.listener.close()
        backend.stop()
        other.stop()
