"""The engine is fair before anyone is known: no connection or address holds a loop, all slots, all memory for bodies or
all descriptors; SIGTERM and deadlines run during an attack; and what an answer announces of its connection is done."""

import contextlib
import json
import re
import select
import signal
import socket
import ssl
import threading
import time
import urllib.request

import pytest

from backend import Backend, Seen
from clock import Clock
from gateway import Gateway
from ports import reserve_port
from waiting import HANGS, until
from wire import Closed, Connection, Reader

MIB = 1 << 20
ATTACKER, ORDINARY, OTHER = "127.0.0.2", "127.0.0.3", "127.0.0.4"


class Measured(Gateway):
    """A gateway with one loop and an admin listener, so that an attack that blocks the loop blocks the
    server."""

    def __init__(self, folder, *options: object, **more):
        self.admin_port = reserve_port()
        super().__init__(folder, "--workers", 1, "--admin", f"127.0.0.1:{self.admin_port}", "--deadline-drain", 2,
                         *options, **more)

    def ask(self, path: str, **fields: str) -> bytes:
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}{path}", headers=fields)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def metric(self, name: str) -> int:
        token = (self.data / "admin-token").read_text().strip()
        text = self.ask("/metrics", Authorization=f"Bearer {token}").decode()
        return int(re.search(rf"^countersign_{name} (\d+)$", text, re.MULTILINE)[1])

    def from_address(self, address: str, timeout: float = 20) -> Connection:
        """A connection whose client has another address; all of 127.0.0.0/8 is this machine."""
        connection = Connection.__new__(Connection)
        sock = socket.create_connection(("127.0.0.1", self.port), timeout, source_address=(address, 0))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.is_tls:
            sock = self.context.wrap_socket(sock, server_hostname="127.0.0.1")
        connection.sock, connection.reader = sock, Reader(sock)
        return connection


class Hogs:
    """Connections that send pipelined requests as fast as they are taken, and read the answers. Another takes the place of one that
    the gateway has ended, as it does after 10,000 requests."""

    def __init__(self, gateway: Measured, count: int):
        self.read, self.gateway = 0, gateway
        self.connections = [gateway.from_address(ATTACKER) for _ in range(count)]
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True)]

    def __enter__(self) -> "Hogs":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        for thread in self.threads:
            thread.join(20)
        for connection in self.connections:
            connection.sock.close()

    def run(self) -> None:
        block = b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n" * 2_000
        left = {}

        def begin(connection: Connection) -> None:
            connection.sock.setblocking(False)
            left[connection.sock] = memoryview(block)

        def begin_another(sock: socket.socket) -> None:
            del left[sock]
            with contextlib.suppress(OSError):
                self.connections.append(self.gateway.from_address(ATTACKER))
                begin(self.connections[-1])

        for connection in self.connections:
            begin(connection)
        while left and not self.is_over.is_set():
            readable, writable, _ = select.select(list(left), list(left), [], 0.5)
            for sock in {*readable, *writable}:
                try:
                    sent = sock.send(left[sock])
                    left[sock] = left[sock][sent:] or memoryview(block)
                except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
                except OSError:
                    begin_another(sock)
                    continue
                try:
                    got = sock.recv(1 << 20)
                    self.read += len(got)
                    if not got:
                        begin_another(sock)
                except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
                except OSError:
                    begin_another(sock)

    def wait_until_served(self) -> None:
        until(lambda: self.read >= 200_000, lambda: f"the attack does not come about: {self.read} bytes were answered")


