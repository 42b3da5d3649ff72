"""A deployment moves from its SQLite file to a PostgreSQL database: accounts, sessions, releases, keyed requests and the audit log go on there;
nothing goes on with the file; and a move that is killed leaves nothing or everything."""

import itertools
import json
import os
import signal
import sqlite3
import subprocess

import pytest

from backend import Backend
from gateway import BINARY, Gateway, run
from kills import killed_at
from person import Person
from postgres import programs

pytestmark = pytest.mark.skipif(programs() is None, reason="no postgres")

# What only PostgreSQL has: the number of its layout, the lock of those who write, and what several gateways share.
OWN_TABLES = {"layout", "writing", "node", "generation", "login_limit", "pending_login", "pending_login_count"}


@pytest.fixture
def address(server, request):
    return server.create("m" + "".join(letter for letter in request.node.name.lower() if letter.isalnum())[:40])


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


def test_a_killed_move_leaves_nothing_or_everything(server, address, tmp_path, backend, is_long, note):
    gateway, person, _ = lived_in(tmp_path, backend)
    database = address.rsplit("/", 1)[1]
    environment = {**os.environ, **gateway.environment}
    killed = 0
    # At each message to the server, or at one in eight.
    for number in itertools.count(1, 1 if is_long else 8):
        process = subprocess.run(
            [*killed_at("sendto", number), BINARY, "migrate", file_of(gateway), address, "--data", gateway.data],
            env=environment, capture_output=True, check=False)
        killed += process.returncode != 0
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        rows = server.sql("SELECT to_regclass('countersign.account')", database) and server.sql(
            "SELECT count(*) FROM countersign.account", database)
        # Two: everything is there. It was killed before it could say so, and perhaps before the file was marked.
        assert rows in ("", "0", "2"), rows
        if rows == "2":
            break
    done = migrate(gateway, address)
    assert done.returncode == 0 or "was moved to" in done.err, done.err
    assert killed >= 1
    note(f"a move killed {killed} times, then complete")
    gateway.environment = {**gateway.environment, "COUNTERSIGN_STORE": address}
    with gateway:
        assert calls(person, "/hello")
        assert json.loads(gateway.admin("audit", "verify", "--json").out)["findings"] == []
