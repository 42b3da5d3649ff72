"""Webhooks: what happens to accounts, sessions, releases and keys is told to HTTPS endpoints, at least once, with a signature that another
implementation of RFC 9421 verifies; without a secret, and not to addresses of inner networks unless that is allowed."""

import base64
import datetime
import http.server
import json
import re
import signal
import sqlite3
import ssl
import threading
import time
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, InvalidSignature, algorithms

from authority import Authority
from clock import Clock
from gateway import run
from person import Person
from test_metrics import Administered
from waiting import HANGS, until

COVERED = ("@method", "@target-uri", "content-type", "content-digest", "countersign-event")


class Receiver:
    """An HTTPS server that keeps what it gets, and answers as it is told."""

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self.authority = Authority(folder, "receivers")
        issued = self.authority.issue("receiver")
        self.got, self.answer, self.lock = [], 204, threading.Lock()
        self.has_begun, self.go, self.location = threading.Event(), threading.Event(), ""
        self.begun = threading.Semaphore(0)
        self.go.set()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.has_begun.set()
                receiver.begun.release()
                go = receiver.go
                assert go.wait(HANGS)
                if go is not receiver.go:
                    # Of a server that was killed.
                    return
                with receiver.lock:
                    receiver.got.append(SimpleNamespace(path=self.path, headers=dict(self.headers), body=body, at=time.time()))
                self.send_response(receiver.answer)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*issued)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://localhost:{self.server.server_port}/hooks?a=1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def events(self) -> list[dict]:
        with self.lock:
            return [json.loads(each.body) for each in self.got]

    def wait(self, kind: str, **members: object) -> dict:
        """The event of that type, once it has come."""
        def found() -> list[dict]:
            return [event for event in self.events() if event["type"] == kind and members.items() <= event.items()]
        until(found, lambda: f"{kind} {members} in {self.events()}")
        return found()[-1]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Deployment(Administered):
    def add(self, receiver: Receiver, *options: object) -> str:
        made = self.admin("webhook", "add", receiver.url, "--ca", receiver.authority.path, "--allow-private", *options, "--json")
        return json.loads(made.out)["id"]

    def keys(self) -> dict[str, bytes]:
        shown = json.loads(self.admin("webhook", "key", "--json").out)["keys"]
        return {key["kid"]: base64.urlsafe_b64decode(key["x"] + "==") for key in shown}

    def listed(self) -> dict:
        return json.loads(self.admin("webhook", "list", "--json").out)

    def outbox(self) -> list[sqlite3.Row]:
        database = sqlite3.connect(self.data / "countersign.db")
        try:
            return database.execute("SELECT event, attempts, given_up, failure, due FROM webhook_delivery ORDER BY number").fetchall()
        finally:
            database.close()


class Keys(HTTPSignatureKeyResolver):
    def __init__(self, keys: dict[str, bytes]):
        self.keys = keys

    def resolve_public_key(self, key_id: str):
        return Ed25519PublicKey.from_public_bytes(self.keys[key_id])


def verify(got: SimpleNamespace, url: str, keys: dict[str, bytes]) -> None:
    """By an implementation of RFC 9421 that is not ours."""
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Keys(keys))
    message = SimpleNamespace(method="POST", url=url, headers=got.headers)
    results = verifier.verify(message, max_age=datetime.timedelta(minutes=2), expect_tag="countersign-webhook", require_components=COVERED,
                              body=got.body)
    assert len(results) == 1


@pytest.fixture
def receiver(tmp_path):
    receiver = Receiver(tmp_path / "receiver")
    yield receiver
    receiver.close()


@pytest.fixture
def served(tmp_path):
    with Deployment(tmp_path / "gateway") as deployment:
        deployment.add_app("demo", require="session", registration="open")
        yield deployment


