"""The meter: every request is counted once, where it belongs, and the figures outlive the server."""

import json
import pathlib
import signal
import time

import pytest

from clock import Clock
from gateway import Gateway, run
from waiting import until

INTERVAL = 2


def meter(gateway: Gateway, *options: object) -> dict:
    return json.loads(gateway.admin("meter", "demo", *options, "--json").out)


def counted(gateway: Gateway) -> dict[str, tuple[int, dict[str, int]]]:
    return {line["version"]: (line["accepted"], line["refused_by_code"]) for line in meter(gateway)["releases"]}


def refused(gateway: Gateway) -> dict[str, int]:
    return json.loads(gateway.admin("meter", "--json").out)["unknown"]


def eventually(read, expected):
    until(lambda: read() == expected, read)


def traffic(gateway: Gateway, first, second) -> dict:
    """Sends a known number of requests of each kind, and returns what the meter should then say."""
    with gateway.connect() as connection:
        def send(data: bytes) -> None:
            connection.send(data)
            connection.answer()

        for _ in range(7):
            send(first.request())
        for _ in range(3):
            send(second.request("POST", "/order", b"amount=1"))
        same = first.request()
        send(same)
        send(same)
        send(first.request(created=int(time.time()) - 900))
    # No scheme claims the first request, so it names no caller; the second names an unknown key.
    gateway.send(f"GET / HTTP/1.1\r\nHost: {first.authority}\r\n\r\n".encode())
    stranger = type(first)("r_nobody", first.secret, first.authority)
    gateway.send(stranger.request())
    return {"1.0": (8, {"replayed": 1, "stale": 1}), "2.0": (3, {})}


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_figures_are_the_requests_sent(tmp_path, end):
    gateway = Gateway(tmp_path, clock=Clock(tmp_path)).start()
    gateway.add_app("demo")
    first, second = gateway.add_release(version="1.0"), gateway.add_release(version="2.0")
    expected = traffic(gateway, first, second)
    if end == signal.SIGKILL:
        # What a kill may lose is what came in the last interval.
        gateway.clock.advance(INTERVAL)
        eventually(lambda: counted(gateway), expected)
    gateway.stop(end)
    assert counted(gateway) == expected
    assert refused(gateway) == {"unknown-key": 1, "unsigned": 1}
    with gateway:
        eventually(lambda: counted(gateway), expected)
        gateway.send(second.request())
    expected["2.0"] = (4, {})
    assert counted(gateway) == expected, "after a restart it goes on from where it was"


def test_a_kill_under_load_loses_an_interval_at_most(tmp_path, note):
    gateway = Gateway(tmp_path, "--limit-keepalive-requests", 1_000_000, clock=Clock(tmp_path)).start()
    gateway.add_app("demo")
    key, answered = gateway.add_release(), []
    with gateway.connect() as connection:
        end = gateway.time() + 3 * INTERVAL + 0.7
        while gateway.time() < end:
            connection.send(key.request())
            assert connection.answer().status == 200
            answered.append(gateway.time())
    gateway.stop(signal.SIGKILL)
    kept = counted(gateway)["1.0"][0]
    # A second for the disk, and for a machine that has other work.
    durable = sum(1 for moment in answered if moment < answered[-1] - INTERVAL - 1)
    assert 0 < durable <= kept <= len(answered)
    note(f"killed under load, the meter had kept {kept} of {len(answered)} requests")


def test_it_is_read_while_a_server_runs(tmp_path):
    with Gateway(tmp_path) as running:
        running.add_app("demo")
        first, second = running.add_release(version="1.0"), running.add_release(version="2.0")
        expected = traffic(running, first, second)
        eventually(lambda: counted(running), expected)
        seen = meter(running)["releases"][0]["last_seen"]
        assert abs(seen - time.time()) < 30
        text = running.admin("meter").out
        assert "ios" in text and "1 unknown-key, 1 unsigned" in text


def test_counting_reloads_no_keys(tmp_path):
    """The store's revision, by which a server knows that its keys are old, does not move with the figures."""
    import sqlite3

    with Gateway(tmp_path) as running:
        running.add_app("demo")
        key = running.add_release()
        database = sqlite3.connect(running.data / "countersign.db")
        before = database.execute("SELECT number FROM revision").fetchone()
        generation = (running.data / "generation").read_bytes()
        running.send(key.request())
        eventually(lambda: counted(running), {"1.0": (1, {})})
        assert database.execute("SELECT number FROM revision").fetchone() == before
        assert (running.data / "generation").read_bytes() == generation
        database.close()


def test_what_nobody_uses(tmp_path):
    gateway = Gateway(tmp_path)
    gateway.add_app("demo", schemes="message-signatures,form-md5")
    unused = {row["scheme"]: row["since"] for row in meter(gateway)["unused"]}
    assert unused == {"message-signatures": None, "form-md5": None}, "no server has run yet"
    with gateway:
        key = gateway.add_release()
        gateway.send(key.request())
    found = meter(gateway)["unused"]
    assert [(row["scheme"], row["legacy"]) for row in found] == [("form-md5", True)]
    assert abs(found[0]["since"] - time.time()) < 60
    line = next(line for line in gateway.admin("meter", "demo").out.splitlines() if "form-md5" in line)
    assert line.startswith("no request under form-md5") and time.strftime("%Y-%m-%d", time.gmtime(found[0]["since"])) in line


def test_wrong_use(tmp_path):
    gateway = Gateway(tmp_path)
    gateway.add_app("demo")
    for arguments, status, named in [
        (("meter", "absent"), 1, "absent"), (("meter", "--days", "0"), 2, "--days"), (("meter", "--days", "x"), 2, "`x`"),
        (("meter", "--days", "401"), 2, "400"),
    ]:
        done = run(*arguments, "--data", gateway.data)
        assert (done.returncode, named in done.err) == (status, True), (arguments, done.err)


def test_a_change_is_seen_after_the_meter_has_written(tmp_path):
    """The meter's thread has a connection of its own. Opening it must not cost the first one its locks: a command that
    took itself for the last user of the file would delete the journal that the server goes on reading."""
    with Gateway(tmp_path / "data", "--tls", "off") as gateway:
        gateway.add_app()
        key = gateway.add_release()
        assert gateway.send(key.request()).status == 200
        eventually(lambda: counted(gateway), {"1.0": (1, {})})
        gateway.admin("app", "policy", "demo", "--set", "schemes=form-md5")
        assert gateway.send(key.request()).status == 403
        files = [path.readlink() for path in pathlib.Path(f"/proc/{gateway.process.pid}/fd").iterdir()
                 if path.is_symlink()]
        assert any(str(path).endswith("countersign.db-wal") for path in files), files
        # Memory that processes share has no name in any folder, and says so in the same words.
        assert not [path for path in files if str(path).endswith("(deleted)") and "memfd:" not in str(path)]
