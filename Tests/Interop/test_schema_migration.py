"""An SQLite file of an earlier version is copied before it is migrated, by whatever opens it; and `migrate --check` only tells what would be
done (docs/decisions/0074-rolling-upgrades.md)."""

import json
import pathlib
import shutil
import sqlite3
import stat

from gateway import Gateway, run


def back(gateway: Gateway) -> None:
    """The file as the level before this one left it."""
    database = sqlite3.connect(gateway.data / "countersign.db", isolation_level=None)
    level = level_of(gateway.data / "countersign.db")
    assert level == 21, "the last migration of this test is not the last one"
    database.executescript("DROP TABLE account_code; DROP TABLE account_verification; PRAGMA user_version = 20")
    database.close()


def level_of(path: pathlib.Path) -> int:
    database = sqlite3.connect(path)
    try:
        return database.execute("PRAGMA user_version").fetchone()[0]
    finally:
        database.close()


def copies(gateway: Gateway) -> list[pathlib.Path]:
    return sorted(gateway.data.glob("countersign.db.level-20.*"))


def migrate(gateway: Gateway, *options: str):
    return run("migrate", "--data", gateway.data, *options)


def test_a_file_is_copied_first(tmp_path):
    gateway = Gateway(tmp_path)
    path = gateway.data / "countersign.db"
    with gateway:
        gateway.add_app()
        key = gateway.add_release()
        assert gateway.send(key.request()).status == 200
    back(gateway)
    # What would be done, and nothing is.
    done = migrate(gateway, "--check", "--json")
    assert done.returncode == 0, done.err
    step = {"level": 21, "name": "codes and verifications of accounts", "kind": "contracting", "oldest_level": 21}
    assert json.loads(done.out) == {"level": 20, "target": 21, "pending": [step], "hindering": [], "backup": True}
    text = migrate(gateway, "--check").out
    assert "level 20" in text and "codes and verifications of accounts" in text and "copied first" in text
    assert level_of(path) == 20 and not copies(gateway)
    done = migrate(gateway, "--json")
    assert done.returncode == 0, done.err
    first = json.loads(done.out)
    assert first["done"] == [step] and level_of(path) == 21
    copy = pathlib.Path(first["backup"])
    assert copies(gateway) == [copy] and stat.S_IMODE(copy.stat().st_mode) == 0o600 and level_of(copy) == 20
    assert json.loads(migrate(gateway, "--json").out) == {"done": [], "backup": None}
    assert "nothing to do" in migrate(gateway, "--check").out and "nothing to do" in migrate(gateway).out
    # A server and a command do the same by the way, and say so.
    back(gateway)
    with gateway:
        assert gateway.send(key.request()).status == 200
        assert len(copies(gateway)) == 2
        assert str(copies(gateway)[1]) in gateway.log_path.read_text()
        refused = migrate(gateway)
        assert refused.returncode != 0 and "a server runs" in refused.err
        assert json.loads(migrate(gateway, "--check", "--json").out)["pending"] == []
    back(gateway)
    done = run("app", "list", "--data", gateway.data)
    assert done.returncode == 0 and str(copies(gateway)[2]) in done.err, done.err
    # The copy is a whole file, with which everything goes on.
    for rest in ("-wal", "-shm"):
        (gateway.data / f"countersign.db{rest}").unlink(missing_ok=True)
    shutil.copy2(copy, path)
    with gateway:
        assert gateway.send(key.request()).status == 200
