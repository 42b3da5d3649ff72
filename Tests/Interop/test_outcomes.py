"""Each way in which a request can fail after the gate has admitted it has a code of its own, in the log and as the metric's
outcome, and none of them counts as `accepted`. Both ways through the engine, with and without a task, name it alike."""

import contextlib
import json
import socket
import struct
import threading
import urllib.parse

import pytest

import bearer
from backend import Backend, Seen, ok
from clock import Clock
from l1_client import signed
from ports import reserve_port
from sampling import sampled
from serving_paths import CALLBACKS, PATHS, options_of
from test_metrics import Administered
from waiting import HANGS, until
from wire import Answer, Closed, Connection

LARGE = bytes(8 << 20)


class Front(Administered):
    """A gateway before a backend that answers as the first segment of the path says."""

    def __init__(self, folder, path: str, backend_port: int, *options, **named):
        super().__init__(folder, "--workers", 1, *options_of(path), "--upstream", f"http://127.0.0.1:{backend_port}",
                         *options, **named)

    def __enter__(self) -> "Front":
        super().__enter__()
        try:
            self.add_app("demo", legacy_host="127.0.0.1")
            self.admin("route", "set", "demo", "/open", "--require", "open")
            self.key = self.add_release()
        except BaseException:
            self.stop()
            raise
        return self

    def answer(self, data: bytes) -> Answer | None:
        """The whole answer; nil if it is cut short."""
        with self.connect() as connection:
            connection.send(data)
            try:
                return connection.answer()
            except Closed:
                return None

    def outcomes(self) -> dict[str, float]:
        """The counts by outcome, of all releases and of none."""
        found: dict[str, float] = {}
        for (_, _, outcome), count in self.requests().items():
            found[outcome] = found.get(outcome, 0) + count
        return found

    def timed(self, span: str) -> dict[str, float]:
        """How many durations of the request or the upstream there are, by outcome."""
        return {dict(labels)["outcome"]: count for (name, labels), count in self.metrics().items()
                if name == f"countersign_{span}_duration_seconds_count"}

    def waiting(self) -> float:
        return self.metrics()["countersign_upstream_waiting", ()]

    def logins(self) -> dict[str, float]:
        return {dict(labels)["outcome"]: count for (name, labels), count in self.metrics().items()
                if name == "countersign_logins_total"}

    def login(self, password: str) -> bytes:
        body = json.dumps({"account": "user-0", "password": password, "device": bearer.DEVICE}).encode()
        return self.key.request("POST", f"{bearer.PREFIX}/login/password", body,
                                fields=[("content-type", "application/json")])

    def ended(self, outcome: str, count: int = 1) -> dict:
        """The event of the last request with this outcome, once `count` have it in the log and in the metric."""
        def events() -> list[dict]:
            return [event for event in self.events() if event.get("code") == outcome]

        until(lambda: len(events()) == self.outcomes().get(outcome, 0) == count,
              lambda: (outcome, self.outcomes(), [event.get("code") for event in self.events()]))
        return events()[-1]


def wait_for_the_end(sock: socket.socket) -> None:
    """Until the gateway closes the connection."""
    sock.settimeout(HANGS)
    with contextlib.suppress(ConnectionError):
        assert sock.recv(1) == b""


