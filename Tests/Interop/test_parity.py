"""`verify` and `explain` run the gate's own pipeline: with the same key, policy and time they say what a gateway says, for every
check of a policy, and not only whether the signature holds."""

import base64
import json
import time
import urllib.parse

import pytest

from gateway import Gateway, run
from l1_client import signed
from signing import PairKey, ReleaseKey


class OldRSA(PairKey):
    """rsa-v1_5-sha256, which an app's policy must allow by name."""

    def sign(self, base: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding
        return self.private.sign(base, padding.PKCS1v15(), hashes.SHA256())


class Parity:
    """One app under a policy, behind a gateway, and the same key and policy offline."""

    def __init__(self, gateway: Gateway, app: str, **policy: str):
        self.gateway, self.app = gateway, app
        self.settings = [name if name == "rsa-v1_5" else name.replace("_", "-") for name in policy]
        self.settings = [f"{name}={value}" for name, value in zip(self.settings, policy.values(), strict=True)]
        gateway.add_app(app)
        for setting in self.settings:
            gateway.admin("app", "policy", app, "--set", setting)

    def key(self, *more: object) -> ReleaseKey:
        return self.gateway.add_release(self.app, "ios", "1.0", *more)

    def codes(self, request: bytes, key_id: str, *options: object) -> tuple[str, str, str, str]:
        """What the gateway, `verify`, `verify` with the policy from the data folder, and `explain` say."""
        answer = self.gateway.send(request)
        said = json.loads(answer.body)
        code = said.get("code") or said.get("err", {}).get("code") or "accepted"
        settings = [part for setting in self.settings for part in ("--policy", setting)]
        given = ("--key-id", key_id, *options)
        alone = run("verify", *given, *settings, stdin=request).out.strip()
        kept = run("verify", *given, "--data", self.gateway.data, *settings[-2:], stdin=request).out.strip()
        told = json.loads(run("explain", *given, *settings, "--json", stdin=request).out)
        return code, alone, kept, told.get("code", told["verdict"])


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("parity")) as running:
        yield running


def secret(key: ReleaseKey) -> tuple[str, str]:
    return ("--secret", key.secret)


def without(key: ReleaseKey, name: str) -> bytes:
    """A request whose signature does not cover that component."""
    created = int(time.time())
    covered = [(part, value) for part, value in [
        ("@method", "GET"), ("@authority", key.authority), ("@path", "/"), ("@query", "?"),
        ("countersign-release", key.key_id)] if part != name]
    names = " ".join(f'"{part}"' for part, _ in covered)
    parameters = f'({names});created={created};nonce="{time.monotonic_ns()}";keyid="{key.key_id}";tag="countersign"'
    base = "".join(f'"{part}": {value}\n' for part, value in covered) + f'"@signature-params": {parameters}'
    mac = base64.b64encode(key.sign(base.encode())).decode()
    return (f"GET / HTTP/1.1\r\nHost: {key.authority}\r\nCountersign-Release: {key.key_id}\r\n"
            f"Signature-Input: app={parameters}\r\nSignature: app=:{mac}:\r\n\r\n").encode()


ROWS = {
    "a field that the policy wants covered": ({"cover": "x-foo"}, lambda key: key.request(), "bad-signature"),
    "nothing to object": ({}, lambda key: key.request("POST", "/a?b=c", b"{}"), "accepted"),
    "another label": ({"label": "other"}, lambda key: key.request(), "unsigned"),
    "older than the policy's window": (
        {"window": "10s"}, lambda key: key.request(created=int(time.time()) - 30), "stale"),
    "a body that differs": (
        {}, lambda key: key.request("POST", "/", b"one").replace(b"\r\n\r\none", b"\r\n\r\ntwo"), "body-mismatch"),
    "no path covered": ({}, lambda key: without(key, "@path"), "bad-signature"),
}


@pytest.mark.parametrize("name", ROWS)
def test_message_signatures(gateway, name):
    policy, make, expected = ROWS[name]
    parity = Parity(gateway, f"row-{list(ROWS).index(name)}", **policy)
    key = parity.key()
    assert parity.codes(make(key), key.key_id, *secret(key)) == (expected,) * 4


