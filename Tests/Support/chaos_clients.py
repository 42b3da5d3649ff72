"""Clients of several nodes, which record what they do and what they are told in a history (history.py). Signatures are made ahead of
time, within the policy's window: after a loss of Redis, all that was signed before a moment ahead is refused by design, and these get past
it soonest."""

import base64
import collections
import json
import os
import random
import secrets
import subprocess
import threading
import time
from collections.abc import Iterator

from bearer import DEVICE, PREFIX
from chaos_cluster import ChaosCluster, ChaosNode
from history import LOST, OK, History
from products import BINARY
from signing import ReleaseKey, decode_secret
from wire import Answer, Closed, Connection

# Seconds by which signatures are ahead; the window is 60 s.
AHEAD = 55
# Seconds that a client waits for an answer.
PATIENCE = 4
# Copies of the latest so many requests are sent again: of more than a minute.
REPLAYED = 1_500


def signed_now(key: ReleaseKey, method: str, target: str, body: bytes = b"", **options) -> bytes:
    return key.request(method, target, body, created=int(time.time()) + AHEAD, **options)


class Client(threading.Thread):
    """Sends to each node on a connection of its own, until it is told to stop."""

    def __init__(self, cluster: ChaosCluster, history: History, is_over: threading.Event, seed: str, number: int = 0):
        super().__init__(daemon=True)
        self.cluster, self.history, self.is_over, self.number = cluster, history, is_over, number
        self.random = random.Random(f"{seed} {type(self).__name__} {number}")
        self.connections: dict[str, Connection] = {}
        self.failure: BaseException | None = None
        # Whether a node was away in this round, or could not say.
        self.is_refused = False

    def run(self) -> None:
        try:
            while not self.is_over.is_set():
                self.is_refused = False
                self.round()
                if self.is_refused:
                    self.pause(0.4)
        except BaseException as error:
            self.failure = error
        for connection in self.connections.values():
            connection.sock.close()

    def round(self) -> None:
        raise NotImplementedError

    def connection(self, node: ChaosNode) -> Connection | None:
        if node.name not in self.connections:
            try:
                self.connections[node.name] = Connection(node.port, self.cluster.context, PATIENCE)
            except OSError:
                return None
        return self.connections[node.name]

    def send(self, requests: list[tuple[ChaosNode, bytes]]) -> Iterator[tuple[ChaosNode, float, str, Answer | None]]:
        """Sends them all before it reads an answer. Of each: the node, when it was sent, the answer in a word, and the answer."""
        sent = []
        for node, request in requests:
            begun, connection = time.monotonic(), self.connection(node)
            if connection:
                connection.send(request)
            sent.append((node, begun, connection))
        for node, begun, connection in sent:
            answer, word = None, LOST
            try:
                if connection:
                    answer = connection.answer()
                    word = OK if answer.status < 400 else json.loads(answer.body).get("code", str(answer.status))
            except (Closed, OSError, ValueError):
                answer = None
            if answer is None or answer.get("connection") == "close":
                # Another answer on it would be to this request.
                dropped = self.connections.pop(node.name, None)
                if dropped:
                    dropped.sock.close()
            self.is_refused |= word in (LOST, "unavailable")
            yield node, begun, word, answer

    def nodes(self, count: int | None = None) -> list[ChaosNode]:
        return self.random.sample(self.cluster.nodes, count or len(self.cluster.nodes))

    def pause(self, most: float = 0.1) -> None:
        self.is_over.wait(self.random.uniform(0, most))

    # Sessions

    def log_in(self, account: str, nodes: list[ChaosNode]) -> list[str]:
        """At all of them at once; the tokens."""
        body = json.dumps({"account": account, "password": f"password of {account}", "device": DEVICE}).encode()
        fields = [("content-type", "application/json")]
        requests = [(node, signed_now(self.cluster.key, "POST", f"{PREFIX}/login/password", body, fields=fields)) for node in nodes]
        tokens = []
        for node, begun, word, answer in self.send(requests):
            token = json.loads(answer.body)["token"] if word == OK else ""
            self.history.add("login", session_of(token), node.name, begun, word, account=account)
            tokens += [token] if token else []
        return tokens

    def use(self, token: str, nodes: list[ChaosNode]) -> None:
        fields = [("authorization", f"Bearer {token}")]
        targets = [f"/session/{secrets.token_hex(8)}" for _ in nodes]
        requests = [(node, signed_now(self.cluster.key, "GET", target, fields=fields)) for node, target in zip(nodes, targets, strict=True)]
        for target, (node, begun, word, _) in zip(targets, self.send(requests), strict=True):
            self.history.add("use", session_of(token), node.name, begun, word, target=target)

    def log_out(self, token: str, node: ChaosNode) -> None:
        request = signed_now(self.cluster.key, "POST", f"{PREFIX}/logout", fields=[("authorization", f"Bearer {token}")])
        for _, begun, word, _ in self.send([(node, request)]):
            self.history.add("end", session_of(token), node.name, begun, word)

    def command(self, kind: str, subject: str, node: ChaosNode, *arguments: str, audit: str = "", stdin: str = "") -> str | None:
        """An administrator's command with a node's data folder and links; what it prints, or None if it failed. The subject is the one
        that is named, or the release's that it prints."""
        begun = time.monotonic()
        done = subprocess.run([BINARY, *arguments], input=stdin, text=True, capture_output=True, check=False, timeout=60,
                              env={**os.environ, **node.environment})
        if not subject and done.returncode == 0:
            subject = json.loads(done.stdout)["key_id"]
        # Status 3: what it needs is away. A command that the test got wrong would prove nothing.
        assert done.returncode in (0, 1, 3), (arguments, done.stderr)
        self.history.add(kind, subject, node.name, begun, OK if done.returncode == 0 else f"exit {done.returncode}", audit=audit)
        return done.stdout if done.returncode == 0 else None


