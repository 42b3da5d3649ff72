"""What all nodes of a deployment must have in common, with real servers: a node that differs does not start and harms no other, a lone node changes
its settings as it likes, a command lets several change one after the other, and a replay guard that was displaced takes the deployment back
(docs/decisions/0101-settings-of-all-nodes.md)."""

import contextlib
import json
import pathlib
import signal
import time

import pytest

from gateway import run
from link import Link
from nodes import HOST, Cluster, Node, sent
from postgres import programs
from redis import RedisServer, is_installed
from replay_nodes import refused
from waiting import until

pytestmark = [pytest.mark.skipif(programs() is None, reason="no postgres"), pytest.mark.skipif(not is_installed(), reason="no redis")]


@pytest.fixture(scope="module")
def cluster(server, tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("shared"), server.create("shared_settings"), (), (), accounts=1) as running:
        yield running


@contextlib.contextmanager
def other_node(cluster: Cluster, folder: pathlib.Path, *options: object, **environment: str):
    """One more node, which has the others' settings except for these; it is stopped at the end."""
    first = cluster.nodes[0]
    node = Node(folder, first.environment["COUNTERSIGN_STORE"], *options, environment={**first.environment, **environment})
    node.folder.mkdir(exist_ok=True)
    cluster.share_keys(node)
    try:
        yield node
    finally:
        if node.process and node.process.poll() is None:
            node.stop()


def listing(node: Node) -> dict:
    return json.loads(node.admin("nodes", "--json").out)


def epoch(node: Node) -> int:
    page = node.asked("/metrics")[1]
    return next(int(line.split()[1]) for line in page.splitlines() if line.startswith("countersign_replay_redis_epoch "))


def doctor(node: Node, *options: object) -> list[dict]:
    """What it says of the nodes."""
    done = run("doctor", "--data", node.data, "--listen", f"127.0.0.1:{node.port}", "--json", "--authority", HOST, *options,
               environment=node.environment)
    return [finding for finding in json.loads(done.out)["findings"] if finding["topic"] == "nodes"]


LIMITS = ("--login-account", "100000/1s", "--login-address", "100000/1s")


@pytest.mark.parametrize("name, value, other", [
    ("login-account", "60/1s", "100000/1s"), ("login-address", "7/7s", "100000/1s"), ("login-device", "7/7s", "10/30s"),
    ("login-solved", "7/7s", None), ("login-pending", "77", "4096"), ("prefix", "/other", "/countersign/v1"),
    ("authority", "other.example", HOST), ("limit-kept-keys", "777", None)])
def test_a_node_with_another_value_does_not_start(name, value, other, cluster, tmp_path):
    first = cluster.nodes[0]
    with other_node(cluster, tmp_path / "other", f"--{name}", value) as node:
        with pytest.raises(AssertionError, match="exit 1 before listening"):
            node.start()
        text = node.log_path.read_text()
        assert f"--{name} is `{value}` here and `{other or ''}" in text and f"at node {listing(first)['nodes'][0]['name'].split('/')[0]}/" in text
        # It is named at the others, which go on, and its start has written nothing.
        found = listing(first)
        assert [each["state"] for each in found["nodes"]].count("live") == 2 and found["differences"] == []
        assert any(f"--{name} is `{value}` here" in (each["refusal"] or "") for each in found["nodes"] if each["state"] == "refused")
        until(lambda: all(f"--{name} is `{value}` here" in each.warnings() for each in cluster.nodes), "it is not shown")
        assert all(each.causes() == [] for each in cluster.nodes)
        assert "was refused" in first.admin("nodes").out
        assert any(finding["verdict"] == "warning" and name in finding["message"] for finding in doctor(first, *LIMITS))
        mine = [finding for finding in doctor(node, *LIMITS, f"--{name}", value) if finding["verdict"] == "error"]
        assert mine and all(f"--{name} is `{value}` here and" in finding["message"] for finding in mine)
        with first.connect() as line:
            assert sent(line, cluster.key.request()).status == 200


@pytest.mark.parametrize("guard", ["file", "postgres", "another Redis server"])
def test_a_node_with_another_guard_does_not_start(guard, cluster, tmp_path):
    first = cluster.nodes[0]
    with RedisServer() as redis:
        replay = redis.address if "Redis" in guard else guard
        with other_node(cluster, tmp_path / "other", COUNTERSIGN_REPLAY=replay) as node:
            with pytest.raises(AssertionError, match="exit 1 before listening"):
                node.start()
            text = node.log_path.read_text()
            assert ("is not the server that node" in text) if "Redis" in guard else f"--replay is `{guard}" in text
            assert "/127.0.0.1:" in text, "it names the node"
            assert redis.keys() == 0, "nothing is written there"
            for each in cluster.nodes:
                with each.connect() as line:
                    assert [sent(line, cluster.key.request()).status for _ in range(4)] == [200] * 4
                assert each.causes() == [] and epoch(each) == 1


