"""Gateways with a replay guard that they share, and what they show of it: /ready, metrics and notes in the log."""

import concurrent.futures
import contextlib
import json
import pathlib
import shutil
import threading
import urllib.error
import urllib.request

from gateway import Gateway
from ports import reserve_port
from signing import ReleaseKey
from waiting import until


class Node(Gateway):
    """`replay` is the value of the setting; its first word names the metrics."""

    def __init__(self, folder: pathlib.Path, replay: str, *options: object, **environment: str):
        self.admin_port, self.kind = reserve_port(), "redis" if replay.startswith("redis") else replay
        super().__init__(folder, *options, environment={"COUNTERSIGN_REPLAY": replay, **environment})

    def command(self, *options: object) -> list[str]:
        return [*super().command(*options), "--admin", f"127.0.0.1:{self.admin_port}"]

    def get(self, path: str) -> tuple[int, str]:
        token = (self.data / "admin-token").read_text().strip()
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}{path}", headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name: str) -> float:
        page = self.get("/metrics")[1]
        return next(float(line.split()[1]) for line in page.splitlines() if line.startswith(f"countersign_replay_{self.kind}_{name} "))

    def notes(self) -> list[str]:
        return [event["message"] for event in self.events() if event.get("log") == "replay"]

    def causes(self) -> list[str]:
        """What keeps the gateway from being ready."""
        return [reason["cause"] for reason in json.loads(self.get("/ready")[1])["reasons"]]

    def floor(self, after: float = 0) -> int:
        """Once an epoch after that one is in use."""
        until(lambda: self.metric("epoch") > after and self.metric("up") == 1)
        return int(self.metric("floor_seconds"))


@contextlib.contextmanager
def several(folder: pathlib.Path, replay: str, *stores: str):
    """A gateway for each store's address, all for one database, and the key of a release that any of them takes."""
    nodes, authority, key = [], None, None
    try:
        for number, store in enumerate(stores):
            home = folder / f"node-{number}"
            if nodes:
                (home / "data").mkdir(parents=True, mode=0o700)
                shutil.copy(nodes[0].data / "master.key", home / "data/master.key")
            gateway = Node(home, replay, COUNTERSIGN_STORE=store)
            authority = authority or f"127.0.0.1:{gateway.port}"
            gateway.options = ("--authority", authority)
            gateway.start()
            if not nodes:
                gateway.add_app("demo")
                key = gateway.add_release()
            nodes.append(gateway)
        key = ReleaseKey(key.key_id, key.secret, authority)
        for gateway in nodes:
            until(lambda gateway=gateway: gateway.send(key.request()).status == 200)
        yield nodes, key
    finally:
        for gateway in nodes:
            if gateway.process and gateway.process.poll() is None:
                gateway.stop()


def check_each_is_admitted_once(nodes: list[Node], key: ReleaseKey, rounds: int) -> None:
    """The same request reaches all of them at one instant. None admits it while the guard's server is slow to answer."""
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(len(nodes)) as threads:
        connections = [stack.enter_context(gateway.connect()) for gateway in nodes]
        start = threading.Barrier(len(nodes))

        def send(connection, request: bytes) -> int:
            start.wait()
            connection.send(request)
            return connection.answer().status

        admitted = 0
        for _ in range(rounds):
            request = key.request("POST", "/pay", b"1")
            statuses = list(threads.map(lambda connection, request=request: send(connection, request), connections))
            assert statuses.count(200) <= 1 and set(statuses) <= {200, 401, 503}, statuses
            assert 200 in statuses or 503 in statuses, statuses
            admitted += 200 in statuses
        assert admitted > 0


def code(gateway: Gateway, request: bytes) -> str:
    """Once the gateway's loops are connected to the guard's server: before that, it refuses every request."""
    found = []

    def is_settled() -> bool:
        found[:] = [refused(gateway.send(request))]
        return found != ["unavailable"]

    until(is_settled)
    return found[0]


def refused(answer) -> str:
    assert answer.status != 200
    return json.loads(answer.body)["code"]


def check_refusals(node: Node, key: ReleaseKey) -> None:
    """While the guard's server does not answer."""
    with node.connect() as connection:
        for _ in range(40):
            connection.send(key.request())
            answer = connection.answer()
            assert refused(answer) == "unavailable" and answer.get("retry-after")
