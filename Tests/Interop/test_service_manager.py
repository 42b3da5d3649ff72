"""What a service manager such as systemd sees of the server, and the sockets that it opens for it."""

import contextlib
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

import pytest

import processes
from gateway import Gateway, run
from needs import programs
from ports import reserve_port
from products import BINARY
from signing import ReleaseKey
from waiting import until


class Manager:
    """The datagrams that a server sends, each as a dictionary."""

    def __init__(self, folder: pathlib.Path, *, is_abstract: bool = False):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.name = f"@countersign-test-{os.getpid()}-{time.monotonic_ns()}" if is_abstract else str(folder / "notify")
        self.sock.bind(self.name.replace("@", "\0", 1) if is_abstract else self.name)

    def __enter__(self) -> "Manager":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    @property
    def environment(self) -> dict[str, str]:
        return {"NOTIFY_SOCKET": self.name}

    def heard(self, seconds: float = 15) -> dict[str, str]:
        """The next one; empty if there is none in time."""
        self.sock.settimeout(seconds)
        try:
            text = self.sock.recv(4096).decode()
        except TimeoutError:
            return {}
        return dict(line.split("=", 1) for line in text.split("\n"))


@pytest.mark.parametrize("is_abstract", [False, True])
def test_ready_and_stopping(tmp_path, is_abstract):
    with Manager(tmp_path, is_abstract=is_abstract) as manager:
        gateway = Gateway(tmp_path / "gateway", environment=manager.environment)
        with gateway:
            assert manager.heard() == {"READY": "1", "MAINPID": str(gateway.process.pid), "STATUS": f"serving at {gateway.url}"}
            # It is not watched, so it says nothing more.
            assert manager.heard(1.5) == {}
        assert manager.heard() == {"STOPPING": "1", "STATUS": "the last requests end"}


def test_a_manager_that_is_gone_is_no_reason_to_end(tmp_path):
    for name in (str(tmp_path / "nobody"), "@" + "x" * 300, "relative/" + "x" * 200):
        with Gateway(tmp_path / "gateway", environment={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "3000000"}) as gateway:
            assert gateway.process.poll() is None


def test_a_successor_is_followed(tmp_path):
    with Manager(tmp_path) as manager:
        with Gateway(tmp_path / "gateway", "--deadline-drain", 6, environment=manager.environment) as gateway:
            manager.heard()
            successor = json.loads(gateway.admin("restart", "--json").out)["process"]
            try:
                heard = manager.heard()
                assert (heard["READY"], heard["MAINPID"]) == ("1", str(successor)) and successor != gateway.process.pid
                # The former process ends without a word.
                assert gateway.process.wait(60) == 0
                assert manager.heard(1) == {}
            finally:
                os.kill(successor, signal.SIGTERM)
            assert manager.heard()["STOPPING"] == "1"


