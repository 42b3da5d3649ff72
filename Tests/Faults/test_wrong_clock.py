"""A client whose clock is wrong: refused as `stale`, it learns the time from the authority's signed word, and from nothing else."""

import json
import re
import socket
import threading
import time

import pytest

from clock import Clock
from gateway import Gateway, run
from person import PASSWORD, Person
from ports import reserve_port
from sampling import sampled
from waiting import until
from wire import Closed, Reader

SHIFTS = {"+1s": 1, "-1s": -1, "+5m": 300, "-5m": -300, "+1h": 3600, "-1h": -3600, "-1d": -86_400}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("clock"), "--tls", "off") as running:
        running.add_app("demo")
        running.made = json.loads(running.admin("release", "add", "demo", "--platform", "cli", "--version", "1", "--json").out)
        yield running


class Client:
    """A profile, and commands under a clock that is off by `shift`."""

    def __init__(self, place: Gateway, folder, shift: str, *, port: int | None = None, knows_key: bool = True):
        self.place, self.path, self.shift = place, folder / "profile", shift
        more = ("--authority-key", place.made["authority_key"]) if knows_key else ()
        done = run("profile", "add", self.path, "--url", f"http://127.0.0.1:{port or place.port}", "--key-id",
                   place.made["key_id"], "--secret-stdin", *more, stdin=place.made["secret"])
        assert done.returncode == 0, done.err

    def __call__(self, *options: object):
        return run("request", "--profile", self.path, *options, prefix=("faketime", "-f", self.shift))

    def created(self) -> int:
        """The time that it signs with."""
        return int(re.search(r"created=(\d+)", self("--dry-run", "/").out)[1])


def codes(place: Gateway, path: str, count: int) -> list[str]:
    """What the log says of requests for `path`, once it has so many."""
    def found() -> list[str]:
        return [event["code"] for event in place.events() if event.get("path") == path]

    until(lambda: len(found()) >= count, found)
    return found()


@pytest.mark.parametrize("shift", sampled(SHIFTS, "-1s", "+1h"))
def test_it_learns_and_is_let_in(place, tmp_path, shift):
    client, path = Client(place, tmp_path, shift), f"/learn{shift}".replace("+", "p")
    assert abs(client.created() - time.time() - SHIFTS[shift]) < 1.5, "the clock was not shifted"
    done = client(path)
    assert done.returncode == 0, done.err
    assert json.loads(done.out)["target"] == path, "only the last answer is shown"
    is_refused = abs(SHIFTS[shift]) > 60
    assert codes(place, path, 2 if is_refused else 1) == (["stale", "ok"] if is_refused else ["ok"])
    if is_refused:
        assert "clock" in done.err
        # It is kept: the next call is right at once.
        assert client(path + "2").returncode == 0
        assert codes(place, path + "2", 1) == ["ok"]


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """Sessions whose tokens run out after three seconds."""
    folder = tmp_path_factory.mktemp("sessions")
    with Gateway(folder, "--tls", "off", clock=Clock(folder)) as running:
        running.add_app("demo", registration="open", token_lifetime="3s", slots="unlimited")
        yield running


def test_sessions_from_their_first_login_to_their_end(sessions, tmp_path):
    """Seven people, each under a wrong clock: sign-up, login, calls, a renewal, another password and the end go as under the right one."""
    people = []
    for shift, seconds in SHIFTS.items():
        person = Person(sessions, tmp_path / f"person{seconds}", f"person{seconds}")
        person.prefix, person.environment = ("faketime", "-f", shift), {}
        people.append(person.signs_up().logs_in())
    for turn in range(2):
        for person in people:
            assert person.calls("/hello")["headers"]["countersign-account"] == f"name:{person.name}"
            assert person.status("--offline")["epoch"] >= turn, "its token had run out"
        sessions.clock.advance(3.1)
    for person in people:
        done = person.run("password", "--password-stdin", stdin=f"{PASSWORD}\nanother one\n")
        assert done.returncode == 0, done.err
        assert person.status()["signed_in"]
        assert person.run("logout").returncode == 0 and not person.status()["signed_in"]


