"""The log of keyed requests under a gateway: killed under load, and on disks that fail or fill up, no request reaches the backend
twice, and no answer goes to another request."""

import contextlib
import hashlib
import json
import random
import secrets
import signal
import socket
import subprocess
import threading

import pytest

import request_log
from backend import Backend, Seen
from failing import FailingDisk, needs_mounts
from gateway import Gateway
from till import Till
from waiting import HANGS, until
from wire import Closed

SEED = random.randrange(1 << 30)


class Echo:
    """A backend that counts what it was sent, by key, and answers with the key."""

    def __init__(self):
        self.counts: dict[str, int] = {}
        self.lock = threading.Lock()
        # A kill after so many more requests, before or after the answer to the last of them.
        self.left, self.kill, self.is_before = 0, None, False

    def kills(self, after: int, kill, *, is_before: bool) -> None:
        with self.lock:
            self.left, self.kill, self.is_before = after, kill, is_before

    def __call__(self, seen: Seen, sock: socket.socket) -> None:
        key = seen.get("idempotency-key")
        with self.lock:
            self.counts[key] = self.counts.get(key, 0) + 1
            self.left -= 1
            kill = self.kill if self.left == 0 else None
        if kill and self.is_before:
            kill()
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(key) + key.encode())
        if kill and not self.is_before:
            kill()


class Clients:
    """Send new keys, and copies of earlier ones, until they are told to stop."""

    def __init__(self, gateway: Gateway, count: int = 6):
        self.gateway, self.stopping = gateway, threading.Event()
        self.sent: list[str] = []
        self.answered: set[str] = set()
        self.wrong: list[tuple] = []
        self.replayed = 0
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self) -> None:
        connection = None
        while not self.stopping.is_set():
            try:
                connection = connection or until(self.connected, "the gateway")
                self.ask(connection, random.choice(self.sent[-50:]) if self.sent and random.random() < 0.3 else secrets.token_hex(8))
            except (Closed, OSError):
                # The gateway was killed.
                connection = None

    def connected(self):
        with contextlib.suppress(OSError):
            return self.gateway.connect()

    def ask(self, connection, key: str) -> None:
        if key not in self.sent[-200:]:
            self.sent.append(key)
        connection.send(pay(self.gateway, key))
        answer = connection.answer()
        if answer.status == 200 and answer.body == key.encode():
            self.answered.add(key)
            self.replayed += answer.get("countersign-replayed") == "true"
        elif answer.status != 503:
            self.wrong.append((key, answer))

    def stop(self) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive()


def pay(gateway: Gateway, key: str) -> bytes:
    return gateway.key.request("POST", "/pay", b"amount=1", fields=[("idempotency-key", key)])


def begun(gateway: Gateway, *options: object, **more) -> Gateway:
    gateway.start(*options, **more)
    gateway.add_app("demo")
    gateway.key = gateway.add_release()
    return gateway


def test_killed_under_load(tmp_path, is_long, note):
    """At a hundred points: what was begun stays begun, what was answered is answered alike or refused."""
    print(f"seed {SEED}")
    random.seed(SEED)
    echo, kills = Echo(), 100 if is_long else 6
    with Backend(echo) as backend:
        gateway = begun(Gateway(tmp_path, "--tls", "off", "--upstream", backend.url, "--limit-kept-keys", 10_000_000))
        clients = Clients(gateway)
        for _ in range(kills):
            echo.kills(random.randrange(20, 100), gateway.process.kill, is_before=random.random() < 0.5)
            assert gateway.process.wait(HANGS) == -signal.SIGKILL
            gateway.process.stdout.close()
            gateway.start()
        clients.stop()
        assert not clients.wrong, clients.wrong[:3]
        with gateway.connect() as connection:
            for key in random.sample(clients.sent, min(300, len(clients.sent))):
                connection.send(pay(gateway, key))
                answer = connection.answer()
                assert answer.status == 503 or (answer.status, answer.body) == (200, key.encode()), (SEED, key, answer)
        assert gateway.stop() == 0
    twice = {key: count for key, count in echo.counts.items() if count != 1}
    assert not twice, (SEED, twice)
    assert len(clients.answered) > 10 * kills and clients.replayed > kills
    # Each that reached the backend had been written before.
    kept = request_log.begun(gateway.data)
    assert all(digest(key) in kept for key in echo.counts)
    note(f"{kills} kills under load: {len(clients.sent):,} keys sent, {len(clients.answered):,} answered, none forwarded twice")


def digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def code(answer) -> str:
    return json.loads(answer.body)["code"]


