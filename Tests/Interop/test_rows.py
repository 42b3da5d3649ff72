"""A writer to the database without the master key: each table has a row that decides who is who. One that was changed, moved,
deleted or put back is refused, never taken for another identity, and reported by `audit verify`, the metrics and the log."""

import json
import sqlite3
import urllib.request
from collections.abc import Callable

import pytest

import bearer
from clock import Clock
from gateway import Gateway, run
from person import PASSWORD, Person
from ports import reserve_port
from signing import digest
from waiting import until



class Shop(Gateway):
    """A gateway with two accounts, and a session of each."""

    def __init__(self, folder):
        self.admin_port = reserve_port()
        super().__init__(folder, clock=Clock(folder))
        self.start()
        bearer.add_app(self, 2)
        self.tokens = {}
        for name in ("user-0", "user-1"):
            answer = self.send(bearer.login(self, name))
            assert answer.status == 200, answer
            self.tokens[name] = json.loads(answer.body)["token"]

    def command(self, *options: object) -> list[str]:
        return super().command(*options, "--admin", f"127.0.0.1:{self.admin_port}")

    def sql(self, *statements: str) -> None:
        with sqlite3.connect(self.data / "countersign.db", timeout=10) as database:
            for sql in statements:
                database.execute(sql)
        database.close()

    def found(self) -> list[dict]:
        done = run("audit", "verify", "--json", "--data", self.data)
        said = json.loads(done.out)
        assert done.returncode == (1 if said["rows"]["findings"] or said["findings"] else 0)
        assert said["findings"] == []
        return said["rows"]["findings"]

    def who(self, name: str) -> str:
        """The account that the session of `name` acts for, or the refusal's code."""
        answer = self.send(bearer.bearing(self, self.tokens[name]))
        said = json.loads(answer.body)
        return said["account"] if answer.status == 200 else said["code"]

    def again(self) -> None:
        self.stop()
        self.start()

    def metric(self, name: str) -> float:
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}/metrics", headers={
            "Authorization": f"Bearer {(self.data / 'admin-token').read_text().strip()}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return next(float(line.split()[1]) for line in answer.read().decode().splitlines() if line.startswith(f"{name} "))


@pytest.fixture
def shop(tmp_path):
    made = Shop(tmp_path)
    assert [made.who(name) for name in made.tokens] == ["user-0", "user-1"] and made.found() == []
    yield made
    made.stop()


