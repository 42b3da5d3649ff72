"""A request that cannot pass is refused from its head: the final answer comes although no byte of the announced body was sent,
no `100 Continue` asks for it, and the connection closes. A strange form is refused from its head where no app's policy lets
forms be signed in their bodies; where one does, and only there, its body is read. Own routes take small bodies only."""

import json
import secrets
import time

import pytest

from gateway import Gateway
from sockets import is_read
from signing import PairKey, ReleaseKey, digest
from waiting import until
from wire import Closed

LENGTH = 1_000_000
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """Message signatures only, one release live, one retired."""
    with Gateway(tmp_path_factory.mktemp("head")) as running:
        running.add_app("demo")
        running.key = running.add_release()
        running.old = running.add_release("demo", "ios", "0.9")
        running.admin("release", "retire", running.old.key_id, "--at", int(time.time()) - 10, "--update-url",
                      "https://example.com/update")
        running.add_app("closed", require="session")
        running.admin("route", "set", "closed", "/open", "--require", "signed")
        running.closed = running.add_release("closed")
        yield running


@pytest.fixture(scope="module")
def legacy(tmp_path_factory):
    """An app whose old clients sign forms, at one host only."""
    with Gateway(tmp_path_factory.mktemp("legacy"), "--authority", "old.example,new.example") as running:
        running.add_app("old", schemes="form-md5,auth-v4", legacy_host="old.example")
        running.form = running.add_release("old", "ios", "1.0", "--scheme", "form-md5")
        running.json = running.add_release("old", "ios", "1.0", "--scheme", "auth-v4")
        yield running


def head(key: ReleaseKey, *, target: str = "/upload", **options) -> bytes:
    """A signed head that announces a body and asks before it sends it."""
    return key.head("POST", target, body_digest=digest(b"x" * LENGTH),
                    length=f"Content-Length: {LENGTH}\r\nExpect: 100-continue", **options)


def refused(running: Gateway, data: bytes) -> tuple[int, str]:
    """The answer to a head alone; it must be the first thing that comes, and the last."""
    with running.connect(timeout=10) as connection:
        connection.send(data)
        start, fields = connection.reader.head()
        status = int(start.split(" ")[1])
        assert status >= 200, f"{start}: it asks for a body that it cannot want"
        assert ("connection", "close") in fields, fields
        body = connection.reader.body(fields)
        assert connection.is_closed()
        return status, json.loads(body)["code"]


def changed(key: ReleaseKey) -> bytes:
    return head(key).replace(b"POST /upload", b"POST /uploads", 1)


def uncovered(key: ReleaseKey) -> bytes:
    """A body is announced, and nothing of it is signed."""
    return key.head("POST", "/upload", length=f"Content-Length: {LENGTH}\r\nExpect: 100-continue")


HEADS = {
    "another path than the signed one": (lambda it: changed(it.key), (401, "bad-signature")),
    "an unknown key pair": (
        lambda it: head(PairKey.make("ed25519", "r_pair", it.key.authority)), (401, "unknown-key")),
    "an old signature": (lambda it: head(it.key, created=int(time.time()) - 3_600), (401, "stale")),
    "a retired release": (lambda it: head(it.old), (426, "update-required")),
    "no digest of the body": (lambda it: uncovered(it.key), (401, "bad-signature")),
    "a route that needs a session": (lambda it: head(it.closed), (401, "session-required")),
    "a session's token that nobody has": (
        lambda it: head(ReleaseKey(f"s_{secrets.token_urlsafe(16)}.1", it.key.secret, it.key.authority, it.key.key_id)),
        (401, "unknown-key")),
    "no signature": (
        lambda it: f"POST / HTTP/1.1\r\nHost: {it.key.authority}\r\nContent-Length: {LENGTH}\r\n"
                   "Expect: 100-continue\r\n\r\n".encode(), (401, "unsigned")),
    "an own route, and a body that is too large for it": (
        lambda it: head(it.key, target="/countersign/v1/login/start"), (413, "too-large")),
    "an own route for anybody, likewise": (
        lambda it: f"GET /countersign/v1/health HTTP/1.1\r\nHost: {it.key.authority}\r\nContent-Length: {LENGTH}\r\n"
                   "Expect: 100-continue\r\n\r\n".encode(), (413, "too-large")),
}


