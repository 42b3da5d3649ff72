"""Several processes on one vault, processes that die in the middle, and a disk that is full: no
acknowledged change is lost, none is partial, and no process waits for one that died."""

import subprocess

import needs
from failing import needs_mounts
from kills import killed_at
from vaults import BARE, DRIVER, ask, start
from waiting import until

PASSPHRASE = {"VAULT_PASSPHRASE": "correct horse"}
ITEM = ("service", "account")


def vault(folder, *words) -> str:
    return ask("passphrase", folder, *words, **PASSPHRASE)


def begin(folder, *words, prefix=()) -> subprocess.Popen:
    return start("passphrase", folder, *words, prefix=prefix, **PASSPHRASE)


def test_two_processes_lose_no_update(tmp_path):
    counters = [begin(tmp_path, "count", *ITEM, "150") for _ in range(2)]
    said = [counter.communicate(timeout=60)[0].split() for counter in counters]
    assert [words[0] for words in said] == ["beaten", "beaten"]
    assert sum(int(words[1]) for words in said) > 0, "they never met; nothing was shown"
    assert vault(tmp_path, "read", *ITEM) == "value 300"


@needs.programs("strace")
def test_a_killed_writer_leaves_the_old_value_or_the_new(tmp_path):
    for call, numbers in (("flock", (3, 4, 13)), ("fsync", (3, 4, 5, 6, 20)), ("rename", (2, 3, 9)), ("write", (5, 6, 7, 8))):
        for number in numbers:
            with begin(tmp_path, "load", *ITEM, prefix=killed_at(call, number)) as writer:
                acknowledged = [int(line) for line in writer.stdout.read().split()]
            assert acknowledged, (call, number)
            found = int(vault(tmp_path, "read", *ITEM).removeprefix("value "))
            assert found in (acknowledged[-1], acknowledged[-1] + 1), (call, number)
            # What the killed left beside it is one draft at most.
            assert len(list(tmp_path.iterdir())) <= 3, list(tmp_path.iterdir())


@needs.programs("strace")
def test_a_lease_is_had_by_one_and_given_back_by_the_dead(tmp_path):
    holder = begin(tmp_path, "lease", "1000")
    assert holder.stdout.readline() == "leased\n"
    assert vault(tmp_path, "lease", "200").startswith("failed: ")
    # The lease does not prevent others from writing; and a stopped process keeps its lease.
    assert vault(tmp_path, "write", *ITEM, "meanwhile") == ""
    trace = tmp_path / "trace"
    waiting = begin(tmp_path, "lease", "100000", prefix=("strace", "-f", "-e", "trace=flock", "-o", str(trace)))
    until(lambda: trace.exists() and trace.read_text().count("EAGAIN") > 2, "it waits for the lease")
    assert waiting.poll() is None
    holder.kill()
    assert waiting.stdout.readline() == "leased\n"
    for process in (waiting, holder):
        process.communicate(timeout=60)
    assert waiting.returncode == 0


@needs_mounts
def test_a_full_disk_changes_nothing(tmp_path):
    script = """folder=$1 old=$2 driver=$3 peer=$4
run() { word=$1; shift; "$driver" "$peer" passphrase "$folder" "$word" service account "$@"; echo "[$?]"; }
mount -t tmpfs -o size=64k none "$folder"
run write "$old"
head -c 1m /dev/zero >"$folder/ballast" 2>"$folder/../full"
run write new
run read
run remove
run read
rm "$folder/ballast"
run write new
run read
"""
    folder = tmp_path / "disk"
    folder.mkdir()
    result = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", str(folder), "o" * 9000, *DRIVER],
                            env=BARE | PASSPHRASE, capture_output=True, text=True, timeout=60)
    assert "No space left" in (tmp_path / "full").read_text(), "the disk is not full"
    old = f"value {'o' * 9000}"
    lines = result.stdout.splitlines()
    assert lines[0] == "[0]"
    assert lines[1].startswith("failed: ") and "No space left" in lines[1] and lines[2] == "[1]"
    assert lines[3:5] == [old, "[0]"]
    assert lines[5].startswith("failed: ") and lines[6] == "[1]"
    assert lines[7:9] == [old, "[0]"]
    assert lines[9:] == ["[0]", "value new", "[0]"]
