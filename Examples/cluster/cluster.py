#!/usr/bin/env python3
"""Three gateways over PostgreSQL and Redis on one machine, from Debian's packages: PostgreSQL with a synchronous standby, Redis with
two replicas, and haproxy in front of all. Everything is in one new folder and on loopback; Ctrl-C ends it, and removes the folder unless it
was named by --folder.

Usage: cluster.py [--folder DIR] [--port N] [--nodes N] [--demo | --check]

  --demo   signs an account in at each node, revokes its sessions at one, and shows that each node refuses them; then goes on
  --check  the same, and then ends: status 0 if each node refused

Needs: haproxy, postgresql-15, redis-server, and the program, .build/release/countersign or $COUNTERSIGN. As root, PostgreSQL runs as the
user `postgres`."""

import argparse
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("COUNTERSIGN", str(ROOT / ".build/release/countersign"))
USER, DATABASE = "countersign", "countersign"
# The name in the gateways' certificate and in each request, whatever node it reaches.
AUTHORITY = "localhost"
# Starts each process; a test that imports this file has an owner for them.
launch = subprocess.Popen


def free_port() -> int:
    """Below the ports that outgoing connections are given, which may take one before its server listens."""
    for _ in range(200):
        port = secrets.choice(range(12_000, 32_000))
        with socket.socket() as sock:
            # Like a server's, so that a port counts as free whose last connections have just ended.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    return fail("found no free port between 12000 and 32000")


def fail(message: str) -> None:
    raise SystemExit(f"cluster: {message}")


