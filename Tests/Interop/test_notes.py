"""The sample app (Examples/Notes) from its first start to its sign-out, against a real gateway with TLS and
the sample's own backend. What it shows is compared with what the server knows."""

import json
import os
import pty
import select
import signal
import subprocess

import pytest

import processes
from failing import needs_mounts
from gateway import ROOT, Gateway
from notes_app import PROGRAM, NotesApp, NotesBackend, some_pin, texts, write_settings
from test_client import Eavesdropper

PASSWORD, MACHINE_PASSWORD = "correct horse battery staple", "this machine's"
UPDATE = "https://example.com/notes/2.0"
# As Debian's common-auth is built: what checks, and a refusal where it does not say yes.
STACK = """auth [success=1 default=ignore] pam_exec.so expose_authtok quiet {folder}/check
auth requisite pam_deny.so
auth required pam_permit.so
account required pam_permit.so
"""


@pytest.fixture(scope="module")
def backend():
    with NotesBackend() as running:
        yield running


@pytest.fixture(scope="module")
def place(backend, tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("notes"), "--upstream", backend.url) as running:
        running.add_app("demo", "session", registration="open", slots="single")
        yield running


@pytest.fixture
def settings(place, tmp_path):
    path = tmp_path / "Notes.json"
    write_settings(path, place)
    return path


def sessions(place, name: str) -> list[str]:
    """The devices on which the account is signed in, as the server has it."""
    listed = json.loads(place.admin("session", "list", "demo", name, "--json").out)
    return sorted(session["device"]["name"] for session in listed["sessions"])


def test_a_life(place, settings, tmp_path):
    name = "anna"
    with NotesApp(settings, tmp_path / "vault", "--device", "phone") as app:
        assert app.settles()["screen"] == "login" and "notice" not in app.states[-1]
        state = app.does(f"signup {name}", PASSWORD)
        assert (state["screen"], state["account"], state["notes"]) == ("home", name, [])
        assert sessions(place, name) == ["phone"]
        assert texts(app.does("add Milk")) == ["Milk"]
        assert texts(app.does("add crème brûlée")) == ["Milk", "crème brûlée"]
        app.is_killed()
    with NotesApp(settings, tmp_path / "vault", "--device", "phone") as app:
        # No password, and no login screen on the way.
        assert texts(app.shows("home", account=name)) == ["Milk", "crème brûlée"]
        assert {state["screen"] for state in app.states} <= {"waiting", "home"}
        assert sessions(place, name) == ["phone"]
        state = app.does("logout")
        assert (state["screen"], state["notice"], state["notes"]) == ("login", "You signed out.", [])
        assert sessions(place, name) == []
        app.quits()
    with NotesApp(settings, tmp_path / "vault") as app:
        assert app.settles()["screen"] == "login"
        assert texts(app.does(f"login {name}", PASSWORD)) == ["Milk", "crème brûlée"]


def test_what_a_person_does_wrong(place, settings, tmp_path):
    with NotesApp(settings, tmp_path / "vault") as app:
        app.settles()
        assert app.does("signup ben", PASSWORD)["screen"] == "home"
        app.does("logout")
        assert app.does("signup ben", "another password")["message"] == "There is an account of that name."
        assert app.does("login ben", "another password")["message"] == "The name or the password is wrong."
        assert app.states[-1]["screen"] == "login" and sessions(place, "ben") == []
        assert app.does("login ben", PASSWORD)["screen"] == "home"
        # The backend's own refusal: the note is too long.
        state = app.does(f"add {'x' * 1001}")
        assert "422" in state["message"] and state["notes"] == []


def test_a_second_device_takes_the_place_of_the_first(place, settings, tmp_path):
    with NotesApp(settings, tmp_path / "one", "--device", "one") as one, \
            NotesApp(settings, tmp_path / "two", "--device", "two") as two:
        one.settles(), two.settles()
        one.does("signup clara", PASSWORD)
        one.does("add Bread")
        assert texts(two.does("login clara", PASSWORD)) == ["Bread"]
        assert sessions(place, "clara") == ["two"]
        state = one.does("refresh")
        assert (state["screen"], state["notes"]) == ("login", [])
        assert state["notice"] == "You signed in on another device (desktop). This one was signed out."
        assert texts(two.does("add Butter")) == ["Bread", "Butter"]


def test_where_the_policy_allows_two_devices_both_stay(place, settings, tmp_path):
    place.admin("app", "policy", "demo", "--set", "slots=limit(2)")
    try:
        with NotesApp(settings, tmp_path / "one", "--device", "one") as one, \
                NotesApp(settings, tmp_path / "two", "--device", "two") as two:
            one.settles(), two.settles()
            one.does("signup dora", PASSWORD)
            two.does("login dora", PASSWORD)
            assert one.does("add Eggs")["screen"] == "home"
            assert texts(two.does("refresh")) == ["Eggs"]
            assert sessions(place, "dora") == ["one", "two"]
    finally:
        place.admin("app", "policy", "demo", "--set", "slots=single")


