"""A store that was put back to an earlier copy is not used: what had ended would live again. After `restore --in-place` it is used, and nothing
that had ended lives (docs/decisions/0102-earlier-copies.md). The same drill for an SQLite file and for a PostgreSQL database."""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import sqlite3
import subprocess

import pytest

import bearer
from backend import Backend
from clock import Clock
from gateway import BINARY, Gateway, run
from nodes import Cluster, Node, sent
from person import PASSWORD, Person
from postgres import programs
from redis import RedisServer, is_installed
from signing import digest
from waiting import until

needs_postgres = pytest.mark.skipif(programs() is None, reason="no postgres")
STORES = ["sqlite", pytest.param("postgres", marks=needs_postgres)]
EARLIER = "put back to an earlier copy"


def copy(gateway: Gateway, path: pathlib.Path) -> None:
    """What the file and its journal have."""
    with contextlib.closing(sqlite3.connect(gateway.data / "countersign.db")) as source, contextlib.closing(sqlite3.connect(path)) as target:
        source.backup(target)


class Drill:
    """A gateway with accounts, of whose store a copy is made; then something of every kind ends, and the copy is put in place."""

    def __init__(self, folder: pathlib.Path, postgres):
        self.folder, self.postgres, self.backend = folder, postgres, Backend()
        # The clock of a PostgreSQL server cannot be moved, so that of its gateways is not either.
        self.clock = None if postgres else Clock(folder)
        self.name = f"drill_{secrets.token_hex(4)}"
        environment = {"COUNTERSIGN_STORE": postgres.create(self.name)} if postgres else {}
        self.gateway = Gateway(folder / "gateway", "--upstream", self.backend.url, environment=environment, clock=self.clock)
        self.gateway.start()
        self.gateway.add_app("demo", registration="open", upload_tickets="100", password_login="on", slots="unlimited")
        self.key, self.retired = self.gateway.add_release(), self.gateway.add_release(version="0.9")
        self.gateway.key = self.key
        self.people = {name: Person(self.gateway, folder / name, name).signs_up().logs_in() for name in ("alice", "bob", "carol", "dave")}

    @property
    def former(self) -> str:
        """Where the store of before the restore is."""
        return self.postgres.address(f"{self.name}_former") if self.postgres else str(self.folder / "former")

    def copies(self) -> None:
        if self.postgres:
            (self.folder / "dump").write_text(self.postgres.dump(self.name))
            return
        copy(self.gateway, self.folder / "copy.db")

    def puts_back(self) -> None:
        """Keeps the store as it was as the former one."""
        self.gateway.__exit__()
        if self.postgres:
            self.postgres.sql(f"ALTER DATABASE {self.name} RENAME TO {self.name}_former")
            self.postgres.load((self.folder / "dump").read_text(), self.name)
            return
        (self.folder / "former").mkdir(mode=0o700)
        for path in self.gateway.data.glob("countersign.db*"):
            path.rename(self.folder / "former" / path.name)
        shutil.copy(self.folder / "copy.db", self.gateway.data / "countersign.db")

    def sql(self, *statements: str, copy: str = "copy.db") -> None:
        """As a program without any key, whose statements fire no triggers. `old` has the rows of an earlier time: for SQLite those
        of `copy`, for PostgreSQL a schema."""
        if self.postgres:
            settings = "SET session_replication_role = replica; SET search_path = countersign; "
            self.postgres.sql(settings + "; ".join(statements), self.name)
            return
        with contextlib.closing(sqlite3.connect(self.gateway.data / "countersign.db", timeout=30, isolation_level=None)) as database:
            database.execute("ATTACH ? AS old", (str(self.folder / copy),))
            database.execute("BEGIN IMMEDIATE")
            for trigger, in database.execute("SELECT name FROM main.sqlite_schema WHERE type = 'trigger'").fetchall():
                database.execute(f"DROP TRIGGER main.{trigger}")
            for sql in statements:
                database.execute(sql)
            database.execute("COMMIT")

    def run(self, *arguments: object) -> subprocess.CompletedProcess:
        return run(*arguments, "--data", self.gateway.data, environment=self.gateway.environment)

    def signs_in(self, line, name: str) -> str:
        return json.loads(sent(line, bearer.login(self.gateway, name), 200).body)["token"]

    def ticket(self, line, token: str) -> str:
        asked = {"method": "PUT", "target": "/file", "content_digest": digest(b"x"), "length": 1, "expires_in": 3600}
        fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
        return json.loads(sent(line, self.key.request("POST", f"{bearer.PREFIX}/uploads", json.dumps(asked).encode(), fields=fields), 201).body)["ticket"]

    def uploads(self, ticket: str) -> int:
        head = f"PUT /file HTTP/1.1\r\nHost: {self.key.authority}\r\nCountersign-Ticket: {ticket}\r\nContent-Length: 1\r\n\r\n"
        return self.gateway.send(head.encode() + b"x").status

    def shown(self, name: str) -> dict:
        return json.loads(self.gateway.admin("account", "show", "demo", name, "--json").out)

    def locked(self) -> bool:
        return self.shown("bob")["state"] == "locked"

    def ends(self) -> None:
        """Something of every kind."""
        assert self.people["alice"].run("logout").returncode == 0
        for words in [("account", "lock", "demo", "bob"), ("account", "erase", "demo", "carol", "--yes"),
                      ("release", "retire", self.retired.key_id, "--at", "now", "--update-url", "https://example.com/")]:
            self.gateway.admin(*words)


