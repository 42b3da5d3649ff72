"""Rotation of the keys that clients know, with a running server: a client that was built with the answer key's successor
goes on, one without it refuses with a sentence that says why, and a sign-up that was begun before a rotation is finished
after it."""

import base64
import json
import secrets
import shutil
import sqlite3
import sys
import threading
import time

import pytest

from gateway import ROOT, Gateway, run
from person import PASSWORD, Person

sys.path.insert(0, str(ROOT / "Examples/python"))
from countersign_client.client import Client  # noqa: E402
from countersign_client.setup import Setup  # noqa: E402


@pytest.fixture
def served(tmp_path):
    with Gateway(tmp_path / "served") as running:
        running.add_app("demo", registration="open")
        yield running


def show(gateway: Gateway) -> dict:
    return json.loads(gateway.admin("answer-key", "show", "--json").out)


def stored(gateway: Gateway, name: str) -> bytes:
    """A value of the deployment as the database has it."""
    database = sqlite3.connect(f"file:{gateway.data / 'countersign.db'}?mode=ro", uri=True)
    try:
        return database.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()[0]
    finally:
        database.close()


def test_who_has_both_keys_goes_on_during_traffic(served, tmp_path):
    alice = Person(served, tmp_path / "alice", "alice", knows_next=True).signs_up().logs_in()
    bob = Person(served, tmp_path / "bob", "bob").signs_up().logs_in()
    asked = ("request", "--as-release", "/hello")
    assert bob.run(*asked).returncode == 0
    failures, calls, is_over = [], 0, threading.Event()

    def call() -> None:
        nonlocal calls
        while not is_over.is_set():
            for done in (alice.run(*asked), alice.run("request", "/hello")):
                calls += 1
                if done.returncode != 0:
                    failures.append(done.err)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    before, began = show(served), calls
    rotated = json.loads(served.admin("answer-key", "rotate", "--force", "--json").out)
    assert rotated["authority_key"] == before["next_authority_key"] == alice.release["next_authority_key"]
    while calls < began + 20 and not failures:
        time.sleep(0.05)
    is_over.set()
    for thread in threads:
        thread.join()
    assert failures == []
    # Who was built with the former key alone believes nothing that the server signs with it; its session goes on.
    done = bob.run(*asked)
    assert done.returncode != 0 and done.out == "" and "the server rotated it since" in done.err
    assert "`next_authority_key`" in done.err
    assert bob.run("request", "/hello").returncode == 0
    carol = Person(served, tmp_path / "carol", "carol", knows_next=True)
    assert carol.release["authority_key"] == rotated["authority_key"]
    carol.signs_up().logs_in()


def test_the_former_key_is_refused_from_then_on(served, tmp_path):
    """As after a theft of the former key: the folder from before the rotation is put back."""
    alice = Person(served, tmp_path / "alice", "alice", knows_next=True).signs_up()
    served.stop()
    shutil.copytree(served.data, tmp_path / "backup", ignore=shutil.ignore_patterns("control"))
    served.start()
    served.admin("answer-key", "rotate")
    alice.logs_in()
    served.stop()
    shutil.rmtree(served.data)
    (tmp_path / "backup").rename(served.data)
    served.start()
    done = alice.run("request", "--as-release", "/hello")
    assert done.returncode != 0 and "accepts the former one no longer" in done.err
    # The next key is in that store, too.
    served.admin("answer-key", "rotate")
    assert alice.run("request", "--as-release", "/hello").returncode == 0


def test_a_rotation_that_cuts_releases_off_is_refused(served):
    release = served.add_release(version="1.0").key_id
    served.admin("answer-key", "rotate")
    listed = show(served)
    assert [each["key_id"] for each in listed["releases_without_next"]] == [release]
    done = run("answer-key", "rotate", "--data", served.data)
    assert done.returncode == 1 and done.out == "" and f"({release})" in done.err and "--force" in done.err
    assert show(served) == listed
    served.admin("release", "retire", release, "--at", "now", "--update-url", "https://example.com/new")
    assert "`next_authority_key`" in served.admin("answer-key", "rotate").err
    assert served.admin("audit", "list", "--json").out.count('"answer-key.rotate"') == 2


def test_a_caller_without_a_session_in_another_scheme(served, tmp_path):
    """`request` verifies by itself where the profile signs in another way, and so does `selftest`."""
    made = json.loads(served.admin("release", "add", "demo", "--platform", "ios", "--version", "9", "--json").out)
    served.admin("answer-key", "rotate", "--force")
    keys = ("--authority-key", made["authority_key"])
    certificate = served.data / "tls/certificate.pem"
    for more, broken in (((), {"time"}), (("--next-authority-key", made["next_authority_key"]), set())):
        done = run("selftest", served.url, "--key-id", made["key_id"], "--ca", certificate, *keys, *more, "--json",
                   environment={"COUNTERSIGN_SECRET": made["secret"]})
        report = json.loads(done.out)
        found = {check["name"] for check in report["checks"] if check["verdict"] == "broken"}
        assert found >= broken and bool(found) == bool(broken), found
    for wrong in (("--next-authority-key", made["next_authority_key"]), (*keys, "--next-authority-key", made["authority_key"])):
        done = run("profile", "add", tmp_path / "p", "--url", served.url, "--key-id", made["key_id"], "--secret-stdin", *wrong,
                   stdin=made["secret"])
        assert done.returncode == 2 and "--next-authority-key" in done.err


def client(gateway: Gateway, folder, name: str = "state.json") -> Client:
    made = json.loads(gateway.admin("release", "add", "demo", "--platform", "ios", "--version", f"1.{secrets.token_hex(6)}",
                                    "--json").out)
    pin = next(line for line in gateway.started if "sha256/" in line).split()[-1]
    return Client(Setup.read({**made, "url": gateway.url, "pins": [pin]}), folder / name)


def after_start(person: Client, do) -> None:
    """Runs `do` between the two steps of a sign-up."""
    ask = person._channel.ask

    def interrupted(route: str, *arguments: object, **more: object):
        reply = ask(route, *arguments, **more)
        if route == "/registration/start":
            do(reply)
        return reply

    person._channel.ask = interrupted


def test_a_sign_up_outlives_a_rotation_of_its_key(served, tmp_path):
    seen = []
    alice = client(served, tmp_path)

    def rotate(reply) -> None:
        seen.append(reply.members["registration_key"])
        served.admin("registration-key", "rotate")

    after_start(alice, rotate)
    alice.sign_up("alice", PASSWORD)
    alice.log_in("alice", PASSWORD)
    bob = client(served, tmp_path, "bob.json")
    after_start(bob, lambda reply: seen.append(reply.members["registration_key"]))
    bob.sign_up("bob", PASSWORD)
    assert len(set(seen)) == 2 and all(len(base64.urlsafe_b64decode(key + "=")) == 32 for key in seen)
    assert "registration-key.rotate" in served.admin("audit", "list").out
