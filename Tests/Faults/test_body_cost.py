"""What a body of 1 MiB costs that a stranger sends: a small multiple of taking in the same bytes, whatever they are, whichever
scheme they claim to be signed with, and whether or not they were sent to a host of ours.

The cost is the CPU time of the server's own threads, so that what else the machine does is not counted. The release binary
must stay within 20 ms.
"""

import os

import pytest

from gateway import Gateway

# CPU time is measured, and recorded by script/full.
pytestmark = pytest.mark.full

MIB = 1 << 20
# Milliseconds. A binary that was built for debugging takes ten to twenty times as long over each byte.
LIMIT = 400 if "debug" in os.environ.get("COUNTERSIGN_BINARY", "") else 20
ZEROS = "0" * 64
FORM = ["Content-Type: application/x-www-form-urlencoded"]
DASHES = "-" * 69
UPLOAD = [f"Content-Type: multipart/form-data; boundary={DASHES}x"]
PART = f'--{DASHES}x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n'
OBJECT = ["Content-Type: application/json", "X-Auth-Version: 4", "X-Auth-Client-ID: k", "X-Auth-Timestamp: 1",
          f"X-Auth-Signature: {ZEROS}"]
AMAZON = ["X-Amz-Date: 20261122T110000Z",
          "Authorization: AWS4-HMAC-SHA256 Credential=k/20261122/r/s/aws4_request, SignedHeaders=host;x-amz-date, "
          f"Signature={ZEROS}"]
MESSAGE = ["Countersign-Release: r_1", "Signature: app=:AAAA:",
           'Signature-Input: app=("@method" "@authority" "@path" "@query" "countersign-release");created=1;nonce="n";'
           'keyid="r_1";tag="countersign"']

SHAPES = {
    "pairs": (FORM, "", "a&", ""), "empty pairs": (FORM, "", "&", ""), "no names": (FORM, "", "=&", ""),
    "semicolons": (FORM, "", "a;", ""), "names that count": (FORM, "", "app_id&", ""),
    "escaped names": (FORM, "", "%61pp_id&", ""), "versions": (FORM, "", "auth_version=2&", ""),
    "form-md5": (FORM, "app_id=1&sign=1&", "a&", ""), "form-md5, one value": (FORM, "app_id=1&sign=1&a=", "%41", ""),
    "auth-v1": (FORM, "auth_signature=1&", "a&", ""), "auth-v1, one value": (FORM, "auth_signature=1&a=", "%41", ""),
    "auth-v2": (FORM, "auth_key=1&auth_version=2&", "a&", ""),
    "auth-v4, a string": (OBJECT, '{"a":"', "%", '"}'), "auth-v4, escapes": (OBJECT, '{"a":"', "\\u0061", '"}'),
    "auth-v4, levels": (OBJECT, '{"a":', "[", ""), "auth-v4, a list": (OBJECT, '{"a":[', "[],", "1]}"),
    "auth-v4, members": (OBJECT, "{", '"a":1,', '"b":1}'), "auth-v4, a name": (OBJECT, '{"', "B", '":1}'),
    "multipart, dashes": (UPLOAD, "", "-", ""), "multipart, names": (UPLOAD, 'name="app_id"', 'name="', ""),
    "multipart, quotes": (UPLOAD, 'name="app_id"', '"', ""),
    "multipart, one value": (UPLOAD, PART % "app_id", "-", f"\r\n{PART % 'sign'}\r\n--{DASHES}x--"),
    "multipart, parts": (UPLOAD, "", PART % "a" + "\r\n", ""),
    "multipart, nearly boundaries": (UPLOAD, PART % "app_id", f"\r\n--{DASHES}y", ""),
    "multipart, a head": (UPLOAD, f"--{DASHES}x\r\n", "Content-Disposition", ""),
    "sigv4": (AMAZON + FORM, "", "a&", ""), "message-signatures": (MESSAGE + FORM, "", "a&", ""),
}


def request(shape: tuple, host: str) -> bytes:
    fields, start, repeated, end = shape
    body = start + repeated * ((MIB - len(start) - len(end)) // len(repeated)) + end
    lines = ["POST /orders HTTP/1.1", f"Host: {host}", *fields, f"Content-Length: {len(body)}", "", body]
    return "\r\n".join(lines).encode()


def cost(gateway: Gateway, data: bytes) -> float:
    """Of one such request, the least of three."""
    spent = []
    for _ in range(3):
        before = gateway.busy()
        answer = gateway.send(data)
        spent.append(gateway.busy() - before)
        assert answer.status in (200, 400, 401, 413), answer
    return min(spent)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("body-cost")
    with Gateway(folder, "--tls", "off", "--workers", "1") as running:
        running.add_app("demo", schemes="message-signatures,form-md5,auth-v1,auth-v2,auth-v4,sigv4")
        running.add_release()
        yield running


@pytest.mark.parametrize("host", ["ours", "another"])
@pytest.mark.parametrize("name", SHAPES)
def test_no_body_costs_much_more_than_a_plain_one(gateway, name, host):
    name_of_host = f"127.0.0.1:{gateway.port}" if host == "ours" else "elsewhere.example"
    plain = cost(gateway, request((["Content-Type: text/plain"], "", "a", ""), name_of_host))
    spent = cost(gateway, request(SHAPES[name], name_of_host))
    print(f"{name}, {host}: {spent:.1f} ms; a plain body {plain:.1f} ms")
    assert spent <= LIMIT
