"""`countersign drill` on a running gateway under load: it answers 503 as in a real outage, says so, and goes on afterwards."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading

import pytest

import processes
from clock import Clock
from gateway import run
from module_backend import backend  # noqa: F401
from nodes import Cluster, Node, sent
from postgres import Postgres, programs
from products import BINARY
from redis import RedisServer, is_installed
from waiting import HANGS, until

STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.skipif(programs() is None, reason="no postgres"))]


@pytest.fixture(scope="module")
def server():
    server = Postgres() if programs() else None
    yield server
    if server:
        server.remove()


@pytest.fixture(params=STORES)
def cluster(request, server, backend, tmp_path):
    """One node; over SQLite it is a gateway on its own."""
    store = f"sqlite:{tmp_path}/store.db" if request.param == "sqlite" else server.create(f"drill_{request.node.name.split('[')[0]}")
    clock = Clock(tmp_path)
    with Cluster(tmp_path, store, ("--upstream", backend.url, "--outage", "grace:1"), accounts=1, clock=clock) as running:
        running.kind, running.clock = request.param, clock
        yield running


class Load:
    """Requests, one after the other: of a release's key, which the replay guard remembers, and logins, which need the store."""

    def __init__(self, cluster: Cluster):
        self.cluster, self.is_over = cluster, threading.Event()
        self.codes: list[tuple[str, str]] = []
        self.threads = [threading.Thread(target=self.send, args=(kind,)) for kind in ("signed", "login")]

    def send(self, kind: str) -> None:
        with self.cluster.nodes[0].connect() as line:
            while not self.is_over.wait(0.01):  # lint: the pace of a load
                request = self.cluster.key.request("GET", "/") if kind == "signed" else self.cluster.login()
                answer = sent(line, request)
                self.codes.append((kind, "ok" if answer.status < 400 else json.loads(answer.body)["code"]))

    def __enter__(self) -> "Load":
        for thread in self.threads:
            thread.start()
        self.goes_on(0, 1)
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def seen(self, kind: str, since: int = 0) -> list[str]:
        """What requests were answered, from one that has this number."""
        return [code for each, code in self.codes[since:] if each == kind]

    def until(self, kind: str, code: str, since: int = 0) -> int:
        """Waits for a request that is answered so; returns the number of the next."""
        until(lambda: code in self.seen(kind, since), f"{kind}: never {code}")
        return len(self.codes)

    def goes_on(self, since: int, count: int = 20) -> None:
        until(lambda: all(len(self.seen(kind, since)) >= count for kind in ("signed", "login")), "no load")


def command(node: Node, subject: str, *options: object) -> list[str]:
    return ["drill", subject, "--data", node.data, "--admin", f"127.0.0.1:{node.admin_port}", *options]


def drill_notes(node: Node) -> list[str]:
    return [event["message"] for event in node.events() if event.get("log") == "drill"]


def metric(node: Node, subject: str) -> int:
    return int(node.asked("/metrics")[1].split(f'countersign_drill{{subject="{subject}"}} ')[1].split()[0])


@contextlib.contextmanager
def drill(node: Node, subject: str, clock: Clock, let_pass=Clock.lapses):
    """A drill of a minute; what it yields lets that minute pass and reads the report."""
    process = processes.start([BINARY, *map(str, command(node, subject, "--for", "60s", "--yes", "--json"))],
                              stdout=subprocess.PIPE, env=os.environ | clock.environment)

    def waits() -> int:
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text(), re.M)[1])

    def report() -> dict:
        # The command looks at /ready every tenth of a second; in so many waits it has seen what is there now.
        before = waits()
        until(lambda: waits() >= before + 40, "the command looks")
        let_pass(clock, 60)
        out = process.communicate(timeout=HANGS)[0]
        assert process.returncode == 0, out
        return json.loads(out)

    until(lambda: metric(node, subject) == 1, "no drill")
    yield report


def test_the_store_is_away(cluster, note):
    node = cluster.nodes[0]
    with Load(cluster) as load, drill(node, "store", cluster.clock) as report:
        begun = load.until("login", "unavailable")
        # What needs no store goes on, at a node of several until its lease of a second has lapsed.
        if cluster.kind != "sqlite":
            begun = load.until("signed", "unavailable")
        until(lambda: set(node.causes()) & {"store", "nodes"}, "it is ready")
        load.goes_on(begun)
        assert set(load.seen("login", begun)) == {"unavailable"}
        assert set(load.seen("signed", begun)) == ({"ok"} if cluster.kind == "sqlite" else {"unavailable"})
        report = report()
        load.until("login", "ok", len(load.codes))
    assert cluster.kind != "sqlite" or set(load.seen("signed")) == {"ok"}
    assert report["drill"] == "store" and report["end"] == "time" and report["duration_ms"] >= 60_000
    assert set(report["causes"]) & {"store", "nodes"} and report["unready_after_ms"] > 0, report
    assert report["requests"] > report["refused"] >= 20
    notes = drill_notes(node)
    assert "as if the store were away" in notes[0] and "has ended" in notes[-1]
    assert metric(node, "store") == metric(node, "replay") == 0
    note(f"drill store over {cluster.kind}: {report['refused']} of {report['requests']} requests refused")


