"""Message signatures (RFC 9421) as docs/protocol.md uses them: requests that are signed, and answers that
are believed."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .errors import ClientError

AUTHORITY = "authority"


@dataclass
class Request:
    """`target` is the path and query as they are sent; names of `fields` are in lower case."""

    method: str
    target: str
    authority: str
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def component(self, name: str) -> str:
        """The value of a component in a signature base (RFC 9421 section 2)."""
        path, _, query = self.target.partition("?")
        derived = {"@method": self.method, "@authority": self.authority.lower(), "@path": path,
                   "@query": "?" + query}
        return derived[name] if name in derived else self.fields[name].strip()


@dataclass(frozen=True)
class Answer:
    """Names of `fields` are in lower case; lines of one name are joined by a comma and a space."""

    status: int
    fields: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Key:
    """What a request is signed with: 32 bytes, and the id of the release that calls."""

    key_id: str
    secret: bytes
    release: str


def content_digest(body: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def signature_base(request: Request, components: list[str], parameters: str) -> bytes:
    """RFC 9421 section 2.5; `parameters` is the value of `@signature-params`."""
    lines = [f'"{name}": {request.component(name)}' for name in components]
    return "\n".join([*lines, f'"@signature-params": {parameters}']).encode()


def sign(request: Request, key: Key, created: int, nonce: str | None = None) -> bytes:
    """Adds what a signed request bears, and returns the signature base."""
    nonce = nonce or secrets.token_urlsafe(18)
    request.fields["countersign-release"] = key.release
    components = ["@method", "@authority", "@path", "@query"]
    if request.body:
        request.fields["content-digest"] = content_digest(request.body)
        components.append("content-digest")
    # Fields that no signature covers are not forwarded, so that all that the caller gave are covered.
    components += [name for name in request.fields if name not in components]
    listed = " ".join(f'"{name}"' for name in components)
    parameters = (f'({listed});created={created};nonce="{nonce}";keyid="{key.key_id}";alg="hmac-sha256"'
                  ';tag="countersign"')
    base = signature_base(request, components, parameters)
    request.fields["signature-input"] = f"app={parameters}"
    signature = hmac.digest(key.secret, base, "sha256")
    request.fields["signature"] = f"app=:{base64.b64encode(signature).decode()}:"
    return base


def add_device_signature(request: Request, token: str, created: int,
                         sign_with: Callable[[bytes], bytes]) -> None:
    """A second signature, by the device's key on P-256, that covers the session's (docs/protocol.md,
    "Device-signed routes")."""
    covered = request.fields["signature"].removeprefix("app=")
    parameters = (f'("signature";key="app");created={created};keyid="{token}";alg="ecdsa-p256-sha256"'
                  ';tag="countersign-device"')
    base = f'"signature";key="app": {covered}\n"@signature-params": {parameters}'.encode()
    request.fields["signature-input"] += f", device={parameters}"
    request.fields["signature"] += f", device=:{base64.b64encode(sign_with(base)).decode()}:"


# An answer's signature in canonical form: our own make no other.
_INPUT = re.compile(r'answer=(\(([^()]*)\);created=\d+;keyid="([^"\\]{1,128})";alg="([a-z0-9-]{1,32})"'
                    r';tag="countersign")')
_SIGNATURE = re.compile(r"answer=:([A-Za-z0-9+/=]{1,128}):")
# What binds an answer to its request.
BINDING = ['"@method";req', '"@path";req', '"@query";req', '"signature";req', '"signature-input";req']


def verify(answer: Answer, request: Request, authority_keys: list[bytes], keys: dict[str, bytes],
           binding: list[str] | None = None) -> tuple[str | None, bytes | None]:
    """The id of the key that signed the answer, and the key itself where it is one of the authority's. None
    where the answer bears no signature of ours, which proves nothing. A signature that does not hold raises
    `false-answer`. `keys` are those of the session, by their ids; a release's secret is never among them
    (docs/protocol.md, "Signed answers")."""
    binding = BINDING if binding is None else binding
    given, signature = answer.fields.get("signature-input"), answer.fields.get("signature")
    if given is None and signature is None:
        return None, None
    match, value = _INPUT.fullmatch(given or ""), _SIGNATURE.fullmatch(signature or "")
    if not match or not value:
        raise ClientError("false-answer", "a signature that cannot be read")
    parameters, listed, key_id, algorithm = match.groups()
    components = listed.split(" ")
    required = ['"@status"', '"content-digest"', *binding]
    required += [f'"{name}"' for name in answer.fields if name.startswith("countersign-")]
    if len(set(components)) != len(components) or not set(required) <= set(components):
        raise ClientError("false-answer", "the signature does not cover what it must")
    base = _answer_base(answer, request, components, parameters)
    used = _check(base, base64.b64decode(value.group(1)), key_id, algorithm, authority_keys, keys)
    if not hmac.compare_digest(answer.fields.get("content-digest", ""), content_digest(answer.body)):
        raise ClientError("false-answer", "the body is not the signed one")
    return key_id, used


def _answer_base(answer: Answer, request: Request, components: list[str], parameters: str) -> bytes:
    lines = []
    for component in components:
        name = component.split(";")[0].strip('"')
        if component.endswith('";req'):
            known = name.startswith("@") or name in request.fields
            value = request.component(name) if known else None
        else:
            value = str(answer.status) if name == "@status" else answer.fields.get(name)
        if value is None:
            raise ClientError("false-answer", f"the signature covers {component}, which is not there")
        lines.append(f"{component}: {value}")
    return "\n".join([*lines, f'"@signature-params": {parameters}']).encode()


def _check(base: bytes, signature: bytes, key_id: str, algorithm: str, authority_keys: list[bytes],
           keys: dict[str, bytes]) -> bytes | None:
    """The key of the authority's that the signature holds under; None for a session's. The algorithm goes by
    the key, not by what the answer names."""
    if key_id == AUTHORITY and algorithm == "ed25519":
        for key in authority_keys:
            try:
                Ed25519PublicKey.from_public_bytes(key).verify(signature, base)
                return key
            except InvalidSignature:
                pass
    secret = keys.get(key_id)
    if secret is None or not hmac.compare_digest(hmac.digest(secret, base, "sha256"), signature):
        raise ClientError("false-answer", f"the signature of {key_id} does not hold")
    return None
