"""`/ready` says whether the process should get traffic: not while it drains, not while the store takes no changes, not while the backend cannot be
reached. It needs no traffic to find out, and one stray failure does not flip it. `/health` answers all the while."""

import contextlib
import errno
import json
import signal
import socket
import threading
import urllib.error
import urllib.request

import pytest

from authority import Authority
from backend import Backend, ok
from bearer import add_app, login
from clock import Clock
from failing import FailingDisk, needs_mounts
from gateway import Gateway
from ports import reserve_port
from tls_backend import TLSBackend
from waiting import until


class Ready(Gateway):
    """A gateway whose admin listener is on."""

    def __init__(self, folder, *options: object, tls: tuple[str, ...] = ("--tls", "off"), **others):
        self.admin_port = reserve_port()
        super().__init__(folder, *tls, *options, clock=Clock(folder), **others)

    def command(self, *options: object) -> list[str]:
        return super().command(*options, "--admin", f"127.0.0.1:{self.admin_port}")

    def get(self, path: str) -> tuple[int, dict]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def causes(self) -> list[str]:
        status, told = self.get("/ready")
        causes = [reason["cause"] for reason in told["reasons"]]
        assert (status, told["ready"]) == ((503, False) if causes else (200, True))
        assert all(reason["detail"] for reason in told["reasons"])
        return causes

    def until(self, causes: list[str]) -> None:
        """Lets time pass until these are the causes."""
        until(lambda: self.clock.advance(0.1) or self.causes() == causes, lambda: f"{self.causes()}, not {causes}")
        assert self.get("/health") == (200, {"status": "ok"})


@pytest.mark.parametrize("ends_by", ["time", "a second signal"])
def test_one_that_is_told_to_stop_accepts_until_the_delay_has_passed(ends_by, tmp_path):
    with Ready(tmp_path, "--drain-delay", "300") as gateway:
        gateway.until([])
        gateway.process.send_signal(signal.SIGTERM)
        until(lambda: gateway.causes() == ["draining"], lambda: gateway.causes())
        for _ in range(3):
            assert gateway.send(f"GET /countersign/v1/time HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\n\r\n".encode()).status == 200
        if ends_by == "time":
            gateway.clock.advance(301)
        else:
            gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(60) == 0


def test_without_a_backend_it_is_ready_at_once(tmp_path):
    with Ready(tmp_path) as gateway:
        gateway.until([])


@pytest.mark.parametrize("kind", ["plain", "tls"])
def test_it_follows_the_backend_without_traffic(tmp_path, kind):
    authority = Authority(tmp_path / "ca")
    pair = authority.issue("server")

    def make(port: int = 0) -> Backend:
        return TLSBackend(*pair, port=port) if kind == "tls" else Backend(port=port)

    with make() as backend:
        gateway = Ready(tmp_path / "gateway", "--upstream", backend.url,
                        *(["--upstream-ca", authority.path] if kind == "tls" else []))
        with gateway:
            gateway.until([])
            connections, began = len(backend.raw), gateway.time()
            until(lambda: gateway.clock.advance(0.1) or len(backend.raw) >= connections + 3, "there is no probe")
            assert gateway.time() - began > 3, "the probe is not cheap"
            until(lambda: not backend.open, "the last probe's connection stays open")
            assert not backend.seen
            port = backend.port
            backend.close()
            gateway.until(["upstream"])
            with make(port):
                gateway.until([])


def test_a_backend_that_was_never_there(tmp_path):
    port = reserve_port()
    with Ready(tmp_path, "--upstream", f"http://127.0.0.1:{port}") as gateway:
        assert gateway.causes() == ["upstream"]
        for _ in range(20):
            gateway.clock.advance(0.1)
            assert gateway.causes() == ["upstream"]
        assert "127.0.0.1" in gateway.get("/ready")[1]["reasons"][0]["detail"]


def test_traffic_is_proof_enough_and_a_stray_failure_is_none(tmp_path):
    """A backend that answers those who are connected, and takes a new connection only now and then."""
    with Backend() as backend, Ready(tmp_path, "--upstream", backend.url, "--workers", 1) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        gateway.until([])
        with gateway.connect() as connection:
            connection.send(key.request())
            assert connection.answer().status == 200
            # Nothing new gets through from here on; what is connected works.
            backend.listener.shutdown(socket.SHUT_RDWR)
            backend.listener.close()
            for _ in range(40):
                connection.send(key.request())
                assert connection.answer().status == 200
                assert gateway.causes() == []
                gateway.clock.advance(0.25)
        gateway.until(["upstream"])


