"""Clients that others wrote speak AWS Signature Version 4 to the gateway: curl, as Debian has it, and botocore."""

import calendar
import datetime
import hashlib
import json
import re
import subprocess
import time
import urllib.request

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from gateway import Gateway, run
from module_backend import backend  # noqa: F401

KEY_ID, SECRET = "AKIDINTEROP", "correct horse/battery+staple"
JSON_TYPE = ("Content-Type", "application/json")


@pytest.fixture(scope="module")
def amazon(tmp_path_factory, backend):
    with Gateway(tmp_path_factory.mktemp("amazon"), "--upstream", backend.url) as running:
        running.add_app("shop", schemes="sigv4")
        running.admin("release", "add", "shop", "--platform", "ios", "--version", "1.0", "--scheme", "sigv4",
                      "--key-id", KEY_ID, "--secret", SECRET)
        yield running


class Answer:
    def __init__(self, status: int, body: bytes):
        self.status, self.body = status, body

    @property
    def code(self) -> str | None:
        return json.loads(self.body)["code"] if self.status >= 400 else None


def curl(amazon, target: str, *options: str, scope: str = "aws:amz:eu-west-1:execute-api", user: str = f"{KEY_ID}:{SECRET}"):
    command = ["curl", "-sS", "--max-time", "20", "--path-as-is", "--cacert", amazon.data / "tls/certificate.pem", "--aws-sigv4",
               scope, "--user", user, "-w", "\n%{http_code}", *options, amazon.url + target]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    body, _, status = done.stdout.rpartition(b"\n")
    assert done.returncode == 0, done.stderr
    return Answer(int(status), body)


def signed(amazon, method: str, target: str, fields=(), body: bytes = b"", *, service="execute-api", signer="SigV4Auth",
           at: float | None = None, expires: int | None = None, secret: str = SECRET, key_id: str = KEY_ID, payload_signing=True):
    """A request that botocore has signed: its URL and fields."""
    moment = datetime.datetime.fromtimestamp(time.time() if at is None else at, datetime.timezone.utc)
    botocore.auth.get_current_datetime = lambda: moment
    request = AWSRequest(method=method, url=amazon.url + target, data=body)
    for name, value in fields:
        request.headers.add_header(name, value)
    request.context["payload_signing_enabled"] = payload_signing
    more = [] if expires is None else [expires]
    getattr(botocore.auth, signer)(Credentials(key_id, secret), service, "eu-west-1", *more).add_auth(request)
    return method, request.url, list(request.headers.items()), body


