"""Requests that two readers could read differently. Each is signed and would be accepted if its framing were good, so
that nothing but the framing can refuse it; none may reach the backend, not one byte."""

import pytest

from backend import Backend
from gateway import Gateway
from signing import ReleaseKey

BODY = b"amount=1"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A gateway without TLS before a recording backend; `plain.key` signs for it."""
    with Backend() as backend, Gateway(tmp_path_factory.mktemp("framing"), "--tls", "off",
                                       "--upstream", backend.url) as running:
        running.add_app("demo")
        running.key, running.backend = running.add_release(), backend
        yield running


def post(key: ReleaseKey, framing: str, wire: bytes = BODY) -> bytes:
    """A signed POST of BODY whose framing fields are `framing` and whose bytes after the head are `wire`."""
    return key.head("POST", "/order", body=BODY, length=framing) + wire


def line(key: ReleaseKey, extra: bytes) -> bytes:
    """A signed GET with one raw line more in its head."""
    return key.request().replace(b"\r\nHost:", b"\r\n" + extra + b"\r\nHost:", 1)


def swap(key: ReleaseKey, old: bytes, new: bytes) -> bytes:
    request = key.request()
    assert old in request
    return request.replace(old, new, 1)


CHUNKED = b"8\r\n" + BODY + b"\r\n0\r\n\r\n"

# One of each kind; HeadParserTests, ChunkedDecoderTests and Vectors/framing have them all.
CASES = {
    "length with chunked": lambda k: post(k, "Content-Length: 8\r\nTransfer-Encoding: chunked", CHUNKED),
    "two different lengths": lambda k: post(k, "Content-Length: 8\r\nContent-Length: 0"),
    "a chunk that ends late": lambda k: post(k, "Transfer-Encoding: chunked", b"8\r\n" + BODY + b"XX\r\n0\r\n\r\n"),
    "an endless chunk extension": lambda k: post(k, "Transfer-Encoding: chunked", b"8;" + b"a" * 70_000 + b"\r\n"),
    "a trailer that is a request line": lambda k: post(
        k, "Transfer-Encoding: chunked", CHUNKED[:-2] + b"GET /smuggled HTTP/1.1\r\n\r\n"),
    "a head that ends in LF": lambda k: k.request()[:-2] + b"\n",
    "a space before the colon": lambda k: line(k, b"Accept : text/plain"),
    "two different Hosts": lambda k: line(k, b"Host: other.example"),
    "absolute form of the other scheme": lambda k: swap(k, b"GET / ", b"GET https://" + k.authority.encode() + b"/ "),
    "TRACE": lambda k: k.request("TRACE"),
    "the preface of HTTP/2": lambda k: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a TLS hello": lambda k: bytes.fromhex("16030100c8010000c403036162") + b"\r\n\r\n",
    "an endless request line": lambda k: b"GET /" + b"a" * 100_000,
    "too many fields": lambda k: line(k, b"\r\n".join(b"Accept: a" for _ in range(1_000))),
}
# Some have no end of head, or an end that the gateway waits for: those are cut by a deadline, not by an answer.
REFUSALS = {400, 408, 413, 414, 417, 431, 501, 505}


def test_the_control_is_accepted(plain):
    """The same requests with good framing do pass; otherwise the cases below would prove nothing."""
    before = len(plain.backend.seen)
    assert plain.send(plain.key.request()).status == 200
    assert plain.send(post(plain.key, "Content-Length: 8")).status == 200
    assert plain.send(post(plain.key, "Transfer-Encoding: chunked", CHUNKED)).status == 200
    assert plain.send(post(plain.key, "Transfer-Encoding: chunked", b"8;a=b\r\n" + CHUNKED[3:])).status in (200, 400)
    assert len(plain.backend.seen) - before >= 3


@pytest.mark.parametrize("name", CASES)
def test_is_refused_and_closed(plain, name):
    before = plain.backend.bytes()
    with plain.connect() as connection:
        # What follows on the connection must not be taken for a request of its own either.
        connection.send(CASES[name](plain.key) + SMUGGLED)
        answer = connection.answer()
        assert answer.status in REFUSALS, answer
        assert answer.get("connection") == "close"
        assert connection.is_closed()
    assert plain.backend.bytes() == before, bytes(plain.backend.raw[-1])
    assert plain.process.poll() is None


def test_a_bad_request_after_good_ones_in_one_write(plain):
    """Pipelined: the two good ones are answered in order, the bad one is refused, what follows it is not read."""
    before = len(plain.backend.seen)
    with plain.connect() as connection:
        connection.send(plain.key.request(target="/first") + plain.key.request("POST", "/second", BODY)
                        + CASES["length with chunked"](plain.key) + plain.key.request(target="/after"))
        assert [connection.answer().status for _ in range(3)] == [200, 200, 400]
        assert connection.is_closed()
    assert [seen.target for seen in plain.backend.seen[before:]] == ["/first", "/second"]


# What RFC 9112 asks a server to accept although it is unusual: each reaches the backend, in origin form and with a Host.
UNUSUAL = {
    "an empty line before the request": lambda k: b"\r\n" + k.request(target="/a?b=%2F"),
    "absolute form, its request target signed": lambda k: k.request(
        target="/a?b=%2F", derived=(("@request-target", f"http://{k.authority}/a?b=%2F"),
                                    ("@target-uri", f"http://{k.authority}/a?b=%2F"))).replace(
        b"GET /", b"GET http://%s/" % k.authority.encode(), 1),
    "HTTP/1.0 without Host": lambda k: k.request(target="/a?b=%2F").replace(b"HTTP/1.1", b"HTTP/1.0").replace(
        b"Host: %s\r\n" % k.authority.encode(), b""),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_the_unusual_that_the_standard_asks_for(plain, name):
    before = len(plain.backend.seen)
    assert plain.send(UNUSUAL[name](plain.key)).status == 200
    (seen,) = plain.backend.seen[before:]
    assert (seen.method, seen.target, seen.version) == ("GET", "/a?b=%2F", "HTTP/1.1")
    assert seen.get("host").lower() == plain.key.authority


def test_the_origin_form_is_not_what_was_signed_as_absolute_form(plain):
    """A signature over `@request-target` holds for the form that was sent, and for no other. Source: RFC 9421 §2.2.5."""
    signed = plain.key.request(derived=(("@request-target", f"http://{plain.key.authority}/"),))
    assert plain.send(signed).status == 401


def test_an_empty_line_behind_a_body_is_passed_over(plain):
    """Some clients end a body with one more CRLF than they announced. Source: RFC 9112 §2.2."""
    with plain.connect() as connection:
        connection.send(plain.key.request("POST", "/first", BODY) + b"\r\n" + plain.key.request(target="/second"))
        assert [connection.answer().status for _ in range(2)] == [200, 200]


def test_fields_with_underscores(tmp_path):
    """Backends that hand fields over as CGI does take `x_user` for `x-user`. The parser drops such a field:
    if a signature covers it, the request is refused and does not pass without it."""
    with Backend() as backend, Gateway(tmp_path, "--tls", "off", "--upstream", backend.url) as gateway:
        gateway.add_app("demo", forward="x_user,x-user")
        key = gateway.add_release()

        def uncovered() -> bytes:
            return key.request().replace(b"\r\nHost:", b"\r\nX_User: root\r\nx-user: me \r\nHost:", 1)

        assert gateway.send(uncovered()).status == 200
        assert backend.seen[0].get("x_user") is None and backend.seen[0].get("x-user") == "me"
        assert b"root" not in backend.raw[0]
        assert gateway.send(key.request(fields=[("x_user", "root")])).status == 401
        framed = key.request().replace(b"\r\nHost:", b"\r\nContent_Length: 8\r\nTransfer_Encoding: x\r\nHost:", 1)
        assert gateway.send(framed).status == 200
        assert len(backend.seen) == 2

        assert gateway.stop() == 0
        gateway.start("--underscore-fields", "keep")
        assert gateway.send(key.request(fields=[("x_user", "root")])).status == 200
        assert backend.seen[-1].get("x_user") == "root"

        assert gateway.stop() == 0
        gateway.start("--underscore-fields", "refuse")
        assert gateway.send(uncovered()).status == 400
        assert len(backend.seen) == 3


def test_methods_that_are_named(tmp_path):
    with Backend() as backend, Gateway(
            tmp_path, "--tls", "off", "--upstream", backend.url, "--allow-methods", "M-SEARCH,get") as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        for method, status in (("M-SEARCH", 200), ("get", 200), ("PURGE", 200), ("TRACE", 400), ("B-C", 400), ("Get", 400)):
            assert gateway.send(key.request(method)).status == status, method
        assert [seen.method for seen in backend.seen] == ["M-SEARCH", "get", "PURGE"]


@pytest.mark.parametrize("options", [("--underscore-fields", "maybe"), ("--allow-methods", "CONNECT")])
def test_settings_that_mean_nothing_end_the_start(tmp_path, options):
    with pytest.raises(AssertionError, match="exit 2"):
        Gateway(tmp_path, *options).start()
