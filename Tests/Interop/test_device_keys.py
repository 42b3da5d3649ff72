"""Where a device's keys are kept, over a real gateway: login and device-signed routes with keys in software, and what the server is told
of it. The command line has no hardware for keys."""

import json

import pytest

from clock import Clock
from gateway import Gateway
from person import Person


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("device-keys")
    with Gateway(folder, clock=Clock(folder)) as gateway:
        gateway.add_app("demo", require="session", registration="open")
        gateway.admin("route", "set", "demo", "/pay", "--require", "device")
        yield gateway


def listed(gateway: Gateway, name: str) -> dict:
    """The account's one live session, as an administrator sees it."""
    sessions = json.loads(gateway.admin("session", "list", "demo", name, "--json").out)["sessions"]
    assert len(sessions) == 1, sessions
    return sessions[0]


def test_software_is_told_too(served, tmp_path):
    bob = Person(served, tmp_path / "bob", "soft-bob").signs_up().logs_in()
    status = bob.status("--offline")
    assert (status["key_storage"], status["kind"]) == ("software", "device")
    assert "device keys:   software\n" in bob.run("status").out
    # The server knows, and so does the account's owner.
    assert listed(served, "soft-bob")["key_storage"] == "software"
    text = served.admin("session", "list", "demo", "soft-bob").out
    assert "KEYS" in text and " software " in text
    own = json.loads(bob.run("request", "/countersign/v1/sessions").out)["sessions"]
    assert [session["key_storage"] for session in own] == ["software"]
    assert json.loads(bob.run("request", "/countersign/v1/session").out)["key_storage"] == "software"
    assert bob.calls("-d", "amount=1", "/pay")["headers"]["countersign-account"] == "name:soft-bob"


def test_a_session_of_tokens_has_no_keys(served, tmp_path):
    served.admin("app", "policy", "demo", "--set", "password-login=on")
    carol = Person(served, tmp_path / "carol", "bearer-carol").signs_up()
    carol.logs_in("--password-login")
    assert carol.status("--offline")["key_storage"] is None
    assert listed(served, "bearer-carol")["key_storage"] is None
    assert " none " in served.admin("session", "list", "demo", "bearer-carol").out
