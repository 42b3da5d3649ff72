"""A restart is no outage: a successor takes over while the old process answers what it has. No connection is refused, no request is
accepted twice, a keyed request reaches the backend once, a login's count goes on, and whichever process is killed, the other serves."""

import json
import os
import pathlib
import random
import secrets
import signal
import socket
import subprocess
import threading

import pytest

import processes
from backend import Backend, Seen
from clock import Clock
from gateway import Gateway, run
from waiting import until
from wire import Closed, Connection

SEED = random.randrange(1 << 30)


class Payments:
    """A backend that counts what it was sent, by idempotency key."""

    def __init__(self):
        self.counts: dict[str, int] = {}
        self.lock = threading.Lock()
        self.slow: dict[str, threading.Event] = {}
        self.arrived = threading.Event()

    def __call__(self, seen: Seen, sock: socket.socket) -> None:
        key = seen.get("idempotency-key")
        if key:
            with self.lock:
                self.counts[key] = self.counts.get(key, 0) + 1
        if key in self.slow:
            self.arrived.set()
            assert self.slow[key].wait(60)
        body = (key or "none").encode()
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


class Site:
    """A gateway before a backend, its successors, and clients."""

    def __init__(self, folder: pathlib.Path, *options: object):
        self.payments = Payments()
        self.backend = Backend(self.payments)
        self.clock = Clock(folder / "clock")
        # One address makes more payments here than one address may have remembered.
        self.gateway = Gateway(folder, "--tls", "off", "--upstream", self.backend.url, "--limit-kept-keys", 10_000_000,
                               *options, clock=self.clock).start()
        self.gateway.add_app("demo")
        self.gateway.key = self.gateway.add_release()
        self.processes = [self.gateway.process]

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
        self.backend.close()

    @property
    def serving(self) -> subprocess.Popen:
        return self.gateway.process

    def successor(self) -> subprocess.Popen:
        with open(self.gateway.log_path, "ab") as log:
            process = processes.start(self.gateway.command("--takeover"), stdout=subprocess.PIPE, stderr=log,
                                       stdin=subprocess.DEVNULL, env={**os.environ, **self.gateway.environment})
        self.processes.append(process)
        return process

    def time_passes(self) -> None:
        """More than a second, by every clock, in which the successor answers."""
        self.clock.advance(1.5)
        for _ in range(20):
            assert self.gateway.send(self.gateway.key.request()).status == 200

    def take_over(self) -> None:
        """Starts a successor, and waits until it accepts connections and the old process has ended."""
        old, process = self.serving, self.successor()
        self.wait_until_it_listens(process)
        self.gateway.process = process
        assert old.wait(60) == 0

    def wait_until_it_listens(self, process: subprocess.Popen) -> None:
        line = process.stdout.readline()
        assert line.startswith(b"listening on "), (process.poll(), self.gateway.log_path.read_text()[-800:])

    def connect(self) -> Connection:
        return Connection(self.gateway.port)

    def log(self) -> list[str]:
        """The last lines about restarts."""
        return [line for line in self.gateway.log_path.read_text().splitlines() if "restart" in line][-10:]

    def pay(self, key: str) -> bytes:
        fields = [("content-type", "application/json"), ("idempotency-key", key)]
        return self.gateway.key.request("POST", "/pay", b'{"amount":1}', fields=fields)


class Load:
    """Clients that send signed GETs and keyed POSTs without a pause: half of them keep their connection while they may, half open one for
    each request. What goes wrong is noted with its time."""

    def __init__(self, site: Site, clients: int = 4):
        self.site, self.stopping = site, threading.Event()
        self.accepted: list[bytes] = []
        self.keys: list[str] = []
        self.refused: list[str] = []
        self.cut: list[str] = []
        self.bad: list[tuple] = []
        self.threads = [threading.Thread(target=self.run, args=(number % 2 == 0,)) for number in range(clients)]

    def __enter__(self) -> "Load":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join(40)
            assert not thread.is_alive()

    def goes_on(self, count: int = 50) -> None:
        """Waits until so many more requests were accepted."""
        before = len(self.accepted)
        until(lambda: len(self.accepted) >= before + count, lambda: ("the load stopped", self.site.log(), self.refused[-3:]))

    def run(self, keeps: bool) -> None:
        connection, number = None, 0
        while not self.stopping.is_set():
            number += 1
            key = secrets.token_hex(8) if number % 2 else None
            request = self.site.pay(key) if key else self.site.gateway.key.request("GET", "/x")
            try:
                if connection is None:
                    connection = self.site.connect()
            except OSError as error:
                self.refused.append(repr(error))
                continue
            try:
                connection.send(request)
                answer = connection.answer()
            except (Closed, OSError) as error:
                self.cut.append(repr(error))
                connection.sock.close()
                connection = None
                continue
            if answer.status == 200:
                self.accepted.append(request)
                if key:
                    self.keys.append(key)
            else:
                self.bad.append((answer.status, answer.body[:200]))
            if not keeps or answer.get("connection") == "close":
                connection.sock.close()
                connection = None
        if connection:
            connection.sock.close()

    def replays(self, most: int) -> None:
        """None of the accepted is accepted again. Copies of keyed requests get the answer of the first, or are replays."""
        # Those that are still fresh: any other is refused for that.
        fresh = self.accepted[-500:]
        sample = random.sample(fresh, min(most, len(fresh)))
        with self.site.connect() as connection:
            for request in sample:
                connection.send(request)
                answer = connection.answer()
                assert answer.status != 200 and json.loads(answer.body)["code"] == "replayed", answer
                if answer.get("connection") == "close":
                    connection.sock.close()
                    connection = self.site.connect()

    def check_payments(self) -> None:
        counts = self.site.payments.counts
        assert all(counts[key] == 1 for key in self.keys)
        assert all(count == 1 for count in counts.values()), "a keyed request reached the backend twice"


