"""Logins over three gateways and one real PostgreSQL: the two requests of each flow may reach different nodes, a finish counts once
wherever it is sent, and the limits on guesses hold over all nodes (docs/decisions/0075-logins-over-nodes.md)."""

import concurrent.futures
import contextlib
import itertools
import json
import re
import signal
import socket

import pytest

from backend import Backend, Seen
from bearer import DEVICE, PREFIX
from nodes import HOST, Cluster, Node, sent
from person import PASSWORD, Person
from postgres import Postgres, programs
from signing import ReleaseKey
from test_webhooks import Receiver
from waiting import until
from wire import Closed

pytestmark = pytest.mark.skipif(programs() is None, reason="no postgres")


class Balancer:
    """Sends each request to the next node, as a load balancer without stickiness does; `held` stops requests of these paths."""

    def __init__(self):
        self.nodes: list[Node] = []
        self.turns = itertools.count()
        self.seen: list[tuple[int, str]] = []
        self.held: dict[str, bytes] = {}
        self.holds: set[str] = set()
        self.proxy = Backend(self.relay)

    def relay(self, seen: Seen, sock: socket.socket) -> None:
        path = seen.target.removeprefix(PREFIX)
        if path in self.holds:
            self.held[path] = seen.body
            raise Closed
        live = [node for node in self.nodes if node.process.poll() is None]
        place = next(self.turns) % len(live)
        self.seen.append((live[place].port, path))
        head = "\r\n".join([f"{seen.method} {seen.target} HTTP/1.1", *(f"{name}: {value}" for name, value in seen.fields)])
        with socket.create_connection(("127.0.0.1", live[place].port)) as upstream:
            upstream.sendall(f"{head}\r\nConnection: close\r\n\r\n".encode() + seen.body)
            while chunk := upstream.recv(65536):
                sock.sendall(chunk)
        raise Closed

    def met(self, flow: str) -> list[int]:
        """The nodes that the last two requests of a flow reached."""
        return [port for port, path in self.seen if path in (f"/{flow}/start", f"/{flow}/finish")][-2:]


@contextlib.contextmanager
def balanced(folder, store: str, *more: str, nodes: int = 3):
    balancer = Balancer()
    with balancer.proxy:
        options = ("--tls", "off", "--authority", f"{HOST},127.0.0.1:{balancer.proxy.port}", *more)
        with Cluster(folder, store, *[options] * nodes, accounts=0) as cluster:
            balancer.nodes += cluster.nodes
            yield cluster, balancer


def test_the_two_requests_of_a_flow_reach_different_nodes(server, tmp_path):
    with balanced(tmp_path, server.create("flows")) as (cluster, balancer):
        person = Person(cluster.nodes[0], tmp_path / "phone", url=balancer.proxy.url)

        def differ(flow: str) -> bool:
            return len(set(balancer.met(flow))) == 2

        person.signs_up()
        assert differ("registration")
        for _ in range(3):
            person.logs_in()
            assert differ("login")
            assert person.run("request", "/").returncode == 0
        done = person.run("login", "--account", "nobody", "--password-stdin", stdin=f"{PASSWORD}\n")
        assert done.returncode != 0 and differ("login")
        done = person.run("password", "--password-stdin", stdin=f"{PASSWORD}\nanother one of mine\n")
        assert done.returncode == 0, done.err
        assert differ("password")
        code = json.loads(cluster.nodes[1].admin("account", "reset", "demo", person.name, "--json").out)["reset_code"]
        done = person.run("signup", "--account", person.name, "--reset-code-stdin", "--password-stdin", stdin=f"{code}\na third one of mine\n")
        assert done.returncode == 0, done.err
        assert differ("registration")
        person.logs_in(password="a third one of mine")


def test_a_login_outlives_the_node_that_began_it(server, tmp_path):
    with balanced(tmp_path, server.create("outlives"), "--outage", "grace:1") as (cluster, balancer):
        person = Person(cluster.nodes[0], tmp_path / "phone", url=balancer.proxy.url).signs_up()
        relay = balancer.proxy.answer

        def kills_the_first(seen: Seen, sock: socket.socket) -> None:
            if seen.target.endswith("/login/finish"):
                began = balancer.seen[-1][0]
                next(node for node in cluster.nodes if node.port == began).stop(signal.SIGKILL)
            relay(seen, sock)

        balancer.proxy.answer = kills_the_first
        person.logs_in()
        assert len([node for node in cluster.nodes if node.process.poll() is None]) == 2
        balancer.proxy.answer = relay
        assert person.run("request", "/").returncode == 0


def test_a_finish_at_two_nodes_at_once_opens_one_session(server, tmp_path, is_long):
    with balanced(tmp_path, server.create("once")) as (cluster, balancer):
        person = Person(cluster.nodes[0], tmp_path / "phone", url=balancer.proxy.url).signs_up()
        key = ReleaseKey(person.release["key_id"], person.release["secret"], HOST)
        for _ in range(50 if is_long else 8):
            balancer.holds = {"/login/finish"}
            assert person.run("login", "--account", person.name, "--password-stdin", stdin=f"{PASSWORD}\n").returncode != 0
            body = balancer.held["/login/finish"]

            def finished(node: Node):
                with node.connect() as line:
                    return sent(line, key.request("POST", f"{PREFIX}/login/finish", body, fields=[("content-type", "application/json")]))

            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                answers = list(pool.map(finished, cluster.nodes * 2))
            codes = sorted("ok" if answer.status == 200 else json.loads(answer.body)["code"] for answer in answers)
            assert codes == ["login-expired"] * 5 + ["ok"]
        balancer.holds = set()
        listing = json.loads(cluster.nodes[0].admin("session", "list", "demo", "--json").out)["sessions"]
        assert len(listing) == (50 if is_long else 8)


