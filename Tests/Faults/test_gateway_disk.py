"""A disk that fills up, fails or turns read-only under a gateway with people at work: logins, renewals, logouts and commands, which are
changes, are refused, none of them half made; what is known goes on. Once the disk is well, all is as before."""

import contextlib
import dataclasses
import errno
import json
import pathlib
import threading

import pytest

from bearer import add_app, asked, bearing, login
from clock import Clock
from failing import Ext4, FailingDisk, needs_ext4, needs_mounts
from gateway import Gateway, run
from person import Person
from till import Till
from waiting import until
from wire import Answer, Closed

ACCOUNTS = 3
REASONS = {errno.EIO: "the disk failed: ", errno.EROFS: "the disk failed: ", errno.ENOSPC: "the disk is full; nothing was changed"}


@dataclasses.dataclass
class Session:
    """A session as its client knows it: a change that was refused has not happened."""
    token: str
    login_token: str
    is_over: bool = False
    was_refused: bool = False


class People(threading.Thread):
    """A client that repeatedly signs in, renews and signs out, and records what was acknowledged."""

    def __init__(self, gateway: Gateway, name: str):
        super().__init__(daemon=True)
        self.gateway, self.name_, self.stopping = gateway, name, threading.Event()
        self.sessions: list[Session] = []
        self.refused = 0
        self.failures: list[str] = []
        self.start()

    def run(self) -> None:
        try:
            with self.gateway.connect(timeout=60) as connection:
                while not self.stopping.is_set():
                    self.turn(connection)
        except (AssertionError, Closed, OSError) as failure:
            self.failures.append(repr(failure))

    def turn(self, connection) -> None:
        made = self.changed(asked(connection, login(self.gateway, self.name_)))
        if not made:
            return
        session = Session(made["token"], made["login_token"])
        self.sessions.append(session)
        if renewed := self.changed(asked(connection, renewal(self.gateway, session.login_token))):
            session.token, session.login_token = renewed["token"], renewed["login_token"]
        session.was_refused = renewed is None
        if len(self.sessions) % 2:
            said = self.changed(asked(connection, bearing(self.gateway, session.token, "POST", "/logout")))
            session.is_over, session.was_refused = said is not None, session.was_refused or said is None

    def changed(self, outcome: tuple[str, Answer]) -> dict | None:
        said, answer = outcome
        if said == "unavailable":
            assert answer.status == 503 and int(answer.get("retry-after")) > 0, answer
            self.refused += 1
            return None
        assert said == "accepted", answer
        return json.loads(answer.body or b"{}")

    def until(self, holds) -> None:
        def does_hold() -> bool:
            assert self.is_alive() and not self.failures, self.failures
            return holds(self)

        until(does_hold, lambda: (len(self.sessions), self.refused))

    def stop(self) -> None:
        self.stopping.set()
        self.join(60)
        assert not self.failures, self.failures

    def check(self, connection) -> None:
        """What it was told is so."""
        for session in self.sessions:
            said, _ = asked(connection, bearing(self.gateway, session.token))
            assert said == ("session-ended" if session.is_over else "accepted"), session

    def check_after_mending(self, connection) -> int:
        """The same, except that a refused change may have been made: it was in the journal when the sync
        failed. This signs out no session without a request. Returns the number of such sessions."""
        found = 0
        for session in self.sessions:
            said, _ = asked(connection, bearing(self.gateway, session.token))
            if session.was_refused and said == "token-expired":
                said, found = asked(connection, renewal(self.gateway, session.login_token))[0], found + 1
            elif session.was_refused and said == "session-ended" and not session.is_over:
                said, found = "accepted", found + 1
            assert said == ("session-ended" if session.is_over else "accepted"), session
        return found


def renewal(gateway: Gateway, login_token: str) -> bytes:
    return gateway.key.request("POST", "/countersign/v1/token", json.dumps({"login_token": login_token}).encode())


def payment(gateway: Gateway, key: str) -> bytes:
    return gateway.key.request("POST", "/pay", b"amount=1", fields=[("idempotency-key", key)])


