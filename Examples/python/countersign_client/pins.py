"""Pin manifests: signed lists that take the place of the pins that an app was built with (docs/protocol.md,
"Pin manifests")."""

import json
import re

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from . import transport
from .channel import Channel
from .encoding import decode
from .errors import ClientError
from .signatures import Request

# Bytes of a signed manifest.
LONGEST = 64 << 10
# The year 9999.
_LAST_TIME = 253_402_300_799
_PIN = re.compile(r"sha256/[A-Za-z0-9+/]{43}=")


def update(channel: Channel) -> int:
    """Fetches the app's manifest and takes it up: its version. Pins for other hosts are not kept."""
    setup = channel.setup
    if setup.manifest_key is None:
        raise ClientError("bad-input", "pins: the setup has no manifest_key")
    request = Request("GET", f"{setup.prefix}/pins/{setup.app}", setup.authority)
    answer = transport.exchange(request, channel.pinned_setup)
    if answer.status != 200 or len(answer.body) > LONGEST:
        raise ClientError("false-answer", f"pins: status {answer.status}, {len(answer.body)} bytes")
    try:
        manifest = _verified(answer.body, setup.manifest_key)
        version, pins = manifest["version"], _pins(manifest["hosts"], setup.host)
    except (InvalidSignature, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ClientError("false-answer", f"pins: not a signed manifest: {error!r}") from error
    if manifest["app"] != setup.app:
        raise ClientError("false-answer", "pins: for another app")
    if not manifest["not_before"] <= channel.now() <= manifest["not_after"]:
        raise ClientError("false-answer", "pins: out of its time")
    if version <= channel.pins_version:
        raise ClientError("false-answer", "pins: not newer")
    channel.state.save(pins={"version": version, "pins": pins})
    return version


def _verified(body: bytes, key: bytes) -> dict:
    """The manifest, read only once its signature holds."""
    envelope = _members(_read(body), {"manifest", "signature"})
    data, signature = decode(envelope["manifest"]), decode(envelope["signature"], 64)
    Ed25519PublicKey.from_public_bytes(key).verify(signature, b"countersign pin manifest 1\n" + data)
    manifest = _members(_read(data), {"app", "version", "not_before", "not_after", "hosts"})
    for name, least, most in [
            ("version", 1, 2**63 - 1), ("not_before", 0, _LAST_TIME), ("not_after", 0, _LAST_TIME)]:
        # A Boolean is an int to isinstance.
        if type(manifest[name]) is not int or not least <= manifest[name] <= most:
            raise ValueError(name)
    return manifest


def _pins(hosts: object, host: str) -> list[str]:
    """Those of the one rule for this host, backups included. This client reads no patterns but its host's
    name, and does not know the mode `report-only`: it refuses what it could not enforce."""
    if not isinstance(hosts, list):
        raise ValueError("hosts")
    found = []
    for rule in hosts:
        _members(rule, {"pattern", "pins", "backups"}, {"mode"})
        if rule.get("mode", "enforce") != "enforce":
            raise ValueError("mode")
        for name in ("pins", "backups"):
            texts = rule[name]
            if not isinstance(texts, list) or not texts or not all(map(_PIN.fullmatch, texts)):
                raise ValueError(name)
        if set(rule["pins"]) & set(rule["backups"]):
            raise ValueError("backups: one is a pin, too")
        if rule["pattern"] == host:
            found.append([*rule["pins"], *rule["backups"]])
    if len(found) != 1:
        raise ValueError(f"hosts: expected one rule for {host}")
    return found[0]


def _read(data: bytes) -> object:
    """JSON in which no object has a member twice."""
    def unique(pairs: list[tuple[str, object]]) -> dict:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a member twice")
        return dict(pairs)

    return json.loads(data, object_pairs_hook=unique)


def _members(value: object, names: set[str], optional: frozenset[str] | set[str] = frozenset()) -> dict:
    """An object with these members and no others."""
    if not isinstance(value, dict) or not names <= set(value) <= names | optional:
        raise ValueError(f"expected an object with {', '.join(sorted(names))}")
    return value
