"""Power loss under a gateway with people and administrators at work: a replay of a traced run's writes without all that no fsync had
covered. Whatever was acknowledged, at the moment when its answer began to be sent, is there afterwards: logins, logouts, revocations,
replaced sessions, other passwords, locked accounts with their records, and, before the backend heard of it, that a payment had begun."""

import base64
import dataclasses
import hashlib
import json
import pathlib
import random
import re
import shutil
import sqlite3
import threading

import pytest

import disk
import request_log
from dropping import DroppingProxy
from gateway import Gateway, run
from person import PASSWORD, Person
from till import Till
from traced import TracedGateway

PEOPLE = 3

# What must hold: an account is locked, a session is there, or has ended for that reason, a password is the last one, a payment begun.
Fact = tuple[str, ...]


@dataclasses.dataclass
class Run:
    """What happened, and when it was said: facts by the port that was answered, or the file that was printed to."""
    gateway: Gateway
    before: pathlib.Path
    trace: pathlib.Path
    backend: int
    facts: dict[str, list[Fact]]
    people: list["Life"]
    # The key of a payment that the backend was told of last.
    last_key: str = ""

    def said(self, event: disk.Event) -> list[Fact]:
        if event.kind == "output":
            return self.facts.get(event.path, [])
        if event.kind != "sent":
            return []
        peer = event.path.split("->")[1]
        if peer == str(self.backend):
            keys = re.findall(rb"\r\nidempotency-key: (\S+)\r\n", event.data, re.IGNORECASE)
            return [("begun", key.decode()) for key in keys]
        return self.facts.get(peer, []) if event.data.startswith(b"HTTP/1.1 200 ") else []


class Life(threading.Thread):
    """An account with two devices and a third."""

    def __init__(self, gateway: Gateway, folder: pathlib.Path, proxy: DroppingProxy, release: dict, number: int):
        super().__init__(daemon=True)
        self.name_, self.proxy, self.facts, self.failure = f"person-{number}", proxy, {}, None
        self.devices = [Person(gateway, folder / f"{number}-{device}", self.name_, release=release,
                               url=f"http://127.0.0.1:{proxy.port}") for device in range(3)]
        self.devices[0].signs_up()

    def run(self) -> None:
        try:
            self.lives()
        except AssertionError as failure:
            self.failure = failure

    def so(self, path: str, *facts: Fact) -> None:
        """The last request to there was answered, and so these hold."""
        port = next(port for line, port in reversed(self.proxy.ports) if f"{path} " in line)
        self.facts.setdefault(str(port), []).extend(facts)

    def logs_in(self, device: int, *more: Fact, password: str = PASSWORD) -> str:
        self.devices[device].logs_in(password=password)
        session = self.devices[device].status("--offline")["session"]
        self.so("/login/finish", ("session", session), *more)
        return session

    def done(self, device: int, command: str, *arguments: object, stdin: str = "") -> None:
        done = self.devices[device].run(command, *arguments, stdin=stdin)
        assert done.returncode == 0, done.err

    def lives(self) -> None:
        first = self.logs_in(0)
        second = self.logs_in(1)
        self.done(0, "sessions", "--end", second)
        self.so(f"/sessions/{second}", ("ended", second, "revoked"))
        third = self.logs_in(1)
        self.done(0, "request", "-d", "amount=1", "-H", f"Idempotency-Key: of-{self.name_}", "/pay")
        self.done(0, "password", "--password-stdin", stdin=f"{PASSWORD}\nanother {PASSWORD}\n")
        self.so("/password/finish", ("ended", third, "password-changed"), ("password", self.name_))
        fourth = self.logs_in(1, password=f"another {PASSWORD}")
        # Two at once: the third takes the place of the oldest.
        self.logs_in(2, ("ended", first, "replaced"), password=f"another {PASSWORD}")
        self.done(1, "logout")
        self.so("/logout", ("ended", fourth, "signed-out"))


