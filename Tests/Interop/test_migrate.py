"""A deployment moves from its SQLite file to a PostgreSQL database: accounts, sessions, releases, keyed requests and the audit log go on there;
nothing goes on with the file; and a move that is killed leaves nothing or everything. The keyed requests of the log become rows there, and the log goes."""

import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess

import pytest

from backend import Backend
from gateway import BINARY, Gateway, run
from kills import killed_at
from person import Person
from postgres import programs
from request_log import segments

pytestmark = pytest.mark.skipif(programs() is None, reason="no postgres")

# What only PostgreSQL has: the number of its layout, the lock of those who write, and what several gateways share.
OWN_TABLES = {"layout", "writing", "node", "generation", "login_limit", "pending_login", "pending_login_count"}


@pytest.fixture
def address(server, request):
    return server.create("m" + "".join(letter for letter in request.node.name.lower() if letter.isalnum())[-40:])


def calls(person: Person, *arguments: str) -> bool:
    done = person.run("request", *arguments)
    return done.returncode == 0 or print(done.err)


def file_of(gateway: Gateway) -> str:
    return f"sqlite:{gateway.data}/countersign.db"


def migrate(gateway: Gateway, address: str, *options: str) -> subprocess.CompletedProcess:
    return run("migrate", file_of(gateway), address, "--data", gateway.data, "--json", *options)


@pytest.fixture
def backend():
    backend = Backend()
    yield backend
    backend.close()


def keyed(key, name: str) -> bytes:
    return key.request("POST", "/pay", b"amount=1", fields=[("idempotency-key", name)])


def lived_in(tmp_path, backend: Backend) -> tuple[Gateway, Person, object]:
    """A deployment with something in every table that a client can fill, stopped."""
    gateway = Gateway(tmp_path, "--upstream", backend.url)
    gateway.start()
    gateway.add_app("demo", registration="open")
    key = gateway.add_release(version="7.0")
    person = Person(gateway, tmp_path / "phone").signs_up().logs_in()
    Person(gateway, tmp_path / "other", "bob").signs_up()
    gateway.admin("account", "erase", "demo", "bob", "--yes")
    assert gateway.send(key.request()).status == 200
    assert calls(person, "-d", "amount=1", "-H", "Idempotency-Key: once", "/pay")
    gateway.stop()
    return gateway, person, key


def test_everything_goes_on(server, address, tmp_path, backend):
    gateway, person, key = lived_in(tmp_path, backend)
    planned = migrate(gateway, address, "--check")
    assert planned.returncode == 0, planned.err
    done = migrate(gateway, address)
    assert done.returncode == 0, done.err
    moved = json.loads(done.out)
    assert moved["keyed_requests"] == json.loads(planned.out)["keyed_requests"] == 1
    assert moved["was_empty"] and moved["rows"] == json.loads(planned.out)["rows"] == sum(moved["tables"].values())
    for table in ("app", "release", "account", "session", "known_device", "audit", "erased_name", "meter"):
        assert moved["tables"][table] > 0, table
    database = address.rsplit("/", 1)[1]
    there = server.sql("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'countersign'::regnamespace", database)
    assert set(there.split("\n")) - OWN_TABLES == set(moved["tables"]), "each table is moved"

    # The file is left alone from now on.
    stale = run("account", "list", "demo", "--data", gateway.data)
    assert stale.returncode == 1 and "was moved to postgres://" in stale.err, stale.err
    again = migrate(gateway, address)
    assert again.returncode == 1 and "was moved to" in again.err

    gateway.environment = {**gateway.environment, "COUNTERSIGN_STORE": address}
    with gateway:
        assert calls(person, "/hello")
        assert gateway.send(key.request()).status == 200
        # Answered from what is stored, not by the backend.
        seen = len(backend.seen)
        assert seen > 0
        assert calls(person, "-d", "amount=1", "-H", "Idempotency-Key: once", "/pay")
        assert len(backend.seen) == seen
        assert json.loads(gateway.admin("audit", "verify", "--json").out)["findings"] == []
        actions = [record["action"] for record in json.loads(gateway.admin("audit", "list", "--json").out)["records"]]
        assert actions[-1] == "store.move" and "release.add" in actions
        # New numbers go on behind those that were moved.
        carol = Person(gateway, tmp_path / "carol", "carol").signs_up().logs_in()
        assert calls(carol, "/hello")
        gateway.add_release(version="8.0")
        refused = Person(gateway, tmp_path / "bob-again", "bob").run("signup", "--account", "bob", "--password-stdin",
                                                                    stdin="correct horse battery staple\n")
        assert refused.returncode != 0, "an erased name stays taken"
        session = json.loads(gateway.admin("session", "list", "demo", "--json").out)["sessions"][0]["session"]
        gateway.admin("session", "revoke", session)


