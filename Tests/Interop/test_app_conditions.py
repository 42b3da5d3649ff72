"""An app that does not do as it should is named by `app list`, the API's listing, `doctor` and the metrics; a line of the log
has what is known of the caller, and marks what it only claims."""

import json

import pytest

import bearer
from backend import Backend
from gateway import run
from test_metrics import Administered
from waiting import until


@pytest.fixture
def served(tmp_path):
    with Backend() as backend:
        gateway = Administered(tmp_path, "--upstream", backend.url)
        gateway.backend = backend
        with gateway:
            for app in ("fine", "resting", "watching", "failing"):
                gateway.add_app(app)
            gateway.add_app("web", schemes="token", legacy_login="on", legacy_session="authority", legacy_host="web.example",
                            token_in="bearer", release_in="header:x-app-version")
            gateway.admin("maintenance", "on", "--app", "resting")
            gateway.admin("route", "set", "watching", "/a", "--require", "session", "--enforcement", "observe=3d")
            yield gateway


def failing(seen, sock) -> None:
    sock.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")


def test_each_condition_everywhere(served):
    keys = {app: served.add_release(app) for app in ("fine", "failing")}
    for _ in range(3):
        assert served.send(keys["fine"].request()).status == 200
    served.backend.answer = failing
    for _ in range(2):
        assert served.send(keys["failing"].request()).status == 500
    form = "username=a&password=b"
    served.send((f"POST /login/login.php HTTP/1.1\r\nHost: web.example\r\nX-App-Version: 7.7\r\nContent-Length: {len(form)}\r\n"
                 f"Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}").encode())

    def listed() -> dict[str, dict]:
        return {row["app"]: row for row in json.loads(served.admin("app", "list", "--json").out)["apps"]}

    until(lambda: listed()["failing"]["failed"] == 2 and listed()["fine"]["forwarded"] == 3, listed)
    rows = listed()
    assert (rows["failing"]["forwarded"], rows["fine"]["failed"], rows["resting"]["maintenance"]) == (2, 0, True)
    assert rows["watching"]["observing_until"] and not rows["fine"]["maintenance"] and rows["fine"]["observing_until"] is None
    text = {line.split()[0]: line for line in served.admin("app", "list").out.splitlines()}
    assert "maintenance" in text["resting"] and "observing until" in text["watching"] and text["fine"].endswith("-")
    assert "2 of 2 requests failed at the backend" in text["failing"]
    findings = json.loads(run("doctor", "--data", served.data, "--listen", f"127.0.0.1:{served.port}", "--upstream",
                              served.backend.url, "--json").out)["findings"]
    messages = [finding["message"] for finding in findings if finding["verdict"] == "warning"]
    for expected in ("app resting: it is in maintenance", "app watching: route /a only observes", "app failing: 2 of 2 requests"):
        assert any(message.startswith(expected) for message in messages), (expected, messages)
    assert not any("app fine" in message for message in messages)
    metrics = served.metrics()
    assert {dict(labels)["app"] for (name, labels), value in metrics.items() if name == "countersign_app_maintenance" and value} == {"resting"}
    assert {dict(labels)["app"] for (name, labels), value in metrics.items() if name == "countersign_app_observing" and value} == {"watching"}
    served.admin("maintenance", "off", "--app", "resting")
    until(lambda: served.metrics()["countersign_app_maintenance", (("app", "resting"),)] == 0, "the metric stays")


