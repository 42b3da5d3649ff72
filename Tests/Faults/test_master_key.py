"""`countersign rotate-master-key` under a running server, killed at fifty points (twelve in CI): nothing is lost, everyone still signs in, and the
former key opens nothing afterwards."""

import base64
import collections
import hashlib
import json
import os
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import threading

import pytest

import processes
import request_log
from bearer import asked, bearing, login
from gateway import BINARY, Gateway, run
from person import Person
from waiting import until

CALLS = "openat,write,pwrite64,fsync,fdatasync,ftruncate,rename,unlink,link"
ACCOUNTS = 3
# Sealed rows enough for several transactions of the rotation.
ANSWERS = 500


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A deployment with a row of each kind that is sealed: a policy, releases with a next key, OPAQUE accounts with their sessions,
    legacy accounts, and kept answers."""
    folder = tmp_path_factory.mktemp("master-key")
    with Gateway(folder, "--limit-kept-keys", "100000") as gateway:
        gateway.add_app("demo", registration="open", password_login="on", slots="unlimited", legacy_key="the app's key")
        gateway.key = gateway.add_release()
        gateway.admin("release", "rotate", gateway.key.key_id)
        gateway.persons = [Person(gateway, folder / name, name).signs_up().logs_in() for name in ("ada", "bob", "cyd")]
        for number in range(ACCOUNTS):
            name = f"user-{number}"
            gateway.admin("account", "add", "demo", name, "--password-stdin", stdin=f"password of {name}\n")
        with gateway.connect() as connection:
            for number in range(ANSWERS):
                said, answer = asked(connection, kept(gateway, number))
                assert said == "accepted", answer
            said, answer = asked(connection, login(gateway, "user-0"))
            assert said == "accepted", answer
            gateway.token = json.loads(answer.body)["token"]
        yield gateway


def kept(gateway: Gateway, number: int) -> bytes:
    return gateway.key.request("POST", "/order", b"amount=1", fields=[("idempotency-key", f"order-{number}")])


def key(gateway: Gateway) -> str:
    return (gateway.data / "master.key").read_text()


def rotate(gateway: Gateway, *prefix: str, check: bool = True) -> subprocess.CompletedProcess:
    done = run("rotate-master-key", "--data", gateway.data, "--json", prefix=prefix, timeout=120)
    if check:
        assert done.returncode == 0, done.err
    return done


def everyone_goes_on(gateway: Gateway) -> int:
    """The sessions go on; every person and every user signs in anew; a kept answer is repeated. Returns the number of sign-ins."""
    for each in gateway.persons:
        each.calls("/notes")
        each.logs_in()
    with gateway.connect() as connection:
        said, answer = asked(connection, bearing(gateway, gateway.token))
        assert said == "accepted", answer
        for number in range(ACCOUNTS):
            said, answer = asked(connection, login(gateway, f"user-{number}"))
            assert said == "accepted", answer
        said, answer = asked(connection, kept(gateway, 7))
        assert said == "accepted", answer
        assert answer.get("countersign-replayed") == "true"
    return len(gateway.persons) + ACCOUNTS


def values(gateway: Gateway) -> list[bytes]:
    """All sealed values."""
    with sqlite3.connect(f"file:{gateway.data / 'countersign.db'}?mode=ro", uri=True) as database:
        found: list[bytes] = []
        for table, columns in {"app_setting": ["sealed"], "release": ["sealed_secret", "sealed_next_secret"],
                               "account": ["sealed_record", "sealed_legacy"], "idempotent_request": ["body"],
                               "session": ["sealed_root", "sealed_previous_root", "next_sealed_root"]}.items():
            for column in columns:
                found += [row[0] for row in database.execute(f"SELECT {column} FROM {table} WHERE length({column}) > 0")]
        names = "'answer-key','assertion-keys','opaque-keys','registration-key','bearer-key','tombstone-key','webhook-keys','master-key-check'"
        found += [row[0] for row in database.execute(f"SELECT value FROM meta WHERE name IN ({names})")]
    return found + request_log.sealed(gateway.data)


def test_all_is_sealed_under_the_new_key_and_the_former_opens_nothing(place, tmp_path):
    former, before = key(place), values(place)
    outcome = json.loads(rotate(place).out)
    assert outcome["left"] == 0 and outcome["sealed"] > ANSWERS
    assert key(place) != former and not (place.data / "master.key.next").exists()
    after = values(place)
    assert len(after) >= len(before) and {value[0] for value in before} != {value[0] for value in after}
    assert len({value[0] for value in after}) == 1 and not set(before) & set(after)
    everyone_goes_on(place)
    refused = run("app", "list", "--data", place.data, environment={"COUNTERSIGN_MASTER_KEY": former.strip()})
    assert refused.returncode == 1 and "not the one this store was sealed with" in refused.err


def test_killed_at_many_points_it_loses_nothing(place, tmp_path, is_long):
    kills = 50 if is_long else 12
    trace = tmp_path / "trace"
    rotate(place, "strace", "-f", "-o", str(trace), "-e", f"trace={CALLS}")
    calls = system_calls(trace)
    assert len(calls) > 2 * kills, len(calls)
    # Evenly, and directly after the next key was made, and before its file becomes the key's.
    names = [name for name, _ in calls]
    points = [calls[number * (len(calls) - 5) // kills] for number in range(kills - 2)]
    points += [calls[names.index("link") + 1], calls[names.index("rename")]]
    killed, starts, sign_ins, stages = 0, 0, 0, set()

    def kill(at: tuple[str, int]) -> bool:
        done = rotate(place, "strace", "-f", "-o", str(tmp_path / "killed"), "-e", f"trace={CALLS}", "-e",
                      f"inject={at[0]}:signal=SIGKILL:when={at[1]}", check=False)
        assert done.returncode in (0, -signal.SIGKILL), done.err
        stages.add(stage(place))
        return done.returncode != 0

    for number, point in enumerate(points):
        assert kill(point), (number, point)
        # The server that ran meanwhile goes on, and so does one that is killed and starts on what the rotation left.
        sign_ins += everyone_goes_on(place)
        if number % 5 == 4:
            # The one that goes on is killed, too, if it comes so far: it has less to do.
            killed += kill(random.choice(points))
        assert place.stop(signal.SIGKILL) == -signal.SIGKILL
        place.start()
        starts += 1
        sign_ins += everyone_goes_on(place)
        rotate(place)
        assert stage(place) == "done"
    killed += len(points)
    assert stages == {"done", "made", "begun", "renaming"}, stages
    print(f"measured: rotate-master-key: killed {killed} times at {len(points)} points of {len(calls)} system calls, found in stages "
          f"{', '.join(sorted(stages))}; {starts} servers killed and started there, {sign_ins} sign-ins, all accepted")
    rotate(place)
    assert not (place.data / "master.key.next").exists()
    for person in place.persons:
        person.logs_in().calls("/notes")
    with place.connect() as connection:
        for number in range(ACCOUNTS):
            said, answer = asked(connection, login(place, f"user-{number}"))
            assert said == "accepted", answer
    assert json.loads(place.admin("audit", "verify", "--json").out)["findings"] == []


def system_calls(trace: pathlib.Path) -> list[tuple[str, int]]:
    """The calls of the main thread in order: each one's name, and the how manieth of that name it is."""
    lines = trace.read_text().splitlines()
    main, counts, found = lines[0].split()[0], collections.Counter(), []
    for line in lines:
        if call := re.match(rf"{main} +(\w+)\(", line):
            counts[call[1]] += 1
            found.append((call[1], counts[call[1]]))
    return found