@pytest.fixture(params=STORES)
def drill(request, tmp_path):
    made = Drill(tmp_path, request.getfixturevalue("server") if request.param == "postgres" else None)
    yield made
    made.gateway.__exit__()
    made.backend.close()


def test_nothing_that_ended_lives_after_a_restore(drill):
    gateway, dave = drill.gateway, drill.people["dave"]
    for name in ("erin", "frank"):
        gateway.admin("account", "add", "demo", name, "--password-stdin", stdin=f"password of {name}\n")
    code = json.loads(gateway.admin("account", "reset", "demo", "dave", "--json").out)["reset_code"]
    for name, number in [("erin", 70_001), ("dave", 70_002), ("frank", 70_003)]:
        gateway.admin("account", "user-id", "demo", name, number)
    for name in ("erin", "dave"):
        gateway.admin("account", "verify", "demo", name)
    for _ in range(2):
        gateway.admin("webhook", "add", "https://192.0.2.1/hook")
    removed, kept = [each["id"] for each in json.loads(gateway.admin("webhook", "list", "--json").out)["webhooks"]]
    # Which has ended the sessions of the account.
    with gateway.connect() as line:
        tokens = [drill.signs_in(line, "erin") for _ in range(60)]
        tickets = [drill.ticket(line, token) for token in tokens[:40]]
    dave.logs_in()
    drill.copies()
    keys = [{"fields": [("Idempotency-Key", f'"{number}"')]} for number in range(40)]
    # More than 200 changes, of every kind.
    with gateway.connect() as line:
        for keyed in keys:
            sent(line, drill.key.request("POST", "/pay", b"1", **keyed), 200)
        for token in tokens[40:]:
            sent(line, bearer.bearing(gateway, token, "POST", "/logout"), 200)
        later_tokens = [drill.signs_in(line, "erin") for _ in range(70)]
        for token in later_tokens[:40]:
            sent(line, bearer.bearing(gateway, token, "POST", "/logout"), 200)
    for ticket in tickets[:30]:
        assert drill.uploads(ticket) == 200
    device, = json.loads(gateway.admin("account", "devices", "demo", "alice", "--json").out)["devices"]
    gateway.admin("account", "forget-device", "demo", "alice", device["device"])
    gateway.admin("account", "remove", "demo", "frank")
    gateway.admin("account", "verify", "demo", "erin", "--undo")
    gateway.admin("webhook", "remove", removed)
    # One is cleared, and another is changed.
    gateway.admin("account", "user-id", "demo", "dave", "none")
    gateway.admin("account", "user-id", "demo", "erin", "70009")
    assert sets_password(dave, code, "another password").returncode == 0
    drill.ends()
    drill.puts_back()

    # Neither a server nor a command uses it.
    with pytest.raises(AssertionError, match=EARLIER):
        gateway.start()
    refused = drill.run("account", "list", "demo")
    assert refused.returncode == 1 and EARLIER in refused.err and "restore --in-place" in refused.err
    assert EARLIER in drill.run("doctor").out

    restored = drill.run("restore", "--in-place", "--erasures-from", drill.former, "--json")
    assert restored.returncode == 0, restored.err
    outcome = json.loads(restored.out)
    assert {name: outcome[name] for name in ("sessions_ended", "reset_codes_removed", "upload_tickets_removed", "known_devices_removed")} == {
        "sessions_ended": 64, "reset_codes_removed": 1, "upload_tickets_removed": 40, "known_devices_removed": 4}
    assert outcome["repeated"] == {"erased": 1, "reserved_names": 0, "locked": 1, "removed": 1, "retired": 1,
                                   "user_ids": 2, "verifications": 1, "webhooks": 1}
    record = json.loads(gateway.admin("audit", "list", "--last", "10", "--json").out)["records"]
    assert [each["details"]["head"] for each in record if each["action"] == "backup.restore"] == [outcome["head"]]

    with gateway:
        now = int(gateway.time())
        # What was signed before is refused, and what is signed for a time behind the floor is not.
        assert gateway.send(drill.key.request(created=now)).status == 503
        later = now + 62 + (3 if drill.postgres else 0)
        if drill.clock:
            drill.clock.advance(65)
        until(lambda: gateway.send(drill.key.request(created=later)).status == 200)
        with gateway.connect() as line:
            for keyed in keys:
                again = sent(line, drill.key.request("POST", "/pay", b"1", created=later, **keyed), 503)
                assert json.loads(again.body)["code"] == "unavailable"
            for token in tokens + later_tokens:
                asked = drill.key.request("GET", f"{bearer.PREFIX}/session", fields=[("authorization", f"Bearer {token}")], created=later)
                assert json.loads(sent(line, asked, 401).body)["code"] in ("session-ended", "session-required", "unknown-key")
        assert "restored" in gateway.event(json.loads(again.body)["instance"])["detail"]
        assert len([seen for seen in drill.backend.seen if seen.target == "/pay"]) == len(keys)
        for ticket in tickets:
            assert drill.uploads(ticket) == 401
        assert len([seen for seen in drill.backend.seen if seen.target == "/file"]) == 30
        assert json.loads(gateway.admin("account", "devices", "demo", "alice", "--json").out)["devices"] == []
        assert gateway.send(drill.retired.request(created=later)).status == 426
        assert [drill.shown(name)["user_id"] for name in ("erin", "dave")] == [70_009, None]
        assert drill.shown("erin")["verified"] is None and drill.shown("dave")["verified"] is not None
        assert [each["id"] for each in json.loads(gateway.admin("webhook", "list", "--json").out)["webhooks"]] == [kept]
        sessions = json.loads(gateway.admin("session", "list", "demo", "--json").out)["sessions"]
        assert sessions == []
        accounts = {each["account"]: each["state"] for each in json.loads(gateway.admin("account", "list", "demo", "--json").out)["accounts"]}
        erased, = [name for name in accounts if name.startswith("erased-")]
        assert accounts == {
            "alice": "active", "bob": "locked", "dave": "active", erased: "removed", "erin": "active", "frank": "removed"}
        if drill.clock:
            for name in ("bob", "dave"):
                assert drill.people[name].run("request", "/hello").returncode == 1
            for name in ("bob", "carol"):
                done = drill.people[name].run("login", "--account", name, "--password-stdin", stdin=PASSWORD + "\n")
                assert done.returncode != 0
            assert sets_password(dave, code, "a third password").returncode != 0, "the reset code was used"
            drill.people["alice"].logs_in()
    # It is the deployment's store from now on.
    with gateway:
        assert drill.run("account", "list", "demo").returncode == 0