MOVED = "UPDATE session SET account = 3 - account WHERE account = 1"
ATTACKS = {
    "moved session": (MOVED, "session"),
    "swapped sessions": ("UPDATE session SET account = 3 - account", "session"),
    "revived session": ("UPDATE session SET used = used + 1000000 WHERE account = 1", "session"),
    "moved account": ("UPDATE account SET user_id = 42 WHERE number = 1", "account"),
    "renamed account": ("UPDATE account SET name = 'root' WHERE number = 1", "account"),
    "untagged account": ("UPDATE account SET row_tag = NULL WHERE number = 1", "account"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_changed_row_of_one_person_is_refused_and_of_no_other(shop, attack):
    sql, table = ATTACKS[attack]
    shop.sql(sql)
    # What the running server has in memory stays who it was.
    assert shop.who("user-0") in ("user-0", "unavailable")
    assert {one["table"] for one in shop.found()} == {table} and shop.found()[0]["kind"] == "altered"
    if attack == "moved session":
        listed = json.loads(shop.admin("session", "list", "demo", "user-0", "--json").out)["sessions"]
        assert listed == [] and len(shop.found()[0]["row"]) == 22
    # The running server may have seen it, too, and said so.
    shop.stop()
    earlier = len(shop.events())
    shop.start()
    assert shop.who("user-0") == "unavailable"
    assert shop.who("user-1") == ("unavailable" if attack == "swapped sessions" else "user-1")
    told = until(lambda: shop.clock.advance(1) or [
        line["message"] for line in shop.events()[earlier:] if line.get("log") == "rows"], "the log does not say it")
    assert told[0].startswith(f"{table} ") and len(told) == len(set(told))
    if table == "account":
        assert json.loads(shop.send(bearer.login(shop, "user-0")).body)["code"] in ("unavailable", "wrong-credentials")
        assert shop.send(bearer.login(shop, "user-1")).status == 200


def test_a_session_that_was_put_back_lives_no_more(shop):
    """Its row is authentic: what it lacks is its place in the sum of its group."""
    shop.sql("CREATE TABLE kept AS SELECT * FROM session WHERE account = 1")
    shop.admin("session", "revoke", json.loads(shop.admin("session", "list", "demo", "user-0", "--json").out)["sessions"][0]["session"])
    assert shop.who("user-0") == "session-ended"
    shop.stop()
    shop.sql("DELETE FROM session WHERE account = 1", "INSERT INTO session SELECT * FROM kept", "DROP TABLE kept")
    assert shop.found() == [{"kind": "unbalanced", "table": "session", "difference": 0, "groups": [1]}]
    earlier = len(shop.events())
    shop.start()
    assert shop.who("user-0") == "unavailable", "the session lives again"
    # All rows were verified before the server listened: the finding is in the log before the request is.
    def seen() -> list[str]:
        return [line.get("code") or line.get("log") for line in shop.events()[earlier:]]

    until(lambda: "unavailable" in seen(), seen)
    kinds = seen()
    assert "rows" in kinds[:kinds.index("unavailable")], kinds
    assert shop.who("user-1") == "user-1"
    # An operator goes on: the person signs in again.
    assert run("audit", "accept", "--data", shop.data).returncode == 2
    shop.accept_rows()
    assert shop.found() == []
    until(lambda: shop.clock.advance(1) or shop.send(bearer.login(shop, "user-0")).status == 200, "no login")
    assert shop.who("user-1") == "user-1"


def put_back(shop: Shop, table: str, ours: Callable[[], object], condition: str) -> None:
    """Puts the rows back to their state before `ours`, tags included."""
    shop.sql(f"CREATE TABLE kept AS SELECT * FROM {table} WHERE {condition}")
    ours()
    shop.sql(f"DELETE FROM {table} WHERE {condition}", f"INSERT INTO {table} SELECT * FROM kept", "DROP TABLE kept")


def signs_in(shop: Shop, name: str) -> str:
    answer = shop.send(bearer.login(shop, name))
    return "accepted" if answer.status == 200 else json.loads(answer.body)["code"]


def test_a_locked_account_that_was_put_back_does_not_sign_in(shop):
    """Under a running server, before its background check: the transaction that opens the session verifies the group."""
    def lock() -> None:
        shop.admin("account", "lock", "demo", "user-0")
        assert signs_in(shop, "user-0") == "forbidden"

    put_back(shop, "account", lock, "number = 1")
    assert signs_in(shop, "user-0") == "unavailable", "the lock is undone"
    assert signs_in(shop, "user-1") == "accepted"
    found, = shop.found()
    assert (found["kind"], found["table"], found["groups"]) == ("unbalanced", "account", [1])


def test_nobody_signs_in_beside_a_session_that_was_put_back(shop):
    session = json.loads(shop.admin("session", "list", "demo", "user-0", "--json").out)["sessions"][0]["session"]
    put_back(shop, "session", lambda: shop.admin("session", "revoke", session), "account = 1")
    assert signs_in(shop, "user-0") == "unavailable"
    assert signs_in(shop, "user-1") == "accepted"


def test_a_device_that_was_put_back_is_not_listed(shop, tmp_path):
    shop.admin("app", "policy", "demo", "--set", "registration=open")
    person = Person(shop, tmp_path / "person", "ada").signs_up().logs_in()
    device, = json.loads(shop.admin("account", "devices", "demo", "ada", "--json").out)["devices"]
    put_back(shop, "known_device", lambda: shop.admin("account", "forget-device", "demo", "ada", device["device"]), "account = 3")
    done = run("account", "devices", "demo", "ada", "--data", shop.data)
    assert done.returncode == 1 and "known_device" in done.err and "audit verify" in done.err, done
    assert json.loads(shop.admin("account", "devices", "demo", "user-0", "--json").out)["devices"] == []
    said = person.run("login", "--account", "ada", "--password-stdin", stdin=PASSWORD)
    assert said.returncode == 1 and "unavailable" in said.err, said


def test_a_deleted_row_is_missed(shop):
    shop.sql("DELETE FROM session WHERE account = 1")
    found, = shop.found()
    assert (found["kind"], found["table"], found["difference"]) == ("unbalanced", "session", -1)
    shop.again()
    assert shop.who("user-0") in ("unknown-key", "unavailable", "session-ended", "unknown-session")
    assert shop.who("user-1") == "user-1"


POLICIES = {
    "app": "UPDATE app SET created = created - 1",
    "app_setting": "UPDATE app_setting SET text = 'off' WHERE name = 'password-login'",
    "app_setting deleted": "DELETE FROM app_setting WHERE name = 'slots'",
    "app_setting added": "INSERT INTO app_setting (app, name, text) VALUES ('demo', 'enforcement', 'observe=99999999999')",
    "route": "UPDATE app_setting SET text = '/ open' WHERE name = 'routes'",
    "release": "UPDATE release SET version = '9.9'",
    "release deleted": "DELETE FROM release",
    "retirement": "UPDATE release SET retired_at = 1, update_url = 'https://evil.example'",
    "release_setting": "INSERT INTO release_setting (key_id, name, text) SELECT key_id, 'debug', 'on' FROM release",
}


@pytest.mark.parametrize("attack", POLICIES)
def test_a_changed_policy_closes_the_gate(shop, attack):
    shop.sql(POLICIES[attack])
    table = "app" if attack == "app" else "release_setting" if attack == "release_setting" else (
        "app_setting" if attack.startswith(("app", "route")) else "release")
    assert {one["table"] for one in shop.found()} == {table}
    assert shop.who("user-0") == "user-0", "memory has the policy as it was"
    # The next look at the store is refused; no request passes under the other policy.
    done = run("app", "policy", "demo", "--set", "debug=on", "--data", shop.data)
    if table.startswith("app"):
        assert done.returncode == 1 and table in done.err
    else:
        assert shop.who("user-0") == "unavailable"
    shop.stop()
    done = run("serve", "--data", shop.data, "--listen", "127.0.0.1:0", "--admin", "off")
    assert done.returncode == 1 and table in done.err and "audit verify" in done.err
    shop.accept_rows()
    assert shop.found() == []
    shop.start()


def test_a_device_that_was_planted_is_not_known(shop):
    """Its place among the limits of logins is an unknown device's."""
    shop.sql("INSERT INTO known_device (account, id, signing_key, last_seen, class, name, first_seen) "
             "VALUES (1, zeroblob(32), zeroblob(65), 0, 'phone', 'mine', 0)")
    found, = shop.found()
    assert (found["kind"], found["table"]) == ("altered", "known_device")
    listed = json.loads(shop.admin("account", "devices", "demo", "user-0", "--json").out)["devices"]
    assert listed == []


UPLOAD = b"a picture of a cat"
TICKETS = {
    "used again": "UPDATE upload_ticket SET claimed = NULL",
    "of another account": "UPDATE upload_ticket SET claimed = NULL, account = 2",
    "of another session": "UPDATE upload_ticket SET claimed = NULL, session = (SELECT id FROM session WHERE account = 2)",
    "to another place": "UPDATE upload_ticket SET claimed = NULL, target = CAST('/other' AS BLOB)",
}


def ticket(shop: Shop) -> str:
    asked = {"method": "PUT", "target": "/files/7", "content_digest": digest(UPLOAD), "length": len(UPLOAD), "expires_in": 600}
    answer = shop.send(shop.key.request(
        "POST", f"{bearer.PREFIX}/uploads", json.dumps(asked).encode(),
        fields=[("authorization", f"Bearer {shop.tokens['user-0']}"), ("content-type", "application/json")]))
    assert answer.status == 201, answer
    return json.loads(answer.body)["ticket"]


def uploads(shop: Shop, ticket: str) -> str:
    """`accepted`, or the refusal's code."""
    lines = ("PUT /files/7 HTTP/1.1", f"Host: {shop.key.authority}", f"Countersign-Ticket: {ticket}",
             f"Content-Length: {len(UPLOAD)}")
    answer = shop.send("\r\n".join(lines).encode() + b"\r\n\r\n" + UPLOAD)
    return "accepted" if answer.status == 200 else json.loads(answer.body)["code"]


def test_a_changed_upload_ticket_lets_nothing_in(shop):
    shop.admin("app", "policy", "demo", "--set", "upload-tickets=10")
    used = ticket(shop)
    assert uploads(shop, used) == "accepted" and uploads(shop, used) == "replayed"
    shop.sql("CREATE TABLE kept AS SELECT * FROM upload_ticket")
    for sql in TICKETS.values():
        shop.sql(sql)
        assert uploads(shop, used) == "unavailable", sql
        # A row that was moved to another account is missed at the one before, too.
        found = [(one["kind"], one["table"]) for one in shop.found()]
        assert found[0] == ("altered", "upload_ticket") and found[1:] in ([], [("unbalanced", "upload_ticket")])
        shop.sql("DELETE FROM upload_ticket", "INSERT INTO upload_ticket SELECT * FROM kept")
        assert uploads(shop, used) == "replayed" and shop.found() == []


def test_an_upload_ticket_that_was_deleted_or_put_back_is_missed(shop):
    shop.admin("app", "policy", "demo", "--set", "upload-tickets=10")
    used, deleted = ticket(shop), ticket(shop)
    shop.sql("CREATE TABLE kept AS SELECT * FROM upload_ticket")
    assert uploads(shop, used) == "accepted"
    shop.stop()
    shop.sql("DELETE FROM upload_ticket WHERE claimed IS NULL")
    assert [(one["kind"], one["difference"]) for one in shop.found()] == [("unbalanced", -1)]
    shop.sql("DELETE FROM upload_ticket", "INSERT INTO upload_ticket SELECT * FROM kept", "DROP TABLE kept")
    assert shop.found() == [{"kind": "unbalanced", "table": "upload_ticket", "difference": 0, "groups": [1]}]
    shop.start()
    reported(shop)
    # The account's tickets can no longer be told apart from such that were put back.
    assert uploads(shop, used) == "unavailable" and uploads(shop, deleted) == "unavailable"


def reported(shop: Shop) -> None:
    until(lambda: shop.clock.advance(5) or shop.metric("countersign_row_findings") >= 1)


def test_only_what_was_looked_at_is_accepted(shop):
    shop.sql("UPDATE account SET user_id = 41 WHERE number = 1")

    def found() -> str:
        return json.loads(run("audit", "verify", "--json", "--data", shop.data).out)["rows"]["findings_id"]

    def accept(seen: str):
        return run("audit", "accept", "--findings", seen, "--json", "--data", shop.data)

    seen = found()
    done = accept(seen)
    assert done.returncode == 1 and "a server runs" in done.err
    shop.stop()
    # The same finding in words, of another content.
    shop.sql("UPDATE account SET user_id = 42 WHERE number = 1")
    assert found() != seen
    for wrong in (seen, "any", found()[:-1]):
        done = accept(wrong)
        assert done.returncode == 1 and "not the findings of now" in done.err, wrong
    done = accept(found())
    assert done.returncode == 0 and [(one["table"], one["row"]) for one in json.loads(done.out)["accepted"]] == [("account", "1")]
    record = json.loads(shop.admin("audit", "list", "--json", "--last", "1").out)["records"][0]
    assert record["action"] == "rows.accept" and record["details"]["accepted"] == ["account 1"]
    assert shop.found() == [] and found() is None
    done = accept(seen)
    assert done.returncode == 1 and "every row verifies" in done.err


def test_a_rebuilt_table_is_refused(shop):
    """A constraint with ON CONFLICT IGNORE would turn revocations into nothing."""
    shop.stop()
    with sqlite3.connect(shop.data / "countersign.db") as database:
        names = ", ".join(row[1] for row in database.execute("PRAGMA table_info(session)"))
        text, = database.execute("SELECT sql FROM sqlite_schema WHERE name = 'session'").fetchone()
        assert text.endswith(") STRICT")
        indices = [row[0] for row in database.execute(
            "SELECT sql FROM sqlite_schema WHERE tbl_name = 'session' AND type IN ('index', 'trigger') AND sql IS NOT NULL")]
        database.execute("ALTER TABLE session RENAME TO kept")
        database.execute(text.removesuffix(") STRICT") + ", UNIQUE (account, end_reason) ON CONFLICT IGNORE) STRICT")
        database.execute(f"INSERT INTO session ({names}) SELECT {names} FROM kept")
        database.execute("DROP TABLE kept")
        for sql in indices:
            database.execute(sql)
    database.close()
    done = run("session", "list", "demo", "--data", shop.data)
    assert done.returncode == 1 and "the table session was rebuilt" in done.err
    done = run("serve", "--data", shop.data, "--listen", "127.0.0.1:0", "--admin", "off")
    assert done.returncode == 1 and "the table session was rebuilt" in done.err


@pytest.mark.parametrize("attack", (
    "DELETE FROM account WHERE number = 1", "UPDATE account SET name = 'other' WHERE number = 1"))
def test_no_command_gives_a_name_that_is_missing_to_another(shop, attack):
    shop.sql(attack)
    for more in ((), ("--user-id", "7")):
        done = run("account", "add", "demo", "user-0", *more, "--data", shop.data)
        assert done.returncode == 1 and "account" in done.err and "audit verify" in done.err, done
    done = run("account", "user-id", "demo", "user-1", "7", "--data", shop.data)
    assert done.returncode == 1 and "audit verify" in done.err


NAMES = {
    "deleted": ("DELETE FROM erased_name", "erased_name"),
    "changed": ("UPDATE erased_name SET tombstone = zeroblob(32)", "erased_name"),
    "untagged": ("UPDATE erased_name SET row_tag = NULL", "erased_name"),
    "renamed account": ("UPDATE account SET name = 'other' WHERE number = 2", "account"),
    "deleted account": ("DELETE FROM account WHERE number = 2", "account"),
}


@pytest.mark.parametrize("attack", NAMES)
def test_nobody_inherits_a_name(shop, attack, tmp_path):
    """The backend would take the new account of an erased name for the erased one."""
    shop.admin("account", "erase", "demo", "user-0", "--yes")
    shop.admin("app", "policy", "demo", "--set", "registration=open")
    sql, table = NAMES[attack]
    shop.sql(sql)
    assert {one["table"] for one in shop.found()} == {table}
    reported(shop)
    name = "user-0" if table == "erased_name" else "user-1"
    person = Person(shop, tmp_path / "person", name)
    said = person.run("signup", "--account", name, "--password-stdin", stdin=PASSWORD)
    assert said.returncode == 1 and "unavailable" in said.err, said
    if table == "erased_name":
        done = run("account", "add", "demo", name, "--data", shop.data)
        assert done.returncode == 1 and "erased_name" in done.err and "audit verify" in done.err


def test_the_key_of_the_erased_names_is_not_made_anew(shop):
    shop.admin("account", "erase", "demo", "user-0", "--yes")
    shop.stop()
    shop.sql("DELETE FROM meta WHERE name = 'tombstone-key'")
    done = run("account", "add", "demo", "user-0", "--data", shop.data)
    assert done.returncode == 1 and "meta: the rows do not add up" in done.err


def test_the_metrics_tell(shop):
    assert shop.metric("countersign_row_findings") == 0
    shop.sql(MOVED)
    until(lambda: shop.clock.advance(5) or shop.metric("countersign_row_findings") >= 1)


def test_a_trigger_of_the_database_acts_for_nobody(shop):
    shop.sql("CREATE TRIGGER planted AFTER UPDATE ON session BEGIN UPDATE account SET user_id = 42 WHERE number = 1; END")
    shop.admin("session", "revoke", json.loads(shop.admin("session", "list", "demo", "user-1", "--json").out)["sessions"][0]["session"])
    assert shop.who("user-1") == "session-ended" and shop.who("user-0") == "user-0" and shop.found() == []
