"""Key pairs of every algorithm of RFC 9421: a peer that is not ours signs for the gateway, verifies what
`countersign sign` makes, and verifies the gateway's signed answers."""

import base64
import datetime
import json
import secrets
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding, NoEncryption, PrivateFormat, PublicFormat)
from http_message_signatures import (
    HTTPMessageSigner, HTTPMessageVerifier, HTTPSignatureKeyResolver, InvalidSignature, algorithms)

from gateway import run
from message import Message
from signing import decode_secret

MAKE = {
    "ed25519": (algorithms.ED25519, ed25519.Ed25519PrivateKey.generate),
    "ecdsa-p256-sha256": (algorithms.ECDSA_P256_SHA256, lambda: ec.generate_private_key(ec.SECP256R1())),
    "ecdsa-p384-sha384": (algorithms.ECDSA_P384_SHA384, lambda: ec.generate_private_key(ec.SECP384R1())),
    "rsa-pss-sha512": (algorithms.RSA_PSS_SHA512, lambda: rsa.generate_private_key(65537, 2048)),
    "rsa-v1_5-sha256": (algorithms.RSA_V1_5_SHA256, lambda: rsa.generate_private_key(65537, 2048)),
}
# The last algorithm is verified, but not offered for new signatures.
SIGNED_WITH = [name for name in MAKE if name != "rsa-v1_5-sha256"]


class Keys(HTTPSignatureKeyResolver):
    """One pair: its public half, or a shared secret, under whatever id."""

    def __init__(self, public, private=None):
        self.public, self.private = public, private

    def resolve_public_key(self, key_id):
        return self.public

    def resolve_private_key(self, key_id):
        return self.private


@dataclass
class Reply:
    """A response in the shape that http-message-signatures works on."""
    status_code: int
    headers: dict[str, str]
    request: Message
    url: str


@dataclass
class Pair:
    name: str
    private: object
    key_id: str = ""
    authority_key: str = ""

    @property
    def algorithm(self):
        return MAKE[self.name][0]

    @property
    def keys(self) -> Keys:
        return Keys(self.private.public_key(), self.private)

    def public_pem(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def private_pem(self) -> bytes:
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, message: Message, key_id: str, authority: str, **options) -> Message:
        covered = ["@method", "@authority", "@path", "@query", "countersign-release"]
        message.headers |= {"Host": authority, "Countersign-Release": key_id}
        if message.body:
            message.headers["Content-Length"] = str(len(message.body))
            options["body"] = message.body
        signer = HTTPMessageSigner(signature_algorithm=self.algorithm, key_resolver=self.keys)
        signer.sign(message, **{
            "key_id": key_id, "label": "app", "tag": "countersign", "nonce": secrets.token_hex(12),
            "created": datetime.datetime.now(datetime.timezone.utc),
            "covered_component_ids": covered + options.pop("more", []), **options})
        return message


@pytest.fixture(scope="module")
def pairs(shared, tmp_path_factory):
    """A release for each algorithm, made with the public half alone."""
    folder = tmp_path_factory.mktemp("pairs")
    shared.admin("app", "policy", "demo", "--set", "rsa-v1_5=on")
    made = {}
    for number, name in enumerate(MAKE):
        pair = Pair(name, MAKE[name][1]())
        (folder / name).write_bytes(pair.public_pem())
        text = shared.admin("release", "add", "demo", "--platform", "web", "--version", f"{number}", "--algorithm", name,
                            "--public-key", folder / name, "--json").out
        released = json.loads(text)
        assert "secret" not in released and "private_key" not in released
        assert released["algorithm"] == name
        pair.key_id, pair.authority_key = released["key_id"], released["authority_key"]
        made[name] = pair
    return made


@pytest.mark.parametrize("name", MAKE)
def test_a_library_signs(shared, pairs, name):
    pair = pairs[name]
    message = pair.sign(Message("POST", shared.url + "/pay?x=1", body=b'{"a":1}'), pair.key_id, shared.key.authority)
    answer = shared.send(message.wire())
    assert answer.status == 200, answer.body
    assert json.loads(answer.body)["headers"]["countersign-release"] == pair.key_id
    again = shared.send(message.wire())
    assert json.loads(again.body)["code"] == "replayed"


