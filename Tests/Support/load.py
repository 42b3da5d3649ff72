"""A client of several nodes that goes on while they are replaced."""

import json
import threading
import time
from collections.abc import Callable

from nodes import Cluster, Node, sent
from wire import Closed


class Load:
    """Logs in, sends requests of the session to all nodes that serve, and signs out, until it is stopped."""

    def __init__(self, cluster: Cluster, account: int, allowed: set[str] = frozenset()):
        """`allowed`: codes of refusals after which a request is sent again."""
        self.cluster, self.account, self.allowed = cluster, f"user-{account}", allowed
        self.serving = list(cluster.nodes)
        self.wrong: list[str] = []
        self.forwarded = self.sessions = self.asked = self.excused = 0
        self.longest = 0.0
        self.is_stopping = threading.Event()
        self.busy = threading.Lock()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def ask(self, node: Node, make: Callable[[], bytes], status: int, what: str) -> bytes:
        for _ in range(20):
            self.asked += 1
            begun = time.monotonic()
            try:
                with node.connect() as line:
                    answer = sent(line, make())
            except (OSError, Closed) as error:
                self.wrong.append(f"{what}: {error!r}")
                return b"{}"
            self.longest = max(self.longest, time.monotonic() - begun)
            if answer.status == 503 and json.loads(answer.body)["code"] in self.allowed:
                self.excused += 1
                self.is_stopping.wait(0.05)  # lint: the pace of a load
                continue
            if answer.status != status:
                self.wrong.append(f"{what}: {answer.status} {answer.body!r}")
            return answer.body
        self.wrong.append(f"{what}: no end of refusals")
        return b"{}"

    def of_session(self, token: str) -> bytes:
        return self.cluster.key.request("GET", "/load", fields=[("authorization", f"Bearer {token}")])

    def run(self) -> None:
        number = 0
        while not self.is_stopping.is_set() and len(self.wrong) < 20:
            # A node is taken out of service between two rounds, as a load balancer does.
            with self.busy:
                nodes = list(self.serving)
                first = nodes[number % len(nodes)]
                token = json.loads(self.ask(first, lambda: self.cluster.login(self.account), 200, "login")).get("token")
                if token is None:
                    continue
                self.sessions += 1
                for node in nodes * 2:
                    self.ask(node, lambda: self.of_session(token), 200, "session")
                    self.forwarded += 1
                last = nodes[(number + 1) % len(nodes)]
                self.ask(last, lambda: self.cluster.bearing(token, "POST", "/logout"), 200, "logout")
                self.ask(first, lambda: self.of_session(token), 401, "ended session")
                number += 1

    def without(self, node: Node) -> None:
        with self.busy:
            self.serving.remove(node)

    def with_(self, node: Node) -> None:
        with self.busy:
            self.serving.append(node)

    def stop(self) -> None:
        self.is_stopping.set()
        self.thread.join()
