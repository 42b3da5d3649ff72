"""OPAQUE's client (RFC 9807) over OPRF(ristretto255, SHA-512) (RFC 9497), with HKDF- and HMAC-SHA-512 and
Argon2id.

Blinds, nonces and seeds are arguments where a known answer needs them; left out, they are random."""

import hashlib
import hmac
import os
from dataclasses import dataclass

from . import sodium
from .errors import ClientError

_CONTEXT = b"OPRFV1-\x00-ristretto255-SHA512"


def _sized(data: bytes, octets: int = 2) -> bytes:
    return len(data).to_bytes(octets, "big") + data


def mac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha512")


def extract(key_material: bytes) -> bytes:
    """HKDF-SHA-512 without a salt (RFC 5869 section 2.2)."""
    return mac(bytes(64), key_material)


def expand(key: bytes, info: bytes, count: int = 64) -> bytes:
    result, block, number = b"", b"", 1
    while len(result) < count:
        block = mac(key, block + info + bytes([number]))
        result, number = result + block, number + 1
    return result[:count]


def hkdf(key_material: bytes, info: bytes) -> bytes:
    """32 bytes, extracted without a salt and expanded: the HKDF of docs/protocol.md."""
    return expand(extract(key_material), info, 32)


def _expand_message(message: bytes, domain: bytes) -> bytes:
    """expand_message_xmd with SHA-512 to 64 bytes (RFC 9380 section 5.3.1): one block is enough."""
    domain += bytes([len(domain)])
    first = hashlib.sha512(bytes(128) + message + b"\x00\x40" + b"\x00" + domain).digest()
    return hashlib.sha512(first + b"\x01" + domain).digest()


def _derive_key_pair(seed: bytes) -> tuple[bytes, bytes]:
    """DeriveDiffieHellmanKeyPair (RFC 9807 section 6.4.1): the private and the public half."""
    message = seed + _sized(b"OPAQUE-DeriveDiffieHellmanKeyPair")
    for counter in range(256):
        scalar = sodium.reduce(_expand_message(message + bytes([counter]), b"DeriveKeyPair" + _CONTEXT))
        if scalar != bytes(32):
            return scalar, sodium.multiply_base(scalar)
    raise ClientError("bad-state", "no key pair can be derived")


def random_scalar() -> bytes:
    return sodium.reduce(os.urandom(64))


def _blind(password: bytes, blind: bytes) -> bytes:
    uniform = _expand_message(password, b"HashToGroup-" + _CONTEXT)
    return sodium.multiply(blind, sodium.point_from_uniform(uniform))


def _randomized_password(password: bytes, blind: bytes, evaluated: bytes) -> bytes:
    element = sodium.multiply(sodium.invert(blind), evaluated)
    output = hashlib.sha512(_sized(password) + _sized(element) + b"Finalize").digest()
    return extract(output + sodium.argon2id(output))


class _Envelope:
    """What the randomized password and an envelope's nonce give (RFC 9807 section 4.1)."""

    def __init__(self, randomized: bytes, nonce: bytes):
        self.nonce = nonce
        self.auth_key = expand(randomized, nonce + b"AuthKey")
        self.private_key, self.public_key = _derive_key_pair(expand(randomized, nonce + b"PrivateKey", 32))

    def tag(self, server_key: bytes, client: bytes, server: bytes) -> bytes:
        return mac(self.auth_key, self.nonce + server_key + _sized(server) + _sized(client))


class Registration:
    """A registration: `request` goes to the server, whose response gives the record (RFC 9807 section 5)."""

    def __init__(self, password: bytes, blind: bytes | None = None):
        self._password, self._blind = password, blind or random_scalar()
        self.request = _blind(password, self._blind)

    def finish(self, response: bytes, client: bytes, server: bytes, nonce: bytes | None = None) -> bytes:
        """The record, 192 bytes. `response` has 64; `client` and `server` are the identities."""
        if len(response) != 64 or not sodium.is_point(response[32:]):
            raise ClientError("false-answer", "not a registration response")
        randomized = _randomized_password(self._password, self._blind, response[:32])
        envelope = _Envelope(randomized, nonce or os.urandom(32))
        masking_key = expand(randomized, b"MaskingKey")
        return envelope.public_key + masking_key + envelope.nonce + envelope.tag(response[32:], client,
            server)


@dataclass(frozen=True)
class Finished:
    ke3: bytes
    session_key: bytes


class Login:
    """A login: `ke1` goes to the server, whose `ke2` gives `ke3` and the session key (RFC 9807 section 6)."""

    def __init__(self, password: bytes, blind: bytes | None = None, nonce: bytes | None = None,
                 seed: bytes | None = None):
        self._password, self._blind = password, blind or random_scalar()
        self._secret, share = _derive_key_pair(seed or os.urandom(32))
        self.ke1 = _blind(password, self._blind) + (nonce or os.urandom(32)) + share

    def finish(self, ke2: bytes, client: bytes, server: bytes, context: bytes) -> Finished:
        """Raises `wrong-credentials` where the password is not the account's, or the server not the one
        that has it."""
        if len(ke2) != 320:
            raise ClientError("false-answer", "not a second message of OPAQUE")
        credentials, nonce, share, server_mac = ke2[:192], ke2[192:224], ke2[224:256], ke2[256:]
        evaluated, masking_nonce, masked = credentials[:32], credentials[32:64], credentials[64:]
        randomized = _randomized_password(self._password, self._blind, evaluated)
        pad = expand(expand(randomized, b"MaskingKey"), masking_nonce + b"CredentialResponsePad", 128)
        opened = bytes(a ^ b for a, b in zip(masked, pad))
        server_key, envelope = opened[:32], _Envelope(randomized, opened[32:64])
        if not hmac.compare_digest(envelope.tag(server_key, client, server), opened[64:]):
            raise ClientError("wrong-credentials", "the envelope does not open")
        shared = b"".join((
            sodium.multiply(self._secret, share), sodium.multiply(self._secret, server_key),
            sodium.multiply(envelope.private_key, share)))
        preamble = (b"OPAQUEv1-" + _sized(context) + _sized(client) + self.ke1 + _sized(server) + credentials
                    + nonce + share)
        key = extract(shared)
        hashed = hashlib.sha512(preamble).digest()
        handshake = _derive(key, b"HandshakeSecret", hashed)
        if not hmac.compare_digest(mac(_derive(handshake, b"ServerMAC", b""), hashed), server_mac):
            raise ClientError("wrong-credentials", "the server does not have the account's record")
        ke3 = mac(_derive(handshake, b"ClientMAC", b""), hashlib.sha512(preamble + server_mac).digest())
        return Finished(ke3, _derive(key, b"SessionKey", hashed))


def _derive(secret: bytes, label: bytes, transcript_hash: bytes) -> bytes:
    """Derive-Secret (RFC 9807 section 6.4.2.1)."""
    return expand(secret, b"\x00\x40" + _sized(b"OPAQUE-" + label, 1) + _sized(transcript_hash, 1))
