"""While we answer where old clients sign in, nothing reaches the backend's own login: no other spelling, method or size."""

import dataclasses
import json

import pytest

from backend import Backend
from gateway import Gateway

FORM = b"username=u&password=guess"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with Backend() as backend, Gateway(tmp_path_factory.mktemp("doors"), "--upstream", backend.url) as running:
        running.backend = backend
        running.add_app("demo", legacy_login="on", legacy_session="authority")
        running.key = running.add_release()
        yield running


def test_the_backend_is_there(place):
    assert place.send(place.key.request("POST", "/login/other.php", FORM)).status == 200
    assert place.backend.seen[-1].target == "/login/other.php"


@pytest.mark.parametrize("method, target", [
    ("HEAD", "/login/login.php?username=u&password=p"), ("POST", "/login%252Flogin.php"),
    # A backend that runs a program in the middle of a path passes the rest to it as a path.
    ("POST", "/index.php/login/login.php"), ("POST", "/a/Index.PHP%2Flogin\\login.php"), ("POST", "/login/index.php/login.php"),
])
def test_no_other_spelling_or_method(place, method, target):
    before = len(place.backend.seen)
    request = place.key.request(method, target, FORM if method in ("POST", "PUT") else b"")
    answer = place.send(request, to_head=method == "HEAD")
    assert answer.status == 400
    assert method == "HEAD" or json.loads(answer.body)["code"] == "malformed"
    assert len(place.backend.seen) == before, "the backend saw it"


def test_no_body_that_is_too_large_to_be_read(place):
    before = len(place.backend.seen)
    large = FORM + b"&x=" + b"a" * 1_200_000
    assert place.send(place.key.request("POST", "/login/login.php", large)).status == 413
    assert place.send(place.key.request("POST", "/login/other.php", large)).status == 200
    assert len(place.backend.seen) == before + 1


def test_the_paths_are_open_where_the_policy_leaves_them_to_the_backend(tmp_path):
    with Backend() as backend, Gateway(tmp_path, "--upstream", backend.url) as running:
        running.add_app("demo", legacy_login="on")
        key = running.add_release()
        assert running.send(key.request("GET", "/login/token.php")).status == 200, "its tokens are its own"
        running.admin("app", "policy", "demo", "--set", "legacy-login=off")
        assert running.send(key.request("POST", "//login/login.php", FORM)).status == 200


@pytest.mark.parametrize("kind", ["b", "l"])
def test_a_token_in_the_wrong_place_is_not_logged(place, kind):
    token = f"{kind}_" + "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
    answer = place.send(dataclasses.replace(place.key, key_id=token).request("GET", f"/a/{token}"))
    assert answer.status == 401
    event = place.event(json.loads(answer.body)["instance"])
    assert event["path"] == f"/a/{kind}_…" and f"keyid {kind}_…" in event["detail"]
    assert token not in place.log_path.read_text()
