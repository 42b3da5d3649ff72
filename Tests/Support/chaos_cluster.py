"""Nodes over PostgreSQL and Redis, as Examples/cluster starts them, whose links can be broken (link.py): each node reaches PostgreSQL
and Redis by way of links of its own, and PostgreSQL's lead to the standby once it was promoted."""

import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import urllib.request

import processes
from backend import Backend
from link import Link
from ports import reserve_port
from products import BINARY, ROOT, serving
from signing import ReleaseKey

os.environ["COUNTERSIGN"] = BINARY
SPEC = importlib.util.spec_from_file_location("cluster", ROOT / "Examples/cluster/cluster.py")
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)
# A port that no outgoing connection is given while its server is away.
example.free_port = reserve_port
example.launch = processes.start

# Seconds of a lease: what a change waits for a node that is away.
LEASE = 2


class ChaosNode(example.Node):
    def __init__(self, cluster: "ChaosCluster", number: int):
        super().__init__(cluster, number)
        self.options = cluster.options.get(number, [])
        self.database = Link(cluster.postgres_ports["primary"])
        self.redis = [Link(port) for port in cluster.redis_ports.values()]

    @property
    def environment(self) -> dict:
        store = f"postgres://{example.USER}:{self.cluster.password}@127.0.0.1:{self.database.port}/{example.DATABASE}"
        places = ",".join(f"127.0.0.1:{link.port}" for link in self.redis)
        replay = f"redis://:{self.cluster.password}@{places}" if self.cluster.replay_server == "redis" else self.cluster.replay_server
        return {"COUNTERSIGN_STORE": store, "COUNTERSIGN_DATA": str(self.data), "COUNTERSIGN_REPLAY": replay}

    def start(self) -> None:
        self.cluster.begin(
            self.name, serving(self.options), "serve", "--listen", f"127.0.0.1:{self.port}", "--admin", f"127.0.0.1:{self.admin_port}",
            "--authority", self.cluster.authority, "--upstream", self.cluster.backend.url, "--workers", 1, "--outage", f"grace:{LEASE}",
            "--login-account", "100000/1s", "--login-address", "100000/1s", *self.options, environment=self.environment)

    @property
    def process(self) -> subprocess.Popen:
        return self.cluster.processes[self.name]

    def epoch(self) -> float:
        """Of the replay guard: a higher one means that it may have forgotten requests."""
        token = (self.data / "admin-token").read_text().strip()
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}/metrics", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return float(re.search(rf"^countersign_replay_{self.cluster.replay_server}_epoch (\S+)", answer.read().decode(), re.M)[1])


class ChaosCluster(example.Cluster):
    """`replay` is the replay guard's server, "redis" or "postgres", and `options` are more options of `serve`, of a node by its number."""

    def __init__(self, folder: pathlib.Path, nodes: int, options: dict[int, list[str]], replay: str = "redis"):
        super().__init__(folder, 0, reserve_port())
        # One replica: the faults choose between two servers.
        del self.redis_ports["replica-2"]
        self.replay_server = replay
        self.options, self.backend = options, Backend()
        self.authority = f"{example.AUTHORITY}:{self.port}"
        self.nodes = [ChaosNode(self, number) for number in range(nodes)]
        # The servers that are written to.
        self.database, self.guard = "primary", "primary"
        self.key: ReleaseKey | None = None
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    def start(self) -> None:
        self.start_postgres()
        # A commit waits for the standby, which is to come back soon after the primary did.
        self.sql("standby", "ALTER SYSTEM SET wal_retrieve_retry_interval = '500ms'")
        self.sql("standby", "SELECT pg_reload_conf()")
        if self.replay_server == "redis":
            self.start_redis()
        first = self.nodes[0]
        first.command("app", "add", "demo", "--require", "signed")
        first.command("app", "policy", "demo", "--set", "password-login=on", "--set", "slots=single")
        first.command("route", "set", "demo", "/session", "--require", "session")
        first.start()
        self.wait_ready(first, 30)
        for node in self.nodes[1:]:
            node.data.mkdir(mode=0o700)
            shutil.copy2(first.data / "master.key", node.data)
            shutil.copytree(first.data / "tls", node.data / "tls")
            node.start()
            self.wait_ready(node, 30)
        made = json.loads(first.command("release", "add", "demo", "--platform", "ios", "--version", "1.0", "--json"))
        self.key = ReleaseKey(made["key_id"], made["secret"], self.authority)

    def wait_ready(self, node: ChaosNode, seconds: float) -> None:
        example.wait_until(node.is_ready, f"{node.name}; its log is {self.folder / node.name}.log", seconds)

    def add_account(self, name: str) -> None:
        self.nodes[0].command("account", "add", "demo", name, "--password-stdin", stdin=f"password of {name}\n")

    def stop(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
        for node in self.nodes:
            for link in (node.database, *node.redis):
                link.set("pass")
        super().stop()
        self.backend.close()
        for node in self.nodes:
            for link in (node.database, *node.redis):
                link.close()


def family(process: subprocess.Popen) -> list[int]:
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [process.pid, *map(int, children)]


def kill(process: subprocess.Popen) -> str:
    """The process and its children. What shows it."""
    for pid in family(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(60)
    assert process.returncode == -signal.SIGKILL, process.returncode
    return f"ended by signal {-process.returncode}"


def state(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
