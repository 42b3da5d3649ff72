"""Nobody keeps an account's owner out: an address at full speed against one account, then a thousand, while the owner signs in on a
known device, on a new one, and with a reset code. Measured over HTTP; `--long` attacks for a minute each, with a thousand addresses."""

import base64
import collections
import hashlib
import json
import multiprocessing
import os
import queue
import time

import pytest

from gateway import Gateway
from person import Person
from waiting import until
from wire import Closed, Connection

ELEMENT = bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76")
START = "/countersign/v1/login/start"
PROCESSES = multiprocessing.get_context("fork")


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def start(key, name: str, **more) -> bytes:
    point = text(b"\4" + bytes(64))
    device = {"signing_key": point, "agreement_key": point, "class": "phone", "name": "attacker"}
    body = {"account": name, "ke1": text(ELEMENT + os.urandom(32) + ELEMENT), "device": device, **more}
    return key.request("POST", START, json.dumps(body).encode())


def part(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def solve(work: dict) -> bytes:
    """As docs/protocol.md has it, "Proof of work"."""
    challenge = base64.urlsafe_b64decode(work["challenge"] + "==")
    seed = hashlib.sha256(b"countersign/1 login work\0" + part(challenge)).digest()
    target, solution = (2**64 - 1) // work["hashes"], b""
    for puzzle in range(work["puzzles"]):
        head, number = seed + bytes([puzzle]), 0
        while int.from_bytes(hashlib.sha256(head + number.to_bytes(8, "big")).digest()[:8], "big") > target:
            number += 1
        solution += number.to_bytes(8, "big")
    return solution


class Attack:
    """Starts of logins from `sources`, as fast as one process makes them, until it is stopped. With `solves`, it also does the work
    that it is offered."""

    def __init__(self, gateway: Gateway, name: str, sources: list[str], *, solves: bool = False):
        self.gateway, self.name, self.sources, self.solves = gateway, name, sources, solves
        self.key = gateway.add_release("demo", "ios", f"9.{os.urandom(4).hex()}")
        self.codes, self.stopped, self.asked = PROCESSES.Queue(), PROCESSES.Event(), PROCESSES.Value("q", 0)

    def __enter__(self) -> "Attack":
        self.process = PROCESSES.Process(target=self.run, daemon=True)
        self.process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        try:
            self.counts = self.codes.get(timeout=60)
        except queue.Empty:
            self.counts = collections.Counter()
        self.process.join(10)

    def lasts(self, starts: int) -> None:
        """Returns after so many more starts of logins."""
        before = self.asked.value
        for least in range(before, before + starts + 1):
            until(lambda: self.asked.value >= least, lambda: f"the attack stopped after {self.asked.value} starts")

    def ask(self, connection: Connection, **more) -> tuple[str, dict]:
        connection.send(start(self.key, self.name, **more))
        answer = connection.answer()
        self.asked.value += 1
        body = json.loads(answer.body)
        return body.get("code", "started"), body

    def run(self) -> None:
        os.nice(5)
        counts, began, connections = collections.Counter(), time.monotonic(), {}
        while not self.stopped.is_set():
            for source in self.sources:
                if self.stopped.is_set():
                    break
                try:
                    if source not in connections:
                        connections[source] = Connection(self.gateway.port, source=source)
                    code, body = self.ask(connections[source])
                    counts[code] += 1
                    if self.solves and "work" in body:
                        solution = text(solve(body["work"]))
                        work = {"challenge": body["work"]["challenge"], "solution": solution}
                        code, _ = self.ask(connections[source], work=work)
                        counts[f"solved: {code}"] += 1
                except (Closed, OSError):
                    connections.pop(source, None)
                if len(connections) > 200:
                    connections.pop(next(iter(connections))).sock.close()
        counts["seconds"] = round(time.monotonic() - began)
        self.codes.put(counts)


@pytest.fixture
def gateway(tmp_path):
    many = ("--limit-address-requests", 4_000, "--limit-keepalive-requests", 1_000_000)
    with Gateway(tmp_path / "server", "--tls", "off", *many) as running:
        running.add_app("demo", registration="open")
        yield running


def seconds(action) -> float:
    began = time.monotonic()
    action()
    return round(time.monotonic() - began, 1)


def resets(gateway: Gateway, phone: Person) -> None:
    """With a code that the owner already has."""
    code = json.loads(gateway.admin("account", "reset", "demo", phone.name, "--json").out)["reset_code"]
    done = phone.run("signup", "--account", phone.name, "--reset-code-stdin", "--password-stdin", stdin=f"{code}\nanother password\n")
    assert done.returncode == 0, done.err
    phone.logs_in(password="another password")


def owners(gateway: Gateway, tmp_path, known: Person, *, new_device: bool = True) -> dict[str, float]:
    """How long each of the owner's ways in takes."""
    took = {"known device": seconds(known.logs_in)}
    if new_device:
        took["new device"] = seconds(Person(gateway, tmp_path / "new", known.name).logs_in)
    phone = Person(gateway, tmp_path / "reset", known.name)
    took["reset code"] = seconds(lambda: resets(gateway, phone))
    return took


@pytest.mark.parametrize("solves", [False, True], ids=["without work", "with work"])
def test_one_address_keeps_nobody_out(gateway, tmp_path, is_long, solves):
    known = Person(gateway, tmp_path / "known", "alice").signs_up().logs_in()
    with Attack(gateway, "alice", ["127.0.0.2"], solves=solves) as attack:
        attack.lasts(20_000 if is_long else 1_000)
        took = owners(gateway, tmp_path, known)
        # All of the owner's logins came during the attack.
        attack.lasts(1)
    print(took, dict(attack.counts))
    # Ten at once and one a minute; with work, what its address has for that.
    minutes = attack.counts["seconds"] / 60
    assert attack.counts["started"] <= 11 + minutes
    assert attack.counts["solved: started"] <= 4 + minutes / 2
    assert attack.counts["too-many-attempts"] > 100


def test_a_thousand_addresses_keep_nobody_out_who_does_the_work(gateway, tmp_path, is_long):
    known = Person(gateway, tmp_path / "known", "alice").signs_up().logs_in()
    sources = [f"127.0.{high}.{low}" for high in range(10, 14) for low in range(1, 251)]
    with Attack(gateway, "alice", sources if is_long else sources[:100]) as attack:
        attack.lasts(20_000 if is_long else 1_000)
        took = owners(gateway, tmp_path, known)
        # All of the owner's logins came during the attack.
        attack.lasts(1)
    print(took, dict(attack.counts))
    assert attack.counts["started"] <= 11 + attack.counts["seconds"] / 60


@pytest.mark.full
def test_many_addresses_that_work_reach_a_hard_bound(gateway, tmp_path, is_long):
    """They use up both of the account's buckets, which keeps new devices out while they pay (docs/threat-model.md); a known device
    and a reset code are let in."""
    known = Person(gateway, tmp_path / "known", "alice").signs_up().logs_in()
    sources = [f"127.0.{high}.{low}" for high in range(10, 14) for low in range(1, 251)]
    with Attack(gateway, "alice", sources if is_long else sources[:20], solves=True) as attack:
        attack.lasts(200 if is_long else 40)
        took = owners(gateway, tmp_path, known, new_device=False)
        attack.lasts(1)
    print(took, dict(attack.counts))
    assert attack.counts["solved: started"] <= 33 + attack.counts["seconds"] / 60
    assert attack.counts["solved: started"] > 0


def test_a_solution_is_good_once_for_its_account_while_it_is_hard_enough(gateway):
    key = gateway.add_release()

    def asks(name: str, source: str, **more) -> tuple[int, dict]:
        with Connection(gateway.port, source=source) as connection:
            connection.send(start(key, name, **more))
            answer = connection.answer()
            return answer.status, json.loads(answer.body)

    def offered(name: str, source: str) -> dict:
        for _ in range(11):
            status, body = asks(name, source)
        assert status == 429 and body["code"] == "too-many-attempts", body
        return body["work"]

    # A name without an account is offered the same.
    work = offered("nobody", "127.0.0.5")
    assert set(work) == {"challenge", "puzzles", "hashes", "expires"}
    assert (work["puzzles"], work["hashes"]) == (16, 8192) and 0 < work["expires"] - time.time() <= 91
    offered("somebody", "127.0.0.6")
    solution = {"challenge": work["challenge"], "solution": text(solve(work))}
    assert asks("somebody", "127.0.0.7", work=solution)[0] == 429, "for one account"
    half = {**solution, "solution": text(bytes(128))}
    assert asks("nobody", "127.0.0.8", work=half)[0] == 429
    assert asks("nobody", "127.0.0.8", work={"challenge": "AA", "solution": "AA"})[1]["code"] == "malformed"
    assert asks("nobody", "127.0.0.9", work=solution)[0] == 200
    assert asks("nobody", "127.0.0.10", work=solution)[0] == 429, "good once"