def test_what_happens_is_told(served, receiver, tmp_path):
    served.add(receiver)
    person = Person(served, tmp_path / "anna", "anna").signs_up()
    registered = receiver.wait("account.registered", account="name:anna", app="demo")
    assert set(registered) == {"id", "type", "time", "app", "account"} and abs(registered["time"] - time.time()) < 30
    person.logs_in()
    session = receiver.wait("session.started", account="name:anna")["session"]
    assert receiver.wait("device.added", account="name:anna")["session"] == session
    assert person.run("logout").returncode == 0
    assert receiver.wait("session.ended", session=session)["reason"] == "signed-out"
    # The device is known now.
    person.logs_in()
    until(lambda: len([event for event in receiver.events() if event["type"] == "session.started"]) == 2, "the second login is told")
    served.admin("account", "lock", "demo", "anna")
    receiver.wait("account.locked", account="name:anna")
    receiver.wait("session.ended", reason="disabled")
    served.admin("account", "unlock", "demo", "anna")
    receiver.wait("account.unlocked")
    code = json.loads(served.admin("account", "reset", "demo", "anna", "--json").out)["reset_code"]
    receiver.wait("account.reset-requested", account="name:anna")
    digits = json.loads(served.admin("account", "code", "demo", "anna", "--json").out)["code"]
    served.admin("account", "redeem", "demo", "anna", "--code-stdin", stdin=digits)
    receiver.wait("account.verified", account="name:anna")
    served.admin("account", "verify", "demo", "anna", "--undo")
    done = person.run("signup", "--account", "anna", "--reset-code-stdin", "--password-stdin", stdin=f"{code}\nanother long password\n")
    assert done.returncode == 0, done.err
    receiver.wait("account.password-changed", account="name:anna")
    key = served.add_release("demo", "android", "0.9")
    served.admin("release", "retire", key.key_id, "--at", "+1d", "--warn-at", "+3s", "--update-url", "https://app.example/")
    assert receiver.wait("release.retirement-set", release=key.key_id)["at"] > time.time() + 80_000
    assert receiver.wait("release.stage-reached", release=key.key_id)["stage"] == "warn"
    served.admin("release", "retire", key.key_id, "--undo")
    receiver.wait("release.retirement-undone", release=key.key_id)
    served.admin("release", "rotate", key.key_id)
    served.admin("release", "rotate", key.key_id, "--promote")
    receiver.wait("key.rotated", key="release", release=key.key_id)
    served.admin("assertion", "rotate")
    receiver.wait("key.rotated", key="assertion")
    assert len([event for event in receiver.events() if event["type"] == "device.added"]) == 1
    assert len([event for event in receiver.events() if event["type"] == "account.verified"]) == 1
    assert len([event for event in receiver.events() if event["type"] == "release.stage-reached"]) == 1
    everything = b"".join(each.body for each in receiver.got)
    for secret in (code, digits, "another long password", key.secret):
        assert secret.encode() not in everything
    keys = served.keys()
    for got in receiver.got:
        verify(got, receiver.url, keys)
        assert got.headers["Countersign-Event"] == json.loads(got.body)["id"] and got.path == "/hooks?a=1"
    until(lambda: served.listed()["waiting"] == 0, "nothing waits")


def test_a_changed_delivery_does_not_verify(served, receiver):
    hook = served.add(receiver)
    served.admin("webhook", "test", hook)
    receiver.wait("webhook.test")
    got, keys = receiver.got[0], served.keys()
    verify(got, receiver.url, keys)
    for change in ({"body": got.body.replace(b"webhook", b"wEbhook")}, {"headers": got.headers | {"Countersign-Event": "evt_0"}},
                   {"headers": got.headers | {"Content-Digest": "sha-256=:" + base64.b64encode(bytes(32)).decode() + ":"}}):
        with pytest.raises(InvalidSignature):
            verify(SimpleNamespace(**{**vars(got), **change}), receiver.url, keys)
    with pytest.raises(InvalidSignature):
        verify(got, receiver.url.replace("a=1", "a=2"), keys)


def test_filters(served, receiver):
    served.admin("app", "add", "other")
    served.add(receiver, "--app", "other", "--events", "account.locked,account.unlocked")
    for app in ("demo", "other"):
        served.admin("account", "add", app, "bob")
        served.admin("account", "lock", app, "bob")
    receiver.wait("account.locked", app="other")
    served.admin("account", "unlock", "other", "bob")
    receiver.wait("account.unlocked", app="other")
    assert [event["type"] for event in receiver.events()] == ["account.locked", "account.unlocked"]
    until(lambda: served.outbox() == [], "nothing waits")


