"""The cluster of Examples/cluster: three gateways over PostgreSQL with a synchronous standby and Redis with a replica, behind haproxy. What its
README promises, and what is left when the primary database is killed and the standby takes its place."""

import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

import pytest

from chaos_cluster import example
from ports import reserve_port
from postgres import programs
from products import BINARY, ROOT
from signing import ReleaseKey
from waiting import until
from wire import Connection

pytestmark = pytest.mark.skipif(programs() is None or not shutil.which("redis-server"), reason="no postgres, or no redis-server")
PASSWORD = "correct horse battery staple\n"


@pytest.fixture
def folder():
    """The database's user goes through it, unlike through the folders of other tests."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cs-cluster-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_the_command_of_the_readme(folder):
    done = subprocess.run([sys.executable, "-B", ROOT / "Examples/cluster/cluster.py", "--check", "--port", str(reserve_port()),
                           "--folder", folder / "cluster"], capture_output=True, text=True, timeout=150, check=False,
                          env={**os.environ, "COUNTERSIGN": BINARY})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("the session has ended: revoked") == 3


def test_a_redis_server_and_a_node_less(folder):
    """A replica may be lost; a replica is promoted when the primary is; and the other node serves when one stops."""
    cluster = example.Cluster(folder, 2, reserve_port())
    try:
        cluster.start()
        first, second = cluster.nodes
        release = json.loads(first.command("release", "add", "demo", "--platform", "ios", "--version", "1.0", "--json"))
        key = ReleaseKey(release["key_id"], release["secret"], f"localhost:{cluster.port}")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

        def status(node: example.Node, **signed: int) -> int:
            with Connection(node.port, context) as connection:
                connection.send(key.request(**signed))
                return connection.answer().status

        until(lambda: status(first) == status(second) == 200)
        cluster.end("redis-replica")
        assert [status(node) for node in (first, second) for _ in range(5)] == [200] * 10
        cluster.processes["redis-primary"].kill()
        cluster.processes["redis-primary"].wait()
        cluster.begin("redis-replica", "redis-server", folder / "redis-replica/redis.conf", "--replicaof", "127.0.0.1",
                      str(cluster.redis_ports["replica-2"]))
        cluster.promote_redis("replica-2")
        for node in (first, second):
            until(node.is_ready, f"{node.name} is not ready")
            # Of the next epoch, and above its floor.
            until(lambda node=node: status(node, created=int(time.time()) + 59) == 503, "the floor is missing")
            assert "are refused, for " in urllib.request.urlopen(f"http://127.0.0.1:{node.admin_port}/ready").read().decode()
        assert "are refused, for " in second.command("nodes")

        process = cluster.processes["node-1"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        until(lambda: example.speaks_tls(cluster.port), "the other node serves")
    finally:
        cluster.stop()


def logs_in(phone: str) -> bool:
    return subprocess.run([BINARY, "login", "--profile", phone, "--account", "alice", "--password-stdin"], input=PASSWORD, text=True,
                          capture_output=True, check=False).returncode == 0


def test_the_standby_takes_over(folder, note):
    cluster = example.Cluster(folder, 2, reserve_port())
    try:
        cluster.start()
        first, second = cluster.nodes
        release = json.loads(first.command("release", "add", "demo", "--platform", "ios", "--version", "1.0", "--json"))
        phone = str(folder / "phone")
        example.run(BINARY, "profile", "add", phone, "--url", f"https://localhost:{cluster.port}", "--key-id", release["key_id"],
                    "--secret-stdin", "--authority-key", release["authority_key"], "--ca", first.data / "tls/certificate.pem",
                    stdin=release["secret"])
        example.run(BINARY, "signup", "--profile", phone, "--account", "alice", "--password-stdin", stdin=PASSWORD)
        example.run(BINARY, "login", "--profile", phone, "--account", "alice", "--password-stdin", stdin=PASSWORD)
        session = json.loads(first.command("session", "list", "demo", "--json"))["sessions"][0]["session"]
        # Acknowledged in the moment before the primary dies.
        first.command("session", "revoke", session)
        head = json.loads(first.command("audit", "list", "--json"))["records"][-1]

        primary = cluster.processes["postgres-primary"]
        children = open(f"/proc/{primary.pid}/task/{primary.pid}/children").read().split()
        for pid in [primary.pid, *map(int, children)]:
            os.kill(pid, signal.SIGKILL)
        primary.wait()
        assert primary.returncode == -signal.SIGKILL
        died = time.monotonic()
        cluster.promote()
        until(lambda: logs_in(phone), "no login")
        until(first.is_ready, "the first node is not ready")
        until(second.is_ready, "the second node is not ready")
        recovered = time.monotonic() - died
        assert cluster.sql("standby", "SELECT pg_is_in_recovery()") == "f"

        # What was acknowledged is there, and the nodes take changes.
        assert session not in second.command("session", "list", "demo", "--json")
        assert head in json.loads(second.command("audit", "list", "--json"))["records"]
        assert json.loads(second.command("audit", "verify", "--json"))["findings"] == []
        # A node may hear its store again a moment later than the other.
        until(lambda: subprocess.run([BINARY, "request", "--profile", phone, "/hello"], capture_output=True, check=False).returncode == 0,
              "no request")
        note(f"cluster: the primary killed and the standby promoted: both nodes ready again after {recovered:.1f} s")
    finally:
        cluster.stop()
