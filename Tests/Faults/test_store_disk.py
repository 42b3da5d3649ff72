"""A disk that fills up, fails or turns read-only under the store's writer (`store-driver`), or under a gateway: changes are refused
with a clear reason, none of them half made, and what was acknowledged stays. Once the disk is well, changes are taken again."""

import contextlib
import errno
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from bearer import add_app, asked, bearing, login
from gateway import Gateway, run
from store import Driver

ROOT = pathlib.Path(__file__).resolve().parents[2]


def can_mount() -> bool:
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


needs_mounts = pytest.mark.skipif(not can_mount(), reason="no right to make a mount namespace")


def noted(driver: Driver, text: str) -> list[str]:
    """What operators were told, and how often."""
    return [line for line in driver.errors if line.startswith("note ") and text in line]


@needs_mounts
def test_a_full_disk(tmp_path, note):
    data = tmp_path / "data"
    data.mkdir()
    mount = ("unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=16m none "{data}" && '
             f'head -c 8m /dev/zero >"{data}/ballast" && exec "$@"', "sh")
    driver = Driver(data / "countersign.db", prefix=mount)
    inside = ("nsenter", "-t", str(driver.process.pid), "-m")
    driver.until(lambda: driver.ledger.refusals)
    seen = pathlib.Path(f"/proc/{driver.process.pid}/root{data}")
    status = os.statvfs(seen)
    assert status.f_bavail * status.f_bsize < 64 << 10, "the disk is not full"
    assert all(line.startswith("unavailable ") and "the disk is full; nothing was changed" in line
               for line in driver.ledger.refusals), driver.ledger.refusals[:3]
    before = driver.ledger.count
    assert before > 100, "it had hardly begun"
    driver.until(lambda: noted(driver, "takes no changes: "))
    # Readers are not in the way of it, and what was acknowledged can be read.
    assert driver.ledger.missing(data / "countersign.db", *inside) == []

    (seen / "ballast").unlink()
    driver.acknowledged(500)
    assert noted(driver, "takes changes again")
    count = len(driver.ledger.refusals)
    shutil.copytree(seen, tmp_path / "after", ignore=shutil.ignore_patterns("ballast"))
    driver.kill()
    assert len(noted(driver, "takes no changes: ")) < count, "a note for each refusal would fill the log, too"
    note(f"a full disk: {before:,} changes acknowledged before, {count} refused, all there; then taken again")


@pytest.fixture(scope="module")
def failing_disk(tmp_path_factory) -> pathlib.Path:
    library = tmp_path_factory.mktemp("shim") / "failing_disk.so"
    subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, ROOT / "Tests/Support/failing_disk.c"],
                   check=True)
    return library


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS, errno.ENOSPC], ids=["EIO", "EROFS", "ENOSPC"])
def test_a_disk_that_fails(tmp_path, failing_disk, error):
    switch, database = tmp_path / "failing", tmp_path / "countersign.db"
    driver = Driver(database, environment={"LD_PRELOAD": str(failing_disk), "FAILING_DISK": str(switch)})
    for turn in range(3):
        driver.acknowledged(300)
        refused = len(driver.ledger.refusals)
        staged = tmp_path / "staged"
        staged.write_text(f"{error}")
        staged.rename(switch)
        driver.until(lambda: len(driver.ledger.refusals) >= refused + 50)
        assert driver.ledger.missing(database) == [], f"turn {turn}: read while the disk fails"
        switch.unlink()
    driver.acknowledged(300)
    refusals = list(driver.ledger.refusals)
    assert driver.end() == 0
    log = (tmp_path / "failing.log").read_text()
    assert "countersign.db" in log, "the disk did not fail"
    assert all(line.startswith("unavailable ") and str(database) in line for line in refusals), {*refusals}
    words = "the disk is full" if error == errno.ENOSPC else "the disk failed: it cannot be written to"
    assert any(words in line for line in refusals), {*refusals}
    # As the store says it of each stretch of failures, and not of each failure.
    assert 3 <= len(noted(driver, "takes no changes")) < len(refusals)
    assert driver.ledger.missing(database) == []


def ext4_tells() -> bool:
    """Whether a file system of our own can be made to fail: loop devices, ext4, and its switch for that."""
    return can_mount() and bool(shutil.which("mkfs.ext4")) and pathlib.Path("/sys/fs/ext4").is_dir() and \
        subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not ext4_tells(), reason="no loop device with ext4")
