"""Everything from outside has a bound, and going over it is an answer; the next client is served as before."""

import json
import pathlib
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from backend import Backend
from gateway import Gateway
from signing import digest
from wire import Closed

MIB = 1 << 20


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    with Backend() as backend, Gateway(tmp_path_factory.mktemp("limits"), "--upstream", backend.url, "--limit-connections", 20,
                                       "--limit-address-connections", 60,
                                       "--limit-body", 8 * MIB) as running:
        running.add_app("demo")
        running.key, running.backend = running.add_release(), backend
        yield running


def refusal(answer) -> tuple[int, str]:
    return answer.status, json.loads(answer.body)["code"]


def test_a_large_body_needs_a_length(narrow):
    before, body = narrow.backend.bytes(), b"x" * (2 * MIB)
    head = narrow.key.head("POST", "/", body=body, length="Transfer-Encoding: chunked")
    assert refusal(narrow.send(head + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")) == (413, "too-large")
    assert narrow.backend.bytes() == before


def test_a_body_over_the_limit_is_refused_by_its_length(narrow):
    """Before any of it was sent."""
    before = narrow.backend.bytes()
    head = narrow.key.head("POST", "/", body_digest=digest(b""), length=f"Content-Length: {9 * MIB}")
    assert refusal(narrow.send(head)) == (413, "too-large")
    assert narrow.backend.bytes() == before


def test_bodies_about_the_limits_arrive_whole(narrow):
    for size in (0, 1, 65_535, 65_536, MIB - 1, MIB, MIB + 1, 3 * MIB):
        body = (bytes(range(256)) * (size // 256 + 1))[:size]
        before = len(narrow.backend.seen)
        assert narrow.send(narrow.key.request("POST", "/size", body)).status == 200
        assert narrow.backend.wait(before + 1)[before].body == body, size


def test_connections_over_the_limit(narrow):
    """While all are being served they are told, or not taken; once the others have gone, the next is served."""
    others = []
    try:
        # Over the limit some are let in, in case that idle ones can give way; none is idle here.
        for _ in range(26):
            try:
                connection = narrow.connect(timeout=3)
                others.append(connection)
                connection.send(narrow.key.request("POST", "/", b"0123456789")[:-1])
            except (OSError, ssl.SSLError):
                pass
        assert len(others) >= 20
        for _ in range(5):
            try:
                with narrow.connect(timeout=3) as connection:
                    connection.send(narrow.key.request())
                    assert connection.answer().status == 503
            except (Closed, OSError, ssl.SSLError):
                pass
    finally:
        for connection in others:
            connection.sock.close()
    for _ in range(50):
        try:
            if narrow.send(narrow.key.request()).status == 200:
                return
        except (Closed, OSError, ssl.SSLError):
            pass
    pytest.fail("it does not recover")


def test_a_client_that_has_said_all(tmp_path):
    """The client closes its half of a plain connection: the answer still comes."""
    with Gateway(tmp_path, "--tls", "off") as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        with gateway.connect() as connection:
            connection.send(key.request("POST", "/half", b"x"))
            connection.sock.shutdown(socket.SHUT_WR)
            assert connection.answer().status == 200
            assert connection.is_closed()


def test_clients_that_go_away(narrow):
    """Two hundred clients that leave in the middle of things; nothing is left behind."""
    request = narrow.key.request("POST", "/gone", b"x" * 1000)
    for index in range(200):
        try:
            with narrow.connect() as connection:
                connection.send(request[:index * 7])
                if index % 3 == 0:
                    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        except (OSError, ssl.SSLError):
            pass
    for _ in range(20):
        assert narrow.send(narrow.key.request()).status == 200
    descriptors = len(list(pathlib.Path(f"/proc/{narrow.process.pid}/fd").iterdir()))
    assert descriptors < 80, f"{descriptors} descriptors are open"


def test_many_at_once_over_all_workers(tmp_path):
    """A replay sent to two workers at the same time is accepted by one of them."""
    with Gateway(tmp_path, "--workers", 4) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        requests = [key.request("POST", "/w", b"x") for _ in range(100)]
        statuses: list[list[int]] = []

        def send() -> None:
            found = []
            with gateway.connect() as connection:
                for request in requests:
                    connection.send(request)
                    found.append(connection.answer().status)
            statuses.append(found)

        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for each in zip(*statuses, strict=True):
            assert sorted(each) == [200] + [401] * 7


def test_a_renewed_certificate(tmp_path):
    """SIGHUP takes up the new one; a connection that is open goes on."""
    def make() -> None:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                        "2", "-subj", "/CN=own", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "k.pem",
                        "-out", tmp_path / "c.pem"], check=True, capture_output=True)

    def shown(gateway) -> str:
        return ssl.get_server_certificate(("127.0.0.1", gateway.port))

    make()
    gateway = Gateway(tmp_path, "--tls", f"{tmp_path / 'c.pem'},{tmp_path / 'k.pem'}", certificate=tmp_path / "c.pem")
    with gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        first = shown(gateway)
        with gateway.connect() as connection:
            connection.send(key.request())
            assert connection.answer().status == 200
            make()
            gateway.process.send_signal(signal.SIGHUP)
            for _ in range(100):
                if shown(gateway) != first:
                    break
            assert shown(gateway) == ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert((tmp_path / "c.pem").read_text()))
            connection.send(key.request())
            assert connection.answer().status == 200
        # A broken one is not taken up, and what is served stays.
        before = shown(gateway)
        (tmp_path / "c.pem").write_text("not a certificate")
        gateway.process.send_signal(signal.SIGHUP)
        assert shown(gateway) == before
        assert gateway.process.poll() is None
