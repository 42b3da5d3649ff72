"""Strangers take no place from verified callers: those that keep the server waiting give way to newcomers,
idle verified callers give way to none of them, and neither the search nor their unread requests cost much."""

import contextlib
import json
import resource
import select
import socket

import pytest

import bearer
from gateway import Gateway
from sockets import is_read
from sampling import sampled
from waiting import until
from wire import Closed, Connection

KIB = 1 << 10
PREFIX = "/countersign/v1"


@pytest.fixture(autouse=True, scope="module")
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Strangers:
    """Connections without a key that send `data` and then read nothing."""

    def __init__(self, gateway: Gateway, data: bytes):
        self.gateway, self.data, self.sockets = gateway, data, []

    def __enter__(self) -> "Strangers":
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self.sockets:
            sock.close()

    def open(self, count: int, address: str) -> None:
        for _ in range(count):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
            sock.bind((address, 0))
            sock.settimeout(2)
            try:
                sock.connect(("127.0.0.1", self.gateway.port))
                sock.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    sock.send(self.data)
                self.sockets.append(sock)
            except OSError:
                sock.close()


class Verified:
    """Idle connections, each from an address of its own, whose latest request was accepted."""

    def __init__(self, gateway: Gateway, key, count: int):
        self.gateway, self.key = gateway, key
        self.connections = []
        self.poll = select.poll()
        for index in range(count):
            connection = from_address(gateway, f"127.1.{index // 250}.{index % 250 + 1}")
            assert status(connection, key) == 200
            self.connections.append(connection)
            self.poll.register(connection.sock, select.POLLIN | select.POLLHUP)

    def __enter__(self) -> "Verified":
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.connections:
            connection.sock.close()

    def ended(self) -> int:
        return len(self.poll.poll(0))


def from_address(gateway: Gateway, address: str) -> Connection:
    return Connection(gateway.port, gateway.context if gateway.is_tls else None, 10, source=address)


def status(connection: Connection, key) -> int:
    connection.send(key.request())
    return connection.answer().status


def newcomers(gateway: Gateway, key, count: int) -> list[object]:
    """The results of that many verified callers that connect and disconnect."""
    found = []
    for index in range(count):
        try:
            with from_address(gateway, f"127.2.0.{index + 1}") as connection:
                found.append(status(connection, key))
        except (Closed, OSError) as error:
            found.append(repr(error))
    return found


def host(gateway: Gateway) -> bytes:
    return b"Host: 127.0.0.1:%d\r\n" % gateway.port


def unread(gateway: Gateway) -> bytes:
    return (b"GET / HTTP/1.1\r\n" + host(gateway) + b"\r\n") * 3000


def unfinished_form(gateway: Gateway) -> bytes:
    return (b"POST /a HTTP/1.1\r\n" + host(gateway) + b"Content-Type: application/x-www-form-urlencoded\r\n"
            b"Content-Length: 1000\r\n\r\napp_id=known&private_key=1")


def unsent_body(gateway: Gateway) -> bytes:
    return b"GET %b/health HTTP/1.1\r\n" % PREFIX.encode() + host(gateway) + b"Content-Length: 10\r\n\r\n"


def unfinished_head(gateway: Gateway) -> bytes:
    return b"GET / HTTP/1.1\r\n" + host(gateway)


@pytest.mark.parametrize("workers", sampled([1, 2], 2))
@pytest.mark.parametrize("make", [unread, unfinished_form, unsent_body, unfinished_head])
def test_strangers_that_hold_every_place_give_way(tmp_path, make, workers):
    with Gateway(tmp_path, "--tls", "off", "--workers", workers, "--limit-connections", 200) as gateway:
        gateway.add_app("demo", schemes="message-signatures,form-md5")
        key = gateway.add_release()
        with Verified(gateway, key, 40) as verified, Strangers(gateway, make(gateway)) as strangers:
            for address in ("127.0.0.2", "127.0.0.3"):
                strangers.open(100, address)
            for index in range(30):
                strangers.open(3, f"127.0.0.{index % 3 + 4}")
            assert len(strangers.sockets) > 200
            assert verified.ended() == 0
            assert newcomers(gateway, key, 20) == [200] * 20
            assert verified.ended() == 0
            for connection in verified.connections:
                assert status(connection, key) == 200


def test_half_a_handshake_gives_way(tmp_path):
    with Gateway(tmp_path, "--workers", 1, "--limit-connections", 200) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
        with Verified(gateway, key, 40) as verified, Strangers(gateway, hello) as strangers:
            for address in ("127.0.0.2", "127.0.0.3", "127.0.0.4"):
                strangers.open(90, address)
            assert newcomers(gateway, key, 20) == [200] * 20
            assert verified.ended() == 0


