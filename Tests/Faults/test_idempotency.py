"""A payment is made once, despite a man in the middle and despite crashes: `Idempotency-Key` end to end."""

import json
import random
import secrets
import signal
import socket
import threading

import pytest

import request_log
from gateway import Gateway
from person import Person
from postgres import Postgres, programs
from sockets import is_read
from till import Till
from waiting import until
from wire import Connection, Reader

BODY = b'{"amount":100}'
TYPE = ("content-type", "application/json")


@pytest.fixture
def till(tmp_path):
    with Till(tmp_path / "till.db") as running:
        yield running


@pytest.fixture(params=["log"])
def front(till, tmp_path, request):
    """With `rows` over PostgreSQL, where keyed requests are rows."""
    running = before(till, tmp_path, database=request.getfixturevalue("database") if request.param == "rows" else None)
    yield running
    if running.process.poll() is None:
        running.stop()


class Database:
    """A database of its own for one test."""

    def __init__(self, server: Postgres, name: str):
        self.server, self.name, self.address = server, name, server.create(name)

    def sql(self, text: str) -> str:
        return self.server.sql(text, self.name)


@pytest.fixture
def database(server, request):
    return Database(server, "k" + "".join(letter for letter in request.node.name.lower() if letter.isalnum())[-40:])


needs_postgres = pytest.mark.skipif(programs() is None, reason="no postgres")
over_rows = pytest.mark.parametrize("front", [pytest.param("rows", marks=needs_postgres)], indirect=True)
in_both = pytest.mark.parametrize("front", ["log", pytest.param("rows", marks=needs_postgres)], indirect=True)


def before(till, tmp_path, *options: object, database: Database | None = None) -> Gateway:
    environment = {"COUNTERSIGN_STORE": database.address} if database else None
    gateway = Gateway(tmp_path / "gateway", "--tls", "off", "--upstream", till.url, *options, environment=environment).start()
    gateway.add_app("demo")
    gateway.key = gateway.add_release()
    return gateway


def pay(gateway: Gateway, key: str | None, body: bytes = BODY, target: str = "/pay", method: str = "POST", **options) -> bytes:
    fields = [TYPE] + ([("idempotency-key", key)] if key is not None else [])
    return gateway.key.request(method, target, body, fields=fields, **options)


def code(answer) -> str:
    return json.loads(answer.body)["code"]


@in_both
def test_a_second_copy_gets_the_first_ones_answer(front, till):
    """Signed anew, with a nonce of its own; the same under another key, and without one, is another payment."""
    first, second = front.send(pay(front, "k-1")), front.send(pay(front, "k-1"))
    assert (first.status, json.loads(first.body)["payment"]) == (201, 1)
    assert (second.status, second.body, second.get("x-payment")) == (201, first.body, "1")
    assert second.get("countersign-replayed") == "true" and first.get("countersign-replayed") is None
    assert second.get("content-type") == "application/json"
    # The first streams by; what is given again is held, so it is signed.
    assert first.get("signature") is None and '"countersign-replayed"' in second.get("signature-input")
    assert till.moves == 1
    assert front.send(pay(front, "k-2")).status == front.send(pay(front, None)).status == 201
    assert front.send(pay(front, None)).status == 201
    assert till.moves == 4


def test_a_key_is_for_one_request(front, till):
    assert front.send(pay(front, "k")).status == 201
    other = front.send(pay(front, "k", b'{"amount":999}'))
    assert (other.status, code(other)) == (403, "forbidden")
    assert till.moves == 1


class Middle:
    """The attacker between client and gateway: forwards one copy secretly, withholds its response, and
    gives the client a genuine refusal of a second copy."""

    def __init__(self, gateway: Gateway):
        self.gateway, self.copies = gateway, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def forward(self, data: bytes):
        self.copies += 1
        return self.gateway.send(data)

    def serve(self) -> None:
        sock, _ = self.listener.accept()
        reader = Reader(sock)
        start, fields = reader.head()
        body = reader.body(fields)
        data = "\r\n".join([start] + [f"{name}: {value}" for name, value in fields]).encode() + b"\r\n\r\n" + body
        self.stolen = self.forward(data)
        refusal = self.forward(data)
        lines = [f"HTTP/1.1 {refusal.status} Refused"] + [f"{name}: {value}" for name, value in refusal.fields]
        sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + refusal.body)
        sock.close()