def session_of(token: str) -> str:
    """A bearer token is `b_` and base64url: the session's id, and as many bytes of secret."""
    return base64.urlsafe_b64encode(decode_secret(token.removeprefix("b_"))[:16]).decode().rstrip("=") if token else ""


class Replayer(Client):
    """One signed request at all nodes at once, and former ones again."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.former: collections.deque[tuple[str, bytes]] = collections.deque(maxlen=REPLAYED)

    def round(self) -> None:
        name = f"/request-{self.number}-{secrets.token_hex(6)}"
        request = signed_now(self.cluster.key, "POST", name, b"1")
        self.record(name, request, self.nodes())
        self.former.append((name, request))
        name, request = self.random.choice(self.former)
        self.record(name, request, self.nodes(1))
        # A recent one, which a failover may have forgotten.
        name, request = self.former[-min(len(self.former), self.random.randint(1, 20))]
        self.record(name, request, self.nodes(1))
        self.pause()

    def record(self, name: str, request: bytes, nodes: list[ChaosNode]) -> None:
        for node, begun, word, _ in self.send([(node, request) for node in nodes]):
            self.history.add("request", name, node.name, begun, word)


class Keyed(Client):
    """Requests with one Idempotency-Key, each signed by itself."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.former: list[tuple[str, str]] = []

    def round(self) -> None:
        self.former.append((f"/keyed-{self.number}-{secrets.token_hex(6)}", secrets.token_hex(8)))
        self.record(*self.former[-1], self.nodes())
        self.record(*self.random.choice(self.former[-50:]), self.nodes(1))
        self.pause(0.2)

    def record(self, name: str, key: str, nodes: list[ChaosNode]) -> None:
        requests = [(node, signed_now(self.cluster.key, "POST", name, b"1", fields=[("idempotency-key", key)])) for node in nodes]
        for node, begun, word, _ in self.send(requests):
            self.history.add("keyed", name, node.name, begun, word)


class User(Client):
    """One account under `single`: logins, also two at once; uses at all nodes; logouts, and uses after them."""

    def round(self) -> None:
        account = f"user-{self.number}"
        tokens = self.log_in(account, self.nodes(self.random.choice([1, 1, 2])))
        for token in tokens:
            self.use(token, self.nodes())
        if tokens and self.random.random() < 0.6:
            self.log_out(tokens[-1], *self.nodes(1))
            for _ in range(2):
                self.use(tokens[-1], self.nodes())
        else:
            again = self.log_in(account, self.nodes(1))
            for token in [*tokens, *again]:
                self.use(token, self.nodes())
        self.pause()


class Administrator(Client):
    """Commands: accounts and releases added, releases retired, sessions revoked; and requests of what they ended."""

    def round(self) -> None:
        name = f"new-{self.number}-{secrets.token_hex(4)}"
        self.command("add-account", name, *self.nodes(1), "account", "add", "demo", name, "--password-stdin", audit="account.add",
                     stdin=f"password of {name}\n")
        made = self.command("add-release", "", *self.nodes(1), "release", "add", "demo", "--platform", "ios", "--version",
                            f"1.{secrets.token_hex(4)}", "--json", audit="release.add")
        if made:
            release = json.loads(made)
            key = ReleaseKey(release["key_id"], release["secret"], self.cluster.authority)
            self.use_release(key)
            self.command("retire-release", key.key_id, *self.nodes(1), "release", "retire", key.key_id, "--at", "now", "--update-url",
                         "https://example.com/", audit="release.retire")
            self.use_release(key)
        for token in self.log_in(name, self.nodes(1)):
            self.use(token, self.nodes())
            session = session_of(token)
            self.command("end", session, *self.nodes(1), "session", "revoke", "--", session, audit="session.revoke")
            self.use(token, self.nodes())
        self.pause(0.2)

    def use_release(self, key: ReleaseKey) -> None:
        targets = [f"/release/{secrets.token_hex(8)}" for _ in self.cluster.nodes]
        requests = [(node, signed_now(key, "GET", target)) for node, target in zip(self.cluster.nodes, targets, strict=True)]
        for target, (node, begun, word, _) in zip(targets, self.send(requests), strict=True):
            self.history.add("use-release", key.key_id, node.name, begun, word, target=target)


class Prober(Client):
    """Asks a node for a login, to see whether it is back."""

    def logs_in(self, node: ChaosNode) -> bool:
        return bool(self.log_in("prober", [node]))

    def logs_in_and_out(self, node: ChaosNode) -> None:
        for token in self.log_in("prober", [node]):
            self.log_out(token, node)