@pytest.mark.parametrize("workers", sampled([1, 2], 2))
def test_who_proves_nothing_takes_no_place(tmp_path, workers):
    """Verified callers have every place: strangers are answered and ended, a caller takes one place."""
    with Gateway(tmp_path, "--tls", "off", "--workers", workers, "--limit-connections", 100) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        with Verified(gateway, key, 100) as verified:
            held = gateway.sockets()
            with Strangers(gateway, b"") as strangers:
                for index in range(60):
                    strangers.open(1, f"127.0.1.{index % 20 + 1}")
                with from_address(gateway, "127.0.0.9") as connection:
                    connection.send(b"GET / HTTP/1.1\r\n" + host(gateway) + b"\r\n")
                    answer = connection.answer()
                    assert (answer.status, answer.get("connection")) == (401, "close")
                assert verified.ended() == 0
            until(lambda: gateway.sockets() <= held, "the gateway closes the strangers' connections")
            with from_address(gateway, "127.0.0.10") as connection:
                assert status(connection, key) == 200
                assert status(connection, key) == 200
                assert verified.ended() == 1


@pytest.mark.parametrize("path", ["health", "pins/demo"])
@pytest.mark.parametrize("framing", [b"Transfer-Encoding: chunked", b"Content-Length: 10\r\nExpect: 100-continue"])
def test_open_routes_wait_for_no_body(open_routes, path, framing):
    with open_routes.connect(5) as connection:
        line = b"GET %b/%b HTTP/1.1\r\n" % (PREFIX.encode(), path.encode())
        connection.send(line + host(open_routes) + framing + b"\r\n\r\n")
        answer = connection.answer()
        assert answer.status == (404 if path.startswith("pins") else 200)
        assert answer.get("connection") == "close"


@pytest.fixture(scope="module")
def open_routes(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("open"), "--tls", "off") as gateway:
        gateway.add_app("demo")
        yield gateway


def cost_of_newcomers(folder, held: int) -> float:
    """Milliseconds of the server's CPU for 200 strangers that come where half of `held` places are strangers'
    and half idle, verified callers'."""
    with Gateway(folder, "--tls", "off", "--workers", 1, "--limit-connections", held) as gateway:
        gateway.add_app("demo", schemes="message-signatures,form-md5")
        key = gateway.add_release()
        form = unfinished_form(gateway)
        with Verified(gateway, key, held // 2) as verified, Strangers(gateway, form) as strangers:
            for index in range(held // 100):
                strangers.open(50, f"127.0.1.{index + 1}")
            until(lambda: is_read(*strangers.sockets), "the gateway has read what strangers sent")
            before = gateway.busy()
            strangers.open(200, "127.0.0.9")
            until(lambda: is_read(*strangers.sockets), "the gateway has read what newcomers sent")
            cost = gateway.busy() - before
            assert verified.ended() == 0
            return cost


def test_the_search_for_a_place_is_bounded(tmp_path_factory):
    few, many = [cost_of_newcomers(tmp_path_factory.mktemp("cost"), held) for held in (400, 4000)]
    # A search through all places takes ten times as long where there are ten times as many.
    assert many < 3 * few + 40, (few, many)


def test_a_bearer_session_counts_to_its_account(tmp_path):
    with Gateway(tmp_path, "--limit-address-connections", 3) as gateway:
        bearer.add_app(gateway, 1)
        held = []
        with gateway.connect() as connection:
            token = json.loads(bearer.asked(connection, bearer.login(gateway, "user-0"))[1].body)["token"]
            for index in range(8):
                held.append(gateway.connect(5))
                fields = [("authorization", f"Bearer {token}")]
                way = (bearer.bearing(gateway, token) if index % 2 == 0 else
                       gateway.key.request("POST", "/x", b"body", fields=fields))
                assert bearer.asked(held[-1], way)[1].status == 200
        for connection in held:
            connection.sock.close()


@pytest.mark.parametrize("tls", ["off", "auto"])
def test_what_is_read_ahead_is_little(tmp_path, tls):
    with Gateway(tmp_path, "--tls", tls, "--workers", 1) as gateway:
        before, opened = gateway.rss(), []
        requests = unread(gateway)
        for _ in range(400):
            connection = from_address(gateway, "127.0.0.2")
            connection.sock.setblocking(False)
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * KIB)
            opened.append(connection)
        is_taken = True
        while is_taken:
            is_taken = False
            for connection in opened:
                with contextlib.suppress(OSError):
                    is_taken |= connection.sock.send(requests) > 0
            # The one loop has had a turn of each connection when it has answered another one.
            assert gateway.send(b"GET / HTTP/1.1\r\n" + host(gateway) + b"Connection: close\r\n\r\n").status == 401
        grown = gateway.rss() - before
        for connection in opened:
            connection.sock.close()
        assert grown < 400 * (60 if tls == "off" else 120) * KIB, f"{grown // 400} bytes a connection"
