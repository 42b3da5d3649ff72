"""The replay guard on Redis, with real servers: what one gateway admitted, no other one admits; what Redis loses is refused until the floor has
passed; and without Redis every request is refused, soon. Each test shows that its fault happened."""

import contextlib
import json
import signal
import socket
import subprocess
import threading
import time

import pytest

from authority import Authority
from clock import Clock
from gateway import Gateway, run
from needs import NO_SKIPS
from ports import reserve_port
from postgres import Postgres, programs
from redis import RedisServer, is_installed
from replay_nodes import Node, check_each_is_admitted_once, check_refusals, code, refused, several
from waiting import until

pytestmark = pytest.mark.skipif(not is_installed() and not NO_SKIPS, reason="no redis-server")

# Seconds of the default policy, and of refreshes.
WINDOW = 60
# What docs/operate/redis.md says that the gateway's user needs.
COMMANDS = ("+select", "+info", "+config|get", "+time", "+script|load", "+evalsha", "+get", "+set")


@pytest.fixture
def redis():
    with RedisServer() as server:
        yield server


@pytest.fixture
def node(redis, tmp_path):
    with Node(tmp_path / "node", redis.address) as gateway:
        gateway.add_app("demo")
        gateway.key = gateway.add_release()
        until(lambda: gateway.send(gateway.key.request()).status == 200)
        yield gateway


def test_a_replay_is_refused_before_and_after_a_restart(redis, node):
    request = node.key.request("POST", "/pay", b"1")
    before = redis.keys()
    assert node.send(request).status == 200
    assert redis.keys() == before + 1, "the entry is in Redis"
    assert refused(node.send(request)) == "replayed"
    assert node.get("/ready")[0] == 200 and node.metric("up") == 1 and node.metric("epoch") == 1
    node.stop()
    node.start()
    assert code(node, request) == "replayed"
    assert node.metric("floor_seconds") == 0, "nothing was lost"
    # Nothing of the request can be read in Redis.
    assert redis.keys(node.key.key_id) == 0 and redis.keys("epoch") == 256


def test_one_of_several_gateways_admits_a_request(tmp_path, redis, is_long):
    """Each over a data folder of its own, with one database and one Redis."""
    if programs() is None:
        pytest.skip("no postgres")
    database = Postgres()
    try:
        store = database.create("shared")
        with several(tmp_path, redis.address, store, store, store) as (nodes, key):
            check_each_is_admitted_once(nodes, key, rounds=10_000 if is_long else 300)
            # A loss that one of them finds is one for all.
            seen = key.request()
            assert nodes[0].send(seen).status == 200
            redis.call("FLUSHALL")
            for gateway in nodes:
                assert refused(gateway.send(seen)) == "unavailable"
            floors = {gateway.floor(after=1) for gateway in nodes}
            assert len(floors) == 1 and floors.pop() >= time.time() + WINDOW
            for gateway in nodes:
                assert refused(gateway.send(seen)) == "unavailable"
    finally:
        database.remove()


def test_what_was_lost_is_refused_until_the_floor_has_passed(redis, tmp_path):
    """Both clocks are the test's, so that the floor passes at once."""
    clock = Clock(tmp_path)
    with RedisServer(environment=clock.environment) as server, Node(tmp_path / "node", server.address, **clock.environment) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        seen = key.request(created=clock.now)
        until(lambda: gateway.send(key.request(created=clock.now)).status == 200)
        assert gateway.send(seen).status == 200
        assert server.keys() > 256
        server.call("FLUSHALL")
        assert server.keys() < 256, "the contents are gone"
        assert refused(gateway.send(seen)) == "unavailable"
        floor = gateway.floor(after=1)
        assert floor >= clock.now + WINDOW
        answer = gateway.send(key.request(created=clock.now))
        assert refused(answer) == "unavailable" and int(answer.get("retry-after")) >= WINDOW
        assert any("Redis lost its contents; epoch 2" in note for note in gateway.notes())
        # Redis' clock jumps, too: it may have dropped entries early, so that the floor rises by the time before.
        clock.jumps(floor - clock.now + 2)
        until(lambda: gateway.send(key.request(created=clock.now)).status == 200)
        later = key.request(created=clock.now)
        assert gateway.send(later).status == 200 and refused(gateway.send(later)) == "replayed"
        assert clock.now > floor and gateway.metric("floor_seconds") < clock.now