def test_a_route_that_needs_a_session(gateway):
    """The rules of routes are in the data folder; without it, each route asks for a signature alone."""
    parity = Parity(gateway, "session")
    gateway.admin("route", "set", parity.app, "/", "--require", "session")
    key = parity.key()
    request = key.request()
    code, alone, kept, _ = parity.codes(request, key.key_id, *secret(key))
    assert (code, alone, kept) == ("session-required", "accepted", "session-required")
    given = ("--key-id", key.key_id, *secret(key), "--data", gateway.data)
    assert json.loads(run("explain", *given, "--json", stdin=request).out)["code"] == "session-required"


@pytest.mark.parametrize(("setting", "expected"), [("off", "scheme-not-allowed"), ("on", "accepted")])
def test_the_old_rsa(gateway, tmp_path, setting, expected):
    parity = Parity(gateway, f"rsa-{setting}", **{"rsa-v1_5": setting})
    key = OldRSA.make("rsa-pss-sha512", "r_none", f"127.0.0.1:{gateway.port}")
    key.algorithm = "rsa-v1_5-sha256"
    (tmp_path / "public.pem").write_bytes(key.public_pem())
    made = json.loads(gateway.admin("release", "add", parity.app, "--platform", "ios", "--version", "1.0", "--algorithm",
                                    key.algorithm, "--public-key", tmp_path / "public.pem", "--json").out)
    key.key_id = made["key_id"]
    options = ("--secret-file", tmp_path / "public.pem", "--algorithm", key.algorithm)
    assert parity.codes(key.request(), key.key_id, *options) == (expected,) * 4


@pytest.mark.parametrize(("setting", "expected"), [("off", "body-mismatch"), ("on", "accepted")])
def test_an_unsigned_payload(gateway, setting, expected):
    parity = Parity(gateway, f"payload-{setting}", schemes="sigv4", unsigned_payload=setting)
    key = parity.key("--scheme", "sigv4")
    options = ("--scheme", "sigv4", "--secret", f"text:{key.secret}")
    text = f"POST /a HTTP/1.1\r\nHost: {key.authority}\r\nX-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\n\r\nbody"
    request = run("sign", "--key-id", key.key_id, *options, stdin=text)
    assert request.returncode == 0, request.err
    assert parity.codes(request.stdout, key.key_id, *options) == (expected,) * 4


@pytest.mark.parametrize(("platform", "version", "expected"), [
    ("ios", "1.0", "accepted"), ("android", "1.0", "bad-signature"), ("ios", "2.0", "bad-signature")])
def test_a_platform_that_the_key_was_not_made_for(gateway, platform, version, expected):
    parity = Parity(gateway, f"form-{platform}-{version[0]}", schemes="form-md5")
    key = parity.key("--scheme", "form-md5")
    query = urllib.parse.urlencode(signed({"a": "1"}, key.key_id, key.secret, platform, version))
    request = f"GET /call?{query} HTTP/1.1\r\nHost: {key.authority}\r\n\r\n".encode()
    options = ("--scheme", "form-md5", "--secret", f"text:{key.secret}", "--platform", "ios", "--version", "1.0")
    code, *others = parity.codes(request, key.key_id, *options)
    assert others == [expected] * 3
    assert code == {"accepted": "accepted", "bad-signature": -3}[expected], "form-md5's clients get numbers"


def test_a_retired_release(gateway):
    """Which it is, the data folder knows."""
    parity = Parity(gateway, "retired")
    key = parity.key()
    gateway.admin("release", "retire", key.key_id, "--at", int(time.time()) - 5, "--update-url", "https://example.com/u")
    request = key.request()
    code, alone, kept, _ = parity.codes(request, key.key_id, *secret(key))
    assert (code, alone, kept) == ("update-required", "accepted", "update-required")
    told = run("explain", "--key-id", key.key_id, "--data", gateway.data, "--json", stdin=request)
    assert json.loads(told.out)["code"] == "update-required"
