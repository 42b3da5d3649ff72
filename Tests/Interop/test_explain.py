"""Clients of the field make their usual mistakes; the refusal of an app whose policy says debug, and the command, name them."""

import base64
import hashlib
import hmac
import json
import secrets
import subprocess
import time
import urllib.parse

import pytest

from gateway import Gateway, run
from signing import ReleaseKey, decode_secret


@pytest.fixture(scope="module")
def debug(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("debug")) as running:
        running.add_app("shop", debug="on", schemes="message-signatures,form-md5,auth-v1")
        running.key = running.add_release("shop")
        running.other = running.add_release("shop", "ios", "2.0")
        running.admin("release", "add", "shop", "--platform", "ios", "--version", "0.9", "--scheme", "form-md5",
                      "--key-id", "FORMAPP1", "--secret", "form-secret-of-the-app")
        running.admin("release", "add", "shop", "--platform", "ios", "--version", "0.8", "--scheme", "auth-v1",
                      "--key-id", "AUTHAPP1", "--secret", "auth-secret-of-the-app")
        running.add_app("quiet")
        running.quiet = running.add_release("quiet")
        yield running


def signed(key: ReleaseKey, target: str, signs: str | None = None, *, secret: str | None = None,
           write=lambda mac: base64.b64encode(mac).decode()) -> bytes:
    """A GET of `target` whose signature is over `signs`, made with hmac alone."""
    path, _, query = (signs or target).partition("?")
    parameters = (f'("@method" "@authority" "@path" "@query" "countersign-release");created={int(time.time())};'
                  f'nonce="{secrets.token_urlsafe(16)}";keyid="{key.key_id}";alg="hmac-sha256";tag="countersign"')
    base = (f'"@method": GET\n"@authority": {key.authority}\n"@path": {path}\n"@query": ?{query}\n'
            f'"countersign-release": {key.key_id}\n"@signature-params": {parameters}')
    mac = hmac.digest(decode_secret(secret or key.secret), base.encode(), "sha256")
    return (f"GET {target} HTTP/1.1\r\nHost: {key.authority}\r\nCountersign-Release: {key.key_id}\r\n"
            f"Signature-Input: app={parameters}\r\nSignature: app=:{write(mac)}:\r\n\r\n").encode()


MISTAKES = {
    "path-decoded": lambda g: signed(g.key, "/a%20b", "/a b"),
    "path-without-slash": lambda g: signed(g.key, "/a/", "/a"),
    "query-order": lambda g: signed(g.key, "/?b=1&a=2", "/?a=2&b=1"),
    "plus-for-space": lambda g: signed(g.key, "/?q=a+b", "/?q=a%20b"),
    "secret-of-another-release": lambda g: signed(g.key, "/", secret=g.other.secret),
    "hex-for-base64": lambda g: signed(g.key, "/", write=lambda mac: mac.hex()),
    "clock-off": lambda g: g.key.request(created=int(time.time()) - 90),
    "body-reserialised": lambda g: g.key.head("POST", "/", body=b'{"a": 1}').replace(b"Length: 8", b"Length: 7") + b'{"a":1}',
}


@pytest.mark.parametrize("code", MISTAKES)
def test_the_refusal_names_the_mistake(debug, code):
    answer = debug.send(MISTAKES[code](debug))
    problem = json.loads(answer.body)
    assert problem["explain"]["cause"]["code"] == code, problem
    assert problem["explain"]["cause"]["sentence"]
    assert {"claim", "string to sign"} <= {stage["name"] for stage in problem["explain"]["stages"]} or code == "hex-for-base64"
    for key in debug.key, debug.other:
        assert key.secret not in answer.body.decode()
        assert decode_secret(key.secret).hex() not in answer.body.decode()


def test_of_a_forgery_there_are_stages_and_no_cause(debug):
    forged = ReleaseKey(debug.key.key_id, "A" * 43, debug.key.authority).request()
    explained = json.loads(debug.send(forged).body)["explain"]
    assert explained["cause"] is None
    assert explained["stages"]


