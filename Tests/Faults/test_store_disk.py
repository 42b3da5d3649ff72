"""A disk that fills up, fails or turns read-only under the store's writer (`test-peers store`; a gateway: test_gateway_disk.py): changes are refused
with a clear reason, none of them half made, and what was acknowledged stays. Once the disk is well, changes are taken again."""

import errno
import os
import pathlib
import shutil

import pytest

from failing import Ext4, FailingDisk, needs_ext4, needs_mounts
from store import Driver


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


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS, errno.ENOSPC], ids=["EIO", "EROFS", "ENOSPC"])
def test_a_disk_that_fails(tmp_path, error):
    disk, database = FailingDisk(tmp_path), tmp_path / "countersign.db"
    driver = Driver(database, environment=disk.environment)
    for turn in range(3):
        driver.acknowledged(300)
        refused = len(driver.ledger.refusals)
        disk.fails(error)
        driver.until(lambda: len(driver.ledger.refusals) >= refused + 50)
        assert driver.ledger.missing(database) == [], f"turn {turn}: read while the disk fails"
        disk.is_well()
    driver.acknowledged(300)
    refusals = list(driver.ledger.refusals)
    assert driver.end() == 0
    assert any("countersign.db" in line for line in disk.failures), "the disk did not fail"
    assert all(line.startswith("unavailable ") and str(database) in line for line in refusals), {*refusals}
    words = "the disk is full" if error == errno.ENOSPC else "the disk failed: it cannot be written to"
    assert any(words in line for line in refusals), {*refusals}
    # As the store says it of each stretch of failures, and not of each failure.
    assert 3 <= len(noted(driver, "takes no changes")) < len(refusals)
    assert driver.ledger.missing(database) == []


@needs_ext4
def test_a_file_system_that_turns_read_only(tmp_path, note):
    """As Linux does when it finds a file system damaged (`errors=remount-ro`), in the middle of the writes."""
    data = tmp_path / "data"
    ext4 = Ext4(tmp_path / "image", data)
    driver = Driver(data / "countersign.db", prefix=ext4.prefix)
    driver.acknowledged(1_000)
    ext4.breaks("nsenter", "-t", str(driver.process.pid), "-m")
    driver.until(lambda: len(driver.ledger.refusals) >= 50)
    with pytest.raises(OSError) as refusal:
        pathlib.Path(f"/proc/{driver.process.pid}/root{data}/probe").write_bytes(b"x")
    assert refusal.value.errno == errno.EROFS, "it can still be written to"
    assert all(line.startswith("unavailable ") and "countersign.db" in line for line in driver.ledger.refusals)
    before = driver.ledger.count
    driver.kill()

    ext4.is_mended()
    again = Driver(data / "countersign.db", prefix=ext4.prefix)
    again.acknowledged(300)
    inside = ("nsenter", "-t", str(again.process.pid), "-m")
    assert driver.ledger.missing(data / "countersign.db", *inside) == []
    again.kill()
    note(f"a file system turned read-only: {before:,} changes acknowledged before, all there after it was mounted again")
