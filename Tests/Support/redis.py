"""A Redis server of the tests' own, in a temporary folder, reached by a loopback port; ended by its process id. As a program, it prints the
port and the process id, and runs until its standard input ends."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import processes
from ports import reserve_port
from waiting import until


def is_installed() -> bool:
    return shutil.which("redis-server") is not None


class RedisServer:
    def __init__(self, *options: str, environment: dict[str, str] | None = None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cs-redis-", dir="/tmp"))
        self.port, self.owner = reserve_port(), processes.current()
        self.owner.at_end(self.remove)
        self.options, self.environment = options, environment or {}
        self.process = None
        self.start()

    @property
    def address(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self, *options: str) -> None:
        """On the same port each time, with what its folder has."""
        with (self.folder / "log").open("ab") as log:
            self.process = self.owner.start(
                ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "", "--appendonly",
                 "no", *self.options, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **self.environment},
            )
        until(self.responds, lambda: (self.folder / "log").read_text()[-2000:])

    def responds(self) -> bool:
        with contextlib.suppress(OSError, RuntimeError):
            return bool(self.call("PING"))
        if self.process.poll() is not None:
            raise RuntimeError((self.folder / "log").read_text()[-2000:])
        return False

    def call(self, *parts: str) -> str:
        """One command; its reply as it comes."""
        return call(self.port, *parts)

    def keys(self, part: str = "") -> int:
        """The keys with that in their names, but for those of the gateways' own probes, which come and go, and the store's head."""
        script = ("local count = 0 for _, key in ipairs(redis.call('KEYS', '*')) do if string.find(key, ARGV[1], 1, true) and not "
                  "string.find(key, 'probe-', 1, true) and not string.find(key, ':head', 1, true) then count = count + 1 end end return count")
        return int(self.call("EVAL", script, "0", part)[1:])

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "RedisServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def call(port: int, *parts: str) -> str:
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(f"*{len(parts)}\r\n".encode() + b"".join(f"${len(part.encode())}\r\n{part}\r\n".encode() for part in parts))
        reply = b""
        while not reply.endswith(b"\r\n"):
            more = connection.recv(65536)
            if not more:
                raise RuntimeError("Redis closed the connection")
            reply += more
    text = reply.decode()
    if text.startswith("-"):
        raise RuntimeError(text.strip())
    return text.strip()


if __name__ == "__main__":
    if not is_installed():
        sys.exit("no Redis is installed")
    server = RedisServer(*sys.argv[1:])
    try:
        print(server.port, server.process.pid, flush=True)
        sys.stdin.read()
    finally:
        server.remove()