def stage(gateway: Gateway) -> str:
    """What a rotation has left."""
    with sqlite3.connect(f"file:{gateway.data / 'countersign.db'}?mode=ro", uri=True) as database:
        begun = database.execute("SELECT 1 FROM meta WHERE name = 'master-key-next-check'").fetchone()
        slot = database.execute("SELECT value FROM meta WHERE name = 'seal-slot'").fetchone()[0]
        check = database.execute("SELECT value FROM meta WHERE name = 'master-key-check'").fetchone()[0]
        last = database.execute("SELECT record FROM audit WHERE record LIKE '%master-key.%' ORDER BY number DESC").fetchone()[0]
    assert begun or check[:1] == slot
    if begun:
        return "begun"
    if not (gateway.data / "master.key.next").exists():
        return "done"
    # The next key is the current one already and its file has not moved, or it was only made.
    return "renaming" if json.loads(last)["details"]["key"] == identity(gateway.data / "master.key.next") else "made"


def identity(file: pathlib.Path) -> str:
    """A master key's id, as the audit log has it."""
    secret = base64.urlsafe_b64decode(file.read_text().strip() + "=")
    return hashlib.blake2b(b"countersign/1 master key id", key=secret, digest_size=32).digest()[:8].hex()


def test_under_load_nothing_is_refused(place):
    """Logins and refreshing sessions while key after key is replaced: a request may be told to try again, and then succeeds."""
    stopping, failures, counts = threading.Event(), [], {"logins": 0, "again": 0}

    def signs_in() -> None:
        with place.connect(timeout=60) as connection:
            number = 0
            while not stopping.is_set():
                number += 1
                for _ in range(3):
                    said, answer = asked(connection, login(place, f"user-{number % ACCOUNTS}"))
                    if said != "unavailable":
                        break
                    counts["again"] += 1
                counts["logins"] += 1
                if said != "accepted":
                    failures.append((said, answer))

    threads = [threading.Thread(target=signs_in) for _ in range(2)]
    for thread in threads:
        thread.start()
    rotations = 20
    for _ in range(rotations):
        rotate(place)
    stopping.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]
    assert rotations >= 3 and counts["logins"] > 10, (rotations, counts)
    print(f"measured: rotate-master-key: {rotations} rotations under {counts['logins']} logins, {counts['again']} told to try again")