def test_a_clock_that_jumps_under_a_session(sessions, tmp_path):
    """Signed in under the right clock, then called under each of the others, one after the other: the session is never lost."""
    alice = Person(sessions, tmp_path / "alice", "jumping").signs_up().logs_in()
    session = alice.status()["session"]
    for shift in ("+1h", "-1d", "+5m", "-1s", "+0"):
        alice.prefix, alice.environment = ("faketime", "-f", shift), {}
        sessions.clock.advance(3.1)
        done = alice.run("request", "/hello")
        assert done.returncode == 0, (shift, done.err)
        assert alice.status()["session"] == session
    assert alice.status("--offline")["epoch"] >= 5, "each call found its token run out"


def test_what_changes_something_is_named_and_so_may_be_sent_again(place, tmp_path):
    client = Client(place, tmp_path, "+1h")
    done = client("-d", "amount=1", "/pay-plain")
    assert done.returncode == 0 and json.loads(done.out)["headers"]["idempotency-key"], done.err
    assert codes(place, "/pay-plain", 2) == ["stale", "ok"]


def test_what_may_have_been_done_is_not_sent_again(place, tmp_path):
    client = Client(place, tmp_path, "+1h")
    # Neither read nor named: an attacker in between may have had another copy executed.
    done = client("-X", "OPTIONS", "/unnamed")
    assert done.returncode == 1 and json.loads(done.out)["code"] == "stale"
    assert codes(place, "/unnamed", 1) == ["stale"]
    # The client has learnt the time all the same; only the user repeats the request.
    assert client("-X", "OPTIONS", "/unnamed").returncode == 0


def test_what_is_done_once_is_sent_again(place, tmp_path):
    client = Client(place, tmp_path, "-1h")
    done = client("-d", "amount=1", "-H", "Idempotency-Key: k-1", "/pay-keyed")
    assert done.returncode == 0 and codes(place, "/pay-keyed", 2) == ["stale", "ok"]


def test_without_the_authoritys_key_nobody_is_believed(place, tmp_path):
    client = Client(place, tmp_path, "+1h", knows_key=False)
    for _ in range(2):
        done = client("/unbelieved")
        assert done.returncode == 1 and json.loads(done.out)["code"] == "stale"
    assert codes(place, "/unbelieved", 2) == ["stale", "stale"]


class Middle:
    """Between client and gateway: passes each exchange through `change`, which may alter the answer or keep it waiting."""

    def __init__(self, gateway: Gateway, port: int, change):
        self.gateway, self.change, self.passed = gateway, change, 0
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            sock, _ = self.listener.accept()
            try:
                reader = Reader(sock)
                start, fields = reader.head()
                # The client signs for the name that it calls; the gateway answers for that of the middle too.
                data = "\r\n".join([start] + [f"{name}: {value}" for name, value in fields]) + "\r\n\r\n"
                answer = self.gateway.send(data.encode())
                self.passed += 1
                head, body = self.change(answer)
                sock.sendall(head.encode() + body)
            except (Closed, OSError):
                pass
            finally:
                sock.close()


def wire(answer) -> tuple[str, bytes]:
    lines = [f"HTTP/1.1 {answer.status} X"] + [f"{name}: {value}" for name, value in answer.fields]
    return "\r\n".join(lines) + "\r\n\r\n", answer.body


def late(answer) -> tuple[str, bytes]:
    time.sleep(5.5)  # lint: an answer that is late by the client's clock
    return wire(answer)


def forged(answer) -> tuple[str, bytes]:
    """Another time, under the signature of the true one."""
    told = json.loads(answer.body)
    answer.body = json.dumps({**told, "time": told["time"] + 1_000_000}).encode()
    answer.fields = [(name, str(len(answer.body)) if name == "content-length" else value) for name, value in answer.fields]
    return wire(answer)


def stripped(answer) -> tuple[str, bytes]:
    answer.fields = [(name, value) for name, value in answer.fields if name not in ("signature", "signature-input")]
    return wire(answer)


@pytest.mark.parametrize("change", [late, forged, stripped])
def test_who_stands_in_between_does_not_set_the_clock(tmp_path, change):
    port = reserve_port()
    with Gateway(tmp_path, "--tls", "off", "--authority", f"127.0.0.1:{port}") as place:
        place.add_app("demo")
        place.made = json.loads(place.admin("release", "add", "demo", "--platform", "cli", "--version", "1", "--json").out)
        middle = Middle(place, port, change)
        client = Client(place, tmp_path, "+1h", port=port)
        before = client.created()
        done = client("/between")
        assert done.returncode == 1, done.out
        assert middle.passed == 1, "it was sent once, and not again"
        assert abs(client.created() - before) < 30, "nothing was learnt"
