"""A refused request is found by the event id of its response: by the command in a process of its own, by the API and by
`--api`, while the server runs, after a restart, and when no server runs. Lists are filtered by app, release and code."""

import json
import urllib.parse

import pytest

from gateway import run
from signing import SecretAsText
from test_admin_api import Deployment
from waiting import until


@pytest.fixture
def served(tmp_path):
    with Deployment(tmp_path) as deployment:
        deployment.add_app("demo")
        deployment.add_app("shop")
        deployment.key = deployment.add_release()
        yield deployment


def refused(served, request: bytes) -> dict:
    """The problem document of a refused request."""
    answer = served.send(request)
    assert answer.status >= 400
    return json.loads(answer.body)


def by_api(served, event: str) -> dict:
    status, found, _ = served.call("GET", f"/api/v1/refusals/{event}")
    assert status == 200, found
    return found


def by_command(served, *options: object) -> dict:
    done = served.admin("refusals", "--json", *options)
    assert done.returncode == 0, done.err
    return json.loads(done.out)


def test_an_event_id_leads_to_its_record(served, tmp_path):
    problem = refused(served, SecretAsText(served.key.key_id, served.key.secret, served.key.authority).request(target="/orders?a=1"))
    event = problem["instance"]
    # The server itself has it in memory; the file has it after the thread that writes.
    found = until_kept(served, event)
    assert found["code"] == problem["code"] == "bad-signature" and found["event"] == event
    assert (found["app"], found["release"]) == ("demo", served.key.key_id)
    assert found["cause"]["code"] == "secret-encoding" and found["searched"] is True
    assert found["line"]["path"] == "/orders" and found["line"]["event"] == event
    assert by_api(served, event) == by_api(served, event.upper()) == found
    text = served.admin("refusals", "--id", event).out
    assert "mistake: secret-encoding" in text and "code: bad-signature" in text
    token = tmp_path / "token"
    token.write_text(served.all)
    token.chmod(0o600)
    remote = run("--api", f"http://127.0.0.1:{served.admin_port}", "--token-file", token, "refusals", "--id", event, "--json")
    assert json.loads(remote.out) == found
    # A restart empties the memory, and another server reads what is on the disk.
    served.stop()
    assert by_command(served, "--id", event) == found, "no server runs"
    served.start()
    assert by_api(served, event) == by_command(served, "--id", event) == found


def until_kept(served, event: str) -> dict:
    """The record in the file; the server writes on a thread of its own."""
    until(lambda: run("refusals", "--id", event, "--data", served.data).returncode == 0, "the record is on the disk")
    return by_command(served, "--id", event)


def test_lists_are_filtered(served):
    host = f"127.0.0.1:{served.port}"
    other = served.add_release("shop")
    events = {
        "altered": refused(served, served.key.request(target="/a?b=1").replace(b"b=1", b"b=2"))["instance"],
        "of shop": refused(served, other.request(target="/a?b=1").replace(b"b=1", b"b=2"))["instance"],
        "unsigned": refused(served, f"GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())["instance"],
    }
    for event in events.values():
        until_kept(served, event)

    def listed(**filters: object) -> set[str]:
        options = [word for name, value in filters.items() for word in (f"--{name}", value)]
        by_file = by_command(served, *options)
        query = urllib.parse.urlencode({"limit" if name == "last" else name: value for name, value in filters.items()})
        status, by_route, _ = served.call("GET", f"/api/v1/refusals?{query}")
        for answer in (by_route, by_file):
            # Within a second there is no order.
            answer["refusals"].sort(key=lambda refusal: refusal["event"])
        assert status == 200 and ("last" in filters or by_route == by_file)
        names = {event: name for name, event in events.items()}
        return {names[refusal["event"]] for refusal in by_file["refusals"]}

    assert listed() == set(events)
    assert listed(app="demo") == listed(release=served.key.key_id) == {"altered"}
    assert listed(app="shop", code="bad-signature") == {"of shop"}
    assert listed(code="unsigned") == {"unsigned"} and listed(code="stale") == set()
    assert len(listed(last=1)) == 1
    causes = {cause["code"]: cause["count"] for cause in by_command(served, "--last", 1)["causes"]}
    assert causes == {"bad-signature": 2, "unsigned": 1}, "all are counted, few are listed"
    assert by_command(served)["kept_since"]["unproven"] is not None
    shown = served.admin("refusals", "--app", "demo")
    assert events["altered"] in shown.out and "latest 5000 of each kind" in shown.err
    # Another operation of the same scope exists; one without it does not show addresses and paths.
    token = served.token_for("apps", ["apps:read"])
    assert served.code("GET", "/api/v1/refusals", token=token) == (403, "scope-missing")


def test_what_is_not_kept(served, tmp_path):
    nothing = "01234567-89ab-cdef-0123-456789abcdef"
    refused(served, f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode())
    assert served.code("GET", f"/api/v1/refusals/{nothing}") == served.code("GET", "/api/v1/refusals/x") == (404, "not-found")
    done = run("refusals", "--id", nothing, "--data", served.data)
    assert done.returncode == 1 and "no such refusal is stored" in done.err
    assert run("refusals", "--id", nothing, "--app", "demo", "--data", served.data).returncode == 2
    assert run("refusals", "--last", 501, "--data", served.data).returncode == 2
    done = run("refusals", "--data", tmp_path / "elsewhere")
    assert done.returncode == 1 and "no refusals are kept here" in done.err
    assert not (tmp_path / "elsewhere").exists()
