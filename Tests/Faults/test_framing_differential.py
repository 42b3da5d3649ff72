"""Ambiguous messages, read by us and by five other implementations (nginx, HAProxy, Apache, h11, llhttp).

Two promises. Where two of the five refuse a case of Vectors/framing, we do not pass it on, or docs/framing.md
says why. And the backend sees as many requests as we answered 200, each of them one that was signed: in no
case does a part of one message become another. The same for answers of a backend: no caller sees a byte of
another's.
"""

import json
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import oracles
from backend import Backend
from gateway import ROOT, Gateway
from sampling import sampled
from signing import ReleaseKey
from wire import Closed

FOLDER = ROOT / "Vectors/framing"
REQUESTS = json.loads((FOLDER / "requests.json").read_text())
ANSWERS = json.loads((FOLDER / "answers.json").read_text())
NAMES = [case["name"] for case in REQUESTS]
# Seconds without a byte after which a reader is taken to wait for more; the second is for a verdict that surprises.
SILENCE, LONG_SILENCE = 1.0, 5.0

pytestmark = pytest.mark.skipif(oracles.missing() is not None, reason=f"no {oracles.missing()}")


def repeated(text: str) -> str:
    return re.sub(r"<(.)\*(\d+)>", lambda found: found[1] * int(found[2]), text)


def request(case: dict, key: ReleaseKey, tag: str) -> bytes:
    """The bytes of a case, signed for `key`; what the backend sees of it bears `tag` in a covered field."""
    method, target, body = case["sign"]
    head = key.head(method, repeated(target), body=body.encode(), fields=[("x-case", tag)], length="")
    signed = b"\r\n".join(head.split(b"\r\n\r\n")[0].split(b"\r\n")[2:]) + b"\r\n"
    data = repeated(case["bytes"]).encode("latin-1").replace(b"<host>", key.authority.encode())
    return data.replace(b"<signed>", signed).replace(b"<signed-lf>", signed.replace(b"\r\n", b"\n"))


def behind(key: ReleaseKey, tag: str) -> bytes:
    """A good request that is the last on its connection."""
    return key.request(target="/behind", fields=[("x-case", tag)]).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


def argued() -> list[str]:
    """The cases that docs/framing.md argues."""
    text = (ROOT / "docs/framing.md").read_text().split("## Argued differences")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


class Ours:
    """The gateway, and what became of each case: alone with a request after its answer, and with one right
    behind it."""

    def __init__(self, gateway: Gateway, backend: Backend, key: ReleaseKey):
        self.gateway, self.backend, self.key = gateway, backend, key

    def alone(self, case: dict) -> tuple[str, bytes, bytes]:
        tag = f"alone-{case['name']}"
        with self.gateway.connect(timeout=SILENCE) as connection:
            connection.send(request(case, self.key, tag))
            received = b""
            try:
                while not oracles.statuses(received) or received.startswith(b"HTTP/1.1 100"):
                    piece = connection.sock.recv(65536)
                    if not piece:
                        break
                    received += piece
            except OSError:
                pass
            connection.send(behind(self.key, tag))
            try:
                connection.sock.shutdown(socket.SHUT_WR)
                while piece := connection.sock.recv(65536):
                    received += piece
            except OSError:
                pass
        return tag, received, received

    def pipelined(self, case: dict, form: str = "pipelined") -> tuple[str, bytes, bytes, bool]:
        tag = f"{form}-{case['name']}"
        data = request(case, self.key, tag) + behind(self.key, tag)
        before, received, closed = oracles.converse(self.gateway.port, data, SILENCE)
        return tag, before, received, closed


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    with Backend() as backend, Gateway(tmp_path_factory.mktemp("ours"), "--tls", "off", "--upstream", backend.url) as gateway:
        gateway.add_app("demo")
        yield Ours(gateway, backend, gateway.add_release())
        assert gateway.process.poll() is None


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    folder = tmp_path_factory.mktemp("others")
    folder.chmod(0o755)
    proxies = []
    try:
        for kind in (oracles.Nginx, oracles.HAProxy, oracles.Apache):
            proxies.append(kind(folder))
        yield [*proxies, oracles.H11(), oracles.HTTPTools()]
    finally:
        for proxy in proxies:
            proxy.close()


def judged_by(oracle, case: dict, key: ReleaseKey, silence: float) -> str:
    own = ReleaseKey(key.key_id, key.secret, oracle.authority)
    return oracle.judge(request(case, own, "x") + behind(own, "x"), silence)


@pytest.fixture(scope="module")
def table(ours, others):
    """For each case our verdict and status, and the names of the implementations that refuse."""
    with ThreadPoolExecutor(8) as pool:
        piped = list(pool.map(ours.pipelined, REQUESTS))
        alone = list(pool.map(ours.alone, REQUESTS))
        verdicts = {}
        for oracle in others[:3]:
            verdicts[oracle.name] = list(pool.map(lambda case: judged_by(oracle, case, ours.key, SILENCE), REQUESTS))
    for oracle in others[3:]:
        verdicts[oracle.name] = [judged_by(oracle, case, ours.key, SILENCE) for case in REQUESTS]
    rows = {}
    for index, case in enumerate(REQUESTS):
        tag, before, received, closed = piped[index]
        rows[case["name"]] = {
            "ours": oracles.verdict(before, closed),
            "status": oracles.statuses(before),
            "refused": [name for name, found in verdicts.items() if found[index] == "refuses"],
            "all": {name: found[index] for name, found in verdicts.items()},
            "answered": {
                tag: oracles.statuses(received).count(200),
                alone[index][0]: oracles.statuses(alone[index][1]).count(200),
            },
        }
    return rows


