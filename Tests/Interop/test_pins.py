"""Which servers `countersign request` goes on with. Wherever it does not, not one byte of the request is sent."""

import base64
import datetime
import hashlib
import ipaddress
import socket
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from gateway import run

NOW = datetime.datetime.now(datetime.timezone.utc)
DAY = datetime.timedelta(days=1)


class Identity:
    """A key and its certificate, signed by another one's or by its own."""

    def __init__(self, name: str, issuer: "Identity | None" = None, address="127.0.0.1", end=NOW + DAY, is_authority=False,
                 names: tuple[str, ...] = ()):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        parent = issuer or self
        builder = (
            x509.CertificateBuilder().subject_name(self.name).issuer_name(parent.name).public_key(self.key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(NOW - 3 * DAY).not_valid_after(end)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True))
        if not is_authority:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(
                    [x509.IPAddress(ipaddress.ip_address(address)), *map(x509.DNSName, names)]), critical=False)
        self.certificate = builder.sign(parent.key, hashes.SHA256())

    @property
    def pin(self) -> str:
        encoded = self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return "sha256/" + base64.b64encode(hashlib.sha256(encoded).digest()).decode()

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


AUTHORITY = Identity("authority", is_authority=True)
ISSUED = Identity("issued", AUTHORITY)
ELSEWHERE = Identity("issued for another address", AUTHORITY, address="127.0.0.2")
SELF = Identity("self")
SELF_EXPIRED = Identity("self, long ago", end=NOW - DAY)
STRANGER = Identity("stranger")

# (server, pins, authorities in --ca, goes on?)
TABLE = {
    "self-signed, pinned": (SELF, [SELF], None, True),
    "self-signed, another pinned": (SELF, [STRANGER], None, False),
    "self-signed, another pinned, though trusted by --ca": (SELF, [STRANGER], SELF, False),
    "self-signed, pinned, expired": (SELF_EXPIRED, [SELF_EXPIRED], None, False),
    "self-signed, no pin": (SELF, [], None, False),
    "issued, no pin": (ISSUED, [], AUTHORITY, True),
    "issued, pinned, for another address": (ELSEWHERE, [ELSEWHERE], AUTHORITY, False),
}


class Server:
    """A TLS server of that identity. It counts the handshakes that were tried and keeps what it could read."""

    def __init__(self, identity: Identity, folder):
        (folder / "server.pem").write_bytes(identity.pem + AUTHORITY.pem + identity.key_pem)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "server.pem")
        self.read, self.connections = b"", 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        sock, _ = self.listener.accept()
        self.connections += 1
        sock.settimeout(5)
        try:
            with self.context.wrap_socket(sock, server_side=True) as tls:
                self.read = tls.recv(65536)
                tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        except OSError:
            pass


@pytest.mark.parametrize("case", TABLE)
def test_whom_the_client_goes_on_with(case, tmp_path):
    identity, pins, authority, goes_on = TABLE[case]
    server = Server(identity, tmp_path)
    options = [option for pin in pins for option in ("--pin", pin.pin)]
    if authority:
        (tmp_path / "ca.pem").write_bytes(authority.pem)
        options += ["--ca", tmp_path / "ca.pem"]
    profile = f"{tmp_path}/profile"
    added = run("profile", "add", profile, "--url", f"https://127.0.0.1:{server.port}", "--key-id", "r_1",
                "--secret-stdin", *options, stdin="not a secret\n")
    assert added.returncode == 0, added.err
    done = run("request", "--profile", profile, "/pinned")
    server.thread.join(10)
    assert server.connections == 1, "the client never connected; the case proves nothing"
    if goes_on:
        assert (done.returncode, done.out) == (0, "hi"), done.err
        assert server.read.startswith(b"GET /pinned HTTP/1.1\r\n")
    else:
        assert done.returncode == 3, done.out
        assert server.read == b""
        assert "nothing was sent" in done.err


@pytest.mark.parametrize("text", [b"", b"not a certificate\n", AUTHORITY.pem[:200]], ids=["empty", "other text", "cut"])
def test_authorities_that_are_none_are_told_at_once(tmp_path, text):
    (tmp_path / "ca.pem").write_bytes(text)
    added = run("profile", "add", f"{tmp_path}/profile", "--url", "https://127.0.0.1:1", "--key-id", "r_1", "--secret-stdin",
                "--ca", tmp_path / "ca.pem", stdin="not a secret\n")
    assert added.returncode == 1 and "ca.pem" in added.err
    assert not (tmp_path / "profile").exists()