def test_what_is_refused(server, address, tmp_path, backend):
    gateway, _, _ = lived_in(tmp_path, backend)
    # A server runs.
    with gateway:
        done = migrate(gateway, address)
        assert done.returncode == 1 and "a server runs" in done.err, done.err
    # The database is another deployment's.
    other = server.create("taken")
    assert run("app", "add", "shop", "--data", tmp_path / "other-data", "--store", other).returncode == 0
    done = migrate(gateway, other)
    assert done.returncode == 1 and "expected an empty database" in done.err, done.err
    assert migrate(gateway, other, "--check").returncode == 1
    # The other way round.
    done = run("migrate", address, file_of(gateway), "--data", gateway.data)
    assert done.returncode == 2 and "expected sqlite:PATH" in done.err, done.err
    # A row was altered.
    with sqlite3.connect(gateway.data / "countersign.db") as file:
        assert file.execute("UPDATE account SET state = 'locked' WHERE name = 'alice'").rowcount == 1
    done = migrate(gateway, address)
    assert done.returncode == 1 and "altered" in done.err, done.err
    assert server.sql("SELECT count(*) FROM countersign.account", address.rsplit("/", 1)[1]) == "0"


def test_a_keyed_request_is_repeated_across_the_move(server, address, tmp_path, backend):
    gateway, _, key = lived_in(tmp_path, backend)
    with gateway:
        first = gateway.send(keyed(key, "across"))
        assert (first.status, first.get("countersign-replayed")) == (200, None)
    assert segments(gateway.data)
    done = migrate(gateway, address)
    assert done.returncode == 0 and json.loads(done.out)["keyed_requests"] == 2, done.err
    assert not segments(gateway.data)
    gateway.environment = {**gateway.environment, "COUNTERSIGN_STORE": address}
    with gateway:
        seen = len(backend.seen)
        again = gateway.send(keyed(key, "across"))
        assert (again.status, again.body, again.get("countersign-replayed")) == (200, first.body, "true")
        assert len(backend.seen) == seen, "the backend sees it once"
        assert gateway.send(keyed(key, "new")).status == 200 and len(backend.seen) == seen + 1