def test_it_is_not_ready_while_it_drains(tmp_path):
    let_go = threading.Event()

    def slow(seen, sock):
        assert let_go.wait(60)
        ok(seen, sock)

    with Backend(slow) as backend:
        gateway = Ready(tmp_path, "--upstream", backend.url).start()
        gateway.add_app("demo")
        key = gateway.add_release()
        gateway.until([])
        with gateway.connect() as connection:
            connection.send(key.request())
            backend.wait(1)
            gateway.process.terminate()
            gateway.until(["draining"])
            let_go.set()
            assert connection.answer().status == 200
        assert gateway.process.wait(60) == 0


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_it_is_not_ready_while_the_store_takes_no_changes(tmp_path, error):
    disk = FailingDisk(tmp_path)
    # Passwords are sent over TLS alone.
    with Ready(tmp_path / "gateway", tls=(), environment=disk.environment) as gateway:
        add_app(gateway, 1)
        gateway.until([])
        disk.fails(error)
        assert gateway.send(login(gateway, "user-0")).status == 503
        gateway.until(["store"])
        # Requests that change nothing in the store continue, and the recovery is detected without a request.
        assert gateway.send(gateway.key.request()).status == 200
        assert gateway.send(gateway.key.request("POST", "/pay", b"{}", fields=[("idempotency-key", "k1")])).status == 200
        for _ in range(20):
            gateway.clock.advance(0.25)
            assert gateway.causes() == ["store"]
        disk.is_well()
        gateway.until([])
        assert gateway.send(login(gateway, "user-0")).status == 200


def test_it_is_not_ready_after_the_log_of_keyed_requests_failed_until_a_restart(tmp_path):
    disk = FailingDisk(tmp_path, "/requests-")
    gateway = Ready(tmp_path / "gateway", environment=disk.environment).start()
    gateway.add_app("demo")
    key = gateway.add_release()
    gateway.until([])
    disk.fails(errno.EIO)
    assert gateway.send(key.request("POST", "/pay", b"{}", fields=[("idempotency-key", "k1")])).status == 503
    gateway.until(["request-log"])
    disk.is_well()
    for _ in range(12):
        gateway.clock.advance(0.25)
        assert gateway.causes() == ["request-log"]
    assert gateway.send(key.request()).status == 200
    assert gateway.stop() == 0
    with gateway:
        gateway.until([])
        assert gateway.send(key.request("POST", "/pay", b"{}", fields=[("idempotency-key", "k2")])).status == 200


@needs_mounts
def test_a_log_that_fails_while_its_disk_is_full_makes_it_not_ready(tmp_path):
    """A full disk does not: with room again it goes on. A failed write is told also where the disk was full just before."""
    disk = FailingDisk(tmp_path, "/requests-")
    gateway = Ready(tmp_path / "gateway", "--limit-kept-keys", 10_000_000, environment=disk.environment)
    gateway.data.mkdir(parents=True)
    mount = f'mount -t tmpfs -o size=48m,mode=700 none "{gateway.data}" && exec "$@"'
    gateway.start(prefix=("unshare", "-m", "sh", "-c", mount, "sh"))
    gateway.add_app("demo")
    key = gateway.add_release()
    ballast = gateway.seen_data / "ballast"
    with open(ballast, "ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    with gateway.connect() as connection:
        def pay(number: int) -> int:
            connection.send(key.request("POST", "/pay", b"{}", fields=[("idempotency-key", f"k{number}")]))
            return connection.answer().status

        # Some room was reserved before.
        assert 503 in (pay(number) for number in range(20_000))
        assert gateway.causes() == []
        ballast.unlink()
        disk.fails(errno.EIO)
        assert pay(20_000) == 503
    gateway.until(["request-log"])
    notes = [line for line in gateway.log_path.read_text().splitlines() if "keyed requests are refused" in line]
    # An answer may find no room where the next request, which is shorter, does: then it is told again.
    *full, failed = ["until a restart" in note for note in notes]
    assert failed and full and not any(full), notes
    disk.is_well()
    assert gateway.stop() == 0
