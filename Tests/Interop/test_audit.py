"""The audit log from outside: what commands write, what `audit verify` finds, and that a kill leaves it whole."""

import json
import os
import pwd
import signal
import sqlite3
import time

import pytest

import needs
from gateway import run
from kills import killed_at


class Folder:
    """A data folder without a server on it."""

    def __init__(self, path):
        self.path = path / "data"

    def run(self, *arguments: object):
        return run(*arguments, "--data", self.path)

    def do(self, *arguments: object) -> dict:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.err
        return json.loads(done.out)

    def verify(self, *more: object) -> tuple[int, dict]:
        done = self.run("audit", "verify", "--json", *more)
        return done.returncode, json.loads(done.out)

    def tamper(self, sql: str) -> None:
        with sqlite3.connect(self.path / "countersign.db") as database:
            database.execute("DROP TRIGGER audit_is_not_altered")
            database.execute("DROP TRIGGER audit_is_not_cut")
            assert database.execute(sql).rowcount > 0
        database.close()


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path)
    made.do("app", "add", "demo", "--require", "signed")
    made.do("release", "add", "demo", "--platform", "ios", "--version", "1.0", "--key-id", "r_one", "--secret", "planted-secret")
    made.do("app", "policy", "demo", "--set", "window=9s", "--set", "legacy-key=planted-legacy-key")
    made.do("release", "rotate", "r_one")
    made.do("release", "rotate", "r_one", "--promote")
    return made


def test_who_did_what(folder):
    before = int(time.time())
    records = folder.do("audit", "list")["records"]
    assert [(one["number"], one["action"], one["app"], one.get("release")) for one in records] == [
        (1, "app.add", "demo", None), (2, "release.add", "demo", "r_one"), (3, "app.policy", "demo", None),
        (4, "release.next-key.add", "demo", "r_one"), (5, "release.next-key.promote", "demo", "r_one")]
    for one in records:
        assert one["actor"] == {"kind": "os-user", "uid": os.getuid(), "name": pwd.getpwuid(os.getuid()).pw_name}
        assert before - 60 < one["time"] <= before + 5
    assert records[1]["details"] == {"platform": "ios", "version": "1.0", "scheme": "message-signatures", "key": "secret"}
    assert records[2]["details"] == {"window": "9s", "legacy-key": "(sealed)"}
    assert [one["number"] for one in folder.do("audit", "list", "--last", 2)["records"]] == [4, 5]
    text = folder.run("audit", "list").out
    assert len(text.splitlines()) == 6 and "legacy-key=(sealed)" in text
    assert b"planted" not in (folder.path / "countersign.db").read_bytes()


def test_whole(folder):
    code, said = folder.verify()
    assert (code, said["records"], said["findings"]) == (0, 5, []) and said["head"].startswith("5:")
    folder.do("app", "policy", "demo", "--set", "window=8s")
    assert folder.verify("--noted", said["head"])[0] == 0
    assert folder.run("audit", "verify", "--noted", "5").returncode == 2
    other = f"5:{'0' * 64}"
    assert folder.verify("--noted", other)[1]["findings"] == [{"kind": "noted-head-missing", "head": other}]


def test_tampering(folder):
    folder.tamper("UPDATE audit SET record = replace(record, 'demo', 'dema') WHERE number = 2")
    code, said = folder.verify()
    assert code == 1 and said["findings"] == [{"kind": "altered", "number": 2}]
    text = folder.run("audit", "verify")
    assert text.returncode == 1 and "altered" in text.out


def test_a_terminal_is_shown_no_control_characters(folder):
    folder.tamper(r"""UPDATE audit SET record = '{"number":2,"time":1,"actor":{"name":"\u001b[2Jroot"},"action":"x'
                      || char(155) || '","details":{"a":"\r\n9  now  root"}}' WHERE number = 2""")
    text = folder.run("audit", "list").out
    assert "?[2Jroot" in text and not set(text) & {"\x1b", "\r", "\x9b"} and len(text.splitlines()) == 6


def test_the_database_itself_refuses_a_mistake(folder):
    with sqlite3.connect(folder.path / "countersign.db") as database:
        for sql in ["UPDATE audit SET tag = x'00'", "DELETE FROM audit"]:
            with pytest.raises(sqlite3.IntegrityError, match="only added to"):
                database.execute(sql)
    database.close()


@pytest.mark.full
@needs.programs("strace")
def test_a_kill_leaves_change_and_record_together(folder, note):
    # Before, within and after the change.
    points = [(call, number) for call, count in (("pwrite64", 27), ("fdatasync", 5), ("unlink", 2)) for number in range(1, count + 1)]
    killed = 0
    for seconds, point in enumerate(points, 1):
        done = run("app", "policy", "demo", "--set", f"window={seconds}s", "--data", folder.path, prefix=killed_at(*point))
        killed += done.returncode == -signal.SIGKILL
    code, said = folder.verify()
    assert code == 0 and said["findings"] == []
    windows = [one["details"]["window"] for one in folder.do("audit", "list", "--last", 100)["records"]
               if "window" in one["details"]]
    policy = {row["key"]: row["value"] for row in folder.do("app", "policy", "demo")["policy"]}
    assert policy["window"] == windows[-1], "a change without its record, or a record without its change"
    assert killed > len(points) / 2 and 1 < len(windows) < len(points), (killed, windows)
    note(f"audit: {killed} of {len(points)} commands killed, {len(windows)} of their changes durable, each with its record")
