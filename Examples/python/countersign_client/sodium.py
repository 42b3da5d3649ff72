"""libsodium over ctypes: ristretto255, Argon2id and XChaCha20-Poly1305. Keys and points are bytes objects."""

import ctypes
import ctypes.util

from .errors import ClientError


def _load() -> ctypes.CDLL:
    for name in (ctypes.util.find_library("sodium"), "libsodium.so.23", "libsodium.dylib"):
        try:
            if name:
                library = ctypes.CDLL(name)
                break
        except OSError:
            continue
    else:
        raise ImportError("libsodium is not installed")
    if library.sodium_init() < 0:
        raise ImportError("libsodium cannot be initialised")
    return library


_sodium = _load()


def _call(name: str, count: int, *arguments: bytes) -> bytes:
    """A function that writes `count` bytes and returns 0 where it succeeds."""
    result = ctypes.create_string_buffer(count)
    if getattr(_sodium, name)(result, *arguments) != 0:
        raise ClientError("false-answer", f"{name}: not a valid input")
    return result.raw


def is_point(data: bytes) -> bool:
    """Whether 32 bytes are the encoding of an element of ristretto255 that is not the identity."""
    return len(data) == 32 and data != bytes(32) and _sodium.crypto_core_ristretto255_is_valid_point(
        data) == 1


def point_from_uniform(data: bytes) -> bytes:
    """The one-way map of 64 uniform bytes (RFC 9496 section 4.3.4)."""
    return _call("crypto_core_ristretto255_from_hash", 32, data)


def multiply(scalar: bytes, point: bytes) -> bytes:
    if not is_point(point):
        raise ClientError("false-answer", "not an element of ristretto255")
    return _call("crypto_scalarmult_ristretto255", 32, scalar, point)


def multiply_base(scalar: bytes) -> bytes:
    return _call("crypto_scalarmult_ristretto255_base", 32, scalar)


def invert(scalar: bytes) -> bytes:
    return _call("crypto_core_ristretto255_scalar_invert", 32, scalar)


def reduce(data: bytes) -> bytes:
    """64 bytes, little-endian, modulo the group's order."""
    result = ctypes.create_string_buffer(32)
    _sodium.crypto_core_ristretto255_scalar_reduce(result, data)
    return result.raw


def argon2id(data: bytes) -> bytes:
    """64 bytes: 19 MiB, two passes, one lane, a salt of 16 zero bytes (docs/protocol.md, "Sign-up")."""
    result = ctypes.create_string_buffer(64)
    status = _sodium.crypto_pwhash(
        result, ctypes.c_ulonglong(64), data, ctypes.c_ulonglong(len(data)), bytes(16), ctypes.c_ulonglong(2),
        ctypes.c_size_t(19 << 20), ctypes.c_int(2))
    if status != 0:
        raise ClientError("bad-state", "not enough memory to stretch the password")
    return result.raw


def xchacha20_poly1305_seal(key: bytes, message: bytes, associated: bytes) -> bytes:
    """Ciphertext and tag, under a nonce of 24 zero bytes: for keys that are used once."""
    result = ctypes.create_string_buffer(len(message) + 16)
    _sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(
        result, None, message, ctypes.c_ulonglong(len(message)), associated,
        ctypes.c_ulonglong(len(associated)),
        None, bytes(24), key)
    return result.raw
