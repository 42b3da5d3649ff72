"""Runs of several nodes over PostgreSQL and Redis (Examples/cluster) with concurrent clients and faults, whose history is checked: `script/chaos`.

Nodes reach PostgreSQL and Redis by way of links (link.py), which can be broken, and which lead to the standby once it was promoted. Signatures
are made ahead of time, within the policy's window: after a loss of Redis, all that was signed before a moment ahead is refused by design, and
these signatures get past it soonest."""

import argparse
import base64
import collections
import contextlib
import importlib.util
import json
import os
import pathlib
import random
import re
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator

from backend import Backend
from bearer import DEVICE, PREFIX
from history import LOST, OK, RECOVERY, Fault, Final, History, Violation, violations
from link import Link
from ports import free_port
from products import BINARY, ROOT
from signing import ReleaseKey, decode_secret
from wire import Answer, Closed, Connection

os.environ["COUNTERSIGN"] = BINARY
SPEC = importlib.util.spec_from_file_location("cluster", ROOT / "Examples/cluster/cluster.py")
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)
# A port that no outgoing connection is given while its server is away.
example.free_port = free_port

# Seconds by which signatures are ahead; the window is 60 s.
AHEAD = 55
# How long such signatures are refused after a loss of Redis. Source: ReplayEpoch.floor, the window and 15 s, of which AHEAD is gained.
FLOOR = 60 + 15 - AHEAD + 2
# Seconds that a client waits for an answer.
PATIENCE = 4
# Seconds of a lease: what a change waits for a node that is away.
LEASE = 2
# Logouts before the other clients begin, by whose time lost notifications are noticed.
QUIET_LOGOUTS = 12
# Copies of a request are sent again for so long.
REPLAYED_FOR = 100


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
        return {"COUNTERSIGN_STORE": store, "COUNTERSIGN_DATA": str(self.data), "COUNTERSIGN_REPLAY": f"redis://:{self.cluster.password}@{places}"}

    def start(self) -> None:
        self.cluster.begin(
            self.name, BINARY, "serve", "--listen", f"127.0.0.1:{self.port}", "--admin", f"127.0.0.1:{self.admin_port}", "--authority",
            self.cluster.authority, "--upstream", self.cluster.backend.url, "--workers", 1, "--outage", f"grace:{LEASE}",
            "--login-account", "100000/1s", "--login-address", "100000/1s", *self.options, environment=self.environment)

    @property
    def process(self) -> subprocess.Popen:
        return self.cluster.processes[self.name]

    def epoch(self) -> float:
        """Of the replay guard: a higher one means that Redis may have forgotten requests."""
        token = (self.data / "admin-token").read_text().strip()
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}/metrics", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=5) as answer:
            return float(re.search(r"^countersign_replay_redis_epoch (\S+)", answer.read().decode(), re.M)[1])


class ChaosCluster(example.Cluster):
    """`options` are more options of `serve`, of a node by its number."""

    def __init__(self, folder: pathlib.Path, nodes: int, options: dict[int, list[str]]):
        super().__init__(folder, 0, free_port())
        self.options, self.backend = options, Backend()
        self.authority = f"{example.AUTHORITY}:{self.port}"
        self.nodes = [ChaosNode(self, number) for number in range(nodes)]
        # The servers that are written to.
        self.database, self.guard = "primary", "primary"
        self.key: ReleaseKey | None = None

    def start(self) -> None:
        self.start_postgres()
        # A commit waits for the standby, which is to come back soon after the primary did.
        self.sql("standby", "ALTER SYSTEM SET wal_retrieve_retry_interval = '500ms'")
        self.sql("standby", "SELECT pg_reload_conf()")
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
    process.wait(10)
    assert process.returncode == -signal.SIGKILL, process.returncode
    return f"ended by signal {-process.returncode}"


