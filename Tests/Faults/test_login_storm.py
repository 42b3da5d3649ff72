"""A thousand logins at once: all are answered, memory stays bounded, and signed requests go through in between."""

import base64
import json
import multiprocessing
import os
import selectors
import time

import pytest

from clock import Clock
from gateway import Gateway
from waiting import HANGS, until
from wire import Connection

ELEMENT = bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76")
MIB = 1 << 20
LOGINS = 1_000
PREFIX = "/countersign/v1/"


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def start(key, name: str) -> bytes:
    point = text(b"\4" + bytes(64))
    device = {"signing_key": point, "agreement_key": point, "class": "phone", "name": "storm"}
    body = {"account": name, "ke1": text(ELEMENT + os.urandom(32) + ELEMENT), "device": device}
    return key.request("POST", PREFIX + "login/start", json.dumps(body).encode())


@pytest.fixture
def storm(tmp_path):
    generous = [part for kind in ("account", "address", "device") for part in (f"--login-{kind}", "1000000/1s")]

    def make(*options: object) -> Gateway:
        # All of them come from one address, which has a limit of its own.
        many = ("--limit-address-connections", 4_000, "--limit-address-requests", 4_000,
                "--limit-keepalive-requests", 1_000_000)
        gateway = Gateway(tmp_path, "--tls", "off", *generous, *many, *options)
        gateway.add_app(registration="open")
        return gateway

    return make


def all_at_once(gateway: Gateway, key, request=start) -> list:
    """The answers to a thousand requests, each on a connection of its own, sent before any answer is read."""
    connections = [gateway.connect(timeout=60) for _ in range(LOGINS)]
    requests = [request(key, f"user{number}") for number in range(LOGINS)]
    for connection, request in zip(connections, requests):
        connection.send(request)
    answers, waiting = [], selectors.DefaultSelector()
    for connection in connections:
        waiting.register(connection.sock, selectors.EVENT_READ, connection)
    while waiting.get_map():
        found = waiting.select(HANGS)
        assert found, f"{len(answers)} of {LOGINS} answered"
        for ready, _ in found:
            waiting.unregister(ready.fileobj)
            answers.append(ready.data.answer())
            ready.data.sock.close()
    return answers


PROCESSES = multiprocessing.get_context("fork")


def from_elsewhere(gateway: Gateway, key) -> list:
    """The same by a process that takes what the others leave of the machine, as if it were on another one: a thousand clients on the
    gateway's own cores would be measured, and not the gateway."""
    ours, theirs = PROCESSES.Pipe(duplex=False)

    def blow() -> None:
        os.nice(19)
        theirs.send(all_at_once(gateway, key))

    process = PROCESSES.Process(target=blow, daemon=True)
    process.start()
    theirs.close()
    answers = ours.recv()
    process.join()
    return answers