@pytest.mark.parametrize("keeps", [True, False], ids=["with an old snapshot", "with nothing"])
def test_a_restart_of_redis_is_a_loss(redis, node, keeps):
    seen = node.key.request()
    if keeps:
        redis.call("SAVE")
        before = redis.keys()
    assert node.send(seen).status == 200
    redis.kill()
    until(lambda: node.get("/ready")[0] == 503)

    def reasons() -> list[dict]:
        return json.loads(node.get("/ready")[1])["reasons"]

    # The loops' connections are lost a moment before the server is known to be away.
    until(lambda: "127.0.0.1" in reasons()[0]["detail"], reasons)
    assert [reason["cause"] for reason in reasons()] == ["replay"]
    redis.start()
    if keeps:
        assert redis.keys() == before, "the markers are there, and the last entry is not"
    assert refused(node.send(seen)) == "unavailable"
    assert node.floor(after=1) >= time.time() + WINDOW
    assert refused(node.send(seen)) == "unavailable"
    until(lambda: node.get("/ready")[0] == 200)
    # Ready, as no other gateway would do better; each place says that requests are refused, and until when.
    floor = node.floor()
    (warning,) = json.loads(node.get("/ready")[1])["warnings"]
    assert warning["cause"] == "replay" and "are refused, for " in warning["detail"]
    assert json.loads(node.admin("nodes", "--json").out)["replay_floor"] == floor
    assert "are refused, for " in node.admin("nodes").out
    done = run("doctor", "--data", node.data, "--listen", f"127.0.0.1:{node.port}", "--json", environment=node.environment)
    assert [finding["verdict"] for finding in json.loads(done.out)["findings"] if "are refused, for " in finding["message"]] == ["warning"]


@pytest.mark.parametrize("fault", ["kill", "stop"])
def test_without_redis_every_request_is_refused_soon(redis, node, fault):
    if fault == "kill":
        redis.kill()
        assert redis.process.poll() is not None
    else:
        redis.signal(signal.SIGSTOP)
        until(lambda: "T" in open(f"/proc/{redis.process.pid}/stat", encoding="ascii").read().split()[2])
    check_refusals(node, node.key)
    assert node.metric("refusals_total") >= 40
    until(lambda: node.metric("up") == 0)
    until(lambda: any("unavailable: " in note for note in node.notes()))
    if fault == "stop":
        redis.signal(signal.SIGCONT)
        until(lambda: node.send(node.key.request()).status == 200)
        assert node.metric("epoch") == 1, "nothing was lost"
    else:
        redis.start()
        assert node.floor(after=1) >= time.time() + WINDOW


def test_a_server_that_may_forget_is_refused_at_start(tmp_path):
    with RedisServer("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") as server:
        done = run("serve", "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--admin", "off", "--replay", server.address)
        assert done.returncode in (1, 3) and f"127.0.0.1:{server.port}" in done.err
        assert "`maxmemory-policy` is `allkeys-lru`; expected noeviction" in done.err, done.err


def test_a_full_server_is_unavailable_and_not_forgetful(redis, node):
    seen = node.key.request()
    assert node.send(seen).status == 200
    redis.call("CONFIG", "SET", "maxmemory", "1mb")
    answer = node.send(node.key.request())
    assert refused(answer) == "unavailable"
    until(lambda: any("OOM" in event.get("detail", "") for event in node.events()))
    until(lambda: node.metric("up") == 0)
    redis.call("CONFIG", "SET", "maxmemory", "0")
    until(lambda: node.send(node.key.request()).status == 200)
    assert refused(node.send(seen)) == "replayed"
    assert node.metric("epoch") == 1


