"""A release's own policy stands in place of its app's, and a running server sees it at once."""

import json
import time

import pytest

from gateway import Gateway, run


def code(answer) -> str:
    return "accepted" if answer.status == 200 else json.loads(answer.body)["code"]


@pytest.fixture
def releases(tmp_path):
    with Gateway(tmp_path) as running:
        running.add_app("demo", window="40s")
        yield running, running.add_release(version="1.0"), running.add_release(version="2.0")


def shown(running: Gateway, key) -> dict[str, tuple[str, str]]:
    rows = json.loads(running.admin("release", "policy", key.key_id, "--json").out)["policy"]
    assert all(row["meaning"] for row in rows)
    return {row["key"]: (row["value"], row["from"]) for row in rows}


def test_one_release_alone(releases):
    running, first, second = releases
    late = lambda key: code(running.send(key.request(created=int(time.time()) - 20)))
    assert (late(first), late(second)) == ("accepted", "accepted")
    running.admin("release", "policy", first.key_id, "--set", "window=5s")
    assert (late(first), late(second)) == ("stale", "accepted")
    assert shown(running, first)["window"] == ("5s", "release")
    assert shown(running, second)["window"] == ("40s", "app")
    assert shown(running, second)["debug"] == ("off", "default")
    running.admin("app", "policy", "demo", "--set", "window=6s")
    running.admin("release", "policy", first.key_id, "--set", "window=")
    assert (late(first), late(second)) == ("stale", "stale")
    assert shown(running, first)["window"] == ("6s", "app")


def test_a_scheme_is_switched_off_for_one_release(releases):
    running, first, second = releases
    done = running.admin("release", "policy", first.key_id, "--set", "schemes=sigv4")
    assert "its requests are refused" in done.err
    assert [code(running.send(key.request())) for key in (first, second)] == ["scheme-not-allowed", "accepted"]
    running.admin("app", "policy", "demo", "--set", "schemes=sigv4")
    running.admin("release", "policy", first.key_id, "--set", "schemes=message-signatures")
    assert [code(running.send(key.request())) for key in (first, second)] == ["accepted", "scheme-not-allowed"]


def test_fields_that_must_be_signed(releases):
    running, first, second = releases
    running.admin("release", "policy", first.key_id, "--set", "cover=x-tenant", "--set", "debug=on")
    answer = running.send(first.request())
    assert code(answer) == "bad-signature" and '\\"x-tenant\\" is not sent' in answer.body.decode()
    unsigned = first.request().replace(b"\r\n\r\n", b"\r\nX-Tenant: blue\r\n\r\n")
    answer = running.send(unsigned)
    assert code(answer) == "bad-signature" and 'does not cover \\"x-tenant\\"' in answer.body.decode()
    assert code(running.send(first.request(fields=[("x-tenant", "blue")]))) == "accepted"
    # A second, unsigned line beside the signed one.
    doubled = first.request(fields=[("x-tenant", "blue")]).replace(b"\r\n\r\n", b"\r\nX-Tenant: red\r\n\r\n")
    assert code(running.send(doubled)) == "bad-signature"
    assert code(running.send(second.request())) == "accepted"


def test_what_cannot_be(releases):
    running, first, _ = releases
    policy = ("release", "policy", first.key_id)
    for arguments, status, named in [
        ((*policy, "--set", "slots=single"), 2, "belongs to the app"), ((*policy, "--set", "nonsense=1"), 2, "nonsense"),
        ((*policy, "--set", "window=soon"), 2, "soon"), (("release", "policy", "r_absent"), 1, "r_absent"),
        (("release", "policy", "r_absent", "--set", "debug=on"), 1, "r_absent"),
    ]:
        done = run(*arguments, "--data", running.data)
        assert (done.returncode, named in done.err) == (status, True), (arguments, done.err)
    assert {origin for _, origin in shown(running, first).values()} <= {"app", "default"}
