"""What the backend sees, and what callers see when it misbehaves."""

import base64
import hashlib
import json
import time

import pytest

from backend import Backend, ReadsAndCloses
from gateway import Gateway, gateway_before
from ports import free_port
from signing import ReleaseKey
from wire import Closed

BODY = b'{"amount":1}'


@pytest.fixture
def front(backend, tmp_path):
    running = gateway_before(backend, tmp_path)
    yield running
    running.stop()


def test_what_the_backend_sees(front, backend):
    request = front.key.request("POST", "/pay%20it?a=%2F&b", BODY, fields=[("content-type", "application/json")])
    hostile = (b"Countersign-Account: 1\r\ncountersign_account: 1\r\nCountersign-App: admin\r\nCOUNTERSIGN-Scheme: none\r\n"
               b"Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 9\r\nTE: trailers\r\nUpgrade: h2c\r\n"
               b"Proxy-Connection: close\r\nProxy-Authorization: Basic eDp5\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
               b"Trailer: X-T\r\nAccept: a/b\r\n")
    answer = front.send(request.replace(b"\r\nHost:", b"\r\n" + hostile + b"Host:", 1))
    if answer.status != 200:
        # Refusing such a request is as good as cleaning it; then the clean one must pass and be checked below.
        assert answer.status in (400, 401) and not backend.seen, answer
        assert front.send(front.key.request("POST", "/pay%20it?a=%2F&b", BODY,
                                            fields=[("content-type", "application/json")])).status == 200
    seen, = backend.wait(1)
    assert (seen.method, seen.target, seen.body) == ("POST", "/pay%20it?a=%2F&b", BODY)
    assert seen.get("content-type") == "application/json"
    names = [name for name, _ in seen.fields]
    for hop in ("x-hop", "http2-settings", "keep-alive", "te", "upgrade", "proxy-connection", "proxy-authorization", "trailer"):
        assert hop not in names, hop
    assert not [name for name in names if name.startswith("countersign_")]
    expected = {"app": "demo", "release": front.key.key_id, "platform": "ios", "version": "1.0",
                "scheme": "message-signatures"}
    for name, value in expected.items():
        assert seen.get(f"countersign-{name}") == value
    assert seen.get("countersign-account") is None
    assert front.event(seen.get("countersign-event"))


def test_each_request_of_a_connection_has_its_own_identity(front, backend):
    other = front.add_release(version="2.0")
    keys = [front.key, front.key, other, front.key, other, other]
    with front.connect() as connection:
        for key in keys:
            connection.send(key.request())
            assert connection.answer().status == 200
    seen = backend.wait(len(keys))
    assert [one.get("countersign-release") for one in seen] == [key.key_id for key in keys]
    assert [one.get("countersign-version") for one in seen] == ["2.0" if key is other else "1.0" for key in keys]
    for one in seen:
        ours = [name for name, _ in one.fields if name.startswith(("countersign-", "x-forwarded-", "forwarded"))]
        assert len(ours) == len(set(ours)), ours
    events = {one.get("countersign-event") for one in seen}
    assert len(events) == len(keys) and all(front.event(event) for event in events)


@pytest.mark.parametrize("field", [("te", "trailers"), ("proxy-authorization", "Basic eDp5"), ("countersign_account", "1"),
                                   ("countersign-event", "1")], ids=lambda field: field[0])
def test_what_ends_here_ends_here_even_if_it_is_signed(front, backend, field):
    """A signature makes no field of this hop, and none of those that only we say, fit to go on."""
    answer = front.send(front.key.request(fields=[field]))
    if answer.status != 200:
        # A field with an underscore is dropped before the signature that covers it is read.
        assert answer.status == (401 if "_" in field[0] else 400) and not backend.seen, answer
        return
    seen, = backend.wait(1)
    assert (field[0], field[1]) not in seen.fields


def test_a_field_that_connection_names_ends_here(front, backend):
    """`accept` may go on unsigned, unless this hop is told that it is its own."""
    request = front.key.request(fields=[("x-stays", "1")])
    added = b"\r\nConnection: Accept\r\nAccept: a/b\r\nHost:"
    assert front.send(request.replace(b"\r\nHost:", added, 1)).status == 200
    seen, = backend.wait(1)
    assert seen.get("x-stays") == "1" and seen.get("accept") is None