def test_a_node_that_differs_meanwhile_does_not_come_back(server, tmp_path):
    """It was cut off, and the others have started with another value."""
    store = server.create("come_back")
    with Link(server.port) as link:
        environments = {1: {"COUNTERSIGN_STORE": server.local_address("come_back", link.port)}}
        options = ("--outage", "grace:1")
        with Cluster(tmp_path, store, options, options, accounts=0, environments=environments) as cluster:
            first, second = cluster.nodes
            link.set("cut")
            until(lambda: "nodes" in second.causes(), "its lease lasts")
            first.stop()
            first.options += ("--login-device", "7/7s")
            first.start()
            assert "--login-device is `7/7s` now; it was" in " ".join(first.notes())
            link.set("pass")
            until(lambda: second.causes() == ["settings"], lambda: second.causes())
            assert "--login-device is" in second.asked("/ready")[1] and f":{first.port}" in second.asked("/ready")[1]
            with second.connect() as line, first.connect() as other:
                assert json.loads(sent(line, cluster.key.request(), 503).body)["code"] == "unavailable"
                assert sent(other, cluster.key.request()).status == 200
            assert first.causes() == []
            first.stop()
            until(lambda: second.causes() == [], lambda: second.causes())


def test_a_lone_node_changes_its_settings(server, tmp_path):
    with Cluster(tmp_path, server.create("alone"), ("--outage", "grace:1"), accounts=1) as cluster:
        node = cluster.nodes[0]
        node.stop()
        node.options += ("--login-account", "7/7s", "--prefix", "/other")
        node.start()
        notes = " ".join(node.notes())
        assert "--login-account is `7/7s` now; it was `100000/1s` at the last start" in notes and "--prefix is `/other`" in notes
        # One that was killed is live until its lease has lapsed, and no start waits for longer.
        node.stop(signal.SIGKILL)
        node.options += ("--login-account", "8/8s")
        node.start()
        assert "--login-account is `8/8s` now; it was `7/7s`" in " ".join(node.notes())
        # The process that is replaced has the former values.
        old, node.options = node.process, (*node.options, "--login-account", "9/9s")
        node.start("--takeover")
        assert old.wait(60) == 0
        until(lambda: node.causes() == [], lambda: node.causes())


def test_nodes_change_one_after_the_other(server, tmp_path):
    with Cluster(tmp_path, server.create("rolled"), (), (), accounts=0) as cluster:
        first, second = cluster.nodes
        done = first.admin("nodes", "change", "--set", "login-device=7/7s", "--json")
        assert json.loads(done.out)["settings"] == {"login-device": "7/7s"} and len(json.loads(done.out)["nodes"]) == 2
        for node, count in ((first, 1), (second, 0)):
            node.stop()
            node.options += ("--login-device", "7/7s")
            node.start()
            assert len(listing(node)["differences"]) == count
            until(lambda node=node, count=count: ("login-device" in node.warnings()) == bool(count), "the difference is not shown")
            assert all(each.causes() == [] for each in cluster.nodes)
        # What is done is announced no longer.
        first.stop()
        first.options = [option for option in first.options if option not in ("--login-device", "7/7s")]
        with pytest.raises(AssertionError, match="--login-device is `.*` here and `7/7s`"):
            first.start()
        for words, status, text in ((("login-work=7/7s",), 2, "all nodes must have in common"), (("replay=file",), 1, "while no node runs"),
                                    (("login-device=many",), 2, "attempts at once"), (("login-device",), 2, "NAME=VALUE")):
            done = run("nodes", "change", "--data", second.data, "--set", *words, environment=second.environment)
            assert done.returncode == status and text in done.err, done.err
        assert run("nodes", "change", "--data", second.data, environment=second.environment).returncode == 2


@pytest.mark.parametrize("own, guard", [("Redis", "file"), ("Redis", "another Redis server"), ("file", "another Redis server")])
def test_a_displaced_guard_takes_the_deployment_back(own, guard, server, tmp_path):
    """A node starts with another guard while the only one is cut off from the database."""
    database = f"displaced_{own}_{guard.split()[0]}".lower()
    server.create(database)
    with Link(server.port) as link, RedisServer() as redis, RedisServer() as right:
        address = {"COUNTERSIGN_STORE": server.local_address(database, link.port), "COUNTERSIGN_REPLAY": right.address if own == "Redis" else own}
        with Cluster(tmp_path, server.address(database), ("--outage", "grace:1"), accounts=0, environments={0: address}) as cluster:
            node = cluster.nodes[0]
            replay = redis.address if "Redis" in guard else guard
            with other_node(cluster, tmp_path / "other", "--outage", "grace:1", COUNTERSIGN_STORE=server.address(database),
                            COUNTERSIGN_REPLAY=replay) as wrong:
                link.set("cut")
                until(lambda: "nodes" in node.causes(), "its lease lasts")
                # What the former guard may have admitted is refused for a minute: this is signed ahead of the clock.
                ahead = cluster.key.request(created=int(time.time()) + 60)
                wrong.start()
                assert refused(wrong.send(ahead)) == "unavailable"
                link.set("pass")
                until(lambda: f":{wrong.port}" in node.asked("/ready")[1], "it names the other node")
                assert set(node.causes()) & {"replay", "settings"}
                assert refused(node.send(cluster.key.request())) == "unavailable"
                assert wrong.causes() == []
            until(lambda: node.causes() == [], lambda: node.asked("/ready"))
            answer = node.send(ahead)
            assert refused(answer) == "unavailable" and int(answer.get("retry-after")) > 60
            assert own == "file" or epoch(node) >= 2
