"""Commands that ask a person at a terminal: what they ask, and that the terminal does not show a password."""

import json
import os
import pty
import select
import subprocess

import pytest

import processes
from gateway import BINARY, Gateway, run
from person import PASSWORD, Person
from waiting import HANGS, until


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


def test_sessions_are_among_the_callers_that_are_cut_off(served, tmp_path):
    anna, other = (Person(served, tmp_path / name, name).signs_up().logs_in() for name in ("anna", "other"))
    for number, person in enumerate((anna, other)):
        told = json.loads(served.admin("release", "retire", person.release["key_id"], "--at", "now", "--update-url",
                                       "https://example.com/app", "--json").out)["cut_off"]
        assert (told["releases"], told["sessions"]) == (1, 1), number


def test_what_cuts_callers_off_asks_with_their_number(served):
    """At a terminal, unless --yes is given. Without one it goes on, and standard error has the number."""
    key = served.add_release("demo", "android", "9.0")
    at = ("--data", served.data)
    retire = ("release", "retire", key.key_id, "--at", "now", "--update-url", "https://example.com/app", *at)
    for _ in range(3):
        assert served.send(key.request()).status == 200

    def impact() -> dict:
        return json.loads(served.admin("release", "impact", key.key_id, "--json").out)

    until(lambda: impact()["accepted"] == 3, impact)
    told = {"releases": 1, "sessions": 0, "requests": 3}
    dry = run(*retire, "--dry-run", "--json")
    assert (dry.returncode, json.loads(dry.out)) == (0, {"cut_off": told})
    terminal = Terminal(*retire)
    terminal.sees(f"release retire {key.key_id} cuts off 1 live releases with 0 live sessions and 3 requests")
    terminal.sees("Type yes to continue: ")
    terminal.types("no\n")
    assert terminal.end() == (1, "") and b"not confirmed; nothing done" in terminal.shown
    assert served.send(key.request()).status == 200, "nothing was changed"
    # One that begins later asks nothing.
    later = Terminal(*retire[:4], "+7d", *retire[5:])
    assert later.end()[0] == 0 and b"Type yes" not in later.shown
    done = run(*retire, "--json")
    assert done.returncode == 0 and "cuts off 1 live releases" in done.err
    assert json.loads(done.out)["cut_off"] == told | {"requests": json.loads(done.out)["cut_off"]["requests"]}
    assert json.loads(served.send(key.request()).body)["code"] == "update-required"
    served.admin("release", "retire", key.key_id, "--undo")
    agreed = Terminal(*retire)
    agreed.sees("Type yes to continue: ")
    agreed.types("yes\n")
    assert agreed.end()[0] == 0
    assert json.loads(served.send(key.request()).body)["code"] == "update-required"


def test_a_rotation_of_the_answer_key_asks(served):
    def keys() -> dict:
        return json.loads(served.admin("answer-key", "show", "--json").out)

    at = ("--data", served.data)
    # The releases of the test before and this one's were added before the key that this rotation makes.
    served.add_release("demo", "ios", "8.0")
    served.admin("answer-key", "rotate", "--force")
    lacking = len(keys()["releases_without_next"])
    before = keys()["authority_key"]
    assert lacking
    dry = run("answer-key", "rotate", "--force", "--dry-run", "--json", *at)
    assert dry.returncode == 0 and json.loads(dry.out)["cut_off"]["releases"] == lacking
    terminal = Terminal("answer-key", "rotate", "--force", *at)
    terminal.sees(f"answer-key rotate cuts off {lacking} live releases")
    terminal.types("\n")
    assert terminal.end() == (1, "") and keys()["authority_key"] == before
    agreed = Terminal("answer-key", "rotate", "--force", "--yes", "--json", *at)
    status, out = agreed.end()
    assert status == 0 and json.loads(out)["cut_off"]["releases"] == lacking and b"Type yes" not in agreed.shown
    assert keys()["authority_key"] != before


def test_the_meter_says_that_it_lags(served):
    assert "adds its figures every two seconds" in run("meter", "--data", served.data).err