@pytest.mark.parametrize("tls", ["off", "auto"])
@pytest.mark.parametrize("count", [1, 40])
def test_pipelining_hogs_do_not_hold_the_loop(tmp_path, tls, count):
    """Others are served beside them, the admin listener answers, and SIGTERM ends the server within its deadline."""
    with Measured(tmp_path, "--tls", tls) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        with gateway.from_address(ORDINARY, 10) as probe, Hogs(gateway, count) as hogs:
            hogs.wait_until_served()

            def ask() -> None:
                probe.send(key.request())
                assert probe.answer().status == 200

            before, rounds = hogs.read, 0
            # On a busy machine the attackers' thread may not have its turn during many quick rounds.
            while hogs.read == before or rounds < 30:
                ask()
                gateway.ask("/health")
                rounds += 1
            # A loop that a connection holds answers others behind its 10,000 requests, of 349 bytes an answer.
            assert hogs.read - before < rounds * 3_000_000
            assert gateway.metric("turns_deferred_total") > 0
            gateway.process.send_signal(signal.SIGTERM)
            assert gateway.process.wait(60) == 0


def test_ticks_and_deadlines_run_beside_a_hog(tmp_path):
    """A connection that says nothing is ended by its deadline, though the loop is never idle."""
    with Measured(tmp_path, "--tls", "off", "--deadline-head", 2) as gateway:
        with Hogs(gateway, 2) as hogs, gateway.from_address(ORDINARY, 8) as silent:
            hogs.wait_until_served()
            silent.send(b"GET / HTTP/1.1\r\n")
            assert silent.answer().status == 408


@pytest.mark.parametrize("workers", [1, 2])
def test_idle_connections_give_way(tmp_path, workers):
    """One address holds every slot; another is served, and connections that have proved a release stay."""
    with Measured(tmp_path, "--workers", workers, "--tls", "off", "--limit-connections", 300,
                  "--limit-address-connections", 300) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        proven = [gateway.from_address(OTHER) for _ in range(10)]
        for connection in proven:
            connection.send(key.request())
            assert connection.answer().status == 200
        idle = [gateway.from_address(ATTACKER) for _ in range(300 - len(proven))]
        until(lambda: gateway.metric("connections") >= 300, "the slots are not all taken")
        for _ in range(60):
            with gateway.from_address(ORDINARY, 5) as connection:
                connection.send(key.request())
                assert connection.answer().status == 200
        assert gateway.metric("connections_evicted_idle_total") >= 1
        for connection in proven:
            connection.send(key.request())
            assert connection.answer().status == 200
        for connection in [*proven, *idle]:
            connection.sock.close()


def test_an_address_has_a_limit_of_connections(tmp_path):
    """The rest are closed without a handshake; another address is not concerned."""
    with Measured(tmp_path, "--limit-address-connections", 20) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        few = [gateway.from_address(ATTACKER) for _ in range(20)]
        for _ in range(30):
            with pytest.raises((OSError, ssl.SSLError)):
                gateway.from_address(ATTACKER, 5)
        assert gateway.metric("connections_refused_by_address_total") == 30
        with gateway.from_address(ORDINARY) as connection:
            connection.send(key.request())
            assert connection.answer().status == 200
        few.pop().sock.close()

        def comes_back() -> bool:
            with contextlib.suppress(OSError):
                few.append(gateway.from_address(ATTACKER, 5))
                return True
            return False

        until(comes_back, "a place that became free is not given again")
        for connection in few:
            connection.sock.close()


def test_a_trusted_proxy_has_no_limit_of_connections(tmp_path):
    with Measured(tmp_path, "--tls", "off", "--limit-address-connections", 5, "--trusted-proxies", f"{OTHER}/32") as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        many = [gateway.from_address(OTHER) for _ in range(20)]
        for connection in many:
            connection.send(key.request())
            assert connection.answer().status == 200
            connection.sock.close()


