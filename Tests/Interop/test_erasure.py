"""What is held about one person: shown, exported, and erased from every file of the data folder under a running server."""

import json
import os
import random
import secrets
import sqlite3
import subprocess

import pytest

import processes
from gateway import BINARY, Gateway, run
from person import PASSWORD, Person

DEVICE = "the phone of wilhelmina"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("erasure")) as running:
        running.add_app("demo", registration="open", upload_tickets="10", legacy_login="on", legacy_key="k")
        running.add_app("other", registration="open")
        yield running


def files_with(gateway: Gateway, text: str) -> set[str]:
    """The files of the data folder that contain the text, anywhere in their bytes."""
    return {str(path.relative_to(gateway.data)) for path in gateway.data.rglob("*")
            if path.is_file() and text.encode() in path.read_bytes()}


def account(gateway: Gateway, command: str, name: str, *more: object) -> dict:
    return json.loads(gateway.admin("account", command, "demo", name, *more).out)


def findings(gateway: Gateway) -> list[dict]:
    return json.loads(gateway.admin("audit", "verify", "--json").out)["findings"]


def records(gateway: Gateway) -> list[dict]:
    return json.loads(gateway.admin("audit", "list", "--last", "100000", "--json").out)["records"]


def busy(gateway: Gateway, folder, name: str) -> Person:
    """A person who has left a trace in each table."""
    person = Person(gateway, folder, name).signs_up().logs_in("--device-name", DEVICE)
    person.calls("-d", "amount=1", "-H", f"Idempotency-Key: {secrets.token_hex(8)}", f"/pay?who={name}")
    (folder / "file").write_bytes(b"x" * 100)
    done = person.run("upload-ticket", "--file", str(folder / "file"), f"/files/{name}")
    assert done.returncode == 0, done.err
    return person


def test_shown_exported_erased(served, tmp_path):
    name = "wilhelmina-of-the-erasure"
    person = busy(served, tmp_path / "p", name)
    gateway = served
    shown = account(gateway, "show", name, "--json")
    assert shown["sessions"] == 1 and shown["known_devices"] == 1 and shown["upload_tickets"] == 1
    assert shown["idempotent_requests"] == 1 and not shown["erased"] and shown["pseudonym"].startswith("a_")

    held = account(gateway, "export", name)
    assert held["account"]["account"] == name and held["sessions"][0]["device"]["name"] == DEVICE
    assert held["upload_tickets"][0]["target"] == f"/files/{name}"
    assert held["idempotent_requests"][0]["status"] == 200 and held["idempotent_requests"][0]["body"]
    assert {record["action"] for record in held["audit"]} == {"account.register"}
    assert held["audit"][0]["account"] == name and held["audit"][0]["actor"]["name"] == name
    assert any("limits" in line for line in held["not_included"])
    assert PASSWORD not in json.dumps(held)

    assert files_with(gateway, name)
    done = run("account", "erase", "demo", name, "--data", gateway.data)
    assert done.returncode == 2 and "--yes" in done.err
    done = account(gateway, "erase", name, "--yes", "--json")
    assert len(done["ended_sessions"]) == 1 and done["absent_from_files"]

    assert files_with(gateway, "wilhelmina") == set(), "the name, and a device's that contains it"
    assert findings(gateway) == []
    assert person.run("request", "/hello").returncode == 1, "the running server has ended the session"
    assert gateway.process.poll() is None
    named = [record for record in records(gateway) if record.get("pseudonym") == shown["pseudonym"]]
    assert [record["action"] for record in named] == ["account.register", "account.export", "account.erase"]
    assert all(record["account"] is None for record in named)
    assert run("account", "show", "demo", name, "--data", gateway.data).returncode == 1

    # The name stays taken, at the client and at the command line, and only in its app.
    again = Person(gateway, tmp_path / "again", name)
    said = again.run("signup", "--account", name, "--password-stdin", stdin=PASSWORD)
    assert said.returncode == 1 and "name-taken" in said.err
    for spelling in (name, name.upper()):
        done = run("account", "add", "demo", spelling, "--data", gateway.data)
        assert done.returncode == 1 and "has, or had" in done.err
    row = json.dumps({"name": name, "user_id": 9, "rung": "hmac-md5-time", "value": secrets.token_hex(16)})
    done = run("account", "import", "demo", "-", "--data", gateway.data, stdin=row)
    assert done.returncode == 1
    assert files_with(gateway, "wilhelmina") == set(), "nor do refused attempts bring it back"
    gateway.admin("account", "add", "other", name)


def test_removed_and_erased(served):
    served.admin("account", "add", "demo", "gone-gustav", "--user-id", "77")
    served.admin("account", "remove", "demo", "gone-gustav")
    assert files_with(served, "gone-gustav"), "remove keeps the name"
    served.admin("account", "erase", "demo", "gone-gustav", "--yes")
    assert files_with(served, "gone-gustav") == set()
    # The backend's id is free again, the row keeps its number.
    listed = json.loads(served.admin("account", "list", "demo", "--json").out)["accounts"]
    assert all(each["user_id"] != 77 for each in listed)
    assert [each["state"] for each in listed if each["account"].startswith("erased-")].count("removed") >= 1


def test_among_thousands(served):
    """Where SQLite moves rows from page to page, it leaves copies that `secure_delete` does not overwrite."""
    names = [f"crowd-{secrets.token_hex(12)}" for _ in range(3000)]
    rows = [json.dumps({"name": name, "user_id": 1000 + number, "rung": "hmac-md5-time", "value": secrets.token_hex(16)})
            for number, name in enumerate(names)]
    served.admin("account", "import", "demo", "-", stdin="\n".join(rows))
    for name in random.sample(names, 4):
        assert account(served, "erase", name, "--yes", "--json")["absent_from_files"]
        assert files_with(served, name) == set()
    assert findings(served) == []


def test_on_a_terminal_the_name_is_typed(served):
    served.admin("account", "add", "demo", "typed-tina")

    def erase(answer: str) -> int:
        ours, theirs = os.openpty()
        process = processes.start([BINARY, "account", "erase", "demo", "typed-tina", "--data", served.data], stdin=theirs,
                                   stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        os.write(ours, answer.encode() + b"\n")
        code = process.wait(60)
        os.close(ours)
        return code

    assert erase("yes") == 1 and files_with(served, "typed-tina")
    assert erase("Typed-Tina") == 0 and files_with(served, "typed-tina") == set()


def test_no_record_of_the_audit_log_has_a_name(served):
    """After all commands and requests of this module. `AccountErasureTests`, which has the log's key, rewrites the log of a version
    whose records had names."""
    with sqlite3.connect(f"file:{served.data}/countersign.db?mode=ro", uri=True) as database:
        found = [text for (text,) in database.execute("SELECT record FROM audit")]
    assert found and not [text for text in found if '"account":"' in text or '"kind":"account"' in text and '"name"' in text]
