"""Of which requests the idle connection to the backend is asked, by `recv(MSG_PEEK)`, right before it is used: those that
must not be sent twice, unless their connection was used a moment ago, and all with an Idempotency-Key. strace tells."""

import pathlib
import subprocess
import time

import pytest

import needs
import processes
from backend import Backend
from gateway import Gateway


class PeekTrace:
    """strace on a running process: its calls of `recv` with MSG_PEEK."""

    def __init__(self, pid: int, path: pathlib.Path):
        self.path = path
        self.process = processes.start(["strace", "-f", "-e", "trace=recvfrom", "-o", str(path), "-p", str(pid)],
                                        stderr=subprocess.PIPE, text=True)
        # Says so when it is attached to the first of the threads; to the others right after.
        assert "attached" in self.process.stderr.readline()

    def __enter__(self):
        time.sleep(0.5)  # lint: strace attaches to the other threads
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
        self.process.stderr.close()

    def counts(self) -> tuple[int, int]:
        """All calls so far, and those with MSG_PEEK."""
        lines = [line for line in self.path.read_text().splitlines() if "recvfrom(" in line]
        return len(lines), sum("MSG_PEEK" in line for line in lines)


@needs.programs("strace")
@pytest.mark.parametrize("method, key, pause, asks", [
    ("GET", False, 0, 0),
    ("GET", False, 1.5, 0),
    ("POST", False, 0, 0),
    ("DELETE", False, 0, 0),
    ("POST", False, 1.5, 1),
    ("DELETE", False, 1.5, 1),
    ("POST", True, 0, 1),
    ("POST", True, 1.5, 1),
])
def test_which_connection_is_asked(tmp_path, method, key, pause, asks):
    fields = [("Idempotency-Key", f'"{method}-{pause}"')] if key else []
    with Backend() as backend, Gateway(tmp_path / "gateway", "--tls", "off", "--workers", 1,
                                       "--upstream", backend.url) as gateway:
        gateway.add_app("demo")
        release = gateway.add_release()
        with PeekTrace(gateway.process.pid, tmp_path / "trace") as trace, gateway.connect() as caller:
            def send(method: str, target: str, **options) -> None:
                caller.send(release.request(method, target, **options))
                assert caller.answer().status == 200

            send("GET", "/first")
            # Until the loop has begun another turn, and the connection counts as watched.
            time.sleep(0.05 + pause)  # lint: the connection counts as watched after a turn
            calls, peeks = trace.counts()
            send(method, "/second", fields=fields)
            time.sleep(0.1)  # lint: strace writes what it has seen
            more, asked = trace.counts()
        assert more > calls, "strace saw nothing of the request"
        assert asked - peeks == asks
        assert len(backend.raw) == 1