def test_bodies_of_strangers_leave_room_for_others(tmp_path):
    """Bodies that must be held to be judged have a small budget per address; a signed POST is served beside them."""
    with Measured(tmp_path, "--tls", "off", "--limit-address-connections", 400) as gateway:
        gateway.add_app("demo", schemes="message-signatures,form-md5")
        key = gateway.add_release()
        head = (b"POST /a HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                b"Content-Length: %d\r\n\r\n" % (gateway.port, MIB))
        before, holders, sent = gateway.rss(), [], 0
        for _ in range(262):
            connection = gateway.from_address(ATTACKER)
            connection.send(head + b"app_id=known&private_key=1&data=" + b"a" * (MIB - 4096))
            holders.append(connection)
            sent += 1
        assert sent == 262
        assert gateway.metric("held_body_bytes") <= 4 * MIB
        body = b"x" * (MIB // 2)
        with gateway.from_address(ORDINARY) as connection:
            for _ in range(3):
                connection.send(key.request("POST", "/mine", body))
                assert connection.answer().status == 200
        with gateway.from_address(ATTACKER) as connection:
            connection.send(key.request("POST", "/neighbour", b"x" * 1000))
            assert connection.answer().status == 200
        assert gateway.rss() - before < 100 * MIB
        for connection in holders:
            connection.sock.close()


def few_descriptors(folder, *options: object, **more) -> Measured:
    return Measured(folder, "--tls", "off", *options, **more)


def test_few_descriptors(tmp_path):
    """With 256 descriptors, strangers take what connections there are; requests on open ones go on to the upstream."""
    with Backend() as backend:
        gateway = few_descriptors(tmp_path, "--upstream", backend.url)
        gateway.add_app("demo")
        gateway.start(prefix=("prlimit", "--nofile=256:256"))
        gateway.inside = ()
        try:
            key = gateway.add_release()
            mine = [gateway.from_address(ORDINARY) for _ in range(20)]
            for connection in mine:
                connection.send(key.request())
                assert connection.answer().status == 200
            strangers = []
            for index in range(400):
                try:
                    strangers.append(gateway.from_address(f"127.0.1.{index % 50 + 1}", 2))
                except OSError:
                    break
            for _ in range(3):
                for connection in mine:
                    connection.send(key.request("POST", "/mine", b"x"))
                for connection in mine:
                    assert connection.answer().status == 200
            assert "RLIMIT_NOFILE" in gateway.log_path.read_text()
            for connection in strangers:
                connection.sock.close()

            def accepts() -> bool:
                with contextlib.suppress(OSError, Closed), gateway.from_address(OTHER, 2) as connection:
                    connection.send(key.request())
                    return connection.answer().status == 200
                return False

            until(accepts, "it does not accept again")
            assert gateway.process.poll() is None
        finally:
            gateway.stop()


def test_running_out_of_descriptors_at_once(tmp_path):
    """In the first two seconds the runtime has not started everything by itself: it must not need to any more."""
    gateway = few_descriptors(tmp_path, clock=Clock(tmp_path / "clock"))
    gateway.start(prefix=("prlimit", "--nofile=64:64"))
    try:
        strangers = []
        for _ in range(200):
            try:
                strangers.append(gateway.from_address(ATTACKER, 1))
            except OSError:
                break
        assert len(strangers) > 5
        gateway.clock.advance(5)
        for connection in strangers:
            connection.sock.close()

        def serves() -> bool:
            assert gateway.process.poll() is None, "it has died"
            with contextlib.suppress(OSError, Closed):
                return gateway.send(b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n").status >= 400
            return False

        until(serves, "it does not serve again")
    finally:
        if gateway.process.poll() is None:
            gateway.stop()


def test_the_soft_limit_of_descriptors_is_raised(tmp_path):
    gateway = Measured(tmp_path, "--tls", "off")
    gateway.start(prefix=("prlimit", "--nofile=128:12000"))
    try:
        with open(f"/proc/{gateway.process.pid}/limits", encoding="ascii") as limits:
            line = next(line for line in limits if line.startswith("Max open files"))
        assert line.split()[3:5] == ["12000", "12000"]
    finally:
        gateway.stop()


def test_a_connection_has_an_age_and_a_number_of_requests(tmp_path):
    with Measured(tmp_path, "--tls", "off", "--limit-keepalive-requests", 5, "--deadline-connection", 3,
                  clock=Clock(tmp_path)) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        with gateway.connect() as connection:
            connection.send(b"".join(key.request() for _ in range(8)))
            answers = [connection.answer() for _ in range(5)]
            assert [answer.get("connection") for answer in answers] == [None] * 4 + ["close"]
            with pytest.raises(Closed):
                connection.answer()
        with gateway.connect() as connection:
            connection.send(key.request())
            assert connection.answer().get("connection") is None
            gateway.clock.advance(4.2)
            connection.send(key.request())
            assert connection.answer().get("connection") == "close"
            assert connection.is_closed()


class Large(Backend):
    """Answers `/large` with 16 MiB, and `/events` with two lines, the second once it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        super().__init__(self.serve_request)

    def serve_request(self, seen: Seen, sock: socket.socket) -> None:
        if seen.target == "/large":
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (16 * MIB))
            for _ in range(16):
                sock.sendall(b"x" * MIB)
        elif seen.target == "/events":
            sock.sendall(b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nTransfer-Encoding: chunked\r\n\r\n")
            sock.sendall(b"3\r\none\r\n")
            assert self.go.wait(HANGS)
            sock.sendall(b"3\r\ntwo\r\n0\r\n\r\n")
        else:
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


@pytest.mark.parametrize("tls", ["off", "auto"])
def test_a_slow_reader_is_cut(tmp_path, tls):
    """At 1 KiB/s a client makes progress with each second, and is cut all the same; silence of the backend is not its fault."""
    with Large() as backend, Measured(tmp_path, "--tls", tls, "--upstream", backend.url, "--limit-answer-rate", 65_536,
                                      "--limit-answer-rate-window", 2, clock=Clock(tmp_path)) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        with gateway.from_address(ORDINARY) as slow, gateway.from_address(OTHER) as events:
            events.send(key.request(target="/events"))
            slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.send(key.request(target="/large"))
            read = 0
            while gateway.metric("slow_readers_cut_total") == 0:
                read += len(slow.sock.recv(512))
                assert read < MIB, "it still sends"
                gateway.clock.advance(0.5)
            assert read > 0
            backend.go.set()
            answer = events.answer()
            assert (answer.body, answer.get("date")) == (b"onetwo", "Sun, 06 Nov 1994 08:49:37 GMT")
            assert gateway.metric("slow_readers_cut_total") == 1


def test_answers_have_one_date(tmp_path):
    with Large() as backend, Measured(tmp_path, "--tls", "off", "--upstream", backend.url) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        for request in (key.request(), b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n", b"nonsense\r\n\r\n"):
            dates = [value for name, value in gateway.send(request).fields if name == "date"]
            assert len(dates) == 1
            sent = time.strptime(dates[0], "%a, %d %b %Y %H:%M:%S GMT")
            assert abs(time.mktime(sent) - time.timezone - time.time()) < 5


def test_requests_in_flight_of_one_address(tmp_path):
    """A slow backend's callers from one address are refused beyond their limit; another address is served."""
    go = threading.Event()

    def slow(seen: Seen, sock: socket.socket) -> None:
        if seen.target == "/slow":
            go.wait(60)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with Backend(slow) as backend, Measured(tmp_path, "--tls", "off", "--upstream", backend.url,
                                            "--limit-address-requests", 8) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        busy = [gateway.from_address(ATTACKER) for _ in range(8)]
        for connection in busy:
            connection.send(key.request(target="/slow"))
        backend.wait(8)
        with gateway.from_address(ATTACKER) as connection:
            connection.send(key.request("POST", "/more", b"x"))
            answer = connection.answer()
            assert (answer.status, json.loads(answer.body)["code"]) == (503, "unavailable")
        with gateway.from_address(ORDINARY) as connection:
            connection.send(key.request("POST", "/more", b"x"))
            assert connection.answer().status == 200
        go.set()
        for connection in busy:
            assert connection.answer().status == 200
            connection.sock.close()
