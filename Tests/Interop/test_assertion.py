"""The assertion to the backend, verified by the PHP and the Node example behind a running gateway, and
attacked by a caller that reaches the backend directly."""

import base64
import hashlib
import hmac
import json
import os
import pathlib
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import processes
from gateway import ROOT, Gateway, run
from ports import listens, reserve_port
from waiting import until

EXAMPLES = ROOT / "Examples"
AUDIENCE = "urn:example:backend"
ISSUER = "https://api.example.com/countersign/v1"
COMMANDS = {
    "php": lambda port: ["php", "-d", "enable_post_data_reading=Off", "-S", f"127.0.0.1:{port}",
                         str(EXAMPLES / "php/index.php")],
    "node": lambda port: ["node", str(EXAMPLES / "node/server.mjs"), str(port)],
}


def encode(data: bytes | dict) -> str:
    if isinstance(data, dict):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(part: str) -> dict:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def jwk(public: bytes) -> dict:
    """With its RFC 7638 thumbprint."""
    x = encode(public)
    thumbprint = hashlib.sha256(f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'.encode()).digest()
    return {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": encode(thumbprint)}


class Example:
    """One of the example backends, started as its own comment says."""

    def __init__(self, kind: str, folder: pathlib.Path, jwks: str, issuer: str, audience: str = AUDIENCE):
        self.port = reserve_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / kind).mkdir(mode=0o700)
        self.log = open(folder / f"{kind}.log", "wb")
        settings = {"COUNTERSIGN_JWKS": jwks, "COUNTERSIGN_ISSUER": issuer, "COUNTERSIGN_AUDIENCE": audience,
                    "COUNTERSIGN_CACHE": str(folder / kind)}
        self.process = processes.start(COMMANDS[kind](self.port), env={**os.environ, **settings},
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until(lambda: listens(self.port, self.process), f"{kind} does not listen")

    def call(self, token: str | None, method: str = "POST", target: str = "/pay?to=a%2Fb", body: bytes = b"amount=1"):
        """What it answers to a request that did not come through the gateway: the status and the JSON."""
        fields = {"Content-Type": "text/plain"} | ({} if token is None else {"Countersign-Assertion": token})
        request = urllib.request.Request(self.url + target, data=body or None, headers=fields, method=method)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        return answer.status, json.loads(answer.read())

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


class Forger:
    """Has a key that the backend trusts, and so can say anything: shows that each check of the verifiers is one."""

    def __init__(self):
        self.key = Ed25519PrivateKey.generate()
        self.public = self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.jwk = jwk(self.public)

    def token(self, *, header: dict | None = None, of: bytes = b"amount=1", **claims: object) -> str:
        now = int(time.time())
        said = {"iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 60, "jti": "1", "app": "demo", "release": "r_1", "client": "192.0.2.1",
                "htm": "POST", "htu": "/pay?to=a%2Fb", "body_sha256": encode(hashlib.sha256(of).digest()), **claims}
        said = {name: value for name, value in said.items() if value is not None}
        head = {"alg": "EdDSA", "typ": "countersign-assertion+jwt", "kid": self.jwk["kid"], **(header or {})}
        signed = f"{encode(head)}.{encode(said)}"
        return f"{signed}.{encode(self.key.sign(signed.encode()))}"


@pytest.fixture(scope="module", params=["php", "node"])
def attacked(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"attacked-{request.param}")
    forger = Forger()
    keys = folder / "jwks.json"
    keys.write_text(json.dumps({"keys": [jwk(bytes(32)), forger.jwk]}))
    example = Example(request.param, folder, str(keys), ISSUER)
    example.forger = forger
    yield example
    example.stop()


def refused(reason: str) -> tuple[int, dict]:
    return 401, {"refused": reason}


def test_what_is_accepted(attacked):
    accepted = (200, {"app": "demo", "release": "r_1", "event": "1", "account": None, "user_id": None, "client": "192.0.2.1"})
    assert attacked.call(attacked.forger.token()) == accepted
    assert attacked.call(attacked.forger.token(of=b"", htm="GET"), "GET", body=b"") == accepted
    long = attacked.forger.token(body_sha256=None, body_sha512=encode(hashlib.sha512(b"amount=1").digest()))
    assert attacked.call(long) == accepted
    now = int(time.time())
    assert attacked.call(attacked.forger.token(iat=now - 58, exp=now + 2)) == accepted
    status, said = attacked.call(attacked.forger.token(sub="name:z%C3%BCrich", sid="AAECAwQFBgcICQoLDA0ODw"))
    assert (status, said["account"], said["user_id"]) == (200, "name:z%C3%BCrich", None)
    status, said = attacked.call(attacked.forger.token(sub="id:42"))
    assert (status, said["account"], said["user_id"]) == (200, "id:42", 42)
    for name in ("name:42", "name:42e0", "name:id:42"):
        assert attacked.call(attacked.forger.token(sub=name))[1]["user_id"] is None
    for untyped in ("42", "42e0", "alice", "", "id:", "id:042", "id:42e0", "id:42 ", "name:", "Name:a", "id:42\n", " id:42"):
        assert attacked.call(attacked.forger.token(sub=untyped)) == refused("malformed"), untyped
    assert attacked.call(attacked.forger.token(sub=7)) == refused("malformed")
    assert attacked.call(attacked.forger.token(sub="name:a", sid=False)) == refused("malformed")
    assert attacked.call(attacked.forger.token(client=["127.0.0.1"])) == refused("malformed")


def test_another_request(attacked):
    token = attacked.forger.token()
    assert attacked.call(token, "PUT") == refused("method")
    assert attacked.call(token, target="/pay?to=a/b") == refused("target")
    assert attacked.call(token, target="/pay?to=a%2fb") == refused("target")
    assert attacked.call(token, target="/pay") == refused("target")
    assert attacked.call(token, body=b"amount=2") == refused("body")
    assert attacked.call(token, body=b"") == refused("body")
    long = attacked.forger.token(body_sha512=encode(hashlib.sha512(b"amount=2").digest()))
    assert attacked.call(long) == refused("body"), "each digest that is there must match"
    assert attacked.call(attacked.forger.token(body_sha256=None, body="open")) == refused("body-open")


def test_times_and_parties(attacked):
    now = int(time.time())
    token = attacked.forger.token
    assert attacked.call(token(iat=now - 70, exp=now - 10)) == refused("expired")
    assert attacked.call(token(exp=now + 61)) == refused("expired"), "lives longer than any of ours"
    assert attacked.call(token(iat=now + 30, exp=now + 60)) == refused("not-yet")
    assert attacked.call(token(iat=str(now))) == refused("malformed")
    assert attacked.call(token(exp=None)) == refused("malformed")
    assert attacked.call(token(aud="urn:example:other")) == refused("audience")
    assert attacked.call(token(aud=[AUDIENCE])) == refused("audience")
    assert attacked.call(token(iss="https://other.example")) == refused("issuer")
    assert attacked.call(token(htm=None)) == refused("method")


def test_forged(attacked):
    forger = attacked.forger
    genuine = forger.token()
    head, claims, signature = genuine.split(".")
    assert attacked.call(None) == refused("malformed")
    for text in ["", "x", f"{head}.{claims}", f"{genuine}.x", f"{head}.{claims}.", f"{encode(b'[]')}.{claims}.{signature}",
                 f"{encode(b'{')}.{claims}.{signature}"]:
        assert attacked.call(text) == refused("malformed"), text
    unsigned = encode({"alg": "none", "typ": "countersign-assertion+jwt", "kid": forger.jwk["kid"]})
    assert attacked.call(f"{unsigned}.{claims}.") == refused("malformed")
    assert attacked.call(f"{unsigned}.{claims}.{signature}") == refused("algorithm")
    # The public key as an HMAC secret: in each of the forms in which a confused verifier might use it.
    for secret in [forger.public, forger.jwk["x"].encode(), json.dumps(forger.jwk).encode()]:
        start = encode({"alg": "HS256", "typ": "countersign-assertion+jwt", "kid": forger.jwk["kid"]}) + "." + claims
        mac = hmac.new(secret, start.encode(), hashlib.sha256).digest()
        assert attacked.call(f"{start}.{encode(mac)}") == refused("algorithm")
        mac = hmac.new(secret, f"{head}.{claims}".encode(), hashlib.sha256).digest()
        assert attacked.call(f"{head}.{claims}.{encode(mac)}") == refused("signature")
    assert attacked.call(forger.token(header={"kid": "another"})) == refused("unknown-key")
    assert attacked.call(forger.token(header={"kid": None})) == refused("unknown-key")
    assert attacked.call(forger.token(header={"kid": jwk(bytes(32))["kid"]})) == refused("signature")
    assert attacked.call(forger.token(header={"typ": "JWT"})) == refused("type")
    assert attacked.call(forger.token(header={"crit": ["b64"], "b64": False})) == refused("algorithm")
    other = Forger()
    assert attacked.call(other.token(header={"kid": forger.jwk["kid"]})) == refused("signature")
    changed = encode({**decode(claims), "app": "other"})
    assert attacked.call(f"{head}.{changed}.{signature}") == refused("signature")
    flipped = signature[:-3] + ("A" if signature[-3] != "A" else "B") + signature[-2:]
    assert attacked.call(f"{head}.{claims}.{flipped}") == refused("signature")


@pytest.fixture(params=["php", "node"])
def behind(request, tmp_path):
    """An example backend behind a gateway, which knows the gateway's keys by their URL alone."""
    port = reserve_port()
    own = f"http://127.0.0.1:{port}/countersign/v1"
    example = Example(request.param, tmp_path, f"{own}/jwks", own)
    gateway = Gateway(tmp_path, "--tls", "off", "--upstream", example.url, "--assertion-audience", AUDIENCE)
    gateway.port, gateway.example = port, example
    with gateway:
        yield gateway
    example.stop()


def test_behind_a_gateway(behind):
    behind.add_app("demo", assertion="on")
    key = behind.add_release()

    def call(*arguments, **options):
        answer = behind.send(key.request(*arguments, **options))
        return answer.status, json.loads(answer.body)

    for method, target, body in [("GET", "/", b""), ("POST", "/pay?to=a%2Fb&x=%C3%A9+", b"amount=1"),
                                 ("PUT", "/%2e%2E//a;b?", bytes(range(256)))]:
        status, said = call(method, target, body=body)
        assert (status, said["app"], said["release"]) == (200, "demo", key.key_id), (method, target, said)
    # Over the limit for held bodies: it streams, and the signed digest vouches for it.
    status, said = call("POST", "/large", body=b"x" * (1 << 20) + b"y")
    assert status == 200, said
    # Switched off, the backend that asks for it refuses: the test would otherwise pass without any assertion.
    behind.admin("app", "policy", "demo", "--set", "assertion=off")
    assert call("GET", "/") == refused("malformed")
    # What the caller sends under that name does not arrive, neither spelled so nor with underscores.
    behind.admin("app", "policy", "demo", "--set", "assertion=on")
    request = key.request("GET", "/", fields=[("Countersign-Assertion", "y")])
    request = request.replace(b"\r\n", b"\r\nCountersign_Assertion: x\r\n", 1)
    assert behind.send(request).status == 200


def test_rotation(behind):
    behind.add_app("demo", assertion="on")
    key = behind.add_release()

    def listed() -> list[dict]:
        with urllib.request.urlopen(behind.url + "/countersign/v1/jwks", timeout=60) as answer:
            assert answer.headers["Content-Type"] == "application/jwk-set+json"
            assert answer.headers["Cache-Control"] == "public, max-age=300"
            return json.loads(answer.read())["keys"]

    before = listed()
    assert len(before) == 2
    for one in before:
        assert one == {**jwk(base64.urlsafe_b64decode(one["x"] + "=")), "use": "sig", "alg": "EdDSA"}
    assert behind.send(key.request()).status == 200
    rotated = json.loads(behind.admin("assertion", "rotate", "--json").out)
    assert rotated["current"] == before[1]["kid"]
    assert [one["kid"] for one in listed()] == rotated["listed"] == [before[1]["kid"], rotated["next"], before[0]["kid"]]
    # The backend has fetched the list once, before the rotation: the key that signs now stood in it.
    assert behind.send(key.request()).status == 200
    assert json.loads(behind.admin("assertion", "keys", "--json").out) == rotated
    behind.stop()
    behind.start()
    assert [one["kid"] for one in listed()] == rotated["listed"], "a start makes no other keys"
    assert behind.send(key.request()).status == 200


def test_what_it_says(tmp_path):
    """The claims, read from what the built-in echo was sent."""
    with Gateway(tmp_path, "--authority", "API.example.com") as gateway:
        gateway.add_app("demo", assertion="on", schemes="message-signatures,form-md5")
        key = gateway.add_release()
        key.authority = "api.example.com"
        answer = json.loads(gateway.send(key.request("POST", "/a%2Fb?c", body=b"hello")).body)
        claims = decode(answer["headers"]["countersign-assertion"].split(".")[1])
        now = claims.pop("iat")
        assert abs(now - time.time()) < 10
        assert claims == {
            "iss": "https://api.example.com/countersign/v1", "aud": "https://api.example.com/countersign/v1", "app": "demo",
            "release": key.key_id, "platform": "ios", "version": "1.0", "scheme": "message-signatures", "exp": now + 60,
            "client": "127.0.0.1",
            "jti": answer["headers"]["countersign-event"], "htm": "POST", "htu": "/a%2Fb?c",
            "body_sha256": encode(hashlib.sha256(b"hello").digest())}
        # A release can have its own say.
        gateway.admin("release", "policy", key.key_id, "--set", "assertion=off")
        answer = json.loads(gateway.send(key.request()).body)
        assert "countersign-assertion" not in answer["headers"] and "countersign-event" in answer["headers"]


def test_what_it_says_of_a_body_that_streams(tmp_path, backend):
    with Gateway(tmp_path, "--upstream", backend.url, "--limit-held-body", 4) as gateway:
        gateway.add_app("demo", assertion="on", schemes="message-signatures,sigv4", unsigned_payload="on")
        key, body = gateway.add_release(), b"longer than four bytes"
        long = f"sha-512=:{base64.b64encode(hashlib.sha512(body).digest()).decode()}:"
        made = json.loads(gateway.admin("release", "add", "demo", "--platform", "ios", "--version", "1.0", "--scheme", "sigv4",
                                        "--json").out)
        start = (f"PUT /o HTTP/1.1\r\nHost: {key.authority}\r\nX-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\n"
                 f"Content-Length: {len(body)}\r\n\r\n").encode()
        signed = run("sign", "--scheme", "sigv4", "--key-id", made["key_id"], "--secret", made["secret"], stdin=start + body)
        assert signed.returncode == 0 and b"UNSIGNED-PAYLOAD" in signed.stdout, signed.err
        for request, said in [
            (key.request("POST", "/", body=body), ("body_sha256", encode(hashlib.sha256(body).digest()))),
            (key.request("POST", "/", body=body, body_digest=long), ("body_sha512", encode(hashlib.sha512(body).digest()))),
            (signed.stdout, ("body", "open")),
        ]:
            assert gateway.send(request).status == 200
            claims = decode(backend.seen[-1].get("countersign-assertion").split(".")[1])
            assert [(name, value) for name, value in claims.items() if name.startswith("body")] == [said]