def test_a_failed_delivery_is_tried_again_and_given_up_at_last(served, receiver):
    hook = served.add(receiver)
    receiver.answer = 500
    served.admin("webhook", "test", hook)
    until(lambda: receiver.got, "the first attempt")
    until(lambda: served.outbox()[0][1] == 1, "it is counted")
    event, attempts, given_up, failure, due = served.outbox()[0]
    assert failure == "it answers 500" and given_up is None and 3 <= due - time.time() <= 7
    until(lambda: len(receiver.got) == 2, "the second attempt")
    assert receiver.got[1].at >= due and receiver.got[0].body == receiver.got[1].body
    # The rest of the attempts would take days.
    database = sqlite3.connect(served.data / "countersign.db", isolation_level=None)
    until(lambda: served.outbox()[0][1] == 2, "it is counted")
    database.execute("UPDATE webhook_delivery SET attempts = 11, due = 0")
    until(lambda: served.outbox()[0][2] is not None, "it is given up")
    dead = json.loads(served.admin("webhook", "dead", "--json").out)["deliveries"]
    assert dead[0]["event"] == event and dead[0]["attempts"] == 12 and json.loads(dead[0]["body"])["type"] == "webhook.test"
    assert served.listed()["dead"] == 1
    receiver.answer = 204
    served.admin("webhook", "retry", event)
    until(lambda: served.outbox() == [], "it is delivered")
    assert run("webhook", "retry", event, "--data", served.data).returncode == 1
    # An endpoint that is gone for good is not asked again.
    receiver.answer = 410
    served.admin("webhook", "test", hook)
    until(lambda: served.listed()["dead"] == 1, "given up at once")
    assert served.outbox()[0][1] == 1
    assert "countersign_webhook_dead" in {name for name, _ in served.metrics()}
    log = served.log_path.read_text()
    assert "not delivered: it answers 500" in log and "delivered again" in log


def test_attempts_are_made_when_time_passes_and_not_by_a_clock_that_was_set(receiver, tmp_path):
    clock = Clock(tmp_path)
    with Deployment(tmp_path / "gateway", clock=clock) as served:
        receiver.answer = 500
        served.admin("webhook", "test", served.add(receiver))
        until(lambda: served.outbox()[0][1] == 1, "the first attempt")
        clock.jumps(-21_600)
        clock.advance(10)
        until(lambda: served.outbox()[0][1] == 2, "the second attempt")
        created = int(re.search("created=([0-9]+)", receiver.got[1].headers["Signature-Input"])[1])
        assert abs(created - clock.now - 21_600) < 60
        clock.jumps(21_600)
        clock.advance(3_600)
        until(lambda: served.outbox()[0][1] == 3, "the third attempt")
        receiver.answer = 204
        clock.advance(3_600)
        until(lambda: served.outbox() == [], "the fourth attempt")


def test_what_was_committed_is_delivered_after_a_crash(served, receiver):
    served.add(receiver)
    receiver.go.clear()
    for number in range(5):
        served.admin("account", "add", "demo", f"account-{number}")
        served.admin("account", "lock", "demo", f"account-{number}")
    served.stop(signal.SIGKILL)
    assert len(served.outbox()) == 5 and receiver.got == []
    held, receiver.go = receiver.go, threading.Event()
    receiver.go.set()
    held.set()
    # The deliveries that were under way when the process was killed are taken again after their minute.
    database = sqlite3.connect(served.data / "countersign.db", isolation_level=None)
    database.execute("UPDATE webhook_delivery SET due = due - 60")
    database.close()
    served.start()
    until(lambda: {event["account"] for event in receiver.events()} == {f"name:account-{number}" for number in range(5)}, "all are told")
    until(lambda: served.outbox() == [], "nothing waits")


def test_redirects_are_not_followed(served, receiver, tmp_path):
    other = Receiver(tmp_path / "other")
    hook = served.add(receiver)
    receiver.answer, receiver.location = 307, other.url
    served.admin("webhook", "test", hook)
    until(lambda: served.outbox() and served.outbox()[0][3] == "it answers 307", "the redirect is a failure")
    assert other.got == []
    other.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254"])
def test_inner_networks_are_refused_after_resolution(served, receiver, host):
    made = served.admin("webhook", "add", f"https://{host}:{receiver.server.server_port}/", "--ca", receiver.authority.path, "--json")
    served.admin("webhook", "test", json.loads(made.out)["id"])
    until(lambda: served.outbox()[0][1] == 1, "an attempt fails")
    assert "not an address of the Internet" in served.outbox()[0][3] and receiver.got == []
    # Nor is it said what the name leads to, or whether it leads anywhere.
    unknown = served.admin("webhook", "add", f"https://nothing.invalid:{receiver.server.server_port}/", "--json")
    served.admin("webhook", "test", json.loads(unknown.out)["id"])
    until(lambda: len(served.outbox()) == 2 and served.outbox()[1][1] == 1, "an attempt at the other fails")
    reasons = [row[3].replace(name, "NAME") for row, name in zip(served.outbox(), (host.strip("[]"), "nothing.invalid"))]
    assert reasons[0].replace("[NAME]", "NAME") == reasons[1]


