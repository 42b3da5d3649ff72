"""What a head of 60 KB costs that a stranger sends, made to be as slow to read as it can be: at most 20 milliseconds of CPU, and mostly less than one,
whatever it claims to be signed with.

The cost is the CPU time of the server's own threads, so that what else the machine does is not counted.
"""

import os

import pytest

from gateway import Gateway

ZEROS = "0" * 64
# Milliseconds. A binary that was built for debugging takes ten to forty times as long over each byte.
LIMIT = 100 if "debug" in os.environ.get("COUNTERSIGN_BINARY", "") else 20
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
    "connection, fields": ("/", ["Connection: " + ",".join(f"h{n:03}" for n in range(100))] + [f"h{n:03}: 1" for n in range(100)]),
    "connection, again": ("/", ["Connection: " + "h," * 20_000 + "h"] + ["h: 1"] * 110),
    "fields": ("/", [f"X-Forwarded-For: {n}" for n in range(120)]),
}


def cost(gateway: Gateway, shape: tuple) -> float:
    """Of one such request, over some on one connection."""
    target, fields = shape
    lines = [f"GET {target} HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", *fields, "", ""]
    data = "\r\n".join(lines).encode()
    assert 500 < len(data) <= 60_000, len(data)
    with gateway.connect() as connection:
        def ask() -> None:
            connection.send(data)
            # It was read as a head and judged, and not refused for its size.
            assert connection.answer().status in (200, 400, 401)
        ask()
        before = gateway.busy()
        for _ in range(ROUNDS):
            ask()
        return (gateway.busy() - before) / ROUNDS


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    limits = ("--limit-head", 60_000, "--limit-target", 60_000, "--limit-fields", 128)
    with Gateway(tmp_path_factory.mktemp("head-cost"), "--tls", "off", "--workers", "1", *limits) as running:
        running.add_app("demo", schemes="message-signatures,form-md5,auth-v1,auth-v2,auth-v4,sigv4")
        running.add_release()
        yield running


@pytest.mark.parametrize("name", SHAPES)
def test_no_head_costs_more_than_a_body_may(gateway, name):
    spent = cost(gateway, SHAPES[name])
    print(f"{name}: {spent:.2f} ms")
    assert spent <= LIMIT
