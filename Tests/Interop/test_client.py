"""`countersign request`, the first client: a profile, a pin, and what reaches the wire when the pin is wrong."""

import base64
import hashlib
import json
import socket
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from backend import Backend
from gateway import run
from ports import free_port

WRONG_PIN = "sha256/" + "A" * 43 + "="


class Client:
    """The client commands, with a configuration folder of their own."""

    def __init__(self, shared, folder):
        self.shared, self.environment = shared, {"XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}

    def run(self, *arguments, stdin=b""):
        return run(*arguments, stdin=stdin, environment=self.environment)

    def add(self, name: str, pin: str, url: str | None = None):
        done = self.run("profile", "add", name, "--url", url or self.shared.url, "--key-id", self.shared.key.key_id,
                        "--secret-stdin", "--pin", pin, "--ca", self.shared.data / "tls/certificate.pem",
                        stdin=self.shared.key.secret + "\n")
        assert done.returncode == 0, done.err


@pytest.fixture
def client(shared, tmp_path):
    return Client(shared, tmp_path)


def pin_of(shared) -> str:
    """The pin that `serve` printed at its start."""
    line = next(line for line in shared.started + shared.log_path.read_text().splitlines() if "sha256/" in line)
    return "sha256/" + line.split("sha256/")[1][:44]


def test_the_pin_is_the_certificates(shared):

    with socket.create_connection(("127.0.0.1", shared.port)) as sock:
        with shared.context.wrap_socket(sock, server_hostname="127.0.0.1") as tls:
            certificate = x509.load_der_x509_certificate(tls.getpeercert(binary_form=True))
            assert tls.version() == "TLSv1.3"
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert pin_of(shared) == "sha256/" + base64.b64encode(hashlib.sha256(key).digest()).decode()


def test_is_accepted_with_the_pin(client):
    client.add("p", pin_of(client.shared))
    done = client.run("request", "--profile", "p", "/hello?a=b")
    assert done.returncode == 0, done.err
    assert json.loads(done.out)["target"] == "/hello?a=b"


def test_a_body_a_method_and_a_header(client, tmp_path):
    client.add("p", pin_of(client.shared))
    (tmp_path / "body").write_bytes(b'{"a":1}')
    done = client.run("request", "--profile", "p", "-X", "PUT", "-d", f"@{tmp_path / 'body'}", "-i",
                      "-H", "Content-Type: application/json", "/x")
    assert done.returncode == 0, done.err
    assert done.out.startswith("HTTP/1.1 200")
    assert json.loads(done.out.replace("\r", "").split("\n\n", 1)[1])["method"] == "PUT"


def test_a_head_is_shown_in_its_order(client, tmp_path):
    def answer(_, sock):
        sock.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                     b"HTTP/1.1 418 I'm a teapot\r\nX-One: a\r\nx-two:  b \r\nX-ONE: \xff\r\nContent-Length: 2\r\n\r\nhi")

    with Backend(answer) as server:
        done = run("profile", "add", tmp_path / "p", "--url", server.url, "--key-id", "r_1", "--secret-stdin", stdin="s")
        assert done.returncode == 0, done.err
        done = run("request", "--profile", tmp_path / "p", "-i", "/")
    assert done.returncode == 1
    # The reason means nothing, and is the usual one or none.
    assert done.stdout == b"HTTP/1.1 418 \r\nX-One: a\r\nx-two: b\r\nX-ONE: \xff\r\nContent-Length: 2\r\n\r\nhi"


def test_a_field_that_follows_from_the_rest_cannot_be_given(client):
    client.add("p", pin_of(client.shared))
    done = client.run("request", "--profile", "p", "--dry-run", "-H", "Content-Length: 1", "/")
    assert done.returncode == 2 and "Content-Length" in done.err, done.err


def test_a_refusal_is_exit_1(client):
    client.add("p", pin_of(client.shared))
    client.shared.admin("app", "policy", "demo", "--set", "schemes=form-md5")
    try:
        done = client.run("request", "--profile", "p", "/")
    finally:
        client.shared.admin("app", "policy", "demo", "--set", "schemes=message-signatures")
    assert done.returncode == 1
    assert "scheme-not-allowed" in done.out + done.err


def test_a_dry_run_sends_nothing(client):
    client.add("p", pin_of(client.shared))
    done = client.run("request", "--profile", "p", "--dry-run", "/dry")
    assert done.returncode == 0, done.err
    assert "GET /dry HTTP/1.1" in done.out
    assert "signature-input: app=" in done.out.lower()
    assert client.shared.key.secret not in done.out
    # A refusal is logged at once, and with it all that came before it.
    client.shared.event(json.loads(client.shared.send(b"GET /after HTTP/1.1\r\nHost: x\r\n\r\n").body)["instance"])
    assert b"/dry" not in client.shared.log_path.read_bytes()


class Eavesdropper:
    """A TLS server with the gateway's own certificate and key, which counts the bytes of application data it reads."""

    def __init__(self, shared):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(shared.data / "tls/certificate.pem", shared.data / "tls/key.pem")
        self.context, self.read, self.shakes = context, b"", 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        sock, _ = self.listener.accept()
        try:
            sock.settimeout(5)
            with self.context.wrap_socket(sock, server_side=True) as tls:
                self.shakes += 1
                while chunk := tls.recv(65536):
                    self.read += chunk
                    tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    return
        except (OSError, ssl.SSLError):
            self.shakes += 1


@pytest.mark.parametrize("is_right", [True, False], ids=["the right pin (control)", "a wrong pin"])
def test_no_byte_is_sent_where_the_pin_is_wrong(client, is_right):
    listener = Eavesdropper(client.shared)
    client.add("p", pin_of(client.shared) if is_right else WRONG_PIN, f"https://127.0.0.1:{listener.port}")
    done = client.run("request", "--profile", "p", "/secret")
    listener.thread.join(10)
    assert listener.shakes == 1, "the client never connected; the test proves nothing"
    if is_right:
        assert b"GET /secret" in listener.read
    else:
        assert done.returncode in (1, 3)
        assert listener.read == b""
        assert "pin" in done.err.lower()


def test_wrong_use_is_one_clear_error(client):
    for arguments in (
        ("request",), ("request", "--profile", "absent", "/"), ("request", "--nonsense", "/"),
        ("profile", "add", "p", "--url", "not a url", "--key-id", "k", "--secret-stdin"),
        ("profile", "add", "p", "--url", "https://127.0.0.1:1", "--key-id", "r_x", "--secret-stdin", "--pin", "md5/x"),
        ("verify", "--scheme", "message-signatures", "--key-id", "r_x", "--secret", "hex:zz"),
    ):
        done = client.run(*arguments, stdin=b"\n")
        assert done.returncode in (1, 2) and done.out == "", (arguments, done.err)
        assert 0 < len(done.err.strip().splitlines()) <= 3 and "Fatal" not in done.err, done.err


def test_an_unreachable_server_is_exit_3(client):
    port = free_port()
    client.add("gone", pin_of(client.shared), f"https://127.0.0.1:{port}")
    assert client.run("request", "--profile", "gone", "/").returncode == 3