def test_the_payment_trap(front, till):
    """The client is told `replayed`, genuinely, and pays again: it has not paid twice."""
    middle, key = Middle(front), secrets.token_urlsafe(16)
    with Connection(middle.port, None, 20) as connection:
        connection.send(pay(front, key))
        told = connection.answer()
    assert (told.status, code(told)) == (401, "replayed") and middle.copies == 2
    assert middle.stolen.status == 201 and till.moves == 1, "the trap was not sprung"
    again = front.send(pay(front, key))
    assert again.status == 201 and again.get("countersign-replayed") == "true"
    assert again.body == middle.stolen.body
    assert till.moves == 1


def test_a_client_that_goes_away_still_gets_its_answer_later(front, till):
    till.answers.clear()
    connection = front.connect()
    connection.send(pay(front, "k"))
    assert till.moved.wait(60)
    # A reset, so that the gateway cannot write to it any more.
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    connection.sock.close()
    till.answers.set()
    answers = []
    until(lambda: answers.append(front.send(pay(front, "k"))) or answers[-1].status == 201, "the result")
    answer = answers[-1]
    assert (answer.status, answer.get("countersign-replayed"), till.moves) == (201, "true", 1)


def test_copies_at_once_wait_for_the_one_that_runs(front, till):
    """Twenty at the same time, on both loops: one is forwarded, and all get its answer."""
    till.answers.clear()
    answers, sockets = [], []
    requests = [pay(front, "k") for _ in range(20)]
    ready = threading.Barrier(len(requests))

    def send(data: bytes) -> None:
        with front.connect() as connection:
            ready.wait()
            connection.send(data)
            sockets.append(connection.sock)
            answers.append(connection.answer())

    threads = [threading.Thread(target=send, args=(data,)) for data in requests]
    for thread in threads:
        thread.start()
    until(lambda: len(sockets) == len(requests) and is_read(*sockets), "the gateway has all of them")
    till.answers.set()
    for thread in threads:
        thread.join(30)
    assert len(answers) == 20 and {answer.status for answer in answers} == {201}
    assert sorted(answer.get("countersign-replayed") or "" for answer in answers) == [""] + ["true"] * 19
    assert len({answer.body for answer in answers}) == 1 and till.moves == 1


@in_both
def test_a_kill_between_begun_and_finished(front, till):
    """The backend has paid, and the gateway died before it received the response: the payment is not
    repeated, and the client learns that the outcome is unknown."""
    till.answers.clear()
    connection = front.connect()
    connection.send(pay(front, "k"))
    assert till.moved.wait(60)
    assert front.stop(signal.SIGKILL) == -signal.SIGKILL
    till.answers.set()
    front.start()
    for _ in range(3):
        answer = front.send(pay(front, "k"))
        assert (answer.status, code(answer)) == (503, "unavailable")
        assert answer.get("countersign-replayed") is None
    assert till.moves == 1
    assert front.send(pay(front, "another")).status == 201


def test_a_kill_after_the_answer_loses_nothing(front, till):
    first = front.send(pay(front, "k"))
    # The answer is kept before the request is over, so before the next on its connection.
    assert front.send(front.key.request("GET", "/x")).status == 201
    assert front.stop(signal.SIGKILL) == -signal.SIGKILL
    front.start()
    again = front.send(pay(front, "k"))
    assert (again.status, again.body, again.get("countersign-replayed")) == (201, first.body, "true")


def test_a_backend_that_dies_after_it_has_paid(front, till):
    till.cuts = 1
    first = front.send(pay(front, "k"))
    assert (first.status, code(first)) == (502, "upstream-failed")
    second = front.send(pay(front, "k"))
    assert (second.status, code(second)) == (503, "unavailable")
    assert till.cuts == 0 and till.moves == 1


def on_a_quiet_port(tmp_path) -> Till:
    """Below the ports that the system assigns: while the port is free, no other test's server gets it."""
    while True:
        try:
            return Till(tmp_path / "till.db", port=random.randrange(20_000, 30_000))
        except OSError:
            continue