def send(amazon, request) -> Answer:
    """Sends a request just as it was signed, target and fields to the byte."""
    method, url, fields, body = request
    target = url[len(amazon.url):]
    lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{amazon.port}"] + [f"{n}: {v}" for n, v in fields if n.lower() != "host"]
    if body or method in ("POST", "PUT"):
        lines.append(f"Content-Length: {len(body)}")
    answer = amazon.send(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
    return Answer(answer.status, answer.body)


# SigV4SpellingTests and SigV4ReadingTests have the readings; here is what curl makes of them.
CURL = {
    "query out of order": ("/find?z=1&a=2&flag&q=a+b&p=a%20b&c=%c3%bc",),
    "dots and slashes": ("/a%20b//caf%C3%A9/../c/./d/",),
    "post": ("/items?z=1&b=2", "-d", '{"a":1}', "-H", "Content-Type: application/json", "-H", "X-Amz-Meta-Note:   a    b  "),
}


@pytest.mark.parametrize("name", CURL)
def test_curl_is_accepted(amazon, name):
    target, *options = CURL[name]
    answer = curl(amazon, target, *options)
    assert answer.status == 200, answer.body


def test_curl_for_s3(amazon):
    assert curl(amazon, "/bucket//a%20b?z=1&a=2", scope="aws:amz:eu-west-1:s3").status == 200


def test_curl_uploads_with_the_digest(amazon, tmp_path):
    """`-T` signs an empty body, unless a field says the file's digest; with it, a file too large to hold streams."""
    file = tmp_path / "file"
    file.write_bytes(b"0123456789abcdef" * (3 << 16))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert curl(amazon, "/file", "-T", str(file), "-H", f"x-amz-content-sha256: {digest}").status == 200
    assert curl(amazon, "/file", "-T", str(file)).code == "too-large"
    file.write_bytes(b"small")
    assert curl(amazon, "/file", "-T", str(file)).code == "bad-signature"
    # Another path: within one second the signature of the first upload would come again, and be known.
    assert curl(amazon, "/other", "-T", str(file), "-H", f"x-amz-content-sha256: {digest}").code == "body-mismatch"


def test_curl_is_refused(amazon):
    assert curl(amazon, "/", user=f"{KEY_ID}:wrong").code == "bad-signature"
    assert curl(amazon, "/", user=f"nobody:{SECRET}").code == "unknown-key"
    assert curl(amazon, "/", "-d", "x", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD").code == "body-mismatch"
    # With a provider of its own, curl signs another algorithm's name.
    assert curl(amazon, "/", scope="osc:osc:eu:api").code in ("unsigned", "malformed")


BOTOCORE = {
    "get": ("GET", "/a%20b/~c/%C3%BC/?z=1&a=b%20c&flag&t=12:30", [("X-List", "b"), ("X-List", " a   a "), ("X-Empty", "")]),
    "post": ("POST", "/items?b=1&a=2", [JSON_TYPE], b'{"text":"hello"}'),
}


@pytest.mark.parametrize("name", BOTOCORE)
def test_botocore_is_accepted(amazon, name):
    answer = send(amazon, signed(amazon, *BOTOCORE[name]))
    assert answer.status == 200, answer.body


def test_botocore_signs_some_paths_as_others(amazon):
    """It leaves segments out before it signs, so the signature is good for another path, too; curl signs what it sends."""
    answer = send(amazon, signed(amazon, "GET", "/a/../b"))
    assert answer.code == "malformed" and b"/a//b has the signature of /a/b" in answer.body


@pytest.mark.parametrize("method,target,fields,body", [
    ("GET", "/bucket//a%20b?prefix=x&list-type=2", [], b""), ("PUT", "/bucket/key", [("Content-Type", "text/plain")], b"object"),
], ids=["get", "put"])
def test_botocore_for_s3(amazon, method, target, fields, body):
    answer = send(amazon, signed(amazon, method, target, fields, body, service="s3", signer="S3SigV4Auth"))
    # It leaves bodies unsigned over TLS; that is another test.
    assert answer.status == 200 or (body and answer.code == "body-mismatch"), answer.body


def test_presigned(amazon):
    request = signed(amazon, "GET", "/find?z=1&a=b%20c", signer="SigV4QueryAuth", expires=60)
    assert send(amazon, request).status == 200
    # Opened by a plain HTTP client.
    with urllib.request.urlopen(request[1], context=amazon.context, timeout=60) as answer:
        assert answer.status == 200
    assert send(amazon, signed(amazon, "GET", "/", signer="SigV4QueryAuth", expires=5, at=time.time() - 7)).code == "stale"
    for old, new in [("/find", "/other"), ("Expires=60", "Expires=61")]:
        assert send(amazon, (request[0], request[1].replace(old, new), *request[2:])).code == "bad-signature", new
    assert send(amazon, ("POST", *request[1:])).code == "bad-signature"


def test_unsigned_payloads_by_policy(amazon):
    make = lambda n: signed(amazon, "PUT", f"/file/{n}", [JSON_TYPE], b"anything", payload_signing=False)  # noqa: E731
    link = lambda: signed(amazon, "GET", "/bucket/key", service="s3", signer="S3SigV4QueryAuth", expires=60)  # noqa: E731
    assert send(amazon, make(1)).code == "body-mismatch"
    assert send(amazon, link()).code == "body-mismatch"
    amazon.admin("app", "policy", "shop", "--set", "unsigned-payload=on")
    answer = send(amazon, make(2))
    assert answer.status == 200, answer.body
    assert send(amazon, link()).status == 200
    amazon.admin("app", "policy", "shop", "--set", "unsigned-payload=off")
    assert send(amazon, make(3)).code == "body-mismatch"


def test_streaming_is_refused_with_a_reason(amazon):
    request = signed(amazon, "PUT", "/file", [("X-Amz-Content-SHA256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")], b"x")
    answer = send(amazon, request)
    assert answer.code == "malformed"
    assert "chunks" in json.loads(answer.body)["detail"]


def test_forged_stale_and_replayed(amazon):
    request = signed(amazon, "POST", "/items", [JSON_TYPE, ("X-Price", "1")], b'{"a":1}')
    method, url, fields, body = request
    assert send(amazon, (method, url, fields, b'{"a":2}')).code == "bad-signature"
    assert send(amazon, (method, url, [f for f in fields if f[0] != "X-Price"], body)).code == "bad-signature"
    assert [send(amazon, request).code for _ in range(2)] == [None, "replayed"]
    assert send(amazon, signed(amazon, "GET", "/", at=time.time() - 400)).code == "stale"


def test_fields_that_are_not_signed_are_held_back(amazon, backend):
    method, url, fields, body = signed(amazon, "GET", "/seen", [("X-Signed", "1")])
    assert send(amazon, (method, url, fields + [("X-Unsigned", "1")], body)).status == 200
    seen = backend.seen[-1]
    assert (seen.target, seen.get("x-signed"), seen.get("x-unsigned")) == ("/seen", "1", None)
    assert seen.get("authorization") is None


def test_content_type_that_curl_adds_itself_is_not_signed(amazon, backend):
    """curl signs the fields that it is told of. A Content-Type of its own making is held back, unless the policy lets it pass."""
    assert curl(amazon, "/form?1", "-d", "a=1").status == 200
    assert backend.seen[-1].get("content-type") is None
    assert curl(amazon, "/form?2", "-d", "a=1", "-H", "Content-Type: text/x").status == 200
    assert backend.seen[-1].get("content-type") == "text/x"


def test_what_sign_prints_is_accepted(amazon):
    """`countersign sign`, header form and presigned, read by the gateway; and botocore's read by `verify`."""
    text = f"POST /items?z=1&a HTTP/1.1\nHost: 127.0.0.1:{amazon.port}\nContent-Type: text/plain\n\nhello"
    options = ["--scheme", "sigv4", "--key-id", KEY_ID, "--secret", SECRET, "--region", "eu-west-1", "--service", "shop"]
    done = run("sign", *options, stdin=text)
    assert done.returncode == 0, done.err
    assert re.search(r"Credential=AKIDINTEROP/\d{8}/eu-west-1/shop/aws4_request", done.out)
    assert amazon.send(done.stdout).status == 200
    done = run("sign", *options, "--presign", "60", stdin=f"GET /items HTTP/1.1\nHost: 127.0.0.1:{amazon.port}\n\n")
    assert amazon.send(done.stdout).status == 200
    at = calendar.timegm((2027, 1, 15, 8, 0, 0))
    method, url, fields, _ = signed(amazon, "GET", "/find?t=1:2&a", at=at)
    head = "".join(f"{n}: {v}\n" for n, v in fields)
    raw = f"{method} {url[len(amazon.url):]} HTTP/1.1\nHost: 127.0.0.1:{amazon.port}\n{head}\n"
    assert run("verify", *options[:6], "--at", at, stdin=raw).out == "accepted\n"
    assert run("verify", *options[:6], "--at", at, stdin=raw.replace("t=1", "t=2")).out == "bad-signature\n"