def test_another_pair_is_refused(shared, pairs):
    """The control of the test above: the same request under another caller's key."""
    name = "ecdsa-p384-sha384"
    stranger = Pair(name, MAKE[name][1]())
    message = stranger.sign(Message("GET", shared.url + "/"), pairs[name].key_id, shared.key.authority)
    answer = shared.send(message.wire())
    assert (answer.status, json.loads(answer.body)["code"]) == (401, "bad-signature")


def test_without_its_policy_the_old_rsa_is_refused(gateway, tmp_path):
    gateway.add_app("demo")
    pair = Pair("rsa-v1_5-sha256", MAKE["rsa-v1_5-sha256"][1]())
    (tmp_path / "key.pem").write_bytes(pair.public_pem())
    made = gateway.admin("release", "add", "demo", "--platform", "ios", "--version", "1", "--algorithm", pair.name,
                         "--public-key", tmp_path / "key.pem", "--json")
    assert "rsa-v1_5=on" in made.err
    message = pair.sign(Message("GET", gateway.url + "/"), json.loads(made.out)["key_id"], f"127.0.0.1:{gateway.port}")
    answer = gateway.send(message.wire())
    assert (answer.status, json.loads(answer.body)["code"]) == (403, "scheme-not-allowed")


def test_a_library_covers_more(shared, pairs):
    pair = pairs["ed25519"]
    message = Message("POST", shared.url + "/q?a=b+c%2F~&d=e", {"x-dict": "a=1,  b=2;x", "x-lines": "one, two"}, b"{}")
    pair.sign(message, pair.key_id, shared.key.authority, more=[
        '"@query-param";name="a"', '"x-dict";key="b"', '"x-lines";bs', '"@target-uri"', '"@request-target"', '"content-digest";sf'])
    answer = shared.send(message.wire())
    assert answer.status == 200, answer.body


@pytest.mark.parametrize("name", SIGNED_WITH)
def test_a_library_verifies_what_sign_makes(tmp_path, name):
    pair = Pair(name, MAKE[name][1]())
    (tmp_path / "private.pem").write_bytes(pair.private_pem())
    (tmp_path / "public.pem").write_bytes(pair.public_pem())
    more = ["--algorithm", name] if name.startswith("rsa") else []

    def offline(command: str, half: str, text: bytes, *options: str):
        return run(command, "--key-id", "r_pair", "--secret-file", tmp_path / f"{half}.pem", *more, *options, stdin=text)

    signed = offline("sign", "private", b'POST /a?b=c HTTP/1.1\nHost: api.example\n\n{"a":1}', "--component", "@target-uri")
    assert signed.returncode == 0, signed.err
    head, _, body = signed.out.replace("\r\n", "\n").partition("\n\n")
    message = Message("POST", "https://api.example/a?b=c", dict(line.split(": ", 1) for line in head.split("\n")[1:]),
                      body.encode())
    verifier = HTTPMessageVerifier(signature_algorithm=pair.algorithm, key_resolver=pair.keys)
    result = verifier.verify(message, expect_tag="countersign")
    assert {'"@method"', '"@target-uri"', '"content-digest"'} <= set(result[0].covered_components)
    for half in ("private", "public"):
        assert offline("verify", half, signed.stdout).returncode == 0
    assert offline("sign", "public", b"GET / HTTP/1.1\nHost: h\n\n").returncode == 2
    refused = offline("verify", "public", signed.stdout.replace(b"POST", b"PUT", 1))
    assert refused.returncode == 1 and "bad-signature" in refused.out
    message.method = "PUT"
    with pytest.raises(InvalidSignature):
        verifier.verify(message, expect_tag="countersign")


def reply(message: Message, answer) -> Reply:
    return Reply(answer.status, dict(answer.fields), message, message.url)


def verified(answer: Reply, algorithm, key):
    verifier = HTTPMessageVerifier(signature_algorithm=algorithm, key_resolver=Keys(key))
    return verifier.verify(answer, expect_tag="countersign")


