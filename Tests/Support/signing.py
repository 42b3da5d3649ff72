"""Signs requests with hmac and hashlib alone (RFC 9421, hmac-sha256), quickly enough for load."""

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass


def digest(body: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def decode_secret(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class ReleaseKey:
    key_id: str
    secret: str
    authority: str
    # The release that calls, where the key is a session's.
    release: str | None = None
    # The clock that requests are signed by.
    time: Callable[[], float] = time.time
    algorithm = "hmac-sha256"

    def sign(self, base: bytes) -> bytes:
        return hmac.digest(decode_secret(self.secret), base, "sha256")

    def head(self, method: str, target: str, *, body: bytes = b"", body_digest: str | None = None,
             fields: list[tuple[str, str]] | None = None, created: int | None = None, nonce: str | None = None,
             length: str | None = None, derived: tuple[tuple[str, str], ...] = ()) -> bytes:
        """The signed head of a request, its empty line included. `length` is the framing field to send, if not
        `Content-Length: len(body)`; `body_digest` stands for a body that is too large to hold; `derived` are derived
        components to cover beside the usual ones, with their values."""
        if body and body_digest is None:
            body_digest = digest(body)
        if length is None and body:
            length = f"Content-Length: {len(body)}"
        sent = [(name.lower(), value) for name, value in fields or []]
        path, _, query = target.partition("?")
        covered = [("@method", method), ("@authority", self.authority), ("@path", path), ("@query", f"?{query}"),
                   *derived]
        signed = [("countersign-release", self.release or self.key_id)] + sent
        if body_digest:
            signed.append(("content-digest", body_digest))
        covered += signed
        created = int(self.time()) if created is None else created
        names = " ".join(f'"{name}"' for name, _ in covered)
        parameters = (f'({names});created={created};nonce="{nonce or secrets.token_urlsafe(16)}";'
                      f'keyid="{self.key_id}";alg="{self.algorithm}";tag="countersign"')
        base = "".join(f'"{name}": {value}\n' for name, value in covered) + f'"@signature-params": {parameters}'
        mac = base64.b64encode(self.sign(base.encode())).decode()
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self.authority}"]
        lines += [f"{name}: {value}" for name, value in signed]
        lines += [f"Signature-Input: app={parameters}", f"Signature: app=:{mac}:"]
        lines += [length] if length else []
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def request(self, method: str = "GET", target: str = "/", body: bytes = b"", **options) -> bytes:
        """A whole signed request: the head and `body`."""
        return self.head(method, target, body=body, **options) + body


class SecretAsText(ReleaseKey):
    """A client that takes the secret's text for its bytes, as many first ones do."""

    def sign(self, base: bytes) -> bytes:
        return hmac.digest(self.secret.encode(), base, "sha256")


class PairKey(ReleaseKey):
    """A release whose callers sign with a private key, of which the server has the public half."""

    def __init__(self, algorithm: str, private, key_id: str, authority: str):
        super().__init__(key_id, "", authority)
        self.algorithm, self.private = algorithm, private

    @classmethod
    def make(cls, algorithm: str, key_id: str, authority: str) -> "PairKey":
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
        make = {"ed25519": ed25519.Ed25519PrivateKey.generate,
                "ecdsa-p256-sha256": lambda: ec.generate_private_key(ec.SECP256R1()),
                "ecdsa-p384-sha384": lambda: ec.generate_private_key(ec.SECP384R1()),
                "rsa-pss-sha512": lambda: rsa.generate_private_key(65537, 2048)}
        return cls(algorithm, make[algorithm](), key_id, authority)

    def public_pem(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def sign(self, base: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, utils
        if self.algorithm == "ed25519":
            return self.private.sign(base)
        if self.algorithm == "rsa-pss-sha512":
            return self.private.sign(base, padding.PSS(padding.MGF1(hashes.SHA512()), 64), hashes.SHA512())
        count, digest_type = (32, hashes.SHA256()) if "p256" in self.algorithm else (48, hashes.SHA384())
        r, s = utils.decode_dss_signature(self.private.sign(base, ec.ECDSA(digest_type)))
        return r.to_bytes(count, "big") + s.to_bytes(count, "big")
