"""The gateway limits the load on the backend: a bound on connections, a bounded and fair queue for waiting
requests, and a pause for addresses that fail. No request waits without end."""

import concurrent.futures
import json
import pathlib
import socket
import sys
import threading

import pytest

from backend import Backend, ok
from failing import needs_mounts
from gateway import Gateway, gateway_before
from sockets import is_read
from waiting import HANGS, until
from wire import Answer, Connection, Reader


class HeldBackend(Backend):
    """Answers once it is let go, and counts the connections that were open at once."""

    def __init__(self, **options):
        self.most_open, self.go = 0, threading.Event()

        def answer(seen, sock):
            self.most_open = max(self.most_open, len(self.open))
            assert self.go.wait(HANGS)
            ok(seen, sock)

        super().__init__(answer, **options)


class Caller(threading.Thread):
    """One request from an address of its own."""

    def __init__(self, front: Gateway, target: str, address: str = "127.0.0.1"):
        super().__init__(daemon=True)
        self.front, self.target, self.address = front, target, address
        self.answer: Answer | None = None
        self.is_sent = threading.Event()
        self.start()

    def run(self) -> None:
        connection = Connection.__new__(Connection)
        connection.sock = socket.create_connection(("127.0.0.1", self.front.port), HANGS, source_address=(self.address, 0))
        connection.reader = Reader(connection.sock)
        with connection:
            connection.send(self.front.key.request("GET", self.target))
            until(lambda: is_read(connection.sock), "the gateway reads")
            self.is_sent.set()
            self.answer = connection.answer()

    def status(self) -> int:
        self.join(HANGS)
        assert self.answer is not None, f"{self.target}: no answer"
        return self.answer.status


def release(backend: HeldBackend, callers: list[Caller], served: int) -> None:
    """Lets the backend go once it serves so many, and all others wait."""
    until(lambda: len(backend.seen) >= served and all(caller.is_sent.is_set() for caller in callers), "the queue")
    backend.go.set()


def test_the_backend_sees_so_many_connections_and_no_more(tmp_path):
    with HeldBackend() as backend:
        front = gateway_before(backend, tmp_path, "--tls", "off", "--limit-upstream-connections", 3)
        callers = [Caller(front, f"/{number}") for number in range(15)]
        release(backend, callers, 3)
        assert [caller.status() for caller in callers] == [200] * 15
        assert all(caller.answer.body == f"GET {caller.target} 0\n".encode() for caller in callers)
        assert backend.most_open == 3 and len(backend.raw) == 3
        assert front.stop() == 0


def test_the_limit_is_of_all_workers_together(tmp_path):
    with HeldBackend() as backend:
        front = gateway_before(backend, tmp_path, "--tls", "off", "--workers", 2, "--limit-upstream-connections", 3)
        callers = [Caller(front, f"/{number}") for number in range(24)]
        release(backend, callers, 2)
        assert [caller.status() for caller in callers] == [200] * 24
        assert 2 <= backend.most_open <= 3
        assert front.stop() == 0


def test_a_full_queue_is_said_at_once(tmp_path):
    with HeldBackend() as backend:
        front = gateway_before(backend, tmp_path, "--tls", "off", "--limit-upstream-connections", 1, "--limit-upstream-waiting", 2)
        callers = [Caller(front, f"/{number}") for number in range(8)]
        until(lambda: sum(caller.answer is not None for caller in callers) == 5, "those that find the queue full are refused")
        backend.go.set()
        statuses = sorted(caller.status() for caller in callers)
        assert statuses == [200] * 3 + [503] * 5
        for caller in callers:
            if caller.status() == 503:
                assert json.loads(caller.answer.body)["code"] == "unavailable"
                assert int(caller.answer.get("retry-after")) > 0
        # The queue is as good as new.
        assert Caller(front, "/after").status() == 200
        assert len(backend.raw) == 1
        assert front.stop() == 0


def test_nobody_waits_without_end(tmp_path):
    with HeldBackend() as backend:
        front = gateway_before(backend, tmp_path, "--tls", "off", "--limit-upstream-connections", 1, "--deadline-upstream-connect", 1)
        first = Caller(front, "/slow")
        backend.wait(1)
        second = Caller(front, "/waits")
        assert second.status() == 503
        backend.go.set()
        assert first.status() == 200
        assert [seen.target for seen in backend.seen] == ["/slow"]
        assert front.stop() == 0


def test_one_address_does_not_fill_the_queue_against_another(tmp_path):
    with HeldBackend() as backend:
        front = gateway_before(backend, tmp_path, "--tls", "off", "--limit-upstream-connections", 1, "--limit-upstream-waiting", 4)
        greedy = [Caller(front, f"/greedy{number}") for number in range(12)]
        until(lambda: sum(caller.answer is not None for caller in greedy) >= 7, "the queue was never full")
        modest = Caller(front, "/modest", "127.0.0.9")
        release(backend, [modest], 1)
        assert modest.status() == 200
        assert sum(caller.status() == 200 for caller in greedy) == 4
        # It took the next turn but one at the latest, and not the last.
        order = [seen.target for seen in backend.seen]
        assert order.index("/modest") <= 2, order
        assert front.stop() == 0