def test_connection_cannot_take_a_signed_field_away(front, backend):
    request = front.key.request(fields=[("x-currency", "JPY")])
    answer = front.send(request.replace(b"\r\nHost:", b"\r\nConnection: X-Currency\r\nHost:", 1))
    assert answer.status == 400 and b"Connection" in answer.body, answer
    assert not backend.seen


def test_chunks_in_and_trailers_dropped(front, backend):
    head = front.key.head("POST", "/c", body=BODY, length="Transfer-Encoding: chunked")
    answer = front.send(head + b"5\r\n" + BODY[:5] + b"\r\n7\r\n" + BODY[5:] + b"\r\n0\r\nX-Trailer: 1\r\n\r\n")
    assert answer.status == 200, answer
    seen, = backend.wait(1)
    assert seen.body == BODY
    assert b"X-Trailer" not in backend.raw[0]


def test_chunks_out(tmp_path):
    def chunked(seen, sock):
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in (b"one ", b"two ", b"three"):
            sock.sendall(b"%x\r\n%s\r\n" % (len(part), part))
            time.sleep(0.05)
        sock.sendall(b"0\r\nX-Trailer: 1\r\n\r\n")

    with Backend(chunked) as backend:
        front = gateway_before(backend, tmp_path)
        with front.connect() as connection:
            for _ in range(2):
                connection.send(front.key.request())
                assert connection.answer().body == b"one two three"
        assert front.stop() == 0


def test_an_answer_that_ends_with_the_connection(tmp_path):
    def until_close(seen, sock):
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\nto the end")
        raise Closed

    with Backend(until_close) as backend:
        front = gateway_before(backend, tmp_path)
        with front.connect() as connection:
            connection.send(front.key.request())
            start, fields = connection.reader.head()
            assert " 200 " in start
            if ("transfer-encoding", "chunked") in fields:
                assert connection.reader.chunks() == b"to the end"
            else:
                assert connection.reader.exactly(10) == b"to the end"
                assert connection.is_closed()
        assert front.stop() == 0


def test_head_and_keep_alive(front, backend):
    with front.connect() as connection:
        for method in ("HEAD", "GET", "HEAD", "POST"):
            connection.send(front.key.request(method, "/k", BODY if method == "POST" else b""))
            answer = connection.answer(to_head=method == "HEAD")
            assert answer.status == 200
            assert int(answer.get("content-length")) > 0
    assert [seen.method for seen in backend.wait(4)] == ["HEAD", "GET", "HEAD", "POST"]
    assert len(backend.raw) == 1, "the connection to the backend was not kept"


def test_expect_continue(front, backend):
    head = front.key.head("POST", "/e", body=BODY).replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    with front.connect() as connection:
        connection.send(head)
        assert connection.interim() == 100
        connection.send(BODY)
        assert connection.answer().status == 200
    assert backend.wait(1)[0].body == BODY


def test_a_refusal_comes_before_continue(front, backend):
    """A head that cannot be accepted is refused at once: the body is not asked for."""
    forged = ReleaseKey(front.key.key_id, "A" * 43, front.key.authority)
    head = forged.head("POST", "/e", body=BODY).replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    with front.connect() as connection:
        connection.send(head)
        start, _ = connection.reader.head()
        if " 100 " in start:
            connection.send(BODY)
            start, _ = connection.reader.head()
        assert " 401 " in start
    assert not backend.seen


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_pooled_connection_that_died(tmp_path, method):
    """A GET is tried again on a new connection; a POST, which might be done twice, is not."""
    with Backend(ReadsAndCloses()) as backend:
        front = gateway_before(backend, tmp_path)
        assert front.send(front.key.request()).status == 200
        answer = front.send(front.key.request(method, "/again", BODY if method == "POST" else b""))
        arrived = [seen.target for seen in backend.seen]
        if method == "GET":
            assert answer.status == 200
            assert arrived.count("/again") == 2
        else:
            assert (answer.status, json.loads(answer.body)["code"]) == (502, "upstream-failed")
            assert arrived.count("/again") == 1
        assert front.stop() == 0