def test_an_app_without_debug_and_an_unknown_key_are_told_nothing(debug):
    quiet = signed(debug.quiet, "/a%20b", "/a b")
    unknown = ReleaseKey("r_AAAAAAAAAAAAAAAAAAAAAA", debug.key.secret, debug.key.authority).request()
    for request in quiet, unknown:
        assert "explain" not in json.loads(debug.send(request).body)


def test_form_md5_is_told_in_its_own_error(debug):
    form = {"app_id": "FORMAPP1", "plat": "ios", "ver": "0.9", "rand": secrets.token_hex(8), "name": "Jo Ann",
            "timestamp": time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime())}
    text = "&".join(f"{name}={value}" for name, value in sorted((form | {"private_key": "form-secret-of-the-app"}).items()))
    body = urllib.parse.urlencode(form | {"sign": hashlib.md5(text.encode()).hexdigest().upper()}).encode()
    head = (f"POST / HTTP/1.1\r\nHost: {debug.key.authority}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    answer = debug.send(head.encode() + body)
    assert answer.status == 200
    assert "hex-case" in json.loads(answer.body)["err"]["msg"]
    assert b"form-secret" not in answer.body


def explain(request: bytes, key: ReleaseKey, *options: object) -> subprocess.CompletedProcess:
    return run("explain", "--key-id", key.key_id, *options, "--json", stdin=request)


@pytest.fixture
def key() -> ReleaseKey:
    return ReleaseKey("r_AAAAAAAAAAAAAAAAAAAAAA", base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("="), "api.example")


def test_the_command_names_it_too(key):
    done = explain(signed(key, "/a%20b", "/a b"), key, "--secret", key.secret)
    assert done.returncode == 1
    explained = json.loads(done.out)
    assert explained["cause"]["code"] == "path-decoded"
    assert explained["differs"]["component"] == '"@path"'
    assert explained["differs"]["signed"] == '"@path": /a b'
    accepted = explain(signed(key, "/"), key, "--secret", key.secret)
    assert (accepted.returncode, json.loads(accepted.out)["cause"]) == (0, None)


def test_the_command_tries_other_secrets(key, tmp_path):
    other = base64.urlsafe_b64encode(bytes(32)).decode().rstrip("=")
    request = signed(key, "/", secret=other)
    assert json.loads(explain(request, key, "--secret", key.secret).out)["cause"] is None
    done = explain(request, key, "--secret", key.secret, "--other-secret", other)
    assert json.loads(done.out)["cause"]["code"] == "another-secret"
    file = tmp_path / "other.txt"
    file.write_text(other + "\n")
    done = explain(request, key, "--secret", key.secret, "--other-secret-file", str(file))
    assert json.loads(done.out)["cause"]["code"] == "another-secret"
    assert other not in done.out


def test_the_command_takes_keys_from_a_data_folder(debug):
    done = explain(signed(debug.key, "/", secret=debug.other.secret), debug.key, "--data", debug.data)
    assert json.loads(done.out)["cause"]["code"] == "secret-of-another-release"
    assert debug.other.key_id in json.loads(done.out)["cause"]["sentence"]


def test_the_command_compares_with_what_was_signed(key, tmp_path):
    request = signed(key, "/a%20b", "/a b")
    spelled = next(stage["text"] for stage in json.loads(explain(request, key, "--secret", key.secret).out)["stages"]
                   if stage["name"] == "string to sign")
    client = tmp_path / "signed"
    client.write_text(spelled.replace("GET", "get"))
    done = explain(request, key, "--secret", key.secret, "--signed", client)
    differs = json.loads(done.out)["differs"]
    assert (differs["line"], differs["byte"], differs["component"]) == (1, 12, '"@method"')


def test_text_for_people_has_colour_on_a_terminal_only(key):
    done = run("explain", "--key-id", key.key_id, "--secret", key.secret, stdin=signed(key, "/a%20b", "/a b"))
    assert done.returncode == 1
    assert "cause: path-decoded" in done.out
    assert "to mend it: " in done.out
    assert "\x1b[" not in done.out
