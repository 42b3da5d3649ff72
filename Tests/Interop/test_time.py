"""GET time: the response to any caller is signed with Ed25519 and bound to the caller's nonce, or to the
signature of the request."""

import base64
import hashlib
import json
import re
import time

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ed25519

from gateway import Gateway

PATH = "/countersign/v1/time"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("time")) as running:
        running.add_app("demo")
        made = json.loads(running.admin("release", "add", "demo", "--platform", "ios", "--version", "2", "--json").out)
        running.authority_key = made["authority_key"]
        running.key = running.add_release()
        yield running


def ask(place, target: str, *lines: str, method: str = "GET"):
    head = "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {place.key.authority}", *lines])
    return place.send(f"{head}\r\n\r\n".encode())


def check(place, answer, request: dict[str, str] | None = None) -> list[str]:
    """Verifies the answer's signature over what it says it covers; returns the components."""
    label, parameters = answer.get("signature-input").split("=", 1)
    components = re.findall(r'"([^"]+)"(;req)?', parameters[:parameters.index(")")])
    digest = answer.get("content-digest")
    assert digest == f"sha-256=:{base64.b64encode(hashlib.sha256(answer.body).digest()).decode()}:"
    base = ""
    for name, of_request in components:
        value = str(answer.status) if name == "@status" else request[name] if of_request else answer.get(name)
        base += f'"{name}"{of_request}: {value}\n'
    base += f'"@signature-params": {parameters}'
    signature = base64.b64decode(answer.get("signature").removeprefix(f"{label}=:").removesuffix(":"))
    key = ed25519.Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(place.authority_key + "="))
    key.verify(signature, base.encode())
    with pytest.raises(InvalidSignature):
        key.verify(signature, base.encode() + b" ")
    assert 'keyid="authority"' in parameters
    return [name for name, _ in components]


def test_anybody_is_told_and_can_check_it(place):
    answer = ask(place, f"{PATH}?nonce=n-0123456789")
    told = json.loads(answer.body)
    assert answer.status == 200 and told["nonce"] == "n-0123456789"
    assert abs(told["time"] - time.time()) <= 2
    assert check(place, answer) == ["@status", "content-digest"]
    assert answer.get("cache-control") == "no-store"


@pytest.mark.parametrize("created", [0, -7_200], ids=["in time", "2 h behind"])
def test_a_signed_question_is_answered_whatever_its_clock_and_the_answer_bound_to_it(place, created):
    data = place.key.request("GET", f"{PATH}?nonce=abcdefgh", created=int(time.time()) + created)
    fields = dict(line.split(": ", 1) for line in data.decode().split("\r\n")[1:] if line)
    request = {name.lower(): value for name, value in fields.items()}
    request |= {"@method": "GET", "@path": PATH, "@query": "?nonce=abcdefgh"}
    answer = place.send(data)
    assert answer.status == 200 and json.loads(answer.body)["nonce"] == "abcdefgh"
    bound = ["@status", "content-digest", "@method", "@path", "@query", "signature", "signature-input"]
    assert check(place, answer, request) == bound
    request["signature"] = request["signature"].replace("app=:", "app=:A", 1)
    with pytest.raises(InvalidSignature):
        check(place, answer, request)


def test_without_anything_to_be_bound_to_it_is_not_signed(place):
    answer = ask(place, PATH)
    assert answer.status == 200 and set(json.loads(answer.body)) == {"time"}
    assert answer.get("idempotency-keys-kept") == "600"
    assert answer.get("signature") is None


@pytest.mark.parametrize("lines", [("Signature: app=:AAAA:",), ("Signature: app=:AAAA:", 'Signature-Input: app=("@method"')])
def test_half_a_signature_binds_nothing(place, lines):
    """Whatever is signed covers the nonce, or both fields of the request's signature, as they came."""
    answer = ask(place, PATH, *lines)
    assert answer.status == 200
    fields = dict(line.lower().split(": ", 1) for line in lines)
    if len(fields) == 2 and answer.get("signature"):
        request = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        bound = check(place, answer, request | {"@method": "GET", "@path": PATH, "@query": "?"})
        assert {"signature", "signature-input"} <= set(bound)
    else:
        assert answer.get("signature") is None
    assert check(place, ask(place, f"{PATH}?nonce=n-0123456789", *lines[:1])) == ["@status", "content-digest"]


def test_a_nonce_that_is_none(place):
    for query in ("nonce=short", "nonce=" + "n" * 65, "nonce=with%20space", "nonce=abcdefgh&nonce=abcdefgh", "nonce="):
        answer = ask(place, f"{PATH}?{query}")
        assert (answer.status, json.loads(answer.body)["code"]) == (400, "malformed"), query


def test_the_nonce_comes_back_as_it_is_meant(place):
    answer = ask(place, f"{PATH}?other=1&nonce=%61bcdefg%22%5C%7Eh&more")
    assert json.loads(answer.body)["nonce"] == 'abcdefg"\\~h'
    check(place, answer)


def test_other_methods_are_not_for_it(place):
    answer = ask(place, f"{PATH}?nonce=abcdefgh", "Content-Length: 0", method="POST")
    assert answer.status == 405 and answer.get("allow") == "GET, HEAD"