def test_a_restore_that_fails_leaves_the_copy_as_it_was(drill, tmp_path):
    """With a wrong former store, or killed in between. Then it can be repeated."""
    gateway, options = drill.gateway, ("restore", "--in-place", "--erasures-from")
    drill.copies()
    drill.ends()
    drill.puts_back()
    with Gateway(tmp_path / "other") as other:
        other.add_app()
    assert drill.run(*options, other.data).returncode == 1
    assert EARLIER in drill.run("account", "list", "demo").err
    if drill.postgres:
        # It has locked an account again when it waits for the release.
        with subprocess.Popen([drill.postgres.bin / "psql", drill.postgres.address(drill.name), "-XAtq"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as holder:
            holder.stdin.write("BEGIN; LOCK TABLE countersign.release IN SHARE MODE; SELECT 1;\n")
            holder.stdin.flush()
            assert holder.stdout.readline() == "1\n"
            killed = subprocess.Popen([BINARY, *options, drill.former, "--data", str(gateway.data)], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env={**os.environ, **gateway.environment})
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'countersign.release'::regclass"
            until(lambda: drill.postgres.sql(waits, drill.name) == "1")
            killed.kill()
            killed.communicate()
        until(lambda: drill.postgres.sql(waits, drill.name) == "0")
        assert EARLIER in drill.run("account", "list", "demo").err
    with pytest.raises(AssertionError, match=EARLIER):
        gateway.start()
    done = drill.run(*options, drill.former, "--json")
    assert done.returncode == 0, done.err
    assert json.loads(done.out)["repeated"]["locked"] == 1 and drill.locked()


def test_a_restore_is_repeated_once_the_former_store_is_found(drill, tmp_path):
    drill.copies()
    drill.ends()
    drill.puts_back()
    assert drill.run("restore", "--in-place").returncode == 0
    with drill.gateway as gateway:
        gateway.admin("account", "add", "demo", "grace", "--password-stdin", stdin="password of grace\n")
        assert not drill.locked()
    with Gateway(tmp_path / "other") as other:
        other.add_app()
    assert drill.run("restore", "--in-place", "--erasures-from", other.data).returncode == 1
    done = drill.run("restore", "--in-place", "--erasures-from", drill.former, "--json")
    assert done.returncode == 0, done.err
    assert json.loads(done.out)["repeated"]["locked"] == 1 and drill.locked()


def test_a_restore_goes_by_no_clock_that_another_one_contradicts(drill, tmp_path):
    drill.copies()
    drill.ends()
    drill.puts_back()
    clock = drill.clock or Clock(tmp_path / "clock")

    def restore(shift: float, *options: object) -> subprocess.CompletedProcess:
        clock.jumps(shift)
        return run("restore", "--in-place", *options, "--data", drill.gateway.data, environment={**drill.gateway.environment, **clock.environment})

    for is_known in (True, False):
        if not is_known:
            # After a loss of the file, what is left is the time of the newest record.
            (drill.gateway.data / "clock").unlink()
        for shift in (-2 * 86_400, 365 * 86_400):
            done = restore(shift)
            assert done.returncode == 1 and "--confirm-clock" in done.err, (is_known, shift, done.err)
            assert EARLIER in drill.run("account", "list", "demo").err
    assert restore(-2 * 86_400, "--confirm-clock", "--json").returncode == 0
    done = restore(0, "--json")
    assert done.returncode == 0, done.err
    assert 86_000 < json.loads(done.out)["keyed_requests_from"] - int(clock.now) <= 86_400


def sets_password(person: Person, code: str, password: str) -> subprocess.CompletedProcess:
    return person.run("signup", "--account", person.name, "--reset-code-stdin", "--password-stdin", stdin=f"{code}\n{password}\n")


def test_a_copy_that_lacks_one_sign_out_is_found(drill):
    """It has no record in the audit log."""
    drill.copies()
    assert drill.people["alice"].run("logout").returncode == 0
    # Killed, so that nothing is written at the end.
    drill.gateway.stop(signal.SIGKILL)
    drill.puts_back()
    with pytest.raises(AssertionError, match=EARLIER):
        drill.gateway.start()


def test_a_release_that_was_put_back_with_its_digest_stays_refused(drill):
    """Later changes do not make the table whole."""
    gateway = drill.gateway
    if drill.postgres:
        drill.sql("CREATE SCHEMA old", "CREATE TABLE old.release AS TABLE release", "CREATE TABLE old.row_digest AS TABLE row_digest")
    else:
        drill.copies()
    gateway.admin("release", "retire", drill.retired.key_id, "--at", "now", "--update-url", "https://example.com/")
    assert gateway.send(drill.retired.request()).status == 426
    drill.sql(
        "DELETE FROM release", f"INSERT INTO release {'OVERRIDING SYSTEM VALUE ' if drill.postgres else ''}SELECT * FROM old.release",
        "UPDATE row_digest SET value = (SELECT value FROM old.row_digest AS former WHERE former.name = 'release') WHERE name = 'release'")
    for number in range(3):
        found = json.loads(drill.run("audit", "verify", "--json").out)["rows"]["findings"]
        assert found == [{"kind": "put-back", "table": "release"}], number
        assert gateway.send(drill.retired.request()).status in (426, 503)
        # As many changes as it lacks, and more; whether they are made does not matter.
        drill.run("release", "add", "demo", "--platform", "ios", "--version", f"3.{number}")
    assert gateway.send(drill.retired.request()).status in (426, 503)
    gateway.stop()
    with pytest.raises(AssertionError, match="the whole table was put back"):
        gateway.start()


@pytest.mark.parametrize("drill", STORES[:1], indirect=True)
@pytest.mark.parametrize("seen_by", ("a change", "the check of the rows"))
def test_a_running_gateway_refuses_content_that_was_put_back_by_sql(drill, seen_by):
    """As nodes with PostgreSQL do; each connection is open all the time, and the rows add up among themselves."""
    gateway = drill.gateway
    drill.copies()
    drill.ends()
    with contextlib.closing(sqlite3.connect(drill.folder / "copy.db")) as former:
        tables = [name for name, in former.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'sqlite_sequence'")]
    drill.sql("PRAGMA defer_foreign_keys = ON", *(text for name in tables for text in (
        f"DELETE FROM main.{name}", f"INSERT INTO main.{name} SELECT * FROM old.{name}")))
    if seen_by == "a change":
        for name in ("bob", "carol"):
            done = drill.people[name].run("login", "--account", name, "--password-stdin", stdin=PASSWORD + "\n")
            assert done.returncode != 0, done.out

    def refused() -> bool:
        drill.clock.advance(1)
        answer = gateway.send(drill.key.request(created=int(gateway.time())))
        return answer.status == 503 and EARLIER in gateway.event(json.loads(answer.body)["instance"])["detail"]

    until(refused)
    # What is in memory is refused, too: it would be written to the earlier copy.
    assert drill.people["dave"].run("request", "/hello").returncode != 0
    assert EARLIER in drill.run("account", "list", "demo").err
    gateway.stop()
    with pytest.raises(AssertionError, match=EARLIER):
        gateway.start()


@pytest.mark.parametrize("drill", STORES[:1], indirect=True)
def test_a_restoration_cannot_be_carried_to_a_store_of_before_it(drill):
    """That store has more changes and records than the restored one: nothing else tells which is the later."""
    gateway = drill.gateway
    drill.copies()
    for number in range(8):
        gateway.admin("account", "add", "demo", f"u{number}", "--password-stdin", stdin=PASSWORD + "\n")
    for _ in range(2):
        for person in drill.people.values():
            person.logs_in()
        gateway.stop()
        gateway.start()
    copy(gateway, drill.folder / "before.db")
    drill.puts_back()
    restored = drill.run("restore", "--in-place")
    assert restored.returncode == 0, restored.err
    gateway.start()
    gateway.admin("account", "lock", "demo", "bob")
    gateway.stop()
    copy(gateway, drill.folder / "restored.db")
    with contextlib.closing(sqlite3.connect(drill.folder / "restored.db")) as database:
        last, = database.execute("SELECT max(number) FROM audit").fetchone()
    for path in gateway.data.glob("countersign.db*"):
        path.unlink()
    shutil.copy(drill.folder / "before.db", gateway.data / "countersign.db")
    drill.sql(
        "INSERT OR IGNORE INTO main.meta SELECT * FROM old.meta", f"UPDATE main.audit SET record = record || ' ' WHERE number = {last}",
        copy="restored.db")
    with pytest.raises(AssertionError, match="from before the last `countersign restore --in-place`"):
        gateway.start()
    assert EARLIER in drill.run("account", "list", "demo").err


@pytest.mark.parametrize("drill", STORES[1:], indirect=True)
def test_a_copy_that_lacks_one_keyed_request_is_found(drill):
    """It changes none of the rows that have tags."""
    drill.copies()
    assert drill.gateway.send(drill.key.request("POST", "/pay", b"1", fields=[("Idempotency-Key", '"k"')])).status == 200
    drill.gateway.stop(signal.SIGKILL)
    drill.puts_back()
    with pytest.raises(AssertionError, match=EARLIER):
        drill.gateway.start()


@pytest.mark.skipif(not is_installed(), reason="no redis-server")
def test_redis_knows_it_where_the_data_folder_was_lost_too(tmp_path):
    with RedisServer() as redis:
        gateway = Gateway(tmp_path / "gateway", "--replay", redis.address)
        with gateway:
            gateway.add_app("demo", registration="open")
            person = Person(gateway, tmp_path / "phone").signs_up().logs_in()
        copy(gateway, tmp_path / "copy.db")
        with gateway:
            name = redis.call("KEYS", "*:head").split()[-1]
            kept = redis.call("GET", name)
            assert person.run("logout").returncode == 0
            until(lambda: redis.call("GET", name) != kept)
        for path in gateway.data.glob("countersign.db*"):
            path.unlink()
        shutil.copy(tmp_path / "copy.db", gateway.data / "countersign.db")
        (gateway.data / "followed-head").unlink()
        with pytest.raises(AssertionError, match=EARLIER):
            gateway.start()
        # A head of another deployment does not count.
        with Gateway(tmp_path / "other", "--replay", redis.address):
            pass
        assert run("restore", "--in-place", "--data", gateway.data).returncode == 0
        gateway.start().stop()


@needs_postgres
def test_all_nodes_refuse_what_one_of_them_knows_to_be_earlier(server, tmp_path):
    with Cluster(tmp_path, server.create("earlier")) as cluster:
        line = cluster.nodes[1].connect()
        token = cluster.logged_in(line)
        dump = server.dump("earlier")
        sent(line, cluster.bearing(token, "POST", "/logout"), 200)
        for node in cluster.nodes:
            node.stop()
        server.sql("DROP DATABASE earlier")
        server.load(dump, "earlier")
        # Two nodes whose folders were lost, and Redis with them, do not know it, and serve until one that does is started.
        if cluster.redis:
            cluster.redis.call("DEL", cluster.redis.call("KEYS", "*:head").split()[-1])
        for node in cluster.nodes[:2]:
            (node.data / "followed-head").unlink()
            node.start()
        until(lambda: [node.causes() for node in cluster.nodes[:2]] == [[]] * 2)
        with pytest.raises(AssertionError, match=EARLIER):
            cluster.nodes[2].start()
        for node in cluster.nodes[:2]:
            until(lambda node=node: EARLIER in node.asked("/ready")[1])
            assert "nodes" in node.causes()
            connection = node.connect()
            assert sent(connection, cluster.bearing(token)).status == sent(connection, cluster.login()).status == 503
        assert cluster.nodes[0].stop() == 0
        with pytest.raises(AssertionError, match=EARLIER):
            cluster.nodes[0].start()
        cluster.nodes[1].stop()
        done = run("restore", "--in-place", "--data", cluster.nodes[0].data, environment=cluster.nodes[0].environment)
        assert done.returncode == 0, done.err
        for node in cluster.nodes:
            node.start()
        until(lambda: [node.causes() for node in cluster.nodes] == [[]] * 3)


@needs_postgres
def test_a_running_node_finds_that_its_database_went_back(server, tmp_path):
    with Cluster(tmp_path, server.create("back"), (), ()) as cluster:
        line = cluster.nodes[0].connect()
        token = cluster.logged_in(line)
        server.load(server.dump("back"), "prepared")
        sent(line, cluster.bearing(token, "POST", "/logout"), 200)
        server.sql("ALTER DATABASE back ALLOW_CONNECTIONS false; "
                   "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'back'")
        server.sql("ALTER DATABASE back RENAME TO back_former")
        server.sql("ALTER DATABASE prepared RENAME TO back")
        for node in cluster.nodes:
            until(lambda node=node: EARLIER in node.asked("/ready")[1])
            connection = node.connect()
            assert sent(connection, cluster.bearing(token)).status == sent(connection, cluster.login()).status == 503


@needs_postgres
def test_a_node_of_a_test_system_does_not_stop_production_for_good(server, tmp_path):
    """The test system is made from a dump, and goes its own way."""
    environment = {"COUNTERSIGN_REPLAY": "postgres"}
    with Cluster(tmp_path, server.create("production"), (), (), environments={0: environment, 1: environment}) as cluster:
        line = cluster.nodes[0].connect()
        token = cluster.logged_in(line)
        server.load(server.dump("production"), "testing")
        other = Node(tmp_path / "testing", server.address("testing"), environment=environment)
        cluster.share_keys(other)
        with other:
            for number in range(3):
                other.admin("account", "add", "demo", f"test-{number}", "--password-stdin", stdin="password of a test\n")
        other.environment["COUNTERSIGN_STORE"] = server.address("production")
        # A command fails, and tells no node.
        done = run("account", "list", "demo", "--data", other.data, environment=other.environment)
        assert done.returncode == 1 and EARLIER in done.err, done.err
        assert server.sql("SELECT count(*) FROM countersign.meta WHERE name = 'reported-head'", "production") == "0"
        assert sent(line, cluster.bearing(token)).status == 200
        # A server does.
        with pytest.raises(AssertionError, match=EARLIER):
            other.start()
        for node in cluster.nodes:
            until(lambda node=node: EARLIER in node.asked("/ready")[1])
            assert str(other.data) in node.asked("/ready")[1] and "reject-report" in node.asked("/ready")[1]

        def reject(node: Node, *options: object) -> subprocess.CompletedProcess:
            return run("nodes", "reject-report", *options, "--data", node.data, environment=node.environment)

        assert reject(cluster.nodes[0]).returncode == 2
        refused = reject(other, "--yes")
        assert refused.returncode == 1 and "has served" in refused.err, refused.err
        done = reject(cluster.nodes[1], "--yes")
        assert done.returncode == 0 and str(other.data) in done.out, done.err
        for node in cluster.nodes:
            until(lambda node=node: node.causes() == [], node.asked("/ready"))
            assert sent(node.connect(), cluster.bearing(token)).status == 200
            assert sent(node.connect(), cluster.key.request("POST", "/pay", b"1", fields=[("idempotency-key", '"k"')])).status != 503
        # What its folder has followed does not count any more: it is one more node.
        with other:
            until(lambda: other.causes() == [], other.asked("/ready"))
            assert [node.causes() for node in cluster.nodes] == [[], []]
        for node in cluster.nodes:
            node.stop()
            node.start()
        record = json.loads(cluster.nodes[0].admin("audit", "list", "--last", "1", "--json").out)["records"][-1]
        assert record["action"] == "nodes.reject-report" and str(other.data) in record["details"]["reporter"]
        assert reject(cluster.nodes[0], "--yes").returncode == 1
