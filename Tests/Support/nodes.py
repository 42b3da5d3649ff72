"""Several gateways over one PostgreSQL database, each with a data folder of its own, as on machines of their own."""

import json
import pathlib
import subprocess
import urllib.error
import urllib.request

from bearer import DEVICE, PREFIX, bearing
from clock import Clock
from gateway import Gateway
from ports import reserve_port
from redis import RedisServer, is_installed
from signing import ReleaseKey
from wire import Answer, Connection

# The host that requests name: whatever node they reach.
HOST = "shop.example"


class Node(Gateway):
    def __init__(self, folder: pathlib.Path, store: str, *options: object, environment: dict[str, str] | None = None, **named):
        self.admin_port = reserve_port()
        self.is_tls_wanted = "--tls" not in options
        super().__init__(
            folder, "--authority", HOST, "--admin", f"127.0.0.1:{self.admin_port}", "--login-account", "100000/1s",
            "--login-address", "100000/1s", *options, environment={"COUNTERSIGN_STORE": store, **(environment or {})},
            **named)

    def asked(self, path: str) -> tuple[int, str]:
        """Of the admin listener."""
        token = (self.data / "admin-token").read_text().strip()
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}{path}", headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def causes(self) -> list[str]:
        """What keeps the node from being ready."""
        return [reason["cause"] for reason in json.loads(self.asked("/ready")[1])["reasons"]]

    def warnings(self) -> str:
        """What `/ready` shows beside these."""
        return json.dumps(json.loads(self.asked("/ready")[1]).get("warnings", []))

    def missed_hints(self) -> int:
        return int(self.asked("/metrics")[1].split("\ncountersign_node_missed_hints_total ")[1].split()[0])

    def notes(self) -> list[str]:
        return [event["message"] for event in self.events() if event.get("log") == "nodes"]


class Cluster:
    """Three nodes, or as many as there are lists of options, and an app whose accounts `user-0` and on have passwords. Several nodes have
    their replay guard on a Redis server of the cluster's own, or in the database where there is no Redis, unless they are given another one."""

    def __init__(self, folder: pathlib.Path, store: str, *options: tuple, accounts: int = 3, environments: dict | None = None,
                 clock: Clock | None = None):
        self.nodes, options, environments = [], options or ((), (), ()), environments or {}
        self.redis = None
        has_guard = "--replay" in options[0] or "COUNTERSIGN_REPLAY" in environments.get(0, {})
        if len(options) > 1 and not has_guard and is_installed():
            self.redis = RedisServer(environment=clock.environment if clock else None)
        guard = {} if len(options) == 1 or has_guard else {"COUNTERSIGN_REPLAY": self.redis.address if self.redis else "postgres"}
        for number, more in enumerate(options):
            node = Node(folder / f"node-{number}", store, *more, environment={**guard, **environments.get(number, {})}, clock=clock)
            if number == 0:
                node.admin("app", "add", "demo", "--require", "signed")
                node.admin("app", "policy", "demo", "--set", "password-login=on", "--set", "slots=unlimited",
                           "--set", "registration=open")
                node.start().stop()
            else:
                self.share_keys(node)
            self.nodes.append(node)
        for node in self.nodes:
            node.start()
        self.key = self.add_release("1.0")
        for number in range(accounts):
            self.nodes[0].admin("account", "add", "demo", f"user-{number}", "--password-stdin", stdin=f"password of user-{number}\n")

    def share_keys(self, node: Node) -> None:
        """Gives the node what an operator copies to another machine."""
        node.data.mkdir(mode=0o700, parents=True)
        for name in ("master.key", *(["tls"] if node.is_tls_wanted else [])):
            subprocess.run(["cp", "-a", self.nodes[0].data / name, node.data], check=True)

    def add_release(self, version: str) -> ReleaseKey:
        key = self.nodes[0].add_release(version=version)
        return ReleaseKey(key.key_id, key.secret, HOST, time=key.time)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            if node.process and node.process.poll() is None:
                node.stop()
        if self.redis:
            self.redis.remove()

    def login(self, name: str = "user-0") -> bytes:
        """A request that opens a session."""
        body = json.dumps({"account": name, "password": f"password of {name}", "device": DEVICE}).encode()
        return self.key.request("POST", f"{PREFIX}/login/password", body, fields=[("content-type", "application/json")])

    def logged_in(self, connection: Connection, name: str = "user-0") -> str:
        """A token; the session's id is its second part."""
        return json.loads(sent(connection, self.login(name), 200).body)["token"]

    def bearing(self, token: str, method: str = "GET", path: str = "/session") -> bytes:
        return bearing(self, token, method, path)


def sent(connection: Connection, request: bytes, status: int | None = None) -> Answer:
    connection.send(request)
    answer = connection.answer()
    assert status in (None, answer.status), (answer.status, answer.body)
    return answer