@pytest.mark.parametrize("name", HEADS)
def test_refused_from_the_head(strict, name):
    make, expected = HEADS[name]
    assert refused(strict, make(strict)) == expected


def test_a_good_head_is_asked_for_its_body(strict):
    """Else the test above would prove nothing."""
    with strict.connect() as connection:
        connection.send(head(strict.key))
        assert connection.interim() == 100
        connection.send(b"x" * LENGTH)
        assert connection.answer().status == 200


def test_a_copy_buys_no_body(strict):
    """The first one passes with its body; a copy of its head is refused without one."""
    sent = head(strict.key)
    with strict.connect() as connection:
        connection.send(sent)
        assert connection.interim() == 100
        connection.send(b"x" * LENGTH)
        assert connection.answer().status == 200
    assert refused(strict, sent) == (401, "replayed")


def test_a_body_that_differs_burns_no_nonce(strict):
    """The nonce is stored only after the digest has matched: a copy of the head alone cannot use it up."""
    sent = head(strict.key)
    for body, expected in [(b"y" * LENGTH, 400), (b"x" * LENGTH, 200)]:
        with strict.connect() as connection:
            connection.send(sent.replace(b"Expect: 100-continue\r\n", b"") + body)
            assert connection.answer().status == expected


def test_two_copies_at_once_and_one_passes(strict):
    """Both heads are good, and neither body has come: the insertion after the body decides."""
    sent = head(strict.key).replace(b"Expect: 100-continue\r\n", b"")
    with strict.connect() as one, strict.connect() as other:
        for connection in (one, other):
            connection.send(sent)
        until(lambda: is_read(one.sock) and is_read(other.sock), "both heads are read")
        for connection in (one, other):
            connection.send(b"x" * LENGTH)
        assert sorted([one.answer().status, other.answer().status]) == [200, 401]


def test_a_small_body_that_came_along_keeps_the_connection(strict):
    """It is left out without being read, so a refusal costs an honest client no handshake."""
    with strict.connect() as connection:
        sent = strict.key.request("POST", "/", b"small")
        for expected in (200, 401, 401):
            connection.send(sent)
            assert connection.answer().status == expected
        connection.send(strict.key.request())
        assert connection.answer().status == 200


def form(host: str, length: int = LENGTH) -> bytes:
    return (f"POST / HTTP/1.1\r\nHost: {host}\r\n{FORM}\r\nContent-Length: {length}\r\n"
            "Expect: 100-continue\r\n\r\n").encode()


def test_a_form_is_read_only_where_an_app_signs_forms(legacy):
    assert refused(legacy, form("new.example")) == (401, "unsigned")
    with legacy.connect() as connection:
        connection.send(form("old.example", 9))
        assert connection.interim() == 100
        connection.send(b"a=1&b=2&c")
        assert connection.answer().status == 401


@pytest.mark.parametrize(("fields", "expected"), [
    ("X-Auth-Client-ID: nobody\r\nX-Auth-Timestamp: {now}", (401, "unknown-key")),
    ("X-Auth-Client-ID: {id}\r\nX-Auth-Timestamp: 1000000000", (401, "stale")),
    ("X-Auth-Client-ID: {id}\r\nX-Auth-Timestamp: never", (400, "malformed"))])
def test_what_the_head_says_without_proof_is_enough_to_refuse(legacy, fields, expected):
    """auth-v4 signs the members of its body, so the signature cannot be judged yet; the rest can."""
    fields = fields.format(id=legacy.json.key_id, now=int(time.time()))
    data = (f"POST / HTTP/1.1\r\nHost: old.example\r\nX-Auth-Version: 4\r\n{fields}\r\n"
            f"X-Auth-Signature: {'0' * 64}\r\nContent-Length: {LENGTH}\r\nExpect: 100-continue\r\n\r\n").encode()
    assert refused(legacy, data) == expected


def test_refusals_from_the_head_are_quick(strict, note):
    """Hundreds of heads that announce a body each, over connections of their own, and not one body is waited for."""
    before, count = time.monotonic(), 200
    for _ in range(count):
        try:
            assert refused(strict, changed(strict.key))[0] == 401
        except Closed:
            pytest.fail("closed without an answer")
    took = time.monotonic() - before
    note(f"refused from the head: {took / count * 1e3:.1f} ms each, with a TLS connection each")
