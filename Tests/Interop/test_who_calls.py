"""The caller's identity as the backend receives it: in the gateway's own fields, under every scheme, for
held and streamed bodies, and never from fields of proxies that the caller wrote."""

import base64
import json

import pytest

from backend import Backend
from gateway import Gateway, run

SCHEMES = ["message-signatures", "sigv4", "form-md5", "auth-v1", "auth-v2", "auth-v4"]
OURS = ["countersign-client", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded"]
SPOOFED = [
    ("X-Forwarded-For", "203.0.113.66"), ("X-Forwarded-Proto", "ftp"), ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-User", "root"), ("X-Forwarded", "for=203.0.113.66"), ("Forwarded", "for=203.0.113.66;host=evil.example"),
    ("X-Real-IP", "203.0.113.66"), ("X-Client-IP", "203.0.113.66"), ("True-Client-IP", "203.0.113.66"),
    ("CF-Connecting-IP", "203.0.113.66"), ("X-ProxyUser-Ip", "203.0.113.66"), ("X-Original-URL", "/admin"),
    ("X-Rewrite-URL", "/admin"), ("X-Original-Host", "evil.example"), ("X-Host", "evil.example"),
    ("X-HTTP-Method-Override", "DELETE"), ("X-HTTP-Method", "DELETE"), ("X-Method-Override", "DELETE"),
    ("Front-End-Https", "on"), ("Countersign-Client", "203.0.113.66"), ("Proxy", "http://evil.example"),
]
FORM = ("Content-Type", "application/x-www-form-urlencoded")


class Caller:
    """A release of one scheme, which signs requests with the command line."""

    def __init__(self, gateway: Gateway, scheme: str):
        self.gateway, self.scheme = gateway, scheme
        made = gateway.admin("release", "add", "demo", "--platform", "ios", "--version", f"9.{SCHEMES.index(scheme)}",
                             "--scheme", scheme, "--json").out
        self.key_id, self.secret = json.loads(made)["key_id"], json.loads(made)["secret"]

    def request(self, method: str, target: str, body: bytes = b"", fields: list[tuple[str, str]] = ()) -> bytes:
        """Signed, with whatever of `fields` the scheme can cover covered."""
        if self.scheme == "form-md5":
            target += ("&" if "?" in target else "?") + "plat=ios&ver=9.2" if not body else ""
            body = body and body + b"&plat=ios&ver=9.2"
        lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{self.gateway.port}",
                 *(f"{name}: {value}" for name, value in fields)]
        lines += [f"Content-Length: {len(body)}"] if body else []
        raw = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
        done = run("sign", "--scheme", self.scheme, "--key-id", self.key_id, stdin=raw,
                   environment={"COUNTERSIGN_SECRET": self.secret})
        assert done.returncode == 0, done.err
        return done.stdout


def policy(gateway: Gateway, **more: str) -> None:
    gateway.add_app("demo", schemes=",".join(SCHEMES), **more)


def told(fields: list[tuple[str, str]]) -> dict[str, str]:
    """The fields that identify the caller to the backend; each of them once, and no similar field."""
    names = {name.lower() for name, _ in SPOOFED}
    found = [(name, value) for name, value in fields if name in names]
    assert sorted(name for name, _ in found) == sorted(OURS), found
    return dict(found)


def expected(gateway: Gateway, address: str = "127.0.0.1", proto: str = "https") -> dict[str, str]:
    host, node = f"127.0.0.1:{gateway.port}", f'"[{address}]"' if ":" in address else address
    return {"countersign-client": address, "x-forwarded-for": address, "x-forwarded-proto": proto,
            "x-forwarded-host": host, "forwarded": f'for={node};proto={proto};host="{host}"'}


@pytest.mark.parametrize("scheme", ["message-signatures", "form-md5"])
def test_the_backend_is_told_by_us_alone(tmp_path, scheme):
    with Backend() as backend, Gateway(tmp_path, "--upstream", backend.url) as gateway:
        policy(gateway)
        caller = Caller(gateway, scheme)
        for request in (caller.request("GET", "/orders?b=2", fields=SPOOFED),
                        caller.request("POST", "/orders", b"a=1", fields=[*SPOOFED, FORM])):
            assert b"203.0.113.66" in request
            answer = gateway.send(request)
            assert answer.status == 200 and b"err" not in answer.body, answer
        for seen in backend.wait(2):
            assert told(seen.fields) == expected(gateway)
            # Other fields remain: the request is the one that was signed.
            assert seen.get("host") == f"127.0.0.1:{gateway.port}"


