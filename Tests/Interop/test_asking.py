"""Commands that ask a person at a terminal: what they ask, and that the terminal does not show a password."""

import os
import pty
import select
import subprocess

import pytest

import processes
from gateway import BINARY, Gateway
from person import PASSWORD, Person
from waiting import HANGS


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("asking")) as running:
        running.add_app("demo", registration="open")
        yield running


class Terminal:
    """A command whose standard input and error are a terminal, and the person before it."""

    def __init__(self, *arguments: object):
        self.ours, theirs = pty.openpty()
        self.process = processes.start([BINARY, *map(str, arguments)], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs,
                                        start_new_session=True)
        os.close(theirs)
        self.shown = b""

    def sees(self, text: str) -> None:
        while text.encode() not in self.shown:
            if select.select([self.ours], [], [], HANGS)[0]:
                try:
                    self.shown += os.read(self.ours, 4096)
                except OSError:  # the command has closed it
                    break
        assert text.encode() in self.shown, self.shown

    def types(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def end(self, wait: float = 30) -> tuple[int, str]:
        out = self.process.communicate(timeout=wait)[0]
        while select.select([self.ours], [], [], 0)[0]:
            try:
                more = os.read(self.ours, 4096)
            except OSError:
                break
            if not more:
                break
            self.shown += more
        os.close(self.ours)
        return self.process.returncode, out.decode()


def test_a_person_signs_up_and_in(served, tmp_path):
    alice = Person(served, tmp_path / "alice", "asked")
    terminal = Terminal("signup", "--profile", alice.profile)
    terminal.sees("account: ")
    terminal.types("asked\n")
    terminal.sees("new password: ")
    terminal.types("wrnog\x15" + PASSWORD + "x\x7f\r")
    terminal.sees("the same again: ")
    terminal.types(PASSWORD + "\r")
    assert terminal.end() == (0, f"signed up as asked; `countersign login --profile {alice.profile} --account asked` signs in\n")
    assert PASSWORD.encode() not in terminal.shown and b"wrnog" not in terminal.shown
    terminal = Terminal("login", "--profile", alice.profile, "--account", "asked")
    terminal.sees("password: ")
    terminal.types(PASSWORD + "\r")
    assert terminal.end() == (0, "signed in as asked\n")
    assert PASSWORD.encode() not in terminal.shown


def test_two_that_differ_make_no_account(served, tmp_path):
    alice = Person(served, tmp_path / "alice", "differing")
    terminal = Terminal("signup", "--profile", alice.profile, "--account", "differing")
    terminal.sees("new password: ")
    terminal.types("one\r")
    terminal.sees("the same again: ")
    terminal.types("another\r")
    code, _ = terminal.end()
    assert code == 1 and b"not the same" in terminal.shown
    assert "differing" not in served.admin("account", "list", "demo", "--json").out


def test_who_gives_up_has_the_terminal_back(served, tmp_path):
    alice = Person(served, tmp_path / "alice", "leaving")
    terminal = Terminal("login", "--profile", alice.profile, "--account", "leaving")
    terminal.sees("password: ")
    terminal.types("abc\x03")
    code, _ = terminal.end()
    assert code == 1 and b"given up" in terminal.shown and b"abc" not in terminal.shown


def test_nobody_is_asked_without_a_terminal(served, tmp_path):
    alice = Person(served, tmp_path / "alice", "piped")
    done = alice.run("login", "--account", "piped")
    assert done.returncode == 2 and "--password-stdin" in done.err
    done = alice.run("login", "--password-stdin", stdin=PASSWORD)
    assert done.returncode == 2 and "--account" in done.err