def test_a_dead_connection_frees_its_place(tmp_path):
    """Places are given up however a connection ends: closed idle, cut in an answer, refused to begin with."""
    turns = iter(range(1_000))

    def fickle(seen, sock):
        turn = next(turns)
        if turn % 3 == 0:
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            sock.shutdown(socket.SHUT_RDWR)
        elif turn % 3 == 1:
            sock.sendall(b"nonsense\r\n\r\n")
        else:
            ok(seen, sock)
            sock.shutdown(socket.SHUT_RDWR)

    with Backend(fickle) as backend:
        front = gateway_before(backend, tmp_path, "--tls", "off", "--limit-upstream-connections", 2)
        for number in range(24):
            with front.connect() as connection:
                connection.send(front.key.request("POST", f"/{number}"))
                connection.is_closed() if number % 3 == 0 else connection.reader.head()
        port = backend.port
    assert front.send(front.key.request("POST", "/down")).status == 502
    with Backend(port=port):
        assert [Caller(front, "/up").status() for _ in range(6)] == [200] * 6
    assert front.stop() == 0


HOSTS = ('mount --bind "$0" /etc/hosts && exec "$@"')


def named(tmp_path, *addresses: str) -> tuple[str, ...]:
    """A start in a mount namespace in which `backends.test` has these addresses."""
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{address} backends.test\n" for address in addresses) + "127.0.0.1 localhost\n")
    return ("unshare", "-m", "sh", "-c", HOSTS, str(hosts))


def closing(seen, sock) -> None:
    """So that each request needs a connection of its own."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    sock.shutdown(socket.SHUT_RDWR)


class At(Backend):
    """A backend at another address of this machine."""

    def __init__(self, address: str, port: int = 0, answer=closing):
        create = socket.create_server
        socket.create_server = lambda where, **options: create((address, where[1]), **options)
        try:
            super().__init__(answer, port=port)
        finally:
            socket.create_server = create


def before_name(tmp_path, port: int, *addresses: str) -> Gateway:
    gateway = Gateway(tmp_path / "gateway", "--tls", "off", "--workers", 1, "--upstream", f"http://backends.test:{port}",
                      "--deadline-upstream-connect", 1)
    gateway.start(prefix=named(tmp_path, *addresses))
    gateway.add_app("demo")
    gateway.key = gateway.add_release()
    return gateway


@needs_mounts
def test_connections_go_to_the_addresses_in_turn(tmp_path):
    with At("127.0.0.2") as one, At("127.0.0.3", one.port) as other:
        front = before_name(tmp_path, one.port, "127.0.0.2", "127.0.0.3")
        for _ in range(8):
            assert front.send(front.key.request()).status == 200
        assert (len(one.seen), len(other.seen)) == (4, 4)
        assert front.stop() == 0


def connecting(address: str, port: int) -> int:
    """How many connections to it wait for an answer. Source: proc_net_tcp(5), SYN_SENT."""
    remote = f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}:{port:04X}"
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2] == remote and row[3] == "02" for row in rows)


@needs_mounts
@pytest.mark.parametrize("dead", ["127.0.0.2", "127.0.0.3"])
def test_a_dead_address_is_left_alone_for_a_while(tmp_path, dead):
    """The dead address accepts no connection and sends no error: a request that tries it waits for a second
    or two."""
    alive = {"127.0.0.2": "127.0.0.3", "127.0.0.3": "127.0.0.2"}[dead]
    with At(alive) as backend, socket.socket() as hole:
        hole.bind((dead, backend.port))
        hole.listen(0)
        # Its queue is full with these, so what comes after them is dropped.
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex((dead, backend.port))
        front = before_name(tmp_path, backend.port, "127.0.0.2", "127.0.0.3")
        tries, fillers_connecting = 0, connecting(dead, backend.port)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            for _ in range(40):
                sent = pool.submit(front.send, front.key.request())
                until(lambda: sent.done() or connecting(dead, backend.port) > fillers_connecting, "a try or a response")
                tries += not sent.done()
                assert sent.result().status == 200
        # It is tried again after 1 s, 2 s, 4 s and so on; in turn, it would be tried by every second request.
        assert 1 <= tries <= 6, tries
        assert front.stop() == 0
        for filler in fillers:
            filler.close()


@needs_mounts
def test_all_dead_and_one_comes_back(tmp_path):
    with socket.create_server(("127.0.0.2", 0)) as unused:
        port = unused.getsockname()[1]
    front = before_name(tmp_path, port, "127.0.0.2", "127.0.0.3")
    for _ in range(6):
        assert front.send(front.key.request()).status == 502
    with At("127.0.0.3", port):
        until(lambda: front.send(front.key.request()).status == 200, "the address that came back is not found")
    assert front.stop() == 0
