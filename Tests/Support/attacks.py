"""The attacks of unauthenticated clients on a running server. script/fairness runs each for a given time,
and Tests/Faults/test_attacks.py for two seconds. Each states what its attackers must have achieved to count
as run.
"""

import ssl
from collections.abc import Callable

from attackers import Attack, Flood, Target
from signing import PairKey

FORM = "application/x-www-form-urlencoded"
LEGACY = "message-signatures,sigv4,form-md5,auth-v1,auth-v2,auth-v4"


def head(target: Target, method: str = "GET", *fields: str, host: str | None = None, path: str = "/") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host or target.authority}", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def form(body: bytes, host: str | None = None) -> Callable[[Target], list[bytes]]:
    """A whole unsigned form; `KEY` in it stands for the id of a form-md5 release."""

    def make(target: Target) -> list[bytes]:
        whole = body.replace(b"KEY", target.form_key.encode())
        return [head(target, "POST", f"Content-Type: {FORM}", f"Content-Length: {len(whole)}", host=host) + whole]

    return make


def plain(count: int, method: str = "GET", *fields: str, path: str = "/") -> Callable[[Target], list[bytes]]:
    return lambda target: [head(target, method, *fields, path=path) * count]


def unfinished_body(target: Target) -> list[bytes]:
    return [head(target, "POST", "Content-Length: 1048576") + bytes(1 << 20)[:-1]]


def unfinished_form(target: Target) -> list[bytes]:
    return [head(target, "POST", f"Content-Type: {FORM}", "Content-Length: 1048576") + b"app_id=" * 149_796]


def unfinished_claimed_body(target: Target) -> list[bytes]:
    """The same under the id of an existing key, with a signature that does not verify."""
    signed = target.key.head("POST", "/", body_digest="sha-256=:" + "A" * 43 + "=:", length="Content-Length: 1048576")
    return [without_signature(signed) + bytes(1 << 20)[:-1]]


def without_signature(signed: bytes) -> bytes:
    start = signed.index(b"Signature: app=:") + 16
    end = signed.index(b":", start)
    return signed[:start] + b"A" * (end - start - 1) + b"=" + signed[end:]


def tiny_chunks(target: Target) -> list[bytes]:
    return [head(target, "POST", f"Content-Type: {FORM}", "Transfer-Encoding: chunked") + b"1\r\na\r\n" * 200_000 + b"0\r\n\r\n"]


def many_fields(target: Target) -> list[bytes]:
    return [head(target, "GET", *(f"x-field-{index}: {'v' * 140}" for index in range(96))) * 4]


