"""Power loss and `kill -9` at the level of the store and its writer (`test-peers store`): whatever was acknowledged, a
revocation above all, is there afterwards. Power loss is a replay of a traced run's writes without all that no fsync had
covered."""

import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys

import pytest

import disk
import needs
from store import Driver, Ledger

needs_strace = needs.programs("strace")


def chosen(kinds: list[str], kind: str, count: int) -> set[int]:
    """Which events of that kind the power fails after, at random, the same for the same run; none before anything can
    have been acknowledged."""
    return {*random.Random(1).sample([index for index, found in enumerate(kinds) if found == kind][100:], count)}


@pytest.fixture(scope="module")
def run(tmp_path_factory, is_long):
    """The trace of a run, and where its database was."""
    folder = tmp_path_factory.mktemp("traced")
    data, trace = folder / "data", folder / "trace"
    data.mkdir()
    driver = Driver(data / "countersign.db", callers=16, prefix=tuple(disk.traced(trace, [])))
    least = 4_000 if is_long else 1_500
    driver.acknowledged(least)
    # strace passes on what ends it; the program that it runs is ended by the end of its input.
    assert driver.end() == 0
    assert driver.ledger.count >= least
    assert {*driver.ledger.refusals} <= {"unavailable the server is stopping", "unavailable the caller left"}
    return data, trace


def losing(run, tmp_path: pathlib.Path, count: int, *, torn: bool = False, forgetting: bool = False) -> tuple[int, int, int]:
    """Lets the power fail at twice `count` chosen moments of the run; how often it did, the bytes that it took, and how many
    acknowledged changes were missing afterwards."""
    data, trace = run
    ledger, tears, kinds = Ledger(), random.Random(2), [event.kind for event in disk.events(trace)]
    # Right behind an acknowledgement, where there is the most to miss, and in the middle of a transaction.
    points = chosen(kinds, "output", count) | chosen(kinds, "write", count)
    crashes = lost = missing = 0
    for index, (_, now) in enumerate(disk.losses(trace, data, ledger.see, keeps_last_sync=not forgetting)):
        if index not in points:
            continue
        target = tmp_path / f"after-{index}"
        now.rebuild(target, tears if torn else None)
        crashes, lost = crashes + 1, lost + now.at_risk
        missing += len(ledger.missing(target / "countersign.db"))
        shutil.rmtree(target)
    return crashes, lost, missing


@needs_strace
@pytest.mark.parametrize("torn", [False, True], ids=["nothing unsynced arrives", "some sectors of it arrive"])
def test_acknowledged_changes_survive_power_loss(run, tmp_path, note, is_long, torn):
    count = 30 if is_long else 10
    crashes, lost, missing = losing(run, tmp_path, count, torn=torn)
    assert crashes == 2 * count and lost > 0, "the power failed while nothing was on its way"
    assert missing == 0
    note(f"power loss, {'torn' if torn else 'clean'}: {crashes} times, {lost:,} bytes lost, no acknowledged change")


@needs_strace
def test_a_lost_fsync_is_noticed(run, tmp_path):
    """The test above can fail: with the last fsync of the journal undone, what it covered is missed."""
    crashes, _, missing = losing(run, tmp_path, 10, forgetting=True)
    assert crashes == 20 and missing > 0


WRITER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode = WAL")
database.execute(f"PRAGMA synchronous = {sys.argv[2]}")
database.execute("CREATE TABLE done (number INTEGER PRIMARY KEY) STRICT")
for number in range(100):
    database.execute("INSERT INTO done VALUES (?)", (number,))
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


@needs_strace
@pytest.mark.parametrize("synchronous,survives", [("FULL", True), ("NORMAL", False)])
def test_synchronous_normal_would_lose_them(tmp_path, synchronous, survives):
    """Why the store is set to `synchronous=FULL`: the same replay of SQLite's own writes, with either setting."""
    data, trace = tmp_path / "data", tmp_path / "trace"
    data.mkdir()
    command = disk.traced(trace, [sys.executable, "-c", WRITER, str(data / "done.db"), synchronous])
    subprocess.run(command, check=True, capture_output=True)
    acknowledged, lost = [], 0
    for event, now in disk.losses(trace, data, lambda line: acknowledged.append(int(line))):
        if event.kind != "output" or int(event.data) not in {10, 50, 99}:
            continue
        target = tmp_path / f"after-{int(event.data)}"
        now.rebuild(target)
        try:
            found = {row[0] for row in sqlite3.connect(target / "done.db").execute("SELECT number FROM done")}
        except sqlite3.OperationalError:  # Not even the table is there.
            found = set()
        lost += len(set(acknowledged) - found)
    assert len(acknowledged) == 100
    assert (lost == 0) == survives, f"{lost} lost"


def test_kills_lose_nothing(tmp_path, is_long, note):
    """`kill -9` at random moments; one database through all of them, so that recovery is tested as often."""
    kills, ledger, moments = 100 if is_long else 10, Ledger(), random.Random(3)
    database = tmp_path / "countersign.db"
    for round_ in range(kills):
        driver = Driver(database)
        driver.acknowledged(moments.randint(50, 1_500))
        driver.kill()
        assert not driver.ledger.refusals, driver.ledger.refusals[:3]
        for name in ("accounts", "sessions", "renewed", "revoked"):
            getattr(ledger, name).update(getattr(driver.ledger, name))
        assert ledger.missing(database) == [], f"kill {round_}"
    check = sqlite3.connect(database)
    assert check.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert check.execute("PRAGMA foreign_key_check").fetchall() == []
    note(f"{kills} kills by SIGKILL under writes: {ledger.count:,} changes acknowledged, none lost")