def test_a_backend_that_was_never_reached(tmp_path):
    """Nothing was done, so the key is free again."""
    till = on_a_quiet_port(tmp_path)
    port = till.port
    till.close()
    front = before(till, tmp_path)
    try:
        answer = front.send(pay(front, "k"))
        assert (answer.status, code(answer)) == (502, "upstream-failed")
        with Till(tmp_path / "till.db", port=port) as up:
            answer = front.send(pay(front, "k"))
            assert (answer.status, answer.get("countersign-replayed"), up.moves) == (201, None, 1)
    finally:
        front.stop()


def test_a_body_that_is_cut_short_was_no_request(front, till):
    """Above 1 MiB a body streams. The gateway holds its last piece until the digest is right, so one that was changed, or
    cut off, has not been a request, and may be sent again."""
    body = b"x" * (2 << 20)
    with front.connect() as connection:
        head = front.key.head("POST", "/pay", body=body, fields=[TYPE, ("idempotency-key", "k")])
        connection.send(head + body[:-1] + b"y")
        answer = connection.answer()
    assert (answer.status, code(answer)) == (400, "body-mismatch")
    with front.connect() as connection:
        connection.send(front.key.head("POST", "/pay", body=body, fields=[TYPE, ("idempotency-key", "k")]) + body[:1000])
    assert till.moves == 0
    answers = []
    until(lambda: answers.append(front.send(pay(front, "k", body))) or answers[-1].status == 201, "the end of the cut request")
    answers = [answers[-1], front.send(pay(front, "k", body))]
    assert [(answer.status, answer.get("countersign-replayed")) for answer in answers] == [(201, None), (201, "true")]
    assert till.moves == 1
    assert code(front.send(pay(front, "k", b"z" * (2 << 20)))) == "forbidden"


@pytest.mark.parametrize("size", [60_000, 5_000_000])
def test_an_answer_that_is_too_long_to_keep(tmp_path, size):
    """It was done, and is not done again; the second copy is told with what status, if not what the answer was."""
    with Till(tmp_path / "till.db", answer_bytes=size) as till:
        front = before(till, tmp_path)
        try:
            assert len(json.loads(front.send(pay(front, "k")).body)["pad"]) == size
            again = front.send(pay(front, "k"))
            if size < 64 << 10:
                assert again.status == 201 and again.get("countersign-replayed") == "true"
            else:
                assert (again.status, code(again), json.loads(again.body)["done_status"]) == (503, "unavailable", 201)
                assert again.get("retry-after") is None
            assert till.moves == 1
        finally:
            front.stop()


@in_both
def test_a_second_copy_after_a_restart_and_what_is_stored(front, till, request):
    """Responses are stored under the master key: a reader of the database, or of the log, cannot read them."""
    first = front.send(pay(front, "key-3f9a"))
    assert front.stop() == 0
    if "COUNTERSIGN_STORE" in front.environment:
        rows = request.getfixturevalue("database").sql("SELECT * FROM countersign.idempotent_request").split("\n")
        assert len(rows) == 1 and "|201|" in rows[0] and not request_log.segments(front.data)
        # As the database shows bytes.
        contents = [bytes.fromhex(part[2:]) for part in rows[0].split("|") if part.startswith("\\x")]
        assert len(contents) >= 4
    else:
        assert [record.kind for record in request_log.records(front.data)] == [request_log.BEGUN, request_log.FINISHED]
        contents = [file.read_bytes() for file in [*front.data.glob("countersign.db*"), *request_log.segments(front.data)]]
    for content in contents:
        assert b'"payment"' not in content and b"key-3f9a" not in content and b"x-payment" not in content.lower()
    front.start()
    again = front.send(pay(front, "key-3f9a"))
    assert again.body == first.body and again.get("countersign-replayed") == "true" and till.moves == 1


def test_the_built_in_echo_too(tmp_path):
    with Gateway(tmp_path, "--tls", "off") as gateway:
        gateway.add_app("demo")
        gateway.key = gateway.add_release()
        first, second = gateway.send(pay(gateway, "k")), gateway.send(pay(gateway, "k"))
        assert first.status == second.status == 200 and first.body == second.body
        assert second.get("countersign-replayed") == "true"
        assert code(gateway.send(pay(gateway, "k", b"{}"))) == "forbidden"


