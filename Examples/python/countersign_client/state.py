"""What the client keeps between runs: one JSON file that only its owner can read, replaced whole."""

import json
import os
import pathlib

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .encoding import decode, encode
from .errors import ClientError


class State:
    """A dictionary of JSON values, on disk before `save` returns.

    `session`: account, id, and `current`, an epoch: its number and root; `successor`, the next one, until
    it has answered; `attempt` and `attempt_time` of a refresh that is not answered yet. `ended`: why the
    last session ended."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        try:
            self.values: dict = json.loads(path.read_bytes())
        except FileNotFoundError:
            self.values = {}
        except ValueError as error:
            raise ClientError("bad-state", f"{path}: not JSON") from error

    def save(self, **changes: object) -> None:
        """A value of None removes the member."""
        self.values = {key: value for key, value in {**self.values, **changes}.items() if value is not None}
        new = self.path.with_suffix(".new")
        # A file or a link that is there has a mode and a target of its own.
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(self.values, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.path)

    @property
    def session(self) -> dict:
        session = self.values.get("session")
        if session is None:
            raise ClientError("not-signed-in")
        return session


class Device:
    """The device's two keys on P-256, which stay the same over all sessions."""

    def __init__(self, state: State):
        kept = state.values.get("device")
        if kept is None:
            keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
            kept = [encode(key.private_numbers().private_value.to_bytes(32, "big")) for key in keys]
            state.save(device=kept)
        self._signing, self._agreement = (
            ec.derive_private_key(int.from_bytes(decode(text, 32), "big"), ec.SECP256R1()) for text in kept)

    @property
    def signing_key(self) -> bytes:
        """65 bytes: 04, x, y."""
        return _public(self._signing)

    @property
    def agreement_key(self) -> bytes:
        return _public(self._agreement)

    def sign(self, message: bytes) -> bytes:
        """ECDSA with SHA-256: r and s, 32 bytes each."""
        r, s = decode_dss_signature(self._signing.sign(message, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def agree(self, point: bytes) -> bytes:
        """The product's x coordinate, 32 bytes."""
        try:
            return self._agreement.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(
                ec.SECP256R1(), point))
        except ValueError as error:
            raise ClientError("false-answer", "not a point on P-256") from error


def _public(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