def test_the_certificate_is_verified(served, receiver):
    made = served.admin("webhook", "add", receiver.url, "--allow-private", "--json")
    served.admin("webhook", "test", json.loads(made.out)["id"])
    until(lambda: served.outbox()[0][1] == 1, "an attempt fails")
    assert receiver.got == [] and "it answers" not in served.outbox()[0][3]


def test_a_slow_endpoint_holds_no_other(served, receiver, tmp_path):
    slow = Receiver(tmp_path / "slow")
    slow.go.clear()
    hook, quick = served.add(slow), served.add(receiver)
    for _ in range(6):
        served.admin("webhook", "test", hook)
    assert slow.has_begun.wait(HANGS)
    served.admin("webhook", "test", quick)
    receiver.wait("webhook.test")
    assert slow.got == []
    # An attempt takes its delivery by a later time at which it is due. At most two go to one endpoint.
    database = sqlite3.connect(served.data / "countersign.db")
    taken, = database.execute("SELECT count(*) FROM webhook_delivery WHERE endpoint = ? AND due > created AND attempts = 0",
                              (hook,)).fetchone()
    database.close()
    assert 1 <= taken <= 2
    slow.go.set()
    slow.close()


def test_silent_endpoints_hold_no_other(served, receiver, tmp_path):
    """Each of them has all the attempts in flight that an endpoint may have."""
    silent = [Receiver(tmp_path / name) for name in ("one", "two", "three")]
    for each in silent:
        each.go.clear()
        served.add(each, "--events", "session.started,device.added")
    Person(served, tmp_path / "anna", "anna").signs_up().logs_in()
    for each in silent:
        for _ in range(2):
            assert each.begun.acquire(timeout=HANGS)
    # No attempt has ended, which would have made room for another.
    assert [attempts for _, attempts, *_ in served.outbox()] == [0] * 6
    served.admin("webhook", "test", served.add(receiver))
    receiver.wait("webhook.test")
    for each in silent:
        assert each.got == []
        each.go.set()
        each.close()


LATER = 10**12
FILL = """WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < :count)
INSERT INTO webhook_delivery (endpoint, event, account, created, due, attempts, given_up, body)
SELECT :endpoint, 'evt_' || n, :account, :now, :due, 0, :given_up, x'7b7d' FROM many"""


def fill(served, endpoint: str, count: int, account: int = 0, given_up: int | None = None) -> None:
    """Rows of the outbox that are not due for a long time, or were given up."""
    database = sqlite3.connect(served.data / "countersign.db", isolation_level=None)
    database.execute(FILL, {"count": count, "endpoint": endpoint, "account": account, "now": int(time.time()), "due": LATER,
                            "given_up": given_up})
    database.close()


def dropped(served) -> dict[str, int]:
    return {each["id"]: each["dropped"] for each in served.listed()["webhooks"]}


def test_neither_dead_letters_nor_the_numbers_of_rows_use_up_the_outbox(served, receiver):
    hook = served.add(receiver)
    fill(served, hook, 1, given_up=int(time.time()))
    database = sqlite3.connect(served.data / "countersign.db", isolation_level=None)
    database.execute("UPDATE sqlite_sequence SET seq = 1000000 WHERE name = 'webhook_delivery'")
    database.close()
    fill(served, hook, 1)
    served.admin("account", "add", "demo", "bob")
    served.admin("account", "lock", "demo", "bob")
    receiver.wait("account.locked", account="name:bob")
    fill(served, hook, 99_999, given_up=int(time.time()))
    served.admin("account", "unlock", "demo", "bob")
    receiver.wait("account.unlocked", account="name:bob")
    assert dropped(served) == {hook: 0}
    # No more dead letters than the share: the oldest make room.
    receiver.answer = 410
    served.admin("webhook", "test", hook)
    until(lambda: dropped(served) == {hook: 1}, "the oldest was dropped")
    assert served.listed()["dead"] == 100_000
    # No more of them wait again than may.
    fill(served, hook, 99_000)
    assert json.loads(served.admin("webhook", "retry", "--all", "--json").out) == {"retried": 999}