def client_hello(_: Target) -> list[bytes]:
    """The first bytes of a TLS client, which costs its sender nothing to send again."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    try:
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return [outgoing.read()]


def half_a_hello(target: Target) -> list[bytes]:
    return [client_hello(target)[0][:100]]


def forged(name: str, count: int = 16) -> Callable[[Target], list[bytes]]:
    """Requests under the id of a known public key, signed with another key of the same kind."""

    def make(target: Target) -> list[bytes]:
        stranger = PairKey.make(name, target.pairs[name].key_id, target.authority)
        return [b"".join(stranger.request("GET", f"/?forged={index}") for index in range(count))]

    return make


def forged_secret(target: Target) -> list[bytes]:
    """A signature over 90 fields that does not verify, under the id of an existing key."""
    fields = [(f"x-field-{index}", "v" * 120) for index in range(90)]
    return [without_signature(target.key.head("GET", "/", fields=fields)) * 4]


def signed(count: int) -> Callable[[Target], list[bytes]]:
    """Distinct signed requests, for the replay table to remember."""
    return lambda target: [target.key.request("GET", f"/?n={index}") for index in range(count)]


UNSIGNED = plain(1000)
EVERY = {"schemes": LEGACY}
PAIRS = ("rsa-pss-sha512", "ecdsa-p256-sha256", "ecdsa-p384-sha384", "ed25519")

ATTACKS = [
    Attack("form", "unsigned forms of 1 MiB, `a&a&…`", (Flood(form(b"a&" * (1 << 19)), "", 4),), {"sent_bytes": 1_000_000}),
    Attack(
        "form-host",
        "the same to a host that is not ours",
        (Flood(form(b"a&" * (1 << 19), "other.example"), "", 4),),
        {"sent_bytes": 1_000_000},
    ),
    Attack(
        "form-legacy",
        "the same where the policy allows every scheme",
        (Flood(form(b"a&" * (1 << 19)), "", 4),),
        {"sent_bytes": 1_000_000},
        policy=EVERY,
    ),
    Attack(
        "form-legacy-host",
        "the same to a host that is not ours",
        (Flood(form(b"a&" * (1 << 19), "other.example"), "", 4),),
        {"sent_bytes": 1_000_000},
        policy=EVERY,
    ),
    Attack(
        "form-claimed",
        "forms of 1 MiB that claim a form-md5 key",
        (Flood(form(b"app_id=KEY&rand=1&timestamp=2026-01-01&sign=" + b"0" * 32 + b"&a" * (1 << 18)), "", 4),),
        {"sent_bytes": 1_000_000},
        policy=EVERY,
    ),
    Attack(
        "pipeline",
        "one connection that pipelines GET / and reads the answers",
        (Flood(UNSIGNED, "--window 0", 1, 1000),),
        {"answers": 500},
    ),
    Attack("pipeline-many", "fifty of them", (Flood(UNSIGNED, "--window 0", 50, 1000),), {"answers": 500}),
    Attack(
        "pipeline-unread",
        "pipelined requests whose answers are never read",
        (Flood(UNSIGNED, "--window 0 --read-rate 0", 20, 1000),),
        {"sent_bytes": 100_000},
    ),
    Attack("pipeline-head", "pipelined HEAD", (Flood(plain(1000, "HEAD"), "--window 0 --head", 4, 1000),), {"answers": 500}),
    Attack(
        "pipeline-addresses",
        "a hundred addresses that pipeline",
        (Flood(UNSIGNED, "--window 0 --addresses 100", 100, 1000, "127.0.1.1"),),
        {"answers": 500},
        most_log_bytes=4 << 20,
    ),
    Attack(
        "bodies",
        "300 connections that hold bodies of 1 MiB less a byte",
        (Flood(unfinished_body, "--limit 1", 300),),
        {"opened": 300, "sent_bytes": 10_000_000},
    ),
    Attack(
        "bodies-claimed",
        "the same under the id of a live key",
        (Flood(unfinished_claimed_body, "--limit 1", 300),),
        {"opened": 300},
    ),
    Attack(
        "time",
        "pipelined questions for the time, which is signed",
        (Flood(plain(1000, path="/countersign/v1/time"), "--window 0", 4, 1000),),
        {"answers": 500},
    ),
    Attack("chunks", "bodies in chunks of one byte", (Flood(tiny_chunks, "", 8),), {"sent_bytes": 500_000}),
    Attack(
        "chunks-legacy",
        "the same where the policy allows every scheme, as forms",
        (Flood(tiny_chunks, "", 8),),
        {"sent_bytes": 500_000},
        policy=EVERY,
    ),
    Attack(
        "bodies-legacy",
        "300 connections that hold forms where the policy allows every scheme",
        (Flood(unfinished_form, "--limit 1", 300),),
        {"opened": 300},
        policy=EVERY,
    ),
    Attack(
        "idle",
        "300 idle connections where 300 are allowed",
        (Flood(None, "--silent", 300),),
        {"opened": 300},
        options=("--limit-connections", 300),
        has_nginx=False,
    ),
    Attack("idle-default", "2,000 idle connections", (Flood(None, "--silent", 2000),), {"opened": 2000}),
    Attack(
        "half-hello",
        "300 half TLS handshakes where 300 are allowed",
        (Flood(half_a_hello, "--limit 1 --raw", 300),),
        {"opened": 300},
        options=("--limit-connections", 300),
        has_nginx=False,
        transports=("tls",),
    ),
    Attack(
        "descriptors",
        "400 connections where there are 256 descriptors",
        (Flood(None, "--silent", 400),),
        {"opened": 256},
        descriptors=256,
        has_nginx=False,
    ),
    Attack("refused", "refused requests on one connection: what grows is the log", (Flood(plain(1), "", 1),), {"answers": 500}),
    Attack("heads", "heads of 16 KiB with 96 fields", (Flood(many_fields, "--window 0", 4, 4),), {"answers": 100}),
    Attack(
        "connections",
        "a connection for each request, 1,000 side by side",
        (Flood(plain(1), "--limit 1", 1000),),
        {"opened": 1000},
    ),
    Attack(
        "hello",
        "TLS handshakes that the client never goes on with",
        (Flood(client_hello, "--limit 1 --raw", 64),),
        {"opened": 200},
        transports=("tls",),
    ),
    Attack(
        "key-updates",
        "TLS connections that change their keys without end",
        (Flood(None, "--key-updates", 8),),
        {"requests": 1000},
        transports=("tls",),
    ),
    Attack(
        "slow-heads",
        "heads that come by the byte",
        (Flood(plain(1, "GET", f"x: {'v' * 4000}"), "--send-rate 10", 500),),
        {"opened": 500, "sent_bytes": 1000},
    ),
    Attack(
        "slow-bodies",
        "bodies that come by the byte",
        (Flood(unfinished_body, "--send-rate 200", 500),),
        {"opened": 500, "sent_bytes": 1000},
    ),
    Attack(
        "slow-readers",
        "answers that are read by the byte",
        (Flood(UNSIGNED, "--window 0 --read-rate 100", 300, 1000),),
        {"opened": 300, "sent_bytes": 100_000},
    ),
    Attack(
        "replay",
        "distinct signed requests, for which the replay table grows",
        (Flood(signed(60_000), "--window 8", 8),),
        {"succeeded": 1000},
        has_nginx=False,
    ),
    Attack(
        "forged-hmac",
        "signatures of a live key over 90 fields that do not hold",
        (Flood(forged_secret, "--window 0", 4, 4),),
        {"answers": 300},
        has_nginx=False,
    ),
    *(
        Attack(
            f"forged-{name}",
            f"forged signatures for a key of {name} whose owner calls",
            (Flood(forged(name), "--window 0", 4, 16),),
            {"answers": 300},
            has_nginx=False,
            pair=name,
            transports=("plain",),
        )
        for name in PAIRS
    ),
    Attack(
        "mixed",
        "forms, pipelines, held bodies, idle and slow connections at once",
        (
            Flood(form(b"a&" * (1 << 19)), "", 2),
            Flood(UNSIGNED, "--window 0", 4, 1000),
            Flood(unfinished_body, "--limit 1", 100),
            Flood(None, "--silent", 200),
            Flood(plain(1), "--limit 1", 50),
            Flood(UNSIGNED, "--window 0 --read-rate 100", 50, 1000),
        ),
        {"answers": 500, "opened": 300},
    ),
]
