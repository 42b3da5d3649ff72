"""What a head costs that a stranger sends. One of 60 KB, made to be as slow to read as it can be, costs at
most four milliseconds of CPU, and mostly less than half of one, whatever it claims to be signed with. An
ordinary one that is refused costs at most 20 microseconds more than the cheapest answer there is, beside
the signing of its answer. A client's X-Forwarded-For that a trusted proxy forwards costs no more than the
same bytes from any client.

The cost is the CPU time of the server's own threads, so that what else the machine does is not counted.
"""

import os
import time

import pytest

from gateway import Gateway
from signing import ReleaseKey
from wire import Connection

# CPU time is measured, and recorded by script/full.
pytestmark = pytest.mark.full

PROXY = "127.0.0.9"
ZEROS = "0" * 64
IS_DEBUG = "debug" in os.environ.get("COUNTERSIGN_BINARY", "")
# Milliseconds. A binary that was built for debugging takes ten to forty times as long over each byte.
LIMIT = 100 if IS_DEBUG else 4
# Microseconds; and times the cheapest answer, which takes 13 of them, where the processor is slow for a while.
REFUSAL_LIMIT = (20, 1.5)
ROUNDS = 20


def amazon(signed: str = "host;x-amz-date") -> list[str]:
    return ["X-Amz-Date: 20261122T110000Z",
            f"Authorization: AWS4-HMAC-SHA256 Credential=k/20261122/r/s/aws4_request, SignedHeaders={signed}, Signature={ZEROS}"]


def message(components: str, parameters: str = "") -> list[str]:
    base = '"@method" "@authority" "@path" "@query" "countersign-release"'
    return ["Countersign-Release: r_1", "Signature: app=:AAAA:",
            f'Signature-Input: app=({base}{components});created=1;nonce="n";keyid="r_1";tag="countersign"{parameters}']


MANY = "&".join(f"{'p' * 180}{999 - number}=" for number in range(250))
NAMES = ";".join(f"h{number:03}" for number in range(60))
MEMBERS = ", ".join(f"k{number:02}=({' '.join(['1'] * 100)})" for number in range(60))
SHAPES = {
    "no pairs": ("/?" + "&" * 50_000, []), "pairs": ("/?" + "a&" * 25_000, []), "escaped names": ("/?" + "%61pp_id&" * 5_500, []),
    "path, segments": ("/." + "a/" * 25_000, []), "path, dots": ("/" + "./" * 25_000, []),
    "path, escapes of overlong UTF-8": ("/." + "%80" * 16_000, []),
    "sigv4, many parameters backwards": (f"/?{MANY}", amazon()), "sigv4, segments": ("/" + "a/" * 25_000, amazon()),
    "sigv4, dots": ("/" + "a/../" * 10_000, amazon()), "sigv4, escapes": ("/?a=" + "%2b" * 16_000, amazon()),
    "sigv4, bytes to escape": ("/" + "'" * 50_000, amazon()),
    "sigv4, lines": ("/", amazon("h;host") + ["h: 1"] * 110), "sigv4, white space": ("/", amazon("h;host") + ["h: 1" + " 1" * 20_000]),
    "sigv4, names": ("/", amazon(f"{NAMES};host") + [f"h{number:03}: 1" for number in range(60)]),
    "sigv4, presigned": ("/?X-Amz-Signature=1" + "&X-Amz-a=" * 5_000, []),
    "form-md5, parameters backwards": (f"/?app_id=1&sign={ZEROS[:32]}&{MANY}", []),
    "auth-v1, parameters backwards": (f"/?auth_key=1&auth_signature={ZEROS}&auth_version=1.0&auth_timestamp=1&{MANY}", []),
    "message, query parameters": (f"/?{MANY}", message("".join(f' "@query-param";name="{"p" * 180}{999 - n}"' for n in range(16)))),
    "message, members": ("/", message("".join(f' "d";key="k{n:02}"' for n in range(16))) + [f"D: {MEMBERS}"]),
    "message, lines": ("/", message(' "h" "h";bs') + ["h: 1"] * 110),
    "message, a list": ("/", message(' "accept";sf') + ["Accept: " + "a," * 20_000 + "a"]),
    "message, items": ("/", message(' "accept-ch";sf') + ["Accept-CH: " + ", ".join(["a;b;c"] * 7_000)]),
    "message, components": ("/", message("".join(f' "h{n:03}"' for n in range(58))) + [f"h{n:03}: 1" for n in range(58)]),
    "message, parameters": ("/", message("", ';a="1"' * 8_000)),
    "message, signatures": ("/", ["Signature-Input: " + ", ".join(f"s{n}=()" for n in range(6_000)), "Signature: app=:AAAA:"]),
    "message, labels": ("/", message("") + ["Signature: " + ", ".join(f"s{n}=:AAAA:" for n in range(4_000))]),
    "connection, fields": ("/", ["Connection: " + ",".join(f"h{n:03}" for n in range(64))] + [f"h{n:03}: 1" for n in range(64)]),
    "connection, again": ("/", ["Connection: " + "h," * 20_000 + "h"] + ["h: 1"] * 110),
    "fields": ("/", [f"X-Forwarded-For: {n}" for n in range(120)]),
}


# What a client writes into X-Forwarded-For; the proxy adds the last hop.
HOPS = {
    "commas": "," * 50_000, "commas behind what fuses with them": "\u0600," * 16_000, "addresses": "10.0.0.1," * 5_500,
    "one hop": "1" * 50_000, "colons": ":" * 50_000, "blanks": " " * 50_000,
}


