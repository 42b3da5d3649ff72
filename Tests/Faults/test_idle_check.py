"""Of which requests the idle connection to the backend is asked, by `recv(MSG_PEEK)`, right before it is used: those that
must not be sent twice, unless their connection was used a moment ago, and all with an Idempotency-Key. strace tells."""

import pathlib
import subprocess

import pytest

import needs
import processes
from backend import Backend
from clock import Clock
from gateway import Gateway
from waiting import until


class PeekTrace:
    """strace on a running process: its calls of `recv` with MSG_PEEK."""

    def __init__(self, pid: int, path: pathlib.Path):
        self.path, self.tasks = path, pathlib.Path(f"/proc/{pid}/task")
        self.process = processes.start(["strace", "-f", "-e", "trace=recvfrom", "-o", str(path), "-p", str(pid)],
                                        stderr=subprocess.PIPE, text=True)
        until(lambda: all("TracerPid:\t0\n" not in (task / "status").read_text() for task in self.tasks.iterdir()), "strace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        self.process.stderr.close()



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
                                       "--upstream", backend.url, clock=Clock(tmp_path / "clock")) as gateway:
        gateway.add_app("demo")
        release = gateway.add_release()
        with PeekTrace(gateway.process.pid, tmp_path / "trace"), gateway.connect() as caller:
            def send(method: str, target: str, **options) -> None:
                caller.send(release.request(method, target, **options))
                assert caller.answer().status == 200

            send("GET", "/first")
            # Until the loop has begun another turn, and the connection counts as watched.
            assert gateway.send(b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n").status >= 400
            gateway.clock.advance(pause)
            send(method, "/second", fields=fields)
        # strace has ended, and so has written all that it saw.
        trace = (tmp_path / "trace").read_text()
        assert f"{method} /second" in trace, "strace saw nothing of the request"
        assert trace.count("MSG_PEEK") == asks
        assert len(backend.raw) == 1
