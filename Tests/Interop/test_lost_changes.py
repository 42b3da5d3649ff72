"""A standby that was promoted without the last changes: `restore --in-place --lost SECONDS` ends again what these changes had ended, from the
lists that the nodes keep, and leaves the other sessions. It changes nothing where the lists have a gap (docs/decisions/0102-earlier-copies.md)."""

import contextlib
import json
import pathlib
import shutil
import subprocess
import time

import pytest

from bearer import PREFIX
from gateway import run
from link import Link
from nodes import HOST, Cluster, Node, sent
from person import PASSWORD, Person
from postgres import Postgres, programs
from signing import digest
from waiting import until

pytestmark = pytest.mark.skipif(programs() is None, reason="no postgres")
EARLIER = "put back to an earlier copy"
ACCOUNTS = 8


class FailOver:
    """Two nodes over a primary, which has an asynchronous standby."""

    def __init__(self, folder: pathlib.Path):
        self.primary, self.front = Postgres(), Link(0)
        self.standby = None
        self.primary.create("d")
        self.link = Link(self.primary.port)
        options = ("--authority", f"{HOST},127.0.0.1:{self.front.port}")
        self.cluster = Cluster(folder, self.primary.local_address("d", self.link.port), options, options, accounts=ACCOUNTS)
        self.nodes = self.cluster.nodes
        self.front.turn_to(self.nodes[0].port)
        self.nodes[0].admin("app", "policy", "demo", "--set", "upload-tickets=10")
        self.retired = self.cluster.add_release("0.9")
        self.person = Person(self.nodes[0], folder / "phone", "dave", url=f"https://127.0.0.1:{self.front.port}").signs_up().logs_in()
        self.lines = [node.connect() for node in self.nodes]
        self.tokens = [self.cluster.logged_in(self.lines[0], f"user-{number}") for number in range(ACCOUNTS)]

    def close(self) -> None:
        self.cluster.__exit__()
        for each in (self.front, self.link):
            each.close()
        for server in (self.primary, self.standby):
            if server:
                server.remove()

    def ticket(self, number: int) -> str:
        asked = {"method": "PUT", "target": "/file", "content_digest": digest(b"x"), "length": 1, "expires_in": 600}
        fields = [("authorization", f"Bearer {self.tokens[number]}"), ("content-type", "application/json")]
        answer = sent(self.lines[0], self.cluster.key.request("POST", f"{PREFIX}/uploads", json.dumps(asked).encode(), fields=fields), 201)
        return json.loads(answer.body)["ticket"]

    def uploads(self, node: Node, ticket: str) -> int:
        return node.send(f"PUT /file HTTP/1.1\r\nHost: {HOST}\r\nCountersign-Ticket: {ticket}\r\nContent-Length: 1\r\n\r\nx".encode()).status

    def begins_to_lose(self) -> None:
        """The standby has all changes so far, and gets none from now on."""
        self.standby = Postgres(self.primary)
        reached = self.primary.sql("SELECT pg_current_wal_lsn()")
        until(lambda: self.standby.sql(f"SELECT pg_last_wal_replay_lsn() >= '{reached}'") == "t")
        self.standby.stop()

    def promotes(self) -> None:
        """The primary dies; the nodes find that the standby lacks changes, and are stopped."""
        self.primary.kill()
        self.standby.start("-c", "primary_conninfo=")
        self.standby.sql("SELECT pg_promote()")
        until(lambda: self.standby.sql("SELECT pg_is_in_recovery()") == "f")
        self.link.turn_to(self.standby.port)
        for node in self.nodes:
            until(lambda node=node: EARLIER in node.asked("/ready")[1], node.asked("/ready"))
            node.stop()

    def restores(self, *options: object) -> subprocess.CompletedProcess:
        node = self.nodes[0]
        return run("restore", "--in-place", *options, "--data", node.data, environment=node.environment)

    def state(self, node: Node, number: int) -> int:
        """Signed for a time above the floor of the guard."""
        later = int(time.time()) + 55
        return node.send(self.cluster.key.request("GET", f"{PREFIX}/session", fields=[("authorization", f"Bearer {self.tokens[number]}")],
                                                  created=later)).status


@pytest.fixture
def fail_over(tmp_path):
    made = FailOver(tmp_path)
    yield made
    made.close()


def shown(node: Node, name: str) -> dict:
    return json.loads(node.admin("account", "show", "demo", name, "--json").out)


def sets_password(person: Person, code: str) -> subprocess.CompletedProcess:
    return person.run("signup", "--account", person.name, "--reset-code-stdin", "--password-stdin", stdin=f"{code}\nanother password\n")