def test_a_library_verifies_our_answers(shared, pairs):
    pair = pairs["ed25519"]
    raw = base64.urlsafe_b64decode(pair.authority_key + "=")
    authority = ed25519.Ed25519PublicKey.from_public_bytes(raw)
    message = pair.sign(Message("GET", shared.url + "/a"), pair.key_id, shared.key.authority)
    for status in (200, 401):
        # The second time it is a replay; both answers are the authority's, since we have no half that signs.
        answer = reply(message, shared.send(message.wire()))
        assert answer.status_code == status
        result = verified(answer, algorithms.ED25519, authority)
        assert {'"@status"', '"signature";req', '"signature-input";req'} <= set(result[0].covered_components)
        answer.status_code = 204
        with pytest.raises(InvalidSignature):
            verified(answer, algorithms.ED25519, authority)


def test_no_answer_is_signed_with_a_releases_secret(shared, pairs):
    """The release key is in every copy of the app: any holder could forge a response under it. The
    authority's key signs every response."""
    secret = decode_secret(shared.key.secret)
    raw = base64.urlsafe_b64decode(pairs["ed25519"].authority_key + "=")
    authority = ed25519.Ed25519PublicKey.from_public_bytes(raw)

    def send(key: bytes):
        message = Message("GET", shared.url + "/a", {"Host": shared.key.authority, "Countersign-Release": shared.key.key_id})
        HTTPMessageSigner(signature_algorithm=algorithms.HMAC_SHA256, key_resolver=Keys(key, key)).sign(
            message, key_id=shared.key.key_id, label="app", tag="countersign", nonce=secrets.token_hex(12),
            created=datetime.datetime.now(datetime.timezone.utc),
            covered_component_ids=["@method", "@authority", "@path", "@query", "countersign-release"])
        return reply(message, shared.send(message.wire()))

    for key, status in ((secret, 200), (bytes(32), 401)):
        answer = send(key)
        assert answer.status_code == status
        verified(answer, algorithms.ED25519, authority)
        with pytest.raises(InvalidSignature):
            verified(answer, algorithms.HMAC_SHA256, secret)


def test_refusals_ask_for_the_signature_that_would_do(gateway):
    gateway.add_app("demo", cover="x-tenant")
    key = gateway.add_release()
    unsigned = gateway.send(f"GET / HTTP/1.1\r\nHost: {key.authority}\r\n\r\n".encode())
    fields = {name.lower(): value for name, value in unsigned.fields}
    assert 'app=("@method" "@authority" "@path" "@query" "countersign-release");created;nonce="' in fields["accept-signature"]
    assert fields["accept-signature"].endswith(';tag="countersign"')
    known = gateway.send(key.request())
    fields = {name.lower(): value for name, value in known.fields}
    assert known.status == 401
    assert '"x-tenant"' in fields["accept-signature"] and f'keyid="{key.key_id}"' in fields["accept-signature"]


def test_the_client_verifies_the_answer(shared, pairs, tmp_path):
    made = json.loads(shared.admin("release", "add", "demo", "--platform", "cli", "--version", "9", "--algorithm", "ed25519",
                                   "--json").out)
    assert "secret" not in made
    (tmp_path / "key.pem").write_text(made["private_key"])

    def profile(name: str, authority_key: str):
        done = run("profile", "add", tmp_path / name, "--url", shared.url, "--key-id", made["key_id"], "--secret-file",
                   tmp_path / "key.pem", "--ca", shared.data / "tls/certificate.pem", "--authority-key", authority_key)
        assert done.returncode == 0, done.err
        return run("request", "--profile", tmp_path / name, "/a")

    good = profile("good", made["authority_key"])
    assert good.returncode == 0 and "holds" in good.err, good.err
    bad = profile("bad", base64.urlsafe_b64encode(MAKE["ed25519"][1]().public_key().public_bytes_raw()).decode().rstrip("="))
    assert bad.returncode == 1 and "not to be trusted" in bad.err