@pytest.mark.parametrize("error", REASONS, ids=[errno.errorcode[error] for error in REASONS])
def test_a_gateway_whose_disk_fails(tmp_path, error):
    disk = FailingDisk(tmp_path)
    with Till(tmp_path / "till.db") as till, \
            Gateway(tmp_path / "gateway", "--upstream", till.url, *generous(), environment=disk.environment,
                    clock=Clock(tmp_path)) as gateway:
        add_app(gateway, ACCOUNTS)
        gateway.add_app("short", registration="open", token_lifetime="2s")
        person = Person(gateway, tmp_path / "alice", app="short").signs_up().logs_in()
        people = [People(gateway, f"user-{number}") for number in range(ACCOUNTS)]
        with gateway.connect() as connection:
            mine = json.loads(asked(connection, login(gateway, "user-0"))[1].body)
            connection.send(payment(gateway, "before"))
            paid = connection.answer()
            assert paid.status == 201
            for one in people:
                one.until(lambda one: len(one.sessions) > 5)
            gateway.clock.advance(2.1)

            disk.fails(error)
            before = [len(one.sessions) for one in people]
            for one in people:
                one.until(lambda one: one.refused > 3)
            said, answer = asked(connection, login(gateway, "user-0"))
            assert said == "unavailable"
            # Nothing of its own disk is told to a caller; the log has it.
            assert b"disk" not in answer.body and str(gateway.data).encode() not in answer.body
            detail = gateway.event(json.loads(answer.body)["instance"])["detail"]
            assert REASONS[error] in detail and "countersign.db" in detail
            assert asked(connection, renewal(gateway, mine["login_token"]))[0] == "unavailable"
            assert asked(connection, bearing(gateway, mine["token"], "POST", "/logout"))[0] == "unavailable"
            # Keyed requests go on: their log is a file of its own (test_request_log.py has its failures).
            connection.send(payment(gateway, "before"))
            again = connection.answer()
            assert (again.body, again.get("countersign-replayed")) == (paid.body, "true")
            connection.send(payment(gateway, "during"))
            during = connection.answer()
            assert (during.status, during.get("countersign-replayed")) == (201, None) and till.moves == 2
            # A request without a key is no change of ours.
            connection.send(gateway.key.request("POST", "/plain", b"amount=1"))
            assert connection.answer().status == 201 and till.moves == 3
            # A client whose token has run out cannot renew it, and keeps its session.
            done = person.run("request", "/hello")
            assert done.returncode != 0 and "unavailable" in done.err, done.err
            assert person.status("--offline")["signed_in"]
            done = run("account", "lock", "demo", "user-0", "--data", gateway.data, environment=gateway.environment)
            assert done.returncode == 3 and "countersign.db" in done.err and len(done.err.splitlines()) == 1, done.err
            assert [len(one.sessions) for one in people] <= [count + 1 for count in before], "changes were taken all the while"
            assert any("countersign.db" in line for line in disk.failures), "the disk did not fail"

            disk.is_well()
            for one, count in zip(people, [len(one.sessions) for one in people]):
                one.until(lambda one, count=count: len(one.sessions) > count + 3)
                one.stop()
            renewed = asked(connection, renewal(gateway, mine["login_token"]))
            assert renewed[0] == "accepted", "the login token that was refused is good"
            connection.send(payment(gateway, "during"))
            answer = connection.answer()
            assert (answer.status, answer.body, answer.get("countersign-replayed")) == (201, during.body, "true")
            connection.send(gateway.key.request("GET", "/plain"))
            assert connection.answer().status == 201
        assert person.run("request", "/hello").returncode == 0, "the session was not lost"
        for turn in range(2):
            with gateway.connect() as connection:
                for one in people:
                    one.check(connection)
            gateway.admin("audit", "verify")
            # Twice: as it is in memory, and as it is on the disk.
            if turn == 0:
                assert gateway.stop() == 0
                gateway.start()
        notes = [event for event in gateway.events() if "the store takes" in json.dumps(event)]
        # As the store says it of each stretch of failures, and not of each failure; a change that has nothing to write ends one.
        assert "takes no changes: " in json.dumps(notes[0]) and "takes changes again" in json.dumps(notes[-1])
        assert len(notes) % 2 == 0 and len(notes) < sum(one.refused for one in people)
        assert gateway.stop() == 0


def generous() -> tuple[str, ...]:
    """Login limits that this test does not reach."""
    return ("--login-account", "100000/1s", "--login-address", "100000/1s")


