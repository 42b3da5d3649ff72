"""A PostgreSQL server of the tests' own, in a temporary folder, reached by a Unix socket and by a loopback port. It refuses to run as root; then
it runs as the user `postgres`. As a program, it prints the folder of its socket and the port, and runs until its standard input ends."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse

import processes
from clock import Clock
from ports import reserve_port
from waiting import until

PASSWORD = "a password: of-the-tests"
USER = "postgres"

# Tests kill the server's processes and never the machine, so its data can be in memory, where there is enough. A busy disk would
# keep a gateway waiting for longer than it waits for a database.
SHARED = pathlib.Path("/dev/shm")
MEMORY = SHARED if os.access(SHARED, os.W_OK) and shutil.disk_usage(SHARED).free > 4 << 30 else None


def programs() -> pathlib.Path | None:
    """The folder of the newest server's programs; Debian puts them on no path."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    return pathlib.Path(on_path).parent if on_path else None


def version(folder: pathlib.Path) -> int:
    """The major version of the server's programs in a folder."""
    return int(subprocess.run([folder / "postgres", "--version"], text=True, capture_output=True, check=True).stdout.split()[2].split(".")[0])


def programs_of(wanted: int) -> pathlib.Path | None:
    """The folder of the programs of a major version: the machine's own, or those of a package of Tests/requirements.txt."""
    packaged = pathlib.Path(sys.prefix).glob("lib/python3*/site-packages/*/pginstall*/bin/pg_dump")
    found = [own for own in [programs()] if own] + sorted(path.parent for path in packaged)
    return next((folder for folder in found if version(folder) == wanted), None)


def is_running(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Postgres:
    def __init__(self, primary: "Postgres | None" = None, folder: pathlib.Path | None = None, *, has_clock: bool = False):
        """A new database cluster, or a standby of that one, which follows it asynchronously. `folder` has the programs. With
        `has_clock`, a test sets the server's clock."""
        self.bin = folder or programs()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cs-pg-", dir=MEMORY or "/tmp"))
        self.port, self.owner = reserve_port(), processes.current()
        self.owner.at_end(self.remove)
        self.process = None
        self.as_user = []
        if os.getuid() == 0:
            self.as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            shutil.chown(self.folder, "postgres", "postgres")
        self.folder.chmod(0o755)
        self.clock = Clock(self.folder / "clock") if has_clock else None
        if primary:
            self.run("pg_basebackup", "-D", str(self.folder / "data"), "-h", str(primary.folder), "-p", str(primary.port), "-U", USER,
                     "-R", "-X", "stream", "-c", "fast")
            self.start()
            return
        password = self.folder / "password"
        password.write_text(PASSWORD + "\n")
        password.chmod(0o644)
        self.run(
            "initdb", "-D", str(self.folder / "data"), "-U", USER, "-E", "UTF8", "--locale=C", "--auth-local=trust",
            "--auth-host=scram-sha-256", f"--pwfile={password}",
        )
        self.start()

    def run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [*self.as_user, str(self.bin / program), *arguments], cwd=self.folder, text=True, capture_output=True, check=False,
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stderr}")
        return done.stdout

    def start(self, *options: str) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = self.owner.start(
                [
                    *self.as_user, str(self.bin / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder), "-p", str(self.port),
                    "-c", "listen_addresses=127.0.0.1", "-c", "fsync=on", "-c", "max_connections=100", *options,
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                env={**os.environ, **(self.clock.environment if self.clock else {}), "LC_ALL": "C", "TZ": "UTC"},
            )
        until(self.responds, lambda: (self.folder / "log").read_text()[-2000:])

    def responds(self) -> bool:
        with contextlib.suppress(RuntimeError):
            return self.sql("SELECT 1") == "1"
        if self.process.poll() is not None:
            raise RuntimeError((self.folder / "log").read_text()[-2000:])
        return False

    def sql(self, text: str, database: str = "postgres") -> str:
        place = ("-h", str(self.folder), "-p", str(self.port), "-U", USER, "-d", database)
        return self.run("psql", *place, "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text).strip()

    def create(self, database: str) -> str:
        """A new database; its address by the socket."""
        self.sql(f"CREATE DATABASE {database}")
        return self.address(database)

    def dump(self, database: str, *options: str, of: "Postgres | None" = None) -> str:
        """The database as SQL, by this server's `pg_dump`, which reads from that server."""
        server = of or self
        return self.run("pg_dump", "-h", str(server.folder), "-p", str(server.port), "-U", USER, *options, database)

    def load(self, dump: str, database: str) -> str:
        """Makes a database from a dump, as an operator restores one; its address by the socket."""
        path = self.folder / f"{database}.sql"
        path.write_text(dump)
        path.chmod(0o644)
        address = self.create(database)
        self.run("psql", "-h", str(self.folder), "-p", str(self.port), "-U", USER, "-d", database, "-XAtq", "-v", "ON_ERROR_STOP=1", "-f", str(path))
        return address

    def copy(self, database: str, other: str, *, of: "Postgres | None" = None) -> None:
        self.load(self.dump(database, of=of), other)

    def address(self, database: str) -> str:
        return f"postgres://{USER}@{str(self.folder).replace('/', '%2F')}:{self.port}/{database}"

    def pids(self) -> list[int]:
        """The processes of the server, the first one first."""
        own = self.process.pid
        children = pathlib.Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [own, *map(int, children)]

    def local_address(self, database: str, port: int | None = None) -> str:
        """By the loopback port, or another one that leads to it."""
        return f"postgres://{USER}:{urllib.parse.quote(PASSWORD)}@127.0.0.1:{port or self.port}/{database}"

    def signal(self, number: int) -> None:
        """All of its processes get it."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """Ends all of its processes as a power failure does, apart from what the kernel has not written."""
        # Stopped first, so that it starts no process that the list does not have.
        self.process.send_signal(signal.SIGSTOP)
        pids = self.pids()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        # A server does not start while a process of the former one has its memory.
        until(lambda: not any(is_running(pid) for pid in pids), "the server's processes end")

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            # A fast shutdown.
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


if __name__ == "__main__":
    if programs() is None:
        sys.exit("no PostgreSQL is installed")
    server = Postgres()
    try:
        print(server.folder, server.port, flush=True)
        sys.stdin.read()
    finally:
        server.remove()
