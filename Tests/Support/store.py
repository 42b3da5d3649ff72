"""Runs `.build/release/store-driver`: changes to a store through the server's writer, and what it acknowledged of them."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import threading

import processes
from products import product
from waiting import until

DRIVER = product("store-driver")


@dataclasses.dataclass
class Ledger:
    """The acknowledged changes, which must never be lost."""
    accounts: set[str] = dataclasses.field(default_factory=set)
    sessions: set[str] = dataclasses.field(default_factory=set)
    renewed: set[str] = dataclasses.field(default_factory=set)
    revoked: set[str] = dataclasses.field(default_factory=set)
    refusals: list[str] = dataclasses.field(default_factory=list)

    def see(self, lines: bytes) -> None:
        for line in lines.decode().splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "refused":
                self.refusals.append(rest)
            elif kind != "running":
                {"account": self.accounts, "session": self.sessions, "renewed": self.renewed,
                 "revoked": self.revoked}[kind].add(rest)

    @property
    def count(self) -> int:
        return len(self.accounts) + len(self.sessions) + len(self.renewed) + len(self.revoked)

    def missing(self, database: pathlib.Path, *prefix: str) -> list[str]:
        """What the database does not have of it. Of a driver that goes on meanwhile: what it had acknowledged before the look."""
        wanted_accounts, wanted_sessions = self.accounts.copy(), self.sessions.copy()
        renewed, revoked = self.renewed.copy(), self.revoked.copy()
        done = subprocess.run([*prefix, DRIVER, "list", str(database)], capture_output=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        accounts, sessions = set(), {}
        for line in done.stdout.decode().splitlines():
            words = line.split()
            if words[0] == "account":
                accounts.add(words[1])
            else:
                sessions[words[1]] = (words[2], int(words[3]))
        return ([f"account {name}" for name in wanted_accounts - accounts]
                + [f"session {name}" for name in wanted_sessions - sessions.keys()]
                + [f"renewed {name}" for name in renewed if sessions.get(name, ("", 0))[1] < 1]
                + [f"revoked {name}" for name in revoked if sessions.get(name, ("live", 0))[0] != "revoked"])


class Driver:
    """A driver that writes as fast as it can, until it is stopped or killed."""

    def __init__(self, database: pathlib.Path, callers: int = 16, *, prefix: tuple[str, ...] = (),
                 environment: dict[str, str] | None = None):
        self.ledger = Ledger()
        self.process = processes.start([*prefix, DRIVER, "load", str(database), str(callers)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, **(environment or {})})
        self.errors: list[str] = []
        self.threads = [threading.Thread(target=self._follow), threading.Thread(target=self._complain)]
        for thread in self.threads:
            thread.start()

    def _follow(self) -> None:
        for line in self.process.stdout:
            self.ledger.see(line)

    def _complain(self) -> None:
        for line in self.process.stderr:
            self.errors.append(line.decode().rstrip("\n"))

    def until(self, holds) -> None:
        def does_hold() -> bool:
            assert self.process.poll() is None, f"it ended: {self.errors}"
            return holds()

        until(does_hold, lambda: (self.ledger.count, self.ledger.refusals[-3:], self.errors))

    def acknowledged(self, more: int) -> None:
        """Waits until so many more changes are."""
        goal = self.ledger.count + more
        self.until(lambda: self.ledger.count >= goal)

    def end(self, sent: int | None = None) -> int:
        """By a signal, or with None in good order."""
        if sent:
            self.process.send_signal(sent)
        else:
            self.process.stdin.close()
        code = self.process.wait(60)
        for thread in self.threads:
            thread.join(20)
        return code

    def kill(self) -> None:
        assert self.end(signal.SIGKILL) == -signal.SIGKILL
