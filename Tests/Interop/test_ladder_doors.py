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
    ("POST", "/login.php/login.php"), ("POST", "/login/login"), ("POST", "/log%C4%B1n/login.php"),
    ("POST", "/index.phar/login/login.php"),
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


def test_decide_reads_paths_alike(tmp_path):
    """Of an app with such endpoints. Another app's callers may use any path."""
    with Gateway(tmp_path, "--tls", "off", "--decide", "nginx", "--trusted-proxies", "127.0.0.1") as gateway:
        gateway.add_app("demo", legacy_login="on", legacy_session="authority", legacy_paths="login:/api/signin")
        gateway.add_app("other")
        keys = {app: gateway.add_release(app) for app in ("demo", "other")}
        secret = (gateway.data / "decide-secret").read_text().strip()

        def asked(app: str, path: str) -> str | int:
            signature = [line for line in keys[app].head("POST", path).decode().split("\r\n")[1:]
                         if line and not line.lower().startswith("host:")]
            lines = ["GET /countersign/v1/decide HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", "X-Original-Method: POST",
                     f"X-Original-URI: {path}", f"X-Original-Host: 127.0.0.1:{gateway.port}",
                     f"Countersign-Decide: {secret}", *signature]
            answer = gateway.send("\r\n".join([*lines, "", ""]).encode())
            return answer.get("countersign-refusal") or answer.status

        assert asked("demo", "/api/signin") == "decide-needs-body"
        paths = ("/api.php/signin", "/api/%C5%BFignin", "/ap%u0069/signin", "/api//x")
        assert [asked("demo", path) for path in paths] == ["malformed"] * 4
        assert [asked("other", path) for path in (*paths, "/api/signin")] == [200] * 5
        assert asked("demo", "/api/news.json") == 200
