"""PostgreSQL's processes are killed under load, and started again: nothing that was acknowledged is lost, requests are refused within a bound
meanwhile, and the gateway goes on by itself."""

import json
import os
import signal
import time

import pytest

from gateway import Gateway
from person import Person
from postgres import Postgres, programs
from store import Driver

pytestmark = pytest.mark.skipif(programs() is None, reason="no postgres")


@pytest.fixture
def server():
    server = Postgres()
    yield server
    server.remove()


def test_nothing_acknowledged_is_lost(server, is_long, note):
    address = server.create("load")
    kills = 10 if is_long else 2
    driver = Driver(address)
    try:
        for round_ in range(kills):
            driver.acknowledged(200)
            time.sleep(0.017 * round_)
            server.kill()
            time.sleep(0.3)
            server.start()
            driver.acknowledged(50)
            assert driver.ledger.missing(address) == []
    finally:
        driver.end()
    assert driver.ledger.missing(address) == []
    assert driver.ledger.refusals, "the kills were not noticed"
    note(f"PostgreSQL killed {kills} times, {driver.ledger.count} changes acknowledged, none lost")


def test_the_gateway_refuses_and_recovers(server, tmp_path, note):
    address = server.create("gateway")
    with Gateway(tmp_path, environment={"COUNTERSIGN_STORE": address}) as gateway:
        gateway.add_app("demo", registration="open")
        person = Person(gateway, tmp_path / "phone").signs_up().logs_in()
        key = gateway.add_release(version="3.0")
        assert gateway.send(key.request()).status == 200
        server.kill()
        slowest = 0.0
        for _ in range(10):
            begun = time.monotonic()
            done = person.run("login", "--account", "alice", "--password-stdin", stdin="correct horse battery staple\n")
            slowest = max(slowest, time.monotonic() - begun)
            assert done.returncode != 0
        assert slowest < 10, slowest
        # What is in memory is judged meanwhile.
        assert gateway.send(key.request()).status == 200
        server.start()
        deadline = time.monotonic() + 10
        while person.run("login", "--account", "alice", "--password-stdin", stdin="correct horse battery staple\n").returncode:
            assert time.monotonic() < deadline, "no recovery"
        assert person.calls("/hello")
        codes = [event["status"] for event in gateway.events() if event.get("path", "").endswith("/login/start")]
        assert 503 in codes and 500 not in codes, codes
        verified = json.loads(gateway.admin("audit", "verify", "--json").out)
        note(f"a login took at most {slowest:.2f} s while the store was away; {verified.get('records')} records verified")


def test_a_server_that_hangs(server, tmp_path, note):
    """Its processes are stopped, so that connections stay open and nothing is answered."""
    with Gateway(tmp_path, environment={"COUNTERSIGN_STORE": server.create("hanging")}) as gateway:
        gateway.add_app("demo", registration="open")
        person = Person(gateway, tmp_path / "phone").signs_up().logs_in()
        key = gateway.add_release(version="3.0")
        assert gateway.send(key.request()).status == 200
        stopped = server.pids()
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            done = person.run("login", "--account", "alice", "--password-stdin", stdin="correct horse battery staple\n")
            took = time.monotonic() - begun
            assert done.returncode != 0 and took < 15, (took, done.err)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        deadline = time.monotonic() + 15
        while person.run("login", "--account", "alice", "--password-stdin", stdin="correct horse battery staple\n").returncode:
            assert time.monotonic() < deadline, "no recovery"
        assert person.calls("/hello")
        note(f"a login was refused after {took:.1f} s while the store hung")