def test_the_cases_are_those_of_the_generator(tmp_path):
    subprocess.run([sys.executable, "-B", FOLDER / "generate.py", tmp_path], check=True, capture_output=True, timeout=60)
    for name in ("requests.json", "answers.json"):
        assert (tmp_path / name).read_text() == (FOLDER / name).read_text(), f"run Vectors/framing/generate.py: {name}"
    assert len(REQUESTS) >= 300


def test_all_six_accept_the_control_cases(table):
    """Readers that refuse everything would prove nothing."""
    controls = {name: row for name, row in table.items() if name.startswith("control/")}
    assert len(controls) >= 15
    for name, row in controls.items():
        assert row["ours"] == "accepts" and set(row["all"].values()) == {"accepts"}, (name, row)


def test_where_two_refuse_so_do_we(table, ours, others, note):
    def disagrees(row: dict) -> bool:
        return row["ours"] == "accepts" and len(row["refused"]) >= 2

    explained = argued()
    assert len(set(explained)) == len(explained) and set(explained) <= set(NAMES), "docs/framing.md"
    for name, row in table.items():
        # A machine under load may take longer to refuse than we wait: what surprises is looked at again.
        if disagrees(row) != (name in explained):
            case = REQUESTS[NAMES.index(name)]
            row["refused"] = [o.name for o in others if judged_by(o, case, ours.key, LONG_SILENCE) == "refuses"]
            _, before, _, closed = ours.pipelined(case, "again")
            row["ours"] = oracles.verdict(before, closed)
    found = {name for name, row in table.items() if disagrees(row)}
    refused = {oracle.name: sum(oracle.name in row["refused"] for row in table.values()) for oracle in others}
    mine = [sum(row["ours"] == word for row in table.values()) for word in ("accepts", "refuses", "waits")]
    alone = sum(row["ours"] == "refuses" and len(row["refused"]) < 2 for row in table.values())
    note(
        f"framing: {len(table)} requests: we pass {mine[0]}, refuse {mine[1]}, wait for the rest of {mine[2]}; refused by "
        + ", ".join(f"{name} {count}" for name, count in refused.items())
        + f"; two or more refuse and we pass: {len(found)}, argued {len(explained)}; we refuse and at most one other does: {alone}"
    )
    assert not found - set(explained), {name: table[name] for name in sorted(found - set(explained))}
    assert not set(explained) - found, f"stale rows in docs/framing.md: {sorted(set(explained) - found)}"


def test_the_backend_sees_what_we_answered(table, ours, note):
    """By tag: each request that the backend read is one that was signed and answered 200, and there is no
    other. Those that were sent again for a verdict that surprised are not counted."""
    seen: dict[str | None, int] = {}
    for one in ours.backend.seen:
        assert one.target != "/smuggled"
        seen[one.get("x-case")] = seen.get(one.get("x-case"), 0) + 1
    assert None not in seen
    answered = {tag: count for row in table.values() for tag, count in row["answered"].items() if count}
    wrong = {tag for tag in {*seen, *answered} if seen.get(tag) != answered.get(tag) and not tag.startswith("again-")}
    assert wrong == set()
    found = [oracles.requests_in(bytes(raw)) for raw in ours.backend.raw]
    assert [sum(count) for count in zip(*found)] == [len(ours.backend.seen)] * 2
    note(
        f"framing: {2 * len(table)} connections, {sum(answered.values())} requests answered 200; the backend, h11 and llhttp count as many in what it was sent"
    )


@pytest.fixture(scope="module")
def answering(tmp_path_factory):
    """A gateway before a backend that answers `/case/NAME` with the bytes of that case, and all else with the
    target."""
    cases = {case["name"]: repeated(case["bytes"]).encode("latin-1") for case in ANSWERS}

    def answer(seen, sock) -> None:
        if not seen.target.startswith("/case/"):
            return sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(seen.target) + seen.target.encode())
        name = seen.target.removeprefix("/case/")
        sock.sendall(cases[name])
        # What ends with its connection has to be ended; the others stay open, as a backend would leave them.
        if name.startswith(("until-close", "short", "nothing", "100-only", "chunk-no-end")):
            raise Closed

    with (
        Backend(answer) as backend,
        Gateway(tmp_path_factory.mktemp("answers"), "--tls", "off", "--upstream", backend.url, "--workers", "1") as gateway,
    ):
        gateway.add_app("demo")
        gateway.key = gateway.add_release()
        yield gateway


# In CI one of each outcome.
FIRST = [next(case for case in ANSWERS if case["outcome"] == outcome) for outcome in ("passed", "refused", "cut", "either")]


@pytest.mark.parametrize("case", sampled(ANSWERS, *FIRST), ids=[case["name"] for case in ANSWERS])
def test_no_answer_reaches_another_caller(answering, case):
    """With one worker, the connection to the backend would be taken again by the next request, of the same
    caller or of another."""
    key, outcome = answering.key, case["outcome"]
    data = key.request(case["method"], f"/case/{case['name']}")
    with answering.connect() as first, answering.connect() as second:
        second.send(key.request(target="/other/before"))
        assert second.answer().body == b"/other/before"
        first.send(data + key.request(target="/same"))
        try:
            answer = first.answer(to_head=case["method"] == "HEAD")
            assert (answer.status == 502) == (outcome == "refused") or outcome == "either", answer
            assert b"POISON" not in answer.body
            if outcome == "passed" and answer.body:
                assert answer.body == b"good"
            behind = first.answer()
            assert (behind.status, behind.body) == (200, b"/same")
        except Closed:
            assert outcome == "cut" or "until-close" in case["name"]
        for target in ("/other/1", "/other/2"):
            second.send(key.request(target=target))
            answer = second.answer()
            assert (answer.status, answer.body) == (200, target.encode())
