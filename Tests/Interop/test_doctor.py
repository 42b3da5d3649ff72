"""`countersign doctor` finds what was broken on purpose, names it, what was expected and what mends it, and changes nothing
(docs/decisions/0081-doctor.md)."""

import json
import pathlib
import shlex
import sqlite3
import subprocess
import time

import pytest

from backend import Backend
from gateway import Gateway, run
from ports import reserve_port
from waiting import until

TOPICS = ["settings", "clock", "disk", "permissions", "master-key", "store", "upstream", "certificate", "listener", "policy"]


def doctor(gateway: Gateway, *options: object, environment: dict[str, str] | None = None):
    done = run("doctor", "--data", gateway.data, "--listen", f"127.0.0.1:{gateway.port}", "--json", *options, environment=environment)
    assert done.out, done.err
    return done.returncode, json.loads(done.out)["findings"]


def wrong(findings: list[dict], topic: str) -> list[dict]:
    found = [finding for finding in findings if finding["topic"] == topic and finding["verdict"] != "well"]
    assert all(finding["expected"] for finding in found if topic != "settings"), found
    return found


@pytest.fixture
def served(tmp_path):
    gateway = Gateway(tmp_path)
    with Backend() as backend:
        gateway.options = ("--upstream", backend.url)
        with gateway:
            gateway.add_app()
            yield gateway, backend


def mend(gateway: Gateway, finding: dict) -> None:
    """Does what the finding says, as a shell reads it."""
    command = shlex.split(finding["command"])
    assert command[0] == "countersign" and command[command.index("--data") + 1] == str(gateway.data), command
    done = run(*command[1:])
    assert done.returncode == 0, done.err


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix not in (".db-wal", ".db-shm")}


def test_a_sound_deployment_is_well_and_stays_as_it_is(served):
    gateway, backend = served
    upstream = ("--upstream", backend.url)
    doctor(gateway, *upstream)
    before = {name: content for name, content in contents(gateway.data).items() if name not in ("replay", "countersign.db-wal", "countersign.db-shm")}
    code, findings = doctor(gateway, *upstream, "--strict")
    # The app's routes ask for no session, as the documents say for apps without sessions of ours: that is no finding.
    assert not [finding for finding in findings if finding["verdict"] != "well" and finding["topic"] != "disk"], findings
    code, findings = doctor(gateway, *upstream)
    assert code == 0 and {finding["topic"] for finding in findings} == set(TOPICS)
    assert [finding["topic"] for finding in findings] == sorted((finding["topic"] for finding in findings), key=TOPICS.index)
    after = contents(gateway.data)
    assert all(after[name] == content for name, content in before.items() if not name.startswith("countersign.db")
               and name not in ("login-limits", "generation", "followed-head"))
    text = run("doctor", "--data", gateway.data, "--listen", f"127.0.0.1:{gateway.port}", *upstream).out
    assert "✓ listener" in text and "answers over TLS" in text


def test_each_fault_is_named(served, tmp_path):
    gateway, backend = served
    upstream = ("--upstream", backend.url)
    key = gateway.data / "master.key"
    key.chmod(0o640)
    code, findings = doctor(gateway, *upstream)
    assert code == 1 and wrong(findings, "permissions")[0]["command"] == f"chmod 600 {key}"
    assert wrong(findings, "master-key") and wrong(findings, "settings")
    key.chmod(0o600)
    code, findings = doctor(gateway, *upstream, environment={"COUNTERSIGN_MASTER_KEY": "11" * 32})
    assert code == 1 and "not the one this store was sealed with" in wrong(findings, "master-key")[0]["message"]
    # Nothing listens there.
    code, findings = doctor(gateway, "--upstream", f"http://127.0.0.1:{reserve_port()}")
    assert code == 1 and "refused" in wrong(findings, "upstream")[0]["message"]
    # A listener that is another's: its certificate is not ours.
    other = Gateway(tmp_path / "other")
    with other:
        done = run("doctor", "--data", gateway.data, "--listen", f"127.0.0.1:{other.port}", "--json", *upstream)
        assert wrong(json.loads(done.out)["findings"], "listener")[0]["verdict"] == "error"
    for name, value, text in [("registration", "open", "anybody may sign up"), ("cors-origins", "*", "every web site")]:
        gateway.admin("app", "policy", "demo", "--set", f"{name}={value}")
        found, = [finding for finding in wrong(doctor(gateway, *upstream)[1], "policy") if text in finding["message"]]
        assert found["command"] is None and "refuse" in found["expected"], "it would cut callers off, and the meter counts none"
        gateway.admin("app", "policy", "demo", "--set", f"{name}=")
    for name, value, text in [("enforcement", "observe=3d", "without a valid proof"),
                              ("maintenance", "10m", "in maintenance"),
                              ("deny-addresses", "0.0.0.0/0,2001:db8::/32", "deny-addresses has 0.0.0.0/0"),
                              ("cors-credentials", "https://a.example", "cors-credentials has no effect")]:
        gateway.admin("app", "policy", "demo", "--set", f"{name}={value}")
        code, findings = doctor(gateway, *upstream)
        assert code == 0, findings
        found, = [finding for finding in wrong(findings, "policy") if text in finding["message"]]
        mend(gateway, found)
        assert not [finding for finding in wrong(doctor(gateway, *upstream)[1], "policy") if text in finding["message"]]
    assert policy(gateway)["deny-addresses"] == "2001:db8::/32", "what else is denied stays denied"
    gateway.admin("app", "policy", "demo", "--set", "registration=open")
    assert doctor(gateway, *upstream, "--strict")[0] == 1