@pytest.fixture(scope="module")
def happened(tmp_path_factory):
    if not shutil.which("strace"):
        pytest.skip("no strace")
    folder = tmp_path_factory.mktemp("power")
    gateway = Gateway(folder / "gateway", "--tls", "off", "--login-address", "1000/1s")
    with Till(folder / "till.db") as till:
        with gateway:
            gateway.add_app("demo", registration="open", slots="limit(2)")
            proxies = [DroppingProxy(gateway.port) for _ in range(PEOPLE)]
            gateway.options += ("--upstream", till.url, "--authority",
                                ",".join(f"127.0.0.1:{port}" for port in [gateway.port, *(one.port for one in proxies)]))
            gateway.stop()
            gateway.start()
            gateway.key = gateway.add_release()
            release = json.loads(gateway.admin("release", "add", "demo", "--platform", "ios", "--version", "2", "--json").out)
            people = [Life(gateway, folder / "people", proxy, release, number) for number, proxy in enumerate(proxies)]
        before = folder / "before"
        shutil.copytree(gateway.data, before, ignore=shutil.ignore_patterns("control"))
        traced = TracedGateway(gateway, folder)
        for one in people:
            one.start()
        facts: dict[str, list[Fact]] = {}
        for number in range(8):
            facts[traced.order("account", "add", "demo", f"made-{number}")] = [("account", f"made-{number}", "active")]
            facts[traced.order("account", "lock", "demo", f"made-{number}")] = [("account", f"made-{number}", "locked")]
        for one in people:
            one.join(120)
            assert not one.is_alive() and not one.failure, one.failure
            facts |= one.facts
        fields = [("idempotency-key", "the-last")]
        assert gateway.send(gateway.key.request("POST", "/pay", b"amount=1", fields=fields)).status == 201
        traced.end()
        yield Run(gateway, before, traced.trace, till.port, facts, people, "the-last")


def text(row: bytes) -> str:
    return base64.urlsafe_b64encode(row).decode().rstrip("=")


def missing(database: pathlib.Path, facts: set[Fact], passwords: dict[str, bytes]) -> list[Fact]:
    """What the database, and the log of keyed requests beside it, do not have of it."""
    with sqlite3.connect(database) as book:
        sessions = {text(row[0]): row[1] for row in book.execute("SELECT id, end_reason FROM session")}
        accounts = {row[0]: row[1:] for row in book.execute("SELECT name, state, sealed_record, pseudonym FROM account")}
        records = "\n".join(row[0] for row in book.execute("SELECT record FROM audit"))
    book.close()
    begun = request_log.begun(database.parent)

    def holds(kind: str, name: str, *more: str) -> bool:
        if kind == "session":
            return name in sessions
        if kind == "ended":
            return sessions.get(name) == more[0]
        if kind == "begun":
            return hashlib.sha256(name.encode()).digest() in begun
        if kind == "password":
            return accounts[name][1] == passwords[name]
        # What was made is soon locked. Each change stands in the log, too.
        action = {"active": "account.add", "locked": "account.lock"}[more[0]]
        if name not in accounts:
            return False
        state, _, pseudonym = accounts[name]
        recorded = re.search(rf'"{re.escape(action)}".*"a_{text(pseudonym)}"', records)
        return state in {more[0], "locked"} and recorded is not None

    return [fact for fact in facts if not holds(*fact)]


