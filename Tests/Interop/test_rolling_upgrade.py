"""Nodes are replaced by those of a later build, one after the other and under load, and by the earlier build again: no request fails, and what
takes the schema away from the earlier build waits for its nodes. The earlier build is the program that ships, the later one has a planted migration
(docs/decisions/0074-rolling-upgrades.md)."""

import json
import os
import signal
import subprocess

import pytest

import needs
from load import Load
from nodes import Cluster, Node, sent
from postgres import Postgres, programs
from products import BREAKABLE
from waiting import until

pytestmark = [pytest.mark.skipif(programs() is None, reason="no postgres"), needs.breakable]

EXPANDED, CONTRACTED = ("--sabotage", "schema-expanded"), ("--sabotage", "schema-contracted")


def errors(node: Node) -> str:
    """The last lines that it wrote."""
    return node.log_path.read_text()[-2_000:]


def levels(node: Node) -> dict[str, int]:
    """By the address that the node listens to."""
    listed = json.loads(node.admin("nodes", "--json").out)["nodes"]
    return {each["name"].split("/")[1]: each["level"] for each in listed if each["state"] != "lapsed"}


def level_of(server: Postgres, database: str) -> int:
    return int(server.sql("SELECT number FROM countersign.layout", database))


def serve_on(loads: list[Load]) -> None:
    """Waits until each client has signed in once more."""
    counts = [load.sessions for load in loads]
    until(lambda: all(load.sessions > count for load, count in zip(loads, counts)), "the load stopped")


def replace(node: Node, loads: list[Load], *options: str) -> None:
    """The node stops in order, and starts as another build."""
    for load in loads:
        load.without(node)
    node.stop()
    node.options = [each for each in node.options if each not in EXPANDED + CONTRACTED] + list(options)
    node.start()
    for load in loads:
        load.with_(node)


def migrate(node: Node, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run([BREAKABLE, "migrate", "--data", node.data, "--json", *options], capture_output=True, timeout=60, check=False, text=True,
                          env={**os.environ, **node.environment})


def test_an_upgrade_under_load_and_back(server, backend, tmp_path, note):
    options = ("--upstream", backend.url)
    with Cluster(tmp_path, server.create("rolling"), options, options) as cluster:
        first, second = cluster.nodes
        base = level_of(server, "rolling")
        loads = [Load(cluster, account) for account in range(2)]
        try:
            serve_on(loads)
            plan = json.loads(migrate(first, "--check", *EXPANDED).stdout)
            assert plan["level"] == base and plan["target"] == base + 1 and plan["hindering"] == []
            assert [(step["kind"], step["oldest_level"]) for step in plan["pending"]] == [("expanding", base)]
            replace(first, loads, *EXPANDED)
            # The migration has happened, and the other node goes on without it.
            assert level_of(server, "rolling") == base + 1
            assert server.sql("SELECT number FROM countersign.planted", "rolling") == "1"
            assert sorted(levels(second).values()) == [base, base + 1]
            until(lambda: any(f"level {base + 1}" in text for text in second.notes()), "it has not noticed")
            serve_on(loads)
            # What takes the earlier schema away waits for the earlier node, and says which that is.
            plan = migrate(first, "--check", *CONTRACTED)
            assert plan.returncode == 1
            assert {each["level"] for each in json.loads(plan.stdout)["hindering"]} == {base, base + 1}
            done = migrate(first, *CONTRACTED)
            assert done.returncode == 1 and f":{second.port} (level {base})" in done.stderr and level_of(server, "rolling") == base + 1
            replace(second, loads, *EXPANDED)
            assert set(levels(first).values()) == {base + 1}
            serve_on(loads)
            # Back, one after the other: the earlier build starts on the later schema.
            replace(first, loads)
            serve_on(loads)
            replace(second, loads)
            assert set(levels(first).values()) == {base}
            serve_on(loads)
            assert level_of(server, "rolling") == base + 1
        finally:
            for load in loads:
                load.stop()
        assert [load.wrong for load in loads] == [[], []]
        forwarded = sum(load.forwarded for load in loads)
        assert sum(seen.target == "/load" for seen in backend.seen) == forwarded > 100
        # Nothing is left of the sessions, and all rows are authentic.
        done = first.admin("audit", "verify")
        assert done.returncode == 0, done.err
        note(f"{forwarded} requests of {sum(load.sessions for load in loads)} sessions under an upgrade of two nodes and back: none failed, "
             f"the longest took {max(load.longest for load in loads):.2f} s")


def test_a_contracting_migration(server, backend, tmp_path):
    """A new node does not do it by itself; the command does, once no older node is live; and one that was stopped meanwhile is refused."""
    options = ("--upstream", backend.url, "--outage", "grace:2")
    with Cluster(tmp_path, server.create("contracting"), options, options, accounts=1) as cluster:
        first, second = cluster.nodes
        base = level_of(server, "contracting")
        first.stop()
        first.options += CONTRACTED
        with pytest.raises(AssertionError):
            first.start()
        assert level_of(server, "contracting") == base
        with second.connect() as line:
            token = cluster.logged_in(line)
            os.kill(second.process.pid, signal.SIGSTOP)
            try:
                until(lambda: json.loads(migrate(first, "--check", *CONTRACTED).stdout)["hindering"] == [], "it is live")
                done = migrate(first, *CONTRACTED)
                assert done.returncode == 0, done.stderr
                assert [step["kind"] for step in json.loads(done.stdout)["done"]] == ["expanding", "contracting"]
            finally:
                os.kill(second.process.pid, signal.SIGCONT)
            assert level_of(server, "contracting") == base + 2
            # It was stopped, and does not go on.
            answer = sent(line, cluster.bearing(token))
            assert answer.status == 503, answer.body
            until(lambda: "nodes" in second.causes(), "it is ready")
            assert any(f"builds of level {base + 2} and later" in text for text in second.notes())
            assert sent(line, cluster.bearing(token)).status == sent(line, cluster.login()).status == 503
        second.stop()
        with pytest.raises(AssertionError):
            second.start()
        assert f"builds of level {base + 2} and later" in errors(second), errors(second)
        first.start()
        with first.connect() as line:
            sent(line, cluster.bearing(token), 200)


def test_a_record_that_is_not_authentic(server, backend, tmp_path):
    options = ("--upstream", backend.url)
    with Cluster(tmp_path, server.create("forged"), options, options, accounts=1) as cluster:
        first, second = cluster.nodes
        first.stop()
        first.options += EXPANDED
        first.start()
        second.stop()
        record = server.sql("SELECT record FROM countersign.layout", "forged")
        for sql, text in [("record = NULL", "without a record"), (f"record = substr('{record}'::bytea, 2)", "not authentic")]:
            server.sql(f"UPDATE countersign.layout SET {sql}", "forged")
            with pytest.raises(AssertionError):
                second.start()
            assert text in errors(second), errors(second)
        server.sql(f"UPDATE countersign.layout SET record = '{record}'", "forged")
        server.sql("ALTER TABLE countersign.planted ADD COLUMN more bigint", "forged")
        with pytest.raises(AssertionError):
            second.start()
        assert "planted: the columns" in errors(second), errors(second)
        server.sql("ALTER TABLE countersign.planted DROP COLUMN more", "forged")
        second.start()