@pytest.fixture
def site(tmp_path):
    print(f"seed {SEED}")
    random.seed(SEED)
    with Site(tmp_path) as running:
        yield running


def test_restarts_under_load(site, is_long, note):
    restarts, sockets = (20 if is_long else 3), 0
    with Load(site) as load:
        load.goes_on()
        for _ in range(restarts):
            before = len(load.accepted)
            site.take_over()
            load.replays(50)
            assert len(load.accepted) > before, "there was no load to speak of"
            load.goes_on()
    assert (load.refused, load.cut, load.bad) == ([], [], [])
    load.check_payments()
    note(f"{restarts} restarts under load: {len(load.accepted):,} requests accepted, none refused, cut or accepted twice")


def test_a_predecessor_without_a_log(tmp_path):
    """A server of an earlier version may keep keyed requests in the database. A successor that looked for them in the log would
    forward a second copy of one, and refuses to take over."""
    gateway = Gateway(tmp_path, "--tls", "off")
    gateway.add_app("demo")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control, socket.create_server(("127.0.0.1", 0)) as port:
        control.bind(str(gateway.data / "control"))
        control.listen()
        successor = processes.start(gateway.command("--takeover"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with control.accept()[0] as predecessor:
            assert predecessor.recv(512) == b"take-over 1"
            for name in (b"listener", b"replay-file-lock", b"replay-table-locks", b"login-limits"):
                socket.send_fds(predecessor, [name], [port.fileno()])
            predecessor.send(b"end")
            _, said = successor.communicate(timeout=60)
    assert successor.returncode == 1 and b"keeps keyed requests in the database" in said, said


def test_an_idle_connection_gets_one_more_answer(site):
    idle = [site.connect() for _ in range(8)]
    for connection in idle[:4]:
        connection.send(site.gateway.key.request())
        assert connection.answer().get("connection") is None
    old, process = site.serving, site.successor()
    site.wait_until_it_listens(process)
    site.time_passes()
    assert old.poll() is None, "it ended with connections on which a request may be on its way"
    for connection in idle:
        connection.send(site.gateway.key.request())
        answer = connection.answer()
        assert answer.status == 200 and answer.get("connection") == "close"
    site.gateway.process = process
    assert old.wait(60) == 0


def test_an_idle_connection_does_not_hold_it_for_ever(tmp_path):
    with Site(tmp_path, "--deadline-drain", 3) as site, site.connect():
        site.take_over()


def test_a_copy_waits_for_the_first_in_the_other_process(site):
    """The first copy still runs in the old process when the second comes to the new one."""
    site.payments.slow["slow"] = threading.Event()
    with site.connect() as first:
        first.send(site.pay("slow"))
        assert site.payments.arrived.wait(60)
        old, process = site.serving, site.successor()
        site.wait_until_it_listens(process)
        with site.connect() as second:
            second.send(site.pay("slow"))
            site.time_passes()
            assert old.poll() is None, "it ended with a request in flight"
            site.payments.slow["slow"].set()
            answer, again = first.answer(), second.answer()
        assert (answer.status, answer.body) == (200, b"slow") and answer.get("connection") == "close"
        assert (again.status, again.body, again.get("countersign-replayed")) == (200, b"slow", "true")
    assert site.payments.counts == {"slow": 1}
    site.gateway.process = process
    assert old.wait(60) == 0


def listeners(process: subprocess.Popen, port: int) -> set[str]:
    """Inodes of the listening sockets on the port that a process has."""
    with open(f"/proc/{process.pid}/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    found = {row[9] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == port}
    held = set()
    for name in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            target = os.readlink(name)
        except OSError:
            continue
        if target.startswith("socket:["):
            held.add(target[8:-1])
    return found & held


def test_the_successor_is_killed(site, is_long, note):
    """At whatever point of the hand-over: the old process goes on, or takes back what it still has."""
    rounds, reached = (20 if is_long else 5), 0
    with Load(site) as load:
        for round_ in range(rounds):
            old, process = site.serving, site.successor()
            until(lambda: process.poll() is not None or listeners(process, site.gateway.port))
            # From before it has loaded anything until after it accepts connections; the old one stays for five seconds then.
            if round_ % 2:
                site.wait_until_it_listens(process)
                reached += 1
            load.goes_on(random.randrange(100))
            process.kill()
            process.wait()
            assert old.poll() is None
            load.goes_on()
            load.replays(50)
        # And it can be taken over from still.
        site.take_over()
        load.replays(50)
    assert load.refused == [] and load.bad == []
    assert len(load.cut) <= 4 * rounds, "more were cut than the killed process had"
    counts = site.payments.counts
    assert all(count == 1 for count in counts.values()), "a keyed request reached the backend twice"
    note(f"{rounds} successors killed, {reached} of them after they accepted: {len(load.cut)} connections cut, none refused")


def test_the_old_process_is_killed(site, is_long):
    """From when the successor has the sockets on: no connection is refused, and nothing is accepted twice."""
    with Load(site) as load:
        for _ in range(20 if is_long else 3):
            old, process = site.serving, site.successor()
            mine = listeners(old, site.gateway.port)
            until(lambda: process.poll() is not None or mine <= listeners(process, site.gateway.port))
            # The sockets come last of what it hands over.
            load.goes_on(random.randrange(100))
            old.kill()
            old.wait()
            site.wait_until_it_listens(process)
            site.gateway.process = process
            load.goes_on()
            load.replays(50)
    assert load.refused == []
    assert all(status == 503 for status, _ in load.bad), load.bad
    assert all(count == 1 for count in site.payments.counts.values()), "a keyed request reached the backend twice"


def test_without_a_server_it_starts_as_ever(tmp_path):
    gateway = Gateway(tmp_path).start("--takeover")
    assert gateway.stop() == 0


def test_the_command_restarts_and_says_so(site):
    done = run("restart", "--data", site.gateway.data, "--json", timeout=60)
    assert done.returncode == 0, done.err
    successor = json.loads(done.out)["process"]
    try:
        assert site.serving.wait(60) == 0
        assert site.gateway.send(site.gateway.key.request()).status == 200
        # The successor can be replaced in its turn.
        again = run("restart", "--data", site.gateway.data, "--json", timeout=60)
        assert again.returncode == 0, again.err
        assert (second := json.loads(again.out)["process"]) != successor
        successor = second
        assert site.gateway.send(site.gateway.key.request()).status == 200
    finally:
        os.kill(successor, signal.SIGTERM)
        until(lambda: successor not in [process for process, _, _ in processes.members()], "the successor does not end")


def test_a_successor_that_cannot_start_changes_nothing(site):
    process = subprocess.run(site.gateway.command("--takeover", "--tls", "/nonexistent,/nonexistent"), capture_output=True, timeout=60,
                             check=False)
    assert process.returncode != 0
    assert site.serving.poll() is None
    for _ in range(20):
        assert site.gateway.send(site.gateway.key.request()).status == 200
    without = run("restart", "--data", site.gateway.folder / "data-of-nobody", timeout=60)
    assert without.returncode == 3
    site.take_over()


def test_counts_of_login_attempts_go_along(tmp_path):
    with Site(tmp_path, "--login-address", "3/3600s") as site:
        gateway = site.gateway
        gateway.admin("app", "policy", "demo", "--set", "registration=open")
        codes = [attempt(gateway) for _ in range(2)]
        assert "too-many-attempts" not in codes, codes
        site.take_over()
        codes = [attempt(gateway) for _ in range(3)]
        assert codes.count("too-many-attempts") == 2, codes


def attempt(gateway: Gateway) -> str:
    """The start of a registration, which is counted to its address."""
    body = json.dumps({"account": "nobody", "request": "A" * 43}).encode()
    answer = gateway.send(gateway.key.request("POST", "/countersign/v1/registration/start", body,
                                              fields=[("content-type", "application/json")]))
    return json.loads(answer.body).get("code", "ok")
