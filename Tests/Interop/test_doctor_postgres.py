"""`countersign doctor` over a PostgreSQL database: a sound one is well and stays as it is, and one that is down, frozen, refused, altered or
sealed with another key is an error that names the place and no password, in bounded time."""

import json
import signal

import pytest

from gateway import Gateway, run
from postgres import USER, programs
from waiting import until

pytestmark = pytest.mark.skipif(programs() is None, reason="no postgres")

DATABASE = "doctored"


def doctor(gateway: Gateway, address: str, **environment: str) -> tuple[int, list[dict]]:
    done = run("doctor", "--data", gateway.data, "--listen", f"127.0.0.1:{gateway.port}", "--json", "--store", address, environment=environment)
    assert done.out, done.err
    return done.returncode, json.loads(done.out)["findings"]


def errors(findings: list[dict]) -> dict[str, str]:
    """The messages of the errors by their topic."""
    return {finding["topic"]: finding["message"] for finding in findings if finding["verdict"] == "error"}


def digests(server) -> dict[str, str]:
    """A digest of each table's rows."""
    names = server.sql("SELECT table_name FROM information_schema.tables WHERE table_schema = 'countersign'", DATABASE).split()
    assert {"app", "audit", "node", "release", "revision", "writing"} <= set(names)
    return {name: server.sql(f"SELECT md5(string_agg(row::text, '|' ORDER BY row::text)) FROM countersign.{name} AS row", DATABASE)
            for name in names}


@pytest.fixture
def deployed(server, tmp_path):
    """A deployment that serves from a database of its own, and the database's address by the socket."""
    server.sql(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
    address = server.create(DATABASE)
    with Gateway(tmp_path, environment={"COUNTERSIGN_STORE": address}) as gateway:
        gateway.add_app()
        gateway.add_release()
        yield gateway, address


def test_a_sound_database_is_well_and_stays_as_it_is(server, deployed):
    gateway, address = deployed
    for place in (address, server.local_address(DATABASE)):
        code, findings = doctor(gateway, place)
        assert code == 0 and errors(findings) == {}
        well = [finding["message"] for finding in findings if finding["verdict"] == "well"]
        assert any("rows and" in message and "are whole" in message for message in well), well
        assert "the clock agrees with the store" in well
        assert any("answers over TLS" in message for message in well), well
    # A running gateway renews its node's lease, and counts what it writes; without one, no table changes.
    gateway.stop()
    before = digests(server)
    code, findings = doctor(gateway, address)
    assert code == 0 and errors(findings) == {}
    assert digests(server) == before


def test_a_database_that_does_not_let_it_in(server, deployed):
    gateway, address = deployed
    secret = "not-the-password"
    server.sql("DROP ROLE IF EXISTS weak; CREATE ROLE weak LOGIN PASSWORD 'of-the-weak'")
    for place, text in [(f"postgres://{USER}:{secret}@127.0.0.1:{server.port}/{DATABASE}", "password authentication failed"),
                        (server.address("absent"), '"absent" does not exist'),
                        (f"postgres://{USER}@127.0.0.1:9/{DATABASE}", "Connection refused"),
                        (f"postgres://weak:of-the-weak@127.0.0.1:{server.port}/{DATABASE}", DATABASE)]:
        code, findings = doctor(gateway, place)
        assert code == 1 and text in errors(findings)["store"], findings
        assert secret not in json.dumps(findings) and "of-the-weak" not in json.dumps(findings)
    # Another master key than the one of the rows.
    code, findings = doctor(gateway, address, COUNTERSIGN_MASTER_KEY="11" * 32)
    assert code == 1 and "master-key" in errors(findings), findings


def test_a_frozen_database_is_not_waited_for(server, deployed):
    gateway, address = deployed
    server.signal(signal.SIGSTOP)
    try:
        for place in (address, server.local_address(DATABASE)):
            code, findings = doctor(gateway, place)
            assert code == 1 and "has not answered" in errors(findings)["store"], findings
    finally:
        server.signal(signal.SIGCONT)
    until(lambda: not errors(doctor(gateway, address)[1]))


def test_a_database_that_is_down(server, deployed):
    gateway, address = deployed
    server.stop()
    try:
        code, findings = doctor(gateway, address)
        assert code == 1 and "connection to server" in errors(findings)["store"], findings
    finally:
        server.start()
    assert errors(doctor(gateway, address)[1]) == {}


def test_altered_rows_and_tables_are_named(server, deployed):
    gateway, address = deployed
    gateway.stop()
    server.sql("ALTER TABLE countersign.session DISABLE TRIGGER row_update", DATABASE)
    code, findings = doctor(gateway, address)
    assert code == 1 and "session: the columns, indices, constraints or triggers" in errors(findings)["store"], findings
    server.sql("ALTER TABLE countersign.session ENABLE TRIGGER row_update", DATABASE)
    assert errors(doctor(gateway, address)[1]) == {}
    # With the rights of the tables' owner and without the key.
    server.sql("SET session_replication_role = replica; UPDATE countersign.release SET version = '9'", DATABASE)
    code, findings = doctor(gateway, address)
    assert code == 1 and "the row was altered" in errors(findings)["store"] and "release" in errors(findings)["store"], findings