def refusal(gateway: Gateway, *options: str) -> str:
    """Why a server does not start."""
    done = subprocess.run([*gateway.command(), *options], env={**os.environ, **gateway.environment}, capture_output=True,
                          timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    return done.stderr.decode()


def test_a_log_beside_the_database_is_not_overlooked(server, address, tmp_path, backend):
    gateway, _, key = lived_in(tmp_path, backend)
    over_file, over_database = gateway.environment, {**gateway.environment, "COUNTERSIGN_STORE": address}
    gateway.environment = over_database
    path, = segments(gateway.data)
    said = refusal(gateway)
    assert str(path) in said and "countersign migrate FROM postgres://" in said, said
    assert not server.sql("SELECT to_regclass('countersign.meta')", address.rsplit("/", 1)[1]), "nothing was written"
    gateway.environment = over_file
    log = path.read_bytes()
    assert migrate(gateway, address).returncode == 0

    # As a kill leaves it between marking the file and removing the log.
    path.write_bytes(log)
    gateway.environment = over_database
    assert str(path) in refusal(gateway)
    other = server.create("elsewhere")
    gateway.environment = over_file
    assert migrate(gateway, other).returncode == 1 and segments(gateway.data) == [path], "it was not moved there"
    again = migrate(gateway, address)
    assert again.returncode == 1 and "was moved to" in again.err and not segments(gateway.data)
    gateway.environment = over_database
    with gateway:
        seen = len(backend.seen)
        assert gateway.send(key.request()).status == 200 and len(backend.seen) == seen + 1


def test_the_mark_of_a_copy_removes_no_log(server, address, tmp_path, backend):
    """After a rehearsal on a copy, an operator names the copy by mistake: the log of the deployment stays."""
    gateway, _, _ = lived_in(tmp_path, backend)
    path, = segments(gateway.data)
    copy = tmp_path / "copy"
    shutil.copytree(gateway.data, copy, ignore=shutil.ignore_patterns("control"))

    def move(data, *options):
        return run("migrate", f"sqlite:{copy}/countersign.db", address, "--data", data, *options, environment=gateway.environment)

    assert move(copy).returncode == 0 and not segments(copy)
    for options in (["--check"], []):
        done = move(gateway.data, *options)
        assert done.returncode == 1 and segments(gateway.data) == [path], done.err
    # The copy's own rerun looks into the database first, and this one is another.
    (copy / path.name).write_bytes(path.read_bytes())
    name = address.rsplit("/", 1)[1]
    server.sql(f"DROP DATABASE {name}")
    server.create(name)
    done = move(copy)
    assert done.returncode == 1 and segments(copy), done.err


# What a move does at each step: messages to the server, writes and syncs of the file and of the log, and the removal of the log.
@pytest.mark.parametrize("call", ["sendto", "pwrite64", "fdatasync", "unlink"])
def test_a_killed_move_leaves_nothing_or_everything(server, address, tmp_path, backend, is_long, note, call):
    gateway, person, key = lived_in(tmp_path, backend)
    with gateway:
        first = gateway.send(keyed(key, "killed"))
    database = address.rsplit("/", 1)[1]
    environment = {**os.environ, **gateway.environment}
    killed = 0
    # At each call, or at one in eight.
    for number in itertools.count(1, 1 if is_long or call in ("fdatasync", "unlink") else 8):
        process = subprocess.run(
            [*killed_at(call, number), BINARY, "migrate", file_of(gateway), address, "--data", gateway.data],
            env=environment, capture_output=True, check=False)
        rows = server.sql("SELECT to_regclass('countersign.account')", database) and server.sql(
            "SELECT count(*) FROM countersign.account", database)
        # Two: everything is there. It was killed before it could say so, and perhaps before the file was marked.
        assert rows in ("", "0", "2"), rows
        assert rows == "2" or segments(gateway.data), "the log is there until its requests are elsewhere"
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0 or b"was moved to" in process.stderr, process.stderr
            break
        killed += 1
    done = migrate(gateway, address)
    assert done.returncode == 0 or "was moved to" in done.err, done.err
    assert killed >= 1 and not segments(gateway.data)
    note(f"a move killed {killed} times at {call}, then complete")
    gateway.environment = {**gateway.environment, "COUNTERSIGN_STORE": address}
    with gateway:
        assert calls(person, "/hello")
        seen = len(backend.seen)
        again = gateway.send(keyed(key, "killed"))
        assert (again.status, again.body, again.get("countersign-replayed")) == (200, first.body, "true")
        assert calls(person, "-d", "amount=1", "-H", "Idempotency-Key: once", "/pay")
        assert len(backend.seen) == seen
        assert json.loads(gateway.admin("audit", "verify", "--json").out)["findings"] == []