def test_the_replay_guard_is_away(cluster, note):
    node = cluster.nodes[0]
    with Load(cluster) as load, drill(node, "replay", cluster.clock) as report:
        begun = max(load.until(kind, "unavailable") for kind in ("signed", "login"))
        until(lambda: node.causes() == ["replay"], "it is ready")
        load.goes_on(begun)
        assert set(load.seen("signed", begun)) == set(load.seen("login", begun)) == {"unavailable"}
        report = report()
        # The guard connects again by itself.
        again = load.until("signed", "ok", len(load.codes))
        load.goes_on(again)
    assert set(load.seen("signed", again)) == {"ok"}
    # A node's lease may lapse with the minute, until it is renewed; and no minute passes for the database's clock.
    assert set(report["causes"]) - {"nodes", "clock-set"} == {"replay"}, report
    assert report["unready_after_ms"] > 0 and report["refused"] >= 20, report
    note(f"drill replay with a file: {report['refused']} of {report['requests']} requests refused")


@pytest.mark.skipif(not is_installed(), reason="no redis")
def test_the_replay_guard_on_redis_is_away(backend, tmp_path):
    clock = Clock(tmp_path)
    with RedisServer(environment=clock.environment) as redis, Cluster(
            tmp_path, f"sqlite:{tmp_path}/store.db", ("--upstream", backend.url, "--replay", redis.address), accounts=1,
            clock=clock) as cluster:
        until(lambda: cluster.nodes[0].causes() == [], "not ready")
        # A new epoch refuses signatures of before its start.
        with cluster.nodes[0].connect() as line:
            until(lambda: clock.advance(1) or sent(line, cluster.key.request("GET", "/")).status == 200, "requests are refused")
        with Load(cluster) as load, drill(cluster.nodes[0], "replay", clock, Clock.advance) as report:
            begun = load.until("signed", "unavailable")
            until(lambda: cluster.nodes[0].causes() == ["replay"], "it is ready")
            load.goes_on(begun)
            assert set(load.seen("signed", begun)) == {"unavailable"}
            assert set(report()["causes"]) - {"nodes", "clock-set"} == {"replay"}
            load.until("signed", "ok", len(load.codes))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_it_ends_with_its_command(how, backend, tmp_path):
    with Cluster(tmp_path, f"sqlite:{tmp_path}/store.db", ("--upstream", backend.url), accounts=1) as cluster:
        node = cluster.nodes[0]
        process = processes.start([BINARY, *map(str, command(node, "replay", "--for", "60s", "--yes", "--json"))], stdout=subprocess.PIPE)
        until(lambda: metric(node, "replay") == 1, "no drill")
        other = run(*command(node, "store", "--yes"))
        assert other.returncode != 0 and ("not ready" in other.err or "Another drill" in other.err)
        process.send_signal(how)
        until(lambda: metric(node, "replay") == 0, "it goes on")
        out = process.communicate(timeout=60)[0]
        if how == signal.SIGINT:
            assert json.loads(out)["end"] == "interrupted" and process.returncode == 0
        until(lambda: node.causes() == [] and len(drill_notes(node)) == 2, "it is not ready")
        assert "before its time" in drill_notes(node)[1]


def test_who_may(backend, tmp_path):
    with Cluster(tmp_path, f"sqlite:{tmp_path}/store.db", ("--upstream", backend.url), accounts=0) as cluster:
        node = cluster.nodes[0]
        for options, text in (((), "expected --yes without a terminal"), (("--yes", "--for", "61s"), "1s to 60s"),
                              (("--yes", "--for", "0s"), "1s to 60s")):
            done = run(*command(node, "store", *options))
            assert done.returncode == 2 and text in done.err, done.err
        token = node.data / "admin-token"
        secret = token.read_text()
        token.write_text("x" * 43)
        done = run(*command(node, "store", "--yes"))
        assert done.returncode != 0 and "401" in done.err, done.err
        token.write_text(secret)
        done = run("drill", "store", "--yes", "--data", node.data, "--admin", "127.0.0.1:1")
        assert done.returncode == 3 and "no server answers there" in done.err, done.err
        # Not at the port of the clients, whatever the token.
        done = run("drill", "store", "--yes", "--data", node.data, "--admin", f"127.0.0.1:{node.port}")
        assert done.returncode != 0
        assert drill_notes(node) == []
