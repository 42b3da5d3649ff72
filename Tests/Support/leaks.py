"""Searches for secrets in places that must not contain any, in every usual encoding."""

import base64
import pathlib
import urllib.parse


def spellings(secret: bytes) -> dict[str, bytes]:
    """How a secret could stand somewhere: as it is, and in each usual encoding of it."""
    found = {"raw": secret, "reversed": secret[::-1], "hex": secret.hex().encode(), "HEX": secret.hex().upper().encode(),
             "percent": "".join(f"%{byte:02x}" for byte in secret).encode(),
             "PERCENT": "".join(f"%{byte:02X}" for byte in secret).encode(),
             "form": urllib.parse.quote_plus(secret).encode(),
             # As a debugger, or a careless description of an array, prints bytes.
             "decimals": ", ".join(map(str, secret)).encode(),
             "utf-16-le": b"".join(bytes([byte, 0]) for byte in secret),
             "utf-16-be": b"".join(bytes([0, byte]) for byte in secret)}
    # Inside other text the encoding begins anywhere: three alignments. The last characters depend on what follows.
    for shift in range(3):
        for name, encode in (("base64", base64.b64encode), ("base64url", base64.urlsafe_b64encode)):
            whole = (shift + len(secret)) // 3 * 4
            found[f"{name}+{shift}"] = encode(bytes(shift) + secret)[(shift * 4 + 2) // 3:whole]
    return found


def find(secrets: dict[str, bytes], place: str, content: bytes) -> list[str]:
    """Which secret is there, and how it is written; never what it is."""
    return [f"{place}: {name} ({spelling})" for name, secret in secrets.items()
            for spelling, text in spellings(secret).items() if text in content]


PIECE = 1 << 16


def memory(process: int) -> bytes:
    """What a core of the process would hold: everything that it can write to, without what was never written. For root."""
    found = bytearray()
    with open(f"/proc/{process}/maps", encoding="ascii") as maps, open(f"/proc/{process}/mem", "rb", buffering=0) as file:
        for line in maps:
            span, rights, *rest = line.split()
            if not rights.startswith("rw") or "[vvar" in rest[-1]:
                continue
            start, end = (int(word, 16) for word in span.split("-"))
            while start < end:
                file.seek(start)
                try:
                    part = file.read(min(end - start, PIECE))
                except OSError:  # A guard page, or one that went meanwhile.
                    part = b""
                if not part:
                    break
                if part != bytes(len(part)):
                    found += part
                start += len(part)
    return bytes(found)


def files(folder: pathlib.Path, *homes: str) -> dict[str, bytes]:
    """Every file below a folder, but for those that are there to hold a secret."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and str(path.relative_to(folder)) not in homes}