@needs_mounts
def test_a_lock_that_the_machines_password_opens(place, settings, tmp_path):
    """Presence by PAM, which finds its rules for `login` in a mount namespace of the test's own."""
    pam = tmp_path / "pam.d"
    pam.mkdir()
    (pam / "login").write_text(STACK.format(folder=tmp_path))
    # pam_exec ends the password with a NUL.
    (tmp_path / "check").write_text(f'#!/bin/sh\n[ "$(tr -d "\\0")" = "{MACHINE_PASSWORD}" ]\n')
    (tmp_path / "check").chmod(0o755)
    inside = ("unshare", "-m", "sh", "-c", f'mount --bind "{pam}" /etc/pam.d && exec "$@"', "sh")

    def start() -> NotesApp:
        return NotesApp(settings, tmp_path / "vault", "--lock", prefix=inside)

    with start() as app:
        app.settles()
        # The creation of the key requires proof of user presence.
        state = app.does("signup eva", PASSWORD, "not it")
        assert (state["screen"], state["message"]) == ("login", "That was not recognised. Try again.")
        assert sessions(place, "eva") == []
        assert app.does("login eva", PASSWORD, MACHINE_PASSWORD)["screen"] == "home"
        app.does("add Secret")
        app.is_killed()
    with start() as app:
        assert app.settles()["screen"] == "locked"
        state = app.does("refresh")
        assert (state["screen"], state["notes"]) == ("locked", [])
        state = app.does("unlock", "not it")
        assert (state["screen"], state["message"]) == ("locked", "That was not recognised. Try again.")
        assert texts(app.does("unlock", MACHINE_PASSWORD)) == ["Secret"]
        assert app.states[-1]["screen"] == "home"
        assert all(not state["notes"] for state in app.states if state["screen"] == "locked")
        app.is_killed()
    # Without a person to ask, the login screen is the next step.
    with start() as app:
        app.settles()
        app.ends_input("unlock")
        assert app.shows("login")["message"] == "Sign in with your password."


@pytest.mark.parametrize("is_right", [True, False], ids=["the right pin (control)", "a wrong pin"])
def test_nothing_is_sent_to_a_server_with_another_key(place, tmp_path, is_right):
    listener = Eavesdropper(place)
    url = f"https://127.0.0.1:{listener.port}"
    write_settings(tmp_path / "Notes.json", place, url=url, **({} if is_right else {"pins": [some_pin()]}))
    with NotesApp(tmp_path / "Notes.json", tmp_path / "vault") as app:
        app.settles()
        state = app.does("login anna", PASSWORD)
        listener.thread.join(10)
        assert listener.shakes == 1, "the program never connected; the test proves nothing"
        assert state["screen"] == "login"
        if is_right:
            assert b"/login/start" in listener.read
        else:
            assert listener.read == b""
            assert state["message"] == "This is not the server that the app was made for. Nothing was sent."


def test_a_version_that_is_retired(place, tmp_path):
    release = write_settings(tmp_path / "Notes.json", place)

    def retire(*options: str) -> None:
        place.admin("release", "retire", release["key_id"], *options, "--update-url", UPDATE)

    with NotesApp(tmp_path / "Notes.json", tmp_path / "vault") as app:
        app.settles()
        app.does("signup fritz", PASSWORD)
        app.does("add Cheese")
        # Read only: what changes nothing is still served.
        retire("--at", "+7d", "--warn-at", "now", "--read-only-at", "now")
        state = app.does("add Wine")
        assert (state["screen"], state["update_url"]) == ("update-required", UPDATE)
        assert texts(app.does("continue")) == ["Cheese"]
        assert app.states[-1]["screen"] == "home"
        state = app.does("refresh")
        assert (state["screen"], texts(state)) == ("home", ["Cheese"])
        assert app.does("add Wine")["screen"] == "update-required"
        app.does("continue")
        retire("--at", "now")
        assert app.does("refresh")["screen"] == "update-required"
        app.is_killed()
    with NotesApp(tmp_path / "Notes.json", tmp_path / "vault") as app:
        assert app.shows("update-required", update_url=UPDATE)
        place.admin("release", "retire", release["key_id"], "--undo")
        assert app.does("continue")["screen"] == "home"
        assert texts(app.does("refresh")) == ["Cheese"]