class Link:
    """A proxy before Redis whose answers a test replaces. It passes that many connections on, or all, and holds the others."""

    def __init__(self, port: int, passing: int | None = None):
        self.target, self.replacement, self.replaced = port, None, 0
        self.passing, self.passed, self.held = passing, 0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                if self.passing is not None and self.passed >= self.passing:
                    self.held.append(client)
                    continue
                self.passed += 1
                server = socket.create_connection(("127.0.0.1", self.target))
                threading.Thread(target=self.copy, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self.copy, args=(server, client, True), daemon=True).start()

    def copy(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_answer and self.replacement is not None:
                    self.replaced += 1
                    data = self.replacement
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.mark.parametrize("answer", [b"\xff" * 100, b"+" + b"a" * 200_000, b"+OK\r\n" * 10_000, b"-READONLY no\r\n",
                                    b"$24\r\nrun_id:a\r\nrole:master\r\n\r\n", b""], ids=lambda answer: repr(answer[:16]))
def test_answers_that_are_none(redis, tmp_path, answer):
    """Nothing is admitted by them twice, nothing ends the gateway, and it goes on once they are right again."""
    with Link(redis.port) as link, Node(tmp_path / "node", f"redis://127.0.0.1:{link.port}") as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        seen = key.request()
        until(lambda: gateway.send(key.request()).status == 200)
        assert gateway.send(seen).status == 200
        link.replacement = answer
        for _ in range(3):
            gateway.send(key.request())
        until(lambda: link.replaced > 0 and gateway.metric("up") == 0)
        assert refused(gateway.send(seen)) == "unavailable"
        link.replacement = None
        assert code(gateway, seen) == "replayed"
        assert gateway.process.poll() is None and gateway.metric("epoch") == 1


def test_no_server_is_no_start(tmp_path):
    done = run("serve", "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--admin", "off", "--replay",
               f"redis://127.0.0.1:{reserve_port()}")
    assert done.returncode == 3 and "Redis at 127.0.0.1" in done.err


def test_tls_and_a_password(tmp_path):
    authority = Authority(tmp_path / "tls")
    certificate, key = authority.issue("redis")
    other = Authority(tmp_path / "other", "other")
    password = tmp_path / "password"
    password.write_text("a password: of-the-tests\n")
    password.chmod(0o600)
    port = reserve_port()
    with RedisServer("--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--tls-auth-clients", "no") as server:
        server.call("ACL", "SETUSER", "gateway", "on", ">a password: of-the-tests", "~cs:*", *COMMANDS)
        server.call("ACL", "SETUSER", "default", "off")
        place = f"rediss://gateway@localhost:{port}/3?passfile={password}"
        with Node(tmp_path / "node", f"{place}&cafile={authority.path}") as gateway:
            gateway.add_app("demo")
            key = gateway.add_release()
            request = key.request()
            until(lambda: gateway.send(key.request()).status == 200)
            assert gateway.send(request).status == 200 and refused(gateway.send(request)) == "replayed"
        for text, expected in [
            (f"{place}&cafile={other.path}", "TLS handshake failed"),
            (f"rediss://gateway:wrong@localhost:{port}?cafile={authority.path}", "AUTH: WRONGPASS"),
            (f"rediss://localhost:{port}?cafile={authority.path}", "NOAUTH"),
        ]:
            done = run("serve", "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--admin", "off", "--replay", text)
            assert done.returncode != 0 and expected in done.err and "wrong@" not in done.err, done.err


@pytest.mark.parametrize("text", ["redis://redis.example", "redis://h?password=sec%ret"])
def test_addresses_that_are_refused(text, tmp_path):
    done = run("serve", "--print-config", "--data", tmp_path, "--replay", text)
    assert done.returncode == 2 and "TLS" in done.err and "sec%ret" not in done.err


def test_the_password_is_not_printed(tmp_path):
    done = run("serve", "--print-config", "--data", tmp_path, "--replay", "redis://u:hunter2@localhost")
    assert done.returncode == 0 and "redis://u:***@localhost:6379" in done.out and "hunter2" not in done.out


def test_another_guard_before_and_after(redis, tmp_path):
    """A request that the file admitted is not admitted by Redis, and the other way round."""
    gateway = Gateway(tmp_path)
    with gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        first = key.request(created=int(time.time()) + WINDOW - 5)
        assert gateway.send(first).status == 200
        running = Gateway(tmp_path, environment={"COUNTERSIGN_REPLAY": redis.address})
        done = subprocess.run([*running.command("--takeover")], env={**running.environment, "PATH": "/usr/bin"}, capture_output=True, text=True,
                              timeout=60, check=False)
        assert done.returncode == 1 and "another replay guard" in done.stderr
    gateway.environment["COUNTERSIGN_REPLAY"] = redis.address
    with gateway:
        assert refused(gateway.send(first)) == "unavailable"
        done = run("replay", "status", "--data", gateway.data, environment=gateway.environment)
        assert done.returncode == 1 and "about the replay file" in done.err
        done = run("replay", "confirm-clock", "--data", gateway.data, environment=gateway.environment)
        assert done.returncode == 2 and "add --yes" in done.err
        done = run("replay", "confirm-clock", "--yes", "--json", "--data", gateway.data, environment=gateway.environment)
        assert done.returncode == 0 and json.loads(done.out)["confirmation"] == 1
        assert refused(gateway.send(first)) == "unavailable", "the guard's floor is its own"
    del gateway.environment["COUNTERSIGN_REPLAY"]
    with gateway:
        assert refused(gateway.send(key.request())) == "unavailable"
        assert "another replay file" in gateway.log_path.read_text()


def test_a_restart_without_an_outage(redis, node):
    seen = node.key.request()
    assert node.send(seen).status == 200
    old = node.process
    node.start("--takeover")
    assert code(node, seen) == "replayed"
    assert old.wait(60) == 0
    assert code(node, seen) == "replayed" and node.send(node.key.request()).status == 200
    assert node.metric("epoch") == 1


def test_a_gateway_is_ready_once_each_loop_has_its_connection(redis, tmp_path):
    """The link passes one connection on, which finds Redis usable, and holds those of the loops."""
    with Link(redis.port, passing=1) as link, Node(tmp_path / "node", f"redis://127.0.0.1:{link.port}") as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        until(lambda: gateway.metric("epoch") == 1)
        for _ in range(10):
            assert gateway.causes() == ["replay"]
        assert refused(gateway.send(key.request())) == "unavailable"
        link.passing = None
        until(lambda: gateway.get("/ready")[0] == 200)
        assert [gateway.send(key.request()).status for _ in range(12)] == [200] * 12
