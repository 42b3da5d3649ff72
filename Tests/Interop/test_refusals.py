"""A forged, altered, stale or replayed request gets its code and status, and its event is found in the log."""

import json
import threading
import time

import pytest

from gateway import Gateway
from signing import ReleaseKey
from wire import Answer


def refused(shared, data: bytes, status: int, code: str) -> dict:
    """Sends, and asserts a problem document with this status and code, whose event says the same."""
    answer = shared.send(data)
    problem = json.loads(answer.body)
    assert (answer.status, problem.get("code")) == (status, code), answer
    assert answer.get("content-type") == "application/problem+json"
    assert problem["status"] == status
    event = shared.event(problem["instance"].rsplit(":", 1)[-1].rsplit("/", 1)[-1])
    assert code in event.values(), event
    return event


def changed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) >= 1, (old, data)
    return data.replace(old, new, 1)


BODY = b'{"amount":1}'

# One for each code; GateTests alter each part of a request.
REFUSED = {
    "unsigned": (401, "unsigned", lambda k: f"GET / HTTP/1.1\r\nHost: {k.authority}\r\n\r\n".encode()),
    "unknown key": (401, "unknown-key", lambda k: ReleaseKey("r_AAAAAAAAAAAAAAAAAAAAAA", k.secret, k.authority).request()),
    "an escaped path": (401, "bad-signature", lambda k: changed(k.request(target="/a"), b" /a ", b" /%61 ")),
    "another body": (400, "body-mismatch", lambda k: changed(k.request("POST", "/", BODY), BODY, b'{"amount":9}')),
    "too old": (401, "stale", lambda k: k.request(created=int(time.time()) - 90)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(shared, name):
    status, code, make = REFUSED[name]
    refused(shared, make(shared.key), status, code)


def test_a_body_that_is_not_covered(shared):
    """A body under a signature that has no content-digest is refused, whatever the code."""
    request = shared.key.request("POST", "/").replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\nabc")
    answer = shared.send(request)
    assert answer.status in (400, 401)
    assert json.loads(answer.body)["code"] in {"malformed", "bad-signature", "body-mismatch", "unsigned"}


def test_a_field_that_is_not_covered_does_not_arrive(shared):
    """An uncovered end-to-end field is refused or removed, never forwarded."""
    request = shared.key.request().replace(b"\r\nHost:", b"\r\nX-User: admin\r\nHost:", 1)
    answer = shared.send(request)
    assert answer.status in (200, 400, 401)
    assert b"admin" not in answer.body


def test_a_replay(shared):
    request = shared.key.request("POST", "/once", BODY)
    assert shared.send(request).status == 200
    for _ in range(3):
        refused(shared, request, 401, "replayed")


def test_a_forgery_does_not_burn_the_nonce(shared):
    request = shared.key.request(nonce="b" * 22)
    forged = changed(request, b"Signature: app=:", b"Signature: app=:AAAA")
    assert shared.send(forged).status in (400, 401)
    assert shared.send(request).status == 200


def test_two_at_once_one_is_accepted(shared):
    """Fifty requests, each sent twice at the same time: fifty accepted in all."""
    for _ in range(50):
        request, answers = shared.key.request("POST", "/twice", BODY), []
        connections = [shared.connect(), shared.connect()]
        ready = threading.Barrier(2)

        def send(connection):
            ready.wait()
            connection.send(request)
            answers.append(connection.answer())

        threads = [threading.Thread(target=send, args=(connection,)) for connection in connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for connection in connections:
            connection.sock.close()
        assert sorted(answer.status for answer in answers) == [200, 401], answers


def test_the_log_tells_no_secret(gateway):
    """One JSON line a request: no query value, no body, no signature, no secret."""
    gateway.add_app("demo")
    key = gateway.add_release()
    marks = {"query": b"q-6d1f", "body": b"b-93ac", "secret": key.secret.encode()}
    request = key.request("POST", "/log?value=q-6d1f", marks["body"])
    assert gateway.send(request).status == 200
    forged = ReleaseKey(key.key_id, "A" * 43, key.authority)
    assert gateway.send(forged.request("POST", "/log?value=q-6d1f", marks["body"])).status == 401
    assert gateway.stop() == 0
    signature = request.split(b"Signature: app=:")[1].split(b":")[0]
    log = gateway.log_path.read_bytes()
    for name, mark in {**marks, "signature": signature}.items():
        assert mark not in log, name
    # Two loops may write their lines in either order.
    lines = sorted((event["path"], event["status"]) for event in gateway.events() if "path" in event)
    assert lines == [("/log", 200), ("/log", 401)]


def test_a_refusal_leaves_the_connection_whole(shared):
    """A refused signature is an answer like any other: a good request after it, on the connection, is served."""
    with shared.connect() as connection:
        statuses = []
        for key in (ReleaseKey(shared.key.key_id, "A" * 43, shared.key.authority), shared.key):
            connection.send(key.request())
            answer: Answer = connection.answer()
            statuses.append(answer.status)
            if answer.get("connection") == "close":
                # The issue lets every refusal close.
                assert connection.is_closed()
                return
        assert statuses == [401, 200]


def test_debug_tells_the_exact_reason(tmp_path):
    with Gateway(tmp_path) as gateway:
        gateway.add_app()
        key = gateway.add_release()
        coarse = json.loads(gateway.send(changed(key.request(target="/a"), b" /a ", b" /b ")).body)
        assert coarse["code"] == "bad-signature" and "detail" not in coarse
        gateway.admin("app", "policy", "demo", "--set", "debug=on")
        exact = json.loads(gateway.send(changed(key.request(target="/a"), b" /a ", b" /b ")).body)
        assert exact["code"] == "bad-signature" and "MAC" in exact["detail"]
