"""A release's own policy stands in place of its app's, and a running server sees it at once."""

import json
import time

import pytest

from gateway import Gateway


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
