"""A client that has only hashlib speaks form-md5 (L1) to the gateway; its errors come with HTTP 200."""

import json
import subprocess
import sys
import time
import urllib.parse
import uuid

import pytest

from gateway import ROOT, Gateway
from l1_client import call, error, signed

APP_ID, PRIVATE_KEY = "Zk3vQp81LmTn0aWd", "hUe7cXs2Rb9yKfJ4"


@pytest.fixture(scope="module")
def legacy(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("legacy")) as running:
        running.add_app("old", schemes="form-md5")
        running.admin("release", "add", "old", "--platform", "ios", "--version", "2.0", "--scheme", "form-md5",
                      "--key-id", APP_ID, "--secret", PRIVATE_KEY)
        running.add_app("new")
        running.key = running.add_release("new")
        running.ca = running.data / "tls/certificate.pem"
        yield running


def parameters(**business: str) -> dict[str, str]:
    return signed(business, APP_ID, PRIVATE_KEY, "ios", "2.0")


def send(legacy, form: dict[str, str], method: str = "POST") -> dict | None:
    status, body = call(legacy.url + "/api", form, str(legacy.ca), method)
    assert status == 200
    return error(body)


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_is_accepted(legacy, method):
    assert send(legacy, parameters(a="x y+z", b="é", c="", userId="7", token="abc", z="%41&"), method) is None


def test_the_script_itself(legacy):
    """As a person runs it: the answer on stdout, and the page it would show where there is an error."""
    command = [sys.executable, ROOT / "Tests/Interop/l1_client.py", legacy.url + "/api", APP_ID, PRIVATE_KEY, "ios", "2.0",
               "--ca", legacy.ca, "phoneNo=123"]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    command[4] = "wrong"
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "error -3" in done.stderr


ERRORS = {
    "an altered value": (-3, lambda: parameters(amount="1") | {"amount": "9"}),
    "an unknown app": (-2, lambda: signed({}, "unknown-app-id", PRIVATE_KEY, "ios", "2.0")),
    "too old": (-4, lambda: signed({}, APP_ID, PRIVATE_KEY, "ios", "2.0", now=time.time() - 400)),
    "the private key sent": (-1, lambda: parameters() | {"private_key": PRIVATE_KEY}),
}


@pytest.mark.parametrize("name", ERRORS)
def test_is_refused_with_200(legacy, name):
    code, make = ERRORS[name]
    err = send(legacy, make())
    assert err and err["code"] == code, err
    assert err["msg"]
    assert str(uuid.UUID(err["eventId"])) == err["eventId"].lower()
    legacy.event(err["eventId"])


def test_a_replay(legacy):
    form = parameters()
    assert send(legacy, form) is None
    assert send(legacy, form)["code"] == -5
    assert send(legacy, form, "GET")["code"] == -5


def test_a_duplicate_parameter(legacy):
    """`a=1&a=2` is signed by no reading that both sides share."""
    text = urllib.parse.urlencode(parameters(a="1")) + "&a=1"
    host = f"Host: 127.0.0.1:{legacy.port}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    answer = legacy.send(f"POST /api HTTP/1.1\r\n{host}Content-Length: {len(text)}\r\n\r\n{text}".encode())
    assert answer.status == 200
    assert json.loads(answer.body)["err"]["code"] == -1


def test_an_app_that_does_not_allow_the_scheme(legacy):
    """The key of an app whose policy names only message-signatures cannot be used for form-md5."""
    form = signed({}, legacy.key.key_id, legacy.key.secret, "ios", "1.0")
    assert send(legacy, form)["code"] in (-2, -9)


def test_a_retired_version(legacy):
    legacy.admin("release", "add", "old", "--platform", "ios", "--version", "1.0", "--scheme", "form-md5",
                 "--key-id", "retired-app-id-1", "--secret", "another-key")
    form = lambda: signed({}, "retired-app-id-1", "another-key", "ios", "1.0")  # noqa: E731
    assert send(legacy, form()) is None
    legacy.admin("release", "retire", "retired-app-id-1", "--at", str(int(time.time()) - 1),
                 "--update-url", "https://example.com/update")
    err = send(legacy, form())
    assert err["code"] == -99
    assert err["eventId"] == "https://example.com/update"
