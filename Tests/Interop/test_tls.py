"""TLS 1.3, 1.2 with forward secrecy, and nothing older; a certificate that is made once and kept."""

import socket
import ssl
import stat
import subprocess
import warnings

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from gateway import Gateway


def shake(shared, **limits) -> str:
    """Shakes hands within limits, and returns the version and cipher that were agreed on."""
    context = ssl.create_default_context(cafile=shared.data / "tls/certificate.pem")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = limits.get("least", ssl.TLSVersion.TLSv1)
        context.maximum_version = limits.get("most", ssl.TLSVersion.TLSv1_3)
    # Level 0, so that it is the gateway that refuses, and not this side.
    context.set_ciphers(limits.get("ciphers", "ALL") + ":@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", shared.port), 10) as sock:
        with context.wrap_socket(sock, server_hostname="127.0.0.1") as tls:
            tls.sendall(shared.key.request())
            assert tls.recv(12) == b"HTTP/1.1 200"
            return f"{tls.version()} {tls.cipher()[0]}"


def test_the_newest_is_preferred(shared):
    assert shake(shared).startswith("TLSv1.3 ")


def test_1_2_has_forward_secrecy(shared):
    version, cipher = shake(shared, most=ssl.TLSVersion.TLSv1_2).split(" ")
    assert version == "TLSv1.2"
    assert cipher.startswith("ECDHE-")


@pytest.mark.parametrize("limits", [
    {"most": ssl.TLSVersion.TLSv1_1}, {"most": ssl.TLSVersion.TLSv1},
    {"most": ssl.TLSVersion.TLSv1_2, "ciphers": "AES256-GCM-SHA384"},
    {"most": ssl.TLSVersion.TLSv1_2, "ciphers": "aNULL"},
], ids=["TLS 1.1", "TLS 1.0", "RSA key exchange", "no authentication"])
def test_nothing_older(shared, limits):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        shake(shared, **limits)


def test_plain_http_on_the_tls_port(shared):
    with socket.create_connection(("127.0.0.1", shared.port), 10) as sock:
        sock.sendall(shared.key.request())
        try:
            answered = sock.recv(64)
        except ConnectionError:
            answered = b""
        assert b"200" not in answered
    assert shared.send(shared.key.request()).status == 200


def test_the_certificate_is_made_once_and_kept(tmp_path):
    gateway = Gateway(tmp_path)
    with gateway:
        first = (gateway.data / "tls/certificate.pem").read_bytes()
    with gateway:
        assert (gateway.data / "tls/certificate.pem").read_bytes() == first
    certificate = x509.load_pem_x509_certificate(first)
    assert isinstance(certificate.public_key().curve, ec.SECP256R1)
    assert stat.S_IMODE((gateway.data / "tls/key.pem").stat().st_mode) == 0o600


def test_a_certificate_of_ones_own(tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=own", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "k.pem",
                    "-out", tmp_path / "c.pem"], check=True, capture_output=True)
    gateway = Gateway(tmp_path, "--tls", f"{tmp_path / 'c.pem'},{tmp_path / 'k.pem'}", certificate=tmp_path / "c.pem")
    with gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        assert gateway.send(key.request()).status == 200
        assert not (gateway.data / "tls").exists()
