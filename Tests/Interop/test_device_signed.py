"""Routes for which a session's request key, which lies in the app's memory, is not enough: rules of level `device`."""

import json

import pytest

from gateway import Gateway
from person import Person


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("device-signed")) as running:
        running.add_app("demo", registration="open")
        for prefix in ("/pay", "/v1/keys"):
            running.admin("route", "set", "demo", prefix, "--require", "device")
        yield running


def codes(gateway: Gateway, path: str) -> list[str]:
    """How each request for `path` was judged, in their order."""
    return [event["code"] for event in gateway.events() if event.get("path") == path]


def test_a_client_adds_the_devices_signature_where_it_is_asked_for(served, tmp_path):
    alice = Person(served, tmp_path / "alice", "alice").signs_up().logs_in()
    paid = alice.calls("-d", "amount=1", "/pay/now")
    assert paid["headers"]["countersign-account"] == "name:alice"
    alice.calls("/hello")
    assert served.stop() == 0
    assert codes(served, "/pay/now") == ["device-unsigned", "ok"]
    assert codes(served, "/hello") == ["ok"], "nothing more is asked for elsewhere"
    served.start()


def test_a_session_that_no_device_has_a_key_of_does_not_open_them(served, tmp_path):
    served.admin("app", "policy", "demo", "--set", "password-login=on")
    bob = Person(served, tmp_path / "bob", "bob").signs_up()
    bob.logs_in("--password-login")
    bob.calls("/hello")
    done = bob.run("request", "-d", "amount=1", "/pay")
    assert done.returncode == 1 and json.loads(done.out)["code"] == "forbidden", done.err
