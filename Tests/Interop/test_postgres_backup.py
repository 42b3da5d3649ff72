"""Each step of docs/operate/postgresql-backup.md, as the page prints it: a database that was dumped while a gateway ran is restored, and a
gateway starts on it."""

import os
import subprocess
import time

import pytest

from gateway import Gateway, run
from person import PASSWORD, Person
from postgres import Postgres, programs_of
from test_guides import blocks
from waiting import until

PAGE = "docs/operate/postgresql-backup.md"


class Operator:
    """Runs the blocks of the page, on a server of its own with the database `countersign`."""

    def __init__(self, folder, server: Postgres):
        self.folder, self.server = folder, server
        self.store = server.create("countersign")
        self.gateway = Gateway(folder / "gateway", environment={"COUNTERSIGN_STORE": self.store})
        for name in ("backups", "keys"):
            (folder / name).mkdir()
        self.head = ""

    def does(self, words: str) -> str:
        """The block of the page that has these words."""
        block, = [each for each in blocks(PAGE, with_reason=True) if words in each]
        for printed, real in {"/var/lib/countersign": self.gateway.data, "/backups": self.folder / "backups",
                              "/keys": self.folder / "keys", "NUMBER:TAG": self.head}.items():
            block = block.replace(printed, str(real))
        done = subprocess.run(
            ["bash", "-c", f'set -e\ncountersign() {{ "{self.gateway.binary}" "$@"; }}\n{block}'], cwd=self.folder, capture_output=True,
            text=True, check=False, env={**os.environ, "PATH": f"{self.server.bin}:{os.environ['PATH']}", "COUNTERSIGN_STORE": self.store,
                                         "ADMIN": self.server.address("postgres"),
                                         "FORMER": self.server.address("countersign_former")})
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
        return done.stdout

    def dumps(self) -> None:
        printed = self.does("pg_dump")
        self.head = printed.split("head: ")[1].split()[0]

    def restores(self) -> None:
        self.does("ALTER DATABASE")
        self.does("pg_restore")


@pytest.mark.parametrize("number", [15, 16, 17, 18])
def test_a_restored_dump_is_served(number, tmp_path):
    folder = programs_of(number)
    if folder is None:
        pytest.skip(f"no PostgreSQL {number}")
    operator = Operator(tmp_path, Postgres(folder=folder))
    gateway = operator.gateway
    with gateway:
        gateway.add_app("demo", registration="open")
        key = gateway.add_release()
        person = Person(gateway, tmp_path / "phone").signs_up().logs_in()
        operator.dumps()
    operator.restores()
    gateway.data.rename(tmp_path / "lost")
    operator.does("install -d")
    operator.does("audit verify --noted")
    assert "1 sessions ended" in operator.does("--in-place --erasures-from")
    there = Gateway(tmp_path / "gateway", environment=gateway.environment)
    there.port = gateway.port
    (gateway.data / "tls").symlink_to(tmp_path / "lost/tls")
    with there:
        done = person.run("login", "--account", "alice", "--password-stdin", stdin=PASSWORD + "\n")
        assert done.returncode != 0 and "unavailable" in done.err, "signatures are refused for a window"
        later = int(time.time()) + 65
        until(lambda: there.send(key.request(created=later)).status == 200)
    # The former database is as it was, for what is to be done again.
    former = operator.server.address("countersign_former")
    done = run("account", "list", "demo", "--data", tmp_path / "lost", "--store", former)
    assert done.returncode == 0 and "alice" in done.out, done.err
