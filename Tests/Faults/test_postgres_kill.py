"""PostgreSQL's processes are killed under load, and started again: nothing that was acknowledged is lost, requests are refused within a bound
meanwhile, and the gateway goes on by itself."""

import contextlib
import json
import os
import signal

import pytest

from gateway import Gateway
from person import Person
from postgres import Postgres, programs
from waiting import until

pytestmark = pytest.mark.skipif(programs() is None, reason="no postgres")


@pytest.fixture
def server():
    server = Postgres()
    yield server
    server.remove()


def test_the_gateway_refuses_and_recovers(server, tmp_path, note):
    address = server.create("gateway")
    with Gateway(tmp_path, environment={"COUNTERSIGN_STORE": address}) as gateway:
        gateway.add_app("demo", registration="open")
        person = Person(gateway, tmp_path / "phone").signs_up().logs_in()
        key = gateway.add_release(version="3.0")
        assert gateway.send(key.request()).status == 200
        server.kill()
        # What is in memory is judged meanwhile, until the lease has lapsed.
        assert gateway.send(key.request()).status == 200
        for _ in range(10):
            done = person.run("login", "--account", "alice", "--password-stdin", stdin="correct horse battery staple\n")
            assert done.returncode != 0
        until(lambda: gateway.send(key.request()).status == 503, "the lease lasts")
        server.start()
        until(lambda: not person.run("login", "--account", "alice", "--password-stdin",
                                     stdin="correct horse battery staple\n").returncode, "no recovery")
        assert person.calls("/hello")
        codes = [event["status"] for event in gateway.events() if event.get("path", "").endswith("/login/start")]
        assert 503 in codes and 500 not in codes, codes
        verified = json.loads(gateway.admin("audit", "verify", "--json").out)
        note(f"the store was away; {verified.get('records')} records verified")


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
            # The command's limit means that it hangs.
            done = person.run("login", "--account", "alice", "--password-stdin", stdin="correct horse battery staple\n")
            assert done.returncode != 0, done.err
        finally:
            for pid in stopped:
                # A process of the server that serves a connection ends with it.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        until(lambda: not person.run("login", "--account", "alice", "--password-stdin",
                                     stdin="correct horse battery staple\n").returncode, "no recovery")
        assert person.calls("/hello")


def test_other_requests_do_not_wait_for_a_server_that_hangs(server, tmp_path, note):
    """The first request of a session reads its row. While the server does not answer, that request waits, and no other one does."""
    environment = {"COUNTERSIGN_STORE": server.create("waiting")}
    with Gateway(tmp_path, "--outage", "grace:60", environment=environment) as gateway:
        gateway.add_app("demo", registration="open")
        person = Person(gateway, tmp_path / "phone").signs_up().logs_in()
        key = gateway.add_release(version="3.0")
        gateway.stop()
        gateway.start()
        assert gateway.send(key.request()).status == 200
        stopped = server.pids()
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            waiting = [person.begin("/hello") for _ in range(4)]
            answered = 0
            while any(call.poll() is None for call in waiting):
                assert gateway.send(key.request()).status == 200
                answered += 1
            assert all(call.wait(60) != 0 for call in waiting), "the lookups did not wait for the server"
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        assert answered > 20, "requests waited for the lookups"
        note(f"{answered} requests were answered while lookups waited for the store")