def cost(gateway: Gateway, shape: tuple, source: str = "127.0.0.1") -> float:
    """Of one such request, over some on one connection, or on one each where the refusal ends it."""
    target, fields = shape
    lines = [f"GET {target} HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", *fields, "", ""]
    data = "\r\n".join(lines).encode()
    assert 500 < len(data) <= 60_000, len(data)
    connection = Connection(gateway.port, source=source)

    def ask() -> None:
        nonlocal connection
        connection.send(data)
        answer = connection.answer()
        # It was read as a head and judged, and not refused for its size.
        assert answer.status in (200, 400, 401)
        if answer.get("connection") == "close":
            connection.sock.close()
            connection = Connection(gateway.port, source=source)

    ask()
    before = gateway.busy()
    for _ in range(ROUNDS):
        ask()
    connection.sock.close()
    return (gateway.busy() - before) / ROUNDS


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    limits = ("--limit-head", 60_000, "--limit-target", 60_000, "--limit-fields", 128)
    with Gateway(tmp_path_factory.mktemp("head-cost"), "--tls", "off", "--workers", "1", "--trusted-proxies", PROXY,
                 *limits) as running:
        running.add_app("demo", schemes="message-signatures,form-md5,auth-v1,auth-v2,auth-v4,sigv4")
        running.key = running.add_release()
        yield running


@pytest.mark.parametrize("name", SHAPES)
def test_no_head_costs_more_than_a_body_may(gateway, name):
    spent = cost(gateway, SHAPES[name])
    print(f"{name}: {spent:.2f} ms")
    assert spent <= LIMIT


@pytest.mark.parametrize("name", HOPS)
def test_what_a_trusted_proxy_passes_on_costs_no_more_than_its_bytes(gateway, name):
    shape = ("/", [f"X-Forwarded-For: {HOPS[name]}, 203.0.113.5"])
    anybody, proxy = cost(gateway, shape), cost(gateway, shape, PROXY)
    print(f"{name}: {anybody:.3f} ms from anybody, {proxy:.3f} ms from a trusted proxy")
    assert proxy <= anybody + LIMIT / 8


CLOSES, KEEPS = True, False
HEALTH = "/countersign/v1/health"
# In all fewer requests of one kind than an address may send whose signatures do not hold.
BATCH, TURNS, MOST_TURNS = 100, 6, 20


def refused_heads(key: ReleaseKey) -> dict[str, tuple[bytes, int, bool]]:
    """Requests that are refused by their head, the status of the answer, and whether it ends the connection."""
    other = key.key_id[:-1] + ("b" if key.key_id.endswith("a") else "a")
    digest = "sha-256=:" + "A" * 43 + "=:"
    return {
        "bad signature": (ReleaseKey(key.key_id, "A" * 43, key.authority).request(), 401, KEEPS),
        "unknown key": (ReleaseKey(other, key.secret, key.authority).request(), 401, KEEPS),
        "stale time": (key.request(created=int(time.time()) - 3_600), 401, KEEPS),
        "over-long body": (key.head("POST", "/", body_digest=digest, length=f"Content-Length: {1 << 40}"), 413, CLOSES),
    }


class Asker:
    """Sends one request again and again from one address, over one connection or one for each."""

    def __init__(self, gateway: Gateway, data: bytes, status: int, closes: bool, source: str):
        self.gateway, self.data, self.status, self.closes, self.source = gateway, data, status, closes, source
        self.connection = None

    def ask(self):
        if self.connection is None:
            self.connection = Connection(self.gateway.port, None, 20, self.source)
        self.connection.send(self.data)
        answer = self.connection.answer()
        assert answer.status == self.status
        if self.closes:
            self.close()
        return answer

    def close(self) -> None:
        if self.connection:
            self.connection.sock.close()
            self.connection = None

    def batch(self) -> tuple[float, int]:
        """Microseconds of CPU for each of some requests, and how many of the answers are signed."""
        before = self.gateway.busy()
        signed = sum(self.ask().get("signature") is not None for _ in range(BATCH))
        return (self.gateway.busy() - before) * 1_000 / BATCH, signed


@pytest.mark.parametrize("index, name", enumerate(["bad signature", "unknown key", "stale time", "over-long body"]))
def test_a_refusal_costs_little_beside_its_signature(gateway, index, name):
    """The difference between the cheapest batch and that of a request that is not judged at all; they are sent in turns."""
    key = gateway.key
    data, status, closes = refused_heads(key)[name]
    health = f"GET {HEALTH} HTTP/1.1\r\nHost: {key.authority}\r\n"
    refused = Asker(gateway, data, status, closes, f"127.0.0.{20 + index}")
    kept = Asker(gateway, f"{health}\r\n".encode(), 200, KEEPS, f"127.0.0.{40 + index}")
    alike = Asker(gateway, f"{health}Connection: close\r\n\r\n".encode(), 200, CLOSES, kept.source) if closes else kept
    at_first = min(refused.batch()[0] for _ in range(2))
    # Beyond the budget of the address, refusals are not signed.
    for _ in range(1_000):
        if refused.ask().get("signature") is None:
            break
    turns = []
    for _ in range(MOST_TURNS):
        (spent, signed), (plain, _), (cheapest, _) = refused.batch(), alike.batch(), kept.batch()
        if signed <= BATCH // 20:
            turns.append((spent, plain, cheapest))
        if len(turns) == TURNS:
            break
    else:
        pytest.skip("the server is so slow that the budget for signed refusals fills up again at once")
    spent, plain, cheapest = map(min, zip(*turns))
    for asker in (refused, kept):
        asker.close()
    print(f"{name}: {spent:.1f} µs, at first {at_first:.1f} µs; an answer without judgement: {plain:.1f} µs")
    # A connection that ends with its request unread lingers, which the other does not.
    factor = 2 if closes else 1
    assert spent - plain <= factor * max(REFUSAL_LIMIT[0], REFUSAL_LIMIT[1] * cheapest)