def faulty(seen: Seen, sock: socket.socket) -> None:
    kind = seen.target.strip("/").split("/")[-1]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
    if kind == "closes":
        raise Closed
    if kind == "silent":
        wait_for_the_end(sock)
        raise Closed
    if kind == "no-http":
        sock.sendall(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    elif kind == "two-lengths":
        sock.sendall(head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab")
    elif kind == "no-chunk":
        sock.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nnothing\r\n")
    elif kind == "short":
        sock.sendall(head + b"Content-Length: 100\r\n\r\nten bytes.")
        raise Closed
    elif kind == "cut-chunks":
        sock.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        raise Closed
    elif kind == "events":
        sock.sendall(head.replace(b"plain", b"event-stream") + b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")
        wait_for_the_end(sock)
        raise Closed
    elif kind == "fails":
        sock.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nfull")
    elif kind == "missing":
        sock.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    elif kind == "large":
        with contextlib.suppress(OSError):
            sock.sendall(head + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE)
    else:
        ok(seen, sock)


# With a task as well in script/full.
@pytest.fixture(params=sampled(PATHS, CALLBACKS))
def path(request) -> str:
    return request.param


@pytest.fixture
def front(path, tmp_path):
    options = ("--deadline-upstream-answer", 1, "--deadline-stall", 1, "--limit-answer-rate-window", 1,
               "--limit-answer-rate", 1 << 20)
    with Backend(faulty) as backend, Front(tmp_path, path, backend.port, *options) as running:
        running.backend = backend
        yield running


def told(answer: Answer | None) -> tuple[int, str] | None:
    return answer and (answer.status, json.loads(answer.body)["code"])


@pytest.mark.parametrize(("target", "expected", "outcome"), [
    ("closes", (502, "upstream-failed"), "upstream-closed"),
    ("silent", (504, "upstream-failed"), "upstream-timeout"),
    ("no-http", (502, "upstream-failed"), "upstream-invalid"),
    ("two-lengths", (502, "upstream-failed"), "upstream-invalid"),
    ("no-chunk", None, "upstream-invalid"),
    ("short", None, "upstream-truncated"),
    ("cut-chunks", None, "upstream-truncated"),
    ("events", None, "stream-idle"),
])
@pytest.mark.parametrize("prefix", ["", "/open"], ids=["signed", "open"])
def test_a_fault_of_the_backend(front, prefix, target, expected, outcome):
    request = front.key.request(target=f"{prefix}/{target}")
    if prefix:
        request = f"GET {prefix}/{target} HTTP/1.1\r\nHost: {front.key.authority}\r\n\r\n".encode()
    answer = front.answer(request)
    assert (told(answer) if expected else answer) == expected
    assert len(front.backend.wait(1)) == 1, "the backend has had the request"
    event = front.ended(outcome)
    assert (event["status"], event["app"]) == (expected[0] if expected else 200, "demo")
    assert front.outcomes() == {outcome: 1}
    # The next one is none the worse for it.
    assert front.answer(front.key.request(target="/well")).status == 200
    assert front.outcomes() == {outcome: 1, "accepted": 1}


def test_a_server_error_of_the_backend(front):
    """It reaches the client as it is, and is a failure for each instrument."""
    unsigned = f"GET /open/fails HTTP/1.1\r\nHost: {front.key.authority}\r\n\r\n".encode()
    for number, request in enumerate([front.key.request(target="/fails"), unsigned,
                                      front.key.request("POST", "/fails", b"a=1", fields=[("idempotency-key", "one")])]):
        answer = front.answer(request)
        assert (answer.status, answer.body) == (503, b"full")
        event = front.ended("upstream-5xx", number + 1)
        assert (event["status"], event["app"]) == (503, "demo")
    assert front.answer(front.key.request(target="/missing")).status == 404
    assert front.outcomes() == {"upstream-5xx": 3, "accepted": 1}
    assert front.answer(front.key.request(target="/well")).status == 200
    classes: dict[tuple[str, str], float] = {}
    for (name, labels), count in front.metrics().items():
        if name == "countersign_upstream_responses_total":
            of = dict(labels)
            assert of["app"] == "demo"
            classes[of["release"], of["class"]] = count
    assert classes == {(front.key.key_id, "5xx"): 2, (front.key.key_id, "4xx"): 1, (front.key.key_id, "2xx"): 1, ("", "5xx"): 1}
    assert {dict(labels)["kind"]: count for (name, labels), count in front.metrics().items()
            if name == "countersign_upstream_errors_total" and count} == {"upstream-5xx": 3}

    def report() -> dict:
        return json.loads(front.admin("meter", "demo", "--json").out)

    until(lambda: report()["releases"][0]["accepted"] == 2, lambda: report())
    line, = report()["releases"]
    row, = report()["unsigned"]
    assert (line["failed_by_cause"], line["backend_responses"]) == ({"upstream-5xx": 2}, {"2xx": 1, "4xx": 1, "5xx": 2})
    assert (row["failed"], row["backend_responses"]) == (1, {"5xx": 1})
    assert "responses of the backend to demo: 1 2xx, 1 4xx, 3 5xx" in front.admin("meter", "demo").out


REPEATED = {"/well": (200, "ok", "accepted"), "/missing": (404, "ok", "accepted"), "/fails": (503, "upstream-5xx", "upstream-5xx")}


def test_a_repeated_response_counts_by_its_status(front):
    """Fresh or stored, a response is the same success or failure in the log, the metrics and the meter."""
    for target, (status, _, _) in REPEATED.items():
        fields = [("idempotency-key", f"key of {target}")]
        answers = [front.answer(front.key.request("POST", target, b"a=1", fields=fields)) for _ in range(3)]
        assert [(answer.status, answer.get("countersign-replayed")) for answer in answers] == [
            (status, None), (status, "true"), (status, "true")]

    def lines() -> dict[str, list[tuple]]:
        return {target: [(event["status"], event["code"], event.get("repeated")) for event in front.events()
                         if event.get("path") == target] for target in REPEATED}

    expected = {target: [(status, code, None)] + [(status, code, "yes")] * 2 for target, (status, code, _) in REPEATED.items()}
    until(lambda: lines() == expected, lines)
    assert front.outcomes() == {"accepted": 6, "upstream-5xx": 3}
    counted = {kind: {dict(labels)["class"]: count for (name, labels), count in front.metrics().items()
                      if name == f"countersign_{kind}_responses_total"} for kind in ("upstream", "repeated")}
    assert counted == {"upstream": {"2xx": 1, "4xx": 1, "5xx": 1}, "repeated": {"2xx": 2, "4xx": 2, "5xx": 2}}

    def row() -> dict:
        return json.loads(front.admin("meter", "demo", "--json").out)["releases"][0]

    until(lambda: row()["accepted"] == 6, row)
    line = row()
    assert (line["failed_by_cause"], line["backend_responses"], line["repeated_responses"]) == (
        {"upstream-5xx": 3}, counted["upstream"], counted["repeated"])


def test_a_backend_that_is_not_there(path, tmp_path):
    with Front(tmp_path, path, reserve_port()) as front:
        assert told(front.answer(front.key.request())) == (502, "upstream-failed")
        assert front.ended("upstream-unreachable")["status"] == 502
        keyed = front.key.request("POST", "/pay", b"amount=1", fields=[("idempotency-key", "one")])
        assert told(front.answer(keyed)) == (502, "upstream-failed")
        front.ended("upstream-unreachable", 2)
        assert front.outcomes() == {"upstream-unreachable": 2}
    # Their release is in use all the same.
    line, = json.loads(front.admin("meter", "demo", "--json").out)["releases"]
    assert (line["accepted"], line["failed"], line["failed_by_cause"], line["refused"]) == (
        0, 2, {"upstream-unreachable": 2}, 0)
    impact = json.loads(front.admin("release", "impact", front.key.key_id, "--json").out)
    assert impact["accepted"] == 2 and impact["last_accepted"]


def test_a_backend_whose_connections_are_in_use(path, tmp_path):
    options = ("--limit-upstream-connections", 1, "--limit-upstream-waiting", 1, "--deadline-upstream-connect", 20)
    go = threading.Event()

    def slow(seen: Seen, sock: socket.socket) -> None:
        assert go.wait(HANGS)
        ok(seen, sock)

    with Backend(slow) as backend, Front(tmp_path, path, backend.port, *options, clock=Clock(tmp_path)) as front:
        with front.connect() as first, front.connect() as second, front.connect() as third:
            first.send(front.key.request(target="/slow"))
            backend.wait(1)
            second.send(front.key.request(target="/well"))
            until(lambda: front.clock.advance(0.1) or front.waiting() == 1, "the second waits")
            third.send(front.key.request(target="/well"))
            # The third finds the queue full; the second has waited too long.
            assert told(third.answer()) == (503, "unavailable")
            front.clock.advance(25)
            assert told(second.answer()) == (503, "unavailable")
            go.set()
            assert first.answer().status == 200
        assert front.ended("upstream-busy", 2)["status"] == 503
        assert front.outcomes() == {"upstream-busy": 2, "accepted": 1}


def reset(connection: Connection) -> None:
    """Closes at once, so that the peer's next write fails."""
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.sock.close()


def test_a_client_that_goes(front):
    with front.connect() as connection:
        connection.send(front.key.request(target="/large"))
        connection.reader.exactly(1000)
        reset(connection)
    event = front.ended("client-aborted")
    assert event["status"] == 200 and event["bytes"] < len(LARGE), "the response was cut"
    assert front.outcomes() == {"client-aborted": 1}


def test_a_client_that_goes_within_its_body(front):
    body = bytes(4 << 20)
    with front.connect() as connection:
        connection.send(front.key.request("POST", "/upload", body)[:-(1 << 20)])
        until(lambda: front.backend.bytes() >= 1 << 20)
        reset(connection)
    front.ended("client-aborted")
    assert not front.backend.seen, "the backend has had no whole request"
    assert front.outcomes() == {"client-aborted": 1}


def test_a_client_that_reads_nothing(front):
    with front.connect() as connection:
        connection.send(front.key.request(target="/large"))
        event = front.ended("client-slow")
    assert event["status"] == 200 and event["bytes"] < len(LARGE), "the response was cut"
    assert front.outcomes() == {"client-slow": 1}


def test_an_answer_before_the_whole_body_is_delivered(path, tmp_path):
    """The gateway gives up the rest of the body: that is no fault of the client's."""
    def answers_early(seen: Seen, sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        assert delivered.wait(HANGS)
        raise Closed

    delivered = threading.Event()
    with Backend(answers_early, reads_bodies=False) as backend, Front(tmp_path, path, backend.port) as front:
        body = bytes(4 << 20)
        with front.connect() as connection:
            connection.send(front.key.request("POST", "/upload", body)[:-(1 << 20)])
            assert connection.answer().status == 413
            delivered.set()
        until(lambda: front.outcomes())
        assert front.outcomes() == {"accepted": 1}


def test_a_refusal_after_the_gate_keeps_its_name(front):
    """A streamed body that is not the signed one, and a wrong password, are refusals; the time that the backend
    had the first one is measured all the same."""
    body = bytes(4 << 20)
    answer = front.answer(front.key.request("POST", "/upload", body)[:-1] + b"x")
    assert told(answer) == (400, "body-mismatch")
    front.ended("body-mismatch")
    assert front.outcomes() == {"body-mismatch": 1}
    assert front.timed("upstream") == {"body-mismatch": 1}
    front.admin("app", "policy", "demo", "--set", "password-login=on")
    front.admin("account", "add", "demo", "user-0", "--password-stdin", stdin="password of user-0\n")
    assert told(front.answer(front.login("a guess"))) == (401, "wrong-credentials")
    front.ended("wrong-credentials")
    assert front.outcomes() == {"body-mismatch": 1, "wrong-credentials": 1}
    assert front.logins() == {"wrong-credentials": 1}
    assert front.answer(front.login("password of user-0")).status == 200
    assert front.logins() == {"wrong-credentials": 1, "succeeded": 1}
    assert front.timed("upstream") == {"body-mismatch": 1}, "only the first one has reached the backend"


def test_a_forged_call_is_no_login(front):
    """The metrics count the logins of callers that the gate has admitted: anybody can send other ones."""
    front.admin("app", "policy", "demo", "--set", "schemes=message-signatures,form-md5", "--set", "legacy-login=on")
    front.admin("release", "add", "demo", "--platform", "ios", "--version", "2.0", "--scheme", "form-md5",
                "--key-id", "an-old-app", "--secret", "its-private-key")

    def log_in(private_key: str) -> Answer:
        fields = signed({"account": "user-0", "password": "x"}, "an-old-app", private_key, "ios", "2.0")
        form = urllib.parse.urlencode(fields)
        head = (f"POST /login/login.php HTTP/1.1\r\nHost: {front.key.authority}\r\n"
                f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\n\r\n")
        return front.answer((head + form).encode())

    log_in("another-key")
    front.ended("bad-signature")
    assert front.logins() == {}
    assert log_in("its-private-key").status == 200
    assert sum(front.logins().values()) == 1


def test_an_open_route_whose_client_reads_nothing(path, tmp_path):
    """The failures are those of admitted requests: anybody can ask an open route and read nothing."""
    asked = 30_000
    options = ("--deadline-stall", 1, "--log-sample", 0)
    with Front(tmp_path, path, reserve_port(), *options) as front, front.connect() as connection:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = f"GET {bearer.PREFIX}/jwks HTTP/1.1\r\nHost: {front.key.authority}\r\n\r\n".encode()
        # Returns when the gateway has taken everything, or cut the connection.
        connection.send(request * asked)
        answered = 0
        with contextlib.suppress(Closed):
            while answered < asked:
                connection.answer()
                answered += 1
        assert 0 < answered < asked, "the connection was cut"
        def events() -> list[dict]:
            return [event for event in front.events() if event.get("path", "").endswith("/jwks")]

        until(lambda: len(events()) > answered, "the response that was cut is in the log")
        assert {event["code"] for event in events()} == {"ok"}
        assert front.outcomes() == {}
