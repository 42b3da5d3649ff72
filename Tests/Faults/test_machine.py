"""A machine that fails: each fault has one clear message and exit code, and nothing is changed or half-written."""

import hashlib
import json
import os
import socket
import sqlite3
import subprocess

import pytest

from failing import needs_mounts
from gateway import Gateway, run


def fingerprint(folder) -> dict[str, str]:
    """Every file with a digest of its content; of the database what it says, for SQLite may tidy its own files."""
    found = {}
    for path in folder.rglob("*"):
        if path.suffix == ".db":
            with sqlite3.connect(path) as database:
                found[path.name] = "\n".join(database.iterdump())
        elif path.is_file() and not path.name.endswith(("-shm", "-wal")):
            found[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(found) >= 4
    return found


def refuses_to_start(gateway: Gateway, *named: str, options: tuple = (), environment=None, codes=(1, 3)) -> str:
    """`serve` ends by itself with one of these codes, and its message names each thing."""
    done = subprocess.run(gateway.command(*options), capture_output=True, text=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    assert done.returncode in codes, (done.returncode, done.stderr)
    assert "listening on" not in done.stdout
    assert 0 < len(done.stderr.strip().splitlines()) <= 3, done.stderr
    for name in named:
        assert name in done.stderr, (name, done.stderr)
    assert "Fatal" not in done.stderr and "Crash" not in done.stderr
    return done.stderr


@pytest.fixture
def used(tmp_path):
    """A data folder that has been served once, with an app and a release, and is at rest now."""
    gateway = Gateway(tmp_path)
    with gateway:
        gateway.add_app("demo")
        gateway.key = gateway.add_release()
        assert gateway.send(gateway.key.request()).status == 200
    yield gateway
    if gateway.process and gateway.process.poll() is None:
        gateway.stop()


def still_serves(gateway: Gateway) -> None:
    with gateway:
        assert gateway.send(gateway.key.request()).status == 200


def test_a_wrong_master_key(used):
    before = fingerprint(used.data)
    refuses_to_start(used, "master key", environment={"COUNTERSIGN_MASTER_KEY": "A" * 43})
    assert fingerprint(used.data) == before
    still_serves(used)


def test_a_malformed_master_key(used):
    refuses_to_start(used, "COUNTERSIGN_MASTER_KEY", environment={"COUNTERSIGN_MASTER_KEY": "!" * 43}, codes=(1, 2))


def test_a_master_key_that_others_can_read(used):
    key, = [path for path in used.data.iterdir() if "master" in path.name]
    key.chmod(0o644)
    refuses_to_start(used, key.name)
    key.chmod(0o600)
    still_serves(used)


def test_a_port_in_use(used):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refuses_to_start(used, str(port), options=("--listen", f"127.0.0.1:{port}"))


def test_a_port_in_use_by_another_of_ours(used, tmp_path):
    """Workers share a port; two servers must not."""
    with used:
        (tmp_path / "other").mkdir()
        other = Gateway(tmp_path / "other")
        refuses_to_start(other, str(used.port), options=("--listen", f"127.0.0.1:{used.port}"))


def test_two_servers_on_one_data_folder(used):
    with used:
        done = Gateway(used.folder)
        refuses_to_start(done, "data")
        assert used.send(used.key.request()).status == 200


def test_an_admin_port_in_use(used):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refuses_to_start(used, str(port), options=("--admin", f"127.0.0.1:{port}"))


def test_a_corrupt_database(used):
    database = used.data / "countersign.db"
    # All of it into the one file: a log beside it would mend the damage.
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    content = database.read_bytes()
    database.write_bytes(b"this is not a database, not at all" + content[34:])
    refuses_to_start(used, "countersign.db")
    assert database.read_bytes()[:34] == b"this is not a database, not at all"
    done = run("app", "list", "--data", used.data)
    assert done.returncode in (1, 3) and "countersign.db" in done.err
    database.write_bytes(content)
    still_serves(used)


def test_a_damaged_replay_file(used):
    """Whatever happened to it, it may not open the gate to what was accepted."""
    request = used.key.request()
    with used:
        assert used.send(request).status == 200
    files = [path for path in used.data.iterdir() if path.is_file() and "replay" in path.name]
    assert files
    for path in files:
        path.write_bytes(b"\0" * 100)
    try:
        used.start()
    except AssertionError:
        assert any(path.name in used.log_path.read_text() for path in files)
        return
    assert json.loads(used.send(request).body)["code"] in {"replayed", "stale", "unavailable"}


def test_a_data_folder_that_is_a_file(tmp_path):
    gateway = Gateway(tmp_path)
    gateway.data.write_text("a file")
    refuses_to_start(gateway, str(gateway.data))


def mount(kind: str, *options: str) -> tuple[str, ...]:
    """Runs a command in a mount namespace of its own, after mounting; the mount goes with it."""
    return ("unshare", "-m", "sh", "-c", f'{kind} && exec "$@"', *options)


@needs_mounts
def test_a_read_only_data_folder(used):
    before = fingerprint(used.data)
    command = mount('mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"', str(used.data))
    done = subprocess.run([*command, *used.command()], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (1, 3), done.stderr
    assert "data" in done.stderr and "ead-only" in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3
    assert fingerprint(used.data) == before
    still_serves(used)


@needs_mounts
def test_a_full_disk(tmp_path):
    """A file system of 8 MiB is filled while it serves: no crash, no acceptance that could be replayed, and recovery."""
    gateway = Gateway(tmp_path)
    gateway.data.mkdir(mode=0o700)
    gateway.start(prefix=mount('mount -t tmpfs -o size=8m,mode=0700 tmpfs "$0"', str(gateway.data)))
    try:
        gateway.add_app("demo")
        key = gateway.add_release()
        assert gateway.send(key.request()).status == 200
        filler = gateway.seen_data / "filler"
        with open(filler, "wb", buffering=0) as file:
            with pytest.raises(OSError, match="No space"):
                while True:
                    file.write(b"\0" * 4096)
        done = run("app", "add", "other", "--data", gateway.data, prefix=gateway.inside)
        assert done.returncode in (1, 3), done.out
        assert "full" in done.err or "No space" in done.err, done.err
        for _ in range(50):
            request = key.request()
            first, second = gateway.send(request), gateway.send(request)
            assert first.status in (200, 503)
            assert second.status in (401, 503)
        filler.unlink()
        gateway.add_app("other")
        assert gateway.send(key.request()).status == 200
    finally:
        assert gateway.stop() == 0


@pytest.mark.parametrize("options, named", [(("--nonsense", "1"), "--nonsense"), (("--workers", "0"), "--workers")])
def test_wrong_options_are_exit_2(tmp_path, options, named):
    refuses_to_start(Gateway(tmp_path), named, options=options, codes=(1, 2))


def test_a_wrong_settings_file(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text('{"listen": 7}')
    refuses_to_start(Gateway(tmp_path), "listen", options=("--config", path), codes=(1, 2))


KEY = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA"


def test_a_master_key_from_the_environment(tmp_path):
    """No file is made then, and without it the data folder stays shut."""
    gateway = Gateway(tmp_path, environment={"COUNTERSIGN_MASTER_KEY": KEY})
    with gateway:
        gateway.add_app("demo")
        gateway.key = gateway.add_release()
        assert gateway.send(gateway.key.request()).status == 200
    assert not [path for path in gateway.data.iterdir() if "master" in path.name]
    refuses_to_start(gateway, "master key")
    still_serves(gateway)


def test_a_master_key_from_a_systemd_credential(tmp_path):
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials/countersign-master-key").write_text(KEY)
    (tmp_path / "credentials/countersign-master-key").chmod(0o400)
    gateway = Gateway(tmp_path, environment={"CREDENTIALS_DIRECTORY": str(tmp_path / "credentials")})
    with gateway:
        gateway.add_app("demo")
        gateway.key = gateway.add_release()
        assert gateway.send(gateway.key.request()).status == 200
    assert not [path for path in gateway.data.iterdir() if "master" in path.name]