class StoppedThread:
    """One thread of another process, which the kernel does not run. Source: ptrace(2), PTRACE_SEIZE and PTRACE_INTERRUPT."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17

    def __init__(self, process: int, name: str):
        tasks = pathlib.Path(f"/proc/{process}/task").iterdir()
        self.task = next(int(task.name) for task in tasks if (task / "comm").read_text().strip() == name)
        self.state = pathlib.Path(f"/proc/{process}/task/{self.task}/stat")
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long] * 4
        self.libc.ptrace.restype = ctypes.c_long

    def call(self, request: int) -> None:
        if self.libc.ptrace(request, self.task, 0, 0) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def __enter__(self) -> "StoppedThread":
        try:
            self.call(self.SEIZE)
        except OSError as error:
            pytest.skip(f"this machine does not let a test stop a thread: {error}")
        self.call(self.INTERRUPT)
        until(lambda: self.state.read_text().rsplit(")", 1)[1].split()[0] == "t")
        return self

    def __exit__(self, *_: object) -> None:
        # A stop that has not been waited for cannot be left.
        os.waitpid(self.task, 0x40000000)
        self.call(self.DETACH)


def test_a_loop_that_hangs_is_not_called_alive(tmp_path):
    with Manager(tmp_path) as manager:
        environment = manager.environment | {"WATCHDOG_USEC": "3000000"}
        with Gateway(tmp_path / "gateway", "--tls", "off", environment=environment) as gateway:
            manager.heard()
            assert [manager.heard(5) for _ in range(3)] == [{"WATCHDOG": "1"}] * 3
            with StoppedThread(gateway.process.pid, "worker-1"):
                # One that was under way, and one whose question was answered before.
                silent = [manager.heard(1.4) for _ in range(5)]
                assert silent[-1] == silent[-2] == {}, silent
            assert {"WATCHDOG": "1"} in [manager.heard(5) for _ in range(2)]


# Sockets that the manager opens

activates = programs("systemd-socket-activate")


@contextlib.contextmanager
def activated(folder: pathlib.Path, *options: object, listen: str, admin: str | None = None):
    """A server that `systemd-socket-activate` starts at the first connection."""
    sockets = ["-l", listen] + (["-l", admin, "--fdname=clients:admin"] if admin else [])
    with (folder / "log").open("ab") as log:
        process = processes.start(
            ["systemd-socket-activate", *sockets, BINARY, "serve", "--data", folder / "data", "--listen", listen, "--tls", "off",
             "--admin", admin or "off", *map(str, options)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)


def connected(port: int) -> socket.socket:
    def connection() -> socket.socket | None:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port), 60)

    return until(connection, "systemd-socket-activate does not listen")


def answered(port: int, request: bytes) -> bytes:
    with connected(port) as sock:
        sock.sendall(request)
        return sock.recv(65536).split(b"\r\n", 1)[0]


@activates
@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_connection_starts_it(tmp_path, workers):
    data, port, admin = tmp_path / "data", reserve_port(), reserve_port()
    run("app", "add", "demo", "--require", "signed", "--data", data)
    made = run("release", "add", "demo", "--platform", "ios", "--version", "1.0", "--json", "--data", data)
    assert made.returncode == 0, made.err
    found = json.loads(made.out)
    key = ReleaseKey(found["key_id"], found["secret"], f"127.0.0.1:{port}")
    with activated(tmp_path, "--workers", workers, listen=f"127.0.0.1:{port}", admin=f"127.0.0.1:{admin}") as process:
        # Nothing runs on the folder before; the first of these starts the server, and each is answered.
        assert not (data / "control").exists()
        answers: list[bytes] = []
        threads = [threading.Thread(target=lambda: answers.append(answered(port, key.request()))) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(40)
        assert answers == [b"HTTP/1.1 200 OK"] * 40
        assert answered(admin, b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") == b"HTTP/1.1 200 OK"
        # A successor takes them over like any others.
        done = run("restart", "--json", "--data", data)
        assert done.returncode == 0, done.err
        successor = json.loads(done.out)["process"]
        try:
            process.wait(60)
            assert [answered(port, key.request()) for _ in range(20)] == [b"HTTP/1.1 200 OK"] * 20
        finally:
            os.kill(successor, signal.SIGTERM)


@activates
@pytest.mark.parametrize("at, options, expected", [
    ("listen", ("--listen", "127.0.0.1:1"), "does not listen at 127.0.0.1:1: expected the address of --listen"),
    ("admin", ("--admin", "off"), "passes a socket named admin, but --admin is off"),
])
def test_sockets_that_do_not_fit_are_refused(tmp_path, at, options, expected):
    port, admin = reserve_port(), reserve_port()
    with activated(tmp_path, *options, listen=f"127.0.0.1:{port}", admin=f"127.0.0.1:{admin}") as process:
        with connected(port if at == "listen" else admin):
            assert process.wait(60) == 2
    assert expected in (tmp_path / "log").read_text()


def test_sockets_of_another_process_are_left_alone(tmp_path):
    environment = {"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "clients"}
    with Gateway(tmp_path, environment=environment) as gateway:
        assert gateway.process.poll() is None


def test_a_manager_that_is_busy_hears_of_the_start(tmp_path):
    """Its queue is full, as while it starts many services."""
    with Manager(tmp_path) as manager, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        count = 0
        with contextlib.suppress(BlockingIOError):
            while count < 10_000:
                other.sendto(b"X=1", manager.name)
                count += 1
        assert 0 < count < 10_000, "the queue is not full"
        timer = threading.Timer(2, lambda: [manager.heard() for _ in range(count)])
        timer.start()
        with Gateway(tmp_path / "gateway", environment=manager.environment):
            timer.join()
            assert manager.heard().get("READY") == "1"


def test_a_credential_that_the_group_root_may_read(tmp_path):
    """As newer versions of systemd make it, with an access control list for the service's user."""
    if os.getuid() != 0:
        pytest.skip("only root makes files of root's")
    folder = tmp_path / "credentials"
    folder.mkdir()
    credential = folder / "countersign-master-key"
    credential.write_text(os.urandom(32).hex())
    credential.chmod(0o440)
    with Gateway(tmp_path / "gateway", environment={"CREDENTIALS_DIRECTORY": str(folder)}) as gateway:
        assert not (gateway.data / "master.key").exists()
    for mode, owner in ((0o444, 0), (0o460, 0), (0o440, 1)):
        credential.chmod(mode)
        os.chown(credential, 0, owner)
        done = run("serve", "--data", gateway.data, "--listen", "127.0.0.1:0", "--admin", "off",
                   environment={"CREDENTIALS_DIRECTORY": str(folder)})
        assert done.returncode != 0 and "lets others read this secret" in done.err