def test_a_file_system_that_turns_read_only(tmp_path, note):
    """As Linux does when it finds a file system damaged (`errors=remount-ro`), in the middle of the writes."""
    image, data = tmp_path / "image", tmp_path / "data"
    data.mkdir()
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    mount = ("unshare", "-m", "sh", "-c", f'mount -o loop,errors=remount-ro "{image}" "{data}" && exec "$@"', "sh")
    driver = Driver(data / "countersign.db", prefix=mount)
    inside = ("nsenter", "-t", str(driver.process.pid), "-m")
    driver.acknowledged(1_000)
    device = subprocess.run([*inside, "findmnt", "-no", "SOURCE", data], capture_output=True, check=True).stdout.decode()
    pathlib.Path(f"/sys/fs/ext4/{pathlib.Path(device.strip()).name}/trigger_fs_error").write_text("a test")
    driver.until(lambda: len(driver.ledger.refusals) >= 50)
    with pytest.raises(OSError) as refusal:
        pathlib.Path(f"/proc/{driver.process.pid}/root{data}/probe").write_bytes(b"x")
    assert refusal.value.errno == errno.EROFS, "it can still be written to"
    assert all(line.startswith("unavailable ") and "countersign.db" in line for line in driver.ledger.refusals)
    before = driver.ledger.count
    driver.kill()

    # What an administrator does: checks the file system, mounts it again, and starts the server.
    subprocess.run(["e2fsck", "-fy", image], capture_output=True, check=False)
    again = Driver(data / "countersign.db", prefix=mount)
    again.acknowledged(300)
    inside = ("nsenter", "-t", str(again.process.pid), "-m")
    assert driver.ledger.missing(data / "countersign.db", *inside) == []
    again.kill()
    note(f"a file system turned read-only: {before:,} changes acknowledged before, all there after it was mounted again")


@needs_mounts
def test_a_gateway_on_a_full_disk(tmp_path):
    """Logins, logouts and commands, which are changes, are refused; what is known goes on. Then all is as before."""
    gateway = Gateway(tmp_path)
    gateway.data.mkdir()
    mount = f'mount -t tmpfs -o size=64m,mode=700 none "{gateway.data}" && exec "$@"'
    gateway.start(prefix=("unshare", "-m", "sh", "-c", mount, "sh"))
    add_app(gateway, 1)
    with gateway.connect() as connection:
        tokens = [json.loads(asked(connection, login(gateway, "user-0"))[1].body)["token"] for _ in range(3)]
        assert asked(connection, bearing(gateway, tokens[0], "POST", "/logout"))[0] == "accepted"

        ballast = gateway.seen_data / "ballast"
        fill(ballast)
        for _ in range(200):
            said, answer = asked(connection, login(gateway, "user-0"))
            if said != "accepted":
                break
            fill(ballast)
        assert (said, answer.status) == ("unavailable", 503) and int(answer.get("retry-after")) > 0
        # Nothing of its own disk is told to a caller; the log has it.
        assert b"disk" not in answer.body and str(gateway.data).encode() not in answer.body
        assert "the disk is full" in gateway.event(json.loads(answer.body)["instance"])["detail"]
        assert asked(connection, bearing(gateway, tokens[1], "POST", "/logout"))[0] == "unavailable"
        assert asked(connection, bearing(gateway, tokens[1]))[0] == "accepted", "it was not logged out"
        assert asked(connection, bearing(gateway, tokens[0]))[0] == "session-ended"
        assert asked(connection, gateway.key.request("POST", "/order", b"amount=1"))[0] == "accepted"
        command = run("account", "add", "demo", "late", "--data", gateway.data, prefix=gateway.inside)
        assert command.returncode == 3 and "the disk is full; nothing was changed" in command.err, command.err

        ballast.unlink()
        assert asked(connection, login(gateway, "user-0"))[0] == "accepted"
        assert asked(connection, bearing(gateway, tokens[1], "POST", "/logout"))[0] == "accepted"
        assert asked(connection, bearing(gateway, tokens[1]))[0] == "session-ended"
        assert asked(connection, bearing(gateway, tokens[2]))[0] == "accepted"
    gateway.admin("account", "add", "demo", "late")
    gateway.admin("audit", "verify")
    notes = [event for event in gateway.events() if "the store takes" in json.dumps(event)]
    assert len(notes) == 2, notes
    assert gateway.stop() == 0


def fill(ballast: pathlib.Path) -> None:
    """Takes what room there is, to the last byte."""
    with open(ballast, "ab", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