def test_a_full_share_drops_events_and_says_so(served, receiver, tmp_path):
    hook = served.add(receiver)
    fill(served, hook, 87_500)
    Person(served, tmp_path / "anna", "anna").signs_up()
    assert dropped(served) == {hook: 1}
    until(lambda: served.metrics().get(("countersign_webhook_dropped_total", (("webhook", hook),))) == 1, "the metric counts")
    until(lambda: "its share of the outbox is full; 1 events were dropped, 1 in all" in served.log_path.read_text(), "the log says so")
    shown = json.loads(run("doctor", "--data", served.data, "--json").out)["findings"]
    assert any(hook in each["message"] and "has lost 1 events" in each["message"] for each in shown if each["topic"] == "webhooks")
    # What an administrator does has an eighth of the share.
    served.admin("account", "lock", "demo", "anna")
    receiver.wait("account.locked", account="name:anna")
    until(lambda: len(served.outbox()) == 87_500, "nothing else waits")
    fill(served, hook, 12_500)
    served.admin("account", "unlock", "demo", "anna")
    assert dropped(served) == {hook: 2}
    done = run("webhook", "test", hook, "--data", served.data)
    assert done.returncode == 1 and "100000 deliveries wait for it already, the most allowed" in done.err
    # Another endpoint has a share of its own.
    other = Receiver(tmp_path / "other")
    second = served.add(other)
    served.admin("account", "lock", "demo", "anna")
    other.wait("account.locked", account="name:anna")
    assert dropped(served) == {hook: 3, second: 0}
    other.close()


def test_one_account_has_a_hundredth_of_a_share(served, receiver, tmp_path):
    hook = served.add(receiver, "--events", "session.started,account.locked")
    anna, bob = (Person(served, tmp_path / name, name).signs_up() for name in ("anna", "bob"))
    database = sqlite3.connect(served.data / "countersign.db")
    numbers = {name: number for name, number in database.execute("SELECT name, number FROM account")}
    database.close()
    fill(served, hook, 1_000, account=numbers["anna"])
    anna.logs_in()
    bob.logs_in()
    receiver.wait("session.started", account="name:bob")
    served.admin("account", "lock", "demo", "anna")
    receiver.wait("account.locked", account="name:anna")
    assert {event["account"] for event in receiver.events() if event["type"] == "session.started"} == {"name:bob"}
    assert dropped(served) == {hook: 1}


def test_keys_rotate_without_a_change_at_the_receiver(served, receiver):
    hook = served.add(receiver)
    known = served.keys()
    assert len(known) == 2
    rotated = json.loads(served.admin("webhook", "key", "--rotate", "--json").out)["keys"]
    assert rotated[0]["kid"] == list(known)[1] and rotated[1]["kid"] not in known
    served.admin("webhook", "test", hook)
    receiver.wait("webhook.test")
    verify(receiver.got[0], receiver.url, known)
    records = json.loads(served.admin("audit", "list", "--json").out)["records"]
    assert [record["action"] for record in records[-2:]] == ["webhook.add", "webhook-key.rotate"]


def test_a_writer_to_the_database_adds_no_endpoint(served, receiver, tmp_path):
    hook = served.add(receiver)
    database = sqlite3.connect(served.data / "countersign.db", isolation_level=None)
    value = database.execute("SELECT value FROM meta WHERE name = 'webhooks'").fetchone()[0]
    database.execute("UPDATE meta SET value = ? WHERE name = 'webhooks'", (value.replace(b"localhost", b"localhosu"),))
    done = run("webhook", "list", "--data", served.data)
    assert done.returncode == 1 and "meta webhooks: the row was altered" in done.err
    until(lambda: "nothing is delivered: " in served.log_path.read_text(), "the log says so")
    assert "meta webhooks: the row was altered" in served.log_path.read_text()
    database.execute("UPDATE meta SET value = ? WHERE name = 'webhooks'", (value,))
    served.admin("webhook", "test", hook)
    receiver.wait("webhook.test")


