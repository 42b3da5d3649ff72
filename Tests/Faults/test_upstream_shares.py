"""No caller can keep the backend's connections from others: neither with heads alone, nor with stalled
bodies, nor with unread responses. A caller alone may use all of them."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from backend import Backend, Seen, ok
from gateway import Gateway
from signing import digest
from waiting import until
from wire import Connection, Reader

CONNECTIONS = 16
SHARE = CONNECTIONS // 8
FIRST_PART = 64 << 10
# Over the limit of held bodies, so it streams.
BODY = bytes(2 << 20)
LONG_ANSWER = bytes(8 << 20)
GREEDY = "127.0.0.2"


def answer(seen: Seen, sock: socket.socket) -> None:
    if seen.target != "/long":
        return ok(seen, sock)
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(LONG_ANSWER) + LONG_ANSWER)


class Site:
    """A gateway with few connections to its backend, and callers from addresses of their own."""

    def __init__(self, folder, *options: object):
        self.open = ExitStack()
        self.backend = self.open.enter_context(Backend(answer))
        self.gateway = Gateway(folder, "--tls", "off", "--upstream", self.backend.url, "--workers", 1,
                               "--limit-upstream-connections", CONNECTIONS, *options).start()
        self.gateway.add_app("demo")
        self.key = self.gateway.add_release()

    def connect(self, source: str, receives: int | None = None) -> Connection:
        connection = Connection.__new__(Connection)
        sock = self.open.enter_context(socket.socket())
        if receives:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        sock.settimeout(30)
        sock.bind((source, 0))
        sock.connect(("127.0.0.1", self.gateway.port))
        connection.sock, connection.reader = sock, Reader(sock)
        return connection

    def upload(self, source: str, sent: int) -> Connection:
        """A body of which so many bytes come."""
        connection = self.connect(source)
        length = f"Content-Length: {len(BODY)}"
        head = self.key.head("POST", "/upload", body_digest=digest(BODY), length=length)
        connection.send(head + BODY[:sent])
        return connection

    def others(self, count: int = 8) -> list[int]:
        """The statuses of requests that come at once, each from its own address."""
        connections = [self.connect(f"127.0.1.{number + 1}") for number in range(count)]
        for number, connection in enumerate(connections):
            connection.send(self.key.request("GET", f"/{number}"))
        return [connection.answer().status for connection in connections]

    def wait_for_connections(self, count: int) -> None:
        until(lambda: len(self.backend.open) >= count, lambda: f"{len(self.backend.open)} connections of {count} are in use")


@contextmanager
def site(tmp_path, *options: object) -> Iterator[Site]:
    made = Site(tmp_path / "gateway", *options)
    with made.open:
        yield made
        assert made.gateway.process.poll() is None
    assert made.gateway.stop() == 0


def test_a_head_holds_no_connection(tmp_path):
    with site(tmp_path) as front:
        held = [front.upload(GREEDY, sent=0) for _ in range(4 * CONNECTIONS)]
        assert front.others() == [200] * 8
        # The backend has heard of none of them.
        assert all(seen.target != "/upload" for seen in front.backend.seen)
        assert not any(b"/upload" in record for record in front.backend.raw)
        # They are served all the same once their bodies come.
        held[0].send(BODY)
        assert held[0].answer().status == 200


def test_bodies_that_stall_give_way(tmp_path):
    with site(tmp_path) as front:
        held = [front.upload(GREEDY, sent=FIRST_PART) for _ in range(2 * CONNECTIONS)]
        front.wait_for_connections(CONNECTIONS)
        assert front.others() == [200] * 8
        # Uploads that were ended get a refusal; a caller within its share is not ended so soon.
        ended = [connection for connection in held if is_answered(connection)]
        assert ended
        for connection in ended:
            refusal = connection.answer()
            assert refusal.status == 503 and json.loads(refusal.body)["code"] == "unavailable"
            assert int(refusal.get("retry-after")) > 0


def is_answered(connection: Connection) -> bool:
    connection.sock.settimeout(0.05)
    try:
        return bool(connection.sock.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False
    finally:
        connection.sock.settimeout(30)


def test_answers_that_are_not_read_give_way(tmp_path):
    with site(tmp_path) as front:
        held = [front.connect(GREEDY, receives=4_096) for _ in range(CONNECTIONS)]
        for connection in held:
            connection.send(front.key.request("GET", "/long"))
        front.wait_for_connections(CONNECTIONS)
        # So that each answer is on its way, and more of it than the sockets hold.
        for connection in held:
            assert connection.reader.head()[0].startswith("HTTP/1.1 200")
        assert front.others() == [200] * 8


def test_who_is_alone_has_all_connections(tmp_path):
    with site(tmp_path, "--deadline-upstream-connect", 3) as front:
        held = [front.upload(GREEDY, sent=FIRST_PART) for _ in range(CONNECTIONS)]
        front.wait_for_connections(CONNECTIONS)
        # Its own further requests wait, and end none of its bodies.
        further = front.connect(GREEDY)
        further.send(front.key.request("GET", "/further"))
        assert further.answer().status == 503
        assert not any(is_answered(connection) for connection in held)
        for connection in held:
            connection.send(BODY[FIRST_PART:])
        assert [connection.answer().status for connection in held] == [200] * CONNECTIONS


def test_a_body_within_its_share_stays(tmp_path):
    """Slow, but not as good as still: it has its share while another holds more."""
    with site(tmp_path) as front:
        modest = front.upload("127.0.0.9", sent=FIRST_PART)
        front.wait_for_connections(1)
        held = [front.upload(GREEDY, sent=FIRST_PART) for _ in range(2 * CONNECTIONS)]
        front.wait_for_connections(CONNECTIONS)
        assert front.others(4) == [200] * 4
        assert not is_answered(modest) and any(is_answered(connection) for connection in held)
        modest.send(BODY[FIRST_PART:])
        assert modest.answer().status == 200


@pytest.mark.parametrize("pieces", [1, 2])
def test_the_first_part_arrives_in_its_place(tmp_path, pieces):
    """Whole, also where the body ends within it."""
    with site(tmp_path, "--limit-held-body", 4_096) as front:
        for size in (5_000, FIRST_PART - 1, FIRST_PART, FIRST_PART + 1, 300_000):
            body = bytes(index % 251 for index in range(size))
            with front.connect("127.0.0.3") as connection:
                head = front.key.head("POST", "/upload", body=body)
                connection.send(head)
                for index in range(pieces):
                    connection.send(body[index * size // pieces:(index + 1) * size // pieces])
                assert connection.answer().status == 200
            assert front.backend.wait(1)[-1].body == body


def test_a_client_that_goes_away_in_the_first_part_leaves_nothing(tmp_path):
    with site(tmp_path) as front:
        for _ in range(2 * CONNECTIONS):
            front.upload(GREEDY, sent=1_000).sock.close()
        assert front.others() == [200] * 8
        assert all(b"/upload" not in record for record in front.backend.raw)