def run(*command: object, stdin: str = "", environment: dict | None = None, folder: pathlib.Path | None = None) -> str:
    """Runs a command to its end, and returns what it prints."""
    done = subprocess.run([*map(str, command)], input=stdin, text=True, capture_output=True, check=False, cwd=folder,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        fail(f"{pathlib.Path(command[0]).name}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Cluster:
    """The processes; each is ended by its id."""

    def __init__(self, folder: pathlib.Path, nodes: int, port: int):
        self.folder, self.port = folder, port
        self.processes: dict[str, subprocess.Popen] = {}
        self.password = secrets.token_hex(16)
        self.postgres_ports = {"primary": free_port(), "standby": free_port()}
        # With two replicas, one Redis server may be lost: the primary takes writes while it has one of them.
        self.redis_ports = {"primary": free_port(), "replica": free_port(), "replica-2": free_port()}
        self.database_port = free_port()
        self.nodes = [Node(self, number) for number in range(nodes)]
        self.as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        self.postgres_bin = found[-1] if found else fail("expected PostgreSQL's programs in /usr/lib/postgresql (Debian: postgresql-15)")
        for name in ("haproxy", "redis-server", "redis-cli"):
            shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") or fail(f"expected the program {name} (Debian: haproxy, redis-server)")
        pathlib.Path(PROGRAM).exists() or fail(f"expected {PROGRAM}; build it first, or name another one by COUNTERSIGN")

    # The database

    @property
    def store(self) -> str:
        """By way of haproxy, which knows which server is there."""
        return f"postgres://{USER}:{self.password}@127.0.0.1:{self.database_port}/{DATABASE}"

    def start_postgres(self) -> None:
        home = self.folder / "postgres"
        home.mkdir()
        password = home / "password"
        password.touch(mode=0o600)
        password.write_text(self.password + "\n")
        if self.as_postgres:
            for path in (home, password):
                shutil.chown(path, "postgres", "postgres")
            if subprocess.run([*self.as_postgres, "test", "-r", str(password)], check=False).returncode != 0:
                fail(f"the user postgres cannot reach {home}; expected a --folder that others may pass through")
        primary, standby = home / "primary", home / "standby"
        self.postgres_program("initdb", "-D", primary, "-U", USER, "-E", "UTF8", "--locale=C", "--auth-local=trust",
                              "--auth-host=scram-sha-256", f"--pwfile={password}")
        password.unlink()
        self.begin_postgres("primary")
        self.sql("primary", f"CREATE DATABASE {DATABASE}", database="postgres")
        self.postgres_program("pg_basebackup", "-D", standby, "-R", "-C", "-S", "standby", "-X", "stream", "-c", "fast", "-d",
                              f"host={home} port={self.postgres_ports['primary']} user={USER} application_name=standby")
        self.begin_postgres("standby")
        # A commit is acknowledged when both have it: a promoted standby lacks nothing that a gateway has told anyone.
        self.sql("primary", "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (standby)'")
        self.sql("primary", "SELECT pg_reload_conf()")
        wait_until(lambda: self.sql("primary", "SELECT sync_state FROM pg_stat_replication") == "sync", "a synchronous standby", 20)

    def postgres_program(self, name: str, *arguments: object) -> str:
        return run(*self.as_postgres, self.postgres_bin / name, *arguments, folder=self.folder / "postgres")

    def begin_postgres(self, name: str) -> None:
        home = self.folder / "postgres"
        self.begin(f"postgres-{name}", *self.as_postgres, self.postgres_bin / "postgres", "-D", home / name, "-k", home,
                   "-p", self.postgres_ports[name], "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=100", folder=home)
        wait_until(lambda: self.postgres_answers(name), f"PostgreSQL ({name})", 20)

    def postgres_answers(self, name: str) -> bool:
        done = subprocess.run([*self.as_postgres, str(self.postgres_bin / "pg_isready"), "-q", "-h", str(self.folder / "postgres"), "-p",
                               str(self.postgres_ports[name])], check=False, cwd=self.folder / "postgres")
        return done.returncode == 0

    def sql(self, name: str, text: str, database: str = DATABASE) -> str:
        return self.postgres_program("psql", "-h", self.folder / "postgres", "-p", self.postgres_ports[name], "-U", USER, "-d",
                                     "postgres" if "SYSTEM" in text else database, "-XAtq", "-c", text).strip()

    def promote(self) -> None:
        """Makes the standby the server that is written to. The former one must be dead, and must not start again as it is."""
        self.sql("standby", "ALTER SYSTEM SET synchronous_standby_names = ''")
        self.postgres_program("pg_ctl", "promote", "-D", self.folder / "postgres/standby", "-w")

    # The replay guard

    @property
    def replay(self) -> str:
        """The gateways look for the one that is written to."""
        places = ",".join(f"127.0.0.1:{port}" for port in self.redis_ports.values())
        return f"redis://:{self.password}@{places}"

    def start_redis(self) -> None:
        for name, port in self.redis_ports.items():
            home = self.folder / f"redis-{name}"
            home.mkdir()
            (home / "redis.conf").touch(mode=0o600)
            (home / "redis.conf").write_text("\n".join([
                "bind 127.0.0.1", f"port {port}", f"dir {home}", f"requirepass {self.password}", f"masterauth {self.password}",
                # Nothing is forgotten while it counts, and each write is on the disk within a second.
                "maxmemory-policy noeviction", "appendonly yes", "appendfsync everysec",
                # Without a replica a primary takes no writes: one that was cut off admits nothing.
                "min-replicas-to-write 1", "min-replicas-max-lag 10", "repl-diskless-sync-delay 0",
                *([f"replicaof 127.0.0.1 {self.redis_ports['primary']}"] if name != "primary" else []), ""]))
            self.begin(f"redis-{name}", "redis-server", home / "redis.conf")
        wait_until(lambda: f"connected_slaves:{len(self.redis_ports) - 1}" in self.redis("primary", "INFO", "replication"), "Redis's replicas", 20)

    def promote_redis(self, name: str) -> None:
        """Makes a replica the server that is written to, and has the other replicas follow it. The former one must be dead."""
        self.redis(name, "REPLICAOF", "NO", "ONE")
        for other in self.redis_ports:
            if other != name and f"redis-{other}" in self.processes and self.processes[f"redis-{other}"].poll() is None:
                self.redis(other, "REPLICAOF", "127.0.0.1", str(self.redis_ports[name]))

    def redis(self, name: str, *command: str) -> str:
        done = subprocess.run(["redis-cli", "-h", "127.0.0.1", "-p", str(self.redis_ports[name]), "--no-auth-warning", *command],
                              text=True, capture_output=True, check=False, env={**os.environ, "REDISCLI_AUTH": self.password})
        return done.stdout

    # The gateways, and what is in front

    def start_nodes(self) -> None:
        first = self.nodes[0]
        first.command("app", "add", "demo", "--require", "signed")
        first.command("app", "policy", "demo", "--set", "registration=open", "--set", "slots=unlimited")
        first.command("route", "set", "demo", "/hello", "--require", "session")
        first.start()
        for node in self.nodes[1:]:
            # The nodes are one deployment: the master key is the same, and so is the certificate.
            node.data.mkdir(mode=0o700)
            shutil.copy2(first.data / "master.key", node.data)
            shutil.copytree(first.data / "tls", node.data / "tls")
            node.start()

    def start_haproxy(self) -> None:
        """Before the gateways, which reach the database by way of it."""
        lines = [
            "global", "    maxconn 4096", "defaults", "    mode tcp", "    timeout connect 1s", "    timeout client 1h",
            "    timeout server 1h", "    timeout check 1s",
            # TLS goes through, so that only gateways see requests. A node that is not ready gets none, and a client
            # may reach another node with each connection.
            "listen gateways", f"    bind 127.0.0.1:{self.port}", "    balance roundrobin", "    option httpchk",
            "    http-check send meth GET uri /ready ver HTTP/1.1 hdr Host 127.0.0.1",
            *(f"    server {node.name} 127.0.0.1:{node.port} check port {node.admin_port} inter 500ms fall 2 rise 1" for node in self.nodes),
            # The standby is used once the primary is gone, and the primary not again until haproxy is started anew.
            "listen database", f"    bind 127.0.0.1:{self.database_port}", "    option tcp-check",
            "    stick-table type integer size 1 nopurge", "    stick on int(1)",
            f"    server primary 127.0.0.1:{self.postgres_ports['primary']} check inter 500ms on-marked-down shutdown-sessions",
            f"    server standby 127.0.0.1:{self.postgres_ports['standby']} check inter 500ms backup", ""]
        path = self.folder / "haproxy.cfg"
        path.write_text("\n".join(lines))
        haproxy = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
        self.begin("haproxy", haproxy, "-q", "-db", "-f", path)
        wait_until(lambda: is_open(self.database_port), "haproxy", 10)

    # Processes

    def begin(self, name: str, *command: object, environment: dict | None = None, folder: pathlib.Path | None = None) -> subprocess.Popen:
        with (self.folder / f"{name}.log").open("ab") as log:
            # In a session of its own, so that Ctrl-C ends them in order.
            self.processes[name] = launch([*map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder,
                                          env={**os.environ, **(environment or {})}, start_new_session=True)
        return self.processes[name]

    def start(self) -> None:
        self.start_postgres()
        self.start_redis()
        self.start_haproxy()
        self.start_nodes()
        wait_until(lambda: speaks_tls(self.port), "haproxy to find the nodes ready", 20)

    def stop(self) -> None:
        """Those first that need others; of the databases, the primary before the standby that it waits for."""
        def rank(name: str) -> int:
            return next(index for index, start in enumerate(("node", "haproxy", "redis", "postgres")) if name.startswith(start))

        for name, process in self.processes.items():
            # The second signal, below, ends the delay.
            if name.startswith("node") and process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for name in sorted(self.processes, key=rank):
            self.end(name)

    def end(self, name: str) -> None:
        process = self.processes.pop(name)
        if process.poll() is None:
            # PostgreSQL's fast shutdown.
            process.send_signal(signal.SIGINT if name.startswith("postgres") else signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Node:
    def __init__(self, cluster: Cluster, number: int):
        self.cluster, self.name = cluster, f"node-{number + 1}"
        self.port, self.admin_port = free_port(), free_port()
        self.data = cluster.folder / self.name

    @property
    def environment(self) -> dict:
        return {"COUNTERSIGN_STORE": self.cluster.store, "COUNTERSIGN_DATA": str(self.data), "COUNTERSIGN_REPLAY": self.cluster.replay}

    def command(self, *arguments: object, stdin: str = "") -> str:
        return run(PROGRAM, *arguments, stdin=stdin, environment=self.environment)

    def start(self) -> None:
        self.cluster.begin(self.name, PROGRAM, "serve", "--listen", f"127.0.0.1:{self.port}", "--admin", f"127.0.0.1:{self.admin_port}",
                           "--authority", f"{AUTHORITY}:{self.cluster.port},{AUTHORITY}:{self.port}",
                           # Longer than haproxy takes to find out that the node is not ready.
                           "--drain-delay", 3,
                           environment=self.environment)
        wait_until(self.is_ready, f"{self.name}; its log is {self.cluster.folder / self.name}.log", 30)

    def is_ready(self) -> bool:
        if self.cluster.processes[self.name].poll() is not None:
            fail((self.cluster.folder / f"{self.name}.log").read_text()[-2000:])
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/ready", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False


def is_open(port: int) -> bool:
    with socket.socket() as sock:
        sock.settimeout(1)
        return sock.connect_ex(("127.0.0.1", port)) == 0


def speaks_tls(port: int) -> bool:
    """Whether haproxy has a node for a connection."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(("127.0.0.1", port), 2) as sock, context.wrap_socket(sock):
            return True
    except OSError:
        return False


def wait_until(is_so, what: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        time.monotonic() < end or fail(f"waited {seconds} s for {what}")
        time.sleep(0.05)


def demonstrate(cluster: Cluster) -> bool:
    """An account signs in at each node, and its sessions are revoked at the last one; whether each node refuses its own then."""
    release = json.loads(cluster.nodes[0].command("release", "add", "demo", "--platform", "ios", "--version", "1.0", "--json"))
    password = "correct horse battery staple\n"

    def profile(name: str, port: int) -> str:
        path = str(cluster.folder / name)
        run(PROGRAM, "profile", "add", path, "--url", f"https://{AUTHORITY}:{port}", "--key-id", release["key_id"], "--secret-stdin",
            "--authority-key", release["authority_key"], "--ca", cluster.nodes[0].data / "tls/certificate.pem", stdin=release["secret"])
        return path

    run(PROGRAM, "signup", "--profile", profile("phone", cluster.port), "--account", "alice", "--password-stdin", stdin=password)
    print("alice has signed up by way of haproxy", flush=True)
    phones = [profile(f"phone-{node.name}", node.port) for node in cluster.nodes]
    for node, phone in zip(cluster.nodes, phones, strict=True):
        run(PROGRAM, "login", "--profile", phone, "--account", "alice", "--password-stdin", stdin=password)
        if call(phone).returncode:
            fail(f"{node.name} is ready, and does not accept a request")
        print(f"  {node.name} has opened a session, and accepts its requests", flush=True)
    last = cluster.nodes[-1]
    for session in json.loads(last.command("session", "list", "demo", "--json"))["sessions"]:
        last.command("session", "revoke", session["session"])
    print(f"the sessions were revoked at {last.name}", flush=True)
    refused = 0
    for node, phone in zip(cluster.nodes, phones, strict=True):
        done = call(phone)
        refused += done.returncode == 1 and "the session has ended: revoked" in done.stderr
        print(f"  {node.name}: {done.stderr.strip().splitlines()[0] if done.stderr else done.stdout.strip()}", flush=True)
    return refused == len(cluster.nodes)


def call(profile: str) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, "request", "--profile", profile, "/hello"], text=True, capture_output=True, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, help="a new folder that is kept; without it, one that is removed at the end")
    parser.add_argument("--port", type=int, default=9443, help="where haproxy takes requests (9443)")
    parser.add_argument("--nodes", type=int, default=3, choices=range(1, 10), metavar="N", help="1 to 9 (3)")
    parser.add_argument("--demo", action="store_true", help="sign in at each node, revoke at one, be refused at each; then go on")
    parser.add_argument("--check", action="store_true", help="the same, and end")
    options = parser.parse_args()
    if options.folder:
        options.folder.mkdir(parents=True)
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="countersign-cluster-"))
    # PostgreSQL's user goes through it.
    folder.chmod(0o755)
    cluster = Cluster(folder.resolve(), options.nodes, options.port)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        cluster.start()
        print(f"https://{AUTHORITY}:{options.port} is {options.nodes} nodes in {folder}", flush=True)
        for node in cluster.nodes:
            print(f"  {node.name}: https://{AUTHORITY}:{node.port}, admin http://127.0.0.1:{node.admin_port}", flush=True)
        was_refused = demonstrate(cluster) if options.demo or options.check else True
        if options.check:
            return 0 if was_refused else 1
        print("Ctrl-C ends them", flush=True)
        while True:
            for name, process in cluster.processes.items():
                if process.poll() is not None:
                    fail(f"{name} has ended; its log is {folder / name}.log")
            time.sleep(0.5)
    except KeyboardInterrupt:
        return 130
    finally:
        cluster.stop()
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