def losing(happened: Run, tmp_path: pathlib.Path, count: int, *, torn: bool = False, forgetting: bool = False) -> tuple[int, int, set[str], int]:
    """Lets the power fail at twice `count` chosen moments; how often it did, the bytes that it took, the kinds of facts that were said before,
    and how many of them were missing afterwards."""
    data, tears = happened.gateway.data, random.Random(2)
    with sqlite3.connect(data / "countersign.db") as book:
        passwords = dict(book.execute("SELECT name, sealed_record FROM account"))
    book.close()
    events = list(disk.events(happened.trace))
    spoken = [index for index, event in enumerate(events) if happened.said(event)]
    writes = [index for index, event in enumerate(events) if event.kind == "write" and index > spoken[0]]
    # Right where it is said, where there is the most to miss, and in the middle of a transaction.
    points = {*random.Random(1).sample(spoken[:-1], count - 1), *random.Random(1).sample(writes, count), spoken[-1]}
    facts: set[Fact] = set()
    crashes = lost = absent = 0
    replay = disk.losses(happened.trace, data, lambda _: None, before=happened.before, keeps_last_sync=not forgetting)
    for index, (event, now) in enumerate(replay):
        facts.update(happened.said(event))
        if index not in points:
            continue
        target = tmp_path / f"after-{index}"
        now.rebuild(target, tears if torn else None)
        crashes, lost = crashes + 1, lost + now.at_risk
        shutil.copy(happened.before / "master.key", target)
        absent += len(missing(target / "countersign.db", facts, passwords))
        verified = run("audit", "verify", "--data", target)
        assert verified.returncode == 0, verified.out + verified.err
        # It reads the log of keyed requests.
        shown = run("account", "show", "demo", "person-0", "--data", target)
        assert shown.returncode == 0, shown.out + shown.err
        shutil.rmtree(target)
    return crashes, lost, {fact[0] + "".join(fact[2:]) for fact in facts}, absent


@pytest.mark.parametrize("torn", [False, True], ids=["nothing unsynced arrives", "some sectors of it arrive"])
def test_what_was_acknowledged_survives(happened, tmp_path, note, is_long, torn):
    count = 30 if is_long else 12
    crashes, lost, kinds, absent = losing(happened, tmp_path, count, torn=torn)
    assert crashes == 2 * count and lost > 0, "the power failed while nothing was on its way"
    assert kinds == {"session", "endedrevoked", "endedpassword-changed", "endedreplaced", "endedsigned-out", "password", "begun",
                     "accountactive", "accountlocked"}
    assert absent == 0
    note(f"power loss under a gateway, {'torn' if torn else 'clean'}: {crashes} times, {lost:,} bytes lost, no acknowledged change")


def test_a_lost_fsync_is_noticed(happened, tmp_path):
    """The test above can fail: with the last fsync of the journal undone, what it covered is missed."""
    assert losing(happened, tmp_path, 12, forgetting=True)[3] > 0


def test_the_gateway_after_it(happened, tmp_path):
    """Restarted on the state at the moment when the backend received the last payment: the payment is not
    made again, and sessions that were ended, or begun, remain so."""
    for event, now in disk.losses(happened.trace, happened.gateway.data, lambda _: None, before=happened.before):
        if ("begun", happened.last_key) in happened.said(event):
            break
    else:
        raise AssertionError("the backend was never told")
    after = tmp_path / "gateway"
    after.mkdir()
    now.rebuild(after / "data")
    (after / "data").chmod(0o700)
    for path in happened.before.iterdir():
        if path.is_file() and not path.name.startswith(("countersign.db", "requests-")):
            shutil.copy(path, after / "data")
    with Till(tmp_path / "till.db") as till:
        options = list(happened.gateway.options)
        options[options.index("--upstream") + 1] = till.url
        gateway = Gateway(after, *options)
        gateway.port = happened.gateway.port
        with gateway:
            fields = [("idempotency-key", happened.last_key)]
            answer = gateway.send(happened.gateway.key.request("POST", "/pay", b"amount=1", fields=fields))
            assert (answer.status, json.loads(answer.body)["code"]) == (503, "unavailable")
            assert till.moves == 0
            for one in happened.people:
                first, second, third = one.devices
                done = first.run("request", "/x")
                assert done.returncode == 1 and "replaced" in done.err, done.err
                assert "no account is signed in" in second.run("logout").err
                done = third.run("request", "/x")
                assert done.returncode == 0, done.err