def test_versions_that_are_not_registered(tmp_path):
    gateway = Administered(tmp_path)
    gateway.options = ("--authority", f"127.0.0.1:{gateway.port},web.example")
    with gateway:
        gateway.add_app("web", schemes="token", legacy_login="on", legacy_session="authority", legacy_host="web.example",
                        token_in="bearer", release_in="header:x-app-version", slots="unlimited")
        gateway.admin("account", "import", "web", "-", stdin=json.dumps({"name": "a", "user_id": 1, "rung": "plain-post", "value": "b"}))
        form = "username=a&password=b"

        def log_in(version: str) -> int:
            return gateway.send((f"POST /login/login.php HTTP/1.1\r\nHost: web.example\r\nX-App-Version: {version}\r\n"
                                 f"Content-Length: {len(form)}\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n{form}").encode()).status

        gateway.admin("release", "add", "web", "--platform", "ios", "--version", "1.0", "--scheme", "token")
        assert [log_in("1.0"), log_in("7.7"), log_in("8.8")] == [200] * 3

        def row() -> dict:
            return json.loads(gateway.admin("app", "list", "--json").out)["apps"][0]

        until(lambda: row()["unregistered"] == 2, row)
        findings = json.loads(run("doctor", "--data", gateway.data, "--json").out)["findings"]
        assert [finding for finding in findings if "2 requests of versions that are not registered" in finding["message"]]


def test_a_line_has_what_is_known_and_marks_what_is_claimed(served):
    key = served.add_release("fine")
    request = key.request()
    requests = {
        "ok": request, "replayed": request, "stale": key.request(created=int(served.time()) - 1_000),
        "bad-signature": key.request(target="/a").replace(b"/a ", b"/b "),
        "unsigned": f"GET / HTTP/1.1\r\nHost: {key.authority}\r\n\r\n".encode(),
    }
    for sent in requests.values():
        served.send(sent)
    until(lambda: len([event for event in served.events() if event.get("code") in requests]) == len(requests), "not all are logged")
    lines = {event["code"]: event for event in served.events() if event.get("code") in requests}
    names = ("app", "release", "claimed_app", "claimed_release", "scheme")
    told = {code: {name: event[name] for name in names if name in event} for code, event in lines.items()}
    proven = {"app": "fine", "release": key.key_id, "scheme": "message-signatures"}
    claimed = {"claimed_app": "fine", "claimed_release": key.key_id, "scheme": "message-signatures"}
    assert told == {"ok": proven, "replayed": proven, "stale": proven, "bad-signature": claimed, "unsigned": {}}


def test_a_dropped_upgrade_is_in_the_log(served):
    key = served.add_release("fine")
    plain = key.request(target="/a")
    asking = key.request(target="/b").replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 1)
    assert [served.send(request).status for request in (plain, asking)] == [200, 200]
    assert served.backend.seen[-1].get("upgrade") is None
    until(lambda: len([event for event in served.events() if event.get("path") in ("/a", "/b")]) == 2, "not all are logged")
    assert {event["path"]: event.get("dropped") for event in served.events() if event.get("path") in ("/a", "/b")} == {
        "/a": None, "/b": "upgrade"}


def test_a_session_that_is_only_named_is_claimed(served):
    bearer.add_app(served, 1)
    token = json.loads(served.send(bearer.login(served, "user-0")).body)["token"]
    assert served.send(bearer.bearing(served, token)).status == 200
    line = until(lambda: [event for event in served.events() if event.get("path") == "/countersign/v1/session"], "no event")[-1]
    assert line["account"] and line["session"] and not [name for name in line if name.startswith("claimed")]


def test_refusals_of_callers_with_proof_are_kept_apart(served):
    """A stranger's refusals cannot displace those of a caller that has proved something."""
    def kept(name: str) -> bytes:
        return (served.data / f"refusals-{name}").read_bytes()

    key = served.add_release("failing")
    served.backend.answer = failing
    assert served.send(key.request(target="/proven")).status == 500
    failed, = until(lambda: [event["event"] for event in served.events() if event.get("path") == "/proven"], "no event")
    refused = json.loads(served.send(f"GET / HTTP/1.1\r\nHost: {key.authority}\r\n\r\n".encode()).body)["instance"]
    for name, event, other in (("proven", failed, refused), ("unproven", refused, failed)):
        until(lambda name=name, event=event: event.encode() in kept(name), f"not among the {name}")
        assert other.encode() not in kept(name)
