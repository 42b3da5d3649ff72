"""Opens what the server and the client keep sealed, by the layout of docs/decisions and Sources/Seal/AEAD.swift: so that a test can
look for what lies within, in places where it must not be."""

import hashlib
import hmac
import pathlib
import sqlite3

from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt

from signing import decode_secret


def unseal(master: bytes, sealed: bytes, kind: str, row: str, app: str = "", epoch: int = 0) -> bytes:
    """Raises where it was not sealed as that."""
    key_id = hashlib.blake2b(b"countersign/1 master key id", key=master, digest_size=32).digest()[:8]
    data = b"countersign/1 seal"
    for part in (kind.encode(), app.encode(), row.encode(), key_id):
        data += len(part).to_bytes(8, "big") + part
    assert sealed[0] == 1
    return crypto_aead_xchacha20poly1305_ietf_decrypt(sealed[25:], data + epoch.to_bytes(8, "big"), sealed[1:25], master)


def deployment_keys(folder: pathlib.Path) -> dict[str, bytes]:
    """Every key of the deployment's own that lies in the database."""
    master = decode_secret((folder / "master.key").read_text().strip())
    with sqlite3.connect(folder / "countersign.db") as database:
        meta = dict(database.execute("SELECT name, value FROM meta"))
    database.close()
    opaque = unseal(master, meta["opaque-keys"], "opaque-keys", "opaque-keys")
    each = 1 + 24 + 32 + 16
    return {
        "audit key": unseal(master, meta["master-key-check"], "master-key-check", "check").removeprefix(b"countersign"),
        "answer key": unseal(master, meta["answer-key"][:each], "answer-key", "answer-key"),
        "next answer key": unseal(master, meta["answer-key"][each:2 * each], "answer-key", "next",
                                  epoch=int.from_bytes(meta["answer-key"][2 * each:], "big")),
        "assertion key": unseal(master, meta["assertion-keys"][:each], "assertion-key", "current"),
        "next assertion key": unseal(master, meta["assertion-keys"][each:2 * each], "assertion-key", "next"),
        "OPRF seed": opaque[:64],
        "OPAQUE private key": opaque[64:],
        "registration key": unseal(master, meta["registration-key"][:each], "registration-key", "registration-key"),
        "bearer key": unseal(master, meta["bearer-key"], "bearer-key", "bearer-key"),
    }


def items(path: pathlib.Path) -> dict[str, bytes]:
    """What a sealed file holds whose key lies beside it, by service. Source: Sources/Vault/SealedFile."""
    whole = path.read_bytes()
    assert whole[:5] == b"CSV1\x04"
    end = 7 + int.from_bytes(whole[5:7], "big")
    key = unseal(path.with_name(path.name + ".key").read_bytes(), whole[7:end], "vault-key", "key-file")
    table = unseal(key, whole[end:], "vault-items", whole[:end].hex())
    assert table[0] == 1
    found, at = {}, 1
    while at < len(table):
        service, account, length = (int.from_bytes(table[at + a:at + b], "big") for a, b in ((0, 2), (2, 4), (4, 8)))
        name = table[at + 8:at + 8 + service].decode()
        assert name not in found, "one client, one item of each kind"
        at += 8 + service + account
        # A layout byte, the kind and the version come before the contents.
        found[name] = table[at + 18:at + length]
        at += length
    return found


# The tags of Sources/Client/State/PersistedState.swift.
ROOT, NEXT_ROOT = 21, 24
# The tags of an entry in Sources/Client/State/DeviceKeys.swift.
SIGNING_KEY, AGREEMENT_KEY = 4, 6


def parts(contents: bytes) -> dict[int, bytes]:
    """What Sources/Client/State/StateParts.swift has written, by tag."""
    assert contents[0] == 1
    found, at = {}, 1
    while at < len(contents):
        length = int.from_bytes(contents[at + 1:at + 5], "big")
        found[contents[at]] = contents[at + 5:at + 5 + length]
        at += 5 + length
    return found


def vault(profile: pathlib.Path) -> dict[int, bytes]:
    """What a client keeps of itself and its session, by tag."""
    [contents] = [item for service, item in items(profile / "vault").items() if not service.endswith((" device", " opaque"))]
    return parts(contents)


def device_keys(profile: pathlib.Path) -> dict[int, bytes]:
    """The newest keys of a client's device, by tag; in software their private halves are PKCS #8."""
    [contents] = [item for service, item in items(profile / "vault").items() if service.endswith(" device")]
    entries = parts(contents)
    return parts(entries[max(entries)])


def request_key(root: bytes) -> bytes:
    """Of the session whose root that is. Source: docs/protocol.md, "Login"; RFC 5869."""
    extracted = hmac.digest(bytes(64), root, "sha512")
    return hmac.digest(extracted, b"countersign/1 request\1", "sha512")[:32]
