"""The head of a backend's answer reaches the client whole or not at all: no byte of a body is ever read as a
header line."""

import json
import socket

import pytest

from backend import Backend, Seen
from gateway import Gateway
from wire import Connection

# The most that an answer's head may have, which leaves 4 KiB for what the gateway adds.
MOST = 60 << 10
BODY = b"\r\nX-Injected: from-the-body\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nFORGED!"


def padded(size: int) -> bytes:
    """An answer's head of `size` bytes, its length last."""
    head, end = b"HTTP/1.1 200 OK\r\n", b"Content-Length: %d\r\n\r\n" % len(BODY)
    left, number = size - len(head) - len(end), 0
    while left:
        count = 1_000 if left > 1_100 else left
        line = b"X-%03d: " % number
        head += line + b"v" * (count - len(line) - 2) + b"\r\n"
        left, number = left - count, number + 1
    assert len(head + end) == size
    return head + end


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    """A backend whose answer's head has as many bytes as the path says: `/SIZE/one-piece`, `/SIZE/two-pieces`."""

    def answer(seen: Seen, sock: socket.socket) -> None:
        _, size, pieces = seen.target.split("/")
        message = padded(int(size)) + BODY
        cut = len(message) if pieces == "one-piece" else 30_000
        sock.sendall(message[:cut])
        sock.sendall(message[cut:])

    with Backend(answer) as backend:
        folder = tmp_path_factory.mktemp("gateway")
        gateway = Gateway(folder, "--tls", "off", "--upstream", backend.url).start()
        gateway.add_app("demo")
        gateway.key = gateway.add_release()
        yield gateway
        assert gateway.stop() == 0


@pytest.mark.parametrize("pieces", ["one-piece", "two-pieces"])
def test_a_head_at_the_limit_is_whole(front, pieces):
    reply = front.send(front.key.request("GET", f"/{MOST}/{pieces}"))
    assert reply.status == 200 and reply.body == BODY
    assert sum(name.startswith("x-") for name, _ in reply.fields) >= 60 and reply.get("x-injected") is None


@pytest.mark.parametrize("pieces", ["one-piece", "two-pieces"])
@pytest.mark.parametrize("size", [MOST + 1, 65_536])
def test_a_larger_head_is_the_backends_failure(front, size, pieces):
    with Connection(front.port) as connection:
        connection.send(front.key.request("GET", f"/{size}/{pieces}"))
        reply = connection.answer()
        assert reply.status == 502 and json.loads(reply.body)["code"] == "upstream-failed"
        # The next answer on the connection is the gateway's, and nothing of the body stands before it.
        connection.send(front.key.request("GET", f"/{MOST}/{pieces}"))
        assert connection.answer().body == BODY