class Requests:
    """Signed requests, one after the other, for as long as the storm blows. From a process of their own: beside the storm in one
    interpreter they would wait for its lock, milliseconds at a time, and what was measured would be that."""

    def __init__(self, gateway: Gateway, key):
        self.is_over, (self.result, theirs) = PROCESSES.Event(), PROCESSES.Pipe(duplex=False)
        self.process = PROCESSES.Process(target=self.run, args=(gateway, key, theirs), daemon=True)
        self.times, self.answered = [], PROCESSES.Value("q", 0)
        self.failures: list[str] = []

    def start(self) -> None:
        self.process.start()

    def run(self, gateway: Gateway, key, result) -> None:
        times, failures = [], []
        with Connection(gateway.port, timeout=60) as connection:
            while not self.is_over.is_set():
                request, began = key.request("GET", "/anything"), time.perf_counter()
                connection.send(request)
                answer = connection.answer()
                times.append(time.perf_counter() - began)
                self.answered.value = len(times)
                if answer.status != 200:
                    failures.append(repr(answer))
        result.send((times, failures))

    def stop(self) -> float:
        """The 99th percentile, in milliseconds."""
        self.is_over.set()
        self.times, self.failures = self.result.recv()
        self.process.join()
        return sorted(self.times)[len(self.times) * 99 // 100] * 1000


def test_a_storm_is_answered_and_requests_go_on(storm, note):
    with storm() as gateway:
        key = gateway.add_release()
        idle = Requests(gateway, key)
        idle.start()
        until(lambda: idle.answered.value >= 200, "quiet service")
        calm = idle.stop()
        before = gateway.rss()
        busy = Requests(gateway, key)
        busy.start()
        began = time.monotonic()
        answers = from_elsewhere(gateway, key)
        took = time.monotonic() - began
        stormy = busy.stop()
        grown = gateway.most_rss() - before
        served = [answer for answer in answers if answer.status == 200]
        # On a machine that is busy with other things some wait too long, and are told when to come back.
        assert all(answer.status == 503 and answer.get("retry-after") for answer in answers if answer.status != 200)
        assert len(answers) == LOGINS and len(served) > LOGINS // 10, f"{len(served)} served"
        # No two logins are the same one.
        assert len({json.loads(answer.body)["login_id"] for answer in served}) == len(served)
        assert not idle.failures and not busy.failures
        assert len(busy.times) > 20, "hardly any request came through"
        # The connections' own buffers, and 2 KiB for each login that is begun.
        assert grown < 64 * MIB, f"{grown / MIB:.0f} MiB more"
        note(f"{len(served)} of {LOGINS} logins begun at once in {took:.2f} s, {grown / MIB:.1f} MiB more; signed requests' 99th "
              f"percentile {calm:.2f} ms idle, {stormy:.2f} ms in the storm")


def password(key, name: str) -> bytes:
    body = {"account": name, "password": "a wrong one", "device": {"class": "phone", "name": "storm"}}
    return key.request("POST", PREFIX + "login/password", json.dumps(body).encode())


def test_passwords_are_hashed_in_bounded_memory(tmp_path, note):
    """A thousand at once, each of which takes 19 MiB to hash: as set, by default, one for every two cores is hashed at a time, 32 wait,
    and the rest are told when to come back."""
    unlimited = [part for kind in ("account", "address") for part in (f"--login-{kind}", "1000000/1s")]
    with Gateway(tmp_path, *unlimited, "--deadline-head", 300, "--deadline-idle", 300) as gateway:
        gateway.add_app(password_login="on")
        key = gateway.add_release()
        before = gateway.rss()
        answers = all_at_once(gateway, key, password)
        grown = gateway.most_rss() - before
    tried = [answer for answer in answers if answer.status == 401]
    turned_away = [answer for answer in answers if answer.status == 503 and int(answer.get("retry-after")) >= 1]
    # On a busy machine, some of the waiting requests are refused, too.
    assert len(tried) + len(turned_away) == LOGINS and len(tried) >= 5 and turned_away
    assert {json.loads(answer.body)["code"] for answer in tried} == {"wrong-credentials"}
    at_once = max(1, (os.cpu_count() or 1) // 2)
    # Beside the hashes: TLS and buffers of a thousand connections, 128 KiB each at most.
    assert grown < at_once * 20 * MIB + 128 * MIB, f"{grown / MIB:.0f} MiB more"
    note(f"{LOGINS} passwords at once: {len(tried)} hashed, {len(turned_away)} turned away, {grown / MIB:.0f} MiB more at the most")


def test_a_full_line_turns_away_with_a_time_and_debits_nothing(storm):
    with storm("--login-queue", 10, "--workers", 1) as gateway:
        key = gateway.add_release()
        answers = all_at_once(gateway, key)
        served = [answer for answer in answers if answer.status == 200]
        refused = [answer for answer in answers if answer.status != 200]
        assert served and refused, f"{len(served)} served, {len(refused)} refused"
        for answer in refused:
            assert answer.status == 503 and json.loads(answer.body)["code"] == "unavailable"
            assert int(answer.get("retry-after")) >= 1
        with gateway.connect() as connection:
            connection.send(start(key, "user1"))
            assert connection.answer().status == 200


def test_what_was_counted_outlives_a_kill(tmp_path):
    gateway = Gateway(tmp_path, "--tls", "off", "--login-account", "3/3600s", clock=Clock(tmp_path))
    gateway.add_app(registration="open")
    with gateway:
        key = gateway.add_release()

        def attempt() -> int:
            with gateway.connect() as connection:
                connection.send(start(key, "bob"))
                answer = connection.answer()
            if answer.status == 429:
                assert json.loads(answer.body)["code"] == "too-many-attempts"
                assert int(answer.get("retry-after")) > 3_000
            return answer.status

        assert [attempt() for _ in range(4)] == [200, 200, 200, 429]
        kept = gateway.data / "login-limits"
        until(lambda: gateway.clock.advance(1) or kept.exists(), "the limits are not kept")
        assert kept.stat().st_mode & 0o777 == 0o600
        assert gateway.stop(9) == -9
        gateway.start()
        assert attempt() == 429
        gateway.stop()
        # A torn file must neither lock out all users nor go unreported.
        kept.write_bytes(kept.read_bytes()[:-1])
        gateway.start()
        assert attempt() == 200
        assert "login-limits" in gateway.log_path.read_text() and "damaged" in gateway.log_path.read_text()
