"""Several processes on one profile, some of which are killed: the next process continues as if nothing had
happened."""

import signal
import subprocess

import pytest

import needs
import processes
from clock import Clock
from dropping import DroppingProxy
from gateway import BINARY, Gateway
from kills import killed_at
from person import PASSWORD, Person
from waiting import HANGS


@pytest.fixture(scope="module")
def behind(tmp_path_factory):
    """A gateway whose tokens are good for a second, and a proxy before it."""
    folder = tmp_path_factory.mktemp("processes")
    with DroppingProxy() as proxy, Gateway(folder / "gateway", "--tls", "off", "--authority", f"127.0.0.1:{proxy.port}",
                                           clock=Clock(folder)) as gateway:
        proxy.upstream = gateway.port
        gateway.add_app("demo", registration="open", **{"token-lifetime": "1s"})
        yield gateway, proxy


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One that takes passwords, too."""
    with Gateway(tmp_path_factory.mktemp("logins")) as gateway:
        gateway.add_app("demo", registration="open", **{"password-login": "on"})
        yield gateway


def person(behind, folder, name: str) -> Person:
    return Person(behind[0], folder / name, name, url=f"http://127.0.0.1:{behind[1].port}")


@pytest.mark.parametrize("what", ["request", "answer"], ids=["before it was received", "after it was answered"])
def test_killed_in_the_middle_of_a_refresh(behind, tmp_path, what):
    proxy = behind[1]
    alice = person(behind, tmp_path, f"killed-{what}").signs_up().logs_in()
    before = alice.status("--offline")
    behind[0].clock.advance(1.1)
    proxy.hold(what, "/token")
    process = alice.begin("/first")
    try:
        assert proxy.holds.wait(60), "there was no refresh to be killed in"
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        proxy.released.set()
    assert process.returncode == -signal.SIGKILL
    assert alice.calls("/second")["headers"]["countersign-session"] == before["session"]
    after = alice.status("--offline")
    assert (after["session"], after["epoch"]) == (before["session"], before["epoch"] + 1)


@needs.programs("strace")
def test_killed_again_and_again(behind, tmp_path):
    """At each lock, write and message of a refresh; the session is there, and only its epoch has grown."""
    alice = person(behind, tmp_path, "again").signs_up().logs_in()
    session = alice.status("--offline")["session"]
    # The first of each are one thread's in any case; the later ones depend on how the threads share the work.
    for call, first, last in (("flock", 2, 6), ("fsync", 2, 6), ("rename", 1, 3), ("sendto", 1, 2), ("recvfrom", 1, 2)):
        for number in range(1, last + 1):
            behind[0].clock.advance(1.02)
            alice.prefix = killed_at(call, number)
            assert alice.run("request", "/killed").returncode == -signal.SIGKILL or number > first, (call, number)
            alice.prefix = ()
            # Every other time, the next one finds what two of them have left.
            if number % 2 == 0:
                assert alice.calls("/after")["headers"]["countersign-session"] == session, (call, number)
    assert alice.calls("/last")["headers"]["countersign-session"] == session


@pytest.mark.parametrize("how", [(), ("--password-login",)], ids=["by proof", "by password"])
def test_two_log_in_at_once(served, tmp_path, how):
    alice = Person(served, tmp_path / "twice", f"twice{len(how)}").signs_up()
    for _ in range(3):
        command = [BINARY, "login", "--profile", alice.profile, "--account", alice.name, "--password-stdin", *how]
        both = [processes.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
        # Both have started before either has its password.
        for process in both:
            process.stdin.write(PASSWORD.encode())
            process.stdin.close()
            process.stdin = None
        ended = [process.communicate(timeout=60) for process in both]
        assert [process.returncode for process in both] == [0, 0], ended
        # What is kept is the one that the server knows last: it is live.
        assert alice.calls("/hello")["headers"]["countersign-session"] == alice.status("--offline")["session"]
        assert alice.run("status").returncode == 0


def test_signing_out_while_others_call(behind, tmp_path):
    """Calls that were in progress may end either way; none restores a session that was signed out."""
    proxy = behind[1]
    alice = person(behind, tmp_path, "leaving").signs_up()
    for what, where in (("request", "/token"), ("answer", "/token"), ("request", "/call/"), ("answer", "/call/")):
        alice.logs_in()
        behind[0].clock.advance(1.1)
        proxy.hold(what, where)
        calls = [alice.begin(f"/call/{number}") for number in range(3)]
        assert proxy.holds.wait(HANGS), "no call is in progress"
        done = alice.run("logout")
        proxy.released.set()
        for process in calls:
            process.communicate(timeout=60)
        assert done.returncode == 0, done.err
        assert not alice.status("--offline")["signed_in"]
        assert {process.returncode for process in calls} <= {0, 1}