def test_streams_are_told_by_us_alone(tmp_path):
    with Backend() as backend, Gateway(tmp_path, "--upstream", backend.url, "--limit-held-body", "1024") as gateway:
        policy(gateway)
        caller = Caller(gateway, "sigv4")
        body = b"x" * 100_000
        answer = gateway.send(caller.request("POST", "/up", body, [*SPOOFED, ("Content-Type", "text/plain")]))
        assert answer.status == 200, answer
        [seen] = backend.wait(1)
        assert seen.body == body and told(seen.fields) == expected(gateway)


def test_echo_shows_the_same(tmp_path):
    with Gateway(tmp_path, "--tls", "off") as gateway:
        policy(gateway)
        answer = gateway.send(Caller(gateway, "auth-v1").request("GET", "/", fields=SPOOFED))
        assert told(list(json.loads(answer.body)["headers"].items())) == expected(gateway, proto="http")


@pytest.mark.parametrize("chain, address, proto", [
    # What the proxy's own peer was; what stands to its left is whatever the client wrote.
    (["203.0.113.66", "198.51.100.7, 10.1.2.3"], "198.51.100.7", "https"), (["[2001:db8::9]:50000"], "2001:db8::9", "gopher"),
    (["nonsense"], "unknown", None),
])
def test_a_trusted_proxys_word_finds_the_client(tmp_path, chain, address, proto):
    options = ("--tls", "off", "--trusted-proxies", "127.0.0.0/8,10.0.0.0/8")
    with Backend() as backend, Gateway(tmp_path, "--upstream", backend.url, *options) as gateway:
        policy(gateway)
        added = [("X-Forwarded-For", value) for value in chain]
        added += [("X-Forwarded-Proto", proto)] if proto else []
        caller = Caller(gateway, "auth-v1")
        with gateway.connect() as connection:
            # On one connection, which another client shares: what was composed for one must not reach the other.
            for name, fields in [(address, added), ("198.51.100.99", [("X-Forwarded-For", "198.51.100.99")]), (address, added)]:
                request = caller.request("GET", f"/{name.replace(':', '')}", fields=fields)
                connection.send(request)
                assert connection.answer().status == 200
                shown = "https" if proto == "https" and fields is added else "http"
                assert told(backend.seen[-1].fields) == expected(gateway, name, shown)


def test_the_setting_keeps_one(tmp_path):
    options = ("--forward-caller-fields", "X-HTTP-Method-Override,True-Client-IP")
    with Backend() as backend, Gateway(tmp_path, "--upstream", backend.url, *options) as gateway:
        policy(gateway)
        fields = [("X-HTTP-Method-Override", "PATCH"), ("X-Real-IP", "203.0.113.66"), ("True-Client-IP", "192.0.2.1")]
        for scheme in ["message-signatures", "auth-v1"]:
            gateway.send(Caller(gateway, scheme).request("POST", "/", b"a=1", [*fields, FORM]))
        for seen in backend.wait(2):
            assert seen.get("x-http-method-override") == "PATCH" and seen.get("true-client-ip") == "192.0.2.1"
            assert seen.get("x-real-ip") is None and seen.get("x-forwarded-for") == "127.0.0.1"
    done = run("serve", "--data", tmp_path / "other", "--forward-caller-fields", "X-Forwarded-For", "--print-config")
    assert done.returncode != 0 and "forward-caller-fields" in done.err


def test_the_assertion_names_the_client(tmp_path):
    with Backend() as backend, Gateway(tmp_path, "--tls", "off", "--upstream", backend.url,
                                       "--trusted-proxies", "127.0.0.0/8") as gateway:
        policy(gateway, assertion="on")
        caller = Caller(gateway, "message-signatures")
        request = caller.request("GET", "/").replace(b"\r\n", b"\r\nX-Forwarded-For: 2001:db8::9\r\n", 1)
        assert gateway.send(request).status == 200
        [seen] = backend.wait(1)
        part = seen.get("countersign-assertion").split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        assert claims["client"] == "2001:db8::9" == seen.get("countersign-client")


def test_what_a_signature_covers_is_no_proxy_s_word(tmp_path):
    with Backend() as backend, Gateway(tmp_path, "--tls", "off", "--upstream", backend.url) as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        for field in "X-Amzn-Oidc-Identity", "X-MS-Client-Principal-" + "a" * 40, "X.Consumer.Username":
            assert gateway.send(key.request(fields=[(field, "spoofed"), ("x-own", "kept")])).status == 200
            seen = backend.seen[-1]
            assert seen.get("x-own") == "kept" and "spoofed" not in [value for _, value in seen.fields]