def test_a_pooled_connection_closed_while_idle(front, backend):
    """Closed before anything was sent on it: any method goes to a new one."""
    assert front.send(front.key.request()).status == 200
    backend.cut()
    time.sleep(0.3)
    assert front.send(front.key.request("POST", "/p", BODY)).status == 200
    assert [seen.target for seen in backend.seen] == ["/", "/p"]


def test_a_backend_that_is_down_and_comes_back(tmp_path):
    port = free_port()
    gateway = Gateway(tmp_path, "--upstream", f"http://127.0.0.1:{port}").start()
    gateway.add_app("demo")
    key = gateway.add_release()
    for _ in range(3):
        answer = gateway.send(key.request())
        assert (answer.status, json.loads(answer.body)["code"]) == (502, "upstream-failed")
    with Backend(port=port):
        assert gateway.send(key.request()).status == 200
    assert gateway.stop() == 0


BROKEN = {
    "closes at once": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-",
    "not HTTP": b"hello\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a NUL": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
    "an endless head": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_is_502(tmp_path, name):
    def broken(seen, sock):
        sock.sendall(BROKEN[name])
        raise Closed

    with Backend(broken) as backend:
        front = gateway_before(backend, tmp_path)
        answer = front.send(front.key.request())
        assert (answer.status, json.loads(answer.body)["code"]) == (502, "upstream-failed")
        assert front.stop() == 0


def test_an_answer_that_is_cut_is_not_complete(tmp_path):
    def cut(seen, sock):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        raise Closed

    with Backend(cut) as backend:
        front = gateway_before(backend, tmp_path)
        with pytest.raises(Closed):
            front.send(front.key.request())
        assert front.stop() == 0


def test_interim_answers_are_passed_over_or_on(tmp_path):
    def hints(seen, sock):
        sock.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with Backend(hints) as backend:
        front = gateway_before(backend, tmp_path)
        with front.connect() as connection:
            for _ in range(2):
                connection.send(front.key.request())
                answer = connection.answer()
                assert (answer.status, answer.body) == (200, b"ok")
        assert front.stop() == 0


def test_a_switch_of_protocol_is_not_followed(tmp_path):
    """Nothing but HTTP/1.1 was asked for; what follows a 101 would be read by no rule of ours."""
    def switch(seen, sock):
        sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")

    with Backend(switch) as backend:
        front = gateway_before(backend, tmp_path)
        answer = front.send(front.key.request())
        assert (answer.status, json.loads(answer.body)["code"]) == (502, "upstream-failed")
        assert front.stop() == 0


@pytest.mark.parametrize("status", [204, 304])
def test_answers_that_have_no_body(tmp_path, status):
    """They end with their head, whatever length they declare; the next answer is read from where they ended."""
    def bodiless(seen, sock):
        sock.sendall(b"HTTP/1.1 %d X\r\nContent-Length: 5\r\n\r\n" % status if status == 304
                     else b"HTTP/1.1 204 X\r\n\r\n")

    with Backend(bodiless) as backend:
        front = gateway_before(backend, tmp_path)
        with front.connect() as connection:
            for _ in range(3):
                connection.send(front.key.request())
                assert connection.answer().status == status
        assert front.stop() == 0


def test_a_backend_that_answers_early(tmp_path):
    """It refuses a large body after its head and closes: the caller sees that answer, or a 502, and not a hang."""

    def early(seen, sock):
        sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n")
        raise Closed

    body = b"x" * (8 << 20)
    value = base64.b64encode(hashlib.sha256(body).digest()).decode()
    with Backend(early, reads_bodies=False) as backend:
        front = gateway_before(backend, tmp_path)
        began = time.monotonic()
        head = front.key.head("PUT", "/early", body_digest=f"sha-256=:{value}:", length=f"Content-Length: {len(body)}")
        with front.connect() as connection:
            connection.send(head + body)
            try:
                assert connection.answer().status in (413, 502)
            except Closed:
                pass
        assert time.monotonic() - began < 10
        assert front.send(front.key.request()).status in (413, 502)
        assert front.stop() == 0
