"""One HTTPS request over a connection of its own, to a server whose certificate is pinned. Follows no
redirect."""

import base64
import datetime
import hashlib
import http.client
import ipaddress
import socket
import ssl

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .errors import ClientError
from .setup import Setup
from .signatures import Answer, Request

# Bytes of an answer's body. One that is larger is given up, whatever it announces.
LONGEST_BODY = 8 << 20
TIMEOUT = 20


def pin(certificate: x509.Certificate) -> str:
    """RFC 7469 section 2.4."""
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "sha256/" + base64.b64encode(hashlib.sha256(key).digest()).decode()


def check_certificate(der: bytes, setup: Setup, now: datetime.datetime) -> None:
    """A certificate that signs itself is taken where its key is pinned, and its dates, name and signature
    are right (docs/protocol.md, "Pins"). This client takes no other."""
    certificate = x509.load_der_x509_certificate(der)
    try:
        certificate.verify_directly_issued_by(certificate)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound) as error:
        raise ClientError("untrusted-server",
            "the certificate does not sign itself, or has no name") from error
    if pin(certificate) not in setup.pins:
        raise ClientError("untrusted-server", "the certificate's key is not pinned")
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise ClientError("untrusted-server", "the certificate is not valid at this time")
    try:
        is_named = ipaddress.ip_address(setup.host) in names.get_values_for_type(x509.IPAddress)
    except ValueError:
        is_named = setup.host.lower() in [name.lower() for name in names.get_values_for_type(x509.DNSName)]
    if not is_named:
        raise ClientError("untrusted-server", "the certificate is for another host")


class _PinnedConnection(http.client.HTTPSConnection):
    """Checks the certificate when the handshake is through, before a byte of the request is sent."""

    def __init__(self, setup: Setup):
        context = ssl.create_default_context()
        # The check is ours: no authority vouches for a certificate that signs itself.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        super().__init__(setup.host, setup.port, timeout=TIMEOUT, context=context)
        self._setup = setup

    def connect(self) -> None:
        super().connect()
        der = self.sock.getpeercert(binary_form=True)
        try:
            check_certificate(der, self._setup, datetime.datetime.now(datetime.timezone.utc))
        except ClientError:
            self.close()
            raise


def exchange(request: Request, setup: Setup) -> Answer:
    """Raises `network` where no whole answer came, and `untrusted-server` where nothing was sent."""
    connection = _PinnedConnection(setup)
    try:
        connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
        for name, value in [("host", request.authority), *request.fields.items(), ("connection", "close")]:
            connection.putheader(name, value)
        if request.body or request.method in ("POST", "PUT", "PATCH"):
            connection.putheader("content-length", str(len(request.body)))
        connection.endheaders(request.body or None)
        response = connection.getresponse()
        body = response.read(LONGEST_BODY + 1)
        if len(body) > LONGEST_BODY:
            raise ClientError("network", "the answer is too large")
        if response.length:
            raise ClientError("network", "the answer is not whole")
        fields: dict[str, str] = {}
        for name, value in response.getheaders():
            name = name.lower()
            fields[name] = f"{fields[name]}, {value.strip()}" if name in fields else value.strip()
        return Answer(response.status, fields, body)
    except (OSError, http.client.HTTPException, socket.timeout) as error:
        raise ClientError("network", str(error) or type(error).__name__) from error
    finally:
        connection.close()
