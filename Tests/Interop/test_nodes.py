"""Three gateways over one real PostgreSQL: what one of them is told, all of them know by the time that it is acknowledged; and a node that
cannot know refuses. countersign-breakable also runs with planted faults, which these checks see (docs/decisions/0072-nodes.md)."""

import concurrent.futures
import json
import os
import pathlib
import secrets
import signal
import socket
import threading
import time

import pytest

import needs
from backend import Backend, Seen
from bearer import PREFIX
from clock import Clock
from gateway import run
from link import Link
from module_backend import backend  # noqa: F401
from nodes import HOST, Cluster, Node, sent
from person import Person
from postgres import Postgres, programs
from signing import ReleaseKey
from waiting import until
from wire import Closed

pytestmark = pytest.mark.skipif(programs() is None, reason="no postgres")


@pytest.fixture(scope="module")
def cluster(server, backend, tmp_path_factory):
    options = [("--upstream", backend.url)] * 3
    with Cluster(tmp_path_factory.mktemp("nodes"), server.create("nodes"), *options) as running:
        yield running


@pytest.fixture
def lines(cluster):
    """A connection to each node."""
    connections = [node.connect() for node in cluster.nodes]
    yield connections
    for connection in connections:
        connection.sock.close()


def code(answer) -> str:
    return "ok" if answer.status < 400 else json.loads(answer.body)["code"]


