"""Peers that are not ours sign requests that the gateway accepts, and verify what `countersign sign` makes."""

import base64
import datetime
import hashlib
import json
import secrets
import subprocess

import pytest
from http_message_signatures import (
    HTTPMessageSigner, HTTPMessageVerifier, HTTPSignatureKeyResolver, InvalidSignature, algorithms)

from gateway import ROOT, run
from message import Message
from signing import ReleaseKey, decode_secret


class Keys(HTTPSignatureKeyResolver):
    def __init__(self, key: ReleaseKey):
        self.key = key

    def resolve_private_key(self, key_id):
        assert key_id == self.key.key_id
        return decode_secret(self.key.secret)

    resolve_public_key = resolve_private_key


def sign(key: ReleaseKey, message: Message, **options) -> Message:
    covered = ["@method", "@authority", "@path", "@query", "countersign-release"]
    message.headers |= {"Host": key.authority, "Countersign-Release": key.key_id}
    if message.body:
        message.headers["Content-Length"] = str(len(message.body))
        # The library makes the digest and covers it.
        options["body"] = message.body
    covered += [name for name in ("content-type", "idempotency-key") if name in message.headers]
    signer = HTTPMessageSigner(signature_algorithm=algorithms.HMAC_SHA256, key_resolver=Keys(key))
    signer.sign(message, **{"key_id": key.key_id, "label": "app", "tag": "countersign", "nonce": secrets.token_hex(12),
                            "created": datetime.datetime.now(datetime.timezone.utc),
                            "covered_component_ids": covered, **options})
    return message


@pytest.mark.parametrize("target", ["/?", "/a%20b?c=%2F&c=%2f&q=+%2B", "/caf%C3%A9/~-._!$&'()*+,;=:@/x"])
def test_a_library_signs_a_get(shared, target):
    answer = shared.send(sign(shared.key, Message("GET", shared.url + target)).wire())
    assert answer.status == 200, answer.body
    assert json.loads(answer.body)["target"] == target


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_library_signs_a_body(shared, method):
    body = b'{"amount":1,"to":"\xc3\xa9"}'
    message = Message(method, shared.url + "/pay?x=1", {"content-type": "application/json",
                                                       "idempotency-key": secrets.token_hex(8)}, body)
    answer = shared.send(sign(shared.key, message).wire())
    assert answer.status == 200, answer.body
    # The echo shows the digest of what it got, in whatever shape; the bytes of the digest must be in there.
    value = hashlib.sha256(body).digest()
    shapes = {base64.b64encode(value).decode(), value.hex(), base64.urlsafe_b64encode(value).decode().rstrip("=")}
    text = answer.body.decode().replace("\\/", "/")
    assert any(shape in text for shape in shapes), text


def test_a_library_signs_and_one_bit_is_flipped(shared):
    """The control of the two tests above: the same request with another secret is refused."""
    other = ReleaseKey(shared.key.key_id, base64.urlsafe_b64encode(bytes(32)).decode(), shared.key.authority)
    answer = shared.send(sign(other, Message("GET", shared.url + "/")).wire())
    assert answer.status == 401
    assert json.loads(answer.body)["code"] == "bad-signature"


def offline(command: str, key: ReleaseKey, text: bytes, *more: str):
    return run(command, "--scheme", "message-signatures", "--key-id", key.key_id, "--secret", key.secret, *more, stdin=text)


def parsed(text: str, url: str) -> Message:
    head, _, body = text.replace("\r\n", "\n").partition("\n\n")
    start, *lines = head.split("\n")
    method, target, _ = start.split(" ")
    return Message(method, url + target, dict(line.split(": ", 1) for line in lines), body.encode())


@pytest.mark.parametrize("text", [
    b"GET /a?b=c HTTP/1.1\nHost: api.example\n\n",
    b'POST /pay HTTP/1.1\nHost: api.example\nContent-Type: application/json\nContent-Length: 7\n\n{"a":1}',
], ids=["get", "post"])
def test_a_library_verifies_what_sign_makes(text):
    key = ReleaseKey("r_AAAAAAAAAAAAAAAAAAAAAA", base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("="), "api.example")
    signed = offline("sign", key, text)
    assert signed.returncode == 0, signed.err
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.HMAC_SHA256, key_resolver=Keys(key))
    message = parsed(signed.out, "https://api.example")
    result = verifier.verify(message, expect_tag="countersign")
    assert {'"@method"', '"@authority"', '"@path"', '"@query"'} <= set(result[0].covered_components)
    assert offline("verify", key, signed.stdout).returncode == 0

    message.method = "PUT"
    with pytest.raises(InvalidSignature):
        verifier.verify(message, expect_tag="countersign")
    refused = offline("verify", key, signed.stdout.replace(signed.stdout.split(b" ")[0], b"PUT", 1))
    assert refused.returncode == 1
    assert "bad-signature" in refused.out + refused.err


def test_verify_and_explain_judge_by_the_time_given():
    key = ReleaseKey("r_AAAAAAAAAAAAAAAAAAAAAA", base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("="), "api.example")
    signed = offline("sign", key, b"GET / HTTP/1.1\nHost: api.example\n\n", "--at", "1700000000").stdout
    assert b"created=1700000000" in signed
    assert offline("verify", key, signed, "--at", "1700000030").returncode == 0
    late = offline("verify", key, signed, "--at", "1700000300")
    assert late.returncode == 1
    assert "stale" in late.out + late.err
    explained = offline("explain", key, signed, "--at", "1700000000")
    assert explained.returncode == 0
    for stage in ('"@method": GET', '"@authority": api.example', '"@signature-params": '):
        assert stage in explained.out


def first_call(url: str, key: ReleaseKey, *options: object) -> subprocess.CompletedProcess:
    script = ROOT / "Tests/Interop/first_call.sh"
    return subprocess.run([script, url, key.key_id, key.secret, *map(str, options)], capture_output=True,
                          text=True, timeout=60, check=False)


def test_the_first_call_with_curl_and_openssl(shared):
    target = "/a/b?c=d&e=%20"
    done = first_call(shared.url + target, shared.key, "--cacert", shared.data / "tls/certificate.pem")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["target"] == target


def test_the_first_call_with_a_wrong_secret(shared):
    other = ReleaseKey(shared.key.key_id, "A" * 43, shared.key.authority)
    done = first_call(shared.url + "/", other, "--cacert", shared.data / "tls/certificate.pem")
    assert json.loads(done.stdout)["code"] == "bad-signature"
