"""A login that falls back to sending the password: an observer cannot tell which accounts are on the login
ladder.

Proves, with the real client, gateway and TLS: for an account on the ladder, one of OPAQUE's and a name without account a wrong password
costs the same requests, of the same sizes, with the same answers; a right one takes the account off the ladder, once; and a device that
has signed an account in by OPAQUE sends no password of it.
"""

import json
import pathlib
import socket
import threading

import pytest

from gateway import Gateway
from l5_client import kept
from person import Person
from ports import reserve_port

SALT, KEY, PASSWORD = "gdyb21LQTcIANtvYMT7QVQ==", "qianqian", "p@ss%word!"
FALLBACK = ("--password-fallback",)


class Recorder:
    """Passes bytes on between a client and a server, and notes how many went which way, in runs of one direction."""

    def __init__(self, port: int, upstream: int):
        self.upstream, self.lock, self.runs = upstream, threading.Lock(), []
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.upstream))
            with self.lock:
                self.runs.append(["connection", 0])
            for way, source, sink in (("sent", client, server), ("answered", server, client)):
                threading.Thread(target=self.pass_on, args=(way, source, sink), daemon=True).start()

    def pass_on(self, way: str, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                with self.lock:
                    if self.runs[-1][0] != way:
                        self.runs.append([way, 0])
                    self.runs[-1][1] += len(data)
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def take(self) -> list[tuple[str, int]]:
        with self.lock:
            taken, self.runs = [tuple(run) for run in self.runs], []
        return taken


@pytest.fixture
def moving(tmp_path):
    port = reserve_port()
    with Gateway(tmp_path / "gateway", "--workers", 1, "--login-address", "1000/1s", "--authority", f"127.0.0.1:{port}") as running, \
            Recorder(port, running.port) as recorder:
        running.recorder, running.outside = recorder, f"https://127.0.0.1:{port}"
        running.add_app("shop", registration="open", legacy_login="on", legacy_upgrade="on", legacy_key=KEY,
                        password_login="on", slots="unlimited")
        running.admin("account", "import", "shop", "-", stdin=json.dumps(
            {"name": "laura", "user_id": 4, "rung": "md5", "value": kept("md5", PASSWORD, SALT, KEY)}))
        yield running


def device(moving: Gateway, folder: pathlib.Path, account: str) -> Person:
    """A device without a previous login, of the same app version as all others."""
    if not hasattr(moving, "release"):
        moving.release = json.loads(moving.admin(
            "release", "add", "shop", "--platform", "ios", "--version", "2.0", "--json").out)
    return Person(moving, folder, account, url=moving.outside, release=moving.release)


def asked(moving: Gateway) -> list[tuple[str, str]]:
    """Which of the login's routes were called, and what the gateway said, in its own log."""
    # The only worker logs a request that comes later on a later line.
    last = moving.send(f"GET /last HTTP/1.1\r\nHost: 127.0.0.1:{moving.port}\r\n\r\n".encode())
    moving.event(json.loads(last.body)["instance"])
    events = moving.events()
    routes = ("/login/start", "/login/finish", "/login/password", "/logout")
    return [(event["path"].removeprefix("/countersign/v1"), event["code"]) for event in events
            if event.get("path", "").endswith(routes)]


def attempt(moving: Gateway, person: Person, password: str, *options: str):
    """The result, and what the gateway and an observer on the path have seen."""
    before = len(asked(moving))
    moving.recorder.take()
    done = person.run("login", "--account", person.name, "--password-stdin", *options, stdin=password + "\n")
    return done, asked(moving)[before:], moving.recorder.take()


def test_a_wrong_password_looks_the_same_for_every_account(moving, tmp_path):
    device(moving, tmp_path / "home", "oskar").signs_up(PASSWORD)
    seen = {}
    for name in ("laura", "oskar", "nadja"):
        done, log, wire = attempt(moving, device(moving, tmp_path / name, name), "another word", *FALLBACK)
        assert done.returncode == 1, done.err
        seen[name] = (done.err.replace(name, "NAME").replace(str(tmp_path / name), "FOLDER"), log, wire)
    assert [route for route, _ in seen["laura"][1]] == ["/login/start", "/login/password"]
    for name in ("oskar", "nadja"):
        assert seen[name][:2] == seen["laura"][:2]
    # As many connections and bytes each way, but for the lengths of ECDSA signatures in TLS and a close_notify that came too late.
    for name in ("oskar", "nadja"):
        for way, slack in (("connection", 0), ("sent", 32), ("answered", 32)):
            mine, other = (sum(part[1] if way != "connection" else 1 for part in seen[one][2] if part[0] == way)
                           for one in (name, "laura"))
            assert mine > 0 and abs(mine - other) <= slack, (way, seen[name][2], seen["laura"][2])


def test_a_right_one_leaves_the_ladder_and_signs_in_by_opaque(moving, tmp_path):
    laura = device(moving, tmp_path / "phone", "laura")
    done, log, _ = attempt(moving, laura, PASSWORD, *FALLBACK)
    assert done.returncode == 0, done.err
    assert [route for route, _ in log] == ["/login/start", "/login/password", "/logout", "/login/start", "/login/finish"]
    assert laura.status()["kind"] == "device"
    assert laura.calls("/hello")["headers"]["countersign-account"] == "id:4", "the backend's number stays"
    sessions = json.loads(moving.admin("session", "list", "shop", "laura", "--json").out)
    assert len(sessions["sessions"]) == 1, "the one by password is over"
    assert moving.admin("audit", "list", "--json").out.count("account.upgrade") == 1
    # From now on by OPAQUE, on every device.
    done, log, _ = attempt(moving, device(moving, tmp_path / "tablet", "laura"), PASSWORD)
    assert done.returncode == 0 and [route for route, _ in log] == ["/login/start", "/login/finish"]


def test_a_wrong_password_is_two_of_the_account_s_attempts(moving, tmp_path):
    """Ten at once by default: five wrong passwords, where a login without the option has ten. Documented in decision 0049."""
    phone = device(moving, tmp_path / "phone", "laura")
    for _ in range(5):
        done, log, _ = attempt(moving, phone, "another word", *FALLBACK)
        assert done.returncode == 1 and [code for _, code in log] == ["ok", "wrong-credentials"], (log, done.err)
    # Beyond them the client does the work that the refusal offers, for each of the two (decision 0055).
    done, log, _ = attempt(moving, phone, PASSWORD, *FALLBACK)
    assert done.returncode == 0, done.err
    assert [code for _, code in log[:2]] == ["too-many-attempts", "ok"], log


