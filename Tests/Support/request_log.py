"""Reads the log of keyed requests as docs/decisions/0061-keyed-request-log.md describes it, apart from the code under test."""

import dataclasses
import hashlib
import hmac
import pathlib

from nacl.bindings import crypto_shorthash_siphashx24

import unsealing

HEADER, HEAD, TAG = 64, 16, 16
BEGUN, FINISHED, ABANDONED, DISPLACED, FORGOTTEN, ERASED, SLOT, CONTINUED = range(1, 9)


@dataclasses.dataclass
class Record:
    kind: int
    content: bytes
    body: bytes

    @property
    def key(self) -> bytes:
        """Of a beginning: SHA-256 of the `Idempotency-Key`."""
        assert self.kind == BEGUN
        place = 8
        place += 9 if self.content[place] == 0 else 2 + self.content[place + 1]
        place += 1 + self.content[place]
        return self.content[place + 1:place + 1 + self.content[place]]


def record_key(audit_key: bytes) -> bytes:
    info = b"countersign/1 request log records"
    return hmac.new(audit_key, info + b"\x01", hashlib.sha512).digest()[:16]


def segments(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.glob("requests-*.log"))


def records(folder: pathlib.Path, master_from: pathlib.Path | None = None) -> list[Record]:
    """The valid records of all segments, in order. The master key may lie elsewhere."""
    audit_key = unsealing.deployment_keys(master_from or folder)["audit key"][:32]
    key, found = record_key(audit_key), []
    for path in segments(folder):
        data = path.read_bytes()
        header = data[:HEADER]
        if header[:8] != b"CSREQLOG" or crypto_shorthash_siphashx24(header[:48], key) != header[48:]:
            continue
        own = crypto_shorthash_siphashx24(b"countersign/1 records of" + header[:48], key)
        place = HEADER
        while len(data) >= place + HEAD + TAG:
            body, count = int.from_bytes(data[place + 4:place + 8], "little"), int.from_bytes(data[place + 12:place + 14], "little")
            end = place + HEAD + count
            if int.from_bytes(data[place:place + 4], "little") != place or end + TAG + body > len(data):
                break
            if crypto_shorthash_siphashx24(data[place:end], own) != data[end:end + TAG]:
                break
            found.append(Record(data[place + 14], data[place + HEAD:end], data[end + TAG:end + TAG + body]))
            place = end + TAG + body
    return found


def begun(folder: pathlib.Path, master_from: pathlib.Path | None = None) -> set[bytes]:
    return {record.key for record in records(folder, master_from) if record.kind == BEGUN}


def sealed(folder: pathlib.Path) -> list[bytes]:
    """All sealed answers in the files, whose first four bytes are the length of fields outside the seal; they need no key to be found."""
    found = []
    for path in segments(folder):
        data, place = path.read_bytes(), HEADER
        while len(data) >= place + HEAD + TAG and int.from_bytes(data[place:place + 4], "little") == place:
            body, count = int.from_bytes(data[place + 4:place + 8], "little"), int.from_bytes(data[place + 12:place + 14], "little")
            end = place + HEAD + count + TAG
            if data[place + 14] == FINISHED and body:
                found.append(data[end + 4:end + body])
            place = end + body
    return found
