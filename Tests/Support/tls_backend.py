"""A backend behind TLS that a test holds in its hand: what goes into one record, and messages of TLS's own at any time."""

import ctypes
import socket
import ssl
import sys

from backend import Backend, ok


class TLSBackend(Backend):
    """A `Backend` whose connections speak TLS; `url` names `localhost`. `handshakes` counts those that succeeded, and
    `failures` holds what became of the others."""

    def __init__(self, certificate, key, answer=ok, *, client_authority=None, **options):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        if client_authority:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(client_authority)
        self.handshakes, self.failures = 0, []
        super().__init__(answer, **options)
        self.url = f"https://localhost:{self.port}"

    def serve(self, sock: socket.socket) -> None:
        try:
            with sock:
                wrapped = self.context.wrap_socket(sock, server_side=True)
        except (ssl.SSLError, OSError) as error:
            with self.lock:
                self.failures.append(str(error))
            return
        with self.lock:
            self.handshakes += 1
        super().serve(wrapped)


class _SSLSocket(ctypes.Structure):
    """The beginning of CPython's `PySSLSocket`, as far as OpenSSL's own object."""

    _fields_ = [("references", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("socket", ctypes.c_void_p),
                ("ssl", ctypes.c_void_p)]


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL("libssl.so.3")
    for name in ("SSL_new_session_ticket", "SSL_do_handshake", "SSL_get_state", "SSL_version"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    library.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]
    return library


def _object(sock: ssl.SSLSocket) -> ctypes.c_void_p:
    assert sys.implementation.name == "cpython"
    return ctypes.c_void_p(_SSLSocket.from_address(id(sock._sslobj)).ssl)


def send_session_ticket(sock: ssl.SSLSocket) -> None:
    """Sends a NewSessionTicket now (RFC 8446 §4.6.1)."""
    library, pointer = _library(), _object(sock)
    assert library.SSL_version(pointer) == 0x304, "only TLS 1.3 has tickets after the handshake"
    assert library.SSL_new_session_ticket(pointer) == 1
    assert library.SSL_do_handshake(pointer) == 1


def send_key_update(sock: ssl.SSLSocket, *, ask: bool = False) -> None:
    """Sends a KeyUpdate now (RFC 8446 §4.6.3), and may ask the peer for one of its own."""
    library, pointer = _library(), _object(sock)
    assert library.SSL_version(pointer) == 0x304
    assert library.SSL_key_update(pointer, 1 if ask else 0) == 1
    assert library.SSL_do_handshake(pointer) == 1