def state(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def signed_now(key: ReleaseKey, method: str, target: str, body: bytes = b"", **options) -> bytes:
    return key.request(method, target, body, created=int(time.time()) + AHEAD, **options)


class Client(threading.Thread):
    """Sends to each node on a connection of its own, until it is told to stop."""

    def __init__(self, run: "Run", number: int):
        super().__init__(daemon=True)
        self.run_, self.cluster, self.history, self.number = run, run.cluster, run.history, number
        self.random = random.Random(f"{run.seed} {type(self).__name__} {number}")
        self.connections: dict[str, Connection] = {}
        self.failure: BaseException | None = None
        # Whether a node was away in this round, or could not say.
        self.is_refused = False

    def run(self) -> None:
        try:
            while not self.run_.is_over.is_set():
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
                self.connections[node.name] = Connection(node.port, self.run_.context, PATIENCE)
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
        self.run_.is_over.wait(self.random.uniform(0, most))

    # Sessions

    def log_in(self, account: str, nodes: list[ChaosNode]) -> list[str]:
        """At all of them at once; the tokens."""
        body = json.dumps({"account": account, "password": f"password of {account}", "device": DEVICE}).encode()
        requests = [(node, signed_now(self.cluster.key, "POST", f"{PREFIX}/login/password", body, fields=[("content-type", "application/json")]))
                    for node in nodes]
        tokens = []
        for node, begun, word, answer in self.send(requests):
            token = json.loads(answer.body)["token"] if word == OK else ""
            self.history.add("login", session_of(token), node.name, begun, word, account=account)
            tokens += [token] if token else []
        return tokens

    def use(self, token: str, nodes: list[ChaosNode]) -> None:
        fields = [("authorization", f"Bearer {token}")]
        for node, begun, word, _ in self.send([(node, signed_now(self.cluster.key, "GET", "/session", fields=fields)) for node in nodes]):
            self.history.add("use", session_of(token), node.name, begun, word)

    def log_out(self, token: str, node: ChaosNode) -> None:
        request = signed_now(self.cluster.key, "POST", f"{PREFIX}/logout", fields=[("authorization", f"Bearer {token}")])
        for _, begun, word, _ in self.send([(node, request)]):
            self.history.add("end", session_of(token), node.name, begun, word)

    def command(self, kind: str, subject: str, node: ChaosNode, *arguments: str, audit: str = "", stdin: str = "") -> str | None:
        """An administrator's command with a node's data folder and links; what it prints, or nil if it failed. The subject is the one that is
        named, or the release's that it prints."""
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

    def __init__(self, run: "Run", number: int):
        super().__init__(run, number)
        self.former: collections.deque[tuple[float, str, bytes]] = collections.deque()

    def round(self) -> None:
        name = f"/request-{self.number}-{secrets.token_hex(6)}"
        request = signed_now(self.cluster.key, "POST", name, b"1")
        self.record(name, request, self.nodes())
        self.former.append((time.monotonic(), name, request))
        while time.monotonic() - self.former[0][0] > REPLAYED_FOR:
            self.former.popleft()
        _, name, request = self.random.choice(self.former)
        self.record(name, request, self.nodes(1))
        # A recent one, which a failover may have forgotten.
        _, name, request = self.former[-min(len(self.former), self.random.randint(1, 20))]
        self.record(name, request, self.nodes(1))
        self.pause()

    def record(self, name: str, request: bytes, nodes: list[ChaosNode]) -> None:
        for node, begun, word, _ in self.send([(node, request) for node in nodes]):
            self.history.add("request", name, node.name, begun, word)


class Keyed(Client):
    """Requests with one Idempotency-Key, each signed by itself."""

    def __init__(self, run: "Run", number: int):
        super().__init__(run, number)
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
        for node, begun, word, _ in self.send([(node, signed_now(key, "GET", "/")) for node in self.nodes()]):
            self.history.add("use-release", key.key_id, node.name, begun, word)


class Prober(Client):
    """Asks a node for a login, to see whether it is back."""

    def logs_in(self, node: ChaosNode) -> bool:
        return bool(self.log_in("prober", [node]))

    def logs_in_and_out(self, node: ChaosNode) -> None:
        for token in self.log_in("prober", [node]):
            self.log_out(token, node)


# Faults. Each is a function of the run and of seconds, which injects it, waits and heals it, and returns what shows that it happened.

FAULTS: dict[str, Callable[["Run", float], str]] = {}


def fault(name: str):
    def add(function):
        FAULTS[name] = function
        return function
    return add


@fault("kill-node")
def kill_node(run: "Run", seconds: float) -> str:
    node = run.random.choice(run.cluster.nodes)
    shown = kill(node.process)
    time.sleep(min(seconds, 3))
    node.start()
    return f"{node.name} {shown}"


def started(run: "Run") -> str:
    return run.cluster.sql(run.cluster.database, "SELECT pg_postmaster_start_time()")


@fault("restart-postgres")
def restart_postgres(run: "Run", seconds: float) -> str:
    cluster, before = run.cluster, started(run)
    shown = kill(cluster.processes[f"postgres-{cluster.database}"])
    time.sleep(min(seconds, 3))
    cluster.begin_postgres(cluster.database)
    assert started(run) != before
    return f"PostgreSQL ({cluster.database}) {shown}; started at {before}, and again at {started(run)}"


@fault("promote-standby")
def promote_standby(run: "Run", seconds: float) -> str:
    cluster = run.cluster
    assert cluster.sql("standby", "SELECT pg_is_in_recovery()") == "t"
    shown = kill(cluster.processes["postgres-primary"])
    cluster.promote()
    cluster.database = "standby"
    for node in cluster.nodes:
        node.database.turn_to(cluster.postgres_ports["standby"])
    assert cluster.sql("standby", "SELECT pg_is_in_recovery()") == "f"
    return f"the primary {shown}; pg_is_in_recovery() of the standby was t and is f"


def info(run: "Run", name: str, section: str, field: str) -> str:
    found = re.search(rf"^{field}:(\S+)", run.cluster.redis(name, "INFO", section), re.M)
    return found[1] if found else ""


def other(name: str) -> str:
    return "replica" if name == "primary" else "primary"


def begin_redis(run: "Run", name: str, *options: str) -> None:
    cluster = run.cluster
    cluster.begin(f"redis-{name}", "redis-server", cluster.folder / f"redis-{name}/redis.conf", *options)
    example.wait_until(lambda: "connected_slaves:1" in cluster.redis(cluster.guard, "INFO", "replication"), "Redis's replica", 20)


def replica_of(run: "Run", name: str) -> list[str]:
    """The roles that the servers have now, whatever their files say."""
    return ["--replicaof", "127.0.0.1", str(run.cluster.redis_ports[run.cluster.guard])] if name != run.cluster.guard else [
        "--replicaof", "no", "one"]


@fault("flush-redis")
def flush_redis(run: "Run", seconds: float) -> str:
    cluster = run.cluster
    before = int(cluster.redis(cluster.guard, "DBSIZE"))
    done = cluster.redis(cluster.guard, "EVAL", "redis.call('FLUSHALL') return redis.call('DBSIZE')", "0")
    assert before > int(done) == 0, (before, done)
    return f"Redis had {before} keys, and {int(done)} after FLUSHALL"


@fault("restart-redis")
def restart_redis(run: "Run", seconds: float) -> str:
    cluster = run.cluster
    before = info(run, cluster.guard, "server", "run_id")
    shown = kill(cluster.processes[f"redis-{cluster.guard}"])
    time.sleep(min(seconds, 3))
    begin_redis(run, cluster.guard, *replica_of(run, cluster.guard))
    after = info(run, cluster.guard, "server", "run_id")
    assert after and after != before
    return f"Redis ({cluster.guard}) {shown}; its run_id was {before[:8]} and is {after[:8]}"


@fault("promote-replica")
def promote_replica(run: "Run", seconds: float) -> str:
    cluster = run.cluster
    former, guard = cluster.guard, other(cluster.guard)
    assert info(run, guard, "replication", "role") == "slave"
    shown = kill(cluster.processes[f"redis-{former}"])
    cluster.redis(guard, "REPLICAOF", "NO", "ONE")
    assert info(run, guard, "replication", "role") == "master"
    cluster.guard = guard
    begin_redis(run, former, *replica_of(run, former))
    return f"Redis ({former}) {shown}; the role of the {guard} was slave and is master"


@fault("stop")
def stop(run: "Run", seconds: float) -> str:
    """Any of the processes."""
    name = run.random.choice(sorted(run.cluster.processes))
    pids = family(run.cluster.processes[name])
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        example.wait_until(lambda: state(pids[0]) == "T", f"{name} to stop", 5)
        time.sleep(seconds)
        assert state(pids[0]) == "T"
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    return f"{name} was in state T for {seconds:.1f} s"


def link_fault(mode: str) -> Callable[["Run", float], str]:
    def break_link(run: "Run", seconds: float) -> str:
        node, what = run.random.choice(run.cluster.nodes), run.random.choice(["PostgreSQL", "Redis"])
        links = [node.database] if what == "PostgreSQL" else node.redis
        for link in links:
            link.set(mode, run.random.uniform(0.05, 1.0))
        time.sleep(max(seconds, 0.5))
        touched = sum(link.touched for link in links)
        for link in links:
            link.set("pass")
        assert touched > 0, f"{mode} of the link {node.name} to {what} touched nothing"
        what_of = "connections" if mode in ("cut", "half-close") else "pieces"
        return f"{touched} {what_of} between {node.name} and {what} in {max(seconds, 0.5):.1f} s"
    return break_link


for mode in ("cut", "delay", "half-close", "hold"):
    FAULTS[f"{mode}-link"] = link_fault(mode)

# After these, Redis may have forgotten requests, and the floor is raised. A stopped or unreachable Redis forgets nothing.
LOSSES = {"flush-redis", "restart-redis", "promote-replica"}


def forget_unnoticed(run: "Run", seconds: float) -> str:
    """A planted fault: the entries go, the markers of the epoch stay, so that no node raises the floor."""
    cluster = run.cluster
    before = int(cluster.redis(cluster.guard, "DBSIZE"))
    done = cluster.redis(cluster.guard, "EVAL", """local kept = redis.call('KEYS', '*:epoch') local values = redis.call('MGET', unpack(kept))
        redis.call('FLUSHALL') for index, name in ipairs(kept) do redis.call('SET', name, values[index]) end return redis.call('DBSIZE')""", "0")
    assert before > int(done) > 0, (before, done)
    return f"Redis had {before} keys, and {int(done)}, the markers, after FLUSHALL"


class Run:
    """One cluster, its clients, and faults one after the other."""

    def __init__(self, seed: object, seconds: float, *, faults: list[str | Callable] | None = None, nodes: int = 3,
                 options: dict[int, list[str]] | None = None, note: Callable[[str], None] = print, most_stop: float = 20):
        self.seed, self.seconds, self.faults, self.note, self.most_stop = seed, seconds, faults, note, most_stop
        self.random = random.Random(f"{seed}")
        self.history, self.is_over = History(), threading.Event()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cs-chaos-", dir="/tmp"))
        # PostgreSQL's user goes through it.
        self.folder.chmod(0o755)
        self.cluster = ChaosCluster(self.folder, nodes, options or {})
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        # Until when signatures are refused by design.
        self.floor = 0.0

    def check(self) -> list[Violation]:
        """The whole run."""
        try:
            self.cluster.start()
            clients: list[Client] = [Replayer(self, 0), Keyed(self, 0), User(self, 0), User(self, 1), Administrator(self, 0)]
            for name in ("user-0", "user-1", "prober"):
                self.cluster.add_account(name)
            self.prober = Prober(self, 0)
            for number in range(QUIET_LOGOUTS):
                self.prober.logs_in_and_out(self.cluster.nodes[number % len(self.cluster.nodes)])
            self.history.quiet_until = time.monotonic()
            for client in clients:
                client.start()
            try:
                self.inject()
                # The clients see the deployment without a fault, too, past what is refused by design.
                time.sleep(max(2.0, self.floor - time.monotonic() + 2 if self.floor else 0))
            finally:
                self.is_over.set()
                for client in clients:
                    client.join(70)
            for client in clients:
                if client.failure:
                    raise client.failure
                assert not client.is_alive(), client
            self.history.final = self.final()
            for seen in self.cluster.backend.seen:
                self.history.forwarded[seen.target] += 1
            return violations(self.history)
        finally:
            self.is_over.set()
            self.cluster.stop()
            shutil.rmtree(self.folder, ignore_errors=True)

    def inject(self) -> None:
        end, planned = time.monotonic() + self.seconds, list(self.faults) if self.faults is not None else None
        time.sleep(2)
        has_promoted = False
        while (planned if planned is not None else time.monotonic() < end):
            names = [name for name in FAULTS if not (has_promoted and name == "promote-standby")]
            chosen = planned.pop(0) if planned else self.random.choice(names)
            has_promoted |= chosen == "promote-standby"
            # Short ones are as likely as long ones.
            seconds = 0.1 * (self.most_stop / 0.1) ** self.random.random()
            self.suffer(chosen, seconds)
            time.sleep(self.random.uniform(0, 1))
        time.sleep(max(0, end - time.monotonic()))

    def suffer(self, chosen: str | Callable, seconds: float) -> None:
        name = chosen if isinstance(chosen, str) else chosen.__name__
        epoch = max(node.epoch() for node in self.cluster.nodes)
        happened = Fault(name, time.monotonic())
        self.history.faults.append(happened)
        happened.shown = (FAULTS[chosen] if isinstance(chosen, str) else chosen)(self, seconds)
        happened.healed = time.monotonic()
        names = [node.name for node in self.cluster.nodes]
        happened.ready, happened.accepted = dict.fromkeys(names), dict.fromkeys(names)

        def is_raised(node: ChaosNode) -> bool:
            return node.epoch() > epoch

        # A node is not back as long as it has not found the loss.
        self.watch(happened.ready, lambda node: node.is_ready() and (name not in LOSSES or is_raised(node)), happened.healed + 2 * RECOVERY)
        is_floor_raised = False
        for _ in range(2):
            if not is_floor_raised and any(map(is_raised, self.cluster.nodes)):
                is_floor_raised, self.floor = True, time.monotonic() + FLOOR
            happened.refused_by_design = max(0.0, self.floor - happened.healed)
            self.watch(happened.accepted, self.prober.logs_in, happened.healed + happened.refused_by_design + RECOVERY)
        slowest = [max((moment or float("inf")) - happened.healed for moment in times.values()) for times in (happened.ready, happened.accepted)]
        self.note(f"  {name}: {happened.shown}; ready after {slowest[0]:.1f} s, logins after {slowest[1]:.1f} s"
                  + (", floor raised" if is_floor_raised else ""))

    def watch(self, times: dict[str, float | None], is_back: Callable[[ChaosNode], bool], end: float) -> None:
        while None in times.values() and time.monotonic() < end:
            for node in self.cluster.nodes:
                if times[node.name] is None and is_back(node):
                    times[node.name] = time.monotonic()
            time.sleep(0.05)

    def final(self) -> Final:
        first = self.cluster.nodes[0]

        def listed(*arguments: str) -> dict:
            return json.loads(first.command(*arguments, "--json"))

        records = listed("audit", "list", "--last", "100000")["records"]
        return Final(
            accounts={each["account"] for each in listed("account", "list", "demo", "--limit", "100000")["accounts"]},
            releases={each["key_id"]: each["retired_at"] is not None for each in listed("release", "list", "demo")["releases"]},
            sessions={each["session"] for each in listed("session", "list", "demo", "--limit", "100000")["sessions"]},
            audit={(record["action"], value) for record in records for value in record.values() if isinstance(value, str)},
            audit_findings=listed("audit", "verify")["findings"])

    def summary(self) -> str:
        counts = ", ".join(f"{kind} {count}" for kind, count in self.history.counts().items())
        return f"accepted of sent: {counts}; the backend saw {sum(self.history.forwarded.values())}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="script/chaos", description="Runs clusters with random faults, and checks their histories.")
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="clusters, one after the other (10)")
    parser.add_argument("--seed", default=None, metavar="S", help="of the first run; the others' follow from it (default: a new one, printed)")
    parser.add_argument("--seconds", type=float, default=40, metavar="T", help="of faults in a run (40)")
    parser.add_argument("--nodes", type=int, default=3, choices=range(2, 10), metavar="N", help="2 to 9 (3)")
    parser.add_argument("--faults", default=None, metavar="NAME,…", help=f"only these, in this order: {', '.join(FAULTS)}")
    options = parser.parse_args()
    faults = options.faults.split(",") if options.faults else None
    for name in faults or []:
        if name not in FAULTS:
            parser.error(f"--faults {name}: expected some of {', '.join(FAULTS)}")
    seed = options.seed or secrets.token_hex(4)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    violated = suffered = 0
    for number in range(options.runs):
        # A run is repeated by its own seed: --runs 1 --seed S.
        own = seed if number == 0 else f"{seed}.{number}"
        begun = time.monotonic()
        print(f"run {number + 1} of {options.runs}, seed {own}", flush=True)
        run = Run(own, options.seconds, faults=faults, nodes=options.nodes, note=lambda text: print(text, flush=True))
        found = run.check()
        suffered += len(run.history.faults)
        print(f"  {run.summary()}; {time.monotonic() - begun:.0f} s", flush=True)
        for violation in found:
            print(f"  VIOLATION {violation}", flush=True)
        violated += bool(found)
    print(f"{options.runs} runs, {suffered} faults, {violated} runs with violations", flush=True)
    return 1 if violated else 0


if __name__ == "__main__":
    sys.exit(main())
