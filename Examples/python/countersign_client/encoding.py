"""Byte strings as text, transcripts, and what people type as bytes."""

import base64
import binascii
import unicodedata

from .errors import ClientError


def encode(data: bytes) -> str:
    """base64url without padding (docs/protocol.md, "The authority's routes")."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(text: object, count: int | None = None) -> bytes:
    """The reverse, strictly; `count` is the length in bytes that is expected."""
    if not isinstance(text, str) or "=" in text or "+" in text or "/" in text:
        raise ClientError("false-answer", "expected base64url without padding")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ClientError("false-answer", "expected base64url") from error
    if count is not None and len(data) != count:
        raise ClientError("false-answer", f"expected {count} bytes, got {len(data)}")
    return data


def transcript(label: str, *parts: bytes | str | int) -> bytes:
    """`countersign/1`, a space, the label, a zero byte; then the parts. Bytes and text are preceded by
    their length in 8 bytes, big-endian; a number is 8 bytes, big-endian, without a length."""
    result = f"countersign/1 {label}".encode() + b"\0"
    for part in parts:
        if isinstance(part, int):
            result += part.to_bytes(8, "big")
        else:
            data = part.encode() if isinstance(part, str) else part
            result += len(data).to_bytes(8, "big") + data
    return result


def password_bytes(text: str) -> bytes:
    """What OPAQUE gets as the password (docs/protocol.md, "Sign-up"; RFC 8265 section 4.2.2)."""
    spaced = "".join(" " if unicodedata.category(c) == "Zs" else c for c in text)
    if any(unicodedata.category(c) in ("Cc", "Cs", "Cn", "Zl", "Zp") for c in spaced):
        raise ClientError("bad-input", "a password has no control characters, and only those of Unicode 14.0")
    data = unicodedata.normalize("NFC", spaced).encode()
    if not 1 <= len(data) <= 1024:
        raise ClientError("bad-input", "a password has 1 to 1024 bytes")
    return data


def account_name(text: str) -> str:
    """The canonical form of an account's name (docs/protocol.md, "Account names")."""
    if len(text.encode("utf-8", "surrogatepass")) > 512:
        raise ClientError("bad-input", "an account's name is given in at most 512 bytes")
    for character in text:
        category = unicodedata.category(character)
        is_refused = category in ("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp")
        is_refused |= category == "Zs" and character != " "
        if is_refused or _is_default_ignorable(ord(character)):
            raise ClientError("bad-input", f"an account's name has no U+{ord(character):04X}")
    composed = unicodedata.normalize("NFC", text)
    lowered = "".join(c.lower() if "A" <= c <= "Z" else c for c in composed)
    name = unicodedata.normalize("NFC", lowered)
    if not 1 <= len(name.encode()) <= 128 or name != name.strip(" ") or "  " in name:
        raise ClientError("bad-input", "an account's name has 1 to 128 bytes, and single spaces inside alone")
    return name


# Default_Ignorable_Code_Point of Unicode 14.0, DerivedCoreProperties.txt: those that no refused category has.
_IGNORABLE = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF),
)


def _is_default_ignorable(code: int) -> bool:
    return any(first <= code <= last for first, last in _IGNORABLE)
