"""An SQLite file is copied before it is migrated, by whatever opens it; `migrate --check` only tells what would be done; and the earlier build goes
on with the copy. The earlier build is the program that ships, the later one has a planted migration (docs/decisions/0074-rolling-upgrades.md)."""

import json
import pathlib
import shutil
import sqlite3
import stat
import subprocess

import needs
from gateway import Gateway, run
from products import BREAKABLE

pytestmark = needs.breakable

LATER = ("--sabotage", "schema-expanded")
STEP = {"level": 2, "name": "planted expansion", "kind": "contracting", "oldest_level": 2}


def level_of(path: pathlib.Path) -> int:
    database = sqlite3.connect(path)
    try:
        return database.execute("PRAGMA user_version").fetchone()[0]
    finally:
        database.close()


def copies(gateway: Gateway) -> list[pathlib.Path]:
    return sorted(gateway.data.glob("countersign.db.level-1.*"))


def put_back(gateway: Gateway, copy: pathlib.Path) -> None:
    for rest in ("-wal", "-shm"):
        (gateway.data / f"countersign.db{rest}").unlink(missing_ok=True)
    shutil.copy2(copy, gateway.data / "countersign.db")


def migrate(gateway: Gateway, *options: str) -> subprocess.CompletedProcess:
    """By the later build."""
    return subprocess.run([BREAKABLE, "migrate", "--data", gateway.data, *LATER, *options], capture_output=True, timeout=60, check=False, text=True)


def test_a_file_is_copied_first(tmp_path):
    gateway = Gateway(tmp_path)
    path = gateway.data / "countersign.db"
    with gateway:
        gateway.add_app()
        key = gateway.add_release()
        assert gateway.send(key.request()).status == 200
    assert level_of(path) == 1 and "nothing to do" in run("migrate", "--data", gateway.data, "--check").out
    # What would be done, and nothing is.
    done = migrate(gateway, "--check", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"level": 1, "target": 2, "pending": [STEP], "hindering": [], "backup": True}
    text = migrate(gateway, "--check").stdout
    assert "level 1" in text and "planted expansion" in text and "copied first" in text
    assert level_of(path) == 1 and not copies(gateway)
    done = migrate(gateway, "--json")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)
    assert first["done"] == [STEP] and level_of(path) == 2
    copy = pathlib.Path(first["backup"])
    assert copies(gateway) == [copy] and stat.S_IMODE(copy.stat().st_mode) == 0o600 and level_of(copy) == 1
    assert json.loads(migrate(gateway, "--json").stdout) == {"done": [], "backup": None}
    assert "nothing to do" in migrate(gateway, "--check").stdout and "nothing to do" in migrate(gateway).stdout
    # The earlier build does not open it.
    refused = run("app", "list", "--data", gateway.data)
    assert refused.returncode == 3 and "made by a newer countersign" in refused.err, refused.err
    # A server does the same by the way, and says so.
    put_back(gateway, copy)
    gateway.options += LATER
    with gateway:
        assert gateway.send(key.request()).status == 200
        assert len(copies(gateway)) == 2 and level_of(path) == 2
        assert str(copies(gateway)[1]) in gateway.log_path.read_text()
        refused = migrate(gateway)
        assert refused.returncode != 0 and "a server runs" in refused.stderr
        assert json.loads(migrate(gateway, "--check", "--json").stdout)["pending"] == []
    # The copy is a whole file, with which the earlier build goes on.
    put_back(gateway, copies(gateway)[1])
    gateway.options = [each for each in gateway.options if each not in LATER]
    with gateway:
        assert gateway.send(key.request()).status == 200
    assert run("audit", "verify", "--data", gateway.data).returncode == 0