def policy(gateway: Gateway) -> dict[str, str]:
    return {key["key"]: key["value"] for key in json.loads(gateway.admin("app", "policy", "demo", "--json").out)["policy"]}


def test_no_command_refuses_a_caller_that_is_served(tmp_path):
    """The commands of all findings are run on a deployment of each policy that a finding is about, while callers use it: each
    of them is served afterwards as before."""
    gateway = Gateway(tmp_path)
    with Backend() as backend:
        gateway.options = ("--upstream", backend.url)
        with gateway:
            gateway.add_app(legacy_host="127.0.0.1", enforcement="observe=3d", cors_origins="*", registration="open")
            gateway.admin("route", "set", "demo", "/", "--require", "open")
            key = gateway.add_release()
            gateway.admin("route", "set", "demo", "/pay", "--require", "session", "--enforcement", "observe=3d")
            host = f"Host: {key.authority}\r\n"
            callers = {
                "unsigned": lambda: f"GET / HTTP/1.1\r\n{host}\r\n".encode(), "signed": key.request,
                "without a session": lambda: key.request("GET", "/pay"),
                "a wrong signature": lambda: key.request("GET", "/a").replace(b"/a ", b"/b "),
                "a page": lambda: f"GET / HTTP/1.1\r\n{host}Origin: https://a.example\r\n\r\n".encode(),
            }
            assert {name: gateway.send(request()).status for name, request in callers.items()} == dict.fromkeys(callers, 200)
            until(lambda: json.loads(gateway.admin("meter", "demo", "--json").out)["unsigned"], "the meter is empty")
            findings = wrong(doctor(gateway, "--upstream", backend.url)[1], "policy")
            texts = [finding["message"] for finding in findings]
            for text in ("without a valid proof", "only observes", "open to anyone", "anybody may sign up", "every web site"):
                assert [message for message in texts if text in message], (text, texts)
            told = [finding for finding in findings if "would refuse" in finding["expected"]]
            assert len(told) == 3 and any("1 session-required" in finding["expected"] for finding in told), told
            # One rule that observes hides what another refuses, so that the commands themselves are looked at, too.
            assert {tuple(shlex.split(finding["command"])[:3]) for finding in told} == {("countersign", "meter", "demo")}
            for finding in findings:
                if finding["command"]:
                    mend(gateway, finding)
            assert {name: gateway.send(request()).status for name, request in callers.items()} == dict.fromkeys(callers, 200)


def test_a_rule_for_some_methods_opens_no_others(served):
    gateway, backend = served
    gateway.admin("route", "set", "demo", "/news", "--require", "open", "--methods", "GET", "--enforcement", "observe=3d",
                  "--rate-address", "9/minute,burst=3")
    found, = [one for one in wrong(doctor(gateway)[1], "policy") if "/news" in one["message"]]
    assert "GET" in found["message"]
    mend(gateway, found)
    rules = [rule for rule in json.loads(gateway.admin("route", "list", "demo", "--json").out)["routes"] if rule["prefix"] == "/news"]
    assert rules == [{"prefix": "/news", "methods": ["GET"], "require": "open", "enforcement": "enforce", "observe_until": None,
                      "limits": {"rate-address": "9/minute,burst=3"}}]
    assert not [one for one in wrong(doctor(gateway)[1], "policy") if "/news" in one["message"]]


def test_names_in_commands_are_quoted(tmp_path):
    gateway = Gateway(tmp_path)
    gateway.data = tmp_path / "it's; touch PWNED"
    gateway.admin("app", "add", "demo", "--require", "session")
    strange = gateway.data / "x; touch PWNED"
    strange.write_text("")
    strange.chmod(0o644)
    gateway.admin("route", "set", "demo", "/a$IFS", "--require", "session", "--enforcement", "observe=3d")
    findings = doctor(gateway)[1]
    found, = [one for one in wrong(findings, "permissions") if "touch" in one["message"] and "644" in one["message"]]
    assert subprocess.run(["sh", "-c", found["command"]], cwd=tmp_path, check=False).returncode == 0
    assert strange.stat().st_mode & 0o777 == 0o600 and not list(tmp_path.rglob("PWNED"))
    found, = [one for one in wrong(findings, "policy") if "only observes" in one["message"]]
    mend(gateway, found)
    assert not [one for one in wrong(doctor(gateway)[1], "policy") if "only observes" in one["message"]]


