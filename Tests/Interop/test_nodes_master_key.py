"""The master key is replaced under three nodes and their load: a node without the next key is named before anything happens, no session is
lost, no node that cannot open what is sealed goes on, and the former key opens nothing afterwards (docs/decisions/0074-rolling-upgrades.md)."""

import json
import shutil
import signal
import time

import pytest

from gateway import run
from load import Load
from nodes import Cluster, Node, sent
from postgres import programs
from waiting import until

pytestmark = pytest.mark.skipif(programs() is None, reason="no postgres")


def rotate(node: Node):
    return run("rotate-master-key", "--json", "--data", node.data, environment=node.environment, timeout=120)


def key(node: Node) -> str:
    return (node.data / "master.key").read_text()


def give(node: Node, other: Node) -> None:
    """The node's next key to another one, as an operator does."""
    draft = other.data / "draft"
    shutil.copy2(node.data / "master.key.next", draft)
    draft.rename(other.data / "master.key.next")


def test_a_rotation_under_load(server, backend, tmp_path, note):
    options = ("--upstream", backend.url)
    with Cluster(tmp_path, server.create("rotation"), options, options, options) as cluster:
        first, second, third = cluster.nodes
        former = key(first)
        with first.connect() as line:
            token = cluster.logged_in(line)
        # The command names the nodes that lack the key that it makes, and nothing has happened.
        give_to = [second, third]
        for place in range(2):
            done = rotate(first)
            assert done.returncode != 0 and "nothing was changed" in done.err, done.err
            lacking = [node for node in cluster.nodes if f"127.0.0.1:{node.port}" in done.err]
            assert lacking == give_to[place:], done.err
            assert server.sql("SELECT count(*) FROM countersign.meta WHERE name = 'master-key-next-check'::bytea", "rotation") == "0"
            give(first, give_to[place])
        until(lambda: all(each["next_master_key"] for each in json.loads(first.admin("nodes", "--json").out)["nodes"]), "it is not told")
        loads = [Load(cluster, account, allowed={"unavailable"}) for account in range(2)]
        try:
            until(lambda: all(load.sessions >= 3 for load in loads), "no load")
            before = [load.sessions for load in loads]
            begun = time.monotonic()
            done = rotate(first)
            took = time.monotonic() - begun
            assert done.returncode == 0, done.err
            until(lambda: all(load.sessions > count + 3 for load, count in zip(loads, before)), "no load afterwards")
        finally:
            for load in loads:
                load.stop()
        assert [load.wrong for load in loads] == [[], []]
        assert sum(seen.target == "/load" for seen in backend.seen) == sum(load.forwarded for load in loads)
        # Each node has replaced its own file, and the session of before goes on at each.
        for node in cluster.nodes:
            until(lambda node=node: not (node.data / "master.key.next").exists(), "the file is not renamed")
            with node.connect() as line:
                sent(line, cluster.bearing(token), 200)
        assert len({key(node) for node in cluster.nodes} | {former}) == 2
        # Nothing is sealed under the former key, and a node that has that one alone does not start.
        slots = "SELECT DISTINCT substr(sealed_secret, 1, 1) FROM countersign.release"
        assert server.sql(slots, "rotation") == "\\x02"
        third.stop()
        current = key(third)
        (third.data / "master.key").write_text(former)
        with pytest.raises(AssertionError):
            third.start()
        assert "not the one this store was sealed with" in third.log_path.read_text()
        (third.data / "master.key").write_text(current)
        third.start()
        with third.connect() as line:
            sent(line, cluster.bearing(token), 200)
        retried = sum(load.excused for load in loads)
        note(f"a rotation under three nodes took {took:.1f} s; of {sum(load.asked for load in loads)} requests {retried} were to be repeated")


def test_a_node_that_lost_the_next_key(server, tmp_path):
    """It refuses sessions from the moment at which something may be sealed under the next key."""
    options = ("--outage", "grace:2")
    with Cluster(tmp_path, server.create("lost"), options, options, accounts=1) as cluster:
        first, second = cluster.nodes
        assert rotate(first).returncode != 0
        give(first, second)
        until(lambda: all(each["next_master_key"] for each in json.loads(first.admin("nodes", "--json").out)["nodes"]), "it is not told")
        with second.connect() as line:
            token = cluster.logged_in(line)
            # Stopped, so that it says what it said before.
            second.process.send_signal(signal.SIGSTOP)
            try:
                (second.data / "master.key.next").rename(tmp_path / "kept")
                done = rotate(first)
            finally:
                second.process.send_signal(signal.SIGCONT)
            assert done.returncode == 0, done.err
            # Its lease had lapsed, and it does not get another.
            assert sent(line, cluster.bearing(token)).status == 503
            until(lambda: "nodes" in second.causes(), "it is ready")
            assert sent(line, cluster.bearing(token)).status == 503
            assert any("master key" in text for text in second.notes())
            (tmp_path / "kept").rename(second.data / "master.key.next")
            until(lambda: sent(line, cluster.bearing(token)).status == 200, "it does not go on")
        until(lambda: key(first) == key(second), "the file is not renamed")


def test_a_key_of_the_environment(server, tmp_path):
    with Cluster(tmp_path, server.create("environment"), (), (), accounts=0) as cluster:
        first, second = cluster.nodes
        second.stop()
        held = key(second).strip()
        (second.data / "master.key").unlink()
        second.environment = {**second.environment, "COUNTERSIGN_MASTER_KEY": held}
        second.start()
        done = rotate(first)
        assert done.returncode != 0 and "from the environment" in done.err and f"127.0.0.1:{second.port}" in done.err, done.err
