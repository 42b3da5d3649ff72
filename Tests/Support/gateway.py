"""Starts the real binary (products.py) on a data folder of its own, and stops it by its process id."""

import contextlib
import json
import os
import pathlib
import signal
import ssl
import subprocess
import threading
import time

import processes
from clock import Clock
from ports import reserve_port
from products import BINARY, ROOT, serving
from signing import ReleaseKey
from waiting import HANGS, until
from wire import Answer, Connection



def run(*arguments: object, stdin: bytes | str = b"", environment: dict[str, str] | None = None,
        timeout: float = 60, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    """Runs one command of the binary to its end; `prefix` may run it somewhere else."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    done = subprocess.run([*prefix, BINARY, *map(str, arguments)], input=stdin, capture_output=True, timeout=timeout,
                          env={**os.environ, **(environment or {})}, check=False)
    done.out, done.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    return done


def preloading(*environments: dict[str, str]) -> dict[str, str]:
    """All of them, with all libraries that they preload."""
    merged = {name: value for each in environments for name, value in each.items()}
    libraries = [each["LD_PRELOAD"] for each in environments if "LD_PRELOAD" in each]
    return merged | ({"LD_PRELOAD": ":".join(libraries)} if libraries else {})


class Gateway:
    """A data folder, and the server that runs on it."""

    def __init__(self, folder: pathlib.Path, *options: object, environment: dict[str, str] | None = None,
                 certificate: pathlib.Path | None = None, clock: Clock | None = None):
        self.certificate, self.clock = certificate, clock
        self.folder, self.options = folder, options
        self.environment = preloading(clock.environment if clock else {}, environment or {})
        self.owner = processes.current()
        folder.mkdir(exist_ok=True)
        self.data = folder / "data"
        self.log_path = folder / "events.jsonl"
        self.process: subprocess.Popen | None = None
        self.port, self.is_tls, self.started = reserve_port(), True, []
        self.context: ssl.SSLContext | None = None
        # How to run a command where the server runs, if it was started in a mount namespace of its own.
        self.inside: tuple[str, ...] = ()

    @property
    def binary(self) -> str:
        return serving(self.options)

    def command(self, *options: object) -> list[str]:
        return [self.binary, "serve", "--data", str(self.data), "--listen", f"127.0.0.1:{self.port}", "--admin", "off",
                "--workers", "2", *map(str, self.options), *map(str, options)]

    def start(self, *options: object, prefix: tuple[str, ...] = (), wait: float = HANGS) -> "Gateway":
        """Starts and waits until it listens, on the same port each time. After `wait` seconds it hangs."""
        with open(self.log_path, "ab") as log:
            self.process = self.owner.start([*prefix, *self.command(*options)], stdout=subprocess.PIPE, stderr=log,
                                            stdin=subprocess.DEVNULL, env={**os.environ, **self.environment})
        self.inside = ("nsenter", "-t", str(self.process.pid), "-m") if prefix else ()
        self.started = []
        hangs = threading.Timer(wait, self.process.kill)
        hangs.start()
        try:
            self._await_address()
        finally:
            hangs.cancel()
        return self

    def _await_address(self) -> None:
        for line in self.process.stdout:
            self.started.append(line.decode().rstrip("\n"))
            if self.started[-1].startswith("listening on "):
                url = self.started[-1].removeprefix("listening on ")
                self.is_tls, self.port = url.startswith("https:"), int(url.rsplit(":", 1)[1])
                if self.is_tls:
                    # The pin is the line after it.
                    self.started.append(self.process.stdout.readline().decode().rstrip("\n"))
                    self.context = ssl.create_default_context(cafile=self.certificate or self.seen_data / "tls/certificate.pem")
                return
        raise AssertionError(f"exit {self.process.wait()} before listening: {self.log_path.read_text()[-800:]}")

    def __enter__(self) -> "Gateway":
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process and self.process.poll() is None:
            self.stop()

    def stop(self, sent: int = signal.SIGTERM, wait: float = 45) -> int:
        """Sends a signal to the server's own process id, and returns how it ended (negative: by that signal)."""
        self.process.send_signal(sent)
        try:
            code = self.process.wait(wait)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self.process.stdout.close()
        return code

    def time(self) -> float:
        """By the server's wall clock."""
        return self.clock.time() if self.clock else time.time()

    @property
    def url(self) -> str:
        return f"{'https' if self.is_tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def seen_data(self) -> pathlib.Path:
        """The data folder as the server sees it, which may have mounts of its own."""
        if self.inside and self.process.poll() is None:
            return pathlib.Path(f"/proc/{self.process.pid}/root{self.data}")
        return self.data

    def connect(self, timeout: float = 20) -> Connection:
        return Connection(self.port, self.context if self.is_tls else None, timeout)

    def send(self, data: bytes, *, to_head: bool = False) -> Answer:
        """Sends bytes on a connection of their own, and reads one answer."""
        with self.connect() as connection:
            connection.send(data)
            return connection.answer(to_head=to_head)

    def admin(self, *arguments: object, stdin: bytes | str = b"") -> subprocess.CompletedProcess:
        """An admin command on this data folder; it must succeed."""
        done = run(*arguments, "--data", self.data, stdin=stdin, environment=self.environment, prefix=self.inside)
        assert done.returncode == 0, f"{arguments}: exit {done.returncode}: {done.err}"
        return done

    def accept_rows(self) -> None:
        """Stops the server if it runs, and takes the rows as they are."""
        runs = self.process is not None and self.process.poll() is None
        if runs:
            self.stop()
        done = run("audit", "verify", "--json", "--data", self.data, environment=self.environment)
        self.admin("audit", "accept", "--findings", json.loads(done.out)["rows"]["findings_id"])
        if runs:
            self.start()

    def add_release(self, app: str = "demo", platform: str = "ios", version: str = "1.0", *more: object) -> ReleaseKey:
        text = self.admin("release", "add", app, "--platform", platform, "--version", version, *more, "--json").out
        made = json.loads(text)
        return ReleaseKey(made["key_id"], made["secret"], f"127.0.0.1:{self.port}", time=self.time)

    def add_app(self, app: str = "demo", require: str = "signed", **policy: str) -> None:
        """`require`: what the backend's routes ask for."""
        self.admin("app", "add", app, "--require", require)
        settings = [part for key, value in policy.items() for part in ("--set", f"{key.replace('_', '-')}={value}")]
        if settings:
            self.admin("app", "policy", app, *settings)

    def events(self) -> list[dict]:
        """The event log: every line of it must be JSON."""
        return [json.loads(line) for line in self.log_path.read_text().splitlines() if line.strip()]

    def event(self, instance: str) -> dict:
        """The event with this id, which the caller was given."""
        found = until(lambda: [line for line in self.log_path.read_text().splitlines() if instance in line],
                      lambda: f"no event {instance} in the log: {self.log_path.read_text()[-500:]}")
        return json.loads(found[0])

    def sockets(self) -> int:
        """How many the server has open."""
        found = 0
        for path in pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found += os.readlink(path).startswith("socket:")
        return found

    def rss(self) -> int:
        """Resident bytes of the server."""
        return self._status("VmRSS:")

    def busy(self) -> float:
        """Milliseconds of CPU that the server's threads have used."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6

    def most_rss(self) -> int:
        """The most that it ever had."""
        return self._status("VmHWM:")

    def _status(self, name: str) -> int:
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name))


def gateway_before(backend, folder: pathlib.Path, *options: object, environment: dict[str, str] | None = None) -> Gateway:
    """A gateway before this backend, with a release; of one worker, so that all requests share one pool of connections."""
    gateway = Gateway(folder, "--workers", 1, "--upstream", backend.url, *options, environment=environment).start()
    gateway.add_app("demo")
    gateway.key = gateway.add_release()
    return gateway