def at_once(*work) -> list:
    """The results of functions that begin at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(work)) as pool:
        return [future.result() for future in [pool.submit(each) for each in work]]


def session_of(cluster: Cluster, connection, token: str) -> str:
    return json.loads(sent(connection, cluster.bearing(token), 200).body)["session"]


# What is acknowledged at one node is known at the others.


def test_a_session_that_has_ended_has_ended_everywhere(cluster, lines, is_long, note):
    rounds, taken = 2_000 if is_long else 300, []
    for round_ in range(rounds):
        first, others = lines[round_ % 3], [lines[(round_ + step) % 3] for step in (1, 2)]
        token = cluster.logged_in(first)
        for line in others:
            sent(line, cluster.bearing(token), 200)
        begun = time.monotonic()
        sent(first, cluster.bearing(token, "POST", "/logout"), 200)
        taken.append(time.monotonic() - begun)
        for line in others:
            assert code(sent(line, cluster.bearing(token))) == "session-ended"
    taken.sort()
    figures = [1000 * taken[int(len(taken) * share)] for share in (0.5, 0.99)]
    note(f"revocation to refusal at two other nodes: median {figures[0]:.1f} ms, p99 {figures[1]:.1f} ms of {rounds}")
    # A look that was due anyway may be ahead of the notification.
    assert all(node.missed_hints() < rounds / 5 for node in cluster.nodes)


def test_commands(cluster, lines):
    """A command, too, ends only once every node follows its change."""
    first = cluster.nodes[0]
    for _ in range(10):
        token = cluster.logged_in(lines[1])
        first.admin("session", "revoke", session_of(cluster, lines[2], token))
        assert [code(sent(line, cluster.bearing(token))) for line in lines] == ["session-ended"] * 3
    token = cluster.logged_in(lines[1], "user-1")
    first.admin("account", "lock", "demo", "user-1")
    assert [code(sent(line, cluster.bearing(token))) for line in lines] == ["session-ended"] * 3
    assert all(sent(line, cluster.login("user-1")).status == 403 for line in lines)
    for round_ in range(10):
        key = cluster.add_release(f"retired-{round_}")
        assert [code(sent(line, key.request())) for line in lines] == ["ok"] * 3
        first.admin("release", "retire", key.key_id, "--at", "now", "--update-url", "https://example.com/")
        assert [code(sent(line, key.request())) for line in lines] == ["update-required"] * 3
        first.admin("route", "set", "demo", "/only", "--require", "session")
        assert [code(sent(line, cluster.key.request("GET", "/only"))) for line in lines] == ["session-required"] * 3
        first.admin("route", "remove", "demo", "/only")
        assert [code(sent(line, cluster.key.request("GET", "/only"))) for line in lines] == ["ok"] * 3


def test_two_logins_at_once_leave_one_session(cluster, lines, is_long):
    cluster.nodes[2].admin("app", "policy", "demo", "--set", "slots=single")
    try:
        for round_ in range(500 if is_long else 40):
            pair = [lines[round_ % 3], lines[(round_ + 1) % 3]]
            tokens = at_once(*(lambda line=line: cluster.logged_in(line, "user-2") for line in pair))
            for line in lines:
                codes = sorted(code(sent(line, cluster.bearing(token))) for token in tokens)
                assert codes == ["ok", "session-ended"], round_
    finally:
        cluster.nodes[0].admin("app", "policy", "demo", "--set", "slots=unlimited")


def test_a_keyed_request_runs_once(cluster, lines, backend, is_long):
    for round_ in range(1_000 if is_long else 200):
        before = len(backend.seen)
        fields = [("idempotency-key", secrets.token_hex(8))]
        answers = at_once(*(
            lambda line=line: sent(line, cluster.key.request("POST", "/pay", b"1", fields=fields)) for line in lines))
        assert len(backend.seen) == before + 1, (round_, [answer.status for answer in answers])
        assert [(answer.status, answer.body) for answer in answers] == [(200, b"POST /pay 1\n")] * 3
    for node in cluster.nodes:
        assert not list(node.data.glob("requests-*.log"))


def test_fifty_refreshes_have_one_successor(tmp_path, is_long):
    """Refreshes that one client has made, none of which has arrived so far; each comes in a request of its own."""
    captured: list[bytes] = []
    nodes: list[Node] = []

    def relay(seen: Seen, sock: socket.socket) -> None:
        if is_capturing and seen.target.endswith("/token"):
            captured.append(seen.body)
            raise Closed
        head = "\r\n".join([f"{seen.method} {seen.target} HTTP/1.1", *(f"{name}: {value}" for name, value in seen.fields)])
        with socket.create_connection(("127.0.0.1", nodes[0].port)) as upstream:
            upstream.sendall(f"{head}\r\nConnection: close\r\n\r\n".encode() + seen.body)
            while chunk := upstream.recv(65536):
                sock.sendall(chunk)
        raise Closed

    is_capturing, server = False, Postgres(has_clock=True)
    with Backend(relay) as proxy:
        options = ("--tls", "off", "--authority", f"{HOST},127.0.0.1:{proxy.port}")
        clock = Clock(tmp_path)
        with Cluster(tmp_path, server.create("refreshes"), options, options, options, accounts=0, clock=clock) as cluster:
            nodes += cluster.nodes
            cluster.nodes[0].admin("app", "policy", "demo", "--set", "token-lifetime=2s")
            person = Person(nodes[0], tmp_path / "phone", url=proxy.url).signs_up().logs_in()
            key = ReleaseKey(person.release["key_id"], person.release["secret"], HOST)
            for round_ in range(200 if is_long else 2):
                for each in (clock, server.clock):
                    each.advance(2.1)
                captured.clear()
                is_capturing = True
                while len(captured) < 50:
                    assert person.run("request", "/").returncode != 0
                is_capturing = False

                def renewed(number: int):
                    with nodes[number % 3].connect() as line:
                        body = captured[number]
                        return sent(line, key.request("POST", f"{PREFIX}/token", body, fields=[("content-type", "application/json")]))

                answers = at_once(*(lambda number=number: renewed(number) for number in range(50)))
                # A transcript that is behind one that was accepted is known; the others renew to one and the same key.
                assert {code(answer) for answer in answers} <= {"ok", "replayed"}
                found = [json.loads(answer.body) for answer in answers if answer.status == 200]
                assert len({(each["token"], each["ephemeral"]) for each in found}) == 1, found
                assert found[0]["epoch"] == round_ + 1
                # The client sends its own once more, and goes on with the same key at any node.
                assert person.run("request", "/").returncode == 0
                assert person.status()["epoch"] == round_ + 1
    server.remove()


# A node that cannot know.


def is_stopped(pid: int) -> bool:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def test_a_node_that_is_stopped_serves_no_ended_session(server, tmp_path, note):
    outage = ("--outage", "grace:2")
    with Cluster(tmp_path, server.create("stopped"), outage, outage, outage, accounts=1) as cluster:
        first, _, last = cluster.nodes
        with first.connect() as line, last.connect() as other:
            for _ in range(3):
                token = cluster.logged_in(line)
                sent(other, cluster.bearing(token), 200)
                os.kill(last.process.pid, signal.SIGSTOP)
                try:
                    until(lambda: is_stopped(last.process.pid), "it was not stopped")
                    begun = time.monotonic()
                    sent(line, cluster.bearing(token, "POST", "/logout"), 200)
                    took = time.monotonic() - begun
                    # It waits for the request, which comes first of all once the node goes on.
                    other.send(cluster.bearing(token))
                    assert is_stopped(last.process.pid)
                    states = {node["name"]: node["state"] for node in json.loads(first.admin("nodes", "--json").out)["nodes"]}
                    assert sorted(states.values()) == ["lapsed", "live", "live"], states
                finally:
                    os.kill(last.process.pid, signal.SIGCONT)
                answer = other.answer()
                assert answer.status in (401, 503), answer.body
                until(lambda: code(sent(other, cluster.bearing(token))) != "unavailable", "it does not go on")
                assert code(sent(other, cluster.bearing(token))) == "session-ended"
        note(f"a change waits {took:.1f} s for a node that is stopped, with a lease of 2 s")


@pytest.mark.parametrize("rule", ["grace:300", "closed"])
def test_requests_are_refused_without_the_store(rule, tmp_path):
    server, clock = Postgres(), Clock(tmp_path)

    try:
        with Cluster(tmp_path, server.create("away"), ("--outage", rule), accounts=1, clock=clock) as cluster:
            node = cluster.nodes[0]
            with node.connect() as line:
                token = cluster.logged_in(line)
                # A request of the backend's reads nothing of the store.
                asked = lambda: code(sent(line, cluster.key.request("GET", "/", fields=[("authorization", f"Bearer {token}")])))
                assert asked() == "ok"
                server.kill()
                if rule != "closed":
                    # The lease that was running, and no less than that.
                    clock.lapses(200)
                    assert asked() == "ok"
                    clock.lapses(100)
                    assert asked() == "unavailable"
                until(lambda: asked() == "unavailable", "it goes on")
                until(lambda: "nodes" in node.causes(), "it is ready")
                assert "countersign_node_fresh 0" in node.asked("/metrics")[1]
                assert code(sent(line, cluster.key.request("GET", "/"))) == "unavailable", "the release may have been retired"
                server.start()
                until(lambda: asked() == "ok", "it does not go on")
                assert code(sent(line, cluster.key.request("GET", "/"))) == "ok"
                # To the node, whose timers went on while the database's clock did not, that clock was set.
                until(lambda: node.causes() == ([] if rule == "closed" else ["clock-set"]), "it is not ready")
            until(lambda: "heard again" in " ".join(node.notes()), "it does not say that it hears the store again")
            notes = " ".join(node.notes())
            assert "the store is not heard" in notes and "the lease has lapsed" in notes
    finally:
        server.remove()


def test_a_release_that_is_retired_while_a_node_is_cut_off(server, tmp_path):
    store = server.create("retired")
    with Link(server.port) as link:
        environments = {1: {"COUNTERSIGN_STORE": server.local_address("retired", link.port)}}
        with Cluster(tmp_path, store, ("--outage", "grace:2"), ("--outage", "grace:2"), accounts=0, environments=environments) as cluster:
            first, second = cluster.nodes
            key = cluster.add_release("2.0")
            with second.connect() as line:
                asked = lambda: code(sent(line, key.request()))
                assert asked() == "ok"
                link.set("cut")
                assert link.touched > 0 and asked() == "ok"
                # Acknowledged once the other node's lease has lapsed.
                first.admin("release", "retire", key.key_id, "--at", "now", "--update-url", "https://example.com/")
                assert asked() == "unavailable"
                link.set("pass")
                until(lambda: asked() != "unavailable", "it does not go on")
                assert asked() == "update-required"


def test_what_was_acknowledged_holds_while_the_store_is_killed(tmp_path, is_long, note):
    """The server is killed while a session ends, and started again."""
    server, acknowledged = Postgres(), 0
    try:
        with Cluster(tmp_path, server.create("killed"), accounts=1) as cluster:
            lines = [node.connect() for node in cluster.nodes]
            rounds = 100 if is_long else 8
            for round_ in range(rounds):
                first, others = lines[round_ % 3], [lines[(round_ + step) % 3] for step in (1, 2)]
                tokens = [cluster.logged_in(first) for _ in range(6)]
                for line, token in ((line, token) for line in others for token in tokens):
                    sent(line, cluster.bearing(token), 200)
                killer = threading.Timer(0.012 * (round_ % 10 + 1), server.kill)
                killer.start()
                ended = [token for token in tokens if sent(first, cluster.bearing(token, "POST", "/logout")).status == 200]
                killer.join()
                acknowledged += len(ended)
                for line, token in ((line, token) for line in lines for token in ended):
                    assert code(sent(line, cluster.bearing(token))) in ("session-ended", "unavailable")
                server.start()
                # Each node finds the server by itself, and the next round begins at another one.
                for line in lines:
                    until(lambda line=line: sent(line, cluster.login()).status == 200, "no recovery")
                for line, token in ((line, token) for line in lines for token in ended):
                    until(lambda: code(sent(line, cluster.bearing(token))) != "unavailable", "no recovery")
                    assert code(sent(line, cluster.bearing(token))) == "session-ended"
            for line in lines:
                line.sock.close()
        assert 0 < acknowledged < rounds * 6, "the kills fell into the changes"
        note(f"PostgreSQL killed {rounds} times while {rounds * 6} sessions ended: {acknowledged} acknowledged, and ended everywhere")
    finally:
        server.remove()


def test_a_node_is_restarted_and_another_killed(server, tmp_path):
    with Cluster(tmp_path, server.create("restarted"), ("--outage", "grace:2"), ("--outage", "grace:2"), accounts=1) as cluster:
        first, second = cluster.nodes
        with second.connect() as other:
            token = cluster.logged_in(other)
            before = {node["id"] for node in json.loads(first.admin("nodes", "--json").out)["nodes"]}
            first.admin("restart")
            with first.connect() as line:
                sent(line, cluster.bearing(token), 200)
                # The former process ends, and leaves the list.
                until(lambda: len(json.loads(second.admin("nodes", "--json").out)["nodes"]) == 2, "it stays")
                after = {node["id"]: node["state"] for node in json.loads(first.admin("nodes", "--json").out)["nodes"]}
                assert len(before & after.keys()) == 1 and set(after.values()) == {"live"}
                sent(other, cluster.bearing(token, "POST", "/logout"), 200)
                assert code(sent(line, cluster.bearing(token))) == "session-ended"
                second.stop(signal.SIGKILL)
                # Acknowledged once the lease of the killed node has lapsed.
                sent(line, cluster.bearing(cluster.logged_in(line)), 200)
                states = sorted(node["state"] for node in json.loads(first.admin("nodes", "--json").out)["nodes"])
                assert states == ["lapsed", "live"]
                sent(line, cluster.bearing(cluster.logged_in(line)), 200)
            # The successor is no child of this process.
            successor = next(pid for pid in pathlib.Path("/proc").glob("[0-9]*")
                             if str(first.data).encode() in (pid / "cmdline").read_bytes() and b"serve" in (pid / "cmdline").read_bytes())
            os.kill(int(successor.name), signal.SIGTERM)
            until(lambda: not successor.exists(), "it does not end")


def test_a_clock_that_differs(server, tmp_path):
    """A second is allowed."""
    clock = Clock(tmp_path)
    with Cluster(tmp_path, server.create("clock"), (), (), accounts=0, environments={1: clock.environment}) as cluster:
        right, wrong = cluster.nodes
        assert "clock" not in right.causes() + wrong.causes()
        clock.jumps(3)
        until(lambda: "clock" in wrong.causes(), "it is ready")
        # The line of the log follows.
        until(lambda: any("ms ahead of the store's" in text for text in wrong.notes()), "the log does not say so")
        assert "clock" not in right.causes()

        def offsets() -> list[int]:
            return sorted(node["clock_offset_ms"] for node in json.loads(right.admin("nodes", "--json").out)["nodes"])

        # It is shown with the next lease.
        until(lambda: abs(offsets()[0]) < 100 and 2_500 < offsets()[1] < 3_500, "the offset is not shown")
        # The metric has one name, in seconds.
        shown = [line.split() for line in wrong.asked("/metrics")[1].splitlines() if line.startswith("countersign_node_clock_offset")]
        assert [name for name, _ in shown] == ["countersign_node_clock_offset_seconds"] and 2.5 < float(shown[0][1]) < 3.5, shown
        clock.jumps(0)
        until(lambda: "clock" not in wrong.causes(), "it is not ready")


def test_nodes_are_listed(cluster, tmp_path):
    listing = json.loads(cluster.nodes[0].admin("nodes", "--json").out)
    assert [node["state"] for node in listing["nodes"]] == ["live"] * 3
    assert len({node["id"] for node in listing["nodes"]}) == 3 and all(node["lease_ms"] == 5000 for node in listing["nodes"])
    text = cluster.nodes[1].admin("nodes").out
    assert all(f"127.0.0.1:{node.port}" in text for node in cluster.nodes)
    until(lambda: all(node.causes() == [] for node in cluster.nodes), lambda: [node.causes() for node in cluster.nodes])
    assert json.loads(cluster.nodes[0].admin("nodes", "--json").out)["differences"] == []
    done = run("nodes", "--data", tmp_path / "other", environment=cluster.nodes[0].environment)
    assert done.returncode != 0
    (tmp_path / "other").mkdir(exist_ok=True)
    key = tmp_path / "other/master.key"
    key.write_text(secrets.token_hex(32))
    key.chmod(0o600)
    done = run("serve", "--data", tmp_path / "other", "--listen", "127.0.0.1:0", environment=cluster.nodes[0].environment)
    assert done.returncode != 0 and "master key" in done.err, done.err
    done = run("app", "add", "sqlite", "--data", tmp_path / "alone")
    assert done.returncode == 0 and run("nodes", "--data", tmp_path / "alone").out == "no nodes\n"


def test_outage_policies_are_checked(tmp_path):
    done = run("serve", "--print-config", "--data", tmp_path, "--outage", "never")
    assert done.returncode == 2 and "grace:SECONDS" in done.err


# Planted faults.


@needs.breakable
def test_a_notification_that_is_lost(server, tmp_path, note):
    """The node finds the change by its next look, and the change has waited for it."""
    with Cluster(tmp_path, server.create("lost"), (), ("--sabotage", "notify-lost"), accounts=1) as cluster:
        first, deaf = cluster.nodes
        taken = []
        with first.connect() as line, deaf.connect() as other:
            for _ in range(5):
                token = cluster.logged_in(line)
                sent(other, cluster.bearing(token), 200)
                begun = time.monotonic()
                sent(line, cluster.bearing(token, "POST", "/logout"), 200)
                taken.append(time.monotonic() - begun)
                assert code(sent(other, cluster.bearing(token))) == "session-ended"
        # The fault was there.
        assert deaf.missed_hints() >= 5
        note(f"without notifications a change waits at most {max(taken):.2f} s")


@needs.breakable
@pytest.mark.parametrize("fault", ["", "acknowledged-before-commit"])
def test_acknowledged_before_the_commit(fault, server, tmp_path):
    options = ("--sabotage", fault) if fault else ()
    with Cluster(tmp_path, server.create("hasty" if fault else "sound"), options, (), accounts=1) as cluster:
        first, second = cluster.nodes
        with first.connect() as line, second.connect() as other:
            token = cluster.logged_in(line)
            until(lambda: sent(other, cluster.bearing(token)).status == 200, "unknown")
            sent(line, cluster.bearing(token, "POST", "/logout"), 200)
            assert (code(sent(other, cluster.bearing(token))) == "ok") is bool(fault)
