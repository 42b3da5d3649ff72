"""What a request of a session costs while the database has few sessions or many, and what a session takes in memory and on the disk. The
sessions are made by `countersign bench fill`, and moved to PostgreSQL by `countersign migrate`."""

import contextlib
import itertools
import json
import pathlib
import shutil
import statistics
import subprocess
import time

from cases import LOAD, Backend, checked_together
from meters import CPUMeter, repeated
from nodes import HOST, Node
from products import BINARY
from signing import decode_secret
from sites import CONNECTIONS, OPTIONS, Servers

# Different sessions that send the requests of a round: as many at each size, evenly over all. As many others warm the node up.
SENDERS = 500
# The share of a core below which nodes and database are at rest, after so many seconds in a row.
IDLE_SHARE, QUIET_SECONDS = 0.15, 5
# Seconds for a command that fills or moves a million.
PATIENCE = 1_200


class FilledNode:
    """A node whose database has so many sessions."""

    def __init__(self, folder: pathlib.Path, servers: Servers, count: int, backend: Backend, tell):
        self.count, self.folder, self.backend, self.servers = count, folder, backend, servers
        self.database = f"sessions_{count}"
        address = servers.postgres.create(self.database)
        empty = self.bytes_of_database()
        self.node = Node(folder, address, "--upstream", f"http://127.0.0.1:{backend.port}", *OPTIONS,
                         environment={"COUNTERSIGN_REPLAY": servers.redis.address})
        data = self.node.data
        tell(f"{count} sessions: writing them")
        filled = done("bench", "fill", "--in", data, "--count", count, "--key-ids", folder / "key-ids")
        tell(f"{count} sessions: moving them to PostgreSQL")
        moved = done("migrate", f"sqlite:{data}/countersign.db", address, "--data", data)
        assert moved["tables"]["session"] == filled["sessions"] == count, (moved, filled)
        (data / "countersign.db").unlink()
        servers.postgres.sql("VACUUM ANALYZE", self.database)
        self.disk = (self.bytes_of_database() - empty) / count
        begun = time.monotonic()
        self.node.start(wait=PATIENCE)
        self.start_seconds = time.monotonic() - begun
        self.memory = self.node.rss()
        tell(f"{count} sessions: waiting for the check of all rows that follows a start")
        self.check_seconds = self.settle()
        self.options = ["--release", filled["release"], "--secret", decode_secret(filled["request_key"]).hex()]

    def settle(self) -> float:
        """Waits until node and database have nothing to do, and returns the node's seconds of CPU until then: after a start it verifies
        all rows, in the background if they are many, and that is no request's cost. PostgreSQL sorts them before the node has any."""
        meter = CPUMeter({"gateway": lambda: [self.node.process.pid], "postgres": self.servers.postgres.pids})
        total, quiet, end = 0.0, 0, time.monotonic() + PATIENCE
        while quiet < QUIET_SECONDS:
            assert time.monotonic() < end, "the node does not come to rest"
            _, taken = meter.during(lambda: time.sleep(1))
            total += taken["gateway"]
            quiet = quiet + 1 if sum(taken.values()) < IDLE_SHARE else 0
        return total

    def bytes_of_database(self) -> int:
        return int(self.servers.postgres.sql(f"SELECT pg_database_size('{self.database}')"))

    def write_senders(self, name: str, count: int, offset: int = 0) -> pathlib.Path:
        """A file with the key ids of so many sessions, evenly over all."""
        lines = (self.folder / "key-ids").read_text().splitlines()
        step = max(1, len(lines) // count)
        chosen = lines[offset::step][:count]
        path = self.folder / name
        path.write_text("\n".join(chosen) + "\n")
        return path

    def send(self, requests: int, senders: pathlib.Path) -> tuple[dict, dict[str, float]]:
        """Signed requests of these sessions in turn. The backend had each once."""
        command = [LOAD, "--port", self.node.port, "--authority", HOST, "--requests", requests, "--connections", CONNECTIONS,
                   "--scheme", "message-signatures", "--key-ids", senders, *self.options]
        meter = CPUMeter({"gateway": lambda: [self.node.process.pid]} | self.servers.groups())
        results, taken = meter.during(lambda: checked_together(self.backend, [command], requests, 0, passed=requests))
        return results[0], {name: seconds / requests * 1e6 for name, seconds in taken.items()}

    def stop(self) -> None:
        if self.node.process and self.node.process.poll() is None:
            self.node.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def done(*arguments: object) -> dict:
    """What a command printed. Its own progress is on standard error."""
    finished = subprocess.run([BINARY, *map(str, arguments), "--json"], stdout=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert finished.returncode == 0, f"{arguments}: exit {finished.returncode}"
    return json.loads(finished.stdout)


def measured(folder: pathlib.Path, servers: Servers, sizes: list[int], *, rounds: int, requests: int, tell) -> list[dict]:
    """For each size: microseconds of CPU for a session's first request and for a later one, seconds of a start and of the check of
    all rows behind it, and bytes. Rounds of the sizes take turns, so that other work on the machine meets all of them."""
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        backend = Backend()
        stack.callback(backend.stop)
        nodes = []
        for size in sizes:
            nodes.append(FilledNode(folder / str(size), servers, size, backend, tell))
            stack.callback(nodes[-1].stop)
        rows = [first_uses(node) for node in nodes]
        later: list[list[dict[str, float]]] = [[] for _ in nodes]
        for round_ in range(rounds + 1):
            tell(f"sessions: round {round_} of {rounds}")
            for node, samples in zip(nodes, later, strict=True):
                # The sessions of the first requests.
                _, taken = repeated(lambda node=node: node.send(requests, node.folder / "senders"), f"{node.count} sessions")
                # The first round warms up, and does not count.
                if round_:
                    samples.append(taken)
    for row, samples in zip(rows, later, strict=True):
        for name in ("gateway", "postgres", "redis"):
            row[f"{name}_us"] = statistics.median(sample[name] for sample in samples)
            row[f"{name}_least_us"] = min(sample[name] for sample in samples)
    # What a node takes without any session cancels out.
    few, many = rows[0], rows[-1]
    for row in rows:
        row["ratio"] = row["gateway_us"] / few["gateway_us"]
        row["ratio_of_leasts"] = row["gateway_least_us"] / few["gateway_least_us"]
    if many["sessions"] > few["sessions"]:
        many["memory_bytes"] = (many["rss"] - few["rss"]) / (many["sessions"] - few["sessions"])
    return rows


def first_uses(node: FilledNode) -> dict:
    """A request of each of the senders, which the node has not seen before, after as many of other sessions."""
    others = node.write_senders("others", SENDERS, offset=max(1, node.count // SENDERS // 2))
    senders = node.write_senders("senders", SENDERS)
    attempts = itertools.count()

    def attempt() -> dict[str, float]:
        if next(attempts):
            # What was refused with 503 was looked up all the same.
            node.node.stop()
            node.node.start(wait=PATIENCE)
            node.settle()
        node.send(SENDERS, others)
        return node.send(SENDERS, senders)[1]

    taken = repeated(attempt, f"{node.count} sessions, first requests")
    return {"sessions": node.count, "start_seconds": node.start_seconds, "check_seconds": node.check_seconds, "rss": node.memory,
            "disk_bytes": node.disk, "first_gateway_us": taken["gateway"], "first_postgres_us": taken["postgres"]}