@over_rows
def test_a_day_later_the_key_is_forgotten(front, till, database):
    assert front.send(pay(front, "old")).status == front.send(pay(front, "new")).status == 201
    database.sql("UPDATE countersign.idempotent_request SET begun = begun - 86401 WHERE rowid = 1")

    def left() -> int:
        return int(database.sql("SELECT count(*) FROM countersign.idempotent_request"))

    # Nothing is deleted until the node's clock has agreed with the database's for ten minutes, as here.
    assert front.stop() == 0 and left() == 2
    record = json.loads((front.data / "clock").read_text())
    record["agrees_since"] = max(0, record["agrees_since"] - 700_000)
    (front.data / "clock").write_text(json.dumps(record))
    front.start()
    until(lambda: left() == 1, left)
    assert front.send(pay(front, "new")).get("countersign-replayed") == "true" and till.moves == 2
    assert front.send(pay(front, "old")).status == 201 and till.moves == 3


@needs_postgres
def test_strangers_with_the_release_s_key_fill_their_part_and_no_more(till, tmp_path, database):
    """Of a hundred keys a release's callers without a session have what nobody else asks for, all but an eighth; what is kept is given
    again, and sessions go on."""
    front = before(till, tmp_path, "--limit-kept-keys", 100, database=database)
    try:
        front.admin("app", "policy", "demo", "--set", "registration=open")
        answers = [front.send(pay(front, f"k-{number}")) for number in range(89)]
        assert [answer.status for answer in answers] == [201] * 88 + [503]
        assert code(answers[88]) == "unavailable" and int(answers[88].get("retry-after")) > 0
        assert {answer.get("idempotency-keys-kept") for answer in answers} == {"600"}
        assert till.moves == 88, "the last one was not made"
        again = front.send(pay(front, "k-3"))
        assert (again.status, again.body, again.get("countersign-replayed")) == (201, answers[3].body, "true")
        assert front.send(pay(front, None)).status == 201, "without a key nothing is kept"
        alice = Person(front, tmp_path / "phone", "alice").signs_up().logs_in()
        assert alice.run("request", "-d", "amount=1", "/pay").returncode == 0
        assert till.moves == 90
        database.sql("UPDATE countersign.idempotent_request SET begun = begun - 86401"
                     " WHERE convert_from(scope, 'UTF8') LIKE 'release %'")
        until(lambda: front.send(pay(front, "k-88")).status == 201, "a day later there is room")
    finally:
        front.stop()


def test_a_204_and_a_304_have_no_length(tmp_path):
    from backend import Backend

    def empty(seen, sock):
        sock.sendall(b"HTTP/1.1 204 No Content\r\nX-Done: yes\r\n\r\n")

    with Backend(empty) as backend:
        front = before(backend, tmp_path)
        try:
            with front.connect() as connection:
                for replayed in (None, "true", "true"):
                    connection.send(pay(front, "k"))
                    answer = connection.answer()
                    assert (answer.status, answer.get("x-done"), answer.get("content-length")) == (204, "yes", None)
                    assert answer.get("countersign-replayed") == replayed
            assert len(backend.seen) == 1
        finally:
            front.stop()


def test_an_accounts_key_is_its_own_on_all_of_its_devices(till, tmp_path):
    """Two devices of one account share its keys; another account's are others."""
    front = before(till, tmp_path)
    try:
        front.admin("app", "policy", "demo", "--set", "registration=open", "--set", "slots=unlimited")
        phone = Person(front, tmp_path / "phone", "alice").signs_up().logs_in()
        tablet = Person(front, tmp_path / "tablet", "alice", release=phone.release).logs_in()
        other = Person(front, tmp_path / "other", "bob", release=phone.release).signs_up().logs_in()
        said = []
        for person in (phone, tablet, other):
            done = person.run("request", "-i", "-d", "amount=1", "-H", "Idempotency-Key: k", "/pay")
            assert done.returncode == 0, done.err
            said.append("countersign-replayed: true" in done.out.lower())
        assert said == [False, True, False] and till.moves == 2
    finally:
        front.stop()
