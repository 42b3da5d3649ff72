"""Gateways over one store, with the servers that they share and a backend, for `script/bench cluster`."""

import pathlib
from collections.abc import Callable
from typing import Any

from cases import LOAD, UNLIMITED, Backend, checked_together
from meters import CPUMeter, repeated
from nodes import HOST, Cluster, Node
from postgres import Postgres
from redis import RedisServer
from signing import decode_secret

# Of all gateways together.
CONNECTIONS = 64
OPTIONS = (*UNLIMITED, "--tls", "off", "--login-device", "100000/1s", "--login-solved", "100000/1s", "--login-work", "100000/1s",
           "--login-pending", 100_000)


class Servers:
    """PostgreSQL and Redis, which all gateways of a run share."""

    def __init__(self):
        self.redis = RedisServer()
        try:
            self.postgres = Postgres()
        except BaseException:
            self.redis.remove()
            raise

    def __enter__(self) -> "Servers":
        return self

    def __exit__(self, *_: object) -> None:
        self.postgres.remove()
        self.redis.remove()

    def groups(self) -> dict[str, Callable[[], list[int]]]:
        return {"postgres": self.postgres.pids, "redis": lambda: [self.redis.process.pid]}

    def redis_bytes(self) -> int:
        """Memory of what Redis keeps."""
        reply = self.redis.call("INFO", "memory")
        return next(int(line.removeprefix("used_memory:")) for line in reply.splitlines() if line.startswith("used_memory:"))


class Site:
    """Nodes over PostgreSQL with the guard in Redis, or one gateway with SQLite and the replay file where there are no servers."""

    def __init__(self, folder: pathlib.Path, servers: Servers | None, nodes: int = 1):
        self.servers, self.backend = servers, Backend()
        folder.mkdir()
        store = servers.postgres.create("bench") if servers else f"sqlite:{folder}/node-0/data/countersign.db"
        environment = {"COUNTERSIGN_REPLAY": servers.redis.address} if servers else {}
        options = ("--upstream", f"http://127.0.0.1:{self.backend.port}", *OPTIONS)
        try:
            self.cluster = Cluster(folder, store, *[options] * nodes, accounts=0, environments=dict.fromkeys(range(nodes), environment))
        except BaseException:
            self.backend.stop()
            raise
        self.key = self.cluster.key

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.cluster.__exit__()
        finally:
            self.backend.stop()

    @property
    def nodes(self) -> list[Node]:
        """Those that run."""
        return [node for node in self.cluster.nodes if node.process and node.process.poll() is None]

    def keep(self, count: int) -> None:
        """Stops or starts nodes until so many run."""
        for number, node in enumerate(self.cluster.nodes):
            runs = node in self.nodes
            if runs and number >= count:
                node.stop()
            elif not runs and number < count:
                node.start()

    def meter(self) -> CPUMeter:
        nodes = {"gateway": lambda: [node.process.pid for node in self.nodes]}
        return CPUMeter(nodes | (self.servers.groups() if self.servers else {}))

    def measured(self, work: Callable[[], list[dict]], name: str) -> tuple[list[dict], dict[str, float]]:
        """What load.c found at each node, and the seconds of CPU of all processes meanwhile; again where a request had a 503."""
        return repeated(lambda: self.meter().during(work), name)

    def send(self, requests: int, *, body: int = 0, is_keyed: bool = False) -> list[dict]:
        """Signed requests, as many to each node at the same time. The backend had each once, whole."""
        nodes = self.nodes
        each = requests // len(nodes)
        commands = []
        for node in nodes:
            commands.append([LOAD, "--port", node.port, "--authority", HOST, "--requests", each, "--connections",
                             CONNECTIONS // len(nodes), "--body", body, "--scheme", "message-signatures", "--key-id", self.key.key_id,
                             "--secret", decode_secret(self.key.secret).hex(), *(["--keyed"] if is_keyed else [])])
        total = each * len(nodes)
        return checked_together(self.backend, commands, total, total * body, passed=total)


def rates(results: list[dict], taken: dict[str, float]) -> dict[str, Any]:
    """Microseconds of CPU for each request by group, and requests a second of all nodes together."""
    requests = sum(result["requests"] for result in results)
    row: dict[str, Any] = {f"{name}_us": seconds / requests * 1e6 for name, seconds in taken.items()}
    # Together they have ended when the last one has.
    row["per_second"] = requests / max(result["seconds"] for result in results)
    return row
