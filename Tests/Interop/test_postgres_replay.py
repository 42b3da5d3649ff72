"""The replay guard in the PostgreSQL database of the store, with real servers: what one gateway admitted, no other one admits, also after a crash
of the database and a promotion of a standby that lacks commits; and without the database every request is refused, soon. Each test shows that
its fault happened."""

import contextlib
import json
import pathlib
import signal
import subprocess
import time

import pytest

from gateway import Gateway, run
from link import Link
from needs import NO_SKIPS
from postgres import Postgres, programs
from replay_nodes import Node, check_each_is_admitted_once, check_refusals, code, refused, several
from waiting import until

pytestmark = pytest.mark.skipif(programs() is None and not NO_SKIPS, reason="no PostgreSQL server")

# Seconds of the default policy, and of refreshes.
WINDOW = 60


@pytest.fixture(scope="module")
def shared():
    """For tests that leave the server as it is."""
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture
def server():
    own = Postgres()
    yield own
    if own.process.poll() is None:
        own.signal(signal.SIGCONT)
    own.remove()


def entries(server: Postgres, database: str = "d") -> int:
    """The rows of all minutes."""
    tables = server.sql("SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('countersign_replay') AND relkind = 'r' "
                        "AND relname <> 'state'", database).split()
    rows = " UNION ALL ".join(f"SELECT name FROM countersign_replay.{table}" for table in tables)
    return int(server.sql(f"SELECT count(*) FROM ({rows}) AS all_rows", database))


@contextlib.contextmanager
def started(folder: pathlib.Path, store: str):
    """A gateway that admits requests; its key is `key`."""
    with Node(folder, "postgres", COUNTERSIGN_STORE=store) as node:
        node.add_app("demo")
        node.key = node.add_release()
        until(lambda: node.send(node.key.request()).status == 200)
        yield node


def test_a_replay_is_refused_before_and_after_a_restart(shared, tmp_path):
    with started(tmp_path / "node", shared.create("restart")) as node:
        before = entries(shared, "restart")
        request = node.key.request("POST", "/pay", b"1")
        assert node.send(request).status == 200
        assert entries(shared, "restart") == before + 1, "the entry is a row"
        assert refused(node.send(request)) == "replayed"
        assert node.get("/ready")[0] == 200 and node.metric("up") == 1 and node.metric("epoch") == 1
        node.stop()
        node.start()
        assert code(node, request) == "replayed"
        assert node.metric("floor_seconds") == 0, "nothing was lost"
        old = node.process
        node.start("--takeover")
        assert code(node, request) == "replayed"
        assert old.wait(60) == 0 and node.send(node.key.request()).status == 200


def test_one_of_several_gateways_admits_a_request(shared, tmp_path, is_long):
    store = shared.create("several")
    with several(tmp_path, "postgres", store, store, store) as (nodes, key):
        before, rounds = entries(shared, "several"), 10_000 if is_long else 300
        check_each_is_admitted_once(nodes, key, rounds)
        # In the long form, minutes of entries have expired.
        assert is_long or entries(shared, "several") == before + rounds


def test_a_database_that_is_stopped(server, tmp_path):
    with started(tmp_path / "node", server.create("d")) as node:
        seen = node.key.request()
        assert node.send(seen).status == 200
        server.signal(signal.SIGSTOP)
        until(lambda: all("T" in pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] for pid in server.pids()))
        check_refusals(node, node.key)
        assert node.metric("refusals_total") >= 40 and node.metric("up") == 0
        assert "replay" in node.causes()
        server.signal(signal.SIGCONT)
        assert code(node, seen) == "replayed"
        until(lambda: node.send(node.key.request()).status == 200)
        until(lambda: node.get("/ready")[0] == 200)
        assert node.metric("epoch") == 1, "nothing was lost"


def test_a_database_that_is_killed_has_lost_nothing(server, tmp_path):
    with started(tmp_path / "node", server.create("d")) as node:
        seen = [node.key.request() for _ in range(20)]
        for request in seen:
            assert node.send(request).status == 200
        server.kill()
        assert server.process.returncode == -signal.SIGKILL
        check_refusals(node, node.key)
        until(lambda: "replay" in node.causes())
        until(lambda: any("unavailable: " in note for note in node.notes()))
        (server.folder / "data/postmaster.pid").unlink(missing_ok=True)
        server.start()
        for request in seen:
            assert code(node, request) == "replayed"
        assert node.metric("epoch") == 1 and node.metric("floor_seconds") == 0
        until(lambda: node.get("/ready")[0] == 200)
        assert node.send(node.key.request()).status == 200