def test_a_second_rotation_does_not_run_beside_the_first(place):
    stopped = processes.start(["strace", "-f", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=1000000",
                                BINARY, "rotate-master-key", "--data", str(place.data)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    until(lambda: (place.data / "master.key.next").exists())
    second = rotate(place, check=False)
    assert second.returncode == 1 and "being replaced by another process" in second.err, second.err
    assert stopped.wait(60) == 0


def test_a_key_from_the_environment_is_replaced_there_by_its_operator(tmp_path):
    first = os.urandom(32).hex()
    with Gateway(tmp_path / "place", environment={"COUNTERSIGN_MASTER_KEY": first}) as gateway:
        gateway.add_app("demo", registration="open")
        person = Person(gateway, tmp_path / "ada", "ada").signs_up().logs_in()
        outcome = json.loads(gateway.admin("rotate-master-key", "--json").out)
        moved = pathlib.Path(outcome["key_to_move"])
        assert moved == gateway.data / "master.key.next" and not (gateway.data / "master.key").exists()
        # The running server, and a command with the former key, go on by that file.
        person.logs_in().calls("/notes")
        assert gateway.admin("account", "list", "demo").out
        again = json.loads(gateway.admin("rotate-master-key", "--json").out)
        assert again["key_to_move"] == str(moved) and again["former_key"] is None
        gateway.stop()
        gateway.environment = {"COUNTERSIGN_MASTER_KEY": moved.read_text().strip()}
        gateway.start()
        person.logs_in()
        assert json.loads(gateway.admin("rotate-master-key", "--json").out)["key_to_move"] is None and not moved.exists()
        gateway.stop()
        gateway.start()
        person.logs_in().calls("/notes")