@pytest.mark.parametrize("endpoint", ["of ours", "w_evil"])
def test_a_writer_to_the_database_has_no_event_signed(served, receiver, endpoint):
    hook = served.add(receiver)
    database = sqlite3.connect(served.data / "countersign.db", isolation_level=None)
    body = b'{"id":"evt_1","type":"account.removed","time":1,"app":"demo","account":"name:victim"}'
    database.execute("INSERT INTO webhook_delivery (endpoint, event, account, created, due, attempts, body) VALUES (?, 'evt_1', 0, 0, 0, 0, ?)",
                     (hook if endpoint == "of ours" else endpoint, body))
    until(lambda: served.outbox()[0][2] is not None, "it is given up")
    assert served.outbox()[0][:2] == ("evt_1", 0) and served.outbox()[0][3] == "the row was altered; it is not signed"
    # Whoever tries it again has it signed no sooner.
    served.admin("webhook", "retry", "evt_1")
    until(lambda: served.outbox()[0][2] is not None, "it is given up again")
    # The body of a true event is replaced while it waits.
    receiver.answer = 500
    served.admin("webhook", "test", hook)
    until(lambda: receiver.got, "the first attempt")
    until(lambda: served.outbox()[1][1] == 1, "it is counted")
    database.execute("UPDATE webhook_delivery SET body = ?, due = 0 WHERE number = 2", (body,))
    until(lambda: served.outbox()[1][2] is not None, "it is given up")
    assert {event["type"] for event in receiver.events()} == {"webhook.test"}
    found = json.loads(run("audit", "verify", "--json", "--data", served.data).out)["rows"]["findings"]
    assert {finding["table"] for finding in found} == {"webhook_delivery"}
    # An operator who accepts the rows deletes them.
    served.stop()
    served.accept_rows()
    assert served.outbox() == []


def test_an_event_names_no_account_of_an_altered_row(served, receiver, tmp_path):
    served.add(receiver)
    Person(served, tmp_path / "eve", "eve").signs_up().logs_in()
    session = receiver.wait("session.started")["session"]
    database = sqlite3.connect(served.data / "countersign.db", isolation_level=None)
    database.execute("UPDATE account SET name = 'victim' WHERE name = 'eve'")
    served.admin("session", "revoke", session)
    ended = receiver.wait("session.ended", session=session)
    assert "account" not in ended, ended


def test_a_removed_endpoint_and_a_former_key_stay_removed(served, receiver):
    """The row of a removed endpoint, or of a key that was replaced, is authentic: what it lacks is its place in the digest."""
    hook = served.add(receiver)
    first = served.keys()
    for name, ours in (("webhooks", ("webhook", "remove", hook)), ("webhook-keys", ("webhook", "key", "--rotate"))):
        database = sqlite3.connect(served.data / "countersign.db", isolation_level=None)
        kept, = database.execute("SELECT value, row_tag FROM meta WHERE name = ?", (name,))
        served.admin(*ours)
        now, = database.execute("SELECT value, row_tag FROM meta WHERE name = ?", (name,))
        database.execute("UPDATE meta SET value = ?, row_tag = ? WHERE name = ?", (*kept, name))
        done = run("webhook", "key", "--data", served.data)
        assert done.returncode == 1 and "meta: the rows do not add up" in done.err, done.err
        database.execute("UPDATE meta SET value = ?, row_tag = ? WHERE name = ?", (*now, name))
        database.close()
    assert list(served.keys())[0] == list(first)[1] and served.listed()["webhooks"] == []


def test_an_erased_person_is_in_no_delivery(served, receiver, tmp_path):
    served.add(receiver)
    receiver.answer = 500
    Person(served, tmp_path / "carl", "carl-who-is-erased").signs_up()
    until(lambda: served.outbox(), "it waits")
    served.admin("account", "erase", "demo", "carl-who-is-erased", "--yes")
    assert served.outbox() == []
    for path in served.data.iterdir():
        if path.is_file():
            assert b"carl-who-is-erased" not in path.read_bytes(), path


def test_what_the_commands_refuse(served):
    for arguments, said in ((("add", "http://a.example/"), "expected https://"), (("add", "https://a.example/", "--events", "x"), "expected one of"),
                            (("add", "https://u@a.example/"), "expected https://"), (("retry",), "EVENT or --all")):
        done = run("webhook", *arguments, "--data", served.data)
        assert done.returncode == 2 and said in done.err, done.err
    for arguments in (("remove", "w_0"), ("test", "w_0"), ("add", "https://a.example/", "--app", "absent")):
        done = run("webhook", *arguments, "--data", served.data)
        assert done.returncode == 1, (arguments, done.err)
    made = json.loads(served.admin("webhook", "add", "https://a.example/", "--json").out)
    assert [each["id"] for each in served.listed()["webhooks"]] == [made["id"]]
    served.admin("webhook", "test", made["id"])
    served.admin("webhook", "remove", made["id"])
    assert served.listed() == {"webhooks": [], "waiting": 0, "dead": 0, "oldest": None}