def test_a_login_is_forgotten_when_the_database_crashes(tmp_path):
    """What was begun ends as if its time were over, and the client begins again."""
    server = Postgres()
    try:
        with balanced(tmp_path, server.create("crash"), nodes=2) as (cluster, balancer):
            person = Person(cluster.nodes[0], tmp_path / "phone", url=balancer.proxy.url).signs_up()
            key = ReleaseKey(person.release["key_id"], person.release["secret"], HOST)
            balancer.holds = {"/login/finish"}
            assert person.run("login", "--account", person.name, "--password-stdin", stdin=f"{PASSWORD}\n").returncode != 0
            server.kill()
            server.start()
            balancer.holds = set()

            def finished() -> str:
                with cluster.nodes[1].connect() as line:
                    answer = sent(line, key.request("POST", f"{PREFIX}/login/finish", balancer.held["/login/finish"],
                                                    fields=[("content-type", "application/json")]))
                    return "ok" if answer.status == 200 else json.loads(answer.body)["code"]

            until(lambda: finished() != "unavailable", "no recovery")
            assert finished() == "login-expired"
            until(lambda: person.run("login", "--account", person.name, "--password-stdin",
                                     stdin=f"{PASSWORD}\n").returncode == 0, "no login")
    finally:
        server.remove()


# Limits over nodes.

FEW = ("--login-account", "6/600s")


def guessed(cluster: Cluster, node: Node, name: str, password: str = "wrong") -> str:
    body = json.dumps({"account": name, "password": password, "device": DEVICE}).encode()
    with node.connect() as line:
        answer = sent(line, cluster.key.request("POST", f"{PREFIX}/login/password", body, fields=[("content-type", "application/json")]))
    return "ok" if answer.status == 200 else json.loads(answer.body)["code"]


def tries(cluster: Cluster, nodes: list[Node], names: list[str]) -> int:
    """How many of forty guesses are tried, sent to the nodes in turn, some at the same time."""
    turns = [(nodes[number % len(nodes)], names[number % len(names)]) for number in range(40)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda turn: guessed(cluster, *turn), turns))
    assert set(codes) <= {"wrong-credentials", "too-many-attempts"}, codes
    return codes.count("wrong-credentials")


def test_three_nodes_give_no_more_tries_than_one(server, tmp_path):
    with Cluster(tmp_path, server.create("tries"), *[FEW] * 3, accounts=1) as cluster:
        assert tries(cluster, cluster.nodes, ["user-0"]) == 6
        # Names without an account count the same.
        assert tries(cluster, cluster.nodes, ["nobody"]) == 6
        assert guessed(cluster, cluster.nodes[-1], "user-0", "password of user-0") == "too-many-attempts"


def test_an_account_that_is_guessed_at_is_one_event(server, tmp_path):
    """Each node counts the logins that begin at it; the database decides which of them adds the event of this hour."""
    receiver = Receiver(tmp_path / "receiver")
    with Cluster(tmp_path, server.create("guessed"), (), (), accounts=1) as cluster:
        one, other = cluster.nodes
        made = one.admin("webhook", "add", receiver.url, "--ca", receiver.authority.path, "--allow-private", "--json")
        hook = json.loads(made.out)["id"]

        def guess(node: Node, count: int) -> None:
            for _ in range(count):
                assert guessed(cluster, node, "user-0") == "wrong-credentials"

        guess(one, 12)
        event = receiver.wait("account.guessed")
        assert event["count"] == 12 and event["account"] == "name:user-0" and event["app"] == "demo"
        guess(other, 15)
        until(lambda: any(note.get("log") == "guesses" for note in other.events()), "the other node has counted them")
        # Its next look at the outbox shows the delivery that waits then, after it has asked about the event.
        receiver.answer = 500
        one.admin("webhook", "test", hook)
        waiting = until(lambda: re.search(r"^countersign_webhook_waiting ([1-9]\d*)$", other.asked("/metrics")[1], re.MULTILINE),
                        "it has looked at the outbox")
        assert waiting[1] == "1", "an event of the other node waits beside it"
        receiver.answer = 204
        assert [event["type"] for event in receiver.events()].count("account.guessed") == 1
    receiver.close()


def test_without_the_database_no_guess_is_tried(tmp_path):
    server = Postgres()
    try:
        with Cluster(tmp_path, server.create("away"), *[FEW] * 3, accounts=1) as cluster:
            assert guessed(cluster, cluster.nodes[0], "user-0") == "wrong-credentials"
            server.kill()
            codes = [guessed(cluster, cluster.nodes[number % 3], "user-0") for number in range(12)]
            assert set(codes) == {"unavailable"}, codes
            server.start()
            until(lambda: guessed(cluster, cluster.nodes[1], "nobody") != "unavailable", "no recovery")
            # What was counted before the crash counts still, but for its last half second.
            assert tries(cluster, cluster.nodes, ["user-0"]) <= 6
    finally:
        server.remove()