def test_a_listener_behind_a_proxy_is_not_looked_at(served):
    gateway, backend = served
    code, findings = doctor(gateway, "--upstream", backend.url, "--proxy-protocol", "require", "--trusted-proxies", "127.0.0.1/32")
    found, = [one for one in findings if one["topic"] == "listener"]
    assert code == 0 and found["verdict"] == "well" and "not looked at" in found["message"], findings


def test_a_clock_behind_the_store_and_old_schemes(tmp_path):
    gateway = Gateway(tmp_path)
    with gateway:
        gateway.admin("app", "add", "demo", "--require", "session")
        gateway.admin("app", "policy", "demo", "--set", "schemes=message-signatures,auth-v2")
    assert not [one for one in wrong(doctor(gateway)[1], "policy") if "auth-v2" in one["message"]]
    with sqlite3.connect(gateway.data / "countersign.db") as database:
        database.execute("UPDATE meta SET value = ? WHERE name = 'meter-began'", (str(int(time.time()) - 40 * 86_400).encode(),))
        database.execute("INSERT INTO meter (app, key_id, scheme, outcome, day, count, last_seen) VALUES ('demo', '', '', 'open', ?, 1, ?)",
                         (int(time.time()) // 86_400, int(time.time()) + 3_600))
    code, findings = doctor(gateway)
    assert code == 1 and "the store has a change of" in wrong(findings, "clock")[0]["message"]
    assert wrong(findings, "upstream")[0]["verdict"] == wrong(findings, "listener")[0]["verdict"] == "warning"


def test_an_unused_scheme_is_named_and_not_taken_from_an_app_that_has_no_other(tmp_path):
    gateway = Gateway(tmp_path)
    for name, schemes in [("demo", "message-signatures,auth-v1,auth-v2"), ("old", "auth-v2")]:
        gateway.admin("app", "add", name, "--require", "session")
        gateway.admin("app", "policy", name, "--set", f"schemes={schemes}")
    with sqlite3.connect(gateway.data / "countersign.db") as database:
        database.execute("UPDATE app SET created = created - 40 * 86400")
        database.execute("INSERT INTO meta (name, value) VALUES ('meter-began', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                         (str(int(time.time()) - 40 * 86_400).encode(),))
    database.close()
    gateway.accept_rows()
    found = [one for one in wrong(doctor(gateway)[1], "policy") if "no request has used it" in one["message"]]
    assert [one["message"].split()[1:4:2] for one in found] == [["demo:", "auth-v1"], ["demo:", "auth-v2"], ["old:", "auth-v2"]], found
    assert found[2]["command"] is None and found[0]["command"] == found[1]["command"]
    mend(gateway, found[0])
    found = [one for one in wrong(doctor(gateway)[1], "policy") if "no request has used it" in one["message"]]
    assert ["old" in one["message"] for one in found] == [True], found


def test_an_altered_row_and_no_store(tmp_path):
    gateway = Gateway(tmp_path)
    with gateway:
        gateway.add_app()
        gateway.add_release()
    with sqlite3.connect(gateway.data / "countersign.db") as database:
        database.execute("UPDATE release SET version = '9'")
    code, findings = doctor(gateway)
    assert code == 1 and wrong(findings, "store")[0]["command"] == f"countersign audit verify --data {gateway.data}"
    database.close()
    # One that is only locked is not to be replaced.
    with sqlite3.connect(gateway.data / "countersign.db") as database:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("BEGIN IMMEDIATE")
        database.execute("UPDATE release SET version = '8'")
        code, findings = doctor(gateway)
        assert code == 1 and "locked" in wrong(findings, "store")[0]["message"] and wrong(findings, "store")[0]["command"] is None
        database.rollback()
    database.close()
    sound = (gateway.data / "countersign.db").read_bytes()
    (gateway.data / "countersign.db").write_bytes(b"x" * len(sound))
    restore = f"countersign restore FILE --master-key {gateway.data}/master.key --data {gateway.data}.restored"
    code, findings = doctor(gateway)
    assert code == 1 and "damaged" in wrong(findings, "store")[0]["message"] and wrong(findings, "store")[0]["command"] == restore
    (gateway.data / "countersign.db").unlink()
    code, findings = doctor(gateway)
    assert code == 1 and "no store there" in wrong(findings, "store")[0]["message"]
    assert wrong(findings, "store")[0]["command"] == restore
    assert not (gateway.data / "countersign.db").exists()
    assert run("doctor", "--strictly").returncode == 2