def test_what_the_lost_changes_ended_is_ended_again(fail_over):
    cluster, (first, second), person = fail_over.cluster, fail_over.nodes, fail_over.person
    code = json.loads(first.admin("account", "reset", "demo", "dave", "--json").out)["reset_code"]
    first.admin("account", "verify", "demo", "user-0")
    first.admin("account", "user-id", "demo", "dave", "70001")
    first.admin("webhook", "add", "https://192.0.2.1/hook")
    webhook, = json.loads(first.admin("webhook", "list", "--json").out)["webhooks"]
    person.logs_in()
    used, unused = fail_over.ticket(5), fail_over.ticket(0)
    fail_over.begins_to_lose()

    # Of each kind, at both nodes, by requests and by commands.
    sent(fail_over.lines[1], cluster.bearing(fail_over.tokens[1], "POST", "/logout"), 200)
    first.admin("account", "lock", "demo", "user-2")
    second.admin("account", "erase", "demo", "user-3", "--yes")
    first.admin("account", "remove", "demo", "user-4")
    assert fail_over.uploads(second, used) == 200
    second.admin("release", "retire", fail_over.retired.key_id, "--at", "now", "--update-url", "https://example.com/")
    second.admin("account", "verify", "demo", "user-0", "--undo")
    first.admin("account", "user-id", "demo", "dave", "none")
    second.admin("webhook", "remove", webhook["id"])
    assert sets_password(person, code).returncode == 0
    sent(fail_over.lines[0], cluster.bearing(fail_over.tokens[6], "POST", "/logout"), 200)
    lost = cluster.logged_in(fail_over.lines[1], "user-7")
    keyed = {"fields": [("idempotency-key", '"k"')]}
    sent(fail_over.lines[0], cluster.key.request("POST", "/pay", b"1", **keyed), 200)
    fail_over.promotes()

    # One node does not have all of them.
    refused = fail_over.restores("--lost", 3600)
    assert refused.returncode == 1 and "--changes-from" in refused.err and "restore --in-place" in refused.err
    done = fail_over.restores("--lost", 3600, "--changes-from", second.data, "--json")
    assert done.returncode == 0, done.err
    outcome = json.loads(done.out)
    assert outcome["lost_changes"] >= 8 and outcome["upload_tickets_removed"] == 1
    assert outcome["repeated"] == {"erased": 1, "reserved_names": 0, "locked": 1, "removed": 1, "retired": 1,
                                   "user_ids": 1, "verifications": 0, "webhooks": 1}
    with contextlib.ExitStack() as stack:
        for node in fail_over.nodes:
            stack.enter_context(node)
        fail_over.front.turn_to(first.port)
        for node in fail_over.nodes:
            until(lambda node=node: node.causes() == [], node.asked("/ready"))
            until(lambda node=node: fail_over.state(node, 0) == 200, "the floor does not pass")
            # Those that no lost change concerns live; what had ended has ended.
            assert [fail_over.state(node, number) for number in range(8)] == [200, 401, 401, 401, 401, 200, 401, 200]
            fail_over.tokens.append(lost)
            assert fail_over.state(node, -1) == 401
        later = int(time.time()) + 55
        assert first.send(fail_over.retired.request(created=later)).status == 426
        again = first.send(cluster.key.request("POST", "/pay", b"1", created=later, **keyed))
        assert again.status == 503 and "restored" in first.event(json.loads(again.body)["instance"])["detail"]
        assert fail_over.uploads(first, used) == 401 and fail_over.uploads(first, unused) == 200
        accounts = {each["account"]: each["state"] for each in json.loads(first.admin("account", "list", "demo", "--json").out)["accounts"]}
        assert "user-3" not in accounts and (accounts["user-2"], accounts["user-4"], accounts["user-0"]) == ("locked", "removed", "active")
        assert shown(first, "user-0")["verified"] is None and shown(first, "dave")["user_id"] is None
        assert json.loads(first.admin("webhook", "list", "--json").out)["webhooks"] == []
        assert sets_password(person, code).returncode != 0, "the reset code was used"
        assert person.run("login", "--account", "dave", "--password-stdin", stdin=PASSWORD + "\n").returncode in (0, 1)
        assert json.loads(first.admin("audit", "verify", "--json").out)["findings"] == []


def test_a_gap_is_refused_and_a_node_that_knows_more_does_not_start(fail_over):
    first, second = fail_over.nodes
    fail_over.begins_to_lose()
    first.admin("account", "lock", "demo", "user-2")
    # Only the first node has made a change so far. From here on, its folder is as it was.
    kept = fail_over.nodes[0].data.parent / "kept"
    kept.mkdir()
    for path in first.data.glob("*"):
        if path.name.startswith(("recent-changes", "followed-head")):
            shutil.copy(path, kept)
    sent(fail_over.lines[1], fail_over.cluster.bearing(fail_over.tokens[1], "POST", "/logout"), 200)
    fail_over.promotes()
    changes = second.data / "recent-changes"
    changes.rename(second.data / "elsewhere")
    refused = fail_over.restores("--lost", 3600, "--changes-from", second.data)
    assert refused.returncode == 1 and "do not lead from its state" in refused.err, refused.err
    # A sign-out is missing from what the first folder knew then; the second one, which has followed it, does not start.
    for path in kept.glob("*"):
        shutil.copy(path, first.data)
    done = fail_over.restores("--lost", 3600)
    assert done.returncode == 0, done.err
    with pytest.raises(AssertionError, match="has not ended again all that this"):
        second.start()
    assert fail_over.restores().returncode == 0
    second.start()
    until(lambda: second.causes() == [])


@pytest.mark.parametrize("options, status, text", [
    (("--in-place", "--lost", "0"), 2, "1 to 86400"), (("--lost", "5"), 2, "expected --in-place"),
    (("--in-place", "--changes-from", "x"), 2, "expected --lost"), (("--in-place", "--lost", "5"), 2, "PostgreSQL")])
def test_what_is_refused_at_once(options, status, text, tmp_path):
    assert run("app", "add", "demo", "--data", tmp_path / "data").returncode == 0
    done = run("restore", *options, *(() if "--in-place" in options else ("file",)), "--data", tmp_path / "data")
    assert done.returncode == status and text in done.err, done.err