@needs_ext4
def test_a_gateway_whose_file_system_turns_read_only(tmp_path, note):
    gateway = Gateway(tmp_path, *generous())
    ext4 = Ext4(tmp_path / "image", gateway.data)
    with contextlib.ExitStack() as stack:
        stack.push(gateway.start(prefix=ext4.prefix))
        add_app(gateway, ACCOUNTS)
        people = [People(gateway, f"user-{number}") for number in range(ACCOUNTS)]
        for one in people:
            one.until(lambda one: len(one.sessions) > 5)
        ext4.breaks(*gateway.inside)
        for one in people:
            one.until(lambda one: one.refused > 3)
        with pytest.raises(OSError) as refusal:
            (gateway.seen_data / "probe").write_bytes(b"x")
        assert refusal.value.errno == errno.EROFS, "it can still be written to"
        with gateway.connect() as connection:
            # Existing sessions continue, and so do requests under a release's key.
            assert asked(connection, gateway.key.request("GET", "/plain"))[0] == "accepted"
            assert asked(connection, login(gateway, "user-0"))[0] == "unavailable"
            for one in people:
                one.stop()
                one.check(connection)
        done = run("account", "lock", "demo", "user-0", "--data", gateway.data, prefix=gateway.inside)
        assert done.returncode in (1, 3) and len(done.err.splitlines()) == 1 and str(gateway.data) in done.err, done.err
        gateway.stop()

        ext4.is_mended()
        gateway.start(prefix=ext4.prefix)
        with gateway.connect() as connection:
            doubtful = sum(one.check_after_mending(connection) for one in people)
            assert asked(connection, login(gateway, "user-0"))[0] == "accepted"
        gateway.admin("account", "lock", "demo", "user-0")
        gateway.admin("audit", "verify")
        assert gateway.stop() == 0
    note(f"a gateway's file system turned read-only: {sum(len(one.sessions) for one in people)} sessions as their clients knew them, of "
         f"{doubtful} a refused change was found done")


@needs_mounts
def test_a_gateway_on_a_full_disk(tmp_path):
    """Logins, logouts and commands, which are changes, are refused; what is known goes on. Then all is as before."""
    gateway = Gateway(tmp_path)
    gateway.data.mkdir()
    mount = f'mount -t tmpfs -o size=64m,mode=700 none "{gateway.data}" && exec "$@"'
    gateway.start(prefix=("unshare", "-m", "sh", "-c", mount, "sh"))
    add_app(gateway, 1)
    with gateway.connect() as connection:
        tokens = [json.loads(asked(connection, login(gateway, "user-0"))[1].body)["token"] for _ in range(3)]
        assert asked(connection, bearing(gateway, tokens[0], "POST", "/logout"))[0] == "accepted"

        ballast = gateway.seen_data / "ballast"
        fill(ballast)
        for _ in range(200):
            said, answer = asked(connection, login(gateway, "user-0"))
            if said != "accepted":
                break
            fill(ballast)
        assert (said, answer.status) == ("unavailable", 503) and int(answer.get("retry-after")) > 0
        # Nothing of its own disk is told to a caller; the log has it.
        assert b"disk" not in answer.body and str(gateway.data).encode() not in answer.body
        assert "the disk is full" in gateway.event(json.loads(answer.body)["instance"])["detail"]
        assert asked(connection, bearing(gateway, tokens[1], "POST", "/logout"))[0] == "unavailable"
        assert asked(connection, bearing(gateway, tokens[1]))[0] == "accepted", "it was not logged out"
        assert asked(connection, bearing(gateway, tokens[0]))[0] == "session-ended"
        assert asked(connection, gateway.key.request("POST", "/order", b"amount=1"))[0] == "accepted"
        command = run("account", "add", "demo", "late", "--data", gateway.data, prefix=gateway.inside)
        assert command.returncode == 3 and "the disk is full; nothing was changed" in command.err, command.err

        ballast.unlink()
        assert asked(connection, login(gateway, "user-0"))[0] == "accepted"
        assert asked(connection, bearing(gateway, tokens[1], "POST", "/logout"))[0] == "accepted"
        assert asked(connection, bearing(gateway, tokens[1]))[0] == "session-ended"
        assert asked(connection, bearing(gateway, tokens[2]))[0] == "accepted"
    gateway.admin("account", "add", "demo", "late")
    gateway.admin("audit", "verify")
    notes = [event for event in gateway.events() if "the store takes" in json.dumps(event)]
    assert len(notes) == 2, notes
    assert gateway.stop() == 0


def fill(ballast: pathlib.Path) -> None:
    """Takes what room there is, to the last byte."""
    with open(ballast, "ab", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