def test_without_a_server_the_session_stays(backend, tmp_path):
    with Gateway(tmp_path / "gateway", "--upstream", backend.url) as place:
        place.add_app("demo", "session", registration="open")
        write_settings(tmp_path / "Notes.json", place)
        with NotesApp(tmp_path / "Notes.json", tmp_path / "vault") as app:
            app.settles()
            app.does("signup gerda", PASSWORD)
            app.does("add Salt")
            app.quits()
        place.stop()
        with NotesApp(tmp_path / "Notes.json", tmp_path / "vault") as app:
            state = app.shows("home", account="gerda")
            assert state["message"] == "The server cannot be reached. Try again later."
            place.start()
            assert texts(app.does("refresh")) == ["Salt"]


def test_without_a_server_the_device_signs_out(backend, tmp_path):
    with Gateway(tmp_path / "gateway", "--upstream", backend.url) as place:
        place.add_app("demo", "session", registration="open")
        write_settings(tmp_path / "Notes.json", place)
        with NotesApp(tmp_path / "Notes.json", tmp_path / "vault") as app:
            app.settles()
            app.does("signup jana", PASSWORD)
            app.does("add Salt")
            place.stop()
            assert app.does("logout")["screen"] == "login"
            place.start()
            app.does("login jana", PASSWORD)
            assert texts(app.does("refresh")) == ["Salt"]


WRONG_SETTINGS = [({"pins": None}, "`pins` is missing"), ({"url": 1}, "`url` is of another type"), ({"pins": ["sha256/x"]}, "pin `sha256/x`")]


@pytest.mark.parametrize("changed, said", WRONG_SETTINGS, ids=[said for _, said in WRONG_SETTINGS])
def test_wrong_settings_are_one_sentence(place, tmp_path, changed, said):
    write_settings(tmp_path / "Notes.json", place, **changed)
    done = run(tmp_path / "Notes.json", tmp_path / "vault")
    assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert done.stdout == ""


def test_absent_settings_and_wrong_arguments(tmp_path):
    done = run(tmp_path / "absent.json", tmp_path / "vault")
    assert done.returncode == 1 and "absent.json: cannot be read" in done.stderr
    assert run(tmp_path / "absent.json", tmp_path / "vault", "--nonsense").returncode == 2
    assert run(tmp_path / "absent.json", tmp_path / "vault", "--help").stdout.startswith("usage: notes")


def run(settings, vault, *options: str) -> subprocess.CompletedProcess:
    command = [PROGRAM, "--settings", settings, "--vault", vault, *options]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


def test_at_a_terminal(place, settings, tmp_path):
    """A person reads text, types a password unseen, and a note cannot give orders to the terminal."""
    ours, theirs = pty.openpty()
    command = [PROGRAM, "--settings", settings, "--vault", tmp_path / "vault"]
    process = processes.start(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""

    def expect(text: str, types: str) -> None:
        nonlocal shown
        while text.encode() not in shown:
            assert select.select([ours], [], [], 30)[0], f"expected {text!r}, found {shown!r}"
            shown += os.read(ours, 4096)
        seen, shown = shown, b""
        everything.append(seen)
        os.write(ours, f"{types}\n".encode())

    everything: list[bytes] = []
    try:
        expect("login\r\n> ", "signup hanna")
        expect("Password: ", PASSWORD)
        expect("home of hanna\r\n> ", "add \x1b]0;title\x07")
        expect("1. \\u001B]0;title\\u0007\r\n> ", "quit")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert PASSWORD.encode() not in b"".join(everything)


def test_the_script_that_serves_it(tmp_path):
    """Examples/Notes/serve.sh as a newcomer runs it, and Ctrl-C."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    command = [ROOT / "Examples/Notes/serve.sh", "--listen", "127.0.0.1:0", "--admin", "off", "--data", tmp_path / "data"]
    # Tests that run in the background may have inherited that Ctrl-C is ignored, which no shell undoes.
    script = processes.start(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment, start_new_session=True,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        for line in script.stdout:
            if line.startswith("  swift run notes"):
                break
        else:
            raise AssertionError(script.stderr.read())
        settings = line.split("--settings ")[1].strip()
        with NotesApp(settings, tmp_path / "vault") as app:
            app.settles()
            assert app.does("signup ida", PASSWORD)["screen"] == "home"
            assert texts(app.does("add Pepper")) == ["Pepper"]
    finally:
        os.killpg(script.pid, signal.SIGINT)
        code = script.wait(60)
        script.communicate()
    assert code == 130
    left = subprocess.run(["ps", "-s", str(script.pid), "-o", "pid=,args="], capture_output=True, text=True, check=False)
    assert left.stdout == "" and list(scratch.iterdir()) == []
