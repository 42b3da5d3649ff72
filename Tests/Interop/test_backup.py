"""A backup is made while a gateway changes the store, and another folder is made from it: what was acknowledged before is there, and nothing
that may have been used since is taken. A backup that was altered, cut off or is another's is refused by name, and nothing is written
(docs/decisions/0080-backups.md)."""

import fcntl
import json
import os
import pathlib
import secrets
import shutil
import sqlite3
import stat
import subprocess
import threading
import time

import pytest

from clock import Clock
from gateway import Gateway, run
from person import Person
from waiting import until

WINDOW = 60
CHUNK = 65_536 + 17


def backup(gateway: Gateway, path: pathlib.Path, *options: object):
    return run("backup", path, "--data", gateway.data, *options)


def restore(path: pathlib.Path, data: pathlib.Path, *options: object, **more):
    return run("restore", path, "--data", data, *options, **more)


def restored(gateway: Gateway, folder: pathlib.Path) -> Gateway:
    """A gateway on another folder, at the same address."""
    there = Gateway(folder, clock=Clock(folder))
    there.port = gateway.port
    return there


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A stopped gateway with a backup of it under the master key, a pair of keys, and a backup to that."""
    folder = tmp_path_factory.mktemp("backup")
    gateway = Gateway(folder)
    with gateway:
        gateway.add_app()
        gateway.add_release()
    assert backup(gateway, folder / "plain").returncode == 0
    assert run("backup", "key", folder / "pair").returncode == 0
    done = backup(gateway, folder / "sealed", "--recipient", folder / "pair.pub", "--with-master-key", "--json")
    assert done.returncode == 0, done.err
    assert json.loads(done.out)["files"][0] == "master.key"
    return gateway, folder


def test_the_last_backup_is_known(tmp_path):
    def last() -> tuple[int, dict]:
        done = run("backup", "last", "--data", gateway.data, "--json")
        return done.returncode, json.loads(done.out)

    with Gateway(tmp_path / "one") as gateway:
        assert last() == (1, {"own": True, "made": None, "age": None, "overdue": True, "bytes": None, "key": None, "audit_head": None})
        began = int(time.time())
        said = json.loads(backup(gateway, tmp_path / "b", "--json").out)
        status, known = last()
        assert status == 0 and known | {"age": 0} == {
            "own": True, "made": said["made"], "age": 0, "overdue": False, "bytes": said["bytes"], "key": said["key"], "audit_head": said["audit_head"]}
        assert began <= known["made"] <= time.time() and 0 <= known["age"] < 60
        record = gateway.data / "last-backup"
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
        # One that fails changes nothing.
        before = record.read_bytes()
        assert backup(gateway, tmp_path / "b").returncode == 2
        assert backup(gateway, tmp_path / "missing" / "b").returncode == 3
        assert record.read_bytes() == before and not list(gateway.data.glob("last-backup.*"))
        # Older than a week, and damaged.
        record.write_text(json.dumps(json.loads(before) | {"made": int(time.time()) - 8 * 86_400}))
        status, known = last()
        assert status == 1 and known["overdue"] and "8 days and 0 hours ago" in run("backup", "last", "--data", gateway.data).out
        record.write_text("{}")
        done = run("backup", "last", "--data", gateway.data)
        assert done.returncode == 1 and "damaged" in done.err
        # A folder in the way keeps the backup from being recorded, not from being made.
        record.unlink()
        record.mkdir()
        done = backup(gateway, tmp_path / "c")
        assert done.returncode == 0 and "does not name this backup" in done.err and (tmp_path / "c").exists()
        record.rmdir()
    there = restored(gateway, tmp_path / "two")
    assert restore(tmp_path / "c", there.data, "--master-key", gateway.data / "master.key").returncode == 0
    assert not (there.data / "last-backup").exists()


def test_what_was_acknowledged_is_restored_and_nothing_else_is_taken(tmp_path):
    gateway = Gateway(tmp_path / "one")
    with gateway:
        gateway.add_app("demo", registration="open", upload_tickets="10")
        key = gateway.add_release()
        person = Person(gateway, tmp_path / "p").signs_up().logs_in()
        (tmp_path / "file").write_bytes(b"x")
        assert person.run("upload-ticket", "--file", str(tmp_path / "file"), "/files/x").returncode == 0
        first, keyed = key.request(), key.request("POST", "/pay", b"1", fields=[("Idempotency-Key", '"k"')])
        assert gateway.send(first).status == 200 and gateway.send(keyed).status == 200
        acknowledged: list[tuple[float, str]] = []
        stopping = threading.Event()

        def change() -> None:
            while not stopping.is_set():
                made = gateway.add_release("demo", "ios", f"2.{secrets.token_hex(6)}")
                acknowledged.append((time.monotonic(), made.key_id))

        threads = [threading.Thread(target=change) for _ in range(2)]
        for thread in threads:
            thread.start()
        until(lambda: len(acknowledged) >= 4)
        began = time.monotonic()
        done = backup(gateway, tmp_path / "b", "--json")
        ended = time.monotonic()
        until(lambda: any(at > ended for at, _ in acknowledged))
        stopping.set()
        for thread in threads:
            thread.join()
    assert done.returncode == 0, done.err
    said = json.loads(done.out)
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600 and said["bytes"] == (tmp_path / "b").stat().st_size
    assert said["files"] == ["tls/certificate.pem", "tls/key.pem"]
    assert not list(gateway.data.glob("backup-copy*")) and not list(tmp_path.glob("b.*"))
    assert b"demo" not in (tmp_path / "b").read_bytes()

    there = restored(gateway, tmp_path / "two")
    # The former folder knows which windows there were; without it, more is refused.
    result = restore(tmp_path / "b", there.data, "--master-key", gateway.data / "master.key", "--erasures-from", gateway.data,
                     "--json")
    assert result.returncode == 0, result.err
    outcome = json.loads(result.out)
    assert outcome["sessions_ended"] == 1 and outcome["upload_tickets_removed"] == 1 and outcome["master_key_written"]
    assert outcome["tables"] == said["tables"] and outcome["floor"] >= said["made"] + WINDOW
    before = {key_id for at, key_id in acknowledged if at < began}
    releases = json.loads(there.admin("release", "list", "demo", "--json").out)
    assert before and before <= {release["key_id"] for release in releases["releases"]}
    with sqlite3.connect(there.data / "countersign.db") as database:
        assert database.execute("SELECT end_reason FROM session").fetchall() == [("restored",)]
    last = json.loads(there.admin("audit", "list", "--last", "1", "--json").out)["records"][-1]
    assert last["action"] == "backup.restore" and last["details"]["made"] == said["made"], last
    assert there.admin("audit", "verify", "--noted", said["audit_head"]).returncode == 0
    with there:
        # What was signed before is refused, whether it was used or not; what is signed for a time behind the floor is not.
        assert there.send(first).status != 200 and there.send(key.request()).status == 503
        later = max(outcome["floor"] + 1, int(time.time()) + 1)
        there.clock.advance(max(0.0, later - WINDOW - time.time() + 0.2))
        assert there.send(key.request(created=later)).status == 200
        for name in ('"k"', '"new"'):
            refused = there.send(key.request("POST", "/pay", b"1", fields=[("Idempotency-Key", name)], created=later))
            problem = json.loads(refused.body)
            assert refused.status == 503 and problem["code"] == "unavailable", problem
            assert "restored from a backup" in there.event(problem["instance"])["detail"]
            assert 86_000 < int(refused.get("retry-after")) <= 86_400
        assert "keyed requests are refused until" in there.log_path.read_text()
    # An operator who accepts that requests are executed again says so by removing the file.
    (there.data / "keyed-requests-from").unlink()
    with there:
        created = max(later, int(time.time()))
        assert there.send(key.request("POST", "/pay", b"1", fields=[("Idempotency-Key", '"k"')], created=created)).status == 200


def master_key_id(gateway: Gateway, folder: pathlib.Path) -> str:
    """As a backup prints it."""
    return json.loads(backup(gateway, folder / secrets.token_hex(8), "--json").out)["master_key"]


def test_a_key_from_the_backup_itself_is_taken_only_by_its_id(made, tmp_path):
    gateway, folder = made
    rogue = Gateway(tmp_path / "rogue")
    with rogue:
        rogue.add_app()
    # Whoever has the public key makes a backup that proves itself by the master key in it.
    assert backup(rogue, tmp_path / "r", "--recipient", folder / "pair.pub", "--with-master-key").returncode == 0
    ours, theirs = master_key_id(gateway, tmp_path), master_key_id(rogue, tmp_path)
    assert ours != theirs
    data = tmp_path / "data"
    for path, options, code in [(tmp_path / "r", (), 2), (folder / "sealed", (), 2), (tmp_path / "r", ("--master-key-id", ours), 1),
                                (folder / "sealed", ("--master-key-id", theirs), 1)]:
        done = restore(path, data, "--key", folder / "pair", *options)
        assert done.returncode == code and "--master-key-id" in done.err and not data.exists(), done.err
        # The id that the file claims is not offered: it would be copied.
        assert (theirs not in done.err or theirs in options) and (ours not in done.err or ours in options), done.err
    done = restore(folder / "sealed", data, "--key", folder / "pair", "--master-key-id", ours.upper())
    assert done.returncode == 0 and ours in done.out, done.err
    # It is compared with a key that is given, too.
    done = restore(folder / "plain", tmp_path / "b", "--master-key", gateway.data / "master.key", "--master-key-id", theirs)
    assert done.returncode == 1 and theirs in done.err and not (tmp_path / "b").exists()


def test_the_master_key_comes_from_where_it_is(made, tmp_path):
    gateway, folder = made
    # From the backup, which its secret key opens.
    done = restore(folder / "sealed", tmp_path / "a", "--key", folder / "pair", "--master-key-id", master_key_id(gateway, tmp_path))
    assert done.returncode == 0, done.err
    key = (gateway.data / "master.key").read_text()
    assert (tmp_path / "a/master.key").read_text() == key
    # From the environment, and then it is not written.
    done = restore(folder / "plain", tmp_path / "b", environment={"COUNTERSIGN_MASTER_KEY": key})
    assert done.returncode == 0 and not (tmp_path / "b/master.key").exists(), done.err
    for data in ("a", "b"):
        assert (tmp_path / data / "tls/key.pem").read_bytes() == (gateway.data / "tls/key.pem").read_bytes()
        assert stat.S_IMODE((tmp_path / data).stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / data).iterdir() if path.is_file()} == {0o600}
    assert run("audit", "verify", "--data", tmp_path / "b", environment={"COUNTERSIGN_MASTER_KEY": key}).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the superuser, whose files would be another's")
def test_the_superuser_restores_only_where_nobody_else_can_write(made, tmp_path):
    gateway, folder = made
    options = ("--master-key", gateway.data / "master.key")
    # Who owns the folder, or the one that it is in, could put links there that the superuser follows.
    for name, owner, mode, text in [("owned", 12_345, 0o700, "setpriv --reuid=12345 --regid=12345"), ("shared", 0, 0o777, "others may write"),
                                    ("sticky", 0, 0o1777, "others may write"), ("group", 0, 0o770, "others may write")]:
        data = tmp_path / name
        data.mkdir()
        os.chown(data, owner, 12_345)
        data.chmod(mode)
        done = restore(folder / "plain", data, *options)
        assert done.returncode == 2 and text in done.err and not list(data.iterdir()), (name, done.err)
        if name != "sticky":
            done = restore(folder / "plain", data / "inner", *options)
            assert done.returncode == 2 and text in done.err and not list(data.iterdir()), (name, done.err)
        other = restore(folder / "plain", tmp_path / "well", *options, "--store", f"sqlite:{data}/inner/s.db")
        assert other.returncode != 0 and not list(data.iterdir()) and not (tmp_path / "well").exists(), other.err
    done = restore(folder / "plain", tmp_path / "well", *options)
    assert done.returncode == 0, done.err
    found = list((tmp_path / "well").rglob("*"))
    assert len(found) > 5 and {path.stat().st_uid for path in found} == {0}
    assert not [path for path in found if path.name.startswith("restoring")]


def test_a_clock_that_is_a_year_ahead_is_refused(made, tmp_path):
    """Keyed requests would be refused for a year."""
    gateway, folder = made
    clock, options = Clock(tmp_path / "clock"), ("--master-key", gateway.data / "master.key")
    clock.jumps(365 * 86_400)
    done = restore(folder / "plain", tmp_path / "data", *options, environment=clock.environment)
    assert done.returncode == 1 and "--confirm-clock" in done.err, done.err
    assert not list((tmp_path / "data").glob("*"))
    done = restore(folder / "plain", tmp_path / "data", *options, "--confirm-clock", environment=clock.environment)
    assert done.returncode == 0, done.err


def test_a_restore_holds_the_lock_and_replaces_nothing(made, tmp_path):
    gateway, folder = made
    data = tmp_path / "data"
    seen: dict[str, bool] = {}

    def intrude() -> None:
        """As a server would that was started meanwhile: takes the lock, and makes a store."""
        while not is_over.is_set():
            if list(data.glob("restoring.*/replay")):
                with (data / "replay.lock").open() as lock:
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        seen["locked"] = True
                if not (data / "countersign.db").exists():
                    (data / "countersign.db").write_text("a server's")
                    seen["made"] = True
                return

    thread, is_over = threading.Thread(target=intrude), threading.Event()
    thread.start()
    done = restore(folder / "plain", data, "--master-key", gateway.data / "master.key")
    is_over.set()
    thread.join()
    assert seen == {"locked": True, "made": True}, (seen, done.err)
    assert done.returncode == 3 and f"{data}/countersign.db: cannot make it" in done.err, done.err
    # What is another's stays, and nothing else does.
    assert [path.name for path in data.iterdir()] == ["countersign.db"] and (data / "countersign.db").read_text() == "a server's"


def test_a_window_that_was_wider_since_is_refused(tmp_path):
    gateway = Gateway(tmp_path / "one")
    with gateway:
        gateway.add_app()
        key = gateway.add_release()
        assert backup(gateway, tmp_path / "b").returncode == 0
        gateway.admin("app", "policy", "demo", "--set", "window=900s")
        until(lambda: gateway.send(key.request(created=int(time.time()) + 800)).status == 200, "the wider window")
        ahead = int(time.time()) + 800
        request = key.request(created=ahead)
        assert gateway.send(request).status == 200
        until(lambda: int.from_bytes((gateway.data / "replay").read_bytes()[192:200], "little") >= 900)
        # Narrow again: the policy no longer tells, the replay file does.
        gateway.admin("app", "policy", "demo", "--set", "window=60s")
    options = ("--master-key", gateway.data / "master.key", "--json")
    began = int(time.time())
    there = restored(gateway, tmp_path / "two")
    done = restore(tmp_path / "b", there.data, *options, "--erasures-from", gateway.data)
    assert done.returncode == 0 and json.loads(done.out)["floor"] >= ahead, done.err
    with there:
        there.admin("app", "policy", "demo", "--set", "window=900s")
        until(lambda: there.send(request).status == 503, "the wider window")
        assert there.send(key.request(created=ahead - 1)).status == 503
    # Nobody tells: more than the window of the backup is held back all the same.
    for former in ((), ("--erasures-from", gateway.data)):
        (gateway.data / "replay").unlink(missing_ok=True)
        done = restore(tmp_path / "b", tmp_path / f"bare{len(former)}", *options, *former)
        assert done.returncode == 0 and began + 300 <= json.loads(done.out)["floor"] < ahead, done.err


def test_devices_and_secrets_of_the_folder_do_not_come_back(tmp_path):
    gateway = Gateway(tmp_path / "one")
    with gateway:
        gateway.add_app("demo", registration="open")
        gateway.add_release()
        Person(gateway, tmp_path / "p").signs_up().logs_in()
        session, = json.loads(gateway.admin("session", "list", "demo", "--json").out)["sessions"]
    for name in ("admin-token", "decide-secret"):
        (gateway.data / name).write_text(secrets.token_hex(32))
        (gateway.data / name).chmod(0o600)
    done = backup(gateway, tmp_path / "b", "--json")
    assert done.returncode == 0 and json.loads(done.out)["files"] == ["tls/certificate.pem", "tls/key.pem"], done.err

    def devices(data: pathlib.Path) -> int:
        with sqlite3.connect(data / "countersign.db") as database:
            return database.execute("SELECT count(*) FROM known_device").fetchone()[0]

    assert devices(gateway.data) == 1 and session
    there = tmp_path / "two"
    done = restore(tmp_path / "b", there, "--master-key", gateway.data / "master.key", "--json")
    assert done.returncode == 0 and json.loads(done.out)["known_devices_removed"] == 1, done.err
    assert devices(there) == 0 and not (there / "admin-token").exists() and not (there / "decide-secret").exists()
    assert run("audit", "verify", "--data", there).returncode == 0


def altered(path: pathlib.Path, at: int) -> bytes:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    return bytes(content)


def test_what_is_not_whole_is_refused_by_name_and_writes_nothing(made, tmp_path):
    gateway, folder = made
    key = gateway.data / "master.key"
    whole = (folder / "plain").read_bytes()
    front = 31 + whole[30] + 24
    second = front + CHUNK
    cases = {"not a backup of countersign": [b""], "cut off": [whole[:second]], "its last part was altered, cut off or added to": [whole + b"x"],
             "altered": [altered(folder / "plain", second + 5), whole[:front] + whole[second:]]}
    path, data = tmp_path / "b", tmp_path / "data"
    for text, contents in cases.items():
        for content in contents:
            path.write_bytes(content)
            done = restore(path, data, "--master-key", key)
            assert done.returncode == 1 and f"{path}: " in done.err and text in done.err, (text, len(content), done.err)
            assert not data.exists(), text
    data.mkdir()
    path.write_bytes(whole[:second])
    assert restore(path, data, "--master-key", key).returncode == 1 and not list(data.iterdir())


def test_another_key_is_refused_by_name(made, tmp_path):
    gateway, folder = made
    other = tmp_path / "other.key"
    other.write_text(secrets.token_hex(32))
    other.chmod(0o600)
    assert run("backup", "key", tmp_path / "pair").returncode == 0
    data = tmp_path / "data"
    for options, code, text in [
        (["plain"], 1, "expected it as --master-key"),
        (["plain", "--master-key", other], 1, f"the one in {other} is"),
        (["sealed"], 1, "expected its secret key as --key"),
        (["sealed", "--key", tmp_path / "pair"], 1, f"the one of {tmp_path / 'pair'} is"),
        (["sealed", "--key", folder / "pair.pub"], 2, "expected the secret key"),
        (["sealed", "--key", folder / "pair", "--master-key", other], 1, f"the one in {other} is"),
    ]:
        done = restore(folder / options[0], data, *options[1:])
        assert done.returncode == code and text in done.err, (options, done.err)
        assert not data.exists()
    # Whoever has the public key alone can encrypt to it, and cannot make a backup of this deployment.
    rogue = Gateway(tmp_path / "rogue")
    with rogue:
        rogue.add_app()
    assert backup(rogue, tmp_path / "r", "--recipient", folder / "pair.pub").returncode == 0
    done = restore(tmp_path / "r", data, "--key", folder / "pair", "--master-key", gateway.data / "master.key")
    assert done.returncode == 1 and "its master key is" in done.err and not data.exists()


def test_what_is_there_is_not_replaced(made, tmp_path):
    gateway, folder = made
    path = tmp_path / "b"
    path.write_text("kept")
    done = backup(gateway, path)
    assert done.returncode == 2 and "--force" in done.err and path.read_text() == "kept"
    assert backup(gateway, path, "--force").returncode == 0 and path.read_bytes().startswith(b"countersign/1 backup\n")
    assert run("backup", "key", folder / "pair").returncode == 2
    done = restore(path, gateway.data, "--master-key", gateway.data / "master.key")
    assert done.returncode == 2 and "expected an empty folder" in done.err
    done = backup(gateway, tmp_path / "c", "--with-master-key")
    assert done.returncode == 2 and "--recipient" in done.err and not (tmp_path / "c").exists()
    done = backup(gateway, tmp_path / "c", "--recipient", folder / "pair")
    assert done.returncode == 2 and "secret key" in done.err
    for command in (["backup", tmp_path / "c"], ["restore", path]):
        done = run(*command, "--store", "postgres://localhost/x", "--data", tmp_path / "data")
        assert done.returncode == 2 and ("pg_dump" in done.err or "pg_restore" in done.err), done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the superuser, who mounts a small disk")
def test_a_disk_without_room_is_named_before_anything_is_copied(made, tmp_path):
    gateway, _ = made
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", disk], capture_output=True, check=False).returncode != 0:
        pytest.skip("no disk is mounted here")
    try:
        done = backup(gateway, disk / "b")
        assert done.returncode == 3 and f"{disk}: 0 MiB are free; expected 1 MiB" in done.err, done.err
        assert not list(disk.iterdir()) and not list(gateway.data.glob("backup-copy*"))
    finally:
        subprocess.run(["umount", disk], check=True)


def test_an_altered_store_is_not_backed_up(made, tmp_path):
    gateway, _ = made
    data = tmp_path / "data"
    shutil.copytree(gateway.data, data, ignore=shutil.ignore_patterns("control"))
    with sqlite3.connect(data / "countersign.db") as database:
        database.execute("UPDATE release SET version = '9.9'")
    done = run("backup", tmp_path / "b", "--data", data)
    assert done.returncode == 1 and "audit verify" in done.err, done.err
    assert not (tmp_path / "b").exists() and not list(data.glob("backup-copy*"))


def test_what_has_ended_since_ends_again(tmp_path):
    gateway = Gateway(tmp_path / "one")

    def add(name: str) -> None:
        gateway.admin("account", "add", "demo", name, "--password-stdin", stdin="correct horse battery\n")

    def state(data: pathlib.Path) -> dict[str, str]:
        listed = json.loads(run("account", "list", "demo", "--data", data, "--json").out)["accounts"]
        return {account["account"]: account["state"] for account in listed}

    gateway.admin("app", "add", "demo", "--require", "session")
    for name in ("erased", "locked", "removed", "kept"):
        add(name)
    key = gateway.add_release()
    assert backup(gateway, tmp_path / "b").returncode == 0
    add("later")
    for name in ("erased", "later"):
        gateway.admin("account", "erase", "demo", name, "--yes")
    gateway.admin("account", "lock", "demo", "locked")
    gateway.admin("account", "remove", "demo", "removed")
    gateway.admin("release", "retire", key.key_id, "--at", "now", "--update-url", "https://example.com/")
    options = ("--master-key", gateway.data / "master.key", "--json")
    assert state(gateway.data)["kept"] == "active"
    # Without it, all of that is undone.
    done = restore(tmp_path / "b", tmp_path / "bare", *options)
    assert done.returncode == 0 and json.loads(done.out)["repeated"] is None
    assert set(state(tmp_path / "bare").values()) == {"active"}
    done = restore(tmp_path / "b", tmp_path / "two", *options, "--erasures-from", gateway.data)
    assert done.returncode == 0, done.err
    assert json.loads(done.out)["repeated"] == {"erased": 1, "reserved_names": 1, "locked": 1, "removed": 1, "retired": 1,
                                                 "user_ids": 0, "verifications": 0, "webhooks": 0}
    now = state(tmp_path / "two")
    assert (now["locked"], now["removed"], now["kept"]) == ("locked", "removed", "active") and "erased" not in now
    assert b"erased" not in b"".join(path.read_bytes().replace(b"erased_name", b"").replace(b"erased-", b"")
                                     for path in (tmp_path / "two").glob("countersign.db*"))
    for name in ("erased", "later"):
        done = run("account", "add", "demo", name, "--password-stdin", "--data", tmp_path / "two", stdin="correct horse battery\n")
        assert done.returncode == 1, (name, done.out)
    assert run("release", "list", "demo", "--data", tmp_path / "two").out.count("retired") >= 1
    assert run("audit", "verify", "--data", tmp_path / "two").returncode == 0
    # A former folder on which a server runs, or that is another's, is refused, and nothing is written.
    other = Gateway(tmp_path / "other")
    other.admin("app", "add", "demo")
    for former, text in ((other.data, "audit verify"), (tmp_path / "missing", "no data folder"), (tmp_path, "no store there")):
        done = restore(tmp_path / "b", tmp_path / "three", *options, "--erasures-from", former)
        assert done.returncode != 0 and text in done.err, done.err
        assert not (tmp_path / "three").exists()
    # An older copy of the deployment does not know what ended; nor does one that was left for another store.
    assert restore(tmp_path / "b", tmp_path / "older", *options).returncode == 0
    assert backup(gateway, tmp_path / "newer").returncode == 0
    done = restore(tmp_path / "newer", tmp_path / "three", *options, "--erasures-from", tmp_path / "older")
    assert done.returncode == 1 and "does not contain the backup's head" in done.err and not (tmp_path / "three").exists()
    left = tmp_path / "left"
    shutil.copytree(gateway.data, left)
    with sqlite3.connect(left / "countersign.db") as database:
        database.execute("INSERT INTO meta (name, value) VALUES ('moved-to', ?)", (b"postgres://db.example/x 1",))
    done = restore(tmp_path / "b", tmp_path / "three", *options, "--erasures-from", left)
    assert done.returncode == 1 and "was moved to postgres://db.example/x" in done.err and not (tmp_path / "three").exists(), done.err
    with gateway:
        done = restore(tmp_path / "b", tmp_path / "three", *options, "--erasures-from", gateway.data)
        assert done.returncode == 1 and "stop it for good first" in done.err
        assert not (tmp_path / "three").exists()