@pytest.mark.parametrize("error", [5, -5], ids=["writes fail", "only fsync fails"])
def test_after_a_failure_nothing_is_forwarded_until_a_restart(tmp_path, error):
    disk = FailingDisk(tmp_path, "/requests-")
    with Till(tmp_path / "till.db") as till:
        gateway = begun(Gateway(tmp_path / "gateway", "--tls", "off", "--upstream", till.url, environment=disk.environment))
        first = gateway.send(pay(gateway, "before"))
        assert first.status == 201 and till.moves == 1
        until(lambda: request_log.sealed(gateway.data), "the response is kept")
        disk.fails(error)
        for key in ("during", "during", "another"):
            answer = gateway.send(pay(gateway, key))
            assert (answer.status, code(answer)) == (503, "unavailable")
            # Nothing of its own disk is told to a caller.
            assert str(gateway.data).encode() not in answer.body
        assert any("/requests-" in line for line in disk.failures)
        again = gateway.send(pay(gateway, "before"))
        assert (again.status, again.body, again.get("countersign-replayed")) == (201, first.body, "true")
        assert gateway.send(gateway.key.request("POST", "/plain", b"amount=1")).status == 201, "without a key it goes on"
        assert till.moves == 2
        disk.is_well()
        for key in ("during", "later"):
            assert code(gateway.send(pay(gateway, key))) == "unavailable", "a disk that failed is not trusted again"
        # Nothing is written to the log after the stop.
        assert gateway.stop() == 0
        notes = [line for line in gateway.log_path.read_text().splitlines() if "keyed requests are refused" in line]
        assert len(notes) == 1 and "until a restart" in notes[0]
        gateway.start()
        again = gateway.send(pay(gateway, "before"))
        assert (again.status, again.body) == (201, first.body)
        assert gateway.send(pay(gateway, "new")).status == 201 and till.moves == 3
        # What was written and not confirmed may be there, and is then not known to have run.
        assert gateway.send(pay(gateway, "during")).status in {201, 503}
        assert till.moves <= 4
        assert gateway.stop() == 0


@needs_mounts
def test_a_full_disk_refuses_and_loses_nothing(tmp_path):
    with Till(tmp_path / "till.db") as till:
        gateway = Gateway(tmp_path / "gateway", "--tls", "off", "--upstream", till.url, "--limit-kept-keys", 10_000_000)
        gateway.data.mkdir()
        mount = f'mount -t tmpfs -o size=48m,mode=700 none "{gateway.data}" && exec "$@"'
        begun(gateway, prefix=("unshare", "-m", "sh", "-c", mount, "sh"))
        first = gateway.send(pay(gateway, "first"))
        ballast = gateway.seen_data / "ballast"
        with open(ballast, "ab", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
        accepted = []
        with gateway.connect() as connection:
            # Some room was reserved before.
            for number in range(20_000):
                connection.send(pay(gateway, f"k-{number}"))
                answer = connection.answer()
                if answer.status != 201:
                    break
                accepted.append((f"k-{number}", answer.body))
            assert code(answer) == "unavailable" and int(answer.get("retry-after")) > 0, answer
            assert "disk is full" in gateway.event(json.loads(answer.body)["instance"])["detail"]
            moves = till.moves
            connection.send(pay(gateway, "first"))
            assert connection.answer().body == first.body
            ballast.unlink()
            connection.send(pay(gateway, f"k-{len(accepted)}"))
            assert connection.answer().status == 201 and till.moves == moves + 1, "there is room: it goes on without a restart"
            without = 0
            for key, body in accepted[-200:]:
                connection.send(pay(gateway, key))
                answer = connection.answer()
                # The last answers may have found no room: their requests are not known to have run.
                without += answer.status == 503
                assert answer.status == 503 or (answer.body, answer.get("countersign-replayed")) == (body, "true")
            assert without < 10
        assert till.moves == moves + 1
        assert gateway.stop() == 0


def test_a_damaged_log_is_not_used(tmp_path):
    with Till(tmp_path / "till.db") as till:
        gateway = begun(Gateway(tmp_path / "gateway", "--tls", "off", "--upstream", till.url))
        for number in range(20):
            assert gateway.send(pay(gateway, f"k-{number}")).status == 201
        assert gateway.stop() == 0
        path, = request_log.segments(gateway.data)
        whole = path.read_bytes()
        third = whole.index(digest("k-2"))
        path.write_bytes(whole[:third] + bytes([whole[third] ^ 1]) + whole[third + 1:])
        process = subprocess.run(gateway.command(), capture_output=True, timeout=60, check=False)
        assert process.returncode == 1
        assert path.name in process.stderr.decode() and "log of keyed requests" in process.stderr.decode()
        assert path.read_bytes() != whole and path.stat().st_size == len(whole), "it was not touched"
        # What a crash leaves behind the end is cut off.
        path.write_bytes(whole + b"\x00" * 50)
        gateway.start()
        assert gateway.send(pay(gateway, "k-7")).get("countersign-replayed") == "true"
        assert till.moves == 20
        assert gateway.stop() == 0