@pytest.mark.parametrize("is_abandoned", [False, True], ids=["of a killed primary", "of a primary that goes on"])
def test_a_promoted_standby_that_lacks_commits(server, tmp_path, is_abandoned):
    server.create("d")
    with Link(server.port) as link:
        store = server.local_address("d", link.port)
        with several(tmp_path, "postgres", store, store) as (nodes, key):
            standby = Postgres(server)
            try:
                until(lambda: entries(standby) == entries(server))
                standby.stop()
                # The standby gets nothing of these.
                lost = [key.request(created=int(time.time()) + ahead) for ahead in (0, WINDOW - 10) for _ in range(3)]
                for request in lost:
                    assert nodes[0].send(request).status == 200
                nodes[0].add_release(version="9.9")
                rows = entries(server)
                if not is_abandoned:
                    server.kill()
                standby.start("-c", "primary_conninfo=")
                assert entries(standby) == rows - len(lost), "the rows are missing"
                standby.sql("SELECT pg_promote()")
                until(lambda: standby.sql("SELECT pg_is_in_recovery()") == "f")
                # New connections reach the standby; those to the primary last.
                link.target = standby.port
                if is_abandoned:
                    assert server.sql("SELECT pg_is_in_recovery()") == "f"
                # The database lacks changes, too: no node uses it until an operator accepts it.
                rows = entries(server) if is_abandoned else 0
                for node in nodes:
                    until(lambda node=node: "put back to an earlier copy" in json.dumps(node.get("/ready")[1]))
                    for request in [*lost, key.request()]:
                        assert refused(node.send(request)) in ("unavailable", "stale")
                if is_abandoned:
                    assert entries(server) == rows, "nothing is admitted by the primary any more"
                for node in nodes:
                    node.stop()
                done = run("restore", "--in-place", "--data", nodes[0].data, environment=nodes[0].environment)
                assert done.returncode == 0, done.err
                for node in nodes:
                    node.start()
                floors = {node.floor(after=1) for node in nodes}
                assert len(floors) == 1 and floors.pop() >= time.time() + WINDOW - 10
                for node in nodes:
                    for request in lost:
                        assert refused(node.send(request)) in ("unavailable", "stale")
                    answer = node.send(key.request())
                    assert refused(answer) == "unavailable" and int(answer.get("retry-after")) >= WINDOW - 10
            finally:
                standby.remove()


def test_other_guards_before_and_after(shared, tmp_path):
    """A request that the file admitted is not admitted by PostgreSQL, and the other way round."""
    gateway = Gateway(tmp_path, environment={"COUNTERSIGN_STORE": shared.create("other")})
    with gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        first = key.request(created=int(time.time()) + WINDOW - 5)
        assert gateway.send(first).status == 200
        running = Gateway(tmp_path, environment={**gateway.environment, "COUNTERSIGN_REPLAY": "postgres"})
        done = subprocess.run([*running.command("--takeover")], env={**running.environment, "PATH": "/usr/bin"}, capture_output=True, text=True,
                              timeout=60, check=False)
        assert done.returncode == 1 and "another replay guard" in done.stderr
    gateway.environment["COUNTERSIGN_REPLAY"] = "postgres"
    with gateway:
        assert refused(gateway.send(first)) == "unavailable"
        done = run("replay", "status", "--data", gateway.data, environment=gateway.environment)
        assert done.returncode == 1 and "about the replay file" in done.err and "countersign_replay_postgres_*" in done.err
        done = run("replay", "confirm-clock", "--yes", "--data", gateway.data, environment=gateway.environment)
        assert done.returncode == 0 and "confirmed the clock" in done.out
        assert refused(gateway.send(first)) == "unavailable", "the guard's floor is its own"
    del gateway.environment["COUNTERSIGN_REPLAY"]
    with gateway:
        assert refused(gateway.send(key.request())) == "unavailable"
        assert "another replay file" in gateway.log_path.read_text()


def test_a_node_with_another_guard_does_not_start(shared, tmp_path):
    store = shared.create("guards")
    with several(tmp_path, "postgres", store, store) as (nodes, key):
        assert nodes[0].causes() == []
        nodes[1].stop()
        nodes[1].environment["COUNTERSIGN_REPLAY"] = "file"
        with pytest.raises(AssertionError, match=f"--replay is `file .*` here and `postgres` at node .*:{nodes[0].port}"):
            nodes[1].start()
        assert nodes[0].causes() == [] and nodes[0].send(key.request()).status == 200


def test_the_store_must_be_postgresql(tmp_path):
    done = run("serve", "--print-config", "--data", tmp_path, "--replay", "postgres")
    assert done.returncode == 2 and "--replay postgres: expected --store postgres://" in done.err
    done = run("serve", "--print-config", "--data", tmp_path, "--replay", "postgres", "--store", "postgres://localhost/d")
    assert done.returncode == 0 and json.loads(done.out)["replay"] == "postgres"
