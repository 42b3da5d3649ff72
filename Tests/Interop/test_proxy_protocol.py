"""The PROXY protocol: a trusted proxy names the client before the first byte, also under TLS, and no other
peer may."""

import json
import socket
import ssl
import struct

import pytest

from backend import Backend
from bearer import DEVICE, PREFIX, asked
from gateway import Gateway
from sockets import is_read
from waiting import until
from wire import Connection, Reader

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
TRUSTED = ("--trusted-proxies", "127.0.0.1", "--proxy-protocol", "require")


def line(client: str, port: int = 50_000) -> bytes:
    family = "TCP6" if ":" in client else "TCP4"
    server = "::1" if ":" in client else "127.0.0.1"
    return f"PROXY {family} {client} {server} {port} 443\r\n".encode()


def binary(client: str, port: int = 50_000, command: int = 0x21) -> bytes:
    is_ipv6 = ":" in client
    family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
    body = socket.inet_pton(family, client) * 2 + struct.pack("!HH", port, 443)
    # An extension that says nothing (PP2_TYPE_NOOP).
    body += b"\x04\x00\x03abc"
    return SIGNATURE + struct.pack("!BBH", command, 0x21 if is_ipv6 else 0x11, len(body)) + body


def connect(gateway: Gateway, preface: bytes = b"", source: str = "127.0.0.1", *, bytewise: bool = False) -> Connection:
    """A connection that says `preface` before TLS, or before its first request."""
    sock = socket.create_connection(("127.0.0.1", gateway.port), 10, source_address=(source, 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in ([preface[i : i + 1] for i in range(len(preface))] if bytewise else [preface]):
        sock.sendall(piece)
        if bytewise:
            until(lambda: is_read(sock), "the gateway reads")
    connection = Connection.__new__(Connection)
    connection.sock = gateway.context.wrap_socket(sock, server_hostname="127.0.0.1") if gateway.is_tls else sock
    connection.reader = Reader(connection.sock)
    return connection


@pytest.fixture(scope="module", params=["tls", "plain"])
def behind(request, tmp_path_factory):
    """A gateway that takes PROXY headers from 127.0.0.1."""
    tls = () if request.param == "tls" else ("--tls", "off")
    with Gateway(tmp_path_factory.mktemp("proxy"), "--deadline-head", "2", *TRUSTED, *tls) as gateway:
        gateway.add_app("demo")
        gateway.key = gateway.add_release()
        yield gateway


def peers(gateway: Gateway, path: str) -> list[str]:
    return until(lambda: [event["peer"] for event in gateway.events() if event.get("path") == path], f"no event of {path}")


HEADERS = {
    "a line, byte by byte": (line("2001:db8::7"), "[2001:db8::7]:50000", True),
    "binary": (binary("203.0.113.8"), "203.0.113.8:50000", False),
    "a line that names nobody": (b"PROXY UNKNOWN\r\n", "127.0.0.1", False),
}


@pytest.mark.parametrize("name", HEADERS)
def test_the_client_is_who_the_proxy_names(behind, name):
    header, peer, bytewise = HEADERS[name]
    path = f"/{name}".replace(" ", "-").replace(",", "")
    with connect(behind, header, bytewise=bytewise) as connection:
        for _ in range(2):
            connection.send(behind.key.request(target=path))
            assert connection.answer().status == 200
    found = peers(behind, path)
    assert found and all(one == peer or one.startswith(f"{peer}:") for one in found)


def test_a_proxy_that_names_nobody_vouches_for_no_field(behind):
    """The proxy forwards what the client wrote, so the client could name any address."""
    request = behind.key.request(target="/unnamed").replace(b"\r\nHost:", b"\r\nX-Forwarded-For: 198.51.100.9\r\nHost:", 1)
    with connect(behind, binary("203.0.113.9", command=0x20)) as connection:
        connection.send(request)
        answer = connection.answer()
    assert answer.status == 200 and b"198.51.100.9" not in answer.body
    assert json.loads(answer.body)["headers"]["countersign-client"] == "127.0.0.1"


def test_what_follows_may_stand_right_behind(behind):
    """The header takes no byte of what follows it in the same segment: TLS finds its own."""
    header, request = binary("203.0.113.10"), behind.key.request(target="/right-behind")
    if not behind.is_tls:
        with connect(behind, header + request) as connection:
            assert connection.answer().status == 200
    else:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = behind.context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with socket.create_connection(("127.0.0.1", behind.port), 10) as sock:

            def until_done(step):
                while True:
                    try:
                        return step()
                    except ssl.SSLWantReadError:
                        sock.sendall(outgoing.read())
                        incoming.write(sock.recv(65536))

            with pytest.raises(ssl.SSLWantReadError):
                tls.do_handshake()
            sock.sendall(header + outgoing.read())
            until_done(tls.do_handshake)
            tls.write(request)
            sock.sendall(outgoing.read())
            assert until_done(lambda: tls.read(1000)).startswith(b"HTTP/1.1 200 ")
    assert peers(behind, "/right-behind") == ["203.0.113.10:50000"]


BAD = {
    "a request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "too long": SIGNATURE + b"\x21\x11\xff\xff" + b"\0" * 500,
    "half of one": binary("203.0.113.7")[:20],
}


@pytest.mark.parametrize("name", BAD)
def test_a_trusted_proxy_must_say_who_calls(behind, name):
    """Without a header that can be read the connection ends, and nothing is answered: what is right behind is not known."""
    sock = socket.create_connection(("127.0.0.1", behind.port), 10)
    try:
        sock.sendall(BAD[name])
        sock.settimeout(8)
        try:
            assert sock.recv(100) == b""
        except ConnectionError:
            pass
    finally:
        sock.close()
    assert behind.process.poll() is None
    if name != "half of one":
        until(lambda: any("PROXY header" in event.get("detail", "") for event in behind.events()), lambda: behind.events()[-1])


def test_who_is_not_trusted_may_not_say_it(behind):
    """Its header is the beginning of a bad request, or of a bad handshake (an alert at most); without one it is served as always."""
    with connect(behind, source="127.0.0.2") as connection:
        connection.send(behind.key.request(target="/untrusted"))
        assert connection.answer().status == 200
    assert peers(behind, "/untrusted")[0].startswith("127.0.0.2:")
    sock = socket.create_connection(("127.0.0.1", behind.port), 10, source_address=("127.0.0.2", 0))
    with sock:
        sock.sendall(line("203.0.113.7") + behind.key.request(target="/forged"))
        answer = b""
        try:
            while piece := sock.recv(65536):
                answer += piece
        except ConnectionError:
            pass
        assert not answer or answer.startswith(b"\x15") if behind.is_tls else answer.startswith(b"HTTP/1.1 400 ")
    with connect(behind, line("203.0.113.7")) as connection:
        connection.send(behind.key.request(target="/afterwards"))
        connection.answer()
    assert peers(behind, "/afterwards") and not [event for event in behind.events() if event.get("path") == "/forged"]


def test_by_default_nobody_may(tmp_path):
    with Gateway(tmp_path, "--tls", "off", "--trusted-proxies", "127.0.0.1") as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        assert gateway.send(line("203.0.113.7") + key.request()).status == 400
        assert gateway.send(key.request()).status == 200


def test_limits_and_the_backend_go_by_the_client_that_is_named(tmp_path):
    """Guesses of two clients behind one proxy are counted apart. A client that is itself a trusted proxy may name another in
    X-Forwarded-For."""
    with Backend() as backend, Gateway(
            tmp_path, "--login-address", "3/3600s", "--upstream", backend.url, *TRUSTED) as gateway:
        gateway.add_app("demo", password_login="on")
        gateway.key = gateway.add_release()

        def guess(header: bytes, name: str, forwarded: str | None = None) -> str:
            body = json.dumps({"account": name, "password": "wrong", "device": DEVICE}).encode()
            request = gateway.key.request(
                "POST", f"{PREFIX}/login/password", body, fields=[("content-type", "application/json")])
            if forwarded:
                request = request.replace(b"\r\n", f"\r\nX-Forwarded-For: {forwarded}\r\n".encode(), 1)
            with connect(gateway, header) as connection:
                return asked(connection, request)[0]

        assert [guess(line("203.0.113.1"), f"a{n}") for n in range(3)] == ["wrong-credentials"] * 3
        assert guess(binary("203.0.113.1"), "b") == "too-many-attempts"
        assert guess(line("203.0.113.2"), "b", "198.51.100.9") == "wrong-credentials"
        assert [guess(line("127.0.0.1"), f"c{n}", "203.0.113.1") for n in range(1)] == ["too-many-attempts"]
